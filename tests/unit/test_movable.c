/*
 * test_movable.c: what handle.h promises of caches with SY_MOVABLE, one behaviour a test: which
 * configurations there are, what keeps an object where it is, what moves and what is emptied by it,
 * and what happens if the system refuses memory. The tests of handles run with such caches too
 * (test_handle_movable.c).
 */
#include <errno.h>
#include <semaphore.h>
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
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

enum { COUNT = 20000, LIVE_SHARE = 20, SIZE = 100 };

typedef struct object {
    sy_handle handle;
    const void *self;
    unsigned char rest[SIZE - 16];
} object;

static sy_handle handles[COUNT]; /* 0: freed */

static sy_cache *make(sy_cache_config config) {
    config.flags |= SY_HANDLES | SY_MOVABLE;
    if (!config.size) config.size = SIZE;
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

static void fill_all(sy_cache *cache) {
    for (size_t i = 0; i < COUNT; i++) {
        object *made = sy_handle_prepare(cache, &handles[i]);
        must(made != NULL);
        *made = (object){.handle = handles[i], .self = made};
        memset(made->rest, (int)i, sizeof made->rest);
        sy_handle_publish(cache, handles[i]);
    }
}

/* Frees all but one in LIVE_SHARE, from all slabs. */
static void thin_out(sy_cache *cache) {
    for (size_t i = 0; i < COUNT; i++) {
        if (i % LIVE_SHARE == 0) continue;
        must(sy_handle_free(cache, handles[i]));
        handles[i] = 0;
    }
    sy_thread_flush();
}

static void content_is_there(sy_cache *cache, bool self) {
    sy_read_guard guard = sy_read_enter();
    for (size_t i = 0; i < COUNT; i++) {
        if (!handles[i]) continue;
        const object *got = sy_read_get(cache, handles[i]);
        must(got != NULL && got->handle == handles[i] && sy_handle_of(got) == handles[i]);
        must(!self || got->self == got);
        for (size_t at = 0; at < sizeof got->rest; at++) must(got->rest[at] == (unsigned char)i);
    }
    sy_read_leave(guard);
}

/* Where the object is now; it may move at any time. */
static const void *place_of(sy_cache *cache, sy_handle handle) {
    sy_read_guard guard = sy_read_enter();
    const void *place = sy_read_get(cache, handle);
    sy_read_leave(guard);
    return place;
}

static sy_cache_stats stats_of(sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0 && sy_cache_verify(cache) == 0);
    return stats;
}

