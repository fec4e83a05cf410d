/*
 * stress_try_free.c: if several threads try to free one live object, exactly one gets true.
 *
 * In each round the first thread takes some objects of every kind of cache, and all threads try to
 * free all of them, each in another order, with some that are free already, others' and addresses
 * that are none. A thread that gets true counts the object as freed. At the end of the round each
 * was freed once, and the caches have nothing in use.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "stress/stress.h"
#include "support/services.h"

enum { THREADS = 4, OBJECTS = 48, KINDS = 9 };

static void nothing(void *object, void *arg) { (void)object, (void)arg; }

static int make(void *object, void *arg) {
    (void)arg;
    memset(object, 1, 8);
    return 0;
}

static const sy_cache_config configs[KINDS] = {
    {.name = "plain", .size = 64},
    {.name = "large", .size = 200 << 10},
    {.name = "built", .size = 48, .construct = make, .destruct = nothing},
    {.name = "exact", .size = 64, .limit = 10 * OBJECTS, .flags = SY_LIMIT_EXACT},
    {.name = "zeroed", .size = 300, .flags = SY_ZERO},
    {.name = "epochs", .size = 64, .flags = SY_EPOCHS},
    {.name = "checked", .size = 64, .flags = SY_CHECKED},
    {.name = "handles", .size = 64, .flags = SY_HANDLES},
    {.name = "guarded", .size = 64, .flags = SY_OS_SERVICES & SY_OS_GUARDS ? SY_GUARD : 0},
};

static sy_cache *caches[KINDS];
static void *objects[KINDS][OBJECTS];
static _Atomic int freed[KINDS][OBJECTS];
static void *before[KINDS]; /* freed in the round before, and not allocated since */
static pthread_barrier_t barrier;
static bool over;

static void take_objects(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < OBJECTS; i++) {
            objects[kind][i] = sy_cache_alloc(caches[kind]);
            stress_expect(objects[kind][i] != NULL, "an object can be had");
            atomic_store(&freed[kind][i], 0);
        }
        before[kind] = sy_cache_alloc(caches[kind]);
        sy_cache_free(caches[kind], before[kind]);
    }
}

static void look_at_round(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < OBJECTS; i++)
            stress_expect(atomic_load(&freed[kind][i]) == 1, "exactly one is told true");
        stress_expect(sy_cache_in_use(caches[kind]) == 0, "what was freed is free");
        stress_expect(sy_cache_verify(caches[kind]) == 0, "every invariant holds");
    }
}

static void try_all(uint64_t *random) {
    int kind = (int)stress_below(random, KINDS), start = (int)stress_below(random, OBJECTS);
    for (int k = 0; k < KINDS; k++, kind = (kind + 1) % KINDS) {
        sy_cache *cache = caches[kind], *other = caches[(kind + 1) % KINDS];
        for (int i = 0; i < OBJECTS; i++) {
            int at = (start + i) % OBJECTS;
            char *object = objects[kind][at];
            stress_expect(!sy_cache_try_free(other, object), "another's object is refused");
            stress_expect(!sy_cache_try_free(cache, object + 8), "an inner address is refused");
            if (sy_cache_try_free(cache, object)) atomic_fetch_add(&freed[kind][at], 1);
        }
        stress_expect(!sy_cache_try_free(cache, before[kind]), "a free object is refused");
        stress_expect(!sy_cache_try_free(cache, NULL), "NULL is refused");
    }
}

static void *race(void *seed) {
    uint64_t random = *(uint64_t *)seed;
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (over) return NULL;
        errno = 0;
        try_all(&random);
        stress_expect(errno == 0, "errno is kept");
        pthread_barrier_wait(&barrier);
    }
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    double end = stress_now() + run.seconds;
    pthread_t threads[THREADS];
    if (has_all(SY_OS_GUARDS))
        stress_expect(sy_set_options("guard=1/7") == 0, "the options are known");
    for (int kind = 0; kind < KINDS; kind++) caches[kind] = sy_cache_create(&configs[kind]);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    uint64_t seeds[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = run.seed * 1000 + i;
        pthread_create(&threads[i], NULL, race, &seeds[i]);
    }
    size_t rounds = 0;
    for (; stress_now() < end; rounds++) {
        take_objects();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        look_at_round();
    }
    over = true;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int kind = 0; kind < KINDS; kind++)
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "nothing is in use at the end");
    printf("%zu rounds of %d threads\n", rounds, THREADS);
    return 0;
}
