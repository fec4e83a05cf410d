/*
 * stress_scope.c: many threads use scopes at the same time. Each object lies in the scope that its
 * thread was in, has one owner, and leaves nothing behind.
 *
 * Threads are in shared scopes and in their own, one within the other, and begin and end meanwhile.
 * Shared scopes are replaced; the old one ends as soon as no thread is in it. Objects lie in a
 * shared table, from which any thread frees or resizes them, mostly long after their scope has
 * ended. The pattern of an object must be intact then. One thread trims, lists and verifies. The
 * main thread forks, and the child goes on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "cache/lots.h"
#include "cache/unit.h"
#include "stress/crew.h"
#include "stress/forks.h"
#include "support/services.h"

enum {
    THREADS = 6,
    SHARED = 3,   /* scopes */
    TABLE = 3000, /* objects that are known to all */
    BURST = 100,  /* objects that are taken in a row, at most */
    RETIRED = 64, /* scopes that are to end */
    DEPTH = 4,
    CHILD_STEPS = 300,
    CHILD_SECONDS = 60,
};

static const double ROUND_SECONDS = 0.7;

/* An object in the table, which begins with this; the rest is its pattern. The thread that takes it
 * out owns it. */
typedef struct object {
    size_t size;
    uint64_t stamp;
    unsigned char pattern[];
} object;

static _Atomic(object *) table[TABLE];
static _Atomic uint64_t stamps, taken, given, ended, forks;
static _Atomic bool over;

/* A thread that enters a scope holds the lock, so that the scope does not end meanwhile. */
static struct {
    pthread_mutex_t lock;
    sy_scope *scope;
} shared[SHARED] = {
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
};

typedef struct worker {
    uint64_t random;
    sy_scope *retired[RETIRED];
    size_t retired_count;
    bool child; /* of a fork: the locks of shared scopes may never be let go */
} worker;

static worker workers[THREADS], forker;

/* ---- objects ---- */

static size_t draw_size(worker *me) {
    size_t most = stress_below(&me->random, 20) ? 400 : 8192;
    return sizeof(object) + stress_below(&me->random, most - sizeof(object) + 1);
}

/* A scope begins with its lots. */
static void expect_home(const void *made) {
    const sy_scope *scope = sy_scope_current();
    sy_lock_acquire(&sy_mixed.lock);
    const sy_slab *unit = sy_slab_at((uintptr_t)made);
    const void *home = sy_is_mixed(unit) && unit->bin == SY_BIN_UNIT_LOTS
                           ? unit->lots[(uintptr_t)made % SY_UNIT_BYTES / SY_LOT_BYTES]
                           : NULL;
    sy_lock_release(&sy_mixed.lock);
    stress_expect(home == scope, "an object lies in its scope");
}

static object *fill(object *made, size_t size) {
    stress_expect(made != NULL, "there is enough memory");
    expect_home(made);
    *made = (object){size, ++stamps};
    stress_fill(made->pattern, size - sizeof *made, made->stamp);
    return made;
}

static object *take(worker *me) {
    size_t size = draw_size(me);
    taken++;
    if (stress_below(&me->random, 16)) return fill(sy_malloc(size), size);
    size_t align = (size_t)16 << stress_below(&me->random, 9);
    object *made = sy_aligned_alloc(align, size);
    stress_expect((uintptr_t)made % align == 0, "an object is aligned");
    return fill(made, size);
}

static void give(object *it) {
    stress_check(it->pattern, it->size - sizeof *it, it->stamp);
    sy_free(it);
    given++;
}

/* A new size may move the object to the scope of this thread. */
static object *resize(worker *me, object *it) {
    size_t before = it->size, size = draw_size(me), kept = before < size ? before : size;
    stress_check(it->pattern, before - sizeof *it, it->stamp);
    object *now = sy_realloc(it, size);
    stress_expect(now != NULL, "there is enough memory");
    stress_expect(kept <= size, "the smaller size is kept");
    if (now != it) return fill(now, size);
    *now = (object){size, ++stamps};
    stress_fill(now->pattern, size - sizeof *now, now->stamp);
    return now;
}

