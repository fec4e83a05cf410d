/*
 * alloc-test: a load like that of real programs, after "Testing memory allocators: ptmalloc2 vs
 * tcmalloc vs hoard vs jemalloc while trying to simulate real-world loads" (OLogN, ithare.com,
 * 2018).
 *
 * Each thread has 65,536 places. In a step it chooses a place. If a block is there, it frees the
 * block, else it allocates one. A fifth of the places gets four fifths of the steps, a fifth of
 * these places again four fifths of theirs, and so on. So some blocks live shortly and others long.
 * Sizes are 8 bytes to 1 KiB, and each doubling of the size is half as frequent. SIZE is the number
 * of steps, in thousands.
 */
#include "program.h"

enum { PLACES = 65536, DEPTH = 6, DOUBLINGS = 7 };

static size_t random_place(struct random *random) {
    size_t first = 0, places = PLACES;
    for (int depth = 0; depth < DEPTH; depth++) {
        size_t busy = places / 5;
        if (!chance(random, 80)) return first + busy + below(random, places - busy);
        places = busy;
    }
    return first + below(random, places);
}

static size_t random_size(struct random *random) {
    size_t bits = next(random) >> 40;
    size_t from = (size_t)BLOCK_MIN << __builtin_ctzll(bits | (1u << (DOUBLINGS - 1)));
    return from + below(random, from + 1);
}

static void *run(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->index + 1);
    void **places = calloc(PLACES, sizeof *places);
    must(places != NULL, "there is memory");
    for (size_t i = 0; i < PLACES; i += 2) places[i] = take(random_size(&random), i);
    for (uint64_t i = 0; i < member->size * 1000; i++) {
        void **place = &places[random_place(&random)];
        if (*place) {
            member->sum += give(*place);
            *place = NULL;
        } else {
            *place = take(random_size(&random), i);
        }
    }
    for (size_t i = 0; i < PLACES; i++) member->sum += give(places[i]);
    free(places);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(THREADS, run, size_of_work(count, arguments));
    return finish(count, arguments, sum);
}
