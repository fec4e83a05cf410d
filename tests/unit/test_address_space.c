/*
 * test_address_space.c: how much address space, writable memory and committed memory the library
 * takes, and how it behaves under a limit on one of them. The tests are skipped under a sanitizer,
 * which takes terabytes of address space itself.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "chunk/side.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

static const size_t MIB = 1 << 20;

static void run_in_child(void (*body)(void *), void *arg) {
    if (SANITIZED) skip();
    assert_int_equal(in_child(body, arg), 0);
}

/* The bytes in one row of /proc/self/status. */
static size_t status(const char *row) {
    char line[256];
    size_t found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    must(file != NULL);
    while (!found && fgets(line, sizeof line, file))
        if (!strncmp(line, row, strlen(row))) found = strtoull(line + strlen(row), NULL, 10) << 10;
    fclose(file);
    must(found > 0);
    return found;
}

static size_t address_space(void) { return status("VmSize:"); }

static size_t writable(void) { return status("VmData:"); }

static void set_limit(int resource, size_t bytes) {
    must(setrlimit(resource, &(struct rlimit){bytes, bytes}) == 0);
}

static void *allocate(size_t bytes) {
    char *object = sy_malloc(bytes);
    must(object != NULL);
    object[0] = object[bytes - 1] = 1;
    return object;
}

/* ---- how much ---- */

static void use_a_cache(void *arg) {
    (void)arg;
    size_t space = address_space(), data = writable();
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64});
    void *object = sy_cache_alloc(cache);
    must(object != NULL);
    sy_cache_free(cache, object);
    must(sy_cache_destroy(cache) == 0);
    must(address_space() - space <= 64 * MIB);
    must(writable() - data <= 64 * MIB);
}

static void a_process_with_a_cache_takes_little(void **state) {
    (void)state;
    run_in_child(use_a_cache, NULL);
}

static pthread_barrier_t barrier;

static void *allocate_and_wait(void *arg) {
    (void)arg;
    void *object = allocate(100);
    pthread_barrier_wait(&barrier);
    sy_free(object);
    return NULL;
}

/* All threads run at the same time, with small stacks. The C library's malloc takes no address
 * space for them. */
static void run_threads(int count) {
    must(mallopt(M_ARENA_MAX, 1) == 1);
    pthread_attr_t attributes;
    pthread_t threads[256];
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        must(pthread_create(&threads[i], &attributes, allocate_and_wait, NULL) == 0);
    for (int i = 0; i < count; i++) must(pthread_join(threads[i], NULL) == 0);
}

/* ---- limits ---- */

/* Some of the freed objects wait in magazines, and keep slabs and chunks from being released. */
static void free_all_then_allocate(void *bytes) {
    static void *objects[20000];
    size_t count = 0, got = 0, wanted = 300 * MIB, each = *(size_t *)bytes;
    sy_free(allocate(40000));
    set_limit(RLIMIT_AS, address_space() + 350 * MIB);
    while ((objects[count] = sy_malloc(40000)) != NULL) must(++count < 20000);
    must(count * 40000 > wanted && errno == ENOMEM);
    while (count) sy_free(objects[--count]);
    while (got < wanted && sy_malloc(each)) got += each;
    must(got >= wanted);
}

static void freed_memory_serves_any_size_below_a_limit(void **state) {
    needs(SY_OS_LIMITS);
    (void)state;
    size_t sizes[] = {3000, 300 * MIB};
    for (int i = 0; i < 2; i++) run_in_child(free_all_then_allocate, &sizes[i]);
}

static size_t slabs_of(const sy_cache *cache) {
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    return stats.slabs;
}

