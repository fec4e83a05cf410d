/*
 * stress_double.c: no object is allocated twice, and none is lost.
 *
 * Threads allocate objects of many kinds, fill each with their own pattern, pass objects to each
 * other (shared slots, rings, a queue), and free objects that any thread allocated. The pattern is
 * compared before each free. In between, at random with a seed, threads trim, idle, flush, reserve,
 * read statistics, try wrong frees, end and start.
 *
 * From time to time all threads are halted, some of them idle. Then the number of objects that the
 * owners hold must be the number that each cache has in use, and every invariant is checked. Each
 * round has another number of threads. At its end all objects are freed and all caches destroyed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "debug/watch.h"
#include "stress/stress.h"

enum {
    THREADS_MIN = 2,
    THREADS_MAX = 16,
    HELD_MAX = 1200, /* objects that one owner holds */
    BURST_MAX = 300,
    SLOTS = 1024,
    RING = 512, /* a power of two */
    QUEUE = 4096,
    LIMIT = 5000,
    LIMIT_EXACT = 700,
    HEADER = 16, /* bytes at the front of constructed objects that their constructor wrote */
    HEAP_SMALL = 4096,
    HEAP_SPAN = 600 << 10,
};

static const double ROUND_SECONDS = 1.0, PHASE_SECONDS = 0.1;

/* ---- kinds of objects ---- */

enum { HEAP = 12, KINDS };

static sy_cache *caches[HEAP];
static _Atomic int64_t limited_live[HEAP]; /* of the kinds that have a limit */
static _Atomic int64_t constructed;        /* less destructed */

static uint64_t header_of(const void *object, unsigned word) {
    return ((uintptr_t)object ^ UINT64_C(0x5ca1ab1e00000000)) * (word * 2 + 3);
}

static bool has_header(const void *object) {
    const uint64_t *words = object;
    return words[0] == header_of(object, 0) && words[1] == header_of(object, 1);
}

static bool is_constructed(unsigned kind);

static int construct(void *object, void *fails) {
    static _Thread_local uint64_t state = 7;
    if (fails && stress_below(&state, 50) == 0) {
        errno = EAGAIN;
        return -1;
    }
    uint64_t *words = object;
    stress_expect(!has_header(object), "an object is constructed once");
    words[0] = header_of(object, 0);
    words[1] = header_of(object, 1);
    atomic_fetch_add_explicit(&constructed, 1, memory_order_relaxed);
    return 0;
}

static void destruct(void *object, void *fails) {
    (void)fails;
    stress_expect(has_header(object), "an object is destructed once");
    for (unsigned kind = 0; kind < HEAP; kind++)
        if (is_constructed(kind) && caches[kind])
            stress_expect(!sy_cache_try_free(caches[kind], object), "a destructed object is free");
    memset(object, 0, HEADER);
    atomic_fetch_sub_explicit(&constructed, 1, memory_order_relaxed);
}

static const sy_cache_config configs[HEAP] = {
    {.name = "16", .size = 16},
    {.name = "64", .size = 64},
    {.name = "512", .size = 512},
    {.name = "4096", .size = 4096},
    {.name = "8", .size = 8},
    {.name = "coloured", .size = 512, .flags = SY_COLOUR},
    {.name = "aligned", .size = 200, .align = 256},
    {.name = "limited", .size = 64, .limit = LIMIT},
    {.name = "exact", .size = 16, .limit = LIMIT_EXACT, .flags = SY_LIMIT_EXACT},
    {.name = "checked", .size = 64, .flags = SY_CHECKED},
    {.name = "built", .size = 48, .construct = construct, .destruct = destruct},
    {.name = "fails",
     .size = 512,
     .construct = construct,
     .destruct = destruct,
     .arg = caches,
     .limit = LIMIT},
};

static bool is_constructed(unsigned kind) { return configs[kind].construct; }

static size_t header_bytes(unsigned kind) {
    return kind != HEAP && is_constructed(kind) ? HEADER : 0;
}

