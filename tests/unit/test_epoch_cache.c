/*
 * test_epoch_cache.c: epochs with each kind of cache and memory, failing calls to the system, and
 * the counts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk/side.h"
#include "magazine/thread.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/epochs.h"

/* ---- all kinds of caches ---- */

static size_t constructed, destructed;

static int construct(void *object, void *arg) {
    (void)arg;
    memset(object, 0xc5, SIZE);
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    must(*(unsigned char *)object == 0xc5);
    destructed++;
}

static void constructors_and_destructors_are_paired(void **state) {
    (void)state;
    constructed = destructed = 0;
    sy_cache *cache = make((sy_cache_config){.construct = construct, .destruct = destruct});
    for (int round = 0; round < 4; round++) {
        sy_epoch *epoch = open_epoch("request");
        begin(epoch);
        for (size_t i = 0; i < COUNT; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
        finish(epoch);
        for (size_t i = 0; i < COUNT; i++) must(*(unsigned char *)objects[i] == 0xc5);
        assert_true(constructed - destructed >= COUNT);
        size_t late = round % 2 ? COUNT / 2 : 0;
        for (size_t i = late; i < COUNT; i++) sy_cache_free(cache, objects[i]);
        assert_int_equal(sy_epoch_close(epoch), late);
        for (size_t i = 0; i < late; i++) sy_cache_free(cache, objects[i]);
        sy_thread_flush();
        assert_int_equal(constructed, destructed);
    }
    assert_true(constructed >= 4 * COUNT);
    end(cache);
}

static void handles_are_stale_for_ever_in_epochs_too(void **state) {
    (void)state;
    static sy_handle handles[COUNT];
    sy_cache *cache = make((sy_cache_config){.flags = SY_HANDLES});
    sy_epoch *epoch = open_epoch("request");
    begin(epoch);
    for (size_t i = 0; i < COUNT; i++)
        must((objects[i] = sy_handle_alloc(cache, &handles[i])) != NULL);
    finish(epoch);
    assert_true(all_in(objects, COUNT, home(objects[0])));
    assert_ptr_equal(sy_view_of(home(objects[0]))->epoch, epoch);
    for (size_t i = 0; i < COUNT; i++) {
        must(sy_handle_get(cache, handles[i]) == objects[i]);
        if (i % 2) must(sy_handle_free(cache, handles[i]));
    }
    assert_int_equal(sy_epoch_close(epoch), COUNT / 2);
    for (size_t i = 0; i < COUNT; i += 2) must(sy_handle_free(cache, handles[i]));
    sy_thread_flush();
    assert_int_equal(slabs_of(cache), 0);
    for (size_t i = 0; i < COUNT; i++) {
        must(!sy_handle_get(cache, handles[i]) && !sy_handle_free(cache, handles[i]));
        must(sy_cache_alloc(cache) != NULL);
    }
    for (size_t i = 0; i < COUNT; i++) must(!sy_handle_get(cache, handles[i]));
    sy_cache_destroy_all(cache);
}

static void use_at_random(sy_cache *cache, size_t most) {
    sy_epoch *epochs[3] = {NULL, open_epoch("one"), open_epoch("two")};
    uint64_t random = most;
    size_t live = 0;
    memset(objects, 0, sizeof objects);
    for (int step = 0; step < 6000; step++) {
        size_t i = next_random(&random) % most, e = i % 3;
        if (objects[i]) {
            must(*(size_t *)objects[i] == i);
            sy_cache_free(cache, objects[i]);
            objects[i] = NULL, live--;
            continue;
        }
        begin(epochs[e]);
        must((objects[i] = sy_cache_alloc(cache)) != NULL);
        *(size_t *)objects[i] = i, live++;
        finish(epochs[e]);
        must(e ? sy_view_of(home(objects[i]))->epoch == epochs[e]
               : home(objects[i]) == &cache->bins);
    }
    sound(cache, live);
    for (size_t i = 0; i < most; i++)
        if (objects[i]) sy_cache_free(cache, objects[i]);
    assert_int_equal(sy_epoch_close(epochs[1]) + sy_epoch_close(epochs[2]), 0);
    end(cache);
    assert_int_equal(look(), 0);
}

static void all_flags_and_sizes_go_with_epochs(void **state) {
    (void)state;
    static const unsigned flags[] = {
        0, SY_CHECKED, SY_COLOUR, SY_LIMIT_EXACT, SY_HANDLES, SY_CHECKED | SY_HANDLES};
    static const size_t sizes[] = {8, 48, 1000, 40000, 131073, 1 << 20, 5 << 20};
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t most = sizes[s] > 2000 ? 12 : 600;
            use_at_random(make((sy_cache_config){.size = sizes[s],
                                                 .flags = flags[f],
                                                 .limit = flags[f] & SY_LIMIT_EXACT ? most : 0}),
                          most);
        }
}

