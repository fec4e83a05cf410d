/*
 * test_handle.c: what handle.h promises, one behaviour a test: handles, pins, iteration, threads
 * and forks. Caches with handles in every configuration are in test_handle_cache.c; what fails
 * below, and the directory itself, in test_directory.c; generations that are spent in
 * test_handle_narrow.c.
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/unstable.h>

#include "support/handles.h"

/* ---- handles ---- */

static void a_handle_is_the_objects_and_no_others(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    for (size_t i = 0; i < COUNT; i++) {
        must(is_filled(i, 48));
        must(sy_handle_get(cache, handles[i]) == objects[i]);
        must(sy_handle_of(objects[i]) == handles[i]);
    }
    sound(cache, COUNT);
    give_all(cache);
    end(cache);
}

static void a_handle_is_stale_once_it_is_freed(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    for (size_t i = 0; i < COUNT; i++) {
        must(sy_handle_free(cache, handles[i]));
        refused(cache, handles[i]);
    }
    end(cache);
}

/* The place is used again and again, as the newest free one, and no handle for it comes back. */
static void a_stale_handle_stays_so_when_its_place_is_used_again(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    size_t same_place = 0;
    for (size_t i = 0; i < COUNT; i++) {
        objects[i] = get(cache, &handles[i]);
        same_place += i > 0 && objects[i] == objects[i - 1];
        for (size_t earlier = 0; earlier < i; earlier += 1 + i / 20)
            refused(cache, handles[earlier]);
        must(sy_handle_get(cache, handles[i]) == objects[i]);
        must(sy_handle_free(cache, handles[i]));
    }
    assert_int_equal(same_place, COUNT - 1);
    end(cache);
}

static void a_stale_free_leaves_the_new_object_to_its_owner(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle stale, fresh;
    void *before = get(cache, &stale);
    must(sy_handle_free(cache, stale));
    void *object = get(cache, &fresh);
    assert_ptr_equal(object, before);
    assert_true(fresh != stale);
    assert_false(sy_handle_free(cache, stale));
    assert_ptr_equal(sy_handle_get(cache, fresh), object);
    assert_true(sy_handle_free(cache, fresh));
    end(cache);
}

/* Handles of slabs that were given back. Other slabs have their ordinals and addresses now. */
static void stale_handles_stay_so_beyond_their_slab(void **state) {
    (void)state;
    static sy_handle earlier[8][COUNT];
    sy_cache *cache = make_orders(0), *other = make((sy_cache_config){.size = 40});
    for (int round = 0; round < 8; round++) {
        sy_cache *one = round % 2 ? other : cache;
        take_all(one, 40);
        for (int past = 0; past < round; past++)
            for (size_t i = 0; i < COUNT; i++) {
                refused(cache, earlier[past][i]);
                refused(other, earlier[past][i]);
            }
        memcpy(earlier[round], handles, sizeof handles);
        give_all(one);
        must(sy_cache_trim(one) > 0);
    }
    end(cache);
    end(other);
}

static void nothing_and_everything_are_no_handles(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    static const sy_handle none[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX};
    for (int live = 0; live < 2; live++) {
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            if (live && sy_handle_get(cache, none[i]) == objects[0]) continue;
            refused(cache, none[i]);
        }
        if (!live) objects[0] = get(cache, &handles[0]);
    }
    must(sy_handle_free(cache, handles[0]));
    end(cache);
}

/* One object is live among many that were; no other 64 bits are its handle. */
static void forged_handles_are_refused(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    const size_t kept = COUNT / 2;
    for (size_t i = 0; i < COUNT; i++)
        if (i != kept) must(sy_handle_free(cache, handles[i]));
    for (int bit = 0; bit < 64; bit++) refused(cache, handles[kept] ^ UINT64_C(1) << bit);
    for (int bit = 0; bit < 64; bit++)
        for (int more = 0; more < bit; more++)
            refused(cache, handles[kept] ^ UINT64_C(1) << bit ^ UINT64_C(1) << more);
    for (size_t i = 0; i < COUNT; i++) refused(cache, (uintptr_t)objects[i]);
    uint64_t random = 5;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random(&random);
        refused(cache, bits);
        uint64_t near = (handles[kept] & ~UINT64_C(0xffff)) | (bits & 0xffff);
        if (near != handles[kept]) refused(cache, near);
    }
    assert_ptr_equal(sy_handle_get(cache, handles[kept]), objects[kept]);
    must(sy_handle_free(cache, handles[kept]));
    end(cache);
}