/* ---- owners and what they hold ---- */

typedef struct record {
    unsigned char *object; /* NULL: none */
    uint64_t stamp;
    uint32_t size;
    uint8_t kind;
    bool aligned; /* to be freed without its size */
} record;

typedef struct owner {
    pthread_t thread;
    unsigned number;
    uint64_t random, stamps;
    int64_t live[KINDS]; /* allocated less freed by this owner: only the sum has a meaning */
    size_t held_count;
    record held[HELD_MAX];
    bool ended; /* its thread is over; guarded by halt_lock */
} owner;

static owner owners[THREADS_MAX];
static unsigned owner_count;

static void count_live(owner *me, unsigned kind, int difference) {
    me->live[kind] += difference;
    size_t limit = kind == HEAP ? 0 : configs[kind].limit;
    if (!limit) return;
    int64_t before =
        atomic_fetch_add_explicit(&limited_live[kind], difference, memory_order_relaxed);
    stress_expect(before + difference <= (int64_t)limit, "no more objects than the limit");
}

static void hold(owner *me, void *object, size_t size, unsigned kind) {
    uint64_t stamp = ((uint64_t)me->number << 48) + ++me->stamps;
    size_t header = header_bytes(kind);
    stress_expect(!header || has_header(object), "what comes from a constructor is constructed");
    stress_fill((char *)object + header, size - header, stamp);
    me->held[me->held_count++] = (record){object, stamp, (uint32_t)size, (uint8_t)kind, false};
    count_live(me, kind, 1);
}

/* Compares the pattern of an object that will be freed. */
static void look(owner *me, const record *it) {
    size_t header = header_bytes(it->kind);
    stress_expect(!header || has_header(it->object), "an object stays constructed");
    stress_check(it->object + header, it->size - header, it->stamp);
    count_live(me, it->kind, -1);
}

static record take_held(owner *me, size_t index) {
    record it = me->held[index];
    me->held[index] = me->held[--me->held_count];
    return it;
}

/* ---- taking ---- */

static void refused(unsigned kind) {
    bool may = kind != HEAP && configs[kind].limit && errno == ENOMEM;
    may |= kind != HEAP && configs[kind].arg && errno == EAGAIN;
    stress_expect(may, "an allocation that nothing limits succeeds");
}

