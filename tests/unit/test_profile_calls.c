/*
 * test_profile_calls.c: profiles of a program that is linked with the library
 * (magazine/profiled.h): objects of sy_malloc, of separate heaps and of caches, which programs
 * allocate and free inline. That the estimates have no bias, that live bytes are those of the
 * program, and what happens when a profile begins and ends while threads run. Random numbers have
 * fixed seeds. Each test runs in a child.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/profile.h>
#include <slabyard/slabyard.h>

#include "debug/interval.h"
#include "debug/profile.h"
#include "os/os.h"
#include "support/child.h"
#include "support/profiles.h"
#include "support/services.h"

static void begin(size_t mean) {
    sy_interval_seed(42);
    must(sy_profile_start(mean) == 0);
}

static uint64_t live_bytes(void) {
    sy_profile_site sum = sums();
    return sum.allocated_bytes - sum.freed_bytes;
}

/* As good as each object of a hundred bytes or more is sampled. */
enum { ALL = 1 };

/* If ALL objects are sampled. */
static bool has_live(size_t bytes) { return is_near((double)live_bytes(), (double)bytes, 0.02); }

/* ---- the file ---- */

/* A number of 7 bits a byte, as Protocol Buffers have it; moves *at behind it. */
static uint64_t take_number(const uint8_t **at) {
    uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return number;
    }
}

/* The last of a sample's values, inuse_space. Sets *depth to the number of its locations. */
static uint64_t space_of_sample(const uint8_t *at, const uint8_t *end, unsigned *depth) {
    uint64_t last = 0;
    for (*depth = 0; at < end;) {
        uint64_t key = take_number(&at), number = take_number(&at);
        if (key >> 3 == 1) ++*depth;
        if (key >> 3 == 2) last = number;
    }
    return last;
}

/* The sum of inuse_space in the profile's file, in the format of pprof. Each sample has a stack. */
static uint64_t live_bytes_in_file(void) {
    static uint8_t bytes[1 << 20];
    FILE *file = tmpfile();
    must(file && sy_profile_write(fileno(file)) == 0);
    rewind(file);
    const uint8_t *at = bytes, *end = bytes + fread(bytes, 1, sizeof bytes, file);
    must(fclose(file) == 0 && end < bytes + sizeof bytes);
    uint64_t sum = 0;
    while (at < end) {
        uint64_t key = take_number(&at), number = take_number(&at);
        if ((key & 7) == 0) continue;
        unsigned depth = 0;
        if (key >> 3 == 2) sum += space_of_sample(at, at + number, &depth);
        must(key >> 3 != 2 || depth > 2);
        at += number;
    }
    return sum;
}

/* ---- ways to allocate ---- */

/* A way to get and to free objects; what `alloc` gets, `release` frees. */
typedef struct way {
    const char *name;
    void *(*alloc)(size_t size);
    void (*release)(void *object, size_t size);
    size_t most; /* size that it has objects of, of any smaller size too; `fixed`: of this alone */
    bool fixed;
} way;

static sy_cache *cache, *zeroing, *exact;
static sy_heap *heap;

