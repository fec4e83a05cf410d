/*
 * test_epoch.c: what epoch.h promises: in which slabs the objects of an epoch lie, when these slabs
 * are returned, what each thread may do at which time, and what is reported.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "magazine/thread.h"
#include "os/fake.h"
#include "os/os.h"
#include "reclaim/reclaim.h"
#include "support/epochs.h"
#include "support/page_size.h"
#include "support/services.h"

/* ---- the slabs of epochs ---- */

static void objects_of_an_epoch_lie_in_slabs_of_their_own(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epochs[3] = {NULL, open_epoch("a"), open_epoch("b")};
    const sy_bins *bins[3];
    void *of[3];
    for (int round = 0; round < 300; round++)
        for (int e = 0; e < 3; e++) {
            begin(epochs[e]);
            void *object = of[e] = sy_cache_alloc(cache);
            if (round == 0) bins[e] = home(object);
            assert_ptr_equal(home(object), bins[e]);
            objects[round * 3 + e] = object;
            finish(epochs[e]);
        }
    assert_ptr_equal(bins[0], &cache->bins);
    assert_true(bins[1] != bins[0] && bins[2] != bins[0] && bins[1] != bins[2]);
    assert_ptr_equal(sy_view_of(bins[1])->epoch, epochs[1]);
    assert_ptr_equal(sy_view_of(bins[2])->epoch, epochs[2]);
    sound(cache, 900);
    for (int i = 0; i < 900; i++) sy_cache_free(cache, objects[i]);
    assert_int_equal(sy_epoch_close(epochs[1]), 0);
    assert_int_equal(sy_epoch_close(epochs[2]), 0);
    assert_int_equal(look(), 0);
    end(cache);
}

static void the_innermost_epoch_counts(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *outer = open_epoch("outer"), *inner = open_epoch("inner");
    void *a, *b, *none, *again, *last, *outside;
    assert_null(sy_epoch_current());
    begin(outer);
    a = sy_cache_alloc(cache);
    begin(inner);
    b = sy_cache_alloc(cache);
    begin(NULL);
    none = sy_cache_alloc(cache);
    begin(outer);
    again = sy_cache_alloc(cache);
    finish(outer), finish(NULL);
    assert_ptr_equal(sy_epoch_current(), inner);
    finish(inner);
    assert_ptr_equal(sy_epoch_current(), outer);
    last = sy_cache_alloc(cache);
    finish(outer);
    outside = sy_cache_alloc(cache);
    assert_ptr_equal(home(a), home(again));
    assert_ptr_equal(home(a), home(last));
    assert_ptr_not_equal(home(a), home(b));
    assert_ptr_equal(home(none), &cache->bins);
    assert_ptr_equal(home(outside), &cache->bins);
    void *all[] = {a, b, none, again, last, outside};
    sy_cache_free_batch(cache, all, 6);
    assert_int_equal(sy_epoch_close(outer) + sy_epoch_close(inner), 0);
    end(cache);
}

static void a_thread_is_in_so_many_at_most(void **state) {
    (void)state;
    sy_epoch *epoch = open_epoch("deep");
    for (int i = 0; i < SY_EPOCH_DEPTH_MAX; i++) begin(i % 3 ? epoch : NULL);
    for (int i = 0; i < 2; i++) {
        errno = 0;
        assert_int_equal(sy_epoch_begin(i ? epoch : NULL), -1);
        assert_int_equal(errno, EAGAIN);
    }
    assert_int_equal(only().threads, 21);
    for (int i = SY_EPOCH_DEPTH_MAX; i-- > 0;) finish(i % 3 ? epoch : NULL);
    assert_null(sy_epoch_current());
    assert_int_equal(only().threads, 0);
    sy_epoch_close(epoch);
}

static void expect_no_end(sy_epoch *epoch) {
    const sy_epoch *before = sy_epoch_current();
    errno = 0;
    assert_int_equal(sy_epoch_end(epoch), -1);
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(sy_epoch_current(), before);
}

static void only_the_innermost_ends(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *outer = open_epoch("outer"), *inner = open_epoch("inner");
    expect_no_end(outer), expect_no_end(NULL);
    begin(outer), begin(inner);
    void *first = sy_cache_alloc(cache);
    expect_no_end(outer), expect_no_end(NULL);
    void *second = sy_cache_alloc(cache);
    assert_ptr_equal(home(first), home(second));
    finish(inner);
    expect_no_end(inner);
    finish(outer);
    expect_no_end(outer);
    sy_cache_free(cache, first), sy_cache_free(cache, second);
    sy_epoch_close(outer), sy_epoch_close(inner);
    end(cache);
}

