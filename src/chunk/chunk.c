/*
 * chunk.c: takes runs of units from chunks for slabs and spans, takes the runs back, and returns
 * the memory of free units to the system in trims.
 */
#include "chunk/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "chunk/gauge.h"
#include "chunk/headers.h"
#include "chunk/huge.h"
#include "chunk/large.h"
#include "chunk/pressure.h"
#include "os/invariant.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

static const uint64_t ALL_UNITS = ~UINT64_C(1); /* all but the first */

enum {
    STEP_UNITS = 4,   /* discarded in one step of a trim: some tens of microseconds */
    DIRTY_TRIES = 32, /* chunks that are searched for dirty units, before clean ones are taken */
};

static void list_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    unsigned longest = chunk->longest = sy_longest_run(chunk->free);
    chunk->previous = NULL;
    chunk->next = memory->with[longest];
    if (chunk->next) chunk->next->previous = chunk;
    memory->with[longest] = chunk;
    memory->lists |= UINT64_C(1) << longest;
}

static void unlist_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        memory->with[chunk->longest] = chunk->next;
    if (chunk->next) chunk->next->previous = chunk->previous;
    if (!memory->with[chunk->longest]) memory->lists &= ~(UINT64_C(1) << chunk->longest);
}

/* Unit 0 is never free. Aged and dirty units are free. The chunk is in the list
 * for the length of its longest free run. */
static bool chunk_is_valid(const sy_chunk *chunk) {
    return !(chunk->free & 1) && !(chunk->dirty & ~chunk->free) && !(chunk->aged & ~chunk->free) &&
           chunk->longest == sy_longest_run(chunk->free) &&
           chunk->memory->lists >> chunk->longest & 1;
}

static void relist_chunk(sy_chunk *chunk) {
    if (sy_longest_run(chunk->free) != chunk->longest) {
        unlist_chunk(chunk);
        list_chunk(chunk);
    }
    SY_INVARIANT(chunk_is_valid(chunk));
}

/* Appends it to the list of all chunks, marked as trimmed by the last trim so far. */
static void append_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    chunk->trim = memory->trims;
    chunk->all_next = NULL;
    chunk->all_previous = memory->last;
    if (memory->last)
        memory->last->all_next = chunk;
    else
        memory->first = chunk;
    memory->last = chunk;
}

static void remove_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    if (chunk->all_previous)
        chunk->all_previous->all_next = chunk->all_next;
    else
        memory->first = chunk->all_next;
    if (chunk->all_next)
        chunk->all_next->all_previous = chunk->all_previous;
    else
        memory->last = chunk->all_previous;
}

/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): no run begins at unit 64. */
static uint64_t units_mask(unsigned unit, unsigned units) { return sy_low_bits(units) << unit; }

static void set_first_unit(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    for (unsigned i = unit; i < unit + units; i++)
        atomic_store_explicit(&chunk->first_unit[i], (uint8_t)first, memory_order_relaxed);
}

/* The caller holds the lock; other threads read the count without it. */
static void count_used(sy_memory *memory, size_t more) {
    SY_HOLDS(&memory->lock);
    size_t used = atomic_load_explicit(&memory->units_used, memory_order_relaxed);
    atomic_store_explicit(&memory->units_used, used + more, memory_order_relaxed);
}

/* ---- memory that was returned too early ---- */

_Atomic size_t sy_returned_early;

_Atomic bool sy_early_marks_end;

/* Bytes of chunks and large spans that passes by age returned, with their address space. */
static _Atomic size_t gone;

static void count_gone(size_t bytes) {
    atomic_fetch_add_explicit(&gone, bytes, memory_order_relaxed);
}

/* Called when a new chunk or span of `bytes` bytes gets address space: as many of the bytes that
 * are gone were returned too early. */
static void use_gone(size_t bytes) {
    size_t have = atomic_load_explicit(&gone, memory_order_relaxed), used;
    do {
        used = bytes < have ? bytes : have;
        if (!used) return;
    } while (!atomic_compare_exchange_weak_explicit(&gone, &have, have - used, memory_order_relaxed,
                                                    memory_order_relaxed));
    sy_count_early(used);
}

void sy_chunk_end_early(bool marks) {
    atomic_store_explicit(&sy_early_marks_end, marks, memory_order_relaxed);
    if (!marks) return;
    atomic_store_explicit(&gone, 0, memory_order_relaxed);
    atomic_store_explicit(&sy_returned_early, 0, memory_order_relaxed);
}

/* ---- units ---- */

/* Takes units out of the free ones. Returns the number of clean ones. */
static unsigned take_units(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    uint64_t mask = units_mask(unit, units);
    unsigned clean = units - sy_count_bits(chunk->dirty & mask);
    uint64_t early = mask & chunk->aged & ~chunk->dirty;
    if (SY_UNLIKELY(early != 0)) sy_count_early(sy_count_bits(early) * (size_t)SY_UNIT_BYTES);
    chunk->free &= ~mask;
    chunk->dirty &= ~mask;
    chunk->aged &= ~mask;
    count_used(chunk->memory, units);
    set_first_unit(chunk, unit, units, first);
    relist_chunk(chunk);
    return clean;
}

static void give_units(sy_chunk *chunk, unsigned unit, unsigned units) {
    uint64_t mask = units_mask(unit, units);
    count_used(chunk->memory, -(size_t)units);
    set_first_unit(chunk, unit, units, 0);
    chunk->free |= mask;
    chunk->dirty |= mask;
    relist_chunk(chunk);
}

/* Looks for a run of dirty units in the chunks of the lists `fit`, those with the shortest free
 * runs first. Sets *chunk; 64: there is none in the first chunks, and *chunk stays as it is. */
static unsigned find_dirty_run(const sy_memory *memory, uint64_t fit, unsigned units,
                               unsigned align, sy_chunk **chunk) {
    unsigned tries = DIRTY_TRIES;
    for (; fit; fit &= fit - 1)
        for (sy_chunk *at = memory->with[sy_lowest_bit(fit)]; at; at = at->next) {
            unsigned unit = sy_find_run(at->dirty, units, align);
            if (unit != 64) {
                *chunk = at;
                return unit;
            }
            if (--tries == 0) return 64;
        }
    return 64;
}

