/* slabyard: free with the wrong size or alignment: ADDRESS in cache "heap", belongs to "heap-64"
 * (64 bytes), freed with size 40
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size and alignment that were asked for, or without them */
#include "misuse.h"

int main(void) { sy_free_aligned_sized(told(sy_aligned_alloc(64, 40)), 4096, 40); }
