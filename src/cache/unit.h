/*
 * unit.h: the table of a mixed unit (mixed.h), and the steps on it. mixed.c and lots.c change
 * units, under the lock of sy_mixed.
 *
 * Below: mixed.h. Used by these two files alone.
 */
#ifndef SY_CACHE_UNIT_H
#define SY_CACHE_UNIT_H

#include "base/bits.h"
#include "cache/mixed.h"

enum {
    SY_UNIT_WORDS = SY_UNIT_GRAINS / 64,
    SY_OBJECT_GRAINS_MAX = SY_MIXED_SIZE_MAX / SY_GRAIN,
    SY_BIN_UNIT_FULL = 0,      /* the unit has no hole, and is in no heap */
    SY_BIN_UNIT_LOTS = 252,    /* scopes own parts of it, and no refill takes from it (lots.h) */
    SY_BIN_UNIT_WAITING = 253, /* it waits to be put into its bin */
    SY_BIN_UNIT_GONE = 254,    /* it is being released */
    SY_BIN_UNIT_ASIDE = UINT8_MAX, /* its memory is being changed without the lock */
};

/* 64 grains of a mixed unit. Both words are in one cache line, since each operation needs both. */
typedef struct sy_grains {
    _Atomic uint64_t begins; /* bit set: a piece begins at this grain */
    _Atomic uint64_t out;    /* bit set: it is an object, live or in a magazine */
} sy_grains;

/* The table of a mixed unit; `pieces` of its descriptor leads there. */
typedef struct sy_pieces {
    sy_grains of[SY_UNIT_WORDS];
} sy_pieces;

/* ---- bits ---- */

static inline sy_pieces *pieces_of(const sy_slab *unit) {
    return __atomic_load_n(&unit->pieces, __ATOMIC_ACQUIRE);
}

static inline unsigned grain_of(uintptr_t address) {
    return (unsigned)(address % SY_UNIT_BYTES) >> SY_GRAIN_SHIFT;
}

static inline uint64_t begins_in(const sy_pieces *pieces, unsigned word) {
    return atomic_load_explicit(&pieces->of[word].begins, memory_order_relaxed);
}

static inline uint64_t out_in(const sy_pieces *pieces, unsigned word) {
    return atomic_load_explicit(&pieces->of[word].out, memory_order_relaxed);
}

static inline bool begins_at(const sy_pieces *pieces, unsigned grain) {
    return begins_in(pieces, grain / 64) >> grain % 64 & 1;
}

static inline bool is_out(const sy_pieces *pieces, unsigned grain) {
    return out_in(pieces, grain / 64) >> grain % 64 & 1;
}

static inline uint64_t bit_of(unsigned grain) { return UINT64_C(1) << grain % 64; }

static inline void set_out(sy_pieces *pieces, unsigned grain, bool out) {
    uint64_t bits = out_in(pieces, grain / 64), bit = bit_of(grain);
    bits = out ? bits | bit : bits & ~bit;
    atomic_store_explicit(&pieces->of[grain / 64].out, bits, memory_order_relaxed);
}

/* The words of the unit's table in which pieces begin. */
static inline uint64_t filled_words(const sy_slab *unit) {
    return __atomic_load_n(&unit->filled, __ATOMIC_RELAXED);
}

static inline void set_begins(sy_slab *unit, unsigned word, uint64_t bits) {
    uint64_t words = filled_words(unit), bit = UINT64_C(1) << word;
    atomic_store_explicit(&unit->pieces->of[word].begins, bits, memory_order_relaxed);
    __atomic_store_n(&unit->filled, bits ? words | bit : words & ~bit, __ATOMIC_RELAXED);
}

static inline void begin_piece(sy_slab *unit, unsigned grain) {
    set_begins(unit, grain / 64, begins_in(unit->pieces, grain / 64) | bit_of(grain));
}

/* The piece that begins there becomes a part of the previous one. */
static inline void join_piece(sy_slab *unit, unsigned grain) {
    set_begins(unit, grain / 64, begins_in(unit->pieces, grain / 64) & ~bit_of(grain));
}

/* The first grain after `grain` at which a piece begins; SY_UNIT_GRAINS: none. */
static inline unsigned next_piece(const sy_slab *unit, const sy_pieces *pieces, unsigned grain) {
    unsigned word = grain / 64;
    uint64_t bits = begins_in(pieces, word) >> grain % 64 >> 1;
    if (bits) return grain + 1 + sy_lowest_bit(bits);
    uint64_t words = filled_words(unit) >> word >> 1;
    if (!words) return SY_UNIT_GRAINS;
    word += 1 + sy_lowest_bit(words);
    return word * 64 + sy_lowest_bit(begins_in(pieces, word));
}

