/*
 * lookup.c: see lookup.h. `asked` holds the addresses in the order in which they were added, each
 * once. The first symbols.count of them have lines.
 */
#include "report/lookup.h"

#include <stdint.h>
#include <string.h>

#include "report/symbols.h"

enum { PLACES = 2 * SY_SYMBOLS_MAX };
_Static_assert((PLACES & (PLACES - 1)) == 0, "a power of two");
_Static_assert(SY_SYMBOLS_MAX <= UINT16_MAX, "numbers of addresses fit");

static sy_symbols symbols;
static const void *asked[SY_SYMBOLS_MAX];
static size_t asked_count;
static uint16_t places[PLACES]; /* hash table by address: the index in `asked` plus 1; 0: none */

void sy_lookup_forget(void) {
    memset(places, 0, sizeof places);
    asked_count = 0;
    symbols.count = 0;
}

/* The place of an address, or the free place for it. */
static uint16_t *place_of(const void *address) {
    size_t at = (uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (PLACES - 1);
    while (places[at] && asked[places[at] - 1] != address) at = (at + 1) & (PLACES - 1);
    return &places[at];
}

const char *sy_lookup_lines(const void *frame) {
    size_t number = *place_of(frame);
    return number && number <= symbols.count ? sy_symbols_lines(&symbols, number - 1) : NULL;
}

static bool is_known(const void *const *frames, size_t depth) {
    while (depth > 0 && sy_lookup_lines(frames[depth - 1])) depth--;
    return depth == 0;
}

/* Adds all addresses of a stack. Returns false if there is no room for as many. */
static bool add_stack(const void *const *frames, size_t depth) {
    if (depth > SY_SYMBOLS_MAX - asked_count) return false;
    for (size_t i = 0; i < depth; i++) {
        uint16_t *place = place_of(frames[i]);
        if (*place) continue;
        asked[asked_count++] = frames[i];
        *place = (uint16_t)asked_count;
    }
    return true;
}

void sy_lookup_stack(const void *const *frames, size_t depth, bool deep, sy_lookup_next *next,
                     void *arg) {
    if (depth > SY_SYMBOLS_MAX) depth = SY_SYMBOLS_MAX;
    if (is_known(frames, depth)) return;
    sy_lookup_forget();
    add_stack(frames, depth);
    size_t needed = asked_count;
    while (next && next(arg, &frames, &depth) && add_stack(frames, depth)) continue;
    sy_symbols_find(&symbols, asked, asked_count, needed, deep);
}