/* Takes a run from the chunk whose longest free run is the shortest that fits. NULL: no chunk has
 * room, or, if all units `must` be dirty, no such run was found. *clean: number of its clean units.
 * The caller holds the lock. */
static sy_slab *take_run(sy_memory *memory, unsigned units, unsigned align, bool must,
                         unsigned *clean) {
    SY_HOLDS(&memory->lock);
    uint64_t fit = memory->lists & ~sy_low_bits(units + align - 1);
    if (!fit) return NULL;
    sy_chunk *chunk = memory->with[sy_lowest_bit(fit)];
    unsigned unit = find_dirty_run(memory, fit, units, align, &chunk);
    if (unit == 64 && must) return NULL;
    if (unit == 64) unit = sy_find_run(chunk->free, units, align);
    *clean = take_units(chunk, unit, units, unit);
    sy_slab *run = &chunk->slabs[unit - 1];
    memset(run, 0, sizeof *run);
    run->start = chunk->start + (uintptr_t)unit * SY_UNIT_BYTES;
    run->bytes = (size_t)units * SY_UNIT_BYTES;
    return run;
}

static void set_owner(const sy_chunk *chunk, bool owned) {
    void *owner = owned ? (void *)((uintptr_t)chunk + SY_OWNER_IS_CHUNK) : NULL;
    sy_map_set_owner(chunk->start, SY_CHUNK_BYTES, owner);
}

/* The chunk at an address, or NULL. */
static sy_chunk *chunk_at(uintptr_t address) {
    uintptr_t owner = (uintptr_t)sy_owner_at(address);
    return owner & SY_OWNER_IS_CHUNK ? (sy_chunk *)(owner - SY_OWNER_IS_CHUNK) : NULL;
}

/* Adds a chunk without runs to the lists and the map. */
static void open_chunk(sy_memory *memory, sy_chunk *chunk, uint64_t dirty) {
    chunk->memory = memory;
    chunk->free = ALL_UNITS;
    chunk->dirty = dirty;
    chunk->aged = 0;
    sy_lock_acquire(&memory->lock);
    list_chunk(chunk);
    append_chunk(chunk);
    memory->chunk_count++;
    set_owner(chunk, true);
    sy_lock_release(&memory->lock);
}

/* Takes address space for a chunk, commits it, and makes the map cover it. 0 with ENOMEM. The
 * system's memory reads as zero. */
static uintptr_t take_chunk(const sy_memory *memory) {
    uintptr_t start;
    if (!sy_memory_take(memory, SY_CHUNK_BYTES, SY_CHUNK_BYTES, &start)) return 0;
    if (sy_memory_commit(memory, start, SY_CHUNK_BYTES) == 0 &&
        sy_map_cover(start, SY_CHUNK_BYTES) == 0)
        return start;
    sy_memory_give(memory, start, SY_CHUNK_BYTES);
    errno = ENOMEM;
    return 0;
}

static bool add_chunk(sy_memory *memory) {
    sy_chunk *chunk = sy_header_take();
    if (!chunk) return false;
    uintptr_t start = take_chunk(memory);
    if (!start) {
        int error = errno;
        sy_header_give(chunk);
        errno = error;
        return false;
    }
    chunk->start = start;
    open_chunk(memory, chunk, memory->systems ? 0 : ALL_UNITS);
    if (memory->systems) use_gone(SY_CHUNK_BYTES);
    return true;
}

/* Makes a chunk of a large span that is kept for reuse: its units are dirty, as far as the span's
 * memory reaches. False: no kept span has room for such a run, or there is no memory for a header.
 */
static bool adopt_kept(sy_memory *memory, unsigned units, unsigned align) {
    const size_t least = (size_t)(units + align) * SY_UNIT_BYTES; /* unit 0 is not used */
    uintptr_t start;
    size_t bytes;
    int error = errno;
    sy_chunk *chunk = sy_large_keeps(memory, least) ? sy_header_take() : NULL;
    bool lent = chunk && sy_large_lend(memory, least, &start, &bytes, &chunk->pieces);
    if (chunk && !lent) sy_header_give(chunk);
    errno = error;
    if (!lent) return false;
    chunk->start = start;
    (void)sy_memory_discard(memory, (void *)start, SY_UNIT_BYTES); /* else it goes with unit 1 */
    open_chunk(memory, chunk, units_mask(1, (unsigned)(bytes >> SY_UNIT_SHIFT) - 1));
    return true;
}

static sy_slab *take_units_of_any(sy_memory *memory, unsigned units, unsigned align,
                                  size_t *clean) {
    for (bool adopts = true;;) {
        unsigned clean_units = 0;
        if (!atomic_load_explicit(&memory->kept_bytes, memory_order_relaxed)) adopts = false;
        sy_lock_acquire(&memory->lock);
        sy_slab *run = take_run(memory, units, align, adopts, &clean_units);
        sy_lock_release(&memory->lock);
        *clean = clean_units * (size_t)SY_UNIT_BYTES;
        if (run) return run;
        if (adopts)
            adopts = adopt_kept(memory, units, align);
        else if (!add_chunk(memory))
            return NULL;
    }
}

static bool is_large(const sy_slab *run) { return sy_owner_at(run->start) == run; }

/* ---- memory pressure ---- */

static void release_free(sy_memory *memory, size_t wanted) {
    size_t done = 0;
    uint64_t trim = sy_chunk_begin_trim(memory);
    while (done < wanted && sy_chunk_trim_step(memory, trim, false, &done)) {}
    if (done < wanted)
        atomic_store_explicit(&sy_pressure_unmet, wanted - done, memory_order_relaxed);
}

void sy_chunk_relieve(void) {
    int error = errno;
    size_t wanted = sy_pressure_look();
    if (wanted) release_free(&sy_memory_main, wanted);
    errno = error;
}

