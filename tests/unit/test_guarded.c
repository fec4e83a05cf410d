/*
 * test_guarded.c: caches and heaps with SY_GUARD: what the functions make of objects that lie in no
 * slab. Each test is a child, which has a region of guarded objects of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "debug/guard.h"
#include "debug/options.h"
#include "os/start.h"
#include "support/child.h"
#include "support/services.h"

static sy_fault last;
static unsigned faults;

static void note_fault(const sy_fault *fault) {
    last = *fault;
    faults++;
}

static sy_fault_kind take_fault(void) {
    must(faults <= 1);
    bool any = faults;
    faults = 0;
    return any ? last.kind : 0;
}

static void begin(uint32_t every) {
    must(sy_start() == 0);
    atomic_store(&sy_options_now.guard_every, every);
    sy_set_fault_handler(note_fault);
}

#define RUN(name)                                         \
    static void name(void **state) {                      \
        needs(SY_OS_GUARDS);                              \
        (void)state;                                      \
        assert_int_equal(in_child(name##_here, NULL), 0); \
    }

static sy_cache *make(sy_cache_config config) {
    config.flags |= SY_GUARD;
    if (!config.name) config.name = "guarded";
    if (!config.size) config.size = 64;
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

static bool lies_there(const void *object) { return sy_guard_owns((uintptr_t)object); }

static sy_cache_stats stats_of(sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    must(stats.slots + stats.guarded == stats.in_use + stats.in_depot + stats.in_loaded +
                                            stats.in_quarantine + stats.free + stats.retired);
    must(stats.in_use == sy_cache_in_use(cache));
    must(stats.guarded == sy_guard_live(cache->watch));
    must(sy_cache_verify(cache) == 0 && sy_guard_verify() == 0);
    return stats;
}

/* ---- caches ---- */

static void all_are_counted_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make((sy_cache_config){0});
    void *objects[50];
    for (size_t i = 0; i < 50; i++) {
        objects[i] = sy_cache_alloc(cache);
        must(lies_there(objects[i]) && stats_of(cache).guarded == i + 1);
    }
    must(stats_of(cache).in_use == 50);
    errno = 0;
    must(sy_cache_destroy(cache) == -1 && errno == EBUSY);
    for (size_t i = 0; i < 50; i++) sy_cache_free(cache, objects[i]);
    must(stats_of(cache).in_use == 0 && take_fault() == 0);
    must(sy_cache_destroy(cache) == 0);
}
RUN(all_are_counted)

/* Those that find no room are as ever. */
static void without_room_they_lie_in_slabs_here(void *arg) {
    (void)arg;
    begin(2);
    atomic_store(&sy_options_now.guard_slots, 4);
    sy_cache *cache = make((sy_cache_config){0});
    void *objects[500];
    for (size_t i = 0; i < 500; i++) objects[i] = sy_cache_alloc(cache);
    must(stats_of(cache).guarded == 4 && stats_of(cache).in_use == 500);
    for (size_t i = 0; i < 500; i++) sy_cache_free(cache, objects[i]);
    must(stats_of(cache).in_use == 0 && sy_cache_destroy(cache) == 0);
}
RUN(without_room_they_lie_in_slabs)

/* The others are allocated inline, and freed by calls. */
static void one_in_so_many_is_guarded_here(void *arg) {
    (void)arg;
    begin(50);
    sy_cache *cache = make((sy_cache_config){0});
    size_t guarded = 0;
    for (size_t i = 0; i < 100000; i++) {
        void *object = sy_cache_alloc(cache);
        guarded += lies_there(object);
        sy_cache_free(cache, object);
    }
    must(guarded > 1700 && guarded < 2300); /* of 2,000: more than 6 standard deviations */
    must(sy_cache_loaded(cache)->limit == NULL);
    must(sy_cache_destroy(cache) == 0);
}
RUN(one_in_so_many_is_guarded)