static void spans_of_an_epoch_go_at_once(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 300000});
    sy_epoch *epoch = open_epoch("upload");
    take_in(epoch, cache, objects, 5);
    assert_int_equal(only().slabs, 5);
    assert_int_equal(only().objects, 5);
    assert_true(only().bytes >= 5 * 300000);
    sy_cache_free(cache, objects[0]), sy_cache_free(cache, objects[1]);
    assert_int_equal(slabs_of(cache), 3);
    assert_int_equal(sy_epoch_close(epoch), 3);
    assert_int_equal(slabs_of(cache), 3);
    for (int i = 2; i < 5; i++) sy_cache_free(cache, objects[i]);
    assert_int_equal(slabs_of(cache), 0);
    end(cache);
}

static void batches_come_from_the_epoch(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    must((others[0] = sy_cache_alloc(cache)) != NULL);
    begin(epoch);
    assert_int_equal(sy_cache_alloc_batch(cache, objects, COUNT), COUNT);
    finish(epoch);
    assert_int_equal(sy_cache_alloc_batch(cache, others + 1, COUNT - 1), COUNT - 1);
    assert_ptr_equal(sy_view_of(home(objects[0]))->epoch, epoch);
    assert_true(all_in(objects, COUNT, home(objects[0])));
    assert_true(all_in(others, COUNT, &cache->bins));
    sy_cache_free_batch(cache, objects, COUNT);
    sy_cache_free_batch(cache, others, COUNT);
    assert_int_equal(sy_epoch_close(epoch), 0);
    end(cache);
}

static void an_exact_limit_is_of_all_epochs_together(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.limit = 500, .flags = SY_LIMIT_EXACT});
    sy_epoch *epoch = open_epoch("request");
    for (int round = 0; round < 3; round++) {
        take(cache, objects, 200);
        take_in(epoch, cache, objects + 200, 300);
        for (int inside = 0; inside < 2; inside++) {
            begin(inside ? epoch : NULL);
            errno = 0;
            assert_null(sy_cache_alloc(cache));
            assert_int_equal(errno, ENOMEM);
            finish(inside ? epoch : NULL);
        }
        sy_cache_free_batch(cache, objects, 500);
        sound(cache, 0);
    }
    sy_epoch_close(epoch);
    end(cache);
}

enum { LIMIT = 1000, HOLDERS = 6, HELD = 62 };

typedef struct holder {
    job *of;
    pthread_t thread;
    void **from;
} holder;

static void *take_limit(void *arg) {
    const job *it = arg;
    size_t got = 0;
    while ((objects[got] = sy_cache_alloc(it->cache)) != NULL) got++;
    must(got == LIMIT);
    return NULL;
}

static void *free_and_hold(void *arg) {
    holder *me = arg;
    for (int i = 0; i < HELD; i++) sy_cache_free(me->of->cache, me->from[i]);
    pthread_barrier_wait(&me->of->barrier);
    pthread_barrier_wait(&me->of->barrier);
    return NULL;
}

