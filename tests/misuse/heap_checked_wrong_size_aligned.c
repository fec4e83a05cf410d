/* slabyard: free with the wrong size: ADDRESS in cache "heap-128" (128 bytes), freed with size 99,
 * allocated with size 100
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    char *object = told(sy_aligned_alloc(64, 100));
    sy_free_aligned_sized(object, 64, 99); /* a size of the same class */
}
