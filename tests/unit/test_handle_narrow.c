/*
 * test_handle_narrow.c: handles whose generations are spent. The library of this test has 15
 * generations. Slots retire and are counted, stale handles stay stale, and ordinals whose handles
 * might repeat are not used again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "cache/directory.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "support/child.h"

enum { GENERATIONS = SY_HANDLE_GENERATIONS_MAX, PLACES = 500 };

#ifdef SLABYARD_TESTS_MOVABLE_H
enum { NEXT = 2, LOST_TOGETHER = 1024 }; /* ordinals of objects are even, and taken in blocks */
#else
enum { NEXT = 1, LOST_TOGETHER = 0 };
#endif

_Static_assert(GENERATIONS == 15, "few enough to be used up");

static sy_handle handles[GENERATIONS + 2][PLACES];
static void *objects[PLACES];

static sy_cache *make(sy_cache_config config) {
    config.flags |= SY_HANDLES;
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

static void sound(sy_cache *cache, size_t live, size_t retired) {
    sy_cache_stats stats;
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
    must(sy_cache_get_stats(cache, &stats) == 0);
    must(stats.slots ==
         stats.in_use + stats.in_depot + stats.in_loaded + stats.free + stats.retired);
    must(stats.in_use == live && sy_cache_in_use(cache) == live);
    must(stats.retired == retired);
}

static void refused(sy_cache *cache, sy_handle handle) {
    must(sy_handle_get(cache, handle) == NULL);
    must(sy_handle_pin(cache, handle) == NULL);
    must(!sy_handle_free(cache, handle));
}

static void *get(sy_cache *cache, sy_handle *handle) {
    void *object = sy_handle_alloc(cache, handle);
    must(object != NULL && *handle >> SY_HANDLE_GENERATION <= GENERATIONS);
    must(sy_handle_get(cache, *handle) == object);
    return object;
}

/* One object is live at a time. It stays in one slot until the slot's generations are spent. */
static void a_place_retires_when_its_generations_are_spent(void **state) {
    (void)state;
    enum { ROUNDS = GENERATIONS * 20 };
    static sy_handle all[ROUNDS];
    sy_cache *cache = make((sy_cache_config){.size = 48});
    for (size_t i = 0; i < ROUNDS; i++) {
        get(cache, &all[i]);
        assert_int_equal(all[i] >> SY_HANDLE_GENERATION, i % GENERATIONS + 1);
        assert_int_equal((uint32_t)all[i], (uint32_t)all[0] + i / GENERATIONS * NEXT);
        for (size_t earlier = 0; earlier < i; earlier++) refused(cache, all[earlier]);
        sound(cache, 1, i / GENERATIONS);
        must(sy_handle_free(cache, all[i]));
    }
    sound(cache, 0, ROUNDS / GENERATIONS);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void every_way_of_freeing_retires(void **state) {
    (void)state;
    static const unsigned flags[] = {0, SY_CHECKED};
    for (int f = 0; f < 2; f++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .flags = flags[f]});
        size_t retired = 0;
        for (int i = 0; i < GENERATIONS * 24; i++) {
            sy_handle handle;
            void *object = get(cache, &handle);
            bool last = handle >> SY_HANDLE_GENERATION == GENERATIONS;
            int way = i / GENERATIONS % 4;
            if (way == 0) must(sy_handle_free(cache, handle));
            if (way == 1) sy_cache_free(cache, object);
            if (way == 2) must(sy_cache_try_free(cache, object));
            if (way == 3) {
                must(sy_handle_pin(cache, handle) == object && sy_handle_free(cache, handle));
                sound(cache, 1, retired);
                sy_handle_unpin(cache, handle);
            }
            retired += last;
            sound(cache, 0, retired);
            refused(cache, handle);
            must(sy_handle_of(object) == 0 && !sy_cache_try_free(cache, object));
        }
        assert_int_equal(retired, 24);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static int count_visits(void *arg, sy_handle handle, void *object) {
    (void)handle, (void)object;
    ++*(size_t *)arg;
    return 0;
}

static void retired_objects_are_not_visited(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48});
    size_t visits = 0;
    sy_handle handle;
    for (int i = 0; i < GENERATIONS * 3; i++)
        must((get(cache, &handle), sy_handle_free(cache, handle)));
    get(cache, &handle);
    assert_int_equal(sy_handle_each(cache, count_visits, &visits), 0);
    assert_int_equal(visits, 1);
    must(sy_handle_free(cache, handle));
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* All slots of all slabs retire. New slabs replace the old ones, which are released with the
 * cache. */
static void many_places_retire_and_others_come(void **state) {
    (void)state;
    uint64_t lost = sy_ordinals_lost();
    sy_cache *cache = make((sy_cache_config){.size = 1000});
    for (int round = 0; round < GENERATIONS + 2; round++) {
        for (size_t i = 0; i < PLACES; i++)
            memset(objects[i] = get(cache, &handles[round][i]), round, 1000);
        for (int past = 0; past < round; past++)
            for (size_t i = 0; i < PLACES; i++) refused(cache, handles[past][i]);
        for (size_t i = 0; i < PLACES; i++) {
            must(((char *)objects[i])[999] == (char)round);
            must(sy_handle_free(cache, handles[round][i]));
        }
        sy_cache_trim(cache);
    }
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    sound(cache, 0, stats.retired);
    assert_true(stats.retired > 0);
    size_t slabs = stats.slabs, slots = stats.slots_per_slab;
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_true(sy_ordinals_lost() > lost);
    assert_true(sy_ordinals_lost() - lost <= (PLACES / slots + 2 + slabs) * (slots + 64));
    sy_trim();
    sy_stats all;
    sy_get_stats(&all);
    assert_int_equal(all.slabs, 0);
}

/* Each round makes new slabs. The generations of an ordinal go on from one slab to the next. */
static void generations_go_on_from_slab_to_slab(void **state) {
    (void)state;
    enum { ROUNDS = GENERATIONS * 5 };
    static sy_handle all[ROUNDS][8];
    uint64_t lost = sy_ordinals_lost();
    for (size_t round = 0; round < ROUNDS; round++) {
        sy_cache *cache = make((sy_cache_config){.size = 20000});
        for (size_t i = 0; i < 8; i++) get(cache, &all[round][i]);
        for (size_t past = 0; past < round; past++)
            for (size_t i = 0; i < 8; i++) {
                refused(cache, all[past][i]);
                for (size_t now = 0; now < 8; now++) must(all[past][i] != all[round][now]);
            }
        sy_cache_destroy_all(cache);
    }
    assert_true(sy_ordinals_lost() > lost);
}

/* Allocates and frees one object at a time up to this generation. Returns the ordinal. */
static uint32_t use_up_to(sy_cache *cache, uint32_t generation) {
    sy_handle handle;
    do {
        get(cache, &handle);
        must(sy_handle_free(cache, handle));
    } while (handle >> SY_HANDLE_GENERATION < generation);
    return (uint32_t)handle;
}

/* If one slot of a slab is spent, the ordinals of the whole slab are lost, and no others. */
static void ordinals_of_a_spent_place_are_lost(void **state) {
    (void)state;
    uint64_t lost = sy_ordinals_lost();
    sy_cache *cache = make((sy_cache_config){.size = 48});
    uint32_t slots = cache->layout.slots, ordinal = use_up_to(cache, GENERATIONS - 1);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_ordinals_lost(), lost);
    cache = make((sy_cache_config){.size = 48});
    assert_int_equal(use_up_to(cache, GENERATIONS), ordinal);
    assert_int_equal(sy_ordinals_lost(), lost);
    assert_int_equal(sy_cache_destroy(cache), 0);
    size_t together = LOST_TOGETHER ? LOST_TOGETHER : (slots + 63) / 64 * 64;
    assert_int_equal(sy_ordinals_lost() - lost, together);
    cache = make((sy_cache_config){.size = 48});
    for (size_t i = 0; i < slots * 3; i++) {
        sy_handle handle;
        get(cache, &handle);
        must((uint32_t)handle - ordinal >= (LOST_TOGETHER ? LOST_TOGETHER : slots));
    }
    sy_cache_destroy_all(cache);
}

