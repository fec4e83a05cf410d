/* slabyard: free with the wrong size: ADDRESS in cache "heap-112" (112 bytes), freed with size 99,
 * allocated with size 100
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    char *object = told(sy_malloc(100));
    sy_free_sized(object, 99); /* a size of the same class */
}
