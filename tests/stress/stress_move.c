/*
 * stress_move.c: threads use objects in every way while others move them as often as they can. Each
 * object's content names its handle. It is compared at each access, and changed by its owner: what
 * was written last must be found, wherever the object lies.
 *
 * No slot may have two objects. An owner writes a pattern of its own handle into all of its object.
 * So if two objects shared a slot, or a slot were given out while its object is being copied, one
 * of them would find the other's pattern.
 *
 * The objects of one cache have a `relocate` function: they contain their own address. Most are
 * freed at random all the time, so that slabs are sparse, and long-lived ones are moved again and
 * again. One thread compacts without a pause, another one trims; the main thread forks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/forks.h"
#include "support/services.h"

enum {
    THREADS = 4,
    CACHES = 4,
    OWN = 3000, /* objects of one thread, of each cache */
    FREED_SHARE = 97,
    CHILD_STEPS = 20000,
    CHILD_SECONDS = 60,
};

#ifndef CHANGE_SHARE
#    define CHANGE_SHARE 1 /* of so many steps, one allocates or frees */
#    define PAUSE_SHARE  0 /* after so many steps, a thread sleeps; 0: never */
#endif

typedef struct object {
    sy_handle handle;
    uint64_t writes;
    const struct object *self; /* with `relocate` */
} object;

static void relocate(void *from, void *to, void *arg);

static const sy_cache_config configs[CACHES] = {
    {.name = "small", .size = 40, .flags = SY_HANDLES | SY_MOVABLE},
    {.name = "self", .size = 120, .flags = SY_HANDLES | SY_MOVABLE, .relocate = relocate},
    {.name = "zeroed", .size = 700, .flags = SY_HANDLES | SY_MOVABLE | SY_ZERO},
    {.name = "large", .size = 3000, .flags = SY_HANDLES | SY_MOVABLE | SY_COLOUR},
};

static sy_cache *caches[CACHES];
static _Atomic uint64_t relocations, operations, children;
static _Atomic bool over;

/* What a thread knows of its objects. Others only read them. */
typedef struct owned {
    _Atomic sy_handle handle; /* 0: none */
    uint64_t writes;
} owned;

typedef struct worker {
    pthread_t thread;
    uint64_t random;
    owned objects[CACHES][OWN];
} worker;

static worker workers[THREADS];

/* ---- content ---- */

static bool has_self(size_t kind) { return configs[kind].relocate != NULL; }

static void relocate(void *from, void *to, void *arg) {
    (void)arg;
    stress_expect(((object *)from)->self == from, "an object is relocated from where it is");
    memcpy(to, from, configs[1].size);
    ((object *)to)->self = to;
    atomic_fetch_add_explicit(&relocations, 1, memory_order_relaxed);
}

static size_t rest_bytes(size_t kind) { return configs[kind].size - sizeof(object); }

static void fill_object(object *it, size_t kind, sy_handle handle, uint64_t writes) {
    *it = (object){handle, writes, has_self(kind) ? it : NULL};
    stress_fill(it + 1, rest_bytes(kind), handle + writes);
}

static void check_object(const object *it, size_t kind, sy_handle handle, uint64_t writes) {
    stress_expect(it->handle == handle, "an object is nobody else's");
    stress_expect(it->writes == writes, "what was written last is there");
    stress_expect(it->self == (has_self(kind) ? it : NULL), "an object knows its address");
    stress_check(it + 1, rest_bytes(kind), handle + writes);
}

/* ---- what threads do with their objects ---- */

static void make_object(owned *mine, size_t kind, bool prepares) {
    sy_handle handle;
    sy_read_guard guard = prepares ? 0 : sy_read_enter();
    object *made = prepares ? sy_handle_prepare(caches[kind], &handle)
                            : sy_handle_alloc(caches[kind], &handle);
    stress_expect(made != NULL, "there is enough memory");
    mine->writes = 0;
    fill_object(made, kind, handle, 0);
    if (prepares)
        sy_handle_publish(caches[kind], handle);
    else
        sy_read_leave(guard);
    atomic_store_explicit(&mine->handle, handle, memory_order_release);
}

