/*
 * pages.h: what the memory of Linux and of other POSIX systems shares.
 */
#ifndef SY_OS_POSIX_PAGES_H
#define SY_OS_POSIX_PAGES_H

#include <stddef.h>

/* Cuts a mapping of `length` bytes down to `bytes` at the first multiple of `align`. NULL: a cut
 * failed, because it would make one mapping too many; then all of it is unmapped. */
void *sy_posix_cut(void *whole, size_t length, size_t bytes, size_t align);

#endif
