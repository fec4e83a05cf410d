/*
 * chunk.h: takes and gives back runs of units, for slabs and spans, and finds the descriptor of the
 * run at an address.
 *
 *     chunk, 4 MiB at a multiple of 4 MiB:
 *     | unit 0   | unit 1      | unit 2    | unit 3    | ...       | unit 63 |
 *     | not used |<- a slab -->|<- a slab or a span -->|
 *     |          |  of 1 unit  |   of 2 to 63 units    |
 *
 *     its header, elsewhere (headers.h): sy_chunk, with a descriptor for each unit but the first
 *
 * The descriptor of a run is that of its first unit; `first_unit` leads there from any address in
 * the run. A run that does not fit in a chunk, or whose alignment is above 2 MiB, is a large span:
 * it has a separate segment of address space and a separate descriptor (large.h).
 *
 * Unit 0 is not used because 63 descriptors fill four pages of 4 KiB; a 64th would need a fifth
 * page. Unit 0 is 1.6 % of the address space, and holds no memory unless it is part of a huge page.
 *
 * A free unit is dirty (it holds memory, with the content that its last owner left) or clean (it
 * holds no memory and reads as zero). Dirty units are given out first; a trim cleans them. Before
 * clean units are given out, large spans that are kept for reuse become chunks of dirty units.
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
    SY_RUN_ALIGN_MAX = SY_CHUNK_UNITS / 2, /* the largest alignment of a run in a chunk, in units */
    SY_SLAB_BITMAP_WORDS = 16,             /* words of a bitmap that fits in the descriptor */
};

/* Of a span that is kept. NEW: no pass by age has ended since it was freed. AGED: one has, or a
 * step has released a part of the span. STUCK: the system refused to take the span's memory (in a
 * trim, for lack of room, or when it exceeded a limit). Steps of a trim skip it until the next trim
 * begins, which makes it AGED. */
typedef enum sy_kept_age { SY_KEPT_NEW, SY_KEPT_AGED, SY_KEPT_STUCK } sy_kept_age;

/* What chunk/large.c knows of a large span. */
typedef struct sy_large {
    uint64_t bitmap; /* of a slab, which has one slot */
    struct sy_memory *memory;
    size_t reserved; /* bytes of its segment */
    size_t fresh;    /* bytes at its start that got no memory of other spans or of units */
    size_t ahead;    /* bytes that may be backed with huge pages ahead of use */
    sy_kept_age age; /* of a kept span */
    bool moved;      /* memory was moved here, so there are several mappings */
    bool lost;       /* a move has lost addresses behind the first `fresh` bytes */
} sy_large;

/*
 * Descriptor of a slab or span. chunk/ writes `start` and `bytes`. The owner of the run writes the
 * other fields, which are zero when it gets the run.
 */
typedef struct sy_slab {
    /* Cache line 0: the fields that a flush reads and writes. */
    alignas(64) union {
        uintptr_t first;  /* address of slot 0 */
        uint64_t changed; /* of a mixed unit: bit set: a hole that begins in this word of its table
                           * has grown since the unit was searched */
    };
    void *owner; /* the cache; NULL: a span of the heap */
    union {
        uint64_t *free;  /* bit set: the slot is in the slab */
        uint64_t filled; /* of a mixed unit: bit set: a piece begins in this word of its table */
    };
    uint64_t idle; /* bit set: in this 1/64 of the slab, the last pass by age found only free slots
                    * (or discarded it), and none of them was taken since */
    uint32_t ordinal; /* of slot 0, in a cache with handles */
    uint16_t slots, free_count;
    union {
        uint16_t watermark; /* slots from here on were never given out */
        uint16_t owned;     /* of a mixed unit: bit set: a scope owns this lot (cache/lots.h) */
    };
    uint16_t free_least, free_most; /* bounds of free_count in its bin */
    union {
        uint8_t first_word; /* no free bit in a word before it */
        uint8_t lots_are;   /* of a mixed unit with lots: a state of cache/lots.c */
    };
    uint8_t bin;
    union {
        struct sy_bins *bins;     /* that it is in, or belongs to while it is set aside */
        struct sy_pieces *pieces; /* the table of a mixed unit */
    };
    size_t bytes; /* of the run; a multiple of a unit */
    /* Cache line 1. */
    alignas(64) sy_heap_node node;   /* in its bin */
    struct sy_slab *next, *previous; /* all slabs of the owner */
    uint64_t *built; /* bit set: the slot is constructed; NULL without constructor */
    uint64_t holes;  /* bit set: this 1/64 of the slab was discarded and not used since */
    uintptr_t start; /* address of its first unit */
    /* Cache lines 2 and 3. */
    alignas(64) union {
        uint64_t bits[SY_SLAB_BITMAP_WORDS];
        sy_large large;                             /* of a large span */
        struct sy_lots *lots[SY_SLAB_BITMAP_WORDS]; /* of a mixed unit: who owns its parts */
    };
} sy_slab;