static void the_words_of_the_directory_are_no_handles(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    for (size_t i = 0; i < COUNT; i += 2) must(sy_handle_free(cache, handles[i]));
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t word = sy_directory_words()[(uint32_t)handles[i]];
        for (unsigned state_bits = 0; state_bits < 4; state_bits++)
            refused(cache, (word & ~SY_HANDLE_STATE) | state_bits);
    }
    for (size_t i = 1; i < COUNT; i += 2) must(sy_handle_free(cache, handles[i]));
    end(cache);
}

static void ordinals_past_every_limit_are_refused(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0), *later = make((sy_cache_config){.size = 8});
    objects[0] = get(cache, &handles[0]);
    get(later, &handles[1]);
    sy_handle generation = handles[0] >> 32 << 32;
    uint64_t past[] = {cache->names.limit,      cache->names.limit + 1,
                       later->names.limit - 1,  later->names.limit,
                       sy_ordinals_limit() - 1, sy_ordinals_limit(),
                       sy_ordinals_limit() + 1, UINT64_C(1) << 31,
                       UINT32_MAX - 1,          UINT32_MAX};
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        refused(cache, generation | past[i]);
        refused(cache, past[i]);
        refused(cache, UINT64_C(0xffffffff) << 32 | past[i]);
    }
    must(sy_handle_free(cache, handles[0]) && sy_handle_free(later, handles[1]));
    end(cache);
    end(later);
}

static void handles_of_another_cache_are_refused(void **state) {
    (void)state;
    enum { CACHES = 4, EACH = 500 };
    static sy_handle of[CACHES][EACH];
    sy_cache *caches[CACHES];
    for (size_t c = 0; c < CACHES; c++) caches[c] = make((sy_cache_config){.size = 48});
    for (size_t i = 0; i < EACH; i++)
        for (size_t c = 0; c < CACHES; c++) get(caches[c], &of[c][i]);
    for (size_t c = 0; c < CACHES; c++)
        for (size_t other = 0; other < CACHES; other++)
            for (size_t i = 0; i < EACH && other != c; i++) refused(caches[c], of[other][i]);
    for (size_t c = 0; c < CACHES; c++) {
        for (size_t i = 0; i < EACH; i++) must(sy_handle_free(caches[c], of[c][i]));
        end(caches[c]);
    }
}

/* Caches come until one has the number, and then the ordinals, of one that is no more. */
static void handles_of_a_destroyed_cache_are_refused_by_its_successor(void **state) {
    (void)state;
    enum { ROUNDS = 20, EACH = 200, CACHES = 64 };
    static sy_handle earlier[ROUNDS][EACH];
    size_t same_number = 0, same_ordinal = 0;
    unsigned number = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        sy_cache *caches[CACHES];
        size_t made = 0;
        do caches[made] = make((sy_cache_config){.size = 48});
        while (caches[made++]->client.number != number && number && made < CACHES);
        sy_cache *cache = caches[made - 1];
        same_number += cache->client.number == number;
        number = cache->client.number;
        for (size_t i = 0; i < EACH; i++) {
            get(cache, &earlier[round][i]);
            same_ordinal += round > 0 && (uint32_t)earlier[round][i] == (uint32_t)earlier[0][i];
        }
        for (size_t past = 0; past < round; past++)
            for (size_t i = 0; i < EACH; i++) refused(cache, earlier[past][i]);
        for (size_t i = 0; i < EACH; i += 2) must(sy_handle_free(cache, earlier[round][i]));
        while (made > 0) sy_cache_destroy_all(caches[--made]);
    }
    assert_true(same_number > 0 && same_ordinal > 0);
}

