/*
 * passed.c: caches with SY_PASSED take each object from the C library's malloc. This file keeps
 * the table of their live objects.
 */
#include "cache/passed.h"

#include <errno.h>

#include "base/fork.h"
#include "cache/guarded.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "os/os.h"
#include "os/pages.h"

/* A live object. */
typedef struct sy_block {
    struct sy_block *next;
    uintptr_t not_address; /* the object's address, all bits inverted (passed.h) */
    sy_cache *cache;
    size_t size; /* that the program asked for */
} sy_block;

enum { BUCKET_BITS = 16 };
static const size_t TABLE_BYTES = sizeof(sy_block *) << BUCKET_BITS;

/* NULL: no object was ever passed on. Once made, the table is never freed. */
static _Atomic(sy_block **) table;
static sy_lock lock = SY_LOCK_INIT(SY_RANK_PASSED); /* guards the lists */

static void hold_blocks(void) { sy_lock_hold(&lock); }

static void drop_blocks(void) { sy_lock_drop(&lock); }

const sy_part sy_passed_part = {.hold = hold_blocks, .drop = drop_blocks};

/* ---- the table ---- */

static sy_block **table_now(void) { return atomic_load_explicit(&table, memory_order_acquire); }

/* The table, made if there is none. If two threads make one at the same time, one is given back. */
static sy_block **make_table(void) {
    sy_block **seen = table_now();
    if (seen) return seen;
    sy_block **fresh = sy_pages_take(TABLE_BYTES, sy_os_page_size(), "slabyard blocks");
    if (!fresh || atomic_compare_exchange_strong(&table, &seen, fresh)) return fresh;
    sy_pages_give(fresh, TABLE_BYTES);
    return seen;
}

static sy_block **bucket_of(const void *object) {
    uint64_t hash = ((uintptr_t)object >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &table_now()[hash >> (64 - BUCKET_BITS)];
}

static void insert(sy_block *block, const void *object) {
    sy_block **bucket = bucket_of(object);
    block->not_address = ~(uintptr_t)object;
    sy_lock_acquire(&lock);
    block->next = *bucket;
    sy_fork_order();
    *bucket = block;
    sy_lock_release(&lock);
}

/* The link that leads to the object's entry, or the end of the list. The lock is held. */
static sy_block **find_block(const void *object) {
    SY_HOLDS(&lock);
    sy_block **link = bucket_of(object);
    while (*link && (*link)->not_address != ~(uintptr_t)object) link = &(*link)->next;
    return link;
}

sy_cache *sy_passed_owner(const void *object, size_t *size) {
    if (!table_now()) return NULL;
    sy_lock_acquire(&lock);
    const sy_block *block = *find_block(object);
    sy_cache *owner = block ? block->cache : NULL;
    if (block) *size = block->size;
    sy_lock_release(&lock);
    return owner;
}

/* ---- allocation ---- */

static void count_live(sy_cache *cache, size_t more) {
    sy_lock_acquire(&cache->lock);
    cache->passed += more;
    sy_lock_release(&cache->lock);
}

static bool refuse(sy_cache *cache, sy_refusal reason) {
    if (reason == SY_REFUSAL_CACHE_LIMIT)
        atomic_fetch_add_explicit(&cache->limits_hit, 1, memory_order_relaxed);
    sy_limit_refuse(reason);
    errno = ENOMEM;
    return false;
}

/* Counts one more object, if the cache's limit allows it; false: it does not. */
static bool count_in(sy_cache *cache) {
    sy_lock_acquire(&cache->lock);
    bool room = sy_cache_left(cache) > 0;
    cache->passed += room;
    sy_lock_release(&cache->lock);
    return room;
}

/* Memory and an entry for an object that is counted already; NULL: there is none, and the object is
 * not counted any more. */
static void *make_block(sy_cache *cache, size_t size, sy_block **block) {
    *block = make_table() ? sy_side_take(sizeof **block) : NULL;
    void *object = *block ? sy_os_block(size, cache->layout.align) : NULL;
    if (object) return object;
    if (*block) sy_side_give(*block, sizeof **block);
    count_live(cache, -(size_t)1);
    return NULL;
}

/* What is to be given back if the constructor fails. */
typedef struct sy_made {
    sy_cache *cache;
    sy_block *block;
    void *object;
} sy_made;

static void give_made_back(const void *made_) {
    const sy_made *made = made_;
    sy_os_block_free(made->object);
    sy_side_give(made->block, sizeof *made->block);
    count_live(made->cache, -(size_t)1);
    sy_limit_refuse(SY_REFUSAL_CONSTRUCTOR);
}

static bool make_and_build(sy_cache *cache, size_t size, uintptr_t *item) {
    sy_block *block;
    if (!count_in(cache)) return refuse(cache, SY_REFUSAL_CACHE_LIMIT);
    void *object = make_block(cache, size, &block);
    if (!object) return refuse(cache, SY_REFUSAL_SYSTEM);
    int error = errno;
    const sy_made made = {cache, block, object};
    if (!sy_watched_build(cache, object, give_made_back, &made)) return false;
    block->cache = cache;
    block->size = size;
    insert(block, object);
    *item = (uintptr_t)object;
    errno = error;
    return true;
}

static bool sy_passed_take_on_path(sy_cache *cache, size_t size, uintptr_t *item) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool taken = make_and_build(cache, size, item);
    path.done = true;
    return taken;
}