static void end(sy_cache *cache) {
    for (size_t i = 0; i < COUNT; i++) {
        if (handles[i]) must(sy_handle_free(cache, handles[i]));
        handles[i] = 0;
    }
    must(sy_cache_in_use(cache) == 0 && stats_of(cache).in_use == 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static sy_cache *make_sparse(sy_cache_config config) {
    sy_cache *cache = make(config);
    fill_all(cache);
    thin_out(cache);
    return cache;
}

/* ---- configurations ---- */

static void refuses(sy_cache_config config) {
    errno = 0;
    assert_null(sy_cache_create(&config));
    assert_int_equal(errno, EINVAL);
}

static int construct(void *made, void *arg) { return (void)made, (void)arg, 0; }

static void destruct(void *made, void *arg) { (void)made, (void)arg; }

static void copy(void *from, void *to, void *arg) {
    (void)arg;
    memcpy(to, from, SIZE);
}

static void what_cannot_move_is_refused(void **state) {
    (void)state;
    const unsigned flags = SY_HANDLES | SY_MOVABLE;
    refuses((sy_cache_config){.size = 48, .flags = SY_MOVABLE});
    refuses((sy_cache_config){.size = 48, .flags = flags | SY_EPOCHS});
    refuses((sy_cache_config){.size = 48, .flags = flags, .construct = construct});
    refuses((sy_cache_config){.size = 48, .flags = flags, .destruct = destruct});
    refuses((sy_cache_config){.size = 48, .flags = SY_HANDLES, .relocate = copy});
    errno = 0;
    assert_null(sy_heap_create(&(sy_heap_config){.flags = flags}));
    assert_int_equal(errno, EINVAL);
}

static void objects_with_checks_and_large_ones_stay(void **state) {
    (void)state;
    const sy_cache_config configs[] = {
        {.size = SIZE, .flags = SY_CHECKED}, {.size = SIZE, .flags = SY_EDGES}, {.size = 9000}};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        sy_cache *cache = make(configs[i]);
        sy_handle handle;
        void *made = sy_handle_alloc(cache, &handle);
        must(made != NULL && sy_handle_get(cache, handle) == made);
        must(place_of(cache, handle) == made && sy_cache_compact(cache, SIZE_MAX, 1000) == 0);
        must(sy_handle_free(cache, handle) && place_of(cache, handle) == NULL);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static void an_allocation_needs_a_guard(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48});
    sy_handle handle = 77;
    errno = 0;
    assert_null(sy_handle_alloc(cache, &handle));
    must(errno == EPERM && handle == 77);
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, EPERM);
    sy_read_guard guard = sy_read_enter(), inner = sy_read_enter();
    sy_read_leave(inner);
    void *made = sy_handle_alloc(cache, &handle);
    must(made != NULL && sy_read_get(cache, handle) == made);
    void *unnamed = sy_cache_alloc(cache);
    must(unnamed != NULL && sy_handle_of(unnamed) != 0);
    sy_cache_free(cache, unnamed);
    sy_read_leave(guard);
    assert_null(sy_cache_alloc(cache));
    must(sy_handle_free(cache, handle));
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void the_functions_for_other_caches_find_nothing(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48});
    sy_handle handle;
    uint32_t ordinal;
    void *made = sy_handle_prepare(cache, &handle);
    sy_handle_publish(cache, handle);
    assert_null(sy_handle_get(cache, handle));
    assert_false(SY_ABI_NAME(sy_handle_take_slow)(cache, &ordinal));
    assert_int_equal(errno, EINVAL);
    assert_ptr_equal(place_of(cache, handle), made);
    /* Words of places and of owners are no objects. */
    for (uint64_t near = 1; near < 4096; near++)
        must(!sy_handle_pin(cache, handle + near) && !place_of(cache, handle + near) &&
             !sy_handle_free(cache, handle + near));
    must(sy_handle_free(cache, handle));
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* ---- moves ---- */

static void survivors_move_together(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.name = "sparse"});
    sy_cache_stats before = stats_of(cache);
    size_t emptied = sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    sy_cache_stats after = stats_of(cache);
    assert_true(emptied > before.mapped / 100 * 80);
    assert_true(after.slabs <= before.slabs / LIVE_SHARE + 2);
    assert_int_equal(after.move_bytes, emptied);
    assert_int_equal(after.empty, 0);
    assert_true(after.moves > COUNT / LIVE_SHARE / 2);
    assert_int_equal(after.in_use, COUNT / LIVE_SHARE);
    content_is_there(cache, false);
    assert_int_equal(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX), 0); /* nothing is left to do */
    end(cache);
}

static unsigned relocations;

static void relocate(void *from, void *to, void *arg) {
    must(arg == &relocations && ((object *)from)->self == from);
    memcpy(to, from, SIZE);
    ((object *)to)->self = to;
    relocations++;
}

static void objects_that_know_their_address_are_relocated(void **state) {
    (void)state;
    relocations = 0;
    sy_cache *cache = make_sparse((sy_cache_config){.relocate = relocate, .arg = &relocations});
    assert_true(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    assert_int_equal(stats_of(cache).moves, relocations);
    content_is_there(cache, true);
    end(cache);
}

static void a_pinned_object_stays(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    object *pinned[COUNT / LIVE_SHARE];
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE)
        must((pinned[i / LIVE_SHARE] = sy_handle_pin(cache, handles[i])) != NULL);
    assert_int_equal(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX), 0);
    must(stats_of(cache).moves == 0 && stats_of(cache).moves_put_off >= COUNT / LIVE_SHARE / 2);
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        must(pinned[i / LIVE_SHARE] == place_of(cache, handles[i]));
        if (i % 2 == 0) sy_handle_unpin(cache, handles[i]);
    }
    assert_true(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    content_is_there(cache, false);
    end(cache);
}

