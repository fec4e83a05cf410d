/* slabyard: free with the wrong alignment: ADDRESS in cache "heap", belongs to "heap-131072"
 * (131072 bytes), freed with size 40, allocated with size 40
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the alignment that was asked for */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    sy_free_sized(told(sy_aligned_alloc(128 << 10, 40)), 40);
}
