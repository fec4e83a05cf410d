/*
 * lots.c: gives parts of mixed units to scopes, and makes objects in them.
 */
#include "cache/lots.h"

#include <errno.h>
#include <string.h>

#include "base/fork.h"
#include "cache/limit.h"
#include "cache/unit.h"
#include "chunk/side.h"
#include "os/invariant.h"

/* Of a unit with lots. */
enum {
    FULL = 0, /* it may have lots without an owner, but none of them was free at the last look */
    LISTED,   /* it is in the list of units that may have free lots */
    SOLE,     /* one scope alone owns parts of it, and has it in its own list */
};

enum {
    LOOKS = 16,       /* at lots and units of a scope, for one hole */
    UNITS_LOOKED = 8, /* at, of those that may have free lots */
};

/* Guarded by the lock of sy_mixed. */
static sy_lots *all;
static sy_heap_node *listed; /* units that may have free lots, by sibling */
static void (*recover_above)(void);

/* ---- lists of units ---- */

static void link_first(sy_heap_node **list, sy_slab *unit) {
    unit->node = (sy_heap_node){.sibling = *list};
    if (*list) (*list)->previous = &unit->node;
    *list = &unit->node;
}

static void unlink_from(sy_heap_node **list, sy_slab *unit) {
    sy_heap_node *before = unit->node.previous, *after = unit->node.sibling;
    *(before ? &before->sibling : list) = after;
    if (after) after->previous = before;
}

/* NULL for NULL. */
static sy_slab *unit_of(sy_heap_node *node) { return node ? sy_slab_of_node(node) : NULL; }

static sy_slab *next_unit(const sy_slab *unit) { return unit_of(unit->node.sibling); }

static void list(sy_slab *unit) {
    if (unit->lots_are != FULL) return;
    unit->lots_are = LISTED;
    link_first(&listed, unit);
}

static void unlist(sy_slab *unit) {
    if (unit->lots_are == LISTED) unlink_from(&listed, unit);
    unit->lots_are = FULL;
}

/* ---- owners ---- */

static unsigned mask_of(unsigned first, unsigned count) { return ((1u << count) - 1) << first; }

/* NULL: no scope owns these lots any more. */
static void own(sy_slab *unit, unsigned mask, sy_lots *lots) {
    for (unsigned left = mask; left; left &= left - 1) unit->lots[sy_lowest_bit(left)] = lots;
    unit->owned = (uint16_t)(lots ? unit->owned | mask : unit->owned & ~mask);
}

/* The lots of the unit that no scope owns, and that have no objects. */
static unsigned free_lots(const sy_slab *unit) {
    return (unsigned)parts_in_holes(unit, SY_LOT_GRAINS / 64) & ~(unsigned)unit->owned;
}

/* The unit, of which no scope owns a part, is a mixed unit like any other from now on. */
static void let_go(sy_slab *unit) {
    unit->free_most = (uint16_t)sy_unit_longest(unit);
    unit->changed = 0;
    unit->first_word = 0;
    sy_unit_insert(unit);
}

/* Some lots of the unit have no owner any more. One unit without objects is kept, so that a scope
 * that comes after another need not take a unit. */
static void settle(sy_slab *unit) {
    bool empty = unit->free_count == SY_UNIT_GRAINS;
    if (unit->owned || (empty && (!listed || listed == &unit->node))) {
        list(unit);
        return;
    }
    unlist(unit);
    if (empty)
        sy_unit_unlink_empty(unit);
    else
        let_go(unit);
}

void sy_lots_trim(void) {
    for (sy_slab *unit = unit_of(listed), *next; unit; unit = next) {
        next = next_unit(unit);
        if (unit->owned || unit->free_count < SY_UNIT_GRAINS) continue;
        unlist(unit);
        sy_unit_unlink_empty(unit);
    }
}

/* ---- units ---- */

