/*
 * test_fold.c: the words of few live objects among many handles go back to the system, and every
 * handle is good or stale as before, whichever function asks first.
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

#include <slabyard/slabyard.h>
#include <slabyard/unstable.h>

#include "cache/cache.h"
#include "cache/movable.h"
#include "chunk/side.h"
#include "os/fake.h"
#include "reclaim/reclaim.h"
#include "support/child.h"
#include "support/services.h"

enum { COUNT = 20000, SIZE = 100, LIVE_SHARE = 20 };

typedef struct object {
    sy_handle handle;
    size_t number;
    char rest[SIZE - 16];
} object;

static sy_handle handles[COUNT], stale[COUNT]; /* 0: none */

static sy_cache *make_with(void (*relocate)(void *from, void *to, void *arg)) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "folded", .size = SIZE, .flags = SY_HANDLES | SY_MOVABLE, .relocate = relocate});
    must(cache != NULL);
    memset(stale, 0, sizeof stale);
    return cache;
}

static sy_cache *make(void) { return make_with(NULL); }

static void add(sy_cache *cache, size_t i) {
    object *made = sy_handle_prepare(cache, &handles[i]);
    must(made != NULL && handles[i] != stale[i]);
    *made = (object){.handle = handles[i], .number = i};
    sy_handle_publish(cache, handles[i]);
}

static void drop(sy_cache *cache, size_t i) {
    must(sy_handle_free(cache, handles[i]));
    stale[i] = handles[i];
    handles[i] = 0;
}

static size_t folded_blocks(sy_cache *cache) {
    size_t count = 0;
    for (const sy_ordinal_block *block = cache->blocks.all; block; block = block->next)
        count += block->folded != NULL;
    return count;
}

static size_t blocks(const sy_cache *cache) { return cache->blocks.count / SY_BLOCK_OBJECTS; }

/* Leaves `live` of each `of` objects. Their generations differ. */
static void leave(sy_cache *cache, size_t live, size_t of) {
    for (size_t i = 0; i < COUNT; i++) {
        add(cache, i);
        for (size_t again = 0; again < i % 3; again++) {
            drop(cache, i);
            add(cache, i);
        }
    }
    for (size_t i = 0; i < COUNT; i++)
        if (i % of >= live) drop(cache, i);
    sy_thread_flush();
}

static void leave_few(sy_cache *cache) { leave(cache, 1, LIVE_SHARE); }

/* A cache whose blocks are folded. */
static sy_cache *make_folded(void) {
    sy_cache *cache = make();
    leave_few(cache);
    must(sy_cache_trim(cache) > 0);
    must(blocks(cache) > 30 && folded_blocks(cache) == blocks(cache));
    must(sy_cache_verify(cache) == 0);
    return cache;
}

static void check(sy_cache *cache, size_t i) {
    sy_read_guard guard = sy_read_enter();
    const object *got = handles[i] ? sy_read_get(cache, handles[i]) : NULL;
    must(!handles[i] || (got && got->handle == handles[i] && got->number == i));
    must(!got || sy_handle_of(got) == handles[i]);
    must(!stale[i] || !sy_read_get(cache, stale[i]));
    sy_read_leave(guard);
}

static void check_all(sy_cache *cache) {
    for (size_t i = 0; i < COUNT; i++) check(cache, i);
    must(sy_cache_verify(cache) == 0);
}

