/*
 * text.h: a buffer of 512 bytes in which text is put together without allocating. Text that does
 * not fit is cut off.
 *
 * Lowest layer: includes no other header of the project.
 */
#ifndef SY_BASE_TEXT_H
#define SY_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { SY_TEXT_MAX = 512 };

typedef struct sy_text {
    size_t length;
    char bytes[SY_TEXT_MAX];
} sy_text;

static inline void sy_text_add(sy_text *text, const char *more) {
    while (*more && text->length < SY_TEXT_MAX) text->bytes[text->length++] = *more++;
}

static inline void sy_text_add_in_base(sy_text *text, uint64_t value, unsigned base) {
    char digits[65], *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    sy_text_add(text, first);
}

static inline void sy_text_add_number(sy_text *text, uint64_t value) {
    sy_text_add_in_base(text, value, 10);
}

static inline void sy_text_add_hex(sy_text *text, uint64_t value) {
    sy_text_add(text, "0x");
    sy_text_add_in_base(text, value, 16);
}

#endif
