/*
 * pages.h: memory for the library's own tables: each table is reserved and committed by one call,
 * and returned to the system whole by another.
 *
 * Below: os.h. Above: every layer that keeps tables of its own.
 */
#ifndef SY_OS_PAGES_H
#define SY_OS_PAGES_H

#include <stddef.h>

#include "os/os.h"

/* Allocates `bytes` (whole pages) at a multiple of `align` (a power of two, at least a page). The
 * memory reads as zero. `name`: see sy_os_reserve. NULL with ENOMEM. */
void *sy_pages_take(size_t bytes, size_t align, const char *name);

/* Empties a committed range that is not in use. Its memory goes back to the system if the platform
 * takes back pages. The range reads as zero, and has to be committed before it is used again. -1:
 * the memory is still held, and the content may be lost. */
static inline int sy_pages_empty(void *start, size_t bytes) {
    return sy_os_has(SY_OS_DISCARDS) ? sy_os_discard(start, bytes) : sy_os_decommit(start, bytes);
}

/* Returns all of it to the system. If the address space cannot be released, only the memory is.
 * errno is unchanged. */
void sy_pages_give(void *start, size_t bytes);

#endif
