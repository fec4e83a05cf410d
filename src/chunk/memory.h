/*
 * memory.h: an engine instance: chunks and large spans over one arena of addresses.
 *
 *     sy_memory_main     the system's memory: the arena imports spans by way of address.c
 *     others             the program's (slabyard/memory.h): its region, or an arena of its own
 *
 * Every chunk and every large span is a segment of the arena; nothing else is. What they leave goes
 * back to the arena, and from there to the system. Locks are held for chunks' and spans' lists
 * only: the arena is asked with none held, for it may import.
 *
 * Above: chunk.c and large.c, each of which has its part of the instance. Below: vmem/, os/.
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
    bool systems;   /* reads as zero when it is new, is committed, and discarded to the system */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    char name[SY_VMEM_NAME_MAX + 1];
    sy_memory *next, *previous; /* all of them; guarded by the list's lock */
    size_t caches;              /* over it; guarded by the same */
    _Atomic uint64_t aged;      /* in the pass of this number, last: a program's */
    _Atomic uint32_t trimming;  /* trims that have units aside and are worth waiting for */

    sy_lock lock; /* guards all below up to the next lock, and the chunks' free and dirty words */
    struct sy_chunk *with[SY_CHUNK_UNITS]; /* chunks by the length of their longest free run, */
    uint64_t lists;                        /* a bit for each list that is not empty, */
    struct sy_chunk *first, *last;         /* and all, the one trimmed longest ago first */
    uint64_t trims;                        /* begun so far */
    unsigned whole_trims;                  /* at work; those by age leave the chunks to them */
    size_t chunk_count;
    _Atomic size_t units_used; /* in runs */
    bool torn;                 /* in the child of a fork: a thread was changing the above */

    sy_lock large_lock;   /* guards all below */
    struct sy_slab *kept; /* large spans that were freed, for reuse; linked by next */
    size_t kept_count, kept_bytes, used_bytes;
};

extern SY_HIDDEN sy_memory sy_memory_main;

/* A segment of the arena in whole 4 MiB, at a multiple of `align` (at least 4 MiB); false with
 * ENOMEM. Nothing in it is committed. */
bool sy_memory_take(const sy_memory *memory, size_t bytes, size_t align, uintptr_t *start);
void sy_memory_give(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Extends the segment to `more` bytes in all; false: the addresses behind it are not free. */
bool sy_memory_extend(const sy_memory *memory, uintptr_t start, size_t bytes, size_t more);
/* Gives the end of the segment back: its first `less` bytes stay. */
void sy_memory_shorten(const sy_memory *memory, uintptr_t start, size_t bytes, size_t less);

/* Makes a part of a segment readable and writable; 0, or -1 with ENOMEM. */
int sy_memory_commit(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Whether memory can be given back at all. */
bool sy_memory_discards(const sy_memory *memory);
/* Gives the memory of a range back, as os.h says of the system's. 0, or -1: it is still held. */
int sy_memory_discard(const sy_memory *memory, void *start, size_t bytes);

/* Around a part of a trim that has free memory aside and calls the system alone: an allocation that
 * finds no room meanwhile waits for its end (false: there is none under way). A trim of the
 * program's own memory calls the program, which is not waited for: it may itself be waiting for the
 * allocating thread, or be that thread. So with such memory these do nothing. */
void sy_memory_begin_trim(sy_memory *memory);
void sy_memory_end_trim(sy_memory *memory);
bool sy_memory_wait_for_trim(sy_memory *memory);

/* A cache comes, or goes. */
void sy_memory_hold(sy_memory *memory);
void sy_memory_let_go(sy_memory *memory);

/* Calls for each instance, with the list's lock held. */
void sy_memory_each(void (*visit)(sy_memory *memory, void *arg), void *arg);

/* The start of sy_memory_main, before any other call. In the child of a fork what trims of other
 * threads had taken aside comes back. */
extern SY_HIDDEN const sy_part sy_memory_part;

#endif
