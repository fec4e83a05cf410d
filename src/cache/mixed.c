/*
 * mixed.c: converts sparse slabs into mixed units, takes objects of any class out of their holes,
 * and puts them back.
 */
#include "cache/mixed.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "cache/kind.h"
#include "cache/unit.h"
#include "cache/watched.h"
#include "chunk/pressure.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "magazine/store.h"
#include "os/invariant.h"
#include "os/os.h"

enum {
    BIN_STEPS = 8, /* bins in each doubling of the longest hole, as of size classes */
    BINS = 88,     /* for holes of up to 4,096 grains */
    JOINED_MAX = 64,
    WASTE_SHARE = 40,         /* slabs are converted if one part in so many of the memory in units,
                               * and sy_mixed_least bytes, are free in slabs */
    SMALL_SHARE = 4,          /* a program with less than so many times that is small */
    LOOK_SHARE = 64,          /* after a look that found less, the next look is when memory has */
    LOOK_LEAST = 4,           /* grown by one part in so many, and so many units */
    SPARSE_BIN = SY_BINS / 2, /* a slab from this bin on is at least half free */
    GROWTH_SHARE = 16,        /* objects that shrink by less, and come again, are no growth */
    CHURN_SHARE = 16,         /* slabs that classes whose objects come and go may get, of all */
    MAGAZINE_ITEMS = 64,      /* objects that wait to be put back, */
    ITEM_BYTES = 512,    /* of so many bytes, as far as the bounds of magazines are concerned */
    RECYCLED_FIRST = 16, /* of the objects that wait, so many are looked at, */
    RECYCLED_MOST = 64,  /* and at most so many are taken for one refill */
    MORE_GRAINS = 256,   /* freed since a unit was searched: then it is searched again */
    UNITS_TRIED = 4,     /* for one refill */
    STEP_UNITS = 64,     /* the most units that a step of a trim looks at */
};

static bool find(const sy_cache *mixed, const void *object, size_t *bytes);

/* Objects are freed to the client of sy_mixed, and never allocated from it. */
static const sy_kind sy_kind_mixed = {.free = sy_plain_free, .find = find};

sy_cache sy_mixed = {
    .kind = &sy_kind_mixed,
    .flags = SY_CHECKED, /* it knows which addresses are objects */
    .name = "heap",
    .layout = {.slot = SY_GRAIN, .align = SY_GRAIN, .slab_bytes = SY_UNIT_BYTES},
    .class_number = SY_CLASS_MIXED,
    .quota = &sy_quota_process,
    .memory = &sy_memory_main,
    .lock = SY_LOCK_INIT(SY_RANK_MIXED),
};

size_t sy_mixed_least = 1 << 20;

/* Guarded by the lock of sy_mixed, but for the last three. In one structure, which lies apart from
 * the variables that small programs touch (cmake/first.ld). */
static struct {
    sy_heap_node *heap[BINS];         /* units by their longest hole, and then by address */
    uint64_t occupied[BINS / 64 + 1]; /* a bit for each of these that has a unit */
    sy_heap_node *waiting;            /* units whose longest hole has grown, by sibling */
    size_t hole_grains;               /* in all units */
    size_t noted_grains;              /* so many of objects are noted as growth */
    size_t given;                     /* slabs that caches got since their objects come and go */
    sy_slab *emptied;                 /* units without objects, unlinked by this put */
    bool torn;                        /* in the child of a fork: another thread was changing this */
    struct {                          /* of each cache that takes part, by its place in `joined`: */
        size_t objects;               /* in mixed units, live or in magazines, */
        size_t then;                  /* and after the last refill; */
        bool recycles;                /* the last refill had objects that the thread had freed */
        size_t given;                 /* slabs that it got since its objects come and go */
    } of[JOINED_MAX];

    /* The caches that take part. Written under the lock of the start. */
    sy_cache *joined[JOINED_MAX];
    _Atomic unsigned joined_count;
    _Atomic uint8_t
        place_of[SY_OBJECT_GRAINS_MAX + 1]; /* by the grains of an object: the cache's place in
                                               * `joined`, plus 1; 0: none */
} mixing;

static _Atomic bool ready; /* the client is open, and the caches have joined */

/* The units that this thread has aside. */
static SY_TLS sy_own own_units_aside;

static inline sy_cache *joined_with(unsigned grains) {
    if (grains > SY_OBJECT_GRAINS_MAX) return NULL;
    unsigned place = atomic_load_explicit(&mixing.place_of[grains], memory_order_acquire);
    return place ? mixing.joined[place - 1] : NULL;
}

/* The place of a cache that takes part, in `joined` and `of`. */
static inline unsigned place_in(const sy_cache *cache) {
    size_t grains = cache->layout.slot / SY_GRAIN;
    return atomic_load_explicit(&mixing.place_of[grains], memory_order_relaxed) - 1u;
}

/* Whether slabs of the cache can become mixed units, and refills take from holes. Where not, only
 * scopes have objects of the cache in such units (lots.h). */
static bool mixes(const sy_cache *cache) { return cache->layout.slab_bytes == SY_UNIT_BYTES; }

/* Caches with flags are checked, or want something for their slabs. */
static void join(sy_cache *cache) {
    const sy_layout *layout = &cache->layout;
    unsigned count = atomic_load_explicit(&mixing.joined_count, memory_order_relaxed);
    bool can = cache->class_number && !cache->flags && !cache->construct && !cache->watch &&
               layout->slot % SY_GRAIN == 0 && layout->slot <= SY_MIXED_SIZE_MAX &&
               count < JOINED_MAX;
    if (!can) return;
    mixing.joined[count] = cache;
    atomic_store_explicit(&mixing.joined_count, count + 1, memory_order_release);
    atomic_store_explicit(&mixing.place_of[layout->slot / SY_GRAIN], (uint8_t)(count + 1),
                          memory_order_release);
}

/* The caches that are open when the first of them might need it have not joined yet. */
void sy_mixed_join(sy_cache *cache) {
    if (atomic_load_explicit(&ready, memory_order_relaxed)) join(cache);
}

bool sy_mixed_has(const sy_cache *cache) {
    return joined_with((unsigned)(cache->layout.slot / SY_GRAIN)) == cache;
}

/* The words of a table that describe a page. */
static unsigned page_words(const sy_slab *unit) {
    return (unsigned)(sy_slab_granule(unit) / SY_GRAIN / 64);
}

