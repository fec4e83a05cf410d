/*
 * test_directory.c: ordinals and the tables behind them; and caches with handles when a call to the
 * system fails. Whichever call fails, the function sets ENOMEM, all objects stay as they were, and
 * the next calls succeed.
 *
 * The directory starts once in a process. So most tests run in children of a process that has not
 * used the library.
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
#include "chunk/side.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "os/os.h"
#include "os/start.h"
#include "support/child.h"
#include "support/history.h"
#include "support/page_size.h"
#include "support/services.h"

enum { GROUP = 64, CACHE_NUMBER = 5 };

/* Ordinals of the smallest directory, and of the largest. */
static const uint64_t SMALLEST = 1 << 20, MOST = UINT64_C(1)
                                                 << (UINTPTR_MAX > UINT32_MAX ? 32 : 24);

static void passes_in_child(void (*body)(void *arg)) { assert_int_equal(in_child(body, NULL), 0); }

static void start(void) { must(sy_start() == 0 && sy_directory_start() == 0); }

/* How many ordinals the directory is for. */
static uint64_t room(void) {
    return (uint64_t)((uint64_t *)sy_directory_places() - sy_directory_words());
}

static uint64_t word_of(uint32_t ordinal) { return sy_directory_words()[ordinal]; }

static uint64_t generation_of(uint32_t ordinal) { return word_of(ordinal) >> SY_HANDLE_GENERATION; }

/* The steps of an allocation and a free. */
static void use(uint32_t ordinal) {
    sy_ordinal_prepare(ordinal, CACHE_NUMBER);
    sy_directory_words()[ordinal] += UINT64_C(1) << SY_HANDLE_GENERATION;
}

static uint32_t take(uint32_t count) {
    uint32_t first;
    must(sy_ordinals_take(count, &first));
    must(first % GROUP == 0 && (uint64_t)first + count <= sy_ordinals_limit());
    for (uint32_t i = 0; i < count; i++) must(word_of(first + i) == 0);
    return first;
}

/* ---- ordinals ---- */

static void starting_again_changes_nothing(void *arg) {
    (void)arg;
    start();
    const uint64_t *words = sy_directory_words();
    size_t reserved = sy_fake_reserved();
    must(sy_directory_start() == 0);
    must(sy_directory_words() == words && sy_fake_reserved() == reserved);
    must(room() == MOST && sy_ordinals_limit() <= room());
}

static void a_directory_starts_once(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    passes_in_child(starting_again_changes_nothing);
}

static void take_ranges(void *arg) {
    enum { RANGES = 300 };
    static uint32_t firsts[RANGES];
    static unsigned char used[1 << 20];
    (void)arg;
    start();
    uint64_t random = 3, limit = 0;
    for (size_t i = 0; i < RANGES; i++) {
        uint32_t count = 1 + (uint32_t)(next_random(&random) % (i % 10 ? 500 : 8192));
        firsts[i] = take(count);
        for (uint32_t at = 0; at < count; at++) must(used[firsts[i] + at]++ == 0);
        must(sy_ordinals_limit() >= limit);
        limit = sy_ordinals_limit();
        must(sy_fake_is_committed(sy_directory_words(), limit * sizeof(uint64_t)));
    }
}

static void ranges_are_apart_and_have_words(void **state) {
    (void)state;
    passes_in_child(take_ranges);
}

static void place_ranges(void *arg) {
    (void)arg;
    start();
    for (uint32_t count = 1; count <= 8192; count = count * 3 + 1) {
        uint32_t first = take(count), after = take(1);
        sy_ordinals_place(after, 1, 4711, 8);
        sy_ordinals_place(first, count, 1 << 20, 24);
        for (uint32_t i = 0; i < count; i++) {
            uintptr_t place = sy_directory_places()[(first + i) / GROUP];
            must(place + (first + i) % GROUP * 24 == (1 << 20) + i * 24);
        }
        must(sy_directory_places()[after / GROUP] == 4711);
    }
}

static void each_ordinal_leads_to_its_slot(void **state) {
    (void)state;
    passes_in_child(place_ranges);
}

static void prepare_words(void *arg) {
    (void)arg;
    start();
    uint32_t first = take(100);
    sy_ordinal_prepare(first + 7, CACHE_NUMBER);
    must(word_of(first + 7) == (uint64_t)CACHE_NUMBER << SY_HANDLE_CACHE);
    must(word_of(first + 6) == 0 && word_of(first + 8) == 0);
    use(first + 7);
    uint64_t word = word_of(first + 7);
    sy_ordinal_prepare(first + 7, CACHE_NUMBER); /* taken from the slab again */
    must(word_of(first + 7) == word && word >> SY_HANDLE_GENERATION == 1);
}

