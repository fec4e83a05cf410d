/*
 * compact.c: moves objects of caches with SY_MOVABLE from sparse slabs to fuller ones, so that the
 * sparse slabs become empty. Steps of passes and trims do this work, and sy_cache_compact.
 *
 * A step:
 *
 *     1. choose     live objects of one slab, by its bitmap and its owners, under the cache's lock
 *     2. announce   each of them that is not pinned, in its word (moving.c)
 *     3. wait       some microseconds for the read guards that began before (magazine/readers.h)
 *     4. targets    slots of the fullest slabs, under the lock
 *     5. move       each that no other thread has looked up since 2
 *     6. put back   the slots where they were, and unused targets, by a flush, which gives up
 *                   slabs that are empty
 *
 * A compaction walks through the slabs in rounds. In the first it looks for slabs in the sparsest
 * bin, in each further one also for those in the next bin: what pays most goes first. It ends when
 * the free slots of other slabs have no room for the objects of a slab. Then it folds what has the
 * words of the objects (fold.c).
 *
 * No lock is held in 3 and in 5, where `relocate` is called.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cache/guarded.h"
#include "cache/movable.h"
#include "cache/mover.h"
#include "debug/callback.h"
#include "magazine/readers.h"
#include "os/os.h"

enum {
    BATCH = 32,             /* objects that a step moves, */
    BATCH_BYTES = 16 << 10, /* or so many bytes: each takes some microseconds */
    LOOKS = 64,             /* slabs that a step looks at */
    AGED_SHARE = 4, /* a pass by age moves objects if one part in so many of the slots is free */
};

/* A step. */
typedef struct sy_batch_of_moves {
    sy_slab *slab;
    sy_moves *of; /* the objects; on a stack they would be a large frame */
    size_t announced, moved;
    uintptr_t slots[BATCH]; /* targets; then those to be put back */
    size_t slot_count;
} sy_batch_of_moves;

/* ---- choosing; the lock is held ---- */

static size_t live_in(const sy_slab *slab) { return (size_t)slab->slots - slab->free_count; }

/* Free slots of slabs that are neither empty nor this one. */
static size_t room_beside(const sy_cache *cache, const sy_slab *slab) {
    size_t slots = cache->slab_count * cache->layout.slots;
    size_t empty = cache->bins.count[SY_BIN_EMPTY] * cache->layout.slots;
    size_t elsewhere = cache->out + empty + slab->free_count;
    return slots > elsewhere ? slots - elsewhere : 0;
}

static bool is_sparse(const sy_cache *cache, const sy_slab *slab, unsigned bin) {
    return slab->bins == &cache->bins && slab->bin >= bin && slab->bin < SY_BIN_EMPTY &&
           room_beside(cache, slab) >= live_in(slab);
}

/* Adds the objects of the slab from walk->index on to the batch. */
static void choose_objects(const sy_cache *cache, sy_compaction *walk, sy_batch_of_moves *batch) {
    const sy_slab *slab = batch->slab;
    size_t most = BATCH_BYTES / cache->layout.slot;
    if (most > BATCH) most = BATCH;
    for (; walk->index < slab->slots && batch->of->chosen < most; walk->index++) {
        if (sy_slab_bit(slab->free, walk->index)) continue;
        batch->of->objects[batch->of->chosen] = (sy_moving){
            .ordinal = sy_movable_owner(slab->ordinal, walk->index),
            .from = slab->first + walk->index * cache->layout.slot,
        };
        batch->of->chosen++;
    }
}

static void next_slab(sy_cache *cache, sy_compaction *walk) {
    sy_slab *slab = cache->slabs;
    sy_cache_remove_slab(cache, slab);
    sy_cache_append_slab(cache, slab);
    walk->left--;
    walk->slab = NULL;
}

/* Fills the batch with objects of the first sparse slab among the next few. False: there is no more
 * to do in this round. */
static bool choose(sy_cache *cache, sy_compaction *walk, sy_batch_of_moves *batch) {
    SY_HOLDS(&cache->lock);
    for (int looked = 0; looked < LOOKS && walk->left && cache->slabs; looked++) {
        sy_slab *slab = cache->slabs;
        if (walk->slab != slab) walk->index = 0;
        walk->slab = slab;
        batch->slab = slab;
        if (is_sparse(cache, slab, walk->bin)) choose_objects(cache, walk, batch);
        if (batch->of->chosen) return true;
        next_slab(cache, walk);
    }
    return walk->left && cache->slabs;
}

/* Begins the first round, or the next one. False: this was the last one. Slabs in bin 0 are the
 * fullest: they take objects. */
static bool begin_round(const sy_cache *cache, sy_compaction *walk, bool aged) {
    size_t slots = cache->slab_count * cache->layout.slots;
    size_t free = slots - cache->out - cache->bins.count[SY_BIN_EMPTY] * cache->layout.slots;
    if (aged && free < slots / AGED_SHARE) return false;
    if (walk->begun && walk->bin <= 1) return false;
    walk->bin = walk->begun ? walk->bin - 1 : SY_BINS - 1;
    walk->begun = true;
    walk->left = cache->slab_count;
    return true;
}

/* ---- moving ---- */

/* Keeps the objects of the batch whose moves are announced. */
static void announce(const sy_cache *cache, sy_batch_of_moves *batch) {
    for (size_t i = 0; i < batch->of->chosen; i++)
        if (sy_moving_announce(&cache->names, &batch->of->objects[i]))
            batch->of->objects[batch->announced++] = batch->of->objects[i];
}

