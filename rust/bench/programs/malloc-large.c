/*
 * malloc-large: large blocks are replaced at random, after the test of that name in the suite of
 * mimalloc.
 *
 * There are 20 places for blocks of 5 to 25 MiB. A new block is allocated and filled. Then the
 * block in a random place is freed, and the new one takes its place. SIZE is the number of new
 * blocks. They are not filled with zeros: the compiler would call calloc, which may leave them
 * untouched.
 */
#include "program.h"

enum { PLACES = 20, SMALLEST = 5 << 20, LARGEST = 25 << 20 };

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments), sum = 0;
    struct random random = random_from(42);
    void *places[PLACES] = {NULL};
    for (uint64_t i = 0; i < size; i++) {
        size_t bytes = SMALLEST + below(&random, LARGEST - SMALLEST + 1);
        void *block = malloc(bytes);
        must(block != NULL, "there is memory");
        memset(block, 0x5A, bytes);
        void **place = &places[below(&random, PLACES)];
        sum += give(*place);
        *place = stamp(block, bytes, i);
    }
    for (size_t i = 0; i < PLACES; i++) sum += give(places[i]);
    return finish(count, arguments, sum);
}
