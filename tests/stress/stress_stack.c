/*
 * stress_stack.c: many threads store call stacks, equal and different ones, at the same time.
 *
 * Each stack has one number, whichever thread stores it first, reads back as it was stored, and
 * counts once in the table. The threads store made-up stacks, and their own stacks in functions
 * that call themselves to different depths, whose frames repeat as the calls do.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "debug/options.h"
#include "debug/stack.h"
#include "os/os.h"
#include "stress/stress.h"
#include "support/services.h"

enum { THREADS = 6, STACKS = 500000, WINDOW = 64, LEVELS = 20 };

static _Atomic uint32_t numbers[STACKS]; /* 0: not known yet */
static _Atomic uint32_t front;           /* threads store stacks near it, so that they meet */
static double end;

static size_t make_up(uint64_t which, const void **frames) {
    uint64_t seed = which;
    size_t depth = 1 + which % 24;
    for (size_t i = 0; i < depth; i++)
        frames[i] = (const void *)(uintptr_t)(stress_random(&seed) | 1);
    return depth;
}

static void check_frames(uint32_t number, const void *const *expected, size_t depth) {
    const void *const *frames;
    stress_expect(sy_stack_frames(number, &frames) == depth, "a stack keeps its depth");
    stress_expect(memcmp(frames, expected, depth * sizeof *frames) == 0, "and its frames");
}

static void keep_one(uint64_t which) {
    const void *frames[SY_STACK_DEPTH_MAX];
    size_t depth = make_up(which, frames);
    uint32_t number = sy_stack_keep(frames, depth), known = 0;
    stress_expect(number != 0, "there is room");
    if (!atomic_compare_exchange_strong(&numbers[which], &known, number))
        stress_expect(known == number, "a stack has one number");
    check_frames(number, frames, depth);
}

__attribute__((noinline)) static uint32_t descend(size_t levels) {
    uint32_t number = levels == 0 ? sy_stack_here() : descend(levels - 1);
    __asm__ volatile("" : : : "memory");
    return number;
}

/* The function calls itself at one address, so the frames in the middle are equal. */
static void take_one(size_t levels) {
    const void *const *frames;
    size_t depth = sy_stack_frames(descend(levels), &frames);
    stress_expect(depth > levels, "a stack has a frame for each call");
    for (size_t i = 2; i + 1 < levels; i++)
        stress_expect(frames[i] == frames[1], "of the same calls");
}

static void *work(void *arg) {
    uint64_t random = *(uint64_t *)arg;
    while (stress_now() < end) {
        for (int i = 0; i < 200; i++) {
            uint32_t at = atomic_fetch_add(&front, stress_below(&random, 32) == 0);
            keep_one((at + stress_below(&random, WINDOW)) % STACKS);
            if (i % 8 == 0) take_one(stress_below(&random, LEVELS));
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    must_have(SY_OS_STACKS, "recorded stacks");
    stress_run run = stress_arguments(argc, argv);
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    end = stress_now() + run.seconds;
    stress_expect(sy_set_options("stack-depth=64") == 0, "deep stacks are kept");
    for (size_t i = 0; i < THREADS; i++) {
        seeds[i] = run.seed * THREADS + i;
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    size_t kept = 0, count = sy_stack_count();
    for (size_t i = 0; i < STACKS; i++) kept += numbers[i] != 0;
    stress_expect(count >= kept && count < kept + 1000, "each stack is kept once");
    printf("stress: %zu stacks, %zu of them made up, %zu KiB\n", count, kept,
           sy_stack_bytes() >> 10);
    return 0;
}