/* While a thread is in an epoch, the epoch can be asked for its statistics. */
static void nobody_begins_what_is_closed(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("closed");
    begin(epoch);
    void *before = sy_cache_alloc(cache);
    assert_int_equal(sy_epoch_close(epoch), 1);
    errno = 0;
    assert_int_equal(sy_epoch_begin(epoch), -1);
    assert_int_equal(errno, EINVAL);
    void *after = sy_cache_alloc(cache); /* a thread in the epoch may go on */
    assert_ptr_equal(home(after), home(before));
    sy_epoch_stats stats = only();
    assert_true(stats.closed_ns > 0 && stats.threads == 1 && stats.objects >= 2);
    sy_cache_free(cache, before), sy_cache_free(cache, after);
    finish(epoch);
    sy_thread_flush();
    assert_int_equal(look(), 0);
    assert_int_equal(slabs_of(cache), 0);
    end(cache);
}

static void plain_caches_have_no_part_in_it(void **state) {
    (void)state;
    sy_cache *plain = sy_cache_create(&(sy_cache_config){.size = SIZE});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, plain, objects, COUNT);
    assert_true(all_in(objects, COUNT, &plain->bins));
    void *sized = sy_malloc(SIZE);
    assert_int_equal(only().slabs, 0);
    sy_free(sized);
    assert_int_equal(sy_epoch_close(epoch), 0);
    assert_int_equal(look(), 0);
    give(plain, objects, COUNT);
    end(plain);
}

static void names_are_copied_and_cut(void **state) {
    (void)state;
    char name[100], cut[SY_EPOCH_NAME_MAX + 1] = {0};
    memset(name, 'x', sizeof name);
    name[99] = 0;
    sy_epoch *epochs[3] = {open_epoch(NULL), open_epoch(name), open_epoch("")};
    memset(cut, 'x', SY_EPOCH_NAME_MAX);
    memset(name, 'y', 99);
    assert_int_equal(look(), 3);
    assert_string_equal(shown[0].name, "epoch");
    assert_string_equal(shown[1].name, cut);
    assert_string_equal(shown[2].name, "");
    for (int i = 0; i < 3; i++) sy_epoch_close(epochs[i]);
    assert_int_equal(sy_epoch_close(NULL), 0);
}

/* ---- how memory is returned ---- */

static void a_close_gives_up_what_is_empty_and_counts_what_is_live(void **state) {
    (void)state;
    for (size_t kept = 0; kept < 500; kept = kept * 3 + 1) {
        sy_cache *cache = make((sy_cache_config){.name = "order"});
        sy_epoch *epoch = open_epoch("request");
        take_in(epoch, cache, objects, COUNT);
        size_t slots = stats_of(cache).slots_per_slab;
        assert_true(slabs_of(cache) >= COUNT / slots);
        for (size_t i = kept; i < COUNT; i++) sy_cache_free(cache, objects[i]);
        errno = KEPT_ERRNO;
        assert_int_equal(sy_epoch_close(epoch), kept);
        assert_int_equal(errno, KEPT_ERRNO);
        assert_true(slabs_of(cache) <= (kept + slots - 1) / slots + (kept > 0));
        assert_int_equal(look(), kept > 0);
        if (kept) assert_int_equal(shown[0].objects, kept);
        sound(cache, kept);
        give(cache, objects, kept);
        sy_thread_flush();
        assert_int_equal(slabs_of(cache), 0);
        assert_int_equal(look(), 0);
        end(cache);
    }
}

static void what_is_freed_after_the_close_waits_no_more(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order", .flags = SY_QUARANTINE});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, COUNT);
    give(cache, objects, COUNT - 1);
    assert_true(stats_of(cache).in_quarantine > 0);
    assert_int_equal(sy_epoch_close(epoch), 1);
    assert_int_equal(stats_of(cache).in_quarantine, 0);
    sy_cache_free(cache, objects[COUNT - 1]);
    assert_int_equal(stats_of(cache).in_quarantine, 0);
    sy_thread_flush();
    assert_int_equal(slabs_of(cache), 0);
    end(cache);
}