/* Called when a run got `clean` bytes that hold no memory yet. */
static void note_growth(const sy_memory *memory, size_t clean) {
    if (!clean || !memory->systems) return;
    sy_pressure_note(clean);
    if (sy_pressure_is_due()) sy_chunk_relieve();
}

static sy_chunk *chunk_of(const sy_slab *run) {
    return (sy_chunk *)((uintptr_t)run & ~(uintptr_t)(sizeof(sy_chunk) - 1));
}

static unsigned unit_of(const sy_slab *run) {
    return run->start >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
}

static unsigned units_of(const sy_slab *run) { return (unsigned)(run->bytes >> SY_UNIT_SHIFT); }

static sy_memory *memory_of(const sy_slab *run) {
    return is_large(run) ? sy_large_memory(run) : chunk_of(run)->memory;
}

/* ---- runs of one object that were given back: the last one for each entry ---- */

enum { ENDED_SHIFT = 8 };

/* An entry is the number of the unit where the object began, plus 1; 0: none. It is not the
 * address, because the search for leaks would take an address for a pointer to the object that lies
 * there now. */
static _Atomic uint64_t ended[1 << ENDED_SHIFT];

static uint64_t ended_value(uintptr_t start) { return (start >> SY_UNIT_SHIFT) + 1; }

static _Atomic uint64_t *ended_entry(uintptr_t start) {
    uint64_t mixed = (start >> SY_UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);
    return &ended[mixed >> (64 - ENDED_SHIFT)];
}

bool sy_run_ended_at(uintptr_t address) {
    return address % SY_UNIT_BYTES == 0 &&
           atomic_load_explicit(ended_entry(address), memory_order_relaxed) == ended_value(address);
}

/* Only a run of one object is noted. When a slab with many slots is given back, its objects were
 * freed before. */
static void note_end(const sy_slab *run) {
    if (run->slots > 1) return;
    atomic_store_explicit(ended_entry(run->start), ended_value(run->start), memory_order_relaxed);
}

/* ---- where the program locks all of its memory ----
 *
 * Then runs are locked while they are taken, and free units are not. */

static bool locks(const sy_memory *memory) { return memory->systems && sy_os_locks_all(); }

/* Locks or unlocks a run from its first `from` bytes on. False: so much may not be locked. */
static bool lock_from(const sy_slab *run, size_t from, bool wanted) {
    if (from >= run->bytes || !locks(memory_of(run))) return true;
    return sy_os_lock((char *)run->start + from, run->bytes - from, wanted) == 0;
}

/* To be called before the end of a run may lose its memory. */
static void end_watch(const sy_slab *run) {
    sy_memory *memory = memory_of(run);
    if (atomic_load_explicit(&memory->watched, memory_order_relaxed) == run)
        (void)sy_gauge_look(memory, run);
}

void sy_run_give(sy_slab *run) {
    note_end(run);
    end_watch(run);
    lock_from(run, 0, false);
    if (is_large(run)) {
        sy_large_give(run);
        return;
    }
    sy_chunk *chunk = chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    give_units(chunk, unit_of(run), units_of(run));
    sy_lock_release(&chunk->memory->lock);
}

static bool resize_large(sy_slab *run, size_t bytes) {
    size_t before = run->bytes;
    bool done = sy_large_resize(run, bytes);
    if (run->bytes > before) note_growth(sy_large_memory(run), run->bytes - before);
    return done;
}

static bool resize(sy_slab *run, size_t bytes) {
    if (is_large(run)) return resize_large(run, bytes);
    size_t wanted = sy_divide_up(bytes, SY_UNIT_BYTES);
    unsigned unit = unit_of(run), have = units_of(run);
    if (wanted == 0 || wanted > SY_CHUNK_UNITS - unit) return false;
    unsigned units = (unsigned)wanted, clean = 0;
    sy_chunk *chunk = chunk_of(run);
    bool done = true;
    sy_lock_acquire(&chunk->memory->lock);
    if (units < have) {
        give_units(chunk, unit + units, have - units);
    } else if (units > have) {
        uint64_t more = units_mask(unit + have, units - have);
        done = (chunk->free & more) == more;
        if (done) clean = take_units(chunk, unit + have, units - have, unit);
    }
    if (done) run->bytes = (size_t)units * SY_UNIT_BYTES;
    sy_lock_release(&chunk->memory->lock);
    note_growth(chunk->memory, clean * (size_t)SY_UNIT_BYTES);
    return done;
}

bool sy_run_resize(sy_slab *run, size_t bytes) {
    size_t had = run->bytes;
    if (sy_round_up(bytes, SY_UNIT_BYTES) < had) end_watch(run);
    lock_from(run, sy_round_up(bytes, SY_UNIT_BYTES), false);
    if (!resize(run, bytes)) return lock_from(run, 0, true) && false;
    if (lock_from(run, had, true)) return true;
    resize(run, had);
    return false;
}

int sy_run_populate(const sy_slab *run) {
    return memory_of(run)->systems ? sy_os_populate((void *)run->start, run->bytes) : 0;
}

int sy_run_discard(const sy_slab *run, void *start, size_t bytes) {
    const sy_memory *memory = memory_of(run);
    int result = sy_memory_discard(memory, start, bytes);
    if (result == 0 && !memory->systems) sy_pressure_note_return(bytes); /* its use is noted too */
    return result;
}

/* The units of the half of a chunk that may be backed with a huge page for a new run: the half with
 * the run's last unit, if its other units are free and clean. 0: it may not. The caller holds the
 * lock. */
static uint64_t fresh_half(const sy_chunk *chunk, const sy_slab *run, bool clean) {
    SY_HOLDS(&chunk->memory->lock);
    unsigned first = unit_of(run), units = units_of(run);
    unsigned half = (first + units - 1) / SY_HUGE_UNITS * SY_HUGE_UNITS;
    uint64_t all = units_mask(half, SY_HUGE_UNITS) & ALL_UNITS;
    uint64_t others = all & ~units_mask(first, units);
    bool fresh = clean || first < half; /* a run across the middle may begin in dirty units */
    bool whole = !chunk->punched && !chunk->pieces;
    return fresh && whole && !(others & ~(chunk->free & ~chunk->dirty)) ? all : 0;
}

