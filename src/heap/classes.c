/*
 * classes.c: the tables from a size in bytes to its size class, and the map's window for inlined
 * frees.
 */
#include "heap/classes.h"

#include "chunk/map.h"

/* The class for 8 * n bytes, as sy_class_of but a constant expression. */
#define HIGHEST(n) (31u - (unsigned)__builtin_clz((8u * (n)-1) | 128))
#define CLASS(n)                                                      \
    (uint8_t)((n) <= 1    ? 1                                         \
              : (n) <= 16 ? (8u * (n) + 15) / 16 + SY_CLASS_16 - 1    \
                          : SY_CLASS_128 + 1 + (HIGHEST(n) - 7) * 8 + \
                                ((8u * (n)-1) >> (HIGHEST(n) - 3)) - 8)
#define CLASSES_4(n)  CLASS(n), CLASS((n) + 1), CLASS((n) + 2), CLASS((n) + 3)
#define CLASSES_16(n) CLASSES_4(n), CLASSES_4((n) + 4), CLASSES_4((n) + 8), CLASSES_4((n) + 12)
#define CLASSES_64(n) \
    CLASSES_16(n), CLASSES_16((n) + 16), CLASSES_16((n) + 32), CLASSES_16((n) + 48)

const uint8_t sy_class_table[SY_CLASS_TABLE_MAX / 8 + 1] = {CLASSES_64(0), CLASSES_64(64),
                                                            CLASS(128)};

/* The class for 16 * n bytes at a multiple of 16. */
#define WIDE(n)                                                                        \
    (16 * (n) >= SY_PAGES_LEAST && 16 * (n) <= SY_PAGES_MOST ? (uint8_t)SY_CLASS_PAGES \
                                                             : CLASS((n) ? 2 * (n) : 2))
#define WIDE_4(n)  WIDE(n), WIDE((n) + 1), WIDE((n) + 2), WIDE((n) + 3)
#define WIDE_16(n) WIDE_4(n), WIDE_4((n) + 4), WIDE_4((n) + 8), WIDE_4((n) + 12)

#define WIDE_64(n) WIDE_16(n), WIDE_16((n) + 16), WIDE_16((n) + 32), WIDE_16((n) + 48)

const uint8_t sy_wide_class_table[SY_WIDE_TABLE_MAX / 16 + 1] = {
    WIDE_64(0),   WIDE_64(64),  WIDE_64(128), WIDE_64(192), WIDE_64(256),
    WIDE_64(320), WIDE_64(384), WIDE_64(448), WIDE(512)};

/* The classes of a doubling, from 8 * 2^k bytes on; their sizes lie apart by 2^k. */
#define DOUBLING(k)                                                                            \
    {(8u << (k)) + 1, 1u << (k)}, {(9u << (k)) + 1, 1u << (k)}, {(10u << (k)) + 1, 1u << (k)}, \
        {(11u << (k)) + 1, 1u << (k)}, {(12u << (k)) + 1, 1u << (k)},                          \
        {(13u << (k)) + 1, 1u << (k)}, {(14u << (k)) + 1, 1u << (k)}, {                        \
        (15u << (k)) + 1, 1u << (k)                                                            \
    }

const sy_class_sizes sy_class_sizes_of[SY_CLASSES + 1] = {
    {0, 0},       {0, 9},       {9, 8},
    {17, 16},     {33, 16},     {49, 16},
    {65, 16},     {81, 16},     {97, 16},
    {113, 16},    DOUBLING(4),  DOUBLING(5),
    DOUBLING(6),  DOUBLING(7),  DOUBLING(8),
    DOUBLING(9),  DOUBLING(10), DOUBLING(11),
    DOUBLING(12), DOUBLING(13), {SY_PAGES_LEAST, SY_PAGES_MOST - SY_PAGES_LEAST + 1},
    {0, 0},
};

const struct sy_class_window *const sy_class_window_1 =
    (const struct sy_class_window *)(const void *)&sy_the_window;

_Static_assert(offsetof(sy_window, start) == offsetof(struct sy_class_window, start) &&
                   offsetof(sy_window, classes) == offsetof(struct sy_class_window, classes) &&
                   SY_UNIT_SHIFT == 16 && (int)SY_LEAF_UNITS == (int)SY_CLASS_WINDOW_UNITS,
               "the window is as slabyard/heap.h has it");