/* ---- units by their longest hole ---- */

/* No hole of the unit is longer, in grains. */
static inline unsigned longest(const sy_slab *unit) { return unit->free_most; }

/* The bin for units whose longest hole has so many grains: all in it and in later bins have holes
 * for the class sizes of this bin. */
static inline unsigned bin_of(unsigned grains) {
    if (grains < BIN_STEPS) return grains;
    unsigned doublings = sy_highest_bit(grains) - 3;
    return doublings * BIN_STEPS + (grains >> doublings);
}

void sy_unit_insert(sy_slab *unit) {
    unsigned bin = bin_of(longest(unit));
    unit->bin = (uint8_t)bin;
    if (bin == SY_BIN_UNIT_FULL) return;
    sy_heap_insert(&mixing.heap[bin], &unit->node);
    mixing.occupied[bin / 64] |= UINT64_C(1) << bin % 64;
}

/* Takes the unit out of its bin, in which it need not be. */
static void take_out(sy_slab *unit) {
    unsigned bin = unit->bin;
    if (bin == SY_BIN_UNIT_WAITING) {
        sy_heap_node *before = unit->node.previous, *after = unit->node.sibling;
        *(before ? &before->sibling : &mixing.waiting) = after;
        if (after) after->previous = before;
    } else if (bin != SY_BIN_UNIT_FULL && bin < BINS) {
        sy_heap_remove(&mixing.heap[bin], &unit->node);
        if (!mixing.heap[bin]) mixing.occupied[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    }
}

/* Notes the length of the longest hole after a search of the whole unit. Holes that are freed
 * singly are not worth another search: the unit is searched again when MORE_GRAINS are free. */
static void note_search(sy_slab *unit, unsigned grains, unsigned wanted) {
    unit->watermark = (uint16_t)wanted;
    unit->changed = 0;
    unit->free_most = (uint16_t)grains;
    unit->free_least = (uint16_t)(unit->free_count + MORE_GRAINS);
    if (bin_of(grains) == unit->bin) return;
    take_out(unit);
    sy_unit_insert(unit);
}

/* Has the next refill put the unit into its bin, since a hole has grown. Holes grow with each free,
 * and so the unit changes its bin only once. */
static void wait_for_refill(sy_slab *unit) {
    take_out(unit);
    unit->bin = SY_BIN_UNIT_WAITING;
    unit->node = (sy_heap_node){.sibling = mixing.waiting};
    if (mixing.waiting) mixing.waiting->previous = &unit->node;
    mixing.waiting = &unit->node;
}

static inline void note_hole(sy_slab *unit, unsigned start, unsigned grains) {
    unit->changed |= UINT64_C(1) << start / 64;
    if (grains > longest(unit)) unit->free_most = (uint16_t)grains;
    if (unit->free_count < unit->free_least || unit->bin >= SY_BIN_UNIT_LOTS) return;
    if (bin_of(longest(unit)) != unit->bin) wait_for_refill(unit);
}

static void sort_waiting(void) {
    while (mixing.waiting) {
        sy_slab *unit = sy_slab_of_node(mixing.waiting);
        take_out(unit);
        sy_unit_insert(unit);
    }
}

/* Takes a unit without objects out of the heaps and the list. */
void sy_unit_unlink_empty(sy_slab *unit) {
    take_out(unit);
    unit->bin = SY_BIN_UNIT_GONE;
    sy_cache_remove_slab(&sy_mixed, unit);
    sy_mixed.slab_count--;
    mixing.hole_grains -= SY_UNIT_GRAINS;
    unit->next = mixing.emptied;
    mixing.emptied = unit;
}

/* The words of a table in which pieces begin. */
static uint64_t find_filled(const sy_pieces *pieces) {
    uint64_t filled = 0;
    for (unsigned word = 0; word < SY_UNIT_WORDS; word++)
        if (begins_in(pieces, word)) filled |= UINT64_C(1) << word;
    return filled;
}

/* The pieces fill the unit, each object has a size of a class, and no hole is beside another. Pages
 * without memory lie in holes. */
static bool unit_is_valid(const sy_slab *unit) {
    const sy_pieces *pieces = pieces_of(unit);
    unsigned free = 0;
    bool after_hole = false;
    for (unsigned word = 0; word < SY_UNIT_WORDS; word++)
        if (out_in(pieces, word) & ~begins_in(pieces, word)) return false;
    for (unsigned grain = 0, next; grain < SY_UNIT_GRAINS; grain = next) {
        next = next_piece(unit, pieces, grain);
        bool is_hole = !is_out(pieces, grain);
        if (is_hole ? after_hole : !joined_with(next - grain)) return false;
        if (is_hole) free += next - grain;
        after_hole = is_hole;
    }
    bool known = filled_words(unit) == find_filled(pieces);
    if (unit->holes & ~parts_in_holes(unit, page_words(unit))) return false;
    return known && begins_at(pieces, 0) && free == unit->free_count && unit->slots == 0;
}

/* The lowest unit in the first bin from `bin` on that has one; NULL: none. */
static sy_slab *unit_from(unsigned bin) {
    uint64_t skipped = sy_low_bits(bin % 64);
    for (unsigned word = bin / 64; word <= BINS / 64; word++, skipped = 0) {
        uint64_t bits = mixing.occupied[word] & ~skipped;
        if (bits) return sy_slab_of_node(mixing.heap[word * 64 + sy_lowest_bit(bits)]);
    }
    return NULL;
}

sy_slab *sy_unit_adopt(unsigned grains) {
    for (unsigned tried = 0; tried < UNITS_TRIED; tried++) {
        sy_slab *unit = unit_from(bin_of(grains));
        if (!unit) break;
        unsigned most = sy_unit_longest(unit);
        take_out(unit);
        unit->free_most = (uint16_t)most;
        if (most >= grains) return unit;
        sy_unit_insert(unit);
    }
    return NULL;
}

/* ---- taking from holes ---- */

/* The pages of these grains will be touched. */
SY_COLD void sy_unit_use_pages(sy_slab *unit, unsigned first, unsigned end) {
    size_t page = sy_slab_granule(unit);
    unsigned from = (unsigned)(first * (size_t)SY_GRAIN / page);
    unsigned to = (unsigned)((end * (size_t)SY_GRAIN - 1) / page);
    uint64_t used = sy_low_bits(to - from + 1) << from, filled = unit->holes & used;
    uint64_t early = filled & unit->idle;
    if (early) sy_count_early(sy_count_bits(early) * page);
    unit->holes &= ~used;
    unit->idle &= ~used;
    if (filled) sy_pressure_note(sy_count_bits(filled) * page);
}

/* What a refill wants, and what it has so far. */
typedef struct sy_want {
    unsigned grains;  /* of an object */
    uintptr_t *items; /* the last one that was written; the next lies before it */
    unsigned count;   /* objects still wanted */
    bool anyway;      /* there is no other memory */
    size_t grown;     /* bytes by which objects in mixed units have grown */
} sy_want;

static void raise_to(unsigned *most, unsigned grains) {
    if (grains > *most) *most = grains;
}

/* Takes objects out of the hole from `hole` to `end`, which is long enough for one. *most becomes
 * at least the length of the rest. */
static void take_from_hole(sy_slab *unit, unsigned hole, unsigned end, sy_want *want,
                           unsigned *most) {
    sy_pieces *pieces = pieces_of(unit);
    unsigned room = (end - hole) / want->grains, count = room < want->count ? room : want->count;
    unsigned rest = hole + count * want->grains;
    if (rest < end) begin_piece(unit, rest);
    begin_objects(unit, pieces, hole, rest, want->grains);
    for (unsigned grain = hole; grain < rest; grain += want->grains)
        *--want->items = unit->start + grain * (uintptr_t)SY_GRAIN;
    want->count -= count;
    unit->free_count = (uint16_t)(unit->free_count - (rest - hole));
    raise_to(most, end - rest);
    if (SY_UNLIKELY((unit->holes | unit->idle) != 0)) sy_unit_use_pages(unit, hole, rest);
}

/* Takes as many of the wanted objects out of the unit as its holes have room for, from the lowest
 * hole on. Holes that have not changed since a search for no larger objects are too short. */
static void take_from_unit(sy_slab *unit, sy_want *want) {
    sy_pieces *pieces = pieces_of(unit);
    bool known = unit->watermark && unit->watermark <= want->grains;
    unsigned most = 0; /* the longest hole that is left */
    if (known) most = longest(unit) < unit->watermark ? longest(unit) : unit->watermark - 1u;
    uint64_t words = filled_words(unit) & (known ? unit->changed : ~UINT64_C(0));
    for (; words && want->count; words &= words - 1) {
        unsigned word = sy_lowest_bit(words);
        uint64_t found = begins_in(pieces, word) & ~out_in(pieces, word);
        for (; found && want->count; found &= found - 1) {
            unsigned hole = word * 64 + sy_lowest_bit(found), end = next_piece(unit, pieces, hole);
            if (end - hole < want->grains)
                raise_to(&most, end - hole);
            else
                take_from_hole(unit, hole, end, want, &most);
        }
    }
    if (want->count) note_search(unit, most, want->grains);
}

static size_t object_grains(void) {
    return sy_mixed.slab_count * SY_UNIT_GRAINS - mixing.hole_grains;
}

/* Returns the bytes by which objects have grown. They may shrink by a part without growing anew. */
static size_t growth(void) {
    size_t now = object_grains(), grown = now > mixing.noted_grains ? now - mixing.noted_grains : 0;
    mixing.noted_grains += grown;
    return grown * SY_GRAIN;
}

void sy_unit_add(sy_slab *unit) {
    sy_cache_append_slab(&sy_mixed, unit);
    sy_mixed.slab_count++;
    mixing.hole_grains += SY_UNIT_GRAINS;
}

void sy_unit_count_out(const sy_cache *cache, size_t objects) {
    size_t grains = objects * (cache->layout.slot / SY_GRAIN);
    mixing.of[place_in(cache)].objects += objects;
    mixing.hole_grains -= grains;
    mixing.noted_grains += grains;
}

void sy_unit_count_in(const sy_cache *cache, size_t objects) {
    size_t grains = objects * (cache->layout.slot / SY_GRAIN);
    mixing.of[place_in(cache)].objects -= objects;
    mixing.hole_grains += grains;
    mixing.noted_grains -= mixing.noted_grains < grains ? mixing.noted_grains : grains;
}

static void note_shrinking(void) {
    size_t now = object_grains(), most = now + now / GROWTH_SHARE;
    if (mixing.noted_grains > most) mixing.noted_grains = most;
}

/* Notes a refill, and whether it had objects that the thread had freed. The lock is held. */
static void note_refill(const sy_cache *cache, bool recycles) {
    SY_HOLDS(&sy_mixed.lock);
    mixing.of[place_in(cache)].then = mixing.of[place_in(cache)].objects;
    mixing.of[place_in(cache)].recycles = recycles;
}

/*
 * Whether the cache's objects in mixed units come and go: since the last refill about as many were
 * put back as are wanted now, or the last refill had objects that this thread had freed just
 * before. Such a class gets slabs, within bounds. So the objects that are used most move to slabs.
 * The lock of sy_mixed is held.
 */
static bool churns(const sy_cache *cache, unsigned count) {
    SY_HOLDS(&sy_mixed.lock);
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    size_t then = mixing.of[place_in(cache)].then, now = mixing.of[place_in(cache)].objects;
    bool come_and_go =
        mixing.of[place_in(cache)].recycles || (then > now && then - now >= count / 2);
    return come_and_go && mixing.given < units / CHURN_SHARE;
}

/* Counts `more` slabs as given to the cache, which has no more given ones than slabs. Both locks
 * are held. */
static void count_given(const sy_cache *cache, size_t more) {
    size_t *given = &mixing.of[place_in(cache)].given, before = *given;
    *given = (before < cache->slab_count ? before : cache->slab_count) + more;
    mixing.given = mixing.given - before + *given;
}

/* Takes from the units whose longest hole is the least that is long enough. Returns how many
 * objects. The cache's lock is held. */
static size_t take(sy_cache *cache, sy_want *want) {
    SY_HOLDS(&cache->lock);
    unsigned wanted = want->count;
    sy_lock_acquire(&sy_mixed.lock);
    sort_waiting();
    for (unsigned tried = 0; want->count && tried < UNITS_TRIED; tried++) {
        sy_slab *unit = unit_from(bin_of(want->grains));
        if (!unit) break;
        take_from_unit(unit, want);
        SY_INVARIANT(unit_is_valid(unit));
    }
    unsigned taken = wanted - want->count;
    mixing.hole_grains -= (size_t)taken * want->grains;
    mixing.of[place_in(cache)].objects += taken;
    note_refill(cache, false);
    want->grown += growth();
    sy_lock_release(&sy_mixed.lock);
    return taken;
}

/* ---- converting a slab ---- */

/* The bytes of free slots of the cache; 0: it has no sparse slab. Its newest slab, whose slots may
 * never have been used, counts only with `newest_too`. */
static size_t free_bytes(sy_cache *cache, bool newest_too) {
    sy_lock_acquire(&cache->lock);
    size_t free = cache->slab_count * cache->layout.slots - cache->out;
    bool sparse = cache->bins.occupied >> SPARSE_BIN & ((1u << (SY_BINS - SPARSE_BIN)) - 1);
    sy_lock_release(&cache->lock);
    size_t bytes = free * cache->layout.slot;
    size_t newest = newest_too ? 0 : SY_UNIT_BYTES;
    return sparse && bytes > newest ? bytes - newest : 0;
}

/* The cache with the most free memory in sparse slabs, if so much is free in all together that a
 * conversion is worth while; else NULL. `anyway`: if any is free. */
static sy_cache *most_wasteful(bool anyway) {
    static _Atomic size_t look_at; /* units in use from which on a look is worth while */
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    size_t due = atomic_load_explicit(&look_at, memory_order_relaxed);
    size_t further = LOOK_LEAST + units / LOOK_SHARE;
    anyway |= sy_mixed_least == 0;
    if (!anyway && units < due && due - units <= further) return NULL;
    size_t sum = 0, most = 0;
    sy_cache *found = NULL;
    unsigned count = atomic_load_explicit(&mixing.joined_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        size_t bytes = mixes(mixing.joined[i]) ? free_bytes(mixing.joined[i], anyway) : 0;
        sum += bytes;
        if (bytes <= most) continue;
        most = bytes;
        found = mixing.joined[i];
    }
    size_t least = units * SY_UNIT_BYTES / WASTE_SHARE;
    if (anyway || sum > (least > sy_mixed_least ? least : sy_mixed_least)) return found;
    atomic_store_explicit(&look_at, units + further, memory_order_relaxed);
    return NULL;
}

/* Takes the sparsest slab out of the cache, if it is at least half free; else NULL. The lock is
 * held. */
static sy_slab *unlink_sparsest(sy_cache *cache) {
    for (unsigned bin = SY_BINS - 1; bin >= SPARSE_BIN; bin--) {
        if (!cache->bins.heap[bin]) continue;
        sy_slab *slab = sy_slab_of_node(cache->bins.heap[bin]);
        sy_bins_remove(&cache->bins, slab);
        sy_cache_remove_slab(cache, slab);
        cache->slab_count--;
        cache->counts.slabs_released++;
        return slab;
    }
    return NULL;
}

/* Marks a piece in a table that is no unit's yet. */
static void write_begin(sy_pieces *pieces, unsigned grain) {
    uint64_t bits = begins_in(pieces, grain / 64) | bit_of(grain);
    atomic_store_explicit(&pieces->of[grain / 64].begins, bits, memory_order_relaxed);
}

/* Writes the pieces of a slab: its slots that are out are objects. Returns the longest hole. */
static unsigned write_pieces(sy_pieces *pieces, const sy_slab *slab, const sy_layout *layout) {
    unsigned grains = (unsigned)(layout->slot / SY_GRAIN), base = grain_of(slab->first);
    unsigned end = 0, most = 0;
    for (uint32_t word = 0; word < layout->words; word++) {
        uint64_t out = ~slab->free[word] & sy_low_bits(layout->slots - word * 64);
        for (; out; out &= out - 1) {
            unsigned grain = base + (word * 64 + sy_lowest_bit(out)) * grains;
            if (grain > end) write_begin(pieces, end);
            raise_to(&most, grain - end);
            write_begin(pieces, grain);
            set_out(pieces, grain, true);
            end = grain + grains;
        }
    }
    if (end < SY_UNIT_GRAINS) write_begin(pieces, end);
    raise_to(&most, SY_UNIT_GRAINS - end);
    return most;
}

/*
 * Makes a slab, which was just taken out of its cache's bins and list, a mixed unit. The lock of
 * the cache is held. A fork may come between two stores: in the child it is the cache's slab as
 * long as the cache owns it or it has slots, and a mixed unit afterwards.
 */
static void convert_slab(sy_cache *cache, sy_slab *slab, sy_pieces *pieces) {
    unsigned most = write_pieces(pieces, slab, &cache->layout);
    size_t out = slab->slots - slab->free_count;
    sy_lock_acquire(&sy_mixed.lock);
    cache->out -= out;
    mixing.of[place_in(cache)].objects += out;
    count_given(cache, 0);
    __atomic_store_n(&slab->owner, (void *)&sy_mixed, __ATOMIC_RELAXED);
    __atomic_store_n(&slab->pieces, pieces, __ATOMIC_RELEASE);
    sy_fork_order();
    slab->slots = 0;
    sy_fork_order();
    __atomic_store_n(&slab->filled, find_filled(pieces), __ATOMIC_RELAXED);
    slab->free_count = (uint16_t)(SY_UNIT_GRAINS - out * (cache->layout.slot / SY_GRAIN));
    slab->free_most = (uint16_t)most;
    slab->free_least = slab->watermark = 0;
    slab->changed = 0;
    sy_cache_append_slab(&sy_mixed, slab);
    sy_mixed.slab_count++;
    mixing.hole_grains += slab->free_count;
    mixing.noted_grains += SY_UNIT_GRAINS - slab->free_count;
    sy_unit_insert(slab);
    SY_INVARIANT(unit_is_valid(slab));
    atomic_thread_fence(memory_order_release); /* who finds the class finds the pieces */
    sy_map_set_class(slab->start, 1, SY_CLASS_MIXED);
    sy_lock_release(&sy_mixed.lock);
}

/* Converts a slab, if that is worth while and possible. */
static bool convert(bool anyway) {
    sy_cache *cache = most_wasteful(anyway);
    sy_pieces *pieces = cache ? sy_side_take(sizeof *pieces) : NULL;
    if (!pieces) return false;
    sy_lock_acquire(&cache->lock);
    sy_slab *slab = unlink_sparsest(cache);
    uint64_t *bitmap = slab && slab->free != slab->bits ? slab->free : NULL;
    if (slab) convert_slab(cache, slab, pieces);
    sy_lock_release(&cache->lock);
    if (bitmap) sy_side_give(bitmap, cache->layout.words * sizeof *bitmap);
    if (!slab) sy_side_give(pieces, sizeof *pieces);
    return slab != NULL;
}

static bool gets_slab(sy_cache *cache, unsigned count) {
    sy_lock_acquire(&cache->lock);
    sy_lock_acquire(&sy_mixed.lock);
    count_given(cache, 0);
    bool churn = churns(cache, count);
    if (churn) {
        note_refill(cache, false);
        count_given(cache, 1);
    }
    sy_lock_release(&sy_mixed.lock);
    sy_lock_release(&cache->lock);
    return churn;
}

static void note_recycled(sy_cache *cache) {
    sy_lock_acquire(&sy_mixed.lock);
    note_refill(cache, true);
    sy_lock_release(&sy_mixed.lock);
}

/* Whether scopes own parts of the object's unit: then a refill must not give it out. No lock is
 * held, but the object, which is out, keeps its own lot from getting an owner now; of other lots it
 * does not matter. (The load is not atomic: ThreadSanitizer reports those even in functions that it
 * leaves out.) */
__attribute__((no_sanitize("thread"))) static bool lies_in_lots(uintptr_t object) {
    return *(const volatile uint8_t *)&sy_slab_at(object)->bin == SY_BIN_UNIT_LOTS;
}

/* Takes objects of the cache that this thread has freed, and that wait to be put back: the newest
 * ones, and all if most of these are of the cache. Others wait on. */
static size_t recycle(sy_cache *cache, sy_want *want) {
    uintptr_t found[RECYCLED_MOST];
    size_t taken = 0, some = RECYCLED_FIRST;
    for (size_t looked = 0; looked < RECYCLED_MOST && want->count; looked += some) {
        size_t most = want->count < some ? want->count : some, hits = 0, others = 0;
        size_t got = sy_client_alloc_loaded(&sy_mixed.client, found, most);
        for (size_t i = 0; i < got; i++) {
            if (sy_mixed_cache_at(found[i]) == cache && !lies_in_lots(found[i])) {
                *--want->items = found[i];
                hits++;
            } else {
                found[others++] = found[i];
            }
        }
        want->count -= (unsigned)hits;
        taken += hits;
        for (size_t i = others; i > 0; i--) sy_client_free(&sy_mixed.client, found[i - 1]);
        if (got < most || hits <= got / 2) break;
    }
    return taken;
}

/* Takes from units and converts slabs as long as that is worth while. */
static __attribute__((noinline)) size_t sy_mixed_take_all(sy_cache *cache, sy_want want) {
    size_t count = want.count, taken = 0;
    do {
        sy_lock_acquire(&cache->lock);
        size_t some = take(cache, &want);
        cache->counts.refills += some && !taken;
        sy_lock_release(&cache->lock);
        taken += some;
    } while (taken < count / 2 && convert(want.anyway));
    if (want.grown) sy_caches_note_growth(want.grown);
    return taken;
}

/* Small programs get no mixed units, and need no memory for them. */
size_t sy_mixed_take(sy_cache *cache, uintptr_t *end, size_t count, bool anyway) {
    unsigned grains = (unsigned)(cache->layout.slot / SY_GRAIN);
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    if (!atomic_load_explicit(&ready, memory_order_acquire)) {
        if (!cache->class_number) return 0;
        if (!anyway && units * SY_UNIT_BYTES / SMALL_SHARE < sy_mixed_least) return 0;
        if (!sy_mixed_begin()) return 0;
    }
    if (joined_with(grains) != cache || !mixes(cache)) return 0;
    sy_want want = {.grains = grains, .items = end, .count = (unsigned)count, .anyway = anyway};
    if (anyway) return sy_mixed_take_all(cache, want);
    if (gets_slab(cache, want.count)) return 0;
    size_t taken = recycle(cache, &want);
    if (taken) note_recycled(cache);
    return taken ? taken : sy_mixed_take_all(cache, want);
}

/* ---- an object at an address ---- */

/* The grain of an object that begins at the address and is out, and *next, where the next piece
 * begins. False: there is none. */
static inline bool find_out(const sy_slab *unit, const sy_pieces *pieces, uintptr_t address,
                            unsigned *grain, unsigned *next) {
    *grain = grain_of(address);
    if (address % SY_GRAIN || !is_out(pieces, *grain)) return false;
    *next = next_piece(unit, pieces, *grain);
    return true;
}

sy_cache *sy_mixed_cache_at(uintptr_t address) {
    unsigned grain, next;
    atomic_thread_fence(memory_order_acquire); /* the caller has read the class in the map */
    const sy_slab *unit = sy_slab_at(address);
    const sy_pieces *pieces = sy_is_mixed(unit) ? pieces_of(unit) : NULL;
    if (!pieces || !find_out(unit, pieces, address, &grain, &next)) return NULL;
    return joined_with(next - grain);
}

/* ---- putting back ---- */

/* Makes the object from `grain` to `end` a hole, one with the holes beside it. Most often its piece
 * and the next begin in one word of the table, so this word is changed in a register. */
static inline void make_hole(sy_slab *unit, sy_pieces *pieces, unsigned grain, unsigned end) {
    unsigned word = grain / 64, start = grain, next = end;
    uint64_t bit = bit_of(grain), begins = begins_in(pieces, word), before = begins;
    uint64_t below = begins & (bit - 1), out = out_in(pieces, word) & ~bit;
    unit->free_count = (uint16_t)(unit->free_count + (end - grain));
    mixing.hole_grains += end - grain;
    atomic_store_explicit(&pieces->of[word].out, out, memory_order_relaxed);
    if (end < SY_UNIT_GRAINS && !is_out(pieces, end)) {
        next = next_piece(unit, pieces, end);
        if (end / 64 == word)
            begins &= ~bit_of(end);
        else
            join_piece(unit, end);
    }
    if (below)
        start = word * 64 + sy_highest_bit(below);
    else if (grain)
        start = previous_piece(unit, grain);
    if (start < grain && !is_out(pieces, start))
        begins &= ~bit;
    else
        start = grain;
    if (begins != before) set_begins(unit, word, begins);
    note_hole(unit, start, next - start);
}

/* The fault of freeing an address at which `put` finds no object. The lock is held. */
static SY_COLD sy_fault_kind fault_at(uintptr_t address) {
    SY_HOLDS(&sy_mixed.lock);
    const sy_slab *unit = sy_slab_at(address);
    unsigned grain = grain_of(address);
    if (!sy_is_mixed(unit)) return SY_FAULT_DOUBLE_FREE; /* the unit was released since */
    unsigned piece = piece_at(unit, grain);
    if (!is_out(unit->pieces, piece)) return SY_FAULT_DOUBLE_FREE;
    bool begins = piece == grain && address % SY_GRAIN == 0;
    return begins ? SY_FAULT_WRONG_SIZE : SY_FAULT_MISALIGNED_POINTER;
}

/* Puts an object back; false: none begins there, or not one of the cache (NULL: of any). The lock
 * is held. */
static inline bool put(const sy_cache *of, uintptr_t address) {
    SY_HOLDS(&sy_mixed.lock);
    sy_slab *unit = sy_slab_at(address);
    unsigned grain, end;
    if (SY_UNLIKELY(!sy_is_mixed(unit) || !find_out(unit, unit->pieces, address, &grain, &end)))
        return false;
    sy_cache *cache = joined_with(end - grain);
    if (SY_UNLIKELY(!cache || (of && of != cache))) return false;
    mixing.of[place_in(cache)].objects--;
    make_hole(unit, unit->pieces, grain, end);
    SY_INVARIANT(unit_is_valid(unit));
    if (unit->bin == SY_BIN_UNIT_LOTS)
        sy_lots_note_put(unit, grain, end);
    else if (unit->free_count == SY_UNIT_GRAINS && unit->bin != SY_BIN_UNIT_ASIDE)
        sy_unit_unlink_empty(unit);
    return true;
}

sy_slab *sy_unit_take_emptied(void) {
    sy_slab *units = mixing.emptied;
    mixing.emptied = NULL;
    return units;
}

size_t sy_mixed_put(const sy_cache *cache, const uintptr_t *items, sy_flush_item *list,
                    size_t count, _Atomic uint32_t *held, sy_slab **empty) {
    size_t refused = 0;
    sy_lock_acquire(&sy_mixed.lock);
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = items[list[i].index];
        if (SY_LIKELY(put(cache, address))) continue;
        list[refused++] = (sy_flush_item){list[i].index, (uint8_t)fault_at(address)};
    }
    if (held) atomic_store_explicit(held, 0, memory_order_relaxed);
    *empty = sy_unit_take_emptied();
    note_shrinking();
    sy_lock_release(&sy_mixed.lock);
    return refused;
}

