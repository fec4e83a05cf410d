#include "chunk/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "chunk/address.h"
#include "chunk/large.h"
#include "chunk/side.h"
#include "os/lock.h"
#include "os/os.h"

static const uint64_t ALL_UNITS = ~UINT64_C(1); /* all but the header's */

static sy_lock lock = SY_LOCK_INIT(SY_RANK_CHUNK);
/* Chunks by the length of their longest free run, and a bit for each list that is not empty. All
 * guarded by lock, as are the chunks' free and dirty words. */
static sy_chunk *chunks_with[SY_CHUNK_UNITS];
static uint64_t lists;
static size_t chunk_count;

static void list_chunk(sy_chunk *chunk) {
    unsigned longest = chunk->longest = sy_longest_run(chunk->free);
    chunk->previous = NULL;
    chunk->next = chunks_with[longest];
    if (chunk->next) chunk->next->previous = chunk;
    chunks_with[longest] = chunk;
    lists |= UINT64_C(1) << longest;
}

static void unlist_chunk(sy_chunk *chunk) {
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        chunks_with[chunk->longest] = chunk->next;
    if (chunk->next) chunk->next->previous = chunk->previous;
    if (!chunks_with[chunk->longest]) lists &= ~(UINT64_C(1) << chunk->longest);
}

static void relist_chunk(sy_chunk *chunk) {
    if (sy_longest_run(chunk->free) == chunk->longest) return;
    unlist_chunk(chunk);
    list_chunk(chunk);
}

static uint64_t units_mask(unsigned unit, unsigned units) { return sy_low_bits(units) << unit; }

static void set_first_unit(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    for (unsigned i = unit; i < unit + units; i++)
        atomic_store_explicit(&chunk->first_unit[i], (uint8_t)first, memory_order_relaxed);
}

/* Takes units out of the free ones; whether they read as zero. */
static bool take_units(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    uint64_t mask = units_mask(unit, units);
    bool clean = !(chunk->dirty & mask);
    chunk->free &= ~mask;
    chunk->dirty &= ~mask;
    set_first_unit(chunk, unit, units, first);
    relist_chunk(chunk);
    return clean;
}

static void give_units(sy_chunk *chunk, unsigned unit, unsigned units) {
    uint64_t mask = units_mask(unit, units);
    set_first_unit(chunk, unit, units, 0);
    chunk->free |= mask;
    chunk->dirty |= mask;
    relist_chunk(chunk);
}

/* A run from a chunk with room, the shortest free run first; NULL if there is none. The lock is
 * held. */
static sy_slab *take_run(unsigned units, unsigned align, bool *clean) {
    uint64_t fit = lists & ~sy_low_bits(units + align - 1);
    if (!fit) return NULL;
    sy_chunk *chunk = chunks_with[sy_lowest_bit(fit)];
    unsigned unit = sy_find_run(chunk->dirty, units, align);
    if (unit == 64) unit = sy_find_run(chunk->free, units, align);
    *clean = take_units(chunk, unit, units, unit);
    sy_slab *run = &chunk->slabs[unit - 1];
    memset(run, 0, sizeof *run);
    run->start = (uintptr_t)chunk + (uintptr_t)unit * SY_UNIT_BYTES;
    run->bytes = (size_t)units * SY_UNIT_BYTES;
    return run;
}

/* Makes a chunk known in which no run is. */
static void open_chunk(sy_chunk *chunk, uint64_t dirty) {
    chunk->free = ALL_UNITS;
    chunk->dirty = dirty;
    sy_lock_acquire(&lock);
    list_chunk(chunk);
    chunk_count++;
    sy_map_set_owner((uintptr_t)chunk, SY_CHUNK_BYTES, chunk);
    sy_lock_release(&lock);
}

/* 0, or -1 with ENOMEM. */
static int add_chunk(void) {
    sy_chunk *chunk = (sy_chunk *)sy_address_take_chunk();
    if (!chunk) return -1;
    open_chunk(chunk, 0);
    return 0;
}

