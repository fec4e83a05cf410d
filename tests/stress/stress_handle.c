/*
 * stress_handle.c: many threads use handles at the same time. An object has one owner, a handle is
 * freed once, and a stale handle stays stale.
 *
 * Handles lie in a shared table that all threads read, replace and clear. So threads get, pin and
 * free each handle independently of each other. The pattern of an object names its handle. It is
 * written before the handle is published, and compared between pin and unpin: then it must be
 * intact, even if the object was freed meanwhile. Successful calls are counted: at the end there
 * are as many frees as allocations. Each thread keeps the handles that it has freed, and tries them
 * until the end, also on the caches of later rounds.
 *
 * One thread trims. One thread iterates and asks for the handles of addresses. The main thread
 * forks, and the child goes on with the table.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/crew.h"
#include "stress/forks.h"
#include "support/services.h"

enum {
    THREADS = 8,
    CACHES = 3,
    TABLE = 1500, /* handles that are known to all, of each cache */
    STALE = 2048, /* that a thread remembers */
    PINS = 16,    /* that a thread holds for a while */
    CHILD_STEPS = 20000,
    CHILD_SECONDS = 60,
};

static const double ROUND_SECONDS = 0.7;

static const sy_cache_config configs[CACHES] = {
    {.name = "small", .size = 40, .flags = SY_HANDLES},
    {.name = "limited", .size = 700, .limit = TABLE, .flags = SY_HANDLES | SY_COLOUR},
    {.name = "checked", .size = 5000, .flags = SY_HANDLES | SY_CHECKED},
};

static sy_cache *caches[CACHES];
static _Atomic uint64_t table[CACHES][TABLE];
static _Atomic uint64_t allocated[CACHES], freed[CACHES];
static _Atomic uint64_t operations, forks, visits;
static _Atomic bool over;

typedef struct pin {
    unsigned kind;
    sy_handle handle;
    void *object;
} pin;

typedef struct worker {
    uint64_t random;
    sy_handle stale[STALE];
    uint64_t stale_count;
    pin pins[PINS];
} worker;

/* If objects move (support/movable.h), addresses are good for one step. */
#ifndef MOVABLE_BETWEEN_STEPS
typedef int step_guard;
static int begin_step(void) { return 0; }
static void end_step(int guard) { (void)guard; }
#else
typedef sy_read_guard step_guard;
static sy_read_guard begin_step(void) { return sy_read_enter(); }
static void end_step(sy_read_guard guard) { sy_read_leave(guard); }
#endif

static worker workers[THREADS], forker; /* their stale handles are kept for all rounds */

/* ---- what threads do ---- */

static void must_be_stale(sy_handle handle) {
    for (unsigned kind = 0; kind < CACHES; kind++) {
        stress_expect(!sy_handle_get(caches[kind], handle), "a stale handle is not got");
        stress_expect(!sy_handle_pin(caches[kind], handle), "a stale handle is not pinned");
        stress_expect(!sy_handle_free(caches[kind], handle), "a stale handle is not freed");
    }
}

static void remember(worker *me, sy_handle handle) {
    if (handle) me->stale[me->stale_count++ % STALE] = handle;
}

static void try_stale(worker *me) {
    uint64_t kept = me->stale_count < STALE ? me->stale_count : STALE;
    for (int i = 0; i < 4 && kept; i++) must_be_stale(me->stale[stress_below(&me->random, kept)]);
    if (kept) must_be_stale(me->stale[(me->stale_count - 1) % STALE]);
}

static void try_forged(worker *me) {
    uint64_t bits = stress_random(&me->random);
    for (unsigned kind = 0; kind < CACHES; kind++) {
        sy_handle handle = atomic_load(&table[kind][bits % TABLE]);
        stress_expect(!sy_handle_free(caches[(kind + 1) % CACHES], handle), "another cache's");
        stress_expect(!sy_handle_free(caches[kind], bits | UINT64_C(1) << 63), "forged");
        stress_expect(!sy_handle_get(caches[kind], bits | UINT64_C(1) << 63), "forged");
    }
}

/* Another thread may free it. The handle is stale in any case. */
static void free_handle(worker *me, unsigned kind, sy_handle handle) {
    if (sy_handle_free(caches[kind], handle)) {
        atomic_fetch_add_explicit(&freed[kind], 1, memory_order_relaxed);
        stress_expect(!sy_handle_free(caches[kind], handle), "a handle is freed once");
    }
    remember(me, handle);
}

