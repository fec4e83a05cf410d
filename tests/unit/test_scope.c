/*
 * test_scope.c: scopes (slabyard/scope.h): what lies in them, what does not, where freed objects
 * go, what survives, and what a scope costs.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/count.h>
#include <slabyard/fault.h>
#include <slabyard/handle.h>
#include <slabyard/heap.h>
#include <slabyard/limit.h>
#include <slabyard/reclaim.h>
#include <slabyard/scope.h>
#include <slabyard/stats.h>

#include "cache/mixed.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

static int faults;

static void note_fault(const sy_fault *fault) {
    (void)fault;
    faults++;
}

static int begin(void **state) {
    (void)state;
    faults = 0;
    sy_set_decay(0);
    sy_set_fault_handler(note_fault);
    return 0;
}

static int end(void **state) {
    (void)state;
    sy_fake_reset();
    sy_thread_flush();
    sy_trim();
    sy_set_fault_handler(NULL);
    bool clean = sy_verify() == 0 && sy_mixed_count().all == 0 && faults == 0;
    return clean && !sy_scope_current() ? 0 : -1;
}

static sy_scope *make_scope(void) {
    sy_scope *scope = sy_scope_create("test");
    must(scope != NULL);
    return scope;
}

static void enter(sy_scope *scope) { must(sy_scope_enter(scope) == 0); }

static void leave(sy_scope *scope) { must(sy_scope_leave(scope) == 0); }

static void destroy(sy_scope *scope) { must(sy_scope_destroy(scope) == 0); }

static size_t live(sy_scope *scope) { return sy_scope_live(scope, NULL); }

/* Whether the object lies in the scope, in which this thread is not. */
static bool has(sy_scope *scope, const void *object) {
    static void *found[100000];
    size_t count = sy_scope_list(scope, found, sizeof found / sizeof *found);
    must(count == live(scope));
    for (size_t i = 0; i < count; i++)
        if (found[i] == object) return true;
    return false;
}

/* ---- where objects lie ---- */

static void what_is_allocated_in_a_scope_lies_in_it(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    void *before = sy_malloc(100);
    enter(scope);
    must(sy_scope_current() == scope);
    void *within = sy_malloc(100);
    leave(scope);
    must(sy_scope_current() == NULL);
    void *after = sy_malloc(100);
    must(!has(scope, before) && has(scope, within) && !has(scope, after));
    size_t bytes;
    must(sy_scope_live(scope, &bytes) == 1 && bytes == sy_usable_size(within));
    sy_free(before);
    sy_free(within);
    sy_free(after);
    must(live(scope) == 0);
    destroy(scope);
}

static void objects_of_all_sizes_up_to_8_kib_do(void **state) {
    (void)state;
    enum { STEP = 24, COUNT = 8192 / STEP };
    static void *objects[COUNT + 1];
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = 0; i <= COUNT; i++) {
        objects[i] = sy_malloc(i * STEP);
        memset(objects[i], (int)i, i * STEP);
    }
    void *large = sy_malloc(8193), *span = sy_malloc(1 << 20);
    leave(scope);
    must(live(scope) == COUNT + 1);
    for (size_t i = 0; i <= COUNT; i++) {
        must(has(scope, objects[i]) && sy_usable_size(objects[i]) >= i * STEP);
        for (size_t at = 0; at < i * STEP; at++) must(((unsigned char *)objects[i])[at] == i % 256);
        (sy_free_sized)(objects[i], i * STEP);
    }
    must(!has(scope, large) && !has(scope, span));
    sy_free(large);
    sy_free(span);
    must(live(scope) == 0);
    destroy(scope);
}

static void all_functions_of_the_heap_allocate_there(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    void *objects[] = {sy_malloc(40),
                       sy_calloc(3, 100),
                       sy_zalloc(1000),
                       sy_realloc(NULL, 24),
                       sy_realloc(sy_malloc(24), 2000),
                       sy_aligned_alloc(64, 64),
                       sy_aligned_alloc(256, 300),
                       sy_aligned_alloc(4096, 5),
                       sy_aligned_calloc(128, 7, 50),
                       sy_malloc(0)};
    leave(scope);
    size_t count = sizeof objects / sizeof *objects;
    must(live(scope) == count);
    for (size_t i = 0; i < count; i++) must(has(scope, objects[i]));
    must((uintptr_t)objects[5] % 64 == 0 && (uintptr_t)objects[6] % 256 == 0);
    must((uintptr_t)objects[7] % 4096 == 0 && (uintptr_t)objects[8] % 128 == 0);
    for (size_t i = 0; i < 300; i++) must(((char *)objects[1])[i] == 0);
    objects[0] = sy_realloc(objects[0], 45); /* the same class: it stays */
    must(has(scope, objects[0]));
    objects[0] = sy_realloc(objects[0], 4500); /* outside of scopes */
    must(!has(scope, objects[0]));
    for (size_t i = 0; i < count; i++) sy_free(objects[i]);
    must(live(scope) == 0);
    destroy(scope);
}

