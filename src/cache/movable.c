/*
 * movable.c: caches whose objects move: the items in their magazines are ordinals, as in other
 * caches with handles, but an ordinal belongs to no slot. A refill joins each slot that it takes
 * with an ordinal, by writing the slot's address into the ordinal's place and the ordinal into the
 * slab's table of owners. A flush parts them again. In between an object may be moved: then its
 * ordinal is joined with another slot (compact.c).
 *
 *     sy_movable_refill --> sy_cache_refill (refill.c)    slots
 *                       --> sy_blocks_take (blocks.c)     ordinals
 *     sy_movable_flush  --> sy_blocks_put, sy_cache_flush
 *
 * An entry of the table of owners stays when its slot is freed. A reader of one compares the
 * place of the ordinal with the slot.
 */
#include "cache/movable.h"

#include "cache/directory.h"
#include "magazine/store.h"

/* ---- joining and parting ---- */

static void join(const sy_cache *cache, uint32_t ordinal, uintptr_t address) {
    const sy_slab *slab = sy_slab_at(address);
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    sy_movable_own(slab, index, ordinal);
    sy_move_place(&cache->names, ordinal, address);
    sy_ordinal_prepare_above(ordinal, cache->client.number, sy_block_of(ordinal)->highest);
}

size_t sy_movable_refill(void *owner, uintptr_t *items, size_t count) {
    sy_cache *cache = owner;
    uint32_t ordinals[SY_MAGAZINE_ITEMS];
    count = sy_cache_refill(cache, items, count);
    sy_blocks_take(cache, ordinals, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t ordinal = ordinals[count - 1 - i]; /* the last item is given out first */
        join(cache, ordinal, items[i]);
        items[i] = ordinal;
    }
    return count;
}

void sy_movable_flush(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    sy_cache *cache = owner;
    uint32_t ordinals[SY_MAGAZINE_ITEMS];
    for (size_t i = 0; i < count; i++) {
        ordinals[i] = (uint32_t)items[i];
        items[i] = sy_moved_place(&cache->names, items[i]);
    }
    sy_blocks_put(cache, ordinals, count);
    sy_cache_flush(cache, items, count, held);
}

/* ---- slabs ---- */

/* The owners of a slab are half-words of words that the slab takes from the directory: so their
 * memory goes back with the slab's. */
static uint32_t owner_words(const sy_cache *cache) { return (cache->layout.slots + 1) / 2; }

static bool take_movable_tables(const sy_cache *cache, sy_slab *slab) {
    const sy_slab_kind *basic = cache->basic->slabs;
    if (!basic->take_tables(cache, slab)) return false;
    bool taken = sy_ordinals_take(owner_words(cache), &slab->ordinal);
    if (taken && sy_blocks_want((sy_cache *)(uintptr_t)cache, cache->layout.slots)) return true;
    if (taken) sy_ordinals_give(slab->ordinal, owner_words(cache), 0);
    basic->give_tables(cache, slab);
    return false;
}

/* Owners are no words: they are cleared before the directory looks for the highest generation. */
static void give_movable_tables(const sy_cache *cache, sy_slab *slab) {
    uint64_t *words = sy_directory_words() + slab->ordinal;
    for (uint32_t i = 0; i < owner_words(cache); i++)
        __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
    sy_ordinals_give(slab->ordinal, owner_words(cache), 0);
    sy_blocks_want_less((sy_cache *)(uintptr_t)cache, cache->layout.slots);
    cache->basic->slabs->give_tables(cache, slab);
}

static void begin_movable_slab(sy_cache *cache, sy_slab *slab) {
    cache->basic->slabs->begin(cache, slab);
}

static void end_movable_slab(sy_cache *cache, sy_slab *slab) {
    cache->basic->slabs->end(cache, slab);
}

const sy_slab_kind sy_slabs_movable = {
    .take_tables = take_movable_tables,
    .give_tables = give_movable_tables,
    .begin = begin_movable_slab,
    .end = end_movable_slab,
    .populate = sy_run_populate,
};
