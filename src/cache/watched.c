/*
 * watched.c: allocation and free in caches with SY_CHECKED. Every operation validates the object's
 * record. A freed object may wait in quarantine before it is reused.
 */
#include "cache/watched.h"

#include <errno.h>

#include "base/bits.h"
#include "cache/epoch.h"
#include "cache/guarded.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "debug/history.h"
#include "debug/options.h"
#include "debug/tell.h"
#include "debug/tools.h"

/* ---- from an object to its record ---- */

static void *object_of(const sy_cache *cache, uintptr_t item) {
    return cache->flags & SY_HANDLES ? sy_handle_place(&cache->names, item) : (void *)item;
}

/* The record of an object that is known to lie in a slot of the cache. */
static sy_record *record_of(const sy_cache *cache, const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    uint32_t index = sy_slab_index(slab, &cache->layout, (uintptr_t)object);
    return &sy_watched_records(cache, slab)[index];
}

/* The record of the slot that begins at `address`. NULL if no slot begins there; then *fault
 * describes what freeing the address would be. */
static sy_record *find_record(const sy_cache *cache, uintptr_t address, sy_fault *fault) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || sy_slab_owner(slab) != cache) {
        *fault = sy_cache_fault(cache, sy_cache_fault_outside(cache, slab), address, slab);
        return NULL;
    }
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    if (index != UINT32_MAX) return &sy_watched_records(cache, slab)[index];
    *fault = sy_cache_fault(cache, SY_FAULT_MISALIGNED_POINTER, address, slab);
    return NULL;
}

static bool sy_watched_find(const sy_cache *cache, const void *object, size_t *bytes) {
    sy_fault fault;
    const sy_record *record = find_record(cache, (uintptr_t)object, &fault);
    bool live = record && sy_record_state(record) == SY_OBJECT_LIVE;
    *bytes = live ? sy_record_size(record) : 0;
    return live;
}

/* ---- visiting live objects ---- */

typedef struct sy_visiting {
    const sy_cache *cache;
    sy_watched_visit *visit;
    void *arg;
} sy_visiting;

static void visit_if_live(void *visiting_, const void *object, const sy_record *record) {
    const sy_visiting *visiting = visiting_;
    sy_live live;
    if (sy_record_live(record, &live))
        visiting->visit(visiting->arg, visiting->cache, object, &live);
}

static void visit_slab(sy_visiting *visiting, const sy_slab *slab) {
    const sy_cache *cache = visiting->cache;
    const sy_record *records = sy_watched_records(cache, slab);
    for (uint32_t index = 0; index < slab->slots; index++)
        visit_if_live(visiting, (void *)(slab->first + index * cache->layout.slot),
                      &records[index]);
}

void sy_watched_each(sy_cache *cache, sy_watched_visit *visit, void *arg) {
    sy_visiting visiting = {cache, visit, arg};
    if (!(cache->flags & SY_AUDIT)) return;
    if (sy_cache_guards(cache)) sy_guard_each(cache->watch, visit_if_live, &visiting);
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) visit_slab(&visiting, slab);
    sy_lock_release(&cache->lock);
}

/* ---- describing the object of a fault ---- */

static void describe_slot(const sy_cache *cache, const sy_slab *slab, sy_fault *fault) {
    const sy_layout *layout = &cache->layout;
    size_t index = ((uintptr_t)fault->address - (slab->first - layout->zone)) / layout->slot;
    if (index >= slab->slots) return;
    fault->object = (void *)(slab->first + index * layout->slot);
    if (sy_cache_checks(cache)) sy_watch_describe(&sy_watched_records(cache, slab)[index], fault);
    if (fault->kind == SY_FAULT_WRONG_CACHE && !fault->found_size) fault->found_size = cache->size;
}

static void describe_guarded(sy_fault *fault) {
    uintptr_t object;
    sy_watch *watch;
    const sy_record *record = sy_guard_record((uintptr_t)fault->address, &object, &watch);
    if (!record) return;
    fault->object = (void *)object;
    sy_watch_describe(record, fault);
}

void sy_watched_describe(sy_fault *fault) {
    const sy_slab *run = sy_slab_at((uintptr_t)fault->address);
    bool foreign = !run && fault->kind == SY_FAULT_FOREIGN_POINTER;
    if (foreign && sy_run_ended_at((uintptr_t)fault->address)) fault->kind = SY_FAULT_DOUBLE_FREE;
    if (sy_guard_owns((uintptr_t)fault->address))
        describe_guarded(fault);
    else if (run && sy_slab_owner(run))
        describe_slot(sy_slab_owner(run), run, fault);
    else if (run && run->first)
        fault->object = (void *)run->first;
    if (fault->object) fault->offset = (const char *)fault->address - (const char *)fault->object;
}

/* ---- construction at each allocation ---- */

