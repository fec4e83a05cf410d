/*
 * jobs.c: a queue of jobs that one thread makes and others finish and free; and packets whose
 * buffers go the same way, and come back.
 *
 *     cc jobs.c $(pkg-config --cflags --libs slabyard) -pthread && ./a.out
 *
 * It checks what it shows: the exit status is 0 only if all of it was so.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/cache.h>
#include <slabyard/stats.h>

enum {
    WORKERS = 3,
    JOBS = 200000,
    OPEN_MAX_JOBS = 1000, /* more wait for the workers */
    PACKET_BYTES = 1500,
};

typedef struct job {
    struct job *next;
    unsigned char *packet;
    size_t bytes;
    uint64_t sum; /* what it should come to */
} job;

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    job *first, **last;
    size_t open;
    int closed;
    uint64_t done, wrong;
} queue;

static sy_cache *jobs, *packets;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static uint64_t sum_of(const unsigned char *bytes, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = sum * 31 + bytes[i];
    return sum;
}

/* ---- the queue ---- */

static void put(queue *to, job *work) {
    pthread_mutex_lock(&to->lock);
    while (to->open == OPEN_MAX_JOBS) pthread_cond_wait(&to->emptied, &to->lock);
    work->next = NULL;
    *to->last = work;
    to->last = &work->next;
    to->open++;
    pthread_cond_signal(&to->filled);
    pthread_mutex_unlock(&to->lock);
}

/* NULL: it is closed, and empty. */
static job *take(queue *from) {
    pthread_mutex_lock(&from->lock);
    while (!from->first && !from->closed) pthread_cond_wait(&from->filled, &from->lock);
    job *work = from->first;
    if (work) {
        from->first = work->next;
        if (!from->first) from->last = &from->first;
        from->open--;
        pthread_cond_signal(&from->emptied);
    }
    pthread_mutex_unlock(&from->lock);
    return work;
}

static void finish(queue *of) {
    pthread_mutex_lock(&of->lock);
    of->closed = 1;
    pthread_cond_broadcast(&of->filled);
    pthread_mutex_unlock(&of->lock);
}

/* ---- who works ---- */

static void *work_off(void *arg) {
    queue *from = arg;
    uint64_t done = 0, wrong = 0;
    for (job *work; (work = take(from)) != NULL; done++) {
        wrong += sum_of(work->packet, work->bytes) != work->sum;
        sy_cache_free(packets, work->packet); /* this thread did not allocate them */
        sy_cache_free(jobs, work);
    }
    pthread_mutex_lock(&from->lock);
    from->done += done;
    from->wrong += wrong;
    pthread_mutex_unlock(&from->lock);
    return NULL;
}

static job *make_job(uint64_t number) {
    job *work = sy_cache_alloc(jobs);
    unsigned char *packet = sy_cache_alloc(packets);
    expect(work && packet, "there is memory for a job");
    size_t bytes = 40 + number * 7919 % (PACKET_BYTES - 40);
    memset(packet, (int)(number % 251), bytes);
    *work = (job){.packet = packet, .bytes = bytes, .sum = sum_of(packet, bytes)};
    return work;
}

static void show(const char *name, const sy_cache *cache) {
    sy_cache_stats stats;
    expect(sy_cache_get_stats(cache, &stats) == 0, "a cache has statistics");
    printf("%-8s %4zu KiB mapped, %zu live\n", name, stats.mapped / 1024, stats.in_use);
    expect(stats.in_use == 0, "each was freed once");
}

int main(void) {
    jobs = sy_cache_create(&(sy_cache_config){.name = "job", .size = sizeof(job)});
    packets = sy_cache_create(&(sy_cache_config){.name = "packet", .size = PACKET_BYTES});
    expect(jobs && packets, "caches are created");

    queue all = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .filled = PTHREAD_COND_INITIALIZER,
                 .emptied = PTHREAD_COND_INITIALIZER};
    all.last = &all.first;
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        expect(pthread_create(&workers[i], NULL, work_off, &all) == 0, "a worker starts");
    for (uint64_t i = 0; i < JOBS; i++) put(&all, make_job(i));
    finish(&all);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);

    printf("%ju jobs were done by %d workers, %ju wrong\n", (uintmax_t)all.done, WORKERS,
           (uintmax_t)all.wrong);
    expect(all.done == JOBS && all.wrong == 0, "each job was done, as it was made");
    show("jobs", jobs);
    show("packets", packets);
    expect(sy_cache_destroy(jobs) == 0 && sy_cache_destroy(packets) == 0, "caches are destroyed");
    return 0;
}
