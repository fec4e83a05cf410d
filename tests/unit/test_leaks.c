/*
 * test_leaks.c: live objects are listed by cache and stack, and unreachable ones are distinguished
 * from reachable ones.
 *
 * Memory is searched as it is: a place that held an address long ago may still hold it. So objects
 * that have to be unreachable are allocated in functions of their own, their addresses are kept
 * inverted, and the stack below is overwritten. Even so a few of many may be found reachable. No
 * reachable object may be reported as unreachable.
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "debug/guard.h"
#include "debug/options.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"
#include "support/wide.h"

typedef struct node {
    struct node *next;
    uintptr_t rest[64 / sizeof(uintptr_t) - 1];
} node;

enum {
    MANY = 200,
    ENOUGH = 190, /* of MANY: words in memory may point to the others by chance */
};

static sy_cache *make(const char *name, unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = name, .size = sizeof(node), .flags = flags});
    must(cache != NULL);
    return cache;
}

/* Overwrites the words that earlier calls left on the stack. */
static __attribute__((noinline)) void wipe_stack(void) {
    unsigned char room[32768];
    memset(room, 0, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
}

/* An address that the search does not see. */
static uintptr_t hide(const void *object) { return ~(uintptr_t)object; }

static void *unhide(uintptr_t hidden) { return (void *)~hidden; }

typedef struct sum {
    size_t groups, objects, bytes, last_bytes;
    uintptr_t example; /* hidden */
    size_t stop;
} sum;

static int add(void *arg, const sy_leak *leak) {
    sum *all = arg;
    must(leak->objects > 0 && leak->oldest >= leak->newest && leak->example != NULL);
    must(!all->groups || leak->bytes <= all->last_bytes);
    all->groups++;
    all->objects += leak->objects;
    all->bytes += leak->bytes;
    all->last_bytes = leak->bytes;
    all->example = hide(leak->example);
    return all->groups == all->stop ? 9 : 0;
}

static sum leaks_of(sy_cache *cache, unsigned flags) {
    sum all = {0};
    wipe_stack();
    must(sy_leak_each(cache, flags, add, &all) == 0);
    return all;
}

static size_t unreachable(sy_cache *cache) { return leaks_of(cache, SY_LEAKS_UNREACHABLE).objects; }

/* ---- all live objects ---- */

static __attribute__((noinline)) void *here(sy_cache *cache) {
    void *object = sy_cache_alloc(cache);
    __asm__ volatile("" : : : "memory");
    return object;
}

static __attribute__((noinline)) void *there(sy_cache *cache) {
    void *object = sy_cache_alloc(cache);
    __asm__ volatile("nop" : : : "memory");
    return object;
}

/* Allocates all objects with one stack. */
static __attribute__((noinline)) void repeat(void *(*allocate)(sy_cache *), sy_cache *cache,
                                             void **objects, size_t count) {
    for (size_t i = 0; i < count; i++) objects[i] = allocate(cache);
}

static void groups_are_by_cache_and_stack(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_cache *order = make("order", SY_AUDIT), *trade = make("trade", SY_AUDIT);
    void *objects[6], *others[2];
    repeat(here, order, objects, 6);
    repeat(there, order, others, 2);
    here(trade);
    sy_cache_free(order, objects[0]);
    sum of_order = leaks_of(order, 0), of_all = leaks_of(NULL, 0);
    assert_int_equal(of_order.groups, 2);
    assert_int_equal(of_order.objects, 7);
    assert_int_equal(of_order.bytes, 7 * sizeof(node));
    assert_int_equal(of_order.last_bytes, 2 * sizeof(node));
    assert_int_equal(of_all.groups, 3);
    assert_int_equal(of_all.objects, 8);
    sum largest = {.stop = 1};
    assert_int_equal(sy_leak_each(NULL, 0, add, &largest), 9);
    assert_int_equal(largest.objects, 5);
    assert_ptr_equal(unhide(largest.example), objects[1]);
    sy_cache_destroy_all(order);
    sy_cache_destroy_all(trade);
}

static void what_is_not_audited_is_no_leak(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_cache *plain = make("plain", 0), *checked = make("checked", SY_CHECKED | SY_REDZONE);
    here(plain);
    here(checked);
    assert_int_equal(leaks_of(NULL, 0).objects, 0);
    assert_int_equal(leaks_of(plain, 0).objects, 0);
    sy_cache_destroy_all(plain);
    sy_cache_destroy_all(checked);
}

static void sizes_are_what_was_asked_for(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "sizes", .flags = SY_AUDIT});
    sy_heap_alloc(heap, 100);
    sy_heap_alloc(heap, 101);
    sy_heap_alloc(heap, 5000000);
    assert_int_equal(leaks_of(NULL, 0).bytes, 5000201);
    assert_int_equal(leaks_of(NULL, 0).objects, 3);
    sy_heap_destroy_all(heap);
}

