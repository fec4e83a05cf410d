/*
 * stress_heaps.c: threads share heaps with limits, by address and by handle. The thread that uses a
 * heap last destroys it, with its live objects, and makes it again. Meanwhile other threads use
 * other heaps and trim all of them, and the process forks.
 *
 * Handles lie in a table of their heap, where any thread looks objects up, replaces and frees them.
 * The handles of a destroyed heap stay in the table, and must be stale. The callback for a limit
 * frees the objects in the table of that heap.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "heap/instance.h"
#include "stress/forks.h"
#include "support/services.h"

enum {
    THREADS = 6,
    PLACES = 4,  /* heaps */
    TABLE = 200, /* handles in a heap's table */
    OWN = 30,    /* objects by address that a thread has in a heap at a time */
    LEAST = 24,  /* bytes of an object */
    CHILD_SECONDS = 60,
};

static const size_t HEAP_HARD = 3 << 20, PROCESS_HARD = 9 << 20;

static struct place {
    pthread_mutex_t lock; /* guards `users`, and `heap` changes under it while there are none */
    _Atomic(sy_heap *) heap;
    unsigned users;
    _Atomic(sy_handle) table[TABLE];
} places[PLACES];

static _Atomic bool over;
static _Atomic uint64_t operations, made, told, refused, forks;

/* ---- objects: what they are is written in them before anyone else knows of them ---- */

typedef struct object {
    sy_handle handle; /* or the address */
    size_t size;
} object;

static void fill(object *it, sy_handle handle, size_t size) {
    *it = (object){handle, size};
    stress_fill(it + 1, size - sizeof *it, handle);
}

static void check(const object *it, sy_handle handle) {
    stress_expect(it->handle == handle, "an object is the one that was asked for");
    stress_check(it + 1, it->size - sizeof *it, handle);
}

static size_t random_size(uint64_t *random) {
    static const size_t most[] = {100, 100, 100, 2000, 2000, 20000, 300000};
    return LEAST + stress_below(random, most[stress_below(random, sizeof most / sizeof *most)]);
}

static bool had(const void *it) {
    if (it) return true;
    sy_refusal reason = sy_last_refusal();
    stress_expect(errno == ENOMEM, "a refusal is said");
    stress_expect(reason == SY_REFUSAL_HEAP_LIMIT || reason == SY_REFUSAL_PROCESS_LIMIT,
                  "and it was a limit");
    atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    return false;
}

/* ---- heaps come and go ---- */

static void free_some(void *arg, size_t used, size_t soft) {
    struct place *place = arg;
    stress_expect(used <= HEAP_HARD && soft == HEAP_HARD / 2, "the limit is the heap's");
    sy_heap *heap = atomic_load(&place->heap);
    for (size_t i = 0; i < TABLE; i += 1 + used % 3) {
        sy_handle handle = atomic_exchange(&place->table[i], 0);
        if (handle) sy_heap_free_handle(heap, handle);
    }
    atomic_fetch_add_explicit(&told, 1, memory_order_relaxed);
}

static void use_a_little(void *arg, size_t used, size_t soft) {
    (void)arg;
    (void)soft;
    stress_expect(used <= PROCESS_HARD, "the limit is the process's");
    sy_free(sy_malloc(1000));
}

static sy_heap *make_heap(struct place *place) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){
        .name = "shared",
        .flags = SY_HANDLES,
        .limit = {.hard = HEAP_HARD, .soft = HEAP_HARD / 2, .callback = free_some, .arg = place}});
    stress_expect(heap != NULL, "a heap is made");
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    return heap;
}

static sy_heap *enter(struct place *place) {
    pthread_mutex_lock(&place->lock);
    place->users++;
    sy_heap *heap = atomic_load(&place->heap);
    pthread_mutex_unlock(&place->lock);
    return heap;
}

/* Sometimes the last user of a heap replaces it. */
static void leave(struct place *place, uint64_t *random) {
    sy_heap *next = stress_below(random, 8) ? NULL : make_heap(place), *gone = NULL;
    pthread_mutex_lock(&place->lock);
    if (--place->users == 0 && next) {
        gone = atomic_exchange(&place->heap, next);
        next = NULL;
    }
    pthread_mutex_unlock(&place->lock);
    sy_heap_destroy_all(gone);
    stress_expect(sy_heap_destroy(next) == 0, "a heap that nobody used is destroyed");
}

/* ---- what threads do in a heap ---- */

static void replace(struct place *place, sy_heap *heap, uint64_t *random) {
    _Atomic(sy_handle) *entry = &place->table[stress_below(random, TABLE)];
    size_t size = random_size(random);
    sy_handle handle = 0;
    object *it = sy_heap_alloc_handle(heap, size, &handle);
    if (had(it)) fill(it, handle, size);
    handle = atomic_exchange(entry, handle);
    if (handle && sy_heap_free_handle(heap, handle))
        stress_expect(!sy_heap_free_handle(heap, handle), "a handle is freed once");
    stress_expect(!sy_heap_get(heap, handle), "and is stale then");
}

