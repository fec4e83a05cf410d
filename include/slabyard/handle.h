/**
 * slabyard/handle.h: objects by handle: 64-bit names that stay invalid once their object is freed.
 *
 * A handle is an ordinal and a generation. The ordinal is the number of a place for an object. The
 * generation says which of the objects that were in this place is meant. When an object is freed,
 * its handle becomes stale, and stays stale even when another object lies in the same place. So
 * handles can be kept in messages, queues, other processes, and tables that are never cleaned up.
 *
 *     sy_cache *sessions = sy_cache_create(
 *         &(sy_cache_config){.name = "session", .size = 200, .flags = SY_HANDLES});
 *     sy_handle handle;
 *     struct session *session = sy_handle_alloc(sessions, &handle);
 *     ...
 *     session = sy_handle_get(sessions, handle);      NULL once it is freed
 *     sy_handle_free(sessions, handle);               true; a second time false
 *
 * You may pass any 64 bits as a handle: they are compared, never used as an address. 0 is never a
 * valid handle. A handle of another cache is refused. When a place has used all its generations,
 * 2^32 - 1 of them, it is retired with its slot (sy_cache_stats.retired).
 *
 * Two functions look up an object. sy_handle_get costs a few loads. Use it in the code that owns
 * the object, so that no other thread can free it meanwhile. Use sy_handle_pin everywhere else:
 * between pin and unpin the object stays. If it is freed meanwhile, its handle becomes stale at
 * once, and the object is freed at the last unpin. The cache's `dispose` function is called by the
 * thread that held the object last: the one that frees it, or that unpins it last.
 *
 * In a cache with SY_HANDLES, sy_cache_alloc and sy_cache_free work too, but are slower. All
 * objects of the cache have handles (sy_handle_of).
 *
 * With SY_MOVABLE the library may move objects, so that few survivors do not keep many pages: see
 * "Objects that move" below.
 *
 * Threads: any thread, at any time. After a fork, the pins that other threads held stay in the
 * child, so the objects that they pinned are never freed there.
 */
#ifndef SLABYARD_HANDLE_H
#define SLABYARD_HANDLE_H

#include <slabyard/cache.h>

SY_BEGIN_DECLS

/** The handle of an object. 0 is never a handle. */
typedef uint64_t sy_handle;

/** The largest number of pins that an object can have at a time. */
enum { SY_HANDLE_PINS_MAX = (1 << 16) - 1 };

/**
 * Allocates an object that no other thread can see while you initialise it. The object's handle is
 * written to *handle, but all functions refuse this handle until sy_handle_publish, and
 * sy_handle_each does not visit the object. Call either sy_handle_publish or sy_handle_cancel for
 * it, once.
 *
 * Returns the object, or NULL with errno.
 *
 * Errors:
 *     EINVAL    the cache has no SY_HANDLES
 *     ENOMEM    no memory, or the limit is reached
 */
SY_API void *sy_handle_prepare(sy_cache *cache, sy_handle *handle);

/** Makes an object of sy_handle_prepare live. If the handle does not belong to such an object, the
 * call is reported as an unpin without a pin. */
SY_API void sy_handle_publish(sy_cache *cache, sy_handle handle);

/**
 * Frees an object of sy_handle_prepare instead of making it live, without calling `dispose`. If the
 * handle does not belong to such an object, the call is reported as an unpin without a pin.
 *
 *     sy_handle handle;
 *     struct session *session = sy_handle_prepare(sessions, &handle);
 *     if (session && (session->socket = accept(listener, NULL, NULL)) >= 0)
 *         sy_handle_publish(sessions, handle);
 *     else if (session)
 *         sy_handle_cancel(sessions, handle);   no thread has seen the object
 */
SY_API void sy_handle_cancel(sy_cache *cache, sy_handle handle);

/**
 * Pins the object of a live handle of this cache. The object stays until it is unpinned. Pins are
 * counted.
 *
 * Returns the object. NULL for any handle that is not live in this cache; NULL with errno if the
 * object cannot be pinned.
 *
 * Errors:
 *     EAGAIN    the object has SY_HANDLE_PINS_MAX pins
 */
