/*
 * arena.h: struct sy_vmem and the functions that the files of vmem/ share.
 *
 * Every span and every segment has a boundary tag, 64 bytes outside of the resource. All tags of an
 * arena are in one list in order of value: a span's, then its segments', then the next span's.
 *
 *     first                                                                     last
 *     | span | allocated | free | allocated |  | span | free |  | span | allocated |
 *
 * By its field `kin` each tag is also linked to others of its kind:
 *
 *     span        in a tree by value                               spans.c
 *     free        in the list of its size class                    segments.c
 *     allocated   in a chain of the table, found by its value      table.c
 *
 * What always holds (look.c, sy_vmem_verify):
 *   - The segments of a span cover it, in order, without gaps. No two free ones are neighbours.
 *   - An imported span has an allocated segment, except between its import and the first
 *     allocation from it.
 *   - Sums: total == allocated + free, imported <= total.
 *
 * The arena's lock guards all of this. It is held for a few steps of one operation, never during a
 * call of the system or of the user's functions. Memory that an operation may need (tags, a part of
 * the table, a span) is obtained before. Memory that it releases is noted in sy_leavings, and given
 * back after the lock is let go.
 *
 * Above: quantum.c's clients and the engine's arenas (chunk/). Below: pool/ (tags), magazine/
 * (quantum caches), debug/, os/.
 */
#ifndef SY_VMEM_ARENA_H
#define SY_VMEM_ARENA_H

#include <slabyard/pool.h>
#include <slabyard/vmem.h>
#include <stdalign.h>
#include <stdbool.h>

#include "magazine/client.h"
#include "os/lock.h"
#include "os/start.h"

typedef enum sy_tag_kind { SY_TAG_SPAN, SY_TAG_FREE, SY_TAG_ALLOCATED } sy_tag_kind;

/* The tag of a span or a segment: [start, start + size), never empty. start + size may overflow to
 * 0, at the end of the integers. So comparisons use the last value, sy_tag_last. */
typedef struct sy_boundary {
    uintptr_t start;
    size_t size;
    struct sy_boundary *next, *previous; /* in order of value */
    /* free: its list; allocated: its chain, forward only; span: its lesser and greater child */
    struct sy_boundary *kin, *kin_previous;
    struct sy_tag_block *block; /* the tag's memory is part of this block */
    uint8_t kind;
    bool imported; /* a span that the source gave, and that goes back to it */
} sy_boundary;

_Static_assert(sizeof(sy_boundary) <= 64, "a tag is one cache line");

static inline uintptr_t sy_tag_last(const sy_boundary *tag) { return tag->start + (tag->size - 1); }

enum {
    /*
     * Free lists by size. Below 16 quanta each size has a list. Above, each power of two is split
     * in 8 lists, so the sizes in a list differ by at most an eighth. A segment taken from the next
     * list is at most that much larger than need be.
     *
     *     q = 1 x x x y y y ...     list = 8 * (number of y) + 1xxx
     */
    SY_SPLIT_SHIFT = 3,
    SY_LISTS = 64 << SY_SPLIT_SHIFT, /* no size belongs to the last few */

    SY_BUCKETS_SHIFT = 9, /* of the table at first */
    SY_BUCKETS = 1 << SY_BUCKETS_SHIFT,
    SY_TABLE_PARTS = 40, /* each as large as all before it: up to 2^49 buckets */

    /*
     * Tags that one operation may take. An import makes a span and its free segment. An allocation
     * in the middle of a segment makes two more segments. The tags themselves lie in pools, on
     * pages directly from the system: to make more of them takes no tag, so no further reserve is
     * needed. (Bonwick and Adams need one, since there arenas supply the memory of tags.)
     */
    SY_TAGS_PER_SPAN = 2,
    SY_TAGS_PER_SPLIT = 2,
    SY_TAGS_MOST = SY_TAGS_PER_SPAN + SY_TAGS_PER_SPLIT,
};

_Static_assert(SY_LISTS % 64 == 0, "the bitmap of lists is whole words");

/* A pool of tags, all of whose memory is mapped at once. This struct lies in the first slot of the
 * pool. */
typedef struct sy_tag_block {
    sy_pool *pool;
    struct sy_tag_block *next, *previous; /* in the list of blocks with a free tag */
    size_t tags, used;                    /* neither counts the slot of this struct */
    size_t bytes;
} sy_tag_block;

_Static_assert(sizeof(sy_tag_block) <= sizeof(sy_boundary), "it fits in the slot of a tag");

typedef struct sy_quantum_cache {
    sy_client client; /* of the magazine layer; its items are the values of segments of one size */
    sy_vmem *arena;
    size_t size;
} sy_quantum_cache;