/* Allocates each object with another stack: one at each level of the recursion. */
static __attribute__((noinline)) void go_down(sy_cache *cache, unsigned levels) {
    here(cache);
    if (levels > 1) go_down(cache, levels - 1);
    __asm__ volatile("" : : : "memory");
}

static void flags_that_are_none_are_refused(void **state) {
    (void)state;
    sum all = {0};
    errno = 0;
    assert_int_equal(sy_leak_each(NULL, 2, add, &all), -1);
    assert_int_equal(errno, EINVAL);
}

/* ---- reachable objects ---- */

static node *global;
static void *global_array[3];

static __attribute__((noinline)) void make_chain(sy_cache *cache) {
    for (int i = 0; i < MANY; i++) {
        node *object = sy_cache_alloc(cache);
        object->next = global;
        global = object;
    }
}

static void a_chain_from_a_global_is_reachable(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("chain", SY_AUDIT);
    make_chain(cache);
    assert_int_equal(unreachable(cache), 0);
    assert_int_equal(leaks_of(cache, 0).objects, MANY);
    global = NULL;
    sy_cache_destroy_all(cache);
}

static __attribute__((noinline)) void make_cycles(sy_cache *cache) {
    for (int i = 0; i < MANY / 2; i++) {
        node *one = sy_cache_alloc(cache), *two = sy_cache_alloc(cache);
        one->next = two;
        two->next = one;
    }
}

static void a_cycle_that_nothing_points_to_is_a_leak(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("cycle", SY_AUDIT);
    make_cycles(cache);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    sy_cache_destroy_all(cache);
}

static __attribute__((noinline)) void make_interior(sy_cache *cache) {
    for (int i = 0; i < 3; i++) {
        char *object = sy_cache_alloc(cache);
        global_array[i] = object + (size_t)i * (sizeof(node) - 1) / 2; /* first, middle, last */
    }
}

static void a_pointer_into_an_object_reaches_it(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("interior", SY_AUDIT);
    make_interior(cache);
    assert_int_equal(unreachable(cache), 0);
    sy_cache_destroy_all(cache);
    memset(global_array, 0, sizeof global_array);
}

/* Pointers to the byte behind each object, which lies in the red zone. */
static uintptr_t behind[MANY];

static __attribute__((noinline)) void make_behind(sy_cache *cache) {
    for (int i = 0; i < MANY; i++) behind[i] = (uintptr_t)sy_cache_alloc(cache) + sizeof(node);
}

static void a_pointer_behind_an_object_does_not(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("behind", SY_AUDIT | SY_REDZONE);
    make_behind(cache);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    for (int i = 0; i < MANY; i++) behind[i]--;
    assert_int_equal(unreachable(cache), 0);
    memset(behind, 0, sizeof behind);
    sy_cache_destroy_all(cache);
}

/* Only on the stack or in a register of the calling thread. */
static void what_the_caller_holds_is_reachable(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("held", SY_AUDIT);
    node *object = sy_cache_alloc(cache);
    __asm__ volatile("" : "+r"(object));
    sum all = {0};
    assert_int_equal(sy_leak_each(cache, SY_LEAKS_UNREACHABLE, add, &all), 0);
    assert_int_equal(all.objects, 0);
    __asm__ volatile("" : "+r"(object));
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}

static sem_t asked, answered;

static void *hold_on_stack(void *arg) {
    node *volatile object = sy_cache_alloc(arg);
    sem_post(&asked);
    while (sem_wait(&answered) != 0) continue;
    sy_cache_free(arg, object);
    return NULL;
}

