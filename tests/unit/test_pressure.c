/*
 * test_pressure.c: memory pressure. Near the memory limit, and if tasks wait for memory, free
 * memory goes back to the system at once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "chunk/pressure.h"
#include "chunk/side.h"
#include "os/facts.h"
#include "os/fake.h"
#include "support/ages.h"
#include "support/page_size.h"
#include "support/services.h"

enum { MIB = 1 << 20 };

/* The limit is 640 MiB, the mark 560, and a 64th of the mark is `NEAR`. */
static const size_t LIMIT = (size_t)640 * MIB, MARK = (size_t)560 * MIB;
static const size_t NEAR = (size_t)560 * MIB / 64;

static void set_room(int64_t bytes) { atomic_store(&sy_pressure_room, bytes); }
static int64_t room(void) { return atomic_load(&sy_pressure_room); }

/* What the observer does when the process has so many bytes. */
static bool read_resident(size_t bytes) {
    sy_fake_set_resident(bytes);
    return sy_pressure_take_reading(false);
}

/* The same, if a look has asked for it. */
static bool confirm_resident(size_t bytes) {
    sy_fake_set_resident(bytes);
    return sy_pressure_take_reading(true);
}

static int begin_under_limit(void **state) {
    begin(state);
    sy_set_decay(0); /* no passes by age */
    atomic_store(&sy_facts_now.observed, true);
    sy_fake_set_memory_limit(LIMIT);
    (void)read_resident(MIB);
    atomic_store(&sy_pressure_unmet, 0);
    set_room((int64_t)1 << 40);
    return 0;
}

static void without_a_limit_there_is_no_pressure(void **state) {
    (void)state;
    sy_fake_set_memory_limit(SIZE_MAX);
    assert_false(read_resident(MARK));
    assert_int_equal(room(), 64 * MIB);
    set_room(-1);
    assert_true(sy_pressure_is_due());
    assert_int_equal(sy_pressure_look(), 0);
    assert_int_equal(room(), 64 * MIB);
    assert_false(sy_pressure_is_due());
    assert_true(sy_pressure_is_far());
}

static void if_the_memory_is_unknown_there_is_no_pressure(void **state) {
    (void)state;
    assert_false(read_resident(SIZE_MAX));
    assert_int_equal(room(), 64 * MIB);
    set_room(-1);
    assert_int_equal(sy_pressure_look(), 0);
    assert_int_equal(room(), 64 * MIB);
    assert_true(sy_pressure_is_far());
}

static void far_from_the_limit_the_next_look_is_half_way(void **state) {
    (void)state;
    assert_false(read_resident((size_t)160 * MIB));
    assert_int_equal(room(), (MARK - (size_t)160 * MIB) / 2);
    assert_false(read_resident(MARK - NEAR));
    assert_int_equal(room(), NEAR); /* half way is less than this */
    assert_false(sy_pressure_is_far());
    assert_false(sy_pressure_presses());
}

static void near_the_limit_the_next_allocation_looks(void **state) {
    (void)state;
    assert_true(read_resident(MARK - NEAR + 1));
    assert_true(sy_pressure_is_due());
    assert_int_equal(sy_pressure_look(), NEAR + 1);
    assert_int_equal(room(), NEAR);
    assert_false(sy_pressure_presses());
    assert_true(read_resident((size_t)580 * MIB)); /* a quarter of the spare part */
    assert_int_equal(sy_pressure_look(), (size_t)20 * MIB + 2 * NEAR);
    assert_false(sy_pressure_presses());
    assert_true(read_resident((size_t)580 * MIB + 1));
    assert_int_equal(sy_pressure_look(), (size_t)20 * MIB + 2 * NEAR + 1);
    assert_true(sy_pressure_presses());
    assert_false(read_resident((size_t)100 * MIB));
    assert_int_equal(sy_pressure_look(), 0);
    assert_false(sy_pressure_presses());
}

