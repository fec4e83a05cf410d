/*
 * sh8: as sh6, and some of the blocks are freed by other threads, after sh8bench (MicroQuill, in
 * SmartHeap's documentation).
 *
 * In a wave, each thread allocates blocks of random sizes from 8 to 1,000 bytes, small ones more
 * often. It puts every fifth one into a table that all threads share, and frees what it finds
 * there; it frees the others in reverse or in the order of their allocation, wave by wave in
 * turn. SIZE is the number of waves.
 */
#include "program.h"

enum { LARGEST = 1000, WAVE = 4000, SHARED = 4096 };

static _Atomic(void *) shared[SHARED];

/* Of two random sizes the smaller one. */
static size_t random_size(struct random *random) {
    size_t one = below(random, LARGEST - BLOCK_MIN + 1);
    size_t other = below(random, LARGEST - BLOCK_MIN + 1);
    return BLOCK_MIN + (one < other ? one : other);
}

static void *run(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->index + 1);
    void **blocks = malloc(WAVE * sizeof *blocks);
    must(blocks != NULL, "there is memory");
    for (uint64_t wave = 0; wave < member->size; wave++) {
        size_t own = 0;
        for (size_t i = 0; i < WAVE; i++) {
            void *block = take(random_size(&random), next(&random));
            if (i % 5 == 0) {
                member->sum += give(atomic_exchange(&shared[below(&random, SHARED)], block));
            } else {
                blocks[own++] = block;
            }
        }
        for (size_t i = 0; i < own; i++) {
            member->sum += give(blocks[wave % 2 == 0 ? i : own - 1 - i]);
        }
    }
    free(blocks);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(THREADS, run, size_of_work(count, arguments));
    for (size_t i = 0; i < SHARED; i++) sum += give(atomic_exchange(&shared[i], NULL));
    return finish(count, arguments, sum);
}
