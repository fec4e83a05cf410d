/*
 * address.h: the import and release functions of sy_memory_main's arena. Only they take address
 * space for chunks and large spans from the OS.
 *
 * A new extent is as large as a quarter of all address space reserved before: at least 8 MiB, at
 * most 1 GiB, or as much as a single request needs. So a small process reserves little address
 * space that it does not use, and a large one has few mappings. An extent that the arena releases
 * goes back to the OS.
 *
 * Below: os.
 */
#ifndef SY_CHUNK_ADDRESS_H
#define SY_CHUNK_ADDRESS_H

#include <slabyard/vmem.h>

int sy_address_import(sy_vmem *source, void *arg, size_t bytes, uintptr_t *start, size_t *got);

/* The extent holds no memory any more. */
void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes);

#endif