/* A unit that is in no list yet; NULL with ENOMEM. */
static sy_slab *make_unit(void) {
    bool clean;
    sy_quota *refused;
    sy_slab *unit = sy_quota_take_run(&sy_quota_process, &sy_memory_main, SY_UNIT_BYTES,
                                      SY_UNIT_BYTES, 0, &clean, &refused);
    sy_refuse_run(refused);
    if (!unit) return NULL;
    sy_pieces *pieces = sy_side_take(sizeof *pieces);
    if (!pieces) {
        sy_quota_give_run(&sy_quota_process, unit);
        errno = ENOMEM;
        return NULL;
    }
    unit->pieces = pieces;
    begin_piece(unit, 0);
    unit->free_count = unit->free_most = SY_UNIT_GRAINS;
    unit->bin = SY_BIN_UNIT_LOTS;
    sy_caches_note_growth(SY_UNIT_BYTES);
    return unit;
}

static void add_unit(sy_slab *unit) {
    sy_lock_acquire(&sy_mixed.lock);
    sy_fork_order();
    __atomic_store_n(&unit->owner, (void *)&sy_mixed, __ATOMIC_RELAXED);
    sy_unit_add(unit);
    list(unit);
    atomic_thread_fence(memory_order_release); /* who finds the class finds the pieces */
    sy_map_set_class(unit->start, 1, SY_CLASS_MIXED);
    sy_lock_release(&sy_mixed.lock);
}

/* ---- lots for a scope ---- */

/* The lots that a scope gets next: as many as it has, up to a unit, and enough for an object. */
static unsigned lots_wanted(const sy_lots *lots, unsigned grains) {
    unsigned count = 1;
    while (count < SY_LOTS_IN_UNIT &&
           (count * SY_LOT_GRAINS < grains || (size_t)2 * count * SY_LOT_GRAINS <= lots->held))
        count *= 2;
    return lots->few_count == SY_LOTS_FEW ? SY_LOTS_IN_UNIT : count;
}

/* The first of `count` neighbouring lots; SY_LOTS_IN_UNIT: there are none. */
static unsigned find_lots(unsigned free, unsigned count) {
    unsigned first = 0;
    while (first + count <= SY_LOTS_IN_UNIT && (~free & mask_of(first, count))) first++;
    return first + count <= SY_LOTS_IN_UNIT ? first : SY_LOTS_IN_UNIT;
}

/* The length of the run of lots that begins with this one. */
static unsigned run_length(unsigned lots, unsigned first) {
    return sy_lowest_bit(~(uint64_t)lots >> first);
}

static void set_hole(sy_lots *lots, sy_slab *unit, unsigned first, unsigned count) {
    lots->hole.unit = unit;
    lots->hole.from = first * SY_LOT_GRAINS;
    lots->hole.to = (first + count) * SY_LOT_GRAINS;
}

static void give_few(sy_lots *lots, sy_slab *unit, unsigned first, unsigned count) {
    own(unit, mask_of(first, count), lots);
    lots->held += (size_t)count * SY_LOT_GRAINS;
    lots->no_hole = 0;
    lots->few[lots->few_count++] = (sy_few_lots){unit, (uint8_t)first, (uint8_t)count};
    set_hole(lots, unit, first, count);
}

/* Gives the scope all free lots of a unit in which no scope owns any. */
static void give_all(sy_lots *lots, sy_slab *unit, unsigned free, unsigned first) {
    unlist(unit);
    unit->lots_are = SOLE;
    link_first(&lots->units, unit);
    lots->unit_count++;
    lots->no_hole = 0;
    own(unit, free, lots);
    lots->held += (size_t)sy_count_bits(free) * SY_LOT_GRAINS;
    set_hole(lots, unit, first, run_length(free, first));
}

/* Gives the scope `count` lots of a listed unit or, if that is a unit, all that are free in one; at
 * least `least` of them are neighbours. */
