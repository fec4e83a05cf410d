/*
 * malloc_signals.c: tests that the drop-in malloc keeps its state while a profiler's timer
 * interrupts threads in all of its functions. The handler does not allocate.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#include "malloc/malloc.h"

enum { THREADS = 4, BLOCKS = 64, SIGNALS = 500, EVERY_US = 200, MOST_ROUNDS = 20000 };

static _Atomic unsigned signals;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
}

/* Until enough signals came, but not for ever: under an emulator they come rarely. */
static void *allocate_and_check(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    for (unsigned round = 0; atomic_load(&signals) < SIGNALS && round < MOST_ROUNDS; round++) {
        void *blocks[BLOCKS];
        size_t sizes[BLOCKS];
        for (unsigned i = 0; i < BLOCKS; i++) {
            sizes[i] = i == 0 ? (size_t)200 << 10 : (size_t)1 << (round + i) % 14;
            fill(blocks[i] = malloc(sizes[i]), sizes[i], seed + i);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            must_be_whole(blocks[i], sizes[i], seed + i);
            if (i % 3 == 0) blocks[i] = realloc(blocks[i], sizes[i] * 2);
            must_be_whole(blocks[i], sizes[i], seed + i);
            errno = 7;
            free(blocks[i]);
            must(errno == 7);
        }
    }
    return NULL;
}

static void set_timer(suseconds_t every) {
    struct itimerval timer = {{0, every}, {0, every}};
    must(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

int main(void) {
    must_be_slabyard();
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    must(sigaction(SIGPROF, &action, NULL) == 0);
    set_timer(EVERY_US);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, allocate_and_check, (void *)(i * 71)) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    set_timer(0);
    must(atomic_load(&signals) > 0);
    return 0;
}