/* cache.h: up to an eighth of a limit can wait in the magazines of other threads. */
static void outboxes_keep_within_the_share_of_a_limit(void **state) {
    (void)state;
    job it = {.cache = make((sy_cache_config){.limit = LIMIT})};
    holder holders[HOLDERS];
    pthread_barrier_init(&it.barrier, NULL, HOLDERS + 1);
    in_thread(take_limit, &it);
    for (int i = 0; i < HOLDERS; i++) {
        holders[i] = (holder){.of = &it, .from = objects + i * HELD};
        must(pthread_create(&holders[i].thread, NULL, free_and_hold, &holders[i]) == 0);
    }
    pthread_barrier_wait(&it.barrier);
    size_t waiting = stats_of(it.cache).in_loaded, live = LIMIT - HOLDERS * HELD, got = 0;
    while ((objects[got] = sy_cache_alloc(it.cache)) != NULL) got++;
    assert_true(waiting <= LIMIT / 8);
    assert_true(live + got >= LIMIT - LIMIT / 8);
    pthread_barrier_wait(&it.barrier);
    for (int i = 0; i < HOLDERS; i++) pthread_join(holders[i].thread, NULL);
    pthread_barrier_destroy(&it.barrier);
    sy_cache_destroy_all(it.cache);
}

/* The objects that a thread reserved outside of an epoch are not used in the epoch. */
static void a_threads_reserve_is_put_back(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    assert_int_equal(sy_thread_reserve(cache, 64), 0);
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, 40);
    assert_int_equal(only().objects, 40);
    give(cache, objects, 40);
    assert_int_equal(sy_epoch_close(epoch), 0);
    end(cache);
}

/* Only the epoch uses its free slots. They do not count for a reserve outside. */
static void a_reserve_does_not_count_slots_of_epochs(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 5000}); /* large enough to need chunks */
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, others, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 100) sy_cache_free(cache, others[i]);
    sy_thread_flush();
    sy_trim(); /* returns the memory of earlier tests */
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    take(cache, objects, COUNT);
    assert_int_equal(sy_fake_failures(SY_FAKE_ANY), 0);
    sy_fake_reset();
    give(cache, objects, COUNT);
    for (size_t i = 0; i < COUNT; i += 100) sy_cache_free(cache, others[i]);
    sy_epoch_close(epoch);
    end(cache);
}

/* ---- memory of the program's own ---- */

static struct {
    sy_cache *cache;
    sy_epoch *epoch;
    void *last;
    unsigned calls;
} in_discard;

/* While a page of the slab goes back to the system, the slab's last object is freed and the epoch
 * is closed. */
static int close_within(void *arg, void *start, size_t bytes) {
    (void)arg, (void)start, (void)bytes;
    in_discard.calls++;
    if (!in_discard.last) return 0;
    sy_cache_free(in_discard.cache, in_discard.last);
    in_discard.last = NULL;
    sy_epoch_close(in_discard.epoch);
    return 0;
}

static void what_empties_during_a_trim_goes_too(void **state) {
    (void)state;
    enum { BYTES = 16 << 20 };
    void *region = sy_os_reserve(BYTES, SY_CHUNK_BYTES, "region");
    must(region && sy_os_commit(region, BYTES) == 0);
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.start = region, .bytes = BYTES, .discard = close_within});
    sy_cache *cache = make((sy_cache_config){.size = 1000, .memory = memory});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, 60);
    for (int i = 1; i < 60; i++) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    in_discard.cache = cache, in_discard.epoch = epoch, in_discard.last = objects[0];
    sy_cache_trim(cache);
    assert_true(in_discard.calls > 0 && !in_discard.last);
    assert_int_equal(slabs_of(cache), 0);
    assert_int_equal(look(), 0);
    end(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
    sy_os_release(region, BYTES);
}

/* This memory cannot go back to the system, but other caches may use it. */
static void own_memory_without_discard_comes_back_to_its_caches(void **state) {
    (void)state;
    enum { BYTES = 8 << 20 };
    void *region = sy_os_reserve(BYTES, SY_CHUNK_BYTES, "region");
    must(region && sy_os_commit(region, BYTES) == 0);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    sy_cache *cache = make((sy_cache_config){.size = 1000, .memory = memory});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, COUNT);
    for (size_t i = 0; i < COUNT; i++) must((char *)objects[i] >= (char *)region);
    give(cache, objects, COUNT);
    sy_cache_trim(cache);
    assert_int_equal(slabs_of(cache), 0);
    take_in(epoch, cache, objects, COUNT);
    give(cache, objects, COUNT);
    assert_int_equal(sy_epoch_close(epoch), 0);
    assert_int_equal(slabs_of(cache), 0);
    end(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
    sy_os_release(region, BYTES);
}