static void end(sy_cache *cache) {
    check_all(cache);
    for (size_t i = 0; i < COUNT; i++)
        if (handles[i]) drop(cache, i);
    must(sy_cache_in_use(cache) == 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* ---- each way to a folded block ---- */

static void a_look_up_unfolds_a_block(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    size_t folded = folded_blocks(cache);
    check(cache, 0);
    must(folded_blocks(cache) == folded - 1);
    for (size_t i = 1; i < 100; i++) check(cache, i); /* its neighbours */
    must(folded_blocks(cache) == folded - 1);
    check_all(cache);
    must(folded_blocks(cache) == 0);
    end(cache);
}

static void a_stale_handle_stays_stale(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    for (size_t i = 0; i < COUNT; i++) {
        if (!stale[i]) continue;
        must(!sy_handle_pin(cache, stale[i]) && !sy_handle_free(cache, stale[i]));
    }
    check_all(cache);
    for (size_t i = 0; i < COUNT; i++)
        if (!handles[i]) add(cache, i);
    check_all(cache);
    end(cache);
}

static void forged_handles_find_nothing(void **state) {
    (void)state;
    sy_cache *cache = make_folded(), *other = make_folded();
    for (uint64_t ordinal = 0; ordinal < 4 * COUNT; ordinal++) {
        must(!sy_handle_free(cache, ordinal) && !sy_handle_pin(other, ordinal | 1));
        must(!sy_handle_free(other, UINT64_C(7) << 32 | ordinal));
    }
    must(sy_cache_verify(cache) == 0 && sy_cache_verify(other) == 0);
    end(other);
    sy_cache_destroy_all(cache);
}

static void pins_and_frees_unfold_too(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        if (i % 3 == 0) {
            drop(cache, i);
            continue;
        }
        const object *pinned = sy_handle_pin(cache, handles[i]);
        must(pinned && pinned->number == i);
        sy_handle_unpin(cache, handles[i]);
    }
    end(cache);
}

static int note(void *arg, sy_handle handle, void *visited) {
    const object *it = visited;
    must(it->handle == handle && handles[it->number] == handle);
    ++*(size_t *)arg;
    return 0;
}

static void iteration_visits_objects_of_folded_blocks(void **state) {
    (void)state;
    size_t visited = 0;
    sy_cache *cache = make_folded();
    must(sy_handle_each(cache, note, &visited) == 0 && visited == COUNT / LIVE_SHARE);
    end(cache);
}

static void an_address_leads_to_its_handle(void **state) {
    (void)state;
    const object *places[COUNT / LIVE_SHARE];
    sy_cache *cache = make_folded();
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        sy_read_guard guard = sy_read_enter();
        places[i / LIVE_SHARE] = sy_read_get(cache, handles[i]);
        sy_read_leave(guard);
    }
    sy_cache_trim(cache);
    must(folded_blocks(cache) == blocks(cache));
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE)
        must(sy_handle_of(places[i / LIVE_SHARE]) == handles[i]);
    sy_cache_trim(cache);
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        sy_cache_free(cache, (object *)(uintptr_t)places[i / LIVE_SHARE]);
        handles[i] = 0;
    }
    end(cache);
}

/* The blocks' free ordinals are of use, and generations go on. */
static void allocations_unfold_what_they_need(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    for (int round = 0; round < 5; round++) {
        size_t before = blocks(cache);
        for (size_t i = 0; i < COUNT; i++)
            if (!handles[i]) add(cache, i);
        must(folded_blocks(cache) == 0 && blocks(cache) >= before);
        check_all(cache);
        for (size_t i = 0; i < COUNT; i++)
            if ((i + (size_t)round) % LIVE_SHARE) drop(cache, i);
        sy_thread_flush();
        sy_cache_trim(cache);
        must(folded_blocks(cache) > 0);
    }
    end(cache);
}

/* Of the free ordinals of a folded block no word remains, only the block's highest generation. */
static void generations_go_on_when_blocks_have_gone_and_come(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    size_t before = blocks(cache);
    for (size_t i = 0; i < COUNT; i++)
        if (handles[i]) drop(cache, i);
    sy_thread_flush();
    sy_cache_trim(cache);
    must(blocks(cache) < before / 2);
    for (size_t i = 0; i < COUNT; i++) add(cache, i);
    end(cache);
}

/* ---- what is not folded ---- */

static void a_block_with_a_pinned_object_stays(void **state) {
    (void)state;
    sy_cache *cache = make();
    for (size_t i = 0; i < COUNT; i++) add(cache, i);
    const object *pinned = sy_handle_pin(cache, handles[0]);
    for (size_t i = 1; i < COUNT; i++)
        if (i % LIVE_SHARE) drop(cache, i);
    sy_thread_flush();
    sy_cache_trim(cache);
    must(pinned->number == 0 && folded_blocks(cache) == blocks(cache) - 1);
    sy_handle_unpin(cache, handles[0]);
    sy_cache_trim(cache);
    must(folded_blocks(cache) == blocks(cache));
    end(cache);
}

