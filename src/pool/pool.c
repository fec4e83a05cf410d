/*
 * pool.c: creates, grows, resets and destroys pools. The inline functions of pool.h allocate and
 * free slots; they call sy_pool_grow here when the pool has no free slot left.
 *
 * Above: programs, and the layers that need records of one size under a lock of their own.
 * Below: os.h; checked.h, for pools with checks on. A pool takes no lock, and shares nothing with
 * other pools.
 *
 * A pool is a chain of extents. Each extent is one reservation of address space. It is carved into
 * slots from its front, and committed ahead of the carving. The last bytes of an extent are the
 * record of the next extent. When this record is written, the slots beside it have been given out
 * already, so growing touches no page of the new extent. The last bytes of the first extent are the
 * pool itself, which ends with that record:
 *
 *      base                       bump         limit     committed                base + bytes
 *      |  given, or on free list  |  to carve  |  < a slot  |  reserved  | next    |
 *      +--------------------------+------------+------------+------------+---------+
 *      |<----------------- stride * n ---------------------------------->|
 *
 * A base is aligned for the objects and at least to a page, and a stride is a multiple of the
 * alignment. So every slot is aligned, slots whose size is a power of two pack without loss, and a
 * slot whose size is a multiple of a cache line has its lines to itself.
 *
 * What always holds (sy_pool_audit):
 *   - pool->extent is in the chain; those before it are committed whole and carved whole, those
 *     after it were left by a reset.
 *   - base <= bump <= limit <= committed, and bump and limit are whole strides from base.
 *   - The free list has each of its slots once, and all of them were carved.
 */
#include <slabyard/pool.h>

#include "audit.h"
#include "base/bits.h"
#include "debug/fault.h"
#include "debug/options.h"
#include "debug/watch.h"
#include "os/invariant.h"
#include "os/os.h"
#include "pool/checked.h"

#include <errno.h>
#include <stdbool.h>

/* A reservation of `bytes`, usable up to `committed`. No reservation: all zero. */
typedef struct sy_pool_extent {
    unsigned char *base;
    size_t bytes;
    unsigned char *committed;
} sy_pool_extent;

enum { LINE_BYTES = 64 };

/* The last bytes of the first extent. */
typedef struct whole_pool {
    _Alignas(LINE_BYTES) sy_pool pool; /* first: callers hold its address */
    uintptr_t word;                    /* for the caller (sy_pool_word) */
    unsigned align_log2;               /* of every extent */
    unsigned flags;
    size_t size; /* of an object, as it was asked for */
    char name[SY_POOL_NAME_MAX + 1];
    unsigned char unused[24]; /* of the last line */
    sy_pool_extent first;
    sy_pool_extent next; /* last, as in every extent */
} whole_pool;

enum {
    DEFAULT_ALIGN = 16,
    SLOT_BYTES_MIN = 8, /* a pointer fits; also where it has 4 bytes, since numbers may have 8 */
    DEFAULT_CHUNK_BYTES = 64 << 10,
    HUGE_BYTES = 2 << 20,
    EXTENT_BYTES_MAX = 1 << 30,
    /* The most steps in which an extent is committed. Each step costs a system call. */
    COMMIT_STEPS = 8,
};

_Static_assert(sizeof(sy_pool) == 8 * sizeof(void *),
               "the inline words fill the line's second half");
_Static_assert(offsetof(whole_pool, next) + sizeof(sy_pool_extent) == sizeof(whole_pool),
               "the record of the next extent is the last bytes of the first, as of any other");
_Static_assert(offsetof(whole_pool, word) == sizeof(sy_pool), "where sy_pool_word says");

static whole_pool *whole_of(const sy_pool *pool) { return (whole_pool *)(uintptr_t)pool; }

/* Rounds up to a multiple of `align`, a power of two. If the result would overflow it is SIZE_MAX,
 * a size that no request can get. */