/* Uses up the generations of `places` slots. */
static void retire(sy_cache *cache, size_t places) {
    sy_handle handle;
    for (sy_cache_stats stats = {0}; stats.retired < places;) {
        get(cache, &handle);
        must(sy_handle_free(cache, handle));
        sy_cache_get_stats(cache, &stats);
    }
    sound(cache, 0, places);
}

static size_t constructed, destructed;

static int construct(void *object, void *arg) {
    (void)object, (void)arg;
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)object, (void)arg;
    destructed++;
}

static void retired_objects_are_destructed_with_their_slab(void **state) {
    (void)state;
    sy_cache *cache =
        make((sy_cache_config){.size = 48, .construct = construct, .destruct = destruct});
    retire(cache, 50);
    sy_cache_trim(cache);
    assert_true(constructed > 0);
    sound(cache, 0, 50);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(constructed, destructed);
}

static void a_reserve_does_not_count_on_retired_places(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 1000});
    retire(cache, 50);
    assert_int_equal(sy_cache_reserve(cache, 1000), 0);
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.free + stats.in_depot + stats.in_loaded >= 1000);
    sound(cache, 0, 50);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* Retired places do not count towards a limit. */
static void a_limit_is_of_live_objects(void **state) {
    (void)state;
    enum { LIMIT = 16 };
    static const unsigned flags[] = {0, SY_CHECKED, SY_LIMIT_EXACT};
    for (int f = 0; f < 3; f++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .limit = LIMIT, .flags = flags[f]});
        for (int round = 0; round < GENERATIONS * 4; round++) {
            sy_handle held[LIMIT], more;
            for (int i = 0; i < LIMIT; i++) get(cache, &held[i]);
            errno = 0;
            assert_null(sy_handle_alloc(cache, &more));
            assert_int_equal(errno, ENOMEM);
            for (int i = 0; i < LIMIT; i++) must(sy_handle_free(cache, held[i]));
        }
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_retires_when_its_generations_are_spent),
        cmocka_unit_test(every_way_of_freeing_retires),
        cmocka_unit_test(retired_objects_are_not_visited),
        cmocka_unit_test(many_places_retire_and_others_come),
        cmocka_unit_test(generations_go_on_from_slab_to_slab),
        cmocka_unit_test(ordinals_of_a_spent_place_are_lost),
        cmocka_unit_test(retired_objects_are_destructed_with_their_slab),
        cmocka_unit_test(a_reserve_does_not_count_on_retired_places),
        cmocka_unit_test(a_limit_is_of_live_objects),
    };
    return cmocka_run_group_tests_name("handle_narrow", tests, NULL, NULL);
}