sy_fault_kind sy_mixed_fault(uintptr_t address) {
    sy_lock_acquire(&sy_mixed.lock);
    sy_fault_kind kind = fault_at(address);
    sy_lock_release(&sy_mixed.lock);
    return kind;
}

void sy_mixed_release(sy_slab *units) {
    for (sy_slab *unit; (unit = units) != NULL;) {
        units = unit->next;
        sy_map_set_class(unit->start, 1, 0);
        sy_side_give(unit->pieces, sizeof(sy_pieces));
        unit->first = 0;
        __atomic_store_n(&unit->owner, NULL, __ATOMIC_RELAXED);
        if (unit->holes) sy_pressure_note(sy_count_bits(unit->holes) * sy_slab_granule(unit));
        sy_quota_give_run(&sy_quota_process, unit);
    }
}

/* ---- the client, to which the objects of all classes are freed ---- */

static SY_COLD void raise_fault(sy_fault_kind kind, uintptr_t address) {
    sy_fault fault = {.kind = kind, .cache = sy_mixed.name, .address = (const void *)address};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
}

/* A handler of faults may free objects to the magazine in which the items are, so these are copied
 * first. */
static SY_COLD void raise_faults(const uintptr_t *items, const sy_flush_item *list, size_t count) {
    uintptr_t address[SY_MAGAZINE_ITEMS];
    for (size_t i = 0; i < count; i++) address[i] = items[list[i].index];
    for (size_t i = 0; i < count; i++) raise_fault((sy_fault_kind)list[i].fault, address[i]);
}

