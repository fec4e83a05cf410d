/* A program whose memory is mostly a mapping of its own, beside some objects of malloc. It lives
 * long enough to be sampled. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OWN_BYTES = 64 << 20, OBJECTS = 4000, OBJECT_BYTES = 1000 };

int main(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert(own != MAP_FAILED);
    memset(own, 1, OWN_BYTES);
    static char *objects[OBJECTS];
    for (int object = 0; object < OBJECTS; object++) {
        objects[object] = malloc(OBJECT_BYTES);
        memset(objects[object], 1, OBJECT_BYTES);
    }
    for (int wait = 0; wait < 30; wait++) {
        free(malloc(8));
        usleep(20000);
    }
    for (int object = 0; object < OBJECTS; object++) free(objects[object]);
    return 0;
}
