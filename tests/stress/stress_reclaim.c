/*
 * stress_reclaim.c: memory goes back all the time, and no thread loses an object.
 *
 * With a decay of a millisecond, threads take and free objects of many kinds, write a pattern of
 * their own over each, and compare it before the free, which any thread may do. They move objects
 * out of sparse slabs. Passes by age and by growth run on their slow paths or, in other rounds, in
 * the maintenance thread. sy_trim_some is called with random bytes and budgets. Threads idle, rest
 * and end, and each makes caches of its own and destroys them while it runs.
 *
 * At the end of each round the threads have ended: the objects that they hold are exactly those
 * that each cache counts as in use, and every invariant is verified. Then all objects are freed,
 * and all memory goes back.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "reclaim/reclaim.h"
#include "stress/stress.h"
#include "support/services.h"

enum {
    THREADS_MIN = 2,
    THREADS_MAX = 8,
    HELD_MAX = 3000, /* objects that a thread holds */
    BURST_MAX = 800,
    SLOTS = 512,
    HEADER = 16, /* bytes at the front of constructed objects that their constructor wrote */
    HEAP_SMALL = 4096,
    HEAP_SPAN = 9 << 20,
};

static const double ROUND_SECONDS = 0.5;

/* ---- kinds of objects ---- */

enum { NAMED = 5, HEAP = 7, KINDS };

static sy_cache *caches[HEAP];
static sy_cache *beside;            /* what destructors work with */
static _Atomic int64_t constructed; /* less destructed */

static uint64_t header_of(const void *object, unsigned word) {
    return ((uintptr_t)object ^ UINT64_C(0x5ca1ab1e00000000)) * (word * 2 + 3);
}

static bool has_header(const void *object) {
    const uint64_t *words = object;
    return words[0] == header_of(object, 0) && words[1] == header_of(object, 1);
}

static int construct(void *object, void *arg) {
    (void)arg;
    uint64_t *words = object;
    stress_expect(!has_header(object), "an object is constructed once");
    words[0] = header_of(object, 0);
    words[1] = header_of(object, 1);
    atomic_fetch_add_explicit(&constructed, 1, memory_order_relaxed);
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    stress_expect(has_header(object), "an object is destructed once");
    memset(object, 0, HEADER);
    void *other = sy_cache_alloc(beside);
    stress_expect(other != NULL && other != object, "a destructor can allocate");
    sy_cache_free(beside, other);
    atomic_fetch_sub_explicit(&constructed, 1, memory_order_relaxed);
}

static const sy_cache_config configs[HEAP] = {
    {.name = "64", .size = 64},
    {.name = "8", .size = 8},
    {.name = "4096", .size = 4096},
    {.name = "checked", .size = 200, .flags = SY_CHECKED},
    {.name = "built", .size = 48, .construct = construct, .destruct = destruct},
    {.name = "named", .size = 96, .flags = SY_HANDLES},
    {.name = "long", .size = 100000},
};

static size_t header_bytes(unsigned kind) {
    return kind != HEAP && configs[kind].construct ? HEADER : 0;
}

/* ---- threads and what they hold ---- */

typedef struct record {
    unsigned char *object; /* NULL: none */
    uint64_t stamp;
    sy_handle handle; /* of the kind that has them */
    uint32_t size, kind;
} record;

typedef struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t random, stamps;
    size_t held_count;
    record held[HELD_MAX];
} worker;

static worker workers[THREADS_MAX];
static unsigned worker_count;
static _Atomic bool over;

static void hold(worker *me, record it) {
    size_t header = header_bytes(it.kind);
    stress_expect(it.object != NULL, "there is memory");
    stress_expect(!header || has_header(it.object), "what was constructed stays so");
    it.stamp = ((uint64_t)me->number << 48) + ++me->stamps;
    stress_fill(it.object + header, it.size - header, it.stamp);
    me->held[me->held_count++] = it;
}

static record take_held(worker *me, size_t index) {
    record it = me->held[index];
    me->held[index] = me->held[--me->held_count];
    return it;
}

static size_t heap_size(worker *me) {
    switch (stress_below(&me->random, 256)) {
    case 0: return 1 + stress_below(&me->random, HEAP_SPAN);
    case 1:
    case 2: return 1 + stress_below(&me->random, 300000);
    default: return 1 + stress_below(&me->random, HEAP_SMALL);
    }
}