SY_API void *sy_handle_pin(sy_cache *cache, sy_handle handle);

/** Ends one pin, also if the handle has become stale since. If the object was freed while it was
 * pinned, the last unpin frees it. If the handle has no pin, the fault SY_FAULT_NOT_PINNED is
 * reported (fault.h), and nothing changes. */
SY_API void sy_handle_unpin(sy_cache *cache, sy_handle handle);

/**
 * Finds the handle of an object. Any address may be passed.
 *
 * Returns the handle of the live object; 0 if no live object of a cache with SY_HANDLES begins at
 * this address.
 *
 *     sy_handle handle = sy_handle_of(session);
 *     if (handle != 0) printf("session %016" PRIx64 "\n", handle);   a client may send it back
 */
SY_API sy_handle sy_handle_of(const void *object);

/** Called for each object, which is pinned during the call. A return value other than 0 ends the
 * iteration. */
typedef int (*sy_handle_visit)(void *arg, sy_handle handle, void *object);

/**
 * Calls `visit` for the live objects of the cache: for all that were live during the whole call,
 * and for some of those that were allocated or freed meanwhile. Objects with SY_HANDLE_PINS_MAX
 * pins are skipped. `visit` may allocate, get and free, also in this cache.
 *
 * Returns 0, or the value with which `visit` ended the iteration, or -1 with errno.
 *
 * Errors:
 *     EINVAL    the cache has no SY_HANDLES
 *     ENOMEM    no memory
 *
 * All sessions that have lost their connection:
 *
 *     static int close_lost(void *arg, sy_handle handle, void *object) {
 *         const struct session *session = object;
 *         if (session->socket < 0) sy_handle_free(arg, handle);
 *         return 0;   continue
 *     }
 *
 *     sy_handle_each(sessions, close_lost, sessions);
 */
SY_API int sy_handle_each(sy_cache *cache, sy_handle_visit visit, void *arg);

/*
 * --- Objects that move -------------------------------------------------------------------------
 *
 * In a cache with SY_HANDLES and SY_MOVABLE, passes and trims (reclaim.h) and sy_cache_compact move
 * live objects from sparse slabs to full ones, and return the slabs that become empty. A handle
 * stays valid when its object moves; an address does not. An object stays where it is
 *
 *   - from sy_handle_pin to sy_handle_unpin,
 *   - from sy_handle_prepare to sy_handle_publish,
 *   - during the visit of sy_handle_each, and in `dispose`,
 *   - from sy_read_get to the end of the read guard (sy_read_enter) in which you called it.
 *
 * Outside of these keep handles only. The object may be read and written in all of them. A read
 * guard does not keep an object from being freed: as with sy_handle_get, use it in the code that
 * owns the object, or pin.
 *
 *     extern sy_handle handle;
 *     sy_read_guard guard = sy_read_enter();
 *     struct session *session = sy_read_get(sessions, handle);
 *     if (session) session->socket = -1;
 *     sy_read_leave(guard);   from here on the object may move
 *
 * Differences from other caches with handles:
 *
 *   - sy_read_get takes the place of sy_handle_get, which always returns NULL.
 *   - sy_handle_alloc and the allocations of cache.h return addresses that may change, so call
 *     them in a read guard; elsewhere they fail with EPERM. sy_handle_prepare needs no guard.
 *   - A program that changes the words below itself may pin, unpin, and make a live word dying. It
 *     cannot take ordinals.
 *   - A look-up may wait while the object is copied: less than a microsecond, more if `relocate`
 *     takes longer or the copying thread is interrupted. So a handler of a signal must not use
 *     such a cache.
 *   - `construct` and SY_EPOCHS are refused with EINVAL, and so is the flag in heaps (heaps.h).
 *
 * Objects are moved by memcpy, or by the cache's `relocate` function. Objects over 8 KiB do not
 * move, nor do objects of caches with checks (SY_CHECKED, SY_EDGES, SY_GUARD), so that reports name
 * addresses that stay: such a cache is one without SY_MOVABLE.
 */