/* Near the limit the pages are taken one by one. */
static bool back_half(const sy_chunk *chunk, uint64_t half) {
    unsigned first = sy_lowest_bit(half) / SY_HUGE_UNITS * SY_HUGE_UNITS;
    return sy_pressure_is_far() &&
           sy_huge_back((char *)chunk->start + (size_t)first * SY_UNIT_BYTES);
}

void sy_chunk_back_ahead(const sy_slab *run, bool clean) {
    sy_chunk *chunk = chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    uint64_t half = fresh_half(chunk, run, clean);
    chunk->ahead |= half;
    sy_lock_release(&chunk->memory->lock);
    if (!half) return;
    bool backed = back_half(chunk, half);
    sy_lock_acquire(&chunk->memory->lock);
    uint64_t more = backed ? half & chunk->free & ~chunk->dirty : 0;
    chunk->dirty |= more;
    chunk->ahead &= ~half;
    sy_lock_release(&chunk->memory->lock);
    sy_pressure_note(sy_count_bits(more) * (size_t)SY_UNIT_BYTES);
}

void sy_run_back_ahead(sy_slab *run) {
    if (is_large(run)) sy_large_back_ahead(run);
}

bool sy_chunk_grows(const sy_memory *memory) {
    return memory->systems &&
           sy_huge_is_allowed(atomic_load_explicit(&memory->units_used, memory_order_relaxed));
}

void sy_chunk_punched(const sy_slab *run) {
    if (is_large(run) || !chunk_of(run)->memory->systems) return;
    sy_chunk *chunk = chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    chunk->punched = true;
    sy_lock_release(&chunk->memory->lock);
}

/* ---- trim ---- */

/* Discards each run of units in `units`; returns the units for which that succeeded. */
static uint64_t discard_units(const sy_chunk *chunk, uint64_t units) {
    uint64_t done = 0;
    while (units) {
        unsigned first = sy_lowest_bit(units);
        uint64_t rest = ~(units >> first);
        unsigned count = rest ? sy_lowest_bit(rest) : 64;
        uint64_t mask = units_mask(first, count);
        size_t bytes = (size_t)count * SY_UNIT_BYTES, from = (size_t)first * SY_UNIT_BYTES;
        if (first == 1 && chunk->memory->systems) { /* with what a huge page gave to unit 0 */
            bytes += SY_UNIT_BYTES;
            from = 0;
        }
        char *start = (char *)chunk->start + from;
        if (sy_memory_discard(chunk->memory, start, bytes) == 0) {
            done |= mask;
            if (from == 0) sy_pressure_note(SY_UNIT_BYTES); /* the use of unit 0 was not noted */
        }
        units &= ~mask;
    }
    return done;
}

static void unlink_chunk(sy_chunk *chunk) {
    unlist_chunk(chunk);
    remove_chunk(chunk);
    chunk->memory->chunk_count--;
    set_owner(chunk, false);
}

/* Returns the memory of a chunk without runs to the system, and its address space to the arena. The
 * caller holds the lock, which is released here. */
static size_t retire_chunk(sy_chunk *chunk) {
    SY_HOLDS(&chunk->memory->lock);
    sy_memory *memory = chunk->memory;
    uintptr_t start = chunk->start;
    size_t noted = sy_count_bits(chunk->dirty) * (size_t)SY_UNIT_BYTES,
           bytes = noted + sizeof *chunk;
    unlink_chunk(chunk);
    sy_memory_begin_trim(memory);
    sy_lock_release(&memory->lock);
    if (sy_pages_empty((void *)start, SY_CHUNK_BYTES) == 0) {
        sy_pressure_note_return(noted);
        bool whole = !chunk->pieces || sy_os_decommit((void *)start, SY_CHUNK_BYTES) == 0;
        sy_header_give(chunk);
        if (whole) sy_memory_give(memory, start, SY_CHUNK_BYTES); /* as give_address in large.c */
    } else {
        open_chunk(memory, chunk, ALL_UNITS); /* dirty: its content may or may not be lost */
        bytes = 0;
    }
    sy_memory_end_trim(memory);
    return bytes;
}

/* The units that this thread has set aside in its trims. Trims can be nested, since a trim may call
 * functions of the program. If the thread forks within one, it still has these units in the child.
 * There sy_chunk_recover frees all other units that were set aside, and those of trims nested
 * deeper than this. */
enum { ASIDE_MAX = 4 };
static SY_TLS struct {
    const sy_chunk *chunk[ASIDE_MAX];
    uint64_t units[ASIDE_MAX];
} own_aside;

static void note_aside(const sy_chunk *chunk, uint64_t units) {
    unsigned i = 0;
    while (i < ASIDE_MAX && own_aside.chunk[i]) i++;
    if (i == ASIDE_MAX) return;
    own_aside.units[i] = units;
    own_aside.chunk[i] = chunk;
}

static void forget_aside(const sy_chunk *chunk, uint64_t units) {
    for (unsigned i = 0; i < ASIDE_MAX; i++)
        if (own_aside.chunk[i] == chunk && own_aside.units[i] == units) own_aside.chunk[i] = NULL;
}

static uint64_t units_aside(const sy_chunk *chunk) {
    uint64_t units = 0;
    for (unsigned i = 0; i < ASIDE_MAX; i++)
        if (own_aside.chunk[i] == chunk) units |= own_aside.units[i];
    return units;
}

/* Gives all chunks without runs back, so that large spans can use their address space. Returns
 * whether one was given back. */
static bool retire_unused(sy_memory *memory) {
    bool any = false;
    while (memory->systems) {
        sy_lock_acquire(&memory->lock);
        sy_chunk *chunk = memory->with[SY_RUN_UNITS_MAX];
        if (!chunk) {
            sy_lock_release(&memory->lock);
            break;
        }
        if (retire_chunk(chunk) == 0) break;
        any = true;
    }
    return any;
}

