/*
 * large.h: spans that do not fit in a chunk: address space of their own, in whole 4 MiB, rounded up
 * to a power of two so that they can grow in place; memory is committed as far as they reach.
 *
 * A few that were freed are kept for reuse until a trim. Below: map.h, side.h, os. Used by chunk.c
 * alone.
 */
#ifndef SY_CHUNK_LARGE_H
#define SY_CHUNK_LARGE_H

#include "chunk/chunk.h"

/* `bytes` is a multiple of a unit. The rest as sy_run_take and its kin. */
sy_slab *sy_large_take(size_t bytes, size_t align, bool *clean);
void sy_large_give(sy_slab *span);
bool sy_large_resize(sy_slab *span, size_t bytes);
size_t sy_large_trim(void);
void sy_large_count(size_t *used_bytes, size_t *kept_bytes);
void sy_large_lock_for_fork(void);
void sy_large_unlock_after_fork(void);

#endif
