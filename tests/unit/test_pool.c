/*
 * test_pool.c: what pool.h promises, one behaviour a test. The fake stands between the library and
 * the real system. It makes calls fail and knows what the pool holds.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/pool.h>

#include "os/fake.h"
#include "os/os.h"
#include "pool/audit.h"
#include "support/emulated.h"
#include "support/faults.h"
#include "support/page_size.h"
#include "support/services.h"
#include "support/wide.h"

static const size_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

static size_t page;

static sy_pool *make(sy_pool_config config) {
    sy_pool *pool = sy_pool_create(&config);
    assert_non_null(pool);
    assert_null(sy_pool_audit(pool));
    return pool;
}

static void *get(sy_pool *pool) {
    void *object = sy_pool_alloc(pool);
    assert_non_null(object);
    return object;
}

/* Allocates `count` objects, and returns the last one. */
static void *get_many(sy_pool *pool, size_t count) {
    void *object = NULL;
    while (count-- > 0) object = get(pool);
    return object;
}

static void refused(sy_pool_config config, int error) {
    size_t reserved = sy_fake_reserved();
    errno = 0;
    assert_null(sy_pool_create(&config));
    assert_int_equal(errno, error);
    assert_int_equal(sy_fake_reserved(), reserved);
}

/* The number of the range's pages that are in memory. */
static size_t resident_pages(void *start, size_t bytes) {
    unsigned char states[1024];
    size_t pages = bytes / page, count = 0;
    assert_true(pages <= sizeof states);
    assert_int_equal(mincore(start, bytes, states), 0);
    for (size_t i = 0; i < pages; i++) count += states[i] & 1;
    return count;
}

/* ---- creation: what is refused, what is rounded ---- */

static void create_refuses_no_config(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_pool_create(NULL));
    assert_int_equal(errno, EINVAL);
}

static void create_refuses_size_0(void **state) {
    (void)state;
    refused((sy_pool_config){.size = 0}, EINVAL);
}

static void create_refuses_sizes_over_half_the_address_space(void **state) {
    (void)state;
    refused((sy_pool_config){.size = SIZE_MAX}, EINVAL);
    refused((sy_pool_config){.size = (size_t)PTRDIFF_MAX + 1}, EINVAL);
}

static void create_refuses_sizes_that_nothing_can_hold(void **state) {
    (void)state;
    needs_wide_addresses();
    refused((sy_pool_config){.size = PTRDIFF_MAX}, ENOMEM);
    refused((sy_pool_config){.size = PTRDIFF_MAX - 4096, .align = 1}, ENOMEM);
    refused((sy_pool_config){.size = PTRDIFF_MAX / 2, .align = SIZE_MAX / 8 + 1}, ENOMEM);
}

static void create_refuses_aligns_not_a_power_of_two(void **state) {
    (void)state;
    refused((sy_pool_config){.size = 8, .align = 3}, EINVAL);
    refused((sy_pool_config){.size = 8, .align = 24}, EINVAL);
    refused((sy_pool_config){.size = 8, .align = SIZE_MAX}, EINVAL);
    refused((sy_pool_config){.size = 8, .align = SIZE_MAX / 2 + 1}, EINVAL);
}

static void create_refuses_unknown_flags(void **state) {
    (void)state;
    refused((sy_pool_config){.size = 8, .flags = 1u << 2}, EINVAL);
    refused((sy_pool_config){.size = 8, .flags = SY_POOL_PREFAULT | 1u << 31}, EINVAL);
}

static void create_refuses_reserved_fields_in_use(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        sy_pool_config config = {.size = 8};
        config.reserved[i] = 1;
        refused(config, EINVAL);
    }
}

static void create_refuses_a_capacity_whose_product_overflows(void **state) {
    (void)state;
    refused((sy_pool_config){.size = 16, .capacity = SIZE_MAX}, ENOMEM);
    refused((sy_pool_config){.size = 16, .capacity = SIZE_MAX / 16 + 1}, ENOMEM);
    refused((sy_pool_config){.size = 16, .capacity = SIZE_MAX / 32}, ENOMEM);
    refused((sy_pool_config){.size = PTRDIFF_MAX / 2, .capacity = 4}, ENOMEM);
}

static void create_refuses_chunks_that_nothing_can_hold(void **state) {
    (void)state;
    refused((sy_pool_config){.size = 16, .chunk_bytes = SIZE_MAX}, ENOMEM);
    refused((sy_pool_config){.size = 16, .chunk_bytes = SIZE_MAX / 2}, ENOMEM);
}

