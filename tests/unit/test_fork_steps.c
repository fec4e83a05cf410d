/*
 * test_fork_steps.c: the process forks while an operation is at one of its instructions.
 *
 * A thread runs the operation one instruction at a time, by the processor's trap flag. There are
 * two tests:
 *
 *   - The main thread forks, and the child lacks the thread with the operation. If that thread
 *     holds a lock, the main thread forks as if in a signal handler that interrupted Slabyard, so
 *     it goes on without that lock, and the child mends what the lock guards.
 *   - The thread with the operation forks, in the handler of the trap, while another thread holds a
 *     lock that the child then lacks. The child completes the operation.
 *
 * The child verifies all structures, checks and frees the live objects, and works on.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <semaphore.h>

#include <slabyard/slabyard.h>

#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "debug/guard.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "os/lock.h"
#include "os/os.h"
#include "reclaim/slack.h"
#include "support/child.h"
#include "support/services.h"
#include "support/traps.h"
#include "vmem/arena.h"

enum {
    OBJECTS = 100, /* of many sizes: before the operation, and again in the child */
    MANY = 2500,   /* of one size: more than all magazines hold */
    GUARDED = 3,
    FILLING = 300,  /* segments: their tags fill blocks of tags */
    PATIENCE = 300, /* seconds */
    QUANTUM = 4096,
    RESOURCE = 1 << 20, /* quanta */
};

static sy_cache *cache, *spare; /* the spare one has no object before the operation */
static sy_cache *of_region;     /* its memory has no chunk before the operation */
static sy_cache *guarded;       /* each of its objects is guarded */
static sy_cache *of_epochs;
static sy_vmem *source, *arena;

typedef struct live_object {
    unsigned char *start;
    size_t bytes;
    uintptr_t segment; /* of the arena */
} live_object;

static live_object live[OBJECTS]; /* during the operation; every third segment is free */

/* ---- what the operations work on ---- */

static size_t size_of(size_t i) {
    if (i % 50 == 1) return 200000;
    if (i == 2) return 5 << 20;
    return 1 + i * 37 % 3000;
}

static size_t quanta_of(size_t i) { return (1 + i % 5) * QUANTUM; }

static void fill(unsigned char *start, size_t bytes, size_t i) {
    start[0] = start[bytes / 2] = start[bytes - 1] = (unsigned char)i;
}

static void check(const unsigned char *start, size_t bytes, size_t i) {
    must(start[0] == (unsigned char)i && start[bytes / 2] == (unsigned char)i &&
         start[bytes - 1] == (unsigned char)i);
}

/* Every fourth object is of the cache, the others are of the heap. */
static void allocate_all(live_object objects[OBJECTS], sy_vmem_fit fit) {
    for (size_t i = 0; i < OBJECTS; i++) {
        live_object *it = &objects[i];
        it->bytes = i % 4 ? size_of(i) : 40;
        it->start = i % 4 ? sy_malloc(it->bytes) : sy_cache_alloc(cache);
        must(it->start != NULL);
        fill(it->start, it->bytes, i);
        must(sy_vmem_alloc(arena, quanta_of(i), fit, &it->segment) == 0);
    }
}

static void free_object(const live_object *it, size_t i) {
    check(it->start, it->bytes, i);
    if (i % 4)
        sy_free(it->start);
    else
        sy_cache_free(cache, it->start);
}

static void free_segment(const live_object *it, size_t i) {
    must(sy_vmem_xfree(arena, it->segment, quanta_of(i)) == 0);
}

static void *alloc_of_region(void) { return sy_cache_alloc(of_region); }
static void free_of_region(void *object) { sy_cache_free(of_region, object); }
static void *alloc_of_cache(void) { return sy_cache_alloc(cache); }
static void free_of_cache(void *object) { sy_cache_free(cache, object); }
static void *alloc_of_spare(void) { return sy_cache_alloc(spare); }
static void free_of_spare(void *object) { sy_cache_free(spare, object); }
static void *alloc_smallest(void) { return sy_malloc(8); }

/* Allocates and frees many objects of one size. While an object is live it holds its own address,
 * so an address that is allocated twice is noticed. */