static void count_built(sy_cache *cache, uint64_t constructed, uint64_t destructed) {
    sy_lock_acquire(&cache->lock);
    cache->counts.constructed += constructed;
    cache->counts.destructed += destructed;
    sy_lock_release(&cache->lock);
}

typedef struct sy_building {
    sy_undo *undo;
    const void *work;
    bool built;
} sy_building;

static void end_building(const sy_building *building) {
    if (building->built) return;
    int error = errno;
    building->undo(building->work);
    errno = error;
}

bool sy_watched_construct(sy_cache *cache, int (*construct)(void *object, void *arg), void *object,
                          sy_undo *undo, const void *work) {
    sy_building building SY_CLEANUP(end_building) = {undo, work, false};
    SY_CALLBACK(call, "constructor", "cache", cache->name, true);
    building.built = construct(object, cache->arg) == 0;
    call.returned = true;
    return building.built;
}

bool sy_watched_build(sy_cache *cache, void *object, sy_undo *undo, const void *work) {
    if (!cache->rebuilds.construct) return true;
    bool built = sy_watched_construct(cache, cache->rebuilds.construct, object, undo, work);
    if (built) count_built(cache, 1, 0);
    return built;
}

void sy_watched_unbuild(sy_cache *cache, void *object) {
    if (!cache->rebuilds.construct) return;
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    if (cache->rebuilds.destruct) cache->rebuilds.destruct(object, cache->arg);
    call.returned = true;
    count_built(cache, 0, 1);
}

/* ---- allocation ---- */

/* Takes an item. If there is none, objects that wait in quarantine are made available. */
static bool take_item(sy_cache *cache, uintptr_t *item) {
    if (sy_cache_take_item(cache, item)) return true;
    int error = errno;
    if (sy_watched_drain(cache) && sy_cache_take_item(cache, item)) return true;
    errno = error;
    return false;
}

/* What is to be given back if the constructor fails. */
typedef struct sy_taken {
    sy_cache *cache;
    sy_record *record;
    void *object;
    uintptr_t item;
} sy_taken;

static void put_taken_back(const void *taken_) {
    const sy_taken *taken = taken_;
    sy_watch_forget(taken->cache->watch, taken->record, taken->object);
    sy_client_free(&taken->cache->client, taken->item);
    sy_limit_refuse(SY_REFUSAL_CONSTRUCTOR);
}

/* Takes an item, and makes its object ready for use. */
static bool take_and_build(sy_cache *cache, size_t size, uintptr_t *item) {
    if (!take_item(cache, item)) return false;
    void *object = object_of(cache, *item);
    sy_record *record = record_of(cache, object);
    int error = errno;
    sy_watch_taken(cache->watch, record, object);
    sy_watch_show(cache->watch, record, object, size);
    const sy_taken taken = {cache, record, object, *item};
    if (!sy_watched_build(cache, object, put_taken_back, &taken)) return false;
    bool built = cache->construct || cache->rebuilds.construct;
    sy_watch_given(cache->watch, record, object, size, built);
    errno = error;
    return true;
}

static bool sy_watched_take_on_path(sy_cache *cache, size_t size, uintptr_t *item) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool taken = take_and_build(cache, size, item);
    path.done = true;
    return taken;
}

static bool sy_watched_take(sy_cache *cache, size_t size, size_t align, uintptr_t *item) {
    (void)align; /* each slot has the cache's */
    bool taken = sy_watched_take_on_path(cache, size, item);
    sy_cache_turn_of_alloc();
    return taken;
}

static bool sy_watched_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *item) {
    if (sy_limit_fail_due(cache->name, size)) return false;
    return sy_watched_take(cache, size, align, item);
}

/* ---- free ---- */

/* Ends an object whose record this thread has claimed: destructs and fills it, and puts it in
 * quarantine. `again`: the slot may be used again; if not, it never returns to its slab. */
static void sy_watched_put_away(sy_cache *cache, sy_record *record, uintptr_t item, bool again) {
    void *object = object_of(cache, item);
    uintptr_t out;
    sy_watched_unbuild(cache, object);
    sy_watch_fill(cache->watch, record, object);
    if (!again) return;
    sy_lock_acquire(&cache->lock);
    bool over = sy_epoch_is_over(cache, object);
    bool full = !over && sy_watch_wait(cache->watch, item, &out);
    sy_lock_release(&cache->lock);
    if (over || full) sy_client_free(&cache->client, over ? item : out);
    sy_drained_end();
}

static void sy_watched_free_on_path(sy_cache *cache, void *object, size_t told) {
    SY_SLOW_PATH(&cache->client);
    sy_fault fault;
    sy_record *record = find_record(cache, (uintptr_t)object, &fault);
    if (!record) {
        sy_fault_raise(&fault);
        return;
    }
    if (!sy_watch_claim(cache->watch, record, object, told)) return;
    sy_watched_put_away(cache, record, (uintptr_t)object, true);
}