sy_slab *sy_run_take(size_t bytes, size_t align, bool *clean) {
    if (bytes > (size_t)1 << (SY_ADDRESS_BITS - 1) || align > (size_t)1 << (SY_ADDRESS_BITS - 1)) {
        errno = ENOMEM;
        return NULL;
    }
    size_t units = sy_divide_up(bytes, SY_UNIT_BYTES);
    size_t align_units = align > SY_UNIT_BYTES ? align / SY_UNIT_BYTES : 1;
    if (units + align_units - 1 > SY_RUN_UNITS_MAX)
        return sy_large_take(units * SY_UNIT_BYTES, align, clean);
    for (;;) {
        sy_lock_acquire(&lock);
        sy_slab *run = take_run((unsigned)units, (unsigned)align_units, clean);
        sy_lock_release(&lock);
        if (run || add_chunk() != 0) return run;
    }
}

static bool is_large(const sy_slab *run) { return sy_owner_at(run->start) == run; }

static sy_chunk *chunk_of(const sy_slab *run) {
    return (sy_chunk *)(run->start & ~(uintptr_t)(SY_CHUNK_BYTES - 1));
}

static unsigned unit_of(const sy_slab *run) {
    return run->start >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
}

static unsigned units_of(const sy_slab *run) { return (unsigned)(run->bytes >> SY_UNIT_SHIFT); }

void sy_run_give(sy_slab *run) {
    if (is_large(run)) {
        sy_large_give(run);
        return;
    }
    sy_lock_acquire(&lock);
    give_units(chunk_of(run), unit_of(run), units_of(run));
    sy_lock_release(&lock);
}

bool sy_run_resize(sy_slab *run, size_t bytes) {
    if (is_large(run)) return sy_large_resize(run, bytes);
    size_t wanted = sy_divide_up(bytes, SY_UNIT_BYTES);
    unsigned unit = unit_of(run), have = units_of(run);
    if (wanted == 0 || wanted > SY_CHUNK_UNITS - unit) return false;
    unsigned units = (unsigned)wanted;
    sy_chunk *chunk = chunk_of(run);
    bool done = true;
    sy_lock_acquire(&lock);
    if (units < have) {
        give_units(chunk, unit + units, have - units);
    } else if (units > have) {
        uint64_t more = units_mask(unit + have, units - have);
        done = (chunk->free & more) == more;
        if (done) take_units(chunk, unit + have, units - have, unit);
    }
    if (done) run->bytes = (size_t)units * SY_UNIT_BYTES;
    sy_lock_release(&lock);
    return done;
}

void sy_chunk_punched(const sy_slab *run) {
    if (is_large(run)) return;
    sy_chunk *chunk = chunk_of(run);
    sy_lock_acquire(&lock);
    bool first = !chunk->punched;
    chunk->punched = true;
    sy_lock_release(&lock);
    if (first) sy_os_huge(chunk, SY_CHUNK_BYTES, false);
}

/* Discards each run of units in `units`; gives those for which that succeeded. */
static uint64_t discard_units(const sy_chunk *chunk, uint64_t units) {
    uint64_t done = 0;
    while (units) {
        unsigned first = sy_lowest_bit(units);
        uint64_t rest = ~(units >> first);
        unsigned count = rest ? sy_lowest_bit(rest) : 64;
        uint64_t mask = units_mask(first, count);
        char *start = (char *)chunk + (size_t)first * SY_UNIT_BYTES;
        if (sy_os_discard(start, (size_t)count * SY_UNIT_BYTES) == 0) done |= mask;
        units &= ~mask;
    }
    return done;
}

