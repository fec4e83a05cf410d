/*
 * blocks.h: the ordinals of a cache whose objects move. An ordinal there belongs to no slab. The
 * cache takes blocks of ordinals from the directory, and an object gets one of them when its slot
 * goes to a magazine (movable.c).
 *
 *     block:  1024 ordinals, whose words fill 8 KiB
 *     | word of object 0 | its place | word of object 1 | its place | ... | place of object 511 |
 *
 * The directory leads from an ordinal to its block, and says whether the block is folded.
 *
 * The cache has at least as many ordinals as its slabs have slots. So a slot that a refill takes
 * always finds one, and a reserve of slots is one of ordinals too. When slabs go, blocks whose
 * ordinals are all free go too. A block that is not full may be *folded* (fold.c): a record stays,
 * of 12 bytes for each live object, rounded up to a power of two, and the words are zero, without
 * memory. A look-up of one unfolds the block.
 *
 * Below: directory.h, chunk/side.h. Above: movable.c, handle.c.
 */
#ifndef SY_CACHE_BLOCKS_H
#define SY_CACHE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/directory.h"

typedef struct sy_cache sy_cache;
struct sy_compaction;

enum {
    SY_BLOCK_OBJECTS = SY_BLOCK_ORDINALS / 2,
    SY_BLOCK_BITMAP_WORDS = (SY_BLOCK_OBJECTS + 63) / 64,
};

typedef struct sy_ordinal_block {
    struct sy_ordinal_block *next, *previous; /* all blocks of the cache */
    struct sy_ordinal_block *next_open,
        *previous_open; /* those that are open, those that are free, or those that are folded */
    uint64_t *folded;   /* the record (fold.c); NULL: the block is not folded */
    uint32_t first;     /* its first ordinal */
    uint32_t free_count;
    uint32_t highest; /* generation of the words when it was folded last */
    int32_t quiet; /* passes by age since an ordinal was taken or put back (look-ups do not count:
                    * they write nothing); below 0: it was unfolded lately */
    uint64_t free[SY_BLOCK_BITMAP_WORDS]; /* bit set: the object's ordinal is in the block */
} sy_ordinal_block;

/* The blocks of a cache, guarded by its lock. */
typedef struct sy_blocks {
    sy_ordinal_block *all;
    sy_ordinal_block *open; /* those with a free ordinal and one that is not, */
    sy_ordinal_block *free; /* and those whose ordinals are all free; */
    sy_ordinal_block *folded;
    sy_ordinal_block *next; /* the block that a step of folding looks at next */
    uint64_t folds;         /* so far; also read without the lock */
    size_t count, wanted;   /* ordinals of objects: in all blocks; for the slots of all slabs */
} sy_blocks;

/* No lock is held in the functions below unless their comment says so. */

/* Makes blocks for the slots of another slab; false with ENOMEM, and errno. */
bool sy_blocks_want(sy_cache *cache, size_t slots);
/* The slab is gone: gives free blocks back. */
void sy_blocks_want_less(sy_cache *cache, size_t slots);

/* Takes free ordinals for slots that are out of their slabs. */
void sy_blocks_take(sy_cache *cache, uint32_t *ordinals, size_t count);
/* Puts ordinals back whose words are free. */
void sy_blocks_put(sy_cache *cache, const uint32_t *ordinals, size_t count);

/* Copies the first ordinals of all blocks, if there is room; returns how many blocks there are. */
size_t sy_blocks_copy(sy_cache *cache, uint32_t *firsts, size_t room);

/* Gives all blocks back, at the end of the cache. */
void sy_blocks_forget(sy_cache *cache);

/* In the child of a fork: makes the lists and counts anew from `next` and the bitmaps. `torn`:
 * another thread may have been folding or unfolding a block. */
void sy_blocks_recover(sy_cache *cache, bool torn);

/* What the directory knows of the ordinal's block. */
static inline sy_block_entry *sy_block_entry_of(uint32_t ordinal) {
    return &sy_directory_blocks()[ordinal / SY_BLOCK_ORDINALS];
}

static inline void sy_block_enter(uint32_t ordinal, sy_ordinal_block *block) {
    __atomic_store_n(&sy_block_entry_of(ordinal)->block, block, __ATOMIC_RELAXED);
}

/* The block that an ordinal of the cache belongs to. */
static inline sy_ordinal_block *sy_block_of(uint32_t ordinal) {
    return __atomic_load_n(&sy_block_entry_of(ordinal)->block, __ATOMIC_RELAXED);
}

/* ---- folding (fold.c) ---- */

/* Puts a block in the list for its state; takes it out of this list. The lock is held. */
void sy_block_enlist(sy_blocks *blocks, sy_ordinal_block *block);
void sy_block_delist(sy_blocks *blocks, sy_ordinal_block *block);

/*
 * Does one step of a walk: folds a block, if few of its objects are live (for walk->whole, up to
 * two thirds), and none of them is in use. False: it has looked at all blocks. `aged`: it folds
 * only blocks that were not used for a while. No lock is held.
 */
bool sy_blocks_fold_step(sy_cache *cache, struct sy_compaction *walk, bool aged);

/* Notes that the ordinal's block is folded; 0: that it is not. */
static inline void sy_block_sign(uint32_t ordinal, uintptr_t sign) {
    __atomic_store_n(&sy_block_entry_of(ordinal)->sign, sign, __ATOMIC_RELAXED);
}

/* Unfolds a block. The lock is held, or the child of a fork recovers. */
void sy_block_unfold(sy_cache *cache, sy_ordinal_block *block);

/* Bytes of the record of a folded block. */
static inline size_t sy_folded_bytes(size_t objects) {
    return objects * (sizeof(uint64_t) + sizeof(uint32_t));
}

/* How many ordinals are out of the block. */
static inline uint32_t sy_block_out(const sy_ordinal_block *block) {
    return SY_BLOCK_OBJECTS - block->free_count;
}

/* Violations of the invariants of the blocks. The lock is held. */
size_t sy_blocks_verify(const sy_cache *cache);

#endif