static void an_object_that_is_prepared_stays(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    sy_handle handle;
    object *made = sy_handle_prepare(cache, &handle);
    sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    made->handle = handle;
    sy_handle_publish(cache, handle);
    sy_read_guard guard = sy_read_enter();
    assert_ptr_equal(sy_read_get(cache, handle), made);
    sy_read_leave(guard);
    must(sy_handle_free(cache, handle));
    end(cache);
}

static void nothing_moves_in_a_guard_of_this_thread(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    sy_read_guard guard = sy_read_enter();
    assert_int_equal(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX), 0);
    sy_cache_trim(cache);
    sy_read_leave(guard);
    assert_int_equal(stats_of(cache).moves, 0);
    assert_true(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    end(cache);
}

typedef struct reader {
    sy_cache *cache;
    pthread_t thread;
    sem_t entered, may_leave, left;
    const object *seen;
} reader;

static void *read_for_long(void *arg) {
    reader *it = arg;
    sy_read_guard guard = sy_read_enter();
    it->seen = sy_read_get(it->cache, handles[0]);
    sem_post(&it->entered);
    sem_wait(&it->may_leave);
    must(sy_read_get(it->cache, handles[0]) == it->seen && it->seen->handle == handles[0]);
    sy_read_leave(guard);
    sem_post(&it->left);
    sem_wait(&it->may_leave);
    return NULL;
}

/* Starts a thread that is in a guard, with a sparse cache. */
static void start_reader(reader *it, void *(*read)(void *it)) {
    it->cache = make_sparse((sy_cache_config){.size = SIZE});
    sem_init(&it->entered, 0, 0);
    sem_init(&it->may_leave, 0, 0);
    sem_init(&it->left, 0, 0);
    must(pthread_create(&it->thread, NULL, read, it) == 0);
    sem_wait(&it->entered);
}

/* When the thread has left its guard, but has not ended, objects move. */
static void end_reader(reader *it) {
    sem_post(&it->may_leave);
    sem_wait(&it->left);
    must(sy_cache_compact(it->cache, SIZE_MAX, UINT64_MAX) > 0);
    sem_post(&it->may_leave);
    pthread_join(it->thread, NULL);
    content_is_there(it->cache, false);
    end(it->cache);
}

static void nothing_moves_in_a_guard_of_another_thread(void **state) {
    (void)state;
    static reader it;
    start_reader(&it, read_for_long);
    assert_int_equal(sy_cache_compact(it.cache, SIZE_MAX, UINT64_MAX), 0);
    assert_int_equal(stats_of(it.cache).moves, 0);
    end_reader(&it);
}

/* A guard that its thread did not leave ends with the thread. */
static void *never_leave(void *arg) {
    (void)sy_read_enter();
    return arg;
}

static void a_guard_ends_with_its_thread(void **state) {
    (void)state;
    pthread_t thread;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    must(pthread_create(&thread, NULL, never_leave, NULL) == 0);
    pthread_join(thread, NULL);
    assert_true(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    end(cache);
}

static bool is_zero(const char *bytes) {
    for (size_t at = 0; at < SIZE; at++)
        if (bytes[at]) return false;
    return true;
}

/* One object of each slab is pinned, so that the slab stays, and its slots can be read. Another
 * object may have moved to an old place. */
static void the_old_place_of_a_secret_is_overwritten(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.flags = SY_ZERO});
    static const object *old[COUNT];
    static bool pinned[COUNT];
    const sy_slab *last = NULL;
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        old[i] = place_of(cache, handles[i]);
        pinned[i] = sy_slab_at((uintptr_t)old[i]) != last;
        if (pinned[i]) must(sy_handle_pin(cache, handles[i]) != NULL);
        last = sy_slab_at((uintptr_t)old[i]);
    }
    sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    size_t moved = 0;
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        if (place_of(cache, handles[i]) == old[i]) continue;
        must(is_zero((const char *)old[i]) || place_of(cache, old[i]->handle) == old[i]);
        moved += is_zero((const char *)old[i]);
    }
    assert_true(moved > 0);
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE)
        if (pinned[i]) sy_handle_unpin(cache, handles[i]);
    content_is_there(cache, false);
    end(cache);
}

