/*
 * test_checks.c: caches, heaps and sizes with SY_CHECKED and the other flags of checks. Each
 * mistake is reported with its name, and does no damage if the fault handler returns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <slabyard/slabyard.h>
#include <stdlib.h>

#include "cache/watched.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/page_size.h"
#include "support/services.h"

static const unsigned ALL =
    SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_RANDOM | SY_EDGES;

enum { ZONE = 64 }; /* bytes, by default */

static sy_cache *make(size_t size, unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = size, .flags = flags});
    assert_non_null(cache);
    return cache;
}

/* Destroys the cache: no mistake was found, and no object is live. */
static void end(sy_cache *cache) {
    assert_int_equal(sy_cache_verify(cache), 0);
    assert_int_equal(sy_watched_verify(cache), 0);
    assert_int_equal(sy_cache_in_use(cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    expect_none();
}

/* ---- correct use ---- */

static const unsigned FLAGS[] = {SY_CHECKED,       SY_REDZONE,      SY_POISON,
                                 SY_QUARANTINE,    SY_AUDIT,        SY_RANDOM,
                                 SY_EDGES,         SY_ZERO,         ALL,
                                 ALL | SY_HANDLES, ALL | SY_EPOCHS, ALL | SY_HANDLES | SY_EPOCHS};
enum { FLAGS_COUNT = sizeof FLAGS / sizeof *FLAGS };

static const size_t SIZES[] = {1, 8, 24, 60, 64, 100, 1000, 4096, 5000, 65536, 131072, 300000};
enum { SIZES_COUNT = sizeof SIZES / sizeof *SIZES };

/* Objects of each size, with each check: they are aligned, do not overlap, and keep their bytes
 * until they are freed. */
static void objects_are_as_ever(void **state) {
    (void)state;
    enum { COUNT = 40 };
    for (size_t f = 0; f < FLAGS_COUNT; f++)
        for (size_t s = 0; s < SIZES_COUNT; s++) {
            sy_cache *cache = make(SIZES[s], FLAGS[f]);
            unsigned char *objects[COUNT];
            for (size_t i = 0; i < COUNT; i++) {
                objects[i] = sy_cache_alloc(cache);
                assert_non_null(objects[i]);
                assert_int_equal((uintptr_t)objects[i] % (SIZES[s] <= 8 ? 8 : 16), 0);
                memset(objects[i], (int)i + 1, SIZES[s]);
            }
            assert_int_equal(sy_cache_in_use(cache), COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                for (size_t byte = 0; byte < SIZES[s]; byte++)
                    assert_int_equal(objects[i][byte], i + 1);
                sy_cache_free(cache, objects[i]);
            }
            sy_cache_trim(cache);
            end(cache);
        }
}

static void alignment_holds_between_red_zones(void **state) {
    (void)state;
    for (size_t align = 8; align <= SY_CACHE_ALIGN_MAX; align *= 2) {
        sy_cache *cache = sy_cache_create(&(sy_cache_config){
            .name = "order", .size = 100, .align = align, .flags = SY_REDZONE | SY_EDGES});
        assert_non_null(cache);
        void *objects[4];
        for (int i = 0; i < 4; i++) {
            objects[i] = sy_cache_alloc(cache);
            assert_int_equal((uintptr_t)objects[i] % align, 0);
        }
        for (int i = 0; i < 4; i++) sy_cache_free(cache, objects[i]);
        end(cache);
    }
}

/* How many bytes a program may write if it asks for the size of a slot. */
static void the_slot_of_an_object_between_red_zones_is_the_object(void **state) {
    (void)state;
    for (size_t f = 0; f < FLAGS_COUNT; f++)
        for (size_t s = 0; s < SIZES_COUNT; s++) {
            size_t size = (SIZES[s] + 15) / 16 * 16;
            sy_cache *cache = make(size, FLAGS[f]);
            assert_int_equal(sy_cache_slot_size(cache), size);
            void *object = sy_cache_alloc(cache);
            assert_non_null(object);
            memset(object, 1, sy_cache_slot_size(cache));
            sy_cache_free(cache, object);
            end(cache);
        }
}

static void batches_and_try_free_work(void **state) {
    (void)state;
    sy_cache *cache = make(48, ALL);
    void *objects[100];
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 100), 100);
    assert_true(sy_cache_try_free(cache, objects[0]));
    assert_false(sy_cache_try_free(cache, objects[0]));
    assert_false(sy_cache_try_free(cache, (char *)objects[1] + 8));
    assert_false(sy_cache_try_free(cache, &cache));
    sy_cache_free_batch(cache, objects + 1, 99);
    end(cache);
}