static void free_object(owned *mine, size_t kind) {
    sy_handle handle = atomic_load_explicit(&mine->handle, memory_order_relaxed);
    atomic_store_explicit(&mine->handle, 0, memory_order_relaxed);
    stress_expect(sy_handle_free(caches[kind], handle), "a live object is freed");
    stress_expect(!sy_handle_free(caches[kind], handle), "and once");
}

static void rewrite(object *it, owned *mine, size_t kind, sy_handle handle) {
    check_object(it, kind, handle, mine->writes);
    fill_object(it, kind, handle, ++mine->writes);
}

static void use_object(owned *mine, size_t kind, bool pins) {
    sy_handle handle = atomic_load_explicit(&mine->handle, memory_order_relaxed);
    sy_read_guard guard = pins ? 0 : sy_read_enter();
    object *it = pins ? sy_handle_pin(caches[kind], handle) : sy_read_get(caches[kind], handle);
    stress_expect(it != NULL, "a live object is found");
    rewrite(it, mine, kind, handle);
    if (pins)
        sy_handle_unpin(caches[kind], handle);
    else
        sy_read_leave(guard);
}

/* Another thread's object: it may be freed, and its content be changing. */
static void look_at_other(uint64_t *random, size_t kind) {
    worker *other = &workers[stress_below(random, THREADS)];
    owned *its = &other->objects[kind][stress_below(random, OWN)];
    sy_handle handle = atomic_load_explicit(&its->handle, memory_order_acquire);
    if (!handle) return;
    const object *it = sy_handle_pin(caches[kind], handle);
    if (!it) return;
    sy_handle now = sy_handle_of(it);
    stress_expect(now == handle || now == 0, "a pinned object is nobody else's");
    sy_handle_unpin(caches[kind], handle);
}

static void step(worker *me) {
    size_t kind = stress_below(&me->random, CACHES);
    owned *mine = &me->objects[kind][stress_below(&me->random, OWN)];
    uint64_t choice = stress_below(&me->random, 16);
    bool changes = stress_below(&me->random, CHANGE_SHARE) == 0;
    if (!mine->handle && changes)
        make_object(mine, kind, choice % 2);
    else if (!mine->handle)
        return;
    else if (choice < 3 && changes)
        free_object(mine, kind);
    else if (choice < 4)
        look_at_other(&me->random, kind);
    else
        use_object(mine, kind, choice % 2);
}

/* Frees most objects at random, so that slabs become sparse. */
static void thin_out(worker *me) {
    for (size_t kind = 0; kind < CACHES; kind++)
        for (size_t i = 0; i < OWN; i++)
            if (me->objects[kind][i].handle && stress_below(&me->random, 100) < FREED_SHARE)
                free_object(&me->objects[kind][i], kind);
    sy_thread_flush();
}