static void a_cache_without_handles_has_none(void **state) {
    (void)state;
    sy_cache *plain = make_plain(48);
    sy_handle handle = 4711;
    void *object = sy_cache_alloc(plain);
    errno = 0;
    assert_null(sy_handle_alloc(plain, &handle));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(handle, 4711);
    assert_int_equal(sy_handle_of(object), 0);
    sy_cache *cache = make_orders(0);
    get(cache, &handle);
    refused(plain, handle);
    refused(plain, 0);
    refused(plain, UINT64_MAX);
    must(sy_handle_free(cache, handle));
    assert_int_equal(sy_cache_in_use(plain), 1);
    sy_cache_free(plain, object);
    end(plain);
    end(cache);
}

static void errno_is_kept(void **state) {
    (void)state;
    static const unsigned flags[] = {0, SY_CHECKED};
    for (int f = 0; f < 2; f++) {
        sy_cache *cache = make_orders(flags[f]);
        errno = KEPT_ERRNO;
        take_all(cache, 48);
        for (size_t i = 0; i < COUNT; i++)
            must(sy_handle_get(cache, handles[i]) && !sy_handle_of(NULL));
        give_all(cache);
        assert_int_equal(errno, KEPT_ERRNO);
        end(cache);
    }
}

/* ---- pins ---- */

static void a_pinned_object_is_live_as_ever(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle handle;
    void *object = get(cache, &handle);
    assert_ptr_equal(sy_handle_pin(cache, handle), object);
    assert_ptr_equal(sy_handle_get(cache, handle), object);
    assert_int_equal(sy_handle_of(object), handle);
    assert_ptr_equal(sy_handle_pin(cache, handle), object);
    sound(cache, 1);
    sy_handle_unpin(cache, handle);
    sy_handle_unpin(cache, handle);
    assert_ptr_equal(sy_handle_get(cache, handle), object);
    assert_true(sy_handle_free(cache, handle));
    end(cache);
}

static void a_free_makes_a_pinned_handle_stale_at_once(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle handle;
    void *object = get(cache, &handle);
    must(sy_handle_pin(cache, handle) == object);
    assert_true(sy_handle_free(cache, handle));
    refused(cache, handle);
    assert_int_equal(sy_handle_of(object), 0);
    assert_false(sy_cache_try_free(cache, object));
    sy_handle_unpin(cache, handle);
    refused(cache, handle);
    end(cache);
}

/* As often as it was pinned. Meanwhile it is not given out, and its content stays. */
static void a_pinned_object_stays_until_the_last_unpin(void **state) {
    (void)state;
    enum { PINS = 5 };
    static const unsigned flags[] = {0, SY_CHECKED};
    for (int f = 0; f < 2; f++) {
        sy_cache *cache = make_orders(flags[f]);
        sy_handle handle;
        unsigned char *object = memset(get(cache, &handle), 0xa5, 48);
        for (int i = 0; i < PINS; i++) must(sy_handle_pin(cache, handle) == object);
        must(sy_handle_free(cache, handle));
        for (int i = 0; i < PINS; i++) {
            sound(cache, 1);
            assert_int_equal(sy_cache_destroy(cache), -1);
            take_all(cache, 48);
            for (size_t at = 0; at < 48; at++) must(object[at] == 0xa5);
            give_all(cache);
            sy_cache_trim(cache);
            sy_handle_unpin(cache, handle);
        }
        sound(cache, 0);
        size_t reused = 0;
        for (size_t i = 0; i < COUNT; i++) reused += get(cache, &handles[i]) == object;
        assert_int_equal(reused, 1);
        give_all(cache);
        end(cache);
    }
}

static void an_object_has_so_many_pins_and_no_more(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    sy_handle handle;
    void *object = get(cache, &handle);
    for (int i = 0; i < SY_HANDLE_PINS_MAX; i++) must(sy_handle_pin(cache, handle) == object);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        assert_null(sy_handle_pin(cache, handle));
        assert_int_equal(errno, EAGAIN);
    }
    assert_ptr_equal(sy_handle_get(cache, handle), object);
    sy_handle_unpin(cache, handle);
    assert_ptr_equal(sy_handle_pin(cache, handle), object);
    assert_true(sy_handle_free(cache, handle));
    refused(cache, handle);
    for (int i = 0; i < SY_HANDLE_PINS_MAX; i++) {
        must(sy_cache_in_use(cache) == 1);
        sy_handle_unpin(cache, handle);
    }
    assert_int_equal(faults, 0);
    end(cache);
}