static size_t round_up(size_t bytes, size_t align) {
    return bytes > SIZE_MAX - (align - 1) ? SIZE_MAX : (bytes + align - 1) & ~(align - 1);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- extents ---- */

/* The record of the next extent, in the last bytes of this one. Only once this one is committed
 * whole. */
static sy_pool_extent *next_of(const sy_pool_extent *extent) {
    return (sy_pool_extent *)(void *)(extent->base + extent->bytes - sizeof(sy_pool_extent));
}

static bool committed_whole(const sy_pool_extent *extent) {
    return extent->committed == extent->base + extent->bytes;
}

/* Slots that can be carved from the extent as it is committed now. */
static size_t slots_in(const whole_pool *whole, const sy_pool_extent *extent) {
    bool first = extent == &whole->first;
    size_t trailer = first ? sizeof(whole_pool) : sizeof(sy_pool_extent);
    size_t committed = (size_t)(extent->committed - extent->base);
    size_t usable = extent->bytes - trailer;
    size_t slots = (committed < usable ? committed : usable) / whole->pool.stride;
    bool bounded = whole->pool.capacity != 0;
    return bounded && slots > whole->pool.capacity ? whole->pool.capacity : slots;
}

/* Carve from the start of the extent. */
static void enter_extent(whole_pool *whole, sy_pool_extent *extent) {
    whole->pool.extent = extent;
    whole->pool.bump = extent->base;
    whole->pool.limit = extent->base + slots_in(whole, extent) * whole->pool.stride;
}

static bool reserve(sy_pool_extent *extent, size_t bytes, size_t align, unsigned flags) {
    if (bytes > PTRDIFF_MAX) {
        errno = ENOMEM;
        return false;
    }
    size_t start = larger(align, sy_os_page_size());
    if (bytes >= HUGE_BYTES) start = larger(start, HUGE_BYTES);
    unsigned char *base = sy_os_reserve(bytes, start, "slabyard:pool");
    if (base == NULL) return false;
    *extent = (sy_pool_extent){base, bytes, base};
    if ((flags & SY_POOL_HUGE) != 0) {
        int saved = errno;
        (void)sy_os_huge(base, bytes, true);
        errno = saved;
    }
    return true;
}

/* Releases the extent's address space. If the system cannot (a hole may need one mapping too many),
 * gives its memory back. */
static void release(const sy_pool_extent *extent) {
    int saved = errno;
    size_t committed = (size_t)(extent->committed - extent->base);
    if (sy_os_release(extent->base, extent->bytes) != 0 && committed != 0)
        (void)sy_os_discard(extent->base, committed);
    errno = saved;
}

/* Commits `bytes` more, and backs them with memory if the pool's flags say so. If that fails the
 * memory is given up again. The pages stay accessible, which costs nothing. */
static bool commit_extent(sy_pool_extent *extent, size_t bytes, unsigned flags) {
    if (sy_os_commit(extent->committed, bytes) != 0) return false;
    if ((flags & SY_POOL_PREFAULT) != 0 && sy_os_populate(extent->committed, bytes) != 0) {
        int saved = errno;
        (void)sy_os_discard(extent->committed, bytes);
        errno = saved;
        return false;
    }
    extent->committed += bytes;
    return true;
}

/* base <= bump <= limit <= committed, and bump and limit are whole strides from base. */
static bool pool_is_bounded(const sy_pool *pool) {
    const sy_pool_extent *extent = pool->extent;
    if (pool->limit > extent->committed || pool->bump > pool->limit) return false;
    size_t carved = (size_t)(pool->bump - extent->base),
           room = (size_t)(pool->limit - extent->base);
    return pool->bump >= extent->base && carved % pool->stride == 0 && room % pool->stride == 0;
}

/* ---- growing ---- */

/* The offset in the extent up to which to commit next: at least `step` bytes on, or the extent's
 * end. A large step ends at the end of a huge page. */
static size_t commit_end(const sy_pool_extent *extent, size_t step) {
    size_t granule = step >= HUGE_BYTES ? HUGE_BYTES : sy_os_page_size();
    size_t end = round_up((size_t)(extent->committed - extent->base) + step, granule);
    return end < extent->bytes ? end : extent->bytes;
}

/* Commit the next step of the extent, a large one if the system grants it. */
static bool commit_step(const whole_pool *whole, sy_pool_extent *extent) {
    size_t done = (size_t)(extent->committed - extent->base);
    size_t least = larger(whole->pool.chunk_bytes, whole->pool.stride);
    size_t most = larger(least, extent->bytes / COMMIT_STEPS);
    if ((whole->flags & SY_POOL_PREFAULT) != 0) most = least;
    return commit_extent(extent, commit_end(extent, most) - done, whole->flags) ||
           (most > least && commit_extent(extent, commit_end(extent, least) - done, whole->flags));
}

/* Reserves an extent behind the last one, as long as all extents together. If there is no room, it
 * tries half of that, a quarter, and so on, down to one chunk or one slot. Then commits its first
 * step; if that fails, releases the extent. */
static bool add_extent(const whole_pool *whole, size_t reserved, sy_pool_extent *extent) {
    size_t slot = whole->pool.stride + sizeof(sy_pool_extent);
    size_t least = round_up(larger(whole->pool.chunk_bytes, slot), sy_os_page_size());
    size_t bytes = reserved < EXTENT_BYTES_MAX ? reserved : EXTENT_BYTES_MAX;
    bytes = round_up(larger(bytes, least), sy_os_page_size());
    while (!reserve(extent, bytes, (size_t)1 << whole->align_log2, whole->flags)) {
        if (bytes == least) return false;
        bytes = larger(bytes / 2 & ~(sy_os_page_size() - 1), least);
    }
    if (commit_step(whole, extent)) return true;
    release(extent);
    return false;
}

static size_t bytes_reserved(const whole_pool *whole) {
    size_t bytes = 0;
    const sy_pool_extent *extent = &whole->first;
    for (;; extent = next_of(extent)) {
        bytes += extent->bytes;
        if (extent == whole->pool.extent) return bytes;
    }
}

/* Moves from a carved extent to the next one. A reset may have left one, else one is made now. */
static bool enter_next(whole_pool *whole) {
    sy_pool_extent *next = next_of(whole->pool.extent);
    if (next->base == NULL) {
        sy_pool_extent made;
        if (!add_extent(whole, bytes_reserved(whole), &made)) return false;
        *next = made;
    }
    whole->pool.carved_before += slots_in(whole, whole->pool.extent);
    enter_extent(whole, next);
    return true;
}

/* Make bump < limit. Every step of the loop commits more or moves on, and each extent holds a slot
 * once it is committed whole. */
static bool grow_pool(whole_pool *whole) {
    sy_pool *pool = &whole->pool;
    while (pool->bump == pool->limit) {
        if (committed_whole(pool->extent)) {
            if (!enter_next(whole)) return false;
        } else {
            if (!commit_step(whole, pool->extent)) return false;
            pool->limit = pool->extent->base + slots_in(whole, pool->extent) * pool->stride;
        }
    }
    SY_INVARIANT(pool_is_bounded(pool));
    return true;
}

void *SY_ABI_NAME(sy_pool_grow)(sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_alloc(pool);
    SY_INVARIANT(pool_is_bounded(pool));
    bool bounded = pool->capacity != 0;
    if (bounded || !grow_pool(whole_of(pool))) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *slot = pool->bump;
    pool->bump = slot + pool->stride;
    return slot;
}

void SY_ABI_NAME(sy_pool_freed_twice)(sy_pool *pool, void *object) {
    int error = errno;
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_freed_twice(pool, object);
    } else {
        const sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE,
                                .cache = whole_of(pool)->name,
                                .object_size = whole_of(pool)->size,
                                .address = object};
        sy_fault_raise(&fault);
    }
    errno = error;
}

