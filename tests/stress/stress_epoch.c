/*
 * stress_epoch.c: many threads use epochs at the same time. Each object lies in a slab of the epoch
 * that its thread was in, has one owner, and leaves nothing behind.
 *
 * Threads are in shared epochs and in their own epochs, one within the other. Shared epochs are
 * closed and replaced while other threads are in them. Objects lie in a shared table. Any thread
 * frees them from there, mostly long after their epoch was closed. The pattern of an object must be
 * intact then. Threads also make and destroy their own caches, in which shared epochs have slabs
 * while the epochs are closed.
 *
 * One thread trims and reads the epochs' statistics. The main thread forks, and the child goes on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "cache/epoch.h"
#include "stress/crew.h"
#include "stress/forks.h"
#include "support/services.h"

enum {
    THREADS = 6,
    CACHES = 5,
    SHARED = 3,   /* epochs */
    TABLE = 3000, /* objects that are known to all */
    BURST = 100,  /* objects that are taken in a row, at most */
    CHILD_STEPS = 300,
    CHILD_SECONDS = 60,
};

static const double ROUND_SECONDS = 0.7;

static _Atomic int64_t built;

static int construct(void *object, void *arg) {
    memset(object, 0xc5, *(size_t *)arg);
    built++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)object, (void)arg;
    built--;
}

static size_t constructed_size = 300;

static const sy_cache_config configs[CACHES] = {
    {.name = "small", .size = 40, .flags = SY_EPOCHS},
    {.name = "limited", .size = 700, .limit = TABLE / 4, .flags = SY_EPOCHS | SY_COLOUR},
    {.name = "checked", .size = 5000, .flags = SY_EPOCHS | SY_CHECKED},
    {.name = "named", .size = 96, .flags = SY_EPOCHS | SY_HANDLES},
    {.name = "constructed",
     .size = 300,
     .construct = construct,
     .destruct = destruct,
     .arg = &constructed_size,
     .flags = SY_EPOCHS},
};

/* An object in the table. The thread that takes it out owns it. */
typedef struct ticket {
    unsigned kind;
    void *object;
    uint64_t stamp;
} ticket;

static sy_cache *caches[CACHES];
static sy_cache *tickets; /* a child may use it whatever other threads were doing, unlike malloc */
static _Atomic(ticket *) table[TABLE];
static _Atomic uint64_t stamps, taken, given, closed, forks;
static _Atomic bool over;

/* A thread that begins an epoch holds the lock, so that the epoch is not closed meanwhile. */
static struct {
    pthread_mutex_t lock;
    sy_epoch *epoch;
} shared[SHARED] = {
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER},
};

typedef struct worker {
    uint64_t random;
    bool child; /* of a fork: the locks of shared epochs may never be let go */
} worker;

static worker workers[THREADS], forker;

/* ---- objects ---- */

static void expect_home(sy_cache *cache, const void *object) {
    const sy_epoch *epoch = sy_epoch_current();
    sy_lock_acquire(&cache->lock);
    const sy_bins *bins = sy_slab_at((uintptr_t)object)->bins;
    bool right = bins == &cache->bins ? !epoch : sy_view_of(bins)->epoch == epoch;
    sy_lock_release(&cache->lock);
    stress_expect(right, "an object lies in a slab of its epoch");
}

static void free_ticket(ticket *it) {
    stress_check(it->object, configs[it->kind].size, it->stamp);
    if (it->stamp % 16 == 0)
        stress_expect(sy_cache_try_free(caches[it->kind], it->object), "a live object is freed");
    else
        sy_cache_free(caches[it->kind], it->object);
    given++;
    sy_cache_free(tickets, it);
}

static ticket *take(unsigned kind) {
    void *object = sy_cache_alloc(caches[kind]);
    if (!object) {
        stress_expect(errno == ENOMEM && configs[kind].limit, "there is enough memory");
        return NULL;
    }
    expect_home(caches[kind], object);
    ticket *it = sy_cache_alloc(tickets);
    stress_expect(it != NULL, "there is enough memory");
    *it = (ticket){kind, object, ++stamps};
    stress_fill(object, configs[kind].size, it->stamp);
    taken++;
    return it;
}

