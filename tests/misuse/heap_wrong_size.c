/* slabyard: free with the wrong size: ADDRESS in cache "heap", belongs to "heap-64" (64 bytes),
 * freed with size 128
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_free(sy_malloc(128)); /* the class is in use from now on */
    sy_free_sized(told(sy_malloc(60)), 128);
}
