/*
 * address.h: the one place that takes address space for chunks from the OS.
 *
 * Chunks are cut from extents, which grow (64 MiB, 128 MiB ... 1 GiB), so that mappings stay few.
 * The lowest unused chunk is given out first.
 *
 * Below: os. Used by chunk.c alone.
 */
#ifndef SY_CHUNK_ADDRESS_H
#define SY_CHUNK_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

/* 4 MiB at a multiple of 4 MiB, committed, reading as zero; 0 with ENOMEM. */
uintptr_t sy_address_take_chunk(void);

/* Takes it back; its content was discarded. */
void sy_address_give_chunk(uintptr_t chunk);

/* The index-th chunk address ever, used or not; 0 past the last. */
uintptr_t sy_address_chunk(size_t index);

void sy_address_lock_for_fork(void);
void sy_address_unlock_after_fork(void);

#endif