_Static_assert(offsetof(sy_slab, large.bitmap) == offsetof(sy_slab, bits), "a slab's bitmap");
_Static_assert(sizeof(sy_slab) == 256, "a chunk's header with its descriptors fills 16 KiB");

static inline sy_slab *sy_slab_of_node(sy_heap_node *node) {
    return (sy_slab *)((char *)node - offsetof(sy_slab, node));
}

typedef struct sy_chunk {
    /* Guarded by the chunk lock. In words of units, bit 0 (the first unit) is never set. */
    uint64_t free;                    /* units in no run */
    uint64_t dirty;                   /* free units that hold memory */
    uint64_t aged;                    /* units dirty since a trim was last done with it; and those
                                       * that passes by age cleaned lately */
    uint64_t ahead;                   /* units that a thread is backing with a huge page, or is
                                       * about to: free ones may hold memory and not be dirty */
    uint64_t tried, tried_by;         /* units handled by trim number `tried_by` */
    struct sy_chunk *next, *previous; /* list of chunks with the same `longest` */
    uint32_t longest;                 /* length of its longest free run, in units */
    bool punched;                     /* part of it was discarded, so it gets no huge pages */
    bool pieces;                      /* memory was moved to it, so it may be several mappings */
    struct sy_chunk *all_next, *all_previous; /* list of all chunks of the memory */
    uint64_t trim;                            /* number of the last trim that is done with it */
    sy_memory *memory;
    uintptr_t start;                                        /* of its address space */
    alignas(64) _Atomic uint8_t first_unit[SY_CHUNK_UNITS]; /* of each unit: the first unit of
                                                             * its run; 0: no run */
    alignas(256) sy_slab slabs[SY_CHUNK_UNITS - 1];         /* descriptor of unit 1, 2, ... */
} sy_chunk;

enum { SY_OWNER_IS_CHUNK = 1 }; /* in the map: added to the address of a chunk's header */

_Static_assert(sizeof(sy_chunk) == 16 << 10, "chunk_of finds the header of a descriptor");

typedef struct sy_chunk_stats {
    size_t chunks;                  /* number of */
    size_t units_free, units_clean; /* number of units in no run; number of those without memory */
    size_t large_count;             /* number of large spans in use */
    size_t large_bytes, large_kept; /* bytes of large spans: in use; kept for reuse */
} sy_chunk_stats;

/*
 * Takes a run of `bytes` (at least 1, rounded up to units) at a multiple of `align` bytes (a power
 * of two). Its descriptor is zero except for start and bytes. *clean: the run reads as zero. clean
 * NULL: it will be written before it is read, so it may get the memory of free units (gauge.h). If
 * the run is a large span, it gets address space to grow to `room` bytes if possible. NULL with
 * ENOMEM.
 */
sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean);

/* Gives a run back; its units become dirty. The caller must not use its descriptor any more. */
void sy_run_give(sy_slab *run);

/* For an address that is in no run now: whether a run of one object that began there was given back
 * lately. (If the address space went back to the system, other memory of the program may lie there
 * now.) */
bool sy_run_ended_at(uintptr_t address);

/* Changes the length of a span to `bytes` in place. False: that is not possible, and nothing has
 * changed. */
bool sy_run_resize(sy_slab *run, size_t bytes);

/* Moves the content of the first `bytes` of one run to another; the memory too, without copying, if
 * both are large spans. The old content of the target is lost. False: the target was lost in the
 * attempt. The source has its content, and the target can only be given back. */
bool sy_run_move(const sy_slab *from, sy_slab *to, size_t bytes);

/*
 * The descriptor of the run that contains the address. NULL: no run does. Any 64 bits may be
 * passed. If another thread can give the run back meanwhile, the descriptor may already be used for
 * another run, or be unused. Reading it is safe, since the memory of headers is never used for
 * anything else (headers.h).
 */
static inline sy_slab *sy_slab_at(uintptr_t address) {
    uintptr_t owner = (uintptr_t)sy_owner_at(address);
    if (!(owner & SY_OWNER_IS_CHUNK)) return (sy_slab *)owner;
    sy_chunk *chunk = (sy_chunk *)(owner - SY_OWNER_IS_CHUNK);
    unsigned unit = address >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
    unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
    return first ? &chunk->slabs[first - 1] : NULL;
}

