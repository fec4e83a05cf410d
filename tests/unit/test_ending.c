/*
 * test_ending.c: callbacks (constructors, destructors and so on) destroy caches, heaps and arenas.
 * The destruction is done at once, is refused, or is done when the callback has returned. No thread
 * waits for itself.
 *
 * Each case is a process of its own. An alarm ends it if it hangs.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/epoch.h>
#include <slabyard/fault.h>
#include <slabyard/handle.h>
#include <slabyard/heaps.h>
#include <slabyard/limit.h>
#include <slabyard/memory.h>
#include <slabyard/stats.h>
#include <slabyard/vmem.h>

#include "support/child.h"
#include "support/services.h"

enum { COUNT = 2000, SIZE = 1000, HANG_SECONDS = 60 };

/* Counts. A cache that will be destroyed later does not count, but its slabs do. */
typedef struct sy_census {
    size_t caches, used;
} sy_census;

static sy_census census(void) {
    sy_stats stats;
    sy_memory_stats memory;
    sy_get_stats(&stats);
    sy_memory_get_stats(NULL, &memory);
    return (sy_census){.caches = stats.caches, .used = memory.used};
}

static bool is_as(sy_census before) {
    sy_census now = census();
    return now.caches == before.caches && now.used == before.used;
}

/* ---- a cache that one of its callbacks destroys ---- */

typedef enum sy_way { UNUSED_ONLY, ALL } sy_way;

static sy_cache *ending;
static sy_way way;
static sy_epoch *closing; /* closed instead of the cache, unless NULL */
static atomic_uint asked, constructed, destructed;

static void destroy(void) {
    if (atomic_fetch_add(&asked, 1) > 0) return;
    if (closing)
        sy_epoch_close(closing);
    else if (way == ALL)
        sy_cache_destroy_all(ending);
    else
        must(sy_cache_destroy(ending) == 0);
}

static int construct(void *object, void *arg) {
    (void)arg;
    memset(object, 0x5a, SIZE);
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    must(*(unsigned char *)object == 0x5a);
    destructed++;
    destroy();
}

static void make(unsigned flags) {
    ending = sy_cache_create(&(sy_cache_config){.name = "ending",
                                                .size = SIZE,
                                                .construct = construct,
                                                .destruct = destruct,
                                                .flags = flags});
    must(ending != NULL);
}

static void *objects[COUNT];

static void take_all(void) {
    for (int i = 0; i < COUNT; i++) must((objects[i] = sy_cache_alloc(ending)) != NULL);
}

static void use(void) {
    take_all();
    for (int i = 0; i < COUNT; i++) sy_cache_free(ending, objects[i]);
    asked = 0; /* the flushes of these frees tried, and found live objects */
}

static void trims_cache(void) { sy_cache_trim(ending); }
static void trims_all(void) { sy_trim(); }
static void trims_some(void) {
    while (sy_trim_some(1 << 20, 1000000000)) {}
}
static void flushes(void) { sy_thread_flush(); }

static void frees(void) {
    take_all();
    asked = 0;
    for (int i = 0; i < COUNT && !asked; i++) sy_cache_free(ending, objects[i]);
    must(asked);
}