static void all_functions_know_them_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make((sy_cache_config){0}), *other = make((sy_cache_config){.name = "other"});
    void *objects[10];
    char *object = sy_cache_zalloc(cache);
    must(lies_there(object) && object[0] == 0 && object[63] == 0);
    must(!sy_cache_try_free(other, object) && !sy_cache_try_free(cache, object + 8));
    must(sy_cache_try_free(cache, object) && !sy_cache_try_free(cache, object));
    must(sy_cache_alloc_batch(cache, objects, 10) == 10 && lies_there(objects[9]));
    sy_cache_free_batch(cache, objects, 10);
    must(take_fault() == 0 && sy_cache_destroy(cache) == 0 && sy_cache_destroy(other) == 0);
}
RUN(all_functions_know_them)

static void misuse_is_raised_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make((sy_cache_config){0}), *other = make((sy_cache_config){.name = "other"});
    sy_cache *plain = sy_cache_create(&(sy_cache_config){.name = "plain", .size = 64});
    char *object = sy_cache_alloc(cache);
    sy_cache_free(other, object);
    must(take_fault() == SY_FAULT_WRONG_CACHE && strcmp(last.found_cache, "guarded") == 0);
    sy_cache_free(plain, object); /* found when its magazine is flushed */
    sy_thread_flush();
    must(take_fault() == SY_FAULT_WRONG_CACHE && strcmp(last.found_cache, "guarded") == 0);
    must(strcmp(last.cache, "plain") == 0);
    sy_cache_free(cache, object + 1);
    must(take_fault() == SY_FAULT_MISALIGNED_POINTER);
    sy_free(object);
    must(take_fault() == SY_FAULT_WRONG_CACHE && strcmp(last.cache, "heap") == 0);
    sy_cache_free(cache, object);
    must(take_fault() == 0);
    sy_cache_free(cache, object);
    must(take_fault() == SY_FAULT_DOUBLE_FREE && last.freed.thread);
    must(stats_of(cache).in_use == 0);
}
RUN(misuse_is_raised)

static unsigned constructed, destructed;
static bool refuse;

static int construct(void *object, void *arg) {
    must(arg == &constructed);
    if (refuse) {
        errno = 77;
        return 1;
    }
    *(uint64_t *)object = 7;
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    must(arg == &constructed && *(uint64_t *)object == 7);
    destructed++;
}

static sy_cache *make_constructing(unsigned flags) {
    return make((sy_cache_config){
        .construct = construct, .destruct = destruct, .arg = &constructed, .flags = flags});
}

static void each_is_constructed_and_destructed_here(void *arg) {
    (void)arg;
    begin(1);
    static const unsigned kinds[] = {0, SY_CHECKED, SY_POISON};
    for (size_t kind = 0; kind < 3; kind++) {
        constructed = destructed = 0;
        sy_cache *cache = make_constructing(kinds[kind]);
        void *objects[3];
        for (size_t i = 0; i < 3; i++) {
            objects[i] = sy_cache_alloc(cache);
            must(lies_there(objects[i]) && *(uint64_t *)objects[i] == 7 && constructed == i + 1);
        }
        sy_cache_free(cache, objects[0]);
        must(destructed == 1);
        sy_cache_stats stats = stats_of(cache);
        must(stats.constructed == 3 && stats.destructed == 1);
        sy_cache_destroy_all(cache);
        must(constructed == 3 && destructed == 3 && take_fault() == 0);
        sy_cache_free(make((sy_cache_config){0}), objects[1]);
        must(take_fault() == SY_FAULT_FOREIGN_POINTER); /* belongs to no cache any more */
    }
}
RUN(each_is_constructed_and_destructed)

static void a_constructor_that_fails_fails_the_allocation_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make_constructing(0);
    refuse = true;
    errno = 0;
    must(!sy_cache_alloc(cache) && errno == 77);
    must(sy_last_refusal() == SY_REFUSAL_CONSTRUCTOR && stats_of(cache).in_use == 0);
    refuse = false;
    void *object = sy_cache_alloc(cache);
    must(lies_there(object));
    sy_cache_free(cache, object);
    must(sy_cache_destroy(cache) == 0);
}
RUN(a_constructor_that_fails_fails_the_allocation)