static void take_one(worker *me, unsigned kind) {
    record it = {.kind = kind};
    it.size = (uint32_t)(kind == HEAP ? heap_size(me) : configs[kind].size);
    if (kind == HEAP)
        it.object = sy_malloc(it.size);
    else if (kind == NAMED)
        it.object = sy_handle_alloc(caches[kind], &it.handle);
    else
        it.object = sy_cache_alloc(caches[kind]);
    hold(me, it);
}

static void free_record(record it) {
    size_t header = header_bytes(it.kind);
    stress_expect(!header || has_header(it.object), "an object stays constructed");
    stress_check(it.object + header, it.size - header, it.stamp);
    if (it.kind == HEAP) {
        sy_free(it.object);
    } else if (it.kind == NAMED) {
        stress_expect(sy_handle_get(caches[NAMED], it.handle) == it.object, "a handle stays");
        stress_expect(sy_handle_free(caches[NAMED], it.handle), "a live object can be freed");
        stress_expect(!sy_handle_get(caches[NAMED], it.handle), "its handle is stale then");
    } else {
        sy_cache_free(caches[it.kind], it.object);
    }
}

/* ---- what threads do ---- */

static void take_burst(worker *me) {
    unsigned kind = (unsigned)stress_below(&me->random, KINDS);
    size_t most = kind == HEAP ? BURST_MAX / 8 : configs[kind].size > 4096 ? 10 : BURST_MAX;
    size_t count = 1 + stress_below(&me->random, most);
    for (; count > 0 && me->held_count < HELD_MAX; count--) take_one(me, kind);
}

static void free_burst(worker *me) {
    size_t count = 1 + stress_below(&me->random, 2 * BURST_MAX);
    bool latest = stress_below(&me->random, 2);
    for (; count > 0 && me->held_count; count--) {
        size_t last = me->held_count - 1;
        free_record(take_held(me, latest ? last : stress_below(&me->random, last + 1)));
    }
}

static struct shared_slot {
    _Atomic bool busy;
    record it; /* the thread that made it busy */
} slots[SLOTS];

static void exchange_slots(worker *me) {
    for (size_t i = stress_below(&me->random, 64); i > 0 && me->held_count; i--) {
        struct shared_slot *slot = &slots[stress_below(&me->random, SLOTS)];
        if (atomic_exchange_explicit(&slot->busy, true, memory_order_acquire)) continue;
        record theirs = slot->it;
        slot->it = take_held(me, stress_below(&me->random, me->held_count));
        atomic_store_explicit(&slot->busy, false, memory_order_release);
        if (theirs.object) free_record(theirs);
    }
}

/* Objects of sparse slabs move. What was written over them is compared when they are freed. */
static void move_burst(worker *me) {
    for (size_t i = stress_below(&me->random, BURST_MAX); i > 0 && me->held_count; i--) {
        record *it = &me->held[stress_below(&me->random, me->held_count)];
        unsigned char *moved = sy_try_move(it->object);
        if (!moved) continue;
        stress_expect(moved != it->object, "a moved object has another address");
        stress_expect(it->kind != NAMED && !header_bytes(it->kind),
                      "handles and what is built stay");
        it->object = moved;
    }
}

/* A cache of this thread alone. */
static void use_own_cache(worker *me) {
    void *objects[BURST_MAX];
    size_t count = stress_below(&me->random, BURST_MAX),
           size = (size_t)8 << stress_below(&me->random, 8);
    sy_cache *own = sy_cache_create(&(sy_cache_config){.name = "own", .size = size});
    stress_expect(own != NULL, "a cache is made");
    for (size_t i = 0; i < count; i++)
        stress_fill(objects[i] = sy_cache_alloc(own), size, (uintptr_t)own + i);
    for (size_t i = 0; i < count; i++) {
        stress_check(objects[i], size, (uintptr_t)own + i);
        sy_cache_free(own, objects[i]);
    }
    stress_expect(sy_cache_destroy(own) == 0, "an unused cache can be destroyed");
}

static void rest(worker *me) {
    struct timespec pause = {0, (long)stress_below(&me->random, 3000000)};
    if (stress_below(&me->random, 2)) sy_thread_idle();
    nanosleep(&pause, NULL);
}

static void disturb(worker *me) {
    unsigned kind = (unsigned)stress_below(&me->random, HEAP);
    size_t bytes = stress_below(&me->random, 8 << 20);
    sy_stats all;
    switch (stress_below(&me->random, 10)) {
    case 0: sy_trim(); break;
    case 1: sy_cache_trim(caches[kind]); break;
    case 2: (void)sy_cache_reserve(caches[kind], stress_below(&me->random, BURST_MAX)); break;
    case 3: sy_get_stats(&all); break;
    case 4: stress_expect(sy_cache_verify(caches[kind]) == 0, "a cache is sound"); break;
    case 5: sy_thread_flush(); break;
    case 6: rest(me); break;
    case 7: use_own_cache(me); break;
    default: sy_trim_some(bytes, stress_below(&me->random, 300000)); break;
    }
}

