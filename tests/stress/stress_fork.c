/*
 * stress_fork.c: the child of a fork has intact memory, whatever other threads were doing.
 *
 * Threads allocate, free, trim, idle, end and open classes of the heap while the main thread forks
 * repeatedly. Each child checks the objects of the main thread, allocates other objects, which must
 * not overlap them, frees all, starts a thread, trims, and checks every invariant. The parent goes
 * on as before.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/forks.h"
#include "support/emulated.h"
#include "support/sanitized.h"
#include "support/services.h"

enum {
    WORKERS = 3,
    KINDS = 3,
    HELD = 400,    /* objects that the main thread holds across a fork */
    TAKEN = 6000,  /* objects that a child takes: more than waited in magazines */
    WORKING = 300, /* objects that a worker takes at a time */
    CHILD_SECONDS = 60,
};

static sy_cache *caches[KINDS];
static _Atomic bool over;

static int construct(void *object, void *arg) {
    (void)arg;
    memset(object, 0x5a, 32);
    return 0;
}

static const sy_cache_config configs[KINDS] = {
    {.name = "64", .size = 64},
    {.name = "built", .size = 128, .construct = construct},
    {.name = "limited", .size = 512, .limit = 100000},
};

static void *take(uint64_t *random, unsigned *kind, size_t *size) {
    *kind = (unsigned)stress_below(random, KINDS + 1);
    *size = *kind < KINDS ? configs[*kind].size : 1 + stress_below(random, 20000);
    return *kind < KINDS ? sy_cache_alloc(caches[*kind]) : sy_malloc(*size);
}

static void give(void *object, unsigned kind) {
    if (kind < KINDS)
        sy_cache_free(caches[kind], object);
    else
        sy_free(object);
}

typedef struct thing {
    void *object;
    size_t size;
    uint64_t stamp;
    unsigned kind;
} thing;

static thing take_thing(uint64_t *random, uint64_t stamp) {
    thing it = {.stamp = stamp};
    it.object = take(random, &it.kind, &it.size);
    stress_expect(it.object != NULL, "there is memory");
    stress_fill(it.object, it.size, stamp);
    return it;
}

static void give_thing(thing it) {
    stress_check(it.object, it.size, it.stamp);
    if (it.kind == 1) memset(it.object, 0x5a, 32); /* as constructed */
    give(it.object, it.kind);
}

/* ---- the parent's other threads ---- */

static void disturb(uint64_t *random) {
    switch (stress_below(random, 8)) {
    case 0: sy_trim(); break;
    case 1: sy_thread_flush(); break;
    case 2: sy_thread_idle(); break;
    case 3: (void)sy_cache_reserve(caches[0], 100); break;
    default: break;
    }
}

static void *life(void *argument) {
    uint64_t random = *(uint64_t *)argument, stamp = random << 20;
    thing things[WORKING];
    for (size_t round = stress_below(&random, 200); round > 0 && !over; round--) {
        size_t count = 1 + stress_below(&random, WORKING);
        for (size_t i = 0; i < count; i++) things[i] = take_thing(&random, ++stamp);
        for (size_t i = 0; i < count; i++) give_thing(things[i]);
        disturb(&random);
    }
    return NULL;
}

/* One thread after another. */
static void *lives(void *argument) {
    uint64_t random = *(uint64_t *)argument;
    while (!over) {
        pthread_t thread;
        uint64_t seed = stress_random(&random);
        stress_expect(pthread_create(&thread, NULL, life, &seed) == 0, "a thread starts");
        pthread_join(thread, NULL);
    }
    return NULL;
}

/* ---- the child ---- */

/* Shell's method: qsort may ask malloc, whose lock a sanitizer may have lost to another thread. */
static void sort(uintptr_t *addresses, size_t count) {
    for (size_t gap = count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < count; i++) {
            uintptr_t moved = addresses[i];
            size_t at = i;
            for (; at >= gap && moved < addresses[at - gap]; at -= gap)
                addresses[at] = addresses[at - gap];
            addresses[at] = moved;
        }
}

/* Allocates more objects of a cache or class than any magazine held. No two are the same, and none
 * is an object that the main thread held. */
static void take_many(uint64_t *random, const thing *held) {
    static uintptr_t addresses[TAKEN + HELD];
    unsigned kind = (unsigned)stress_below(random, KINDS + 1);
    size_t count = 0;
    for (; count < TAKEN; count++)
        addresses[count] =
            (uintptr_t)(kind < KINDS ? sy_cache_alloc(caches[kind]) : sy_malloc(100));
    for (size_t i = 0; i < HELD; i++) addresses[count++] = (uintptr_t)held[i].object;
    sort(addresses, count);
    stress_expect(addresses[0] != 0, "a child has memory");
    for (size_t i = 1; i < count; i++)
        stress_expect(addresses[i] != addresses[i - 1], "no object is given twice");
}

static void *in_thread(void *argument) {
    uint64_t random = *(uint64_t *)argument;
    thing things[WORKING];
    for (size_t i = 0; i < WORKING; i++) things[i] = take_thing(&random, i);
    for (size_t i = 0; i < WORKING; i++) give_thing(things[i]);
    return NULL;
}

static _Noreturn void be_child(uint64_t random, const thing *held) {
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    stress_verify();
    for (unsigned kind = 0; kind < KINDS; kind++) stress_verify_stats(caches[kind]);
    take_many(&random, held);
    for (size_t i = 0; i < HELD; i++) give_thing(held[i]);
    /* Starting a thread takes locks of a sanitizer or an emulator (support/emulated.h), which
     * another thread may have held at the fork. */
    if (!SANITIZED && !is_emulated() && stress_below(&random, 4) == 0) {
        pthread_t thread;
        stress_expect(pthread_create(&thread, NULL, in_thread, &random) == 0, "a thread starts");
        pthread_join(thread, NULL);
    }
    sy_trim();
    stress_verify();
    sy_cache *cache = sy_cache_create(&configs[1]);
    stress_expect(cache != NULL && sy_cache_destroy(cache) == 0, "a child makes caches");
    for (unsigned kind = 0; kind < KINDS; kind++) sy_cache_destroy_all(caches[kind]);
    stress_verify();
    _exit(0);
}

static void fork_once(uint64_t *random) {
    thing held[HELD];
    for (size_t i = 0; i < HELD; i++) held[i] = take_thing(random, (UINT64_C(1) << 62) + i);
    uint64_t seed = stress_random(random);
    pid_t child = fork();
    if (child == 0) be_child(seed, held);
    for (size_t i = 0; i < HELD; i++) give_thing(held[i]);
    stress_await_child(child);
}

int main(int argc, char **argv) {
    must_have(SY_OS_FORKS, "fork");
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed, seeds[WORKERS];
    pthread_t workers[WORKERS];
    double end = stress_now() + run.seconds;
    unsigned forks = 0;
    for (unsigned i = 0; i < KINDS; i++) caches[i] = sy_cache_create(&configs[i]);
    for (unsigned i = 0; i < WORKERS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&workers[i], NULL, lives, &seeds[i]) == 0, "a thread starts");
    }
    for (; stress_now() < end; forks++) fork_once(&random);
    over = true;
    for (unsigned i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
    stress_verify();
    for (unsigned i = 0; i < KINDS; i++)
        stress_expect(sy_cache_destroy(caches[i]) == 0, "nothing is in use at the end");
    stress_expect(stress_heap_in_use() == 0, "nor in the heap");
    printf("stress: %u forks from seed %llu\n", forks, (unsigned long long)run.seed);
    return 0;
}