/* ---- beside a move ---- */

static sem_t relocating, may_go_on;
static _Atomic bool stops; /* the next relocation stops in its middle, until it may go on */

static void relocate_slowly(void *from, void *to, void *arg) {
    (void)arg;
    if (atomic_exchange(&stops, false)) {
        sem_post(&relocating);
        sem_wait(&may_go_on);
    }
    memcpy(to, from, SIZE);
}

static void *compact_all(void *arg) {
    must(sy_cache_compact(arg, SIZE_MAX, UINT64_MAX) > 0);
    return NULL;
}

/* A sparse cache, of which another thread is moving an object. */
static sy_cache *make_moving(size_t limit, pthread_t *mover) {
    sy_cache *cache = make_sparse((sy_cache_config){.limit = limit, .relocate = relocate_slowly});
    sem_init(&relocating, 0, 0);
    sem_init(&may_go_on, 0, 0);
    stops = true;
    must(pthread_create(mover, NULL, compact_all, cache) == 0);
    sem_wait(&relocating);
    return cache;
}

static void end_moving(sy_cache *cache, pthread_t mover) {
    sem_post(&may_go_on);
    pthread_join(mover, NULL);
    content_is_there(cache, false);
    end(cache);
}

static void what_is_moved_counts_once(void **state) {
    (void)state;
    pthread_t mover;
    enum { MORE = COUNT - COUNT / LIVE_SHARE };
    static sy_handle more[MORE];
    sy_cache *cache = make_moving(COUNT, &mover);
    assert_int_equal(sy_cache_in_use(cache), COUNT / LIVE_SHARE);
    assert_int_equal(stats_of(cache).in_use, COUNT / LIVE_SHARE);
    for (size_t i = 0; i < MORE; i++) {
        must(sy_handle_prepare(cache, &more[i]) != NULL);
        sy_handle_publish(cache, more[i]);
    }
    sy_handle none;
    must(sy_handle_prepare(cache, &none) == NULL && errno == ENOMEM);
    assert_int_equal(stats_of(cache).in_use, COUNT);
    for (size_t i = 0; i < MORE; i++) must(sy_handle_free(cache, more[i]));
    end_moving(cache, mover);
}

/* ---- when ---- */

static void a_compaction_ends_with_its_budget(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    assert_int_equal(sy_cache_compact(cache, SIZE_MAX, 0), 0);
    size_t bytes = stats_of(cache).mapped, emptied = sy_cache_compact(cache, 1, UINT64_MAX);
    must(emptied > 0 && emptied < bytes / 2);
    size_t more, all = emptied;
    while ((more = sy_cache_compact(cache, 1, UINT64_MAX)) > 0) all += more;
    assert_true(all > bytes / 100 * 80);
    end(cache);
}

static void trims_move_objects(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
        if (way == 0) sy_cache_trim(cache);
        if (way == 1) sy_trim();
        if (way == 2) sy_trim_some(SIZE_MAX, UINT64_MAX);
        assert_true(stats_of(cache).slabs <= 4);
        content_is_there(cache, false);
        end(cache);
    }
}

static void a_cache_at_its_limit_stays_within_it(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.limit = COUNT + COUNT / 8});
    fill_all(cache);
    thin_out(cache);
    sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    content_is_there(cache, false);
    end(cache);
}

static void a_reserve_keeps_its_slabs(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = SIZE});
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    fill_all(cache);
    thin_out(cache);
    size_t slabs = stats_of(cache).slabs;
    assert_true(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    assert_int_equal(stats_of(cache).slabs, slabs);
    end(cache);
}

/* ---- what fails below ---- */

/* Each call of the system fails once, while objects are allocated and moved. */
static void fail_once(void *arg) {
    sy_cache *cache = make((sy_cache_config){.size = SIZE});
    sy_fake_reset();
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    for (size_t i = 0; i < COUNT; i++) {
        object *made = sy_handle_prepare(cache, &handles[i]);
        if (!made) made = (must(errno == ENOMEM), sy_handle_prepare(cache, &handles[i]));
        must(made != NULL);
        *made = (object){.handle = handles[i], .self = made};
        memset(made->rest, (int)i, sizeof made->rest);
        sy_handle_publish(cache, handles[i]);
    }
    thin_out(cache);
    sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    sy_trim();
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    sy_fake_reset();
    content_is_there(cache, false);
    end(cache);
    if (!failed) _exit(1);
}

