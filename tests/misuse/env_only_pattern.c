/* SLABYARD=check,only=order+heap-1*
 * slabyard: double free: ADDRESS in cache "heap-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    char *small = sy_malloc(20), *other = sy_malloc(20), *object = told(sy_malloc(100));
    sy_free(small);
    sy_free(other);
    sy_free(small); /* not reported: `only` does not name "heap-32" */
    sy_free(object);
    sy_free(object);
}
