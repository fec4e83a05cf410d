/*
 * reach.c: finds the live objects of caches with SY_AUDIT that something points to. The leak report
 * calls reach.c, and counts all other objects as unreachable. A word reaches an object if it is the
 * address of any byte of the object, or the object's handle. Words are searched
 *
 *   - in private memory that the process has written: data, stacks, other heaps;
 *   - in objects of caches without SY_AUDIT, in spans, and in objects that are being allocated or
 *     freed, guarded objects included;
 *   - in the objects that were reached.
 *
 * The library's own tables are not searched, because they have the address of every object. Free
 * slots and free units are not searched either. (findleaks of illumos' mdb and LeakSanitizer work
 * in the same way.)
 *
 * All of this runs in a copy of the process. So the library's tables and the objects do not change
 * meanwhile, and the search may overwrite some of the library's data:
 *
 *     what is overwritten              in the original         in the copy
 *     record of an object, `word`      LIVE                    FREE once the object is reached
 *     the same, `freed.time`           when it was freed       the next object to look through
 *     boundary tag of an arena of      the address of a span   0, so that it reaches nothing
 *       addresses, `start`               or segment
 *
 * Below: all layers up to cache/.
 */
#include "base/bits.h"
#include "cache/directory.h"
#include "cache/guarded.h"
#include "cache/mixed.h"
#include "cache/watched.h"
#include "chunk/headers.h"
#include "chunk/side.h"
#include "debug/history.h"
#include "magazine/store.h"
#include "os/os.h"
#include "os/pages.h"
#include "report/leaks.h"
#include "vmem/arena.h"

/* A range of addresses that is not searched. */
typedef struct sy_range {
    uintptr_t start, end;
} sy_range;

typedef struct sy_reach {
    uintptr_t stack;     /* the calling thread's stack is searched from here up */
    uintptr_t low, high; /* all slots of caches with SY_AUDIT lie in between */
    uint64_t ordinals;   /* the ordinals of handles are below */
    uintptr_t waiting;   /* the first object that is reached and not searched yet; 0: none */
    sy_range *own;       /* the library's own memory; sorted when it is complete */
    size_t own_count, own_room;
    bool failed; /* there was no memory for `own` */
} sy_reach;

/* ---- the library's own memory ---- */

static size_t bytes_of(size_t ranges) {
    return sy_round_up(ranges * sizeof(sy_range), sy_os_page_size());
}

static void add_own(sy_reach *reach, const void *start, size_t bytes);

/* Makes the table of ranges larger. The table itself is one of the ranges. The old table stays
 * mapped and stays a range, so that no other memory gets its addresses. */
static bool grow_reached(sy_reach *reach) {
    size_t bytes = bytes_of(reach->own_room + 1) * 2;
    sy_range *more = sy_pages_take(bytes, sy_os_page_size(), "slabyard leaks");
    if (!more) return false;
    for (size_t i = 0; i < reach->own_count; i++) more[i] = reach->own[i];
    reach->own = more;
    reach->own_room = bytes / sizeof *more;
    add_own(reach, more, bytes);
    return true;
}

static void add_own(sy_reach *reach, const void *start, size_t bytes) {
    if (reach->own_count == reach->own_room && !grow_reached(reach)) {
        reach->failed = true;
        return;
    }
    uintptr_t at = (uintptr_t)start;
    reach->own[reach->own_count++] = (sy_range){at, at + bytes};
}

static void add_piece(const void *start, size_t bytes, void *reach) {
    add_own(reach, start, bytes);
}

/* Adds the spans of the system's memory to the ranges. In the tags of every arena it overwrites the
 * address of the span or segment, so that this does not reach an object. */
static void take_arena(sy_memory *memory, void *reach) {
    for (sy_boundary *tag = memory->arena->first; tag; tag = tag->next) {
        if (tag->kind == SY_TAG_SPAN && memory->systems)
            add_own(reach, (void *)tag->start, tag->size);
        tag->start = 0;
    }
}