static void inlined_frees_with_a_size_take_objects_of_scopes(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    char *eight = sy_malloc(8), *sixteen = sy_malloc(16), *five = sy_malloc(5);
    leave(scope);
    sy_free_sized(eight, 8);
    sy_free_sized(sixteen, 16);
    (sy_free_sized)(five, 5);
    must(faults == 0 && live(scope) == 0);
    destroy(scope);
}

static void what_is_freed_in_a_scope_is_not_given_out_in_it(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static void *outside[COUNT], *inside[COUNT];
    sy_scope *scope = make_scope();
    for (size_t i = 0; i < COUNT; i++) outside[i] = sy_malloc(48);
    enter(scope);
    for (size_t i = 0; i < COUNT; i++) {
        sy_free(outside[i]);
        inside[i] = sy_malloc(48);
    }
    leave(scope);
    must(live(scope) == COUNT);
    for (size_t i = 0; i < COUNT; i++) must(has(scope, inside[i]));
    for (size_t i = 0; i < COUNT; i++) sy_free(inside[i]);
    /* And what lies in the scope is given out to nobody else. */
    for (size_t i = 0; i < COUNT; i++) outside[i] = sy_malloc(48);
    must(live(scope) == 0);
    for (size_t i = 0; i < COUNT; i++) sy_free(outside[i]);
    destroy(scope);
}

static void an_object_freed_twice_is_a_fault(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    void *object = sy_malloc(48), *other = sy_malloc(48);
    sy_free(object);
    sy_free(other);
    sy_free(object);
    leave(scope);
    must(live(scope) == 0);
    must(faults == 1);
    faults = 0;
    destroy(scope);
}

/* ---- nesting ---- */

static void scopes_nest(void **state) {
    (void)state;
    sy_scope *outer = make_scope(), *inner = make_scope();
    void *objects[5];
    enter(outer);
    objects[0] = sy_malloc(64);
    enter(inner);
    objects[1] = sy_malloc(64);
    enter(NULL);
    must(sy_scope_current() == NULL);
    objects[2] = sy_malloc(64);
    enter(outer);
    objects[3] = sy_malloc(64);
    leave(outer);
    leave(NULL);
    must(sy_scope_current() == inner);
    leave(inner);
    objects[4] = sy_malloc(64);
    leave(outer);
    must(live(outer) == 3 && live(inner) == 1);
    must(has(outer, objects[0]) && has(inner, objects[1]) && has(outer, objects[3]));
    must(has(outer, objects[4]) && !has(outer, objects[2]) && !has(inner, objects[2]));
    for (size_t i = 0; i < 5; i++) sy_free(objects[i]);
    destroy(inner);
    destroy(outer);
}

static void another_order_is_refused(void **state) {
    (void)state;
    sy_scope *outer = make_scope(), *inner = make_scope();
    must(sy_scope_leave(outer) == -1 && errno == EINVAL);
    enter(outer);
    enter(inner);
    must(sy_scope_leave(outer) == -1 && errno == EINVAL && sy_scope_current() == inner);
    must(sy_scope_leave(NULL) == -1 && errno == EINVAL);
    must(sy_scope_destroy(outer) == -1 && errno == EBUSY);
    must(sy_scope_destroy(inner) == -1 && errno == EBUSY);
    leave(inner);
    destroy(inner);
    leave(outer);
    destroy(outer);
    destroy(NULL);
}

static void there_is_a_most_of_nested_scopes(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    for (int i = 0; i < SY_SCOPE_DEPTH_MAX; i++) enter(scope);
    must(sy_scope_enter(scope) == -1 && errno == EAGAIN && sy_scope_current() == scope);
    for (int i = 0; i < SY_SCOPE_DEPTH_MAX; i++) leave(scope);
    destroy(scope);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 20000 };

typedef struct sharer {
    sy_scope *scope;
    unsigned char *objects[EACH];
    unsigned number;
} sharer;

static size_t size_of(size_t i) { return 16 + i * 37 % 500; }

static void *share(void *arg) {
    sharer *me = arg;
    for (size_t i = 0; i < EACH; i++) {
        if (i % 100 == 0) enter(me->scope);
        me->objects[i] = sy_malloc(size_of(i));
        memset(me->objects[i], (int)(me->number * 50 + i % 50), size_of(i));
        if (i % 100 == 99) leave(me->scope);
    }
    return NULL;
}

static void *free_others(void *arg) {
    sharer *other = arg;
    for (size_t i = 0; i < EACH; i++) {
        for (size_t at = 0; at < size_of(i); at++)
            must(other->objects[i][at] == (unsigned char)(other->number * 50 + i % 50));
        sy_free(other->objects[i]);
    }
    return NULL;
}