static size_t slot_size_of(size_t size, size_t align) {
    sy_pool *pool = make((sy_pool_config){.size = size, .align = align});
    size_t bytes = sy_pool_slot_size(pool);
    sy_pool_destroy(pool);
    return bytes;
}

static void slot_size_is_the_size_rounded_up_to_the_align(void **state) {
    (void)state;
    assert_int_equal(slot_size_of(1, 0), 8);
    assert_int_equal(slot_size_of(8, 0), 8);
    assert_int_equal(slot_size_of(9, 0), 16);
    assert_int_equal(slot_size_of(16, 0), 16);
    assert_int_equal(slot_size_of(17, 0), 32);
    assert_int_equal(slot_size_of(17, 1), 24);
    assert_int_equal(slot_size_of(24, 8), 24);
    assert_int_equal(slot_size_of(100, 64), 128);
    assert_int_equal(slot_size_of(1, 4096), 4096);
    assert_int_equal(slot_size_of(5000, 2), 5000);
}

/* ---- addresses ---- */

static void every_object_is_aligned(void **state) {
    (void)state;
    for (size_t align = 1; align <= 2 * MIB; align *= 2) {
        for (int bounded = 0; bounded < 2; bounded++) {
            size_t count = align < 64 * KIB ? 3000 : 40;
            sy_pool_config config = {.size = 24, .align = align};
            if (bounded) config.capacity = count;
            sy_pool *pool = make(config);
            for (size_t i = 0; i < count; i++) assert_int_equal((uintptr_t)get(pool) % align, 0);
            assert_null(sy_pool_audit(pool));
            sy_pool_destroy(pool);
        }
    }
}

static void alignment_may_be_a_gibibyte(void **state) {
    (void)state;
    needs_wide_addresses();
    sy_pool *pool = make((sy_pool_config){.size = 8, .align = GIB});
    for (int i = 0; i < 3; i++) assert_int_equal((uintptr_t)get(pool) % GIB, 0);
    sy_pool_destroy(pool);
}

static void objects_from_16_bytes_are_16_aligned(void **state) {
    (void)state;
    for (size_t size = 16; size < 100; size += 7) {
        sy_pool *pool = make((sy_pool_config){.size = size});
        for (int i = 0; i < 100; i++) assert_int_equal((uintptr_t)get(pool) % 16, 0);
        sy_pool_destroy(pool);
    }
}

static void multiples_of_a_line_do_not_straddle_lines(void **state) {
    (void)state;
    for (size_t size = 64; size <= 640; size += 64) {
        sy_pool *pool = make((sy_pool_config){.size = size});
        for (int i = 0; i < 5000; i++) assert_int_equal((uintptr_t)get(pool) % 64, 0);
        sy_pool_destroy(pool);
    }
}

static void powers_of_two_pack_without_loss(void **state) {
    (void)state;
    for (size_t size = 8; size <= 4096; size *= 2) {
        sy_pool *pool = make((sy_pool_config){.size = size, .chunk_bytes = MIB});
        unsigned char *first = get(pool);
        assert_int_equal((uintptr_t)first % size, 0);
        size_t count = (MIB - 4096) / size;
        for (size_t i = 1; i < count; i++) assert_ptr_equal(get(pool), first + i * size);
        sy_pool_destroy(pool);
    }
}

static void objects_do_not_overlap(void **state) {
    (void)state;
    for (size_t size = 1; size < 3000; size = size * 3 + 1) {
        sy_pool *pool = make((sy_pool_config){.size = size, .chunk_bytes = 4096});
        unsigned char *objects[500];
        for (size_t i = 0; i < 500; i++) {
            objects[i] = get(pool);
            memset(objects[i], (int)(i & 0xff), sy_pool_slot_size(pool));
        }
        for (size_t i = 0; i < 500; i++) {
            for (size_t at = 0; at < sy_pool_slot_size(pool); at++)
                assert_int_equal(objects[i][at], i & 0xff);
        }
        assert_null(sy_pool_audit(pool));
        sy_pool_destroy(pool);
    }
}

/* ---- allocating and freeing ---- */