static void *alloc_any(size_t size) { return sy_malloc(size); }
static void free_any(void *object, size_t size) {
    if (size % 2)
        sy_free(object);
    else
        sy_free_sized(object, size);
}
static void *alloc_constant(size_t size) {
    (void)size;
    return sy_malloc(100); /* inline: the compiler knows the size */
}
static void free_constant(void *object, size_t size) {
    (void)size;
    sy_free_sized(object, 100);
}
static void *alloc_cache(size_t size) {
    (void)size;
    return sy_cache_alloc(cache);
}
static void free_cache(void *object, size_t size) {
    (void)size;
    sy_cache_free(cache, object);
}
static void *alloc_zeroing(size_t size) {
    (void)size;
    return sy_cache_alloc(zeroing);
}
static void free_zeroing(void *object, size_t size) {
    (void)size;
    sy_cache_free(zeroing, object);
}
static void *alloc_exact(size_t size) {
    (void)size;
    return sy_cache_alloc(exact);
}
static void free_exact(void *object, size_t size) {
    (void)size;
    must(sy_cache_try_free(exact, object));
}
static void *alloc_batch(size_t size) {
    static SY_TLS void *objects[10];
    static SY_TLS size_t left;
    (void)size;
    if (!left) left = sy_cache_alloc_batch(cache, objects, 10);
    return objects[--left];
}
static void *alloc_heap(size_t size) { return sy_heap_alloc(heap, size); }
static void free_heap(void *object, size_t size) {
    if (size % 2)
        sy_heap_free(heap, object);
    else
        sy_heap_free_sized(heap, object, size);
}
static void *alloc_grown(size_t size) { return sy_realloc(sy_malloc(size / 2 + 1), size); }
static void *alloc_zeroed(size_t size) { return sy_calloc(1, size); }
static void *alloc_aligned(size_t size) { return sy_aligned_alloc(64, size); }
static void free_aligned(void *object, size_t size) { sy_free_aligned_sized(object, 64, size); }