/* Takes dirty units out of the free ones, so that no lock is held while their memory goes. Returns
 * those that are aged. The caller holds the lock, which is released here. */
static uint64_t set_aside(sy_chunk *chunk, uint64_t claimed) {
    SY_HOLDS(&chunk->memory->lock);
    sy_memory *memory = chunk->memory;
    uint64_t aged = chunk->aged & claimed;
    chunk->free &= ~claimed;
    chunk->dirty &= ~claimed;
    chunk->aged &= ~claimed;
    relist_chunk(chunk);
    sy_memory_begin_trim(memory);
    note_aside(chunk, claimed);
    sy_lock_release(&memory->lock);
    return aged;
}

/* The units are free again; of those that are `done` the memory has gone. */
static void end_aside(sy_chunk *chunk, uint64_t claimed, uint64_t done, uint64_t aged) {
    sy_memory *memory = chunk->memory;
    sy_lock_acquire(&memory->lock);
    forget_aside(chunk, claimed);
    chunk->free |= claimed;
    chunk->dirty |= claimed & ~done;
    chunk->aged |= aged;
    relist_chunk(chunk);
    sy_lock_release(&memory->lock);
    sy_memory_end_trim(memory);
}

/* Returns the memory of free dirty units to the system. The caller holds the lock, which is
 * released here. */
static size_t trim_units(sy_chunk *chunk, uint64_t claimed) {
    uint64_t aged = set_aside(chunk, claimed), done = discard_units(chunk, claimed);
    end_aside(chunk, claimed, done, aged);
    return sy_count_bits(done) * (size_t)SY_UNIT_BYTES;
}

/* ---- memory of free units for new runs ---- */

/* The longest run of dirty units, in whole pieces of `piece` units and at most *units, in the first
 * chunks with the most free units in a row; sets *units to its length and *unit to where it begins.
 * NULL: there is none. The caller holds the lock. */
static sy_chunk *find_dirty_pieces(const sy_memory *memory, unsigned piece, unsigned *units,
                                   unsigned *unit) {
    SY_HOLDS(&memory->lock);
    unsigned tries = DIRTY_TRIES;
    for (unsigned longest = SY_RUN_UNITS_MAX; longest >= piece; longest--)
        for (sy_chunk *at = memory->with[longest]; at; at = at->next) {
            if (tries-- == 0) return NULL;
            unsigned run = sy_longest_run(at->dirty);
            unsigned length = (run < *units ? run : *units) / piece * piece;
            if (!length) continue;
            *unit = sy_find_run(at->dirty, length, 1);
            *units = length;
            return at;
        }
    return NULL;
}

void sy_chunk_exchange(sy_memory *memory, size_t bytes) {
    int error = errno;
    bool can = memory->systems && sy_memory_discards(memory);
    for (size_t done = 0, some; can && done < bytes; done += some) {
        unsigned units = (unsigned)sy_divide_up(bytes - done, SY_UNIT_BYTES), unit;
        sy_lock_acquire(&memory->lock);
        sy_chunk *chunk = find_dirty_pieces(memory, 1, &units, &unit);
        if (!chunk) {
            sy_lock_release(&memory->lock);
            break;
        }
        some = trim_units(chunk, units_mask(unit, units));
        can = some > 0;
    }
    errno = error;
}

/* A chunk without runs whose units, but for some at its end, mostly hold memory; *units: without
 * those at the end. NULL: there is none among the first. The caller holds the lock. */
static sy_chunk *find_unused(const sy_memory *memory, unsigned *units) {
    SY_HOLDS(&memory->lock);
    unsigned tries = DIRTY_TRIES;
    for (sy_chunk *at = memory->with[SY_RUN_UNITS_MAX]; at && tries; at = at->next, tries--) {
        *units = at->dirty ? sy_highest_bit(at->dirty) + 1 : 0;
        if (at->dirty && !at->ahead && sy_count_bits(at->dirty) >= *units / 2) return at;
    }
    return NULL;
}

/* Makes a kept large span of a chunk without runs. What holds no memory between its units counts as
 * held, since it will be used. False: there is none, or no memory. errno is kept. */
static bool keep_chunk(sy_memory *memory) {
    unsigned units;
    int error = errno;
    sy_chunk *chunk = NULL;
    sy_slab *span = sy_descriptor_take();
    if (span) {
        sy_lock_acquire(&memory->lock);
        chunk = find_unused(memory, &units);
        if (chunk) unlink_chunk(chunk);
        sy_lock_release(&memory->lock);
    }
    if (chunk) {
        sy_pressure_note((units - sy_count_bits(chunk->dirty)) * (size_t)SY_UNIT_BYTES);
        sy_large_keep(memory, span, chunk->start, (size_t)units * SY_UNIT_BYTES, chunk->pieces);
        sy_header_give(chunk);
    } else if (span) {
        sy_descriptor_give(span);
    }
    errno = error;
    return chunk != NULL;
}

/* Until so many bytes are kept for large spans, if these will probably be written. */
static void keep_chunks(sy_memory *memory, size_t bytes) {
    unsigned units;
    if (!memory->systems || !sy_large_piece(memory)) return;
    sy_lock_acquire(&memory->lock);
    bool any = find_unused(memory, &units) != NULL;
    sy_lock_release(&memory->lock);
    if (!any || !sy_gauge_look(memory, NULL)) return;
    while (atomic_load_explicit(&memory->kept_bytes, memory_order_relaxed) < bytes &&
           keep_chunk(memory)) {}
}

/* Moves the memory of one run of free dirty units to a place of at most `wanted` bytes that ends at
 * `end`, in whole pieces. *bytes: the length of the run, 0 if none is found; returns how many have
 * moved. *lost: see sy_os_move. */
