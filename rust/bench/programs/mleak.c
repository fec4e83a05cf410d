/*
 * mleak: threads that live shortly and leave a block behind, after the test of that name in the
 * suite of mimalloc.
 *
 * Ten threads at a time each allocate a cleared block of 128 bytes, put it in a random place of a
 * table, and free the block of an earlier thread that was there. What an allocator keeps for each
 * thread that has ended adds up. SIZE is the number of times that ten threads run.
 */
#include "program.h"

enum { AT_A_TIME = 10, PLACES = 1000, BLOCK = 128 };

static _Atomic(void *) places[PLACES];

static void *run(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->size * AT_A_TIME + member->index);
    unsigned char *block = calloc(1, BLOCK);
    must(block != NULL, "there is memory");
    for (size_t i = 0; i < BLOCK; i++) must(block[i] == 0, "a block of calloc is cleared");
    stamp(block, BLOCK, next(&random));
    give(atomic_exchange(&places[below(&random, PLACES)], block));
    member->sum = 1;
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments), sum = 0;
    for (uint64_t i = 0; i < size; i++) sum += team(AT_A_TIME, run, i);
    for (size_t i = 0; i < PLACES; i++) sum += give(atomic_exchange(&places[i], NULL));
    return finish(count, arguments, sum);
}
