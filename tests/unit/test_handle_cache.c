/*
 * test_handle_cache.c: what cache.h promises, of caches with handles: objects by address, every
 * configuration, constructors, the end, and memory that goes back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/handles.h"
#include "support/resident.h"
#include "support/sanitized.h"
#include "support/services.h"

/* ---- by address ---- */

static void an_address_tells_the_handle_if_a_live_object_begins_there(void **state) {
    (void)state;
    static char foreign[64];
    sy_cache *cache = make_orders(0), *other = make((sy_cache_config){.size = 20000});
    sy_cache *plain = make_plain(48);
    sy_handle handle, others, freed;
    char *object = get(cache, &handle), *large = get(other, &others);
    char *plains = sy_cache_alloc(plain), *small = sy_malloc(48), *span = sy_malloc(1 << 20);
    char *huge = sy_malloc(9 << 20), *gone = get(cache, &freed);
    must(sy_handle_free(cache, freed));
    assert_int_equal(sy_handle_of(object), handle);
    assert_int_equal(sy_handle_of(large), others);
    for (int at = 1; at < 48; at++) assert_int_equal(sy_handle_of(object + at), 0);
    for (int at = 1; at < 20000; at++) must(sy_handle_of(large + at) == 0);
    const uintptr_t chunk = (uintptr_t)object & ~(uintptr_t)(SY_CHUNK_BYTES - 1);
    const uintptr_t slab = (uintptr_t)object & ~(uintptr_t)(SY_UNIT_BYTES - 1);
    const void *none[] = {NULL,
                          gone,
                          foreign,
                          plains,
                          small,
                          span,
                          span + 65536,
                          huge,
                          huge + (5 << 20),
                          &handle,
                          (void *)1,
                          (void *)UINTPTR_MAX,
                          (void *)chunk,
                          cache,
                          (void *)(chunk + SY_CHUNK_BYTES - 16),
                          (void *)note_fault,
                          (void *)(slab + SY_UNIT_BYTES - 16)};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(sy_handle_of(none[i]), 0);
    sy_free(small), sy_free(span), sy_free(huge), sy_cache_free(plain, plains);
    must(sy_handle_free(cache, handle) && sy_handle_free(other, others));
    for (size_t at = 0; at < SY_UNIT_BYTES; at++) must(sy_handle_of((char *)slab + at) == 0);
    end(cache), end(other), end(plain);
}

static void objects_taken_by_address_have_handles(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    for (size_t i = 0; i < COUNT; i++) {
        must((objects[i] = i % 2 ? sy_cache_alloc(cache) : sy_cache_zalloc(cache)) != NULL);
        must((handles[i] = sy_handle_of(objects[i])) != 0);
        must(sy_handle_get(cache, handles[i]) == objects[i]);
    }
    sound(cache, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0) must(sy_handle_free(cache, handles[i]));
        if (i % 3 == 1) sy_cache_free(cache, objects[i]);
        if (i % 3 == 2) must(sy_cache_try_free(cache, objects[i]));
        refused(cache, handles[i]);
        must(sy_handle_of(objects[i]) == 0 && !sy_cache_try_free(cache, objects[i]));
    }
    sy_cache_free(cache, NULL);
    assert_int_equal(faults, 0);
    end(cache);
}

static void a_zeroed_object_is_zeroed(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            const unsigned char *object = objects[i] = sy_cache_zalloc(cache);
            for (size_t at = 0; at < 48; at++) must(object[at] == 0);
            memset(objects[i], 0xff, 48);
        }
        for (size_t i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    }
    end(cache);
}

static void batches_have_handles_too(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48, .limit = 2000, .flags = SY_LIMIT_EXACT});
    errno = 0;
    assert_int_equal(sy_cache_alloc_batch(cache, objects, COUNT), 2000);
    assert_int_equal(errno, ENOMEM);
    for (size_t i = 0; i < 2000; i++) {
        must((handles[i] = sy_handle_of(objects[i])) != 0);
        must(sy_handle_get(cache, handles[i]) == objects[i]);
    }
    sound(cache, 2000);
    objects[5] = objects[1999] = NULL;
    sy_cache_free_batch(cache, objects, 2000);
    sound(cache, 2);
    for (size_t i = 0; i < 2000; i++)
        must(sy_handle_free(cache, handles[i]) == (i == 5 || i == 1999));
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 0), 0);
    end(cache);
}