static void use_many(void *(*alloc)(void), void (*free)(void *)) {
    static void **objects[MANY];
    for (size_t i = 0; i < MANY; i++) {
        must((objects[i] = alloc()) != NULL && *objects[i] != (void *)objects[i]);
        *objects[i] = objects[i];
    }
    for (size_t i = 0; i < MANY; i++) {
        must(*objects[i] == objects[i]);
        *objects[i] = NULL;
        free(objects[i]);
    }
}

/* Uses two size classes that nothing has used before the operation. */
static void use_classes(void) {
    void *objects[] = {sy_malloc(5000), sy_malloc(20000)};
    must(objects[0] && objects[1]);
    memset(objects[0], 5, 5000);
    memset(objects[1], 7, 20000);
    sy_free(objects[0]);
    sy_free(objects[1]);
}

static size_t count_guarded_of(const sy_cache *of) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(of, &stats) == 0);
    return stats.guarded;
}

static size_t count_guarded(void) { return count_guarded_of(guarded); }

static void use_guards(void) {
    void *objects[GUARDED];
    for (int i = 0; i < GUARDED; i++) must((objects[i] = sy_cache_alloc(guarded)) != NULL);
    must(count_guarded() >= GUARDED);
    for (int i = 0; i < GUARDED; i++) sy_cache_free(guarded, objects[i]);
}

/* Leaves no guarded slot that was never used. Each had a larger object than those of use_guards. */
static void use_few_guards(void) {
    enum { SLOTS = 4 * GUARDED, MOST = 1000 };
    void *objects[MOST];
    size_t count = 0, bytes = 0;
    sy_cache *larger = sy_cache_create(&(sy_cache_config){.size = 2000, .flags = SY_GUARD});
    atomic_store(&sy_options_now.guard_slots, SLOTS);
    atomic_store(&sy_options_now.guard_every, 2); /* with 1 the region has a million slots */
    while (count_guarded_of(larger) < SLOTS) {
        must(count < MOST && (objects[count] = sy_cache_alloc(larger)) != NULL);
        count++;
    }
    must(sy_guard_table(&bytes) && bytes <= sy_os_page_size()); /* the table of few slots */
    while (count > 0) sy_cache_free(larger, objects[--count]);
    atomic_store(&sy_options_now.guard_every, 1);
    while (!count) { /* until the last interval of 2 is over */
        objects[0] = sy_cache_alloc(larger);
        count = count_guarded_of(larger);
        sy_cache_free(larger, objects[0]);
    }
    must(sy_cache_destroy(larger) == 0);
}

static void use_epochs(void) {
    sy_epoch *epochs[2] = {sy_epoch_create("first"), sy_epoch_create("second")};
    for (int i = 0; i < 2; i++) {
        must(epochs[i] && sy_epoch_begin(epochs[i]) == 0);
        void *object = sy_cache_alloc(of_epochs);
        must(object && sy_epoch_end(epochs[i]) == 0);
        sy_cache_free(of_epochs, object);
    }
    for (int i = 0; i < 2; i++) sy_epoch_close(epochs[i]);
}

static void use_scopes(void) {
    sy_scope *scopes[2] = {sy_scope_create("outer"), sy_scope_create("inner")};
    void *objects[6];
    must(scopes[0] && scopes[1] && sy_scope_enter(scopes[0]) == 0);
    for (size_t i = 0; i < 4; i++) objects[i] = sy_malloc(40 + 500 * (i / 3));
    must(sy_scope_enter(scopes[1]) == 0);
    for (size_t i = 4; i < 6; i++) objects[i] = sy_malloc(40);
    must(sy_scope_leave(scopes[1]) == 0 && sy_scope_leave(scopes[0]) == 0);
    for (size_t i = 0; i < 6; i++) must(objects[i] != NULL);
    for (size_t i = 0; i < 6; i++) sy_free(objects[i]);
    for (size_t i = 0; i < 2; i++) {
        sy_scope_live(scopes[i], NULL);
        must(sy_scope_destroy(scopes[i]) == 0);
    }
}

