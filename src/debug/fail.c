/*
 * fail.c: see fail.h. Reads the rules from text, counts allocations and calls, and decides which
 * fail. One lock guards the rules. Only caches whose fast path is shut, and system calls, take it.
 */
#include "debug/fail.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/glob.h"
#include "base/random.h"
#include "base/text.h"
#include "debug/options.h"
#include "debug/tell.h"
#include "os/lock.h"
#include "os/os.h"

enum { RULES_MAX = 16 };

static const uint64_t BILLION = 1000000000; /* probabilities are in billionths */

typedef enum how { NTH, EVERY, RANDOM, LARGER } how;

/* A part of a text. */
typedef struct piece {
    const char *start, *end;
} piece;

typedef struct rule {
    bool system; /* the rule is about system calls */
    how how;
    piece names;     /* in `rules.text`; empty: all */
    uint64_t number; /* NTH, EVERY: a count; RANDOM: of a billion; LARGER: bytes */
    uint64_t seed;
    uint64_t seen;
} rule;

typedef struct rules {
    size_t count;
    rule rule[RULES_MAX];
    char text[SY_OPTION_TEXT_MAX + 1];
} rules;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_FAILURES);
static rules now; /* guarded by `lock` */

_Atomic bool sy_fail_armed;
static _Atomic uint64_t failures;

/* ---- from text ---- */

static bool is_empty(piece text) { return text.start == text.end; }

static bool begins(piece *text, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(text->end - text->start) < length || memcmp(text->start, word, length) != 0)
        return false;
    text->start += length;
    return true;
}

static bool is(piece text, const char *word) { return begins(&text, word) && is_empty(text); }

/* Cuts the text behind the last colon, or all of it, off the end of *text, with the colon. */
static piece last_word(piece *text) {
    const char *start = text->end;
    while (start > text->start && start[-1] != ':') start--;
    const piece word = {start, text->end};
    text->end = start > text->start ? start - 1 : start;
    return word;
}

static bool read_number(piece text, uint64_t *number) {
    uint64_t value = 0;
    for (const char *at = text.start; at < text.end; at++) {
        if (*at < '0' || *at > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) return false;
    }
    *number = value;
    return !is_empty(text);
}

/* "0.01", ".5", "1": above 0, at most 1. */
static bool read_probability(piece text, uint64_t *billionths) {
    const char *point = text.start;
    while (point < text.end && *point != '.') point++;
    uint64_t whole = 0, part = 0;
    piece fraction = {point < text.end ? point + 1 : point, text.end};
    size_t digits = (size_t)(fraction.end - fraction.start);
    if (digits > 9 || (point > text.start && !read_number((piece){text.start, point}, &whole)) ||
        (point < text.end && !read_number(fraction, &part)) || whole > 1)
        return false;
    for (; digits < 9; digits++) part *= 10;
    *billionths = whole * BILLION + part;
    return *billionths > 0 && *billionths <= BILLION;
}

/* Takes WHEN from the end of *text. */
static bool read_when(piece *text, rule *read) {
    piece word = last_word(text), rest = *text;
    if (begins(&word, "size>")) {
        read->how = LARGER;
        return read_number(word, &read->number);
    }
    if (!read_number(word, &read->number)) return false;
    const piece before = last_word(&rest);
    if (is(before, "every")) {
        read->how = EVERY;
        *text = rest;
    } else if (is(last_word(&rest), "random")) {
        read->how = RANDOM;
        read->seed = read->number;
        *text = rest;
        return read_probability(before, &read->number);
    }
    return read->number > 0 && !is(before, "random");
}

/* Whether the name matches one of the rule's names, which have | between them. */
static bool means(const rule *one, const char *name) {
    if (is_empty(one->names)) return true;
    for (piece each = {one->names.start, one->names.start};; each.start = ++each.end) {
        while (each.end < one->names.end && *each.end != '|') each.end++;
        if (sy_glob(each.start, (size_t)(each.end - each.start), name)) return true;
        if (each.end == one->names.end) return false;
    }
}

static bool means_a_call(const rule *one) {
    const char *const *call = sy_os_calls;
    while (*call && !means(one, *call)) call++;
    return *call != NULL;
}

static bool read_rule(piece text, rule *read) {
    if (is_empty(text) || *text.start == ':' || !read_when(&text, read)) return false;
    read->system = begins(&text, "os:");
    read->names = text;
    if (!read->system) return !is(text, "os");
    return !is_empty(text) && read->how != LARGER && means_a_call(read);
}

