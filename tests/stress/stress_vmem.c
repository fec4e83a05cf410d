/*
 * stress_vmem.c: no unit of an arena is ever given out twice, and none is lost, whatever threads do
 * at once.
 *
 * There is one arena of each kind: with and without quantum caches, with spans of its own, from
 * functions, and from another arena. Each unit has an owner's mark, set by exchange when the unit
 * is allocated and cleared the same way before it is freed, so that two owners at a time show.
 * Threads allocate, resize and free, pass segments to each other through slots, drain and idle; one
 * thread walks, counts and verifies meanwhile; the main thread forks, and the child does a little
 * of everything. Each round ends with all threads gone, everything freed and the arenas destroyed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>
#include <slabyard/vmem.h>

#include "stress/stress.h"
#include "support/services.h"

enum {
    THREADS = 8,
    UNITS = 1 << 12, /* of each arena; now and then that is too few */
    HELD_MAX = 150,  /* segments that a thread holds */
    SIZE_MOST = 24,
    CACHED_MAX = 8,
    SLOTS = 128,
    BLOCK = 256, /* units that an import gives */
    BLOCKS = UNITS / BLOCK,
    HELD_BY_MAIN = 40,
    CHILD_SEGMENTS = 300,
    CHILD_SECONDS = 60,
};

static const double ROUND_SECONDS = 0.7;

enum { PLAIN, CACHED, FROM_FUNCTIONS, FROM_AN_ARENA, KINDS }; /* of arenas */

static sy_vmem *source;
static sy_vmem *arenas[KINDS];
static _Atomic uint32_t owners[KINDS][UNITS]; /* 0: no thread */
static _Atomic bool taken[BLOCKS];            /* imported and not released */
static _Atomic uint64_t slots[SLOTS];         /* segments on their way, packed; 0: none */
static _Atomic uint64_t operations, forks;
static _Atomic bool over;

typedef struct segment {
    unsigned kind;
    uint32_t value, size;
} segment;

static uint64_t pack(segment it) {
    return (uint64_t)it.value << 32 | (uint64_t)it.size << 8 | it.kind | 0x80;
}

static segment unpack(uint64_t word) {
    return (segment){(unsigned)(word & 0x7f), (uint32_t)(word >> 32),
                     (uint32_t)(word >> 8 & 0xffff)};
}

/* ---- marks ---- */

static void mark(unsigned kind, uint32_t from, uint32_t count, uint32_t owner) {
    for (uint32_t unit = from; unit < from + count; unit++)
        stress_expect(atomic_exchange_explicit(&owners[kind][unit], owner, memory_order_relaxed) ==
                          0,
                      "what is allocated is nobody's");
}

static void unmark(unsigned kind, uint32_t from, uint32_t count) {
    for (uint32_t unit = from; unit < from + count; unit++)
        stress_expect(atomic_exchange_explicit(&owners[kind][unit], 0, memory_order_relaxed) != 0,
                      "what is freed is somebody's");
}

/* ---- imports ---- */

static int import(sy_vmem *from, void *arg, size_t size, uintptr_t *start, size_t *got) {
    static _Atomic unsigned turn;
    (void)from;
    (void)arg;
    unsigned first = atomic_fetch_add_explicit(&turn, 7, memory_order_relaxed);
    if (size > BLOCK || first % 8 == 0) return -1;
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned block = (first + i) % BLOCKS;
        if (atomic_exchange(&taken[block], true)) continue;
        *start = block * BLOCK;
        *got = BLOCK;
        return 0;
    }
    return -1;
}

static void release(sy_vmem *to, void *arg, uintptr_t start, size_t size) {
    (void)to;
    (void)arg;
    stress_expect(start % BLOCK == 0 && size == BLOCK, "a span is released whole");
    for (uintptr_t unit = start; unit < start + BLOCK; unit++)
        stress_expect(owners[FROM_FUNCTIONS][unit] == 0, "what is released is nobody's");
    stress_expect(atomic_exchange(&taken[start / BLOCK], false), "a span is released once");
}

static void create_all(void) {
    source = sy_vmem_create(&(sy_vmem_config){.name = "source", .size = UNITS, .cached_max = 2});
    const sy_vmem_config configs[KINDS] = {
        {.name = "plain", .size = UNITS},
        {.name = "cached", .size = UNITS, .cached_max = CACHED_MAX},
        {.name = "functions", .cached_max = CACHED_MAX, .import = import, .release = release},
        {.name = "arena", .source = source, .import_min = 100},
    };
    for (unsigned kind = 0; kind < KINDS; kind++) {
        arenas[kind] = sy_vmem_create(&configs[kind]);
        stress_expect(arenas[kind] != NULL, "an arena is made");
    }
}

/* ---- what threads do ---- */