/* ---- wrong frees ---- */

static void a_double_free_is_seen_at_once_and_for_long(void **state) {
    (void)state;
    for (size_t f = 0; f < FLAGS_COUNT; f++) {
        if (FLAGS[f] == SY_RANDOM || FLAGS[f] == SY_EDGES || FLAGS[f] == SY_ZERO) continue;
        sy_cache *cache = make(64, FLAGS[f]);
        void *object = sy_cache_alloc(cache), *others[10];
        sy_cache_free(cache, object);
        sy_cache_free(cache, object);
        expect_seen(SY_FAULT_DOUBLE_FREE, "order", object);
        for (int i = 0; i < 10; i++) others[i] = sy_cache_alloc(cache);
        for (int i = 0; i < 10; i++) sy_cache_free(cache, others[i]);
        sy_cache_free(cache, object);
        expect_seen(SY_FAULT_DOUBLE_FREE, "order", object);
        end(cache);
    }
}

static void pointers_of_others_are_refused(void **state) {
    (void)state;
    sy_cache *cache = make(64, ALL),
             *other = sy_cache_create(&(sy_cache_config){.name = "trade", .size = 64});
    char *object = sy_cache_alloc(cache), *theirs = sy_cache_alloc(other), local;
    void *small = sy_malloc(64), *span = sy_malloc(1 << 20);
    sy_cache_free(cache, &local);
    expect_seen(SY_FAULT_FOREIGN_POINTER, "order", &local);
    sy_cache_free(cache, object + 8);
    expect_seen(SY_FAULT_MISALIGNED_POINTER, "order", object + 8);
    sy_cache_free(cache, object - ZONE);
    expect_seen(SY_FAULT_MISALIGNED_POINTER, "order", object - ZONE);
    sy_cache_free(cache, theirs);
    expect_seen(SY_FAULT_WRONG_CACHE, "order", theirs);
    assert_string_equal(seen_fault.found_cache, "trade");
    sy_cache_free(cache, small);
    expect_seen(SY_FAULT_WRONG_CACHE, "order", small);
    sy_cache_free(cache, span);
    expect_seen(SY_FAULT_WRONG_CACHE, "order", span);
    sy_free(small);
    sy_free(span);
    sy_cache_free(other, theirs);
    sy_cache_free(cache, object);
    sy_cache_destroy(other);
    end(cache);
}

/* ---- red zones ---- */

typedef struct sy_case {
    ptrdiff_t offset;
    size_t bytes;
    sy_fault_kind kind;
} sy_case;

static const sy_case CASES[] = {
    {60, 1, SY_FAULT_OVERFLOW},    {60, 8, SY_FAULT_OVERFLOW},   {60, 64, SY_FAULT_OVERFLOW},
    {123, 1, SY_FAULT_OVERFLOW},   {-1, 1, SY_FAULT_UNDERFLOW},  {-8, 8, SY_FAULT_UNDERFLOW},
    {-64, 64, SY_FAULT_UNDERFLOW}, {-64, 1, SY_FAULT_UNDERFLOW},
};

static void writes_beside_an_object_are_seen_when_it_is_freed(void **state) {
    (void)state;
    sy_cache *cache = make(60, ALL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *object = sy_cache_alloc(cache);
        scribble(object, CASES[i].offset, 0, CASES[i].bytes);
        sy_cache_free(cache, object);
        expect_seen(CASES[i].kind, "order", object + CASES[i].offset);
        assert_ptr_equal(seen_fault.object, object);
        assert_int_equal(seen_fault.offset, CASES[i].offset);
        assert_int_equal(seen_fault.damage_bytes, CASES[i].bytes);
        assert_int_equal(seen_fault.found_size, 60);
        assert_int_equal(seen_damage[0], 0);
    }
    end(cache);
}

