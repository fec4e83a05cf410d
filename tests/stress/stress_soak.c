/*
 * stress_soak.c: memory stays bounded while a program runs, and goes back to the system at its end.
 *
 * Eight threads allocate and free all the time: objects of several kinds of caches, and of the heap
 * from 16 bytes to 256 KiB, as many of each octave. A short-lived object is freed by its thread
 * within the next few operations, a middling one some thousands later. A long-lived object lies in
 * a random place of a shelf that all threads share, and the thread that chooses this place next
 * frees it. The number of live bytes stays the same, so resident memory has no reason to grow. Each
 * object is filled with its own pattern, which is compared when it is freed, so that an object that
 * was allocated twice is noticed. Sometimes threads idle or flush, one of them trims, and each
 * second a thread ends and another one takes its place.
 *
 * For each tenth of the time a line shows the average resident memory. At the end all threads free
 * their objects and end. After a trim, all but half a percent of the highest resident memory has
 * gone back to the system.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"
#include "support/resident.h"
#include "support/sanitized.h"
#include "support/services.h"

enum {
    THREADS = 8,
    QUEUE = 1024,         /* objects that a thread's queue has room for, */
    SHORT = 512 << 10,    /* bytes in the queue of short lives, */
    MIDDLING = 4 << 20,   /* and in that of middling ones */
    OCTAVES = 14,         /* of the heap's sizes: */
    HEAP_LEAST = 16,      /* bytes, and twice that for each octave */
    HEAP_LIVE = 96 << 20, /* bytes of the heap on its shelf, */
    HEAP_PLACES = 16384,  /* which has room for some times their number */
    STALE = 4096,         /* handles that a thread remembers */
    HEADER = 16,          /* bytes of an object that its constructor wrote */
    TENTHS = 10,
    REPLACE_SAMPLES = 20, /* until the next thread is replaced */
};

static const double MIB = 1 << 20;

static const double SAMPLE_SECONDS = 0.05;

/* Of a thread, before it is warm, and again between trims. Not in time: what is resident must not
 * depend on how busy the machine is. */
static uint64_t operations_of_a_turn(void) { return SANITIZED ? 2000 : 200000; }

/* Used if the run is long enough. */
static const double LONG_SECONDS = 30, GROWTH_MOST = 0.10, GIVEN_BACK_LEAST = 0.995;

/* ---- kinds of objects ---- */

enum { HEAP = 5, KINDS };

static sy_cache *caches[HEAP];
static _Atomic size_t live[KINDS], live_bytes;
static _Atomic int64_t constructed; /* less destructed */

static uint64_t header_of(const void *object, unsigned word) {
    return ((uintptr_t)object ^ UINT64_C(0xb0a7ed0000000000)) * (word * 2 + 3);
}

static bool has_header(const void *object) {
    const uint64_t *words = object;
    return words[0] == header_of(object, 0) && words[1] == header_of(object, 1);
}

static int construct(void *object, void *arg) {
    uint64_t *words = object;
    (void)arg;
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
    atomic_fetch_sub_explicit(&constructed, 1, memory_order_relaxed);
}

static const sy_cache_config configs[HEAP] = {
    {.name = "plain", .size = 48},
    {.name = "built", .size = 320, .construct = construct, .destruct = destruct},
    {.name = "named", .size = 96, .flags = SY_HANDLES},
    {.name = "bulky", .size = 5000, .flags = SY_HANDLES},
    {.name = "limited", .size = 1000, .limit = 10000},
};

static bool is_named(unsigned kind) { return kind != HEAP && configs[kind].flags & SY_HANDLES; }

static size_t header_bytes(unsigned kind) {
    return kind != HEAP && configs[kind].construct ? HEADER : 0;
}

/* ---- objects, and where they live ---- */

typedef struct record {
    unsigned char *object; /* NULL: none */
    uint64_t stamp;
    sy_handle handle; /* of the kinds that have them */
    uint32_t size, kind;
} record;

/* Of one thread, first in, first out: full at so many bytes, or when its room is used. */
typedef struct queue {
    size_t bytes, bytes_most;
    size_t first, count;
    record records[QUEUE];
} queue;

typedef struct place {
    _Atomic bool busy;
    record it; /* the thread that made it busy */
} place;

/* Of one kind, for all threads. */
typedef struct shelf {
    place *places;
    size_t place_count;
    _Atomic size_t bytes;
    size_t bytes_most;
} shelf;

