/*
 * refill.c: the client's callbacks. The magazine layer calls sy_cache_refill to take slots out of
 * slabs, and sy_cache_flush to put them back. Each call moves the items of a whole magazine under
 * one lock.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cache/epoch.h"
#include "cache/guarded.h"
#include "cache/limit.h"
#include "cache/mixed.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "debug/profile.h"
#include "magazine/store.h"
#include "os/invariant.h"

/* Set in an item between its taking and its construction: the slot has yet to be constructed. The
 * addresses of slots are multiples of 8, so the bit is free. */
static const uintptr_t UNBUILT = 1;

/* ---- refill ---- */

/* Counts `more` slots as out of the slabs of these bins. The lock is held. */
static inline void count_out(sy_cache *cache, sy_bins *bins, size_t more) {
    SY_HOLDS(&cache->lock);
    cache->out += more;
    if (SY_UNLIKELY(sy_cache_has_view(cache, bins))) sy_view_of(bins)->out += more;
}

/* Takes up to `count` slots, and writes their addresses downward from `end`; returns how many. The
 * lock is held. */
static size_t take_slots(sy_cache *cache, sy_bins *bins, uintptr_t *end, size_t count) {
    SY_HOLDS(&cache->lock);
    size_t taken = 0, left = sy_cache_left(cache);
    if (count > left) count = left;
    while (taken < count) {
        sy_slab *slab = sy_bins_best(bins);
        if (!slab) break;
        size_t want = count - taken;
        uint32_t some = want < slab->free_count ? (uint32_t)want : slab->free_count;
        if (SY_UNLIKELY(cache->flags & SY_RANDOM))
            sy_slab_take_random(slab, &cache->layout, end - taken, some, &cache->random);
        else
            sy_slab_take(slab, &cache->layout, end - taken, some);
        sy_bins_update(bins, slab);
        SY_INVARIANT(sy_slab_is_valid(slab, &cache->layout));
        taken += some;
    }
    count_out(cache, bins, taken);
    return taken;
}

/* Puts a slot back that was taken and not given out; the lock is held. */
static void untake_slot(sy_cache *cache, uintptr_t address, bool built) {
    SY_HOLDS(&cache->lock);
    sy_slab *slab = sy_slab_at(address);
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    slab->free[index / 64] |= UINT64_C(1) << index % 64;
    if (slab->built && !built) slab->built[index / 64] &= ~(UINT64_C(1) << index % 64);
    slab->free_count++;
    if (index / 64 < slab->first_word) slab->first_word = (uint8_t)(index / 64);
    sy_bins_update(slab->bins, slab);
    SY_INVARIANT(sy_slab_is_valid(slab, &cache->layout));
    count_out(cache, slab->bins, -(size_t)1);
}

/* Marks the items whose slots are not constructed, and sets their bits in `built` already: as long
 * as a slot is out of its slab, no other thread reads its bit. Whether there are any. The lock is
 * held. */
static bool mark_unbuilt(sy_cache *cache, uintptr_t *items, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        sy_slab *slab = sy_slab_at(items[i]);
        uint32_t index = sy_slab_index(slab, &cache->layout, items[i]);
        uint64_t bit = UINT64_C(1) << index % 64;
        if (slab->built[index / 64] & bit) continue;
        slab->built[index / 64] |= bit;
        items[i] |= UNBUILT;
        any = true;
    }
    return any;
}

typedef struct sy_construction {
    sy_cache *cache;
    uintptr_t *items;
    size_t count, built;
    size_t kept;   /* constructed items, from items[0] on; known when the construction has ended */
    bool returned; /* false: a constructor has thrown, and no item is kept */
} sy_construction;

/* Puts the slots that are not constructed back in their slabs, and moves the constructed ones
 * together. If a constructor has thrown, puts all back. */
static void end_construction(sy_construction *work) {
    sy_cache *cache = work->cache;
    size_t kept = 0;
    sy_slab *slab, *surplus = NULL; /* empty slabs of an epoch, which does not keep any */
    sy_lock_acquire(&cache->lock);
    cache->counts.constructed += work->built;
    for (size_t i = 0; i < work->count; i++) {
        uintptr_t item = work->items[i];
        bool built = !(item & UNBUILT);
        if (built && work->returned) {
            work->items[kept++] = item;
            continue;
        }
        slab = sy_slab_at(item & ~UNBUILT);
        untake_slot(cache, item & ~UNBUILT, built);
        if (slab->bins == &cache->bins || slab->bin != SY_BIN_EMPTY) continue;
        sy_cache_unlink_slab(cache, slab);
        slab->next = surplus;
        surplus = slab;
    }
    sy_lock_release(&cache->lock);
    work->kept = kept;
    sy_drained_end();
    while ((slab = surplus) != NULL) {
        surplus = slab->next;
        sy_cache_release_slab(cache, slab);
    }
}

