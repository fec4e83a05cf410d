/*
 * values.c: reads and prints the values of options: numbers, sizes, times, words.
 */
#include "debug/values.h"

#include <string.h>

enum { DISTANCE_LENGTH = 24 }; /* characters; longer words resemble no other */

/* ---- words ---- */

bool sy_word_is(sy_word word, const char *text) {
    return strlen(text) == word.length && memcmp(word.start, text, word.length) == 0;
}

static bool is_space(char character) {
    return character == ' ' || (character >= '\t' && character <= '\r');
}

sy_word sy_word_trim(sy_word word) {
    while (word.length && is_space(word.start[0])) word.start++, word.length--;
    while (word.length && is_space(word.start[word.length - 1])) word.length--;
    return word;
}

sy_word sy_word_split(sy_word *rest, char separator) {
    const char *end = rest->length ? memchr(rest->start, separator, rest->length) : NULL;
    sy_word first = {rest->start, end ? (size_t)(end - rest->start) : rest->length};
    size_t gone = first.length + (end != NULL);
    rest->start += gone;
    rest->length -= gone;
    return first;
}

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Row i of the table of distances between all beginnings of both words. Only the last three rows
 * are kept. */
unsigned sy_word_distance(sy_word word, const char *text) {
    size_t length = strlen(text);
    unsigned rows[3][DISTANCE_LENGTH + 1];
    if (word.length > DISTANCE_LENGTH || length > DISTANCE_LENGTH) return DISTANCE_LENGTH;
    for (unsigned j = 0; j <= length; j++) rows[0][j] = j;
    for (unsigned i = 1; i <= word.length; i++) {
        unsigned *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            char a = word.start[i - 1], b = text[j - 1];
            row[j] = least(before[j - 1] + (a != b), least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a == text[j - 2] && word.start[i - 2] == b)
                row[j] = least(row[j], earlier[j - 2] + 1);
        }
    }
    return rows[word.length % 3][length];
}

/* ---- numbers ---- */

/* Takes digits off the front of the word. Returns false if there are none, or too many. */
static bool take_digits(sy_word *word, uint64_t *value) {
    uint64_t number = 0;
    size_t at = 0;
    for (; at < word->length && word->start[at] >= '0' && word->start[at] <= '9'; at++) {
        unsigned digit = (unsigned)(word->start[at] - '0');
        if (number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    word->start += at;
    word->length -= at;
    *value = number;
    return at > 0;
}

static bool is_off(const sy_value_type *type, sy_word word) {
    if (!type->can_be_off) return false;
    return sy_word_is(word, "off") || sy_word_is(word, "no") ||
           (type->low > 0 && sy_word_is(word, "0"));
}

/* Accepts a number within the bounds, rounded as the type says. Both bounds are round. */
static bool accept(const sy_value_type *type, uint64_t number, uint64_t *value) {
    if (number < type->low || number > type->high) return false;
    if (type->granule) number += (type->granule - number % type->granule) % type->granule;
    uint64_t power = 1;
    while (type->power_of_two && power < number) power *= 2;
    *value = type->power_of_two && number ? power : number;
    return true;
}

/* Reads a number with a unit. `worth` returns what one unit is worth; 0: there is no such unit. */
static bool read_units(const sy_value_type *type, sy_word word, uint64_t (*worth)(sy_word unit),
                       uint64_t *value) {
    uint64_t number;
    *value = SY_VALUE_OFF;
    if (is_off(type, word)) return true;
    if (!take_digits(&word, &number)) return false;
    uint64_t unit = worth(word);
    return unit && number <= UINT64_MAX / unit && accept(type, number * unit, value);
}

static bool print_off(uint64_t value, sy_text *text) {
    if (value == SY_VALUE_OFF) sy_text_add(text, "off");
    return value == SY_VALUE_OFF;
}

static uint64_t worth_one(sy_word unit) { return unit.length == 0; }

bool sy_read_number(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_one, value);
}

void sy_print_number(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (!print_off(value, text)) sy_text_add_number(text, value);
}

static const char byte_units[] = "KMGT";

static uint64_t worth_bytes(sy_word unit) {
    if (unit.length == 0 || sy_word_is(unit, "B")) return 1;
    for (unsigned i = 0; byte_units[i]; i++) {
        if (unit.start[0] != byte_units[i] && unit.start[0] != byte_units[i] - 'A' + 'a') continue;
        sy_word rest = {unit.start + 1, unit.length - 1};
        bool fine = rest.length == 0 || sy_word_is(rest, "B") || sy_word_is(rest, "iB");
        return fine ? UINT64_C(1) << (10 * (i + 1)) : 0;
    }
    return 0;
}

bool sy_read_bytes(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_bytes, value);
}

