/*
 * blocks.c: takes and puts back ordinals of a cache whose objects move, and makes and gives back
 * blocks of them. The bitmaps and lists of blocks are guarded by the cache's lock.
 *
 * A block is linked into the list of all blocks, or out of it, by one store to a `next`: in the
 * child of a fork the list is whole (base/fork.h), and all else is made anew from it.
 */
#include "cache/blocks.h"

#include <errno.h>

#include "base/bits.h"
#include "base/fork.h"
#include "cache/cache.h"
#include "cache/directory.h"
#include "chunk/side.h"
#include "os/invariant.h"

/* Twice an ordinal fits in 32 bits (movable.h). */
static const uint64_t ORDINALS_END = UINT64_C(1) << 31;

/* ---- lists; the lock is held ---- */

/* The list that a block belongs to; NULL: none of its ordinals is free. */
static sy_ordinal_block **list_of(sy_blocks *blocks, const sy_ordinal_block *block) {
    if (block->folded) return &blocks->folded;
    if (!block->free_count) return NULL;
    return block->free_count == SY_BLOCK_OBJECTS ? &blocks->free : &blocks->open;
}

static void push_block(sy_ordinal_block **list, sy_ordinal_block *block) {
    if (!list) return;
    block->previous_open = NULL;
    block->next_open = *list;
    if (*list) (*list)->previous_open = block;
    *list = block;
}

static void remove_block(sy_ordinal_block **list, const sy_ordinal_block *block) {
    if (!list) return;
    if (block->previous_open)
        block->previous_open->next_open = block->next_open;
    else
        *list = block->next_open;
    if (block->next_open) block->next_open->previous_open = block->previous_open;
}

void sy_block_enlist(sy_blocks *blocks, sy_ordinal_block *block) {
    push_block(list_of(blocks, block), block);
}

void sy_block_delist(sy_blocks *blocks, sy_ordinal_block *block) {
    remove_block(list_of(blocks, block), block);
}

static void set_free_count(sy_blocks *blocks, sy_ordinal_block *block, uint32_t count) {
    sy_ordinal_block **before = list_of(blocks, block);
    sy_ordinal_block **after = list_of(blocks, &(sy_ordinal_block){.free_count = count});
    if (before != after) remove_block(before, block);
    block->free_count = count;
    if (block->quiet > 0) block->quiet = 0;
    if (before != after) push_block(after, block);
}

static void link_block(sy_blocks *blocks, sy_ordinal_block *block) {
    block->next = blocks->all;
    if (block->next) block->next->previous = block;
    sy_fork_order();
    blocks->all = block;
    blocks->count += SY_BLOCK_OBJECTS;
    push_block(list_of(blocks, block), block);
}

static void unlink_block(sy_blocks *blocks, sy_ordinal_block *block) {
    remove_block(list_of(blocks, block), block);
    if (blocks->next == block) blocks->next = block->next;
    blocks->count -= SY_BLOCK_OBJECTS;
    if (block->previous)
        block->previous->next = block->next;
    else
        blocks->all = block->next;
    if (block->next) block->next->previous = block->previous;
}

/* ---- a block comes and goes ---- */

static bool take_block_ordinals(uint32_t *first) {
    if (!sy_ordinals_take_aligned(SY_BLOCK_ORDINALS, first)) return false;
    if (*first < ORDINALS_END - SY_BLOCK_ORDINALS) return true;
    sy_ordinals_give(*first, SY_BLOCK_ORDINALS, 0);
    errno = ENOMEM;
    return false;
}

static bool add_block(sy_cache *cache) {
    sy_ordinal_block *block = sy_side_take(sizeof *block);
    if (!block) return false;
    if (!take_block_ordinals(&block->first)) {
        sy_side_give(block, sizeof *block);
        return false;
    }
    block->free_count = SY_BLOCK_OBJECTS;
    for (int i = 0; i < SY_BLOCK_BITMAP_WORDS; i++) block->free[i] = ~UINT64_C(0);
    sy_block_enter(block->first, block);
    uint64_t end = (uint64_t)block->first + SY_BLOCK_ORDINALS;
    sy_lock_acquire(&cache->lock);
    if (end > cache->names.limit) __atomic_store_n(&cache->names.limit, end, __ATOMIC_RELAXED);
    link_block(&cache->blocks, block);
    sy_lock_release(&cache->lock);
    return true;
}

/* Places are no words: they are cleared before the directory looks for the highest generation. The
 * words of a folded block are zero without memory, and stay so. */
static void give_block(sy_ordinal_block *block) {
    uint64_t *words = sy_directory_words() + block->first;
    for (int i = 1; i < SY_BLOCK_ORDINALS && !block->folded; i += 2)
        __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
    sy_block_enter(block->first, NULL);
    sy_block_sign(block->first, 0);
    sy_ordinals_give(block->first, SY_BLOCK_ORDINALS, block->highest);
    if (block->folded) sy_side_give(block->folded, sy_folded_bytes(sy_block_out(block)));
    sy_side_give(block, sizeof *block);
}

static sy_ordinal_block *take_surplus(sy_cache *cache) {
    sy_blocks *blocks = &cache->blocks;
    sy_lock_acquire(&cache->lock);
    sy_ordinal_block *block = blocks->free;
    if (blocks->count < blocks->wanted + SY_BLOCK_OBJECTS) block = NULL;
    if (block) unlink_block(blocks, block);
    sy_lock_release(&cache->lock);
    return block;
}

