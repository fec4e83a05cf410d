/*
 * test_mixed.c: mixed units (cache/mixed.h): what is converted and when, that objects of all sizes
 * lie beside each other and never on each other, and that each misuse is seen as in slabs. Slabs
 * are converted at every chance, except where a test says otherwise.
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
#include <slabyard/checks.h>
#include <slabyard/count.h>
#include <slabyard/fault.h>
#include <slabyard/heap.h>
#include <slabyard/limit.h>
#include <slabyard/reclaim.h>
#include <slabyard/stats.h>

#include "base/random.h"
#include "cache/cache.h"
#include "cache/mixed.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

static sy_fault last_fault;
static int faults;

static void note_fault(const sy_fault *fault) {
    last_fault = *fault;
    faults++;
}

/* The most bytes of mixed units that a test has seen. */
static _Atomic size_t most_mixed;

static size_t mixed_bytes(void) { return sy_mixed_count().all; }

static int begin(void **state) {
    (void)state;
    faults = 0;
    sy_mixed_least = 0;
    sy_set_decay(0);
    sy_set_fault_handler(note_fault);
    most_mixed = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    sy_thread_flush();
    sy_trim();
    bool clean = mixed_bytes() == 0 && sy_verify() == 0;
    sy_set_fault_handler(NULL);
    return clean ? 0 : -1;
}

/* ---- objects with patterns ---- */

typedef struct object {
    unsigned char *at;
    size_t size;
    unsigned char pattern;
} object;

static object make(size_t size, unsigned number) {
    object made = {sy_malloc(size), size, (unsigned char)(number * 37 + 11)};
    must(made.at != NULL);
    must(sy_usable_size(made.at) >= size);
    memset(made.at, made.pattern, size);
    return made;
}

static void check(const object *one) {
    for (size_t i = 0; i < one->size; i++) must(one->at[i] == one->pattern);
}

static void drop(object *one) {
    check(one);
    sy_free(one->at);
    one->at = NULL;
}

enum { MANY = 30000 };
static object objects[MANY];

/* Makes `count` objects of a size and frees all but one in `keep_one_in`, in mixed order. */
static void leave_survivors(size_t count, size_t size, size_t keep_one_in) {
    for (size_t i = 0; i < count; i++) objects[i] = make(size, (unsigned)i);
    for (size_t i = 0; i < count; i++)
        if (i * 7919 % keep_one_in) drop(&objects[i]);
    sy_thread_flush();
    sy_trim();
}

static void drop_all(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (objects[i].at) drop(&objects[i]);
}

/* ---- what is converted ---- */

static void holes_between_survivors_take_objects_of_other_sizes(void **state) {
    (void)state;
    sy_stats before, after;
    leave_survivors(20000, 64, 10);
    sy_get_stats(&before);
    for (size_t i = 20000; i < 24000; i++) objects[i] = make(200, (unsigned)i);
    sy_get_stats(&after);
    must(mixed_bytes() > 0);
    must(after.slabs <= before.slabs + SY_UNIT_BYTES);
    must(sy_verify() == 0);
    drop_all(24000);
}

static size_t count_mixed(size_t from, size_t to) {
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        count += objects[i].at && sy_mixed_cache_at((uintptr_t)objects[i].at) != NULL;
    return count;
}

static void holes_that_frees_make_take_larger_objects(void **state) {
    (void)state;
    leave_survivors(20000, 64, 10);
    for (size_t i = 20000; i < 24000; i++) objects[i] = make(200, (unsigned)i);
    size_t units = mixed_bytes();
    must(units > 0 && count_mixed(20000, 24000) > 1000);
    for (size_t i = 0; i < 20000; i++)
        if (objects[i].at && i % 1000) drop(&objects[i]);
    for (size_t i = 20000; i < 24000; i++)
        if (i % 50) drop(&objects[i]);
    sy_thread_flush();
    sy_trim(); /* nothing waits in depots */
    units = mixed_bytes();
    sy_mixed_least = SIZE_MAX; /* no slab is converted any more */
    for (size_t i = 24000; i < 24500; i++) objects[i] = make(1500, (unsigned)i);
    must(count_mixed(24000, 24500) > 100);
    must(mixed_bytes() <= units);
    drop_all(24500);
    sy_thread_flush();
    must(sy_verify() == 0); /* empty units go back at once */
}

