/*
 * chunk.h: runs of units for slabs and spans, and their descriptors.
 *
 *     chunk, 4 MiB at a multiple of 4 MiB:
 *     | unit 0   | unit 1      | unit 2    | unit 3    | ...       | unit 63 |
 *     | not used |<- a slab -->|<- a slab or a span -->|
 *     |          |  of 1 unit  |   of 2 to 63 units    |
 *
 *     its header, elsewhere (headers.h): sy_chunk, with a descriptor for each unit but the first
 *
 * A run of units is described by the descriptor of its first unit; `first_unit` leads there from
 * any address in the run. Runs that do not fit in a chunk, and alignments above 2 MiB, are large
 * spans: address space of their own, a descriptor of their own.
 *
 * Unit 0 is not used because 63 descriptors fill four pages of 4 KiB; a 64th would need a fifth
 * page. Unit 0 is 1.6 % of the address space, and holds no memory.
 *
 * Free units are dirty (they hold what their last owner left, and memory) or clean (they read as
 * zero and hold none). Dirty ones are given out first; a trim cleans them.
 *
 * Below: memory.h, map.h, headers.h, os. Above: cache/ (slabs), heap/ (spans).
 */
#ifndef SY_CHUNK_CHUNK_H
#define SY_CHUNK_CHUNK_H

#include <stdalign.h>
#include <stdbool.h>

#include "base/heap_by_address.h"
#include "chunk/map.h"
#include "chunk/memory.h"

enum {
    SY_RUN_UNITS_MAX = SY_CHUNK_UNITS - 1, /* the longest run in a chunk */
    SY_RUN_ALIGN_MAX = SY_CHUNK_UNITS / 2, /* units; the largest alignment of one */
    SY_SLAB_BITMAP_WORDS = 16,             /* words of a bitmap that fits in the descriptor */
};

/*
 * Descriptor of a slab or span. chunk/ writes `start` and `bytes`; the rest belongs to the owner of
 * the run and is zero when it gets it.
 */
typedef struct sy_slab {
    /* Line 0: all that a flush needs to know of an object's slab. */
    alignas(64) uintptr_t first; /* address of slot 0 */
    void *owner;                 /* the cache; NULL: a span of the heap */
    uint64_t *free;              /* bit set: the slot is in the slab */
    uint32_t free_count;
    uint32_t slots;
    uint32_t watermark;             /* slots from here on were never given out */
    uint32_t ordinal;               /* of slot 0, in a cache with handles */
    uint16_t free_least, free_most; /* it leaves its bin when free_count is outside these bounds */
    uint16_t first_word;            /* no free bit in a word before it */
    uint8_t bin;
    bool fresh;           /* slots went in or out since a trim by age looked */
    struct sy_bins *bins; /* the bins that it is in, or that it belongs to when set aside */
    size_t bytes;         /* of the run: a multiple of a unit */
    /* Line 1. */
    alignas(64) sy_heap_node node;   /* in its bin */
    struct sy_slab *next, *previous; /* all slabs of the owner */
    uint64_t *built; /* bit set: the slot is constructed; NULL without constructor */
    uint64_t holes;  /* bit set: that 1/64 of the slab was discarded and not touched since */
    uintptr_t start; /* of its first unit */
    /* Lines 2 and 3. */
    alignas(64) uint64_t bits[SY_SLAB_BITMAP_WORDS];
} sy_slab;

_Static_assert(sizeof(sy_slab) == 256, "63 descriptors and the chunk's own fields fit in unit 0");

static inline sy_slab *sy_slab_of_node(sy_heap_node *node) {
    return (sy_slab *)((char *)node - offsetof(sy_slab, node));
}

typedef struct sy_chunk {
    /* Guarded by the chunk lock; bit 0, of the first unit, is never set in either. */
    uint64_t free;                    /* units in no run */
    uint64_t dirty;                   /* free units that hold memory */
    uint64_t aged;                    /* dirty units that were dirty when a trim last looked */
    uint64_t tried, tried_by;         /* units that a trim has handled already, and its number */
    struct sy_chunk *next, *previous; /* chunks whose longest free run is as long */
    uint32_t longest;                 /* free run, in units: which list it is in */
    bool punched; /* asked for no huge pages, since memory was given back in pieces */
    struct sy_chunk *all_next, *all_previous; /* all chunks of the memory */
    uint64_t trim;                            /* the last that looked at it */
    sy_memory *memory;
    uintptr_t start;                                        /* of its address space */
    alignas(64) _Atomic uint8_t first_unit[SY_CHUNK_UNITS]; /* of the run of each unit; 0: none */
    alignas(256) sy_slab slabs[SY_CHUNK_UNITS - 1];         /* descriptor of unit 1, 2, ... */
} sy_chunk;

