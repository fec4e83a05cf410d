/*
 * handle.c: caches with handles (the kind `named`): the functions of slabyard/handle.h that are not
 * inline, slow paths by address, slabs with ordinals, and iteration. The items in the magazines of
 * such a cache are ordinals.
 *
 * The word of an ordinal has the state of its object. An allocation is one store, since no other
 * thread may change the word. Each other change is one compare-and-swap:
 *
 *     free          --alloc-->       live            by the thread that has the ordinal
 *     live          --free-->        free            by any thread with the handle, as all below
 *     live          <--pin, unpin--> live, pinned
 *     live, pinned  --free-->        dying
 *     dying         --last unpin-->  free            the object is disposed of just before
 *
 * The thread that makes a word free owns the ordinal, and puts it in a magazine. A word that is
 * free or zero is changed only by the owner of its ordinal, which is a thread or the ordinal's
 * slab. A thread with a stale handle changes nothing, because the handle's generation is not in the
 * word any more. This generation never comes back: the generations of a word rise, and a later
 * owner of this ordinal continues from the highest one (directory.h, blocks.h).
 *
 * Memory order: writes to an object happen before its free, which releases the word. The next owner
 * gets the ordinal through the same thread's magazine or through the depot; both order its accesses
 * behind the free. Between a pin (acquire) and its unpin (release) no thread makes the object free.
 */
#include <errno.h>

#include <slabyard/unstable.h>

#include "base/bits.h"
#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/movable.h"
#include "cache/watched.h"
#include "debug/fault.h"
#include "magazine/readers.h"
#include "os/invariant.h"
#include "os/os.h"
#include "os/pages.h"

static uint64_t *word_of(const sy_cache *cache, sy_handle handle) {
    return &cache->names.words[(uint32_t)handle];
}

static uint64_t pins_of(uint64_t word) { return (word & SY_HANDLE_PINS) / SY_HANDLE_PIN; }

/* Only a word that is live or dying counts pins. */
static bool has_pin(uint64_t word) {
    uint64_t state = word & SY_HANDLE_STATE;
    return pins_of(word) && (state == SY_HANDLE_LIVE || state == SY_HANDLE_DYING);
}

static bool swap(uint64_t *word, uint64_t *expected, uint64_t desired) {
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* ---- allocation and free ---- */

/* Takes a free ordinal, which this thread owns from now on; false with errno. */
static bool take_ordinal(sy_cache *cache, uintptr_t *ordinal) {
    if (!sy_cache_has_handles(cache)) {
        errno = EINVAL;
        return false;
    }
    return cache->basic->alloc(cache, cache->size, cache->layout.align, ordinal);
}

/* Whether the word of an ordinal is a free word of this cache: neither live nor pinned. */
static bool word_is_free(const sy_cache *cache, uintptr_t ordinal) {
    uint64_t word = __atomic_load_n(&cache->names.words[ordinal], __ATOMIC_RELAXED);
    return !(word & (SY_HANDLE_STATE | SY_HANDLE_PINS)) &&
           (uint32_t)word >> SY_HANDLE_CACHE == cache->client.number;
}

bool SY_ABI_NAME(sy_handle_take_slow)(sy_cache *cache, uint32_t *ordinal) {
    uintptr_t item;
    bool moves = cache->flags & SY_MOVABLE; /* then the program must not change words itself */
    if (moves) errno = EINVAL;
    bool taken = !moves && take_ordinal(cache, &item);
    SY_INVARIANT(!taken || word_is_free(cache, item));
    if (taken) *ordinal = (uint32_t)item;
    return taken;
}

/* The slot of a cache's free ordinals. The inline functions find it only if objects do not move. */
static sy_loaded_slot *loaded_ordinals(const sy_cache *cache) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + sy_client_offset(&cache->client));
}

static void *alloc_movable(sy_cache *cache, sy_handle *handle) {
    uintptr_t ordinal;
    if (!sy_readers_has_own()) {
        errno = EPERM;
        return NULL;
    }
    if (!sy_loaded_pop(loaded_ordinals(cache), &ordinal) && !take_ordinal(cache, &ordinal))
        return NULL;
    SY_INVARIANT(word_is_free(cache, ordinal));
    void *object = sy_names_place(&cache->names, ordinal);
    sy_handle_enliven(&cache->names, ordinal, handle);
    return object;
}