static void pause_thread(void) {
    sy_thread_flush();
    nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void *work(void *argument) {
    worker *me = argument;
    uint64_t count = 0;
    for (size_t i = 0; i < CACHES * OWN; i++)
        make_object(&me->objects[i / OWN][i % OWN], i / OWN, true);
    for (; !over; count++) {
        step(me);
        if (stress_below(&me->random, 4000) == 0) thin_out(me);
        if (PAUSE_SHARE && stress_below(&me->random, PAUSE_SHARE + 1) == 0) pause_thread();
    }
    atomic_fetch_add(&operations, count);
    return NULL;
}

/* ---- what comes in between ---- */

static void *compact(void *argument) {
    for (unsigned turn = 0; !over; turn++)
        sy_cache_compact(caches[turn % CACHES], SIZE_MAX, 1000000);
    return argument;
}

static int visit(void *arg, sy_handle handle, void *it) {
    (void)arg;
    sy_handle now = sy_handle_of(it);
    stress_expect(now == handle || now == 0, "what is visited is nobody else's");
    return over;
}

static void *trim(void *argument) {
    struct timespec pause = {0, 500000};
    for (unsigned turn = 0; !over; turn++) {
        sy_cache_trim(caches[turn % CACHES]);
        if (turn % 8 == 0) sy_trim();
        if (turn % 8 == 4) sy_handle_each(caches[0], visit, NULL);
        stress_expect(sy_cache_verify(caches[turn % CACHES]) == 0, "a cache is sound");
        nanosleep(&pause, NULL);
    }
    return argument;
}

/* In the child no thread is in the middle of a change of its objects but by luck: it only looks. */
static _Noreturn void be_child(void) {
    static owned fresh[CACHES];
    uint64_t random = 1;
    alarm(CHILD_SECONDS);
    for (int i = 0; i < CHILD_STEPS; i++) {
        size_t kind = stress_below(&random, CACHES);
        look_at_other(&random, kind);
        if (!fresh[kind].handle)
            make_object(&fresh[kind], kind, i % 2);
        else if (i % 5 == 0)
            free_object(&fresh[kind], kind);
        else
            use_object(&fresh[kind], kind, i % 2);
    }
    for (size_t kind = 0; kind < CACHES; kind++) {
        sy_cache_compact(caches[kind], SIZE_MAX, 10000000);
        sy_cache_trim(caches[kind]);
        stress_expect(sy_cache_verify(caches[kind]) == 0, "a child's cache is sound");
        if (fresh[kind].handle) use_object(&fresh[kind], kind, true);
    }
    _exit(0);
}

static void fork_once(void) {
    if (!has_all(SY_OS_FORKS)) return;
    pid_t child = fork();
    if (child == 0) be_child();
    stress_await_child(child);
    children++;
}

/* ---- the whole ---- */

static uint64_t end_cache(size_t kind) {
    sy_cache_stats stats;
    for (size_t thread = 0; thread < THREADS; thread++)
        for (size_t i = 0; i < OWN; i++) {
            owned *mine = &workers[thread].objects[kind][i];
            if (!mine->handle) continue;
            use_object(mine, kind, i % 2);
            free_object(mine, kind);
        }
    stress_verify_stats(caches[kind]);
    sy_cache_get_stats(caches[kind], &stats);
    stress_expect(sy_cache_in_use(caches[kind]) == 0, "nothing is in use");
    stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache is destroyed");
    return stats.moves;
}

/* Tools would have all caches checked, and objects with checks stay. */
int main(int argc, char **argv) {
    setenv("SLABYARD", "tools=off", 1);
    stress_run run = stress_arguments(argc, argv);
    pthread_t compacter, trimmer;
    struct timespec pause = {0, 100000000};
    uint64_t random = run.seed, moves = 0;
    double end = stress_now() + run.seconds;
    for (size_t kind = 0; kind < CACHES; kind++)
        stress_expect((caches[kind] = sy_cache_create(&configs[kind])) != NULL, "a cache");
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].random = stress_random(&random);
        stress_expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread");
    }
    stress_expect(pthread_create(&compacter, NULL, compact, NULL) == 0, "a thread");
    stress_expect(pthread_create(&trimmer, NULL, trim, NULL) == 0, "a thread");
    while (stress_now() < end) {
        nanosleep(&pause, NULL);
        stress_verify();
        fork_once();
    }
    over = true;
    for (size_t i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    pthread_join(compacter, NULL);
    pthread_join(trimmer, NULL);
    for (size_t kind = 0; kind < CACHES; kind++) moves += end_cache(kind);
    stress_expect(moves > 0, "objects were moved");
    stress_verify();
    printf("stress: %llu operations, %llu moves, %llu relocations, %llu forks from seed %llu\n",
           (unsigned long long)operations, (unsigned long long)moves,
           (unsigned long long)relocations, (unsigned long long)children,
           (unsigned long long)run.seed);
    return 0;
}