/* Returned slabs are used by all: a second phase takes no more memory from the system. */
static void what_comes_back_is_used_for_anything_else(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"}), *other = make((sy_cache_config){0});
    sy_stats first, last;
    for (int round = 0; round < 50; round++) {
        sy_cache *in = round % 2 ? cache : other;
        sy_epoch *epoch = open_epoch("request");
        take_in(epoch, in, objects, COUNT);
        give(in, objects, COUNT);
        assert_int_equal(sy_epoch_close(epoch), 0);
        assert_int_equal(slabs_of(in), 0);
        sy_get_stats(round == 1 ? &first : &last);
    }
    assert_int_equal(last.mapped, first.mapped);
    end(cache), end(other);
}

static void slabs_of_a_closed_epoch_go_one_by_one(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, COUNT);
    assert_int_equal(sy_epoch_close(epoch), COUNT);
    size_t left = COUNT, before = slabs_of(cache);
    while (left > 0) { /* slab by slab */
        const sy_slab *slab = sy_slab_at((uintptr_t)objects[0]);
        size_t kept = 0;
        for (size_t i = 0; i < left; i++)
            if (sy_slab_at((uintptr_t)objects[i]) == slab)
                sy_cache_free(cache, objects[i]);
            else
                objects[kept++] = objects[i];
        sy_thread_flush();
        left = kept;
        assert_int_equal(slabs_of(cache), --before);
        assert_int_equal(look(), left > 0);
        if (left) assert_int_equal(shown[0].slabs, before);
    }
    end(cache);
}

static void an_open_epoch_keeps_no_empty_slab(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    for (int round = 0; round < 3; round++) {
        take_in(epoch, cache, objects, COUNT);
        give(cache, objects, COUNT);
        sy_thread_flush();
        assert_int_equal(slabs_of(cache), 0);
        assert_int_equal(only().slabs, 0);
    }
    take_in(epoch, cache, objects, 1);
    sy_cache_free(cache, objects[0]);
    assert_int_equal(sy_trim() > 0, 1);
    assert_int_equal(slabs_of(cache), 0);
    sy_epoch_close(epoch);
    end(cache);
}

static void what_is_freed_is_not_given_out_before_it_is_back(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    begin(epoch);
    void *freed = sy_cache_alloc(cache);
    errno = KEPT_ERRNO;
    sy_cache_free(cache, freed);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_false(sy_cache_try_free(cache, freed));
    size_t items = stats_of(cache).magazine_items;
    for (size_t i = 0; i + 1 < items; i++) {
        must((objects[i] = sy_cache_alloc(cache)) != freed);
        sy_cache_free(cache, objects[i]);
    }
    assert_int_equal(sy_cache_in_use(cache), 0);
    sy_thread_flush();
    assert_ptr_equal(sy_cache_alloc(cache), freed); /* the lowest free slot of the slab */
    sy_cache_free(cache, freed);
    finish(epoch);
    assert_int_equal(sy_epoch_close(epoch), 0);
    end(cache);
}

static void trims_punch_holes_into_slabs_of_epochs(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make((sy_cache_config){.name = "order", .size = 1024});
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, cache, objects, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 16) sy_cache_free(cache, objects[i]);
    assert_true(sy_cache_trim(cache) > COUNT * 1024 / 2);
    assert_true(stats_of(cache).discarded > 0);
    sound(cache, (COUNT + 15) / 16);
    for (size_t i = 0; i < COUNT; i += 16) must(*(unsigned char *)objects[i] == i % 251);
    take_in(epoch, cache, others, COUNT / 2);
    assert_true(all_in(others, COUNT / 2, home(objects[0])));
    for (size_t i = 0; i < COUNT; i += 16) sy_cache_free(cache, objects[i]);
    give(cache, others, COUNT / 2);
    assert_int_equal(sy_epoch_close(epoch), 0);
    assert_int_equal(slabs_of(cache), 0);
    end(cache);
}

/* Two passes: the first notes the free pages, the second returns those that were not used since. */
static void what_an_epoch_does_not_use_goes_by_age(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make((sy_cache_config){.name = "order", .size = 1024});
    sy_epoch *epoch = open_epoch("request");
    sy_fake_set_clock(sy_os_now());
    take_in(epoch, cache, objects, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 64) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    for (int pass = 0; pass < 3; pass++) {
        sy_fake_advance_clock(UINT64_C(2000000000));
        sy_reclaim_by_age();
    }
    assert_true(stats_of(cache).discarded > COUNT * 1024 / 2);
    for (size_t i = 0; i < COUNT; i += 64) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    assert_int_equal(slabs_of(cache), 0);
    sy_epoch_close(epoch);
    end(cache);
}