/* Most objects are freed soon, the others when another object takes their place in the table. */
static void use_objects(worker *me) {
    object *own[BURST];
    size_t count = stress_below(&me->random, BURST);
    for (size_t i = 0; i < count; i++) own[i] = take(me);
    for (size_t i = 0; i < count; i++) {
        if (own[i] && stress_below(&me->random, 4) == 0)
            own[i] = atomic_exchange(&table[stress_below(&me->random, TABLE)], own[i]);
        if (own[i] && stress_below(&me->random, 8) == 0) own[i] = resize(me, own[i]);
        if (own[i]) give(own[i]);
    }
}

static void free_some(worker *me) {
    size_t first = stress_below(&me->random, TABLE), count = stress_below(&me->random, TABLE);
    for (size_t i = 0; i < count; i++) {
        object *it = atomic_exchange(&table[(first + i) % TABLE], NULL);
        if (it) give(it);
    }
}

/* ---- scopes ---- */

static void step(worker *me, unsigned depth);

static void be_in(worker *me, sy_scope *scope, unsigned depth) {
    for (size_t turns = 1 + stress_below(&me->random, 4); turns > 0; turns--) step(me, depth + 1);
    stress_expect(sy_scope_current() == scope, "what was entered within was left");
    stress_expect(sy_scope_leave(scope) == 0, "the innermost is left");
}

static void be_in_own(worker *me, unsigned depth) {
    sy_scope *scope = sy_scope_create("own");
    stress_expect(scope && sy_scope_enter(scope) == 0, "a scope is entered");
    stress_expect(sy_scope_destroy(scope) == -1 && errno == EBUSY, "it is in use");
    be_in(me, scope, depth);
    stress_expect(sy_scope_destroy(scope) == 0, "an unused scope ends");
    ended++;
}

static void be_in_shared(worker *me, unsigned depth) {
    size_t which = stress_below(&me->random, SHARED);
    if (me->child) return;
    pthread_mutex_lock(&shared[which].lock);
    sy_scope *scope = shared[which].scope;
    stress_expect(sy_scope_enter(scope) == 0, "a scope is entered");
    pthread_mutex_unlock(&shared[which].lock);
    be_in(me, scope, depth);
}

/* Ends retired scopes that no thread is in. */
static void end_retired(worker *me) {
    for (size_t i = me->retired_count; i-- > 0;) {
        if (sy_scope_destroy(me->retired[i]) != 0) continue;
        me->retired[i] = me->retired[--me->retired_count];
        ended++;
    }
}

static void replace_shared(worker *me, size_t which) {
    end_retired(me);
    if (me->retired_count == RETIRED) return;
    sy_scope *fresh = sy_scope_create("shared");
    stress_expect(fresh != NULL, "a scope is made");
    pthread_mutex_lock(&shared[which].lock);
    me->retired[me->retired_count++] = shared[which].scope;
    shared[which].scope = fresh;
    pthread_mutex_unlock(&shared[which].lock);
}

static void be_in_none(worker *me, unsigned depth) {
    stress_expect(sy_scope_enter(NULL) == 0, "no scope is entered");
    be_in(me, NULL, depth);
}

static void *live_shortly(void *argument) {
    worker me = {.random = *(uint64_t *)argument};
    sy_scope *scope = sy_scope_create("short");
    stress_expect(scope && sy_scope_enter(scope) == 0, "a scope is entered");
    use_objects(&me);
    return scope; /* the thread ends within it */
}

static void begin_and_end_thread(worker *me) {
    pthread_t thread;
    void *scope;
    uint64_t random = stress_random(&me->random);
    if (pthread_create(&thread, NULL, live_shortly, &random) != 0) return;
    pthread_join(thread, &scope);
    stress_expect(sy_scope_destroy(scope) == 0, "a thread that has ended is in no scope");
    ended++;
}