static sy_handle take(worker *me, unsigned kind) {
    sy_handle handle;
    void *object;
    if (stress_below(&me->random, 8)) {
        object = sy_handle_alloc(caches[kind], &handle);
    } else {
        object = sy_cache_alloc(caches[kind]);
        handle = object ? sy_handle_of(object) : 0;
        stress_expect(!object || handle, "an object has a handle");
    }
    if (!object) {
        stress_expect(errno == ENOMEM && configs[kind].limit, "there is enough memory");
        return 0;
    }
    atomic_fetch_add_explicit(&allocated[kind], 1, memory_order_relaxed);
    stress_expect(sy_handle_get(caches[kind], handle) == object, "a new handle is got");
    stress_fill(object, configs[kind].size, handle);
    return handle;
}

/* Puts a new object in this place. The object that was there is freed, here or by another thread.
 */
static void replace(worker *me, unsigned kind) {
    sy_handle fresh = take(me, kind);
    if (!fresh) return;
    sy_handle old = atomic_exchange(&table[kind][stress_below(&me->random, TABLE)], fresh);
    if (old) free_handle(me, kind, old);
}

/* The freed handle stays in the table, where other threads find it stale. */
static void free_in_place(worker *me, unsigned kind) {
    sy_handle handle = atomic_load(&table[kind][stress_below(&me->random, TABLE)]);
    if (handle) free_handle(me, kind, handle);
}

static void unpin(pin *it) {
    if (!it->handle) return;
    stress_check(it->object, configs[it->kind].size, it->handle);
    sy_handle_unpin(caches[it->kind], it->handle);
    it->handle = 0;
}

/* Pins an object, and unpins one that was pinned before. */
static void pin_one(worker *me, unsigned kind) {
    pin *it = &me->pins[stress_below(&me->random, PINS)];
    unpin(it);
    sy_handle handle = atomic_load(&table[kind][stress_below(&me->random, TABLE)]);
    void *object = handle ? sy_handle_pin(caches[kind], handle) : NULL;
    if (!object) return;
    stress_check(object, configs[kind].size, handle);
    if (stress_below(&me->random, 4) == 0) free_handle(me, kind, handle);
    *it = (pin){kind, handle, object};
    if (stress_below(&me->random, 2)) unpin(it);
}

/* No other thread has this one. */
static void keep_for_oneself(worker *me, unsigned kind) {
    sy_handle handle = take(me, kind);
    if (!handle) return;
    void *object = sy_handle_get(caches[kind], handle);
    stress_check(object, configs[kind].size, handle);
    stress_expect(sy_handle_of(object) == handle, "an object has its handle");
    if (stress_below(&me->random, 2))
        sy_cache_free(caches[kind], object);
    else
        stress_expect(sy_cache_try_free(caches[kind], object), "a live object is freed");
    atomic_fetch_add_explicit(&freed[kind], 1, memory_order_relaxed);
    remember(me, handle);
}

static void step(worker *me) {
    unsigned kind = (unsigned)stress_below(&me->random, CACHES);
    step_guard guard = begin_step();
    switch (stress_below(&me->random, 16)) {
    case 0: try_stale(me); break;
    case 1: try_forged(me); break;
    case 2:
    case 3: free_in_place(me, kind); break;
    case 4: keep_for_oneself(me, kind); break;
    case 5:
    case 6:
    case 7:
    case 8: pin_one(me, kind); break;
    case 9:
        if (stress_below(&me->random, 100) == 0) sy_thread_idle();
        if (stress_below(&me->random, 100) == 0) sy_thread_flush();
        break;
    default: replace(me, kind); break;
    }
    end_step(guard);
}

static void end_pins(worker *me) {
    for (size_t i = 0; i < PINS; i++) unpin(&me->pins[i]);
}

static void *work(void *argument) {
    worker *me = argument;
    uint64_t count = 0;
    for (; !over; count++) step(me);
    end_pins(me);
    atomic_fetch_add(&operations, count);
    return NULL;
}

/* ---- what comes in between ---- */

