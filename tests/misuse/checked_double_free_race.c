/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include <sched.h>

#include "misuse.h"

enum { ROUNDS = 2000 };

static sy_cache *cache;
static void *_Atomic object;
static _Atomic int arrived, told_of;

static void count(const sy_fault *fault) { told_of += fault->kind == SY_FAULT_DOUBLE_FREE; }

/* Waits for the other thread without sleeping, so that both continue at nearly the same moment. */
static void meet(int *meetings) {
    int wanted = 2 * ++*meetings;
    arrived++;
    for (int i = 1; arrived < wanted; i++)
        if (i % 1000 == 0) sched_yield();
}

/* Two threads free the same object at the same moment, again and again. */
static void *end_of(void *first) {
    int meetings = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (first) object = sy_cache_alloc(cache);
        meet(&meetings);
        sy_cache_free(cache, object);
        meet(&meetings);
    }
    return NULL;
}

int main(void) {
    cache = cache_of("order", 64, SY_CHECKED);
    sy_set_fault_handler(count);
    pthread_t other;
    if (pthread_create(&other, NULL, end_of, NULL) != 0) return 1;
    end_of(&cache);
    pthread_join(other, NULL);
    if (told_of != ROUNDS) return 1; /* one of the two frees is reported each time */
    sy_set_fault_handler(NULL);
    sy_cache_free(cache, told(object));
}