static int count_epoch(void *arg, const sy_epoch_stats *stats) {
    (void)stats;
    ++*(unsigned *)arg;
    return 0;
}

/* The list has the epoch of set_up, and at most two of the operation. An epoch that the child makes
 * is in the list too. */
static void list_epochs(void) {
    unsigned before = 0, with_own = 0;
    must(sy_epoch_each(count_epoch, &before) == 0 && before >= 1 && before <= 3);
    sy_epoch *own = sy_epoch_create("own");
    must(own && sy_epoch_each(count_epoch, &with_own) == 0 && with_own == before + 1);
    sy_epoch_close(own);
}

static void work_on(void) {
    static live_object fresh[OBJECTS];
    use_classes();
    use_many(alloc_of_cache, free_of_cache);
    use_many(alloc_of_spare, free_of_spare);
    use_many(alloc_smallest, sy_free);
    if (of_region) use_many(alloc_of_region, free_of_region);
    use_guards();
    list_epochs();
    use_epochs();
    use_scopes();
    allocate_all(fresh, SY_VMEM_BEST);
    for (size_t i = 0; i < OBJECTS; i++) {
        free_object(&fresh[i], i);
        free_segment(&fresh[i], i);
    }
}

/* Survivors of one size between holes; then objects of another size, in these holes. */
enum { SURVIVORS = 64, HOLES = 40, IN_HOLES = 12, LARGER = 3500 };
static void *survivors[SURVIVORS], *in_holes[IN_HOLES];
static void leave_survivors(void) {
    static void *all[SURVIVORS * HOLES];
    for (size_t i = 0; i < SURVIVORS * HOLES; i++) must((all[i] = sy_malloc(112)) != NULL);
    for (size_t i = 0; i < SURVIVORS * HOLES; i++)
        if (i % HOLES) sy_free(all[i]);
    for (size_t i = 0; i < SURVIVORS; i++) memset(survivors[i] = all[i * HOLES], (int)i, 112);
    sy_thread_flush();
    sy_mixed_least = 0;
}
static void take_from_holes(void) {
    for (size_t i = 0; i < IN_HOLES; i++)
        must((in_holes[i] = memset(sy_malloc(LARGER), 3, LARGER)) != NULL);
    must(sy_mixed_cache_at((uintptr_t)in_holes[IN_HOLES - 1]) != NULL);
}
static void fill_holes(void) {
    leave_survivors();
    take_from_holes();
}
static void put_into_holes(void) {
    for (size_t i = 0; i < IN_HOLES; i++) sy_free(in_holes[i]);
    sy_thread_flush();
}
static void free_survivors(void) {
    for (size_t i = 0; i < SURVIVORS && survivors[i]; i++) {
        for (size_t at = 0; at < 112; at++) must(((unsigned char *)survivors[i])[at] == i);
        sy_free(survivors[i]);
    }
}

enum { FREED = 100, FREED_BYTES = 200000 };

static void look_for_slack(void) {
    sy_set_slack(1);
    (void)sy_slack_look();
    sy_set_slack(0);
}

/* Free memory of 20 MB is more than the bound permits. */
static void find_slack(void) {
    void *freed[FREED];
    sy_set_slack(0);
    for (int i = 0; i < FREED; i++) freed[i] = sy_malloc(FREED_BYTES);
    for (int i = 0; i < FREED; i++) sy_free(freed[i]);
    sy_set_slack(1);
    must(sy_slack_look() > 0);
    sy_set_slack(0);
}

/* Names of which few are live, so that their words are folded. */
enum { NAMES = 600, NAMES_KEPT = 20 };
static sy_cache *movable;
static sy_handle names[NAMES]; /* 0: freed */
static sy_handle freed_names[NAMES];