static const way ways[] = {
    {"sy_malloc", alloc_any, free_any, 2000, false},
    {"sy_malloc, constant", alloc_constant, free_constant, 100, true},
    {"sy_cache_alloc", alloc_cache, free_cache, 200, true},
    {"SY_ZERO", alloc_zeroing, free_zeroing, 200, true},
    {"SY_LIMIT_EXACT", alloc_exact, free_exact, 200, true},
    {"sy_cache_alloc_batch", alloc_batch, free_cache, 200, true},
    {"sy_heap_alloc", alloc_heap, free_heap, 2000, false},
    {"sy_realloc", alloc_grown, free_any, 2000, false},
    {"sy_calloc", alloc_zeroed, free_any, 2000, false},
    {"sy_aligned_alloc", alloc_aligned, free_aligned, 2000, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void open_all(void) {
    cache = sy_cache_create(&(sy_cache_config){.name = "orders", .size = 200});
    zeroing = sy_cache_create(&(sy_cache_config){.name = "keys", .size = 200, .flags = SY_ZERO});
    exact = sy_cache_create(
        &(sy_cache_config){.name = "few", .size = 200, .limit = 1 << 20, .flags = SY_LIMIT_EXACT});
    heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    must(cache && zeroing && exact && heap);
}

/* ---- the estimates ---- */

/* Entries of a table are replaced one by one, each by a new object in the place of the one before:
 * all of them in the magazines, without a slow path. */
static void live_bytes_are_those_of(const way *it) {
    enum { COUNT = 50000 };
    static void *objects[COUNT];
    static size_t sizes[COUNT];
    uint64_t random = 7, live = 0;
    begin(512);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < COUNT; i++) {
            if (objects[i]) it->release(objects[i], sizes[i]);
            live -= sizes[i];
            sizes[i] = it->fixed ? it->most : 16 + next_random(&random) % (it->most - 16);
            objects[i] = it->alloc(sizes[i]);
            live += sizes[i];
        }
    double found = (double)live_bytes_in_file();
    printf("%s: live bytes %.4f of the truth\n", it->name, found / (double)live);
    must(is_near(found, (double)live, 0.03));
    for (int i = 0; i < COUNT; i++) it->release(objects[i], sizes[i]);
    if (it->alloc != alloc_batch) must(live_bytes() == 0);
    must(sy_verify() == 0);
    must(sy_profile_stop() == 0);
    memset(objects, 0, sizeof objects);
    memset(sizes, 0, sizeof sizes);
}

static void live_bytes_are_those_of_the_program_here(void *arg) {
    (void)arg;
    open_all();
    for (int i = 0; i < WAYS; i++) live_bytes_are_those_of(&ways[i]);
}
RUN(live_bytes_are_those_of_the_program)

/* Each run allocates and frees at the same place of a magazine, which no slow path would see. */
static double estimate_of_a_run(const way *it) {
    enum { OBJECTS = 600 };
    uint64_t before = sums().allocated_bytes;
    for (int i = 0; i < OBJECTS; i++) it->release(it->alloc(it->most), it->most);
    return (double)(sums().allocated_bytes - before) / (double)(OBJECTS * it->most);
}

static double chance_of(const way *it, size_t mean) {
    double bytes = (double)(it->fixed ? sy_cache_slot_size(cache) : sy_good_size(it->most));
    return bytes / (bytes + (double)mean);
}

/* An object of s bytes that has the chance p contributes s / p with this chance. So the variance of
 * the estimate of n objects, as a part of the truth, is (1 - p) / p / n. */
static void estimates_are_unbiased_here(void *arg) {
    enum { RUNS = 10000, MEAN = 8 << 10 };
    static const way *const chosen[] = {&ways[0], &ways[2]};
    (void)arg;
    open_all();
    for (int i = 0; i < 2; i++) {
        double sum = 0, squares = 0, chance = chance_of(chosen[i], MEAN);
        begin(MEAN);
        for (int run = 0; run < RUNS; run++) {
            double error = estimate_of_a_run(chosen[i]) - 1;
            sum += error;
            squares += error * error;
        }
        double variance = squares / RUNS / ((1 - chance) / chance / 600);
        printf("%s: bias %.4f, variance %.4f of the expected one\n", chosen[i]->name, sum / RUNS,
               variance);
        must(sum / RUNS > -0.01 && sum / RUNS < 0.01);
        must(variance > 0.93 && variance < 1.07);
        must(live_bytes() == 0);
        must(sy_profile_stop() == 0);
    }
}
RUN(estimates_are_unbiased)

static void samples_stay_with_objects_that_move_here(void *arg) {
    enum { COUNT = 20000, KEPT = COUNT / 10, SIZE = 112 };
    static void *objects[COUNT];
    size_t moves = 0;
    (void)arg;
    begin(ALL);
    for (int i = 0; i < COUNT; i++) must((objects[i] = sy_malloc(SIZE)));
    for (int i = 0; i < COUNT; i++)
        if (i % 10) sy_free(objects[i]);
    for (int i = 0; i < COUNT; i += 10) {
        void *moved = sy_try_move(objects[i]);
        if (moved) objects[i] = moved, moves++;
    }
    must(moves > KEPT / 2 && has_live((size_t)KEPT * SIZE));
    for (int i = 0; i < COUNT; i += 10) sy_free(objects[i]);
    must(live_bytes() == 0 && sy_verify() == 0);
}
RUN(samples_stay_with_objects_that_move)

static void spans_are_in_the_profile_here(void *arg) {
    enum { COUNT = 2000, SIZE = 1 << 20 };
    static void *spans[COUNT];
    (void)arg;
    begin(SIZE);
    for (int i = 0; i < COUNT; i++) spans[i] = i % 2 ? sy_malloc(SIZE) : sy_calloc(1, SIZE);
    must(is_near((double)live_bytes(), (double)COUNT * SIZE, 0.1)); /* four standard deviations */
    for (int i = 0; i < COUNT; i++) sy_expand(spans[i], SIZE - (SIZE >> 4));
    must(is_near((double)live_bytes(), COUNT * (SIZE - SIZE / 16.0), 0.1));
    for (int i = 0; i < COUNT; i++) sy_free(spans[i]);
    must(live_bytes() == 0);
}
RUN(spans_are_in_the_profile)

/* ---- beginnings and ends ---- */

/* The cache has a loaded magazine before the profile begins, whose slot has to be shut. */
static void a_profile_begins_in_the_midst_here(void *arg) {
    (void)arg;
    open_all();
    for (int i = 0; i < 1000; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    for (int i = 0; i < 3; i++) {
        begin(ALL);
        void *object = sy_cache_alloc(cache);
        must(sums().allocated == 1 && has_live(200));
        sy_cache_free(cache, object);
        must(live_bytes() == 0);
        object = sy_cache_alloc(cache);
        must(sums().allocated == 2);
        must(sy_profile_stop() == 0);
        must(has_live(200) && sy_profile_records == 0); /* as it was at the end */
        sy_cache_free(cache, object);
        sy_cache_free(cache, sy_cache_alloc(cache));
        must(sums().allocated == 2 && has_live(200));
        must(sy_verify() == 0);
    }
}
RUN(a_profile_begins_in_the_midst)

/* A slot that has lost its magazines keeps its count. The next profile does not go on with it. */
static void a_count_ends_with_its_profile_here(void *arg) {
    (void)arg;
    open_all();
    begin((size_t)64 << 20); /* the next sample is far away */
    sy_cache_free(cache, sy_cache_alloc(cache));
    must(sums().allocated == 0 && sy_profile_stop() == 0);
    sy_thread_flush();
    begin(ALL);
    void *object = sy_cache_alloc(cache);
    must(sums().allocated == 1 && has_live(200));
    sy_cache_free(cache, object);
}
RUN(a_count_ends_with_its_profile)

static void the_option_begins_a_profile_here(void *arg) {
    (void)arg;
    open_all();
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_interval_seed(42); /* of 50 bytes some objects are not sampled */
    must(sy_set_options("profile=1") == 0);
    void *object = sy_cache_alloc(cache), *other = sy_malloc(50);
    must(has_live(250));
    sy_free(other);
    must(sy_set_options("profile=off") == 0);
    sy_cache_free(cache, object);
    must(has_live(200));
}
RUN(the_option_begins_a_profile)

static void a_cache_that_ends_takes_its_objects_along_here(void *arg) {
    (void)arg;
    open_all();
    begin(ALL);
    sy_cache *brief = sy_cache_create(&(sy_cache_config){.name = "brief", .size = 64});
    for (int i = 0; i < 100; i++) must(sy_cache_alloc(brief) && sy_heap_alloc(heap, 300));
    void *kept = sy_cache_alloc(cache);
    must(live_bytes() > 300 * 100);
    sy_cache_destroy_all(brief);
    sy_heap_destroy_all(heap);
    must(has_live(200));
    sy_cache_free(cache, kept);
    must(live_bytes() == 0 && sy_verify() == 0);
}
RUN(a_cache_that_ends_takes_its_objects_along)

/* A trim asks for the items of all slots, which must not lose what they have counted. */
static void trims_do_not_disturb_counts_here(void *arg) {
    enum { COUNT = 20000 };
    (void)arg;
    open_all();
    begin(200 * 49); /* one object in fifty */
    for (int i = 0; i < COUNT; i++) {
        void *objects[3];
        for (int n = 0; n < 3; n++) objects[n] = sy_cache_alloc(cache);
        for (int n = 0; n < 3; n++) sy_cache_free(cache, objects[n]);
        if (i % 4 == 0) sy_cache_trim(cache);
    }
    printf("objects %.4f of the truth\n", (double)sums().allocated / (3.0 * COUNT));
    must(is_near((double)sums().allocated, 3.0 * COUNT, 0.1)); /* 3.5 standard deviations */
    must(live_bytes() == 0);
}
RUN(trims_do_not_disturb_counts)

static void objects_of_other_kinds_are_not_sampled_here(void *arg) {
    (void)arg;
    sy_cache *kinds[] = {
        sy_cache_create(&(sy_cache_config){.name = "a", .size = 64, .flags = SY_CHECKED}),
        sy_cache_create(&(sy_cache_config){.name = "b", .size = 64, .flags = SY_EPOCHS}),
    };
    sy_cache *named =
        sy_cache_create(&(sy_cache_config){.name = "c", .size = 64, .flags = SY_HANDLES});
    begin(ALL);
    for (int i = 0; i < 2; i++) sy_cache_free(kinds[i], sy_cache_alloc(kinds[i]));
    sy_handle handle;
    must(sy_handle_alloc(named, &handle) != NULL && sy_handle_free(named, handle));
    must(sums().allocated == 0);
}
RUN(objects_of_other_kinds_are_not_sampled)

/* ---- threads ---- */

enum { THREADS = 3, SHARED = 256 };
static _Atomic(void *) shared[SHARED]; /* objects go from thread to thread through it */
static atomic_bool ends, began;
static _Atomic unsigned ready;

/* Replaces objects in the shared table: most are freed by another thread than allocated them. */
static void *exchange_objects(void *seed) {
    uint64_t random = (uintptr_t)seed;
    for (unsigned i = 0; !atomic_load(&ends); i++) {
        void *fresh = sy_cache_alloc(cache);
        memset(fresh, 1, 200);
        void *old = atomic_exchange(&shared[next_random(&random) % SHARED], fresh);
        if (old) sy_cache_free(cache, old);
        if (i == 1000) atomic_fetch_add(&ready, 1);
    }
    return NULL;
}

static void is_sound(void *arg) {
    (void)arg;
    void *object = sy_cache_alloc(cache);
    must(object != NULL);
    sy_cache_free(cache, object);
    must(sy_verify() == 0);
}

/* Profiles begin and end while threads run, and the process forks. */
static void threads_share_a_profile_here(void *arg) {
    pthread_t threads[THREADS];
    (void)arg;
    open_all();
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, exchange_objects, (void *)(i + 1)) == 0);
    while (atomic_load(&ready) < THREADS) sched_yield();
    for (int i = 0; i < 10; i++) {
        must(sy_profile_start(200) == 0);
        for (int n = 0; n < 10; n++) sched_yield();
        must(in_child(is_sound, NULL) == 0);
        must(sy_profile_stop() == 0);
    }
    must(sy_profile_start(200) == 0);
    atomic_store(&ends, true);
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SHARED; i++) sy_cache_free(cache, shared[i]);
    must(sy_cache_in_use(cache) == 0);
    must(sy_verify() == 0);
}
RUN(threads_share_a_profile)