static void an_ordinal_is_prepared_once(void **state) {
    (void)state;
    passes_in_child(prepare_words);
}

static void give_and_take_again(void *arg) {
    (void)arg;
    start();
    uint32_t first = take(200), highest = 0;
    for (uint32_t round = 1; round < 20; round++) {
        for (uint32_t times = 0; times < round; times++) use(first + 3);
        use(first + 5), use(first + 150);
        highest += round;
        must(generation_of(first + 3) == highest);
        sy_ordinals_give(first, 200, 0);
        must(take(200) == first);
        sy_ordinal_prepare(first + 10, CACHE_NUMBER);
        must(generation_of(first + 10) == highest); /* of its 64 */
        sy_ordinal_prepare(first + 70, CACHE_NUMBER);
        must(generation_of(first + 70) == 0);
        sy_ordinal_prepare(first + 190, CACHE_NUMBER);
        must(generation_of(first + 190) == round);
    }
    must(sy_ordinals_lost() == 0);
}

static void a_range_given_back_starts_above_its_generations(void **state) {
    (void)state;
    passes_in_child(give_and_take_again);
}

static void give_spent(void *arg) {
    (void)arg;
    start();
    uint32_t first = take(100);
    use(first + 30);
    sy_directory_words()[first + 30] |= (uint64_t)SY_HANDLE_GENERATIONS_MAX << SY_HANDLE_GENERATION;
    must(sy_ordinals_lost() == 0);
    sy_ordinals_give(first, 100, 0);
    must(sy_ordinals_lost() == 128 && word_of(first + 30) == 0);
    for (int i = 0; i < 2000; i++) must(take(64) - first >= 128);
}

static void a_range_with_a_spent_ordinal_is_lost(void **state) {
    (void)state;
    passes_in_child(give_spent);
}

static void give_pages(void *arg) {
    bool fails = arg != NULL;
    start();
    uint32_t first = take(8192);
    for (uint32_t i = 0; i < 8192; i++) use(first + i);
    sy_fake_reset();
    if (fails) sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    sy_ordinals_give(first, 8192, 0);
    must(sy_fake_calls(SY_FAKE_DISCARD) == 0); /* returning them needs no system call */
    size_t bytes = sy_directory_trim();
    must(bytes == sy_fake_bytes(SY_FAKE_DISCARD));
    must(fails ? bytes == 0 : bytes >= 8192 * sizeof(uint64_t) - 2 * sy_os_page_size());
    sy_fake_reset();
    bytes += sy_directory_trim(); /* what could not be discarded is tried again */
    must(bytes >= 8192 * sizeof(uint64_t) - 2 * sy_os_page_size() && sy_directory_trim() == 0);
    for (uint32_t i = 0; i < 8192; i++) must(word_of(first + i) == 0);
    must(take(8192) == first);
    use(first);
    must(generation_of(first) == 2);
}

static size_t aged_trim(void) {
    size_t bytes = 0;
    errno = 0;
    for (uint64_t at = 0; sy_directory_trim_step(&at, true, &bytes);) must(errno == 0);
    return bytes;
}

static void give_by_age(void *arg) {
    (void)arg;
    start();
    const uint32_t page = (uint32_t)(sy_os_page_size() / sizeof(uint64_t));
    uint32_t first = take(4 * page), half = page / 2;
    must(first % page == 0);
    for (uint32_t i = 0; i < 4 * page; i++) use(first + i);
    sy_directory_trim();
    sy_ordinals_give(first, 4 * page, 0);
    must(take(half) == first); /* a slab is on the first page again */
    use(first);
    must(aged_trim() == 0);
    must(aged_trim() == 3 * sy_os_page_size());
    must(aged_trim() == 0 && generation_of(first) == 2);
    sy_ordinals_give(first, half, 0);
    must(aged_trim() == 0 && take(half) == first); /* in between */
    sy_ordinals_give(first, half, 0);
    must(aged_trim() == 0 && aged_trim() == sy_os_page_size() && aged_trim() == 0);
}

static void by_age_pages_go_that_slabs_have_left(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    passes_in_child(give_by_age);
}

static void pages_of_words_go_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    passes_in_child(give_pages);
}

static void words_are_cleared_though_their_pages_stay(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    assert_int_equal(in_child(give_pages, (void *)1), 0);
}

/* ---- a directory whose start fails at first ---- */