static place plain_places[65536], built_places[16384], named_places[65536], bulky_places[2048],
    limited_places[8192], heap_places[HEAP_PLACES];

#define SHELF(places, bytes) \
    { places, sizeof places / sizeof *places, 0, bytes }

static shelf shelves[KINDS] = {
    SHELF(plain_places, SIZE_MAX), SHELF(built_places, SIZE_MAX),   SHELF(named_places, SIZE_MAX),
    SHELF(bulky_places, SIZE_MAX), SHELF(limited_places, SIZE_MAX), SHELF(heap_places, HEAP_LIVE),
};

typedef struct owner {
    pthread_t thread;
    unsigned number;
    _Atomic bool leave; /* its thread ends, another goes on */
    uint64_t random;
    _Atomic uint64_t operations;
    queue brief, middling;
    sy_handle stale[STALE];
    size_t stale_count;
} owner;

static owner owners[THREADS];
static _Atomic bool over;
static pthread_barrier_t all_over;

/* ---- taking and freeing ---- */

static void *take_from_cache(unsigned kind, sy_handle *handle) {
    void *object =
        is_named(kind) ? sy_handle_alloc(caches[kind], handle) : sy_cache_alloc(caches[kind]);
    bool may_fail = configs[kind].limit && errno == ENOMEM;
    stress_expect(object || may_fail, "a cache without a limit has memory");
    return object;
}

/* No object if the limit of its kind is reached. */
static record take(owner *me, unsigned kind) {
    record it = {.kind = kind};
    if (kind == HEAP) {
        size_t least = (size_t)HEAP_LEAST << stress_below(&me->random, OCTAVES);
        it.size = (uint32_t)(least + stress_below(&me->random, least));
        it.object = sy_malloc(it.size);
        stress_expect(it.object != NULL, "the heap has memory");
    } else {
        it.size = (uint32_t)configs[kind].size;
        it.object = take_from_cache(kind, &it.handle);
        if (!it.object) return it;
    }
    size_t others = atomic_fetch_add_explicit(&live[kind], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_bytes, it.size, memory_order_relaxed);
    bool in_limit = kind == HEAP || !configs[kind].limit || others < configs[kind].limit;
    stress_expect(in_limit, "no more objects than the limit");
    size_t header = header_bytes(kind);
    stress_expect(!header || has_header(it.object), "what is built is constructed");
    it.stamp = ((uint64_t)me->number << 48) + ++me->operations;
    stress_fill(it.object + header, it.size - header, it.stamp);
    return it;
}

static void free_named(owner *me, const record *it) {
    sy_cache *cache = caches[it->kind];
    stress_expect(sy_handle_get(cache, it->handle) == it->object, "a live handle is got");
    if (stress_below(&me->random, 8))
        stress_expect(sy_handle_free(cache, it->handle), "a live handle is freed");
    else
        sy_cache_free(cache, it->object);
    me->stale[me->stale_count++ % STALE] = it->handle;
}

static void free_record(owner *me, record it) {
    if (!it.object) return;
    size_t header = header_bytes(it.kind);
    stress_expect(!header || has_header(it.object), "an object stays constructed");
    stress_check(it.object + header, it.size - header, it.stamp);
    atomic_fetch_sub_explicit(&live[it.kind], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, it.size, memory_order_relaxed);
    if (is_named(it.kind))
        free_named(me, &it);
    else if (it.kind != HEAP)
        sy_cache_free(caches[it.kind], it.object);
    else if (it.stamp % 2)
        sy_free_sized(it.object, it.size);
    else
        sy_free(it.object);
}

static void try_stale(owner *me) {
    if (!me->stale_count) return;
    size_t kept = me->stale_count < STALE ? me->stale_count : STALE;
    sy_handle handle = me->stale[stress_below(&me->random, kept)];
    for (unsigned kind = 0; kind < HEAP; kind++) {
        stress_expect(!sy_handle_get(caches[kind], handle), "a stale handle is not got");
        stress_expect(!sy_handle_free(caches[kind], handle), "a stale handle is not freed");
    }
}

/* ---- short and middling lives ---- */

static void free_first(owner *me, queue *from) {
    if (!from->count) return;
    record it = from->records[from->first++ % QUEUE];
    from->count--;
    from->bytes -= it.size;
    free_record(me, it);
}