static void what_the_system_refuses_is_made_up_for(void **state) {
    (void)state;
    int status = 0;
    for (uint64_t nth = 1; status == 0; nth++) status = in_child(fail_once, &nth);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 1); /* in the last one nothing failed */
}

/* If the system makes no barrier for other threads, readers run fences. */
static void move_without_barrier(void *arg) {
    (void)arg;
    sy_fake_fail_from(SY_FAKE_BARRIER_THREADS, 1);
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    content_is_there(cache, false);
    end(cache);
}

static void objects_move_without_barriers_of_the_system(void **state) {
    (void)state;
    assert_int_equal(in_child(move_without_barrier, NULL), 0);
}

/* Once there was one, readers rely on it: without it nothing moves. */
static void nothing_moves_if_the_barrier_fails_later(void **state) {
    (void)state;
    if (sy_os_barrier_threads() != 0) skip(); /* never, with a detector of races */
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    sy_fake_fail_from(SY_FAKE_BARRIER_THREADS, 1);
    bool asked =
        (sy_cache_compact(cache, SIZE_MAX, UINT64_MAX), sy_fake_calls(SY_FAKE_BARRIER_THREADS));
    must(!asked || stats_of(cache).moves == 0);
    sy_fake_reset();
    content_is_there(cache, false);
    end(cache);
}

/* ---- several movers ---- */

static void *let_go_soon(void *arg) {
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    sem_post(&may_go_on);
    return arg;
}

/* Each of these calls waits for some milliseconds. */

static void a_compaction_waits_for_a_step_of_another_one(void **state) {
    (void)state;
    pthread_t mover, other;
    sy_cache *cache = make_moving(0, &mover);
    must(pthread_create(&other, NULL, let_go_soon, NULL) == 0);
    for (int i = 0; i < 500 && stats_of(cache).moves == 0; i++)
        sy_cache_compact(cache, SIZE_MAX, UINT64_MAX);
    assert_true(stats_of(cache).moves > 0);
    pthread_join(other, NULL);
    end_moving(cache, mover);
}

static void a_compaction_does_not_wait_for_ever(void **state) {
    (void)state;
    pthread_t mover;
    sy_cache *cache = make_moving(0, &mover);
    assert_int_equal(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX), 0);
    end_moving(cache, mover);
}

/* ---- fork ---- */

static void use_in_child(void *arg) {
    sy_cache *cache = arg;
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    content_is_there(cache, false);
    end(cache);
}

static void the_child_of_a_fork_moves_its_copies(void **state) {
    (void)state;
    sy_cache *cache = make_sparse((sy_cache_config){.size = SIZE});
    assert_int_equal(in_child(use_in_child, cache), 0);
    content_is_there(cache, false);
    assert_int_equal(stats_of(cache).moves, 0);
    end(cache);
}

/* The mover does not exist in the child. What it was moving stays where it was. */
static void use_what_was_moving(void *arg) {
    sy_cache *cache = arg;
    alarm(60);
    for (size_t i = 0; i < COUNT; i += LIVE_SHARE) {
        const object *pinned = sy_handle_pin(cache, handles[i]);
        must(pinned != NULL && pinned->handle == handles[i]);
        sy_handle_unpin(cache, handles[i]);
    }
    size_t in_use = sy_cache_in_use(cache);
    must(in_use == (COUNT + LIVE_SHARE - 1) / LIVE_SHARE);
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    must(sy_cache_in_use(cache) == in_use);
    content_is_there(cache, false);
    end(cache);
}

static void a_fork_in_the_middle_of_a_move_leaves_the_objects(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t mover;
    sy_cache *cache = make_moving(0, &mover);
    assert_int_equal(in_child(use_what_was_moving, cache), 0);
    end_moving(cache, mover);
}