static void is_limited(void) {
    must(sy_set_limit(&(sy_limit){.hard = sy_limit_used() + (1 << 20)}) == 0);
    sy_cache *other = sy_cache_create(&(sy_cache_config){.size = 4096});
    void *object, *last = NULL;
    while ((object = sy_cache_alloc(other)) != NULL) {
        *(void **)object = last;
        last = object;
    }
    must(sy_set_limit(NULL) == 0);
    sy_cache_destroy_all(other);
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void is_maintained(void) {
    sy_thread_idle();
    sy_set_decay(1);
    must(sy_maintenance_start() == 0);
    while (!asked) rest();
    sy_maintenance_stop();
}

typedef struct sy_case {
    void (*work)(void);
    sy_way way;
    unsigned flags;
    bool anew; /* the work allocates objects, and leaves some live */
} sy_case;

static void run(void *arg) {
    const sy_case *it = arg;
    alarm(HANG_SECONDS);
    sy_set_decay(0);
    sy_thread_flush();
    sy_census before = census();
    way = it->way;
    atomic_store(&asked, 1);
    make(it->flags);
    if (!it->anew) use();
    it->work();
    must(asked > 0);
    if (it->anew && way == UNUSED_ONLY) {
        must(census().caches == before.caches + 1); /* the cache has live objects, so it stays */
        sy_cache_destroy_all(ending);
    }
    must(is_as(before));
    must(constructed == destructed);
    must(sy_verify() == 0);
}

static void each_way(void (*work)(void), unsigned flags, bool anew) {
    for (way = UNUSED_ONLY; way <= ALL; way++) {
        sy_case it = {.work = work, .way = way, .flags = flags, .anew = anew};
        assert_int_equal(in_child(run, &it), 0);
    }
}

static void in_a_trim_of_the_cache(void **state) {
    (void)state;
    each_way(trims_cache, 0, false);
    each_way(trims_cache, SY_EPOCHS, false);
    each_way(trims_cache, SY_HANDLES, false);
}

static void in_a_trim_of_everything(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    each_way(trims_all, 0, false);
    each_way(trims_some, 0, false);
    each_way(is_maintained, 0, false);
}

static void flushes_and_trims(void) {
    flushes();
    if (!asked) trims_all();
}

static void in_a_flush(void **state) {
    (void)state;
    each_way(flushes_and_trims, 0, false);
    each_way(frees, 0, true);
    each_way(frees, SY_EPOCHS, true);
    each_way(frees, SY_CHECKED, true);
}

/* If a cache checks its objects, the free of a handle calls the destructor. */
static void frees_handle(void) {
    sy_handle handle, other;
    must(sy_handle_alloc(ending, &handle) != NULL && sy_handle_alloc(ending, &other) != NULL);
    asked = 0;
    must(sy_handle_free(ending, handle));
    must(asked);
}

static void in_a_free_of_a_handle(void **state) {
    (void)state;
    each_way(frees_handle, SY_HANDLES | SY_POISON, true);
    each_way(frees_handle, SY_HANDLES | SY_POISON | SY_QUARANTINE, true);
}

static void where_another_cache_meets_a_limit(void **state) {
    (void)state;
    each_way(is_limited, 0, false);
}

static void destroys(void) { must(sy_cache_destroy(ending) == 0); }

static void in_its_own_end(void **state) {
    (void)state;
    each_way(destroys, 0, false);
}

/* ---- other callbacks ---- */

static int construct_and_destroy(void *object, void *arg) {
    construct(object, arg);
    destroy();
    return 0;
}

static void destruct_alone(void *object, void *arg) {
    (void)object;
    (void)arg;
    destructed++;
}

static void constructs(void *arg) {
    alarm(HANG_SECONDS);
    way = *(sy_way *)arg;
    sy_census before = census();
    ending = sy_cache_create(&(sy_cache_config){
        .size = SIZE, .construct = construct_and_destroy, .destruct = destruct_alone});
    void *object = sy_cache_alloc(ending);
    if (way == UNUSED_ONLY) {
        must(object && census().caches == before.caches + 1); /* it is live */
        sy_cache_free(ending, object);
        must(sy_cache_destroy(ending) == 0);
    }
    must(is_as(before) && asked > 0 && constructed == destructed);
}

static void in_a_constructor(void **state) {
    (void)state;
    for (sy_way it = UNUSED_ONLY; it <= ALL; it++) assert_int_equal(in_child(constructs, &it), 0);
}

static void dispose(void *object, void *arg) {
    (void)object;
    (void)arg;
    destroy();
}

static void disposes(void *arg) {
    alarm(HANG_SECONDS);
    way = *(sy_way *)arg;
    sy_census before = census();
    ending =
        sy_cache_create(&(sy_cache_config){.size = SIZE, .flags = SY_HANDLES, .dispose = dispose});
    sy_handle handle;
    must(sy_handle_alloc(ending, &handle) != NULL);
    must(sy_handle_free(ending, handle));
    must(asked == 1 && is_as(before) && sy_verify() == 0);
}

static void in_a_dispose(void **state) {
    (void)state;
    for (sy_way it = UNUSED_ONLY; it <= ALL; it++) assert_int_equal(in_child(disposes, &it), 0);
}

static void at_limit(void *arg, size_t used, size_t soft) {
    (void)arg;
    (void)used;
    (void)soft;
    destroy();
}

static void meets_soft_limit(void *arg) {
    alarm(HANG_SECONDS);
    way = *(sy_way *)arg;
    sy_census before = census();
    ending = sy_cache_create(&(sy_cache_config){.size = SIZE});
    must(sy_set_limit(&(sy_limit){.soft = sy_limit_used() + 1, .callback = at_limit}) == 0);
    void *object = sy_cache_alloc(ending);
    must(asked == 1);
    if (way == UNUSED_ONLY) {
        sy_cache_free(ending, object);
        must(sy_cache_destroy(ending) == 0);
    }
    must(is_as(before) && sy_verify() == 0);
}

static void at_a_soft_limit(void **state) {
    (void)state;
    for (sy_way it = UNUSED_ONLY; it <= ALL; it++)
        assert_int_equal(in_child(meets_soft_limit, &it), 0);
}

static void on_fault(const sy_fault *fault) {
    must(fault->kind == SY_FAULT_DOUBLE_FREE);
    destroy();
}

static void frees_twice(void *arg) {
    alarm(HANG_SECONDS);
    way = *(sy_way *)arg;
    sy_census before = census();
    ending = sy_cache_create(&(sy_cache_config){.size = SIZE, .flags = SY_CHECKED});
    sy_set_fault_handler(on_fault);
    void *object = sy_cache_alloc(ending);
    sy_cache_free(ending, object);
    sy_cache_free(ending, object);
    must(asked == 1 && is_as(before) && sy_verify() == 0);
}

static void in_a_handler_of_faults(void **state) {
    (void)state;
    for (sy_way it = UNUSED_ONLY; it <= ALL; it++) assert_int_equal(in_child(frees_twice, &it), 0);
}

/* ---- two threads, each in a destructor of the cache that the other destroys ---- */

static sy_cache *of_thread[2];
static pthread_barrier_t both;
static _Thread_local bool met;

static void destroy_the_others(void *object, void *arg) {
    (void)object;
    if (met) return;
    met = true;
    pthread_barrier_wait(&both);
    must(sy_cache_destroy(of_thread[1 - (uintptr_t)arg]) == 0);
}

static void *trim_own(void *arg) {
    sy_cache_trim(of_thread[(uintptr_t)arg]);
    return NULL;
}

static void trim_both(void *unused) {
    (void)unused;
    alarm(HANG_SECONDS);
    sy_census before = census();
    must(pthread_barrier_init(&both, NULL, 2) == 0);
    for (uintptr_t i = 0; i < 2; i++) {
        of_thread[i] = sy_cache_create(&(sy_cache_config){.size = SIZE,
                                                          .construct = construct,
                                                          .destruct = destroy_the_others,
                                                          .arg = (void *)i});
        sy_cache_free(of_thread[i], sy_cache_alloc(of_thread[i]));
    }
    sy_thread_idle();
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, trim_own, (void *)i) == 0);
    for (int i = 0; i < 2; i++) must(pthread_join(threads[i], NULL) == 0);
    must(is_as(before) && sy_verify() == 0);
}

