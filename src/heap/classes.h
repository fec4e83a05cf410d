/*
 * classes.h: computes the size class of a size, and the size of a class. Each allocation from a
 * heap begins by computing the class.
 *
 *     class    1   2   3  ...   9    10   11 ...  17    18 ...        89
 *     bytes    8  16  32  ... 128   144  160 ... 256   288 ...   128 Ki
 *              .  | steps of 16 |   8 steps a doubling: at most an eighth is lost
 *
 * Class 90 lies among them: objects of 4,097 to 4,368 bytes, pages of databases and buffers with a
 * header. 15 of these fit in a unit, and only 14 of class 50 (4,608 bytes).
 *
 * The number of a class is also its client number in the magazine layer, and its byte in the map.
 * Number 0 is no class; its loaded slot is always shut.
 */
#ifndef SY_HEAP_CLASSES_H
#define SY_HEAP_CLASSES_H

#include <slabyard/heap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "cache/layout.h"
#include "chunk/map.h"
#include "magazine/client.h"

enum {
    SY_CLASSES = 91,     /* number 0 included */
    SY_CLASS_PAGES = 90, /* of pages with a header, */
    SY_PAGES_LEAST = 4096 + 1,
    SY_PAGES_MOST = SY_UNIT_BYTES / 15 / 16 * 16, /* of these sizes */
};

_Static_assert((int)SY_CLASS_SIZE_MAX == (int)SY_SLAB_SLOT_MAX, "every class has slabs");
_Static_assert((int)SY_CLASSES <= (int)SY_CLIENT_DEMANDED, "class numbers are client numbers");

/* sy_class_of for sizes up to SY_CLASS_TABLE_MAX, by a table with an entry for each 8 bytes. */
enum { SY_CLASS_TABLE_MAX = 1024 };
extern SY_HIDDEN const uint8_t sy_class_table[SY_CLASS_TABLE_MAX / 8 + 1];

/* sy_class_for for objects at multiples of 16, by a table with an entry for each 16 bytes. */
enum { SY_WIDE_TABLE_MAX = 8192 };
extern SY_HIDDEN const uint8_t sy_wide_class_table[SY_WIDE_TABLE_MAX / 16 + 1];

/* The class with the smallest slots that hold `size` bytes, up to SY_CLASS_SIZE_MAX. A program that
 * inlines sy_class_of gets class 50 instead of SY_CLASS_PAGES. */
static inline unsigned sy_class_for(size_t size) {
    bool pages = size - SY_PAGES_LEAST <= SY_PAGES_MOST - SY_PAGES_LEAST;
    return SY_UNLIKELY(pages) ? (unsigned)SY_CLASS_PAGES : sy_class_of(size);
}

/* Bytes of a slot of the class with this number by sy_class_of, also beyond SY_CLASS_SIZE_MAX. */
static inline size_t sy_class_size_of(unsigned class_number) {
    if (class_number < SY_CLASS_16) return (size_t)8 * class_number;
    if (class_number <= SY_CLASS_128) return (class_number - SY_CLASS_16 + 1) * (size_t)16;
    unsigned beyond = class_number - SY_CLASS_128 - 1;
    return (size_t)(9 + beyond % 8) << (4 + beyond / 8);
}

/* The sizes of a class: the least one, and how many there are. Class 0 has no size, nor has the
 * number of mixed units. */
typedef struct sy_class_sizes {
    uint32_t least, count;
} sy_class_sizes;

extern SY_HIDDEN const sy_class_sizes sy_class_sizes_of[SY_CLASSES + 1];

/* Bytes of a slot of the class. */
static inline size_t sy_class_size(unsigned class_number) {
    const sy_class_sizes *sizes = &sy_class_sizes_of[class_number];
    return sizes->least + sizes->count - (size_t)1;
}

/* Whether objects of `size` bytes are in this class. Compares only the lower 32 bits of the size,
 * which is cheaper; the caller knows the class from the object's address. */
static inline bool sy_class_has(unsigned class_number, size_t size) {
    const sy_class_sizes *sizes = &sy_class_sizes_of[class_number];
    return (uint32_t)size - sizes->least < sizes->count;
}

#endif