static void flush(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    (void)owner;
    sy_flush_item list[SY_MAGAZINE_ITEMS];
    sy_slab *empty;
    for (size_t i = 0; i < count; i++) {
        const sy_slab *unit = sy_slab_at(items[i]);
        if (sy_is_mixed(unit)) sy_mixed_prefetch(unit, items[i]);
        list[i] = (sy_flush_item){.index = (uint8_t)i};
    }
    size_t faults = sy_mixed_put(NULL, items, list, count, held, &empty);
    sy_mixed_release(empty);
    sy_drained_end();
    if (SY_UNLIKELY(faults)) raise_faults(items, list, faults);
}

static size_t refill_nothing(void *owner, uintptr_t *items, size_t count) {
    (void)owner, (void)items, (void)count;
    errno = ENOMEM;
    return 0;
}

/* The lock of the start is held, so no class is being opened. */
static bool open_all(void) {
    const sy_client_config config = {
        .refill = refill_nothing,
        .flush = flush,
        .owner = &sy_mixed,
        .item_bytes = ITEM_BYTES,
        .magazine_items = MAGAZINE_ITEMS,
        .prefetches = true,
        .returns = true,
        .profiled = true,
        .number = SY_CLASS_MIXED,
    };
    if (sy_client_open(&sy_mixed.client, &config) != 0) return false;
    for (unsigned number = 0; number < SY_CLASS_MIXED;) { /* classes only: they are never closed */
        sy_client *client = sy_client_pin_next(number);
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) join(cache);
        number = client->number;
        sy_client_unpin(client);
    }
    return true;
}