/* Other ordinals of the block would have to begin again above it. */
static void a_block_with_the_last_generation_stays(void **state) {
    (void)state;
    sy_cache *cache = make();
    leave_few(cache);
    uint32_t ordinal = (uint32_t)handles[0];
    uint64_t last = (uint64_t)SY_HANDLE_GENERATIONS_MAX << SY_HANDLE_GENERATION;
    sy_directory_words()[ordinal] = last | cache->names.slot;
    handles[0] = last | ordinal;
    ((object *)sy_moved_place(&cache->names, ordinal))->handle = handles[0];
    sy_cache_trim(cache);
    must(folded_blocks(cache) == blocks(cache) - 1);
    end(cache);
}

static void a_block_with_many_objects_stays(void **state) {
    (void)state;
    sy_cache *cache = make();
    leave(cache, 3, 4);
    sy_cache_trim(cache);
    must(folded_blocks(cache) <= 1); /* the last one has few ordinals that were ever used */
    end(cache);
}

static void pass_by_age(sy_cache *cache) {
    for (sy_compaction walk = {.begun = false}; sy_cache_compact_step(cache, &walk, true);) {}
}

/* A look-up would have to unfold them again. */
static void only_a_trim_folds_blocks_that_are_half_live(void **state) {
    (void)state;
    sy_cache *cache = make();
    leave(cache, 1, 2);
    for (int passes = 0; passes < 10; passes++) pass_by_age(cache);
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    must(folded_blocks(cache) <= 1);
    must(sy_cache_trim(cache) > 0);
    must(folded_blocks(cache) == blocks(cache));
    end(cache);
}

/* By age, a block is folded when it was not used for two passes; much later, if it was unfolded. */
static void passes_by_age_fold_what_is_not_used(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    check_all(cache);
    int passes = 0;
    for (; folded_blocks(cache) < blocks(cache) && passes < 50; passes++) pass_by_age(cache);
    assert_in_range(passes, 8, 12);
    end(cache);
}

static size_t relocations;

static void relocate(void *from, void *to, void *arg) {
    (void)arg;
    memcpy(to, from, SIZE);
    relocations++;
}

/* In the turns of a thread that allocates, passes call no function of the program: nothing moves
 * there. Words are folded all the same. */
static void words_are_folded_where_objects_may_not_move(void **state) {
    (void)state;
    sy_cache *cache = make_with(relocate);
    sy_cache *slow = sy_cache_create(&(sy_cache_config){.size = 8, .flags = SY_CHECKED});
    leave_few(cache);
    sy_fake_set_clock(sy_os_now());
    sy_set_decay(100);
    for (int passes = 0; passes < 20; passes++) {
        sy_fake_advance_clock(sy_reclaim_interval());
        for (int turn = 0; turn < 2000; turn++) sy_cache_free(slow, sy_cache_alloc(slow));
    }
    sy_set_decay(0);
    must(folded_blocks(cache) == blocks(cache) && relocations == 0);
    must(sy_cache_destroy(slow) == 0);
    end(cache);
}

/* The system refuses to take memory: then the records would only need more. */
static void where_no_memory_goes_back_blocks_stay(void **state) {
    (void)state;
    sy_cache *cache = make();
    leave_few(cache);
    sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    must(folded_blocks(cache) == 0 && sy_fake_failures(SY_FAKE_DISCARD) > 0);
    must(cache->blocks.folds == 1); /* it tried no further block */
    check_all(cache);
    sy_fake_reset();
    must(sy_cache_trim(cache) > 0 && folded_blocks(cache) == blocks(cache));
    end(cache);
}

static void without_memory_for_a_record_blocks_stay(void **state) {
    (void)state;
    sy_cache *cache = make_folded();
    check_all(cache);
    while (sy_side_take(64)) sy_fake_fail_from(SY_FAKE_ANY, 1);
    for (size_t bytes = 128; bytes <= 4096; bytes *= 2)
        while (sy_side_take(bytes)) {}
    sy_cache_trim(cache);
    sy_fake_reset();
    must(folded_blocks(cache) <= 1); /* a small record fits where one of a free block was */
    end(cache);
}