static bool is_zero(const unsigned char *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static size_t heap_size(owner *me) {
    static const size_t sizes[] = {16, 64, 512, 4096};
    switch (stress_below(&me->random, 64)) {
    case 0: return 1 + stress_below(&me->random, HEAP_SPAN);
    case 1:
    case 2: return 1 + stress_below(&me->random, 40000);
    default:
        return stress_below(&me->random, 2) ? sizes[stress_below(&me->random, 4)]
                                            : 1 + stress_below(&me->random, HEAP_SMALL);
    }
}

static void take_heap(owner *me) {
    size_t size = heap_size(me), align = (size_t)1 << stress_below(&me->random, 13);
    size_t how = stress_below(&me->random, 8);
    unsigned char *object = how == 0   ? sy_calloc(1, size)
                            : how == 1 ? sy_aligned_alloc(align, size)
                                       : sy_malloc(size);
    stress_expect(object != NULL, "the heap has memory");
    stress_expect(how != 0 || is_zero(object, size), "calloc gives zeroes");
    stress_expect(how != 1 || (uintptr_t)object % align == 0, "aligned_alloc aligns");
    stress_expect(sy_usable_size(object) >= size, "an object is as large as asked for");
    hold(me, object, size, HEAP);
    me->held[me->held_count - 1].aligned = how == 1;
}

static void take_one(owner *me, unsigned kind) {
    if (kind == HEAP) {
        take_heap(me);
        return;
    }
    const sy_cache_config *config = &configs[kind];
    bool zeroed = !config->construct && stress_below(&me->random, 8) == 0;
    void *object = zeroed ? sy_cache_zalloc(caches[kind]) : sy_cache_alloc(caches[kind]);
    if (!object) {
        refused(kind);
        return;
    }
    stress_expect(!zeroed || is_zero(object, config->size), "zalloc gives zeroes");
    stress_expect((uintptr_t)object % (config->align ? config->align : 8) == 0, "aligned");
    hold(me, object, config->size, kind);
}

static void take_batch(owner *me, unsigned kind, size_t count) {
    void *objects[BURST_MAX];
    size_t got = sy_cache_alloc_batch(caches[kind], objects, count);
    if (got < count) refused(kind);
    for (size_t i = 0; i < got; i++) hold(me, objects[i], configs[kind].size, kind);
}

static void take_burst(owner *me) {
    unsigned kind = (unsigned)stress_below(&me->random, KINDS);
    size_t count = 1 + stress_below(&me->random, BURST_MAX);
    if (count > HELD_MAX - me->held_count) count = HELD_MAX - me->held_count;
    if (count && kind != HEAP && stress_below(&me->random, 3) == 0)
        take_batch(me, kind, count);
    else
        while (count-- > 0) take_one(me, kind);
}

/* ---- freeing ---- */

static void free_record(owner *me, record it) {
    look(me, &it);
    size_t how = stress_below(&me->random, 32);
    if (it.kind != HEAP && how == 0)
        stress_expect(sy_cache_try_free(caches[it.kind], it.object), "a live object can be freed");
    else if (it.kind != HEAP)
        sy_cache_free(caches[it.kind], it.object);
    else if (how < 16 && !it.aligned)
        sy_free_sized(it.object, it.size);
    else
        sy_free(it.object);
}

/* Of one kind, by one call. */
static void free_batch(owner *me, size_t count) {
    unsigned kind = (unsigned)stress_below(&me->random, HEAP);
    void *objects[BURST_MAX];
    size_t got = 0;
    for (size_t i = me->held_count; i-- > 0 && got < count;) {
        if (me->held[i].kind != kind) continue;
        record it = take_held(me, i);
        look(me, &it);
        objects[got++] = it.object;
    }
    sy_cache_free_batch(caches[kind], objects, got);
}

static void free_burst(owner *me) {
    size_t count = 1 + stress_below(&me->random, BURST_MAX), how = stress_below(&me->random, 4);
    if (how == 0) {
        free_batch(me, count);
        return;
    }
    if (count > me->held_count) count = me->held_count;
    for (; count > 0; count--) {
        size_t last = me->held_count - 1;
        free_record(me, take_held(me, how == 1   ? last
                                      : how == 2 ? 0
                                                 : stress_below(&me->random, last + 1)));
    }
}

static void free_all(owner *me) {
    while (me->held_count) free_record(me, take_held(me, me->held_count - 1));
}

static void resize_some(owner *me) {
    for (size_t i = 0; i < me->held_count; i += 7) {
        record *it = &me->held[i];
        if (it->kind != HEAP) continue;
        size_t size = heap_size(me), kept = size < it->size ? size : it->size;
        size_t stride = 8 * stress_stride(it->size);
        unsigned char *object = sy_realloc(it->object, size);
        stress_expect(object != NULL, "the heap has memory");
        for (size_t at = 0; at + 8 <= kept; at += stride) {
            uint64_t word = stress_word(it->stamp, at / 8);
            stress_expect(memcmp(object + at, &word, 8) == 0, "realloc keeps the content");
        }
        it->object = object;
        it->size = (uint32_t)size;
        it->aligned = false;
        stress_fill(object, size, it->stamp);
    }
}

/* None of these is a live object of the cache that is asked. */
static void try_wrong_frees(owner *me) {
    unsigned kind = (unsigned)stress_below(&me->random, HEAP);
    uint64_t somewhere = stress_random(&me->random);
    stress_expect(!sy_cache_try_free(caches[kind], me), "foreign memory is refused");
    stress_expect(!sy_cache_try_free(caches[kind], NULL), "NULL is refused");
    stress_expect(!sy_cache_try_free(caches[kind], (void *)(uintptr_t)(somewhere | 1)),
                  "any address may be asked about");
    if (!me->held_count) return;
    const record *it = &me->held[stress_below(&me->random, me->held_count)];
    stress_expect(!sy_cache_try_free(caches[kind], it->object + 1), "an inner address is refused");
    if (it->kind != kind)
        stress_expect(!sy_cache_try_free(caches[kind], it->object), "another's object is refused");
}

/* ---- passing objects on ---- */

static struct shared_slot {
    _Atomic bool busy;
    record it; /* the thread that made it busy */
} slots[SLOTS];

static void exchange_slots(owner *me) {
    for (size_t i = stress_below(&me->random, 64); i > 0 && me->held_count; i--) {
        struct shared_slot *slot = &slots[stress_below(&me->random, SLOTS)];
        if (atomic_exchange_explicit(&slot->busy, true, memory_order_acquire)) continue;
        record theirs = slot->it;
        slot->it = take_held(me, stress_below(&me->random, me->held_count));
        atomic_store_explicit(&slot->busy, false, memory_order_release);
        if (theirs.object) free_record(me, theirs);
    }
}

/* Of each owner to the next one. */
static struct ring {
    _Atomic size_t sent, received;
    record records[RING];
} rings[THREADS_MAX];

static void send(owner *me) {
    struct ring *ring = &rings[me->number];
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
    size_t received = atomic_load_explicit(&ring->received, memory_order_acquire);
    for (size_t i = stress_below(&me->random, BURST_MAX); i > 0 && me->held_count; i--) {
        if (sent - received == RING) break;
        ring->records[sent++ % RING] = take_held(me, me->held_count - 1);
    }
    atomic_store_explicit(&ring->sent, sent, memory_order_release);
}

static void receive(owner *me) {
    struct ring *ring = &rings[(me->number + 1) % owner_count];
    size_t received = atomic_load_explicit(&ring->received, memory_order_relaxed);
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_acquire);
    for (; received != sent; received++) free_record(me, ring->records[received % RING]);
    atomic_store_explicit(&ring->received, received, memory_order_release);
}