static void an_object_pinned_and_freed_by_address_stays(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle handle;
    char *object = get(cache, &handle);
    for (int how = 0; how < 2; how++) {
        must(sy_handle_pin(cache, handle) == object);
        if (how)
            must(sy_cache_try_free(cache, object));
        else
            sy_cache_free(cache, object);
        refused(cache, handle);
        sound(cache, 1);
        sy_cache_free(cache, object);
        expect_fault(SY_FAULT_DOUBLE_FREE, object, NULL);
        sy_handle_unpin(cache, handle);
        sound(cache, 0);
        object = get(cache, &handle);
    }
    must(sy_handle_free(cache, handle));
    end(cache);
}

/* At once, without SY_CHECKED too. */
static void wrong_frees_by_address_are_faults(void **state) {
    (void)state;
    static char foreign[64];
    static const unsigned flags[] = {0, SY_CHECKED, SY_COLOUR};
    for (int f = 0; f < 3; f++) {
        sy_cache *cache = make_orders(flags[f]);
        sy_cache *trades = make((sy_cache_config){.name = "trade", .size = 48});
        sy_cache *plain = make_plain(48);
        char *object = sy_cache_alloc(cache), *trade = sy_cache_alloc(trades);
        char *plains = sy_cache_alloc(plain), *small = sy_malloc(100), *span = sy_malloc(1 << 20);
        sy_cache_free(cache, foreign);
        expect_fault(SY_FAULT_FOREIGN_POINTER, foreign, NULL);
        sy_cache_free(cache, (void *)UINTPTR_MAX);
        expect_fault(SY_FAULT_FOREIGN_POINTER, (void *)UINTPTR_MAX, NULL);
        sy_cache_free(cache, object + 8);
        expect_fault(SY_FAULT_MISALIGNED_POINTER, object + 8, NULL);
        sy_cache_free(cache, trade);
        expect_fault(SY_FAULT_WRONG_CACHE, trade, "trade");
        sy_cache_free(cache, plains);
        expect_fault(SY_FAULT_WRONG_CACHE, plains, "plain");
        sy_cache_free(cache, small);
        expect_fault(SY_FAULT_WRONG_CACHE, small, "heap-112");
        sy_cache_free(cache, span);
        expect_fault(SY_FAULT_WRONG_CACHE, span, "heap");
        sound(cache, 1);
        sy_cache_free(cache, object);
        sy_cache_free(cache, object);
        expect_fault(SY_FAULT_DOUBLE_FREE, object, NULL);
        void *batch[] = {object, NULL};
        sy_cache_free_batch(cache, batch, 2);
        expect_fault(SY_FAULT_DOUBLE_FREE, object, NULL);
        sy_cache_free(trades, trade), sy_cache_free(plain, plains), sy_free(small), sy_free(span);
        assert_int_equal(faults, 0);
        end(cache), end(trades), end(plain);
    }
}

static void other_caches_refuse_objects_with_handles(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "named", .size = 48});
    sy_cache *orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = 48});
    void *object = sy_cache_alloc(cache);
    assert_false(sy_cache_try_free(orders, object));
    sy_cache_free(orders, object);
    sy_thread_flush();
    expect_fault(SY_FAULT_WRONG_CACHE, object, "named");
    sy_free(object);
    assert_int_equal(faults, 1);
    assert_int_equal(last_fault.kind, SY_FAULT_WRONG_CACHE);
    faults = 0;
    sy_cache_free(cache, object);
    end(cache), end(orders);
}

/* ---- configurations ---- */

static const unsigned FLAGS[] = {0,
                                 SY_CHECKED,
                                 SY_COLOUR,
                                 SY_LIMIT_EXACT,
                                 SY_CHECKED | SY_COLOUR,
                                 SY_CHECKED | SY_LIMIT_EXACT,
                                 SY_COLOUR | SY_LIMIT_EXACT,
                                 SY_CHECKED | SY_COLOUR | SY_LIMIT_EXACT};
enum { FLAGS_COUNT = sizeof FLAGS / sizeof *FLAGS };