static size_t lend_run(sy_memory *memory, uintptr_t end, size_t wanted, size_t piece, size_t *bytes,
                       bool *lost) {
    unsigned unit, units = SY_CHUNK_UNITS;
    if (wanted < SY_CHUNK_BYTES) units = (unsigned)(wanted >> SY_UNIT_SHIFT);
    *bytes = 0;
    sy_lock_acquire(&memory->lock);
    sy_chunk *chunk = find_dirty_pieces(memory, (unsigned)(piece >> SY_UNIT_SHIFT), &units, &unit);
    if (!chunk) {
        sy_lock_release(&memory->lock);
        return 0;
    }
    const uint64_t claimed = units_mask(unit, units), aged = set_aside(chunk, claimed);
    *bytes = (size_t)units * SY_UNIT_BYTES;
    char *from = (char *)chunk->start + (size_t)unit * SY_UNIT_BYTES;
    const size_t moved = sy_os_move(from, (char *)(end - *bytes), *bytes, lost);
    const uint64_t done = units_mask(unit, (unsigned)(moved >> SY_UNIT_SHIFT));
    end_aside(chunk, claimed, done, aged & ~done); /* a new use of these is not too early */
    return moved;
}

/* Moves the memory of free dirty units to a run of which *clean bytes hold none, the first *fresh
 * among them: to the end of these, until at most `least` of them are left, or no such units are
 * found. False: behind the first *fresh bytes, addresses of the run were lost. */
static bool lend_units(sy_memory *memory, const sy_slab *run, size_t least, size_t *fresh,
                       size_t *clean) {
    const size_t piece = sy_large_piece(memory);
    size_t moved = 1, bytes = 1;
    bool lost = false;
    while (piece && bytes && moved == bytes) {
        /* Pieces lie at multiples of their length, so that a chunk has few mappings in the end. */
        const uintptr_t end = sy_round_down(run->start + *fresh, piece);
        if (end < run->start + least + piece) break;
        moved = lend_run(memory, end, end - run->start - least, piece, &bytes, &lost);
        *clean -= moved;
        if (moved || lost) *fresh = end - run->start - bytes + (lost ? moved : 0);
        const size_t behind =
            run->start + run->bytes - end; /* still there, and not used any more */
        if (lost && behind) (void)sy_os_discard((char *)end, behind);
    }
    return !lost;
}

/* The bytes at the start of a new run that hold no memory; *least: as many stay so. */
static size_t fresh_bytes(const sy_slab *run, size_t clean, size_t *least) {
    *least = 0;
    if (is_large(run)) return sy_large_fresh(run, least);
    return clean == run->bytes ? clean : 0;
}

/* Some of the bytes behind the first `fresh` got memory, so they are several mappings. */
static void note_pieces(sy_slab *run, size_t fresh, bool lost) {
    if (is_large(run)) {
        sy_large_set_fresh(run, fresh, lost);
        return;
    }
    sy_chunk *chunk = chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    chunk->pieces = true;
    sy_lock_release(&chunk->memory->lock);
}

/* For a new run that the program will write before it reads, of which *clean bytes hold no memory:
 * if it wrote the run watched last, this one gets memory of free units; what is left is watched.
 * False: addresses were lost. Then the run is not to be used: a large span was given back, other
 * units are never free again. */
static bool fill(sy_memory *memory, sy_slab *run, size_t *clean) {
    size_t least, had = fresh_bytes(run, *clean, &least), fresh = had;
    if (had < SY_GAUGE_BYTES || !sy_large_piece(memory)) return true;
    bool fills = sy_gauge_look(memory, NULL);
    bool sound = !fills || lend_units(memory, run, least, &fresh, clean);
    if (fresh < had) note_pieces(run, fresh, !sound);
    if (!sound && is_large(run)) sy_large_give(run);
    if (sound && fresh >= SY_GAUGE_BYTES) (void)sy_gauge_set(memory, run, 0, fresh);
    return sound;
}

/* The lowest `count` of the units in a word. */
static uint64_t lowest_units(uint64_t units, unsigned count) {
    uint64_t rest = units;
    while (rest && count--) rest &= rest - 1;
    return units & ~rest;
}

static uint64_t begin_trim(sy_memory *memory, unsigned whole) {
    sy_lock_acquire(&memory->lock);
    uint64_t trim = ++memory->trims;
    memory->whole_trims += whole;
    sy_lock_release(&memory->lock);
    return trim;
}

/* In the child of a fork the count may be 0 already. */
static void end_whole_trim(sy_memory *memory) {
    sy_lock_acquire(&memory->lock);
    if (memory->whole_trims) memory->whole_trims--;
    sy_lock_release(&memory->lock);
}

uint64_t sy_chunk_begin_trim(sy_memory *memory) {
    sy_large_try_again(memory);
    return begin_trim(memory, 0);
}

/* Trims at most `most` units of the first chunk in the list. A chunk whose units are all handled
 * goes to the end of the list; one without runs goes back to the arena, unless it is of a program's
 * memory. False: the trim is over. */
static bool trim_chunk_step(sy_memory *memory, uint64_t trim, bool aged, unsigned most,
                            size_t *bytes) {
    sy_lock_acquire(&memory->lock);
    sy_chunk *chunk = memory->first;
    if (!chunk || chunk->trim >= trim || (aged && memory->whole_trims)) {
        sy_lock_release(&memory->lock);
        if (aged) sy_large_age(memory);
        return false;
    }
    if (chunk->tried_by != trim) chunk->tried = 0; /* set by a trim that was not finished */
    chunk->tried_by = trim;
    uint64_t due = (aged ? chunk->dirty & chunk->aged : chunk->dirty) & ~chunk->tried;
    uint64_t claimed = sy_memory_discards(memory) ? lowest_units(due, most) : 0;
    bool rest = chunk->dirty & ~claimed;
    chunk->tried |= claimed;
    uint64_t tried = chunk->tried;
    if (claimed == due || !claimed) {
        /* Units that earlier steps of this trim cleaned may be in use again. */
        uint64_t cleaned = aged ? tried & chunk->free : 0;
        if (aged && !sy_early_ends()) cleaned |= chunk->aged & ~chunk->dirty;
        remove_chunk(chunk);
        append_chunk(chunk);
        chunk->aged = chunk->dirty | cleaned;
        chunk->tried = 0;
    }
    if (memory->systems && !sy_memory_discards(memory)) rest = chunk->dirty & ~due;
    if (chunk->free == ALL_UNITS && !rest && memory->systems) {
        *bytes += retire_chunk(chunk);
        if (aged) count_gone(sy_count_bits(tried) * (size_t)SY_UNIT_BYTES);
    } else if (claimed)
        *bytes += trim_units(chunk, claimed);
    else
        sy_lock_release(&memory->lock);
    return true;
}