static int allocate(segment *it, uintptr_t *value, uint64_t *random) {
    sy_vmem *arena = arenas[it->kind];
    static const sy_vmem_fit fits[] = {SY_VMEM_INSTANT, SY_VMEM_INSTANT, SY_VMEM_INSTANT,
                                       SY_VMEM_INSTANT, SY_VMEM_BEST,    SY_VMEM_NEXT};
    sy_vmem_fit fit = fits[stress_below(random, sizeof fits / sizeof *fits)];
    if (stress_below(random, 4)) return sy_vmem_alloc(arena, it->size, fit, value);
    sy_vmem_constraints with = {.align = (size_t)1 << stress_below(random, 6), .nocross = 64};
    if (stress_below(random, 4) == 0) with.min = stress_below(random, UNITS / 2);
    if (stress_below(random, 4) == 0) with.max = UNITS / 2 + 64;
    int result = sy_vmem_xalloc(arena, it->size, &with, fit, value);
    if (result != 0) return result;
    bool good = *value % with.align == 0 && *value / 64 == (*value + it->size - 1) / 64;
    good = good && *value >= with.min && (!with.max || *value + it->size <= with.max);
    stress_expect(good, "constraints are kept");
    return 0;
}

/* Size 0: there is no room just now. */
static segment take(unsigned kind, uint32_t owner, uint64_t *random) {
    segment it = {.kind = kind, .size = 1 + (uint32_t)stress_below(random, SIZE_MOST)};
    uintptr_t value;
    if (allocate(&it, &value, random) != 0) {
        stress_expect(errno == ENOMEM, "no room is ENOMEM");
        return (segment){0};
    }
    stress_expect(value + it.size <= UNITS, "what is allocated was the arena's");
    it.value = (uint32_t)value;
    mark(kind, it.value, it.size, owner);
    return it;
}

static void give(segment it, uint64_t *random) {
    unmark(it.kind, it.value, it.size);
    int result = stress_below(random, 4) ? sy_vmem_free(arenas[it.kind], it.value, it.size)
                                         : sy_vmem_xfree(arenas[it.kind], it.value, it.size);
    stress_expect(result == 0, "a free does not fail");
}

/* What is cut off is unmarked before, what is added is marked after. */
static void resize(segment *it, uint32_t owner, uint64_t *random) {
    uint32_t size = 1 + (uint32_t)stress_below(random, SIZE_MOST);
    if (size < it->size) unmark(it->kind, it->value + size, it->size - size);
    int result = sy_vmem_resize(arenas[it->kind], it->value, it->size, size);
    if (size < it->size) {
        stress_expect(result == 0, "shrinking does not fail");
    } else if (result == 0) {
        mark(it->kind, it->value + it->size, size - it->size, owner);
    } else {
        stress_expect(errno == ENOMEM, "no room is ENOMEM");
        return;
    }
    it->size = size;
}

/* Leaves a segment for any thread, and takes over the one that was there. */
static void pass(segment *it, uint64_t *random) {
    uint64_t other = atomic_exchange(&slots[stress_below(random, SLOTS)], pack(*it));
    *it = other ? unpack(other) : (segment){0};
}

static void disturb(uint64_t *random) {
    switch (stress_below(random, 200)) {
    case 0: sy_vmem_drain(arenas[stress_below(random, KINDS)]); break;
    case 1: sy_thread_idle(); break;
    case 2: sy_thread_flush(); break;
    case 3: sy_trim(); break;
    default: break;
    }
}

typedef struct worker {
    pthread_t thread;
    uint64_t random;
    uint32_t number;
} worker;

static void *work(void *argument) {
    worker *self = argument;
    uint64_t *random = &self->random, count = 0;
    segment held[HELD_MAX] = {{0}};
    for (; !over; count++) {
        segment *it = &held[stress_below(random, HELD_MAX)];
        size_t choice = stress_below(random, 8);
        if (!it->size)
            *it = take((unsigned)stress_below(random, KINDS), self->number, random);
        else if (choice == 0)
            resize(it, self->number, random);
        else if (choice < 3)
            pass(it, random);
        else {
            give(*it, random);
            it->size = 0;
        }
        disturb(random);
    }
    for (size_t i = 0; i < HELD_MAX; i++)
        if (held[i].size) give(held[i], random);
    atomic_fetch_add(&operations, count);
    return NULL;
}

/* ---- looking ---- */

typedef struct view {
    uintptr_t span_end, end; /* of the span, of what was seen */
    size_t units;
} view;

/* Spans in order, segments covering each, nothing twice. */
static int look_at(void *arg, unsigned what, uintptr_t start, size_t size) {
    view *seen = arg;
    stress_expect(size > 0 && start + size <= UNITS, "a walk shows what there is");
    if (what == SY_VMEM_SPANS) {
        stress_expect(seen->end == seen->span_end && start >= seen->end, "spans are in order");
        seen->end = start;
        seen->span_end = start + size;
        return 0;
    }
    stress_expect(start == seen->end && start + size <= seen->span_end, "segments cover a span");
    seen->end = start + size;
    seen->units += size;
    return 0;
}