static void threads_share_a_scope_and_free_each_others_objects(void **state) {
    (void)state;
    static sharer sharers[THREADS];
    pthread_t threads[THREADS];
    sy_scope *scope = make_scope();
    for (unsigned i = 0; i < THREADS; i++) {
        sharers[i].scope = scope;
        sharers[i].number = i;
        must(pthread_create(&threads[i], NULL, share, &sharers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    must(live(scope) == (size_t)THREADS * EACH);
    must(sy_verify() == 0);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, free_others, &sharers[(i + 1) % THREADS]) == 0);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    must(live(scope) == 0);
    destroy(scope);
}

/* What a thread has freed in one scope is flushed wherever it is. */
static void *free_half(void *arg) {
    void **shared = arg, **objects = shared[2];
    sy_scope *other = make_scope();
    if (shared[3]) enter(other);
    for (size_t i = 0; i < 50; i++) sy_free(objects[i]);
    if (!shared[3]) enter(other);
    if (shared[3]) leave(other);
    sy_thread_flush();
    pthread_barrier_wait(shared[1]);
    pthread_barrier_wait(shared[1]);
    if (!shared[3]) leave(other);
    destroy(other);
    return NULL;
}

static void a_flush_reaches_what_was_freed_on_either_side(void **state) {
    (void)state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int within = 0; within < 2; within++) {
        pthread_t thread;
        void *objects[100];
        sy_scope *scope = make_scope();
        void *shared[4] = {scope, &barrier, objects, within ? scope : NULL};
        enter(scope);
        for (size_t i = 0; i < 100; i++) objects[i] = sy_malloc(64);
        leave(scope);
        must(pthread_create(&thread, NULL, free_half, shared) == 0);
        pthread_barrier_wait(&barrier);
        must(live(scope) == 50);
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        for (size_t i = 50; i < 100; i++) sy_free(objects[i]);
        destroy(scope);
    }
    pthread_barrier_destroy(&barrier);
}

/* Another thread may have its magazines then, so it does not flush them at its end. */
static void *free_and_end_idle(void *arg) {
    for (size_t i = 0; i < 50; i++) sy_free(((void **)arg)[i]);
    sy_thread_idle();
    return NULL;
}

static void what_an_ended_thread_has_freed_is_not_live(void **state) {
    (void)state;
    pthread_t thread;
    void *objects[50];
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = 0; i < 50; i++) objects[i] = sy_malloc(64);
    leave(scope);
    must(pthread_create(&thread, NULL, free_and_end_idle, objects) == 0);
    pthread_join(thread, NULL);
    must(live(scope) == 0);
    destroy(scope);
}

static void *end_within(void *arg) {
    enter(arg);
    enter(NULL);
    enter(arg);
    return sy_malloc(200);
}

static void a_thread_that_ends_leaves_its_scopes(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *object;
        must(pthread_create(&thread, NULL, end_within, scope) == 0);
        must(pthread_join(thread, &object) == 0);
        must(live(scope) == 1 && has(scope, object));
        sy_free(object);
    }
    must(live(scope) == 0);
    destroy(scope);
}

static void *stay_in(void *arg) {
    sy_scope *scope = ((void **)arg)[0];
    pthread_barrier_t *barrier = ((void **)arg)[1];
    enter(scope);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    leave(scope);
    return NULL;
}

static void a_scope_in_which_another_thread_is_stays(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    sy_scope *scope = make_scope();
    void *shared[2] = {scope, &barrier};
    pthread_barrier_init(&barrier, NULL, 2);
    must(pthread_create(&thread, NULL, stay_in, shared) == 0);
    pthread_barrier_wait(&barrier);
    must(sy_scope_destroy(scope) == -1 && errno == EBUSY);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    destroy(scope);
    pthread_barrier_destroy(&barrier);
}

static void idle_flush_and_trim_leave_a_scope_as_it_is(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    void *objects[40];
    enter(scope);
    for (size_t i = 0; i < 40; i++) {
        objects[i] = sy_malloc(80);
        if (i % 4 == 0) sy_thread_idle();
        if (i % 4 == 1) sy_thread_flush();
        if (i % 4 == 2) sy_trim();
        must(sy_scope_current() == scope);
    }
    sy_thread_idle();
    leave(scope);
    must(live(scope) == 40);
    for (size_t i = 0; i < 40; i++) must(has(scope, objects[i]));
    for (size_t i = 0; i < 40; i++) sy_free(objects[i]);
    destroy(scope);
}

/* ---- the rest of the library, in a scope ---- */

static void caches_are_used_across_scopes(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "named", .size = 100});
    sy_cache *phases =
        sy_cache_create(&(sy_cache_config){.name = "phases", .size = 100, .flags = SY_EPOCHS});
    sy_scope *scope = make_scope();
    enum { COUNT = 3000 };
    static void *objects[COUNT], *others[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 10 == 0) enter(scope);
        if (i % 10 == 5) leave(scope);
        objects[i] = sy_cache_alloc(cache);
        others[i] = sy_cache_alloc(phases);
    }
    must(sy_cache_in_use(cache) == COUNT && live(scope) == 0);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 7 == 0) enter(scope);
        sy_cache_free(cache, objects[i]);
        sy_cache_free(phases, others[i]);
        if (i % 7 == 3) leave(scope);
    }
    while (sy_scope_current()) leave(scope);
    must(sy_cache_destroy(cache) == 0 && sy_cache_destroy(phases) == 0);
    destroy(scope);
}