/* `read` must be all zero. It gets a copy of the text, and its rules point into the copy. */
static bool read_rules(const char *text, rules *read) {
    size_t length = strnlen(text, sizeof read->text);
    if (length == sizeof read->text) return false;
    memcpy(read->text, text, length);
    piece part = {read->text, read->text};
    while (*part.start != '\0') {
        while (*part.end != '\0' && *part.end != '+') part.end++;
        if (read->count == RULES_MAX || !read_rule(part, &read->rule[read->count++])) return false;
        if (*part.end == '\0') return true;
        part.start = ++part.end;
    }
    return length == 0;
}

bool sy_fail_valid(const char *specification) {
    rules read = {.count = 0};
    return read_rules(specification, &read);
}

/* ---- counting and deciding ---- */

/* The number of an allocation decides, not its thread. */
static uint64_t mix(uint64_t seed, uint64_t count) {
    return sy_random_mix(seed + count * SY_RANDOM_STEP);
}

static bool is_due(const rule *one, size_t size) {
    switch (one->how) {
    case NTH: return one->seen == one->number;
    case EVERY: return one->seen % one->number == 0;
    case RANDOM: return mix(one->seed, one->seen) % BILLION < one->number;
    case LARGER: return size > one->number;
    }
    return false;
}

/* Returns the count of the first rule that makes this call or allocation fail; 0: none does. Every
 * rule that matches counts it. */
static uint64_t count_one(bool system, const char *name, size_t size) {
    uint64_t due = 0;
    sy_lock_acquire(&lock);
    for (rule *one = now.rule; one < now.rule + now.count; one++) {
        if (one->system != system || !means(one, name)) continue;
        one->seen++;
        if (due == 0 && is_due(one, size)) due = one->seen;
    }
    if (due != 0) atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
    sy_lock_release(&lock);
    return due;
}

bool sy_fail_due_armed(const char *cache, size_t size) {
    uint64_t count = count_one(false, cache, size);
    if (count == 0) return false;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: made allocation ");
    sy_text_add_number(&text, count);
    sy_text_add(&text, " of cache \"");
    sy_text_add(&text, cache);
    sy_text_add(&text, "\" (");
    sy_text_add_number(&text, size);
    sy_text_add(&text, " bytes) fail\n");
    sy_tell->line(text.bytes, text.length);
    errno = ENOMEM;
    return true;
}

static bool call_due(const char *call) {
    uint64_t count = count_one(true, call, 0);
    if (count == 0) return false;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: made call ");
    sy_text_add_number(&text, count);
    sy_text_add(&text, " of sy_os_");
    sy_text_add(&text, call);
    sy_text_add(&text, " fail\n");
    sy_tell->line(text.bytes, text.length);
    return true;
}

bool sy_fail_wants(const char *cache) {
    bool wanted = false;
    sy_lock_acquire(&lock);
    for (const rule *one = now.rule; !wanted && one < now.rule + now.count; one++)
        wanted = !one->system && means(one, cache);
    sy_lock_release(&lock);
    return wanted;
}

/* ---- public functions ---- */

/* `text` must be a valid specification. */
static void set(const char *text) {
    bool calls = false, allocations = false;
    sy_lock_acquire(&lock);
    now = (rules){.count = 0};
    read_rules(text, &now);
    for (const rule *one = now.rule; one < now.rule + now.count; one++)
        *(one->system ? &calls : &allocations) = true;
    atomic_store_explicit(&failures, 0, memory_order_relaxed);
    atomic_store_explicit(&sy_fail_armed, allocations, memory_order_relaxed);
    sy_os_set_failing(calls ? call_due : NULL);
    sy_lock_release(&lock);
}

void sy_fail_apply_option(void) {
    uint64_t nothing;
    char text[SY_OPTION_TEXT_MAX + 1];
    if (!sy_options_take(SY_LATE_FAILURES, &nothing)) return;
    sy_options_failures(text);
    set(text);
}

int sy_set_failures(const char *specification) {
    const char *text = specification ? specification : "";
    uint64_t said_before;
    if (!sy_fail_valid(text)) {
        errno = EINVAL;
        return -1;
    }
    sy_options_load();
    sy_options_take(SY_LATE_FAILURES, &said_before);
    set(text);
    return 0;
}

uint64_t sy_failures(void) { return atomic_load_explicit(&failures, memory_order_relaxed); }

static int start_failures(void) {
    sy_fail_apply_option();
    return 0;
}

static void hold_failures(void) { sy_lock_hold(&lock); }

static void drop_failures(void) { sy_lock_drop(&lock); }

const sy_part sy_fail_part = {
    .start = start_failures, .hold = hold_failures, .drop = drop_failures};
