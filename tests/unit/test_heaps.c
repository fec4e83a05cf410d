/*
 * test_heaps.c: what slabyard/heaps.h promises about objects by address, limits, and the end of
 * heaps.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/heaps.h"
#include "support/services.h"

static const unsigned kinds[] = {0, SY_CHECKED, SY_HANDLES, SY_CHECKED | SY_HANDLES};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- allocation ---- */

static void an_object_has_its_size(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap = make_heap("tenant", kinds[kind]);
        void *objects[SIZES];
        for (unsigned i = 0; i < SIZES; i++) {
            size_t size = all_sizes[i];
            objects[i] = sy_heap_alloc(heap, size);
            assert_non_null(objects[i]);
            assert_int_equal((uintptr_t)objects[i] % (size <= 8 ? 8 : 16), 0);
            size_t usable = sy_heap_usable_size(heap, objects[i]);
            assert_true(usable >= size);
            assert_true(size < 128 || usable <= size + size / 8 + UNIT);
            assert_true(size < 128 || size > SY_CLASS_SIZE_MAX || usable <= size + size / 8);
            fill_ends(objects[i], usable, i);
        }
        heap_is_sound(heap, SIZES);
        for (unsigned i = 0; i < SIZES; i++) {
            assert_true(ends_filled(objects[i], sy_heap_usable_size(heap, objects[i]), i));
            errno = KEPT_ERRNO;
            sy_heap_free(heap, objects[i]);
            assert_int_equal(errno, KEPT_ERRNO);
        }
        sy_heap_free(heap, NULL);
        end_heap(heap);
    }
}

static void size_0_gives_unique_pointers(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    void *first = sy_heap_alloc(heap, 0), *second = sy_heap_alloc(heap, 0);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    sy_heap_free(heap, first);
    sy_heap_free(heap, second);
    end_heap(heap);
}

static void sizes_beyond_reason_are_refused(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, ((size_t)1 << SY_HEAP_SIZE_SHIFT) + 1};
    for (size_t i = 0; i < 3; i++) {
        errno = 0;
        refused_for(sy_heap_alloc(heap, sizes[i]), SY_REFUSAL_SYSTEM);
        errno = 0;
        refused_for(sy_heap_aligned_alloc(heap, 4096, sizes[i]), SY_REFUSAL_SYSTEM);
        errno = 0;
        refused_for(sy_heap_calloc(heap, 1, sizes[i]), SY_REFUSAL_SYSTEM);
    }
    errno = 0;
    refused_for(sy_heap_calloc(heap, SIZE_MAX / 2, 3), SY_REFUSAL_SYSTEM);
    heap_is_sound(heap, 0);
    void *object = sy_heap_alloc(heap, (size_t)1 << SY_HEAP_SIZE_SHIFT); /* the last class */
    sy_heap_free(heap, object);
    end_heap(heap);
}

static void calloc_gives_zeroes(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < SIZES; i++) {
            unsigned char *object = sy_heap_calloc(heap, all_sizes[i], 1);
            assert_non_null(object);
            for (size_t at = 0; at < all_sizes[i]; at++) assert_int_equal(object[at], 0);
            memset(object, 0xff, all_sizes[i]);
            sy_heap_free(heap, object);
        }
    }
    end_heap(heap);
}

static void a_product_that_runs_over_is_refused(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    errno = 0;
    assert_null(sy_heap_calloc(heap, SIZE_MAX / 2 + 2, 2));
    assert_int_equal(errno, ENOMEM);
    end_heap(heap);
}

