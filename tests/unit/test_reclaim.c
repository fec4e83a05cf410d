/*
 * test_reclaim.c: memory that was not used for a while goes back by itself, and no other memory
 * does.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"
#include "support/ages.h"
#include "support/page_size.h"
#include "support/services.h"

/* ---- how memory ages ---- */

static void with_a_decay_of_0_nothing_goes(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    void *span = sy_malloc(5 << 20);
    sy_free(span);
    sy_set_decay(0);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_cache_stats stats = stats_of(cache);
    for (int year = 0; year < 20; year++) {
        sy_fake_advance_clock(UINT64_C(31557600) * 1000000000);
        take_turns(1000);
        assert_false(pass_at_work());
    }
    discards_nothing(before);
    assert_int_equal(stats_of(cache).in_depot, stats.in_depot);
    assert_int_equal(stats_of(cache).in_loaded, stats.in_loaded);
    assert_int_equal(stats_of(cache).slabs, stats.slabs);
    end(cache);
}

/* Less time than a decay time passes. */
static void what_was_wanted_just_now_stays(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_cache_stats stats = stats_of(cache);
    assert_true(stats.in_depot > 0 && stats.in_loaded > 0);
    sy_fake_advance_clock(DECAY_NS / 2);
    take_turns(1000);
    pass();
    discards_nothing(before);
    assert_int_equal(stats_of(cache).in_depot, stats.in_depot);
    end(cache);
}

static void all_that_was_freed_goes_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    static const size_t sizes[] = {8, 48, 64, 1000, 5000};
    for (int s = 0; s < 5; s++) {
        sy_cache *cache = make(sizes[s], 0);
        uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
        take(cache, sizes[s], 0, COUNT);
        unsigned char *some = objects[COUNT / 2];
        give(cache, 0, COUNT);
        assert_true(is_resident(some));
        passes(ENOUGH_PASSES);
        sy_cache_stats stats = stats_of(cache);
        assert_int_equal(stats.in_depot, 0);
        assert_int_equal(stats.in_loaded, 0);
        assert_int_equal(stats.slabs, 0);
        assert_true(sy_fake_bytes(SY_FAKE_DISCARD) - before >= COUNT * sizes[s] / 100 * 98);
        assert_false(is_resident(some));
        take(cache, sizes[s], 0, COUNT);
        for (size_t i = 0; i < COUNT; i++) is_whole(sizes[s], i);
        give(cache, 0, COUNT);
        end(cache);
    }
}

/* One step of age at a time: an unused magazine is flushed by the second pass that finds it there,
 * a unit is discarded by the second pass that finds it free. */
static void each_layer_waits_for_its_own_second_pass(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(64, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    size_t hoard = stats_of(cache).in_depot;
    assert_true(hoard > 1000);
    pass();
    assert_int_equal(stats_of(cache).in_depot, hoard);
    pass();
    assert_int_equal(stats_of(cache).in_depot, 0);
    assert_true(stats_of(cache).slabs <= 1);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    pass();
    assert_true(sy_fake_bytes(SY_FAKE_DISCARD) - before >= hoard * 64 / 2);
    assert_int_equal(stats_of(cache).slabs, 0);
    end(cache);
}

/* ---- magazines ---- */

enum { MAGAZINE = 128, HOARD = 20, WORKING = 6 };

/* About HOARD magazines wait in the depot, and the thread's own magazines are full. */
static sy_cache *with_hoard(void) {
    sy_cache *cache = make(64, 0);
    take(cache, 64, 0, (HOARD + 2) * MAGAZINE);
    give(cache, 0, (HOARD + 2) * MAGAZINE);
    assert_true(stats_of(cache).in_depot >= (HOARD - 4) * MAGAZINE);
    return cache;
}

/* Magazines that left the depot and came back between two passes are what the program works
 * with. */
static void the_working_set_stays(void **state) {
    (void)state;
    sy_cache *cache = with_hoard();
    for (int i = 0; i < ENOUGH_PASSES; i++) {
        take(cache, 64, 0, (WORKING + 2) * MAGAZINE);
        give(cache, 0, (WORKING + 2) * MAGAZINE);
        pass();
    }
    sy_cache_stats stats = stats_of(cache);
    assert_in_range(stats.in_depot, (WORKING - 2) * MAGAZINE, (WORKING + 2) * MAGAZINE);
    take(cache, 64, 0, (WORKING + 2) * MAGAZINE);
    assert_int_equal(stats_of(cache).refills, stats.refills);
    assert_int_equal(stats_of(cache).depot_misses, stats.depot_misses);
    give(cache, 0, (WORKING + 2) * MAGAZINE);
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).in_depot, 0);
    end(cache);
}