static void a_look_that_is_not_due_wants_nothing(void **state) {
    (void)state;
    (void)read_resident(MARK);
    set_room(0);
    atomic_store(&sy_facts_asked, 0);
    assert_int_equal(sy_pressure_look(), 0);
    assert_int_equal(room(), 0);
    assert_int_equal(sy_facts_asked, 0);
}

/* Without a reading in between, what was taken and returned is added up. Returned memory makes no
 * look later. */
static void between_readings_memory_is_calculated(void **state) {
    (void)state;
    assert_false(read_resident((size_t)160 * MIB));
    size_t half = (MARK - (size_t)160 * MIB) / 2;
    sy_pressure_note_return(half);
    sy_pressure_note(half);
    assert_false(sy_pressure_is_due());
    sy_pressure_note(MIB);
    atomic_store(&sy_facts_asked, 0);
    assert_true(sy_pressure_is_due());
    assert_int_equal(sy_pressure_look(), 0);
    assert_int_equal(sy_facts_asked, 1); /* the observer reads */
    size_t left = MARK - (size_t)161 * MIB;
    assert_int_equal(room(), left / 2);
    sy_pressure_note(left);
    assert_int_equal(sy_pressure_look(), 2 * NEAR);
    assert_int_equal(room(), NEAR);
    assert_false(sy_pressure_is_far());
    sy_pressure_note_return(MARK / 2);
    assert_int_equal(room(), NEAR);
    assert_true(sy_pressure_is_far());
}

/* Returned memory may have been taken before the first reading. */
static void more_may_be_returned_than_was_resident(void **state) {
    (void)state;
    assert_false(read_resident(MIB));
    sy_pressure_note_return((size_t)100 * MIB);
    assert_true(sy_pressure_is_far());
    sy_pressure_note((size_t)room() + 1);
    assert_int_equal(sy_pressure_look(), 0);
    assert_true(sy_pressure_is_far());
}

/* A reading that a look has asked for does not make the next allocation look again, if it finds
 * what was calculated. If it finds more, the next look is nearer by that. */
static void a_confirmed_look_is_not_repeated(void **state) {
    (void)state;
    assert_true(read_resident(MARK));
    assert_int_equal(sy_pressure_look(), 2 * NEAR);
    assert_true(confirm_resident(MARK));
    assert_int_equal(room(), NEAR);
    assert_int_equal(sy_pressure_look(), 0);
    assert_true(confirm_resident(MARK + MIB));
    assert_int_equal(room(), NEAR - MIB);
    assert_true(confirm_resident(MARK)); /* less than was calculated */
    assert_int_equal(room(), NEAR - MIB);
    assert_true(confirm_resident(MARK + NEAR));
    assert_true(sy_pressure_is_due());
    assert_int_equal(sy_pressure_look(), 3 * NEAR);
    sy_pressure_note_return(NEAR);
    assert_true(confirm_resident(MARK)); /* as calculated */
    assert_int_equal(room(), NEAR);
    assert_true(read_resident(MARK));
    assert_true(sy_pressure_is_due());
}

/* If the calculation was far from the limit, so was the next look. */
static void a_look_is_never_far_when_the_limit_is_near(void **state) {
    (void)state;
    assert_false(read_resident((size_t)160 * MIB));
    assert_true(confirm_resident(MARK));
    assert_true(sy_pressure_is_due());
    assert_false(read_resident((size_t)160 * MIB));
    sy_fake_set_memory_limit((size_t)182 * MIB);
    assert_true(confirm_resident((size_t)160 * MIB));
    assert_in_range(room(), 1, 3 * MIB);
}

/* Other threads take memory until they look too, while one does a pass. */
static void very_near_the_limit_looks_are_frequent(void **state) {
    (void)state;
    const size_t left = (size_t)16 * MIB;
    assert_true(read_resident(LIMIT - left));
    assert_true(sy_pressure_look() > 0);
    assert_true(sy_pressure_presses());
    assert_int_equal(room(), left / 8);
    assert_true(read_resident(LIMIT + MIB));
    assert_true(sy_pressure_look() > 0);
    assert_int_equal(room(), MIB / 4);
}

