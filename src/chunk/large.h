/*
 * large.h: spans that do not fit in a chunk. A large span is a segment of the memory's arena, in
 * whole 4 MiB. The span fills the first part of the segment. It can grow into the rest of the
 * segment, and into free address space behind the segment.
 *
 * Some freed spans are kept with their memory for reuse, until a trim. New spans take this memory,
 * and so do chunks.
 *
 * Below: memory.h, map.h, headers.h, huge.h. Used by chunk.c alone.
 */
#ifndef SY_CHUNK_LARGE_H
#define SY_CHUNK_LARGE_H

#include "chunk/chunk.h"

/* As sy_run_take, sy_run_give and sy_run_resize. In sy_large_take `bytes` is a multiple of a unit,
 * and *clean is the number of bytes of the span that hold no memory yet. */
sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, size_t *clean);
sy_memory *sy_large_memory(const sy_slab *span);
/* As sy_run_back_ahead. */
void sy_large_back_ahead(sy_slab *span);
void sy_large_give(sy_slab *span);
/* Keeps a chunk that was unlinked, as a span with this descriptor; `bytes`, `pieces`: as
 * sy_large_lend. */
void sy_large_keep(sy_memory *memory, sy_slab *span, uintptr_t start, size_t bytes, bool pieces);
/* The length of the pieces in which memory moves now; 0: it cannot be moved. */
size_t sy_large_piece(sy_memory *memory);
/* The bytes at the start of a new span that hold no memory; *least: as many of them stay so. */
size_t sy_large_fresh(const sy_slab *span, size_t *least);
/* The span got memory, so that only the first `bytes` hold none. `lost`: behind these, addresses
 * were lost, and the span is to be given back. */
void sy_large_set_fresh(sy_slab *span, size_t bytes, bool lost);
/* Before an object moves to a span: gives the part from the span's byte `from` on memory of kept
 * spans, as far as it holds none. False: see sy_run_move, the target was lost. */
bool sy_large_fill(sy_slab *span, size_t from);
/* As sy_run_move, for two large spans. */
bool sy_large_move(const sy_slab *from, sy_slab *to, size_t bytes);
bool sy_large_resize(sy_slab *span, size_t bytes);
/* Whether a kept span of the system's memory has at least `least` bytes. */
bool sy_large_keeps(sy_memory *memory, size_t least);
/* Takes the first 4 MiB of a segment whose kept span has at least `least` bytes, with their memory,
 * for a chunk: a segment of their own. *bytes: of memory, from *start on; *pieces: it is several
 * mappings. False: there is no such span, or no memory to split the segment. */
bool sy_large_lend(sy_memory *memory, size_t least, uintptr_t *start, size_t *bytes, bool *pieces);
/* Releases all kept spans. Returns whether one was released; *bytes: the memory that went back to
 * the system. */
bool sy_large_release_kept(sy_memory *memory, size_t *bytes);
size_t sy_large_trim(sy_memory *memory);
/* Releases a bounded part of the kept spans; with `aged` only of those that a pass by age has found
 * before. False: there is none left to release. */
bool sy_large_trim_step(sy_memory *memory, bool aged, size_t *bytes);
/* Called at the start of a trim: it tries once again to release the spans that the system has
 * refused to take. */
void sy_large_try_again(sy_memory *memory);
/* Called at the end of a pass by age: the next one may release the spans that are kept now. */
void sy_large_age(sy_memory *memory);
/* In the child of a fork, if another thread was changing the list of kept spans: counts them. */
void sy_large_recover(sy_memory *memory);
/* The number and bytes of the large spans in use, and the bytes of those kept for reuse. */
void sy_large_count(sy_memory *memory, size_t *count, size_t *used_bytes, size_t *kept_bytes);
/* Compares the counts of kept spans with their list; returns the number of violations. */
size_t sy_large_verify(sy_memory *memory);

#endif