static void what_another_thread_holds_is_reachable(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("elsewhere", SY_AUDIT);
    pthread_t thread;
    must(sem_init(&asked, 0, 0) == 0 && sem_init(&answered, 0, 0) == 0);
    must(pthread_create(&thread, NULL, hold_on_stack, cache) == 0);
    while (sem_wait(&asked) != 0) continue;
    assert_int_equal(leaks_of(cache, 0).objects, 1);
    assert_int_equal(unreachable(cache), 0);
    sem_post(&answered);
    must(pthread_join(thread, NULL) == 0);
    sy_cache_destroy(cache);
}

/* Leaves addresses so deep in the stack that no call overwrites them before the search. */
static __attribute__((noinline)) void leave_on_stack(sy_cache *cache) {
    void *volatile objects[MANY];
    char *volatile above[4000];
    for (int i = 0; i < MANY; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < 4000; i++) above[i] = NULL;
    (void)objects;
    (void)above;
}

static __attribute__((noinline)) void go_deeper_and_leave(sy_cache *cache) {
    volatile char room[30000];
    room[0] = 0;
    leave_on_stack(cache);
    room[1] = 0;
    (void)room;
}

static void what_lies_below_the_stack_reaches_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("below", SY_AUDIT);
    sum all = {0};
    go_deeper_and_leave(cache);
    assert_int_equal(sy_leak_each(cache, SY_LEAKS_UNREACHABLE, add, &all), 0);
    assert_in_range(all.objects, ENOUGH, MANY);
    sy_cache_destroy_all(cache);
}

/* ---- other kinds of memory ---- */

/* Puts the only pointers to MANY objects into `place`. */
static __attribute__((noinline)) void put(sy_cache *cache, void **place) {
    for (int i = 0; i < MANY; i++) place[i] = sy_cache_alloc(cache);
}

static uintptr_t hidden_place;

static void expect_roots(sy_cache *cache, const char *what) {
    size_t lost = unreachable(cache);
    if (lost) fprintf(stderr, "of %s: %zu lost\n", what, lost);
    assert_int_equal(lost, 0);
}

static __attribute__((noinline)) void put_into_heap(sy_cache *cache, size_t bytes) {
    void **place = sy_malloc(bytes);
    must(place != NULL);
    hidden_place = hide(place);
    put(cache, place);
}

/* The heap's objects are not audited. So they are no leaks themselves, and are searched even if
 * nothing points to them. */
static void objects_of_the_heap_are_roots(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    const size_t sizes[] = {MANY * sizeof(void *), 200000, 6 << 20};
    for (int i = 0; i < 3; i++) {
        sy_cache *cache = make("of heap", SY_AUDIT);
        put_into_heap(cache, sizes[i]);
        expect_roots(cache, "the heap");
        sy_free(unhide(hidden_place));
        sy_thread_flush();
        assert_in_range(unreachable(cache), ENOUGH, MANY);
        sy_cache_destroy_all(cache);
    }
}

static __attribute__((noinline)) void put_into_cache(sy_cache *cache, sy_cache *holder) {
    void **place = sy_cache_alloc(holder);
    hidden_place = hide(place);
    put(cache, place);
}

static void objects_of_a_plain_cache_are_roots(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    const unsigned flags[] = {0, SY_CHECKED, SY_REDZONE};
    for (int i = 0; i < 3; i++) {
        sy_cache *cache = make("of cache", SY_AUDIT);
        sy_cache *holder =
            sy_cache_create(&(sy_cache_config){.size = MANY * sizeof(void *), .flags = flags[i]});
        put_into_cache(cache, holder);
        expect_roots(cache, "a plain cache");
        sy_cache_free(holder, unhide(hidden_place));
        sy_thread_flush();
        assert_in_range(unreachable(cache), ENOUGH, MANY);
        sy_cache_destroy(holder);
        sy_cache_destroy_all(cache);
    }
}

static uintptr_t holders[MANY];

static __attribute__((noinline)) void make_pairs(sy_cache *cache, sy_cache *holder) {
    for (int i = 0; i < MANY; i++) {
        node *one = sy_cache_alloc(holder);
        one->next = sy_cache_alloc(cache);
        holders[i] = hide(one);
    }
}