static void free_slots_are_given_last_in_first_out(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 40});
    void *a = get(pool), *b = get(pool), *c = get(pool);
    sy_pool_free(pool, b);
    sy_pool_free(pool, c);
    sy_pool_free(pool, a);
    assert_ptr_equal(get(pool), a);
    assert_ptr_equal(get(pool), c);
    assert_ptr_equal(get(pool), b);
    sy_pool_destroy(pool);
}

static void free_of_null_does_nothing(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 40});
    void *a = get(pool);
    sy_pool_free(pool, a);
    sy_pool_free(pool, NULL);
    assert_int_equal(sy_pool_in_use(pool), 0);
    assert_ptr_equal(get(pool), a);
    sy_pool_destroy(pool);
}

static void bounded_gives_its_capacity_and_no_more(void **state) {
    (void)state;
    static const size_t capacities[] = {1, 2, 63, 64, 1000, 4096, 100000};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        sy_pool *pool = make((sy_pool_config){.size = 48, .capacity = capacities[i]});
        assert_int_equal(sy_pool_capacity(pool), capacities[i]);
        void *last = get_many(pool, capacities[i]);
        for (int again = 0; again < 3; again++) {
            errno = 0;
            assert_null(sy_pool_alloc(pool));
            assert_int_equal(errno, ENOMEM);
        }
        assert_int_equal(sy_pool_in_use(pool), capacities[i]);
        assert_null(sy_pool_audit(pool));
        sy_pool_free(pool, last);
        assert_ptr_equal(get(pool), last);
        assert_null(sy_pool_alloc(pool));
        sy_pool_destroy(pool);
    }
}

static void bounded_needs_the_system_no_more_once_made(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 1000, .capacity = 1000});
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    memset(get_many(pool, 1000), 1, 1000);
    sy_pool_reset(pool);
    memset(get_many(pool, 1000), 1, 1000);
    assert_int_equal(sy_fake_failures(SY_FAKE_ANY), 0);
    sy_fake_reset();
    sy_pool_destroy(pool);
}

static void in_use_counts_exactly(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 100, .chunk_bytes = 4096});
    void *objects[1000];
    size_t live = 0;
    srand(1);
    for (int step = 0; step < 20000; step++) {
        if (live < 1000 && (live == 0 || rand() % 100 < (step / 1000 % 2 == 0 ? 60 : 40)))
            objects[live++] = get(pool);
        else
            sy_pool_free(pool, objects[--live]);
        if (step % 16 == 0) assert_int_equal(sy_pool_in_use(pool), live);
    }
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
}

static void in_use_survives_double_frees(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 32});
    void *a = get(pool), *b = get(pool);
    for (int i = 0; i < 5; i++) {
        sy_pool_free(pool, a);
        sy_pool_free(pool, b);
        assert_true(sy_pool_in_use(pool) <= 2);
    }
    sy_pool_destroy(pool);
}

/* ---- growing ---- */

static void growing_touches_no_new_page(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 4096});
    for (int grown = 0; grown < 12; grown++) {
        size_t before = sy_pool_capacity(pool);
        get_many(pool, before - sy_pool_in_use(pool));
        unsigned char *object = get(pool);
        size_t fresh = sy_pool_capacity(pool) - before;
        assert_true(fresh >= 14);
        assert_int_equal(resident_pages(object, fresh * 4096), 0);
    }
    sy_pool_destroy(pool);
}

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    size_t lines = 0;
    for (int c; (c = fgetc(maps)) != EOF;) lines += c == '\n';
    fclose(maps);
    return lines;
}

static void eight_gibibytes_take_few_mappings(void **state) {
    (void)state;
    needs_wide_addresses();
    if (is_emulated()) skip(); /* its list of mappings splits mappings of several gibibytes */
    size_t before = mappings();
    sy_pool *pool = make((sy_pool_config){.size = MIB});
    get_many(pool, 8 * 1024);
    assert_true(mappings() - before < 60);
    assert_true(sy_fake_calls(SY_FAKE_RESERVE) < 40);
    assert_true(sy_fake_calls(SY_FAKE_COMMIT) < 400);
    sy_pool_destroy(pool);
}

static void small_pools_take_one_chunk(void **state) {
    (void)state;
    size_t before = sy_fake_reserved();
    sy_pool *pool = make((sy_pool_config){.size = 64});
    assert_int_equal(sy_fake_reserved() - before, 64 * KIB);
    sy_pool_destroy(pool);
    pool = make((sy_pool_config){.size = 64, .chunk_bytes = 1});
    assert_int_equal(sy_fake_reserved() - before, page);
    sy_pool_destroy(pool);
    pool = make((sy_pool_config){.size = 64, .capacity = 20, .chunk_bytes = MIB});
    assert_int_equal(sy_fake_reserved() - before, page);
    sy_pool_destroy(pool);
}