/* A limit is never passed, and reached: exactly, or but for what magazines may hold. */
static void limits_hold_with_all_flags(void **state) {
    (void)state;
    for (int f = 0; f < FLAGS_COUNT; f++)
        for (size_t limit = 1; limit < COUNT; limit = limit * 5 + 2) {
            sy_cache *cache =
                make((sy_cache_config){.size = 100, .limit = limit, .flags = FLAGS[f]});
            for (int round = 0; round < 3; round++) {
                size_t got = 0;
                handles[0] = 4711;
                errno = 0;
                while (got < COUNT && (objects[got] = sy_handle_alloc(cache, &handles[got]))) {
                    must(sy_handle_get(cache, handles[got]) == objects[got]);
                    handles[++got] = 4711;
                }
                assert_int_equal(errno, ENOMEM);
                assert_int_equal(handles[got], 4711);
                assert_int_equal(got, limit);
                sound(cache, got);
                while (got > 0) must(sy_handle_free(cache, handles[--got]));
                sound(cache, 0);
            }
            end(cache);
        }
}

static void use_at_random(sy_cache *cache, size_t size) {
    uint64_t random = size + 1;
    size_t live = 0;
    memset(objects, 0, sizeof objects);
    memset(handles, 0, sizeof handles);
    for (int step = 0; step < 20000; step++) {
        size_t i = next_random(&random) % 400;
        if (objects[i]) {
            must(is_filled(i, size) && sy_handle_get(cache, handles[i]) == objects[i]);
            must(sy_handle_free(cache, handles[i]));
            objects[i] = NULL;
            live--;
        } else {
            refused(cache, handles[i]);
            memset(objects[i] = get(cache, &handles[i]), (int)(i % 251), size);
            live++;
        }
        if (step % 5000 == 0) sy_cache_trim(cache);
    }
    sound(cache, live);
    for (size_t i = 0; i < 400; i++)
        if (objects[i]) must(sy_handle_free(cache, handles[i]));
}

static void all_flags_together_work(void **state) {
    (void)state;
    for (int f = 0; f < FLAGS_COUNT; f++) {
        sy_cache *cache = make((sy_cache_config){.size = 72, .limit = 4000, .flags = FLAGS[f]});
        use_at_random(cache, 72);
        end(cache);
    }
}

/* Several slabs of each, the largest one an object a slab. */
static void all_sizes_and_alignments_have_handles(void **state) {
    (void)state;
    static const size_t cases[][3] = {
        /* size, align, how many */
        {1, 0, 20000},   {8, 0, 20000},      {24, 8, 5000},   {1000, 0, 300},  {64, 64, 2500},
        {1, 4096, 60},   {5000, 4096, 60},   {40000, 0, 40},  {131072, 0, 20}, {131073, 0, 6},
        {1 << 20, 0, 4}, {1 << 20, 4096, 4}, {3 << 20, 0, 3}, {6 << 20, 0, 3}, {100, 1 << 20, 4}};
    static sy_handle many[20000];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned flags = 0; flags <= SY_COLOUR; flags += SY_COLOUR) {
            size_t size = cases[c][0], align = cases[c][1], count = cases[c][2];
            sy_cache *cache = make((sy_cache_config){.size = size, .align = align, .flags = flags});
            for (size_t i = 0; i < count; i++) {
                unsigned char *object = get(cache, &many[i]);
                must(!align || (uintptr_t)object % align == 0);
                object[0] = object[size - 1] = (unsigned char)i;
                must(sy_handle_of(object) == many[i]);
            }
            for (size_t i = 0; i < count; i++) {
                const unsigned char *object = sy_handle_get(cache, many[i]);
                must(object[0] == (unsigned char)i && object[size - 1] == (unsigned char)i);
            }
            sound(cache, count);
            for (size_t i = 0; i < count; i++) must(sy_handle_free(cache, many[i]));
            for (size_t i = 0; i < count; i++) refused(cache, many[i]);
            end(cache);
        }
}

/* ---- constructors ---- */

static size_t constructed, destructed;
static size_t fails_in; /* the so many-th constructor from now fails; 0: none */

static int construct(void *object, void *arg) {
    (void)arg;
    if (fails_in && --fails_in == 0) {
        errno = ECANCELED;
        return -1;
    }
    memset(object, 0xc5, 48);
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    for (int at = 0; at < 48; at++) must(((unsigned char *)object)[at] == 0xc5);
    destructed++;
}

static sy_cache *make_constructed(unsigned flags, size_t size) {
    constructed = destructed = fails_in = 0;
    return make((sy_cache_config){.name = "order",
                                  .size = size,
                                  .construct = construct,
                                  .destruct = destruct,
                                  .flags = flags});
}

