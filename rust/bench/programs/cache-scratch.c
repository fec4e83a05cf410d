/*
 * cache-scratch: passive false sharing, after Berger and others, "Hoard: a scalable memory
 * allocator for multithreaded applications" (2000).
 *
 * The main thread allocates small blocks, which lie together, and gives one to each thread. The
 * thread frees it. Then it allocates a block of this size, writes to it many times and frees it,
 * SIZE times. If the allocator gives the threads the blocks that they freed, or neighbours of them,
 * they write to the same cache lines.
 */
#include "program.h"

enum { BLOCK = 8, WRITES = 50000 };

static void *given[THREADS];

static void *run(void *argument) {
    struct member *member = argument;
    member->sum = give(given[member->index]);
    for (uint64_t i = 0; i < member->size; i++) {
        volatile uint64_t *block = malloc(BLOCK);
        must(block != NULL, "there is memory");
        *block = i;
        for (size_t n = 0; n < WRITES; n++) *block = *block + 1;
        must(*block == i + WRITES, "nobody else writes to the block");
        member->sum += *block;
        free((void *)block);
    }
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments);
    for (size_t i = 0; i < THREADS; i++) given[i] = take(BLOCK, i);
    return finish(count, arguments, team(THREADS, run, size));
}
