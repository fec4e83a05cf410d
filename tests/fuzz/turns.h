/*
 * turns.h: further threads for a fuzz program. One thread at a time does a step of the input while
 * the others wait, and the clock stands unless the input lets time pass. So an input always has the
 * same effect.
 */
#ifndef SLABYARD_TESTS_FUZZ_TURNS_H
#define SLABYARD_TESTS_FUZZ_TURNS_H

#include <pthread.h>
#include <stdbool.h>

#include "fuzz.h"
#include "os/fake.h"

enum { TURNS_THREADS = 2 };

static struct turns {
    pthread_mutex_t lock; /* guards all below but `threads` and `started` */
    pthread_cond_t changed;
    int turn;          /* the thread whose turn it is; -1: this thread */
    fuzz_input *input; /* NULL: the thread is to end */
    void (*step)(fuzz_input *input);
    pthread_t threads[TURNS_THREADS];
    bool started[TURNS_THREADS];
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .turn = -1};

/* The time, in nanoseconds. It goes on from input to input, as the library's own times do. */
static uint64_t turns_now = 1;

/* Removes all scripts of the fake system. To be called instead of sy_fake_reset. */
static inline void turns_reset(unsigned cpus) {
    sy_fake_reset();
    sy_fake_set_cpu_count(cpus);
    sy_fake_set_memory_limit(SIZE_MAX);
    sy_fake_set_clock(turns_now);
}

/* Lets 20 to 320 milliseconds pass: passes by age begin, and go on. */
static inline void turns_wait(unsigned sixteenths) {
    turns_now += (uint64_t)(1 + sixteenths % 16) * 20000000;
    sy_fake_set_clock(turns_now);
}

/* From now on the process is at its memory limit, or has none again: passes begin at once. */
static inline void turns_press(bool pressed) {
    sy_fake_set_memory_limit(pressed ? (size_t)64 << 20 : SIZE_MAX);
    sy_fake_set_resident(pressed ? (size_t)64 << 20 : 0);
}

static inline void *turns_thread(void *argument) {
    int self = (int)(intptr_t)argument;
    for (bool go_on = true; go_on;) {
        pthread_mutex_lock(&turns.lock);
        while (turns.turn != self) pthread_cond_wait(&turns.changed, &turns.lock);
        fuzz_input *input = turns.input;
        pthread_mutex_unlock(&turns.lock);
        go_on = input != NULL;
        if (go_on) turns.step(input);
        pthread_mutex_lock(&turns.lock);
        turns.turn = -1;
        pthread_cond_broadcast(&turns.changed);
        pthread_mutex_unlock(&turns.lock);
    }
    return NULL;
}

static inline void turns_give(int thread, fuzz_input *input) {
    pthread_mutex_lock(&turns.lock);
    turns.turn = thread;
    turns.input = input;
    pthread_cond_broadcast(&turns.changed);
    while (turns.turn != -1) pthread_cond_wait(&turns.changed, &turns.lock);
    pthread_mutex_unlock(&turns.lock);
}

/* Lets the thread do a step. Starts it first if it is not running. */
static inline void turns_step(int thread, fuzz_input *input) {
    if (!turns.started[thread]) {
        void *self = (void *)(intptr_t)thread;
        int error = pthread_create(&turns.threads[thread], NULL, turns_thread, self);
        fuzz_expect(error == 0, "a thread starts");
        turns.started[thread] = true;
    }
    turns_give(thread, input);
}

/* Ends the thread, if it was started. */
static inline void turns_end(int thread) {
    if (!turns.started[thread]) return;
    turns_give(thread, NULL);
    pthread_join(turns.threads[thread], NULL);
    turns.started[thread] = false;
}

/* Runs a whole input. The byte before each step says which thread does the step, or ends; or what
 * happens before it. */
static inline void turns_run(fuzz_input *input, void (*step)(fuzz_input *input)) {
    turns.step = step;
    while (input->size > 0) {
        uint8_t who = fuzz_byte(input);
        if (who >= 240) turns_wait(who);
        if (who / 4 == 232 / 4) turns_press(who % 4 < 2);
        if (who < TURNS_THREADS)
            turns_end(who);
        else if (who % 8 < TURNS_THREADS)
            turns_step(who % 8, input);
        else
            step(input);
    }
}

static inline void turns_end_all(void) {
    for (int thread = 0; thread < TURNS_THREADS; thread++) turns_end(thread);
}

#endif