static void capacity_of_unbounded_is_what_fits_without_growing(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 5000});
    for (int i = 0; i < 10; i++) {
        size_t capacity = sy_pool_capacity(pool), in_use = sy_pool_in_use(pool);
        uint64_t calls = sy_fake_calls(SY_FAKE_ANY);
        get_many(pool, capacity - in_use);
        assert_int_equal(sy_fake_calls(SY_FAKE_ANY), calls);
        assert_int_equal(sy_pool_capacity(pool), capacity);
        get(pool);
        assert_true(sy_fake_calls(SY_FAKE_ANY) > calls);
        assert_true(sy_pool_capacity(pool) > capacity);
    }
    sy_pool_destroy(pool);
}

static void objects_may_be_larger_than_a_chunk(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 3 * MIB + 1, .chunk_bytes = 4096});
    unsigned char *objects[20];
    for (size_t i = 0; i < 20; i++) {
        objects[i] = get(pool);
        objects[i][0] = objects[i][3 * MIB] = (unsigned char)i;
    }
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(objects[i][0], i);
        assert_int_equal(objects[i][3 * MIB], i);
    }
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
}

static void growing_takes_less_where_much_is_refused(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 1000});
    sy_fake_fail_above(SY_FAKE_RESERVE, 128 * KIB);
    get_many(pool, 5000);
    assert_true(sy_fake_failures(SY_FAKE_RESERVE) > 0);
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
}

static void committing_takes_less_where_much_is_refused(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 1000});
    sy_fake_fail_above(SY_FAKE_COMMIT, 64 * KIB);
    get_many(pool, 5000);
    assert_true(sy_fake_failures(SY_FAKE_COMMIT) > 0);
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
}

static void huge_pool_asks_for_huge_pages(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 4096, .flags = SY_POOL_HUGE});
    unsigned char *first = get_many(pool, 1);
    assert_int_equal((uintptr_t)first % (2 * MIB), 0);
    get_many(pool, 3000);
    assert_int_equal(sy_fake_calls(SY_FAKE_HUGE), sy_fake_calls(SY_FAKE_RESERVE));
    sy_pool_destroy(pool);
}

static void large_extents_start_at_a_huge_page(void **state) {
    (void)state;
    for (size_t pages = 513; pages < 520; pages++) {
        sy_pool *pool = make((sy_pool_config){.size = 4096, .capacity = pages});
        assert_int_equal((uintptr_t)get(pool) % (2 * MIB), 0);
        sy_pool_destroy(pool);
    }
}

static void huge_pool_does_without(void **state) {
    (void)state;
    sy_fake_fail_from(SY_FAKE_HUGE, 1);
    errno = 1234;
    sy_pool *pool = make((sy_pool_config){.size = 4096, .flags = SY_POOL_HUGE});
    assert_int_equal(errno, 1234);
    memset(get_many(pool, 3000), 1, 4096);
    sy_pool_destroy(pool);
}

/* ---- prefaulting ---- */

static void bounded_prefault_backs_all_of_it(void **state) {
    (void)state;
    sy_pool *pool =
        make((sy_pool_config){.size = 4096, .capacity = 500, .flags = SY_POOL_PREFAULT});
    unsigned char *first = get(pool);
    assert_int_equal(resident_pages(first, 500 * 4096), 500 * 4096 / page);
    sy_pool_destroy(pool);
}

static void bounded_without_prefault_backs_nothing(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 4096, .capacity = 500});
    unsigned char *first = get(pool);
    assert_int_equal(resident_pages(first, 500 * 4096), 0);
    sy_pool_destroy(pool);
}

static void unbounded_prefault_backs_each_chunk(void **state) {
    (void)state;
    needs_small_pages();
    sy_pool *pool = make((sy_pool_config){.size = 4096, .flags = SY_POOL_PREFAULT});
    for (int i = 0; i < 200; i++) {
        unsigned char *object = get(pool);
        assert_int_equal(resident_pages(object, 4096), 4096 / page);
    }
    assert_true(sy_fake_bytes(SY_FAKE_POPULATE) <= 200 * 4096 + 128 * KIB);
    sy_pool_destroy(pool);
}

