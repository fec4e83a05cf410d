/* slabyard: double free: ADDRESS in cache "heap-64" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    void *object = told(sy_malloc(60));
    sy_free(object);
    sy_free(object);
}
