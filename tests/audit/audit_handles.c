/*
 * audit_handles.c: a handle belongs to one live object, a stale handle stays stale, and the memory
 * of freed objects is used again and goes back to the system. An earlier allocator gave one slot to
 * two threads, accepted a stale handle for the next object in the slot, followed forged handles,
 * and recycled nothing.
 *
 * audit_handles [SECONDS]: for so long each thread allocates twenty objects and frees twenty.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "os/fake.h"
#include "support/handles.h"
#include "support/resident.h"
#include "support/sanitized.h"

static const size_t sizes[] = {16, 64, 256, 512, 1024, 4096};

enum { SIZES = sizeof sizes / sizeof *sizes };

static sy_cache *make_sized(size_t size) {
    return make((sy_cache_config){.name = "audit", .size = size});
}

static sy_cache_stats stats_of(const sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return stats;
}

/* ---- twenty allocations, then twenty frees, over and over ---- */

enum { BATCH = 20, THREADS_MAX = 16, CROWDS = 4 }; /* of 2, 4, 8 and 16 threads */

static double loop_seconds = 3;

typedef struct crowd {
    sy_cache *cache;
    size_t size;
    pthread_barrier_t together;
    _Atomic bool over;
    _Atomic uint64_t laps;
} crowd;

typedef struct named {
    unsigned char *object;
    sy_handle handle;
} named;

/* The object's own bytes, which no other object has at the same time. */
static void write_name(const named *it, size_t size) {
    for (size_t at = 0; at < size; at += sizeof it->handle)
        memcpy(it->object + at, &it->handle, sizeof it->handle);
}

static bool has_name(const named *it, size_t size) {
    for (size_t at = 0; at < size; at += sizeof it->handle)
        if (memcmp(it->object + at, &it->handle, sizeof it->handle) != 0) return false;
    return true;
}

static void twenty_and_twenty(crowd *of) {
    named mine[BATCH];
    for (int i = 0; i < BATCH; i++) {
        mine[i].object = get(of->cache, &mine[i].handle);
        write_name(&mine[i], of->size);
    }
    uint64_t lap = ++of->laps;
    if (lap % 16 == 0) sy_thread_flush(); /* free objects go back to their slabs */
    if (lap % 64 == 0) sched_yield();
    for (int i = 0; i < BATCH; i++) {
        must(has_name(&mine[i], of->size));
        must(sy_handle_get(of->cache, mine[i].handle) == mine[i].object);
        must(sy_handle_free(of->cache, mine[i].handle));
        must(!sy_handle_free(of->cache, mine[i].handle));
    }
    for (int i = 0; i < BATCH; i++) must(!sy_handle_get(of->cache, mine[i].handle));
}

static void *join_crowd(void *arg) {
    crowd *of = arg;
    pthread_barrier_wait(&of->together);
    do twenty_and_twenty(of);
    while (!of->over);
    return NULL;
}

static uint64_t run_crowd(size_t size, unsigned flags, unsigned count, double seconds) {
    pthread_t threads[THREADS_MAX];
    sy_cache *cache = make((sy_cache_config){.name = "audit", .size = size, .flags = flags});
    crowd of = {.cache = cache, .size = size};
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    pthread_barrier_init(&of.together, NULL, count);
    for (unsigned i = 0; i < count; i++)
        must(pthread_create(&threads[i], NULL, join_crowd, &of) == 0);
    nanosleep(&pause, NULL);
    of.over = true;
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&of.together);
    end(cache);
    return of.laps;
}

static void twenty_and_twenty_by_several_threads(void **state) {
    (void)state;
    uint64_t laps = 0;
    double seconds = loop_seconds / (2 * SIZES * CROWDS);
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED)
        for (int s = 0; s < SIZES; s++)
            for (unsigned count = 2; count <= THREADS_MAX; count *= 2)
                laps += run_crowd(sizes[s], flags, count, seconds);
    print_message("%llu times twenty and twenty\n", (unsigned long long)laps);
}

/* ---- stale, forged and foreign handles ---- */

/* Every slot is used again, by others, while the old handles are tried. */
static void stale_handles_stay_stale_in_slots_that_are_used_again(void **state) {
    (void)state;
    static sy_handle stale[COUNT];
    sy_cache *cache = make_sized(64);
    take_all(cache, 64);
    size_t slots = stats_of(cache).slots;
    for (int lap = 0; lap < 20; lap++) {
        memcpy(stale, handles, sizeof stale);
        give_all(cache);
        take_all(cache, 64);
        for (size_t i = 0; i < COUNT; i++) refused(cache, stale[i]);
        for (size_t i = 0; i < COUNT; i++) must(is_filled(i, 64));
    }
    assert_int_equal(stats_of(cache).slots, slots);
    give_all(cache);
    end(cache);
}