/* The free reports an object that is not live. */
bool SY_ABI_NAME(sy_pool_may_free_slow)(sy_pool *pool, void *object) {
    if (!object) return true;
    if (!sy_pool_is_checked(pool)) {
        if (object != pool->free) return true;
        SY_ABI_NAME(sy_pool_freed_twice)(pool, object);
        return false;
    }
    if (sy_checked_pool_is_live(pool, object)) return true;
    sy_checked_pool_free(pool, object);
    return false;
}

void SY_ABI_NAME(sy_pool_free_slow)(sy_pool *pool, void *object) {
    sy_checked_pool_free(pool, object);
}

/* ---- public functions ---- */

enum { POOL_CHECKS = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_ZERO };

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

static bool valid(const sy_pool_config *config) {
    if (config == NULL || config->size == 0 || config->size > PTRDIFF_MAX) return false;
    if (config->align != 0 && (!is_power_of_two(config->align) || config->align > PTRDIFF_MAX))
        return false;
    const unsigned known = SY_POOL_PREFAULT | SY_POOL_HUGE | POOL_CHECKS;
    if ((config->flags & ~known) != 0) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof config->reserved[0]; i++) {
        if (config->reserved[i] != 0) return false;
    }
    return true;
}

static size_t align_of(const sy_pool_config *config) {
    size_t align = config->align;
    if (align == 0) align = config->size < DEFAULT_ALIGN ? SLOT_BYTES_MIN : DEFAULT_ALIGN;
    return larger(align, SLOT_BYTES_MIN);
}