static void end_thrown_construction(sy_construction *work) {
    if (!work->returned) end_construction(work);
}

/*
 * Constructs the marked slots, beginning with the one that will be given out first. When a
 * constructor fails, its slot and the remaining marked ones go back to their slabs. Returns how
 * many items are left, from items[0] on.
 */
static size_t construct(sy_cache *cache, uintptr_t *items, size_t count) {
    sy_construction work SY_CLEANUP(end_thrown_construction) = {cache, items, count, 0, 0, false};
    SY_CALLBACK(call, "constructor", "cache", cache->name, true);
    int error = 0;
    for (size_t next = count; next > 0; next--) {
        uintptr_t item = items[next - 1];
        if (!(item & UNBUILT)) continue;
        if (cache->construct((void *)(item - UNBUILT), cache->arg) != 0) {
            error = errno;
            sy_refuse(SY_REFUSAL_CONSTRUCTOR);
            break;
        }
        items[next - 1] = item - UNBUILT;
        work.built++;
    }
    work.returned = call.returned = true;
    end_construction(&work);
    if (error) errno = error;
    return work.kept;
}

/* Whether there is a free slot now: a slab that a trim had set aside may be back in the bins. */
static bool has_free_slot(sy_cache *cache, const sy_bins *bins) {
    sy_lock_acquire(&cache->lock);
    bool any = sy_bins_best(bins) != NULL;
    sy_lock_release(&cache->lock);
    return any;
}

/* Moves the last `taken` of `count` items to the front. */
static void move_down(uintptr_t *items, size_t count, size_t taken) {
    if (taken < count) memmove(items, items + count - taken, taken * sizeof *items);
}

/* Takes slots out of mixed units; `anyway`: there is no other memory. */
static size_t take_from_mixed(sy_cache *cache, uintptr_t *items, size_t count, bool anyway) {
    size_t taken = sy_mixed_take(cache, items + count, count, anyway);
    move_down(items, count, taken);
    return taken;
}

size_t sy_cache_refill(void *owner, uintptr_t *items, size_t count) {
    sy_cache *cache = owner;
    sy_bins *bins = cache->flags & SY_EPOCHS ? sy_epoch_bins(cache) : &cache->bins;
    if (!bins) return 0;
    for (;;) {
        sy_lock_acquire(&cache->lock);
        size_t taken = take_slots(cache, bins, items + count, count);
        bool limited = sy_cache_left(cache) == 0;
        uintptr_t *first = items + count - taken;
        bool unbuilt = cache->construct && mark_unbuilt(cache, first, taken);
        cache->counts.refills += taken > 0;
        sy_lock_release(&cache->lock);
        move_down(items, count, taken);
        if (taken) return unbuilt ? construct(cache, items, taken) : taken;
        if (limited) {
            sy_refuse(SY_REFUSAL_CACHE_LIMIT);
            errno = ENOMEM;
            return 0;
        }
        taken = take_from_mixed(cache, items, count, false);
        if (taken) return taken;
        if (sy_cache_add_slab(cache, bins) || has_free_slot(cache, bins)) continue;
        return take_from_mixed(cache, items, count, true);
    }
}

static void *alloc_one(sy_cache *cache, sy_bins *bins) {
    uintptr_t object;
    for (;;) {
        sy_lock_acquire(&cache->lock);
        size_t taken = take_slots(cache, bins, &object + 1, 1);
        sy_lock_release(&cache->lock);
        if (taken) return (void *)object;
        if (!sy_cache_add_slab(cache, bins) && !has_free_slot(cache, bins)) return NULL;
    }
}

void *sy_cache_alloc_in_slab(sy_cache *cache) { return alloc_one(cache, &cache->bins); }

