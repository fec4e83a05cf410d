/*
 * checked.c: pools with checks on. They have the same functions as plain pools, and keep their
 * records and free list outside of the slots.
 */
#include "pool/checked.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "debug/fault.h"
#include "debug/options.h"
#include "debug/watch.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

/* Of address space, for an unbounded pool. */
static const size_t SLOTS_BYTES =
    (size_t)(SY_OS_SERVICES & SY_OS_FREE_ADDRESSES ? SY_ADDRESS_SPACE(65536, 64) : 64) << 20;
enum { STEP_BYTES = 64 << 10 }; /* committed at a time */

/* A range of addresses that is used from its front. */
typedef struct sy_range {
    char *start;
    size_t bytes, committed;
} sy_range;

typedef struct checked_pool {
    _Alignas(64) sy_pool pool; /* first: callers hold its address */
    uintptr_t word;            /* for the caller (sy_pool_word) */
    char name[SY_POOL_NAME_MAX + 1];
    sy_watch watch;
    size_t size, lead;    /* of an object; bytes before the first */
    _Atomic size_t slots; /* given out so far, freed ones included */
    size_t most;          /* slots that fit */
    size_t live, free_count;
    sy_range memory, records, numbers;
    struct checked_pool *next; /* in the list; guarded by its lock */
    bool passed_over;          /* it is being reset; guarded by the list's lock */
} checked_pool;

_Static_assert(offsetof(checked_pool, word) == sizeof(sy_pool), "where sy_pool_word says");

static checked_pool *checked_whole_of(const sy_pool *pool) {
    return (checked_pool *)(uintptr_t)pool;
}

/* ---- memory ---- */

static bool reserve(sy_range *range, size_t bytes, size_t align) {
    range->bytes = sy_round_up(bytes, STEP_BYTES);
    size_t least = align > sy_os_page_size() ? align : sy_os_page_size();
    range->start = sy_os_reserve(range->bytes, least, "slabyard:checked pool");
    return range->start;
}

static void release(const sy_range *range) {
    int error = errno;
    if (range->start) (void)sy_os_release(range->start, range->bytes);
    errno = error;
}

/* Commits the first `bytes` of the range. */
static bool use(sy_range *range, size_t bytes) {
    if (bytes <= range->committed) return true;
    size_t end = sy_round_up(bytes, STEP_BYTES);
    if (sy_os_commit(range->start + range->committed, end - range->committed) != 0) return false;
    range->committed = end;
    return true;
}

/* ---- slots ---- */

static char *object_at(const checked_pool *pool, size_t slot) {
    return pool->memory.start + pool->lead + slot * pool->pool.stride;
}

static sy_record *record_at(const checked_pool *pool, size_t slot) {
    return (sy_record *)(void *)pool->records.start + slot;
}

static bool use_slots(checked_pool *pool, size_t slots) {
    return use(&pool->memory, pool->lead + slots * pool->pool.stride) &&
           use(&pool->records, slots * sizeof(sy_record)) &&
           use(&pool->numbers, slots * sizeof(size_t));
}

/* Takes the slot that was freed last, or else a new one, or else one from the quarantine. */
static bool take_slot(checked_pool *pool, size_t *slot) {
    if (!pool->free_count && (pool->slots == pool->most || !use_slots(pool, pool->slots + 1))) {
        uintptr_t waited; /* the oldest in quarantine, if there is one */
        bool any = sy_watch_next(&pool->watch, &waited);
        *slot = waited;
        return any;
    }
    const size_t *numbers = (const size_t *)(const void *)pool->numbers.start;
    *slot = pool->free_count ? numbers[--pool->free_count] : pool->slots++;
    return true;
}

static void put_slot(checked_pool *pool, size_t slot) {
    ((size_t *)(void *)pool->numbers.start)[pool->free_count++] = slot;
}

/* ---- the list of all checked pools ---- */

enum { TOLD_MAX = 16 }; /* faults of one walk that are described; further ones are counted */

typedef struct pool_walk {
    bool free_only; /* live objects are passed over */
    size_t wrong, told;
    sy_fault faults[TOLD_MAX];
    char names[TOLD_MAX][SY_POOL_NAME_MAX + 1]; /* a pool may be gone when its fault is reported */
} pool_walk;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_POOLS);
static checked_pool *pools; /* guarded by lock */

static void list_pool(checked_pool *pool) {
    sy_lock_acquire(&lock);
    pool->next = pools;
    sy_fork_order();
    pools = pool;
    sy_lock_release(&lock);
}

static void unlist_pool(const checked_pool *pool) {
    sy_lock_acquire(&lock);
    checked_pool **at = &pools;
    while (*at != pool) at = &(*at)->next;
    *at = pool->next;
    sy_lock_release(&lock);
}