void *SY_ABI_NAME(sy_handle_alloc_slow)(sy_cache *cache, sy_handle *handle) {
    uintptr_t ordinal;
    if (cache->flags & SY_MOVABLE) return alloc_movable(cache, handle);
    if (!take_ordinal(cache, &ordinal)) return NULL;
    SY_INVARIANT(word_is_free(cache, ordinal));
    sy_handle_enliven(&cache->names, ordinal, handle);
    return sy_handle_place(&cache->names, ordinal);
}

bool SY_ABI_NAME(sy_handle_put_slow)(sy_cache *cache, uint32_t ordinal) {
    SY_INVARIANT(word_is_free(cache, ordinal));
    if (!sy_names_move(&cache->names) || !sy_loaded_push(loaded_ordinals(cache), ordinal))
        cache->basic->put(cache, ordinal, false);
    return true;
}

/* Puts an ordinal in a magazine, after this thread has made its word free. If the ordinal's
 * generations are used up, it is retired instead. */
static void sy_handle_put(sy_cache *cache, sy_handle handle) {
    if (handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX) {
        atomic_fetch_add_explicit(&cache->retired, 1, memory_order_relaxed);
        cache->basic->put(cache, (uint32_t)handle, true);
    } else if (!sy_loaded_push(sy_handle_loaded(&cache->names), (uint32_t)handle)) {
        SY_ABI_NAME(sy_handle_put_slow)(cache, (uint32_t)handle);
    }
}

bool SY_ABI_NAME(sy_handle_free_slow)(sy_cache *cache, sy_handle handle) {
    uint64_t expected = sy_names_expected(&cache->names, handle);
    uint64_t word = __atomic_load_n(word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~SY_HANDLE_PINS) == expected ||
           sy_moving_settle(&cache->names, word_of(cache, handle), expected, &word)) {
        if ((word & ~SY_HANDLE_PINS) != expected) continue;
        uint64_t next = word & ~SY_HANDLE_STATE;
        bool alone = !pins_of(word), disposes = alone && cache->dispose;
        if (!alone || disposes) next |= SY_HANDLE_DYING;
        if (disposes) next += SY_HANDLE_PIN;
        if (!swap(word_of(cache, handle), &word, next)) continue;
        if (disposes)
            sy_handle_unpin(cache, handle);
        else if (alone)
            sy_handle_put(cache, handle);
        return true;
    }
    return false;
}

/* ---- objects that are being prepared ---- */

/* The word of an object that is being prepared: dying with one pin, as if the object had been freed
 * while the preparing thread held the pin. Its handle is refused until it is published. */
static uint64_t prepared(const sy_cache *cache, sy_handle handle) {
    uint64_t live = sy_names_expected(&cache->names, handle);
    return (live & ~SY_HANDLE_STATE) | SY_HANDLE_DYING | SY_HANDLE_PIN;
}

void *sy_handle_prepare(sy_cache *cache, sy_handle *handle) {
    uintptr_t ordinal;
    if (!(sy_cache_has_handles(cache) &&
          sy_loaded_pop(sy_handle_loaded(&cache->names), &ordinal)) &&
        !take_ordinal(cache, &ordinal))
        return NULL;
    uint64_t *word = &cache->names.words[ordinal];
    uint64_t generation = (__atomic_load_n(word, __ATOMIC_RELAXED) >> SY_HANDLE_GENERATION) + 1;
    *handle = generation << SY_HANDLE_GENERATION | ordinal;
    __atomic_store_n(word, prepared(cache, *handle), __ATOMIC_RELAXED);
    return sy_names_place(&cache->names, ordinal);
}

static void sy_handle_not_pinned(const sy_cache *cache, sy_handle handle);

/* Changes the word of an object that is being prepared to `next`; false, with a fault raised: the
 * object is not being prepared. */
static bool end_preparing(sy_cache *cache, sy_handle handle, uint64_t next) {
    uint64_t expected = prepared(cache, handle);
    if (sy_handle_in_range(&cache->names, handle) && swap(word_of(cache, handle), &expected, next))
        return true;
    sy_handle_not_pinned(cache, handle);
    return false;
}

void sy_handle_publish(sy_cache *cache, sy_handle handle) {
    end_preparing(cache, handle, sy_names_expected(&cache->names, handle));
}

void sy_handle_cancel(sy_cache *cache, sy_handle handle) {
    uint64_t next = sy_names_expected(&cache->names, handle) & ~SY_HANDLE_STATE;
    if (end_preparing(cache, handle, next)) sy_handle_put(cache, handle);
}

/* ---- pins ---- */