static void look_up_names(void) {
    sy_read_guard guard = sy_read_enter();
    for (size_t i = 0; i < NAMES; i++) {
        const size_t *got = names[i] ? sy_read_get(movable, names[i]) : NULL;
        must(!names[i] || (got && *got == i));
    }
    sy_read_leave(guard);
}
static void make_name(size_t i) {
    sy_read_guard guard = sy_read_enter();
    size_t *made = sy_handle_prepare(movable, &names[i]);
    must(made != NULL);
    *made = i;
    sy_handle_publish(movable, names[i]);
    sy_read_leave(guard);
}
static void free_name(size_t i) {
    must(sy_handle_free(movable, names[i]));
    freed_names[i] = names[i];
    names[i] = 0;
}
static void leave_names(void) {
    movable = sy_cache_create(&(sy_cache_config){.size = 56, .flags = SY_HANDLES | SY_MOVABLE});
    must(movable != NULL);
    /* What is freed has higher generations than what stays, and those of the first names, whose
     * words become zero first, are the highest. */
    for (size_t i = 0; i < NAMES; i++) {
        make_name(i);
        for (int again = i < NAMES / 2 ? 2 : 1; again > 0 && i % NAMES_KEPT; again--) {
            free_name(i);
            make_name(i);
        }
    }
    for (size_t i = 0; i < NAMES; i++)
        if (i % NAMES_KEPT) free_name(i);
    sy_thread_flush();
}
static void fold_names(void) { sy_cache_trim(movable); }
/* No object gets a handle that an earlier one had. */
static void make_names_again(void) {
    for (size_t i = 0; i < NAMES; i++)
        if (!names[i]) make_name(i);
    for (size_t i = 0; i < NAMES; i++)
        must(!freed_names[i] || !sy_handle_pin(movable, freed_names[i]));
}
static void leave_folded_names(void) {
    leave_names();
    fold_names();
}

static void go_on_in_child(void) {
    alarm(PATIENCE);
    must(sy_verify() == 0);
    if (movable) fold_names();
    if (movable) look_up_names();
    if (movable) make_names_again();
    find_slack();
    work_on();
    must(sy_verify() == 0);
    for (size_t i = 0; i < OBJECTS; i++) {
        free_object(&live[i], i);
        if (i % 3) free_segment(&live[i], i);
    }
    free_survivors();
    sy_trim();
    must(sy_verify() == 0);
    sy_cache *other = sy_cache_create(&(sy_cache_config){.size = 72});
    must(other != NULL && sy_cache_alloc(other) != NULL);
    sy_cache_destroy_all(other);
    must(sy_verify() == 0);
}

/* ---- operations ---- */

enum { SEVERAL = 40, SPARES = 200, SLABS_OBJECTS = 6000 };
static void *taken[SEVERAL], *spares[SPARES];
static uintptr_t value;

static void nothing(void) {}

static void allocate_several(void) {
    for (int i = 0; i < SEVERAL; i++) taken[i] = sy_cache_alloc(cache);
}

static void free_several(void) {
    for (int i = 0; i < SEVERAL; i++) sy_cache_free(cache, taken[i]);
    sy_thread_flush();
}

static void allocate_run(void) { taken[0] = sy_malloc(150000); }
static void allocate_span(void) { taken[0] = sy_malloc(9 << 20); }
static void free_taken(void) { sy_free(taken[0]); }
static void grow_run(void) { taken[0] = sy_realloc(taken[0], 400000); }
static void shrink_run(void) { taken[0] = sy_realloc(taken[0], 70000); }
static void grow_span(void) { taken[0] = sy_realloc(taken[0], 14 << 20); }

static void allocate_and_free_runs(void) {
    for (int i = 0; i < SEVERAL; i++) taken[i] = sy_malloc(200000);
    for (int i = 0; i < SEVERAL; i++) sy_free(taken[i]);
}

static void allocate_and_free_spans(void) {
    for (int i = 0; i < 4; i++) taken[i] = sy_malloc((5 + (size_t)i) << 20);
    for (int i = 0; i < 4; i++) sy_free(taken[i]);
}

/* Leaves empty slabs, and slabs with pages of which no object is live. */
static void allocate_and_free_slabs(void) {
    static void *objects[SLABS_OBJECTS];
    for (size_t i = 0; i < SLABS_OBJECTS; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < SLABS_OBJECTS; i++)
        if (i > SLABS_OBJECTS / 2 || i % 1000) sy_cache_free(cache, objects[i]);
}

static void trim_cache(void) { sy_cache_trim(cache); }