/* Makes the bins of the slabs apart. If two threads do so, one gives its bins back. */
static sy_bins *make_apart(sy_cache *cache) {
    sy_bins *known = NULL, *made = sy_side_take(sizeof *made);
    if (!made) return NULL;
    made->counted = &cache->bins;
    if (atomic_compare_exchange_strong_explicit(&cache->apart, &known, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    sy_side_give(made, sizeof *made);
    return known;
}

void *sy_cache_alloc_apart(sy_cache *cache) {
    sy_bins *apart = atomic_load_explicit(&cache->apart, memory_order_acquire);
    if (!apart) apart = make_apart(cache);
    return apart ? alloc_one(cache, apart) : NULL;
}

/* ---- flush ---- */

enum { EMPTIES_SHARE = 8 }; /* one part in so many of the slabs may be empty (give_up_surplus) */

_Static_assert(SY_MAGAZINE_ITEMS <= UINT8_MAX, "an index fits");

typedef struct sy_flush {
    sy_cache *cache;
    size_t returned;
    sy_slab *surplus; /* list of empty slabs that are unlinked and to be released */
    size_t faults;
    sy_flush_item bad[SY_MAGAZINE_ITEMS];
    size_t mixed; /* items in mixed units */
    sy_flush_item in_mixed[SY_MAGAZINE_ITEMS];
    sy_slab *emptied; /* mixed units that have become empty */
} sy_flush;

sy_fault sy_cache_fault(const sy_cache *cache, sy_fault_kind kind, uintptr_t address,
                        const sy_slab *slab) {
    const sy_cache *guarding = slab ? NULL : sy_guarded_cache((void *)address);
    const sy_cache *found = slab ? sy_slab_owner(slab) : guarding;
    if (guarding) kind = SY_FAULT_WRONG_CACHE;
    if (kind == SY_FAULT_WRONG_CACHE && found && found->class_number && cache->class_number)
        kind = SY_FAULT_WRONG_SIZE;
    bool is_here = found && found == cache;
    bool is_elsewhere = (slab || guarding) && !is_here && kind != SY_FAULT_DOUBLE_FREE;
    sy_fault fault = {
        .kind = kind,
        .cache = cache->name,
        .object_size = cache->size,
        .address = (void *)address,
        .found_cache = is_elsewhere ? found ? found->name : "heap" : NULL,
    };
    sy_watched_describe(&fault);
    return fault;
}

static SY_COLD void note_fault(sy_flush *flush, sy_fault_kind kind, size_t index) {
    flush->bad[flush->faults++] = (sy_flush_item){(uint8_t)index, (uint8_t)kind};
}

/* Raises the faults. A handler of faults may free objects to the magazine in which the items are,
 * so they are copied first. */
static SY_COLD void sy_cache_raise_noted(const sy_flush *flush, const uintptr_t *items) {
    uintptr_t address[SY_MAGAZINE_ITEMS];
    for (size_t i = 0; i < flush->faults; i++) address[i] = items[flush->bad[i].index];
    for (size_t i = 0; i < flush->faults; i++) {
        sy_fault fault = sy_cache_fault(flush->cache, (sy_fault_kind)flush->bad[i].fault,
                                        address[i], sy_slab_at(address[i]));
        sy_fault_raise(&fault);
    }
}

/* Unlinks the empty slabs beyond `keep`. They are released once the lock is let go. */
static void give_up_empty(sy_flush *flush, sy_bins *bins, size_t keep) {
    sy_slab *slab;
    while ((slab = sy_cache_unlink_empty(flush->cache, bins, keep)) != NULL) {
        slab->next = flush->surplus;
        flush->surplus = slab;
    }
}

static SY_COLD void leave_slab_of_view(sy_flush *flush, sy_bins *bins, uint32_t added) {
    sy_view_of(bins)->out -= added;
    give_up_empty(flush, bins, 0);
}

/* Ends the work on a slab, into which `added` slots were put. */
static inline void leave_slab(sy_flush *flush, sy_slab *slab, uint32_t added) {
    sy_bins *bins = slab->bins;
    slab->free_count = (uint16_t)(slab->free_count + added);
    flush->returned += added;
    sy_bins_update(bins, slab);
    SY_INVARIANT(sy_slab_is_valid(slab, &flush->cache->layout));
    if (SY_UNLIKELY(sy_cache_has_view(flush->cache, bins))) leave_slab_of_view(flush, bins, added);
}

SY_COLD sy_fault_kind sy_cache_fault_outside(const sy_cache *cache, const sy_slab *slab) {
    if (!slab) return SY_FAULT_FOREIGN_POINTER;
    bool released = sy_slab_owner(slab) == cache || (!sy_slab_owner(slab) && !slab->first);
    return released ? SY_FAULT_DOUBLE_FREE : SY_FAULT_WRONG_CACHE;
}

/* Notes an item that lies in a mixed unit, or the fault of an address that lies in no slab of the
 * cache. */
static inline void note_outside(sy_flush *flush, const sy_slab *run, uintptr_t address,
                                size_t index) {
    if (sy_is_mixed(run) && flush->cache->class_number) {
        sy_mixed_prefetch(run, address);
        flush->in_mixed[flush->mixed++] = (sy_flush_item){.index = (uint8_t)index};
    } else {
        note_fault(flush, sy_cache_fault_outside(flush->cache, run), index);
    }
}

/* Puts the items in mixed units back. The lock is held. */
static void put_in_mixed(sy_flush *flush, const uintptr_t *items) {
    SY_HOLDS(&flush->cache->lock);
    size_t refused =
        sy_mixed_put(flush->cache, items, flush->in_mixed, flush->mixed, NULL, &flush->emptied);
    for (size_t i = 0; i < refused; i++)
        note_fault(flush, (sy_fault_kind)flush->in_mixed[i].fault, flush->in_mixed[i].index);
}

/* Sets the bits of the items' slots, and notes the faults. The lock is held. */
static void put_slots(sy_flush *flush, const uintptr_t *items, size_t count) {
    SY_HOLDS(&flush->cache->lock);
    const sy_layout *layout = &flush->cache->layout;
    sy_slab *slab = NULL;
    uint32_t added = 0; /* slots put in the slab, not yet in its free count */
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = items[i];
        if (!slab || address - slab->start >= layout->slab_bytes) {
            sy_slab *next = sy_slab_at(address);
            if (SY_UNLIKELY(!sy_slab_is_in(next, flush->cache))) {
                note_outside(flush, next, address, i);
                continue;
            }
            if (slab) leave_slab(flush, slab, added);
            slab = next, added = 0;
        }
        uint32_t index = sy_slab_index(slab, layout, address);
        if (SY_UNLIKELY(index == UINT32_MAX)) {
            note_fault(flush, SY_FAULT_MISALIGNED_POINTER, i);
            continue;
        }
        uint64_t *word = &slab->free[index / 64], bit = UINT64_C(1) << index % 64;
        if (SY_UNLIKELY(*word & bit)) {
            note_fault(flush, SY_FAULT_DOUBLE_FREE, i);
            continue;
        }
        *word |= bit;
        if (index / 64 < slab->first_word) slab->first_word = (uint8_t)(index / 64);
        added++;
    }
    if (slab) leave_slab(flush, slab, added);
    if (flush->mixed) put_in_mixed(flush, items);
}

/*
 * Unlinks the empty slabs that are not worth keeping. A slab is cheap to make from units that hold
 * memory, so only `empties_least` are kept, which avoids making and releasing one slab in turn. A
 * cache with a constructor also keeps an eighth of its slabs, to save constructions. The lock is
 * held.
 */
static void give_up_surplus(sy_flush *flush) {
    sy_cache *cache = flush->cache;
    size_t built = cache->construct ? cache->slab_count / EMPTIES_SHARE : 0;
    size_t keep = cache->empties_least + built + cache->empties_max;
    size_t share = cache->slab_count / EMPTIES_SHARE;
    size_t batch = share < cache->empties_batch ? share : cache->empties_batch;
    if (cache->bins.count[SY_BIN_EMPTY] > keep + batch) give_up_empty(flush, &cache->bins, keep);
}

static void begin_flush(sy_flush *flush, sy_cache *cache) {
    flush->cache = cache;
    flush->surplus = NULL;
    flush->returned = flush->faults = flush->mixed = 0;
    flush->emptied = NULL;
}

/* Called when all slots are put back; the lock is held. */
static void end_flush(sy_flush *flush) {
    SY_HOLDS(&flush->cache->lock);
    flush->cache->out -= flush->returned;
    flush->cache->counts.flushes++;
    give_up_surplus(flush);
}

/* Releases the slabs that the flush unlinked. The lock is not held. */
static void sy_cache_release_surplus(sy_flush *flush) {
    sy_mixed_release(flush->emptied);
    while (flush->surplus) {
        sy_slab *slab = flush->surplus;
        flush->surplus = slab->next;
        sy_cache_release_slab(flush->cache, slab);
    }
}

void sy_cache_flush(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    sy_cache *cache = owner;
    sy_flush flush;
    begin_flush(&flush, cache);
    SY_SLOW_PATH(&cache->client);
    sy_lock_acquire(&cache->lock);
    put_slots(&flush, items, count);
    end_flush(&flush);
    if (held) atomic_store_explicit(held, 0, memory_order_relaxed);
    sy_lock_release(&cache->lock);
    sy_cache_release_surplus(&flush);
    sy_drained_end();
    if (SY_UNLIKELY(flush.faults)) sy_cache_raise_noted(&flush, items);
}

/* ---- one live object ---- */

/*
 * sy_cache_try_free by address. A slot that is out of its slab is live or in a magazine. While the
 * cache's lock is held no free slot leaves a slab or comes to one. So a slot that is out, but in no
 * magazine, is live, and of two calls for one object the first one sets the slot's bit.
 *
 * But when the second call takes the lock, the slot may be out again, on its way to a magazine.
 * Therefore each call enters a list with the object's address, before it takes the lock. The call
 * that frees the object marks all other calls for the same address as lost.
 */
typedef struct sy_try_free_call {
    uintptr_t address;
    bool lost; /* another call has freed the object */
    struct sy_try_free_call *next;
} sy_try_free_call;

static void list_call(sy_cache *cache, sy_try_free_call *call) {
    call->next = atomic_load_explicit(&cache->tries, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&cache->tries, &call->next, call,
                                                  memory_order_release, memory_order_relaxed)) {}
}