/** What sy_read_enter returns, for sy_read_leave. */
typedef uint64_t sy_read_guard;

/**
 * Begins a read guard: no object that this thread looks up from now on with sy_read_get moves
 * before sy_read_leave. It costs two stores, whatever the number of look-ups. Guards nest: an
 * object stays until the outermost one ends.
 *
 * Before objects are moved, the library waits some microseconds for the guards that have begun, and
 * gives up if one of them lasts: long guards keep the objects of all caches from moving. So keep
 * guards short: the work on one message, not the life of a thread.
 *
 * Returns a value for sy_read_leave, which the same thread must call. If another thread calls it,
 * or guards end in another order, objects can move while they are used. A guard that its thread
 * never leaves ends with the thread; but if there was no memory to note the thread when the guard
 * began, no object moves any more.
 */
SY_API sy_read_guard sy_read_enter(void);

/** Ends the guard. Guards end in reverse order. */
SY_API void sy_read_leave(sy_read_guard guard);

/**
 * Moves live objects from sparse slabs to fuller ones, and gives slabs that become empty back for
 * use by other caches, until `bytes` bytes of slabs are empty or `budget_ns` nanoseconds have
 * passed. It works in steps of some 20 microseconds. The first call after other threads have freed
 * many objects may find these in magazines, and leave their slabs alone.
 *
 * Returns the bytes of slabs that it emptied: 0 for caches without SY_MOVABLE, and if this thread
 * is in a read guard.
 *
 *     size_t emptied = sy_cache_compact(sessions, SIZE_MAX, 200000);   some 0.2 ms
 *     printf("%zu bytes of slabs are empty\n", emptied);
 */
SY_API size_t sy_cache_compact(sy_cache *cache, size_t bytes, uint64_t budget_ns);

/* --- The inline fast paths ------------------------------------------------------------------ */

/*
 * The word of an ordinal (unstable.h says how a program may change it):
 *
 *     63         32 31       18 17        2  1 0
 *     | generation | cache     | pins      |state|
 *
 * state: free (0), live (1), dying (2: freed while it was pinned), moving (3: live; with 0 pins it
 * is about to be moved, with 1 pin it is being copied). An ordinal without a slab has a
 * word of zeros. The number of the cache is in the word as long as the ordinal has a slab. With
 * SY_MOVABLE a live object's word may be zero, too: a look-up by its handle restores it.
 *
 * With SY_MOVABLE an object has an even ordinal, and the word of the odd ordinal behind it is the
 * object's address, shifted left by SY_HANDLE_PLACE: as a word it is neither live nor pinned. In
 * the head `slot` is what `live` is elsewhere, and `live` a value that no word has.
 */
#define SY_HANDLE_PLACE      15
#define SY_HANDLE_LIVE       UINT64_C(1)
#define SY_HANDLE_DYING      UINT64_C(2)
#define SY_HANDLE_MOVING     UINT64_C(3)
#define SY_HANDLE_STATE      UINT64_C(3)
#define SY_HANDLE_PIN        UINT64_C(4)
#define SY_HANDLE_PINS       (UINT64_C(0xffff) << 2)
#define SY_HANDLE_CACHE      18
#define SY_HANDLE_GENERATION 32

#ifndef SY_HANDLE_GENERATIONS_MAX
#    define SY_HANDLE_GENERATIONS_MAX UINT32_MAX /* tests define a smaller number */
#endif

/* The part of a cache with SY_HANDLES that the inline functions read, in place of sy_cache_head.
 * Each field takes 8 bytes, also where pointers have 4. */