static void trim(void) { sy_trim(); }

static void take_value(void) { must(sy_vmem_alloc(arena, 3 * QUANTUM, SY_VMEM_BEST, &value) == 0); }
static void take_much(void) {
    must(sy_vmem_alloc(arena, 900 * QUANTUM, SY_VMEM_INSTANT, &value) == 0);
}
static void give_much(void) { must(sy_vmem_xfree(arena, value, 900 * QUANTUM) == 0); }
static void take_next(void) { must(sy_vmem_alloc(arena, 2 * QUANTUM, SY_VMEM_NEXT, &value) == 0); }
static void take_aligned(void) {
    const sy_vmem_constraints aligned = {.align = 16 * QUANTUM, .phase = QUANTUM};
    must(sy_vmem_xalloc(arena, 2 * QUANTUM, &aligned, SY_VMEM_BEST, &value) == 0);
}
static void give_pair(void) { must(sy_vmem_xfree(arena, value, 2 * QUANTUM) == 0); }
static void give_value(void) { must(sy_vmem_xfree(arena, value, 3 * QUANTUM) == 0); }
static void shrink_value(void) {
    must(sy_vmem_resize(arena, value, 3 * QUANTUM, 2 * QUANTUM) == 0);
}

static sy_cache *made;
static void create_cache(void) { made = sy_cache_create(&(sy_cache_config){.size = 56}); }
static void destroy_cache(void) { must(sy_cache_destroy(made) == 0); }
static void create_arena(void) {
    sy_vmem *other =
        sy_vmem_create(&(sy_vmem_config){.name = "other", .base = 1 << 20, .size = 1 << 20});
    must(other && sy_vmem_destroy(other) == 0);
}
static void allocate_spares(void) {
    for (int i = 0; i < SPARES; i++) spares[i] = sy_cache_alloc(spare);
}
static void free_spares(void) {
    for (int i = 0; i < SPARES; i++) sy_cache_free(spare, spares[i]);
}
static void free_spares_and_flush(void) {
    free_spares();
    sy_thread_flush();
    sy_cache_trim(spare);
}
static void end_with_spares(void) {
    free_spares();
    sy_thread_idle();
}
static void use_separate_heap(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "separate"});
    must(heap && sy_heap_alloc(heap, 100));
    sy_heap_destroy_all(heap);
}
static void use_handles(void) {
    sy_handle handle;
    sy_cache *named = sy_cache_create(&(sy_cache_config){.size = 56, .flags = SY_HANDLES});
    must(named && sy_handle_alloc(named, &handle) && sy_handle_free(named, handle));
    must(sy_cache_destroy(named) == 0);
}
static void use_checks(void) {
    sy_cache *checked = sy_cache_create(&(sy_cache_config){.size = 56, .flags = SY_CHECKED});
    for (int i = 0; i < 4; i++) sy_cache_free(checked, sy_cache_alloc(checked));
    must(sy_cache_destroy(checked) == 0);
}
static void free_all_spares(void) {
    allocate_spares();
    free_spares();
}
static void trim_spares(void) { sy_cache_trim(spare); }
static void make_memory(void) {
    enum { CHUNK = 4 << 20 };
    static char region[4 * CHUNK];
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.start = region, .bytes = sizeof region});
    of_region = sy_cache_create(&(sy_cache_config){.size = 40, .memory = memory});
    must(memory && of_region);
}
static void use_first_chunk(void) { must(sy_cache_alloc(of_region) != NULL); }
static void open_tag(void) { sy_tag_set(sy_tag_open("a tag")); }
static void set_limit(void) { must(sy_set_limit(&(sy_limit){.hard = SIZE_MAX / 4}) == 0); }
static void use_pool(void) {
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 48, .flags = SY_CHECKED});
    sy_pool_free(pool, sy_pool_alloc(pool));
    sy_pool_destroy(pool);
}
static void use_quantum_caches(void) {
    sy_vmem *cached = sy_vmem_create(&(sy_vmem_config){
        .base = QUANTUM, .size = 1000 * QUANTUM, .quantum = QUANTUM, .cached_max = 4 * QUANTUM});
    must(cached && sy_vmem_alloc(cached, QUANTUM, SY_VMEM_INSTANT, &value) == 0);
    sy_vmem_free(cached, value, QUANTUM);
    must(sy_vmem_destroy(cached) == 0);
}
static unsigned char *to_move;
static void leave_sparse_spares(void) {
    static unsigned char *all[SLABS_OBJECTS];
    for (size_t i = 0; i < SLABS_OBJECTS; i++)
        must((all[i] = sy_cache_alloc(spare)) && memset(all[i], (int)i, 40));
    for (size_t i = 0; i < SLABS_OBJECTS; i++)
        if (i % 10) sy_cache_free(spare, all[i]);
    sy_cache_trim(spare);
    for (size_t i = 0; i < SLABS_OBJECTS && !to_move; i += 10)
        if (sy_should_move(all[i])) to_move = all[i];
    must(to_move != NULL);
}
static void move_object(void) {
    unsigned char first = *to_move, *moved = sy_try_move(to_move);
    must(moved != NULL);
    for (size_t i = 0; i < 40; i++) must(moved[i] == first);
}
static void go_idle(void) { sy_thread_idle(); }
static void flush(void) { sy_thread_flush(); }

