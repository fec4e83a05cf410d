/*
 * stress_sleepers.c: a thread reaches into the slots of all others again and again, while these
 * allocate and free, exchange objects, wait, end and start. No object has two owners.
 *
 * Each object begins with the number of its owner, which an allocation sets and a free clears, both
 * by an exchange: so a second owner is seen at once, whichever of the two looks first. Objects are
 * of caches, by inline operations, and of the heap, by calls.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "magazine/sleepers.h"
#include "os/os.h"
#include "stress/stress.h"

/* For this program. */
bool sy_threads_may_be_reached(void) { return true; }

enum { SKIPPED = 77, THREADS = 6, SIZES = 5, HELD_MAX = 600, SHARED = 256, ROUNDS = 40 };

static const size_t sizes[SIZES] = {16, 48, 64, 256, 1000};
static sy_cache *caches[SIZES];
static _Atomic(void *) shared[SHARED]; /* objects of caches[0], from thread to thread */
static _Atomic bool over;

typedef _Atomic uint64_t owner_word;

/* A page that has gone back to the system reads as zero, as does an object that was freed here; one
 * that was never used is zero too. */
static void own(void *object, uint64_t owner) {
    uint64_t before = atomic_exchange_explicit((owner_word *)object, owner, memory_order_relaxed);
    stress_expect(before == 0, "an object has one owner");
}

static void disown(void *object, uint64_t owner) {
    uint64_t before = atomic_exchange_explicit((owner_word *)object, 0, memory_order_relaxed);
    stress_expect(before == owner, "an object stays its owner's");
}

typedef struct held {
    void *object;
    unsigned size;
    bool of_heap;
} held;

static void *take(unsigned size, bool of_heap) {
    void *object = of_heap ? sy_malloc(sizes[size]) : sy_cache_alloc(caches[size]);
    stress_expect(object != NULL, "there is memory");
    return object;
}

static void put(held it, uint64_t owner) {
    disown(it.object, owner);
    if (it.of_heap)
        sy_free(it.object);
    else
        sy_cache_free(caches[it.size], it.object);
}

/* Inline operations without a call between them. */
static void exchange_in_a_loop(uint64_t *random, uint64_t owner) {
    void *mine[64];
    size_t count = 1 + stress_below(random, 64);
    for (size_t i = 0; i < count; i++) mine[i] = sy_cache_alloc(caches[2]);
    for (size_t i = 0; i < count; i++) own(mine[i], owner);
    for (size_t i = 0; i < count; i++) disown(mine[i], owner);
    for (size_t i = 0; i < count; i++) sy_cache_free(caches[2], mine[i]);
}

static void hand_on(uint64_t *random, uint64_t owner) {
    void *mine = take(0, false);
    own(mine, owner);
    disown(mine, owner);
    own(mine, UINT64_MAX);
    void *theirs = atomic_exchange(&shared[stress_below(random, SHARED)], mine);
    if (!theirs) return;
    disown(theirs, UINT64_MAX);
    own(theirs, owner);
    put((held){theirs, 0, false}, owner);
}

static void *work(void *argument) {
    static _Atomic uint64_t last_owner;
    uint64_t owner = atomic_fetch_add(&last_owner, 1) + 1;
    uint64_t random = (uintptr_t)argument * 7919 + owner;
    held mine[HELD_MAX];
    size_t count = 0;
    for (unsigned round = 0; round < ROUNDS && !atomic_load(&over); round++) {
        size_t wanted = stress_below(&random, HELD_MAX);
        while (count < wanted) {
            held it = {NULL, (unsigned)stress_below(&random, SIZES), stress_below(&random, 2)};
            it.object = take(it.size, it.of_heap);
            own(it.object, owner);
            mine[count++] = it;
        }
        while (count > wanted) put(mine[--count], owner);
        exchange_in_a_loop(&random, owner);
        hand_on(&random, owner);
        if (stress_below(&random, 8) == 0)
            nanosleep(&(struct timespec){0, (long)stress_below(&random, 300000)}, NULL);
        if (stress_below(&random, 16) == 0) sy_thread_idle();
        if (stress_below(&random, 32) == 0) sy_thread_flush();
    }
    while (count > 0) put(mine[--count], owner);
    return NULL;
}

static void *reach(void *unused) {
    (void)unused;
    uint64_t random = 3;
    for (unsigned i = 0; !atomic_load(&over); i++) {
        sy_threads_reach(stress_below(&random, 4) != 0);
        if (i % 64 == 0) sy_trim_some(SIZE_MAX, 100000); /* what was taken goes to the system */
    }
    return NULL;
}

static void run_round(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        stress_expect(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "threads start");
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void end_all(void) {
    for (unsigned i = 0; i < SHARED; i++)
        if (shared[i]) put((held){shared[i], 0, false}, UINT64_MAX);
    stress_verify();
    for (unsigned i = 0; i < SIZES; i++) {
        stress_expect(sy_cache_in_use(caches[i]) == 0, "all is free");
        stress_expect(sy_cache_destroy(caches[i]) == 0, "an unused cache can be destroyed");
    }
    stress_expect(stress_heap_in_use() == 0, "and all of the heap");
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    pthread_t reacher;
    unsigned rounds = 0;
    if (sy_os_barrier_threads() != 0) return SKIPPED;
    for (unsigned i = 0; i < SIZES; i++) {
        caches[i] = sy_cache_create(&(sy_cache_config){.name = "reached", .size = sizes[i]});
        stress_expect(caches[i] != NULL, "a cache is made");
    }
    double end = stress_now() + run.seconds;
    stress_expect(pthread_create(&reacher, NULL, reach, NULL) == 0, "a thread starts");
    for (; stress_now() < end; rounds++) run_round();
    atomic_store(&over, true);
    pthread_join(reacher, NULL);
    end_all();
    printf("stress: %u rounds\n", rounds);
    return 0;
}