static void objects_can_be_aligned(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    for (size_t align = 1; align <= SY_CACHE_ALIGN_MAX; align *= 2) {
        for (unsigned i = 0; i < SIZES; i++) {
            void *objects[2];
            for (int j = 0; j < 2; j++) {
                objects[j] = sy_heap_aligned_alloc(heap, align, all_sizes[i]);
                assert_non_null(objects[j]);
                assert_int_equal((uintptr_t)objects[j] % align, 0);
                assert_true(sy_heap_usable_size(heap, objects[j]) >= all_sizes[i]);
            }
            for (int j = 0; j < 2; j++) sy_heap_free(heap, objects[j]);
        }
    }
    static const size_t wrong[] = {0, 3, 48, SY_CACHE_ALIGN_MAX * 2};
    for (size_t i = 0; i < 4; i++) {
        errno = 0;
        assert_null(sy_heap_aligned_alloc(heap, wrong[i], 100));
        assert_int_equal(errno, EINVAL);
    }
    end_heap(heap);
}

static void realloc_keeps_the_content(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap = make_heap("tenant", kinds[kind]);
        for (unsigned i = 0; i < SIZES; i++) {
            for (unsigned j = 0; j < SIZES; j++) {
                size_t common = all_sizes[i] < all_sizes[j] ? all_sizes[i] : all_sizes[j];
                void *object = sy_heap_realloc(heap, NULL, all_sizes[i]);
                fill_ends(object, common, i + j);
                object = sy_heap_realloc(heap, object, all_sizes[j]);
                assert_non_null(object);
                assert_true(ends_filled(object, common, i + j));
                assert_true(sy_heap_usable_size(heap, object) >= all_sizes[j]);
                sy_heap_free_sized(heap, object, all_sizes[j]);
            }
        }
        end_heap(heap);
    }
}

static void the_cache_of_a_size_has_its_objects(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap = make_heap("tenant", kinds[kind]);
        sy_cache *cache = sy_heap_cache_for(heap, 97);
        assert_non_null(cache);
        for (size_t size = 97; size <= 104; size++)
            assert_ptr_equal(sy_heap_cache_for(heap, size), cache);
        assert_ptr_not_equal(sy_heap_cache_for(heap, 40), cache);
        void *object = sy_heap_alloc(heap, 100), *other = sy_cache_alloc(cache);
        assert_int_equal(sy_cache_in_use(cache), 2);
        sy_cache_free(cache, object);
        sy_heap_free(heap, other);
        assert_int_equal(sy_cache_in_use(cache), 0);
        errno = 0;
        assert_null(sy_heap_cache_for(heap, SIZE_MAX));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(sy_cache_destroy(cache), -1);
        assert_int_equal(errno, EINVAL);
        sy_heap_free(heap, sy_heap_alloc(heap, 100));
        end_heap(heap);
    }
}

static void within_its_class_an_object_stays(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    void *object = sy_heap_alloc(heap, 150);
    assert_ptr_equal(sy_heap_realloc(heap, object, 160), object);
    assert_ptr_equal(sy_heap_realloc(heap, object, 145), object);
    sy_heap_free(heap, object);
    end_heap(heap);
}

/* ---- free ---- */

static void try_free_takes_its_live_objects_alone(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap = make_heap("tenant", kinds[kind]), *other = make_heap("other", kinds[kind]);
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 100});
        char *object = sy_heap_alloc(heap, 100), *large = sy_heap_alloc(heap, 300000), local;
        void *not_its[] = {NULL,
                           &local,
                           object + 1,
                           object + 16,
                           large + UNIT,
                           (void *)UINTPTR_MAX,
                           (void *)(UINTPTR_MAX / 2),
                           sy_heap_alloc(other, 100),
                           sy_cache_alloc(cache),
                           sy_malloc(100),
                           sy_malloc(MIB)};
        for (size_t i = 0; i < sizeof not_its / sizeof *not_its; i++) {
            assert_false(sy_heap_try_free(heap, not_its[i]));
            if (not_its[i] != object + 16)
                assert_int_equal(sy_heap_usable_size(heap, not_its[i]), 0);
        }
        heap_is_sound(heap, 2);
        assert_true(sy_heap_try_free(heap, object));
        assert_true(sy_heap_try_free(heap, large));
        assert_false(sy_heap_try_free(heap, object));
        assert_false(sy_heap_try_free(heap, large));
        assert_true(sy_heap_try_free(other, not_its[7]));
        sy_cache_free(cache, not_its[8]);
        sy_free(not_its[9]);
        sy_free(not_its[10]);
        sy_cache_destroy(cache);
        end_heap(heap);
        end_heap(other);
    }
}