static void unpin_not_pinned(sy_cache *cache, sy_handle handle, const void *address) {
    sy_handle_unpin(cache, handle);
    expect_fault(SY_FAULT_NOT_PINNED, address, NULL);
}

static void an_unpin_of_what_is_not_pinned_is_a_fault(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0), *other = make((sy_cache_config){.size = 48});
    sy_handle handle, others;
    void *object = get(cache, &handle);
    get(other, &others);
    unpin_not_pinned(cache, handle, object);
    must(sy_handle_pin(cache, handle) && sy_handle_pin(other, others));
    sy_handle_unpin(cache, handle);
    unpin_not_pinned(cache, handle, object);
    assert_ptr_equal(sy_handle_get(cache, handle), object);
    static const sy_handle none[] = {0, UINT32_MAX, UINT64_MAX};
    for (int i = 0; i < 3; i++) sy_handle_unpin(cache, none[i]);
    sy_handle_unpin(cache, others);
    assert_int_equal(faults, 4);
    faults = 0;
    must(sy_handle_pin(cache, handle));
    for (int bit = 32; bit < 64; bit++)
        unpin_not_pinned(cache, handle ^ UINT64_C(1) << bit, object);
    must(sy_handle_free(cache, handle));
    sy_handle_unpin(cache, handle);
    unpin_not_pinned(cache, handle, object);
    sy_handle_unpin(other, others);
    must(sy_handle_free(other, others));
    end(cache);
    end(other);
}

/* ---- iteration ---- */

typedef struct view {
    sy_cache *cache;
    size_t count, stop_at;
    bool frees, allocates;
} view;

static int look(void *arg, sy_handle handle, void *object) {
    view *seen = arg;
    for (size_t i = 0; i < COUNT; i++)
        if (handles[i] == handle) {
            must(object == objects[i] && is_filled(i, 48));
            must(sy_handle_get(seen->cache, handle) == object);
            if (seen->frees) must(sy_handle_free(seen->cache, handle) && is_filled(i, 48));
            seen->count++;
            break;
        }
    sy_handle more;
    if (seen->allocates) memset(get(seen->cache, &more), 0, 48);
    return seen->count == seen->stop_at ? 4712 : 0;
}

static void each_live_object_is_visited_once(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0), *other = make((sy_cache_config){.size = 48});
    view seen = {.cache = cache, .stop_at = SIZE_MAX};
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, 0);
    take_all(cache, 48);
    sy_cache_alloc(other);
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT);
    for (size_t i = 0; i < COUNT; i += 2) {
        must(sy_handle_free(cache, handles[i]));
        handles[i] = 0;
    }
    seen.count = 0;
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT / 2);
    sound(cache, COUNT / 2);
    sy_cache_destroy_all(cache), sy_cache_destroy_all(other);
}

static void a_visit_may_free_what_it_visits(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    view seen = {.cache = cache, .stop_at = SIZE_MAX, .frees = true};
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) refused(cache, handles[i]);
    end(cache);
}

static void a_visit_may_allocate(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    view seen = {.cache = cache, .stop_at = SIZE_MAX, .frees = true, .allocates = true};
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT);
    assert_true(sy_cache_in_use(cache) >= COUNT);
    sy_cache_destroy_all(cache);
}

static void a_visit_ends_the_iteration(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    view seen = {.cache = cache, .stop_at = 100};
    assert_int_equal(sy_handle_each(cache, look, &seen), 4712);
    assert_int_equal(seen.count, 100);
    give_all(cache); /* no pin is left */
    end(cache);
}