/* The n-th call fails. Exits with 1 if there were fewer calls. */
static void start_fails_at(void *arg) {
    must(sy_start() == 0);
    sy_fake_reset();
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    errno = 0;
    sy_handle handle;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES});
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    must(cache || (failed && errno == ENOMEM));
    sy_fake_reset();
    if (!cache) cache = sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES});
    must(cache && sy_handle_alloc(cache, &handle) && sy_handle_free(cache, handle));
    must(sy_cache_destroy(cache) == 0);
    if (!failed) _exit(1);
}

static void starting_fails_and_is_tried_again(void **state) {
    (void)state;
    uint64_t n = 1;
    int status;
    while ((status = in_child(start_fails_at, &n)) == 0) n++;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(n > 1);
}

/* A smaller directory works until its ordinals are used up, and again when some are returned. */
static void use_up_a_small_directory(void *arg) {
    (void)arg;
    must(sy_start() == 0);
    sy_fake_fail_above(SY_FAKE_RESERVE, 12 << 20);
    must(sy_directory_start() == 0);
    sy_fake_reset();
    must(room() == SMALLEST);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 8, .flags = SY_HANDLES});
    static sy_handle handles[(1 << 20) + 1];
    size_t count = 0;
    while (sy_handle_alloc(cache, &handles[count])) must(++count <= SMALLEST);
    must(errno == ENOMEM && count > SMALLEST * 9 / 10 && sy_cache_in_use(cache) == count);
    must(sy_cache_verify(cache) == 0 && sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_ordinals_limit() == SMALLEST);
    for (size_t i = 0; i < count; i++) must(sy_handle_get(cache, handles[i]) != NULL);
    for (size_t i = 0; i < count; i++) must(sy_handle_free(cache, handles[i]));
    sy_cache_trim(cache);
    sy_cache *other = sy_cache_create(&(sy_cache_config){.size = 8, .flags = SY_HANDLES});
    for (size_t i = 0; i < count; i++) {
        sy_handle fresh;
        must(sy_handle_alloc(other, &fresh) != NULL);
        must(!sy_handle_get(other, handles[i]) && !sy_handle_free(cache, handles[i]));
    }
    sy_cache_destroy_all(cache);
    sy_cache_destroy_all(other);
}

static void a_small_directory_is_used_to_its_end(void **state) {
    (void)state;
    passes_in_child(use_up_a_small_directory);
}

enum { LITTLE = UINTPTR_MAX > UINT32_MAX ? 1 << 30 : 1 << 27 };

static void have_little_address_space(void *arg) {
    (void)arg;
    must(sy_start() == 0);
    sy_fake_fail_above(SY_FAKE_RESERVE, LITTLE);
    must(sy_directory_start() == 0);
    /* An eighth of what could be reserved. */
    must(room() == LITTLE / 128);
}

static void where_space_is_short_a_directory_leaves_some(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    passes_in_child(have_little_address_space);
}

static void have_none(void *arg) {
    (void)arg;
    must(sy_start() == 0);
    sy_fake_fail_above(SY_FAKE_RESERVE, 8 << 20);
    errno = 0;
    must(!sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES}) && errno == ENOMEM);
    sy_cache *plain = sy_cache_create(&(sy_cache_config){.size = 48});
    must(plain != NULL && sy_cache_destroy(plain) == 0);
    sy_fake_reset();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES});
    must(cache != NULL && sy_cache_destroy(cache) == 0);
}

static void a_directory_that_cannot_be_had_is_enomem(void **state) {
    (void)state;
    passes_in_child(have_none);
}

/* ---- a history of caches with handles, with failures ---- */

enum { KINDS = 3, OBJECTS_MAX = 2500 };

struct kind {
    sy_cache_config config;
    size_t count;
    sy_cache *cache;
    sy_handle handles[OBJECTS_MAX], stale[OBJECTS_MAX];
    size_t live;
};

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

static struct kind kinds[KINDS] = {
    {.config = {.size = 8, .flags = SY_HANDLES}, .count = OBJECTS_MAX},
    {.config = {.size = 500,
                .flags = SY_HANDLES | SY_CHECKED,
                .construct = construct,
                .destruct = destruct},
     .count = 500},
    {.config = {.size = 300000, .flags = SY_HANDLES}, .count = 6},
};

static void all_is_well(void) {
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
    for (struct kind *kind = kinds; kind < kinds + KINDS && kind->cache; kind++) {
        sy_cache_stats stats;
        must(sy_cache_verify(kind->cache) == 0);
        must(sy_cache_get_stats(kind->cache, &stats) == 0 && stats.in_use == kind->live);
        must(stats.slots + stats.guarded ==
             stats.in_use + stats.in_depot + stats.in_loaded + stats.free);
        for (size_t i = 0; i < kind->count; i++) {
            const size_t *object =
                kind->handles[i] ? sy_handle_get(kind->cache, kind->handles[i]) : NULL;
            must(!kind->handles[i] || (object && *object == i));
            must(!sy_handle_get(kind->cache, kind->stale[i]));
        }
    }
}

