/*
 * spike.h: eight threads take much memory, free most of it or all, and go on with little: the
 * programs spike-kept and spike-freed.
 *
 * After https://github.com/freenet/freenet-core/issues/4565, where a gateway of a peer-to-peer
 * network grew until the system killed it at 7 GB, and the comment of 27 June 2026, which compares
 * allocators: eight threads, each with 160 MB in blocks of 32 B to 4 KB, all of them held at the
 * peak, then freed, except for one of sixteen in one of two cases; then light activity, and the
 * resident memory after a while. Here each thread allocates and frees one small block each 100 ms.
 */
#ifndef SLABYARD_BENCH_SPIKE_H
#define SLABYARD_BENCH_SPIKE_H

#include "readings.h"

enum { WORKERS = 8, LEAST = 32, MOST = 4096, TICK = 100 /* ms */ };

struct worker {
    pthread_t thread;
    size_t index, bytes, kept_of; /* every so many blocks one is kept; 0: none */
    uint64_t sum, kept;
};

static pthread_barrier_t all_hold, may_free, have_freed;
static atomic_bool is_over;

static struct blocks take_spike(struct worker *worker, struct random *random) {
    struct blocks blocks = blocks_for(worker->bytes / ((LEAST + MOST) / 2) * 5 / 4 + 64);
    for (size_t bytes = 0; bytes < worker->bytes;) {
        size_t size = LEAST + below(random, MOST - LEAST + 1);
        blocks_add(&blocks, size, next(random));
        bytes += size;
    }
    return blocks;
}

/* Frees the blocks but those that are kept, which come first then. */
static void free_spike(struct worker *worker, struct blocks *blocks) {
    size_t kept = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        if (worker->kept_of != 0 && i % worker->kept_of == 0) {
            worker->kept += checked(blocks->at[i]);
            blocks->at[kept++] = blocks->at[i];
        } else {
            worker->sum += give(blocks->at[i]);
        }
    }
    blocks->count = kept;
    struct blocks small = blocks_for(kept + 1);
    memcpy(small.at, blocks->at, kept * sizeof(void *));
    small.count = kept;
    blocks_end(blocks);
    *blocks = small;
}

static void *run_worker(void *argument) {
    struct worker *worker = argument;
    struct random random = random_from(worker->index + 1);
    struct blocks blocks = take_spike(worker, &random);
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&may_free);
    free_spike(worker, &blocks);
    pthread_barrier_wait(&have_freed);
    while (!atomic_load(&is_over)) {
        sleep_ms(TICK);
        give(take(100 + below(&random, 300), next(&random)));
    }
    worker->sum += blocks_give(&blocks);
    blocks_end(&blocks);
    return NULL;
}

static int run_spike(int count, char **arguments, size_t kept_of) {
    struct request request = read_request(count, arguments);
    static struct worker workers[WORKERS];
    uint64_t sum = 0, kept = 0;
    pthread_barrier_init(&all_hold, NULL, WORKERS + 1);
    pthread_barrier_init(&may_free, NULL, WORKERS + 1);
    pthread_barrier_init(&have_freed, NULL, WORKERS + 1);
    for (size_t i = 0; i < WORKERS; i++) {
        size_t bytes = (size_t)(request.quick ? 16 : 160) << 20;
        workers[i] = (struct worker){.index = i, .bytes = bytes, .kept_of = kept_of};
        workers[i].thread = start(run_worker, &workers[i]);
    }
    pthread_barrier_wait(&all_hold);
    tell_resident("peak");
    pthread_barrier_wait(&may_free);
    pthread_barrier_wait(&have_freed);
    for (size_t i = 0; i < WORKERS; i++) kept += workers[i].kept;
    tell("live", kept >> 10);
    tell_waits(&request, sleep_ms);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < WORKERS; i++) {
        must(pthread_join(workers[i].thread, NULL) == 0, "a thread ends");
        sum += workers[i].sum;
    }
    tell("sum", sum);
    return 0;
}

#endif