static void a_walk_sees_them_before_and_ends_nothing(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_REDZONE);
    char *object = sy_cache_alloc(cache);
    scribble(object, 64, 'x', 3);
    assert_int_equal(sy_watched_verify(cache), 1);
    expect_seen(SY_FAULT_OVERFLOW, "order", object + 64);
    sy_cache_free(cache, object);
    expect_seen(SY_FAULT_OVERFLOW, "order", object + 64);
    end(cache);
}

static void the_ends_of_a_slab_are_watched(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_EDGES);
    void *object = sy_cache_alloc(cache);
    char *start = (char *)((uintptr_t)object & ~(uintptr_t)65535);
    sy_cache_free(cache, object);
    scribble(start, 65535, 'x', 1);
    assert_int_equal(sy_watched_verify(cache), 1);
    expect_seen(SY_FAULT_SLAB_EDGE, "order", start + 65535);
    scribble(start, 0, 'x', 1);
    assert_int_equal(sy_watched_verify(cache), 2);
    faults_seen = 0;
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(faults_seen, 2);
    faults_seen = 0;
}

/* ---- poison and quarantine ---- */

static void a_write_after_free_is_seen_wherever_it_is(void **state) {
    (void)state;
    const size_t size = 200;
    sy_cache *cache = make(size, SY_POISON);
    for (size_t offset = 0; offset < size; offset++) {
        char *object = sy_cache_alloc(cache);
        sy_cache_free(cache, object);
        scribble(object, (ptrdiff_t)offset, 'x', 1);
        assert_ptr_equal(sy_cache_alloc(cache), object);
        expect_seen(SY_FAULT_WRITE_AFTER_FREE, "order", object + offset);
        assert_int_equal(seen_fault.offset, offset);
        assert_int_equal(seen_fault.damage_bytes, 1);
        sy_cache_free(cache, object);
    }
    end(cache);
}

static void what_was_never_written_reads_as_such(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_POISON);
    uint64_t *object = sy_cache_alloc(cache);
    for (int i = 0; i < 8; i++) assert_int_equal(object[i], UINT64_C(0xbaddcafebaddcafe));
    sy_cache_free(cache, object);
    for (int i = 0; i < 8; i++) assert_int_equal(object[i], UINT64_C(0xdeadbeefdeadbeef));
    end(cache);
}

/* The damage is found before the memory is used again, which would hide it. */
static void a_write_after_free_is_seen_when_the_slab_goes(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_POISON);
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    scribble(object, 9, 'x', 2);
    sy_cache_trim(cache);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "order", object + 9);
    end(cache);
}

/* The edges stay when the pages between them go back to the system. So do the marks of the slots
 * beside the edges. */
static void a_trim_leaves_the_ends_of_a_slab(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    enum { COUNT = 1000 };
    sy_cache *cache = make(64, SY_EDGES | SY_POISON);
    char *objects[COUNT];
    for (int i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < COUNT; i++)
        if (i != COUNT / 2) sy_cache_free(cache, objects[i]);
    assert_true(sy_cache_trim(cache) > 0);
    assert_int_equal(sy_watched_verify(cache), 0);
    scribble(objects[0], 1, 'x', 1);
    assert_int_equal(sy_watched_verify(cache), 1);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "order", objects[0] + 1);
    assert_ptr_equal(sy_cache_alloc(cache), objects[0]);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "order", objects[0] + 1);
    sy_cache_free(cache, objects[0]);
    sy_cache_free(cache, objects[COUNT / 2]);
    end(cache);
}

static void pages_that_go_in_the_midst_are_verified_and_forgotten(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    enum { COUNT = 1000 };
    sy_cache *cache = make(64, SY_POISON);
    char *objects[COUNT];
    for (int i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 1; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    scribble(objects[500], 1, 'x', 1);
    assert_true(sy_cache_trim(cache) > 0);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "order", objects[500] + 1);
    for (int i = 1; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    end(cache);
}

static void what_is_freed_is_not_reused_soon(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_QUARANTINE);
    void *object = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    for (int i = 0; i < 255; i++) {
        void *other = sy_cache_alloc(cache);
        assert_ptr_not_equal(other, object);
        sy_cache_free(cache, other);
    }
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_quarantine, 256);
    assert_int_equal(stats.in_use, 0);
    assert_int_equal(stats.slots, stats.in_quarantine + stats.free);
    end(cache);
}