/* The last grain before `grain`, which is not 0, at which a piece begins. One begins at grain 0. */
static inline unsigned previous_piece(const sy_slab *unit, unsigned grain) {
    unsigned word = grain / 64;
    uint64_t bits = begins_in(unit->pieces, word) & (bit_of(grain) - 1);
    if (!bits) {
        word = sy_highest_bit(filled_words(unit) & ((UINT64_C(1) << word) - 1));
        bits = begins_in(unit->pieces, word);
    }
    return word * 64 + sy_highest_bit(bits);
}

/* The last piece that begins at or before the grain. */
static inline unsigned piece_at(const sy_slab *unit, unsigned grain) {
    return begins_at(unit->pieces, grain) ? grain : previous_piece(unit, grain);
}

/* The parts of the unit, of `words` words of its table each, that lie in holes: a bit each. No
 * piece begins in such a part, except a hole at its start. */
static inline uint64_t parts_in_holes(const sy_slab *unit, unsigned words) {
    const sy_pieces *pieces = unit->pieces;
    uint64_t found = 0, filled = filled_words(unit), in_part = sy_low_bits(words);
    for (unsigned index = 0, word = 0; word < SY_UNIT_WORDS; index++, word += words) {
        uint64_t here = filled >> word & in_part;
        if (here > 1 || (here && begins_in(pieces, word) != 1)) continue;
        if (!is_out(pieces, piece_at(unit, word * 64))) found |= UINT64_C(1) << index;
    }
    return found;
}

/* The length of the longest hole. */
static inline unsigned sy_unit_longest(const sy_slab *unit) {
    const sy_pieces *pieces = pieces_of(unit);
    unsigned most = 0;
    for (unsigned grain = 0, next; grain < SY_UNIT_GRAINS; grain = next) {
        next = next_piece(unit, pieces, grain);
        if (!is_out(pieces, grain) && next - grain > most) most = next - grain;
    }
    return most;
}

/* Divides the hole from `hole` to `end` into objects. Goes downward, and begins each piece before
 * it says that it is an object: a fork may come between two stores. */
static inline void begin_objects(sy_slab *unit, sy_pieces *pieces, unsigned hole, unsigned end,
                                 unsigned grains) {
    for (unsigned grain = end; grain > hole;) {
        unsigned word = (grain - grains) / 64;
        uint64_t objects = 0;
        for (; grain > hole && (grain - grains) / 64 == word; grain -= grains)
            objects |= bit_of(grain - grains);
        set_begins(unit, word, begins_in(pieces, word) | objects);
        uint64_t out = out_in(pieces, word) | objects;
        atomic_store_explicit(&pieces->of[word].out, out, memory_order_relaxed);
    }
}

/* ---- mixed.c ---- */

/* The lock of sy_mixed is held for all of these. */

/* Puts the unit into its bin, by its longest hole. */
void sy_unit_insert(sy_slab *unit);

/* Takes a unit with a hole of at least so many grains out of its bin. It is in no bin then. NULL:
 * few units were looked at, and none has one. */
sy_slab *sy_unit_adopt(unsigned grains);

/* Takes a unit without objects, which is in no bin, out of the list of units. The caller releases
 * what sy_unit_take_emptied returns (mixed.h). */
void sy_unit_unlink_empty(sy_slab *unit);

/* Counts a new unit, which is one hole. */
void sy_unit_add(sy_slab *unit);

/* Counts objects of the cache that are made of holes, or become holes again. */
void sy_unit_count_out(const sy_cache *cache, size_t objects);
void sy_unit_count_in(const sy_cache *cache, size_t objects);

/* The pages of these grains will be touched. */
void sy_unit_use_pages(sy_slab *unit, unsigned first, unsigned end);

/* ---- lots.c ---- */

/* The same lock is held. */

/* The object from `grain` to `end`, in a unit with lots, has become a hole. */
void sy_lots_note_put(sy_slab *unit, unsigned grain, unsigned end);

/* Gives up the unit without objects that is kept for new lots. */
void sy_lots_trim(void);

/* In the child of a fork, if another thread was changing units: no scope has a lot any more. */
void sy_lots_forget(void);

/* Called in the child of a fork, when units are whole. No lock is held. */
void sy_lots_recover(void);

/* Violations of the invariants of lots, 0 when sound. */
size_t sy_lots_verify(void);

#endif