static void *work(void *argument) {
    worker *me = argument;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        switch (stress_below(&me->random, 18)) {
        case 0:
        case 1:
        case 2: disturb(me); break;
        case 3:
        case 4: exchange_slots(me); break;
        case 5:
        case 6:
        case 7:
        case 8: free_burst(me); break;
        case 9:
        case 10: move_burst(me); break;
        default: take_burst(me); break;
        }
    }
    return NULL;
}

/* ---- rounds ---- */

static void begin_round(uint64_t *random) {
    worker_count = THREADS_MIN + (unsigned)stress_below(random, THREADS_MAX - THREADS_MIN + 1);
    over = false;
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].number = i;
        workers[i].random = stress_random(random);
        stress_expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "starts");
    }
}

static void start_maintenance(void) {
    stress_expect(sy_maintenance_start() == 0 || !has_all(SY_OS_BACKGROUND),
                  "there is a thread to be had");
}

/* Starts and stops the maintenance thread, and changes the decay. */
static void let_work(uint64_t *random, double until) {
    while (stress_now() < until) {
        struct timespec pause = {0, (long)stress_below(random, 20000000)};
        nanosleep(&pause, NULL);
        if (stress_below(random, 2))
            start_maintenance();
        else
            sy_maintenance_stop();
        sy_set_decay(stress_below(random, 8) ? 1 : stress_below(random, 3) * 50);
    }
    sy_set_decay(1);
}

static void look_at_all(void) {
    size_t held[KINDS] = {0};
    for (unsigned i = 0; i < THREADS_MAX; i++)
        for (size_t j = 0; j < workers[i].held_count; j++) held[workers[i].held[j].kind]++;
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].it.object) held[slots[i].it.kind]++;
    stress_verify();
    for (unsigned kind = 0; kind < HEAP; kind++)
        stress_expect(sy_cache_in_use(caches[kind]) == held[kind], "in use is what is held");
    stress_expect(stress_heap_in_use() <= held[HEAP], "and of the heap no more than that");
}

static void free_everything(void) {
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].it.object) free_record(slots[i].it);
    memset(slots, 0, sizeof slots);
    for (unsigned i = 0; i < THREADS_MAX; i++)
        while (workers[i].held_count)
            free_record(take_held(&workers[i], workers[i].held_count - 1));
}

/* The counts are compared after all threads have ended, as objects that a pass moves are in use. */
static void end_round(uint64_t *random) {
    over = true;
    for (unsigned i = 0; i < worker_count; i++) pthread_join(workers[i].thread, NULL);
    stress_verify();
    sy_maintenance_stop();
    look_at_all();
    if (stress_below(random, 2)) free_everything();
    look_at_all();
    if (stress_below(random, 2)) start_maintenance();
}

static void end_all(void) {
    sy_stats stats;
    free_everything();
    sy_maintenance_stop();
    look_at_all();
    start_maintenance();
    for (unsigned kind = 0; kind < HEAP; kind++)
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache can be destroyed");
    sy_maintenance_stop();
    stress_expect(sy_cache_destroy(beside) == 0, "nor is this one used");
    stress_expect(atomic_load(&constructed) == 0, "what was constructed is destructed");
    sy_trim_some(SIZE_MAX, UINT64_MAX);
    sy_get_stats(&stats);
    stress_expect(stats.slabs == 0 && stats.spans == 0 && stats.chunks == 0, "all has gone back");
    stress_verify();
}

static void begin_all(void) {
    sy_set_decay(1);
    beside = sy_cache_create(&(sy_cache_config){.name = "beside", .size = 32});
    stress_expect(beside != NULL, "a cache is made");
    for (unsigned kind = 0; kind < HEAP; kind++) {
        caches[kind] = sy_cache_create(&configs[kind]);
        stress_expect(caches[kind] != NULL, "a cache is made");
    }
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    unsigned rounds = 0;
    double end = stress_now() + run.seconds;
    begin_all();
    do {
        begin_round(&random);
        let_work(&random, stress_now() + ROUND_SECONDS);
        end_round(&random);
        rounds++;
    } while (stress_now() < end);
    end_all();
    printf("stress: %u rounds from seed %llu\n", rounds, (unsigned long long)run.seed);
    return 0;
}