/* In the child of a fork: undoes what another thread had begun. */
static void close_all(void) {
    if (sy_mixed.client.number) sy_client_forget(&sy_mixed.client);
    sy_mixed.client.number = 0;
    memset(mixing.place_of, 0, sizeof mixing.place_of);
    mixing.joined_count = 0;
}

/* Opens the client and lets the caches join, once; false: not now. No lock is held. */
SY_COLD bool sy_mixed_begin(void) {
    if (!sy_start_lock()) return false;
    bool done = atomic_load_explicit(&ready, memory_order_relaxed) || open_all();
    atomic_store_explicit(&ready, done, memory_order_release);
    sy_start_unlock();
    return done;
}

/* As the client's flush sees it: the bytes of an object. */
static bool find(const sy_cache *mixed, const void *object, size_t *bytes) {
    const sy_cache *cache = sy_mixed_cache_at((uintptr_t)object);
    (void)mixed;
    *bytes = cache ? cache->size : 0;
    return cache != NULL;
}

/* ---- trim ---- */

/* The pages of the unit that lie in holes and may hold memory. */
static uint64_t unused_pages(const sy_slab *unit) {
    return parts_in_holes(unit, page_words(unit)) & ~unit->holes;
}

/* Chooses the pages of the unit to discard now: all that are unused or, by age, those that were
 * unused in the last pass too. The lock is held. */