static size_t chunk_of(const sy_pool_config *config) {
    size_t bytes = config->chunk_bytes == 0 ? DEFAULT_CHUNK_BYTES : config->chunk_bytes;
    if ((config->flags & SY_POOL_HUGE) != 0) bytes = round_up(bytes, HUGE_BYTES);
    return round_up(bytes, sy_os_page_size());
}

/* The bytes of the first extent: all slots of a bounded pool, or a chunk with at least one slot,
 * and the pool itself behind them. SIZE_MAX if that overflows. */
static size_t first_extent_bytes(const sy_pool_config *config, size_t stride) {
    size_t slots = config->capacity == 0 ? 1 : config->capacity;
    if (slots > (PTRDIFF_MAX - sizeof(whole_pool)) / stride) return SIZE_MAX;
    size_t bytes = slots * stride + sizeof(whole_pool);
    if (config->capacity == 0) bytes = larger(bytes, chunk_of(config));
    return round_up(bytes, sy_os_page_size());
}

sy_pool *sy_pool_create(const sy_pool_config *config) {
    if (!valid(config)) {
        errno = EINVAL;
        return NULL;
    }
    size_t align = align_of(config);
    sy_options_load();
    unsigned checks = sy_watch_untold(config->flags, config->name ? config->name : "pool");
    if ((checks & POOL_CHECKS) != 0)
        return sy_checked_pool_create(config, align, checks & POOL_CHECKS);
    size_t stride = round_up(larger(config->size, SLOT_BYTES_MIN), align);
    sy_pool_extent first;
    if (!reserve(&first, first_extent_bytes(config, stride), align, config->flags)) return NULL;
    if (!commit_extent(&first, first.bytes, config->flags)) {
        release(&first);
        return NULL;
    }
    void *end = first.base + first.bytes;
    whole_pool *whole = (whole_pool *)end - 1;
    *whole = (whole_pool){.flags = config->flags, .first = first};
    whole->align_log2 = sy_lowest_bit(align);
    whole->size = config->size;
    const char *name = config->name ? config->name : "pool";
    for (size_t i = 0; i < SY_POOL_NAME_MAX && name[i]; i++) whole->name[i] = name[i];
    whole->pool.capacity = config->capacity;
    whole->pool.chunk_bytes = chunk_of(config);
    whole->pool.stride = stride;
    enter_extent(whole, &whole->first);
    return &whole->pool;
}

void sy_pool_destroy(sy_pool *pool) {
    if (pool == NULL) return;
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_destroy(pool);
        return;
    }
    sy_pool_extent extent = whole_of(pool)->first;
    while (extent.base != NULL) {
        sy_pool_extent next = {0};
        if (committed_whole(&extent)) next = *next_of(&extent);
        release(&extent);
        extent = next;
    }
}

void sy_pool_reset(sy_pool *pool) {
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_reset(pool);
        return;
    }
    whole_pool *whole = whole_of(pool);
    pool->free = NULL;
    pool->carved_before = 0;
    enter_extent(whole, &whole->first);
}