static bool sy_passed_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *item) {
    (void)align; /* each block has the cache's */
    if (sy_limit_fail_due(cache->name, size)) return false;
    bool taken = sy_passed_take_on_path(cache, size, item);
    sy_cache_turn_of_alloc();
    return taken;
}

/* ---- free ---- */

/* Takes the object's entry out of the table, if the object is the cache's and has the size `told`
 * (SIZE_MAX: any); else NULL. *found becomes a copy of the entry that there is, or zeros. */
static sy_block *claim_block(const sy_cache *cache, const void *object, size_t told,
                             sy_block *found) {
    *found = (sy_block){0};
    if (!table_now()) return NULL;
    sy_lock_acquire(&lock);
    sy_block **link = find_block(object), *block = *link;
    if (block) *found = *block;
    bool right = block && block->cache == cache && (told == SIZE_MAX || told == block->size);
    if (right) *link = block->next;
    sy_lock_release(&lock);
    return right ? block : NULL;
}

static void end(sy_cache *cache, sy_block *block, void *object) {
    sy_watched_unbuild(cache, object);
    sy_side_give(block, sizeof *block);
    count_live(cache, -(size_t)1);
    sy_os_block_free(object);
}

/* Raises the fault of freeing an object of another cache, or of another size. */
static void raise_fault(const sy_cache *cache, const void *object, const sy_block *found,
                        size_t told) {
    const sy_cache *owner = found->cache;
    bool other = owner != cache && !(owner->class_number && cache->class_number);
    sy_fault_raise(&(sy_fault){
        .kind = other ? SY_FAULT_WRONG_CACHE : SY_FAULT_WRONG_SIZE,
        .cache = cache->name,
        .object_size = cache->size,
        .address = object,
        .object = object,
        .found_cache = owner != cache ? owner->name : NULL,
        .found_size = found->size,
        .told_size = other || told == SIZE_MAX ? 0 : told,
    });
}

/* Freeing an object of another cache, or with another size, raises a fault. If an address has no
 * entry here and lies in no slab, it goes to the C library's free nevertheless, so that the tool
 * that watches malloc reports it. */
static void sy_passed_free_on_path(sy_cache *cache, void *object, size_t told) {
    SY_SLOW_PATH(&cache->client);
    sy_block found, *block = claim_block(cache, object, told, &found);
    const sy_slab *slab = found.cache ? NULL : sy_slab_at((uintptr_t)object);
    bool other = slab || sy_guard_owns((uintptr_t)object);
    if (block) {
        end(cache, block, object);
    } else if (found.cache) {
        raise_fault(cache, object, &found, told);
    } else if (other) {
        sy_fault fault = sy_cache_fault(cache, SY_FAULT_WRONG_CACHE, (uintptr_t)object, slab);
        sy_fault_raise(&fault);
    } else {
        sy_os_block_free(object);
    }
}

static void sy_passed_free(sy_cache *cache, void *object, size_t told) {
    int error = errno;
    sy_passed_free_on_path(cache, object, told);
    sy_turn();
    errno = error;
}

static bool sy_passed_try_free(sy_cache *cache, void *object) {
    SY_SLOW_PATH(&cache->client);
    sy_block found, *block = claim_block(cache, object, SIZE_MAX, &found);
    if (block) end(cache, block, object);
    return block;
}

static bool sy_passed_find(const sy_cache *cache, const void *object, size_t *bytes) {
    *bytes = 0;
    return sy_passed_owner(object, bytes) == cache;
}

/* Takes any object of the cache out of a list; NULL: there is none. */
static sy_block *take_from(sy_block **link, const sy_cache *cache) {
    sy_lock_acquire(&lock);
    while (*link && (*link)->cache != cache) link = &(*link)->next;
    sy_block *block = *link;
    if (block) *link = block->next;
    sy_lock_release(&lock);
    return block;
}

void sy_passed_forget(sy_cache *cache) {
    sy_block **lists = cache->passed ? table_now() : NULL, *block;
    for (size_t i = 0; lists && i < (size_t)1 << BUCKET_BITS; i++)
        while ((block = take_from(&lists[i], cache)) != NULL)
            end(cache, block, (void *)~block->not_address);
}

/* No object is a slot, so refill and flush are never called. */
const sy_kind sy_kind_passed = {
    .alloc = sy_passed_alloc,
    .free = sy_passed_free,
    .try_free = sy_passed_try_free,
    .find = sy_passed_find,
    .fill = sy_cache_fill_singly,
    .refill = sy_cache_refill,
    .flush = sy_cache_flush,
    .slabs = &sy_slabs_plain,
};
