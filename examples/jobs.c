/*
 * jobs.c: a queue of jobs. A thread makes a job, and another thread finishes and frees it. Here a
 * job counts the primes in a range. A worker splits a long job in two, and puts one half back into
 * the queue.
 *
 *     cc -DSY_STATIC jobs.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * The program checks its results: the exit status is 0 only if all of them are right.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabyard/cache.h>
#include <slabyard/stats.h>

enum {
    WORKERS = 3,
    JOBS = 1000, /* made by main; the workers make others */
    NUMBERS = 1000000,
    PRIMES = 78498,   /* below NUMBERS */
    NUMBERS_MAX = 16, /* of a job that is not split */
};

typedef struct job {
    struct job *next;
    uint32_t first, end; /* the job's numbers: first <= number < end */
} job;

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first;
    size_t unfinished; /* jobs in the queue and with workers; at 0 no thread can make another */
    uint64_t done, primes;
} queue;

static sy_cache *jobs;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- the queue ---- */

static void put(queue *to, uint32_t first, uint32_t end) {
    job *work = sy_cache_alloc(jobs);
    expect(work != NULL, "there is memory for a job");
    pthread_mutex_lock(&to->lock);
    *work = (job){to->first, first, end};
    to->first = work;
    to->unfinished++;
    pthread_cond_signal(&to->changed);
    pthread_mutex_unlock(&to->lock);
}

/* Waits for a job. Returns NULL when all jobs are finished. */
static job *take(queue *from) {
    pthread_mutex_lock(&from->lock);
    while (!from->first && from->unfinished > 0) pthread_cond_wait(&from->changed, &from->lock);
    job *work = from->first;
    if (work) from->first = work->next;
    pthread_mutex_unlock(&from->lock);
    return work;
}

static void finish(queue *of, job *work, uint64_t primes) {
    sy_cache_free(jobs, work); /* mostly another thread allocated it */
    pthread_mutex_lock(&of->lock);
    of->done++;
    of->primes += primes;
    if (--of->unfinished == 0) pthread_cond_broadcast(&of->changed);
    pthread_mutex_unlock(&of->lock);
}

/* ---- the workers ---- */

static bool is_prime(uint32_t number) {
    for (uint32_t by = 2; by * by <= number; by++)
        if (number % by == 0) return false;
    return number > 1;
}

static void *work_off(void *arg) {
    queue *from = arg;
    for (job *work; (work = take(from)) != NULL;) {
        uint64_t primes = 0;
        while (work->end - work->first > NUMBERS_MAX) { /* others may take the second half */
            uint32_t middle = work->first + (work->end - work->first) / 2;
            put(from, middle, work->end);
            work->end = middle;
        }
        for (uint32_t number = work->first; number < work->end; number++)
            primes += is_prime(number);
        finish(from, work, primes);
    }
    return NULL;
}

int main(void) {
    jobs = sy_cache_create(&(sy_cache_config){.name = "job", .size = sizeof(job)});
    expect(jobs != NULL, "a cache is created");

    queue all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t workers[WORKERS];
    all.unfinished++; /* counts for main, so that no worker ends before all jobs are in the queue */
    for (int i = 0; i < WORKERS; i++)
        expect(pthread_create(&workers[i], NULL, work_off, &all) == 0, "a worker starts");
    for (uint32_t i = 0; i < JOBS; i++) put(&all, NUMBERS / JOBS * i, NUMBERS / JOBS * (i + 1));
    finish(&all, NULL, 0);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);

    sy_cache_stats stats;
    expect(sy_cache_get_stats(jobs, &stats) == 0, "a cache has statistics");
    printf("%d workers did %ju jobs and found %ju primes; %zu KiB were mapped for jobs\n", WORKERS,
           (uintmax_t)all.done - 1, (uintmax_t)all.primes, stats.mapped / 1024);
    expect(all.primes == PRIMES, "each number was looked at once");
    expect(all.done > JOBS + 1, "workers made jobs too");
    expect(stats.in_use == 0, "each job was freed once");
    expect(sy_cache_destroy(jobs) == 0, "and the cache is destroyed");
    return 0;
}