/* Most objects are freed soon, the others when another object takes their place in the table. */
static void use_objects(worker *me) {
    ticket *own[BURST];
    size_t count = stress_below(&me->random, BURST);
    for (size_t i = 0; i < count; i++) own[i] = take((unsigned)stress_below(&me->random, CACHES));
    for (size_t i = 0; i < count; i++) {
        if (own[i] && stress_below(&me->random, 4) == 0)
            own[i] = atomic_exchange(&table[stress_below(&me->random, TABLE)], own[i]);
        if (own[i]) free_ticket(own[i]);
    }
}

static void free_some(worker *me) {
    size_t first = stress_below(&me->random, TABLE), count = stress_below(&me->random, TABLE);
    for (size_t i = 0; i < count; i++) {
        ticket *it = atomic_exchange(&table[(first + i) % TABLE], NULL);
        if (it) free_ticket(it);
    }
}

/* Of which the epochs that this thread is in have views. */
static void use_own_cache(worker *me) {
    sy_cache_config config = configs[0];
    void *objects[BURST];
    size_t count = stress_below(&me->random, BURST);
    sy_cache *cache = sy_cache_create(&config);
    stress_expect(cache != NULL, "a cache is made");
    for (size_t i = 0; i < count; i++) {
        stress_expect((objects[i] = sy_cache_alloc(cache)) != NULL, "there is enough memory");
        stress_fill(objects[i], config.size, i);
    }
    for (size_t i = 0; i < count; i++) stress_check(objects[i], config.size, i);
    if (count % 2) {
        sy_cache_destroy_all(cache);
        return;
    }
    sy_cache_free_batch(cache, objects, count);
    stress_expect(sy_cache_destroy(cache) == 0, "an unused cache is destroyed");
}

/* ---- epochs ---- */

static void step(worker *me, unsigned depth);

static void be_in(worker *me, sy_epoch *epoch, unsigned depth) {
    for (size_t turns = 1 + stress_below(&me->random, 4); turns > 0; turns--) step(me, depth + 1);
    stress_expect(sy_epoch_current() == epoch, "what began within has ended");
    stress_expect(sy_epoch_end(epoch) == 0, "the innermost ends");
}

static void be_in_own(worker *me, unsigned depth) {
    sy_epoch *epoch = sy_epoch_create("own");
    stress_expect(epoch && sy_epoch_begin(epoch) == 0, "an epoch begins");
    if (stress_below(&me->random, 4) == 0) {
        sy_epoch_close(epoch);
        be_in(me, epoch, depth);
    } else {
        be_in(me, epoch, depth);
        sy_epoch_close(epoch);
    }
    closed++;
}

static void be_in_shared(worker *me, unsigned depth) {
    size_t which = stress_below(&me->random, SHARED);
    if (me->child) return;
    pthread_mutex_lock(&shared[which].lock);
    sy_epoch *epoch = shared[which].epoch;
    stress_expect(sy_epoch_begin(epoch) == 0, "an open epoch begins");
    pthread_mutex_unlock(&shared[which].lock);
    be_in(me, epoch, depth);
}

static void replace_shared(size_t which) {
    sy_epoch *fresh = sy_epoch_create("shared");
    stress_expect(fresh != NULL, "an epoch is made");
    pthread_mutex_lock(&shared[which].lock);
    sy_epoch *old = shared[which].epoch;
    shared[which].epoch = fresh;
    pthread_mutex_unlock(&shared[which].lock);
    sy_epoch_close(old);
    closed++;
}

static void be_in_none(worker *me, unsigned depth) {
    stress_expect(sy_epoch_begin(NULL) == 0, "no epoch begins");
    be_in(me, NULL, depth);
}

