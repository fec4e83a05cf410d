/*
 * address.h: the one place that takes address space for chunks and large spans from the OS: the
 * import and release functions of sy_memory_main's arena.
 *
 * Extents are as large as all before them together, from 64 MiB to 1 GiB (or what a single request
 * needs), so that mappings stay few. What the arena releases goes back to the OS; but where a chunk
 * has been stays mapped, empty, for the next import: whoever looks up an arbitrary address may be
 * reading the header of a chunk that is given back at this moment.
 *
 * Below: os.
 */
#ifndef SY_CHUNK_ADDRESS_H
#define SY_CHUNK_ADDRESS_H

#include <slabyard/vmem.h>

int sy_address_import(sy_vmem *source, void *arg, size_t bytes, uintptr_t *start, size_t *got);

/* All of it reads as zero again. */
void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes);

/* There will be a chunk at the address. */
void sy_address_has_chunk(uintptr_t address);

void sy_address_lock_for_fork(void);
void sy_address_unlock_after_fork(void);

#endif