/* Takes slots for the objects in slabs that are fuller than the batch's, or as full. */
static void take_targets(sy_cache *cache, sy_batch_of_moves *batch) {
    sy_lock_acquire(&cache->lock);
    while (batch->slot_count < batch->announced) {
        sy_slab *slab = sy_bins_best(&cache->bins);
        if (!slab || slab == batch->slab || slab->bin == SY_BIN_EMPTY) break;
        size_t count = batch->announced - batch->slot_count;
        if (count > slab->free_count) count = slab->free_count;
        sy_slab_take(slab, &cache->layout, batch->slots + batch->slot_count + count,
                     (uint32_t)count);
        sy_bins_update(&cache->bins, slab);
        batch->slot_count += count;
    }
    cache->out += batch->slot_count;
    atomic_store_explicit(&cache->moving, (uint32_t)batch->slot_count, memory_order_relaxed);
    sy_lock_release(&cache->lock);
}

static void copy_object(const sy_cache *cache, const sy_moving *object) {
    if (!cache->relocate) {
        memcpy((void *)object->to, (const void *)object->from, cache->size);
        return;
    }
    SY_CALLBACK(call, "relocate function", "cache", cache->name, false);
    cache->relocate((void *)object->from, (void *)object->to, cache->arg);
    call.returned = true;
}

/* Moves an object to an unused target; false: the move was called off. */
static bool move(const sy_cache *cache, sy_moving *object, uintptr_t to) {
    if (!sy_moving_begin(&cache->names, object)) return false;
    const sy_slab *slab = sy_slab_at(to);
    uint32_t index = sy_slab_index(slab, &cache->layout, to);
    object->to = to;
    copy_object(cache, object);
    sy_movable_own(slab, index, object->ordinal);
    sy_moving_end(&cache->names, object);
    if (cache->flags & SY_ZERO) memset((void *)object->from, 0, cache->size);
    return true;
}

/* Moves objects while there are targets, and calls the other moves off. In `slots` the slot where
 * an object was takes the place of its target. */
static void move_all(const sy_cache *cache, sy_batch_of_moves *batch) {
    for (size_t i = 0; i < batch->announced; i++) {
        sy_moving *object = &batch->of->objects[i];
        if (batch->moved == batch->slot_count)
            sy_moving_cancel(&cache->names, object);
        else if (move(cache, object, batch->slots[batch->moved]))
            batch->slots[batch->moved++] = object->from;
    }
}

/* Counts the step; returns the bytes of the slab if it has become empty by it. */
static size_t count_step(sy_cache *cache, const sy_batch_of_moves *batch) {
    sy_lock_acquire(&cache->lock);
    const sy_slab *slab = batch->slab;
    bool there = slab && sy_slab_is_in(slab, cache) && slab->bin != SY_BIN_EMPTY;
    size_t emptied = batch->moved && !there ? cache->layout.slab_bytes : 0;
    cache->counts.moves += batch->moved;
    cache->counts.moves_put_off += batch->of->chosen - batch->moved;
    cache->counts.move_bytes += emptied;
    sy_lock_release(&cache->lock);
    return emptied;
}

static size_t move_batch(sy_cache *cache, sy_batch_of_moves *batch) {
    announce(cache, batch);
    if (batch->announced && sy_readers_await()) take_targets(cache, batch);
    move_all(cache, batch);
    if (batch->slot_count) sy_cache_flush(cache, batch->slots, batch->slot_count, &cache->moving);
    return count_step(cache, batch);
}

/* ---- steps ---- */

static bool move_step(sy_cache *cache, sy_compaction *walk, bool aged) {
    sy_batch_of_moves batch = {.of = sy_mover_begin(cache, walk->wait_ns)};
    if (!batch.of) return false;
    sy_lock_acquire(&cache->lock);
    bool more = choose(cache, walk, &batch) || begin_round(cache, walk, aged);
    sy_lock_release(&cache->lock);
    if (batch.of->chosen) walk->emptied += move_batch(cache, &batch);
    sy_mover_end();
    return more;
}

enum { WAIT_NS = 10000000 }; /* for another thread's step, in a call of the program's */

/* In the child of a fork, `relocate` could get an object that another thread was just making. */
static bool may_move(const sy_cache *cache) { return !cache->relocate || !sy_readers_lost_any(); }

bool sy_cache_compact_step(sy_cache *cache, sy_compaction *walk, bool aged) {
    if (!sy_cache_moves(cache)) return false;
    if (!walk->moved && may_move(cache) && move_step(cache, walk, aged)) return true;
    walk->moved = true;
    return sy_blocks_fold_step(cache, walk, aged);
}

size_t sy_cache_compact_all(sy_cache *cache) {
    sy_compaction walk = {.whole = true, .wait_ns = WAIT_NS};
    while (sy_cache_compact_step(cache, &walk, false)) {}
    return walk.discarded;
}

/* Flushes the depot and the magazines of parked threads, as long as the budget lasts. */
static void drain(sy_client *client, uint64_t end) {
    bool more = true;
    for (bool first = true; more && sy_os_now() < end; first = false)
        more = sy_client_drain_step(client, first);
}

size_t sy_cache_compact(sy_cache *cache, size_t bytes, uint64_t budget_ns) {
    int error = errno;
    uint64_t now = sy_os_now(), end = budget_ns > UINT64_MAX - now ? UINT64_MAX : now + budget_ns;
    sy_compaction walk = {.wait_ns = budget_ns < WAIT_NS ? budget_ns : WAIT_NS};
    if (!sy_cache_moves(cache) || !sy_client_pin(&cache->client)) return 0;
    drain(&cache->client, end);
    while (walk.emptied < bytes && sy_os_now() < end &&
           sy_cache_compact_step(cache, &walk, false)) {}
    sy_cache_release_empty(cache);
    sy_client_unpin(&cache->client);
    sy_cache_turn();
    errno = error;
    return walk.emptied;
}