static int compare(const void *one, const void *other) {
    sy_handle left = *(const sy_handle *)one, right = *(const sy_handle *)other;
    return (left > right) - (left < right);
}

/* The sorted handles are those of all live objects. */
static void refused_unless_live(sy_cache *cache, const sy_handle *sorted, sy_handle handle) {
    if (!bsearch(&handle, sorted, COUNT, sizeof handle, compare)) refused(cache, handle);
}

static void what_looks_like_a_live_handle_is_refused(void **state) {
    (void)state;
    static sy_handle sorted[COUNT];
    uint64_t random = 19;
    sy_cache *cache = make_sized(64);
    for (int lap = 0; lap < 3; lap++) {
        take_all(cache, 64);
        if (lap < 2) give_all(cache);
    }
    memcpy(sorted, handles, sizeof sorted);
    qsort(sorted, COUNT, sizeof *sorted, compare);
    for (size_t i = 0; i < COUNT; i++) {
        for (int bit = 0; bit < 64; bit++)
            refused_unless_live(cache, sorted, handles[i] ^ UINT64_C(1) << bit);
        for (int bits = 0; bits < 100; bits++)
            refused_unless_live(cache, sorted, next_random(&random));
        refused_unless_live(cache, sorted, (uintptr_t)objects[i]);
        for (uint64_t past = sy_ordinals_limit() + i; past <= UINT32_MAX; past = past * 2 + 1)
            refused(cache, handles[i] >> 32 << 32 | past);
    }
    for (size_t i = 0; i < COUNT; i++) must(is_filled(i, 64));
    give_all(cache);
    end(cache);
}

/* One thread uses them by turns: each gives its own objects, and takes no other's handle. */
static void one_threads_caches_never_mix(void **state) {
    (void)state;
    enum { CACHES = 8, LIVE = 200 };
    sy_cache *caches[CACHES];
    static named of[CACHES][LIVE];
    uint64_t random = 20;
    for (size_t c = 0; c < CACHES; c++) caches[c] = make_sized(64);
    for (int step = 0; step < 50000; step++) {
        size_t c = next_random(&random) % CACHES, i = next_random(&random) % LIVE;
        named *it = &of[c][i];
        if (it->object) {
            must(!sy_handle_free(caches[(c + 1) % CACHES], it->handle));
            must(has_name(it, 64) && sy_handle_free(caches[c], it->handle));
            it->object = NULL;
        } else {
            it->object = get(caches[c], &it->handle);
            must(sy_slab_at((uintptr_t)it->object)->owner == caches[c]);
            write_name(it, 64);
            for (size_t other = 0; other < CACHES; other++)
                if (other != c) refused(caches[other], it->handle);
        }
    }
    for (size_t c = 0; c < CACHES; c++) sy_cache_destroy_all(caches[c]);
}

static void objects_are_aligned(void **state) {
    (void)state;
    for (size_t size = 1; size <= 4096; size = size * 3 / 2 + 1)
        for (size_t align = 0; align <= 4096; align = align ? align * 2 : 8) {
            sy_cache *cache = make((sy_cache_config){.size = size, .align = align});
            size_t expected = align ? align : size <= 8 ? 8 : 16;
            sy_handle handle;
            for (int i = 0; i < 100; i++) must((uintptr_t)get(cache, &handle) % expected == 0);
            sy_cache_destroy_all(cache);
        }
}

/* ---- memory is used again, and goes back: sanitizers, which are slow, see less of it ---- */

enum { LAPS = 50, FEWER_LAPS = 10, MANY = 100000, FEWER = 20000 };

static void free_shuffled(sy_cache *cache, uint64_t *random) {
    shuffle(objects, COUNT, random);
    for (size_t i = 0; i < COUNT; i++) must(sy_handle_free(cache, sy_handle_of(objects[i])));
}

/* The numbers of slabs and ordinals do not grow, whether slabs are kept or trimmed in between. */
static void churn_makes_no_more_slabs(void **state) {
    (void)state;
    uint64_t random = 21;
    const int laps = SANITIZED ? FEWER_LAPS : LAPS;
    for (int s = 0; s < SIZES; s++)
        for (int trims = 0; trims < 2; trims++) {
            sy_cache *cache = make_sized(sizes[s]);
            take_all(cache, sizes[s]);
            size_t slabs = stats_of(cache).slabs;
            uint64_t ordinals = sy_ordinals_limit();
            for (int lap = 0; lap < laps; lap++) {
                free_shuffled(cache, &random);
                if (trims) must(sy_cache_trim(cache) >= COUNT * sizes[s] && !stats_of(cache).slabs);
                take_all(cache, sizes[s]);
                must(stats_of(cache).slabs <= slabs && sy_ordinals_limit() == ordinals);
            }
            give_all(cache);
            end(cache);
        }
}