static void an_audited_object_is_none_unless_it_is_reached(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("inner", SY_AUDIT), *holder = make("outer", SY_AUDIT);
    make_pairs(cache, holder);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    for (int i = 0; i < MANY; i++) holders[i] = ~holders[i];
    assert_int_equal(unreachable(cache), 0);
    assert_int_equal(unreachable(holder), 0);
    memset(holders, 0, sizeof holders);
    sy_cache_destroy_all(holder);
    sy_cache_destroy_all(cache);
}

/* Guarded objects are found, and their content is searched, as in slabs. */
static void guarded_objects_are_searched_too(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    assert_int_equal(sy_set_options("guard=all"), 0);
    sy_cache *cache = make("guarded", SY_AUDIT | SY_GUARD);
    sy_cache *held = make("held", SY_AUDIT | SY_GUARD);
    sy_cache *holder = sy_cache_create(
        &(sy_cache_config){.name = "holder", .size = MANY * sizeof(void *), .flags = SY_GUARD});
    make_cycles(cache);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    make_chain(cache);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    void **objects = sy_cache_alloc(holder);
    assert_true(sy_guard_owns((uintptr_t)objects) && sy_guard_owns((uintptr_t)global));
    put(held, objects);
    assert_int_equal(unreachable(held), 0);
    global = NULL;
    assert_in_range(unreachable(cache), MANY + ENOUGH, 2 * MANY);
    assert_int_equal(sy_set_options("guard=off"), 0);
    sy_cache_destroy_all(holder);
    sy_cache_destroy_all(held);
    sy_cache_destroy_all(cache);
}

static __attribute__((noinline)) void put_into_pool(sy_cache *cache, sy_pool *pool) {
    put(cache, sy_pool_alloc(pool));
}

static void pools_and_other_memory_are_roots(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("of pool", SY_AUDIT), *other = make("of malloc", SY_AUDIT);
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = MANY * sizeof(void *)});
    void **place = malloc(MANY * sizeof(void *));
    void **mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    put_into_pool(cache, pool);
    put(other, place);
    put(other, mapped + 5000);
    expect_roots(cache, "a pool");
    expect_roots(other, "malloc and mmap");
    munmap(mapped, 1 << 20);
    assert_in_range(unreachable(other), ENOUGH, MANY + 10);
    free(place);
    sy_pool_destroy(pool);
    sy_cache_destroy_all(cache);
    sy_cache_destroy_all(other);
}

/* The program's own memory, shared between processes. */
static void caches_over_shared_memory_are_searched(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    const size_t bytes = 16 << 20;
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = bytes});
    must(memory != NULL);
    sy_cache *holder =
        sy_cache_create(&(sy_cache_config){.size = MANY * sizeof(void *), .memory = memory});
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.size = sizeof(node), .memory = memory, .flags = SY_AUDIT});
    put_into_cache(cache, holder);
    expect_roots(cache, "shared memory");
    sy_cache_free(holder, unhide(hidden_place));
    sy_thread_flush();
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    sy_cache_destroy_all(holder);
    sy_cache_destroy_all(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, bytes);
}

/* A mapping with few pages in memory, and a guard page in it. */
static void what_holds_nothing_is_not_read(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    needs_wide_addresses();
    sy_cache *cache = make("sparse", SY_AUDIT);
    const size_t bytes = (size_t)8 << 30, page = 4096;
    char *sparse = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(sparse != MAP_FAILED);
    madvise(sparse + page, page, 102); /* MADV_GUARD_INSTALL, if the kernel has it */
    put(cache, (void **)(void *)(sparse + bytes / 2));
    expect_roots(cache, "a sparse mapping");
    munmap(sparse, bytes);
    sy_cache_destroy_all(cache);
}

/* ---- addresses in the library's own memory do not count ---- */

static __attribute__((noinline)) void lose(sy_cache *cache, size_t count) {
    for (size_t i = 0; i < count; i++) must(sy_cache_alloc(cache) != NULL);
}

static void the_history_reaches_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    atomic_store(&sy_options_now.audit_log, 1024);
    sy_cache *cache = make("history", SY_AUDIT);
    atomic_store(&sy_options_now.audit_log, 0);
    lose(cache, MANY);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    sy_cache_destroy_all(cache);
}

