/*
 * directory.h: the directory of ordinals. It leads from the 32-bit ordinal in a handle to the
 * handle's word and to the slot (slabyard/handle.h).
 *
 *     words    8 bytes an ordinal: generation, cache, pins, state
 *     places   8 bytes for 64 ordinals: the address of the slot of the first of them
 *     highest  4 bytes for 64 ordinals: the generation above which they start again
 *     blocks   16 bytes for 1024 ordinals: the block that they are, of a cache whose objects move
 *     marks    1 byte for 512 ordinals, a page of words: set when a slab has left the page
 *
 * When the first cache with handles is made, all five tables are reserved permanently: 33 GiB of
 * address space, or less if there is not so much. They are committed from the front, so each
 * ordinal below sy_ordinals_limit has a word. A slab gets a range of ordinals from an arena of
 * ordinals; their number is a multiple of 64. When the slab is released, its words become zero,
 * which is the word of no object. A trim, or a pass after some time, discards the pages of words
 * that no slab uses. Of a released slab, 4 bytes for 64 slots remain (`highest`). Of ordinals that
 * are blocks (blocks.h), `places` is neither written nor read, and `highest` is read only: so where
 * pages that were never written take no memory, these tables take none.
 *
 * Below: vmem/, os/. Above: refill.c, handle.c.
 */
#ifndef SY_CACHE_DIRECTORY_H
#define SY_CACHE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SY_BLOCK_ORDINALS
#    define SY_BLOCK_ORDINALS 1024 /* a model has smaller blocks */
#endif

/* What the directory knows of a block. */
typedef struct sy_block_entry {
    struct sy_ordinal_block *block; /* NULL: these ordinals are no block */
    uintptr_t sign;                 /* of a block that is folded (fold.c); 0: it is not */
} sy_block_entry;

/* Reserves the directory, if it does not exist yet. 0, or -1 with ENOMEM. Any thread. */
int sy_directory_start(void);

/* The tables; they do not move. Only after sy_directory_start. */
uint64_t *sy_directory_words(void);
uintptr_t *sy_directory_places(void);
sy_block_entry *sy_directory_blocks(void);

/* The address space of all five tables, in bytes; 0: there is none yet. */
size_t sy_directory_range(const void **start);

/* All ordinals given out so far are below this limit. */
uint64_t sy_ordinals_limit(void);

/* Takes ordinals for `count` slots; false with ENOMEM. */
bool sy_ordinals_take(uint32_t count, uint32_t *first);
/* The same, of which the first is a multiple of `count`, a power of two. */
bool sy_ordinals_take_aligned(uint32_t count, uint32_t *first);

/* Notes the places of the slots: `slot` bytes each, the first at `place`. */
void sy_ordinals_place(uint32_t first, uint32_t count, uintptr_t place, size_t slot);

/* Backs the words of these ordinals with memory now. 0, or -1 with ENOMEM. */
int sy_ordinals_populate(uint32_t first, uint32_t count);

/* Gives these ordinals back when their owner is released. Their words become zero. Their next
 * generations will be above those of the words, and above `least`. */
void sy_ordinals_give(uint32_t first, uint32_t count, uint32_t least);

/* Zeroes the words of these ordinals, which stay with their owner, and discards their memory, if
 * they fill pages: returns the bytes discarded. Before, *highest rises to their highest generation:
 * the owner prepares them with it from then on. No other thread changes the words. */
size_t sy_ordinals_clear(uint32_t first, uint32_t count, uint32_t *highest);

/* Makes the word of an ordinal that is about to be given out a free word of the cache. */
void sy_ordinal_prepare(uint32_t ordinal, unsigned cache_number);
/* The same; its generations will be above `least`, too. */
void sy_ordinal_prepare_above(uint32_t ordinal, unsigned cache_number, uint32_t least);

/* Discards the pages of words that no slab uses any more; returns bytes. */
size_t sy_directory_trim(void);
/* Does one step of this: from *at on, 0 at first; false: the trim is complete. `aged`: it discards
 * only pages that were left before the last trim by age looked at them. *bytes grows by the bytes
 * discarded. */
bool sy_directory_trim_step(uint64_t *at, bool aged, size_t *bytes);

/* The number of ordinals that are lost permanently, since their generations are used up. */
uint64_t sy_ordinals_lost(void);

#endif
