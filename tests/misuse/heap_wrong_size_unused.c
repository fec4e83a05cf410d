/* slabyard: free with the wrong size: ADDRESS in cache "heap", belongs to "heap-112" (112 bytes),
 * freed with size 200
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    char *object = told(sy_malloc(100));
    sy_free_sized(object, 200); /* that class was never used */
}