static void *free_the_object(void *arg) {
    void **both = arg;
    sy_heap_free(both[0], both[1]);
    return NULL;
}

static void any_thread_may_free(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    for (unsigned i = 0; i < SIZES; i++) {
        void *both[2] = {heap, sy_heap_alloc(heap, all_sizes[i])};
        in_thread(free_the_object, both);
    }
    end_heap(heap);
}

/* ---- faults: the handler returns, and the pointer is ignored ---- */

static void misuse_is_seen_at_once(void **state) {
    (void)state;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap = make_heap("tenant", kinds[kind]), *other = make_heap("other", 0);
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 100});
        char *object = sy_heap_alloc(heap, 100), local;
        void *theirs = sy_heap_alloc(other, 100), *order = sy_cache_alloc(cache);
        void *small = sy_malloc(100), *span = sy_malloc(MIB);
        sy_heap_free(heap, &local);
        expect_fault(SY_FAULT_FOREIGN_POINTER, "tenant", &local, NULL);
        sy_heap_free(heap, object + 1);
        expect_fault(SY_FAULT_MISALIGNED_POINTER, "tenant", object + 1, NULL);
        sy_heap_free(heap, theirs);
        expect_fault(SY_FAULT_WRONG_CACHE, "tenant", theirs, "other-112");
        sy_heap_free_sized(heap, order, 100);
        expect_fault(SY_FAULT_WRONG_CACHE, "tenant", order, "order");
        sy_heap_free(heap, small);
        expect_fault(SY_FAULT_WRONG_CACHE, "tenant", small, "heap-112");
        sy_heap_free(heap, span);
        expect_fault(SY_FAULT_WRONG_CACHE, "tenant", span, "heap");
        sy_heap_free_sized(heap, object, 113);
        expect_fault(SY_FAULT_WRONG_SIZE, "tenant", object, NULL);
        sy_heap_free_sized(heap, object, SIZE_MAX);
        expect_fault(SY_FAULT_WRONG_SIZE, "tenant", object, NULL);
        errno = 0;
        assert_null(sy_heap_realloc(heap, theirs, 5000));
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_WRONG_CACHE, "tenant", theirs, "other-112");
        sy_free(object);
        expect_fault(SY_FAULT_WRONG_CACHE, "heap", object, "tenant-112");
        heap_is_sound(heap, 1);
        heap_is_sound(other, 1);
        sy_heap_free(heap, object);
        if (kinds[kind]) {
            sy_heap_free(heap, object);
            expect_fault(SY_FAULT_DOUBLE_FREE, "tenant-112", object, NULL);
        }
        sy_heap_free(other, theirs);
        sy_cache_free(cache, order);
        sy_free(small);
        sy_free(span);
        sy_cache_destroy(cache);
        end_heap(heap);
        end_heap(other);
    }
    sy_set_fault_handler(before);
}

static void a_double_free_is_seen_by_the_slow_path(void **state) {
    (void)state;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    sy_heap *heap = make_heap("tenant", 0);
    void *object = sy_heap_alloc(heap, 100), *large = sy_heap_alloc(heap, 300000);
    sy_heap_free(heap, object);
    sy_heap_free(heap, object);
    sy_thread_flush();
    expect_fault(SY_FAULT_DOUBLE_FREE, "tenant-112", object, NULL);
    sy_heap_free(heap, large);
    sy_heap_free(heap, large);
    expect_fault(SY_FAULT_DOUBLE_FREE, "tenant", large, NULL);
    end_heap(heap);
    sy_set_fault_handler(before);
}

/* ---- limits ---- */

