/*
 * directory.h: ordinals: from a 32-bit number to a slot, for handles (slabyard/handle.h).
 *
 *     words    8 bytes an ordinal: generation, cache, pins, state
 *     places   8 bytes for 64 ordinals: where the first of them lies
 *     highest  4 bytes for 64 ordinals: generation above which they start again
 *     marks    1 byte for 512 ordinals, a page of words: a slab has left it
 *
 * All are reserved for good when the first cache with handles is made, 33 GiB of address
 * space or what is to be had, and committed from the front: whatever ordinal below
 * sy_ordinals_limit is looked up, there is a word. A slab has a range of ordinals, a multiple of
 * 64, from an arena of them, as long as it exists. Then its words read as zero, which is no
 * object's. Their memory goes back with a trim, or by age with passes, as far as no other slab has
 * words on the same page; what stays is 4 bytes for 64.
 *
 * Below: vmem/, os/. Above: refill.c, handle.c.
 */
#ifndef SY_CACHE_DIRECTORY_H
#define SY_CACHE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reserves the directory, if it is not there. 0, or -1 with ENOMEM. Any thread. */
int sy_directory_start(void);

/* After that, for ever. */
uint64_t *sy_directory_words(void);
uintptr_t *sy_directory_places(void);

/* The address space of all three tables, in bytes; 0: there is none yet. */
size_t sy_directory_range(const void **start);

/* No ordinal was given that is not below. */
uint64_t sy_ordinals_limit(void);

/* Ordinals for `count` slots; false with ENOMEM. */
bool sy_ordinals_take(uint32_t count, uint32_t *first);

/* Where the slots are: `slot` bytes each, the first at `place`. */
void sy_ordinals_place(uint32_t first, uint32_t count, uintptr_t place, size_t slot);

/* Backs their words with memory now. 0, or -1 with ENOMEM. */
int sy_ordinals_populate(uint32_t first, uint32_t count);

/* Gives them back. Objects have been freed or are no more: their words become zero. */
void sy_ordinals_give(uint32_t first, uint32_t count);

/* Makes the word of an ordinal that is about to be given out a free word of the cache. */
void sy_ordinal_prepare(uint32_t ordinal, unsigned cache_number);

/* Gives the memory of the words back that slabs have left, as far as it is whole pages; returns
 * bytes. */
size_t sy_directory_trim(void);
/* The same in steps: from *at on, 0 first; false: all is done. `aged`: of the pages that were left
 * before such a step looked at them last. *bytes grows by what was discarded. */
bool sy_directory_trim_step(uint64_t *at, bool aged, size_t *bytes);

/* Ordinals lost for good, since their generations are spent. */
uint64_t sy_ordinals_lost(void);

#endif
