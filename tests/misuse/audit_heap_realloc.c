/* SLABYARD=audit
 * slabyard: double free: ADDRESS in cache "heap-80" (80 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK grow main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

static __attribute__((noinline)) void *grow(void *text) { return hidden(sy_realloc(text, 700)); }

int main(void) {
    void *text = told(sy_malloc(70));
    void *longer = grow(text);
    sy_free(text); /* realloc has moved the object */
    sy_free(longer);
}