static bool take_listed(sy_lots *lots, unsigned count, unsigned least) {
    sy_slab *unit = unit_of(listed);
    bool all_of_it = count == SY_LOTS_IN_UNIT;
    for (unsigned looked = 0; unit && looked < UNITS_LOOKED; looked++) {
        sy_slab *next = next_unit(unit);
        unsigned free = free_lots(unit), first = find_lots(free, all_of_it ? least : count);
        bool fits = first < SY_LOTS_IN_UNIT && !(all_of_it && unit->owned);
        if (fits && all_of_it) give_all(lots, unit, free, first);
        if (fits && !all_of_it) give_few(lots, unit, first, count);
        if (fits) return true;
        if (!free) unlist(unit);
        unit = next;
    }
    return false;
}

/* Lists a mixed unit that has so many neighbouring lots between its objects; false: there is
 * none. */
static bool adopt_unit(unsigned count) {
    sy_slab *unit = sy_unit_adopt((count + 1) * SY_LOT_GRAINS);
    if (!unit) return false;
    unit->bin = SY_BIN_UNIT_LOTS;
    unit->lots_are = FULL;
    unit->owned = unit->free_least = 0;
    memset(unit->lots, 0, sizeof unit->lots); /* it had a slab's bitmap there, or former owners */
    unit->free_most = SY_UNIT_GRAINS;
    list(unit);
    return true;
}

/* Gives the scope lots in which an object of so many grains has room; false: no unit has any. */
static bool take_lots(sy_lots *lots, unsigned grains) {
    unsigned count = lots_wanted(lots, grains);
    unsigned least = (grains + SY_LOT_GRAINS - 1) / SY_LOT_GRAINS;
    if (take_listed(lots, count, least)) return true;
    return adopt_unit(count < SY_LOTS_IN_UNIT ? count : least) && take_listed(lots, count, least);
}

/* ---- holes in the lots of a scope ---- */

/* Finds a hole of at least so many grains in a part of a unit. */
static bool find_hole(sy_lots *lots, sy_slab *unit, unsigned from, unsigned to, unsigned grains) {
    const sy_pieces *pieces = pieces_of(unit);
    if (from >= to) return false;
    for (unsigned grain = piece_at(unit, from), next; grain < to; grain = next) {
        next = next_piece(unit, pieces, grain);
        unsigned start = grain < from ? from : grain, end = next > to ? to : next;
        if (is_out(pieces, grain) || end < start + grains) continue;
        lots->hole.unit = unit;
        lots->hole.from = start;
        lots->hole.to = end;
        return true;
    }
    return false;
}

/* The same in the lots of a unit that are the scope's, from a grain on. */
static bool find_hole_in_unit(sy_lots *lots, sy_slab *unit, unsigned from, unsigned grains) {
    for (unsigned left = unit->owned, count; left; left &= ~mask_of(sy_lowest_bit(left), count)) {
        unsigned first = sy_lowest_bit(left), start = first * SY_LOT_GRAINS;
        count = run_length(left, first);
        unsigned end = start + count * SY_LOT_GRAINS;
        if (find_hole(lots, unit, start < from ? from : start, end, grains)) return true;
    }
    return false;
}

/* Looks through the lots from where the last search ended, and then from the first one. A look that
 * finds nothing in its lots goes on with the next ones. */
static bool find_hole_in_lots(sy_lots *lots, unsigned grains, size_t looks) {
    bool found = false;
    for (; looks > 0 && !found; looks--) {
        unsigned grain = lots->look.grain;
        lots->look.grain = 0;
        if (lots->look.few < lots->few_count) {
            const sy_few_lots *few = &lots->few[lots->look.few];
            unsigned from = few->first * SY_LOT_GRAINS, to = from + few->count * SY_LOT_GRAINS;
            found = find_hole(lots, few->unit, grain > from ? grain : from, to, grains);
            if (!found && ++lots->look.few == lots->few_count)
                lots->look.in_unit = unit_of(lots->units);
        } else if (lots->look.in_unit) {
            sy_slab *unit = lots->look.in_unit;
            found = find_hole_in_unit(lots, unit, grain, grains);
            if (!found) lots->look.in_unit = next_unit(unit);
        } else {
            lots->look.few = 0;
        }
    }
    if (found) lots->look.grain = lots->hole.to;
    return found;
}

