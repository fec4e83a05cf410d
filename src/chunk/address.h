/*
 * address.h: the one place that takes address space for chunks and large spans from the OS: the
 * import and release functions of sy_memory_main's arena.
 *
 * An extent is a quarter of all there are together, from 8 MiB to 1 GiB (or what a single request
 * needs): small processes have little address space that they do not use, and in large ones
 * mappings stay few. What the arena releases goes back to the OS.
 *
 * Below: os.
 */
#ifndef SY_CHUNK_ADDRESS_H
#define SY_CHUNK_ADDRESS_H

#include <slabyard/vmem.h>

int sy_address_import(sy_vmem *source, void *arg, size_t bytes, uintptr_t *start, size_t *got);

/* It holds no memory. */
void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes);

#endif