static void enqueue(owner *me, queue *to, record it) {
    to->records[(to->first + to->count++) % QUEUE] = it;
    to->bytes += it.size;
    while (to->count == QUEUE || to->bytes > to->bytes_most) free_first(me, to);
}

/* ---- long lives ---- */

/* Puts `it` in a place and returns what was there; returns `it` if another thread is busy there. */
static record exchange(shelf *on, size_t index, record it) {
    place *there = &on->places[index];
    if (atomic_exchange_explicit(&there->busy, true, memory_order_acquire)) return it;
    record was = there->it;
    there->it = it;
    atomic_store_explicit(&there->busy, false, memory_order_release);
    atomic_fetch_add_explicit(&on->bytes, (size_t)it.size - was.size, memory_order_relaxed);
    return was;
}

static record nothing(unsigned kind) { return (record){.kind = kind}; }

/* Puts an object on its shelf, and frees others until the shelf has no more bytes than it may. */
static void shelve(owner *me, record it) {
    shelf *on = &shelves[it.kind];
    free_record(me, exchange(on, stress_below(&me->random, on->place_count), it));
    while (atomic_load_explicit(&on->bytes, memory_order_relaxed) > on->bytes_most) {
        size_t victim = stress_below(&me->random, on->place_count);
        free_record(me, exchange(on, victim, nothing(it.kind)));
    }
}

static void fill_shelf(owner *me, unsigned kind) {
    shelf *on = &shelves[kind];
    for (size_t i = 0; i < on->place_count && on->bytes < on->bytes_most; i++)
        free_record(me, exchange(on, i, take(me, kind)));
}

/* ---- threads ---- */

/* By one thread, the next kind each time. The heap is trimmed with all there is. */
static void trim(const owner *me) {
    unsigned kind = (unsigned)(me->operations / operations_of_a_turn() % KINDS);
    if (kind < HEAP)
        sy_cache_trim(caches[kind]);
    else
        sy_trim();
}

static void disturb(owner *me) {
    switch (stress_below(&me->random, 1000)) {
    case 0: sy_thread_idle(); break;
    case 1: sy_thread_flush(); break;
    default: try_stale(me); break;
    }
}

static void step(owner *me) {
    record it = take(me, (unsigned)stress_below(&me->random, KINDS));
    size_t life = stress_below(&me->random, 16);
    if (!it.object)
        free_first(me, &me->middling);
    else if (life < 8)
        enqueue(me, &me->brief, it);
    else if (life < 12)
        enqueue(me, &me->middling, it);
    else
        shelve(me, it);
    if (stress_below(&me->random, 16) == 0) disturb(me);
    if (me->number == 0 && me->operations % operations_of_a_turn() == 0) trim(me);
}

/* Its own queues, and its part of all shelves. */
static void free_all(owner *me) {
    while (me->brief.count) free_first(me, &me->brief);
    while (me->middling.count) free_first(me, &me->middling);
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t i = me->number; i < shelves[kind].place_count; i += THREADS)
            free_record(me, exchange(&shelves[kind], i, nothing(kind)));
}

static void *work(void *argument) {
    owner *me = argument;
    while (!over && !me->leave) step(me);
    if (!over) return NULL;
    pthread_barrier_wait(&all_over); /* no thread adds an object to a shelf from here on */
    free_all(me);
    return NULL;
}

static void start_thread(owner *it) {
    it->leave = false;
    stress_expect(pthread_create(&it->thread, NULL, work, it) == 0, "a thread starts");
}

static void replace_thread(owner *it) {
    it->leave = true;
    pthread_join(it->thread, NULL);
    start_thread(it);
}

/* ---- what is resident ---- */

typedef struct samples {
    double sum, least, most;
    unsigned count;
} samples;

static samples tenths[TENTHS];
static double peak;

static void sample(samples *of) {
    double now = (double)resident_anonymous();
    if (!of->count || now < of->least) of->least = now;
    if (now > of->most) of->most = now;
    if (now > peak) peak = now;
    of->sum += now;
    of->count++;
}

static double mean(const samples *of) { return of->sum / of->count; }