static void under_a_limit_quarantine_gives_way(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = "order", .size = 64, .limit = 3, .flags = SY_QUARANTINE});
    void *objects[3];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) assert_non_null(objects[i] = sy_cache_alloc(cache));
        errno = 0;
        assert_null(sy_cache_alloc(cache));
        assert_int_equal(errno, ENOMEM);
        for (int i = 0; i < 3; i++) sy_cache_free(cache, objects[i]);
    }
    end(cache);
}

/* Fills a heap that has a limit; returns with how many objects. All of them fit in a quarantine. */
enum { LIMIT = 1 << 20, LARGE = 4096, LARGE_MOST = LIMIT / LARGE };
static size_t fill_heap(sy_heap *heap, void *objects[LARGE_MOST + 1]) {
    size_t count = 0;
    while (count <= LARGE_MOST && (objects[count] = sy_heap_alloc(heap, LARGE)) != NULL) count++;
    assert_in_range(count, 1, LARGE_MOST);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_HEAP_LIMIT);
    return count;
}

static sy_heap *make_limited(unsigned flags) {
    sy_heap *heap = sy_heap_create(
        &(sy_heap_config){.name = "tenant", .limit = {.hard = LIMIT}, .flags = flags});
    assert_non_null(heap);
    return heap;
}

/* Objects in quarantine keep their slabs, which count for the limit. */
static void under_a_limit_in_bytes_quarantine_gives_way_to_other_sizes(void **state) {
    (void)state;
    static void *objects[LARGE_MOST + 1];
    for (size_t f = 0; f < FLAGS_COUNT; f++) {
        if (!(FLAGS[f] & SY_QUARANTINE)) continue;
        sy_heap *heap = make_limited(FLAGS[f] & ~(unsigned)SY_EPOCHS);
        size_t count = fill_heap(heap, objects);
        assert_null(sy_heap_alloc(heap, 64));
        for (size_t i = 0; i < count; i++) sy_heap_free(heap, objects[i]);
        void *other = sy_heap_alloc(heap, 64);
        assert_non_null(other);
        sy_heap_free(heap, other);
        assert_int_equal(sy_heap_destroy(heap), 0);
        expect_none();
    }
}

static void what_leaves_the_quarantine_at_a_limit_is_verified(void **state) {
    (void)state;
    static void *objects[LARGE_MOST + 1];
    sy_heap *heap = make_limited(SY_POISON | SY_QUARANTINE);
    size_t count = fill_heap(heap, objects);
    for (size_t i = 0; i < count; i++) sy_heap_free(heap, objects[i]);
    scribble(objects[0], 1, 'x', 1);
    void *other = sy_heap_alloc(heap, 64);
    assert_non_null(other);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "tenant-4096", (char *)objects[0] + 1);
    sy_heap_free(heap, other);
    assert_int_equal(sy_heap_destroy(heap), 0);
}

static struct victims {
    sy_heap *heap;
    void *objects[LARGE_MOST + 1];
    size_t count;
} victims;

static void free_victims(void *unused, size_t used, size_t soft) {
    (void)unused, (void)used, (void)soft;
    while (victims.count) sy_heap_free(victims.heap, victims.objects[--victims.count]);
}

static void what_the_callback_frees_does_not_wait(void **state) {
    (void)state;
    victims.heap =
        sy_heap_create(&(sy_heap_config){.name = "tenant",
                                         .limit = {.hard = LIMIT, .callback = free_victims},
                                         .flags = SY_QUARANTINE});
    assert_non_null(victims.heap);
    sy_heap_stats stats = {.used = 0};
    while (stats.used + SY_UNIT_BYTES <= LIMIT) {
        assert_non_null(victims.objects[victims.count++] = sy_heap_alloc(victims.heap, LARGE));
        sy_heap_get_stats(victims.heap, &stats);
    }
    void *other = sy_heap_alloc(victims.heap, 64);
    assert_non_null(other);
    assert_int_equal(victims.count, 0);
    sy_heap_free(victims.heap, other);
    assert_int_equal(sy_heap_destroy(victims.heap), 0);
    expect_none();
}

static void a_trim_empties_the_quarantine(void **state) {
    (void)state;
    sy_cache *cache = make(64, SY_QUARANTINE);
    sy_cache_stats stats;
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_quarantine, 1);
    sy_cache_trim(cache);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_quarantine + stats.slabs, 0);
    end(cache);
}