static void two_threads_end_each_others(void **state) {
    (void)state;
    assert_int_equal(in_child(trim_both, NULL), 0);
}

/* ---- epochs and the maintenance thread ---- */

static void closes_epoch(void *unused) {
    (void)unused;
    alarm(HANG_SECONDS);
    atomic_store(&asked, 1);
    make(SY_EPOCHS);
    closing = sy_epoch_create("closing");
    must(sy_epoch_begin(closing) == 0);
    take_all();
    must(sy_epoch_end(closing) == 0);
    for (int i = 0; i < COUNT; i++) sy_cache_free(ending, objects[i]);
    use();
    sy_cache_trim(ending);
    must(asked > 0);
    must(sy_cache_destroy(ending) == 0 && constructed == destructed && sy_verify() == 0);
}

static void an_epoch_is_closed_in_a_trim(void **state) {
    (void)state;
    assert_int_equal(in_child(closes_epoch, NULL), 0);
}

static atomic_bool stopped;

static void stop(void *object, void *arg) {
    (void)object;
    (void)arg;
    sy_maintenance_stop();
    must(sy_maintenance_start() == 0);
    sy_maintenance_stop();
    stopped = true;
}

static void stops_maintenance(void *unused) {
    (void)unused;
    alarm(HANG_SECONDS);
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.size = SIZE, .construct = construct, .destruct = stop});
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_thread_idle();
    sy_set_decay(1);
    must(sy_maintenance_start() == 0);
    while (!stopped) rest();
    sy_maintenance_stop();
    must(sy_maintenance_start() == 0);
    sy_maintenance_stop();
    must(sy_cache_destroy(cache) == 0);
}

