/* SLABYARD=audit
 * slabyard: double free: ADDRESS in cache "heap-80" (80 bytes)
 *   seen by thread THREAD:
 *     STACK release main
 *   allocated TIME ago by thread THREAD:
 *     STACK copy main
 *   freed TIME ago by thread THREAD:
 *     STACK release main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

static __attribute__((noinline)) void *copy(size_t size) { return told(sy_malloc(size)); }

static __attribute__((noinline)) void release(void *text) {
    sy_free(text);
    hidden(text);
}

int main(void) {
    void *text = copy(70);
    release(text);
    release(text);
}