static void objects_are_constructed_once_and_destructed_once(void **state) {
    (void)state;
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED) {
        sy_cache *cache = make_constructed(flags, 48);
        for (int round = 0; round < 3; round++) {
            for (size_t i = 0; i < COUNT; i++) {
                const unsigned char *object = get(cache, &handles[i]);
                for (int at = 0; at < 48; at++) must(object[at] == 0xc5);
            }
            size_t so_far = constructed;
            for (size_t i = 0; i < COUNT; i++) {
                must(sy_handle_free(cache, handles[0]));
                get(cache, &handles[0]);
            }
            must(constructed == so_far && constructed - destructed >= COUNT);
            give_all(cache);
            if (round == 1) must(sy_cache_trim(cache) > 0 && constructed == destructed);
        }
        errno = 0;
        assert_null(sy_cache_zalloc(cache));
        assert_int_equal(errno, EINVAL);
        end(cache);
        assert_int_equal(constructed, destructed);
    }
}

/* An object a page, so that a trim destructs each by itself. */
static void an_object_waits_for_its_last_pin_before_it_is_destructed(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make_constructed(0, sy_os_page_size());
    sy_handle handle;
    get(cache, &handle);
    must(sy_handle_pin(cache, handle) != NULL && sy_handle_free(cache, handle));
    sy_cache_trim(cache);
    assert_int_equal(constructed - destructed, 1);
    sy_handle_unpin(cache, handle);
    sy_cache_trim(cache);
    assert_int_equal(constructed, destructed);
    end(cache);
}

static void a_constructor_that_fails_fails_the_allocation(void **state) {
    (void)state;
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED) {
        sy_cache *cache = make_constructed(flags, 48);
        size_t live = 0, failed = 0;
        for (int step = 0; step < 300; step++) {
            handles[live] = 4711;
            fails_in = step % 3 == 0;
            errno = 0;
            void *object = sy_handle_alloc(cache, &handles[live]);
            must(object || (errno == ECANCELED && handles[live] == 4711));
            if (object) must(sy_handle_get(cache, handles[live++]) == object);
            failed += !object;
        }
        assert_true(failed > 0);
        sound(cache, live);
        while (live > 0) must(sy_handle_free(cache, handles[--live]));
        fails_in = 0;
        end(cache);
        assert_int_equal(constructed, destructed);
    }
}

static sy_cache *nested_cache;
static sy_handle nested_handle;

static void destruct_and_free_another(void *object, void *arg) {
    (void)object, (void)arg;
    sy_handle handle = nested_handle;
    nested_handle = 0;
    if (handle) must(sy_handle_free(nested_cache, handle));
}

static void a_destructor_may_free_by_handle(void **state) {
    (void)state;
    nested_cache = make((sy_cache_config){
        .size = 48, .construct = construct, .destruct = destruct_and_free_another});
    take_all(nested_cache, 48);
    nested_handle = handles[0];
    for (size_t i = 1; i < COUNT; i++) must(sy_handle_free(nested_cache, handles[i]));
    sy_cache_trim(nested_cache);
    assert_int_equal(nested_handle, 0);
    end(nested_cache);
}

/* ---- the end of caches, and memory ---- */