static void a_drain_does_not_make_what_comes_after_it_old(void **state) {
    (void)state;
    sy_cache *cache = with_hoard();
    pass();
    sy_cache_trim(cache);
    take(cache, 64, 0, (HOARD + 2) * MAGAZINE);
    give(cache, 0, (HOARD + 2) * MAGAZINE);
    size_t hoard = stats_of(cache).in_depot;
    assert_true(hoard > 0);
    pass();
    assert_int_equal(stats_of(cache).in_depot, hoard);
    pass();
    assert_int_equal(stats_of(cache).in_depot, 0);
    end(cache);
}

static void this_threads_idle_slots_are_emptied(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *idle = make(64, 0), *busy = make(64, 0), *named = make(64, SY_HANDLES);
    take(idle, 64, 0, 50);
    give(idle, 0, 50);
    sy_handle handle;
    assert_non_null(sy_handle_alloc(named, &handle));
    assert_true(sy_handle_free(named, handle));
    size_t held = stats_of(idle).in_loaded;
    assert_true(held >= 50);
    for (int i = 0; i < 3; i++) {
        take(busy, 64, 0, 3 * MAGAZINE);
        give(busy, 0, 3 * MAGAZINE);
        pass();
        assert_true(stats_of(busy).in_loaded > 0);
        assert_true(i > 0 || stats_of(idle).in_loaded == held);
    }
    assert_int_equal(stats_of(idle).in_loaded, 0);
    assert_int_equal(stats_of(named).in_loaded, 0);
    passes(3);
    assert_int_equal(stats_of(busy).in_loaded, 0);
    take(busy, 64, 0, 50);
    give(busy, 0, 50);
    end(busy);
    end(idle);
    end(named);
}

static pthread_barrier_t barrier;

static void *work_and_wait(void *arg) {
    unsigned char *mine[100];
    for (int i = 0; i < 100; i++) mine[i] = sy_cache_alloc(arg);
    for (int i = 0; i < 100; i++) sy_cache_free(arg, mine[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) memset(mine[i] = sy_cache_alloc(arg), i, 64);
    for (int i = 0; i < 100; i++) must(mine[i][63] == i);
    for (int i = 0; i < 100; i++) sy_cache_free(arg, mine[i]);
    return NULL;
}

/* A running thread keeps its magazines, a parked thread does not. */
static void parked_threads_are_emptied(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, work_and_wait, cache), 0);
    pthread_barrier_wait(&barrier);
    size_t held = stats_of(cache).in_loaded;
    assert_true(held >= 100);
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).in_loaded, held);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).in_loaded, 0);
    assert_int_equal(stats_of(cache).slabs, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    end(cache);
}

/* ---- slabs ---- */

enum { SPARSE = 512 };

