/*
 * The loops of the rows about checks, and the thread that runs them.
 *
 * Above: src/checks/kernels.rs, which mirrors these structs field by field. Below: kernels.hpp,
 * whose loops these are, compiled so that stacks can be taken by frame pointers: the thread, the
 * functions below the loop, the loop. So for every contender a stack has the same depth and is
 * found in the same way, as in a program that is built with frame pointers.
 */
#ifndef BENCH_CHECKS_H
#define BENCH_CHECKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BENCH_CHECKS_SIZE = 64, /* bytes of an object */
    BENCH_FRAMES = 8,       /* functions between the thread's first one and the loop */
};

/* The loops over one allocator. `state` is the cache; other allocators ignore it. */
typedef struct bench_loops {
    const char *name;
    /* Allocates up to `count` objects, until there is no memory; returns the number. */
    size_t (*fill)(void *state, void **objects, size_t count);
    void (*drain)(void *state, void **objects, size_t count);
    void (*pair)(void *state, uint64_t count);
    void (*steady)(void *state, void **objects, size_t live, uint64_t count, uint64_t seed);
} bench_loops;

/* The tables of the layouts; `count` receives their length. */
const bench_loops *bench_checks_0(size_t *count);
const bench_loops *bench_checks_1(size_t *count);
const bench_loops *bench_checks_2(size_t *count);
const bench_loops *bench_checks_3(size_t *count);

typedef enum bench_step { BENCH_FILL, BENCH_DRAIN, BENCH_PAIR, BENCH_STEADY } bench_step;

typedef struct bench_task {
    const bench_loops *loops;
    void *state;
    void **objects;
    size_t live; /* entries of `objects` */
    uint64_t step;
    uint64_t count, seed; /* of pairs and replacements */
    uint64_t filled;      /* objects, after BENCH_FILL */
    uint64_t ns;          /* processor time that the loop took */
} bench_task;

/* Runs a task on the thread that runs all tasks of the process. One task at a time. */
void bench_checks_run(bench_task *task);

#ifdef __cplusplus
}
#endif
#endif