static void pass_pool_over(checked_pool *pool, bool passed_over) {
    sy_lock_acquire(&lock);
    pool->passed_over = passed_over;
    sy_lock_release(&lock);
}

static void look_at_pool(const checked_pool *pool, pool_walk *walk) {
    for (size_t slot = 0; slot < pool->slots; slot++) {
        const sy_record *record = record_at(pool, slot);
        sy_fault fault;
        if (walk->free_only && sy_record_state(record) != SY_OBJECT_FREE) continue;
        if (!sy_watch_look(&pool->watch, record, object_at(pool, slot), &fault)) continue;
        walk->wrong++;
        if (walk->told == TOLD_MAX) continue;
        char *name = walk->names[walk->told];
        memcpy(name, pool->name, sizeof pool->name);
        fault.cache = name;
        walk->faults[walk->told++] = fault;
    }
}

/* Looks at all pools under the lock. Then calls `found` for each fault described, without it. */
static size_t look_at_pools(bool free_only, void (*found)(const sy_fault *fault)) {
    pool_walk walk;
    walk.free_only = free_only;
    walk.wrong = walk.told = 0;
    sy_lock_acquire(&lock);
    for (const checked_pool *pool = pools; pool; pool = pool->next)
        if (!pool->passed_over) look_at_pool(pool, &walk);
    sy_lock_release(&lock);
    for (size_t i = 0; i < walk.told; i++) found(&walk.faults[i]);
    return walk.wrong;
}

size_t sy_checked_pools_verify(void) { return look_at_pools(false, sy_fault_tell); }

static void verify_pools_at_exit(void) {
    if (atomic_load_explicit(&sy_options_now.exit_check, memory_order_relaxed))
        look_at_pools(true, sy_fault_raise);
}

static void hold_pools(void) { sy_lock_hold(&lock); }

/* Each change of the list is one store. So the list is whole in the child of a fork, even if
 * another thread of the parent was changing it. */
static void drop_pools(void) { sy_lock_drop(&lock); }

const sy_part sy_pools_part = {.hold = hold_pools, .drop = drop_pools};

/* ---- creation ---- */

static bool reserve_all(checked_pool *pool, size_t align) {
    return reserve(&pool->memory, pool->lead + pool->most * pool->pool.stride, align) &&
           reserve(&pool->records, pool->most * sizeof(sy_record), 1) &&
           reserve(&pool->numbers, pool->most * sizeof(size_t), 1);
}

static void release_all(checked_pool *pool) {
    release(&pool->memory);
    release(&pool->records);
    release(&pool->numbers);
    pool->memory = pool->records = pool->numbers = (sy_range){0};
}

/* Reserves the ranges of the pool. For an unbounded pool the number of slots is halved until the
 * address space has room for them. */
static bool reserve_slots(checked_pool *pool, size_t capacity, size_t align) {
    if (capacity) {
        pool->most = capacity;
        return capacity <= PTRDIFF_MAX / 2 / pool->pool.stride && reserve_all(pool, align);
    }
    for (pool->most = SLOTS_BYTES / pool->pool.stride + 1; pool->most; pool->most /= 2) {
        if (reserve_all(pool, align)) return true;
        release_all(pool);
    }
    return false;
}

static size_t pool_bytes(void) { return sy_round_up(sizeof(checked_pool), sy_os_page_size()); }

static void sy_checked_pool_give_up(checked_pool *pool) {
    release_all(pool);
    sy_watch_close(&pool->watch);
    sy_pages_give(pool, pool_bytes());
}

sy_pool *sy_checked_pool_create(const sy_pool_config *config, size_t align, unsigned checks) {
    size_t zone = sy_watch_zone(checks);
    checked_pool *pool = sy_pages_take(pool_bytes(), sy_os_page_size(), "slabyard:checked pool");
    if (!pool) return NULL;
    const char *name = config->name ? config->name : "pool";
    for (size_t i = 0; i < SY_POOL_NAME_MAX && name[i]; i++) pool->name[i] = name[i];
    /* An inlined free writes a pointer into the object. */
    pool->size = config->size < sizeof(void *) ? sizeof(void *) : config->size;
    pool->lead = sy_round_up(zone, align);
    pool->pool.stride = sy_round_up(pool->size + 2 * zone, align);
    pool->pool.capacity = config->capacity;
    static sy_exit_check check = {.verify = verify_pools_at_exit};
    if ((!(checks & SY_POISON) || sy_watch_at_exit(&check) == 0) &&
        sy_watch_open(&pool->watch, pool->name, pool->size, checks) == 0 &&
        reserve_slots(pool, config->capacity, align) && use_slots(pool, config->capacity)) {
        list_pool(pool);
        return &pool->pool;
    }
    sy_checked_pool_give_up(pool);
    errno = ENOMEM;
    return NULL;
}