static void a_read_guard_holds_across_the_borders_of_scopes(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = "moves", .size = 64, .flags = SY_HANDLES | SY_MOVABLE});
    enum { COUNT = 4000 };
    static sy_handle handles[COUNT];
    sy_scope *scope = make_scope();
    sy_read_guard guard = sy_read_enter();
    for (size_t i = 0; i < COUNT; i++) {
        size_t *object = sy_handle_alloc(cache, &handles[i]);
        must(object != NULL);
        *object = i;
    }
    sy_read_leave(guard);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 20) must(sy_handle_free(cache, handles[i]));
    guard = sy_read_enter();
    size_t *first = sy_read_get(cache, handles[0]);
    enter(scope);
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) == 0); /* this thread is in a guard */
    must(sy_read_get(cache, handles[0]) == first && *first == 0);
    sy_read_leave(guard);
    leave(scope);
    must(sy_cache_compact(cache, SIZE_MAX, UINT64_MAX) > 0);
    for (size_t i = 0; i < COUNT; i += 20) must(sy_handle_free(cache, handles[i]));
    must(sy_cache_destroy(cache) == 0);
    destroy(scope);
}

static void what_a_thread_counts_includes_scopes(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    sy_counted counted;
    enter(scope);
    void *early[10], *objects[100];
    for (size_t i = 0; i < 10; i++) early[i] = sy_malloc(64); /* leaves some ready */
    must(sy_count_begin() == 0);
    for (size_t i = 0; i < 100; i++) objects[i] = sy_malloc(64);
    for (size_t i = 0; i < 50; i++) sy_free(objects[i]);
    leave(scope);
    must(sy_count_end(&counted) == 0);
    must(counted.allocations == 100 && counted.frees == 50 && counted.live_bytes == 50 * 64);
    for (size_t i = 0; i < 10; i++) sy_free(early[i]);
    for (size_t i = 50; i < 100; i++) sy_free(objects[i]);
    must(live(scope) == 0);
    destroy(scope);
}

/* Nothing has used other slots of the thread's second record yet: this is the first test. */
static void a_count_begins_in_the_first_scope_of_a_thread(void **state) {
    (void)state;
    sy_counted counted;
    void *objects[20];
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = 0; i < 10; i++) objects[i] = sy_malloc(64); /* leaves some ready */
    must(sy_count_begin() == 0);
    for (size_t i = 10; i < 20; i++) objects[i] = sy_malloc(64);
    must(sy_count_end(&counted) == 0 && counted.allocations == 10);
    leave(scope);
    for (size_t i = 0; i < 20; i++) sy_free(objects[i]);
    must(live(scope) == 0);
    destroy(scope);
}

/* A count that begins in a scope sees what the thread allocates outside of it, and the reverse,
 * also if another thread counts already. */
static void *count_meanwhile(void *arg) {
    sy_counted counted;
    must(sy_count_begin() == 0);
    pthread_barrier_wait(arg);
    pthread_barrier_wait(arg);
    must(sy_count_end(&counted) == 0);
    return NULL;
}