static void a_lowered_limit_is_near_at_the_next_reading(void **state) {
    (void)state;
    assert_false(read_resident((size_t)400 * MIB));
    sy_fake_set_memory_limit((size_t)400 * MIB);
    assert_true(sy_pressure_take_reading(false));
    assert_true(sy_pressure_presses());
    assert_true(sy_pressure_look() > (size_t)50 * MIB);
}

/* ---- what is counted ---- */

enum { DESCRIPTOR = 256 }; /* bytes of a span's, at most, which may be new */

static void runs_without_memory_are_counted(void **state) {
    (void)state;
    sy_trim();
    set_room((int64_t)1 << 40);
    void *span = sy_malloc(200 * 1024); /* four units of a chunk, or less */
    int64_t taken = ((int64_t)1 << 40) - room();
    assert_in_range(taken, 200 * 1024, 256 * 1024 + sizeof(sy_chunk)); /* perhaps a new header */
    sy_free(span);
    span = sy_malloc(200 * 1024); /* the same units, which are dirty now */
    assert_int_equal(((int64_t)1 << 40) - room(), taken);
    sy_free(span);

    set_room((int64_t)1 << 40);
    span = sy_malloc(10 * MIB);
    taken = ((int64_t)1 << 40) - room();
    assert_in_range(taken, 10 * MIB, 10 * MIB + DESCRIPTOR);
    sy_free(span);
    span = sy_malloc(10 * MIB); /* the span that was kept */
    assert_int_equal(((int64_t)1 << 40) - room(), taken);
    sy_free(span);
    sy_trim();
}

static void a_span_that_grows_in_place_is_counted(void **state) {
    (void)state;
    set_room((int64_t)1 << 40);
    void *span = sy_malloc(10 * MIB), *more = sy_realloc(span, 11 * MIB);
    assert_ptr_equal(more, span);
    assert_in_range(((int64_t)1 << 40) - room(), 11 * MIB, 11 * MIB + DESCRIPTOR);
    sy_free(more);
    sy_trim();
}

static void discarded_pages_of_a_slab_are_counted_when_they_are_used(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(1024, 0);
    take(cache, 1024, 0, 2000);
    give(cache, 1, 2000);
    sy_thread_flush();
    (void)sy_cache_trim(cache);
    size_t discarded = stats_of(cache).discarded, free_slots = stats_of(cache).free;
    assert_true(discarded > 0 && free_slots > 0);
    set_room((int64_t)1 << 40);
    take(cache, 1024, 1, 1 + free_slots);
    size_t left = stats_of(cache).discarded;
    assert_true(((int64_t)1 << 40) - room() >= (int64_t)(discarded - left));
    assert_int_equal(left, 0);
    give(cache, 0, 1 + free_slots);
    end(cache);
}

enum { APART = 40 };
_Static_assert(COUNT % APART == 0, "each object is freed");

/* Cuts holes into slabs, and frees slabs with holes. */
static void use_and_free_slabs(void) {
    sy_cache *cache = make(1024, 0);
    take(cache, 1024, 0, COUNT);
    for (size_t i = 0; i + APART <= COUNT; i += APART) give(cache, i + 1, i + APART);
    sy_thread_flush();
    (void)sy_cache_trim(cache);
    must(stats_of(cache).discarded > MIB);
    for (size_t i = 0; i < COUNT; i += APART) give(cache, i, i + 1);
    end(cache);
}

/* Bytes that were taken and not returned, since both were 0. */
static int64_t held(void) {
    return ((int64_t)1 << 40) - room() - (int64_t)atomic_load(&sy_pressure_returned);
}