static void a_program_with_little_free_memory_converts_nothing(void **state) {
    (void)state;
    sy_mixed_least = 1 << 20;
    leave_survivors(8000, 64, 10); /* 0.5 MiB are free */
    for (size_t i = 8000; i < 12000; i++) objects[i] = make(200, (unsigned)i);
    must(mixed_bytes() == 0);
    drop_all(12000);
}

static void slabs_that_are_more_than_half_full_stay_slabs(void **state) {
    (void)state;
    for (size_t i = 0; i < 20000; i++) objects[i] = make(64, (unsigned)i);
    for (size_t i = 0; i < 20000; i += 3) drop(&objects[i]);
    sy_thread_flush();
    for (size_t i = 20000; i < 24000; i++) objects[i] = make(200, (unsigned)i);
    must(mixed_bytes() <= SY_UNIT_BYTES); /* the newest slab may never have been full */
    drop_all(24000);
}

static void caches_of_the_program_never_mix(void **state) {
    (void)state;
    static void *held[20000];
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "apart", .size = 64});
    must(cache != NULL);
    for (size_t i = 0; i < 20000; i++) must((held[i] = sy_cache_alloc(cache)) != NULL);
    for (size_t i = 0; i < 20000; i++)
        if (i % 10) sy_cache_free(cache, held[i]);
    sy_cache_trim(cache);
    for (size_t i = 0; i < 4000; i++) objects[i] = make(200, (unsigned)i);
    must(mixed_bytes() == 0);
    drop_all(4000);
    for (size_t i = 0; i < 20000; i += 10) sy_cache_free(cache, held[i]);
    must(sy_cache_destroy(cache) == 0);
}

/* Leaves a heap with mixed units, in which an object of `size` was allocated; returns it. */
static object object_in_mixed_unit(size_t size) {
    leave_survivors(20000, 64, 10);
    for (size_t i = 20000; i < MANY; i++) {
        objects[i] = make(size, (unsigned)i);
        if (sy_mixed_cache_at((uintptr_t)objects[i].at)) {
            object found = objects[i];
            objects[i].at = NULL;
            return found;
        }
    }
    fail_msg("no object of %zu bytes came to a mixed unit", size);
    return (object){0};
}

/* Objects in mixed units lie at multiples of 16; who asks for more gets an object in a slab. */
static void an_object_has_the_alignment_that_was_asked_for(void **state) {
    (void)state;
    object first = object_in_mixed_unit(384);
    for (size_t i = 0; i < 1000; i++) {
        if (objects[i].at) drop(&objects[i]);
        objects[i] = (object){sy_aligned_alloc(128, 384), 384, 3};
        must(objects[i].at && (uintptr_t)objects[i].at % 128 == 0);
        memset(objects[i].at, 3, 384);
        if (i % 3 == 0) drop(&objects[i]);
    }
    drop(&first);
    drop_all(MANY);
}

static void an_object_that_takes_the_place_of_another_is_counted_once(void **state) {
    sy_counted counted;
    (void)state;
    object first = object_in_mixed_unit(384);
    drop_all(MANY / 2); /* holes */
    must(sy_count_begin() == 0);
    for (size_t i = 0; i < 1000; i++) {
        objects[i] = (object){sy_aligned_alloc(128, 384), 384, 3};
        must(objects[i].at && (uintptr_t)objects[i].at % 128 == 0);
        memset(objects[i].at, 3, 384);
    }
    drop_all(1000);
    must(sy_count_end(&counted) == 0);
    must(counted.allocations == 1000 && counted.frees == 1000 && counted.bytes == 1000 * 384);
    drop(&first);
    drop_all(MANY);
}