static void objects_taken_by_address_and_pinned_ones_are_visited(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    for (size_t i = 0; i < COUNT; i += 3) must(sy_handle_pin(cache, handles[i]) != NULL);
    for (size_t i = 1; i < COUNT; i += 3) {
        must(sy_handle_free(cache, handles[i]));
        memset(objects[i] = sy_cache_alloc(cache), (int)(i % 251), 48);
        handles[i] = sy_handle_of(objects[i]);
    }
    view seen = {.cache = cache, .stop_at = SIZE_MAX};
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT);
    for (size_t i = 0; i < COUNT; i += 3) sy_handle_unpin(cache, handles[i]);
    give_all(cache);
    end(cache);
}

/* Whether the ordinal is in one of the slabs. */
static bool lies_in(const uint32_t *firsts, size_t count, uint32_t slots, uint32_t ordinal) {
    for (size_t i = 0; i < count; i++)
        if (ordinal - firsts[i] < slots) return true;
    return false;
}

/* For the tests of programs that read words themselves. */
static void needs_ordinals_of_slabs(void) {
#ifdef SLABYARD_TESTS_MOVABLE_H
    skip();
#endif
}

static void the_slabs_of_a_cache_hold_its_ordinals(void **state) {
    (void)state;
    needs_ordinals_of_slabs();
    sy_cache *cache = make_orders(0), *other = make((sy_cache_config){.size = 48});
    uint32_t firsts[COUNT], slots = 0;
    take_all(cache, 48);
    size_t count = sy_handle_slabs(cache, NULL, 0, &slots);
    assert_in_range(count, 1, COUNT);
    assert_int_equal(sy_handle_slabs(cache, firsts, COUNT, &slots), count);
    for (size_t i = 0; i < COUNT; i++) must(lies_in(firsts, count, slots, (uint32_t)handles[i]));
    assert_int_equal(sy_handle_slabs(other, firsts, COUNT, &slots), 0);
    give_all(cache);
    end(cache);
    sy_cache_destroy(other);
}

/* An ordinal is taken, its object made live, freed by its word, and put back. */
static void a_program_may_write_the_word_of_an_ordinal_that_it_took(void **state) {
    (void)state;
    needs_ordinals_of_slabs();
    sy_cache *cache = make_orders(0);
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    uint32_t ordinal;
    assert_true(SY_ABI_NAME(sy_handle_take_slow)(cache, &ordinal));
    assert_int_equal(sy_cache_in_use(cache), 1);
    must(sy_handle_of(sy_handle_place(head, ordinal)) == 0);
    sy_handle handle;
    sy_handle_enliven(head, ordinal, &handle);
    void *object = sy_handle_place(head, ordinal);
    must(sy_handle_get(cache, handle) == object && sy_handle_of(object) == handle);
    uint64_t word = head->words[ordinal];
    head->words[ordinal] = (word & ~SY_HANDLE_STATE) | SY_HANDLE_DYING;
    refused(cache, handle);
    must(!sy_handle_pin(cache, handle));
    head->words[ordinal] = word & ~SY_HANDLE_STATE;
    assert_true(SY_ABI_NAME(sy_handle_put_slow)(cache, ordinal));
    refused(cache, handle);
    end(cache);
}

/* Freed while it was pinned: it is there, but not live. */
static void dying_objects_are_not_visited(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    must(sy_handle_pin(cache, handles[7]) && sy_handle_free(cache, handles[7]));
    view seen = {.cache = cache, .stop_at = SIZE_MAX};
    assert_int_equal(sy_handle_each(cache, look, &seen), 0);
    assert_int_equal(seen.count, COUNT - 1);
    sy_handle_unpin(cache, handles[7]);
    sy_cache_destroy_all(cache);
}

static void a_cache_without_handles_cannot_be_iterated(void **state) {
    (void)state;
    sy_cache *plain = make_plain(48);
    view seen = {.cache = plain};
    errno = 0;
    assert_int_equal(sy_handle_each(plain, look, &seen), -1);
    assert_int_equal(errno, EINVAL);
    end(plain);
}

/* ---- threads and processes ---- */

typedef struct worker {
    pthread_t thread;
    sy_cache *cache;
    size_t size, trues;
    unsigned char mark;
} worker;