static void a_heap_has_a_limit_in_bytes(void **state) {
    (void)state;
    sy_heap *heap = make_limited("tenant", MIB), *other = make_heap("other", 0);
    void *objects[20];
    size_t count = 0;
    sy_trim(); /* releases the empty slabs of other tests */
    size_t before = sy_limit_used();
    while ((objects[count] = sy_heap_alloc(heap, 3 * UNIT)) != NULL) count++;
    refused_for(NULL, SY_REFUSAL_HEAP_LIMIT);
    assert_int_equal(count, 5); /* slabs of 3 units; the limit is 16 units */
    assert_int_equal(heap_used(heap), 15 * UNIT);
    assert_int_equal(sy_limit_used(), before + 15 * UNIT);
    sy_heap_stats stats;
    assert_int_equal(sy_heap_get_stats(heap, &stats), 0);
    assert_int_equal(stats.limits_hit, 1);
    assert_int_equal(stats.limit, MIB);
    void *small = sy_heap_alloc(heap, 64), *free_of_it = sy_heap_alloc(other, 2 * MIB);
    assert_non_null(small);
    assert_non_null(free_of_it);
    sy_heap_free(other, free_of_it);
    sy_heap_free(heap, small);
    while (count) sy_heap_free(heap, objects[--count]);
    end_heap(heap);
    end_heap(other);
    assert_int_equal(sy_limit_used(), before);
}

/* The free memory of one size class serves another before an allocation is refused. */
static void other_classes_make_room(void **state) {
    (void)state;
    sy_heap *heap = make_limited("tenant", 4 * UNIT);
    static void *objects[4096];
    for (size_t i = 0; i < 4096; i++) assert_non_null(objects[i] = sy_heap_alloc(heap, 64));
    assert_int_equal(heap_used(heap), 4 * UNIT);
    refused_for(sy_heap_alloc(heap, 3000), SY_REFUSAL_HEAP_LIMIT);
    for (size_t i = 0; i < 4096; i++) sy_heap_free(heap, objects[i]);
    void *object = sy_heap_alloc(heap, 4 * UNIT);
    assert_non_null(object);
    heap_is_sound(heap, 1);
    sy_heap_free(heap, object);
    end_heap(heap);
}

/* The size classes of heaps do not take all that caches need. */
static void heaps_leave_room_for_caches(void *arg) {
    (void)arg;
    enum { HEAPS = 1000 };
    static sy_heap *heaps[HEAPS];
    size_t classes = 0, count = 0;
    sy_cache *class = NULL;
    for (; count < HEAPS && (!count || class); count++) {
        must((heaps[count] = sy_heap_create(&(sy_heap_config){.name = "tenant"})) != NULL);
        for (size_t size = 16; size <= 2048; size += 16) {
            sy_cache *before = class;
            errno = 7;
            class = sy_heap_cache_for(heaps[count], size);
            must(errno == (class ? 7 : ENOSPC));
            if (!class) break;
            classes += class != before;
        }
    }
    must(classes == SY_HEAP_CLASSES_MAX && sy_last_refusal() == SY_REFUSAL_CACHES);
    errno = 0;
    must(!sy_heap_alloc(heaps[count - 1], 1 << 20) && errno == ENOSPC);
    must(sy_heap_alloc(heaps[0], 100) && sy_malloc(777));
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64});
    must(cache && sy_cache_alloc(cache));
    sy_heap_destroy_all(heaps[0]);
    must(sy_heap_alloc(heaps[count - 1], 1 << 20) != NULL);
}

static void many_heaps_leave_room_for_caches(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(heaps_leave_room_for_caches, NULL), 0);
}

