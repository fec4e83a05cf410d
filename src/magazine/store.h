/*
 * store.h: the magazines, and the store that hands out empty ones.
 *
 * A magazine is a header and an array of items. Both are type-stable: a number always names
 * the same magazine, and a thread may read a header that another thread has taken meanwhile. A trim
 * gives the memory of unused magazines' items back to the OS; headers stay.
 *
 *     segment:  | bits | header 0 | ... | header 4095 | - | items of 0 | items of 1 | ...
 *                        64 bytes each                      1 KiB each: | 0 | 127 items |
 *
 * The word before the items of a magazine is always 0. A free that compares its item with the
 * newest one (sy_loaded_push_once) reads this word when the magazine is empty, and so does not read
 * an item of another magazine.
 *
 * Below: os. Used by the rest of magazine/ alone, except for SY_MAGAZINE_ITEMS.
 */
#ifndef SY_MAGAZINE_STORE_H
#define SY_MAGAZINE_STORE_H

#include <slabyard/base.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/platform.h"

enum {
    SY_MAGAZINE_WORDS = 128, /* of each magazine: a word that stays 0, then the items */
    SY_MAGAZINE_ITEMS = SY_MAGAZINE_WORDS - 1, /* most items in one */
    SY_MAGAZINES_PER_SEGMENT = SY_OS_SERVICES & SY_OS_FREE_ADDRESSES ? 4096 : 256,
    SY_MAGAZINE_NUMBER_BITS = 20, /* so 2^20 magazines: 127 Mi items can wait in them */
    SY_MAGAZINE_SEGMENTS = (1 << SY_MAGAZINE_NUMBER_BITS) / SY_MAGAZINES_PER_SEGMENT,
};

typedef struct sy_magazine {
    /* While in a depot stack; read by threads that lose the race for it. */
    alignas(64) _Atomic uint32_t next; /* number of the one below; 0: none */
    _Atomic uint32_t home;             /* shard that it was put into */
    _Atomic uint64_t items_down;       /* items in it and in all below it */
    /* While out of the store. */
    _Atomic uint32_t count;    /* items, while it is not loaded */
    uint32_t number;           /* never changes; 0 names no magazine */
    uintptr_t *items;          /* SY_MAGAZINE_ITEMS of them; never changes */
    struct sy_magazine *chain; /* next in a list of the thread that holds the magazine alone */
} sy_magazine;

extern SY_HIDDEN _Atomic(sy_magazine *) sy_magazine_segments[SY_MAGAZINE_SEGMENTS];

/* The magazine of that number, which was given out once. */
static inline sy_magazine *sy_magazine_of(uint32_t number) {
    sy_magazine *segment = atomic_load_explicit(
        &sy_magazine_segments[number / SY_MAGAZINES_PER_SEGMENT], memory_order_acquire);
    return &segment[number % SY_MAGAZINES_PER_SEGMENT];
}

/* An empty magazine, or NULL with errno ENOMEM. */
sy_magazine *sy_store_take(void);
void sy_store_put(sy_magazine *magazine);

/* Gives the memory of unused magazines back; returns bytes. */
size_t sy_store_trim(void);
/* A trim of the store in steps, as sy_magazine_trim_step. */
bool sy_store_trim_step(unsigned *at, bool aged, size_t *bytes);

/* Bytes of magazines that hold memory, in whole pages. */
size_t sy_store_bytes(void);

/* Calls for the memory of each segment, with the lock held. */
void sy_store_each_segment(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

/* Violations of the store's invariants, 0 when sound. */
size_t sy_store_verify(void);

#endif