struct sy_vmem {
    /* Written when it is created. */
    unsigned quantum_shift;
    unsigned cached_sizes;                      /* number of quantum caches: of 1, 2, ... quanta */
    size_t cached_offset[SY_VMEM_CACHED_SIZES]; /* from sy_abi_1 to the thread's loaded slot */
    size_t quantum;
    sy_vmem_import import;
    sy_vmem_release release;
    sy_vmem *source;
    void *arg;
    size_t import_min;
    char name[SY_VMEM_NAME_MAX + 1];
    sy_vmem *next, *previous; /* all arenas; guarded by the list's lock */
    _Atomic unsigned calls;   /* import and release calls at work; it is not destroyed meanwhile */
    bool torn; /* in the child of a fork: another thread was changing what the lock guards */

    /* Guards all from here to the quantum caches. */
    alignas(64) sy_lock lock;
    sy_boundary *first, *last; /* in order of value */
    sy_boundary *span_tree;

    /* Next fit goes on after `rotor`, the last value that it gave. The value lies in or after
     * `rotor_tag` (NULL: before the first tag), and before the tag that follows it. */
    sy_boundary *rotor_tag;
    uintptr_t rotor;
    bool rotor_set;

    sy_tag_block *blocks; /* those with a free tag */
    size_t spare;         /* free tags in these blocks */
    size_t tag_bytes;     /* bytes of all blocks */

    size_t buckets; /* of the table, in use */
    size_t grow_at; /* allocated segments at which the table gets its next part */
    size_t allocated_segments, free_segments, spans, imported_spans;
    size_t total, imported, free; /* units */
    uint64_t allocs, frees, failures, imports, releases, probes, steps;

    sy_boundary *
        *part[SY_TABLE_PARTS]; /* of the table: part i has the buckets from SY_BUCKETS << i on */
    sy_boundary *bucket[SY_BUCKETS]; /* the first buckets of the table, before part 0 */
    uint64_t filled[SY_LISTS / 64];  /* a bit for each list that is not empty */
    sy_boundary *list[SY_LISTS];     /* of free segments, by size */

    sy_quantum_cache caches[SY_VMEM_CACHED_SIZES];
};

/* Resources that an operation released under the lock, and that are given back without it. */
typedef struct sy_leavings {
    bool any;
    bool span; /* imported, to be released */
    uintptr_t span_start;
    size_t span_size;
    sy_tag_block *blocks; /* unused, linked by next */
    void *part;           /* of the table, unused; NULL: none */
    size_t part_bytes;
} sy_leavings;

/* More than all segments; the sum with a number of segments looked at does not overflow. */
#define SY_PATIENCE_WITHOUT_END (SIZE_MAX / 2)

/* A request with all its constraints, checked and completed. Sizes are multiples of the quantum. */
typedef struct sy_request {
    size_t size;
    size_t align, phase;
    size_t nocross;     /* 0: none */
    uintptr_t min, max; /* max is the last value that may be used */
    size_t ample;       /* each free segment of this size within min and max serves; 0: no size */
    size_t patience;    /* most free segments to look at in the lists before asking the source */
    sy_vmem_fit fit;
} sy_request;

/* ---- tags.c ---- */

/* Ensures that `count` tags are spare. The caller holds the lock. If tags have to be made, the lock
 * is released meanwhile. False with ENOMEM. */