static void free_all_then_trim_gives_nearly_all_back(void **state) {
    (void)state;
    static sy_handle all[MANY];
    const size_t count = SANITIZED ? FEWER : MANY;
    for (size_t i = 0; i < count; i++) all[i] = 1; /* is resident from now on */
    for (int s = 0; s < SIZES; s++) {
        sy_cache *cache = make_sized(sizes[s]);
        sy_trim();
        size_t before = resident_anonymous();
        for (size_t i = 0; i < count; i++) memset(get(cache, &all[i]), 1, sizes[s]);
        size_t peak = resident_anonymous();
        for (size_t i = 0; i < count; i++) must(sy_handle_free(cache, all[i]));
        must(sy_trim() >= count * sizes[s]);
        size_t after = resident_anonymous();
        assert_int_equal(stats_of(cache).mapped, 0);
        if (!SANITIZED) assert_true(peak - after >= (peak - before) / 100 * 95);
        for (size_t i = 0; i < count; i++) refused(cache, all[i]);
        end(cache);
    }
}

/* ---- a thousand cycles ---- */

enum { CYCLES = 1000, FEWER_CYCLES = 300, WARM = 100, TIDE = 800, EBB = 80 };

static sy_cache *tide_caches[SIZES];
static named tide[SIZES][TIDE];

static void replace(unsigned s, size_t i) {
    named *it = &tide[s][i];
    if (it->object) must(has_name(it, sizes[s]) && sy_handle_free(tide_caches[s], it->handle));
    it->object = get(tide_caches[s], &it->handle);
    write_name(it, sizes[s]);
}

/* Allocates up to the full number of each size, then replaces half of them at random. */
static void flow(uint64_t *random) {
    for (unsigned s = 0; s < SIZES; s++) {
        for (size_t i = 0; i < TIDE; i++)
            if (!tide[s][i].object) replace(s, i);
        for (size_t i = 0; i < TIDE / 2; i++) replace(s, next_random(random) % TIDE);
    }
}

static void ebb(size_t left) {
    for (unsigned s = 0; s < SIZES; s++)
        for (size_t i = left; i < TIDE; i++) {
            if (!tide[s][i].object) continue;
            must(sy_handle_free(tide_caches[s], tide[s][i].handle));
            tide[s][i].object = NULL;
        }
}

/* All memory that the library has from the system, in bytes. */
static size_t all_memory(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    return stats.mapped - stats.units_clean + stats.magazines + stats.side +
           sy_ordinals_limit() * sizeof(uint64_t);
}

static void a_thousand_cycles_do_not_grow(void **state) {
    (void)state;
    size_t warm = 0, most = 0, resident = 0;
    uint64_t random = 22;
    const int cycles = SANITIZED ? FEWER_CYCLES : CYCLES;
    sy_fake_set_cpu(0); /* so that it is the same each time */

    memset(tide, 1, sizeof tide); /* is resident from now on */
    memset(tide, 0, sizeof tide);
    const size_t before = resident_anonymous();
    for (unsigned s = 0; s < SIZES; s++) tide_caches[s] = make_sized(sizes[s]);
    for (int cycle = 0; cycle < cycles; cycle++) {
        flow(&random);
        size_t now = all_memory();
        if (cycle < WARM && now > warm) warm = now;
        if (cycle >= WARM && now > most) most = now;
        const size_t now_resident = resident_anonymous();
        if (now_resident > resident) resident = now_resident;
        ebb(EBB);
    }
    print_message("%zu bytes in the first %d cycles, %zu after; at most %zu resident\n", warm, WARM,
                  most, resident - before);
    assert_true(most <= warm);
    /* Which of its pages are in use changes from cycle to cycle, but there are no others. */
    if (!SANITIZED) assert_true(resident - before <= warm);
    ebb(0);
    for (unsigned s = 0; s < SIZES; s++) end(tide_caches[s]);
    sy_fake_reset();
}

int main(int argc, char **argv) {
    if (argc > 1) loop_seconds = strtod(argv[1], NULL);
    sy_set_fault_handler(note_fault);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_cycles_do_not_grow),
        cmocka_unit_test(free_all_then_trim_gives_nearly_all_back),
        cmocka_unit_test(churn_makes_no_more_slabs),
        cmocka_unit_test(stale_handles_stay_stale_in_slots_that_are_used_again),
        cmocka_unit_test(what_looks_like_a_live_handle_is_refused),
        cmocka_unit_test(one_threads_caches_never_mix),
        cmocka_unit_test(objects_are_aligned),
        cmocka_unit_test(twenty_and_twenty_by_several_threads),
    };
    return cmocka_run_group_tests_name("handles", tests, NULL, NULL);
}