typedef struct operation {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
    enum { SHORT, LONG } length; /* LONG: run only if the distance is an argument */
} operation;

static const operation operations[] = {
    {"allocate objects", nothing, allocate_several, SHORT},
    {"free objects and flush", allocate_several, free_several, SHORT},
    {"allocate a run", nothing, allocate_run, SHORT},
    {"free a run", allocate_run, free_taken, SHORT},
    {"grow a run", allocate_run, grow_run, SHORT},
    {"shrink a run", grow_run, shrink_run, LONG},
    {"allocate a span", nothing, allocate_span, SHORT},
    {"grow a span", allocate_span, grow_span, SHORT},
    {"free a span", allocate_span, free_taken, SHORT},
    {"trim runs", allocate_and_free_runs, trim, LONG},
    {"trim slabs", allocate_and_free_slabs, trim_cache, LONG},
    {"trim spans", allocate_and_free_spans, trim, LONG},
    {"take a segment", nothing, take_value, SHORT},
    {"shrink a segment", take_value, shrink_value, SHORT},
    {"give a segment", take_value, give_value, SHORT},
    {"take the next segment", nothing, take_next, SHORT},
    {"give the next segment", take_next, give_pair, SHORT},
    {"take an aligned segment", nothing, take_aligned, SHORT},
    {"import a span", nothing, take_much, SHORT},
    {"give a span back", take_much, give_much, SHORT},
    {"create a cache", nothing, create_cache, SHORT},
    {"destroy a cache", create_cache, destroy_cache, SHORT},
    {"create and destroy an arena", nothing, create_arena, SHORT},
    {"open size classes", nothing, use_classes, SHORT},
    {"allocate first objects", nothing, allocate_spares, SHORT},
    {"first chunk", make_memory, use_first_chunk, SHORT},
    {"free all objects", allocate_spares, free_spares_and_flush, LONG},
    {"free and go idle", allocate_spares, end_with_spares, SHORT},
    {"trim what was freed", free_all_spares, trim_spares, LONG},
    {"separate heap", nothing, use_separate_heap, SHORT},
    {"handles", nothing, use_handles, SHORT},
    {"fold names", leave_names, fold_names, LONG},
    {"unfold names", leave_folded_names, look_up_names, LONG},
    {"checks", nothing, use_checks, LONG},
    {"epochs", nothing, use_epochs, LONG},
    {"scopes", use_scopes, use_scopes, LONG},
    {"guarded objects", use_guards, use_guards, LONG},
    {"guarded objects in used slots", use_few_guards, use_guards, LONG},
    {"tag", nothing, open_tag, SHORT},
    {"limit", nothing, set_limit, SHORT},
    {"checked pool", nothing, use_pool, SHORT},
    {"quantum caches", nothing, use_quantum_caches, SHORT},
    {"take from holes", leave_survivors, take_from_holes, SHORT},
    {"put into holes", fill_holes, put_into_holes, SHORT},
    {"look for slack", allocate_several, look_for_slack, SHORT},
    {"flush", allocate_several, flush, SHORT},
    {"go idle", allocate_several, go_idle, SHORT},
    {"move an object", leave_sparse_spares, move_object, SHORT},
};

