/*
 * values.h: how the values of options are written: numbers, sizes, times, words.
 *
 * A value is a number of 64 bits. Reading understands what people write ("64M", "on", "1/100"),
 * printing has one way for each value, which reading gives back. Used by options.c alone; nothing
 * below but base/.
 */
#ifndef SY_WATCH_VALUES_H
#define SY_WATCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* The value of what is off. */
#define SY_VALUE_OFF UINT64_MAX

/* A piece of a text. */
typedef struct sy_word {
    const char *start;
    size_t length;
} sy_word;

bool sy_word_is(sy_word word, const char *text);
/* Without white space before and behind. */
sy_word sy_word_trim(sy_word word);
/* Cuts off what stands before the first `separator`, which goes too; all, if there is none. */
sy_word sy_word_split(sy_word *rest, char separator);

typedef struct sy_value_type sy_value_type;

struct sy_value_type {
    /* False: the word is no such value. */
    bool (*read)(const sy_value_type *type, sy_word word, uint64_t *value);
    void (*print)(const sy_value_type *type, uint64_t value, sy_text *text);
    uint64_t low, high;  /* of numbers */
    uint64_t granule;    /* numbers are rounded up to a multiple of this; 0: they are not */
    bool power_of_two;   /* or to a power of two, if they are not 0 */
    bool can_be_off;     /* "off" and "no" are values, and so is 0 if `low` is more */
    const char *choices; /* words with | between; the value is their number, from 0 */
};

/* Whole numbers. */
bool sy_read_number(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_number(const sy_value_type *type, uint64_t value, sy_text *text);

/* Bytes: 4096, 4K, 64M, 2G, 1T; an iB or B may follow. */
bool sy_read_bytes(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_bytes(const sy_value_type *type, uint64_t value, sy_text *text);

/* Milliseconds: 1500, 1500ms, 2s, 1min. */
bool sy_read_time(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_time(const sy_value_type *type, uint64_t value, sy_text *text);

/* One in how many: 1/1000, or 1000; all for 1. */
bool sy_read_rate(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_rate(const sy_value_type *type, uint64_t value, sy_text *text);

/* yes, on, 1: 1; no, off, 0: SY_VALUE_OFF. */
bool sy_read_yes(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_yes(const sy_value_type *type, uint64_t value, sy_text *text);

/* One of the choices; or several joined by +, a bit for each, and "off" for none. */
bool sy_read_choice(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_choice(const sy_value_type *type, uint64_t value, sy_text *text);
bool sy_read_set(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_set(const sy_value_type *type, uint64_t value, sy_text *text);

/* In how many steps one becomes the other: a character more, less, another, or two exchanged. */
unsigned sy_word_distance(sy_word word, const char *text);

#endif