/* One object in SPARSE is live, so no slab is empty. A checked cache has no magazines. */
static sy_cache *sparse(void) {
    sy_cache *cache = make(64, SY_CHECKED);
    take(cache, 64, 0, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        if (i % SPARSE) sy_cache_free(cache, objects[i]);
    return cache;
}

static void idle_slabs_lose_pages_that_are_not_in_use(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = sparse();
    size_t slabs = stats_of(cache).slabs;
    pass();
    assert_int_equal(stats_of(cache).discarded, 0);
    pass();
    sy_cache_stats stats = stats_of(cache);
    assert_true(stats.discarded > COUNT * 64 / 2);
    assert_int_equal(stats.slabs, slabs);
    for (size_t i = 0; i < COUNT; i += SPARSE) {
        assert_true(is_resident(objects[i]));
        is_whole(64, i);
    }
    assert_false(is_resident(objects[SPARSE / 2]));
    for (size_t i = 0; i < COUNT; i += SPARSE) sy_cache_free(cache, objects[i]);
    end(cache);
}

static void pages_at_work_are_kept(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(64, SY_CHECKED);
    take(cache, 64, 0, 1000); /* in one slab */
    give(cache, 1, 1000);
    assert_int_equal(stats_of(cache).slabs, 1);
    for (int i = 0; i < ENOUGH_PASSES; i++) {
        take(cache, 64, 1, 1000);
        give(cache, 1, 1000);
        pass();
        assert_int_equal(stats_of(cache).discarded, 0);
    }
    passes(2);
    assert_true(stats_of(cache).discarded > 0);
    is_whole(64, 0);
    give(cache, 0, 1);
    end(cache);
}

static void idle_pages_go_though_their_slab_is_at_work(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(64, SY_CHECKED);
    take(cache, 64, 0, 1000);
    size_t page = sy_os_page_size() / 64; /* slots of a page */
    give(cache, page, 1000);
    for (int i = 0; i < 2; i++) { /* all slots in the first page are used, and one in the second */
        sy_cache_free(cache, sy_cache_alloc(cache));
        assert_int_equal(stats_of(cache).discarded, 0);
        pass();
    }
    sy_cache_free(cache, sy_cache_alloc(cache));
    assert_in_range(stats_of(cache).discarded, 1, (1000 / page - 1) * sy_os_page_size());
    assert_true(is_resident(objects[page]));
    assert_false(is_resident(objects[3 * page]));
    for (size_t i = 0; i < page; i++) is_whole(64, i);
    give(cache, 0, page);
    end(cache);
}

/* A page that is freed just before a pass stays for one interval. */
static void a_free_begins_a_new_interval(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(64, SY_CHECKED);
    take(cache, 64, 0, 1000);
    passes(2);
    give(cache, 1, 1000);
    pass();
    assert_int_equal(stats_of(cache).discarded, 0);
    pass();
    assert_true(stats_of(cache).discarded > 0);
    give(cache, 0, 1);
    end(cache);
}

/* An empty slab is kept as long as its cache is at work. */
static void a_cache_at_work_keeps_an_empty_slab(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(64, SY_CHECKED);
    for (int i = 0; i < ENOUGH_PASSES; i++) {
        sy_cache_free(cache, sy_cache_alloc(cache));
        pass();
        assert_int_equal(stats_of(cache).slabs, 1);
    }
    assert_int_equal(stats_of(cache).slabs_made, 1);
    passes(2);
    assert_int_equal(stats_of(cache).slabs, 0);
    end(cache);
}

static void what_was_reserved_stays(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(64, 0);
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).discarded, 0);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    take(cache, 64, 0, COUNT);
    sy_fake_succeed(SY_FAKE_ANY);
    give(cache, 0, COUNT);
    passes(ENOUGH_PASSES);
    size_t mapped = stats_of(cache).mapped;
    assert_true(mapped >= COUNT * 64);
    assert_true(sy_trim() >= COUNT * 64);
    assert_int_equal(stats_of(cache).mapped, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).mapped, 0); /* the trim ended the reserve */
    end(cache);
}

/* ---- spans ---- */

static size_t kept_bytes(void) { return sy_chunk_count().large_kept; }

