/*
 * mixed.h: mixed units, whose holes take objects of any size class of the general heap.
 *
 *     a slab of one class, sparse:     |64|..|..|64|..|..|..|64|..|   a dot: a free slot
 *     the same as a mixed unit:        |64| hole|64|   hole   |64|..
 *     with objects of other classes:   |64| 112 |64| 48 | 48 |..|64|
 *
 * Where the sizes of a program change and some objects survive, slabs of the old sizes are sparse,
 * and nearly each of their pages has a survivor. So their memory can neither go back to the system
 * nor serve other classes as pages. The holes between the survivors can.
 *
 * When a class needs a slab, and much of the memory in slabs of other classes is free, the sparsest
 * slab of the class with the most free memory is *converted*. It leaves its cache, and its objects
 * stay where they are. Then refills take from its holes. When its last object is freed, it goes
 * back to the chunks.
 *
 * A unit is divided in *grains* of 16 bytes, and consists of *pieces*: objects and holes. Two
 * bitmaps with a bit for each grain say where pieces begin, and which pieces are objects that are
 * out. So nothing is written into holes or beside objects. The size of an object is the distance to
 * the next piece. Neighbouring holes are always one hole.
 *
 *     begins   1 . . . 1 . . . . . . 1 . . .
 *     out      1 . . . . . . . . . . 1 . . .        object, hole, object
 *
 * In the map of classes these units have the number SY_CLASS_MIXED, which is that of a client. So a
 * free puts the object into a magazine of this client, whatever its class is, and a flush puts it
 * back into its hole. Nothing is allocated from the client.
 *
 * Only caches without flags whose slabs have one unit take part: not those that a program creates,
 * nor those of separate heaps, nor any with checks.
 *
 * All of this is guarded by the lock of sy_mixed, which is taken under that of a cache. The size of
 * a live object is read without it: its first grain and the first of the next piece do not change
 * as long as it lives.
 *
 * Best fit over holes of any size is what allocators with boundary tags do (D. Lea, "A memory
 * allocator", 1996); taking the holes between survivors, what Immix does with lines (S. Blackburn
 * and K. McKinley, "Immix: a mark-region garbage collector", PLDI 2008).
 *
 * Below: chunk/. Above: refill.c, heap/, reclaim/.
 */
#ifndef SY_CACHE_MIXED_H
#define SY_CACHE_MIXED_H

#include "cache/cache.h"

enum {
    SY_CLASS_MIXED = 91, /* in the map: no class has this number */
    SY_GRAIN_SHIFT = 4,
    SY_GRAIN = 1 << SY_GRAIN_SHIFT,
    SY_UNIT_GRAINS = SY_UNIT_BYTES / SY_GRAIN,
    SY_MIXED_SIZE_MAX = SY_UNIT_BYTES / SY_SLAB_SLOTS_LEAST, /* bytes of an object, at most */
};

_Static_assert((int)SY_CLASS_MIXED < (int)SY_CLIENT_DEMANDED, "no other client gets the number");

/* The owner of mixed units: a cache without slots, because code that finds the owner of a run
 * expects a cache. Its slabs are the mixed units. */
extern SY_HIDDEN sy_cache sy_mixed;

/* Slabs are converted only if at least so many bytes are free in slabs of the general heap. Only
 * tests change it; 0: slabs are converted at every chance. */
extern SY_HIDDEN size_t sy_mixed_least;

static inline bool sy_is_mixed(const sy_slab *run) {
    return run && sy_slab_owner(run) == (const void *)&sy_mixed;
}

/* Lets a cache of a size class take part, if it can. Its lock is not held; the start's is. */
void sy_mixed_join(sy_cache *cache);

/* Opens the client of sy_mixed, and lets the caches of the size classes join, once; false: not now.
 * No lock is held. */
bool sy_mixed_begin(void);

/* Whether the cache takes part. */
bool sy_mixed_has(const sy_cache *cache);

/* Takes up to `count` slots for the cache from holes, and writes their addresses downward from
 * `end`, as sy_slab_take does; returns how many. Where that is worth while, slabs of other caches
 * are converted; `anyway`: also where it is not. No lock is held. */
size_t sy_mixed_take(sy_cache *cache, uintptr_t *end, size_t count, bool anyway);

/* The cache of the object that begins at `address`, in a mixed unit, and is live or in a magazine;
 * NULL: there is none. No lock is held. Exact for an object that no other thread frees
 * meanwhile. */
sy_cache *sy_mixed_cache_at(uintptr_t address);

/* The fault of freeing an address in a mixed unit at which sy_mixed_cache_at finds no object. */
sy_fault_kind sy_mixed_fault(uintptr_t address);

/* An item of a flush. */
typedef struct sy_flush_item {
    uint8_t index; /* in the magazine */
    uint8_t fault; /* a sy_fault_kind, if putting it back is one */
} sy_flush_item;

/* Prefetches the part of a unit's table that putting the object back will change. No lock is held:
 * another thread may be converting the unit, and then nothing useful is prefetched. */
static inline void sy_mixed_prefetch(const sy_slab *unit, uintptr_t address) {
    const char *pieces = (const char *)__atomic_load_n(&unit->pieces, __ATOMIC_RELAXED);
    __builtin_prefetch(pieces + (address % SY_UNIT_BYTES >> 10 << 4), 1);
}

/* Puts the listed items of a magazine back into their holes. Returns how many are refused, because
 * no object of the cache (NULL: of any) begins there: the list begins with these then, and their
 * faults. `held`: as in a client's flush. *empty: a list of units that have no object any more, to
 * be released without locks. */
size_t sy_mixed_put(const sy_cache *cache, const uintptr_t *items, sy_flush_item *list,
                    size_t count, _Atomic uint32_t *held, sy_slab **empty);
void sy_mixed_release(sy_slab *units);

/* The units that have no object any more, as *empty above. The lock of sy_mixed is held. */
sy_slab *sy_unit_take_emptied(void);

/* A step of a trim, as sy_cache_trim_step: discards pages that lie in holes. */
bool sy_mixed_trim_step(size_t *left, bool aged, size_t *bytes);

/* Calls `visit` for each object of a unit that is out and lies between two addresses, or partly so.
 * The lock of sy_mixed is held, or no other thread runs. */
void sy_mixed_each(const sy_slab *unit, uintptr_t start, uintptr_t end,
                   void (*visit)(void *arg, uintptr_t object, size_t bytes), void *arg);

/* Objects of the cache in mixed units, live or in magazines. The cache's lock may be held. */
size_t sy_mixed_objects(const sy_cache *cache);

/* Objects that were freed and wait to be put back. They count as in use for their classes. */
size_t sy_mixed_waiting(void);

typedef struct sy_mixed_bytes {
    size_t all, holes, discarded; /* of the units; in their holes; of these, without memory */
} sy_mixed_bytes;

sy_mixed_bytes sy_mixed_count(void);

/* Violations of the invariants of mixed units, 0 when sound. */
size_t sy_mixed_verify(void);

/* Around a fork holds the lock; the child mends what another thread was changing. */
extern SY_HIDDEN const sy_part sy_mixed_part;

#endif
