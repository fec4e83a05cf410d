/*
 * crew.h: for stress programs whose threads work while the main thread does something else.
 */
#ifndef SLABYARD_TESTS_STRESS_CREW_H
#define SLABYARD_TESTS_STRESS_CREW_H

#include <pthread.h>
#include <time.h>

#include "stress/stress.h"

enum { STRESS_CREW_MOST = 16 };

/* Threads that were started and not joined. Zero at first. */
typedef struct stress_crew {
    pthread_t threads[STRESS_CREW_MOST];
    size_t count;
} stress_crew;

static inline void stress_start(stress_crew *crew, void *(*work)(void *), void *argument) {
    stress_expect(crew->count < STRESS_CREW_MOST, "there is room for a thread");
    pthread_t *thread = &crew->threads[crew->count++];
    stress_expect(pthread_create(thread, NULL, work, argument) == 0, "a thread starts");
}

/* Calls `meanwhile` every 20 ms, for so many seconds. */
static inline void stress_let_work(double seconds, void (*meanwhile)(void)) {
    struct timespec pause = {0, 20000000};
    for (double end = stress_now() + seconds; stress_now() < end; meanwhile())
        nanosleep(&pause, NULL);
}

static inline void stress_join(stress_crew *crew) {
    while (crew->count > 0) pthread_join(crew->threads[--crew->count], NULL);
}

#endif