/* Otherwise what is calculated is wrong by more and more. */
static void what_was_taken_and_returned_adds_up_to_nothing(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_trim();
    set_room((int64_t)1 << 40);
    atomic_store(&sy_pressure_returned, 0);
    for (int i = 0; i < 3; i++) {
        use_and_free_slabs();
        void *block = sy_malloc(10 * MIB);
        block = sy_realloc(sy_realloc(sy_realloc(block, 11 * MIB), 7 * MIB), 90 * MIB);
        void *small = sy_malloc(200 * 1024);
        sy_free(block);
        sy_free(small);
        if (i != 1) sy_trim();
    }
    assert_true(((int64_t)1 << 40) - room() > (int64_t)50 * MIB);
    assert_in_range(held() + MIB / 2, 0, MIB);
}

enum { SPAN = 256 * 1024 }; /* four units; larger than every size class */

/* The chunk stays, so its units go without it: from unit 1 on, with what a huge page may have given
 * to unit 0. */
static void units_of_a_chunk_that_stays_add_up(void **state) {
    (void)state;
    void *spans[15], *last = NULL;
    sy_trim();
    set_room((int64_t)1 << 40);
    atomic_store(&sy_pressure_returned, 0);
    int64_t after_first = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 15; i++) must((spans[i] = sy_malloc(SPAN)) != NULL);
        if (round == 0) last = spans[14];
        for (int i = 0; i < 15; i++)
            if (spans[i] != last) sy_free(spans[i]);
        sy_trim();
        if (round == 0) after_first = held();
    }
    assert_int_equal(held(), after_first);
    sy_free(last);
    sy_trim();
}

/* Memory of free units that moves to a block was taken before. */
static void what_moves_is_counted_once(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    void *spans[15], *last = sy_malloc(SPAN);
    sy_trim();
    for (int i = 0; i < 15; i++) memset(spans[i] = sy_malloc(SPAN), 1, SPAN);
    for (int i = 0; i < 15; i++) sy_free(spans[i]);
    set_room((int64_t)1 << 40);
    atomic_store(&sy_pressure_returned, 0);
    int64_t before = held(), least = 10 * MIB - 15 * SPAN;
    void *block = sy_malloc(10 * MIB);
    assert_in_range(held() - before, least - MIB / 4, least + MIB / 4); /* and own records */
    sy_free(block);
    sy_free(last);
    sy_trim();
}

/* Of a chunk half of whose units hold memory, that becomes a block. */
static void a_chunk_that_becomes_a_block_adds_up(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    if (!sy_os_can_move()) skip();
    sy_free(sy_calloc(5, MIB)); /* makes side memory */
    sy_trim();
    set_room((int64_t)1 << 40);
    atomic_store(&sy_pressure_returned, 0);
    int64_t before = held();
    const size_t unit = SY_UNIT_BYTES;
    void *low = sy_malloc(30 * unit), *high = sy_malloc(31 * unit);
    memset(high, 1, 31 * unit);
    sy_free(low);
    sy_trim();
    void *watched = sy_malloc(31 * unit);
    memset(watched, 1, 31 * unit);
    sy_free(watched);
    sy_trim();
    sy_free(high);
    must(sy_memory_main.dense);
    size_t chunks = sy_chunk_count().chunks;
    void *block = sy_malloc(64 * unit);
    assert_int_equal(sy_chunk_count().chunks, chunks - 1);
    sy_free(block);
    sy_trim();
    assert_in_range(held() - before + MIB / 4, 0, MIB / 2);
}

static void own_records_are_counted_once(void **state) {
    (void)state;
    void *records[2];
    set_room((int64_t)1 << 40);
    for (int i = 0; i < 2; i++) must((records[i] = sy_side_take(SY_SIDE_MAX)) != NULL);
    int64_t taken = ((int64_t)1 << 40) - room();
    assert_in_range(taken, 2 * SY_SIDE_MAX, 2 * SY_SIDE_MAX + 128);
    for (int i = 0; i < 2; i++) sy_side_give(records[i], SY_SIDE_MAX);
    for (int i = 0; i < 2; i++) must((records[i] = sy_side_take(SY_SIDE_MAX)) != NULL);
    assert_int_equal(((int64_t)1 << 40) - room(), taken);
    for (int i = 0; i < 2; i++) sy_side_give(records[i], SY_SIDE_MAX);
}

