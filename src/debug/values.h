/*
 * values.h: reads and prints the values of options: numbers, sizes, times, words.
 *
 * A value is a 64-bit number. Reading accepts what people write ("64M", "on", "1/100"). Printing
 * has one form for each value, which reading accepts too. Used by options.c alone. Below: base/.
 */
#ifndef SY_DEBUG_VALUES_H
#define SY_DEBUG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* The value of an option that is off. */
#define SY_VALUE_OFF UINT64_MAX

/* A piece of a text. */
typedef struct sy_word {
    const char *start;
    size_t length;
} sy_word;

bool sy_word_is(sy_word word, const char *text);
/* Removes white space before and behind the word. */
sy_word sy_word_trim(sy_word word);
/* Cuts off and returns the text before the first `separator`; the separator is dropped. Without a
 * separator it returns all. */
sy_word sy_word_split(sy_word *rest, char separator);

typedef struct sy_value_type sy_value_type;

struct sy_value_type {
    /* Returns false if the word is no value of this type. */
    bool (*read)(const sy_value_type *type, sy_word word, uint64_t *value);
    void (*print)(const sy_value_type *type, uint64_t value, sy_text *text);
    uint64_t low, high;  /* of numbers */
    uint64_t granule;    /* numbers are rounded up to a multiple of this; 0: not rounded */
    bool power_of_two;   /* numbers other than 0 are rounded up to a power of two */
    bool can_be_off;     /* "off" and "no" are values; so is "0" if `low` is above 0 */
    const char *choices; /* words with | between; the value is a word's index, from 0 */
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

/* Per cent: 50, 50%. */
bool sy_read_percent(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_percent(const sy_value_type *type, uint64_t value, sy_text *text);

/* One in N: 1/1000 or 1000; "all" for 1. */
bool sy_read_rate(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_rate(const sy_value_type *type, uint64_t value, sy_text *text);

/* yes, on, 1: 1; no, off, 0: SY_VALUE_OFF. */
bool sy_read_yes(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_yes(const sy_value_type *type, uint64_t value, sy_text *text);

/* One of the choices. Or a set of them, joined by +: the value has a bit for each, and "off" is the
 * empty set. */
bool sy_read_choice(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_choice(const sy_value_type *type, uint64_t value, sy_text *text);
bool sy_read_set(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_set(const sy_value_type *type, uint64_t value, sy_text *text);

/* The number of steps in which one word becomes the other. A step adds, removes or replaces a
 * character, or exchanges two neighbours. */
unsigned sy_word_distance(sy_word word, const char *text);

#endif
