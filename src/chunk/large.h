/*
 * large.h: spans that do not fit in a chunk: segments of the memory's arena, in whole 4 MiB, of
 * which they fill the first part and can grow into the rest, and into what is free behind.
 *
 * The memory of some that were freed is kept for reuse until a trim.
 *
 * Below: memory.h, map.h, headers.h. Used by chunk.c alone.
 */
#ifndef SY_CHUNK_LARGE_H
#define SY_CHUNK_LARGE_H

#include "chunk/chunk.h"

/* `bytes` is a multiple of a unit. The rest as sy_run_take and its kin. */
sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean);
sy_memory *sy_large_memory(const sy_slab *span);
void sy_large_give(sy_slab *span);
/* As sy_run_move. */
bool sy_large_move(const sy_slab *from, sy_slab *to, size_t bytes);
bool sy_large_resize(sy_slab *span, size_t bytes);
/* Releases what is kept: whether anything was, and the bytes of memory that went. */
bool sy_large_release_kept(sy_memory *memory, size_t *bytes);
size_t sy_large_trim(sy_memory *memory);
/* A bounded part of that, of spans kept since the last such trim if `aged`; false: nothing left. */
bool sy_large_trim_step(sy_memory *memory, bool aged, size_t *bytes);
/* A trim begins: it tries once what the one before could not give back. */
void sy_large_try_again(sy_memory *memory);
/* What is kept now is what the next trim by age may take. */
void sy_large_age(sy_memory *memory);
void sy_large_count(sy_memory *memory, size_t *used_bytes, size_t *kept_bytes);

#endif