/* ---- public functions ---- */

void *sy_checked_pool_alloc(sy_pool *pool_) {
    checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    if (!take_slot(pool, &slot)) {
        errno = ENOMEM;
        return NULL;
    }
    void *object = object_at(pool, slot);
    sy_watch_taken(&pool->watch, record_at(pool, slot), object);
    sy_watch_given(&pool->watch, record_at(pool, slot), object, pool->size, false);
    pool->live++;
    return object;
}

/* The slot that begins at `object`; false: none does, and *kind is the fault of freeing it. */
static bool find_slot(const checked_pool *pool, const void *object, size_t *slot,
                      sy_fault_kind *kind) {
    size_t offset = (uintptr_t)object - (uintptr_t)object_at(pool, 0);
    size_t stride = pool->pool.stride;
    *kind = offset / stride >= pool->slots ? SY_FAULT_FOREIGN_POINTER : SY_FAULT_MISALIGNED_POINTER;
    *slot = offset / stride;
    return offset / stride < pool->slots && offset % stride == 0;
}

bool sy_checked_pool_is_live(const sy_pool *pool_, const void *object) {
    const checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    sy_fault_kind kind;
    return find_slot(pool, object, &slot, &kind) &&
           sy_record_state(record_at(pool, slot)) == SY_OBJECT_LIVE;
}

void sy_checked_pool_free(sy_pool *pool_, void *object) {
    checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    sy_fault_kind kind;
    uintptr_t out;
    if (!object) return;
    if (!find_slot(pool, object, &slot, &kind)) {
        sy_watch_raise(&pool->watch, NULL, kind, object, NULL);
        return;
    }
    sy_record *record = record_at(pool, slot);
    if (!sy_watch_claim(&pool->watch, record, object, SIZE_MAX)) return;
    sy_watch_fill(&pool->watch, record, object);
    pool->live--;
    if (sy_watch_wait(&pool->watch, slot, &out)) put_slot(pool, out);
}

void sy_checked_pool_freed_twice(const sy_pool *pool_, const void *object) {
    const checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    sy_fault_kind kind;
    const sy_record *record = find_slot(pool, object, &slot, &kind) ? record_at(pool, slot) : NULL;
    sy_watch_raise(&pool->watch, record, SY_FAULT_DOUBLE_FREE, object, NULL);
}

/* How many objects an inlined free has put on the inline list. */
static size_t freed_inline(const checked_pool *pool) {
    size_t count = 0;
    for (const void *slot = pool->pool.free; slot && count < pool->live; count++)
        slot = *(const sy_pool_link *)slot;
    return count;
}

size_t sy_checked_pool_in_use(const sy_pool *pool) {
    return checked_whole_of(pool)->live - freed_inline(checked_whole_of(pool));
}

size_t sy_checked_pool_slot_size(const sy_pool *pool) { return checked_whole_of(pool)->size; }

size_t sy_checked_pool_capacity(const sy_pool *pool) {
    return pool->capacity ? pool->capacity : checked_whole_of(pool)->slots;
}

size_t sy_checked_pool_verify(const sy_pool *pool_) {
    const checked_pool *pool = checked_whole_of(pool_);
    size_t wrong = 0;
    sy_fault fault;
    for (size_t slot = 0; slot < pool->slots; slot++) {
        if (!sy_watch_look(&pool->watch, record_at(pool, slot), object_at(pool, slot), &fault))
            continue;
        sy_fault_tell(&fault);
        wrong++;
    }
    return wrong;
}

/* Before all objects go: raises a fault for each damaged one, and clears the records. */
static void forget_all(checked_pool *pool) {
    sy_fault fault;
    for (size_t slot = 0; slot < pool->slots; slot++) {
        sy_record *record = record_at(pool, slot);
        if (sy_watch_look(&pool->watch, record, object_at(pool, slot), &fault))
            sy_fault_raise(&fault);
        *record = (sy_record){0};
    }
}

void sy_checked_pool_reset(sy_pool *pool_) {
    checked_pool *pool = checked_whole_of(pool_);
    uintptr_t waited;
    pass_pool_over(pool, true);
    forget_all(pool);
    while (sy_watch_next(&pool->watch, &waited)) {}
    pool->pool.free = NULL;
    pool->slots = pool->live = pool->free_count = 0;
    pass_pool_over(pool, false);
}

void sy_checked_pool_destroy(sy_pool *pool) {
    unlist_pool(checked_whole_of(pool));
    forget_all(checked_whole_of(pool));
    sy_checked_pool_give_up(checked_whole_of(pool));
}