/* The same in all lots, from any place on. */
static bool find_hole_anywhere(sy_lots *lots, unsigned grains) {
    if (lots->held - lots->grains < grains) return false;
    if (lots->no_hole && lots->no_hole <= grains) return false;
    if (find_hole_in_lots(lots, grains, lots->few_count + lots->unit_count + 2)) return true;
    lots->no_hole = grains;
    return false;
}

/* Whether a quarter of what the scope has is free, so that a search will soon find a hole. */
static bool is_sparse(const sy_lots *lots) { return lots->held - lots->grains >= lots->held / 4; }

/* Finds room in what the scope has: behind the hole that is full, in the same unit; or anywhere.
 * `anyway`: there is no other memory. */
static bool find_room(sy_lots *lots, unsigned grains, bool anyway) {
    sy_slab *unit = lots->hole.unit;
    if (unit && unit->lots_are == SOLE && find_hole_in_unit(lots, unit, lots->hole.to, grains))
        return true;
    if (anyway) return find_hole_anywhere(lots, grains);
    return is_sparse(lots) && find_hole_in_lots(lots, grains, LOOKS);
}

/* ---- objects ---- */

/* Where objects begin in the scope's hole. */
static unsigned first_grain(const sy_lots *lots, size_t align) {
    unsigned grains = align > SY_GRAIN ? (unsigned)(align / SY_GRAIN) : 1;
    return (lots->hole.from + grains - 1) / grains * grains;
}

static bool has_room(const sy_lots *lots, unsigned grains, size_t align) {
    return lots->hole.unit && first_grain(lots, align) + grains <= lots->hole.to;
}

/* Makes objects in the scope's hole, which has room for one. */
static size_t make_objects(sy_lots *lots, const sy_cache *cache, uintptr_t *end, size_t count,
                           size_t align) {
    sy_slab *unit = lots->hole.unit;
    unsigned grains = (unsigned)(cache->layout.slot / SY_GRAIN), from = first_grain(lots, align);
    size_t room = (lots->hole.to - from) / grains, made = count < room ? count : room;
    unsigned to = from + (unsigned)made * grains;
    if (to < SY_UNIT_GRAINS && !begins_at(unit->pieces, to)) begin_piece(unit, to);
    begin_objects(unit, unit->pieces, from, to, grains);
    for (unsigned grain = from; grain < to; grain += grains)
        *--end = unit->start + grain * (uintptr_t)SY_GRAIN;
    unit->free_count = (uint16_t)(unit->free_count - (to - from));
    if (SY_UNLIKELY((unit->holes | unit->idle) != 0)) sy_unit_use_pages(unit, from, to);
    lots->hole.from = to;
    lots->objects += made;
    lots->grains += to - from;
    sy_unit_count_out(cache, made);
    return made;
}

/* `anyway`: there is no other memory. */
static size_t take(sy_lots *lots, const sy_cache *cache, uintptr_t *end, size_t count, size_t align,
                   bool anyway) {
    unsigned grains = (unsigned)(cache->layout.slot / SY_GRAIN);
    unsigned most = grains + (align > SY_GRAIN ? (unsigned)(align / SY_GRAIN) - 1 : 0);
    bool finds = has_room(lots, grains, align) || find_room(lots, most, anyway);
    if (!finds && (anyway || !take_lots(lots, most))) return 0;
    return make_objects(lots, cache, end, count, align);
}

size_t sy_lots_take(sy_lots *lots, const sy_cache *cache, uintptr_t *end, size_t count,
                    size_t align) {
    for (bool anyway = false;;) {
        sy_lock_acquire(&sy_mixed.lock);
        size_t taken = take(lots, cache, end, count, align, anyway);
        sy_lock_release(&sy_mixed.lock);
        if (taken) return taken;
        if (anyway) break;
        sy_slab *unit = make_unit();
        if (unit)
            add_unit(unit);
        else
            anyway = true;
    }
    errno = ENOMEM;
    return 0;
}