void *sy_handle_pin(sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) return NULL;
    uint64_t expected = sy_names_expected(&cache->names, handle);
    uint64_t word = __atomic_load_n(word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~SY_HANDLE_PINS) == expected ||
           sy_moving_settle(&cache->names, word_of(cache, handle), expected, &word)) {
        if ((word & ~SY_HANDLE_PINS) != expected) continue;
        if (pins_of(word) == SY_HANDLE_PINS_MAX) {
            errno = EAGAIN;
            return NULL;
        }
        if (swap(word_of(cache, handle), &word, word + SY_HANDLE_PIN))
            return sy_names_place(&cache->names, (uint32_t)handle);
    }
    return NULL;
}

/* Whether the ordinal belongs to a slab of this cache. */
static bool is_own_ordinal(const sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) return false;
    uint64_t word = __atomic_load_n(word_of(cache, handle), __ATOMIC_RELAXED);
    return (uint32_t)word >> SY_HANDLE_CACHE == cache->client.number;
}

static SY_COLD void sy_handle_not_pinned(const sy_cache *cache, sy_handle handle) {
    bool own = is_own_ordinal(cache, handle);
    if (own && sy_cache_checks(cache)) {
        sy_watched_raise(cache, (uint32_t)handle, SY_FAULT_NOT_PINNED);
        return;
    }
    sy_fault_raise(&(sy_fault){
        .kind = SY_FAULT_NOT_PINNED,
        .cache = cache->name,
        .object_size = cache->size,
        .address = own ? sy_names_place(&cache->names, (uint32_t)handle) : NULL,
    });
}

static void call_dispose(sy_cache *cache, sy_handle handle) {
    SY_SLOW_PATH(&cache->client);
    SY_CALLBACK(call, "dispose function", "cache", cache->name, false);
    cache->dispose(sy_names_place(&cache->names, (uint32_t)handle), cache->arg);
    call.returned = true;
}

void sy_handle_unpin(sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) {
        sy_handle_not_pinned(cache, handle);
        return;
    }
    uint64_t expected = sy_names_expected(&cache->names, handle) & ~SY_HANDLE_STATE;
    uint64_t word = __atomic_load_n(word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~(SY_HANDLE_PINS | SY_HANDLE_STATE)) == expected && has_pin(word)) {
        uint64_t next = word - SY_HANDLE_PIN;
        bool last = (word & SY_HANDLE_STATE) == SY_HANDLE_DYING && !pins_of(next);
        if (last && cache->dispose)
            call_dispose(cache, handle); /* no other thread changes the word now */
        if (last) next &= ~SY_HANDLE_STATE;
        if (!swap(word_of(cache, handle), &word, next)) continue;
        if (!last) return;
        bool disposed = cache->dispose;
        sy_handle_put(cache, handle);
        if (disposed) sy_cache_turn();
        return;
    }
    sy_handle_not_pinned(cache, handle);
}

/* ---- addresses ---- */

/* The ordinal of the object in a slot, if there is one. If another thread is reusing the slab, what
 * is read may be anything. So callers compare the ordinal's place with the slot. */
__attribute__((no_sanitize("thread"))) static uint32_t owner_of(const sy_slab *slab,
                                                                uint32_t index) {
    uint32_t first = *(const volatile uint32_t *)&slab->ordinal;
    return (uint64_t)first + index / 2 < sy_ordinals_limit() ? sy_movable_owner(first, index) : 0;
}

/* Whether the ordinal, which lies in the cache's range, is that of this slot. */
static bool is_at(const sy_cache *cache, uint32_t ordinal, const void *object) {
    if (!sy_handle_in_range(&cache->names, ordinal)) return false;
    return sy_names_place(&cache->names, ordinal) == object ||
           (sy_names_word(&cache->names, ordinal) &&
            sy_names_place(&cache->names, ordinal) == object);
}

bool sy_cache_ordinal(const sy_cache *cache, uintptr_t address, uint32_t *ordinal,
                      sy_fault_kind *fault) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || slab->owner != cache) {
        *fault = sy_cache_fault_outside(cache, slab);
        return false;
    }
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    *fault = SY_FAULT_MISALIGNED_POINTER;
    if (index == UINT32_MAX) return false;
    *ordinal = sy_cache_moves(cache) ? owner_of(slab, index) : slab->ordinal + index;
    return true;
}

/* The handle of the cache's object that is live at this ordinal; 0: none is. */
static sy_handle live_handle(const sy_cache *cache, uint32_t ordinal) {
    uint64_t word = sy_names_word(&cache->names, ordinal);
    sy_handle generation = word >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION;
    uint64_t expected = generation | sy_names_live(&cache->names);
    word &= ~SY_HANDLE_PINS;
    bool live = word == expected || word == (expected | SY_HANDLE_MOVING);
    return live ? generation | ordinal : 0;
}

