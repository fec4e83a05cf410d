/* slabyard: free with the wrong size: ADDRESS in cache "heap-1048576" (1048576 bytes), freed with
 * size 1000001, allocated with size 1000000
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    void *object = told(sy_malloc(1000000));
    sy_free_sized(object, 1000001);
}