#define SY_HANDLE_FIELD __attribute__((aligned(8)))
struct sy_handle_head {
    SY_HANDLE_FIELD uint64_t *words;   /* indexed by ordinal */
    SY_HANDLE_FIELD uintptr_t *places; /* the address of the first of each 64 ordinals, indexed by
                                        * ordinal / 64 */
    SY_HANDLE_FIELD uint64_t limit;    /* all ordinals of this cache are smaller; grows */
    SY_HANDLE_FIELD uint64_t live; /* the lower half of the word of a live, unpinned object of this
                                    * cache */
    SY_HANDLE_FIELD size_t slot;   /* bytes from one object to the next, a multiple of 4 */
    SY_HANDLE_FIELD size_t loaded_offset; /* bytes from sy_abi_1 to a slot that is always shut, so
                                           * that sy_cache_alloc and sy_cache_free take their slow
                                           * paths */
    SY_HANDLE_FIELD size_t names_offset;  /* bytes from sy_abi_1 to this cache's loaded slot of free
                                           * ordinals */
    SY_HANDLE_FIELD uint64_t plain; /* `live` if sy_handle_free needs to change only the word; else
                                     * a value that no word has */
};

SY_API void *SY_ABI_NAME(sy_handle_alloc_slow)(sy_cache *cache, sy_handle *handle);
SY_API bool SY_ABI_NAME(sy_handle_free_slow)(sy_cache *cache, sy_handle handle);

/* sy_handle_take_slow takes a free ordinal. It belongs to the caller, which either makes the object
 * live and frees it later, or puts the ordinal back with sy_handle_put_slow. Returns false with
 * errno as sy_handle_alloc. */
SY_API bool SY_ABI_NAME(sy_handle_take_slow)(sy_cache *cache, uint32_t *ordinal);
SY_API bool SY_ABI_NAME(sy_handle_put_slow)(sy_cache *cache, uint32_t ordinal);

SY_API void *SY_ABI_NAME(sy_read_get_slow)(const sy_cache *cache, sy_handle handle);

static inline struct sy_handle_head *sy_handle_head_of(const sy_cache *cache) {
    return SY_AS(struct sy_handle_head *, SY_AS(uintptr_t, cache));
}

static inline sy_loaded_slot *sy_handle_loaded(const struct sy_handle_head *head) {
    return SY_AS(sy_loaded_slot *, SY_AS(char *, sy_abi_1) + head->names_offset);
}

static inline void *sy_handle_place(const struct sy_handle_head *head, uint64_t ordinal) {
    uintptr_t first = __atomic_load_n(&head->places[ordinal / 64], __ATOMIC_RELAXED);
    return SY_AS(void *, first + SY_CAST(uintptr_t, ordinal % 64) * head->slot);
}