static void *take_for_others(void *arg) {
    worker *self = arg;
    take_all(self->cache, self->size);
    return NULL;
}

static void handles_are_good_in_every_thread_and_after_their_own(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    worker one = {.cache = cache, .size = 48};
    in_thread(take_for_others, &one);
    for (size_t i = 0; i < COUNT; i++)
        must(sy_handle_get(cache, handles[i]) == objects[i] && is_filled(i, 48));
    sound(cache, COUNT);
    give_all(cache);
    end(cache);
}

static void *free_all_of_them(void *arg) {
    worker *self = arg;
    for (size_t i = 0; i < COUNT; i++) self->trues += sy_handle_free(self->cache, handles[i]);
    return NULL;
}

static void each_handle_is_freed_by_one_thread(void **state) {
    (void)state;
    enum { THREADS = 4, ROUNDS = 20 };
    sy_cache *cache = make_orders(0);
    for (int round = 0; round < ROUNDS; round++) {
        worker workers[THREADS] = {{0}};
        size_t trues = 0;
        take_all(cache, 48);
        for (int i = 0; i < THREADS; i++) {
            workers[i].cache = cache;
            must(pthread_create(&workers[i].thread, NULL, free_all_of_them, &workers[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(workers[i].thread, NULL);
            trues += workers[i].trues;
        }
        assert_int_equal(trues, COUNT);
        sound(cache, 0);
    }
    end(cache);
}

enum { BATCH = 20, LAPS = 1000 };

static void *twenty_and_twenty(void *arg) {
    const worker *self = arg;
    unsigned char *mine[BATCH];
    sy_handle names[BATCH];
    for (int lap = 0; lap < LAPS; lap++) {
        for (int i = 0; i < BATCH; i++)
            memset(mine[i] = get(self->cache, &names[i]), self->mark + i, self->size);
        for (int i = 0; i < BATCH; i++) {
            must(sy_handle_get(self->cache, names[i]) == mine[i]);
            for (size_t at = 0; at < self->size; at += 8)
                must(mine[i][at] == (unsigned char)(self->mark + i));
            must(sy_handle_free(self->cache, names[i]));
            must(!sy_handle_free(self->cache, names[i]));
        }
    }
    return NULL;
}

static void no_object_has_two_owners(void **state) {
    (void)state;
    enum { THREADS = 4 };
    static const size_t sizes[] = {16, 64, 512, 4096};
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED)
        for (int s = 0; s < 4; s++) {
            worker workers[THREADS];
            sy_cache *cache = make((sy_cache_config){.size = sizes[s], .flags = flags});
            for (int i = 0; i < THREADS; i++) {
                workers[i] =
                    (worker){.cache = cache, .size = sizes[s], .mark = (unsigned char)(i * BATCH)};
                must(pthread_create(&workers[i].thread, NULL, twenty_and_twenty, &workers[i]) == 0);
            }
            for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
            end(cache);
        }
}

/* The child of a fork has what the parent had, and they part ways. */
static void use_in_child(void *arg) {
    sy_cache *cache = arg;
    for (size_t i = 0; i < COUNT; i++)
        must(sy_handle_get(cache, handles[i]) == objects[i] && is_filled(i, 48));
    give_all(cache);
    for (size_t i = 0; i < COUNT; i++) refused(cache, handles[i]);
    sy_handle_unpin(cache, handles[0]);
    sound(cache, 0);
    take_all(cache, 48);
    sound(cache, COUNT);
}

static void a_child_goes_on_with_the_handles_of_its_parent(void **state) {
    (void)state;
    sy_cache *cache = make_orders(0);
    take_all(cache, 48);
    must(sy_handle_pin(cache, handles[0]) != NULL);
    assert_int_equal(in_child(use_in_child, cache), 0);
    sy_handle_unpin(cache, handles[0]);
    assert_int_equal(faults, 0);
    give_all(cache);
    end(cache);
}

typedef struct pinner {
    sy_cache *cache;
    sy_handle handle;
    sem_t pinned, may_unpin;
} pinner;

static void *pin_for_a_while(void *arg) {
    pinner *self = arg;
    must(sy_handle_pin(self->cache, self->handle) != NULL);
    sem_post(&self->pinned);
    while (sem_wait(&self->may_unpin) != 0) continue;
    sy_handle_unpin(self->cache, self->handle);
    return NULL;
}

static void free_what_a_lost_thread_has_pinned(void *arg) {
    pinner *other = arg;
    unsigned char *object = sy_handle_get(other->cache, other->handle);
    must(object && sy_handle_free(other->cache, other->handle));
    refused(other->cache, other->handle);
    sound(other->cache, 1);
    take_all(other->cache, 48);
    for (size_t at = 0; at < 48; at++) must(object[at] == 0xa5);
    give_all(other->cache);
    sy_cache_trim(other->cache);
    for (size_t at = 0; at < 48; at++) must(object[at] == 0xa5);
    must(sy_cache_destroy(other->cache) == -1 && errno == EBUSY);
}

static void what_a_lost_thread_has_pinned_stays_in_the_child(void **state) {
    (void)state;
    pthread_t thread;
    pinner other = {.cache = make_orders(0)};
    memset(get(other.cache, &other.handle), 0xa5, 48);
    must(sem_init(&other.pinned, 0, 0) == 0 && sem_init(&other.may_unpin, 0, 0) == 0);
    must(pthread_create(&thread, NULL, pin_for_a_while, &other) == 0);
    while (sem_wait(&other.pinned) != 0) continue;
    assert_int_equal(in_child(free_what_a_lost_thread_has_pinned, &other), 0);
    sem_post(&other.may_unpin);
    pthread_join(thread, NULL);
    must(sy_handle_free(other.cache, other.handle));
    end(other.cache);
}

int main(void) {
    sy_set_fault_handler(note_fault);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_the_objects_and_no_others),
        cmocka_unit_test(a_handle_is_stale_once_it_is_freed),
        cmocka_unit_test(a_stale_handle_stays_so_when_its_place_is_used_again),
        cmocka_unit_test(a_stale_free_leaves_the_new_object_to_its_owner),
        cmocka_unit_test(stale_handles_stay_so_beyond_their_slab),
        cmocka_unit_test(nothing_and_everything_are_no_handles),
        cmocka_unit_test(forged_handles_are_refused),
        cmocka_unit_test(the_words_of_the_directory_are_no_handles),
        cmocka_unit_test(ordinals_past_every_limit_are_refused),
        cmocka_unit_test(handles_of_another_cache_are_refused),
        cmocka_unit_test(handles_of_a_destroyed_cache_are_refused_by_its_successor),
        cmocka_unit_test(a_cache_without_handles_has_none),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(a_pinned_object_is_live_as_ever),
        cmocka_unit_test(a_free_makes_a_pinned_handle_stale_at_once),
        cmocka_unit_test(a_pinned_object_stays_until_the_last_unpin),
        cmocka_unit_test(an_object_has_so_many_pins_and_no_more),
        cmocka_unit_test(an_unpin_of_what_is_not_pinned_is_a_fault),
        cmocka_unit_test(each_live_object_is_visited_once),
        cmocka_unit_test(a_visit_may_free_what_it_visits),
        cmocka_unit_test(a_visit_may_allocate),
        cmocka_unit_test(a_visit_ends_the_iteration),
        cmocka_unit_test(objects_taken_by_address_and_pinned_ones_are_visited),
        cmocka_unit_test(the_slabs_of_a_cache_hold_its_ordinals),
        cmocka_unit_test(a_program_may_write_the_word_of_an_ordinal_that_it_took),
        cmocka_unit_test(dying_objects_are_not_visited),
        cmocka_unit_test(a_cache_without_handles_cannot_be_iterated),
        cmocka_unit_test(handles_are_good_in_every_thread_and_after_their_own),
        cmocka_unit_test(each_handle_is_freed_by_one_thread),
        cmocka_unit_test(no_object_has_two_owners),
        cmocka_unit_test(a_child_goes_on_with_the_handles_of_its_parent),
        cmocka_unit_test(what_a_lost_thread_has_pinned_stays_in_the_child),
    };
    return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