static void a_limit_counts_them_here(void *arg) {
    (void)arg;
    begin(2);
    static const unsigned kinds[] = {0, SY_LIMIT_EXACT, SY_CHECKED};
    for (size_t kind = 0; kind < 3; kind++) {
        sy_cache *cache = make((sy_cache_config){.limit = 20, .flags = kinds[kind]});
        void *objects[21];
        size_t count = 0;
        while (count < 21 && (objects[count] = sy_cache_alloc(cache)) != NULL) count++;
        must(count == 20 && stats_of(cache).guarded > 0);
        sy_cache_free(cache, objects[19]);
        must(sy_cache_alloc(cache) != NULL && !sy_cache_alloc(cache) && errno == ENOMEM);
        sy_cache_destroy_all(cache);
    }
}
RUN(a_limit_counts_them)

/* What has to lie elsewhere, or be found by its slab. */
static void some_caches_have_none_here(void *arg) {
    (void)arg;
    begin(1);
    static const unsigned flags[] = {SY_HANDLES, SY_NO_DUMP};
    for (size_t i = 0; i < 2; i++) {
        sy_cache *cache = make((sy_cache_config){.flags = flags[i]});
        void *object = sy_cache_alloc(cache);
        must(object && !lies_there(object));
        sy_cache_free(cache, object);
        must(sy_cache_destroy(cache) == 0);
    }
    static alignas(1 << 22) char region[16 << 20];
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.name = "own", .start = region, .bytes = sizeof region});
    if (memory) {
        sy_cache *cache = make((sy_cache_config){.memory = memory});
        must(!lies_there(sy_cache_alloc(cache)));
        sy_cache_destroy_all(cache);
    }
}
RUN(some_caches_have_none)

static void checked_ones_have_them_too_here(void *arg) {
    (void)arg;
    begin(3);
    sy_cache *cache = make((sy_cache_config){.flags = SY_REDZONE | SY_POISON | SY_QUARANTINE});
    void *objects[300];
    for (size_t i = 0; i < 300; i++) objects[i] = sy_cache_alloc(cache);
    size_t guarded = stats_of(cache).guarded;
    must(guarded > 50 && guarded < 150);
    for (size_t i = 0; i < 300; i++) sy_cache_free(cache, objects[i]);
    must(stats_of(cache).in_use == 0 && take_fault() == 0);
    must(sy_cache_destroy(cache) == 0);
}
RUN(checked_ones_have_them_too)

static void epochs_have_them_here(void *arg) {
    (void)arg;
    begin(5);
    sy_cache *cache = make((sy_cache_config){.flags = SY_EPOCHS});
    static void *objects[3000];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3000; i++) objects[i] = sy_cache_alloc(cache);
        must(stats_of(cache).in_use == 3000 && stats_of(cache).guarded > 100);
        for (size_t i = 0; i < 3000; i++) sy_cache_free(cache, objects[i]);
        must(stats_of(cache).in_use == 0);
    }
    must(sy_cache_destroy(cache) == 0);
}
RUN(epochs_have_them)

/* An epoch counts the objects of its slabs. */
static void objects_of_an_epoch_are_none_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make((sy_cache_config){.flags = SY_EPOCHS});
    sy_epoch *epoch = sy_epoch_create("request");
    must(epoch && sy_epoch_begin(epoch) == 0);
    void *within = sy_cache_alloc(cache);
    must(sy_epoch_begin(NULL) == 0);
    void *without = sy_cache_alloc(cache);
    must(sy_epoch_end(NULL) == 0 && sy_epoch_end(epoch) == 0);
    must(!lies_there(within) && lies_there(without));
    must(sy_epoch_close(epoch) == 1 && stats_of(cache).in_use == 2);
    sy_cache_free(cache, within);
    sy_cache_free(cache, without);
    sy_thread_flush();
    must(sy_epoch_report_stuck(0) == 0 && sy_cache_destroy(cache) == 0);
}
RUN(objects_of_an_epoch_are_none)

