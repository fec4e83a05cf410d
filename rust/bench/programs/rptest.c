/*
 * rptest: batches of random frees and allocations, with blocks for other threads, after the
 * benchmark of rpmalloc (Jansson, 2017).
 *
 * Each thread has 1,000 places. In a round it frees the blocks of 30 to 100 places, then allocates
 * for 30 to 100 places blocks of 16 to 16,000 bytes, evenly distributed, and writes to each page.
 * In every other round it also allocates a batch of blocks for another thread, which frees them in
 * its next round. If that thread has not freed four batches that were sent before, the sender frees
 * the batch itself: so the peak of memory does not depend on the scheduler. SIZE is the number of
 * rounds.
 */
#include "program.h"

enum { PLACES = 1000, SMALLEST = 16, LARGEST = 16000, STEP = 37, FOREIGN = 50, WAITING_MAX = 4 };
enum { PAGE = 4096 };

struct batch {
    struct batch *below;
    void *blocks[FOREIGN];
};

static _Atomic(struct batch *) arrived[THREADS];
static _Atomic(size_t) waiting[THREADS];

static void *another(struct random *random) {
    size_t size = SMALLEST + below(random, LARGEST - SMALLEST + 1);
    volatile unsigned char *block = take(size, next(random));
    for (size_t at = PAGE; at + 1 < size; at += PAGE) block[at] = 1;
    return (void *)block;
}

static uint64_t give_batch(struct batch *batch) {
    uint64_t sum = 0;
    for (size_t i = 0; i < FOREIGN; i++) sum += give(batch->blocks[i]);
    free(batch);
    return sum;
}

/* Returns the bytes that it freed itself. */
static uint64_t send(size_t to, struct random *random) {
    struct batch *batch = malloc(sizeof *batch);
    must(batch != NULL, "there is memory");
    for (size_t i = 0; i < FOREIGN; i++) batch->blocks[i] = another(random);
    if (atomic_fetch_add(&waiting[to], 1) >= WAITING_MAX) {
        atomic_fetch_sub(&waiting[to], 1);
        return give_batch(batch);
    }
    batch->below = atomic_load(&arrived[to]);
    while (!atomic_compare_exchange_weak(&arrived[to], &batch->below, batch)) continue;
    return 0;
}

static uint64_t receive(size_t index) {
    struct batch *batch = atomic_exchange(&arrived[index], NULL);
    uint64_t sum = 0;
    while (batch) {
        struct batch *below = batch->below;
        sum += give_batch(batch);
        atomic_fetch_sub(&waiting[index], 1);
        batch = below;
    }
    return sum;
}

static void *run(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->index + 1);
    void *places[PLACES] = {NULL};
    size_t freed = 0, filled = 0;
    for (uint64_t round = 0; round < member->size; round++) {
        for (size_t i = 30 + below(&random, 71); i > 0; i--, freed = (freed + STEP) % PLACES) {
            member->sum += give(places[freed]);
            places[freed] = NULL;
        }
        member->sum += receive(member->index);
        for (size_t i = 30 + below(&random, 71); i > 0; i--, filled = (filled + STEP) % PLACES) {
            member->sum += give(places[filled]);
            places[filled] = another(&random);
        }
        if (round % 2 == 0) member->sum += send((member->index + 1) % THREADS, &random);
    }
    for (size_t i = 0; i < PLACES; i++) member->sum += give(places[i]);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(THREADS, run, size_of_work(count, arguments));
    for (size_t i = 0; i < THREADS; i++) sum += receive(i);
    return finish(count, arguments, sum);
}
