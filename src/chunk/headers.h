/*
 * headers.h: memory of descriptors: of chunks' headers, and of those of large spans. It is never
 * anything else, and lies apart from what it describes.
 *
 *     area, 1 MiB:  | which are unused | header | header | ...     64 places of 16 KiB
 *
 * Any address may be looked up at any time, by a thread that has read the owner's word already when
 * the chunk or span goes. What it finds then is a header or a descriptor still: of that chunk, of
 * another one that has it since, or zeros. So the address space of a chunk is free for whatever
 * comes, or goes back to the system, and no lookup reads what somebody has written there.
 *
 * Below: side.h, os. Used by chunk.c and large.c, by memory.c around fork, and by the search for
 * leaks.
 */
#ifndef SY_CHUNK_HEADERS_H
#define SY_CHUNK_HEADERS_H

#include <stddef.h>

struct sy_chunk;
struct sy_slab;

/* One that reads as zero; NULL with ENOMEM. */
struct sy_chunk *sy_header_take(void);

/* Zeroes it, and gives its memory back where pages are no larger. */
void sy_header_give(struct sy_chunk *header);

/* For a large span: whatever it held before; NULL with ENOMEM. */
struct sy_slab *sy_descriptor_take(void);
void sy_descriptor_give(struct sy_slab *descriptor);

/* Calls for each area of headers, with the lock held. */
void sy_header_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

void sy_headers_lock_for_fork(void);
void sy_headers_unlock_after_fork(void);

#endif