static void sy_watched_free(sy_cache *cache, void *object, size_t told) {
    int error = errno;
    sy_watched_free_on_path(cache, object, told);
    sy_turn();
    errno = error;
}

static bool sy_watched_try_free(sy_cache *cache, void *object) {
    SY_SLOW_PATH(&cache->client);
    sy_fault fault;
    sy_lock_acquire(&cache->lock); /* under it neither the slab nor its records are released */
    bool found = sy_slab_is_in(sy_slab_at((uintptr_t)object), cache);
    sy_record *record = found ? find_record(cache, (uintptr_t)object, &fault) : NULL;
    bool claimed = record && sy_watch_try_claim(record);
    sy_lock_release(&cache->lock);
    if (!claimed) return false;
    sy_watch_claimed(cache->watch, record, object);
    sy_watched_put_away(cache, record, (uintptr_t)object, true);
    return true;
}

static void sy_watched_put_on_path(sy_cache *cache, uintptr_t ordinal, bool retires) {
    SY_SLOW_PATH(&cache->client);
    void *object = object_of(cache, ordinal);
    sy_record *record = record_of(cache, object);
    if (sy_watch_claim(cache->watch, record, object, SIZE_MAX))
        sy_watched_put_away(cache, record, ordinal, !retires);
}

/* Puts away the object of an ordinal. */
static void sy_watched_put(sy_cache *cache, uintptr_t ordinal, bool retires) {
    int error = errno;
    sy_watched_put_on_path(cache, ordinal, retires);
    sy_turn();
    errno = error;
}

void sy_watched_raise(const sy_cache *cache, uint32_t ordinal, sy_fault_kind kind) {
    const void *object = object_of(cache, ordinal);
    sy_watch_raise(cache->watch, record_of(cache, object), kind, object, object);
}

bool sy_watched_drain(sy_cache *cache) {
    if (!(cache->flags & SY_QUARANTINE)) return false;
    for (bool any = false;; any = true) {
        uintptr_t item;
        sy_lock_acquire(&cache->lock);
        bool more = sy_watch_next(cache->watch, &item);
        sy_lock_release(&cache->lock);
        if (!more) return any;
        sy_client_free(&cache->client, item);
    }
}

/* ---- slabs ---- */

static size_t tables_bytes(const sy_cache *cache) {
    const sy_layout *layout = &cache->layout;
    return 2 * sizeof(uint64_t) * layout->words + layout->slots * sizeof(sy_record);
}

/* Both bitmaps and the records are one block. */
static bool take_watched_tables(const sy_cache *cache, sy_slab *slab) {
    slab->free = sy_side_take(tables_bytes(cache));
    slab->built = cache->construct && slab->free ? slab->free + cache->layout.words : NULL;
    return slab->free;
}

static void give_watched_tables(const sy_cache *cache, sy_slab *slab) {
    sy_side_give(slab->free, tables_bytes(cache));
}

typedef struct sy_edge {
    void *start;
    size_t bytes;
} sy_edge;

/* The bytes of the slab before its first slot, and those behind its last. */
static void find_edges(const sy_cache *cache, const sy_slab *slab, sy_edge edges[2]) {
    const sy_layout *layout = &cache->layout;
    uintptr_t first = slab->first - layout->zone;
    uintptr_t end = first + layout->slots * layout->slot;
    edges[0] = (sy_edge){(void *)slab->start, first - slab->start};
    edges[1] = (sy_edge){(void *)end, slab->start + slab->bytes - end};
}

static void lay_edges(const sy_cache *cache, const sy_slab *slab) {
    if (!(cache->flags & SY_EDGES)) return;
    sy_edge edges[2];
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++) sy_watch_lay(cache->watch, edges[i].start, edges[i].bytes);
}

void sy_watched_begin_slab(sy_cache *cache, sy_slab *slab) {
    if (cache->flags & SY_TOLD) sy_tool_begin((void *)slab->start, slab->bytes);
    lay_edges(cache, slab);
}

uint64_t sy_watched_edges(const sy_cache *cache, const sy_slab *slab) {
    if (!(cache->flags & SY_EDGES)) return 0;
    size_t granule = sy_slab_granule(slab);
    uint64_t granules = 0;
    sy_edge edges[2];
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++) {
        size_t from = (uintptr_t)edges[i].start - slab->start, to = from + edges[i].bytes;
        for (size_t index = from / granule; index * granule < to && index < 64; index++)
            granules |= UINT64_C(1) << index;
    }
    return granules;
}

/* Describes the damaged edges of a slab in `faults`; returns how many there are. */
static size_t look_at_edges(const sy_cache *cache, const sy_slab *slab, sy_fault faults[2]) {
    if (!(cache->flags & SY_EDGES)) return 0;
    sy_edge edges[2];
    size_t wrong = 0;
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++)
        wrong +=
            sy_watch_look_at_edge(cache->watch, edges[i].start, edges[i].bytes, &faults[wrong]);
    return wrong;
}