/* Checks that the call failed as it should. */
static void has_failed(void) {
    must(errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0);
    all_is_well();
    errno = 0;
}

static void create_caches(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        while (!(kind->cache = sy_cache_create(&kind->config))) {
            has_failed();
            sy_fake_succeed(SY_FAKE_ANY);
        }
}

static void fill(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) {
            if (kind->handles[i]) continue;
            size_t *object = sy_handle_alloc(kind->cache, &kind->handles[i]);
            must(object || !kind->handles[i]);
            if (!object) has_failed();
            if (!object) continue;
            *object = i;
            kind->live++;
        }
}

static void give(struct kind *kind, size_t i) {
    if (!kind->handles[i]) return;
    must(!sy_handle_free(kind->cache, kind->stale[i]));
    errno = 77;
    must(sy_handle_free(kind->cache, kind->handles[i]) && errno == 77);
    kind->stale[i] = kind->handles[i];
    kind->handles[i] = 0;
    kind->live--;
}

static void thin_out(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++)
            if (i % 400) give(kind, i);
}

static void empty(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) give(kind, i);
}

static void free_pinned(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i += 5) {
            if (!kind->handles[i] || !sy_handle_pin(kind->cache, kind->handles[i])) continue;
            give(kind, i);
            sy_handle_unpin(kind->cache, kind->stale[i]);
        }
}

static void trim(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) sy_cache_trim(kind->cache);
    sy_trim();
}

static int count_visits(void *arg, sy_handle handle, void *object) {
    (void)handle, (void)object;
    ++*(size_t *)arg;
    return 0;
}

static void visit(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        size_t visits = 0;
        errno = 0;
        if (sy_handle_each(kind->cache, count_visits, &visits) == 0)
            must(visits == kind->live);
        else
            has_failed();
    }
}

static void recreate(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        must(sy_cache_destroy(kind->cache) == 0);
        kind->cache = NULL;
    }
    create_caches();
}

static phase *const phases[] = {create_caches, fill, visit, thin_out, trim,     fill,
                                free_pinned,   fill, empty, trim,     recreate, fill,
                                visit,         trim, fill,  empty};

static void end_history(void) {
    sy_fake_reset();
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        must(sy_cache_destroy(kind->cache) == 0);
    must(constructed == destructed && sy_ordinals_lost() == 0);
    sy_trim();
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.slabs == 0 && stats.chunks == 0);
}

static const history whole = {
    .phases = phases,
    .count = sizeof phases / sizeof *phases,
    .look = all_is_well,
    .end = end_history,
};

static void any_one_call_may_fail(void **state) {
    (void)state;
    history_fail_each(&whole, false, 50); /* as many calls has the history */
}

static void all_calls_may_fail_for_a_while(void **state) {
    (void)state;
    history_fail_each(&whole, true, 50);
}

/* ---- functions without calls to the system, or with failing ones ---- */

static void take_what_was_reserved(void *arg) {
    enum { RESERVED = 5000 };
    static sy_handle handles[RESERVED];
    (void)arg;
    static const size_t sizes[] = {8, 200, 5000};
    for (int s = 0; s < 3; s++) {
        sy_cache *cache =
            sy_cache_create(&(sy_cache_config){.size = sizes[s], .flags = SY_HANDLES});
        must(cache && sy_cache_reserve(cache, RESERVED) == 0);
        sy_fake_reset();
        sy_fake_fail_from(SY_FAKE_ANY, 1);
        for (size_t i = 0; i < RESERVED; i++) must(sy_handle_alloc(cache, &handles[i]) != NULL);
        must(sy_fake_calls(SY_FAKE_ANY) == 0);
        sy_fake_reset();
        for (size_t i = 0; i < RESERVED; i++) must(sy_handle_free(cache, handles[i]));
        must(sy_cache_destroy(cache) == 0);
    }
}

static void what_was_reserved_needs_no_system(void **state) {
    (void)state;
    passes_in_child(take_what_was_reserved);
}