static bool is_short(sy_cache *cache) {
    sy_lock_acquire(&cache->lock);
    bool is = cache->blocks.count < cache->blocks.wanted;
    sy_lock_release(&cache->lock);
    return is;
}

static void count_wanted(sy_cache *cache, size_t more) {
    sy_lock_acquire(&cache->lock);
    cache->blocks.wanted += more;
    sy_lock_release(&cache->lock);
}

bool sy_blocks_want(sy_cache *cache, size_t slots) {
    count_wanted(cache, slots);
    while (is_short(cache)) {
        if (add_block(cache)) continue;
        sy_blocks_want_less(cache, slots);
        errno = ENOMEM;
        return false;
    }
    return true;
}

void sy_blocks_want_less(sy_cache *cache, size_t slots) {
    count_wanted(cache, -slots);
    for (sy_ordinal_block *block; (block = take_surplus(cache)) != NULL;) give_block(block);
}

/* ---- ordinals ---- */

/* Takes ordinals of one block. The lock is held. */
static size_t take_of(sy_blocks *blocks, sy_ordinal_block *block, uint32_t *ordinals,
                      size_t count) {
    size_t taken = 0;
    for (uint32_t i = 0; i < SY_BLOCK_BITMAP_WORDS; i++)
        for (; block->free[i] && taken < count; block->free[i] &= block->free[i] - 1)
            ordinals[taken++] = block->first + 2 * (i * 64 + sy_lowest_bit(block->free[i]));
    set_free_count(blocks, block, block->free_count - (uint32_t)taken);
    return taken;
}

void sy_blocks_take(sy_cache *cache, uint32_t *ordinals, size_t count) {
    sy_blocks *blocks = &cache->blocks;
    sy_lock_acquire(&cache->lock);
    for (size_t taken = 0; taken < count;) {
        sy_ordinal_block *block = blocks->open ? blocks->open : blocks->free;
        if (!block) block = blocks->folded;
        SY_INVARIANT(block != NULL);
        if (block->folded) sy_block_unfold(cache, block);
        taken += take_of(blocks, block, ordinals + taken, count - taken);
    }
    sy_lock_release(&cache->lock);
}

void sy_blocks_put(sy_cache *cache, const uint32_t *ordinals, size_t count) {
    sy_lock_acquire(&cache->lock);
    for (size_t i = 0; i < count; i++) {
        sy_ordinal_block *block = sy_block_of(ordinals[i]);
        uint32_t index = (ordinals[i] - block->first) / 2;
        block->free[index / 64] |= UINT64_C(1) << index % 64;
        set_free_count(&cache->blocks, block, block->free_count + 1);
    }
    sy_lock_release(&cache->lock);
}

/* ---- all blocks ---- */

size_t sy_blocks_copy(sy_cache *cache, uint32_t *firsts, size_t room) {
    size_t count = 0;
    sy_lock_acquire(&cache->lock);
    for (const sy_ordinal_block *block = cache->blocks.all; block; block = block->next, count++)
        if (count < room) firsts[count] = block->first;
    sy_lock_release(&cache->lock);
    return count;
}

void sy_blocks_forget(sy_cache *cache) {
    for (sy_ordinal_block *block = cache->blocks.all, *next; block; block = next) {
        next = block->next;
        give_block(block);
    }
    cache->blocks = (sy_blocks){.count = 0};
}

static uint32_t count_free(const sy_ordinal_block *block) {
    uint32_t count = 0;
    for (int i = 0; i < SY_BLOCK_BITMAP_WORDS; i++) count += sy_count_bits(block->free[i]);
    return count;
}

void sy_blocks_recover(sy_cache *cache, bool torn) {
    sy_blocks *blocks = &cache->blocks;
    sy_ordinal_block *previous = NULL;
    *blocks = (sy_blocks){.all = blocks->all, .folds = blocks->folds, .wanted = blocks->wanted};
    for (sy_ordinal_block *block = blocks->all; block; previous = block, block = block->next) {
        block->previous = previous;
        block->free_count = count_free(block);
        blocks->count += SY_BLOCK_OBJECTS;
        sy_block_enlist(blocks, block);
    }
    while (torn && blocks->folded) sy_block_unfold(cache, blocks->folded);
}

static size_t length(const sy_ordinal_block *list) {
    size_t blocks = 0;
    for (; list; list = list->next_open) blocks++;
    return blocks;
}

size_t sy_blocks_verify(const sy_cache *cache) {
    size_t wrong = 0, all = 0, open = 0, free = 0, folded = 0;
    for (const sy_ordinal_block *block = cache->blocks.all; block; block = block->next, all++) {
        wrong += block->free_count != count_free(block) || sy_block_of(block->first) != block;
        wrong += block->next && block->next->previous != block;
        folded += block->folded != NULL;
        if (block->folded) continue;
        open += block->free_count > 0 && block->free_count < SY_BLOCK_OBJECTS;
        free += block->free_count == SY_BLOCK_OBJECTS;
    }
    wrong += folded != length(cache->blocks.folded);
    wrong += all * SY_BLOCK_OBJECTS != cache->blocks.count;
    return wrong + (open != length(cache->blocks.open)) + (free != length(cache->blocks.free));
}
