/*
 * cache-thrash: active false sharing, from the same suite as cache-scratch (Hoard).
 *
 * Each thread allocates a small block, writes to it many times and frees it, SIZE times. If the
 * allocator cuts blocks of several threads from one cache line, they write to the same line.
 */
#include "program.h"

enum { BLOCK = 8, WRITES = 50000 };

static void *run(void *argument) {
    struct member *member = argument;
    for (uint64_t i = 0; i < member->size; i++) {
        volatile uint64_t *block = malloc(BLOCK);
        must(block != NULL, "there is memory");
        *block = member->index;
        for (size_t n = 0; n < WRITES; n++) *block = *block + 1;
        must(*block == member->index + WRITES, "nobody else writes to the block");
        member->sum += *block;
        free((void *)block);
    }
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(THREADS, run, size_of_work(count, arguments));
    return finish(count, arguments, sum);
}
