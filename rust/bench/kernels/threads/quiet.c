/*
 * quiet: eight threads have served many requests and freed everything. Each of them serves one
 * small request a second from then on.
 *
 * After https://github.com/jemalloc/jemalloc/issues/2132, which asks how the caches of threads
 * that are idle can be swept, and https://github.com/gperftools/gperftools/issues/1592, where a
 * proxy without traffic keeps more in the caches of its threads, 26 MB, than it has in use, 17 MB.
 * The numbers here are our own: each thread has up to 2,000 blocks of 16 to 4,096 bytes, most of
 * them small, and replaces 100,000.
 */
#include "readings.h"

enum { WORKERS = 8, LIVE = 2000, REQUESTS = 100000, PAUSE_MS = 1000 };

static pthread_barrier_t all_hold, may_free, have_freed;
static atomic_bool is_over;

static size_t draw_size(struct random *random) {
    size_t most = (size_t)64 << below(random, 7);
    return 16 + below(random, most - 15);
}

static void serve(struct blocks *blocks, struct random *random, uint64_t *sum) {
    for (size_t i = 0; i < LIVE; i++) blocks_add(blocks, draw_size(random), next(random));
    for (size_t i = 0; i < REQUESTS; i++) {
        size_t place = below(random, LIVE);
        *sum += give(blocks->at[place]);
        blocks->at[place] = take(draw_size(random), next(random));
    }
}

static void *run_worker(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->index + 1);
    struct blocks blocks = blocks_for(LIVE);
    serve(&blocks, &random, &member->sum);
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&may_free);
    blocks_shuffle(&blocks, &random);
    member->sum += blocks_give(&blocks);
    blocks_end(&blocks);
    pthread_barrier_wait(&have_freed);
    while (!atomic_load(&is_over)) {
        poll(NULL, 0, PAUSE_MS);
        give(take(16 + below(&random, 200), next(&random)));
    }
    return NULL;
}

int main(int count, char **arguments) {
    struct request request = read_request(count, arguments);
    pthread_t threads[WORKERS];
    struct member members[WORKERS];
    uint64_t sum = 0;
    pthread_barrier_init(&all_hold, NULL, WORKERS + 1);
    pthread_barrier_init(&may_free, NULL, WORKERS + 1);
    pthread_barrier_init(&have_freed, NULL, WORKERS + 1);
    for (size_t i = 0; i < WORKERS; i++) {
        members[i] = (struct member){i, 0, 0};
        threads[i] = start(run_worker, &members[i]);
    }
    pthread_barrier_wait(&all_hold);
    tell_resident("peak");
    pthread_barrier_wait(&may_free);
    pthread_barrier_wait(&have_freed);
    tell("live", 0);
    tell_waits(&request, sleep_ms);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < WORKERS; i++) {
        must(pthread_join(threads[i], NULL) == 0, "a thread ends");
        sum += members[i].sum;
    }
    tell("sum", sum);
    return 0;
}