static uint64_t claim_pages(sy_slab *unit, bool aged) {
    SY_HOLDS(&sy_mixed.lock);
    uint64_t unused = unused_pages(unit), claimed = aged ? unused & unit->idle : unused;
    uint64_t returned = aged && !sy_early_ends() ? unit->holes & unit->idle : 0;
    unit->idle = (unused & ~claimed) | returned;
    return claimed;
}

/* Discards pages by one system call for each run of them; returns those that were discarded. */
static uint64_t discard(const sy_slab *unit, uint64_t pages, size_t *bytes) {
    size_t page = sy_slab_granule(unit);
    uint64_t done = 0;
    while (pages) {
        unsigned first = sy_lowest_bit(pages);
        unsigned length = sy_lowest_bit(~(pages >> first));
        uint64_t run = sy_low_bits(length) << first;
        pages &= ~run;
        if (sy_run_discard(unit, (char *)unit->start + first * page, length * page) != 0) continue;
        *bytes += length * page;
        done |= run;
    }
    return done;
}

/* Discards pages of a unit without the lock, which is held before and after. */
static void discard_aside(sy_slab *unit, uint64_t pages, bool aged, size_t *bytes) {
    take_out(unit);
    unit->bin = SY_BIN_UNIT_ASIDE;
    sy_own_replace(&own_units_aside, NULL, unit);
    sy_memory_begin_trim(&sy_memory_main);
    sy_lock_release(&sy_mixed.lock);
    uint64_t done = discard(unit, pages, bytes);
    sy_chunk_punched(unit);
    sy_lock_acquire(&sy_mixed.lock);
    sy_memory_end_trim(&sy_memory_main);
    sy_own_replace(&own_units_aside, unit, NULL);
    unit->holes |= done;
    if (aged) unit->idle |= done; /* a use soon was too early (chunk.h) */
    take_out(unit);               /* a child's recovery has inserted it, if it was not noted */
    sy_unit_insert(unit);
    if (unit->free_count == SY_UNIT_GRAINS) sy_unit_unlink_empty(unit);
}