/* Guards of threads for which there was no record. */
static void *read_without_record(void *arg) {
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    return read_for_long(arg);
}

static void move_beside_no_reader(void *arg) {
    must(sy_cache_compact(arg, SIZE_MAX, UINT64_MAX) > 0);
    content_is_there(arg, false);
}

static void the_child_has_no_guards_of_other_threads(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    static reader it;
    start_reader(&it, read_without_record);
    sy_fake_reset();
    assert_int_equal(sy_cache_compact(it.cache, SIZE_MAX, UINT64_MAX), 0);
    assert_int_equal(in_child(move_beside_no_reader, it.cache), 0);
    end_reader(&it);
}

/* The thread has an object that it has not filled when another thread forks. */
static void *make_slowly(void *arg) {
    reader *it = arg;
    sy_handle handle;
    sy_read_guard guard = sy_read_enter();
    object *made = sy_handle_alloc(it->cache, &handle);
    must(made != NULL);
    memset(made, 0, sizeof *made);
    sem_post(&it->entered);
    sem_wait(&it->may_leave);
    sy_read_leave(guard);
    must(sy_handle_free(it->cache, handle));
    return NULL;
}

static void leave_half_made_objects(void *arg) {
    sy_cache *cache = arg;
    relocations = 0;
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) == 0);
    sy_trim();
    must(relocations == 0);
    content_is_there(cache, true);
    must(sy_cache_verify(cache) == 0);
}

static void relocate_gets_no_object_that_a_lost_thread_was_making(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    static reader it;
    it.cache = make_sparse((sy_cache_config){.relocate = relocate, .arg = &relocations});
    sem_init(&it.entered, 0, 0);
    sem_init(&it.may_leave, 0, 0);
    must(pthread_create(&it.thread, NULL, make_slowly, &it) == 0);
    sem_wait(&it.entered);
    assert_int_equal(in_child(leave_half_made_objects, it.cache), 0);
    sem_post(&it.may_leave);
    pthread_join(it.thread, NULL);
    relocations = 0;
    assert_true(sy_cache_compact(it.cache, SIZE_MAX, UINT64_MAX) > 0 && relocations > 0);
    end(it.cache);
}

/* Tools would have all caches checked, and objects with checks stay. */
int main(void) {
    setenv("SLABYARD", "tools=off", true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_move_without_barriers_of_the_system),
        cmocka_unit_test(what_cannot_move_is_refused),
        cmocka_unit_test(objects_with_checks_and_large_ones_stay),
        cmocka_unit_test(an_allocation_needs_a_guard),
        cmocka_unit_test(the_functions_for_other_caches_find_nothing),
        cmocka_unit_test(survivors_move_together),
        cmocka_unit_test(objects_that_know_their_address_are_relocated),
        cmocka_unit_test(a_pinned_object_stays),
        cmocka_unit_test(an_object_that_is_prepared_stays),
        cmocka_unit_test(nothing_moves_in_a_guard_of_this_thread),
        cmocka_unit_test(nothing_moves_in_a_guard_of_another_thread),
        cmocka_unit_test(a_guard_ends_with_its_thread),
        cmocka_unit_test(the_old_place_of_a_secret_is_overwritten),
        cmocka_unit_test(a_compaction_ends_with_its_budget),
        cmocka_unit_test(trims_move_objects),
        cmocka_unit_test(a_cache_at_its_limit_stays_within_it),
        cmocka_unit_test(what_is_moved_counts_once),
        cmocka_unit_test(a_reserve_keeps_its_slabs),
        cmocka_unit_test(what_the_system_refuses_is_made_up_for),
        cmocka_unit_test(nothing_moves_if_the_barrier_fails_later),
        cmocka_unit_test(a_compaction_waits_for_a_step_of_another_one),
        cmocka_unit_test(a_compaction_does_not_wait_for_ever),
        cmocka_unit_test(the_child_of_a_fork_moves_its_copies),
        cmocka_unit_test(a_fork_in_the_middle_of_a_move_leaves_the_objects),
        cmocka_unit_test(the_child_has_no_guards_of_other_threads),
        cmocka_unit_test(relocate_gets_no_object_that_a_lost_thread_was_making),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