static void take_watch(sy_reach *reach, const sy_watch *watch) {
    if (watch->waiting) add_own(reach, watch->waiting, watch->waiting_max * sizeof(uintptr_t));
    if (watch->history) add_own(reach, watch->history, sy_history_bytes(watch->history));
}

/* ---- caches ---- */

/* Whether the slab's owner is a cache that has this slab in its list. The owner may have been
 * destroyed; its memory can still be read, but may belong to another record. */
static bool is_listed(const sy_slab *slab) {
    const sy_cache *cache = slab->owner;
    if (!cache) return false;
    return slab == (slab->previous ? slab->previous->next : cache->slabs);
}

static void take_cache(sy_reach *reach, sy_cache *cache) {
    if (cache->watch) take_watch(reach, cache->watch);
    if (!(cache->flags & SY_AUDIT)) return;
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        if (slab->start < reach->low) reach->low = slab->start;
        if (slab->start + slab->bytes > reach->high) reach->high = slab->start + slab->bytes;
    }
}

static void each_cache(sy_reach *reach, void (*visit)(sy_reach *reach, sy_cache *cache)) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) visit(reach, cache);
        sy_client_unpin(client);
    }
}

/* The record of the guarded object on whose pages an address lies, if it is of a cache with
 * SY_AUDIT. */
static sy_record *audited_at(uintptr_t address, uintptr_t *object) {
    sy_watch *watch;
    sy_record *record = sy_guard_record(address, object, &watch);
    return record && watch && watch->checks & SY_AUDIT ? record : NULL;
}

/* As audited_at, if that object is live. */
static sy_record *guarded_at(uintptr_t address, uintptr_t *object) {
    sy_record *record = audited_at(address, object);
    return record && sy_record_state(record) == SY_OBJECT_LIVE ? record : NULL;
}

/* ---- searching words ---- */

/* Shell sort: there are few ranges, and it needs no memory. */
static void sort_own(sy_reach *reach) {
    sy_range *own = reach->own;
    for (size_t gap = reach->own_count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < reach->own_count; i++) {
            sy_range range = own[i];
            size_t at = i;
            for (; at >= gap && own[at - gap].start > range.start; at -= gap)
                own[at] = own[at - gap];
            own[at] = range;
        }
}

/* The record of the object in whose slot an address lies, if it is live and of a cache with
 * SY_AUDIT. */
static sy_record *live_at(uintptr_t address, uintptr_t *object) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || !is_listed(slab)) return NULL;
    const sy_cache *cache = slab->owner;
    if (!(cache->flags & SY_AUDIT) || address < slab->first) return NULL;
    size_t index = (address - slab->first) / cache->layout.slot;
    if (index >= slab->slots) return NULL;
    sy_record *record = &sy_watched_records(cache, slab)[index];
    *object = slab->first + index * cache->layout.slot;
    return sy_record_state(record) == SY_OBJECT_LIVE ? record : NULL;
}

/* Whether an address is within the `size` bytes of an object. An object of 0 bytes counts as one
 * byte. */
static bool is_within(uintptr_t address, uintptr_t object, size_t size) {
    return address - object < (size ? size : 1);
}

static void reach_address(sy_reach *reach, uintptr_t address) {
    uintptr_t object;
    bool guarded = sy_guard_owns(address);
    sy_record *record = guarded ? guarded_at(address, &object) : live_at(address, &object);
    if (!record || !is_within(address, object, sy_record_size(record))) return;
    atomic_store_explicit(&record->word, SY_OBJECT_FREE, memory_order_relaxed);
    record->freed.time = reach->waiting;
    reach->waiting = object;
}

/* A handle (slabyard/handle.h) reaches its object. */
static void reach_handle(sy_reach *reach, sy_handle handle) {
    if (!(handle >> SY_HANDLE_GENERATION)) return;
    const sy_slab *slab = sy_slab_at(sy_directory_places()[(uint32_t)handle / 64]);
    if (!slab || !is_listed(slab)) return;
    const sy_cache *cache = slab->owner;
    if (cache->flags & SY_HANDLES)
        reach_address(reach, (uintptr_t)sy_handle_get_inline(cache, handle));
}