/* Slabs that were given and released count as given until their cache asks again, or a trim
 * begins. */
static void recount_given(void) {
    unsigned count = atomic_load_explicit(&mixing.joined_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        sy_lock_acquire(&mixing.joined[i]->lock);
        sy_lock_acquire(&sy_mixed.lock);
        count_given(mixing.joined[i], 0);
        sy_lock_release(&sy_mixed.lock);
        sy_lock_release(&mixing.joined[i]->lock);
    }
}

bool sy_mixed_trim_step(size_t *left, bool aged, size_t *bytes) {
    if (*left == SIZE_MAX) recount_given();
    sy_lock_acquire(&sy_mixed.lock);
    if (*left == SIZE_MAX) sy_lots_trim();
    if (*left == SIZE_MAX) *left = sy_mixed.slab_count;
    for (int looked = 0; looked < STEP_UNITS && *left && sy_mixed.slabs; looked++) {
        sy_slab *unit = sy_mixed.slabs;
        sy_cache_remove_slab(&sy_mixed, unit);
        sy_cache_append_slab(&sy_mixed, unit);
        --*left;
        bool others = unit->bin == SY_BIN_UNIT_ASIDE || unit->bin == SY_BIN_UNIT_LOTS;
        uint64_t pages = others ? 0 : claim_pages(unit, aged);
        if (!pages) continue;
        discard_aside(unit, pages, aged, bytes);
        break;
    }
    bool more = *left && sy_mixed.slabs;
    sy_slab *empty = sy_unit_take_emptied();
    sy_lock_release(&sy_mixed.lock);
    sy_mixed_release(empty);
    return more;
}

/* ---- walking, counting ---- */

void sy_mixed_each(const sy_slab *unit, uintptr_t start, uintptr_t end,
                   void (*visit)(void *arg, uintptr_t object, size_t bytes), void *arg) {
    const sy_pieces *pieces = pieces_of(unit);
    for (unsigned grain = 0, next; grain < SY_UNIT_GRAINS; grain = next) {
        next = next_piece(unit, pieces, grain);
        uintptr_t object = unit->start + grain * (uintptr_t)SY_GRAIN;
        size_t bytes = (size_t)(next - grain) * SY_GRAIN;
        if (is_out(pieces, grain) && object < end && object + bytes > start)
            visit(arg, object, bytes);
    }
}

size_t sy_mixed_waiting(void) {
    size_t depot, loaded;
    sy_clients_lock();
    sy_client_held(&sy_mixed.client, &depot, &loaded);
    sy_clients_unlock();
    return depot + loaded;
}

size_t sy_mixed_objects(const sy_cache *cache) {
    size_t grains = cache->layout.slot / SY_GRAIN;
    if (grains > SY_OBJECT_GRAINS_MAX || joined_with((unsigned)grains) != cache) return 0;
    sy_lock_acquire(&sy_mixed.lock);
    size_t objects = mixing.of[place_in(cache)].objects;
    sy_lock_release(&sy_mixed.lock);
    return objects;
}

sy_mixed_bytes sy_mixed_count(void) {
    sy_mixed_bytes bytes = {0};
    sy_lock_acquire(&sy_mixed.lock);
    bytes.all = sy_mixed.slab_count * SY_UNIT_BYTES;
    bytes.holes = mixing.hole_grains * SY_GRAIN;
    for (const sy_slab *unit = sy_mixed.slabs; unit; unit = unit->next)
        bytes.discarded += sy_count_bits(unit->holes) * sy_slab_granule(unit);
    sy_lock_release(&sy_mixed.lock);
    return bytes;
}

static void count_by_place(void *tally, uintptr_t object, size_t bytes) {
    (void)object;
    unsigned place = atomic_load_explicit(&mixing.place_of[bytes / SY_GRAIN], memory_order_relaxed);
    if (place) ((size_t *)tally)[place - 1]++;
}