static void look_up(struct place *place, sy_heap *heap, uint64_t *random) {
    sy_handle handle = atomic_load(&place->table[stress_below(random, TABLE)]);
    object *it = sy_heap_pin(heap, handle);
    if (!it) return;
    check(it, handle);
    stress_expect(sy_handle_of((char *)it + 1) == 0, "no object begins in it");
    check(it, handle);
    sy_heap_unpin(heap, handle);
}

/* Some are left for the thread that destroys the heap. */
static void use_addresses(sy_heap *heap, uint64_t *random) {
    object *own[OWN];
    size_t count = stress_below(random, OWN);
    for (size_t i = 0; i < count; i++) {
        size_t size = random_size(random);
        own[i] = sy_heap_alloc(heap, size);
        if (had(own[i])) fill(own[i], (uintptr_t)own[i], size);
    }
    for (size_t i = 0; i < count; i++) {
        if (!own[i]) continue;
        check(own[i], (uintptr_t)own[i]);
        if (stress_below(random, 64) == 0) continue;
        size_t size = own[i]->size;
        stress_expect(sy_heap_usable_size(heap, own[i]) >= size, "an object has its size");
        stress_below(random, 2) ? sy_heap_free(heap, own[i])
                                : sy_heap_free_sized(heap, own[i], size);
    }
}

static void disturb(sy_heap *heap, uint64_t *random) {
    sy_heap_stats stats;
    switch (stress_below(random, 64)) {
    case 0: sy_trim(); break;
    case 1: sy_heap_trim(heap); break;
    case 2: sy_thread_idle(); break;
    case 3: sy_thread_flush(); break;
    case 4:
        stress_expect(sy_heap_get_stats(heap, &stats) == 0, "a heap has statistics");
        stress_expect(stats.used <= HEAP_HARD, "its limit is kept");
        stress_expect(sy_limit_used() <= PROCESS_HARD, "and that of the process");
        break;
    default: break;
    }
}

static void visit_a_heap(uint64_t *random) {
    struct place *place = &places[stress_below(random, PLACES)];
    sy_heap *heap = enter(place);
    for (size_t i = stress_below(random, 40); i > 0; i--) {
        replace(place, heap, random);
        look_up(place, heap, random);
        look_up(place, heap, random);
    }
    use_addresses(heap, random);
    disturb(heap, random);
    leave(place, random);
    atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static void *work(void *argument) {
    uint64_t random = *(uint64_t *)argument;
    while (!over) visit_a_heap(&random);
    return NULL;
}

/* ---- children ---- */

/* The memory that counts for a heap is that of its caches, whatever other threads did. */
static void expect_counted(const sy_heap *heap) {
    sy_heap_stats stats;
    size_t used = 0;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        stress_expect(sy_cache_verify(cache) == 0, "a cache is sound");
        used += sy_cache_slab_bytes(cache);
    }
    stress_expect(sy_heap_get_stats(heap, &stats) == 0, "a heap has statistics");
    stress_expect(stats.used == used, "what counts is what is there");
}

static _Noreturn void be_child(uint64_t *random) {
    sy_stats stats;
    alarm(CHILD_SECONDS); /* a child that waits for a lost lock is a failure */
    for (int i = 0; i < PLACES; i++) {
        sy_heap *heap = atomic_load(&places[i].heap);
        expect_counted(heap);
        for (int j = 0; j < 20; j++) use_addresses(heap, random);
        expect_counted(heap);
    }
    sy_get_stats(&stats);
    stress_expect(sy_limit_used() == stats.slabs + stats.spans, "all that is held counts");
    for (int i = 0; i < PLACES; i++) sy_heap_destroy_all(atomic_load(&places[i].heap));
    stress_verify();
    _exit(0);
}

static void fork_once(uint64_t *random) {
    if (!has_all(SY_OS_FORKS)) return;
    pid_t child = fork();
    if (child == 0) be_child(random);
    visit_a_heap(random);
    stress_await_child(child);
    forks++;
}

static void begin(void) {
    const sy_limit limit = {
        .hard = PROCESS_HARD, .soft = PROCESS_HARD / 4 * 3, .callback = use_a_little};
    stress_expect(sy_set_limit(&limit) == 0, "a limit is set");
    for (int i = 0; i < PLACES; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
        atomic_store(&places[i].heap, make_heap(&places[i]));
    }
}

static void end(void) {
    sy_stats stats;
    stress_verify();
    for (int i = 0; i < PLACES; i++) {
        expect_counted(atomic_load(&places[i].heap));
        sy_heap_destroy_all(atomic_load(&places[i].heap));
    }
    sy_trim();
    sy_get_stats(&stats);
    stress_expect(stats.mapped == 0 && sy_limit_used() == 0, "nothing is left of them");
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed, seeds[THREADS];
    pthread_t threads[THREADS];
    struct timespec pause = {0, 20000000};
    double finish = stress_now() + run.seconds;
    begin();
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    while (stress_now() < finish) {
        nanosleep(&pause, NULL);
        stress_verify();
        fork_once(&random);
    }
    over = true;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    end();
    stress_expect(told > 0 && refused > 0, "limits were reached");
    printf("stress: %llu heaps, %llu visits, %llu refusals, %llu told, %llu forks from seed %llu\n",
           (unsigned long long)made, (unsigned long long)operations, (unsigned long long)refused,
           (unsigned long long)told, (unsigned long long)forks, (unsigned long long)run.seed);
    return 0;
}