static void look(sy_vmem *arena) {
    bool has_own = arena == arenas[PLAIN] || arena == arenas[CACHED] || arena == source;
    static const unsigned all = SY_VMEM_SPANS | SY_VMEM_ALLOCATED | SY_VMEM_FREE;
    sy_vmem_stats stats;
    view seen = {0};
    stress_expect(sy_vmem_each(arena, all, look_at, &seen) == 0, "a walk ends");
    stress_expect(seen.end == seen.span_end && seen.units <= UNITS, "and has seen all");
    stress_expect(!has_own || seen.units == UNITS, "nothing of an arena's own goes away");
    stress_expect(sy_vmem_get_stats(arena, &stats) == 0, "an arena has statistics");
    stress_expect(stats.total == stats.allocated + stats.cached + stats.free, "that add up");
    stress_expect(stats.imports - stats.releases == stats.imported_spans, "imports, too");
    stress_expect(sy_vmem_size(arena, SY_VMEM_FREE) <= UNITS, "no more is free than there is");
    stress_expect(sy_vmem_size(arena, SY_VMEM_ALLOCATED) <= UNITS, "nor in use");
    stress_expect(!sy_vmem_contains(arena, UNITS - 1, 2), "nor contained");
    stress_expect(sy_vmem_verify(arena) == 0, "an arena is sound");
}

static void *look_around(void *argument) {
    (void)argument;
    while (!over) {
        for (unsigned kind = 0; kind < KINDS; kind++) look(arenas[kind]);
        look(source);
    }
    return NULL;
}

/* ---- children ---- */

static _Noreturn void be_child(segment *held, uint64_t random) {
    static segment more[CHILD_SEGMENTS];
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    for (unsigned kind = 0; kind < KINDS; kind++) look(arenas[kind]);
    for (size_t i = 0; i < CHILD_SEGMENTS; i++) more[i] = take(i % KINDS, THREADS + 2, &random);
    for (size_t i = 0; i < HELD_BY_MAIN; i++)
        if (held[i].size) give(held[i], &random);
    for (size_t i = 0; i < CHILD_SEGMENTS; i++)
        if (more[i].size) give(more[i], &random);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        sy_vmem_drain(arenas[kind]);
        look(arenas[kind]);
    }
    _exit(0);
}

static void fork_once(uint64_t *random) {
    if (!has_all(SY_OS_FORKS)) return;
    segment held[HELD_BY_MAIN];
    for (size_t i = 0; i < HELD_BY_MAIN; i++) held[i] = take(i % KINDS, THREADS + 1, random);
    uint64_t seed = stress_random(random);
    pid_t child = fork();
    stress_expect(child >= 0, "a process forks");
    if (child == 0) be_child(held, seed);
    for (size_t i = 0; i < HELD_BY_MAIN; i++)
        if (held[i].size) give(held[i], random);
    int status;
    while (waitpid(child, &status, 0) < 0) stress_expect(errno == EINTR, "a child is waited for");
    stress_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
    forks++;
}

/* ---- rounds ---- */

static void empty_slots(uint64_t *random) {
    for (size_t i = 0; i < SLOTS; i++) {
        uint64_t word = atomic_exchange(&slots[i], 0);
        if (word) give(unpack(word), random);
    }
}

static void end_all(void) {
    for (unsigned kind = 0; kind < KINDS; kind++) {
        sy_vmem_drain(arenas[kind]);
        look(arenas[kind]);
        stress_expect(sy_vmem_size(arenas[kind], SY_VMEM_ALLOCATED) == 0, "nothing is lost");
        stress_expect(sy_vmem_destroy(arenas[kind]) == 0, "nor in use");
        for (size_t unit = 0; unit < UNITS; unit++)
            stress_expect(owners[kind][unit] == 0, "nor anybody's");
    }
    for (size_t block = 0; block < BLOCKS; block++)
        stress_expect(!taken[block], "every import is released");
    stress_expect(sy_vmem_destroy(source) == 0, "and the source has all that it gave");
}

static void run_round(uint64_t *random, double seconds) {
    worker workers[THREADS];
    pthread_t watcher;
    double end = stress_now() + seconds;
    create_all();
    over = false;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.random = stress_random(random), .number = i + 1};
        stress_expect(!pthread_create(&workers[i].thread, NULL, work, &workers[i]), "it starts");
    }
    stress_expect(pthread_create(&watcher, NULL, look_around, NULL) == 0, "a thread starts");
    do {
        fork_once(random);
        stress_verify();
    } while (stress_now() < end);
    over = true;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    pthread_join(watcher, NULL);
    empty_slots(random);
    end_all();
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    double end = stress_now() + run.seconds;
    do run_round(&random, ROUND_SECONDS);
    while (stress_now() < end);
    stress_verify();
    printf("stress: %llu operations, %llu forks from seed %llu\n", (unsigned long long)operations,
           (unsigned long long)forks, (unsigned long long)run.seed);
    return 0;
}