static void reserved_ones_are_none_here(void *arg) {
    (void)arg;
    begin(1);
    sy_cache *cache = make((sy_cache_config){0});
    must(sy_thread_reserve(cache, 40) == 0);
    for (size_t i = 0; i < 40; i++) must(!lies_there(sy_cache_alloc(cache)));
    sy_cache_destroy_all(cache);
}
RUN(reserved_ones_are_none)

static void *use_and_end(void *cache) {
    void *objects[100];
    for (size_t i = 0; i < 100; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < 100; i++) sy_cache_free(cache, objects[i]);
    return NULL;
}

static void threads_come_and_go_here(void *arg) {
    (void)arg;
    begin(7);
    sy_cache *cache = make((sy_cache_config){0});
    for (int i = 0; i < 20; i++) {
        in_thread(use_and_end, cache);
        use_and_end(cache);
        if (i % 3 == 0) sy_thread_idle();
        if (i % 5 == 0) sy_trim();
        must(stats_of(cache).in_use == 0);
    }
    must(sy_cache_destroy(cache) == 0);
}
RUN(threads_come_and_go)

/* ---- the heap ---- */

static void begin_heap(uint32_t every, unsigned checks) {
    must(sy_start() == 0);
    atomic_store(&sy_options_now.checks, checks);
    begin(every);
}

static void the_heap_has_them_here(void *arg) {
    (void)arg;
    begin_heap(1, SY_GUARD);
    char *object = sy_malloc(100);
    must(lies_there(object) && sy_usable_size(object) == 100 && sy_usable_size(object + 1) == 0);
    memset(object, 5, 100);
    char *moved = sy_realloc(object, 101);
    must(moved != object && lies_there(moved) && moved[99] == 5 && !sy_usable_size(object));
    moved = sy_realloc(moved, 300000); /* a span */
    must(moved && !lies_there(moved) && moved[99] == 5);
    moved = sy_realloc(moved, 50);
    must(lies_there(moved) && moved[49] == 5);
    sy_free_sized(moved, 50);
    must(take_fault() == 0);
    char *zeroed = sy_calloc(10, 10);
    must(lies_there(zeroed) && zeroed[99] == 0);
    sy_free(zeroed);
    void *nothing = sy_malloc(0);
    must(lies_there(nothing));
    sy_free_sized(nothing, 0);
    must(take_fault() == 0);
}
RUN(the_heap_has_them)

static void the_heap_honours_alignment_here(void *arg) {
    (void)arg;
    begin_heap(1, SY_GUARD);
    for (size_t align = 1; align <= 64 << 10; align *= 2)
        for (size_t size = 1; size <= 100000; size = size * 3 + 1) {
            char *object = sy_aligned_alloc(align, size), *plain = sy_malloc(size);
            must(object && (uintptr_t)object % align == 0);
            must(plain && (uintptr_t)plain % (size < 16 ? 8 : 16) == 0);
            memset(object, 5, size);
            memset(plain, 5, size);
            sy_free(object);
            sy_free(plain);
            must(take_fault() == 0);
        }
}
RUN(the_heap_honours_alignment)

static void the_heap_finds_misuse_here(void *arg) {
    (void)arg;
    begin_heap(1, SY_GUARD);
    char *object = sy_malloc(100);
    sy_free(object + 16);
    must(take_fault() == SY_FAULT_MISALIGNED_POINTER);
    sy_free_sized(object, 500);
    must(take_fault() == SY_FAULT_WRONG_SIZE);
    sy_free(object);
    must(take_fault() == 0);
    sy_free(object);
    must(take_fault() == SY_FAULT_DOUBLE_FREE);
    must(!sy_realloc(object, 10) && take_fault() == SY_FAULT_DOUBLE_FREE);
    sy_free((void *)atomic_load(&sy_guard_start));
    must(take_fault() == SY_FAULT_FOREIGN_POINTER);
}
RUN(the_heap_finds_misuse)