/* A drain asks the threads for their items by a number of the client. */
static void a_heap_at_its_limit_drains_no_other(void **state) {
    (void)state;
    sy_heap *heap = make_limited("tenant", 4 * UNIT), *other = make_heap("other", 0);
    sy_heap_free(heap, sy_heap_alloc(heap, 64));
    sy_heap_free(other, sy_heap_alloc(other, 64));
    sy_client *own = &sy_heap_cache_for(heap, 64)->client;
    sy_client *foreign = &sy_heap_cache_for(other, 64)->client;
    uint32_t own_before = atomic_load(&own->generation);
    uint32_t foreign_before = atomic_load(&foreign->generation);
    refused_for(sy_heap_alloc(heap, 8 * UNIT), SY_REFUSAL_HEAP_LIMIT);
    assert_int_not_equal(atomic_load(&own->generation), own_before);
    assert_int_equal(atomic_load(&foreign->generation), foreign_before);
    sy_heap_destroy_all(heap);
    sy_heap_destroy_all(other);
}

static void the_limit_of_the_process_is_a_heaps_too(void **state) {
    (void)state;
    sy_heap *heap = make_limited("tenant", 100 * MIB);
    assert_int_equal(sy_set_limit(&(sy_limit){.hard = sy_limit_used() + UNIT}), 0);
    refused_for(sy_heap_alloc(heap, 3 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(heap_used(heap), 0);
    assert_int_equal(sy_set_limit(NULL), 0);
    void *object = sy_heap_alloc(heap, 3 * UNIT);
    assert_non_null(object);
    sy_heap_free(heap, object);
    end_heap(heap);
}

static struct told {
    sy_heap *heap;
    unsigned calls;
    size_t used, soft, count;
    void *objects[2000];
} told;

static void tell(void *arg, size_t used, size_t soft) {
    told.calls++;
    told.used = used;
    told.soft = soft;
    must(arg == &told);
    while (told.count) sy_heap_free(told.heap, told.objects[--told.count]);
}

static void the_soft_mark_is_told(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        told = (struct told){0};
        told.heap = sy_heap_create(&(sy_heap_config){
            .flags = kinds[kind],
            .limit = {.hard = 4 * UNIT, .soft = 2 * UNIT, .callback = tell, .arg = &told}});
        assert_non_null(told.heap);
        while (told.count < 1000) told.objects[told.count++] = sy_heap_alloc(told.heap, 64);
        assert_int_equal(told.calls, 0);
        void *object = sy_heap_alloc(told.heap, 200);
        assert_int_equal(told.calls, 1);
        assert_int_equal(told.used, 2 * UNIT);
        assert_int_equal(told.soft, 2 * UNIT);
        heap_is_sound(told.heap, 1);
        sy_heap_free(told.heap, object);
        end_heap(told.heap);
    }
}

static struct nested {
    unsigned depth, calls;
    void *span;
} nested;

/* The callback of the heap's limit and of the process's limit. Its first call, for the heap,
 * allocates and so reaches the soft limit of the process. */
static void tell_nested(void *arg, size_t used, size_t soft) {
    (void)used;
    (void)soft;
    must(arg == &nested && nested.depth++ == 0);
    if (nested.calls++ == 0) must((nested.span = sy_malloc(8 * UNIT)) != NULL);
    nested.depth--;
}

static void one_is_told_after_the_other(void **state) {
    (void)state;
    nested = (struct nested){0};
    sy_limit limit = {.soft = UNIT, .callback = tell_nested, .arg = &nested};
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.limit = limit});
    limit.soft = sy_limit_used() + 8 * UNIT;
    assert_int_equal(sy_set_limit(&limit), 0);
    void *object = sy_heap_alloc(heap, 64);
    assert_int_equal(nested.calls, 2); /* one call for each limit */
    assert_int_equal(sy_set_limit(NULL), 0);
    sy_free(nested.span);
    sy_heap_free(heap, object);
    end_heap(heap);
}

