/*
 * huge.h: backs memory that a growing cache or a large span will use soon with huge pages, 2 MiB at
 * a time.
 *
 * The first write to a page of 4 KiB costs a page fault. A huge page costs a few system calls for
 * 512 of these. It has three dangers, and each has a bound:
 *
 *     memory that is not used      there are huge pages only while as much memory is in use as the
 *                                  option `huge` says: 128 MiB. So a page that is not used yet is a
 *                                  64th of the memory in use at most. (large.c has another bound.)
 *                                  Where the system's setting is `always`, 16 MiB and an eighth
 *     huge pages that take longer  the system may have to move memory to make one, or the host of a
 *     than small ones              virtual machine to find the memory. The time of each is
 *                                  measured. After a slow one there are none for 64 times as long
 *     the memory limit             near it there are none (pressure.h)
 *
 * chunk.c enters the memory as dirty, so that passes return what the cache does not use.
 *
 * Above: chunk.c, large.c. Below: debug/options.h, os/.
 */
#ifndef SY_CHUNK_HUGE_H
#define SY_CHUNK_HUGE_H

#include <stdbool.h>
#include <stddef.h>

#include "chunk/map.h"

enum {
    SY_HUGE_BYTES = 2 << 20,
    SY_HUGE_UNITS = SY_HUGE_BYTES / SY_UNIT_BYTES,
};

/* From which size on a program or a cache gets huge pages: `least`, or an eighth of it where the
 * system gives huge pages to all programs. */
size_t sy_huge_least(size_t least);

/* Whether a program with so many units in use is large enough for huge pages. */
bool sy_huge_is_allowed(size_t units_used);

/* Whether there is no pause after a slow one. */
bool sy_huge_is_ready(void);

/* Backs a committed range of SY_HUGE_BYTES, at a multiple of this, with a huge page. False: the
 * system has none, or the pause after a slow one is not over. At most the first page of the range
 * has got memory then. errno is kept. */
bool sy_huge_back(void *start);

#endif