enum { SY_OWNER_IS_CHUNK = 1 }; /* added to a chunk's header in the map, not to a large span */

_Static_assert(sizeof(sy_chunk) == 16 << 10, "chunk_of finds the header of a descriptor");

typedef struct sy_chunk_stats {
    size_t chunks;                  /* number of */
    size_t units_free, units_clean; /* number of: in no run; of them, those that hold no memory */
    size_t large_bytes, large_kept; /* of large spans in use; kept for reuse */
} sy_chunk_stats;

/*
 * A run of `bytes` (at least 1, rounded up to units) at a multiple of `align` bytes (a power of
 * two), its descriptor zero but for start and bytes. *clean tells whether it reads as zero. A large
 * span has address space to grow to `room` bytes, if that can be had. NULL with ENOMEM.
 */
sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean);

/* Gives a run back, dirty; nothing looks at its descriptor from now on. */
void sy_run_give(sy_slab *run);

/* For an address that is in no run now: whether a run that began there, and held one object, was
 * one of the last to be given back. (If the address space went back to the system, other memory of
 * the program may lie there by now.) */
bool sy_run_ended_at(uintptr_t address);

/* Makes a span as long as `bytes` in place; false if it cannot be. */
bool sy_run_resize(sy_slab *run, size_t bytes);

/* Moves the memory of the first `bytes`, whole units, of one large span to another, whose beginning
 * is lost; false: it has to be copied. */
bool sy_run_move(const sy_slab *from, sy_slab *to, size_t bytes);

/*
 * The descriptor of the run that contains the address. NULL: the address is not Slabyard's. Any 64
 * bits may be passed. If the run may be given back meanwhile, the descriptor may be of another run
 * by now, or of none, and the address need not be in its run. Reading it is safe, since the memory
 * of headers is never used for anything else (headers.h).
 */
static inline sy_slab *sy_slab_at(uintptr_t address) {
    uintptr_t owner = (uintptr_t)sy_owner_at(address);
    if (!(owner & SY_OWNER_IS_CHUNK)) return (sy_slab *)owner;
    sy_chunk *chunk = (sy_chunk *)(owner - SY_OWNER_IS_CHUNK);
    unsigned unit = address >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
    unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
    return first ? &chunk->slabs[first - 1] : NULL;
}

/* Gives the memory of free units and of large spans kept for reuse back; returns bytes. */
size_t sy_chunk_trim(sy_memory *memory);

/*
 * The same in steps of bounded time. sy_chunk_begin_trim returns the number of the trim; then call
 * sy_chunk_trim_step until it returns false. `aged`: only memory that was already free when the
 * previous trim by age looked. *bytes grows by the bytes given back.
 */
uint64_t sy_chunk_begin_trim(sy_memory *memory);
bool sy_chunk_trim_step(sy_memory *memory, uint64_t trim, bool aged, size_t *bytes);

/* Gives all chunks back to the arena; there is no run in them. */
void sy_chunk_release_all(sy_memory *memory);

/* In the child of a fork: units that a trim of another thread had taken aside are free again. */
void sy_chunk_recover(sy_memory *memory);

/* Calls `visit` for each run of the memory. No other thread may be using the memory. */
void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg);

/* Backs a run with memory now. 0, or -1 with ENOMEM. The program's memory is its own affair. */
int sy_run_populate(const sy_slab *run);

/* Gives whole pages of a run's memory back; 0, or -1: they are still held. */
int sy_run_discard(const sy_slab *run, void *start, size_t bytes);

/* Part of a run's memory was given back: no huge pages there from now on. */
void sy_chunk_punched(const sy_slab *run);

/* Adds up: of one memory, of all. */
void sy_chunk_count_of(const sy_memory *memory, sy_chunk_stats *stats);
sy_chunk_stats sy_chunk_count(void);

/* Violations of the invariants of chunks, 0 when sound. */
size_t sy_chunk_verify(sy_memory *memory);

#endif