void sy_print_bytes(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    unsigned unit = 0;
    while (value && value % 1024 == 0 && byte_units[unit]) value /= 1024, unit++;
    sy_text_add_number(text, value);
    if (unit) sy_text_add(text, (char[]){byte_units[unit - 1], 0});
}

static uint64_t worth_time(sy_word unit) {
    if (unit.length == 0 || sy_word_is(unit, "ms")) return 1;
    if (sy_word_is(unit, "s")) return 1000;
    return sy_word_is(unit, "min") ? 60000 : 0;
}

bool sy_read_time(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_time, value);
}

void sy_print_time(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    bool seconds = value % 1000 == 0;
    sy_text_add_number(text, seconds ? value / 1000 : value);
    sy_text_add(text, seconds ? "s" : "ms");
}

static uint64_t worth_percent(sy_word unit) { return unit.length == 0 || sy_word_is(unit, "%"); }

bool sy_read_percent(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_percent, value);
}

void sy_print_percent(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    sy_text_add_number(text, value);
    sy_text_add(text, "%");
}

bool sy_read_rate(const sy_value_type *type, sy_word word, uint64_t *value) {
    *value = 1;
    if (sy_word_is(word, "all")) return true;
    if (word.length > 2 && memcmp(word.start, "1/", 2) == 0) {
        word.start += 2;
        word.length -= 2;
    }
    return read_units(type, word, worth_one, value);
}

void sy_print_rate(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    sy_text_add(text, value == 1 ? "all" : "1/");
    if (value > 1) sy_text_add_number(text, value);
}

/* ---- words that are values ---- */

static bool is_one_of(sy_word word, const char *choices, uint64_t *number) {
    sy_word rest = {choices, strlen(choices)};
    for (*number = 0; rest.length; ++*number) {
        sy_word choice = sy_word_split(&rest, '|');
        if (choice.length == word.length && memcmp(choice.start, word.start, word.length) == 0)
            return true;
    }
    return false;
}

bool sy_read_yes(const sy_value_type *type, sy_word word, uint64_t *value) {
    (void)type;
    uint64_t which;
    if (!is_one_of(word, "yes|on|1|no|off|0", &which)) return false;
    *value = which < 3 ? 1 : SY_VALUE_OFF;
    return true;
}

void sy_print_yes(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    sy_text_add(text, value == SY_VALUE_OFF ? "no" : "yes");
}

bool sy_read_choice(const sy_value_type *type, sy_word word, uint64_t *value) {
    return is_one_of(word, type->choices, value);
}

void sy_print_choice(const sy_value_type *type, uint64_t value, sy_text *text) {
    sy_word rest = {type->choices, strlen(type->choices)}, choice;
    do choice = sy_word_split(&rest, '|');
    while (value-- > 0);
    for (size_t i = 0; i < choice.length; i++) sy_text_add(text, (char[]){choice.start[i], 0});
}

bool sy_read_set(const sy_value_type *type, sy_word word, uint64_t *value) {
    uint64_t bits = 0, which;
    bool none = sy_word_is(word, "off") || sy_word_is(word, "no") || sy_word_is(word, "0");
    for (bool more = !none; more;) {
        size_t before = word.length;
        sy_word choice = sy_word_split(&word, '+');
        if (!is_one_of(choice, type->choices, &which)) return false;
        bits |= UINT64_C(1) << which;
        more = choice.length < before;
    }
    *value = bits;
    return true;
}

void sy_print_set(const sy_value_type *type, uint64_t value, sy_text *text) {
    if (!value) sy_text_add(text, "off");
    for (uint64_t bit = 0; value >> bit; bit++) {
        if (!(value >> bit & 1)) continue;
        sy_print_choice(type, bit, text);
        if (value >> bit > 1) sy_text_add(text, "+");
    }
}