/* Makes the grains a hole, one with the holes beside it. */
static void make_hole(sy_slab *unit, unsigned from, unsigned to) {
    sy_pieces *pieces = unit->pieces;
    unsigned first = from / 64;
    for (unsigned word = first; word <= (to - 1) / 64; word++) {
        unsigned low = word * 64 < from ? from - word * 64 : 0;
        unsigned high = (word + 1) * 64 > to ? to - word * 64 : 64;
        uint64_t kept = ~(sy_low_bits(high) & ~sy_low_bits(low));
        atomic_store_explicit(&pieces->of[word].out, out_in(pieces, word) & kept,
                              memory_order_relaxed);
        uint64_t begins = begins_in(pieces, word) & kept;
        set_begins(unit, word, word == first ? begins | bit_of(from) : begins);
    }
    if (to < SY_UNIT_GRAINS && !is_out(pieces, to)) join_piece(unit, to);
    if (from && !is_out(pieces, previous_piece(unit, from))) join_piece(unit, from);
    unit->free_count = (uint16_t)(unit->free_count + (to - from));
}

/* Takes a unit that a scope alone has lots of from it. */
static void give_up_unit(sy_lots *lots, sy_slab *unit) {
    if (lots->look.in_unit == unit) {
        lots->look.in_unit = next_unit(unit);
        lots->look.grain = 0;
    }
    unlink_from(&lots->units, unit);
    lots->unit_count--;
    lots->held -= (size_t)sy_count_bits(unit->owned) * SY_LOT_GRAINS;
    own(unit, unit->owned, NULL);
    unit->lots_are = FULL;
    settle(unit);
}

/* A unit without objects goes back, unless the scope that has it allocates from it. */
static void give_up_if_empty(sy_slab *unit) {
    if (unit->lots_are != SOLE || unit->free_count < SY_UNIT_GRAINS) return;
    sy_lots *lots = unit->lots[sy_lowest_bit(unit->owned)];
    if (lots->hole.unit != unit) give_up_unit(lots, unit);
}

bool sy_lots_put_back(sy_lots *lots, const sy_cache *cache, uintptr_t lowest, size_t count) {
    SY_HOLDS(&sy_mixed.lock);
    sy_slab *unit = sy_slab_at(lowest);
    unsigned from = grain_of(lowest);
    unsigned to = from + (unsigned)(count * cache->layout.slot / SY_GRAIN);
    if (unit->bin != SY_BIN_UNIT_LOTS || unit->lots[from / SY_LOT_GRAINS] != lots) return false;
    make_hole(unit, from, to);
    if (lots->hole.unit == unit && lots->hole.from == to) lots->hole.from = from;
    lots->objects -= count;
    lots->grains -= to - from;
    lots->no_hole = 0;
    sy_unit_count_in(cache, count);
    give_up_if_empty(unit);
    return true;
}

void sy_lots_note_put(sy_slab *unit, unsigned grain, unsigned end) {
    sy_lots *lots = unit->lots[grain / SY_LOT_GRAINS];
    if (lots) {
        lots->objects--;
        lots->grains -= end - grain;
        lots->no_hole = 0;
    } else {
        list(unit);
    }
    give_up_if_empty(unit);
}

/* ---- begin and end ---- */

void sy_lots_begin(sy_lots *lots, void (*recover)(void)) {
    sy_lock_acquire(&sy_mixed.lock);
    recover_above = recover;
    lots->next = all;
    if (all) all->previous = lots;
    sy_fork_order();
    all = lots;
    sy_lock_release(&sy_mixed.lock);
}

void sy_lots_end(sy_lots *lots) {
    sy_lock_acquire(&sy_mixed.lock);
    *(lots->previous ? &lots->previous->next : &all) = lots->next;
    if (lots->next) lots->next->previous = lots->previous;
    for (unsigned i = 0; i < lots->few_count; i++) {
        const sy_few_lots *few = &lots->few[i];
        own(few->unit, mask_of(few->first, few->count), NULL);
        settle(few->unit);
    }
    while (lots->units) give_up_unit(lots, sy_slab_of_node(lots->units));
    sy_slab *empty = sy_unit_take_emptied();
    sy_lock_release(&sy_mixed.lock);
    sy_mixed_release(empty);
}