size_t sy_pool_trim(sy_pool *pool) {
    if (sy_pool_is_checked(pool) || sy_pool_in_use(pool) != 0) return 0;
    whole_pool *whole = whole_of(pool);
    if ((whole->flags & SY_POOL_PREFAULT) != 0) return 0;
    sy_pool_reset(pool);
    size_t bytes = 0;
    sy_pool_extent extent = whole->next;
    whole->next = (sy_pool_extent){0};
    while (extent.base != NULL) {
        sy_pool_extent next = {0};
        if (committed_whole(&extent)) next = *next_of(&extent);
        bytes += (size_t)(extent.committed - extent.base);
        release(&extent);
        extent = next;
    }
    size_t before_pool = (size_t)((unsigned char *)whole - whole->first.base);
    before_pool &= ~(sy_os_page_size() - 1);
    int saved = errno;
    if (before_pool != 0 && sy_os_discard(whole->first.base, before_pool) == 0)
        bytes += before_pool;
    errno = saved;
    return bytes;
}

static size_t slots_carved(const sy_pool *pool) {
    return pool->carved_before + (size_t)(pool->bump - pool->extent->base) / pool->stride;
}

size_t sy_pool_in_use(const sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_in_use(pool);
    size_t in_use = slots_carved(pool);
    for (const void *slot = pool->free; slot != NULL && in_use > 0; in_use--)
        slot = *(const sy_pool_link *)slot;
    return in_use;
}

size_t sy_pool_slot_size(const sy_pool *pool) {
    return sy_pool_is_checked(pool) ? sy_checked_pool_slot_size(pool) : pool->stride;
}

size_t sy_pool_capacity(const sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_capacity(pool);
    const whole_pool *whole = whole_of(pool);
    size_t slots = 0;
    const sy_pool_extent *extent = &whole->first;
    for (; extent->base != NULL; extent = next_of(extent)) {
        slots += slots_in(whole, extent);
        if (!committed_whole(extent)) break;
    }
    return slots;
}

/* ---- invariants ---- */

/* Whether a carved slot begins at the address. */
static bool was_carved(const whole_pool *whole, const void *address) {
    const unsigned char *slot = address;
    const sy_pool_extent *extent = &whole->first;
    for (;; extent = next_of(extent)) {
        const unsigned char *end = extent->base + slots_in(whole, extent) * whole->pool.stride;
        if (extent == whole->pool.extent) end = whole->pool.bump;
        if (slot >= extent->base && slot < end)
            return (size_t)(slot - extent->base) % whole->pool.stride == 0;
        if (extent == whole->pool.extent) return false;
    }
}

static const char *audit_extents(const whole_pool *whole) {
    size_t before = 0;
    const sy_pool_extent *extent = &whole->first;
    while (extent != whole->pool.extent) {
        if (extent->base == NULL) return "the extent being carved is not in the chain";
        if (!committed_whole(extent)) return "an extent was left before it was committed whole";
        before += slots_in(whole, extent);
        extent = next_of(extent);
    }
    if (before != whole->pool.carved_before) return "carved_before is not what lies before";
    return NULL;
}

static const char *audit_carving(const sy_pool *pool) {
    const sy_pool_extent *extent = pool->extent;
    size_t slots = slots_in(whole_of(pool), extent);
    if (pool->limit != extent->base + slots * pool->stride)
        return "limit is not the last slot's end";
    if (pool->bump < extent->base || pool->bump > pool->limit) return "bump is out of its extent";
    if ((size_t)(pool->bump - extent->base) % pool->stride != 0) return "bump is not at a slot";
    return NULL;
}

const char *sy_pool_audit(const sy_pool *pool) {
    if (sy_pool_is_checked(pool))
        return sy_checked_pool_verify(pool) ? "an object is damaged" : NULL;
    const char *broken = audit_extents(whole_of(pool));
    if (broken == NULL) broken = audit_carving(pool);
    if (broken != NULL) return broken;
    size_t left = slots_carved(pool);
    for (const void *slot = pool->free; slot != NULL; left--) {
        if (!was_carved(whole_of(pool), slot)) return "the free list leaves the slots given";
        if (left == 0) return "the free list is a circle: something was freed twice";
        slot = *(const sy_pool_link *)slot;
    }
    return NULL;
}
