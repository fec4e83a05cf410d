/*
 * lots.h: the parts of mixed units (mixed.h) that belong to a scope. While a scope owns one, its
 * objects are made there, and nothing else is.
 *
 *     unit:   | lot 0 | lot 1 | lot 2 | lot 3 | ...           | lot 15 |
 *     owner:  | A     | B     | none  | A     A     A     A   | none   |    4 KiB each
 *
 * A scope gets 1, 1, 2, 4 and 8 lots, and then all free lots of units that no other scope has lots
 * of: of mixed units with long holes between survivors, or of new ones. So a scope of a few objects
 * takes 4 KiB, and others lie beside it. A unit with lots of scopes is in no bin: no refill takes
 * from its holes. When no scope owns a part of it any more, it is a mixed unit like any other. So a
 * free does not depend on lots: the flush puts the object back into its hole, and the scope's count
 * follows.
 *
 * A scope allocates upward from one hole. When that is full, it takes another lot or, if a quarter
 * of what it has is free, a hole in one of its lots.
 *
 * All of this is guarded by the lock of sy_mixed.
 *
 * Above: heap/scope.c. Below: unit.h.
 */
#ifndef SY_CACHE_LOTS_H
#define SY_CACHE_LOTS_H

#include "cache/mixed.h"

enum {
    SY_LOTS_IN_UNIT = SY_SLAB_BITMAP_WORDS,
    SY_LOT_BYTES = SY_UNIT_BYTES / SY_LOTS_IN_UNIT,
    SY_LOT_GRAINS = SY_LOT_BYTES / SY_GRAIN,
    SY_LOTS_FEW = 6,
};

/* Neighbouring lots of one scope, in a unit that it shares. */
typedef struct sy_few_lots {
    sy_slab *unit;
    uint8_t first, count;
} sy_few_lots;

/* What a scope owns. Zero at first. */
typedef struct sy_lots {
    size_t objects, grains; /* that are out: live, in magazines, or in buffers of threads */
    size_t held;            /* grains of all lots */
    sy_few_lots few[SY_LOTS_FEW];
    unsigned few_count;
    sy_heap_node *units; /* of which it alone has lots, by sibling */
    size_t unit_count;
    unsigned no_hole; /* grains for which there was no hole at the last look; 0: not known */
    struct {          /* the hole from which it allocates, or a part of it, in grains */
        sy_slab *unit;
        unsigned from, to;
    } hole;
    struct {              /* where the next search for a hole begins: */
        unsigned few;     /* these lots, */
        sy_slab *in_unit; /* if it was behind all: this unit; NULL: at the first lots */
        unsigned grain;
    } look;
    struct sy_lots *next, *previous; /* all of them */
} sy_lots;

/* Begins and ends the ownership. The end lets others have the holes of the lots; their objects
 * stay. `recover`, the same for all, is called in the child of a fork when units have been
 * recovered, and before the records of other threads are. No lock is held. */
void sy_lots_begin(sy_lots *lots, void (*recover)(void));
void sy_lots_end(sy_lots *lots);

/* Makes up to `count` objects of the cache, which takes part in mixed units, side by side at a
 * multiple of `align`. Writes their addresses downward from `end`: end[-1] is the lowest. Returns
 * how many; 0 with ENOMEM. No lock is held. */
size_t sy_lots_take(sy_lots *lots, const sy_cache *cache, uintptr_t *end, size_t count,
                    size_t align);

/* Makes objects a hole again that lie side by side, from `lowest` on, and that the program has not
 * got. False: they do not lie in lots of this scope (any more), and have to be flushed. The lock is
 * held; the caller releases what sy_unit_take_emptied returns. */
bool sy_lots_put_back(sy_lots *lots, const sy_cache *cache, uintptr_t lowest, size_t count);

/* Calls `visit`, under the lock, for each object that is out. */
typedef void (*sy_lots_visit)(void *arg, uintptr_t object, size_t bytes);
void sy_lots_each(const sy_lots *lots, sy_lots_visit visit, void *arg);

/* How many objects are out, and their bytes. No lock is held. */
size_t sy_lots_out(const sy_lots *lots, size_t *bytes);

#endif
