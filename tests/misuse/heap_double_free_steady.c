/* slabyard: double free: ADDRESS in cache "heap-64" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

/* Other objects are freed in between. The number of live objects then stays the same, so no
 * magazine is returned to the slabs for lack of room. */
int main(void) {
    enum { OBJECTS = 300, ROUNDS = 20000 };
    static void *objects[OBJECTS];
    char *object = sy_malloc(64), *other = sy_malloc(64);
    sy_free(object);
    sy_free(other);
    sy_free(told(object));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS; i++) objects[i] = sy_malloc(64);
        for (int i = 0; i < OBJECTS; i++) sy_free(objects[i]);
    }
}
