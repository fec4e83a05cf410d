/* slabyard: double free: ADDRESS in cache "heap-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    char *object = told(sy_malloc(100));
    sy_free(object);
    sy_free(object);
}
