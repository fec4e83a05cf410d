/*
 * parking.c: the parking lot: a table of places, in which each word has one by its address.
 *
 * A thread that waits locks the place of the word, looks at the word, and sleeps. A thread that
 * wakes others has changed the word before. It locks the place too, so it comes either before the
 * look, or finds the other thread asleep. Several words may share a place. So all threads in the
 * place wake up, and those that wait for other words return without a reason.
 */
#define _GNU_SOURCE

#include "os/parking.h"
#include "os/os.h"

#if SY_PLATFORM_PARKS

#    include <errno.h>
#    include <time.h>

static const uint64_t NS_PER_SECOND = 1000000000;

#    if SY_PLATFORM_PORTABLE

#        include <threads.h>

typedef struct place {
    mtx_t lock;
    cnd_t changed;
} place;

static once_flag made = ONCE_FLAG_INIT;

static void make_once(void (*make)(void)) { call_once(&made, make); }

static void make_place(place *at) {
    mtx_init(&at->lock, mtx_plain);
    cnd_init(&at->changed);
}

static void lock_place(place *at) { mtx_lock(&at->lock); }
static void unlock_place(place *at) { mtx_unlock(&at->lock); }
static void wake_place(place *at) { cnd_broadcast(&at->changed); }
static void sleep_at(place *at) { cnd_wait(&at->changed, &at->lock); }

static void sleep_until(place *at, const struct timespec *end) {
    cnd_timedwait(&at->changed, &at->lock, end);
}

static struct timespec time_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return now;
}

#    else

#        include <pthread.h>

typedef struct place {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} place;

static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_once(void (*make)(void)) { pthread_once(&made, make); }

static void make_place(place *at) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_mutex_init(&at->lock, NULL);
    pthread_cond_init(&at->changed, &how);
    pthread_condattr_destroy(&how);
}

static void lock_place(place *at) { pthread_mutex_lock(&at->lock); }
static void unlock_place(place *at) { pthread_mutex_unlock(&at->lock); }
static void wake_place(place *at) { pthread_cond_broadcast(&at->changed); }
static void sleep_at(place *at) { pthread_cond_wait(&at->changed, &at->lock); }

static void sleep_until(place *at, const struct timespec *end) {
    pthread_cond_timedwait(&at->changed, &at->lock, end);
}

static struct timespec time_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

#    endif

enum { PLACES = 64 }; /* few threads wait at a time */

static place places[PLACES];

static void make_places(void) {
    for (int i = 0; i < PLACES; i++) make_place(&places[i]);
}

void sy_parking_clear(void) { make_places(); }

static place *place_of(const void *word) {
    make_once(make_places);
    return &places[(uintptr_t)word / sizeof(uint64_t) % PLACES];
}

/* end NULL: as long as it takes. */
static void wait_at(_Atomic uint32_t *word, uint32_t expected, const struct timespec *end) {
    int saved = errno, before = sy_os_hold_cancellation();
    place *at = place_of(word);
    lock_place(at);
    if (atomic_load(word) == expected) {
        if (end)
            sleep_until(at, end);
        else
            sleep_at(at);
    }
    unlock_place(at);
    sy_os_drop_cancellation(before);
    errno = saved;
}

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) { wait_at(word, expected, NULL); }

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    struct timespec end = time_now();
    ns += (uint64_t)end.tv_nsec;
    end.tv_sec += (time_t)(ns / NS_PER_SECOND);
    end.tv_nsec = (long)(ns % NS_PER_SECOND);
    wait_at(word, expected, &end);
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    (void)count;
    int saved = errno;
    place *at = place_of(word);
    lock_place(at);
    wake_place(at);
    unlock_place(at);
    errno = saved;
}

#endif