static void before_it_is_refused_it_is_told(void **state) {
    (void)state;
    told = (struct told){0};
    sy_heap *heap = told.heap = sy_heap_create(
        &(sy_heap_config){.limit = {.hard = 8 * UNIT, .callback = tell, .arg = &told}});
    told.objects[told.count++] = sy_heap_alloc(heap, 6 * UNIT);
    void *object = sy_heap_alloc(heap, 5 * UNIT);
    assert_non_null(object);
    assert_int_equal(told.calls, 1);
    refused_for(sy_heap_alloc(heap, 4 * UNIT), SY_REFUSAL_HEAP_LIMIT);
    assert_int_equal(told.calls, 2);
    sy_heap_free(heap, object);
    end_heap(heap);
}

/* What the callback frees lies in magazines and slabs of its size. It serves another size. */
static void what_the_callback_frees_serves_other_sizes(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        told = (struct told){0};
        told.heap = sy_heap_create(&(sy_heap_config){
            .flags = kinds[kind], .limit = {.hard = 4 * UNIT, .callback = tell, .arg = &told}});
        assert_non_null(told.heap);
        while (told.count < 1200) told.objects[told.count++] = sy_heap_alloc(told.heap, 200);
        assert_int_equal(heap_used(told.heap), 4 * UNIT);
        void *object = sy_heap_alloc(told.heap, 3000);
        assert_non_null(object);
        assert_int_equal(told.calls, 1);
        heap_is_sound(told.heap, 1);
        sy_heap_free(told.heap, object);
        end_heap(told.heap);
    }
}

static void destroy_own(void *arg, size_t used, size_t soft) {
    (void)used;
    (void)soft;
    sy_heap *heap = *(sy_heap **)arg;
    errno = 0;
    must(sy_heap_destroy(heap) == -1 && errno == EBUSY);
    sy_heap_destroy_all(heap);
}

/* No object is live, but an allocation from the heap is at work. It still finds the heap. */
static void the_callback_may_destroy_all_of_its_heap(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        sy_heap *heap;
        size_t before = sy_limit_used();
        heap = sy_heap_create(
            &(sy_heap_config){.flags = kinds[kind],
                              .limit = {.hard = 4 * UNIT, .callback = destroy_own, .arg = &heap}});
        assert_non_null(heap);
        sy_heap_free(heap, sy_heap_alloc(heap, 64));
        refused_for(sy_heap_alloc(heap, 5 * UNIT), SY_REFUSAL_HEAP_LIMIT);
        assert_int_equal(sy_limit_used(), before);
    }
}

/* ---- the end ---- */

static void a_heap_with_live_objects_is_not_destroyed(void **state) {
    (void)state;
    for (unsigned i = 0; i < SIZES; i++) {
        sy_heap *heap = make_heap("tenant", 0);
        void *others[SIZES], *live = sy_heap_alloc(heap, all_sizes[i]);
        for (unsigned j = 0; j < SIZES; j++) others[j] = sy_heap_alloc(heap, all_sizes[j]);
        for (unsigned j = 0; j < SIZES; j++) sy_heap_free(heap, others[j]);
        fill_ends(live, all_sizes[i], i);
        errno = 0;
        assert_int_equal(sy_heap_destroy(heap), -1);
        assert_int_equal(errno, EBUSY);
        assert_true(ends_filled(live, all_sizes[i], i));
        heap_is_sound(heap, 1);
        sy_heap_trim(heap); /* goes through all caches: none was left suspended */
        for (unsigned j = 0; j < SY_HEAP_CACHES; j++)
            if (sy_heap_cache(heap, j)) assert_false(sy_heap_cache(heap, j)->client.suspended);
        sy_heap_free(heap, live);
        end_heap(heap);
    }
    assert_int_equal(sy_heap_destroy(NULL), 0);
    sy_heap_destroy_all(NULL);
}

static void *destroy_all(void *heap) {
    sy_heap_destroy_all(heap);
    return NULL;
}

static void all_of_a_heap_can_go_at_once(void **state) {
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t before = sy_limit_used();
        sy_heap *heap = make_heap("tenant", kinds[kind]);
        for (unsigned i = 0; i < 20 * SIZES; i++)
            assert_non_null(sy_heap_alloc(heap, all_sizes[i % SIZES]));
        in_thread(destroy_all, heap);
        assert_int_equal(sy_limit_used(), before);
        assert_int_equal(sy_chunk_verify(&sy_memory_main), 0);
        sy_trim();
    }
}

