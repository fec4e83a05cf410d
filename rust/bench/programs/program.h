/*
 * Common code of the allocator programs in this folder: arguments, random numbers, blocks that
 * are checked, threads, and the report at the end.
 *
 * Each program repeats the workload of a published allocator benchmark, from its description;
 * `service` alone is our own. A program is one file and one executable: its name shows in a
 * profile, nothing of another workload is in its process, and a reader needs this header and one
 * other file. They are in C, because C calls malloc and free without a layer between. `NAME SIZE`
 * does an amount of work that depends on SIZE alone, never on time, on the allocator or on the
 * number of processors. It prints one number, which is the same with every allocator, and ends with
 * an error if a block was damaged.
 *
 * `NAME SIZE SECONDS` also measures idle memory: `finish` describes it. `service` has no such
 * argument; it can print what its memory was while it ran.
 */
#ifndef SLABYARD_BENCH_PROGRAM_H
#define SLABYARD_BENCH_PROGRAM_H

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Threads of a workload that has several, on any machine: so the work is the same everywhere. */
enum { THREADS = 4 };

static inline void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "failed: %s\n", what);
    abort();
}

/* ---- random numbers: xorshift, from a seed that is never 0 ---- */

struct random {
    uint64_t state;
};

static inline struct random random_from(uint64_t seed) {
    struct random random = {seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du};
    if (random.state == 0) random.state = 1;
    return random;
}

static inline uint64_t next(struct random *random) {
    uint64_t x = random->state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return random->state = x;
}

static inline size_t below(struct random *random, size_t limit) {
    return (size_t)(((next(random) >> 32) * limit) >> 32);
}

static inline bool chance(struct random *random, size_t percent) {
    return below(random, 100) < percent;
}

/* ---- blocks that are checked ----
 *
 *   0          4          8                 size - 1
 *   | size     | mark     | not written  ...  | mark |
 *
 * A block has at least 8 bytes. The mark differs from block to block. `give` finds both ends as
 * `take` wrote them, or another block or the allocator has written there. It clears the head, so
 * that a block which was given out twice is found when it is freed for the second time.
 */

struct head {
    uint32_t size, mark;
};

enum { BLOCK_MIN = sizeof(struct head) };

static inline void *stamp(void *block, size_t size, uint64_t mark) {
    struct head *head = block;
    must(block != NULL, "there is memory");
    *head = (struct head){(uint32_t)size, (uint32_t)mark | 1};
    if (size > BLOCK_MIN) ((unsigned char *)block)[size - 1] = (unsigned char)head->mark;
    return block;
}

static inline void *take(size_t size, uint64_t mark) { return stamp(malloc(size), size, mark); }

/* Checks a block. Returns its size. */
static inline size_t checked(const void *block) {
    const struct head *head = block;
    size_t size = head->size;
    bool whole = (head->mark & 1) == 1 && size >= BLOCK_MIN;
    if (whole && size > BLOCK_MIN) {
        whole = ((const unsigned char *)block)[size - 1] == (unsigned char)head->mark;
    }
    must(whole, "a block is as it was written");
    return size;
}

/* Checks and frees a block; NULL is none. Returns its size. */
static inline size_t give(void *block) {
    if (!block) return 0;
    size_t size = checked(block);
    *(struct head *)block = (struct head){0, 0};
    free(block);
    return size;
}

/* ---- threads ---- */

static inline pthread_t start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, run, argument) == 0, "a thread starts");
    return thread;
}

/* What a thread of a team gets, and the sum that it returns. */
struct member {
    size_t index;
    uint64_t size;
    uint64_t sum;
};

/* Runs threads with the numbers 0 to count - 1, and adds up their sums. */
static inline uint64_t team(size_t count, void *(*run)(void *), uint64_t size) {
    pthread_t threads[64];
    struct member members[64];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct member){i, size, 0};
        threads[i] = start(run, &members[i]);
    }
    for (size_t i = 0; i < count; i++) {
        must(pthread_join(threads[i], NULL) == 0, "a thread ends");
        sum += members[i].sum;
    }
    return sum;
}

/* ---- the command line, and the report ---- */

/* The amount of work: the first argument. */
static inline uint64_t size_of_work(int count, char **arguments) {
    uint64_t size = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    if (size > 0) return size;
    fprintf(stderr, "usage: %s SIZE [SECONDS]\n", arguments[0]);
    exit(2);
}

/* The anonymous memory of this process that is in RAM, in KiB. Allocates nothing. */
static inline uint64_t resident_kib(void) {
    char text[4096] = "";
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "Anonymous:");
    return line ? strtoull(line + strlen("Anonymous:"), NULL, 10) : 0;
}

/* Writes a line at once, without a buffer of the C library. */
static inline void say(uint64_t number) {
    char line[32];
    int length = snprintf(line, sizeof line, "%" PRIu64 "\n", number);
    must(write(STDOUT_FILENO, line, (size_t)length) == length, "the report is written");
}

/* The pause of an idle process between two small allocations. */
enum { TICK_MS = 10 };

/*
 * Prints the sum. With a second argument, prints the resident memory too, in KiB: at once, and
 * after that many seconds. The program has freed everything then. While it waits, it allocates and
 * frees 100 bytes every 10 ms, as a server does whose timer ticks: an allocator that gives memory
 * back in steps, at its calls, gets calls, and one that does so in a thread gets time.
 */
static inline int finish(int count, char **arguments, uint64_t sum) {
    say(sum);
    if (count < 3) return 0;
    say(resident_kib());
    int ticks = atoi(arguments[2]) * 1000 / TICK_MS;
    for (int tick = 0; tick < ticks; tick++) {
        nanosleep(&(struct timespec){0, TICK_MS * 1000000L}, NULL);
        give(take(100, (uint64_t)tick));
    }
    say(resident_kib());
    return 0;
}

#endif