/* Takes a call off the list. The lock is held, but other calls may enter. In the child of a fork
 * the list was emptied, and does not have this call. */
static void unlist_call(sy_cache *cache, sy_try_free_call *call) {
    SY_HOLDS(&cache->lock);
    sy_try_free_call *at = call;
    if (atomic_compare_exchange_strong_explicit(&cache->tries, &at, call->next,
                                                memory_order_acquire, memory_order_acquire))
        return;
    while (at && at->next != call) at = at->next;
    if (at) at->next = call->next;
}

/* Marks the other calls for this address as lost. The lock is held. */
static void claim_object(sy_cache *cache, uintptr_t address) {
    SY_HOLDS(&cache->lock);
    sy_try_free_call *at = atomic_load_explicit(&cache->tries, memory_order_acquire);
    for (; at; at = at->next)
        if (at->address == address) at->lost = true;
}

/* Whether a slot begins at `address` and is out of its slab. The lock is held. */
static bool is_out(const sy_cache *cache, uintptr_t address) {
    SY_HOLDS(&cache->lock);
    const sy_slab *slab = sy_slab_at(address);
    if (!sy_slab_is_in(slab, cache)) return false;
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    return index != UINT32_MAX && !sy_slab_bit(slab->free, index);
}

static bool is_live(sy_cache *cache, uintptr_t address) {
    if (!is_out(cache, address)) return false;
    return !cache->client.config.magazine_items || !sy_client_holds(&cache->client, address);
}