static void step(worker *me, unsigned depth) {
    size_t what = stress_below(&me->random, 32);
    bool deeper = depth < 4;
    if (what < 14) {
        use_objects(me);
    } else if (what < 18) {
        if (deeper) be_in_own(me, depth);
    } else if (what < 24) {
        if (deeper) be_in_shared(me, depth);
    } else if (what < 25) {
        if (deeper) be_in_none(me, depth);
    } else if (what < 27) {
        if (!me->child) replace_shared(stress_below(&me->random, SHARED));
    } else if (what < 29) {
        use_own_cache(me);
    } else if (what < 30) {
        sy_thread_idle();
    } else if (what < 31) {
        sy_thread_flush();
    } else {
        free_some(me);
    }
}

static void *work(void *argument) {
    while (!over) step(argument, 0);
    stress_expect(sy_epoch_current() == NULL, "all epochs have ended");
    return NULL;
}

/* ---- what comes in between ---- */

static int visit(void *arg, const sy_epoch_stats *stats) {
    uint64_t *number = arg;
    stress_expect(stats->number > *number, "epochs are shown in order");
    stress_expect(stats->slabs > 0 || !stats->bytes, "what has no slabs has no bytes");
    *number = stats->number;
    return 0;
}

static void *look_around(void *argument) {
    struct timespec pause = {0, 200000};
    for (unsigned turn = 0; !over; turn++) {
        uint64_t number = 0;
        sy_cache_trim(caches[turn % CACHES]);
        sy_epoch_each(visit, &number);
        stress_expect(sy_epoch_report_stuck(UINT64_MAX) == 0, "nothing is stuck for so long");
        stress_expect(sy_cache_verify(caches[turn % CACHES]) == 0, "a cache is sound");
        if (turn % 8 == 0) sy_trim();
        if (turn % 8 == 4) sy_trim_some(1 << 20, 100000);
        nanosleep(&pause, NULL);
    }
    return argument;
}

/* ---- children ---- */

static _Noreturn void be_child(worker *me) {
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    me->child = true;
    for (int i = 0; i < CHILD_STEPS; i++) step(me, 0);
    for (size_t i = 0; i < TABLE; i++) {
        ticket *it = atomic_exchange(&table[i], NULL);
        if (it) free_ticket(it);
    }
    for (unsigned kind = 0; kind < CACHES; kind++) {
        sy_cache_trim(caches[kind]);
        stress_expect(sy_cache_verify(caches[kind]) == 0, "a child's cache is sound");
    }
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
    for (unsigned kind = 0; kind < CACHES; kind++)
        stress_expect((caches[kind] = sy_cache_create(&configs[kind])) != NULL, "a cache is made");
    for (size_t i = 0; i < SHARED; i++)
        stress_expect((shared[i].epoch = sy_epoch_create("shared")) != NULL, "an epoch is made");
}

static int any_epoch(void *arg, const sy_epoch_stats *stats) {
    (void)arg, (void)stats;
    return 1;
}

/* All threads have ended. The last epochs end when the objects in the table are freed. */
static void end_round(void) {
    for (size_t i = 0; i < SHARED; i++) sy_epoch_close(shared[i].epoch);
    for (size_t i = 0; i < TABLE; i++) {
        ticket *it = atomic_exchange(&table[i], NULL);
        if (it) free_ticket(it);
    }
    stress_expect(taken == given, "as many were given back as taken");
    sy_trim();
    stress_expect(sy_epoch_each(any_epoch, NULL) == 0, "no epoch is left");
    for (unsigned kind = 0; kind < CACHES; kind++) {
        stress_verify_stats(caches[kind]);
        stress_expect(sy_cache_in_use(caches[kind]) == 0, "nothing is in use");
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache is destroyed");
    }
    stress_expect(built == 0, "what was constructed is destructed");
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
    tickets = sy_cache_create(&(sy_cache_config){.name = "ticket", .size = sizeof(ticket)});
    stress_expect(tickets != NULL, "a cache is made");
    do {
        run_round(ROUND_SECONDS);
        rounds++;
    } while (stress_now() < end);
    printf("stress: %u rounds, %llu objects, %llu epochs closed, %llu forks from seed %llu\n",
           rounds, (unsigned long long)taken, (unsigned long long)closed, (unsigned long long)forks,
           (unsigned long long)run.seed);
    return 0;
}