/* ---- what is released ---- */

/* Leaves `count` times four free units that hold memory. */
static void leave_free_units(size_t count) {
    for (size_t i = 0; i < count; i++) memset(objects[i] = sy_malloc(SPAN), 1, SPAN);
    for (size_t i = 0; i < count; i++) sy_free(objects[i]);
}

/* Bytes of free units and kept spans that hold memory. */
static size_t kept_bytes(void) {
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(&sy_memory_main, &chunks);
    return (chunks.units_free - chunks.units_clean) * SY_UNIT_BYTES + chunks.large_kept;
}

static void free_units_go_when_a_run_gets_memory(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_trim();
    leave_free_units(40);
    size_t kept = kept_bytes();
    assert_in_range(kept, 40 * SPAN, 2 * NEAR - 1);
    (void)read_resident(MARK - (size_t)10 * MIB);
    errno = KEPT_ERRNO;
    void *span = sy_calloc(10, MIB); /* which takes no memory of free units */
    assert_non_null(span);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_int_equal(kept_bytes(), 0);
    assert_in_range(atomic_load(&sy_pressure_unmet), 2 * NEAR - kept - MIB, 2 * NEAR - kept);
    sy_free(span);
    sound(NULL);
    sy_trim();
}

static void no_more_goes_than_is_wanted(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_trim();
    leave_free_units(200);
    size_t kept = kept_bytes();
    (void)read_resident(MARK - (size_t)10 * MIB);
    void *span = sy_calloc(10, MIB); /* which takes no memory of free units */
    assert_in_range(kept - kept_bytes(), 2 * NEAR, 2 * NEAR + MIB);
    assert_int_equal(atomic_load(&sy_pressure_unmet), 0);
    sy_free(span);
    sy_trim();
}