bool sy_cache_put_live(sy_cache *cache, uintptr_t address) {
    sy_try_free_call call = {.address = address};
    sy_flush flush;
    begin_flush(&flush, cache);
    list_call(cache, &call);
    sy_clients_lock();
    sy_lock_acquire(&cache->lock);
    unlist_call(cache, &call);
    bool live = !call.lost && is_live(cache, address);
    if (live) {
        claim_object(cache, address);
        sy_profile_forget((void *)address);
        if (cache->flags & SY_ZERO) sy_cache_wipe(cache, (void *)address);
        put_slots(&flush, &address, 1);
        end_flush(&flush);
    }
    sy_lock_release(&cache->lock);
    sy_clients_unlock();
    sy_cache_release_surplus(&flush);
    return live;
}

/* Copies an object to the fullest slab. 0: there is no free slot. The lock is held. */
static uintptr_t copy_to_best(sy_cache *cache, uintptr_t old) {
    SY_HOLDS(&cache->lock);
    uintptr_t moved;
    if (!take_slots(cache, &cache->bins, &moved + 1, 1)) return 0;
    memcpy((void *)moved, (void *)old, cache->size);
    sy_profile_follow((void *)old, (void *)moved);
    return moved;
}

/*
 * All is done under the lock: no thread sees a slot more that is out, and the slab is not converted
 * to a mixed unit meanwhile. If it was before, the object stays. What is no object that is out is
 * put back like one, which notes the fault.
 */
void *sy_cache_move(sy_cache *cache, void *object) {
    uintptr_t old = (uintptr_t)object, moved = 0;
    sy_flush flush;
    begin_flush(&flush, cache);
    SY_SLOW_PATH(&cache->client);
    sy_lock_acquire(&cache->lock);
    bool out = is_out(cache, old), mixed = !out && sy_is_mixed(sy_slab_at(old));
    if (out) moved = copy_to_best(cache, old);
    if (moved || (!out && !mixed)) {
        put_slots(&flush, &old, 1);
        end_flush(&flush);
    }
    sy_lock_release(&cache->lock);
    sy_cache_release_surplus(&flush);
    sy_drained_end();
    if (SY_UNLIKELY(flush.faults)) sy_cache_raise_noted(&flush, &old);
    return (void *)moved;
}