/* Gives a chunk without runs back, header included; the lock is held and let go. */
static size_t retire_chunk(sy_chunk *chunk) {
    size_t bytes = sy_count_bits(chunk->dirty) * (size_t)SY_UNIT_BYTES + sizeof *chunk;
    unlist_chunk(chunk);
    chunk_count--;
    sy_map_set_owner((uintptr_t)chunk, SY_CHUNK_BYTES, NULL);
    sy_lock_release(&lock);
    if (sy_os_discard(chunk, SY_CHUNK_BYTES) != 0) {
        open_chunk(chunk, ALL_UNITS); /* whether its content is lost or not, nobody knows */
        return 0;
    }
    sy_address_give_chunk((uintptr_t)chunk);
    return bytes;
}

/* Dirty units are taken out of the free ones meanwhile, so that no lock is held across the system
 * calls. */
static size_t trim_chunk(uintptr_t address) {
    sy_lock_acquire(&lock);
    sy_chunk *chunk = sy_owner_at(address);
    if (!chunk) {
        sy_lock_release(&lock);
        return 0;
    }
    if (chunk->free == ALL_UNITS) return retire_chunk(chunk);
    uint64_t claimed = chunk->dirty;
    chunk->free &= ~claimed;
    chunk->dirty = 0;
    relist_chunk(chunk);
    sy_lock_release(&lock);
    if (!claimed) return 0;

    uint64_t done = discard_units(chunk, claimed);

    sy_lock_acquire(&lock);
    chunk->free |= claimed;
    chunk->dirty |= claimed & ~done;
    relist_chunk(chunk);
    sy_lock_release(&lock);
    return sy_count_bits(done) * (size_t)SY_UNIT_BYTES;
}

size_t sy_chunk_trim(void) {
    size_t bytes = sy_large_trim();
    uintptr_t address;
    for (size_t index = 0; (address = sy_address_chunk(index)) != 0; index++)
        bytes += trim_chunk(address);
    return bytes;
}

sy_chunk_stats sy_chunk_count(void) {
    sy_chunk_stats stats = {0};
    sy_large_count(&stats.large_bytes, &stats.large_kept);
    sy_lock_acquire(&lock);
    stats.chunks = chunk_count;
    for (unsigned list = 0; list < SY_CHUNK_UNITS; list++)
        for (const sy_chunk *chunk = chunks_with[list]; chunk; chunk = chunk->next) {
            stats.units_free += sy_count_bits(chunk->free);
            stats.units_clean += sy_count_bits(chunk->free & ~chunk->dirty);
        }
    sy_lock_release(&lock);
    return stats;
}

static size_t verify_chunk(const sy_chunk *chunk, unsigned list) {
    size_t wrong = (chunk->free & 1) != 0;
    wrong += (chunk->dirty & ~chunk->free) != 0;
    wrong += chunk->longest != list || sy_longest_run(chunk->free) != list;
    wrong += sy_owner_at((uintptr_t)chunk) != chunk;
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++) {
        unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
        if (!first) continue; /* free, or claimed by a trim under way */
        wrong += chunk->free >> unit & 1;
        wrong += unit < first || unit >= first + units_of(&chunk->slabs[first - 1]);
    }
    return wrong;
}

size_t sy_chunk_verify(void) {
    size_t wrong = 0, seen = 0;
    sy_lock_acquire(&lock);
    for (unsigned list = 0; list < SY_CHUNK_UNITS; list++) {
        wrong += (chunks_with[list] != NULL) != (lists >> list & 1);
        for (const sy_chunk *chunk = chunks_with[list]; chunk; chunk = chunk->next) {
            wrong += verify_chunk(chunk, list);
            seen++;
        }
    }
    wrong += seen != chunk_count;
    sy_lock_release(&lock);
    return wrong;
}

void sy_chunk_lock_for_fork(void) {
    sy_lock_acquire(&lock);
    sy_large_lock_for_fork();
    sy_address_lock_for_fork();
    sy_side_lock_for_fork();
}

void sy_chunk_unlock_after_fork(void) {
    sy_side_unlock_after_fork();
    sy_address_unlock_after_fork();
    sy_large_unlock_after_fork();
    sy_lock_release(&lock);
}