static void what_was_backed_in_part_goes_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 4096, .flags = SY_POOL_PREFAULT});
    get_many(pool, sy_pool_capacity(pool) + 16); /* the second extent has chunks left */
    get_many(pool, sy_pool_capacity(pool) - sy_pool_in_use(pool));
    sy_fake_reset();
    sy_fake_fail_nth(SY_FAKE_POPULATE, 1);
    assert_null(sy_pool_alloc(pool));
    assert_int_equal(sy_fake_calls(SY_FAKE_RESERVE), 0);
    assert_int_equal(sy_fake_calls(SY_FAKE_DISCARD), 1);
    assert_int_equal(sy_fake_bytes(SY_FAKE_DISCARD), sy_fake_bytes(SY_FAKE_COMMIT));
    get(pool);
    sy_pool_destroy(pool);
}

/* ---- reset ---- */

static void reset_touches_no_slot(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    needs_small_pages();
    sy_pool *pool = make((sy_pool_config){.size = 4096});
    unsigned char *objects[300];
    for (size_t i = 0; i < 300; i++) objects[i] = get(pool);
    for (size_t i = 0; i < 300; i++) assert_int_equal(resident_pages(objects[i], 4096), 0);
    uint64_t calls = sy_fake_calls(SY_FAKE_ANY);
    sy_pool_reset(pool);
    assert_int_equal(sy_fake_calls(SY_FAKE_ANY), calls);
    for (size_t i = 0; i < 300; i++) assert_int_equal(resident_pages(objects[i], 4096), 0);
    sy_pool_destroy(pool);
}

static void reset_gives_the_same_slots_in_the_same_order(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 1000});
    static void *objects[3000];
    for (size_t i = 0; i < 3000; i++) objects[i] = get(pool);
    for (size_t i = 0; i < 3000; i += 3) sy_pool_free(pool, objects[i]);
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    sy_pool_reset(pool);
    assert_int_equal(sy_pool_in_use(pool), 0);
    assert_null(sy_pool_audit(pool));
    for (size_t i = 0; i < 3000; i++) assert_ptr_equal(get(pool), objects[i]);
    assert_int_equal(sy_fake_reserved(), reserved);
    assert_int_equal(sy_fake_committed(), committed);
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
}

static void reset_of_an_empty_pool_does_nothing(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 1000});
    sy_pool_reset(pool);
    assert_int_equal(sy_pool_in_use(pool), 0);
    get_many(pool, 100);
    sy_pool_destroy(pool);
}

static void reset_keeps_the_capacity(void **state) {
    (void)state;
    sy_pool *bounded = make((sy_pool_config){.size = 10, .capacity = 7});
    get_many(bounded, 7);
    sy_pool_reset(bounded);
    get_many(bounded, 7);
    assert_null(sy_pool_alloc(bounded));
    sy_pool_destroy(bounded);
    sy_pool *unbounded = make((sy_pool_config){.size = 1000});
    get_many(unbounded, 5000);
    size_t capacity = sy_pool_capacity(unbounded);
    sy_pool_reset(unbounded);
    assert_int_equal(sy_pool_capacity(unbounded), capacity);
    sy_pool_destroy(unbounded);
}

/* ---- the end, and failures before it ---- */

static void destroy_of_null_does_nothing(void **state) {
    (void)state;
    sy_pool_destroy(NULL);
}

static void rounds_of_everything_hold_flat(void **state) {
    (void)state;
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    for (int round = 0; round < 50; round++) {
        sy_pool *pool = make((sy_pool_config){.size = 64});
        size_t held = 0;
        for (int lap = 0; lap < 3; lap++) {
            get_many(pool, 20000);
            if (lap == 0) held = sy_fake_reserved();
            assert_int_equal(sy_fake_reserved(), held);
            sy_pool_reset(pool);
        }
        sy_pool_destroy(pool);
        assert_int_equal(sy_fake_reserved(), reserved);
        assert_int_equal(sy_fake_committed(), committed);
    }
}

static void destroy_discards_what_cannot_be_released(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_pool *pool = make((sy_pool_config){.size = 4096, .capacity = 100});
    unsigned char *first = get(pool);
    memset(first, 1, 4096);
    size_t bytes = 101 * 4096;
    sy_fake_fail_nth(SY_FAKE_RELEASE, 1);
    sy_pool_destroy(pool);
    assert_int_equal(resident_pages(first, bytes), 0);
    assert_int_equal(sy_os_release(first, bytes), 0);
}