bool sy_tags_ready(sy_vmem *arena, size_t count);
sy_boundary *sy_tag_take(sy_vmem *arena, sy_tag_kind kind, uintptr_t start, size_t size);
void sy_tag_give(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
/* Adds a block with a free tag to the arena's list of blocks. */
void sy_tag_block_list(sy_vmem *arena, sy_tag_block *block);
/* Gives the blocks of a list back to the system. */
void sy_tag_blocks_release(sy_tag_block *blocks);

/* ---- table.c ---- */

/* Makes the next part of the table if it is time to grow. If there is no memory for it, the chains
 * of the table become longer. The lock as in sy_tags_ready. */
void sy_table_ready(sy_vmem *arena);
void sy_table_insert(sy_vmem *arena, sy_boundary *tag);
/* The allocated segment that starts at the value, or NULL. */
sy_boundary *sy_table_find(sy_vmem *arena, uintptr_t value);
void sy_table_remove(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
size_t sy_table_bytes(const sy_vmem *arena);
void sy_table_release(sy_vmem *arena);

/* ---- spans.c ---- */

/* The last span that starts at or before the value, or NULL. */
sy_boundary *sy_span_at_or_before(const sy_vmem *arena, uintptr_t value);
/* The first span that starts after the value, or NULL. */
sy_boundary *sy_span_after(const sy_vmem *arena, uintptr_t value);
/* Whether any part of [start, start + size) lies in a span. */
bool sy_span_overlaps(const sy_vmem *arena, uintptr_t start, size_t size);
/* Adds a span that overlaps no other, and returns its free segment. Two tags are spare. */
sy_boundary *sy_span_insert(sy_vmem *arena, uintptr_t start, size_t size, bool imported);
/* Adds a span to the tree and to the counts. */
void sy_span_enter(sy_vmem *arena, sy_boundary *span);
/* Removes a span that is all free, with its one segment. */
void sy_span_remove(sy_vmem *arena, sy_boundary *span, sy_leavings *leavings);

/* ---- segments.c ---- */

/* The list of a size, in quanta; the first list of which every member is at least that large. */
unsigned sy_list_of(size_t quanta);
unsigned sy_list_above(size_t quanta);
/* The first list from this one on that is not empty, or SY_LISTS. */
unsigned sy_list_filled(const sy_vmem *arena, unsigned from);

/* Links a tag into the list in order of value, after `previous` (NULL: first), and takes it out. */
void sy_tag_link(sy_vmem *arena, sy_boundary *tag, sy_boundary *previous);
void sy_tag_unlink(sy_vmem *arena, sy_boundary *tag);

/* Puts a free segment into the list of its size, and takes it out. */
void sy_free_list_add(sy_vmem *arena, sy_boundary *tag);
void sy_free_list_remove(sy_vmem *arena, sy_boundary *tag);

/* Cuts [value, value + size) out of a free segment, and returns it as an allocated one. Up to two
 * spare tags are used. */
sy_boundary *sy_segment_carve(sy_vmem *arena, sy_boundary *free, uintptr_t value, size_t size);
/* Frees an allocated segment, and joins it with its free neighbours. If its span is imported and
 * all free now, the span is removed, to be released. */
void sy_segment_free(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
/* Moves the end of an allocated segment; false if there is no room behind. A tag is spare. */
bool sy_segment_resize(sy_vmem *arena, sy_boundary *tag, size_t size, sy_leavings *leavings);
/* Cuts an allocated segment in two allocated ones, the first of which has `size`, which is less
 * than all of it. A tag is spare. */
void sy_segment_split(sy_vmem *arena, sy_boundary *tag, size_t size);

/* ---- fit.c ---- */

/* Checks and completes a request. 0, or -1 with EINVAL. */
int sy_request_make(const sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                    sy_vmem_fit fit, sy_request *request);
/* The first value in [start, last] that satisfies the request; false: there is none. */
bool sy_request_fits(const sy_request *request, uintptr_t start, uintptr_t last, uintptr_t *value);
/* Whether a free segment satisfies the request, and the value in it. */
bool sy_fit_in(sy_vmem *arena, const sy_request *request, const sy_boundary *tag, uintptr_t *value);
/* Finds a free segment that satisfies the request, and the value in it; NULL: there is none. */
sy_boundary *sy_fit_find(sy_vmem *arena, const sy_request *request, uintptr_t *value);

/* ---- vmem.c ---- */

/* Rounds a size to quanta; false if it is 0 or overflows. */
bool sy_vmem_round(const sy_vmem *arena, size_t size, size_t *rounded);
/* Makes an arena without quantum caches in the caller's memory, which is zeroed, and destroys it
 * again. The library need not have started. 0, or -1 as sy_vmem_create. */
int sy_vmem_open(sy_vmem *arena, const sy_vmem_config *config);
void sy_vmem_close(sy_vmem *arena);
/* Gives back what an operation left. The lock is not held. */
void sy_leavings_settle(sy_vmem *arena, sy_leavings *leavings);
/* Serves a request from a free segment or from an imported span. If there is no room and `drain` is
 * set, it drains the quantum caches and tries again. The lock is not held. 0, or -1 with ENOMEM. */
int sy_vmem_serve(sy_vmem *arena, const sy_request *request, uintptr_t *value, bool drain);
/* Cuts the allocated segment that starts at the value in two, the first of which has `first` units.
 * Each is freed by itself. `first` is a multiple of the quantum, and less than the segment has. 0,
 * or -1 with ENOMEM: there is no memory for a tag, and nothing has changed. */
int sy_vmem_split(sy_vmem *arena, uintptr_t value, size_t first);
/* Raises the fault of freeing `size` at the value, where a segment of `found_size` (0: none) is. */
void sy_vmem_fault(const sy_vmem *arena, uintptr_t value, size_t size, size_t found_size);
/* Calls `visit` for each arena, with the list's lock held. */
void sy_vmem_each_arena(void (*visit)(sy_vmem *arena, void *arg), void *arg);
extern SY_HIDDEN const sy_part sy_arenas_part;

/* ---- recover.c ---- */

/* In the child of a fork: makes an arena whole again that another thread was changing. */
void sy_vmem_recover(sy_vmem *arena);

/* ---- look.c ---- */

/* The span that has the value. The value is allocated, so the span stays. */
void sy_vmem_span_of(const sy_vmem *arena, uintptr_t value, uintptr_t *start, size_t *size);

/* ---- quantum.c ---- */

/* Opens the quantum caches for sizes up to `cached_max`. 0, or -1 with ENOMEM. */
int sy_quantum_open(sy_vmem *arena, size_t cached_max);
/* Suspends the quantum caches before the arena is destroyed. False, and nothing is changed: this
 * thread is in a function of the program that an arena's operation called. */
bool sy_quantum_suspend(sy_vmem *arena);
void sy_quantum_resume(sy_vmem *arena);
void sy_quantum_close(sy_vmem *arena);
/* Units in the magazines of the quantum caches. The lock of the clients is held. */
size_t sy_quantum_held(const sy_vmem *arena);

#endif