/* ---- locks that another thread holds ---- */

typedef struct other_lock {
    const char *name;
    sy_lock *(*lock)(void);
} other_lock;

static sy_lock *lock_of_cache(void) { return &cache->lock; }
static sy_lock *lock_of_mixed(void) { return &sy_mixed.lock; }
static sy_lock *lock_of_arena(void) { return &arena->lock; }
static sy_lock *lock_of_addresses(void) { return &sy_memory_main.arena->lock; }
static sy_lock *lock_of_chunks(void) { return &sy_memory_main.lock; }
static sy_lock *lock_of_spans(void) { return &sy_memory_main.large_lock; }

static const other_lock other_locks[] = {
    {"a cache", lock_of_cache},  {"mixed units", lock_of_mixed},
    {"an arena", lock_of_arena}, {"addresses", lock_of_addresses},
    {"chunks", lock_of_chunks},  {"large spans", lock_of_spans},
};

/* ---- one instruction at a time ---- */

static sem_t stopped, go_on;
static const operation *at_work;
static _Atomic bool stepping, over;
static _Atomic unsigned steps, held_by_other;
/* A fork at each so many-th instruction under a lock. 0: a distance for each test, and no long
 * operations. */
static unsigned distance;
static uint64_t last_place;
static unsigned forks, bad;
static const other_lock *hold_other; /* NULL: the operation is another thread's */
static sy_lock *held_lock;
static bool is_child;

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {}
}

static void await(pid_t child) {
    int status = 0;
    must(child > 0 && waitpid(child, &status, 0) == child);
    forks++;
    if (status == 0) return;
    fprintf(stderr, "%s: the child of a fork at instruction %u (%#lx) ended with %#x\n",
            at_work->name, steps, (unsigned long)last_place, status);
    bad++;
}

static void *hold_lock(void *arg) {
    for (;;) {
        wait_for(&go_on);
        sy_lock_acquire(held_lock);
        sem_post(&stopped);
        wait_for(&go_on);
        sy_lock_release(held_lock);
        sem_post(&stopped);
    }
    return arg;
}

/* The other thread takes the lock, this one forks without it. In the child it returns and completes
 * its operation. */
static void fork_beside_holder(void) {
    sem_post(&go_on);
    wait_for(&stopped);
    pid_t child = fork();
    if (child == 0) {
        is_child = true;
        stepping = false;
        return;
    }
    await(child);
    sem_post(&go_on);
    wait_for(&stopped);
}

static unsigned with_lock(void) {
    if (distance) return distance;
    return hold_other ? 499 : 29;
}

/* With an argument of 1, a fork comes at every instruction. */
static unsigned without_lock(void) { return with_lock() == 1 ? 1 : 10 * with_lock() + 7; }

static void step(void *context) {
    if (!stepping) {
        clear_trap_flag(context);
        return;
    }
    uintptr_t place = trapped_at(context);
    if (place == last_place) return; /* a repeated instruction, such as rep stos */
    if (!is_of_program(place)) return;
    last_place = place;
    unsigned held = sy_lock_self.held;
    if (++steps % (held ? with_lock() : without_lock())) return;
    if (!hold_other) {
        held_by_other = held;
        sem_post(&stopped);
        wait_for(&go_on);
    } else if (held && !sy_lock_is_mine(held_lock)) {
        fork_beside_holder();
        if (is_child) clear_trap_flag(context);
    }
}

static void *run_in_steps(void *arg) {
    at_work->prepare();
    stepping = true;
    set_trap_flag();
    at_work->run();
    stepping = false;
    over = true;
    sem_post(&stopped);
    return arg;
}

static void fork_here(void) {
    sy_lock_self.held += held_by_other > 0;
    pid_t child = fork();
    sy_lock_self.held -= held_by_other > 0;
    if (child == 0) {
        go_on_in_child();
        _exit(0);
    }
    await(child);
}