static void kept_spans_go_with_age(void **state) {
    (void)state;
    unsigned char *span = sy_malloc(5 << 20);
    memset(span, 1, 5 << 20);
    sy_free(span);
    size_t kept = kept_bytes();
    assert_true(kept >= 5 << 20);
    pass();
    assert_int_equal(kept_bytes(), kept);
    span = sy_malloc(5 << 20); /* the same span: its age begins anew */
    memset(span, 2, 5 << 20);
    sy_free(span);
    pass();
    assert_int_equal(kept_bytes(), kept);
    pass();
    assert_int_equal(kept_bytes(), 0);
}

static void long_spans_go_in_parts(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    unsigned char *span = sy_malloc(30 << 20);
    memset(span, 1, 30 << 20);
    sy_free(span);
    sy_fake_fail_above(SY_FAKE_DISCARD, 8 << 20);
    pass();
    begin_pass();
    while (kept_bytes() > 20 << 20) take_turns(1);
    assert_true(kept_bytes() > 8 << 20);
    span = sy_malloc(kept_bytes()); /* the rest of the span can be used */
    memset(span, 2, 9 << 20);
    end_pass();
    assert_int_equal(span[(9 << 20) - 1], 2);
    sy_free(span);
    passes(3);
    assert_int_equal(kept_bytes(), 0);
    assert_int_equal(sy_fake_failures(SY_FAKE_DISCARD), 0);
}

/* Allocations of the heap's spans are slow paths too. */
static void spans_alone_make_time_pass(void **state) {
    (void)state;
    void *span = sy_malloc(5 << 20);
    sy_free(span);
    for (int i = 0; i < 1000 && kept_bytes(); i++) {
        sy_fake_advance_clock(DECAY_NS / 8);
        for (int turn = 0; turn < 4; turn++) sy_free(sy_malloc(200 << 10));
    }
    assert_int_equal(kept_bytes(), 0);
}

/* ---- memory of the program ---- */

static size_t discarded_by_program;

static int discard(void *arg, void *start, size_t bytes) {
    (void)arg;
    memset(start, 0xee, bytes);
    discarded_by_program += bytes;
    return 0;
}

enum { REGION = 16 << 20 };

static sy_memory *make_memory(int (*how)(void *, void *, size_t)) {
    enum { CHUNK = 4 << 20 }; /* more than some linkers align a variable to */
    static unsigned char room[REGION + CHUNK];
    unsigned char *region = room + (-(uintptr_t)room & (CHUNK - 1));
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.start = region, .bytes = REGION, .discard = how});
    must(memory != NULL);
    discarded_by_program = 0;
    return memory;
}

static sy_cache *make_over(sy_memory *memory) {
    return make_with((sy_cache_config){.size = 64, .memory = memory});
}

