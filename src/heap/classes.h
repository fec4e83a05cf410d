/*
 * classes.h: computes the size class of a size, and the size of a class. Each allocation from a
 * heap begins by computing the class.
 *
 *     class    1   2   3  ...   9    10   11 ...  17    18 ...        89
 *     bytes    8  16  32  ... 128   144  160 ... 256   288 ...   128 Ki
 *              .  | steps of 16 |   8 steps a doubling: at most an eighth is lost
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
#include "magazine/client.h"

enum { SY_CLASSES = 90 }; /* number 0 included */

_Static_assert((int)SY_CLASS_SIZE_MAX == (int)SY_SLAB_SLOT_MAX, "every class has slabs");
_Static_assert((int)SY_CLASSES <= (int)SY_CLIENT_DEMANDED, "class numbers are client numbers");

/* sy_class_of for sizes up to SY_CLASS_TABLE_MAX, by a table with an entry for each 8 bytes. */
enum { SY_CLASS_TABLE_MAX = 1024 };
extern SY_HIDDEN const uint8_t sy_class_table[SY_CLASS_TABLE_MAX / 8 + 1];

/* The same for objects that have to be aligned to 16, with an entry for each 16 bytes. */
extern SY_HIDDEN const uint8_t sy_wide_class_table[SY_CLASS_TABLE_MAX / 16 + 1];

/* Bytes of a slot of the class. */
static inline size_t sy_class_size(unsigned class_number) {
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

/* Whether objects of `size` bytes are in this class. Compares only the lower 32 bits of the size,
 * which is cheaper; the caller knows the class from the object's address. */
static inline bool sy_class_has(unsigned class_number, size_t size) {
    const sy_class_sizes *sizes = &sy_class_sizes_of[class_number];
    return (uint32_t)size - sizes->least < sizes->count;
}

#endif