size_t sy_mixed_verify(void) {
    size_t wrong = 0, units = 0, grains = 0, given = 0, objects[JOINED_MAX] = {0};
    sy_lock_acquire(&sy_mixed.lock);
    for (const sy_slab *unit = sy_mixed.slabs; unit; unit = unit->next, units++) {
        bool valid = unit_is_valid(unit);
        wrong += !valid || sy_slab_at(unit->start) != unit || !sy_is_mixed(unit);
        wrong += unit->next && unit->next->previous != unit;
        wrong += unit->free_count == SY_UNIT_GRAINS && unit->bin < SY_BIN_UNIT_LOTS;
        grains += unit->free_count;
        if (valid) sy_mixed_each(unit, 0, UINTPTR_MAX, count_by_place, objects);
    }
    unsigned count = atomic_load_explicit(&mixing.joined_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; given += mixing.of[i++].given)
        wrong += mixing.of[i].objects != objects[i];
    wrong += given != mixing.given;
    wrong += units != sy_mixed.slab_count || grains != mixing.hole_grains;
    wrong += sy_lots_verify();
    sy_lock_release(&sy_mixed.lock);
    return wrong;
}

/* ---- fork ---- */

static void hold(void) { (void)sy_lock_hold(&sy_mixed.lock); }

static void drop(void) {
    if (sy_lock_drop(&sy_mixed.lock)) mixing.torn = true;
}

/* Counts the unit's free grains and finds its longest hole, by its pieces. Holes side by side,
 * which another thread was joining, become one. */
static void count_again(sy_slab *unit) {
    sy_pieces *pieces = pieces_of(unit);
    unsigned free = 0, most = 0, hole = SY_UNIT_GRAINS; /* none */
    unit->filled = find_filled(pieces);
    begin_piece(unit, 0);
    for (unsigned word = 0; word < SY_UNIT_WORDS; word++)
        atomic_store_explicit(&pieces->of[word].out, out_in(pieces, word) & begins_in(pieces, word),
                              memory_order_relaxed);
    for (unsigned grain = 0, next; grain < SY_UNIT_GRAINS; grain = next) {
        next = next_piece(unit, pieces, grain);
        if (is_out(pieces, grain)) {
            hole = SY_UNIT_GRAINS;
            continue;
        }
        if (hole == SY_UNIT_GRAINS)
            hole = grain;
        else
            join_piece(unit, grain);
        free += next - grain;
        raise_to(&most, next - hole);
    }
    unit->free_count = (uint16_t)free;
    unit->free_most = (uint16_t)most;
    unit->free_least = unit->watermark = 0;
}

/* Counts objects for their caches again. */
static void count_object(void *arg, uintptr_t object, size_t bytes) {
    (void)arg, (void)object;
    sy_cache *cache = joined_with((unsigned)(bytes / SY_GRAIN));
    if (cache) mixing.of[place_in(cache)].objects++;
}

static sy_cache *joined_by_class(unsigned class_number) {
    unsigned count = atomic_load_explicit(&mixing.joined_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        if (mixing.joined[i]->class_number == class_number) return mixing.joined[i];
    return NULL;
}

static void add_again(sy_slab *run, void *arg) {
    (void)arg;
    if (!sy_is_mixed(run) || run->bin == SY_BIN_UNIT_GONE) return;
    if (run->slots) { /* its conversion had begun: it is still its cache's */
        sy_cache *cache = joined_by_class(sy_class_at(run->start));
        run->bins = &cache->bins;
        run->owner = cache;
        return;
    }
    sy_map_set_class(run->start, 1, SY_CLASS_MIXED);
    count_again(run);
    mixing.hole_grains += run->free_count;
    sy_cache_append_slab(&sy_mixed, run);
    sy_mixed.slab_count++;
    run->bin = SY_BIN_UNIT_ASIDE;
    sy_mixed_each(run, 0, UINTPTR_MAX, count_object, NULL);
}

/* Another thread may have changed half of this: it is built again from the units. */
static void make_anew(void) {
    mixing.torn = false;
    sy_lots_forget();
    memset(mixing.heap, 0, sizeof mixing.heap);
    memset(mixing.occupied, 0, sizeof mixing.occupied);
    mixing.hole_grains = sy_mixed.slab_count = 0;
    sy_mixed.slabs = sy_mixed.last_slab = mixing.emptied = NULL;
    mixing.waiting = NULL;
    mixing.given = 0;
    for (unsigned i = 0; i < JOINED_MAX; i++) {
        mixing.of[i].objects = 0;
        mixing.given += mixing.of[i].given;
    }
    sy_run_each(&sy_memory_main, add_again, NULL);
}

/* Units that another thread had aside are found by refills again, or released. */
static void recover(void) {
    if (!atomic_load_explicit(&ready, memory_order_relaxed)) close_all();
    if (mixing.torn) make_anew();
    for (sy_slab *unit = sy_mixed.slabs, *next; unit; unit = next) {
        next = unit->next;
        if (sy_own_times(&own_units_aside, unit)) continue;
        if (unit->bin == SY_BIN_UNIT_ASIDE) sy_unit_insert(unit);
        bool empty = unit->free_count == SY_UNIT_GRAINS && unit->bin != SY_BIN_UNIT_LOTS;
        if (empty) sy_unit_unlink_empty(unit);
    }
    sy_mixed_release(sy_unit_take_emptied());
    sy_lots_recover();
}

const sy_part sy_mixed_part = {.hold = hold, .drop = drop, .recover = recover};

/* ---- for tools that read the process (base/shape.h) ---- */

#define MIXED_VARIABLES(row) row(sy_mixed, sy_mixed)

static const sy_shape_row mixed_shape_rows[] = {SY_SHAPE_CONSTANT(SY_CLASS_MIXED),
                                                SY_SHAPE_CONSTANT(SY_GRAIN_SHIFT),
                                                SY_SHAPE_FIELD(sy_grains, sy_grains, begins),
                                                SY_SHAPE_FIELD(sy_grains, sy_grains, out),
                                                SY_SHAPE_TYPE(sy_grains, sy_grains),
                                                MIXED_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const mixed_shape_addresses[] = {MIXED_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_mixed_shape = SY_SHAPE_PART(mixed_shape_rows, mixed_shape_addresses);