static void set_up(const operation *it) {
    at_work = it;
    must(call_at_traps(step));
    sy_lock_patience_ns = sy_stack_patience_ns = 0;
    sy_set_decay(0); /* while the operation stands, no time passes for it */
    must(sem_init(&stopped, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
    cache = sy_cache_create(&(sy_cache_config){.size = 40});
    spare = sy_cache_create(&(sy_cache_config){.size = 40});
    source = sy_vmem_create(&(sy_vmem_config){
        .name = "source", .base = QUANTUM, .size = (size_t)RESOURCE * QUANTUM, .quantum = QUANTUM});
    arena = sy_vmem_create(&(sy_vmem_config){
        .name = "torn", .source = source, .quantum = QUANTUM, .import_min = 256 * QUANTUM});
    atomic_store(&sy_options_now.guard_every, 1);
    guarded = sy_cache_create(&(sy_cache_config){.size = 40, .flags = SY_GUARD});
    of_epochs = sy_cache_create(&(sy_cache_config){.size = 40, .flags = SY_EPOCHS});
    must(cache && spare && source && arena && guarded && of_epochs);
    must(sy_epoch_create("of the set-up") != NULL);
    uintptr_t segment;
    for (size_t i = 0; i < FILLING; i++)
        must(sy_vmem_alloc(arena, QUANTUM, SY_VMEM_INSTANT, &segment) == 0);
    allocate_all(live, SY_VMEM_INSTANT);
    for (size_t i = 0; i < OBJECTS; i += 3) free_segment(&live[i], i);
    sy_thread_flush();
}

static void end_steps(void) {
    printf("%s%s%s: %u forks, %u bad\n", at_work->name, hold_other ? ", without the lock of " : "",
           hold_other ? hold_other->name : "", forks, bad);
    must(bad == 0);
}

static void step_through(void *arg) {
    pthread_t thread;
    set_up(arg);
    must(pthread_create(&thread, NULL, run_in_steps, NULL) == 0);
    while (sem_wait(&stopped) == 0 && !over) {
        fork_here();
        sem_post(&go_on);
    }
    pthread_join(thread, NULL);
    end_steps();
}

static void step_beside_holder(void *arg) {
    pthread_t thread;
    set_up(arg);
    held_lock = hold_other->lock();
    must(pthread_create(&thread, NULL, hold_lock, NULL) == 0);
    run_in_steps(NULL);
    if (is_child) {
        go_on_in_child();
        must(count_guarded() == 0); /* the child had no other thread with a guarded object */
        _exit(0);
    }
    end_steps();
}

static const char *only; /* NULL: all operations */

static bool is_run(const operation *it) {
    return (it->length == SHORT || distance) && (!only || strcmp(it->name, only) == 0);
}

static void a_fork_at_any_instruction_of_another_thread(void **state) {
    (void)state;
    if (!CAN_STEP) skip();
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (is_run(&operations[i]))
            failed += in_child(step_through, (void *)(uintptr_t)&operations[i]) != 0;
    assert_int_equal(failed, 0);
}

static void a_fork_at_any_instruction_without_a_lock_of_another_thread(void **state) {
    (void)state;
    if (!CAN_STEP) skip();
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (size_t k = 0; k < sizeof other_locks / sizeof *other_locks; k++) {
            if (!is_run(&operations[i])) continue;
            hold_other = &other_locks[k];
            failed += in_child(step_beside_holder, (void *)(uintptr_t)&operations[i]) != 0;
        }
    hold_other = NULL;
    assert_int_equal(failed, 0);
}

/* Arguments: a value of `distance`, and the name of the only operation to run. */
int main(int argc, char **argv) {
    must_have(SY_OS_FORKS, "fork");
    if (argc > 1) distance = (unsigned)atoi(argv[1]);
    if (argc > 2) only = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_at_any_instruction_of_another_thread),
        cmocka_unit_test(a_fork_at_any_instruction_without_a_lock_of_another_thread),
    };
    return cmocka_run_group_tests_name("fork_steps", tests, NULL, NULL);
}
