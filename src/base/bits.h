/*
 * bits.h: arithmetic on powers of two and on words of bits.
 *
 * Lowest layer: includes no other header of the project. All functions are pure.
 */
#ifndef SY_BASE_BITS_H
#define SY_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes to reserve for a table. Address space is plentiful where addresses have 64 bits, and scarce
 * where they have 32. */
#define SY_ADDRESS_SPACE(plentiful, scarce) \
    ((size_t)(UINTPTR_MAX > UINT32_MAX ? UINT64_C(plentiful) : UINT64_C(scarce)))

static inline bool sy_is_power_of_two(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

/* The least multiple of `unit` (a power of two) that is not below `value`. The caller makes sure
 * that it does not overflow. */
static inline size_t sy_round_up(size_t value, size_t unit) {
    return (value + unit - 1) & ~(unit - 1);
}

static inline size_t sy_round_down(size_t value, size_t unit) { return value & ~(unit - 1); }

static inline size_t sy_divide_up(size_t value, size_t unit) {
    return value / unit + (value % unit != 0);
}

/* Index of the lowest set bit; word != 0. */
static inline unsigned sy_lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }

/* Index of the highest set bit; word != 0. */
static inline unsigned sy_highest_bit(uint64_t word) {
    return 63u - (unsigned)__builtin_clzll(word);
}

/* Without the processor's instruction, which the baseline x86 lacks: the compiler's builtin would
 * call a function with a table there. (Warren, "Hacker's Delight", section 5-1.) */
static inline unsigned sy_count_bits(uint64_t word) {
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The `count` lowest bits set; count <= 64. */
static inline uint64_t sy_low_bits(unsigned count) {
    return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/*
 * The start of the lowest run of `length` set bits in `word` that begins at a multiple of `align`
 * (a power of two), or 64 if there is none. 1 <= length <= 64.
 */
static inline unsigned sy_find_run(uint64_t word, unsigned length, unsigned align) {
    uint64_t starts = word;
    for (unsigned have = 1; have < length;) {
        unsigned step = have < length - have ? have : length - have;
        starts &= starts >> step;
        have += step;
    }
    if (align > 1) {
        uint64_t allowed = 0;
        for (unsigned bit = 0; bit < 64; bit += align) allowed |= UINT64_C(1) << bit;
        starts &= allowed;
    }
    return starts ? sy_lowest_bit(starts) : 64;
}

/* Length of the longest run of set bits. */
static inline unsigned sy_longest_run(uint64_t word) {
    unsigned length = 0;
    for (; word; word &= word >> 1) length++;
    return length;
}

#endif