static void *trim(void *argument) {
    struct timespec pause = {0, 200000};
    for (unsigned turn = 0; !over; turn++) {
        sy_cache_trim(caches[turn % CACHES]);
        if (turn % 8 == 0) sy_trim();
        nanosleep(&pause, NULL);
    }
    return argument;
}

typedef struct view {
    worker *me;
    unsigned kind;
} view;

/* It was live when it was pinned, though its owner may not have written it yet. */
static int visit(void *arg, sy_handle handle, void *object) {
    const view *seen = arg;
    sy_handle now = sy_handle_of(object);
    stress_expect(now == handle || now == 0, "what is visited is nobody else's");
    step_guard guard = begin_step();
    void *got = sy_handle_get(caches[seen->kind], handle);
    stress_expect(got == object || got == NULL, "nor anywhere else");
    stress_expect(sy_handle_of((char *)object + 1) == 0, "no object begins in it");
    if (stress_below(&seen->me->random, 64) == 0) replace(seen->me, seen->kind);
    end_step(guard);
    visits++;
    return over;
}

static void *look_around(void *argument) {
    worker *me = argument;
    while (!over) {
        view seen = {me, (unsigned)stress_below(&me->random, CACHES)};
        stress_expect(sy_handle_each(caches[seen.kind], visit, &seen) >= 0, "an iteration ends");
        stress_expect(sy_cache_verify(caches[seen.kind]) == 0, "a cache is sound");
        step_guard guard = begin_step();
        try_stale(me);
        end_step(guard);
    }
    return NULL;
}

/* ---- children ---- */

static _Noreturn void be_child(worker *me) {
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    for (int i = 0; i < CHILD_STEPS; i++) step(me);
    end_pins(me);
    for (unsigned kind = 0; kind < CACHES; kind++) {
        for (size_t i = 0; i < TABLE; i++) {
            sy_handle handle = atomic_load(&table[kind][i]);
            if (handle) free_handle(me, kind, handle);
        }
        sy_cache_trim(caches[kind]);
        stress_expect(sy_cache_verify(caches[kind]) == 0, "a child's cache is sound");
    }
    _exit(0);
}

static void fork_once(void) {
    if (!has_all(SY_OS_FORKS)) return;
    pid_t child = fork();
    if (child == 0) be_child(&forker);
    for (int i = 0; i < 100; i++) step(&forker);
    stress_await_child(child);
    forks++;
}

/* ---- rounds ---- */

static void begin_round(void) {
    over = false;
    for (unsigned kind = 0; kind < CACHES; kind++) {
        caches[kind] = sy_cache_create(&configs[kind]);
        stress_expect(caches[kind] != NULL, "a cache is made");
    }
}

/* All threads have ended. Each object in the table is freed once. */
static void end_round(void) {
    end_pins(&forker);
    for (unsigned kind = 0; kind < CACHES; kind++) {
        for (size_t i = 0; i < TABLE; i++) {
            sy_handle handle = atomic_exchange(&table[kind][i], 0);
            if (handle) free_handle(&forker, kind, handle);
        }
        stress_expect(allocated[kind] == freed[kind], "as many were freed as allocated");
        stress_verify_stats(caches[kind]);
        stress_expect(sy_cache_in_use(caches[kind]) == 0, "nothing is in use");
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache is destroyed");
    }
    sy_trim();
    stress_verify();
}

static void verify_and_fork(void) {
    stress_verify();
    fork_once();
}

static void run_round(double seconds) {
    static worker looker;
    stress_crew crew = {.count = 0};
    begin_round();
    for (size_t i = 0; i < THREADS; i++) stress_start(&crew, work, &workers[i]);
    stress_start(&crew, trim, NULL);
    stress_start(&crew, look_around, &looker);
    stress_let_work(seconds, verify_and_fork);
    over = true;
    stress_join(&crew);
    end_round();
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    unsigned rounds = 0;
    double end = stress_now() + run.seconds;
    for (size_t i = 0; i < THREADS; i++) workers[i].random = stress_random(&random);
    forker.random = stress_random(&random);
    do {
        run_round(ROUND_SECONDS);
        rounds++;
    } while (stress_now() < end);
    printf("stress: %u rounds, %llu operations, %llu visits, %llu forks from seed %llu\n", rounds,
           (unsigned long long)operations, (unsigned long long)visits, (unsigned long long)forks,
           (unsigned long long)run.seed);
    return 0;
}