/* Sanitizers are switched off where memory of the program is read, since they may forbid to read
 * some of it. */
#define UNCHECKED __attribute__((no_sanitize_address, no_sanitize_thread))

/* The handle that may lie at `start`. It is two words where words have 32 bits. */
UNCHECKED static sy_handle handle_at(uintptr_t start, uintptr_t end) {
    if (sizeof(uintptr_t) == sizeof(sy_handle)) return *(const volatile uintptr_t *)start;
    if (end - start < sizeof(sy_handle)) return 0;
    const volatile uint32_t *half = (const volatile uint32_t *)start;
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return (sy_handle)half[little] << 32 | half[!little];
}

/* Searches memory of the program. */
UNCHECKED static void look_through(sy_reach *reach, uintptr_t start, uintptr_t end) {
    start = sy_round_up(start, sizeof(uintptr_t));
    for (; start + sizeof(uintptr_t) <= end; start += sizeof(uintptr_t)) {
        uintptr_t word = *(const volatile uintptr_t *)start;
        bool may_be = (word >= reach->low && word < reach->high) || sy_guard_owns(word);
        if (may_be) reach_address(reach, word);
        sy_handle handle = handle_at(start, end);
        if ((uint32_t)handle < reach->ordinals) reach_handle(reach, handle);
    }
}

/* The record of an object that has been reached. */
static const sy_record *record_of(uintptr_t object) {
    sy_watch *watch;
    if (sy_guard_owns(object)) return sy_guard_record(object, &object, &watch);
    const sy_slab *slab = sy_slab_at(object);
    const sy_cache *cache = slab->owner;
    uint32_t index = sy_slab_index(slab, &cache->layout, object);
    return &sy_watched_records(cache, slab)[index];
}

/* Searches the objects that were reached: each may reach more. */
static void look_through_waiting(sy_reach *reach) {
    while (reach->waiting) {
        uintptr_t object = reach->waiting;
        const sy_record *record = record_of(object);
        reach->waiting = (uintptr_t)record->freed.time;
        look_through(reach, object, object + sy_record_size(record));
    }
}

/* ---- searching memory ---- */

/* Whether the slot is searched even if nothing points to it. */
static bool is_root(const sy_cache *cache, const sy_slab *slab, uint32_t index) {
    if (!sy_cache_checks(cache)) return !sy_slab_bit(slab->free, index);
    sy_object_state state = sy_record_state(&sy_watched_records(cache, slab)[index]);
    if (state == SY_OBJECT_LIVE) return !(cache->flags & SY_AUDIT);
    return state == SY_OBJECT_TAKEN || state == SY_OBJECT_FREEING;
}

/* Searches the part of a slab from `start` to `end`. */
static void look_at_slots(sy_reach *reach, const sy_slab *slab, uintptr_t start, uintptr_t end) {
    const sy_cache *cache = slab->owner;
    size_t bytes = cache->layout.slot;
    size_t index = start > slab->first ? (start - slab->first) / bytes : 0;
    for (; index < slab->slots && slab->first + index * bytes < end; index++) {
        uintptr_t slot = slab->first + index * bytes, slot_end = slot + bytes;
        if (!is_root(cache, slab, (uint32_t)index)) continue;
        look_through(reach, slot > start ? slot : start, slot_end < end ? slot_end : end);
    }
}

typedef struct sy_part_of_unit {
    sy_reach *reach;
    uintptr_t start, end;
} sy_part_of_unit;

static void look_at_object(void *arg, uintptr_t object, size_t bytes) {
    const sy_part_of_unit *part = arg;
    uintptr_t end = object + bytes;
    look_through(part->reach, object > part->start ? object : part->start,
                 end < part->end ? end : part->end);
}

