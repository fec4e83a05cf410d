/*
 * stress_large.c: threads replace, grow and pass on large blocks of all sizes, while one of them
 * trims and the process forks. The memory of freed blocks moves to new ones meanwhile, also between
 * chunks and large spans. Each block holds a pattern of its owner, a word in each page; a cleared
 * one must read as zero.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"
#include "support/services.h"

enum {
    THREADS = 4,
    TABLE = 12, /* blocks that any thread may take */
    PAGE = 4096,
    CHILD_SECONDS = 60,
};

static const size_t LEAST = (size_t)160 << 10, MOST = (size_t)12 << 20; /* many fit in a chunk */

typedef struct block {
    size_t bytes;
    uint64_t stamp;
} block;

static _Atomic(block *) table[TABLE];
static _Atomic bool over;
static _Atomic uint64_t operations, trims, forks;

static uint64_t *word_at(block *it, size_t at) { return (uint64_t *)((char *)it + at); }

static void write_pattern(block *it, size_t bytes, uint64_t stamp) {
    *it = (block){bytes, stamp};
    for (size_t at = PAGE; at < bytes; at += PAGE) *word_at(it, at) = stress_word(stamp, at);
}

static void check_pattern(block *it, size_t bytes, uint64_t stamp) {
    for (size_t at = PAGE; at < bytes; at += PAGE)
        stress_expect(*word_at(it, at) == stress_word(stamp, at), "a block is its owner's alone");
}

static size_t random_bytes(uint64_t *random) {
    return LEAST + stress_below(random, (MOST - LEAST) / 8) * 8;
}

static block *make(uint64_t *random) {
    size_t bytes = random_bytes(random);
    bool clear = stress_below(random, 3) == 0;
    block *it = clear ? sy_calloc(1, bytes) : sy_malloc(bytes);
    stress_expect(it != NULL, "there is memory");
    for (size_t at = 0; clear && at < bytes; at += PAGE)
        stress_expect(*word_at(it, at) == 0, "a cleared block is clear");
    write_pattern(it, bytes, stress_random(random));
    return it;
}

static block *resize(block *it, uint64_t *random) {
    size_t before = it->bytes, bytes = random_bytes(random);
    uint64_t stamp = it->stamp;
    block *moved = sy_realloc(it, bytes);
    stress_expect(moved != NULL, "there is memory to grow");
    check_pattern(moved, before < bytes ? before : bytes, stamp);
    write_pattern(moved, bytes, stamp);
    return moved;
}

/* Frees half of the blocks with their size: a right size must never be refused. */
static void free_block(block *it, uint64_t *random) {
    if (stress_below(random, 2))
        sy_free_sized(it, it->bytes);
    else
        sy_free(it);
}

static void replace_one(uint64_t *random) {
    _Atomic(block *) *place = &table[stress_below(random, TABLE)];
    block *it = atomic_exchange(place, NULL);
    if (it) {
        check_pattern(it, it->bytes, it->stamp);
        if (stress_below(random, 4) == 0) {
            it = resize(it, random);
        } else {
            free_block(it, random);
            it = NULL;
        }
    }
    if (!it) it = make(random);
    it = atomic_exchange(place, it);
    if (it) free_block(it, random);
}

static void fork_once(uint64_t *random) {
    if (!has_all(SY_OS_FORKS)) return;
    pid_t pid = fork();
    stress_expect(pid >= 0, "a process is made");
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        for (int i = 0; i < 3; i++) free_block(make(random), random);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) stress_expect(errno == EINTR, "the child is waited for");
    stress_expect(status == 0, "a child can go on");
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void *work(void *seed) {
    uint64_t random = *(uint64_t *)seed;
    while (!over) {
        replace_one(&random);
        atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
        if (stress_below(&random, 64) == 0) {
            sy_trim();
            atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t seeds[THREADS], random = run.seed;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    double end = stress_now() + run.seconds;
    for (; stress_now() < end; usleep(20000)) fork_once(&random);
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < TABLE; i++) sy_free(atomic_load(&table[i]));
    sy_trim();
    stress_expect(sy_verify() == 0, "all is as it should be");
    printf("stress: %llu replaced, %llu trims, %llu forks from seed %llu\n",
           (unsigned long long)operations, (unsigned long long)trims, (unsigned long long)forks,
           (unsigned long long)run.seed);
    return 0;
}