/* The word that a live, unpinned object with this handle has. */
static inline uint64_t sy_handle_expected(const struct sy_handle_head *head, sy_handle handle) {
    return (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->live;
}

/* Whether the ordinal of any 64 bits can be one of this cache. A cache without SY_HANDLES has the
 * limit 0. */
static inline bool sy_handle_in_range(const struct sy_handle_head *head, sy_handle handle) {
    return SY_CAST(uint32_t, handle) < __atomic_load_n(&head->limit, __ATOMIC_RELAXED);
}

/* Makes the object of a free ordinal live. No other thread changes a free word. */
static inline void sy_handle_enliven(const struct sy_handle_head *head, uint64_t ordinal,
                                     sy_handle *handle) {
    uint64_t *word = &head->words[ordinal];
    uint64_t live = __atomic_load_n(word, __ATOMIC_RELAXED) + (UINT64_C(1) << SY_HANDLE_GENERATION);
    live |= SY_HANDLE_LIVE;
    __atomic_store_n(word, live, __ATOMIC_RELEASE);
    *handle = (live >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | ordinal;
}

static inline void *sy_handle_alloc_inline(sy_cache *cache, sy_handle *handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    uintptr_t ordinal;
    if (SY_UNLIKELY(!sy_loaded_pop(sy_handle_loaded(head), &ordinal)))
        return SY_ABI_NAME(sy_handle_alloc_slow)(cache, handle);
    sy_handle_enliven(head, ordinal, handle);
    return sy_handle_place(head, ordinal);
}

static inline void *sy_handle_get_inline(const sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return NULL;
    uint64_t word = __atomic_load_n(&head->words[SY_CAST(uint32_t, handle)], __ATOMIC_ACQUIRE);
    if (SY_UNLIKELY((word & ~SY_HANDLE_PINS) != sy_handle_expected(head, handle))) return NULL;
    return sy_handle_place(head, SY_CAST(uint32_t, handle));
}

/* In a cache without SY_MOVABLE `slot` ends in two zero bits, so no live word is equal to it. */
static inline void *sy_read_get_inline(const sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return NULL;
    const uint64_t *words = &head->words[SY_CAST(uint32_t, handle)];
    uint64_t word = __atomic_load_n(words, __ATOMIC_ACQUIRE);
    uint64_t expected = (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->slot;
    if (SY_UNLIKELY((word & ~SY_HANDLE_PINS) != expected || !(word & SY_HANDLE_LIVE)))
        return SY_ABI_NAME(sy_read_get_slow)(cache, handle);
    uint64_t place = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
    return SY_AS(void *, SY_CAST(uintptr_t, place >> SY_HANDLE_PLACE));
}

static inline bool sy_handle_free_inline(sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return false;
    uint64_t live = (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->plain;
    uint64_t free_word = live & ~SY_HANDLE_STATE;
    bool spent = handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX;
    if (SY_UNLIKELY(spent || !__atomic_compare_exchange_n(&head->words[SY_CAST(uint32_t, handle)],
                                                          &live, free_word, false, __ATOMIC_ACQ_REL,
                                                          __ATOMIC_RELAXED)))
        return SY_ABI_NAME(sy_handle_free_slow)(cache, handle);
    if (SY_LIKELY(sy_loaded_push(sy_handle_loaded(head), SY_CAST(uint32_t, handle)))) return true;
    return SY_ABI_NAME(sy_handle_put_slow)(cache, SY_CAST(uint32_t, handle));
}

#ifdef SY_NO_INLINE
/**
 * Allocates an object and writes its handle to *handle.
 *
 * Returns the object, or NULL with errno; *handle is then unchanged.
 *
 * Errors:
 *     EINVAL    the cache has no SY_HANDLES
 *     ENOMEM    no memory, or the limit is reached
 *     EPERM     the cache has SY_MOVABLE, and the thread is in no read guard
 */
SY_API void *sy_handle_alloc(sy_cache *cache, sy_handle *handle);

/**
 * Looks up the object of a handle. errno is kept. If another thread may free the object while you
 * use it, call sy_handle_pin instead.
 *
 * Returns the object of a live handle of this cache, else NULL.
 */
SY_API void *sy_handle_get(const sy_cache *cache, sy_handle handle);

/**
 * Frees the object of a handle. A pinned object stays until its last pin ends.
 *
 * Returns true once for each handle; false for a handle that is stale, forged, 0, or of another
 * cache.
 */
SY_API bool sy_handle_free(sy_cache *cache, sy_handle handle);

/**
 * Looks up the object of a handle within a read guard (sy_read_enter). errno is kept. In a cache
 * without SY_MOVABLE it does what sy_handle_get does.
 *
 * Returns the object of a live handle of this cache, else NULL.
 */
SY_API void *sy_read_get(const sy_cache *cache, sy_handle handle);
#else
static inline void *sy_handle_alloc(sy_cache *cache, sy_handle *handle) {
    return sy_handle_alloc_inline(cache, handle);
}
static inline void *sy_handle_get(const sy_cache *cache, sy_handle handle) {
    return sy_handle_get_inline(cache, handle);
}
static inline bool sy_handle_free(sy_cache *cache, sy_handle handle) {
    return sy_handle_free_inline(cache, handle);
}
static inline void *sy_read_get(const sy_cache *cache, sy_handle handle) {
    return sy_read_get_inline(cache, handle);
}
#endif

SY_END_DECLS

#endif