static __attribute__((noinline)) void use_quarantine(sy_cache *cache) {
    void *objects[MANY];
    for (int i = 0; i < MANY; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < MANY; i++) sy_cache_free(cache, objects[i]);
    memset(objects, 0, sizeof objects);
    __asm__ volatile("" : : "r"(objects) : "memory");
}

static void the_quarantine_reaches_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.size = sizeof(node), .limit = MANY, .flags = SY_AUDIT | SY_QUARANTINE});
    use_quarantine(cache); /* lose() gets these objects again: the limit allows no more */
    lose(cache, MANY);
    assert_in_range(unreachable(cache), ENOUGH, MANY);
    sy_cache_destroy_all(cache);
}

/* Descriptors of slabs, boundary tags, directories of ordinals, and the table of large objects that
 * ended hold the objects' addresses. */
static void tables_reach_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    const size_t sizes[] = {sizeof(node), 100000, 200000, 5 << 20};
    for (int i = 0; i < 8; i++) {
        unsigned flags = i < 4 ? SY_AUDIT : SY_AUDIT | SY_HANDLES;
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = sizes[i % 4], .flags = flags});
        lose(cache, 60);
        assert_in_range(unreachable(cache), 40, 60); /* a few addresses are left on the stack */
        sy_cache_destroy_all(cache);
    }
}

/* ---- handles ---- */

static sy_handle handles[MANY];

static __attribute__((noinline)) void make_handles(sy_cache *cache) {
    for (int i = 0; i < MANY; i++) must(sy_handle_alloc(cache, &handles[i]) != NULL);
}

static void a_handle_reaches_its_object(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("handles", SY_AUDIT | SY_HANDLES);
    make_handles(cache);
    assert_int_equal(unreachable(cache), 0);
    for (int i = 0; i < MANY; i++) handles[i] += (uint64_t)1 << 32; /* another generation */
    /* The first handles look like two small integers, as there are in other memory. */
    assert_in_range(unreachable(cache), MANY / 2, MANY);
    sy_cache_destroy_all(cache);
    memset(handles, 0, sizeof handles);
}

/* ---- reports ---- */

static void report_all(void *arg) { sy_report_leaks(arg, 0); }

static const char *written_by(void (*body)(void *), void *arg) {
    assert_false(sy_fake_catch(body, arg));
    return sy_fake_written();
}

static void a_report_says_what_and_where(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_cache *cache = make("order", SY_AUDIT);
    void *objects[3];
    repeat(here, cache, objects, 3);
    there(cache);
    const char *text = written_by(report_all, cache);
    const char *first = strstr(text, "slabyard: 3 objects leaked: 192 bytes in cache \"order\"");
    const char *second = strstr(text, "slabyard: 1 object leaked: 64 bytes in cache \"order\"");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(text, ", allocated "));
    assert_non_null(strstr(text, " ago by:\n"));
    assert_non_null(strstr(text, "  total: 4 objects, 256 bytes\n"));
    assert_int_equal(sy_report_leaks(make("none", SY_AUDIT), 0), 0);
    sy_cache_destroy_all(cache);
}

/* Three stacks: two lead to the line in `here`, one to that in `there`, which has more bytes than
 * each of the two, and fewer than both. */
static __attribute__((noinline)) void repeat_otherwise(void *(*allocate)(sy_cache *),
                                                       sy_cache *cache, void **objects,
                                                       size_t count) {
    repeat(allocate, cache, objects, count);
    __asm__ volatile("nop" : : : "memory");
}

static void the_line_with_the_most_bytes_comes_first(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_cache *cache = make("order", SY_AUDIT);
    void *objects[9];
    repeat(here, cache, objects, 3);
    repeat(there, cache, objects + 3, 4);
    repeat_otherwise(here, cache, objects + 7, 2);
    const char *text = written_by(report_all, cache);
    const char *three = strstr(text, "slabyard: 3 objects leaked:");
    const char *two = strstr(text, "slabyard: 2 objects leaked:");
    const char *four = strstr(text, "slabyard: 4 objects leaked:");
    assert_true(three && two && four);
    assert_true(three < two && two < four);
    sy_cache_destroy_all(cache);
}

