/*
 * movable.h: caches whose objects move (SY_MOVABLE): their kind, the words of objects that are
 * being moved, and the steps that move objects.
 *
 * The head of such a cache (sy_handle_head) has a `live` that no word has, so the inline functions
 * for other caches take their slow paths. `slot` is what `live` is elsewhere.
 *
 * Below: blocks.h, kind.h, magazine/readers.h. Above: handle.c, trim.c, reclaim/.
 */
#ifndef SY_CACHE_MOVABLE_H
#define SY_CACHE_MOVABLE_H

#include "cache/blocks.h"
#include "cache/directory.h"
#include "cache/kind.h"

_Static_assert(((uint64_t)SY_SLOT_MIN << SY_HANDLE_PLACE) > SY_HANDLE_PINS &&
                   SY_ADDRESS_BITS + SY_HANDLE_PLACE <= 64,
               "as a word, a place is neither live nor pinned, and the whole address fits");

/* ---- words and places; for caches with handles of both kinds ---- */

static inline bool sy_names_move(const struct sy_handle_head *head) {
    return head->live == SY_HANDLE_MOVING;
}

/* The lower half of the word of a live, unpinned object. */
static inline uint64_t sy_names_live(const struct sy_handle_head *head) {
    return sy_names_move(head) ? head->slot : head->live;
}

static inline uint64_t sy_names_expected(const struct sy_handle_head *head, sy_handle handle) {
    return (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | sy_names_live(head);
}

static inline uintptr_t sy_moved_place(const struct sy_handle_head *head, uint64_t ordinal) {
    uint64_t place = __atomic_load_n(&head->words[ordinal | 1], __ATOMIC_RELAXED);
    return (uintptr_t)(place >> SY_HANDLE_PLACE);
}

static inline void sy_move_place(const struct sy_handle_head *head, uint64_t ordinal,
                                 uintptr_t address) {
    __atomic_store_n(&head->words[ordinal | 1], (uint64_t)address << SY_HANDLE_PLACE,
                     __ATOMIC_RELAXED);
}

static inline void *sy_names_place(const struct sy_handle_head *head, uint64_t ordinal) {
    return sy_names_move(head) ? (void *)sy_moved_place(head, ordinal)
                               : sy_handle_place(head, ordinal);
}

/* Reads the word of an ordinal of the cache's range (acquire). If it is zero because the ordinal's
 * block is folded (fold.c), unfolds this first. sy_names_word_slow: the word was zero. */
uint64_t sy_names_word_slow(const struct sy_handle_head *head, uint32_t ordinal);
static inline uint64_t sy_names_word(const struct sy_handle_head *head, uint32_t ordinal) {
    uint64_t word = __atomic_load_n(&head->words[ordinal], __ATOMIC_ACQUIRE);
    return SY_LIKELY(word) ? word : sy_names_word_slow(head, ordinal);
}

/* Whether the objects of a cache move. */
static inline bool sy_cache_moves(const sy_cache *cache) {
    return sy_cache_has_handles(cache) && sy_names_move(&cache->names);
}

/* ---- movable.c: ordinals and slots are joined when they go to a magazine ---- */

extern SY_HIDDEN const sy_slab_kind sy_slabs_movable;
size_t sy_movable_refill(void *cache, uintptr_t *items, size_t count);
void sy_movable_flush(void *cache, uintptr_t *items, size_t count, _Atomic uint32_t *held);

/*
 * The owner of a slot is the ordinal that it was joined with last. It is kept, twice as large, in
 * half a word of the directory, and looks there like a free word: the ordinal is even. So no handle
 * is accepted for it.
 */
static inline uint32_t *sy_movable_owners(uint32_t first) {
    return (uint32_t *)(sy_directory_words() + first);
}

static inline void sy_movable_own(const sy_slab *slab, uint32_t index, uint32_t ordinal) {
    __atomic_store_n(&sy_movable_owners(slab->ordinal)[index], ordinal * 2, __ATOMIC_RELAXED);
}

static inline uint32_t sy_movable_owner(uint32_t first, uint32_t index) {
    return __atomic_load_n(&sy_movable_owners(first)[index], __ATOMIC_RELAXED) / 2;
}

/* ---- moving.c: the words of objects that are being moved ---- */

/* An object that a mover has chosen. */
typedef struct sy_moving {
    uint32_t ordinal;
    uint64_t live; /* its word before */
    uintptr_t from, to;
} sy_moving;

/* Announces the move; false: the object is pinned, free, or elsewhere. */
bool sy_moving_announce(const struct sy_handle_head *head, sy_moving *object);
/* Calls the announced move off, if no other thread has. */
void sy_moving_cancel(const struct sy_handle_head *head, const sy_moving *object);
/* Whether the object may be copied now: no other thread has called the move off. Then others wait
 * until sy_moving_end. Only after sy_readers_await. */
bool sy_moving_begin(const struct sy_handle_head *head, const sy_moving *object);
void sy_moving_end(const struct sy_handle_head *head, const sy_moving *object);
/* In the child of a fork: ends whatever move of the object a thread of the parent had begun. The
 * object stays where it is. */
void sy_moving_abandon(const struct sy_handle_head *head, const sy_moving *object);

/* If *word is that of an object that is being moved, calls the move off or waits for its end. If it
 * is zero because the ordinal's block is folded, unfolds this. Then reads *word again, and returns
 * true. `live`: the word of the object when it is not being moved. */
bool sy_moving_settle_slow(const struct sy_handle_head *head, uint64_t *at, uint64_t *word);
static inline bool sy_moving_settle(const struct sy_handle_head *head, uint64_t *at, uint64_t live,
                                    uint64_t *word) {
    bool moves = (*word & ~SY_HANDLE_PINS) == (live | SY_HANDLE_MOVING);
    if (SY_LIKELY(!moves && (*word || !sy_names_move(head)))) return false;
    return sy_moving_settle_slow(head, at, word);
}

/* ---- compact.c: steps that move objects ---- */

/* Where a walk through the slabs of a cache is; zeros: at its begin. */
typedef struct sy_compaction {
    bool begun, moved, folding; /* moved: it folds blocks now, folding: has begun to */
    bool whole;                 /* of a trim: it folds all blocks for which this saves memory */
    unsigned bin;               /* slabs in this bin or a sparser one give their objects away */
    size_t left;                /* slabs that are not looked at yet in this round */
    const sy_slab *slab;        /* at work; no longer if it is not the first of the list */
    uint32_t index;             /* its slots below are done */
    uint64_t wait_ns;           /* for another thread's step; 0: gives up (mover.h) */
    size_t emptied;             /* bytes of slabs that were emptied */
    size_t discarded;           /* bytes of words that went back to the system */
} sy_compaction;

/*
 * Does one step of some 20 us: moves a few objects. False: nothing is left to do, or another thread
 * moves objects. `aged`: by a pass by age, which only moves if much can be emptied. It may call the
 * cache's `relocate`.
 */
bool sy_cache_compact_step(sy_cache *cache, sy_compaction *walk, bool aged);
/* Does all steps, and waits for other threads'. Returns the bytes that went back to the system. */
size_t sy_cache_compact_all(sy_cache *cache);

#endif