/* ---- failures ---- */

static void take_what_can_be_had(sy_cache *cache, sy_epoch *epoch) {
    for (size_t i = 0; i < COUNT; i++) {
        errno = 0;
        objects[i] = sy_cache_alloc(cache);
        must(objects[i] || errno == ENOMEM);
        if (!objects[i]) continue;
        must(sy_view_of(home(objects[i]))->epoch == epoch);
        memset(objects[i], (int)(i % 251), SIZE);
    }
}

/* Whichever call failed, the structures are valid, and all memory is returned in the end. */
static void live_through(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = SIZE, .flags = SY_EPOCHS});
    sy_epoch *epoch = sy_epoch_create("request");
    must((cache && epoch) || errno == ENOMEM);
    if (epoch) begin(epoch);
    if (cache && epoch) take_what_can_be_had(cache, epoch);
    size_t live = 0;
    for (size_t i = 0; cache && epoch && i < COUNT; i++) {
        live += objects[i] != NULL;
        for (int at = 0; objects[i] && at < SIZE; at++)
            must(((unsigned char *)objects[i])[at] == i % 251);
        if (i % 3) continue;
        live -= objects[i] != NULL;
        sy_cache_free(cache, objects[i]);
        objects[i] = NULL;
    }
    if (epoch) finish(epoch);
    if (cache) sound(cache, live);
    must(sy_epoch_close(epoch) == live);
    if (cache && epoch) sy_cache_free_batch(cache, objects, COUNT);
    sy_fake_reset();
    sy_trim();
    must(look() == 0);
    if (cache) must(slabs_of(cache) == 0);
    if (cache) end(cache);
}

static void with_nth_failing(void *arg) {
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    live_through();
}

static void with_all_from_nth_failing(void *arg) {
    sy_fake_fail_from(SY_FAKE_ANY, *(uint64_t *)arg);
    live_through();
}

/* In new processes, so that the calls of each first use fail too. */
static void nothing_is_lost_when_the_system_fails(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 40; n++) {
        assert_int_equal(in_child(with_nth_failing, &n), 0);
        assert_int_equal(in_child(with_all_from_nth_failing, &n), 0);
    }
}

/* The system gives nothing. In the end there is no memory for an epoch or its part in a cache. */
static void exhaust(void *arg) {
    static sy_epoch *epochs[100000];
    size_t count = 0;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    void *object = sy_cache_alloc(cache);
    (void)arg;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 0;
    while (count < 100000 && (epochs[count] = sy_epoch_create("many")) != NULL) count++;
    must(count > 10 && count < 100000 && errno == ENOMEM);
    for (size_t i = 0; i < count; i++) must(sy_epoch_close(epochs[i]) == 0);
    sy_fake_reset();
    must(look() == 0 && *(char *)object == 0);
    sy_cache_free(cache, object);
    end(cache);
}

static void an_epoch_that_cannot_be_had_is_no_epoch(void **state) {
    (void)state;
    assert_int_equal(in_child(exhaust, NULL), 0);
}

/* Without magazines each operation uses the slabs directly. They must be those of the epoch. */
static void without_magazines(void *arg) {
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    (void)arg;
    sy_fake_fail_from(SY_FAKE_AT_THREAD_EXIT, 1);
    take_in(epoch, cache, objects, COUNT);
    must(sy_thread_running() == NULL);
    must(sy_view_of(home(objects[0]))->epoch == epoch && all_in(objects, COUNT, home(objects[0])));
    take(cache, others, 100);
    must(all_in(others, 100, &cache->bins));
    must(sy_epoch_close(epoch) == COUNT);
    give(cache, objects, COUNT), give(cache, others, 100);
    must(look() == 0);
    end(cache);
}