static void without_leaks_nothing_is_written(void **state) {
    (void)state;
    sy_cache *cache = make("none", SY_AUDIT);
    sy_cache_free(cache, here(cache));
    assert_string_equal(written_by(report_all, cache), "");
    sy_cache_destroy(cache);
}

static void a_report_asks_one_child_for_all_stacks(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("deep", SY_AUDIT);
    go_down(cache, 5);
    assert_int_equal(leaks_of(cache, 0).groups, 5);
    sy_fake_reset();
    assert_non_null(strstr(written_by(report_all, cache), "  total: 5 objects"));
    assert_int_equal(sy_fake_calls(SY_FAKE_ASK_CHILD), sy_os_is_traced() ? 0 : 1);
    sy_cache_destroy_all(cache);
}

static void destroy(void *arg) {
    errno = 0;
    must(sy_cache_destroy(arg) == -1 && errno == EBUSY);
}

static void destroy_all(void *arg) { sy_cache_destroy_all(arg); }

static void destroy_heap(void *arg) {
    errno = 0;
    must(sy_heap_destroy(arg) == -1 && errno == EBUSY);
}

static void destroy_whole_heap(void *arg) { sy_heap_destroy_all(arg); }

static void search_takes_a_second(void) { sy_fake_advance_clock(UINT64_C(1000000000)); }

static int note_age(void *age, const sy_leak *leak) {
    *(uint64_t *)age = leak->oldest;
    return leak->allocated.age != leak->oldest;
}

/* The age of an object is what it was when the search began, however long that takes. */
static void ages_are_from_before_the_search(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("old", SY_AUDIT);
    uint64_t age = 0;
    sy_fake_set_clock(1000);
    for (int i = 0; i < MANY; i++) here(cache);
    sy_fake_advance_clock(500);
    sy_fake_run_before(SY_FAKE_ASK_COPY, search_takes_a_second);
    assert_int_equal(sy_leak_each(cache, SY_LEAKS_UNREACHABLE, note_age, &age), 0);
    sy_fake_reset();
    assert_int_equal(age, 500);
    sy_cache_destroy_all(cache);
}

static __attribute__((noinline)) void fill_heap(sy_heap *heap, const size_t *sizes, size_t count) {
    for (size_t i = 0; i < count; i++) must(sy_heap_alloc(heap, sizes[i]) != NULL);
}

/* The report of a heap is one, so that no age contains the time that a report takes. */
static void a_heap_has_one_report(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant", .flags = SY_AUDIT});
    const size_t sizes[] = {50, 100, 150, 200, 250};
    volatile size_t count = 5; /* not known, so that the loop is not unrolled: one stack */
    fill_heap(heap, sizes, count);
    must(sy_heap_alloc(heap, 60) != NULL);
    atomic_store(&sy_options_now.leaks, SY_LEAKS_AT_DESTROY);
    const char *text = written_by(destroy_heap, heap);
    atomic_store(&sy_options_now.leaks, 0);
    const char *group = strstr(text, "slabyard: 5 objects of 50 to 250 bytes leaked: 750 bytes in "
                                     "cache \"tenant\", allocated ");
    assert_non_null(group);
    assert_non_null(strstr(group, "slabyard: 1 object leaked: 60 bytes in cache \"tenant-64\""));
    const char *total = strstr(text, "  total: 6 objects, 810 bytes\n");
    assert_true(total && total > group && !strstr(total + strlen("  total"), "  total"));
    sy_heap_destroy_all(heap);
}

static void destroying_reports_by_the_option(void **state) {
    (void)state;
    const char *line = "slabyard: 1 object leaked: 64 bytes in cache \"left\"";
    sy_cache *cache = make("left", SY_AUDIT), *plain = make("left", 0);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "left", .flags = SY_AUDIT});
    here(cache);
    here(plain);
    sy_heap_alloc(heap, 77);
    assert_string_equal(written_by(destroy, cache), "");
    atomic_store(&sy_options_now.leaks, SY_LEAKS_AT_DESTROY);
    assert_non_null(strstr(written_by(destroy, cache), line));
    assert_string_equal(written_by(destroy, plain), "");
    assert_non_null(strstr(written_by(destroy_heap, heap), "1 object leaked: 77 bytes"));
    assert_non_null(strstr(written_by(destroy_all, cache), line));
    assert_non_null(strstr(written_by(destroy_whole_heap, heap), "1 object leaked: 77 bytes"));
    atomic_store(&sy_options_now.leaks, 0);
    sy_cache_destroy_all(plain);
}