/* Any call of a creation may fail. The creation returns a pool, or NULL with ENOMEM, and no address
 * space is left reserved. */
static void creation_survives_failures(const sy_pool_config *config) {
    size_t reserved = sy_fake_reserved();
    for (uint64_t n = 1;; n++) {
        sy_fake_reset();
        sy_fake_fail_nth(SY_FAKE_ANY, n);
        errno = 0;
        sy_pool *pool = sy_pool_create(config);
        if (sy_fake_failures(SY_FAKE_ANY) == 0) {
            assert_true(n > 2);
            sy_pool_destroy(pool);
            return;
        }
        sy_fake_reset();
        if (pool == NULL) assert_int_equal(errno, ENOMEM);
        sy_pool_destroy(pool);
        assert_int_equal(sy_fake_reserved(), reserved);
    }
}

static void creation_unwinds(void **state) {
    (void)state;
    creation_survives_failures(&(sy_pool_config){.size = 64});
    creation_survives_failures(&(sy_pool_config){.size = 64, .flags = SY_POOL_PREFAULT});
    creation_survives_failures(&(sy_pool_config){.size = 64, .capacity = 1 << 20});
    creation_survives_failures(&(sy_pool_config){
        .size = 64, .capacity = 1 << 16, .flags = SY_POOL_PREFAULT | SY_POOL_HUGE});
}

/* The n-th call of growing fails, alone or with all later calls. While allocations fail, the pool
 * stays as it was. When the system works again, so does the pool. Only address space whose release
 * failed too stays reserved. */
static void growth_survives_failures(sy_pool_config config, bool for_good) {
    for (uint64_t n = 1;; n++) {
        size_t before = sy_fake_reserved();
        sy_pool *pool = make(config);
        sy_fake_reset();
        if (for_good)
            sy_fake_fail_from(SY_FAKE_ANY, n);
        else
            sy_fake_fail_nth(SY_FAKE_ANY, n);
        for (size_t got = 0; got < 1000; got++) {
            size_t reserved = sy_fake_reserved(), capacity = sy_pool_capacity(pool);
            errno = 0;
            if (sy_pool_alloc(pool) != NULL) continue;
            assert_int_equal(errno, ENOMEM);
            assert_int_equal(sy_pool_in_use(pool), got);
            assert_int_equal(sy_pool_capacity(pool), capacity);
            if (sy_fake_failures(SY_FAKE_RELEASE) == 0)
                assert_int_equal(sy_fake_reserved(), reserved);
            assert_null(sy_pool_audit(pool));
            sy_fake_succeed(SY_FAKE_ANY);
            get(pool);
        }
        assert_null(sy_pool_audit(pool));
        bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
        bool stuck = sy_fake_failures(SY_FAKE_RELEASE) > 0;
        sy_fake_reset();
        sy_pool_destroy(pool);
        if (!stuck) assert_int_equal(sy_fake_reserved(), before);
        if (!failed) return;
    }
}

static void the_word_is_the_callers(void **state) {
    (void)state;
    for (unsigned checks = 0; checks <= SY_CHECKED; checks += SY_CHECKED) {
        sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 4096, .flags = checks});
        assert_non_null(pool);
        assert_int_equal(*sy_pool_word(pool), 0);
        *sy_pool_word(pool) = UINTPTR_MAX;
        for (int i = 0; i < 1000; i++) memset(sy_pool_alloc(pool), 0, 4096);
        sy_pool_reset(pool);
        assert_true(*sy_pool_word(pool) == UINTPTR_MAX);
        sy_pool_destroy(pool);
    }
}

static void trim_gives_an_empty_pool_back(void **state) {
    (void)state;
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 4096});
    assert_non_null(pool);
    enum { COUNT = 5000 };
    static void *objects[COUNT];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            objects[i] = sy_pool_alloc(pool);
            assert_non_null(objects[i]);
            memset(objects[i], round, 4096);
        }
        for (int i = 1; i < COUNT; i++) sy_pool_free(pool, objects[i]);
        assert_int_equal(sy_pool_trim(pool), 0);
        sy_pool_free(pool, objects[0]);
        assert_true(sy_pool_trim(pool) >= (COUNT - 1) * (size_t)4096);
        assert_true(sy_pool_capacity(pool) < COUNT);
        assert_null(sy_pool_audit(pool));
    }
    sy_pool_destroy(pool);
}