static void the_checked_heap_has_them_here(void *arg) {
    (void)arg;
    begin_heap(1, SY_GUARD | SY_CHECKED | SY_REDZONE);
    for (size_t size = 1; size <= 1 << 20; size = size * 3 + 1) {
        char *object = sy_malloc(size);
        must(object && sy_usable_size(object) == size);
        memset(object, 5, size);
        object = sy_realloc(object, size + 1);
        must(object && sy_usable_size(object) == size + 1 && object[size - 1] == 5);
        if (size % 2)
            sy_free(object);
        else
            sy_free_sized(object, size + 1);
        must(take_fault() == 0);
    }
    char *object = sy_malloc(100);
    sy_free_sized(object, 99);
    must(take_fault() == SY_FAULT_WRONG_SIZE && last.told_size == 99);
}
RUN(the_checked_heap_has_them)

static void heaps_have_them_here(void *arg) {
    (void)arg;
    begin(1);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "own", .flags = SY_GUARD});
    sy_heap *other = sy_heap_create(&(sy_heap_config){.name = "other", .flags = SY_GUARD});
    char *object = sy_heap_alloc(heap, 100);
    must(lies_there(object) && sy_heap_usable_size(heap, object) == 100);
    must(sy_heap_usable_size(other, object) == 0);
    sy_heap_free(other, object);
    must(take_fault() == SY_FAULT_WRONG_CACHE);
    memset(object, 5, 100);
    object = sy_heap_realloc(heap, object, 105);
    must(lies_there(object) && sy_heap_usable_size(heap, object) == 105 && object[99] == 5);
    errno = 0;
    must(sy_heap_destroy(heap) == -1 && errno == EBUSY);
    sy_heap_free_sized(heap, object, 105);
    must(take_fault() == 0 && !sy_heap_try_free(heap, object));
    sy_heap_free(heap, object);
    must(take_fault() == SY_FAULT_DOUBLE_FREE);
    for (int i = 0; i < 2; i++) { /* at either side */
        object = sy_heap_aligned_alloc(heap, 1, 20);
        must(lies_there(object) && (uintptr_t)object % 16 == 0);
        sy_heap_free(heap, object);
    }
    must(sy_heap_destroy(heap) == 0 && sy_heap_destroy(other) == 0);
}
RUN(heaps_have_them)

/* ---- fork ---- */

static sy_cache *inherited;
static void *inherited_object;

static void use_in_child(void *arg) {
    (void)arg;
    must(stats_of(inherited).guarded == 1);
    sy_cache_free(inherited, inherited_object);
    must(take_fault() == 0 && sy_cache_destroy(inherited) == 0);
}

static void a_child_goes_on_here(void *arg) {
    (void)arg;
    begin(1);
    inherited = make((sy_cache_config){0});
    inherited_object = sy_cache_alloc(inherited);
    must(in_child(use_in_child, NULL) == 0);
    must(stats_of(inherited).guarded == 1);
    sy_cache_free(inherited, inherited_object);
    must(sy_cache_destroy(inherited) == 0);
}
RUN(a_child_goes_on)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_counted),
        cmocka_unit_test(without_room_they_lie_in_slabs),
        cmocka_unit_test(one_in_so_many_is_guarded),
        cmocka_unit_test(all_functions_know_them),
        cmocka_unit_test(misuse_is_raised),
        cmocka_unit_test(each_is_constructed_and_destructed),
        cmocka_unit_test(a_constructor_that_fails_fails_the_allocation),
        cmocka_unit_test(a_limit_counts_them),
        cmocka_unit_test(some_caches_have_none),
        cmocka_unit_test(checked_ones_have_them_too),
        cmocka_unit_test(epochs_have_them),
        cmocka_unit_test(objects_of_an_epoch_are_none),
        cmocka_unit_test(reserved_ones_are_none),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(the_heap_has_them),
        cmocka_unit_test(the_heap_honours_alignment),
        cmocka_unit_test(the_heap_finds_misuse),
        cmocka_unit_test(the_checked_heap_has_them),
        cmocka_unit_test(heaps_have_them),
        cmocka_unit_test(a_child_goes_on),
    };
    return cmocka_run_group_tests_name("guarded", tests, NULL, NULL);
}
