/* slabyard: double free: ADDRESS in cache "heap-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    char *object = told(sy_malloc(100));
    sy_free(object);
    sy_free(object);
}
