/* slabyard: free with the wrong size: ADDRESS in cache "heap", belongs to "heap-128" (128 bytes),
 * freed with size 200
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) { sy_free_aligned_sized(told(sy_aligned_alloc(64, 100)), 64, 200); }