/* ---- threads ---- */

static void *give_all(void *arg) {
    job *it = arg;
    give(it->cache, objects, COUNT);
    return NULL;
}

static void *give_all_and_flush(void *arg) {
    give_all(arg);
    sy_thread_flush();
    return NULL;
}

static void other_threads_free_before_and_after_the_close(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    job it = {.cache = make((sy_cache_config){.name = "order"})};
    for (int late = 0; late < 2; late++) {
        sy_epoch *epoch = open_epoch("request");
        take_in(epoch, it.cache, objects, COUNT);
        if (late) assert_int_equal(sy_epoch_close(epoch), COUNT);
        in_thread(late ? give_all_and_flush : give_all, &it);
        /* The close returns the objects in the outbox of the ended thread. */
        if (!late) assert_int_equal(sy_epoch_close(epoch), 0);
        assert_int_equal(slabs_of(it.cache), 0);
        assert_int_equal(look(), 0);
        sound(it.cache, 0);
    }
    end(it.cache);
}

/* The objects that a thread frees before it ends go back in the next trim or pass by age. */
static void what_ended_threads_freed_late_goes_by_age(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    job it = {.cache = make((sy_cache_config){.name = "order"})};
    sy_epoch *epoch = open_epoch("request");
    take_in(epoch, it.cache, objects, COUNT);
    assert_int_equal(sy_epoch_close(epoch), COUNT);
    sy_fake_set_clock(sy_os_now());
    in_thread(give_all, &it);
    for (int pass = 0; pass < 3; pass++) {
        sy_fake_advance_clock(UINT64_C(2000000000));
        sy_reclaim_by_age();
    }
    assert_int_equal(slabs_of(it.cache), 0);
    assert_int_equal(look(), 0);
    end(it.cache);
}

static void *be_in_it(void *arg) {
    job *it = arg;
    begin(it->epoch);
    take(it->cache, others, 10);
    pthread_barrier_wait(&it->barrier); /* the epoch is closed */
    pthread_barrier_wait(&it->barrier);
    must(home(sy_cache_alloc(it->cache)) == home(others[0]));
    must(sy_epoch_current() == it->epoch && sy_epoch_begin(it->epoch) == -1);
    finish(it->epoch);
    pthread_barrier_wait(&it->barrier);
    return NULL;
}

/* A thread keeps the items in its magazine until it takes a slow path. */
static void threads_that_are_in_it_may_finish(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    pthread_t thread;
    job it = {.cache = make((sy_cache_config){.name = "order"}), .epoch = open_epoch("shared")};
    pthread_barrier_init(&it.barrier, NULL, 2);
    must(pthread_create(&thread, NULL, be_in_it, &it) == 0);
    pthread_barrier_wait(&it.barrier);
    take_in(it.epoch, it.cache, objects, 10);
    assert_ptr_equal(home(objects[0]), home(others[0]));
    assert_true(sy_epoch_close(it.epoch) >= 20);
    assert_int_equal(only().threads, 1);
    pthread_barrier_wait(&it.barrier);
    pthread_barrier_wait(&it.barrier);
    pthread_join(thread, NULL);
    assert_int_equal(only().threads, 0);
    assert_int_equal(sy_cache_in_use(it.cache), 21);
    sy_cache_destroy_all(it.cache);
    assert_int_equal(look(), 0);
    pthread_barrier_destroy(&it.barrier);
}

static void *never_end_it(void *arg) {
    job *it = arg;
    begin(it->epoch);
    take(it->cache, objects, 5);
    return NULL;
}

static void a_thread_that_ends_inside_is_missed(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    job it = {.cache = make((sy_cache_config){.name = "order"}), .epoch = open_epoch("left")};
    in_thread(never_end_it, &it);
    assert_int_equal(sy_epoch_close(it.epoch), 5);
    give(it.cache, objects, 5);
    sy_thread_flush();
    assert_int_equal(slabs_of(it.cache), 0);
    assert_int_equal(only().threads, 1);
    assert_int_equal(sy_epoch_report_stuck(UINT64_MAX), 0);
    end(it.cache);
}

