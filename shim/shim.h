/*
 * shim.h: what the files of the drop-in malloc share.
 */
#ifndef SY_SHIM_SHIM_H
#define SY_SHIM_SHIM_H

#include <stdbool.h>
#include <stddef.h>

/* The heap's objects of up to 8 bytes are aligned to 8; malloc's are to 16. */
static inline size_t sy_shim_size(size_t size) { return size < 16 ? 16 : size; }

/* The function of this name in the library that comes after this one, the C or the C++ library;
 * NULL: there is none. The first call for a name may allocate. */
void *sy_shim_next(const char *name);

#endif
