/*
 * Common code of the programs of the part `threads`: a line for each figure, waiting, and arrays
 * that the allocator does not see.
 *
 * Each program rebuilds the workload that somebody published whose process had swelled or was
 * killed, from the description; the first comment says whose. `NAME QUICK WAIT...` reads its memory
 * after each of these seconds. If QUICK is 1, it does a tenth of the work before, unless that is
 * little anyway. A line is a name, a tab and a number. Memory is the anonymous memory that is in
 * RAM, in KiB. The `sum` depends on the work alone, and every block was found as it was written.
 *
 * Reading and waiting call no malloc, so a process that waits is really idle.
 */
#ifndef SLABYARD_BENCH_READINGS_H
#define SLABYARD_BENCH_READINGS_H

#include "../../programs/program.h"

#include <poll.h>
#include <sys/mman.h>

enum { WAITS_MAX = 8 };

struct request {
    bool quick;
    size_t count;
    unsigned waits[WAITS_MAX]; /* seconds since everything was freed, in order */
};

static inline struct request read_request(int count, char **arguments) {
    struct request request = {.quick = count > 1 && atoi(arguments[1]) == 1};
    if (count < 3 || count > 2 + WAITS_MAX) {
        fprintf(stderr, "usage: %s QUICK WAIT...\n", arguments[0]);
        exit(2);
    }
    for (int i = 2; i < count; i++) request.waits[request.count++] = (unsigned)atoi(arguments[i]);
    return request;
}

/* ---- figures ---- */

static inline void tell(const char *name, uint64_t value) {
    char line[96];
    int length = snprintf(line, sizeof line, "%s\t%" PRIu64 "\n", name, value);
    must(write(STDOUT_FILENO, line, (size_t)length) == length, "the report is written");
}

static inline void tell_resident(const char *moment) { tell(moment, resident_kib()); }

static inline uint64_t clock_ms(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* ---- waiting ---- */

static inline void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) continue;
}

/*
 * Tells the memory now, as `freed`, and after each of the seconds, and how much CPU time the
 * process needed before and while it waited. `rest` waits for some ms.
 */
static inline void tell_waits(const struct request *request, void (*rest)(long ms)) {
    uint64_t worked = clock_ms(CLOCK_PROCESS_CPUTIME_ID), begin = clock_ms(CLOCK_MONOTONIC);
    tell("cpu", worked);
    tell_resident("freed");
    for (size_t i = 0; i < request->count; i++) {
        uint64_t due = begin + request->waits[i] * 1000u, now = clock_ms(CLOCK_MONOTONIC);
        if (now < due) rest((long)(due - now));
        char moment[32];
        snprintf(moment, sizeof moment, "after %u", request->waits[i]);
        tell_resident(moment);
    }
    tell("cpu of the wait", clock_ms(CLOCK_PROCESS_CPUTIME_ID) - worked);
}

/* ---- arrays of blocks ---- */

static inline void *map_bytes(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "there is memory");
    return memory;
}

/* Pointers to blocks. Their memory does not come from malloc, and goes with the blocks. */
struct blocks {
    void **at;
    size_t count, room;
};

static inline struct blocks blocks_for(size_t room) {
    return (struct blocks){map_bytes(room * sizeof(void *)), 0, room};
}

static inline void blocks_end(struct blocks *blocks) {
    munmap(blocks->at, blocks->room * sizeof(void *));
    *blocks = (struct blocks){NULL, 0, 0};
}

/* Adds a block that is written whole. */
static inline void blocks_add(struct blocks *blocks, size_t size, uint64_t mark) {
    void *block = malloc(size);
    must(block != NULL && blocks->count < blocks->room, "there is memory");
    memset(block, (int)mark, size);
    blocks->at[blocks->count++] = stamp(block, size, mark);
}

/* Frees all blocks. Returns the sum of their sizes. */
static inline uint64_t blocks_give(struct blocks *blocks) {
    uint64_t sum = 0;
    for (size_t i = 0; i < blocks->count; i++) sum += give(blocks->at[i]);
    blocks->count = 0;
    return sum;
}

static inline void blocks_shuffle(struct blocks *blocks, struct random *random) {
    for (size_t i = blocks->count; i > 1; i--) {
        size_t other = below(random, i);
        void *block = blocks->at[i - 1];
        blocks->at[i - 1] = blocks->at[other];
        blocks->at[other] = block;
    }
}

#endif