/* ---- what is out ---- */

static void each_in(const sy_slab *unit, unsigned from, unsigned to, sy_lots_visit visit,
                    void *arg) {
    const sy_pieces *pieces = pieces_of(unit);
    for (unsigned grain = from, next; grain < to; grain = next) {
        next = next_piece(unit, pieces, grain);
        uintptr_t object = unit->start + grain * (uintptr_t)SY_GRAIN;
        if (is_out(pieces, grain)) visit(arg, object, (size_t)(next - grain) * SY_GRAIN);
    }
}

static void each(const sy_lots *lots, sy_lots_visit visit, void *arg) {
    SY_HOLDS(&sy_mixed.lock);
    for (unsigned i = 0; i < lots->few_count; i++) {
        const sy_few_lots *few = &lots->few[i];
        unsigned from = few->first * SY_LOT_GRAINS;
        each_in(few->unit, from, from + few->count * SY_LOT_GRAINS, visit, arg);
    }
    for (const sy_slab *unit = unit_of(lots->units); unit; unit = next_unit(unit))
        for (unsigned left = unit->owned; left; left &= left - 1) {
            unsigned from = sy_lowest_bit(left) * SY_LOT_GRAINS;
            each_in(unit, from, from + SY_LOT_GRAINS, visit, arg);
        }
}

void sy_lots_each(const sy_lots *lots, sy_lots_visit visit, void *arg) {
    sy_lock_acquire(&sy_mixed.lock);
    each(lots, visit, arg);
    sy_lock_release(&sy_mixed.lock);
}

size_t sy_lots_out(const sy_lots *lots, size_t *bytes) {
    sy_lock_acquire(&sy_mixed.lock);
    size_t objects = lots->objects;
    *bytes = lots->grains * SY_GRAIN;
    sy_lock_release(&sy_mixed.lock);
    return objects;
}

/* ---- verify, fork ---- */

typedef struct sy_lots_tally {
    const sy_lots *lots;
    size_t objects, grains, wrong;
} sy_lots_tally;

static void count_object(void *arg, uintptr_t object, size_t bytes) {
    sy_lots_tally *tally = arg;
    const sy_slab *unit = sy_slab_at(object);
    tally->objects++;
    tally->grains += bytes / SY_GRAIN;
    tally->wrong += unit->lots[grain_of(object) / SY_LOT_GRAINS] != tally->lots;
}

static size_t verify(const sy_lots *lots) {
    sy_lots_tally tally = {.lots = lots};
    size_t held = 0, units = 0;
    each(lots, count_object, &tally);
    for (unsigned i = 0; i < lots->few_count; i++)
        held += (size_t)lots->few[i].count * SY_LOT_GRAINS;
    for (const sy_slab *unit = unit_of(lots->units); unit; unit = next_unit(unit), units++)
        held += (size_t)sy_count_bits(unit->owned) * SY_LOT_GRAINS;
    bool counted =
        tally.objects == lots->objects && tally.grains == lots->grains && units == lots->unit_count;
    return tally.wrong + !counted + (held != lots->held);
}

size_t sy_lots_verify(void) {
    SY_HOLDS(&sy_mixed.lock);
    size_t wrong = 0;
    for (const sy_lots *lots = all; lots; lots = lots->next) wrong += verify(lots);
    return wrong;
}

void sy_lots_recover(void) {
    if (recover_above) recover_above();
}

void sy_lots_forget(void) {
    listed = NULL;
    for (sy_lots *lots = all, *previous = NULL; lots; previous = lots, lots = lots->next) {
        sy_lots *next = lots->next;
        *lots = (sy_lots){.next = next, .previous = previous};
    }
}
