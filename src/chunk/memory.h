/*
 * memory.h: an engine instance (called "memory"): chunks and large spans over one arena of
 * addresses.
 *
 *     sy_memory_main     the system's memory: the arena imports spans by way of address.c
 *     others             the program's (slabyard/memory.h): its region, or an arena of its own
 *
 * Each chunk and each large span is a segment of the arena; there are no other segments. A released
 * segment goes back to the arena, and from there to the system. The locks here guard the lists of
 * chunks and spans only. None of them is held during a call of the arena, because the arena may
 * import address space.
 *
 * Above: chunk.c and large.c, which share the fields of the struct. Below: vmem/, os/.
 */
#ifndef SY_CHUNK_MEMORY_H
#define SY_CHUNK_MEMORY_H

#include <slabyard/memory.h>
#include <slabyard/vmem.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "chunk/map.h"
#include "os/lock.h"
#include "os/start.h"

struct sy_chunk;
struct sy_slab;

struct sy_memory {
    sy_vmem *arena;
    bool own_arena; /* made with the memory, over its region */
    bool systems;   /* the system's memory: committed, discarded, and zero when it is new */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    char name[SY_VMEM_NAME_MAX + 1];
    sy_memory *next, *previous; /* list of all memories; guarded by the list's lock */
    size_t caches;              /* number of caches over it; guarded by the same lock */
    _Atomic uint64_t aged;      /* a program's memory: the number of the last pass that began to
                                 * trim it */
    _Atomic uint32_t trimming;  /* number of trims that have units aside and are worth waiting
                                 * for */

    sy_lock lock; /* guards the fields up to large_lock, and `free` and `dirty` of chunks */
    struct sy_chunk *with[SY_CHUNK_UNITS]; /* lists of chunks, by the length of their longest
                                            * free run */
    uint64_t lists;                        /* a bit for each of these lists that is not empty */
    struct sy_chunk *first, *last;         /* list of all chunks, the one trimmed longest ago
                                            * first */
    uint64_t trims;                        /* number of trims begun so far */
    unsigned whole_trims;                  /* trims of everything that are at work; meanwhile
                                            * those by age skip the chunks */
    size_t chunk_count;
    _Atomic size_t units_used; /* in runs */
    bool torn;                 /* in the child of a fork: another thread was changing the fields
                                * above */

    sy_lock large_lock;   /* guards the fields below */
    struct sy_slab *kept; /* large spans that were freed, and chunks; linked by next */
    size_t kept_count, used_count, used_bytes;
    _Atomic size_t kept_bytes;             /* read without the lock, to see whether any are kept */
    const struct sy_slab *_Atomic watched; /* the span that is watched (gauge.h); NULL: none */
    uintptr_t gauge;                       /* the start of its gauge */
    size_t gauge_bytes;
    bool watched_huge; /* it has huge pages before its gauge */
    bool dense;        /* whether the last span that was watched was written */
};

extern SY_HIDDEN sy_memory sy_memory_main;

/* Takes a segment of the arena, of whole 4 MiB, at a multiple of `align` (at least 4 MiB). False
 * with ENOMEM. No part of it is committed. */
bool sy_memory_take(const sy_memory *memory, size_t bytes, size_t align, uintptr_t *start);
void sy_memory_give(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Extends the segment to `more` bytes in all. False: the addresses behind it are not free. */
bool sy_memory_extend(const sy_memory *memory, uintptr_t start, size_t bytes, size_t more);
/* Gives the end of the segment back: its first `less` bytes stay. */
void sy_memory_shorten(const sy_memory *memory, uintptr_t start, size_t bytes, size_t less);

/* Makes two segments of the one at `start`, the first of which has `first` bytes. False with
 * ENOMEM: there is no memory for the arena's tag. */
bool sy_memory_split(const sy_memory *memory, uintptr_t start, size_t first);

/* Makes a part of a segment readable and writable; 0, or -1 with ENOMEM. */
int sy_memory_commit(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Whether this memory can be discarded: it is the system's, which takes back pages, or the program
 * has given a function for it. */
bool sy_memory_discards(const sy_memory *memory);
/* Discards the memory of a range, as sy_os_discard does. 0, or -1: it is still held. */
int sy_memory_discard(const sy_memory *memory, void *start, size_t bytes);
/* Empties a range without objects, which goes back to the arena: if it is the system's, it reads as
 * zero when it is committed again, and its memory goes back if the platform takes back pages. 0, or
 * -1: the memory is still held, and the content may be lost. */
int sy_memory_empty(const sy_memory *memory, void *start, size_t bytes);

/* A trim takes free units aside while it calls the system, and marks this time by begin_trim and
 * end_trim. An allocation that finds no room meanwhile waits for its end by wait_for_trim (false:
 * no trim was under way). For a program's own memory these functions do nothing: its trim calls a
 * function of the program, which may be waiting for the allocating thread or run on it. */
void sy_memory_begin_trim(sy_memory *memory);
void sy_memory_end_trim(sy_memory *memory);
bool sy_memory_wait_for_trim(sy_memory *memory);

/* Count a cache over the memory, or no longer. */
void sy_memory_hold(sy_memory *memory);
void sy_memory_let_go(sy_memory *memory);

/* Calls `visit` for each instance, with the list's lock held. */
void sy_memory_each(void (*visit)(sy_memory *memory, void *arg), void *arg);

/* Starts sy_memory_main, before any other call of this folder. In the child of a fork, units that
 * trims of other threads had taken aside become free again. */
extern SY_HIDDEN const sy_part sy_memory_part;

#endif