/* ---- random order ---- */

static void slots_come_in_random_order(void **state) {
    (void)state;
    enum { COUNT = 200 };
    sy_cache *cache = make(64, SY_RANDOM);
    char *objects[COUNT];
    int neighbours = 0;
    for (int i = 0; i < COUNT; i++) {
        objects[i] = sy_cache_alloc(cache);
        neighbours += i && objects[i] == objects[i - 1] + 64;
    }
    assert_true(neighbours < COUNT / 4);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    end(cache);
}

/* ---- construction ---- */

static int built, refuse;

static int construct(void *object, void *arg) {
    (void)arg;
    if (refuse && --refuse == 0) {
        errno = EPERM;
        return -1;
    }
    built++;
    memset(object, 'c', 64);
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    for (int i = 1; i < 64; i++) must(((char *)object)[i] == 'c');
    built--;
}

static sy_cache *make_constructed(unsigned flags) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "order", .size = 64, .construct = construct, .destruct = destruct, .flags = flags});
    assert_non_null(cache);
    return cache;
}

static void what_is_overwritten_is_built_anew(void **state) {
    (void)state;
    const unsigned overwriting[] = {SY_POISON, SY_ZERO, ALL, ALL | SY_HANDLES, ALL | SY_EPOCHS};
    for (size_t f = 0; f < sizeof overwriting / sizeof *overwriting; f++) {
        sy_cache *cache = make_constructed(overwriting[f]);
        char *objects[20];
        for (int i = 0; i < 20; i++) {
            objects[i] = sy_cache_alloc(cache);
            assert_int_equal(objects[i][63], 'c');
            objects[i][0] = 'x';
        }
        assert_int_equal(built, 20);
        for (int i = 0; i < 15; i++) sy_cache_free(cache, objects[i]);
        assert_int_equal(built, 5);
        sy_cache_destroy_all(cache);
        assert_int_equal(built, 0);
        expect_none();
    }
}

static void what_is_not_stays_built(void **state) {
    (void)state;
    sy_cache *cache = make_constructed(SY_REDZONE | SY_QUARANTINE | SY_AUDIT);
    char *object = sy_cache_alloc(cache);
    int after_first = built;
    sy_cache_free(cache, object);
    assert_int_equal(built, after_first);
    end(cache);
    assert_int_equal(built, 0);
}

static void a_constructor_that_fails_is_an_allocation_that_does(void **state) {
    (void)state;
    sy_cache *cache = make_constructed(ALL);
    refuse = 1;
    errno = 0;
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, EPERM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CONSTRUCTOR);
    void *object = sy_cache_alloc(cache);
    assert_non_null(object);
    sy_cache_free(cache, object);
    end(cache);
    assert_int_equal(built, 0);
}

/* ---- handles ---- */

static void objects_with_handles_are_watched_too(void **state) {
    (void)state;
    sy_cache *cache = make(64, ALL | SY_HANDLES);
    sy_handle handle;
    char *object = sy_handle_alloc(cache, &handle);
    scribble(object, 64, 'x', 1);
    assert_true(sy_handle_free(cache, handle));
    expect_seen(SY_FAULT_OVERFLOW, "order", object + 64);
    assert_false(sy_handle_free(cache, handle));
    expect_none();
    sy_cache_free(cache, object);
    expect_seen(SY_FAULT_DOUBLE_FREE, "order", object);
    object = sy_handle_alloc(cache, &handle);
    assert_ptr_equal(sy_handle_pin(cache, handle), object);
    sy_cache_free(cache, object);
    scribble(object, 0, 'x', 64); /* it may still be used */
    sy_handle_unpin(cache, handle);
    end(cache);
}

/* ---- heaps of the program's own ---- */