/* The owner of a run, also while another thread may make it a mixed unit (cache/mixed.h). */
static inline void *sy_slab_owner(const sy_slab *run) {
    return __atomic_load_n(&run->owner, __ATOMIC_RELAXED);
}

/* Returns the memory of free units, and of large spans kept for reuse, to the system. Returns the
 * bytes. */
size_t sy_chunk_trim(sy_memory *memory);

/*
 * The same in steps of bounded time. sy_chunk_begin_trim returns the number of the trim; then call
 * sy_chunk_trim_step until it returns false. `aged`: only units that were dirty already when a trim
 * was last done with their chunk, and large spans that a pass by age has found before. The step
 * adds the bytes that it returned to *bytes.
 */
uint64_t sy_chunk_begin_trim(sy_memory *memory);
bool sy_chunk_trim_step(sy_memory *memory, uint64_t trim, bool aged, size_t *bytes);

/* Bytes that passes by age returned to the system *too early*: they were used again soon. For this,
 * memory that was returned keeps a mark until a pass ends the marks (`idle` of a slab, `aged` of a
 * chunk). */
extern SY_HIDDEN _Atomic size_t sy_returned_early;
extern SY_HIDDEN _Atomic bool sy_early_marks_end; /* the pass at work ends the marks */

static inline void sy_count_early(size_t bytes) {
    atomic_fetch_add_explicit(&sy_returned_early, bytes, memory_order_relaxed);
}

static inline bool sy_early_ends(void) {
    return atomic_load_explicit(&sy_early_marks_end, memory_order_relaxed);
}

/* Called before each pass by age: whether it ends the marks. Then sy_returned_early becomes 0. */
void sy_chunk_end_early(bool marks);

/* If a look at the memory limit is due and it is near, returns as many free units and kept large
 * spans to the system as are wanted (pressure.h). */
void sy_chunk_relieve(void);

/* Called when the system has refused memory. Releases kept large spans; if there are none, releases
 * chunks without runs; if there are none, waits for a trim that is under way. Returns whether one
 * of these was possible. (sy_run_take does so itself.) */
bool sy_chunk_find_room(sy_memory *memory);

/* Gives all chunks back to the arena. There must be no run in them. */
void sy_chunk_release_all(sy_memory *memory);

/* In the child of a fork: units that a trim of another thread had taken aside are free again, and
 * those that another thread was backing with a huge page are dirty. */
void sy_chunk_recover(sy_memory *memory);

/* Calls `visit` for each run of the memory. No other thread may use the memory meanwhile. */
void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg);

/* Backs a run with memory now. 0, or -1 with ENOMEM. For a program's own memory it does nothing. */
int sy_run_populate(const sy_slab *run);

/* Whether so much of the memory is in use that caches which grow should get huge pages. */
bool sy_chunk_grows(const sy_memory *memory);

/* Called for a new run of several units that got `bytes` of clean ones, since no dirty ones lie
 * side by side. As much of the memory that free units hold elsewhere goes back: so what lies apart
 * does not make the process larger. */
void sy_chunk_exchange(sy_memory *memory, size_t bytes);

/* Called for a new run in a chunk of the system's memory, before it is written to, if the owner
 * will need more memory soon. If the run is the first in its half of the chunk, backs this half
 * with a huge page (huge.h). The half's free units are dirty then. `clean`: the result of
 * sy_run_take. */
void sy_chunk_back_ahead(const sy_slab *run, bool clean);

/* Called for a new span of the system's memory, before it is written to, if the program will write
 * to it before it reads. If it is a large span, and the span watched last was written, backs its
 * start with huge pages (large.c). */
void sy_run_back_ahead(sy_slab *run);

/* Discards whole pages of a run. 0, or -1: their memory is still held. To be noted as taken
 * (pressure.h) when they are used again, or when the run is given back: then all of it is discarded
 * later. */
int sy_run_discard(const sy_slab *run, void *start, size_t bytes);

/* Called when part of a run was discarded: the run's chunk gets no more huge pages. (A huge page
 * would get the memory back.) */
void sy_chunk_punched(const sy_slab *run);

/* sy_chunk_count_of adds the numbers of one memory to *stats; sy_chunk_count returns the sums of
 * all. */
void sy_chunk_count_of(const sy_memory *memory, sy_chunk_stats *stats);
sy_chunk_stats sy_chunk_count(void);

/* Returns the number of violated invariants of chunks: 0 if there are none. */
size_t sy_chunk_verify(sy_memory *memory);

#endif