/* The thread never comes to a slow path by itself: its one object goes up and down a magazine. */
static void *use_one_object(void *arg) {
    (void)arg;
    while (!atomic_load(&ends)) {
        sy_cache_free(cache, sy_cache_alloc(cache));
        atomic_store(&began, true);
    }
    return NULL;
}

static void a_thread_within_its_magazine_is_seen_here(void *arg) {
    pthread_t thread;
    (void)arg;
    open_all();
    must(pthread_create(&thread, NULL, use_one_object, NULL) == 0);
    while (!atomic_load(&began)) sched_yield();
    must(sy_profile_start(ALL) == 0);
    for (int i = 0; i < 100000 && sums().allocated < 100; i++) sched_yield();
    uint64_t seen = sums().allocated;
    atomic_store(&ends, true);
    must(pthread_join(thread, NULL) == 0);
    must(live_bytes() == 0);
    if (sy_os_barrier_threads() == 0) must(seen >= 100);
}
RUN(a_thread_within_its_magazine_is_seen)

static void sleep_with_a_magazine_here(void *arg) {
    (void)arg;
    open_all();
    void *objects[50];
    for (int i = 0; i < 50; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < 50; i++) sy_cache_free(cache, objects[i]);
    sy_thread_idle();
    begin(ALL);
    sy_free(sy_malloc(10)); /* the thread is back, by another client */
    void *object = sy_cache_alloc(cache);
    must(has_live(200));
    sy_cache_free(cache, object);
    must(live_bytes() == 0);
}
RUN(sleep_with_a_magazine)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_bytes_are_those_of_the_program),
        cmocka_unit_test(estimates_are_unbiased),
        cmocka_unit_test(spans_are_in_the_profile),
        cmocka_unit_test(samples_stay_with_objects_that_move),
        cmocka_unit_test(a_profile_begins_in_the_midst),
        cmocka_unit_test(a_count_ends_with_its_profile),
        cmocka_unit_test(the_option_begins_a_profile),
        cmocka_unit_test(a_cache_that_ends_takes_its_objects_along),
        cmocka_unit_test(trims_do_not_disturb_counts),
        cmocka_unit_test(objects_of_other_kinds_are_not_sampled),
        cmocka_unit_test(threads_share_a_profile),
        cmocka_unit_test(a_thread_within_its_magazine_is_seen),
        cmocka_unit_test(sleep_with_a_magazine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