/* Searches a part of a mixed unit. None of its objects has a record. */
static void look_at_mixed(sy_reach *reach, const sy_slab *unit, uintptr_t start, uintptr_t end) {
    sy_part_of_unit part = {reach, start, end};
    sy_mixed_each(unit, start, end, look_at_object, &part);
}

/* Searches a part of a chunk or large span, if it is in a slab that a cache has, or in a span of
 * the heap. Free units, and runs that are being made or given back, are not searched. */
static void look_at_run(sy_reach *reach, uintptr_t start, uintptr_t end) {
    const sy_slab *run = sy_slab_at(start);
    if (sy_is_mixed(run))
        look_at_mixed(reach, run, start, end);
    else if (run && is_listed(run))
        look_at_slots(reach, run, start, end);
    else if (run && !run->owner && run->first)
        look_through(reach, start, end);
}

/* Searches a part of a page of guarded objects. A live object with SY_AUDIT is searched only when
 * it is reached; a free one is not searched. */
static void look_at_guarded(sy_reach *reach, uintptr_t start, uintptr_t end) {
    uintptr_t object;
    const sy_record *record = audited_at(start, &object);
    sy_object_state state = record ? sy_record_state(record) : SY_OBJECT_TAKEN;
    if (state == SY_OBJECT_TAKEN || state == SY_OBJECT_FREEING) look_through(reach, start, end);
}

/* The first range that ends after the address. If there is none: a range at the end of the address
 * space. */
static sy_range own_after(const sy_reach *reach, uintptr_t address) {
    size_t low = 0, high = reach->own_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reach->own[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reach->own_count ? reach->own[low] : (sy_range){UINTPTR_MAX, UINTPTR_MAX};
}

/* Searches from `start` to the end of the unit, page or range there, or to `end`. Returns where it
 * stopped. */
static uintptr_t look_at(sy_reach *reach, uintptr_t start, uintptr_t end) {
    bool units = sy_owner_at(start) != NULL;
    bool guarded = sy_guard_owns(start);
    size_t step = guarded ? sy_os_page_size() : SY_UNIT_BYTES;
    uintptr_t next = sy_round_down(start, step) + step;
    if (units || guarded) {
        if (next > end) next = end;
        (units ? look_at_run : look_at_guarded)(reach, start, next);
        return next;
    }
    sy_range own = own_after(reach, start);
    if (own.start <= start) return own.end < next ? own.end : next;
    if (next > own.start) next = own.start;
    if (next > end) next = end;
    look_through(reach, start, next);
    return next;
}

static void look_at_piece(void *arg, const sy_os_piece *piece) {
    sy_reach *reach = arg;
    uintptr_t start = piece->start;
    bool own_stack = piece->mapping <= reach->stack && reach->stack < piece->mapping_end;
    if (own_stack && start < reach->stack) start = reach->stack;
    while (start < piece->end) start = look_at(reach, start, piece->end);
    look_through_waiting(reach);
}

/* A program's own memory may be shared memory, which sy_os_each_written does not visit. So slabs in
 * it are searched here. */
static void look_at_shared(sy_reach *reach, sy_cache *cache) {
    if (cache->memory == &sy_memory_main) return;
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
        look_at_slots(reach, slab, slab->start, slab->start + slab->bytes);
    look_through_waiting(reach);
}

bool sy_reach_all(uintptr_t stack) {
    sy_reach reach = {.stack = stack, .low = UINTPTR_MAX};
    reach.ordinals = sy_ordinals_limit();
    const void *directory;
    size_t bytes = sy_directory_range(&directory);
    if (bytes) add_own(&reach, directory, bytes);
    const void *table = sy_guard_table(&bytes);
    if (bytes) add_own(&reach, table, bytes);
    sy_side_each_area(add_piece, &reach);
    sy_header_each_area(add_piece, &reach);
    sy_store_each_segment(add_piece, &reach);
    sy_memory_each(take_arena, &reach);
    each_cache(&reach, take_cache);
    if (reach.failed) return false;
    sort_own(&reach);
    each_cache(&reach, look_at_shared);
    return sy_os_each_written(look_at_piece, &reach) == 0;
}