static bool trim_large_step(sy_memory *memory, bool aged, size_t *bytes) {
    size_t released = 0;
    bool more = sy_large_trim_step(memory, aged, &released);
    *bytes += released;
    if (aged) count_gone(released);
    return more;
}

bool sy_chunk_trim_step(sy_memory *memory, uint64_t trim, bool aged, size_t *bytes) {
    return trim_large_step(memory, aged, bytes) ||
           trim_chunk_step(memory, trim, aged, STEP_UNITS, bytes);
}

/* Trims each chunk of this moment once, unless another trim handles it meanwhile. In a program's
 * memory only a few units are set aside at a time, because allocations do not wait for its
 * trims. */
size_t sy_chunk_trim(sy_memory *memory) {
    size_t bytes = sy_large_trim(memory);
    uint64_t trim = begin_trim(memory, 1);
    unsigned most = memory->systems ? SY_CHUNK_UNITS : STEP_UNITS;
    while (trim_chunk_step(memory, trim, false, most, &bytes)) {}
    end_whole_trim(memory);
    return bytes;
}

void sy_chunk_release_all(sy_memory *memory) {
    while (memory->first) {
        sy_chunk *chunk = memory->first;
        uintptr_t start = chunk->start;
        sy_lock_acquire(&memory->lock);
        unlink_chunk(chunk);
        sy_lock_release(&memory->lock);
        sy_header_give(chunk);
        sy_memory_give(memory, start, SY_CHUNK_BYTES);
    }
}

/* ---- in the child of a fork ---- */

/* Completes the work of threads that the child lacks. Units that they had set aside, which are
 * neither free nor in a run, become free. Those that they were backing with a huge page may hold
 * memory, so they become dirty, and the kernel is told once more that the chunk is to have small
 * pages. The caller holds the lock. */
static void free_again(sy_chunk *chunk) {
    SY_HOLDS(&chunk->memory->lock);
    uint64_t aside = ALL_UNITS & ~chunk->free & ~units_aside(chunk);
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++)
        if (atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed))
            aside &= ~(UINT64_C(1) << unit);
    chunk->free |= aside;
    chunk->dirty |= aside | (chunk->ahead & chunk->free);
    if (chunk->ahead) (void)sy_os_huge((void *)chunk->start, SY_CHUNK_BYTES, false);
    chunk->ahead = 0;
}

static void empty_lists(sy_memory *memory) {
    memset(memory->with, 0, sizeof memory->with);
    memory->lists = 0;
    memory->first = memory->last = NULL;
    memory->chunk_count = 0;
    atomic_store(&memory->units_used, 0);
    memory->torn = false;
}

static unsigned first_of(const sy_chunk *chunk, unsigned unit) {
    return atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
}

/* Another thread may have been taking, giving back or resizing a run. If `first_unit` of the run's
 * first unit still leads to the run, the run stays taken, with the length that `first_unit` of its
 * other units gives. Else its units become free. */
static void mend_runs(sy_chunk *chunk) {
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++) {
        unsigned first = first_of(chunk, unit);
        bool goes_on = first == unit || (first < unit && first_of(chunk, unit - 1) == first);
        if (first && !goes_on) set_first_unit(chunk, unit, 1, 0);
    }
    for (unsigned unit = 1, end; unit < SY_CHUNK_UNITS; unit = end) {
        end = unit + 1;
        if (!first_of(chunk, unit)) continue;
        while (end < SY_CHUNK_UNITS && first_of(chunk, end) == unit) end++;
        sy_slab *run = &chunk->slabs[unit - 1];
        size_t bytes = (size_t)(end - unit) * SY_UNIT_BYTES;
        if (run->bytes == bytes) continue;
        if (run->bytes == 0)
            *run = (sy_slab){.start = chunk->start + (uintptr_t)unit * SY_UNIT_BYTES};
        run->bytes = bytes;
    }
}

/* For each segment that is a chunk: enters it in the lists, which were emptied because they may
 * have been half changed. A chunk that another thread was opening is not in the map, and is lost.
 */
static int list_again(void *arg, unsigned what, uintptr_t start, size_t size) {
    sy_memory *memory = arg;
    sy_chunk *chunk = chunk_at(start);
    (void)what, (void)size;
    if (!chunk || chunk->memory != memory) return 0;
    sy_lock_acquire(&memory->lock);
    mend_runs(chunk);
    chunk->free = chunk->dirty = 0;
    free_again(chunk);
    chunk->aged &= chunk->free;
    count_used(memory, SY_RUN_UNITS_MAX - sy_count_bits(chunk->free | units_aside(chunk)));
    list_chunk(chunk);
    append_chunk(chunk);
    memory->chunk_count++;
    sy_lock_release(&memory->lock);
    return 0;
}

void sy_chunk_recover(sy_memory *memory) {
    if (memory->torn) {
        empty_lists(memory);
        (void)sy_vmem_each(memory->arena, SY_VMEM_ALLOCATED, list_again, memory);
    }
    sy_lock_acquire(&memory->lock);
    memory->whole_trims = 0;
    for (sy_chunk *chunk = memory->first; chunk; chunk = chunk->all_next) {
        free_again(chunk);
        relist_chunk(chunk);
    }
    sy_lock_release(&memory->lock);
}

/* ---- taking a run, also when there is no room ---- */

