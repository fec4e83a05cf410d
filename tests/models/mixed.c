/*
 * mixed.c: models of mixed units: a thread finds the class and the size of its own object without a
 * lock, whatever other threads do beside it. The map has one unit.
 */
#include "locks.h"

#include "chunk/chunk.h"

static sy_slab the_unit;
static _Atomic unsigned class_in_map;

#define sy_slab_at(address)                       ((void)(address), &the_unit)
#define sy_map_set_class(start, units, class_now) store_class(class_now)
#define sy_class_at(address)                      ((void)(address), load_class())

static void store_class(unsigned class_number) {
    atomic_store_explicit(&class_in_map, class_number, memory_order_relaxed);
}

static unsigned load_class(void) {
    return atomic_load_explicit(&class_in_map, memory_order_relaxed);
}

#include "cache/mixed.c"

/* ---- what the models do not need of other files ---- */

sy_memory sy_memory_main;
sy_quota sy_quota_process;
_Atomic size_t sy_returned_early;
_Atomic bool sy_early_marks_end;
_Atomic int64_t sy_pressure_room;
_Atomic size_t sy_pressure_taken;

static sy_pieces table;

void *sy_side_take(size_t bytes) { return assert(bytes == sizeof table), &table; }
void sy_side_give(void *block, size_t bytes) { (void)block, (void)bytes; }
void sy_quota_give_run(sy_quota *quota, sy_slab *run) { (void)quota, (void)run; }
int sy_run_discard(const sy_slab *run, void *start, size_t bytes) {
    return (void)run, (void)start, (void)bytes, -1;
}
void sy_chunk_punched(const sy_slab *run) { (void)run; }
void sy_memory_begin_trim(sy_memory *memory) { (void)memory; }
void sy_memory_end_trim(sy_memory *memory) { (void)memory; }
void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg) {
    (void)memory, (void)visit, (void)arg;
}
void sy_caches_note_growth(size_t bytes) { (void)bytes; }
size_t sy_slab_granule(const sy_slab *slab) { return (void)slab, MODEL_PAGE; }
void sy_cache_append_slab(sy_cache *cache, sy_slab *slab) { cache->slabs = slab; }
void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab) { (void)slab, cache->slabs = NULL; }
void sy_bins_remove(sy_bins *bins, sy_slab *slab) { (void)bins, slab->bin = SY_BIN_NONE; }
bool sy_start_lock(void) { return true; }
void sy_start_unlock(void) {}
void sy_plain_free(sy_cache *mixed, void *object, size_t told) {
    (void)mixed, (void)object, (void)told;
}
static size_t alloc_nothing(sy_client *client, uintptr_t *items, size_t count) {
    return (void)client, (void)items, (void)count, 0;
}
static void free_nothing(sy_client *client, uintptr_t item) { (void)client, (void)item; }
static const sy_client_kind no_magazines = {.alloc_loaded = alloc_nothing, .free = free_nothing};
bool sy_cache_admit(void *owner, size_t items) { return (void)owner, (void)items, true; }
sy_client *sy_client_pin_next(unsigned after) { return (void)after, NULL; }
void sy_client_unpin(sy_client *client) { (void)client; }
int sy_client_open(sy_client *client, const sy_client_config *config) {
    return (void)client, (void)config, 0;
}
void sy_clients_lock(void) {}
void sy_clients_unlock(void) {}
void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded) {
    (void)client, *depot = *loaded = 0;
}
void sy_watched_describe(sy_fault *fault) { (void)fault; }
void sy_fault_raise(const sy_fault *fault) { (void)fault; }
_Atomic uint32_t sy_drained_watch;
void sy_drained_end_slow(void) {}
bool sy_lock_hold(sy_lock *lock) { return (void)lock, true; }
bool sy_lock_drop(sy_lock *lock) { return (void)lock, false; }

/* ---- the models ---- */

enum { CLASS = 40, OTHER_CLASS = 41, SLOTS = 8, SLOT = SY_UNIT_BYTES / SLOTS };

static const uintptr_t START = (uintptr_t)1 << 32;
static sy_cache cache = {.class_number = CLASS}, other_cache = {.class_number = OTHER_CLASS};

static void open(sy_cache *one, size_t slot, uint32_t slots) {
    one->layout =
        (sy_layout){.slot = slot, .slab_bytes = SY_UNIT_BYTES, .slots = slots, .words = 1};
    sy_lock_init(&one->lock, SY_RANK_CACHE);
    join(one);
}

/* A slab with two objects, at the first and the second slot. */
static void begin(void) {
    open(&cache, SLOT, SLOTS);
    open(&other_cache, SLOT / 2, 2 * SLOTS);
    the_unit = (sy_slab){.first = START, .start = START, .bytes = SY_UNIT_BYTES};
    the_unit.owner = &cache;
    the_unit.slots = SLOTS;
    the_unit.free = the_unit.bits;
    the_unit.bits[0] = 0xfc;
    the_unit.free_count = SLOTS - 2;
    cache.out = 2;
    store_class(CLASS);
    sy_mixed.client.config.kind = &no_magazines;
    atomic_store_explicit(&sy_mixed.client.kind, &no_magazines, memory_order_relaxed);
}

static uintptr_t object(unsigned slot) { return START + slot * SLOT; }

static void convert_it(void) {
    sy_lock_acquire(&cache.lock);
    the_unit.bin = SY_BIN_NONE;
    convert_slab(&cache, &the_unit, &table);
    sy_lock_release(&cache.lock);
}

/* As free does: finds the class of an object that this thread alone may free. */
static unsigned find_class(uintptr_t address) {
    unsigned found = load_class();
    if (found != SY_CLASS_MIXED) return found;
    const sy_cache *mixed = sy_mixed_cache_at(address);
    assert(mixed);
    return mixed->class_number;
}

/* Frees an object and flushes it, as sy_cache_flush does. */
static void put_back(uintptr_t address) {
    sy_flush_item item = {0};
    sy_slab *empty;
    sy_lock_acquire(&cache.lock);
    if (sy_is_mixed(&the_unit)) assert(sy_mixed_put(&cache, &address, &item, 1, NULL, &empty) == 0);
    sy_lock_release(&cache.lock);
}

static void find_and_put_second(void *arg) {
    (void)arg;
    assert(find_class(object(1)) == CLASS);
    put_back(object(1));
}

MODEL_FOR_LOOM(an_object_keeps_its_class_while_its_slab_is_converted) {
    model_thread other;
    begin();
    model_start(&other, 1, find_and_put_second, NULL);
    convert_it();
    assert(find_class(object(0)) == CLASS);
    model_join(&other);
}

static void find_first(void *arg) {
    (void)arg;
    assert(find_class(object(0)) == CLASS);
    assert(find_class(object(0)) == CLASS);
}

/* Beside a live object its neighbour is freed, and the hole is divided anew. */
MODEL_FOR_LOOM(an_object_keeps_its_size_while_its_neighbours_come_and_go) {
    model_thread other;
    uintptr_t items[2];
    begin();
    convert_it();
    model_start(&other, 1, find_first, NULL);
    put_back(object(1));
    sy_lock_acquire(&other_cache.lock);
    sy_want want = {.grains = SLOT / 2 / SY_GRAIN, .items = items + 2, .count = 2};
    assert(take(&other_cache, &want) == 2);
    sy_lock_release(&other_cache.lock);
    assert(items[1] == object(1) && items[0] == object(1) + SLOT / 2);
    assert(find_class(items[0]) == OTHER_CLASS);
    model_join(&other);
}