static void forget_slot(sy_cache *cache, sy_record *record, void *object) {
    if (sy_record_state(record) == SY_OBJECT_LIVE) sy_watched_unbuild(cache, object);
    sy_watch_forget(cache->watch, record, object);
}

void sy_watched_forget(sy_cache *cache, sy_slab *slab, const uint64_t *slots) {
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++)
        if (!slots || sy_slab_bit(slots, index))
            forget_slot(cache, &sy_watched_records(cache, slab)[index],
                        (void *)(slab->first + index * cache->layout.slot));
    sy_fault faults[2];
    size_t wrong = slots ? 0 : look_at_edges(cache, slab, faults);
    for (size_t i = 0; i < wrong; i++) sy_fault_raise(&faults[i]);
    if (!slots && cache->flags & SY_TOLD) sy_tool_end((void *)slab->start, slab->bytes);
}

void sy_watched_end_slab(sy_cache *cache, sy_slab *slab) { sy_watched_forget(cache, slab, NULL); }

const sy_slab_kind sy_slabs_watched = {
    .take_tables = take_watched_tables,
    .give_tables = give_watched_tables,
    .begin = sy_watched_begin_slab,
    .end = sy_watched_end_slab,
    .populate = sy_run_populate,
};

const sy_kind sy_kind_checked = {
    .alloc = sy_watched_alloc,
    .take = sy_watched_take,
    .free = sy_watched_free,
    .put = sy_watched_put,
    .try_free = sy_watched_try_free,
    .find = sy_watched_find,
    .fill = sy_cache_fill_singly,
    .refill = sy_cache_refill,
    .flush = sy_cache_flush,
    .slabs = &sy_slabs_watched,
};

/* ---- verification ---- */

enum { TOLD_MAX = 16 }; /* faults of one walk that are described; further ones are counted */

typedef struct sy_walk {
    bool free_only; /* live objects and edges are passed over */
    size_t wrong, told;
    sy_fault faults[TOLD_MAX + 2];
} sy_walk;

static void look_at_slab(const sy_cache *cache, const sy_slab *slab, sy_walk *walk) {
    size_t edges = walk->free_only ? 0 : look_at_edges(cache, slab, &walk->faults[walk->told]);
    walk->wrong += edges;
    walk->told = walk->told + edges < TOLD_MAX ? walk->told + edges : TOLD_MAX;
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++) {
        const sy_record *record = &sy_watched_records(cache, slab)[index];
        const void *object = (void *)(slab->first + index * cache->layout.slot);
        if (walk->free_only && sy_record_state(record) != SY_OBJECT_FREE) continue;
        if (!sy_watch_look(cache->watch, record, object, &walk->faults[walk->told])) continue;
        walk->wrong++;
        if (walk->told < TOLD_MAX) walk->told++;
    }
}

/* Looks at all slabs under the lock. Then calls `found` for each fault described, without it. */
static void sy_watched_look_at_all(sy_cache *cache, sy_walk *walk,
                                   void (*found)(const sy_fault *fault)) {
    walk->wrong = walk->told = 0;
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
        look_at_slab(cache, slab, walk);
    sy_lock_release(&cache->lock);
    sy_tool_enter(); /* reports show the damaged bytes, which tools may treat as inaccessible */
    for (size_t i = 0; i < walk->told; i++) found(&walk->faults[i]);
    sy_tool_leave();
}

size_t sy_watched_verify(sy_cache *cache) {
    sy_walk walk;
    walk.free_only = false;
    if (!cache->watch) return 0;
    sy_watched_look_at_all(cache, &walk, sy_fault_tell);
    return walk.wrong;
}

static void verify_free(sy_cache *cache) {
    sy_walk walk;
    walk.free_only = true;
    if (cache->watch && cache->flags & SY_POISON)
        sy_watched_look_at_all(cache, &walk, sy_fault_raise);
}

static void verify_ending_process(void) {
    if (!atomic_load_explicit(&sy_options_now.exit_check, memory_order_relaxed)) return;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) verify_free(cache);
        sy_client_unpin(client);
    }
}

int sy_watched_verify_at_exit(void) {
    static sy_exit_check check = {.verify = verify_ending_process};
    return sy_watch_at_exit(&check);
}

int sy_cache_history(sy_cache *cache, int (*visit)(void *arg, const sy_operation *operation),
                     void *arg) {
    const sy_watch *watch = cache->watch;
    return watch && watch->history ? sy_history_each(watch->history, visit, arg) : 0;
}

/* ---- reports of tools ---- */

void sy_watched_explain(void) { sy_tool_on_report(sy_tell->address); }
