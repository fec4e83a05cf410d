/*
 * headers.h: memory for headers of chunks and descriptors of large spans. It is never used for
 * anything else, and lies apart from the chunks and spans.
 *
 *     area, 1 MiB:  | which are unused | header | header | ...     64 places of 16 KiB
 *
 * A thread may look up any address at any time. It may have read the owner of the address (map.h)
 * just before the chunk or span is released. It then still reads a header or descriptor: that of
 * the same chunk, that of another chunk which got the header since, or zeros. So the address space
 * of a released chunk may be reused or go back to the system: no lookup reads from it.
 *
 * Below: side.h, os. Used by chunk.c and large.c, by memory.c around fork, and by the search for
 * leaks.
 */
#ifndef SY_CHUNK_HEADERS_H
#define SY_CHUNK_HEADERS_H

#include <stddef.h>

struct sy_chunk;
struct sy_slab;

/* Returns a header that reads as zero; NULL with ENOMEM. */
struct sy_chunk *sy_header_take(void);

/* Zeroes the header. If a page is no larger than a header, its memory goes back to the system. */
void sy_header_give(struct sy_chunk *header);

/* Returns a descriptor for a large span, with any content; NULL with ENOMEM. */
struct sy_slab *sy_descriptor_take(void);
void sy_descriptor_give(struct sy_slab *descriptor);

/* The bytes of headers that are in use, and the pages at the beginnings of areas. */
size_t sy_header_bytes(void);

/* Calls `visit` for each area of headers, with the lock held. */
void sy_header_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

void sy_headers_lock_for_fork(void);
void sy_headers_unlock_after_fork(void);

#endif
