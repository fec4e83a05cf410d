/*
 * pages.h: whole mappings for the library's own tables: reserved and committed, given back whole.
 *
 * Below: os.h. Above: every layer that keeps tables of its own.
 */
#ifndef SY_OS_PAGES_H
#define SY_OS_PAGES_H

#include <stddef.h>

/* `bytes`, whole pages, at a multiple of `align` (a power of two, at least a page), reading as
 * zero; `name` as in sy_os_reserve. NULL with ENOMEM. */
void *sy_pages_take(size_t bytes, size_t align, const char *name);

/* Gives all of it back: its address space or, if the system cannot, its memory. errno is kept. */
void sy_pages_give(void *start, size_t bytes);

#endif