static void step(worker *me, unsigned depth) {
    size_t what = stress_below(&me->random, 64);
    bool deeper = depth < DEPTH;
    if (what < 28) {
        use_objects(me);
    } else if (what < 36) {
        if (deeper) be_in_own(me, depth);
    } else if (what < 48) {
        if (deeper) be_in_shared(me, depth);
    } else if (what < 50) {
        if (deeper) be_in_none(me, depth);
    } else if (what < 54) {
        if (!me->child) replace_shared(me, stress_below(&me->random, SHARED));
    } else if (what < 55) {
        if (!me->child) begin_and_end_thread(me);
    } else if (what < 58) {
        sy_thread_idle();
    } else if (what < 60) {
        sy_thread_flush();
    } else {
        free_some(me);
    }
}

static void *work(void *argument) {
    while (!over) step(argument, 0);
    stress_expect(sy_scope_current() == NULL, "all scopes were left");
    return NULL;
}

/* ---- what comes in between ---- */

static void *look_around(void *argument) {
    struct timespec pause = {0, 200000};
    static void *found[BURST];
    for (unsigned turn = 0; !over; turn++) {
        size_t which = turn % SHARED, bytes;
        pthread_mutex_lock(&shared[which].lock);
        size_t listed = sy_scope_list(shared[which].scope, found, BURST);
        size_t objects = sy_scope_live(shared[which].scope, &bytes);
        pthread_mutex_unlock(&shared[which].lock);
        stress_expect(listed <= BURST && objects * SY_GRAIN <= bytes, "counts agree");
        stress_expect(sy_mixed_verify() == 0, "mixed units are sound");
        if (turn % 8 == 0) sy_trim();
        if (turn % 8 == 4) sy_trim_some(1 << 20, 100000);
        nanosleep(&pause, NULL);
    }
    return argument;
}

/* ---- children ---- */

static void free_table(void) {
    for (size_t i = 0; i < TABLE; i++) {
        object *it = atomic_exchange(&table[i], NULL);
        if (it) give(it);
    }
}

static _Noreturn void be_child(worker *me) {
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    me->child = true;
    for (int i = 0; i < CHILD_STEPS; i++) step(me, 0);
    free_table();
    sy_trim();
    stress_verify_caches();
    for (size_t i = 0; i < SHARED; i++)
        if (pthread_mutex_trylock(&shared[i].lock) == 0)
            stress_expect(sy_scope_destroy(shared[i].scope) == 0, "no thread is in it");
    stress_verify_caches();
    _exit(0);
}

static void fork_once(void) {
    if (!has_all(SY_OS_FORKS)) return;
    pid_t child = fork();
    if (child == 0) be_child(&forker);
    for (int i = 0; i < 10; i++) step(&forker, 0);
    stress_await_child(child);
    forks++;
}

/* ---- rounds ---- */

static void begin_round(void) {
    over = false;
    for (size_t i = 0; i < SHARED; i++)
        stress_expect((shared[i].scope = sy_scope_create("shared")) != NULL, "a scope is made");
}

static void end_all_retired(worker *me) {
    end_retired(me);
    stress_expect(me->retired_count == 0, "no thread is in a retired scope");
}

/* All threads have ended. */
static void end_round(void) {
    for (size_t i = 0; i < THREADS; i++) end_all_retired(&workers[i]);
    end_all_retired(&forker);
    free_table();
    for (size_t i = 0; i < SHARED; i++) {
        stress_expect(sy_scope_live(shared[i].scope, NULL) == 0, "nothing survives");
        stress_expect(sy_scope_destroy(shared[i].scope) == 0, "an unused scope ends");
    }
    stress_expect(taken == given, "as many were given back as taken");
    sy_thread_flush();
    sy_trim();
    stress_expect(sy_mixed_count().all == 0, "no unit is left");
    stress_verify();
}

static void run_round(double seconds) {
    stress_crew crew = {.count = 0};
    begin_round();
    for (size_t i = 0; i < THREADS; i++) stress_start(&crew, work, &workers[i]);
    stress_start(&crew, look_around, NULL);
    stress_let_work(seconds, fork_once);
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
    printf("stress: %u rounds, %llu objects, %llu scopes ended, %llu forks from seed %llu\n",
           rounds, (unsigned long long)taken, (unsigned long long)ended, (unsigned long long)forks,
           (unsigned long long)run.seed);
    return 0;
}
