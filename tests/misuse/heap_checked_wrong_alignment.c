/* slabyard: free with the wrong alignment: ADDRESS in cache "heap", belongs to "heap-64" (64
 * bytes), freed with size 40, allocated with size 40
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the alignment that was asked for */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    sy_free_aligned_sized(told(sy_aligned_alloc(64, 40)), 4096, 40);
}