static void a_heap_gives_memory_back(void **state) {
    (void)state;
    static void *objects[4096];
    sy_heap *heap = make_heap("tenant", 0);
    for (size_t i = 0; i < 4096; i++) memset(objects[i] = sy_heap_alloc(heap, 1000), 1, 1000);
    for (size_t i = 0; i < 4096; i++) sy_heap_free(heap, objects[i]);
    assert_true(sy_heap_trim(heap) > 3 * MIB);
    assert_int_equal(heap_used(heap), 0);
    end_heap(heap);
}

/* A large object that is freed leaves its units for other sizes at once. */
static void large_objects_leave_nothing_behind(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    for (unsigned i = 0; i < SIZES; i++) {
        sy_heap_free(heap, sy_heap_alloc(heap, all_sizes[i]));
        if (all_sizes[i] > SY_CLASS_SIZE_MAX) assert_int_equal(heap_used(heap), 0);
        sy_heap_trim(heap);
    }
    end_heap(heap);
}

/* ---- creation and inspection ---- */

static void heaps_that_make_no_sense(void **state) {
    (void)state;
    sy_heap_config wrong[] = {{.flags = SY_COLOUR},
                              {.flags = SY_LIMIT_EXACT},
                              {.flags = 1u << 31},
                              {.limit = {.soft = 5}},
                              {.limit = {.soft = 5, .hard = 4, .callback = tell}},
                              {.name = "last"}};
    wrong[5].reserved[6] = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        assert_null(sy_heap_create(&wrong[i]));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(sy_heap_create(NULL));
    assert_int_equal(errno, EINVAL);
}

static void names_are_cut(void **state) {
    (void)state;
    sy_heap *heap = make_heap("a name that is far too long", 0), *nameless = make_heap(NULL, 0);
    sy_heap_stats stats;
    assert_int_equal(sy_heap_get_stats(heap, &stats), 0);
    assert_string_equal(stats.name, "a name that is ");
    sy_heap_free(heap, sy_heap_alloc(heap, (size_t)1 << SY_HEAP_SIZE_SHIFT));
    const sy_cache *last = sy_heap_cache(heap, SY_HEAP_CLASSES - 1);
    assert_non_null(last);
    assert_int_equal(strncmp(last->name, "a name that is -", 16), 0);
    assert_int_equal(strtoull(last->name + 16, NULL, 10), (size_t)1 << SY_HEAP_SIZE_SHIFT);
    assert_int_equal(sy_heap_get_stats(nameless, &stats), 0);
    assert_string_equal(stats.name, "heap");
    errno = 0;
    assert_int_equal(sy_heap_get_stats(NULL, &stats), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(sy_heap_get_stats(heap, NULL), -1);
    assert_int_equal(errno, EINVAL);
    end_heap(heap);
    end_heap(nameless);
}

static void statistics_count_what_is_live(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    sy_heap_stats stats;
    void *objects[] = {sy_heap_alloc(heap, 100), sy_heap_alloc(heap, 101),
                       sy_heap_alloc(heap, 190000)};
    assert_int_equal(sy_heap_get_stats(heap, &stats), 0);
    assert_int_equal(stats.objects, 3);
    assert_int_equal(stats.live_bytes, 2 * 112 + 3 * UNIT);
    assert_int_equal(stats.caches, 2);
    assert_int_equal(stats.used, sy_heap_cache(heap, 8)->layout.slab_bytes + 3 * UNIT);
    assert_int_equal(stats.limit, 0);
    assert_int_equal(stats.soft, 0);
    for (size_t i = 0; i < 3; i++) sy_heap_free(heap, objects[i]);
    end_heap(heap);
}

static void a_heap_over_memory_of_the_program(void **state) {
    (void)state;
    static char region[13 * MIB];
    size_t before = sy_limit_used(), count = 0;
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.start = region, .bytes = sizeof region});
    sy_heap *heap = sy_heap_create(
        &(sy_heap_config){.memory = memory, .limit = {.hard = 6 * MIB}, .flags = SY_HANDLES});
    assert_non_null(heap);
    errno = 0;
    assert_int_equal(sy_memory_destroy(memory), -1);
    assert_int_equal(errno, EBUSY);
    char *objects[12];
    while ((objects[count] = sy_heap_alloc(heap, MIB)) != NULL) {
        assert_true(objects[count] >= region && objects[count] < region + sizeof region);
        count++;
    }
    assert_int_equal(count, 6);
    refused_for(NULL, SY_REFUSAL_HEAP_LIMIT);
    assert_int_equal(sy_limit_used(), before);
    while (count) sy_heap_free(heap, objects[--count]);
    end_heap(heap);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