/* Items in the magazine of a parked thread go back like those of a running thread. */
static void idle_threads_change_epochs_as_others_do(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *one = open_epoch("one"), *two = open_epoch("two");
    begin(one);
    void *first = sy_cache_alloc(cache);
    sy_thread_idle();
    void *same = sy_cache_alloc(cache); /* the thread is still in the epoch */
    assert_ptr_equal(home(same), home(first));
    sy_thread_idle();
    finish(one);
    begin(two);
    void *second = sy_cache_alloc(cache);
    assert_ptr_equal(sy_view_of(home(second))->epoch, two);
    sy_thread_idle();
    finish(two);
    void *outside = sy_cache_alloc(cache);
    assert_ptr_equal(home(outside), &cache->bins);
    void *all[] = {first, same, second, outside};
    sy_cache_free_batch(cache, all, 4);
    assert_int_equal(sy_epoch_close(one) + sy_epoch_close(two), 0);
    end(cache);
}

static void a_flush_within_changes_nothing(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_epoch *epoch = open_epoch("request");
    begin(epoch);
    for (size_t i = 0; i < 1000; i++) {
        take(cache, objects + i, 1);
        if (i % 10 == 0) sy_thread_flush();
        if (i % 50 == 0) sy_cache_trim(cache);
        assert_ptr_equal(sy_view_of(home(objects[i]))->epoch, epoch);
    }
    finish(epoch);
    sy_cache_free_batch(cache, objects, 1000);
    assert_int_equal(sy_epoch_close(epoch), 0);
    end(cache);
}

/* ---- many caches ---- */

enum { CACHES = SY_ONE_WAY_NOTED * 2 + 3 };

static void use_caches(unsigned count) {
    static sy_cache *caches[CACHES];
    static void *of[2][CACHES];
    sy_epoch *epochs[2] = {open_epoch("one"), open_epoch("two")};
    for (unsigned c = 0; c < count; c++) caches[c] = make((sy_cache_config){.size = 64});
    for (int round = 0; round < 4; round++) {
        for (int e = 0; e < 2; e++) {
            begin(epochs[e]);
            for (unsigned c = 0; c < count; c++) of[e][c] = sy_cache_alloc(caches[c]);
            finish(epochs[e]);
        }
        for (unsigned c = 0; c < count; c++) {
            must(sy_view_of(home(of[0][c]))->epoch == epochs[0]);
            must(sy_view_of(home(of[1][c]))->epoch == epochs[1]);
            void *outside = sy_cache_alloc(caches[c]);
            must(home(outside) == &caches[c]->bins);
            sy_cache_free(caches[c], outside);
            for (int e = 0; e < 2; e++) sy_cache_free(caches[c], of[e][c]);
        }
    }
    for (int e = 0; e < 2; e++) assert_int_equal(sy_epoch_close(epochs[e]), 0);
    for (unsigned c = 0; c < count; c++) end(caches[c]);
    assert_int_equal(look(), 0);
}

static void any_number_of_caches_may_be_in_an_epoch(void **state) {
    (void)state;
    for (unsigned count = 1; count <= CACHES; count++) use_caches(count);
}

static void caches_are_destroyed_before_their_epochs(void **state) {
    (void)state;
    sy_epoch *epoch = open_epoch("long");
    for (int round = 0; round < 200; round++) { /* the caches often have the same address */
        sy_cache *cache = make((sy_cache_config){.name = "order"});
        take_in(epoch, cache, objects, 700);
        assert_true(all_in(objects, 700, home(objects[0])));
        assert_ptr_equal(sy_view_of(home(objects[0]))->epoch, epoch);
        assert_true(only().objects >= 700);
        if (round % 2) {
            errno = 0;
            assert_int_equal(sy_cache_destroy(cache), -1);
            assert_int_equal(errno, EBUSY);
            sy_cache_destroy_all(cache);
        } else {
            give(cache, objects, 700);
            end(cache);
        }
        assert_int_equal(only().slabs + only().objects, 0);
    }
    assert_int_equal(sy_epoch_close(epoch), 0);
    assert_int_equal(look(), 0);
}

static void *close_it(void *arg) {
    job *it = arg;
    pthread_barrier_wait(&it->barrier);
    sy_epoch_close(it->epoch);
    return NULL;
}

