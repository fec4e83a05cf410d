/*
 * gauge.h: whether the program writes the spans that it takes. That a span will be written whole is
 * not known, but what the program did with the spans before is.
 *
 * One span of a memory is watched at a time: a part of it that held no memory at first, its gauge.
 *
 * Below: memory.h, os. Used by chunk.c and large.c.
 */
#ifndef SY_CHUNK_GAUGE_H
#define SY_CHUNK_GAUGE_H

#include "chunk/chunk.h"

enum { SY_GAUGE_BYTES = 256 << 10 }; /* the shortest gauge */

/* Whether the next span will probably be written: looks at the gauge. If it is written, or if the
 * watched span is the one that has `ended` (is given back, moves or becomes shorter: to be called
 * before its end loses its memory), that span is not watched any more. (If another thread gives the
 * span back meanwhile, its gauge may be gone, and the answer may be wrong.) */
bool sy_gauge_look(sy_memory *memory, const sy_slab *ended);

/* Watches the span. If the span watched before has huge pages, that one stays watched instead, and
 * the result is false. `from`, `to`: the gauge, from the span's start; if `from` is not 0, there
 * are huge pages before it. */
bool sy_gauge_set(sy_memory *memory, const sy_slab *span, size_t from, size_t to);

/* The span that is being watched got no huge pages after all. */
void sy_gauge_without_huge(sy_memory *memory, const sy_slab *span);

#endif