/* Leaves objects in the depot, and free units nowhere. */
static sy_cache *hoard(void) {
    sy_cache *cache = make(64, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    sy_thread_idle();
    must(stats_of(cache).in_depot > 0);
    return cache;
}

static bool a_pass_begins(void) {
    for (int i = 0; i < SY_TURNS_PER_LOOK && !pass_at_work(); i++) take_turns(1);
    return pass_at_work();
}

static void what_chunks_do_not_have_comes_from_caches(void **state) {
    (void)state;
    sy_trim();
    sy_cache *cache = hoard();
    assert_true(read_resident(MARK));
    assert_true(a_pass_begins());
    assert_int_equal(atomic_load(&sy_pressure_unmet), 0);
    set_room(MIB);
    end_pass();
    assert_int_equal(stats_of(cache).in_depot, 0);
    assert_int_equal(stats_of(cache).slabs, 0);

    hoard();
    (void)read_resident(MARK); /* too soon for another one */
    take_turns(2 * SY_TURNS_PER_LOOK);
    assert_false(pass_at_work());
    (void)read_resident(MARK);
    sy_fake_advance_clock(50000000);
    assert_true(a_pass_begins());
    set_room(MIB);
    end_pass();
    end(cache);
}

static void very_near_the_limit_the_pass_is_done_at_once(void **state) {
    (void)state;
    sy_trim();
    for (int round = 0; round < 3; round++) { /* however soon */
        sy_cache *cache = hoard();
        (void)read_resident(LIMIT);
        for (int i = 0; i < SY_TURNS_PER_LOOK; i++) {
            take_turns(1); /* one of these does all of the pass */
            assert_false(pass_at_work());
        }
        assert_int_equal(stats_of(cache).in_depot, 0);
        set_room(MIB);
        end(cache);
    }
}

static bool depot_goes(void) {
    atomic_store(&sy_pressure_unmet, 0);
    sy_cache *cache = hoard();
    (void)read_resident(LIMIT);
    take_turns(SY_TURNS_PER_LOOK);
    bool went = stats_of(cache).in_depot == 0;
    set_room(MIB);
    end_pass();
    end(cache);
    return went;
}

/* What nobody reads may be calculated wrongly: such passes could take all the time. */
static void without_an_observer_a_pass_in_vain_is_not_repeated_soon(void **state) {
    needs(SY_OS_OBSERVER);
    (void)state;
    sy_trim();
    atomic_store(&sy_facts_now.observed, false);
    sy_fake_advance_clock(50000000);
    assert_true(depot_goes()); /* 64 MiB are wanted, and less was returned */
    assert_false(depot_goes());
    sy_fake_advance_clock(49999999);
    assert_false(depot_goes());
    sy_fake_advance_clock(1);
    assert_true(depot_goes());
    atomic_store(&sy_facts_now.observed, true);
    assert_true(depot_goes());
    atomic_store(&sy_facts_now.observed, false);

    atomic_store(&sy_pressure_unmet, 0);
    sy_cache *cache = hoard();
    sy_fake_advance_clock(50000000);
    atomic_store(&sy_pressure_unmet, 64 * 1024); /* little is wanted */
    set_room(MIB);
    take_turns(SY_TURNS_PER_LOOK);
    end_pass();
    end(cache);
    assert_true(depot_goes());
}

static void pressure_ends_no_reserve(void **state) {
    (void)state;
    sy_trim();
    sy_cache *cache = make(64, 0);
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    size_t slabs = stats_of(cache).slabs;
    (void)read_resident(LIMIT);
    take_turns(SY_TURNS_PER_LOOK);
    set_room((int64_t)1 << 40);
    assert_int_equal(stats_of(cache).slabs, slabs);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    take(cache, 64, 0, COUNT);
    sy_fake_succeed(SY_FAKE_ANY);
    give(cache, 0, COUNT);
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    sy_trim_some(SIZE_MAX, UINT64_MAX);
    assert_int_equal(stats_of(cache).slabs, 0); /* the program's own wish ends it */
    end(cache);
}

static void a_pass_at_once_ends_when_enough_went(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_trim();
    sy_fake_advance_clock(50000000);
    sy_cache *cache = hoard();
    atomic_store(&sy_pressure_unmet, 256 * 1024);
    set_room(MIB);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    take_turns(SY_TURNS_PER_LOOK);
    end_pass();
    assert_in_range(sy_fake_bytes(SY_FAKE_DISCARD) - before, 256 * 1024, 512 * 1024);
    end(cache);
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 60, HELD = 40 };

/* Fills blocks of many sizes with a pattern of its own, and checks the pattern before each free. */
static void *use_blocks(void *arg) {
    unsigned self = (unsigned)(uintptr_t)arg;
    unsigned char *blocks[HELD];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < HELD; i++) {
            size_t size = (size_t)64 << (i + round) % 13;
            must((blocks[i] = sy_malloc(size)) != NULL);
            memset(blocks[i], (int)(self * HELD + i), size);
        }
        for (unsigned i = 0; i < HELD; i++) {
            size_t size = (size_t)64 << (i + round) % 13;
            for (size_t at = 0; at < size; at++)
                must(blocks[i][at] == (unsigned char)(self * HELD + i));
            sy_free(blocks[i]);
        }
    }
    return NULL;
}

/* All threads look at the same time, release memory, and do the passes at once together. */
static void threads_under_pressure_keep_their_objects(void **state) {
    (void)state;
    (void)read_resident(LIMIT);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, use_blocks, (void *)i) == 0);
    for (int i = 0; i < 300; i++) {
        (void)read_resident(LIMIT);
        sy_fake_advance_clock(10000000);
        rest();
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    set_room((int64_t)1 << 40);
    end_pass();
    sound(NULL);
}

/* ---- tasks that wait ---- */