static void caches_are_destroyed_while_epochs_are_closed(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        pthread_t thread;
        job it = {.cache = make((sy_cache_config){.name = "order"}), .epoch = open_epoch("short")};
        pthread_barrier_init(&it.barrier, NULL, 2);
        take_in(it.epoch, it.cache, objects, 400);
        if (round % 2) give(it.cache, objects, 400);
        must(pthread_create(&thread, NULL, close_it, &it) == 0);
        pthread_barrier_wait(&it.barrier);
        sy_cache_destroy_all(it.cache);
        pthread_join(thread, NULL);
        pthread_barrier_destroy(&it.barrier);
        assert_int_equal(look(), 0);
    }
}

/* ---- sy_epoch_each ---- */

static void epochs_are_shown_in_order_of_creation(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.name = "order"});
    sy_fake_set_clock(1000000000);
    sy_epoch *epochs[5];
    char name[] = "epoch 0";
    for (int i = 0; i < 5; i++, name[6]++) {
        epochs[i] = open_epoch(name);
        take_in(epochs[i], cache, objects + i * 10, (size_t)i);
        sy_fake_advance_clock(1000);
    }
    assert_int_equal(sy_epoch_close(epochs[3]), 3);
    sy_epoch_close(epochs[0]);
    sy_fake_advance_clock(500);
    assert_int_equal(look(), 4);
    for (int i = 0; i < 4; i++) {
        char expected[] = "epoch 1";
        expected[6] += (char)i;
        assert_string_equal(shown[i].name, expected);
        assert_int_equal(shown[i].number, shown[0].number + (uint64_t)i);
        assert_int_equal(shown[i].age_ns, (4 - i) * 1000 + 500);
        assert_int_equal(shown[i].closed_ns, i == 2 ? 500 : 0);
        assert_int_equal(shown[i].objects, i + 1);
        assert_int_equal(shown[i].slabs, 1);
        assert_int_equal(shown[i].bytes, stats_of(cache).slab_bytes);
        assert_int_equal(shown[i].threads, 0);
    }
    size_t stop_at = 2;
    shown_count = 0;
    assert_int_equal(sy_epoch_each(note, &stop_at), 4711);
    assert_int_equal(shown_count, 2);
    sy_cache_destroy_all(cache);
    for (int i = 1; i < 5; i++)
        if (i != 3) sy_epoch_close(epochs[i]);
    assert_int_equal(look(), 0);
}

static int make_and_close(void *arg, const sy_epoch_stats *stats) {
    sy_epoch **inner = arg;
    (void)stats;
    if (*inner) sy_epoch_close(*inner);
    *inner = NULL;
    sy_epoch_close(open_epoch("within"));
    return 0;
}

static void a_visit_may_do_anything(void **state) {
    (void)state;
    sy_epoch *outer = open_epoch("outer"), *inner = open_epoch("inner");
    assert_int_equal(sy_epoch_each(make_and_close, &inner), 0);
    assert_string_equal(only().name, "outer");
    sy_epoch_close(outer);
}

static uint64_t stuck_ns;
static size_t stuck;

static void report(void *arg) {
    (void)arg;
    stuck = sy_epoch_report_stuck(stuck_ns);
}

static const char *reported(uint64_t ns) {
    stuck_ns = ns;
    assert_false(sy_fake_catch(report, NULL));
    return sy_fake_written();
}

static void what_is_stuck_is_reported(void **state) {
    (void)state;
    sy_cache *sessions = make((sy_cache_config){.name = "session"});
    sy_cache *packets = make((sy_cache_config){.name = "packet", .size = 48});
    sy_fake_set_clock(1000000000);
    sy_epoch *login = open_epoch("login"), *open = open_epoch("open"), *one = open_epoch("one");
    begin(login);
    take(packets, others, 5), take(sessions, objects, 12);
    take_in(open, sessions, objects + 20, 4);
    take_in(one, packets, others + 20, 1);
    sy_thread_flush();
    assert_int_equal(sy_epoch_close(login), 17);
    sy_fake_advance_clock(UINT64_C(2000000000));
    assert_int_equal(sy_epoch_close(one), 1);
    sy_fake_advance_clock(UINT64_C(10500000000));
    assert_string_equal(reported(UINT64_C(11000000000)),
                        "slabyard: epoch \"login\" is stuck: closed 12 s ago, 1 thread in it, 17 "
                        "objects in 2 slabs (128 KiB), 12 of \"session\", 5 of \"packet\"\n");
    assert_int_equal(stuck, 1);
    finish(login);
    assert_string_equal(reported(0),
                        "slabyard: epoch \"login\" is stuck: closed 12 s ago, 0 threads in it, 17 "
                        "objects in 2 slabs (128 KiB), 12 of \"session\", 5 of \"packet\"\n"
                        "slabyard: epoch \"one\" is stuck: closed 10 s ago, 0 threads in it, 1 "
                        "object in 1 slab (64 KiB), 1 of \"packet\"\n");
    assert_int_equal(stuck, 2);
    assert_string_equal(reported(UINT64_C(13000000000)), "");
    assert_int_equal(stuck, 0);
    sy_cache_destroy_all(sessions), sy_cache_destroy_all(packets);
    assert_string_equal(reported(0), "");
    sy_epoch_close(open);
    assert_int_equal(look(), 0);
}