/* Whichever call fails, nothing is left pinned. */
static void iterate_without_memory(void *arg) {
    enum { LIVE = 500 };
    static const sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    static sy_handle handles[LIVE];
    (void)arg;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 1000, .flags = SY_HANDLES});
    for (int i = 0; i < LIVE; i++) must(sy_handle_alloc(cache, &handles[i]) != NULL);
    size_t visits = 0, reserved = sy_fake_reserved();
    for (int i = 0; i < 2; i++) {
        sy_fake_fail_nth(calls[i], 1);
        errno = 0;
        must(sy_handle_each(cache, count_visits, &visits) == -1 && errno == ENOMEM && visits == 0);
    }
    sy_fake_reset();
    must(sy_handle_each(cache, count_visits, &visits) == 0 && visits == LIVE);
    must(sy_fake_reserved() == reserved);
    for (int i = 0; i < LIVE; i++) must(sy_handle_free(cache, handles[i]));
    must(sy_cache_destroy(cache) == 0);
}

static void an_iteration_without_memory_is_enomem(void **state) {
    (void)state;
    passes_in_child(iterate_without_memory);
}

/* If there is no memory for tags, a failed attempt loses no ordinals. */
static void fail_without_tags(void *arg) {
    sy_handle handle;
    (void)arg;
    must(sy_start() == 0);
    sy_fake_fail_above(SY_FAKE_RESERVE, 12 << 20);
    must(sy_directory_start() == 0);
    sy_fake_reset();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES});
    sy_cache *plain = sy_cache_create(&(sy_cache_config){.size = 48});
    sy_cache_free(plain, sy_cache_alloc(plain)); /* takes a chunk and side memory */
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    for (int i = 0; i < 40; i++) must(!sy_handle_alloc(cache, &handle));
    must(sy_ordinals_limit() <= 1 << 16);
    sy_fake_reset();
    must(sy_handle_alloc(cache, &handle) != NULL);
}

static void ordinals_without_tags_are_not_lost(void **state) {
    (void)state;
    passes_in_child(fail_without_tags);
}

/* Objects of 8 bytes have bitmaps beside their slabs. */
static void fail_for_ordinals(void *arg) {
    (void)arg;
    must(sy_start() == 0);
    sy_fake_fail_above(SY_FAKE_RESERVE, 12 << 20);
    must(sy_directory_start() == 0);
    sy_fake_reset();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 8, .flags = SY_HANDLES});
    sy_handle handle;
    while (sy_handle_alloc(cache, &handle)) continue;
    size_t before = sy_side_bytes();
    for (int i = 0; i < 100; i++) must(!sy_handle_alloc(cache, &handle));
    must(sy_side_bytes() == before);
    sy_cache_destroy_all(cache);
}

static void a_slab_without_ordinals_leaves_no_bitmap(void **state) {
    (void)state;
    passes_in_child(fail_for_ordinals);
}

/* A range may begin within a page and end on the next one. */
static void give_across_pages(void *arg) {
    (void)arg;
    start();
    const uint32_t page = (uint32_t)(sy_os_page_size() / sizeof(uint64_t));
    uint32_t first = take(page - GROUP), across = take(2 * GROUP);
    must(across == first + page - GROUP);
    use(across + 2 * GROUP - 1);
    sy_directory_trim();
    sy_ordinals_give(across, 2 * GROUP, 0);
    must(sy_directory_trim() == sy_os_page_size());
}

static void the_last_page_of_a_range_goes_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    passes_in_child(give_across_pages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_starts_once),
        cmocka_unit_test(ranges_are_apart_and_have_words),
        cmocka_unit_test(each_ordinal_leads_to_its_slot),
        cmocka_unit_test(an_ordinal_is_prepared_once),
        cmocka_unit_test(a_range_given_back_starts_above_its_generations),
        cmocka_unit_test(a_range_with_a_spent_ordinal_is_lost),
        cmocka_unit_test(pages_of_words_go_back),
        cmocka_unit_test(words_are_cleared_though_their_pages_stay),
        cmocka_unit_test(by_age_pages_go_that_slabs_have_left),
        cmocka_unit_test(starting_fails_and_is_tried_again),
        cmocka_unit_test(a_small_directory_is_used_to_its_end),
        cmocka_unit_test(where_space_is_short_a_directory_leaves_some),
        cmocka_unit_test(a_directory_that_cannot_be_had_is_enomem),
        cmocka_unit_test(any_one_call_may_fail),
        cmocka_unit_test(all_calls_may_fail_for_a_while),
        cmocka_unit_test(ordinals_without_tags_are_not_lost),
        cmocka_unit_test(what_was_reserved_needs_no_system),
        cmocka_unit_test(an_iteration_without_memory_is_enomem),
        cmocka_unit_test(a_slab_without_ordinals_leaves_no_bitmap),
        cmocka_unit_test(the_last_page_of_a_range_goes_back),
    };
    return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}