static void a_programs_memory_goes_back_its_own_way(void **state) {
    (void)state;
    sy_memory *memory = make_memory(discard);
    sy_cache *cache = make_over(memory);
    take(cache, 64, 0, COUNT);
    give(cache, 1, COUNT);
    passes(ENOUGH_PASSES);
    assert_int_equal(discarded_by_program, 0); /* not on a thread's slow path */
    maintain(ENOUGH_PASSES);
    assert_true(discarded_by_program >= COUNT * 64 / 2);
    is_whole(64, 0);
    assert_int_equal(sy_chunk_verify(memory), 0);
    take(cache, 64, 1, COUNT);
    for (size_t i = 0; i < COUNT; i++) is_whole(64, i);
    give(cache, 0, COUNT);
    end(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

static void a_programs_memory_without_discard_stays(void **state) {
    (void)state;
    sy_memory *memory = make_memory(NULL);
    sy_cache *cache = make_over(memory);
    take(cache, 64, 0, COUNT);
    give(cache, 1, COUNT);
    maintain(ENOUGH_PASSES);
    is_whole(64, 0);
    assert_int_equal(sy_chunk_verify(memory), 0);
    take(cache, 64, 1, COUNT);
    give(cache, 0, COUNT);
    end(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

/* The units of a memory age once a pass, however many caches use the memory. */
static void a_programs_memory_ages_once_a_pass(void **state) {
    (void)state;
    sy_memory *memory = make_memory(discard);
    sy_cache *first = make_over(memory), *second = make_over(memory);
    take(first, 64, 0, COUNT);
    give(first, 0, COUNT);
    assert_true(stats_of(first).slabs < COUNT / 1100);
    sy_thread_flush();
    maintain(1);
    assert_int_equal(discarded_by_program, 0);
    maintain(ENOUGH_PASSES);
    assert_true(discarded_by_program >= COUNT * 64);
    end(first);
    end(second);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

/* ---- growth ---- */

static void growth_takes_what_others_do_not_want(void **state) {
    (void)state;
    enum { ROUNDS = 12 };
    sy_cache *rich = make(64, 0), *growing = make(256, 0);
    take(rich, 64, 0, COUNT);
    give(rich, 0, COUNT);
    assert_true(stats_of(rich).in_depot > 1000);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    for (size_t round = 0; round < ROUNDS; round++) take(growing, 256, 0, COUNT / 2);
    assert_int_equal(stats_of(rich).in_depot, 0);
    assert_true(stats_of(rich).slabs <= 2);
    discards_nothing(before); /* memory goes to the chunks, for reuse */
    sound(rich);
    sound(growing);
    end(rich);
    sy_cache_destroy_all(growing);
}

/* A pass by age that is due during a pass by growth follows it. A turn does four steps of a pass by
 * growth, so it takes more than one turn for these caches. */
static void a_pass_by_age_follows_one_by_growth(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    enum { OTHERS = 8 };
    sy_cache *cache = make(64, 0), *others[OTHERS];
    for (int i = 0; i < OTHERS; i++) others[i] = make(64, 0);
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    sy_thread_flush();
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    for (int i = 0; i < ENOUGH_PASSES; i++) {
        sy_caches_note_growth(SIZE_MAX / 4);
        sy_turn();
        must(pass_at_work()); /* a pass by growth */
        maintain(1);
        must(!pass_at_work());
    }
    assert_int_equal(stats_of(cache).slabs, 0);
    assert_true(sy_fake_bytes(SY_FAKE_DISCARD) - before >= COUNT * 64 / 2);
    for (int i = 0; i < OTHERS; i++) sy_cache_destroy_all(others[i]);
    end(cache);
}

/* A pass by growth takes nothing that was reserved. */
static void growth_leaves_a_reserve_alone(void **state) {
    (void)state;
    sy_cache *reserved = make(64, 0), *growing = make(256, 0);
    assert_int_equal(sy_cache_reserve(reserved, 5000), 0);
    for (size_t round = 0; round < 12; round++) take(growing, 256, 0, COUNT / 2);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    take(reserved, 64, 0, 5000);
    sy_fake_succeed(SY_FAKE_ANY);
    give(reserved, 0, 5000);
    end(reserved);
    sy_cache_destroy_all(growing);
}

/* ---- constructors and destructors ---- */

static size_t constructed, destructed;

static int construct(void *object, void *arg) {
    (void)arg;
    must(*(uint64_t *)object != 0x5a5a);
    *(uint64_t *)object = 0x5a5a;
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    must(*(uint64_t *)object == 0x5a5a);
    *(uint64_t *)object = 0;
    destructed++;
}

/* Pages that stay keep their constructed objects. */
static void only_slots_of_returned_pages_are_destructed(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    constructed = destructed = 0;
    sy_cache *cache = make_with((sy_cache_config){
        .size = 1024, .flags = SY_CHECKED, .construct = construct, .destruct = destruct});
    size_t page = sy_os_page_size() / 1024; /* objects on a page */
    for (size_t i = 0; i < 4 * page; i++) objects[i] = sy_cache_alloc(cache);
    give(cache, 2 * page, 4 * page);
    maintain(1); /* the last two pages are idle */
    give(cache, page, 2 * page);
    size_t before = destructed, held = stats_of(cache).discarded;
    maintain(1);
    size_t gone = (stats_of(cache).discarded - held) / 1024;
    assert_in_range(gone, 1, 2 * page);
    assert_in_range(destructed - before, 1, 2 * page);
    give(cache, 0, page);
    end(cache);
    assert_int_equal(constructed, destructed);
}

static void what_was_constructed_is_destructed_once(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    constructed = destructed = 0;
    sy_cache *cache =
        make_with((sy_cache_config){.size = 96, .construct = construct, .destruct = destruct});
    for (size_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < COUNT; i++)
            must(*(uint64_t *)(void *)(objects[i] = sy_cache_alloc(cache)) == 0x5a5a);
        for (size_t i = 0; i < COUNT; i++)
            if (i % 200 || round % 2) sy_cache_free(cache, objects[i]);
        size_t before = destructed;
        passes(ENOUGH_PASSES);
        assert_int_equal(destructed, before); /* not on a thread's slow path */
        maintain(ENOUGH_PASSES);
        assert_true(destructed > before + COUNT / 2);
        assert_true(constructed - destructed >= stats_of(cache).in_use);
        if (round % 2 == 0)
            for (size_t i = 0; i < COUNT; i += 200) sy_cache_free(cache, objects[i]);
    }
    sy_thread_flush();
    maintain(ENOUGH_PASSES);
    assert_int_equal(constructed, destructed);
    end(cache);
}

static sy_cache *other, *same;
static bool at_end; /* the cache is being destroyed: no thread uses it */
static unsigned depth, deepest;

static void work_with_both(void) {
    void *taken[40];
    for (int i = 0; i < 40; i++) must((taken[i] = sy_cache_alloc(i % 2 ? other : same)) != NULL);
    for (int i = 0; i < 40; i++) sy_cache_free(i % 2 ? other : same, taken[i]);
    sy_free(sy_malloc(100));
}

/* A destructor that allocates and frees, also in its own cache. */
static void destruct_and_work(void *object, void *arg) {
    destruct(object, arg);
    if (++depth > deepest) deepest = depth;
    if (depth == 1 && !at_end) work_with_both();
    depth--;
}

static void destructors_may_allocate_and_free(void **state) {
    (void)state;
    constructed = destructed = deepest = 0;
    at_end = false;
    other = make(64, 0);
    same = make_with(
        (sy_cache_config){.size = 96, .construct = construct, .destruct = destruct_and_work});
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(same);
    give(same, 0, COUNT);
    maintain(2 * ENOUGH_PASSES);
    assert_true(destructed > COUNT / 2);
    assert_true(deepest >= 1 && deepest <= 3); /* no pass runs within a pass */
    assert_int_equal(sy_cache_in_use(same), 0);
    assert_int_equal(sy_cache_in_use(other), 0);
    at_end = true;
    end(same);
    end(other);
    assert_int_equal(constructed, destructed);
}

/* ---- handles ---- */

static void handles_stay_what_they_are(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    static sy_handle handles[COUNT];
    sy_cache *cache = make(64, SY_HANDLES);
    for (size_t i = 0; i < COUNT; i++)
        memset(objects[i] = sy_handle_alloc(cache, &handles[i]), (int)(i % 251), 64);
    for (size_t i = 0; i < COUNT; i++)
        if (i % SPARSE) must(sy_handle_free(cache, handles[i]));
    passes(ENOUGH_PASSES);
    assert_true(stats_of(cache).discarded > 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            must(sy_handle_get(cache, handles[i]) == (i % SPARSE ? NULL : objects[i]));
            if (i % SPARSE == 0) is_whole(64, i);
        }
        void *again = sy_cache_alloc(cache);
        passes(ENOUGH_PASSES);
        sy_cache_free(cache, again);
    }
    for (size_t i = 0; i < COUNT; i += SPARSE) must(sy_handle_free(cache, handles[i]));
    passes(ENOUGH_PASSES);
    assert_int_equal(stats_of(cache).slabs, 0);
    for (size_t i = 0; i < COUNT; i++) must(!sy_handle_get(cache, handles[i]));
    end(cache);
}

/* ---- during a pass ---- */

static void caches_come_and_go_in_the_midst_of_a_pass(void **state) {
    (void)state;
    enum { CACHES = 40 };
    sy_cache *caches[CACHES];
    for (unsigned at = 0; at < 60; at++) {
        for (int c = 0; c < CACHES; c++) {
            caches[c] = make(64, 0);
            take(caches[c], 64, 0, 300);
            give(caches[c], 0, 300);
        }
        begin_pass();
        take_turns(at);
        for (int c = 0; c < CACHES; c += 2) end(caches[c]);
        take_turns(at % 7);
        for (int c = 0; c < CACHES; c += 2) caches[c] = make(96, 0);
        end_pass();
        for (int c = 0; c < CACHES; c++) end(caches[c]);
    }
}

static sy_cache *doomed;

static void destruct_a_cache(void *object, void *arg) {
    destruct(object, arg);
    if (doomed) must(sy_cache_destroy(doomed) == 0);
    doomed = NULL;
}

static void a_destructor_may_destroy_another_cache(void **state) {
    (void)state;
    constructed = destructed = 0;
    sy_cache *cache = make_with(
        (sy_cache_config){.size = 96, .construct = construct, .destruct = destruct_a_cache});
    doomed = make(64, 0);
    take(doomed, 64, 0, 1000);
    give(doomed, 0, 1000);
    for (size_t i = 0; i < 5000; i++) objects[i] = sy_cache_alloc(cache);
    give(cache, 0, 5000);
    maintain(ENOUGH_PASSES);
    assert_null(doomed);
    end(cache);
    assert_int_equal(constructed, destructed);
}

static void live_on(void *arg) {
    sy_cache *cache = arg;
    must(!pass_at_work());
    must(!sy_maintenance_runs());
    sound(cache);
    passes(ENOUGH_PASSES);
    for (size_t i = 0; i < 10; i++) is_whole(64, i);
    must(stats_of(cache).in_depot == 0);
    give(cache, 0, 10);
    end(cache);
    sy_trim();
}

static void the_child_of_a_fork_goes_on(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    for (unsigned at = 0; at < 40; at++) {
        sy_cache *cache = make(64, 0);
        take(cache, 64, 0, COUNT);
        give(cache, 10, COUNT);
        begin_pass();
        take_turns(at);
        assert_int_equal(in_child(live_on, cache), 0);
        end_pass();
        give(cache, 0, 10);
        end(cache);
    }
}

static void block(void *object, void *arg) {
    (void)object;
    (void)arg;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

static int construct_nothing(void *object, void *arg) {
    (void)object;
    (void)arg;
    return 0;
}

static void *trim_until_blocked(void *cache) {
    sy_cache_trim(cache);
    return NULL;
}

static sy_cache *blocked;

/* In the child the slab that the other thread had set aside is out of use. The other slabs age. */
static void age_without_the_other(void *arg) {
    (void)arg;
    blocked->destruct = NULL;
    sy_cache *cache = blocked;
    maintain(ENOUGH_PASSES);
    must(stats_of(cache).discarded > 10 * 8192);
}

static void a_trim_that_the_child_lacks_does_not_stop_ageing_there(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    needs_small_pages();
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    blocked = make_with((sy_cache_config){
        .size = 8192, .construct = construct_nothing, .destruct = block, .flags = SY_CHECKED});
    size_t count = 20 * stats_of(blocked).slots_per_slab;
    take(blocked, 64, 0, count);
    for (size_t i = 0; i < count; i++)
        if (i % 8 == 7) sy_cache_free(blocked, objects[i]);
    assert_int_equal(pthread_create(&thread, NULL, trim_until_blocked, blocked), 0);
    pthread_barrier_wait(&barrier); /* the thread has set a slab aside */
    int status = in_child(age_without_the_other, NULL);
    blocked->destruct = NULL;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    sy_cache_destroy_all(blocked);
    assert_int_equal(status, 0);
}

/* ---- errno ---- */

/* Every discard fails, in all functions that can do a step of the pass. */
static void a_turn_leaves_errno_alone(void **state) {
    (void)state;
    needs_small_pages();
    sy_cache *cache = sparse(), *batch = make(64, 0);
    static void *some[5000];
    pass();
    sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    begin_pass();
    for (int i = 0; i < 100; i++) {
        errno = KEPT_ERRNO;
        assert_int_equal(sy_cache_alloc_batch(batch, some, 5000), 5000);
        assert_int_equal(errno, KEPT_ERRNO);
        sy_cache_free_batch(batch, some, 5000);
        sy_free(sy_malloc(200));
        sy_free(sy_malloc(200 << 10));
        take_turns(1);
        assert_int_equal(errno, KEPT_ERRNO);
    }
    assert_false(pass_at_work());
    assert_true(sy_fake_failures(SY_FAKE_DISCARD) > 0);
    sy_fake_succeed(SY_FAKE_DISCARD);
    for (size_t i = 0; i < COUNT; i += SPARSE) sy_cache_free(cache, objects[i]);
    end(cache);
    end(batch);
}

static void find_the_pass_untouched(void) {
    take_turns(2000);
    must(pass_at_work());
}

/* While there is a maintenance thread, no other thread does a step of a pass by age. */
static void passes_by_age_are_the_maintenance_threads(void **state) {
    (void)state;
    begin_pass();
    sy_fake_run_before(SY_FAKE_START_THREAD, find_the_pass_untouched);
    sy_fake_fail_nth(SY_FAKE_START_THREAD, 1);
    assert_int_equal(sy_maintenance_start(), -1);
    sy_fake_run_before(SY_FAKE_START_THREAD, NULL);
    sy_fake_succeed(SY_FAKE_START_THREAD);
    take_turns(2000); /* the thread could not be started */
    assert_false(pass_at_work());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(with_a_decay_of_0_nothing_goes),
        TEST(what_was_wanted_just_now_stays),
        TEST(all_that_was_freed_goes_back),
        TEST(each_layer_waits_for_its_own_second_pass),
        TEST(the_working_set_stays),
        TEST(a_drain_does_not_make_what_comes_after_it_old),
        TEST(this_threads_idle_slots_are_emptied),
        TEST(parked_threads_are_emptied),
        TEST(idle_slabs_lose_pages_that_are_not_in_use),
        TEST(pages_at_work_are_kept),
        TEST(idle_pages_go_though_their_slab_is_at_work),
        TEST(a_free_begins_a_new_interval),
        TEST(a_cache_at_work_keeps_an_empty_slab),
        TEST(what_was_reserved_stays),
        TEST(kept_spans_go_with_age),
        TEST(long_spans_go_in_parts),
        TEST(spans_alone_make_time_pass),
        TEST(a_programs_memory_goes_back_its_own_way),
        TEST(a_programs_memory_without_discard_stays),
        TEST(a_programs_memory_ages_once_a_pass),
        TEST(growth_takes_what_others_do_not_want),
        TEST(a_pass_by_age_follows_one_by_growth),
        TEST(growth_leaves_a_reserve_alone),
        TEST(only_slots_of_returned_pages_are_destructed),
        TEST(what_was_constructed_is_destructed_once),
        TEST(destructors_may_allocate_and_free),
        TEST(handles_stay_what_they_are),
        TEST(caches_come_and_go_in_the_midst_of_a_pass),
        TEST(a_destructor_may_destroy_another_cache),
        TEST(the_child_of_a_fork_goes_on),
        TEST(a_trim_that_the_child_lacks_does_not_stop_ageing_there),
        TEST(a_turn_leaves_errno_alone),
        TEST(passes_by_age_are_the_maintenance_threads),
    };
    return cmocka_run_group_tests_name("reclaim", tests, NULL, NULL);
}