/* ---- fork ---- */

static void *stay_in_it(void *arg) {
    job *it = arg;
    begin(it->epoch), begin(it->epoch);
    take(it->cache, others, 10);
    pthread_barrier_wait(&it->barrier);
    pthread_barrier_wait(&it->barrier);
    finish(it->epoch), finish(it->epoch);
    give(it->cache, others, 10);
    return NULL;
}

/* The child lacks the other thread. The items that it had loaded wait to be drained. */
static void go_on_in_child(void *arg) {
    job *it = arg;
    must(only().threads == 1 && sy_epoch_current() == it->epoch);
    void *more = sy_cache_alloc(it->cache);
    must(sy_view_of(home(more))->epoch == it->epoch);
    finish(it->epoch);
    must(only().threads == 0);
    must(sy_epoch_close(it->epoch) == 21);
    sy_cache_free(it->cache, more);
    give(it->cache, objects, 10), give(it->cache, others, 10);
    sy_thread_flush();
    must(look() == 0 && slabs_of(it->cache) == 0);
    end(it->cache);
}

static void a_child_has_the_epochs_of_the_thread_that_forked(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t thread;
    job it = {.cache = make((sy_cache_config){.name = "order"}), .epoch = open_epoch("shared")};
    pthread_barrier_init(&it.barrier, NULL, 2);
    must(pthread_create(&thread, NULL, stay_in_it, &it) == 0);
    pthread_barrier_wait(&it.barrier);
    begin(it.epoch);
    take(it.cache, objects, 10);
    assert_int_equal(in_child(go_on_in_child, &it), 0);
    assert_int_equal(only().threads, 3);
    pthread_barrier_wait(&it.barrier);
    pthread_join(thread, NULL);
    finish(it.epoch);
    give(it.cache, objects, 10);
    assert_int_equal(sy_epoch_close(it.epoch), 0);
    assert_int_equal(look(), 0);
    pthread_barrier_destroy(&it.barrier);
    end(it.cache);
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(objects_of_an_epoch_lie_in_slabs_of_their_own),
        TEST(the_innermost_epoch_counts),
        TEST(a_thread_is_in_so_many_at_most),
        TEST(only_the_innermost_ends),
        TEST(nobody_begins_what_is_closed),
        TEST(plain_caches_have_no_part_in_it),
        TEST(names_are_copied_and_cut),
        TEST(a_close_gives_up_what_is_empty_and_counts_what_is_live),
        TEST(what_is_freed_after_the_close_waits_no_more),
        TEST(what_comes_back_is_used_for_anything_else),
        TEST(slabs_of_a_closed_epoch_go_one_by_one),
        TEST(an_open_epoch_keeps_no_empty_slab),
        TEST(what_is_freed_is_not_given_out_before_it_is_back),
        TEST(trims_punch_holes_into_slabs_of_epochs),
        TEST(what_an_epoch_does_not_use_goes_by_age),
        TEST(other_threads_free_before_and_after_the_close),
        TEST(what_ended_threads_freed_late_goes_by_age),
        TEST(threads_that_are_in_it_may_finish),
        TEST(idle_threads_change_epochs_as_others_do),
        TEST(a_flush_within_changes_nothing),
        TEST(any_number_of_caches_may_be_in_an_epoch),
        TEST(caches_are_destroyed_before_their_epochs),
        TEST(caches_are_destroyed_while_epochs_are_closed),
        TEST(epochs_are_shown_in_order_of_creation),
        TEST(a_visit_may_do_anything),
        TEST(what_is_stuck_is_reported),
        TEST(a_child_has_the_epochs_of_the_thread_that_forked),
        TEST(a_thread_that_ends_inside_is_missed), /* last: the epoch stays */
    };
    return cmocka_run_group_tests_name("epoch", tests, NULL, NULL);
}