static void sizes_are_known_and_realloc_keeps_an_object_of_its_class(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    must(sy_usable_size(one.at) == 208);
    must(sy_realloc(one.at, 208) == one.at);
    must(sy_realloc(one.at, 193) == one.at);
    must(sy_expand(one.at, 208) && sy_expand(one.at, 193));
    must(!sy_expand(one.at, 209) && !sy_expand(one.at, 192) && !sy_expand(one.at, 200000));
    check(&(object){one.at, 193, one.pattern});
    unsigned char *more = sy_realloc(one.at, 1000);
    must(more && more != one.at);
    for (size_t i = 0; i < 193; i++) must(more[i] == one.pattern);
    sy_free_sized(more, 1000);
    drop_all(MANY);
    must(faults == 0);
}

static void an_object_is_freed_with_its_size(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    size_t size = one.size;
    sy_free_sized(one.at, size);
    must(faults == 0);
    drop_all(MANY);
}

/* ---- misuse ---- */

static void a_free_with_a_wrong_size_is_a_fault(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    size_t wrong = 300;
    sy_free_sized(one.at, wrong);
    must(faults == 1 && last_fault.kind == SY_FAULT_WRONG_SIZE);
    drop(&one);
    drop_all(MANY);
}

static void a_second_free_is_a_fault_before_and_after_the_flush(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    sy_free(one.at);
    sy_free(one.at);
    must(faults == 1 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    sy_thread_flush();
    sy_free(one.at);
    sy_thread_flush();
    must(faults == 2 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    drop_all(MANY);
}

/* Two objects are freed in turn, twice: only the flush finds it. */
static void a_second_free_among_others_is_found_by_the_flush(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    void *other = sy_malloc(200);
    sy_free(one.at);
    sy_free(other);
    sy_free(one.at);
    sy_thread_flush();
    must(faults == 1 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    must(last_fault.address == (void *)one.at);
    drop_all(MANY);
}

/* Leaves units of survivors, with objects of another size in some of their holes. */
static void fill_some_holes(void) {
    sy_mixed_least = 1 << 20;
    leave_survivors(MANY, 200, 10);
    for (size_t i = 0; i < MANY; i++)
        if (!objects[i].at && i % 10 == 5) objects[i] = make(300, (unsigned)i);
}

/* What a program frees and allocates again and again gets slabs, where a free costs less. */
static void objects_that_come_and_go_move_to_slabs(void **state) {
    (void)state;
    fill_some_holes();
    size_t before = 0, after = 0, hot = 0;
    for (size_t i = 5; i < MANY; i += 10)
        before += sy_mixed_cache_at((uintptr_t)objects[i].at) != NULL;
    must(before > 1000);
    for (size_t round = 0; round < 100; round++)
        for (size_t i = 5; i < MANY; i += 100) {
            drop(&objects[i]);
            objects[i] = make(300, (unsigned)(i + round));
        }
    for (size_t i = 5; i < MANY; i += 100, hot++)
        after += sy_mixed_cache_at((uintptr_t)objects[i].at) != NULL;
    must(after < hot / 4);
    must(sy_verify() == 0);
    drop_all(MANY);
}

enum { HOT_SIZES = 8, HOT = 200 };
static object hot[HOT_SIZES][HOT];

static void use_again_and_again(object *at, size_t size) {
    for (size_t round = 0; round < 60; round++)
        for (size_t i = 0; i < HOT; i++) {
            if (at[i].at) drop(&at[i]);
            at[i] = make(size, (unsigned)(i + round));
        }
}

static size_t count_in_slabs(const object *at) {
    size_t count = 0;
    for (size_t i = 0; i < HOT; i++) count += !sy_mixed_cache_at((uintptr_t)at[i].at);
    return count;
}

/* All classes together get a sixteenth of the units: else each could hold free slots. When they
 * need their slabs no more, others get some. */
static void classes_that_come_and_go_share_a_bound(void **state) {
    (void)state;
    fill_some_holes();
    size_t bytes = 0;
    for (size_t k = 0; k < HOT_SIZES; k++) use_again_and_again(hot[k], 500 + 100 * k);
    for (size_t k = 0; k < HOT_SIZES; k++) bytes += count_in_slabs(hot[k]) * (500 + 100 * k);
    size_t units = atomic_load(&sy_memory_main.units_used);
    must(bytes > 0 && bytes <= (units / 16 + 1) * SY_UNIT_BYTES);
    must(sy_verify() == 0);
    for (size_t k = 0; k < HOT_SIZES; k++)
        for (size_t i = 0; i < HOT; i++) drop(&hot[k][i]);
    sy_thread_flush();
    sy_trim();
    use_again_and_again(hot[0], 450);
    must(count_in_slabs(hot[0]) > HOT / 2);
    for (size_t i = 0; i < HOT; i++) drop(&hot[0][i]);
    drop_all(MANY);
}

static void an_address_within_an_object_is_a_fault(void **state) {
    (void)state;
    object one = object_in_mixed_unit(200);
    sy_free(one.at + 16);
    sy_thread_flush();
    must(faults == 1 && last_fault.kind == SY_FAULT_MISALIGNED_POINTER);
    must(last_fault.address == (void *)(one.at + 16));
    sy_free(one.at + 3);
    sy_thread_flush();
    must(faults == 2 && last_fault.kind == SY_FAULT_MISALIGNED_POINTER);
    must(sy_realloc(one.at + 32, 10) == NULL && errno == EINVAL && faults == 3);
    must(sy_usable_size(one.at + 16) == 0);
    drop(&one);
    drop_all(MANY);
}

/* ---- memory ---- */

static void pages_in_holes_go_back_and_come_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    object one = object_in_mixed_unit(200);
    for (size_t i = 20000; i < MANY; i++)
        if (objects[i].at) drop(&objects[i]);
    for (size_t i = 0; i < 20000; i++)
        if (objects[i].at && i % 200) drop(&objects[i]);
    sy_thread_flush();
    must(mixed_bytes() > 0);
    must(sy_trim() > 0);
    must(sy_verify() == 0);
    check(&one);
    for (size_t i = 20000; i < MANY; i++) objects[i] = make(80 + i % 500, (unsigned)i);
    must(count_mixed(20000, MANY) > 100);
    must(sy_verify() == 0);
    drop(&one);
    drop_all(MANY);
}

static void without_memory_for_the_tables_slabs_stay_slabs(void **state) {
    (void)state;
    leave_survivors(20000, 64, 10);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    for (size_t i = 20000; i < MANY; i++) {
        objects[i].at = sy_malloc(200);
        if (!objects[i].at) break;
        objects[i].size = 0;
    }
    sy_fake_reset();
    must(sy_verify() == 0);
    drop_all(MANY);
}

static void at_a_limit_holes_are_taken_before_an_allocation_fails(void **state) {
    (void)state;
    sy_stats stats;
    sy_mixed_least = SIZE_MAX;
    leave_survivors(20000, 64, 10);
    sy_get_stats(&stats);
    must(sy_set_limit(&(sy_limit){.hard = stats.slabs + stats.spans}) == 0);
    size_t made = 20000;
    for (; made < 23000; made++) {
        objects[made].at = sy_malloc(200);
        if (!objects[made].at) break;
        objects[made] = (object){memset(objects[made].at, 9, 200), 200, 9};
    }
    must(sy_set_limit(NULL) == 0);
    must(made == 23000 && mixed_bytes() > 0);
    drop_all(made);
}

/* A search for large objects leaves the small holes to later searches. */
static void small_holes_are_found_after_a_search_for_large_objects(void **state) {
    (void)state;
    leave_survivors(20000, 64, 10);
    for (size_t i = 20000; i < 24000; i++) objects[i] = make(500, (unsigned)i); /* fill them all */
    must(count_mixed(20000, 24000) > 1000);
    sy_mixed_least = SIZE_MAX;
    size_t units = mixed_bytes();
    for (size_t i = 24000; i < 25000; i++) objects[i] = make(48, (unsigned)i);
    must(count_mixed(24000, 25000) > 500 && mixed_bytes() == units);
    drop_all(25000);
}

static void classes_and_totals_add_up(void **state) {
    (void)state;
    sy_stats all;
    size_t mapped = 0, waiting = sy_mixed_waiting();
    object one = object_in_mixed_unit(200);
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_stats stats;
        const sy_cache *cache = sy_cache_of_client(client);
        number = client->number;
        if (cache) {
            must(sy_cache_get_stats(cache, &stats) == 0);
            must(stats.slots == stats.in_use + stats.in_depot + stats.in_loaded + stats.free);
            must(stats.mapped == stats.slots * stats.slot_size + stats.tail);
            mapped += stats.mapped;
        }
        sy_client_unpin(client);
    }
    sy_get_stats(&all);
    must(sy_mixed_count().holes > 0 && waiting == 0);
    must(mapped + sy_mixed_count().holes == all.slabs);
    drop(&one);
    must(sy_mixed_waiting() == 1);
    drop_all(MANY);
}

/* sy_try_move guesses without a lock: another thread may convert the slab before it has it. */
static void an_object_stays_whose_slab_was_converted_meanwhile(void **state) {
    (void)state;
    leave_survivors(20000, 64, 10);
    for (size_t i = 20000; i < 22000; i++) objects[i] = make(200, (unsigned)i);
    must(count_mixed(0, 20000) > 0);
    for (size_t i = 0; i < 20000; i++) {
        sy_cache *cache = objects[i].at ? sy_mixed_cache_at((uintptr_t)objects[i].at) : NULL;
        must(!cache || !sy_cache_move(cache, objects[i].at));
    }
    for (size_t i = 22000; i < 24000; i++) objects[i] = make(64, (unsigned)i);
    drop_all(24000);
    must(faults == 0 && sy_verify() == 0);
}

/* ---- a model ---- */

enum { HELD = 4000 };

typedef struct player {
    uint64_t random;
    size_t steps;
    object held[HELD];
} player;

/* The sizes drift, so that each phase needs other classes than the one before. */
static size_t drifting_size(player *one, size_t step) {
    size_t most = (size_t)48 << step / 20000 * 5 % 8;
    size_t size = most / 2 + sy_random_below(&one->random, (uint32_t)most / 2) + 1;
    return sy_random_below(&one->random, 400) ? size : 1 + sy_random_below(&one->random, 100000);
}

static void play(player *one, size_t step) {
    object *place = &one->held[sy_random_below(&one->random, HELD)];
    bool shrinks = step % 20000 > 12000;
    if (place->at && sy_random_below(&one->random, 4) == 0) {
        unsigned char *moved = sy_try_move(place->at);
        if (moved) place->at = moved;
        check(place);
    }
    if (place->at && sy_random_below(&one->random, 50) == 0) {
        size_t size = drifting_size(one, step), common = size < place->size ? size : place->size;
        check(place);
        place->at = sy_realloc(place->at, size);
        must(place->at != NULL);
        for (size_t i = 0; i < common; i++) must(place->at[i] == place->pattern);
        memset(place->at, place->pattern, size);
        place->size = size;
    } else if (place->at) {
        if (sy_random_below(&one->random, 2)) {
            check(place);
            sy_free_sized(place->at, place->size);
            place->at = NULL;
        } else {
            drop(place);
        }
    } else if (!shrinks || sy_random_below(&one->random, 10) == 0) {
        *place = make(drifting_size(one, step), (unsigned)step);
    }
}

static void *play_all(void *arg) {
    player *one = arg;
    for (size_t step = 0; step < one->steps; step++) {
        play(one, step);
        if (step % 1000 == 0 && mixed_bytes() > most_mixed) most_mixed = mixed_bytes();
        if (step % 5000 == 0) sy_thread_flush();
        if (step % 33000 == 0) sy_trim();
    }
    for (size_t i = 0; i < HELD; i++)
        if (one->held[i].at) drop(&one->held[i]);
    sy_thread_flush();
    return NULL;
}

static size_t steps(void) {
    const char *wanted = getenv("SLABYARD_MIXED_STEPS");
    return wanted ? (size_t)strtoull(wanted, NULL, 10) : 400000;
}

static void random_operations_agree_with_a_model(void **state) {
    (void)state;
    static player one;
    one = (player){.random = 17, .steps = steps()};
    play_all(&one);
    must(most_mixed > SY_UNIT_BYTES);
    must(faults == 0);
    must(sy_verify() == 0);
}

enum { THREADS = 4 };

static void threads_agree_with_a_model_too(void **state) {
    (void)state;
    static player all[THREADS];
    pthread_t thread[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = (player){.random = 99 + i, .steps = steps() / 4};
        must(pthread_create(&thread[i], NULL, play_all, &all[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    must(most_mixed > SY_UNIT_BYTES);
    must(faults == 0);
    must(sy_verify() == 0);
}

/* Objects go from thread to thread: one allocates in a mixed unit, another frees. */
static _Atomic(void *) exchanged[256];

static void *exchange(void *arg) {
    uint64_t random = (uint64_t)(uintptr_t)arg;
    for (size_t step = 0; step < steps() / 4; step++) {
        size_t size = 16 + sy_random_below(&random, UINT32_C(48) << step / 15000 % 6);
        uint32_t *made = sy_malloc(size);
        must(made != NULL);
        for (size_t i = 0; i < size / 4; i++) made[i] = (uint32_t)size;
        uint32_t *taken = atomic_exchange(&exchanged[sy_random_below(&random, 256)], made);
        if (!taken) continue;
        for (size_t i = 0; i < *taken / 4; i++) must(taken[i] == *taken);
        sy_free(taken);
        if (step % 3000 == 0) sy_thread_flush();
    }
    sy_thread_flush();
    return NULL;
}

static void objects_go_from_thread_to_thread(void **state) {
    (void)state;
    pthread_t thread[THREADS];
    leave_survivors(20000, 64, 10);
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, exchange, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    for (unsigned i = 0; i < 256; i++) sy_free(atomic_exchange(&exchanged[i], NULL));
    drop_all(20000);
    must(faults == 0);
}

/* ---- fork ---- */

static void use_heap_in_child(void) {
    static player one;
    one = (player){.random = 5, .steps = 30000};
    play_all(&one);
    drop_all(MANY);
    sy_thread_flush();
    sy_trim();
    _exit(faults == 0 && sy_verify() == 0 ? 0 : 1);
}

static void a_child_goes_on_while_threads_of_the_parent_were_converting(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    static player other[2];
    pthread_t thread[2];
    if (THREAD_SANITIZED) skip(); /* it takes the child's thread for another one */
    object one = object_in_mixed_unit(200);
    for (unsigned i = 0; i < 2; i++) {
        other[i] = (player){.random = 7 + i, .steps = steps() / 4};
        must(pthread_create(&thread[i], NULL, play_all, &other[i]) == 0);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) use_heap_in_child();
        int status = -1;
        must(child > 0 && waitpid(child, &status, 0) == child);
        must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (unsigned i = 0; i < 2; i++) must(pthread_join(thread[i], NULL) == 0);
    drop(&one);
    drop_all(MANY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(holes_between_survivors_take_objects_of_other_sizes),
        TEST(holes_that_frees_make_take_larger_objects),
        TEST(a_program_with_little_free_memory_converts_nothing),
        TEST(slabs_that_are_more_than_half_full_stay_slabs),
        TEST(caches_of_the_program_never_mix),
        TEST(an_object_has_the_alignment_that_was_asked_for),
        TEST(an_object_that_takes_the_place_of_another_is_counted_once),
        TEST(sizes_are_known_and_realloc_keeps_an_object_of_its_class),
        TEST(an_object_is_freed_with_its_size),
        TEST(a_free_with_a_wrong_size_is_a_fault),
        TEST(a_second_free_is_a_fault_before_and_after_the_flush),
        TEST(a_second_free_among_others_is_found_by_the_flush),
        TEST(objects_that_come_and_go_move_to_slabs),
        TEST(classes_that_come_and_go_share_a_bound),
        TEST(an_address_within_an_object_is_a_fault),
        TEST(pages_in_holes_go_back_and_come_again),
        TEST(without_memory_for_the_tables_slabs_stay_slabs),
        TEST(at_a_limit_holes_are_taken_before_an_allocation_fails),
        TEST(small_holes_are_found_after_a_search_for_large_objects),
        TEST(classes_and_totals_add_up),
        TEST(an_object_stays_whose_slab_was_converted_meanwhile),
        TEST(random_operations_agree_with_a_model),
        TEST(threads_agree_with_a_model_too),
        TEST(objects_go_from_thread_to_thread),
        TEST(a_child_goes_on_while_threads_of_the_parent_were_converting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