static struct queue {
    pthread_mutex_t lock;
    size_t count;
    record records[QUEUE];
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put_queue(owner *me) {
    size_t count = stress_below(&me->random, BURST_MAX);
    pthread_mutex_lock(&queue.lock);
    for (; count > 0 && me->held_count && queue.count < QUEUE; count--)
        queue.records[queue.count++] = take_held(me, me->held_count - 1);
    pthread_mutex_unlock(&queue.lock);
}

static void get_queue(owner *me) {
    size_t count = stress_below(&me->random, BURST_MAX);
    pthread_mutex_lock(&queue.lock);
    for (; count > 0 && me->held_count < HELD_MAX && queue.count; count--)
        me->held[me->held_count++] = queue.records[--queue.count];
    pthread_mutex_unlock(&queue.lock);
}

/* ---- what comes in between ---- */

static void disturb(owner *me) {
    unsigned kind = (unsigned)stress_below(&me->random, HEAP);
    sy_cache_stats stats;
    sy_stats all;
    switch (stress_below(&me->random, 16)) {
    case 0: sy_trim(); break;
    case 1:
    case 2: sy_cache_trim(caches[kind]); break;
    case 3: sy_thread_flush(); break;
    case 4:
    case 5: sy_thread_idle(); break;
    case 6: (void)sy_cache_reserve(caches[kind], stress_below(&me->random, BURST_MAX)); break;
    case 7: stress_expect(sy_cache_get_stats(caches[kind], &stats) == 0, "statistics"); break;
    case 8: sy_get_stats(&all); break;
    case 9: (void)sy_cache_in_use(caches[kind]); break;
    case 10: stress_expect(sy_cache_verify(caches[kind]) == 0, "a cache is sound"); break;
    case 11: stress_expect(sy_chunk_verify(&sy_memory_main) == 0, "the chunks are sound"); break;
    case 12: stress_expect(sy_store_verify() == 0, "the store is sound"); break;
    case 13: resize_some(me); break;
    default: try_wrong_frees(me); break;
    }
}

/* ---- threads, and halting them ---- */

static pthread_mutex_t halt_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t halt_changed = PTHREAD_COND_INITIALIZER;
static _Atomic bool halting;               /* written under halt_lock */
static bool round_over;                    /* guarded by halt_lock, as is */
static unsigned running, halted, finished; /* threads at work, waiting, to be joined */
static unsigned halts;

/* Waits while all objects are checked; false: the round is over. */
static bool halt(owner *me) {
    if (stress_below(&me->random, 3) == 0) sy_thread_idle();
    pthread_mutex_lock(&halt_lock);
    if (!atomic_load_explicit(&halting, memory_order_relaxed)) {
        pthread_mutex_unlock(&halt_lock);
        return true;
    }
    running--;
    halted++;
    pthread_cond_broadcast(&halt_changed);
    for (unsigned mine = halts; mine == halts;) pthread_cond_wait(&halt_changed, &halt_lock);
    bool go_on = !round_over;
    pthread_mutex_unlock(&halt_lock);
    return go_on;
}

static bool step(owner *me) {
    if (atomic_load_explicit(&halting, memory_order_relaxed) && !halt(me)) return false;
    switch (stress_below(&me->random, 16)) {
    case 0: send(me); break;
    case 1: receive(me); break;
    case 2: put_queue(me); break;
    case 3: get_queue(me); break;
    case 4:
    case 5: exchange_slots(me); break;
    case 6: disturb(me); break;
    case 7: return stress_below(&me->random, 40) != 0; /* or the thread ends, its owner goes on */
    case 8:
    case 9:
    case 10:
    case 11: free_burst(me); break;
    default: take_burst(me); break;
    }
    return true;
}

static void *work(void *argument) {
    owner *me = argument;
    while (step(me)) {}
    pthread_mutex_lock(&halt_lock);
    me->ended = true;
    running--;
    finished++;
    pthread_cond_broadcast(&halt_changed);
    pthread_mutex_unlock(&halt_lock);
    return NULL;
}

/* The lock is held. */
static void start_thread(owner *it) {
    it->ended = false;
    running++;
    stress_expect(pthread_create(&it->thread, NULL, work, it) == 0, "a thread starts");
}

/* Joins threads that have ended, and starts others for their owners. The caller holds the lock,
 * which is released here. */
static void replace_finished(void) {
    for (unsigned i = 0; i < owner_count && finished; i++) {
        if (!owners[i].ended) continue;
        finished--;
        pthread_mutex_unlock(&halt_lock);
        pthread_join(owners[i].thread, NULL);
        pthread_mutex_lock(&halt_lock);
        if (!round_over)
            start_thread(&owners[i]);
        else
            owners[i].ended = false;
    }
}

static void halt_all(void) {
    pthread_mutex_lock(&halt_lock);
    atomic_store_explicit(&halting, true, memory_order_relaxed);
    while (running) pthread_cond_wait(&halt_changed, &halt_lock);
    pthread_mutex_unlock(&halt_lock);
}

static void let_go(void) {
    pthread_mutex_lock(&halt_lock);
    atomic_store_explicit(&halting, false, memory_order_relaxed);
    halts++;
    running += halted;
    halted = 0;
    pthread_cond_broadcast(&halt_changed);
    pthread_mutex_unlock(&halt_lock);
}

/* ---- what is so while all are halted ---- */

static size_t held_of(unsigned kind) {
    int64_t live = 0;
    for (unsigned i = 0; i < THREADS_MAX; i++) live += owners[i].live[kind];
    stress_expect(live >= 0, "what was freed had been taken");
    return (size_t)live;
}

static size_t heap_spans(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    stress_expect(stats.mapped ==
                      stats.slabs + stats.spans + stats.units_free + stats.chunk_headers,
                  "every mapped byte is accounted for");
    return stats.spans;
}

static void look_at_all(void) {
    uint64_t built = 0;
    stress_verify();
    for (unsigned kind = 0; kind < HEAP; kind++) {
        sy_cache_stats stats;
        stress_verify_stats(caches[kind]);
        stress_expect(sy_cache_get_stats(caches[kind], &stats) == 0, "a cache has statistics");
        stress_expect(stats.in_use == held_of(kind), "in use is what the owners hold");
        built += stats.constructed - stats.destructed;
    }
    stress_expect((uint64_t)atomic_load(&constructed) == built, "constructed less destructed");
    size_t spans = heap_spans(), small = stress_heap_in_use();
    stress_expect(small <= held_of(HEAP), "the heap's classes hold no more than the owners");
    /* Where they are checked, large objects are in caches as well. */
    bool checked = sy_watch_checks(0, "heap", true) & SY_CHECKED;
    stress_expect(small == held_of(HEAP) || spans > 0 || checked, "the rest of them are spans");
}

/* ---- rounds ---- */

static void begin_round(uint64_t *random) {
    owner_count = THREADS_MIN + (unsigned)stress_below(random, THREADS_MAX - THREADS_MIN + 1);
    for (unsigned kind = 0; kind < HEAP; kind++) {
        caches[kind] = sy_cache_create(&configs[kind]);
        stress_expect(caches[kind] != NULL, "a cache is made");
    }
    round_over = false;
    pthread_mutex_lock(&halt_lock);
    for (unsigned i = 0; i < owner_count; i++) {
        owners[i].number = i;
        owners[i].random = stress_random(random);
        start_thread(&owners[i]);
    }
    pthread_mutex_unlock(&halt_lock);
}

static void phase(double until) {
    struct timespec pause = {0, 1000000};
    while (stress_now() < until) {
        pthread_mutex_lock(&halt_lock);
        replace_finished();
        pthread_mutex_unlock(&halt_lock);
        stress_verify();
        nanosleep(&pause, NULL);
    }
    halt_all();
    look_at_all();
}

static void join_all(void) {
    halt_all();
    round_over = true;
    let_go();
    for (unsigned left = 1; left > 0;) {
        pthread_mutex_lock(&halt_lock);
        replace_finished();
        left = running + finished;
        if (running && !finished) pthread_cond_wait(&halt_changed, &halt_lock);
        pthread_mutex_unlock(&halt_lock);
    }
}

static void free_everything(void) {
    owner *me = &owners[0];
    for (unsigned i = 0; i < owner_count; i++) {
        free_all(&owners[i]);
        receive(&owners[i]);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].it.object) free_record(me, slots[i].it);
        slots[i].it.object = NULL;
    }
    while (queue.count) free_record(me, queue.records[--queue.count]);
}

static void end_round(void) {
    join_all();
    look_at_all();
    free_everything();
    look_at_all();
    stress_expect(heap_spans() == 0 && stress_heap_in_use() == 0, "the heap is empty");
    for (unsigned kind = 0; kind < HEAP; kind++) {
        stress_expect(held_of(kind) == 0 && sy_cache_in_use(caches[kind]) == 0, "nothing in use");
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache can be destroyed");
        caches[kind] = NULL;
    }
    stress_expect(atomic_load(&constructed) == 0, "what was constructed is destructed");
    sy_trim();
    stress_verify();
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    unsigned rounds = 0;
    double end = stress_now() + run.seconds;
    do {
        begin_round(&random);
        double now = stress_now(), round_end = now + ROUND_SECONDS;
        for (; now < round_end && now < end; now = stress_now()) {
            phase(now + PHASE_SECONDS);
            if (stress_now() < round_end) let_go();
        }
        end_round();
        rounds++;
    } while (stress_now() < end);
    printf("stress: %u rounds from seed %llu\n", rounds, (unsigned long long)run.seed);
    return 0;
}