/* Starts a process that ends with a leak, with the option `arg`, and checks what it writes. */
static void end_with_leaks(void *arg) {
    int fds[2];
    char text[4096] = "";
    unsigned option = *(unsigned *)arg;
    must(pipe(fds) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], 2);
        close(fds[0]);
        sy_options_load(); /* not later, which would overwrite the option below */
        atomic_store(&sy_options_now.leaks, option);
        sy_cache *cache = make("at exit", SY_AUDIT);
        global = here(cache);
        exit(0);
    }
    close(fds[1]);
    for (size_t length = 0; length < sizeof text - 1;) {
        ssize_t bytes = read(fds[0], text + length, sizeof text - 1 - length);
        if (bytes <= 0) break;
        length += (size_t)bytes;
    }
    must(waitpid(pid, NULL, 0) == pid);
    bool told = strstr(text, "1 object leaked: 64 bytes in cache \"at exit\"") != NULL;
    must(told == (option == SY_LEAKS_AT_EXIT)); /* reachable, so not reported as lost */
    must(told || !*text);
}

/* Each in a process in which the library has not started. */
static void the_end_of_the_process_reports(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    const unsigned options[] = {0, SY_LEAKS_AT_EXIT, SY_LEAKS_AT_EXIT | SY_LEAKS_LOST};
    for (int i = 0; i < 3; i++) {
        unsigned option = options[i];
        assert_int_equal(in_child(end_with_leaks, &option), 0);
    }
}

/* ---- failures ---- */

static void start_without_exit(void *arg) {
    (void)arg;
    sy_options_load();
    atomic_store(&sy_options_now.leaks, SY_LEAKS_AT_EXIT);
    sy_fake_fail_nth(SY_FAKE_AT_EXIT, 1);
    errno = 0;
    must(sy_cache_create(&(sy_cache_config){.size = 8}) == NULL && errno == ENOMEM);
    must(sy_cache_create(&(sy_cache_config){.size = 8}) != NULL);
    must(sy_fake_calls(SY_FAKE_AT_EXIT) == 2);
}

static void a_start_that_cannot_report_at_the_end_fails(void **state) {
    (void)state;
    assert_int_equal(in_child(start_without_exit, NULL), 0);
}

static void more_groups_take_more_room(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    enum { CACHES = 300, STACKS = 5 };
    sy_cache *caches[CACHES];
    for (int i = 0; i < CACHES; i++) {
        caches[i] = make("deep", SY_AUDIT);
        go_down(caches[i], STACKS);
    }
    for (unsigned flags = 0; flags <= SY_LEAKS_UNREACHABLE; flags++) {
        sum all = leaks_of(NULL, flags);
        assert_in_range(all.groups, flags ? 1100 : CACHES * STACKS, CACHES * STACKS);
        assert_int_equal(all.objects, all.groups);
    }
    for (int i = 0; i < CACHES; i++) sy_cache_destroy_all(caches[i]);
}

/* Makes each call of this kind fail, also in the copy of the process. Returns how many there
 * are. */
static uint64_t fail_each(sy_fake_call call, sy_cache *cache, unsigned flags) {
    size_t before = sy_fake_reserved();
    for (uint64_t n = 1;; n++) {
        sum all = {0};
        sy_fake_fail_nth(call, n);
        errno = 0;
        int result = sy_leak_each(cache, flags, add, &all);
        sy_fake_reset();
        assert_int_equal(sy_fake_reserved(), before);
        if (result == 0) return n - 1;
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(all.groups, 0);
    }
}

