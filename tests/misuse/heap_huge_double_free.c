/* slabyard: double free: ADDRESS in cache "heap"
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    void *object = told(sy_malloc(100 << 20)); /* the object returns to the system at once */
    sy_free(object);
    sy_free(object);
}