static void use_cache(sy_cache *cache, unsigned count) {
    void *objects[20];
    for (unsigned i = 0; i < count; i++) objects[i] = sy_cache_alloc(cache);
    for (unsigned i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
}

static void counts_begin_on_both_sides_of_a_scope(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    sy_counted counted;
    sy_scope *scope = make_scope();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "both", .size = 64});
    pthread_barrier_init(&barrier, NULL, 2);
    must(pthread_create(&thread, NULL, count_meanwhile, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    for (unsigned within = 0; within < 2; within++) {
        use_cache(cache, 20);
        enter(scope);
        use_cache(cache, 20);
        if (!within) leave(scope);
        must(sy_count_begin() == 0);
        within ? leave(scope) : enter(scope);
        use_cache(cache, 10);
        if (!within) leave(scope);
        must(sy_count_end(&counted) == 0 && counted.allocations == 10);
    }
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    must(sy_cache_destroy(cache) == 0);
    destroy(scope);
}

/* ---- functions of the program ---- */

static sy_scope *called_in;
static unsigned calls;
static void *of_callback;
enum { SPARE = 40 };
static void *spare[SPARE]; /* memory that the callback frees */

static void call_scopes(void *arg, size_t used, size_t limit) {
    (void)arg, (void)used, (void)limit;
    must(sy_scope_leave(called_in) == -1 && errno == EBUSY);
    must(sy_scope_enter(NULL) == -1 && errno == EBUSY);
    must(sy_scope_current() == called_in);
    for (unsigned i = 0; i < SPARE; i++) sy_free(spare[i]);
    memset(spare, 0, sizeof spare);
    if (!of_callback) of_callback = sy_malloc(64); /* of the class that is being allocated */
    sy_thread_idle();
    calls++;
}

static void a_callback_of_a_limit_stays_in_its_scope(void **state) {
    (void)state;
    sy_stats stats;
    static void *objects[30000];
    sy_scope *scope = called_in = make_scope();
    for (int hard = 0; hard < 2; hard++) {
        size_t count = 0;
        calls = 0;
        of_callback = NULL;
        for (unsigned i = 0; i < SPARE; i++) spare[i] = sy_malloc(100000);
        enter(scope);
        sy_free(sy_malloc(64));
        sy_get_stats(&stats);
        size_t bound = stats.slabs + stats.spans + (1 << 20);
        sy_limit limit = {.hard = hard ? bound : 0, .soft = hard ? 0 : bound};
        limit.callback = call_scopes;
        must(sy_set_limit(&limit) == 0);
        while (count < 30000 && (objects[count] = sy_malloc(64)) != NULL) count++;
        must(sy_set_limit(NULL) == 0 && calls > 0 && count > 10000);
        leave(scope);
        must(live(scope) == count + (of_callback != NULL));
        must(of_callback != NULL);
        for (size_t i = 0; i < count; i++) sy_free(objects[i]);
        sy_free(of_callback);
        must(live(scope) == 0);
    }
    destroy(scope);
}

static void *of_handler;

static void allocate_in_handler(const sy_fault *fault) {
    (void)fault;
    of_handler = sy_malloc(3000);
}

/* A count of what lives in a scope flushes what the thread has freed. There an object that was
 * freed twice is seen. */
static void a_handler_of_faults_may_allocate(void **state) {
    (void)state;
    static void *objects[3000];
    sy_scope *scope = make_scope(), *other = make_scope();
    enter(scope);
    void *twice = sy_malloc(64), *between = sy_malloc(64);
    for (unsigned i = 0; i < 3000; i++) objects[i] = sy_malloc(64);
    leave(scope);
    for (unsigned i = 0; i < 3000; i++) sy_free(objects[i]); /* magazines get their capacity */
    sy_thread_flush();
    sy_set_fault_handler(allocate_in_handler);
    sy_free(twice);
    sy_free(between);
    sy_free(twice);
    enter(other);
    must(live(scope) == 0 && of_handler != NULL);
    leave(other);
    sy_free(of_handler);
    destroy(scope);
    destroy(other);
}

static int enter_in_constructor(void *object, void *arg) {
    (void)object;
    must(sy_scope_enter(arg) == -1 && errno == EBUSY && !sy_scope_current());
    return 0;
}

static void a_constructor_cannot_enter(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "built", .size = 64, .construct = enter_in_constructor, .arg = scope});
    sy_cache_free(cache, sy_cache_alloc(cache));
    must(sy_cache_destroy(cache) == 0);
    destroy(scope);
}

/* ---- the end of a scope ---- */

enum { MANY = 100000 };
static void *many[MANY];

static void survivors_stay_and_their_holes_serve_all_sizes(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = sy_malloc(64);
        memset(many[i], (int)i, 64);
    }
    leave(scope);
    for (size_t i = 0; i < MANY; i++)
        if (i % 100) sy_free(many[i]);
    size_t bytes;
    must(sy_scope_live(scope, &bytes) == MANY / 100 && bytes == MANY / 100 * 64);
    destroy(scope);
    sy_stats before, after;
    sy_get_stats(&before);
    void *others[1000];
    for (size_t i = 0; i < 1000; i++) others[i] = sy_malloc(1000);
    sy_get_stats(&after);
    must(after.slabs <= before.slabs + SY_UNIT_BYTES);
    for (size_t i = 0; i < 1000; i++) sy_free(others[i]);
    for (size_t i = 0; i < MANY; i += 100) {
        for (size_t at = 0; at < 64; at++) must(((unsigned char *)many[i])[at] == i % 256);
        sy_free(many[i]);
    }
}

static void the_memory_of_an_emptied_scope_is_free_at_once(void **state) {
    (void)state;
    sy_scope *scope = make_scope(), *other = make_scope();
    enter(scope);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = sy_malloc(64);
        if (i % 1000 == 0) { /* interleaved with another scope, which stays */
            enter(other);
            sy_malloc(64);
            leave(other);
        }
    }
    leave(scope);
    must(sy_mixed_count().all > MANY * 64);
    for (size_t i = 0; i < MANY; i++) sy_free(many[i]);
    must(live(scope) == 0);
    destroy(scope);
    must(sy_mixed_count().all <= 3 * SY_UNIT_BYTES);
    void *left[MANY / 1000];
    must(sy_scope_list(other, left, MANY / 1000) == MANY / 1000);
    for (size_t i = 0; i < MANY / 1000; i++) sy_free(left[i]);
    destroy(other);
}