static void every_call_that_fails_is_told(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    if (THREAD_SANITIZED) skip(); /* takes 20 s, and has one thread only */
    sy_cache *cache = make("fails", SY_AUDIT);
    lose(cache, 3);
    for (sy_fake_call call = SY_FAKE_RESERVE; call <= SY_FAKE_COMMIT; call++) {
        assert_int_equal(fail_each(call, cache, 0), 2);
        assert_int_equal(fail_each(call, cache, SY_LEAKS_UNREACHABLE), 3);
    }
    assert_int_equal(fail_each(SY_FAKE_ASK_COPY, cache, SY_LEAKS_UNREACHABLE), 1);
    assert_int_equal(fail_each(SY_FAKE_EACH_WRITTEN, cache, SY_LEAKS_UNREACHABLE), 1);
    assert_int_equal(fail_each(SY_FAKE_ASK_COPY, cache, 0), 0);
    sy_fake_fail_nth(SY_FAKE_RESERVE, 1);
    assert_non_null(strstr(written_by(report_all, cache), "leaks could not be looked for"));
    sy_fake_reset();
    sy_cache_destroy_all(cache);
}

/* ---- other threads go on ---- */

static _Atomic bool over;

static void *work(void *cache) {
    void *objects[50] = {NULL};
    for (unsigned i = 0; !atomic_load(&over); i++) {
        if (objects[i % 50]) sy_cache_free(cache, objects[i % 50]);
        objects[i % 50] = sy_cache_alloc(cache);
        if (i % 1000 == 0) sy_cache_trim(cache);
    }
    for (int i = 0; i < 50; i++)
        if (objects[i]) sy_cache_free(cache, objects[i]);
    return NULL;
}

static void others_go_on_meanwhile(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    sy_cache *cache = make("busy", SY_AUDIT);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) must(pthread_create(&threads[i], NULL, work, cache) == 0);
    for (int i = 0; i < 50; i++) assert_in_range(leaks_of(cache, 0).objects, 0, 100);
    /* The threads' objects are on their stacks or, for a moment, in a register. */
    for (int i = 0; i < 50 && !THREAD_SANITIZED; i++) assert_in_range(unreachable(cache), 0, 2);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) must(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(leaks_of(cache, 0).objects, 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_the_process_reports), /* these two before the library starts */
        cmocka_unit_test(a_start_that_cannot_report_at_the_end_fails),
        cmocka_unit_test(groups_are_by_cache_and_stack),
        cmocka_unit_test(what_is_not_audited_is_no_leak),
        cmocka_unit_test(sizes_are_what_was_asked_for),
        cmocka_unit_test(flags_that_are_none_are_refused),
        cmocka_unit_test(a_chain_from_a_global_is_reachable),
        cmocka_unit_test(a_cycle_that_nothing_points_to_is_a_leak),
        cmocka_unit_test(a_pointer_into_an_object_reaches_it),
        cmocka_unit_test(a_pointer_behind_an_object_does_not),
        cmocka_unit_test(what_the_caller_holds_is_reachable),
        cmocka_unit_test(what_another_thread_holds_is_reachable),
        cmocka_unit_test(what_lies_below_the_stack_reaches_nothing),
        cmocka_unit_test(objects_of_the_heap_are_roots),
        cmocka_unit_test(objects_of_a_plain_cache_are_roots),
        cmocka_unit_test(an_audited_object_is_none_unless_it_is_reached),
        cmocka_unit_test(guarded_objects_are_searched_too),
        cmocka_unit_test(pools_and_other_memory_are_roots),
        cmocka_unit_test(caches_over_shared_memory_are_searched),
        cmocka_unit_test(what_holds_nothing_is_not_read),
        cmocka_unit_test(the_history_reaches_nothing),
        cmocka_unit_test(the_quarantine_reaches_nothing),
        cmocka_unit_test(tables_reach_nothing),
        cmocka_unit_test(a_handle_reaches_its_object),
        cmocka_unit_test(a_report_says_what_and_where),
        cmocka_unit_test(a_report_asks_one_child_for_all_stacks),
        cmocka_unit_test(the_line_with_the_most_bytes_comes_first),
        cmocka_unit_test(a_heap_has_one_report),
        cmocka_unit_test(without_leaks_nothing_is_written),
        cmocka_unit_test(ages_are_from_before_the_search),
        cmocka_unit_test(destroying_reports_by_the_option),
        cmocka_unit_test(more_groups_take_more_room),
        cmocka_unit_test(every_call_that_fails_is_told),
        cmocka_unit_test(others_go_on_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