/* ---- fork ---- */

static void go_on(void *arg) {
    void **both = arg;
    sy_heap *heap = both[0];
    heap_is_sound(heap, 1);
    must(ends_filled(both[1], 300000, 5));
    sy_heap_free(heap, both[1]);
    must(!sy_heap_alloc(heap, 2 * MIB) && sy_last_refusal() == SY_REFUSAL_HEAP_LIMIT);
    end_heap(heap);
}

static void a_child_has_its_own_copy(void **state) {
    (void)state;
    sy_heap *heap = make_limited("tenant", MIB);
    void *both[2] = {heap, sy_heap_alloc(heap, 300000)};
    fill_ends(both[1], 300000, 5);
    sy_heap_free(heap, sy_heap_alloc(heap, 100));
    assert_int_equal(in_child(go_on, both), 0);
    go_on(both);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_has_its_size),
        cmocka_unit_test(size_0_gives_unique_pointers),
        cmocka_unit_test(sizes_beyond_reason_are_refused),
        cmocka_unit_test(calloc_gives_zeroes),
        cmocka_unit_test(objects_can_be_aligned),
        cmocka_unit_test(realloc_keeps_the_content),
        cmocka_unit_test(the_cache_of_a_size_has_its_objects),
        cmocka_unit_test(within_its_class_an_object_stays),
        cmocka_unit_test(try_free_takes_its_live_objects_alone),
        cmocka_unit_test(any_thread_may_free),
        cmocka_unit_test(misuse_is_seen_at_once),
        cmocka_unit_test(a_double_free_is_seen_by_the_slow_path),
        cmocka_unit_test(a_heap_has_a_limit_in_bytes),
        cmocka_unit_test(other_classes_make_room),
        cmocka_unit_test(many_heaps_leave_room_for_caches),
        cmocka_unit_test(a_heap_at_its_limit_drains_no_other),
        cmocka_unit_test(the_limit_of_the_process_is_a_heaps_too),
        cmocka_unit_test(the_soft_mark_is_told),
        cmocka_unit_test(one_is_told_after_the_other),
        cmocka_unit_test(before_it_is_refused_it_is_told),
        cmocka_unit_test(what_the_callback_frees_serves_other_sizes),
        cmocka_unit_test(the_callback_may_destroy_all_of_its_heap),
        cmocka_unit_test(a_heap_with_live_objects_is_not_destroyed),
        cmocka_unit_test(all_of_a_heap_can_go_at_once),
        cmocka_unit_test(a_heap_gives_memory_back),
        cmocka_unit_test(large_objects_leave_nothing_behind),
        cmocka_unit_test(heaps_that_make_no_sense),
        cmocka_unit_test(names_are_cut),
        cmocka_unit_test(statistics_count_what_is_live),
        cmocka_unit_test(a_heap_over_memory_of_the_program),
        cmocka_unit_test(a_child_has_its_own_copy),
        cmocka_unit_test(a_product_that_runs_over_is_refused),
    };
    return cmocka_run_group_tests_name("heaps", tests, NULL, NULL);
}