/* The last objects of a unit are ready for the thread, and the scope allocates from another one. */
static void a_unit_that_a_leave_empties_goes_back(void **state) {
    (void)state;
    enum { SMALL = 3001, LONG = 20 };
    static void *objects[SMALL + LONG];
    sy_scope *scope = make_scope();
    enter(scope);
    for (unsigned i = 0; i < SMALL; i++) objects[i] = sy_malloc(64);
    for (unsigned i = SMALL; i < SMALL + LONG; i++) objects[i] = sy_malloc(8192);
    for (unsigned i = 0; i < SMALL + LONG; i++) sy_free(objects[i]);
    sy_thread_flush();
    size_t before = sy_mixed_count().all;
    leave(scope);
    must(live(scope) == 0 && sy_mixed_count().all < before);
    destroy(scope);
}

static void a_scope_takes_lots_between_survivors_of_the_heap(void **state) {
    (void)state;
    size_t least = sy_mixed_least;
    void *others[200];
    sy_mixed_least = 0;
    for (size_t i = 0; i < MANY / 2; i++) many[i] = sy_malloc(64);
    for (size_t i = 0; i < MANY / 2; i++)
        if (i % 2000) sy_free(many[i]);
    sy_thread_flush();
    sy_trim();
    for (size_t i = 0; i < 200; i++) others[i] = sy_malloc(1000); /* slabs become mixed units */
    sy_mixed_least = least;
    size_t before = sy_mixed_count().all;
    must(before > 0);
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = MANY / 2; i < MANY; i++) many[i] = sy_malloc(64);
    leave(scope);
    must(live(scope) == MANY / 2 && sy_verify() == 0);
    must(sy_mixed_count().holes < before); /* most of what was free is used */
    for (size_t i = 0; i < MANY / 2; i += 2000) sy_free(many[i]);
    for (size_t i = 0; i < 200; i++) sy_free(others[i]);
    must(live(scope) == MANY / 2);
    for (size_t i = MANY / 2; i < MANY; i++) sy_free(many[i]);
    must(live(scope) == 0);
    destroy(scope);
}

/* The survivors of slabs that became mixed units are freed when a scope has lots beside them. */
static void survivors_beside_lots_are_freed(void **state) {
    (void)state;
    enum { OTHERS = 3000, OWN = 2000 };
    static void *others[OTHERS + OWN];
    for (size_t i = 0; i < MANY; i++) many[i] = sy_malloc(64);
    for (size_t i = 0; i < MANY; i++)
        if (i % 512) sy_free(many[i]);
    sy_thread_flush();
    for (size_t i = 0; i < OTHERS; i++) others[i] = sy_malloc(200); /* converts slabs */
    must(sy_mixed_count().all > 0);
    sy_scope *scope = make_scope();
    enter(scope);
    for (size_t i = OTHERS; i < OTHERS + OWN; i++) others[i] = sy_malloc(100);
    leave(scope);
    for (size_t i = 0; i < MANY; i += 512) sy_free(many[i]);
    sy_thread_flush();
    must(live(scope) == OWN && sy_verify() == 0);
    for (size_t i = 0; i < OTHERS + OWN; i++) sy_free(others[i]);
    must(live(scope) == 0);
    destroy(scope);
}

static void a_long_scope_uses_its_holes_again(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    uint64_t random = 1;
    memset(many, 0, sizeof many);
    enter(scope);
    for (size_t turn = 0; turn < 40; turn++) {
        for (size_t i = 0; i < 10000; i++) {
            size_t at = next_random(&random) % 10000;
            sy_free(many[at]);
            many[at] = sy_malloc(16 + next_random(&random) % 200);
        }
    }
    leave(scope);
    size_t bytes, objects = sy_scope_live(scope, &bytes);
    must(objects > 9000 && sy_mixed_count().all < 3 * bytes);
    for (size_t i = 0; i < 10000; i++) sy_free(many[i]);
    must(live(scope) == 0);
    destroy(scope);
}

static void a_small_scope_takes_a_few_kib(void **state) {
    (void)state;
    enum { SCOPES = 10000 };
    static sy_scope *scopes[SCOPES];
    static void *objects[SCOPES][10];
    sy_stats before, after;
    sy_get_stats(&before);
    for (size_t i = 0; i < SCOPES; i++) {
        scopes[i] = make_scope();
        enter(scopes[i]);
        for (size_t j = 0; j < 10; j++) objects[i][j] = sy_malloc(32 + 16 * j);
        leave(scopes[i]);
    }
    sy_get_stats(&after);
    must(sy_mixed_count().all + after.side - before.side <= (size_t)SCOPES * 8192);
    must(sy_verify() == 0);
    for (size_t i = 0; i < SCOPES; i++) {
        for (size_t j = 0; j < 10; j++) sy_free(objects[i][j]);
        must(live(scopes[i]) == 0);
        destroy(scopes[i]);
    }
}