static void threads_without_magazines_have_epochs(void **state) {
    (void)state;
    assert_int_equal(in_child(without_magazines, NULL), 0);
}

/* ---- counts ---- */

static void slabs_of_epochs_are_counted(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    for (int round = 0; round < 2; round++) {
        take_in(epoch, cache, objects, COUNT);
        sy_cache_stats full = stats_of(cache);
        assert_true(full.full >= COUNT / full.slots_per_slab - 1);
        give(cache, objects, COUNT);
        sy_thread_flush();
    }
    sy_cache_stats stats = stats_of(cache);
    size_t slabs = COUNT / stats.slots_per_slab;
    assert_true(stats.slabs_made >= 2 * slabs - 1 && stats.slabs_filled >= 2 * slabs - 2);
    assert_true(stats.slabs_opened >= 2 * slabs - 2);
    assert_true(stats.slabs_reused >= 1);
    assert_int_equal(stats.empty, 0);
    sy_epoch_close(epoch);
    end(cache);
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

static int refuse_construction(void *object, void *arg) {
    (void)object;
    (void)arg;
    return -1;
}

static void a_slab_whose_objects_cannot_be_constructed_goes(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.construct = refuse_construction});
    sy_epoch *epoch = open_epoch("request");
    begin(epoch);
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(slabs_of(cache), 0);
    finish(epoch);
    assert_int_equal(sy_epoch_close(epoch), 0);
    end(cache);
}

static void views_give_their_memory_back(void **state) {
    (void)state;
    enum { EPOCHS = 3000 };
    size_t before = 0;
    sy_cache *cache = make((sy_cache_config){.size = SIZE});
    for (int i = 0; i < EPOCHS; i++) {
        sy_epoch *epoch = open_epoch("request");
        take_in(epoch, cache, objects, 1);
        give(cache, objects, 1);
        assert_int_equal(sy_epoch_close(epoch), 0);
        if (i == 0) before = sy_side_bytes();
    }
    assert_int_equal(sy_side_bytes(), before);
    end(cache);
}

/* A thread that leaves epochs with most of a magazine unused refills fewer items from then on. */
static void what_is_mostly_put_back_is_taken_in_smaller_parts(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    const sy_slot *slot = sy_thread_slot(sy_thread_self(), cache->client.number);
    sy_epoch *epoch = open_epoch("request");
    begin(epoch);
    size_t count = 0;
    take(cache, objects, count = 1000);
    while ((size_t)(slot->top - slot->base) * 2 < slot->capacity) take(cache, &objects[count++], 1);
    unsigned before = slot->capacity;
    assert_true(before >= 32);
    finish(epoch);
    assert_int_equal(slot->capacity, before - before / 2);
    for (size_t i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
    sy_epoch_close(epoch);
    sy_thread_flush();
    end(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* In children of a process that has not used the library yet. */
        TEST(nothing_is_lost_when_the_system_fails),
        TEST(an_epoch_that_cannot_be_had_is_no_epoch),
        TEST(threads_without_magazines_have_epochs),
        TEST(constructors_and_destructors_are_paired),
        TEST(handles_are_stale_for_ever_in_epochs_too),
        TEST(all_flags_and_sizes_go_with_epochs),
        TEST(spans_of_an_epoch_go_at_once),
        TEST(batches_come_from_the_epoch),
        TEST(an_exact_limit_is_of_all_epochs_together),
        TEST(outboxes_keep_within_the_share_of_a_limit),
        TEST(a_threads_reserve_is_put_back),
        TEST(a_reserve_does_not_count_slots_of_epochs),
        TEST(what_empties_during_a_trim_goes_too),
        TEST(own_memory_without_discard_comes_back_to_its_caches),
        TEST(slabs_of_epochs_are_counted),
        TEST(a_slab_whose_objects_cannot_be_constructed_goes),
        TEST(views_give_their_memory_back),
        TEST(what_is_mostly_put_back_is_taken_in_smaller_parts),
    };
    return cmocka_run_group_tests_name("epochs of caches", tests, NULL, NULL);
}