/* The freed objects wait in this thread's magazines, and keep a slab of each cache. */
static void free_in_many_caches(void *arg) {
    enum { CACHES = 100, OBJECTS = 20 };
    static sy_cache *caches[CACHES];
    static void *objects[OBJECTS];
    (void)arg;
    for (int i = 0; i < CACHES; i++) {
        caches[i] = sy_cache_create(&(sy_cache_config){.size = 1000});
        for (int j = 0; j < OBJECTS; j++) must((objects[j] = sy_cache_alloc(caches[i])) != NULL);
        for (int j = 0; j < OBJECTS; j++) sy_cache_free(caches[i], objects[j]);
        must(slabs_of(caches[i]) > 0);
    }
    set_limit(RLIMIT_AS, address_space());
    size_t count = 0;
    while (sy_malloc(3000)) must(++count < 20000);
    must(errno == ENOMEM);
    for (int i = 0; i < CACHES; i++) must(slabs_of(caches[i]) == 0);
}

static void freed_objects_of_all_caches_serve_below_a_limit(void **state) {
    needs(SY_OS_LIMITS);
    (void)state;
    run_in_child(free_in_many_caches, NULL);
}

static void start_under_a_limit(void *resource) {
    int which = *(int *)resource;
    set_limit(which, (which == RLIMIT_AS ? address_space() : writable()) + 48 * MIB);
    sy_free(allocate(100));
    sy_free(allocate(8 * MIB));
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 200});
    void *object = sy_cache_alloc(cache);
    must(object != NULL);
    sy_cache_free(cache, object);
    must(sy_cache_destroy(cache) == 0);
    run_threads(4);
}

static void a_limit_at_the_start_is_enough(void **state) {
    (void)state;
    int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) run_in_child(start_under_a_limit, &resources[i]);
}

/* The limit is set late, as by a program that first reads its configuration. */
static void set_a_limit_later(void *resource) {
    sy_free(allocate(100));
    set_limit(*(int *)resource, 200 * MIB);
    void *large = allocate(8 * MIB);
    run_threads(100);
    sy_free(large);
}

static void a_limit_that_comes_later_is_enough(void **state) {
    (void)state;
    int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) run_in_child(set_a_limit_later, &resources[i]);
}

/* Replaces blocks of all sizes. Each block must still hold the bytes that were written to it. */
static void replace_blocks(int rounds, bool may_fail) {
    enum { BLOCKS = 8 };
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    static uint64_t random = 7;
    for (int round = 0; round < rounds; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned at = (unsigned)(random >> 61);
        size_t bytes = (5 + (random >> 40) % 12) * MIB;
        for (size_t i = 0; blocks[at] && i < sizes[at]; i += 4096) must(blocks[at][i] == at + 1);
        if (round % 3) {
            sy_free(blocks[at]);
            blocks[at] = sy_calloc(1, bytes);
            for (size_t i = 0; blocks[at] && i < bytes; i += 4096) must(blocks[at][i] == 0);
        } else {
            unsigned char *grown = sy_realloc(blocks[at], bytes);
            size_t kept = blocks[at] && sizes[at] < bytes ? sizes[at] : bytes;
            for (size_t i = 0; grown && blocks[at] && i < kept; i += 4096) must(grown[i] == at + 1);
            if (!grown) sy_free(blocks[at]);
            blocks[at] = grown;
        }
        must(blocks[at] || (may_fail && errno == ENOMEM));
        sizes[at] = blocks[at] ? bytes : 0;
        if (blocks[at]) memset(blocks[at], (int)at + 1, bytes);
    }
}

/* The limit is below the present size, so the system refuses each request. Nothing is lost. */
static void replace_large_blocks_below_a_limit(void *resource) {
    int which = *(int *)resource;
    replace_blocks(60, false);
    size_t now = which == RLIMIT_AS ? address_space() : writable();
    for (size_t less = 0; less <= 40 * MIB; less += 20 * MIB) {
        set_limit(which, now - less);
        replace_blocks(40, true);
    }
}

static void large_blocks_are_replaced_below_any_limit(void **state) {
    (void)state;
    int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) run_in_child(replace_large_blocks_below_a_limit, &resources[i]);
}

/* A thread that finds no address space for its record works without one, and the others go on. */
static void have_threads_without_records(void *arg) {
    (void)arg;
    enum { THREADS = 30 };
    sy_free(allocate(100));
    sy_fake_fail_above(SY_FAKE_RESERVE, 3 * MIB); /* two records at a time, not four */
    run_threads(THREADS);
    sy_fake_fail_above(SY_FAKE_RESERVE, MIB); /* and none */
    run_threads(2 * THREADS);
}