static void survivors_are_reported_by_size(void **state) {
    (void)state;
    sy_scope *scope = sy_scope_create("a name that is much longer than is kept");
    must(scope != NULL && sy_scope_report(scope) == 0);
    enter(scope);
    void *objects[] = {sy_malloc(64), sy_malloc(64), sy_malloc(1000)};
    leave(scope);
    int ends[2], stderr_before = dup(2);
    char text[256] = {0};
    must(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
    size_t count = sy_scope_report(scope);
    dup2(stderr_before, 2);
    must(count == 3 && read(ends[0], text, sizeof text - 1) > 0);
    must(strcmp(text, "slabyard: scope \"a name that is much longer than\": 3 objects survive "
                      "(2 KiB): 2 of 64 bytes, 1 of 1024 bytes\n") == 0);
    close(ends[0]);
    close(ends[1]);
    close(stderr_before);
    for (size_t i = 0; i < 3; i++) sy_free(objects[i]);
    destroy(scope);
}

/* ---- no memory ---- */

static void *enter_without_memory(void *arg) {
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    must(sy_scope_enter(arg) == -1 && errno == ENOMEM && sy_scope_current() == NULL);
    sy_fake_reset();
    enter(arg);
    leave(arg);
    return NULL;
}

/* It has a record for scopes, and may get no room for what it has ready. Returns whether. */
static void *end_without_memory(void *arg) {
    sy_scope *scope = ((void **)arg)[0];
    pthread_barrier_t *barrier = ((void **)arg)[1];
    sy_free(sy_malloc(64));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    bool entered = sy_scope_enter(scope) == 0;
    must(entered || errno == ENOMEM);
    if (entered) leave(scope);
    pthread_barrier_wait(barrier);
    return entered ? scope : NULL;
}

static void *use_record(void *arg) {
    sy_free(sy_malloc(64));
    pthread_barrier_wait(arg);
    return NULL;
}

/* So many records are there, and unused. */
static void make_records(unsigned count) {
    enum { MOST = 200 };
    pthread_t threads[MOST];
    pthread_barrier_t barrier;
    must(count <= MOST && pthread_barrier_init(&barrier, NULL, count) == 0);
    for (unsigned i = 0; i < count; i++)
        must(pthread_create(&threads[i], NULL, use_record, &barrier) == 0);
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

static void a_thread_ends_that_could_not_enter(void **state) {
    (void)state;
    enum { ENDING = 60 };
    pthread_t threads[ENDING];
    pthread_barrier_t barrier;
    unsigned refused = 0;
    make_records(2 * ENDING);
    sy_scope *scope = make_scope();
    void *shared[2] = {scope, &barrier};
    pthread_barrier_init(&barrier, NULL, ENDING + 1);
    for (unsigned i = 0; i < ENDING; i++)
        must(pthread_create(&threads[i], NULL, end_without_memory, shared) == 0);
    pthread_barrier_wait(&barrier);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_fake_reset();
    for (unsigned i = 0; i < ENDING; i++) {
        void *entered;
        pthread_join(threads[i], &entered);
        refused += !entered;
    }
    must(refused > 0);
    pthread_barrier_destroy(&barrier);
    destroy(scope);
}

static void a_thread_without_memory_stays_outside(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope); /* the library has its records */
    leave(scope);
    pthread_t threads[40];
    for (unsigned i = 0; i < 3; i++) {
        must(pthread_create(&threads[i], NULL, enter_without_memory, scope) == 0);
        pthread_join(threads[i], NULL);
    }
    destroy(scope);
}

/* Sets a limit, and allocates as many objects of 64 bytes as fit below it. */
static size_t fill_to_a_limit(void) {
    sy_trim();
    sy_stats stats;
    sy_get_stats(&stats);
    must(sy_set_limit(&(sy_limit){.hard = stats.slabs + stats.spans + (1 << 20)}) == 0);
    size_t count = 0;
    while (count < MANY && (many[count] = sy_malloc(64)) != NULL) count++;
    return count;
}

static void at_a_limit_an_allocation_in_a_scope_fails(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    sy_free(sy_malloc(64));
    size_t count = fill_to_a_limit();
    must(count < MANY && count > 10000 && errno == ENOMEM);
    must(sy_last_refusal() == SY_REFUSAL_PROCESS_LIMIT);
    sy_free(many[0]);
    sy_thread_flush();
    must((many[0] = sy_malloc(64)) != NULL); /* the hole of the one that was freed */
    must(sy_set_limit(NULL) == 0);
    leave(scope);
    must(live(scope) == count);
    for (size_t i = 0; i < count; i++) sy_free(many[i]);
    destroy(scope);
}

/* No hole is long enough, until neighbours are freed. */
static void what_failed_once_fits_when_neighbours_are_free(void **state) {
    (void)state;
    sy_scope *scope = make_scope();
    enter(scope);
    sy_free(sy_malloc(64));
    sy_free(sy_malloc(512));
    size_t count = fill_to_a_limit();
    for (size_t i = 0; i < count; i += 4) sy_free(many[i]);
    sy_thread_flush();
    must(sy_malloc(512) == NULL && errno == ENOMEM);
    for (size_t i = 0; i < count; i += 4) /* what has failed keeps no smaller object out */
        must((many[i] = sy_malloc(64)) != NULL);
    must(sy_malloc(512) == NULL && errno == ENOMEM);
    for (size_t i = 0; i < count; i++) /* some stay in each lot */
        if (i % 16) sy_free(many[i]);
    sy_thread_flush();
    for (size_t i = 1; i < count; i += 32) must((many[i] = sy_malloc(512)) != NULL);
    for (size_t i = 1; i < count; i += 32) sy_free(many[i]);
    for (size_t i = 0; i < count; i += 16) sy_free(many[i]);
    must(sy_set_limit(NULL) == 0);
    leave(scope);
    must(live(scope) == 0);
    destroy(scope);
}

/* ---- fork ---- */

static sy_scope *of_parent;
static void *of_parent_object;

static void *be_in_scope(void *arg) {
    pthread_barrier_t *barrier = arg;
    enter(of_parent);
    for (int i = 0; i < 60; i++) many[i] = sy_malloc(16 * (size_t)(i % 20 + 1));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (int i = 0; i < 60; i++) sy_free(many[i]);
    leave(of_parent);
    return NULL;
}

static void use_scopes_in_child(void *arg) {
    (void)arg;
    must(sy_scope_current() == of_parent);
    void *object = sy_malloc(100);
    leave(of_parent);
    must(has(of_parent, object) && has(of_parent, of_parent_object));
    must(live(of_parent) == 62); /* what the other thread had ready is back */
    for (int i = 0; i < 60; i++) sy_free(many[i]);
    sy_free(object);
    sy_free(of_parent_object);
    must(live(of_parent) == 0);
    destroy(of_parent); /* the other thread is not in it any more */
    sy_thread_flush();
    sy_trim();
    must(sy_verify() == 0 && sy_mixed_count().all == 0);
}

static void in_a_child_only_the_thread_that_forked_is_in_scopes(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    if (THREAD_SANITIZED) skip(); /* it takes the child's thread for another one */
    pthread_barrier_init(&barrier, NULL, 2);
    of_parent = make_scope();
    must(pthread_create(&thread, NULL, be_in_scope, &barrier) == 0);
    pthread_barrier_wait(&barrier);
    enter(of_parent);
    of_parent_object = sy_malloc(100);
    must(in_child(use_scopes_in_child, NULL) == 0);
    leave(of_parent);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    sy_free(of_parent_object);
    must(live(of_parent) == 0);
    destroy(of_parent);
    pthread_barrier_destroy(&barrier);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_count_begins_in_the_first_scope_of_a_thread),
        TEST(what_is_allocated_in_a_scope_lies_in_it),
        TEST(objects_of_all_sizes_up_to_8_kib_do),
        TEST(all_functions_of_the_heap_allocate_there),
        TEST(inlined_frees_with_a_size_take_objects_of_scopes),
        TEST(what_is_freed_in_a_scope_is_not_given_out_in_it),
        TEST(an_object_freed_twice_is_a_fault),
        TEST(scopes_nest),
        TEST(another_order_is_refused),
        TEST(there_is_a_most_of_nested_scopes),
        TEST(threads_share_a_scope_and_free_each_others_objects),
        TEST(a_flush_reaches_what_was_freed_on_either_side),
        TEST(what_an_ended_thread_has_freed_is_not_live),
        TEST(a_thread_that_ends_leaves_its_scopes),
        TEST(a_scope_in_which_another_thread_is_stays),
        TEST(idle_flush_and_trim_leave_a_scope_as_it_is),
        TEST(caches_are_used_across_scopes),
        TEST(a_read_guard_holds_across_the_borders_of_scopes),
        TEST(what_a_thread_counts_includes_scopes),
        TEST(counts_begin_on_both_sides_of_a_scope),
        TEST(a_callback_of_a_limit_stays_in_its_scope),
        TEST(a_handler_of_faults_may_allocate),
        TEST(a_constructor_cannot_enter),
        TEST(survivors_stay_and_their_holes_serve_all_sizes),
        TEST(the_memory_of_an_emptied_scope_is_free_at_once),
        TEST(a_unit_that_a_leave_empties_goes_back),
        TEST(a_scope_takes_lots_between_survivors_of_the_heap),
        TEST(survivors_beside_lots_are_freed),
        TEST(a_long_scope_uses_its_holes_again),
        TEST(a_small_scope_takes_a_few_kib),
        TEST(survivors_are_reported_by_size),
        TEST(a_thread_without_memory_stays_outside),
        TEST(a_thread_ends_that_could_not_enter),
        TEST(at_a_limit_an_allocation_in_a_scope_fails),
        TEST(what_failed_once_fits_when_neighbours_are_free),
        TEST(in_a_child_only_the_thread_that_forked_is_in_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