static void print_tenth(double seconds, const samples *of) {
    sy_stats stats;
    sy_get_stats(&stats);
    printf("%6.1f s: resident %.2f MiB (%.2f to %.2f), live %.2f; slabs %.1f, spans %.1f, "
           "dirty %.1f, magazines %.2f, side %.2f\n",
           seconds, mean(of) / MIB, of->least / MIB, of->most / MIB, (double)live_bytes / MIB,
           (double)stats.slabs / MIB, (double)stats.spans / MIB,
           (double)(stats.units_free - stats.units_clean) / MIB, (double)stats.magazines / MIB,
           (double)stats.side / MIB);
    fflush(stdout);
}

/* ---- the run ---- */

/* Makes the test's own memory resident. */
static void touch_own_memory(void) {
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < shelves[kind].place_count; i++)
            shelves[kind].places[i].it = nothing(kind);
    for (unsigned i = 0; i < THREADS; i++) memset(&owners[i], 0, sizeof owners[i]);
}

static void begin(uint64_t seed) {
    for (unsigned kind = 0; kind < HEAP; kind++) {
        caches[kind] = sy_cache_create(&configs[kind]);
        stress_expect(caches[kind] != NULL, "a cache is made");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        owners[i].number = i;
        owners[i].random = stress_random(&seed);
        owners[i].brief.bytes_most = SHORT;
        owners[i].middling.bytes_most = MIDDLING;
    }
    for (unsigned kind = 0; kind < KINDS; kind++) fill_shelf(&owners[0], kind);
    pthread_barrier_init(&all_over, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) start_thread(&owners[i]);
}

static void warm_up(void) {
    struct timespec pause = {0, (long)(SAMPLE_SECONDS * 1e9)};
    for (unsigned i = 0; i < THREADS; i++) {
        uint64_t warm = owners[i].operations + operations_of_a_turn();
        while (owners[i].operations < warm) nanosleep(&pause, NULL);
    }
}

static void watch_tenth(double until, samples *of) {
    static unsigned samples_taken, replaced;
    struct timespec pause = {0, (long)(SAMPLE_SECONDS * 1e9)};
    do {
        nanosleep(&pause, NULL);
        sample(of);
        if (++samples_taken % REPLACE_SAMPLES == 0) replace_thread(&owners[replaced++ % THREADS]);
    } while (stress_now() < until);
    stress_verify();
}

static void run_for(double seconds) {
    double start = stress_now();
    for (int tenth = 0; tenth < TENTHS; tenth++) {
        double until = seconds * (tenth + 1) / TENTHS;
        watch_tenth(start + until, &tenths[tenth]);
        print_tenth(until, &tenths[tenth]);
    }
}

static void end(void) {
    over = true;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(owners[i].thread, NULL);
    stress_verify();
    for (unsigned kind = 0; kind < HEAP; kind++) {
        stress_verify_stats(caches[kind]);
        stress_expect(sy_cache_in_use(caches[kind]) == 0, "nothing is in use");
    }
    stress_expect(stress_heap_in_use() == 0, "nor in the heap");
}

static double given_back(double before) {
    sy_trim();
    double after = (double)resident_anonymous();
    double part = (peak - after) / (peak - before);
    printf("resident at most %.2f MiB, %.2f before; given back %.3f %%, all but %.0f KiB\n",
           peak / MIB, before / MIB, part * 100, (after - before) / 1024);
    return part;
}

static void destroy_caches(void) {
    for (unsigned kind = 0; kind < HEAP; kind++)
        stress_expect(sy_cache_destroy(caches[kind]) == 0, "an unused cache is destroyed");
    stress_expect(constructed == 0, "all that was constructed is destructed");
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    touch_own_memory();
    double before = (double)resident_anonymous();
    begin(run.seed);
    warm_up();
    run_for(run.seconds);
    end();
    double part = given_back(before);
    destroy_caches();
    double growth = mean(&tenths[TENTHS - 1]) / mean(&tenths[0]) - 1;
    uint64_t operations = 0;
    for (unsigned i = 0; i < THREADS; i++) operations += owners[i].operations;
    printf("stress: %llu operations from seed %llu; growth from the first tenth to the last "
           "%+.2f %%\n",
           (unsigned long long)operations, (unsigned long long)run.seed, growth * 100);
    if (SANITIZED || !has_all(SY_OS_DISCARDS)) return 0;
    stress_expect(part >= GIVEN_BACK_LEAST, "nearly all goes back");
    stress_expect(run.seconds < LONG_SECONDS || growth <= GROWTH_MOST, "memory does not grow");
    return 0;
}
