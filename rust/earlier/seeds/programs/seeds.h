/*
 * Common functions of the programs that repeat the tables of the earlier C systems.
 *
 * There is a program for each system. It includes the system's public header and this one. The
 * build compiles it over Slabyard's compatibility header; `seeds --original` compiles the same
 * source again over the system itself. A process measures one row with one allocator and ends:
 *
 *     PROGRAM ROW ALLOCATOR SAMPLES
 *
 * It prints one line for each figure, which src/figure.rs reads: row, metric, allocator, 0, value.
 * ALLOCATOR is `malloc` or `calloc`; any other word means the system. Memory that the row
 * allocated is given back only if that is part of the row.
 */
#ifndef SEEDS_H
#define SEEDS_H

#define _GNU_SOURCE /* threads are bound to processors */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SEEDS_THREADS_MOST = 8, SEEDS_SAMPLES_MOST = 1000 };

enum seeds_who { SEEDS_SYSTEM, SEEDS_MALLOC, SEEDS_CALLOC };

struct seeds_task {
    const char *row;
    const char *name; /* of the allocator */
    enum seeds_who who;
    size_t samples; /* wanted of a row that can be measured more than once */
    size_t number;  /* of bytes, objects or threads, as the row says */
};

struct seeds_row {
    const char *name;
    void (*measure)(const struct seeds_task *task);
    size_t number;
};

#define SEEDS_INLINE static inline __attribute__((always_inline))

/* Calls an inline function with an allocator that is a constant there, so that no loop has a branch
 * for it. */
#define SEEDS_FOR(who, function, argument)                      \
    ((who) == SEEDS_SYSTEM   ? function(SEEDS_SYSTEM, argument) \
     : (who) == SEEDS_MALLOC ? function(SEEDS_MALLOC, argument) \
                             : function(SEEDS_CALLOC, argument))

/* The compiler has to assume that the object is used, and that memory changes. */
SEEDS_INLINE void *seeds_hide(void *object) {
    __asm__ volatile("" : "+r"(object) : : "memory");
    return object;
}

static inline uint64_t seeds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline void seeds_print(const struct seeds_task *task, const char *metric, double value) {
    printf("%s,%s,%s,0,%.6g\n", task->row, metric, task->name, value);
}

static inline void seeds_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* `object`, which may not be NULL. */
SEEDS_INLINE void *seeds_got(void *object) {
    if (__builtin_expect(!object, 0)) seeds_fail("no memory");
    return object;
}

/* Zeroed memory that no allocator knows of, all of it resident. */
static inline void *seeds_map(size_t bytes) {
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (place == MAP_FAILED) seeds_fail("no memory");
    return place;
}

static inline int seeds_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that the share `share` of `values` does not exceed. Sorts them. */
static inline double seeds_quantile(double *values, size_t count, double share) {
    qsort(values, count, sizeof *values, seeds_compare);
    return values[(size_t)(share * (double)(count - 1) + 0.5)];
}

/* The median of what `work` gives; its first call is not counted. */
static inline double seeds_median(const struct seeds_task *task, double (*work)(void *),
                                  void *argument) {
    static double values[SEEDS_SAMPLES_MOST];
    (void)work(argument);
    for (size_t i = 0; i < task->samples; i++) values[i] = work(argument);
    return seeds_quantile(values, task->samples, 0.5);
}

/* ---- memory ---- */

/* Anonymous memory of this process that is resident, in MiB: what it wrote itself, without pages of
 * files such as the program's own. The kernel counts it by walking the page tables, exactly. */
static inline double seeds_resident_mib(void) {
    static char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    char *line = length < 0 ? NULL : strstr(text, "\nAnonymous:");
    if (!line) seeds_fail("no /proc/self/smaps_rollup");
    (void)close(file);
    return (double)strtoull(line + strlen("\nAnonymous:"), NULL, 10) / 1024;
}

/* ---- threads ---- */

struct seeds_team {
    size_t size;
    void (*work)(void *argument);
    void *argument;
    pthread_barrier_t ready;
    uint64_t starts[SEEDS_THREADS_MOST], ends[SEEDS_THREADS_MOST];
};

struct seeds_member {
    struct seeds_team *team;
    size_t index;
    pthread_t thread;
};

/* Binds the thread to the processor of that index, if there is one for each of `size` threads. */
static inline void seeds_pin(size_t index, size_t size) {
    cpu_set_t all, one;
    size_t seen = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || (size_t)CPU_COUNT(&all) < size) return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == index) CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void *seeds_member_run(void *argument) {
    struct seeds_member *member = argument;
    struct seeds_team *team = member->team;
    seeds_pin(member->index, team->size);
    pthread_barrier_wait(&team->ready);
    team->starts[member->index] = seeds_now();
    team->work(team->argument);
    team->ends[member->index] = seeds_now();
    return NULL;
}

/* Nanoseconds on the clock from the first thread's start to the last one's end. */
static inline double seeds_team_ns(size_t size, void (*work)(void *), void *argument) {
    struct seeds_team team = {.size = size, .work = work, .argument = argument};
    struct seeds_member members[SEEDS_THREADS_MOST];
    uint64_t start = UINT64_MAX, end = 0;
    pthread_barrier_init(&team.ready, NULL, (unsigned)size);
    for (size_t i = 0; i < size; i++) {
        members[i] = (struct seeds_member){.team = &team, .index = i};
        if (pthread_create(&members[i].thread, NULL, seeds_member_run, &members[i]) != 0)
            seeds_fail("no thread");
    }
    for (size_t i = 0; i < size; i++) {
        pthread_join(members[i].thread, NULL);
        if (team.starts[i] < start) start = team.starts[i];
        if (team.ends[i] > end) end = team.ends[i];
    }
    pthread_barrier_destroy(&team.ready);
    return (double)(end - start);
}

/* ---- the command ---- */

static inline int seeds_main(int count, char **arguments, const struct seeds_row *rows,
                             size_t row_count) {
    struct seeds_task task = {.who = SEEDS_SYSTEM};
    if (count != 4) seeds_fail("it takes a row, an allocator, and a number of samples");
    task.row = arguments[1];
    task.name = arguments[2];
    task.samples = strtoull(arguments[3], NULL, 10);
    if (task.samples < 1 || task.samples > SEEDS_SAMPLES_MOST) seeds_fail("1 to 1000 samples");
    if (strcmp(task.name, "malloc") == 0) task.who = SEEDS_MALLOC;
    if (strcmp(task.name, "calloc") == 0) task.who = SEEDS_CALLOC;
    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].name, task.row) != 0) continue;
        task.number = rows[i].number;
        rows[i].measure(&task);
        return 0;
    }
    fprintf(stderr, "no row is called %s\n", task.row);
    return 2;
}

#define SEEDS_MAIN(rows)                                                        \
    int main(int count, char **arguments) {                                     \
        return seeds_main(count, arguments, rows, sizeof(rows) / sizeof *rows); \
    }

#endif