static void a_heap_knows_what_was_asked_for(void **state) {
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant", .flags = ALL});
    const size_t sizes[] = {1, 60, 1000, 200000, 5000000};
    for (int i = 0; i < 5; i++) {
        char *object = sy_heap_alloc(heap, sizes[i]);
        assert_int_equal(sy_heap_usable_size(heap, object), sizes[i]);
        memset(object, 'o', sizes[i]);
        char *moved = sy_heap_realloc(heap, object, sizes[i] + 1);
        assert_ptr_not_equal(moved, object);
        assert_int_equal(moved[sizes[i] - 1], 'o');
        scribble(moved, (ptrdiff_t)sizes[i] + 1, 'x', 1);
        sy_heap_free_sized(heap, moved, sizes[i] + 1);
        assert_int_equal(seen_fault.kind, SY_FAULT_OVERFLOW);
        expect_seen(SY_FAULT_OVERFLOW, seen_cache, moved + sizes[i] + 1);
        sy_heap_free(heap, moved);
        expect_seen(SY_FAULT_DOUBLE_FREE, seen_cache, moved);
    }
    char *object = sy_heap_alloc(heap, 60);
    sy_heap_free_sized(heap, object, 59);
    expect_seen(SY_FAULT_WRONG_SIZE, "tenant-64", object);
    assert_int_equal(seen_fault.found_size, 60);
    assert_int_equal(seen_fault.told_size, 59);
    sy_heap_free_sized(heap, object, 60);
    assert_int_equal(sy_heap_destroy(heap), 0);
    expect_none();
}

static void a_quarantine_is_bounded_in_bytes(void **state) {
    (void)state;
    enum { SIZE_OF_LARGE = 1 << 20, BYTES_MOST = 16 << 20 };
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.size = SIZE_OF_LARGE, .flags = SY_QUARANTINE});
    sy_cache_stats stats;
    assert_non_null(cache);
    for (int i = 0; i < 100; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_in_range(stats.in_quarantine, 1, BYTES_MOST / SIZE_OF_LARGE + 1);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(objects_are_as_ever, watch_faults),
        cmocka_unit_test_setup(alignment_holds_between_red_zones, watch_faults),
        cmocka_unit_test_setup(the_slot_of_an_object_between_red_zones_is_the_object, watch_faults),
        cmocka_unit_test_setup(batches_and_try_free_work, watch_faults),
        cmocka_unit_test_setup(a_double_free_is_seen_at_once_and_for_long, watch_faults),
        cmocka_unit_test_setup(pointers_of_others_are_refused, watch_faults),
        cmocka_unit_test_setup(writes_beside_an_object_are_seen_when_it_is_freed, watch_faults),
        cmocka_unit_test_setup(a_walk_sees_them_before_and_ends_nothing, watch_faults),
        cmocka_unit_test_setup(the_ends_of_a_slab_are_watched, watch_faults),
        cmocka_unit_test_setup(a_write_after_free_is_seen_wherever_it_is, watch_faults),
        cmocka_unit_test_setup(what_was_never_written_reads_as_such, watch_faults),
        cmocka_unit_test_setup(a_write_after_free_is_seen_when_the_slab_goes, watch_faults),
        cmocka_unit_test_setup(a_trim_leaves_the_ends_of_a_slab, watch_faults),
        cmocka_unit_test_setup(pages_that_go_in_the_midst_are_verified_and_forgotten, watch_faults),
        cmocka_unit_test_setup(what_is_freed_is_not_reused_soon, watch_faults),
        cmocka_unit_test_setup(under_a_limit_quarantine_gives_way, watch_faults),
        cmocka_unit_test_setup(under_a_limit_in_bytes_quarantine_gives_way_to_other_sizes,
                               watch_faults),
        cmocka_unit_test_setup(what_leaves_the_quarantine_at_a_limit_is_verified, watch_faults),
        cmocka_unit_test_setup(what_the_callback_frees_does_not_wait, watch_faults),
        cmocka_unit_test_setup(a_trim_empties_the_quarantine, watch_faults),
        cmocka_unit_test_setup(slots_come_in_random_order, watch_faults),
        cmocka_unit_test_setup(what_is_overwritten_is_built_anew, watch_faults),
        cmocka_unit_test_setup(what_is_not_stays_built, watch_faults),
        cmocka_unit_test_setup(a_constructor_that_fails_is_an_allocation_that_does, watch_faults),
        cmocka_unit_test_setup(objects_with_handles_are_watched_too, watch_faults),
        cmocka_unit_test_setup(a_heap_knows_what_was_asked_for, watch_faults),
        cmocka_unit_test_setup(a_quarantine_is_bounded_in_bytes, watch_faults),
    };
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