static void threads_without_space_for_records_work(void **state) {
    (void)state;
    run_in_child(have_threads_without_records, NULL);
}

static void fill(void *resource) {
    int which = *(int *)resource;
    void *last = NULL;
    size_t bytes = 0;
    sy_free(allocate(100));
    set_limit(which, (which == RLIMIT_AS ? address_space() : writable()) + 100 * MIB);
    for (void **object; (object = sy_malloc(1000)) != NULL; bytes += 1000) {
        *object = last;
        last = object;
    }
    must(errno == ENOMEM && bytes >= 90 * MIB);
    while (last) {
        void *next = *(void **)last;
        sy_free(last);
        last = next;
    }
    sy_free(allocate(1000));
}

static void up_to_a_limit_all_can_be_had(void **state) {
    needs(SY_OS_LIMITS);
    (void)state;
    int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) run_in_child(fill, &resources[i]);
}

/* A slab of small objects needs a bitmap beside it. No cache has memory to give back, but there are
 * chunks without runs. */
static void want_a_table_below_a_limit(void *arg) {
    enum { SPAN = 200 * 1024 }; /* in a chunk */
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 16});
    void *last = NULL;
    (void)arg;
    must(cache != NULL);
    sy_free(allocate(SPAN));
    set_limit(RLIMIT_DATA, writable() + 32 * MIB);
    for (void **span; (span = sy_malloc(SPAN)) != NULL; last = span) *span = last;
    for (size_t bytes = SY_SIDE_MAX; bytes >= 32; bytes /= 2)
        while (sy_side_take(bytes)) {}
    while (last) {
        void *next = *(void **)last;
        sy_free(last);
        last = next;
    }
    must(sy_cache_alloc(cache) != NULL);
}

static void chunks_without_runs_make_room_for_tables(void **state) {
    (void)state;
    run_in_child(want_a_table_below_a_limit, NULL);
}

/* ---- committed memory ---- */

/* Requests more than memory and swap together. By default the system refuses this, and so does the
 * library. With vm.overcommit_memory=1 the system refuses nothing, and the test is skipped. */
static void ask_for_too_much(void *arg) {
    (void)arg;
    const size_t huge = PTRDIFF_MAX / 4 * 3;
    void *of_system = malloc(huge);
    if (of_system) return;
    errno = 0;
    must(!sy_malloc(huge) && errno == ENOMEM);
    errno = 0;
    must(!sy_calloc(huge, 1) && errno == ENOMEM);
    errno = 0;
    must(!sy_aligned_alloc(64 * MIB, huge) && errno == ENOMEM);
    char *grows = allocate(5 * MIB);
    errno = 0;
    must(!sy_realloc(grows, huge) && errno == ENOMEM && grows[0] == 1);
    sy_free(grows);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = huge});
    must(!cache || !sy_cache_alloc(cache));
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    must(heap && !sy_heap_alloc(heap, huge));
    must(sy_heap_destroy(heap) == 0 && sy_cache_destroy(cache) == 0);
    must(address_space() < huge);
}

static void what_the_system_does_not_promise_is_refused(void **state) {
    needs(SY_OS_LIMITS | SY_OS_FORKS);
    (void)state;
    run_in_child(ask_for_too_much, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_with_a_cache_takes_little),
        cmocka_unit_test(a_limit_at_the_start_is_enough),
        cmocka_unit_test(a_limit_that_comes_later_is_enough),
        cmocka_unit_test(large_blocks_are_replaced_below_any_limit),
        cmocka_unit_test(threads_without_space_for_records_work),
        cmocka_unit_test(up_to_a_limit_all_can_be_had),
        cmocka_unit_test(chunks_without_runs_make_room_for_tables),
        cmocka_unit_test(freed_memory_serves_any_size_below_a_limit),
        cmocka_unit_test(freed_objects_of_all_caches_serve_below_a_limit),
        cmocka_unit_test(what_the_system_does_not_promise_is_refused),
    };
    return cmocka_run_group_tests_name("address_space", tests, NULL, NULL);
}
