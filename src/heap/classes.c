#include "heap/classes.h"

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