sy_handle sy_handle_of(const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? __atomic_load_n(&slab->owner, __ATOMIC_RELAXED) : NULL;
    uint32_t ordinal;
    sy_fault_kind fault;
    if (!cache || !sy_cache_has_handles(cache) ||
        !sy_cache_ordinal(cache, (uintptr_t)object, &ordinal, &fault))
        return 0;
    /* If no object is live here, another thread may be reusing the slab: then its owner, ordinal
     * and place may be of different slabs. So they are checked against each other. */
    return is_at(cache, ordinal, object) ? live_handle(cache, ordinal) : 0;
}

/* ---- slow paths by address ---- */

/* Allocates an object for a caller that needs no handle. */
static bool sy_named_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *object) {
    (void)size, (void)align; /* each object has the cache's */
    sy_handle handle;
    *object = (uintptr_t)sy_handle_alloc_inline(cache, &handle);
    return *object;
}

static void sy_cache_free_named(sy_cache *cache, void *object) {
    uint32_t ordinal;
    sy_fault_kind kind;
    if (sy_cache_ordinal(cache, (uintptr_t)object, &ordinal, &kind)) {
        sy_handle handle = is_at(cache, ordinal, object) ? live_handle(cache, ordinal) : 0;
        if (handle && sy_handle_free_inline(cache, handle)) return;
        if (sy_cache_checks(cache)) {
            sy_watched_raise(cache, ordinal, SY_FAULT_DOUBLE_FREE);
            return;
        }
        kind = SY_FAULT_DOUBLE_FREE;
    }
    sy_fault fault = sy_cache_fault(cache, kind, (uintptr_t)object, sy_slab_at((uintptr_t)object));
    sy_fault_raise(&fault);
}

static void sy_named_free(sy_cache *cache, void *object, size_t told) {
    (void)told;
    int error = errno;
    sy_cache_free_named(cache, object);
    errno = error;
}

static bool sy_named_try_free(sy_cache *cache, void *object) {
    return sy_handle_free_inline(cache, sy_handle_of(object));
}

static bool sy_named_find(const sy_cache *cache, const void *object, size_t *bytes) {
    return cache->basic->find(cache, object, bytes);
}

/* ---- ordinals in place of addresses, in the magazines ---- */

static size_t refill_ordinals(void *owner, uintptr_t *items, size_t count) {
    const sy_cache *cache = owner;
    count = sy_cache_refill(owner, items, count);
    for (size_t i = 0; i < count; i++) {
        const sy_slab *slab = sy_slab_at(items[i]);
        uint32_t ordinal = slab->ordinal + sy_slab_index(slab, &cache->layout, items[i]);
        sy_ordinal_prepare(ordinal, cache->client.number);
        items[i] = ordinal;
    }
    return count;
}

static void flush_ordinals(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    const sy_cache *cache = owner;
    for (size_t i = 0; i < count; i++)
        items[i] = (uintptr_t)sy_handle_place(&cache->names, items[i]);
    sy_cache_flush(owner, items, count, held);
}

/* ---- slabs with ordinals ---- */

static bool take_named_tables(const sy_cache *cache, sy_slab *slab) {
    const sy_slab_kind *basic = cache->basic->slabs;
    if (!basic->take_tables(cache, slab)) return false;
    if (sy_ordinals_take(cache->layout.slots, &slab->ordinal)) return true;
    basic->give_tables(cache, slab);
    return false;
}

static void give_named_tables(const sy_cache *cache, sy_slab *slab) {
    sy_ordinals_give(slab->ordinal, cache->layout.slots, 0);
    cache->basic->slabs->give_tables(cache, slab);
}

static void begin_named_slab(sy_cache *cache, sy_slab *slab) {
    const sy_layout *layout = &cache->layout;
    uint64_t end = (uint64_t)slab->ordinal + layout->slots;
    sy_ordinals_place(slab->ordinal, layout->slots, slab->first, layout->slot);
    if (end > cache->names.limit) __atomic_store_n(&cache->names.limit, end, __ATOMIC_RELAXED);
    cache->basic->slabs->begin(cache, slab);
}

static void end_named_slab(sy_cache *cache, sy_slab *slab) {
    cache->basic->slabs->end(cache, slab);
}

static int populate_named(const sy_slab *slab) {
    return sy_run_populate(slab) == 0 ? sy_ordinals_populate(slab->ordinal, slab->slots) : -1;
}