static void a_cache_with_live_objects_is_busy(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle handle;
    void *object = get(cache, &handle);
    errno = 0;
    assert_int_equal(sy_cache_destroy(cache), -1);
    assert_int_equal(errno, EBUSY);
    assert_ptr_equal(sy_handle_get(cache, handle), object);
    must(sy_handle_pin(cache, handle) && sy_handle_free(cache, handle));
    assert_int_equal(sy_cache_destroy(cache), -1);
    sy_handle_unpin(cache, handle);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void destroying_all_destructs_live_pinned_and_dying_objects(void **state) {
    (void)state;
    sy_cache *cache = make_constructed(0, 48);
    for (size_t i = 0; i < COUNT; i++) {
        get(cache, &handles[i]);
        if (i % 4 == 1) must(sy_handle_pin(cache, handles[i]) != NULL);
        if (i % 8 == 1) must(sy_handle_free(cache, handles[i]));
    }
    sy_cache_destroy_all(cache);
    assert_int_equal(constructed, destructed);
    sy_cache *next = make_orders(0);
    for (size_t i = 0; i < COUNT; i++) refused(next, handles[i]);
    static sy_handle fresh[COUNT];
    for (size_t i = 0; i < COUNT; i++) get(next, &fresh[i]);
    for (size_t i = 0; i < COUNT; i++) refused(next, handles[i]);
    sy_cache_destroy_all(next);
}

#ifdef SLABYARD_TESTS_MOVABLE_H
enum { RESIDENT_SHARE = 12 }; /* with records of blocks of ordinals, in side memory */
#else
enum { RESIDENT_SHARE = 30 }; /* one part in so many may stay */
#endif
enum { RESIDENT_BYTES = 64 << 20 };

static void memory_goes_back(void *arg) {
    size_t size = *(size_t *)arg, count = RESIDENT_BYTES / (size + 8);
    sy_cache *cache = make((sy_cache_config){.size = size});
    sy_handle *all = malloc(count * sizeof *all);
    memset(all, 1, count * sizeof *all);
    sy_handle_free(cache, (get(cache, all), *all));
    size_t before = resident_anonymous();
    for (size_t i = 0; i < count; i++) memset(get(cache, &all[i]), 1, size);
    size_t full = resident_anonymous();
    for (size_t i = 0; i < count; i++) must(sy_handle_free(cache, all[i]));
    must(sy_cache_trim(cache) > 0);
    sy_trim();
    size_t after = resident_anonymous();
    for (size_t i = 0; i < count; i++) refused(cache, all[i]);
    must(SANITIZED || full - before > RESIDENT_BYTES / 2);
    size_t emulators = is_emulated() ? 4 << 20 : 0; /* its tables of what the library mapped */
    must(SANITIZED || after < before + RESIDENT_BYTES / RESIDENT_SHARE + emulators);
    sound(cache, 0);
}

static void objects_and_directory_give_their_memory_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    static const size_t sizes[] = {8, 48, 64, 200, 1000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(in_child(memory_goes_back, (void *)(uintptr_t)&sizes[i]), 0);
}

/* ---- the end of a cache ---- */

typedef struct sy_ending {
    sy_handle handles[8];
    size_t looked;
} sy_ending;

static int construct_nothing(void *object, void *arg) {
    (void)object;
    (void)arg;
    return 0;
}

/* In the midst of the destruction of a cache: another one that is made now is not taken for it. */
static void look_in_another(void *object, void *arg) {
    sy_ending *ending = arg;
    (void)object;
    sy_cache *other = make((sy_cache_config){.name = "other", .size = 64});
    sy_handle handle;
    must(sy_handle_alloc(other, &handle) != NULL);
    for (int i = 0; i < 8; i++) {
        must(sy_handle_get(other, ending->handles[i]) == NULL);
        must(sy_handle_pin(other, ending->handles[i]) == NULL);
        must(!sy_handle_free(other, ending->handles[i]));
    }
    must(sy_handle_free(other, handle));
    must(sy_cache_destroy(other) == 0);
    ending->looked++;
}

static void handles_of_a_cache_that_goes_are_nobodys(void **state) {
    (void)state;
    sy_ending ending = {.looked = 0};
    sy_cache *cache = make((sy_cache_config){.name = "going",
                                             .size = 64,
                                             .construct = construct_nothing,
                                             .destruct = look_in_another,
                                             .arg = &ending});
    for (int i = 0; i < 8; i++) must(sy_handle_alloc(cache, &ending.handles[i]) != NULL);
    sy_cache_destroy_all(cache);
    assert_true(ending.looked >= 8);
}

int main(void) {
    sy_set_fault_handler(note_fault);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_a_cache_that_goes_are_nobodys),
        cmocka_unit_test(an_address_tells_the_handle_if_a_live_object_begins_there),
        cmocka_unit_test(objects_taken_by_address_have_handles),
        cmocka_unit_test(a_zeroed_object_is_zeroed),
        cmocka_unit_test(batches_have_handles_too),
        cmocka_unit_test(an_object_pinned_and_freed_by_address_stays),
        cmocka_unit_test(wrong_frees_by_address_are_faults),
        cmocka_unit_test(other_caches_refuse_objects_with_handles),
        cmocka_unit_test(limits_hold_with_all_flags),
        cmocka_unit_test(all_flags_together_work),
        cmocka_unit_test(all_sizes_and_alignments_have_handles),
        cmocka_unit_test(objects_are_constructed_once_and_destructed_once),
        cmocka_unit_test(an_object_waits_for_its_last_pin_before_it_is_destructed),
        cmocka_unit_test(a_constructor_that_fails_fails_the_allocation),
        cmocka_unit_test(a_destructor_may_free_by_handle),
        cmocka_unit_test(a_cache_with_live_objects_is_busy),
        cmocka_unit_test(destroying_all_destructs_live_pinned_and_dying_objects),
        cmocka_unit_test(objects_and_directory_give_their_memory_back),
    };
    return cmocka_run_group_tests_name("handle_cache", tests, NULL, NULL);
}
