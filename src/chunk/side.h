/*
 * side.h: memory for the library's own records: caches, bitmaps that do not fit in a descriptor,
 * descriptors of large spans. A block's size is a power of two. Blocks are reused by size and never
 * returned to the system. They are counted in sy_stats.side.
 *
 * Below: os. Above: chunk/ and cache/.
 */
#ifndef SY_CHUNK_SIDE_H
#define SY_CHUNK_SIDE_H

#include <stddef.h>

enum { SY_SIDE_MAX = 512 << 10 }; /* bytes of the largest block */

/* A zeroed block of at least `bytes`, at a multiple of 64 (or of its size, if that is less); NULL
 * with ENOMEM. */
void *sy_side_take(size_t bytes);

/* `bytes`: the same as in sy_side_take. */
void sy_side_give(void *block, size_t bytes);

/* The bytes of all blocks made so far. */
size_t sy_side_bytes(void);

/* Calls `visit` for each area that blocks are from, with the lock held. */
void sy_side_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

void sy_side_lock_for_fork(void);
void sy_side_unlock_after_fork(void);

#endif
