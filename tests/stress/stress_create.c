/*
 * stress_create.c: caches are created and destroyed while other threads use others and trim all.
 *
 * Each thread creates its own caches, uses some of them in helper threads too, and destroys them.
 * So client numbers and side memory pass from cache to cache. Meanwhile all threads trim, flush and
 * idle, which works on the caches of other threads too. The destruction of a cache must be refused
 * if it has a live object, and must succeed otherwise.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"

enum {
    THREADS = 6,
    CACHES = 12, /* that a thread has at a time */
    OBJECTS = 400,
};

static _Atomic bool over;
static _Atomic uint64_t made;

typedef struct own_cache {
    sy_cache *cache;
    size_t size, count;
    void *objects[OBJECTS];
    uint64_t stamp;
    _Atomic int64_t built;
} own_cache;

static int construct(void *object, void *arg) {
    own_cache *own = arg;
    memset(object, 0xc0, 8);
    atomic_fetch_add_explicit(&own->built, 1, memory_order_relaxed);
    return 0;
}

static void destruct(void *object, void *arg) {
    static const unsigned char built[8] = {0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0};
    own_cache *own = arg;
    stress_expect(memcmp(object, built, sizeof built) == 0, "what is destructed was constructed");
    memset(object, 0, 8);
    atomic_fetch_sub_explicit(&own->built, 1, memory_order_relaxed);
}

static void create(own_cache *own, uint64_t *random) {
    static const unsigned flags[] = {0, 0, 0, SY_COLOUR, SY_CHECKED};
    own->size = 16 + stress_below(random, stress_below(random, 8) ? 500 : 9000);
    sy_cache_config config = {.name = "own", .size = own->size};
    config.flags = flags[stress_below(random, sizeof flags / sizeof *flags)];
    if (stress_below(random, 3) == 0) {
        config.construct = construct;
        config.destruct = destruct;
        config.arg = own;
    }
    if (stress_below(random, 4) == 0) config.limit = OBJECTS + stress_below(random, 1000);
    own->cache = sy_cache_create(&config);
    stress_expect(own->cache != NULL, "a cache is made");
    own->stamp = stress_random(random);
    own->count = 0;
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

/* The first bytes of an object are written by the constructor. */
static void fill(own_cache *own, void *object) {
    stress_fill((char *)object + 8, own->size - 8, own->stamp ^ (uintptr_t)object);
}

static void check(own_cache *own, void *object) {
    stress_check((char *)object + 8, own->size - 8, own->stamp ^ (uintptr_t)object);
}

static void fill_up(own_cache *own, uint64_t *random) {
    size_t count = stress_below(random, OBJECTS + 1);
    while (own->count < count) {
        void *object = sy_cache_alloc(own->cache);
        if (!object) break; /* at the limit: another thread has the free objects */
        fill(own, object);
        own->objects[own->count++] = object;
    }
}

static void drain(own_cache *own, size_t least) {
    while (own->count > least) {
        void *object = own->objects[--own->count];
        check(own, object);
        sy_cache_free(own->cache, object);
    }
}

static void *help(void *argument) {
    own_cache *own = argument;
    uint64_t random = own->stamp;
    drain(own, own->count / 2);
    fill_up(own, &random);
    drain(own, own->count / 3);
    if (stress_below(&random, 2)) sy_thread_idle();
    return NULL;
}

static void use(own_cache *own, uint64_t *random) {
    fill_up(own, random);
    if (stress_below(random, 8) == 0) {
        pthread_t helper;
        stress_expect(pthread_create(&helper, NULL, help, own) == 0, "a thread starts");
        pthread_join(helper, NULL);
    }
    drain(own, stress_below(random, own->count + 1));
}

static void destroy(own_cache *own) {
    if (own->count) {
        errno = 0;
        stress_expect(sy_cache_destroy(own->cache) == -1 && errno == EBUSY, "objects are live");
        stress_expect(sy_cache_in_use(own->cache) >= own->count, "and are counted");
        void *object = sy_cache_alloc(own->cache);
        if (object) sy_cache_free(own->cache, object);
    }
    if (own->stamp % 5 == 0 && own->count) {
        for (size_t i = 0; i < own->count; i++) check(own, own->objects[i]);
        sy_cache_destroy_all(own->cache);
    } else {
        drain(own, 0);
        stress_expect(sy_cache_verify(own->cache) == 0, "a cache is sound");
        stress_expect(sy_cache_destroy(own->cache) == 0, "no object is live");
    }
    stress_expect(atomic_load(&own->built) == 0, "everything constructed is destructed");
    own->cache = NULL;
}

static void disturb(uint64_t *random) {
    sy_stats stats;
    switch (stress_below(random, 24)) {
    case 0: sy_trim(); break;
    case 1:
    case 2: sy_thread_flush(); break;
    case 3: sy_thread_idle(); break;
    case 4: sy_get_stats(&stats); break;
    case 5: stress_verify(); break;
    default: break;
    }
}

static void *work(void *argument) {
    uint64_t random = *(uint64_t *)argument;
    own_cache *caches = calloc(CACHES, sizeof *caches);
    stress_expect(caches != NULL, "there is memory");
    while (!over) {
        own_cache *own = &caches[stress_below(&random, CACHES)];
        if (!own->cache)
            create(own, &random);
        else if (stress_below(&random, 4) == 0)
            destroy(own);
        else
            use(own, &random);
        disturb(&random);
    }
    for (size_t i = 0; i < CACHES; i++)
        if (caches[i].cache) destroy(&caches[i]);
    free(caches);
    return NULL;
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed, seeds[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    struct timespec pause = {(time_t)run.seconds, 0};
    nanosleep(&pause, NULL);
    over = true;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    stress_verify();
    stress_expect(stress_verify_caches() == 0, "no cache is left");
    sy_trim();
    sy_stats stats;
    sy_get_stats(&stats);
    stress_expect(stats.mapped == 0, "and no memory of theirs");
    printf("stress: %llu caches from seed %llu\n", (unsigned long long)made,
           (unsigned long long)run.seed);
    return 0;
}