static void a_tenth_of_the_time_is_pressure(void **state) {
    (void)state;
    uint64_t now = sy_os_now();
    sy_fake_set_memory_stall(1000);
    (void)sy_pressure_stalled(now);
    assert_false(sy_pressure_stalled(now + 1000));
    sy_fake_set_memory_stall(1099);
    assert_false(sy_pressure_stalled(now + 2000));
    sy_fake_set_memory_stall(1199);
    assert_true(sy_pressure_stalled(now + 3000));
    assert_false(sy_pressure_stalled(now + 4000));
    sy_fake_set_memory_stall(UINT64_MAX); /* unknown */
    assert_false(sy_pressure_stalled(now + 5000));
    sy_fake_set_memory_stall(5000);
    assert_false(sy_pressure_stalled(now + 6000));
    assert_false(sy_pressure_stalled(now + 6000));
}

/* Runs first, with the real clock: the other tests set one that is years ahead. */
static void the_maintenance_thread_sees_waiting_tasks(void **state) {
    needs(SY_OS_BACKGROUND | SY_OS_OBSERVER);
    (void)state;
    sy_set_decay(0);
    sy_fake_set_memory_limit(SIZE_MAX);
    sy_fake_set_memory_stall(1);
    leave_free_units(50);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    assert_int_equal(sy_maintenance_start(), 0);
    while (sy_fake_bytes(SY_FAKE_DISCARD) - before < 50 * SPAN) {
        sy_fake_set_memory_stall(sy_os_now());
        rest();
    }
    sy_maintenance_stop();
}

/* The limit is lowered while the program does nothing. */
static void the_maintenance_thread_sees_a_lowered_limit(void **state) {
    needs(SY_OS_BACKGROUND | SY_OS_OBSERVER);
    (void)state;
    sy_set_decay(0);
    sy_fake_set_memory_limit(LIMIT);
    sy_fake_set_resident((size_t)400 * MIB);
    assert_int_equal(sy_maintenance_start(), 0);
    leave_free_units(50);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_fake_set_memory_limit((size_t)420 * MIB);
    while (sy_fake_bytes(SY_FAKE_DISCARD) - before < 50 * SPAN) rest();
    sy_maintenance_stop();
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_under_limit, leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_maintenance_thread_sees_waiting_tasks),
        cmocka_unit_test(the_maintenance_thread_sees_a_lowered_limit),
        TEST(without_a_limit_there_is_no_pressure),
        TEST(if_the_memory_is_unknown_there_is_no_pressure),
        TEST(far_from_the_limit_the_next_look_is_half_way),
        TEST(near_the_limit_the_next_allocation_looks),
        TEST(a_look_that_is_not_due_wants_nothing),
        TEST(between_readings_memory_is_calculated),
        TEST(more_may_be_returned_than_was_resident),
        TEST(without_an_observer_a_pass_in_vain_is_not_repeated_soon),
        TEST(a_confirmed_look_is_not_repeated),
        TEST(a_look_is_never_far_when_the_limit_is_near),
        TEST(units_of_a_chunk_that_stays_add_up),
        TEST(what_moves_is_counted_once),
        TEST(a_chunk_that_becomes_a_block_adds_up),
        TEST(own_records_are_counted_once),
        TEST(what_was_taken_and_returned_adds_up_to_nothing),
        TEST(very_near_the_limit_looks_are_frequent),
        TEST(a_lowered_limit_is_near_at_the_next_reading),
        TEST(runs_without_memory_are_counted),
        TEST(a_span_that_grows_in_place_is_counted),
        TEST(discarded_pages_of_a_slab_are_counted_when_they_are_used),
        TEST(free_units_go_when_a_run_gets_memory),
        TEST(no_more_goes_than_is_wanted),
        TEST(what_chunks_do_not_have_comes_from_caches),
        TEST(very_near_the_limit_the_pass_is_done_at_once),
        TEST(pressure_ends_no_reserve),
        TEST(a_pass_at_once_ends_when_enough_went),
        TEST(threads_under_pressure_keep_their_objects),
        TEST(a_tenth_of_the_time_is_pressure),
    };
    return cmocka_run_group_tests_name("pressure", tests, NULL, NULL);
}
