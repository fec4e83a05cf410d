/*
 * mstress: a server in phases, after the stress test of mimalloc (Leijen, Zorn and de Moura,
 * 2019).
 *
 * In a phase, each thread allocates short-lived blocks of 8 to 128 bytes and long-lived ones of 8
 * to 512 bytes, in powers of two. One of a hundred is 100, 1,000 or 10,000 times as large. The
 * thread frees some short-lived blocks soon, and exchanges others with blocks in a table that all
 * threads share. It keeps the long-lived blocks to its end. Some threads do more than others.
 * Between the phases all threads end, and half of the table is freed. SIZE is the number of phases.
 */
#include "program.h"

enum { SHARED = 1000, SHORT_SHIFTS = 5, LONG_SHIFTS = 7, WORK = 2500 };

static _Atomic(void *) shared[SHARED];

static void *another(struct random *random, size_t shifts) {
    size_t size = sizeof(void *) << below(random, shifts);
    size_t rare = below(random, 10000);
    size_t factor = rare < 1 ? 10000 : rare < 10 ? 1000 : rare < 100 ? 100 : 1;
    return take(size * factor, next(random));
}

/* The blocks of a thread: two lists, whose sizes are known. */
struct work {
    struct random random;
    void **shorts, **longs;
    size_t short_count, long_count;
    uint64_t sum;
};

static void replace_some(struct work *work) {
    struct random *random = &work->random;
    if (work->short_count == 0) return;
    if (chance(random, 66)) {
        void **place = &work->shorts[below(random, work->short_count)];
        work->sum += *place != NULL;
        give(*place);
        *place = NULL;
    }
    if (chance(random, 25)) {
        void **place = &work->shorts[below(random, work->short_count)];
        *place = atomic_exchange(&shared[below(random, SHARED)], *place);
    }
}

static void *run(void *argument) {
    struct member *member = argument;
    size_t allocations = WORK * (member->index + 1), kept = allocations / 2;
    struct work work = {.random = random_from(member->size * 100 + member->index)};
    work.shorts = malloc(allocations * sizeof(void *));
    work.longs = malloc(kept * sizeof(void *));
    must(work.shorts && work.longs, "there is memory");
    while (work.short_count < allocations || work.long_count < kept) {
        bool is_short =
            work.long_count == kept || (work.short_count < allocations && chance(&work.random, 50));
        if (is_short) {
            work.shorts[work.short_count++] = another(&work.random, SHORT_SHIFTS);
        } else {
            work.longs[work.long_count++] = another(&work.random, LONG_SHIFTS);
        }
        replace_some(&work);
    }
    for (size_t i = 0; i < work.short_count; i++) give(work.shorts[i]);
    for (size_t i = 0; i < work.long_count; i++) give(work.longs[i]);
    free(work.shorts);
    free(work.longs);
    member->sum = allocations + kept; /* what else it freed depends on the other threads */
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments), sum = 0;
    for (uint64_t phase = 1; phase <= size; phase++) {
        sum += team(THREADS, run, phase);
        for (size_t i = phase % 2; i < SHARED; i += 2) give(atomic_exchange(&shared[i], NULL));
    }
    for (size_t i = 0; i < SHARED; i++) give(atomic_exchange(&shared[i], NULL));
    return finish(count, arguments, sum);
}