static void trim_keeps_the_promise_of_prefault(void **state) {
    (void)state;
    sy_pool *pool =
        sy_pool_create(&(sy_pool_config){.size = 4096, .capacity = 100, .flags = SY_POOL_PREFAULT});
    assert_non_null(pool);
    sy_pool_free(pool, sy_pool_alloc(pool));
    assert_int_equal(sy_pool_trim(pool), 0);
    sy_pool_destroy(pool);
}

static void growth_unwinds(void **state) {
    (void)state;
    for (int for_good = 0; for_good < 2; for_good++) {
        growth_survives_failures((sy_pool_config){.size = 2000}, for_good);
        growth_survives_failures((sy_pool_config){.size = 2000, .flags = SY_POOL_PREFAULT},
                                 for_good);
        growth_survives_failures((sy_pool_config){.size = 70000, .align = 4096}, for_good);
    }
}

static void growth_survives_random_failures(void **state) {
    (void)state;
    size_t before = sy_fake_reserved();
    for (uint64_t seed = 0; seed < 20; seed++) {
        sy_pool *pool = make((sy_pool_config){.size = 5000, .flags = SY_POOL_PREFAULT});
        sy_fake_fail_randomly(SY_FAKE_RESERVE, 300, seed);
        sy_fake_fail_randomly(SY_FAKE_COMMIT, 300, seed + 100);
        sy_fake_fail_randomly(SY_FAKE_POPULATE, 300, seed + 200);
        size_t got = 0;
        for (int i = 0; i < 1000; i++) got += sy_pool_alloc(pool) != NULL;
        assert_int_equal(sy_pool_in_use(pool), got);
        assert_null(sy_pool_audit(pool));
        sy_fake_reset();
        sy_pool_destroy(pool);
        assert_int_equal(sy_fake_reserved(), before);
    }
}

/* ---- the audit ---- */

static void audit_sees_a_double_free(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 32});
    void *a = get(pool), *b = get(pool);
    sy_pool_free(pool, a);
    sy_pool_free(pool, b);
    sy_pool_free(pool, a);
    assert_string_equal(sy_pool_audit(pool),
                        "the free list is a circle: something was freed twice");
    sy_pool_destroy(pool);
}

/* ---- the check of every free ---- */

/* The second of two frees of each object is reported at once, and changes nothing. */
static void free_each_twice(sy_pool *pool, void **objects, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t in_use = sy_pool_in_use(pool);
        sy_pool_free(pool, objects[i]);
        expect_none();
        errno = 4321;
        sy_pool_free(pool, objects[i]);
        assert_int_equal(errno, 4321);
        expect_seen(SY_FAULT_DOUBLE_FREE, "node", objects[i]);
        assert_int_equal(seen_fault.object_size, 30);
        assert_int_equal(sy_pool_in_use(pool), in_use - 1);
        assert_null(sy_pool_audit(pool));
    }
}

static void a_double_free_in_a_row_is_told_at_once(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    static void *objects[COUNT];
    watch_faults(state);
    for (int bounded = 0; bounded < 2; bounded++) {
        sy_pool *pool =
            make((sy_pool_config){.name = "node", .size = 30, .capacity = bounded ? COUNT : 0});
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 300; i++) objects[i] = get(pool);
            free_each_twice(pool, objects, 300); /* no slot behind them was given yet */
            for (int i = 0; i < COUNT; i++) objects[i] = get(pool);
            free_each_twice(pool, objects, 100);
            sy_pool_reset(pool);
        }
        void *first = get(pool); /* was freed before the reset too */
        sy_pool_free(pool, first);
        expect_none();
        sy_pool_destroy(pool);
    }
    sy_set_fault_handler(NULL);
}

/* Inlined frees do not know whether a pool checks. They compare with the head of its list too. */
static void a_pool_that_checks_tells_it_too(void **state) {
    (void)state;
    watch_faults(state);
    sy_pool *pool = sy_pool_create(
        &(sy_pool_config){.name = "node", .size = 30, .flags = SY_CHECKED | SY_AUDIT});
    void *object = get(pool);
    sy_pool_free(pool, object);
    sy_pool_free(pool, object);
    expect_seen(SY_FAULT_DOUBLE_FREE, "node", object);
    assert_int_equal(sy_pool_in_use(pool), 0);
    sy_pool_destroy(pool);
    expect_none();
    sy_set_fault_handler(NULL);
}