static void maintenance_is_stopped_by_itself(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(in_child(stops_maintenance, NULL), 0);
}

/* ---- memories, heaps and arenas ---- */

static const size_t REGION = 16 << 20;
static sy_memory *memory;
static sy_heap *heap;

static int discard(void *arg, void *start, size_t bytes) {
    (void)arg;
    if (asked++ > 0) return 0;
    memset(start, 0, bytes);
    errno = 0;
    must(sy_memory_destroy(memory) == -1 && errno == EBUSY);
    errno = 0;
    must(sy_heap_destroy(heap) == -1 && errno == EBUSY);
    if (way == ALL) sy_heap_destroy_all(heap);
    errno = 0;
    must(sy_memory_destroy(memory) == -1 && errno == EBUSY);
    return 0;
}

static void trims_heap(void) { sy_heap_trim(heap); }

static void discards(void *arg) {
    const sy_case *it = arg;
    alarm(HANG_SECONDS);
    way = it->way;
    sy_set_decay(0);
    char *region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(region != MAP_FAILED);
    memory =
        sy_memory_create(&(sy_memory_config){.start = region, .bytes = REGION, .discard = discard});
    sy_census before = census();
    heap = sy_heap_create(&(sy_heap_config){.name = "ending", .memory = memory});
    for (int i = 0; i < COUNT; i++) must((objects[i] = sy_heap_alloc(heap, SIZE + (size_t)i)));
    for (int i = 0; i < COUNT; i++) sy_heap_free(heap, objects[i]);
    it->work();
    must(asked > 0);
    if (way == UNUSED_ONLY) must(sy_heap_destroy(heap) == 0);
    must(is_as(before));
    must(sy_memory_destroy(memory) == 0 && sy_verify() == 0);
}

static void a_heap_in_a_discard(void **state) {
    (void)state;
    void (*const works[])(void) = {trims_heap, trims_all, trims_some};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        for (sy_way each = UNUSED_ONLY; each <= ALL; each++) {
            sy_case it = {.work = works[i], .way = each};
            assert_int_equal(in_child(discards, &it), 0);
        }
    }
}

static sy_vmem *arena;
static unsigned imports, releases;

static void must_be_busy(void) {
    errno = 0;
    must(sy_vmem_destroy(arena) == -1 && errno == EBUSY);
}

static int import(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    (void)source;
    (void)arg;
    imports++;
    *start = 1 << 20;
    *got = size;
    must_be_busy();
    return 0;
}

static void release(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    (void)source;
    (void)arg;
    (void)start;
    (void)size;
    releases++;
    if (releases == 1) must_be_busy();
}

static void imports_and_releases(void *unused) {
    (void)unused;
    alarm(HANG_SECONDS);
    arena = sy_vmem_create(
        &(sy_vmem_config){.quantum = 16, .cached_max = 64, .import = import, .release = release});
    uintptr_t start;
    must(sy_vmem_alloc(arena, 32, SY_VMEM_INSTANT, &start) == 0);
    sy_vmem_free(arena, start, 32);
    sy_thread_idle();
    while (sy_trim_some(SIZE_MAX, 1000000000)) {}
    must(imports > 0);
    sy_vmem_drain(arena);
    must(releases > 0);
    must(sy_vmem_destroy(arena) == 0);
}

static void an_arena_in_its_import_and_release(void **state) {
    (void)state;
    assert_int_equal(in_child(imports_and_releases, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_trim_of_the_cache),
        cmocka_unit_test(in_a_trim_of_everything),
        cmocka_unit_test(in_a_flush),
        cmocka_unit_test(in_a_free_of_a_handle),
        cmocka_unit_test(where_another_cache_meets_a_limit),
        cmocka_unit_test(in_its_own_end),
        cmocka_unit_test(in_a_constructor),
        cmocka_unit_test(in_a_dispose),
        cmocka_unit_test(at_a_soft_limit),
        cmocka_unit_test(in_a_handler_of_faults),
        cmocka_unit_test(two_threads_end_each_others),
        cmocka_unit_test(an_epoch_is_closed_in_a_trim),
        cmocka_unit_test(maintenance_is_stopped_by_itself),
        cmocka_unit_test(a_heap_in_a_discard),
        cmocka_unit_test(an_arena_in_its_import_and_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