static const sy_slab_kind named_slabs = {
    .take_tables = take_named_tables,
    .give_tables = give_named_tables,
    .begin = begin_named_slab,
    .end = end_named_slab,
    .populate = populate_named,
};

const sy_kind sy_kind_named = {
    .alloc = sy_named_alloc,
    .free = sy_named_free,
    .try_free = sy_named_try_free,
    .find = sy_named_find,
    .fill = sy_cache_fill_singly,
    .refill = refill_ordinals,
    .flush = flush_ordinals,
    .slabs = &named_slabs,
};

const sy_kind sy_kind_movable = {
    .alloc = sy_named_alloc,
    .free = sy_named_free,
    .try_free = sy_named_try_free,
    .find = sy_named_find,
    .fill = sy_cache_fill_singly,
    .refill = sy_movable_refill,
    .flush = sy_movable_flush,
    .slabs = &sy_slabs_movable,
};

/* ---- iteration ---- */

/* Copies the first ordinals of all slabs, if there is room for all; returns how many there are. */
static size_t copy_slabs(sy_cache *cache, uint32_t *firsts, size_t room) {
    sy_lock_acquire(&cache->lock);
    size_t count = cache->slab_count, done = 0;
    if (count <= room)
        for (const sy_slab *slab = cache->slabs; done < count; slab = slab->next)
            firsts[done++] = slab->ordinal;
    sy_lock_release(&cache->lock);
    return count;
}

size_t sy_handle_slabs(sy_cache *cache, uint32_t *firsts, size_t room, uint32_t *slots) {
    if (!sy_cache_has_handles(cache)) return 0;
    if (sy_names_move(&cache->names)) {
        *slots = SY_BLOCK_ORDINALS;
        return sy_blocks_copy(cache, firsts, room);
    }
    *slots = cache->layout.slots;
    return copy_slabs(cache, firsts, room);
}

/* An object that is pinned for a visitor; 0: none is. */
typedef struct visited {
    sy_cache *cache;
    sy_handle handle;
} visited;

static void leave(const visited *object) {
    if (object->handle) sy_handle_unpin(object->cache, object->handle);
}

/* Visits the object, if it is live. It is unpinned also if the visitor is left by the end of its
 * thread. */
static int visit_one(sy_cache *cache, sy_handle handle, sy_handle_visit visit, void *arg) {
    void *object = handle ? sy_handle_pin(cache, handle) : NULL;
    visited pinned SY_CLEANUP(leave) = {cache, object ? handle : 0};
    if (!object) return 0;
    SY_CALLBACK(call, .function = "visitor of sy_handle_each", .may_unwind = true);
    int result = visit(arg, handle, object);
    call.returned = true;
    return result;
}

/* Visits the live objects of one slab or block. If it was released meanwhile, none of its words is
 * a live one of this cache. A place in a block is no live word. */
static int visit_slab(sy_cache *cache, uint32_t first, uint32_t slots, sy_handle_visit visit,
                      void *arg) {
    int result = 0;
    for (uint32_t i = 0; i < slots && result == 0; i++)
        result = visit_one(cache, live_handle(cache, first + i), visit, arg);
    return result;
}

/* The first ordinals of slabs, in pages of their own. */
typedef struct ordinals {
    uint32_t *firsts; /* NULL: no memory */
    size_t bytes;
} ordinals;

static ordinals take_ordinals(size_t count) {
    size_t bytes = sy_round_up((count + 1) * sizeof(uint32_t), sy_os_page_size());
    return (ordinals){sy_pages_take(bytes, sy_os_page_size(), "slabyard handles walk"), bytes};
}

static void give_ordinals(const ordinals *taken) {
    if (taken->firsts) sy_pages_give(taken->firsts, taken->bytes);
}

int sy_handle_each(sy_cache *cache, sy_handle_visit visit, void *arg) {
    if (!sy_cache_has_handles(cache)) {
        errno = EINVAL;
        return -1;
    }
    uint32_t slots;
    for (size_t room = sy_handle_slabs(cache, NULL, 0, &slots);;) {
        ordinals taken SY_CLEANUP(give_ordinals) = take_ordinals(room);
        if (!taken.firsts) {
            errno = ENOMEM;
            return -1;
        }
        size_t count = sy_handle_slabs(cache, taken.firsts, room, &slots);
        int result = 0;
        for (size_t i = 0; count <= room && i < count && result == 0; i++)
            result = visit_slab(cache, taken.firsts[i], slots, visit, arg);
        if (count <= room) return result;
        room = count + count / 8;
    }
}
