/*
 * xmalloc: one half of the threads only allocates, the other half only frees, after Lever and
 * Boreham, "malloc() performance in a multithreaded Linux environment" (2000), in the form with
 * batches that Christian Eder and Bradley Kuszmaul gave it.
 *
 * A producer fills a batch with 4,096 blocks of 64 bytes and puts it on a list. A consumer takes
 * the batch that was put there last, and frees its blocks and the batch. SIZE is the number of
 * batches of each producer. The list holds 8 batches at most, so that the peak of memory does not
 * depend on the scheduler.
 */
#include "program.h"

enum { PAIRS = THREADS / 2, BATCH = 4096, BLOCK = 64, BATCHES_MAX = 8 };

struct batch {
    struct batch *below;
    void *blocks[BATCH];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static struct batch *last;
static size_t listed;

static void put(struct batch *batch) {
    pthread_mutex_lock(&lock);
    while (listed == BATCHES_MAX) pthread_cond_wait(&room, &lock);
    batch->below = last;
    last = batch;
    listed++;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&lock);
}

static struct batch *get(void) {
    pthread_mutex_lock(&lock);
    while (listed == 0) pthread_cond_wait(&some, &lock);
    struct batch *batch = last;
    last = batch->below;
    listed--;
    pthread_cond_signal(&room);
    pthread_mutex_unlock(&lock);
    return batch;
}

static void produce(uint64_t batches) {
    for (uint64_t i = 0; i < batches; i++) {
        struct batch *batch = malloc(sizeof *batch);
        must(batch != NULL, "there is memory");
        for (size_t n = 0; n < BATCH; n++) batch->blocks[n] = take(BLOCK, i * BATCH + n);
        put(batch);
    }
}

static uint64_t consume(uint64_t batches) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < batches; i++) {
        struct batch *batch = get();
        for (size_t n = 0; n < BATCH; n++) sum += give(batch->blocks[n]);
        free(batch);
    }
    return sum;
}

static void *run(void *argument) {
    struct member *member = argument;
    if (member->index % 2 == 0) {
        produce(member->size);
    } else {
        member->sum = consume(member->size);
    }
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(2 * PAIRS, run, size_of_work(count, arguments));
    return finish(count, arguments, sum);
}