bool sy_chunk_find_room(sy_memory *memory) {
    size_t bytes;
    return sy_large_release_kept(memory, &bytes) || retire_unused(memory) ||
           sy_memory_wait_for_trim(memory);
}

sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    const size_t most = SY_RUN_BYTES_MAX;
    if (bytes > most || align > most) {
        errno = ENOMEM;
        return NULL;
    }
    const size_t units = sy_divide_up(bytes, SY_UNIT_BYTES), whole = units * SY_UNIT_BYTES;
    const size_t align_units = align > SY_UNIT_BYTES ? align / SY_UNIT_BYTES : 1;
    const bool large = units + align_units - 1 > SY_RUN_UNITS_MAX;
    const bool grows = large && room > whole; /* then it is filled by sy_run_move */
    const bool writes = !clean && !grows && whole >= SY_GAUGE_BYTES && memory->systems;
    if (large && writes) keep_chunks(memory, whole);
    for (;;) {
        size_t fresh = 0;
        sy_slab *run =
            large ? sy_large_take(memory, whole, align, room < most ? room : most, &fresh)
                  : take_units_of_any(memory, (unsigned)units, (unsigned)align_units, &fresh);
        int error = errno;
        if (run && fresh && writes && !fill(memory, run, &fresh)) continue;
        if (run && !lock_from(run, 0, true)) {
            sy_run_give(run);
            errno = ENOMEM;
            return NULL;
        }
        if (run) {
            if (clean) *clean = memory->systems && fresh == run->bytes;
            if (large && fresh) use_gone(fresh);
            note_growth(memory, fresh);
            return run;
        }
        if (!sy_chunk_find_room(memory)) {
            errno = error;
            return NULL;
        }
    }
}

/* Between large spans the memory moves along, so only the part behind it can get other memory. */
bool sy_run_move(const sy_slab *from, sy_slab *to, size_t bytes) {
    size_t moves = is_large(from) && is_large(to) ? sy_round_up(bytes, SY_UNIT_BYTES) : 0;
    if (is_large(to)) keep_chunks(sy_large_memory(to), to->bytes - moves);
    if (is_large(to) && !sy_large_fill(to, moves)) return false;
    end_watch(from);
    if (moves) return sy_large_move(from, to, moves);
    memcpy((void *)to->start, (void *)from->start, bytes);
    return true;
}

/* ---- walking and counting ---- */

typedef struct sy_run_visitor {
    void (*visit)(sy_slab *run, void *arg);
    void *arg;
} sy_run_visitor;

/* A segment is a chunk, a large span in use, or neither: a kept span, or a segment that the program
 * took from its own arena. */
static int visit_segment(void *arg, unsigned what, uintptr_t start, size_t size) {
    (void)size, (void)what;
    const sy_run_visitor *visitor = arg;
    void *owner = sy_owner_at(start);
    sy_chunk *chunk = chunk_at(start);
    if (owner && !chunk) visitor->visit(owner, visitor->arg);
    for (unsigned unit = 1; chunk && unit < SY_CHUNK_UNITS; unit++)
        if (atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed) == unit)
            visitor->visit(&chunk->slabs[unit - 1], visitor->arg);
    return 0;
}

void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg) {
    sy_run_visitor visitor = {visit, arg};
    (void)sy_vmem_each(memory->arena, SY_VMEM_ALLOCATED, visit_segment, &visitor);
}

void sy_chunk_count_of(const sy_memory *memory_, sy_chunk_stats *stats) {
    sy_memory *memory = (sy_memory *)(uintptr_t)memory_; /* not const: its locks are taken */
    size_t count, used, kept;
    sy_large_count(memory, &count, &used, &kept);
    stats->large_count += count;
    stats->large_bytes += used;
    stats->large_kept += kept;
    sy_lock_acquire(&memory->lock);
    stats->chunks += memory->chunk_count;
    /* Units that a trim has set aside count too; no chunk lists them as free. */
    stats->units_free += memory->chunk_count * SY_RUN_UNITS_MAX -
                         atomic_load_explicit(&memory->units_used, memory_order_relaxed);
    for (const sy_chunk *chunk = memory->first; chunk; chunk = chunk->all_next)
        stats->units_clean += sy_count_bits(chunk->free & ~chunk->dirty);
    sy_lock_release(&memory->lock);
}

static void count_one(sy_memory *memory, void *stats) { sy_chunk_count_of(memory, stats); }

sy_chunk_stats sy_chunk_count(void) {
    sy_chunk_stats stats = {0};
    sy_memory_each(count_one, &stats);
    return stats;
}

static size_t verify_chunk(const sy_chunk *chunk, const sy_memory *memory) {
    size_t wrong = !chunk_is_valid(chunk);
    wrong += sy_owner_at(chunk->start) != (const char *)chunk + SY_OWNER_IS_CHUNK;
    wrong += chunk->memory != memory;
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++) {
        unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
        if (!first) continue; /* free, or set aside by a trim that is under way */
        wrong += chunk->free >> unit & 1;
        wrong += unit < first || unit >= first + units_of(&chunk->slabs[first - 1]);
    }
    return wrong;
}

size_t sy_chunk_verify(sy_memory *memory) {
    size_t wrong = sy_large_verify(memory), listed = 0, seen = 0;
    sy_lock_acquire(&memory->lock);
    for (unsigned list = 0; list < SY_CHUNK_UNITS; list++) {
        wrong += (memory->with[list] != NULL) != (memory->lists >> list & 1);
        for (const sy_chunk *chunk = memory->with[list]; chunk; chunk = chunk->next, listed++)
            wrong += chunk->longest != list;
    }
    const sy_chunk *previous = NULL;
    for (const sy_chunk *chunk = memory->first; chunk; previous = chunk, chunk = chunk->all_next) {
        wrong += verify_chunk(chunk, memory);
        wrong += chunk->all_previous != previous || (previous && chunk->trim < previous->trim);
        seen++;
    }
    wrong += seen != memory->chunk_count || listed != seen || memory->last != previous;
    sy_lock_release(&memory->lock);
    return wrong;
}