static void audit_sees_foreign_pointers(void **state) {
    (void)state;
    static const char *const sentence = "the free list leaves the slots given";
    sy_pool *pool = make((sy_pool_config){.size = 32});
    sy_pool *other = make((sy_pool_config){.size = 32});
    unsigned char *a = get(pool);
    sy_pool_free(pool, get(other));
    assert_string_equal(sy_pool_audit(pool), sentence);
    sy_pool_reset(pool);
    a = get(pool);
    sy_pool_free(pool, a + 8);
    assert_string_equal(sy_pool_audit(pool), sentence);
    sy_pool_reset(pool);
    sy_pool_free(pool, a); /* `a` was not given since the reset */
    assert_string_equal(sy_pool_audit(pool), sentence);
    sy_pool_destroy(other);
    sy_pool_destroy(pool);
}

static void audit_sees_a_write_after_free(void **state) {
    (void)state;
    sy_pool *pool = make((sy_pool_config){.size = 32});
    void *a = get(pool);
    sy_pool_free(pool, a);
    memset(a, 0x5a, 32);
    assert_string_equal(sy_pool_audit(pool), "the free list leaves the slots given");
    sy_pool_destroy(pool);
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

int main(void) {
    page = sy_os_page_size();
    const struct CMUnitTest tests[] = {
        TEST(create_refuses_no_config),
        TEST(create_refuses_size_0),
        TEST(create_refuses_sizes_over_half_the_address_space),
        TEST(create_refuses_sizes_that_nothing_can_hold),
        TEST(create_refuses_aligns_not_a_power_of_two),
        TEST(create_refuses_unknown_flags),
        TEST(create_refuses_reserved_fields_in_use),
        TEST(create_refuses_a_capacity_whose_product_overflows),
        TEST(create_refuses_chunks_that_nothing_can_hold),
        TEST(slot_size_is_the_size_rounded_up_to_the_align),
        TEST(every_object_is_aligned),
        TEST(alignment_may_be_a_gibibyte),
        TEST(objects_from_16_bytes_are_16_aligned),
        TEST(multiples_of_a_line_do_not_straddle_lines),
        TEST(powers_of_two_pack_without_loss),
        TEST(objects_do_not_overlap),
        TEST(free_slots_are_given_last_in_first_out),
        TEST(free_of_null_does_nothing),
        TEST(bounded_gives_its_capacity_and_no_more),
        TEST(bounded_needs_the_system_no_more_once_made),
        TEST(in_use_counts_exactly),
        TEST(in_use_survives_double_frees),
        TEST(growing_touches_no_new_page),
        TEST(eight_gibibytes_take_few_mappings),
        TEST(small_pools_take_one_chunk),
        TEST(capacity_of_unbounded_is_what_fits_without_growing),
        TEST(objects_may_be_larger_than_a_chunk),
        TEST(growing_takes_less_where_much_is_refused),
        TEST(committing_takes_less_where_much_is_refused),
        TEST(huge_pool_asks_for_huge_pages),
        TEST(large_extents_start_at_a_huge_page),
        TEST(huge_pool_does_without),
        TEST(bounded_prefault_backs_all_of_it),
        TEST(bounded_without_prefault_backs_nothing),
        TEST(unbounded_prefault_backs_each_chunk),
        TEST(what_was_backed_in_part_goes_back),
        TEST(reset_touches_no_slot),
        TEST(reset_gives_the_same_slots_in_the_same_order),
        TEST(reset_of_an_empty_pool_does_nothing),
        TEST(reset_keeps_the_capacity),
        TEST(the_word_is_the_callers),
        TEST(trim_gives_an_empty_pool_back),
        TEST(trim_keeps_the_promise_of_prefault),
        TEST(destroy_of_null_does_nothing),
        TEST(rounds_of_everything_hold_flat),
        TEST(destroy_discards_what_cannot_be_released),
        TEST(creation_unwinds),
        TEST(growth_unwinds),
        TEST(growth_survives_random_failures),
        TEST(audit_sees_a_double_free),
        TEST(a_double_free_in_a_row_is_told_at_once),
        TEST(a_pool_that_checks_tells_it_too),
        TEST(audit_sees_foreign_pointers),
        TEST(audit_sees_a_write_after_free),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