/* ---- the end of a cache, and forks ---- */

static void a_cache_ends_with_folded_blocks(void **state) {
    (void)state;
    sy_cache_destroy_all(make_folded());
    for (uint64_t i = 0; i < sy_ordinals_limit(); i += SY_BLOCK_ORDINALS) {
        const sy_block_entry *entry = sy_block_entry_of((uint32_t)i);
        must(!entry->block && !entry->sign); /* the next block with these ordinals is not folded */
    }
    end(make_folded());
}

static void use_in_child(void *arg) {
    sy_cache *cache = arg;
    check_all(cache);
    sy_cache_trim(cache);
    end(cache);
}

static void the_child_of_a_fork_has_its_folded_blocks(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    sy_cache *cache = make_folded();
    assert_int_equal(in_child(use_in_child, cache), 0);
    must(folded_blocks(cache) == blocks(cache));
    end(cache);
}

/* The parent's other thread was in the middle of this, with the lock. */
static void use_torn(void *arg) {
    sy_cache *cache = arg;
    sy_ordinal_block *block = cache->blocks.all;
    uint32_t index = 0;
    while (block->free[index / 64] >> index % 64 & 1) index++;
    const uint32_t *generations = (const uint32_t *)(block->folded + sy_block_out(block));
    uint64_t *words = sy_directory_words() + block->first + (size_t)2 * index;
    uint64_t pinned = ((uint64_t)generations[0] << 32 | cache->names.slot) + SY_HANDLE_PIN;
    words[0] = pinned; /* unfolded, and then pinned */
    words[1] = block->folded[0];
    atomic_store(&cache->moving, 3); /* of a flush of the mover */
    cache->torn = true;
    sy_caches_part.recover();
    must(folded_blocks(cache) == 0 && sy_cache_in_use(cache) == COUNT / LIVE_SHARE);
    must(words[0] == pinned);
    words[0] -= SY_HANDLE_PIN;
    end(cache);
}

static void a_child_unfolds_what_another_thread_was_folding(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    sy_cache *cache = make_folded();
    assert_int_equal(in_child(use_torn, cache), 0);
    end(cache);
}

static int set_up(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

/* Tools would have all caches checked, and objects with checks stay. */
int main(void) {
    setenv("SLABYARD", "tools=off", true);
    sy_fake_reset();
    must_have(SY_OS_DISCARDS, "memory that goes back");
    if (sy_os_page_size() > SY_BLOCK_ORDINALS * sizeof(uint64_t)) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_look_up_unfolds_a_block, set_up),
        cmocka_unit_test_setup(a_stale_handle_stays_stale, set_up),
        cmocka_unit_test_setup(forged_handles_find_nothing, set_up),
        cmocka_unit_test_setup(pins_and_frees_unfold_too, set_up),
        cmocka_unit_test_setup(iteration_visits_objects_of_folded_blocks, set_up),
        cmocka_unit_test_setup(an_address_leads_to_its_handle, set_up),
        cmocka_unit_test_setup(allocations_unfold_what_they_need, set_up),
        cmocka_unit_test_setup(generations_go_on_when_blocks_have_gone_and_come, set_up),
        cmocka_unit_test_setup(a_block_with_a_pinned_object_stays, set_up),
        cmocka_unit_test_setup(a_block_with_the_last_generation_stays, set_up),
        cmocka_unit_test_setup(a_block_with_many_objects_stays, set_up),
        cmocka_unit_test_setup(only_a_trim_folds_blocks_that_are_half_live, set_up),
        cmocka_unit_test_setup(passes_by_age_fold_what_is_not_used, set_up),
        cmocka_unit_test_setup(words_are_folded_where_objects_may_not_move, set_up),
        cmocka_unit_test_setup(where_no_memory_goes_back_blocks_stay, set_up),
        cmocka_unit_test_setup(without_memory_for_a_record_blocks_stay, set_up),
        cmocka_unit_test_setup(a_cache_ends_with_folded_blocks, set_up),
        cmocka_unit_test_setup(the_child_of_a_fork_has_its_folded_blocks, set_up),
        cmocka_unit_test_setup(a_child_unfolds_what_another_thread_was_folding, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
