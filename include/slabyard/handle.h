/*
 * slabyard/handle.h: objects by name: 64-bit handles that are recognised as stale for ever.
 *
 * A handle is an ordinal, which says where, and a generation, which says which of the objects that
 * were there. When the object is freed its handle is stale, and stays so whatever comes to lie in
 * its place: it can be kept in messages, queues, other processes, tables that nobody cleans up.
 *
 *     sy_cache *sessions = sy_cache_create(
 *         &(sy_cache_config){.name = "session", .size = 200, .flags = SY_HANDLES});
 *     sy_handle handle;
 *     struct session *session = sy_handle_alloc(sessions, &handle);
 *     ...
 *     session = sy_handle_get(sessions, handle);      NULL once it is freed
 *     sy_handle_free(sessions, handle);               true; a second time false
 *
 * Any 64 bits may be passed as a handle: they are compared, never followed. 0 is never one. A
 * handle of another cache is refused. When a place has been through all its generations, 2^32 - 1
 * of them, it is retired with its slot (sy_cache_stats.retired).
 *
 * Which door: sy_handle_get costs a few loads and is for whoever owns the object, so that nobody
 * frees it meanwhile. sy_handle_pin is for all others: between pin and unpin the object stays, and
 * a free that comes meanwhile makes the handle stale at once and takes the object at the last
 * unpin. What is to be done to an object then, the cache's `dispose` does for whoever comes last.
 *
 * A cache with SY_HANDLES gives objects by sy_cache_alloc and takes them by sy_cache_free too, more
 * slowly; all of its objects have handles (sy_handle_of).
 *
 * Thread rule: any thread, at any time. After a fork, the pins that other threads held stay in the
 * child: what they pinned is never freed there.
 */
#ifndef SLABYARD_HANDLE_H
#define SLABYARD_HANDLE_H

#include <slabyard/cache.h>

SY_BEGIN_DECLS

typedef uint64_t sy_handle;

/* Most pins of one object at a time. */
enum { SY_HANDLE_PINS_MAX = (1 << 16) - 1 };

/*
 * A new object that nobody sees yet, while it is being made: its handle is refused, and no
 * iteration comes by, until sy_handle_publish. Or sy_handle_cancel gives it back, without
 * `dispose`. NULL as sy_handle_alloc. One of the two has to follow, once; anything else is reported
 * as an unpin without a pin.
 */
SY_API void *sy_handle_prepare(sy_cache *cache, sy_handle *handle);
SY_API void sy_handle_publish(sy_cache *cache, sy_handle handle);
SY_API void sy_handle_cancel(sy_cache *cache, sy_handle handle);

/* The object of a live handle of this cache, which stays until it is unpinned; NULL for any other
 * handle, or with errno EAGAIN if the object has SY_HANDLE_PINS_MAX pins. Pins are counted. */
SY_API void *sy_handle_pin(sy_cache *cache, sy_handle handle);

/* Ends one pin, also of a handle that has become stale since. Frees the object if that was to be. A
 * handle that is not pinned is SY_FAULT_NOT_PINNED (fault.h), and nothing changes. */
SY_API void sy_handle_unpin(sy_cache *cache, sy_handle handle);

/* The handle of a live object, or 0: no object of a cache with SY_HANDLES begins at this address.
 * Any address may be passed. */
SY_API sy_handle sy_handle_of(const void *object);

/* Called for each; nonzero ends it. The object is pinned meanwhile. */
typedef int (*sy_handle_visit)(void *arg, sy_handle handle, void *object);

/*
 * Calls `visit` for the live objects of the cache: for all that were live throughout, for some of
 * those that came or went meanwhile. Objects with SY_HANDLE_PINS_MAX pins are passed over. It may
 * allocate, get and free, in this cache too. 0; what
 * visit returned if that ended it; -1 with errno: EINVAL (no SY_HANDLES), ENOMEM.
 */
SY_API int sy_handle_each(sy_cache *cache, sy_handle_visit visit, void *arg);

/*
 * Where the ordinals of a cache are: the first ordinal of each slab that it has at this moment into
 * `firsts`, if all find `room` there, else none; in *slots how many objects a slab has, whose
 * ordinals follow one another. How many slabs there are; 0 for a cache without SY_HANDLES. For
 * whoever goes through the words below by himself: an ordinal may be another cache's by then, which
 * its word says.
 */
SY_API size_t sy_handle_slabs(sy_cache *cache, uint32_t *firsts, size_t room, uint32_t *slots);

/* --- The inline fast paths ------------------------------------------------------------------ */

/*
 * The word of an ordinal:
 *
 *     63         32 31       18 17        2  1 0
 *     | generation | cache     | pins      |state|
 *
 * state: free (0), live (1), dying (2: freed while it was pinned). An ordinal without a slab has a
 * word of zeros. The cache's number is in its words as long as they have a slab. A program that
 * changes words itself may make a word dying without pins, which no door touches: the object is
 * that thread's alone, which then stores a free word and puts the ordinal.
 */
#define SY_HANDLE_LIVE       UINT64_C(1)
#define SY_HANDLE_DYING      UINT64_C(2)
#define SY_HANDLE_STATE      UINT64_C(3)
#define SY_HANDLE_PIN        UINT64_C(4)
#define SY_HANDLE_PINS       (UINT64_C(0xffff) << 2)
#define SY_HANDLE_CACHE      18
#define SY_HANDLE_GENERATION 32

#ifndef SY_HANDLE_GENERATIONS_MAX
#    define SY_HANDLE_GENERATIONS_MAX UINT32_MAX /* tests build with fewer */
#endif

/* What the functions below read of a cache with SY_HANDLES, in place of sy_cache_head. */
struct sy_handle_head {
    uint64_t *words;      /* of all ordinals */
    uintptr_t *places;    /* of all ordinals, 64 by 64: where the first of them lies */
    uint64_t limit;       /* no ordinal of this cache is as large; grows */
    uint64_t live;        /* the lower half of the word of a live, unpinned object of this cache */
    size_t slot;          /* bytes from one object to the next */
    size_t loaded_offset; /* of sy_cache_alloc and sy_cache_free: of a slot that is shut */
    size_t names_offset;  /* bytes from sy_abi_1 to this cache's loaded slot, of free ordinals */
    uint64_t plain;       /* `live`, if a free is no more than that; else of no word */
};

SY_API void *SY_ABI_NAME(sy_handle_alloc_slow)(sy_cache *cache, sy_handle *handle);
SY_API bool SY_ABI_NAME(sy_handle_free_slow)(sy_cache *cache, sy_handle handle);

/* A free ordinal, the caller's until it has made the object live, and freed it, or puts it back. */
SY_API bool SY_ABI_NAME(sy_handle_take_slow)(sy_cache *cache, uint32_t *ordinal);
SY_API bool SY_ABI_NAME(sy_handle_put_slow)(sy_cache *cache, uint32_t ordinal);

static inline struct sy_handle_head *sy_handle_head_of(const sy_cache *cache) {
    return (struct sy_handle_head *)(uintptr_t)cache;
}

static inline sy_loaded_slot *sy_handle_loaded(const struct sy_handle_head *head) {
    return (sy_loaded_slot *)(void *)((char *)sy_abi_1 + head->names_offset);
}

static inline void *sy_handle_place(const struct sy_handle_head *head, uint64_t ordinal) {
    uintptr_t first = __atomic_load_n(&head->places[ordinal / 64], __ATOMIC_RELAXED);
    return (void *)(first + ordinal % 64 * head->slot);
}

/* The word of a live, unpinned object with this handle. */
static inline uint64_t sy_handle_expected(const struct sy_handle_head *head, sy_handle handle) {
    return (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->live;
}

/* Of whatever is passed as a handle; a cache without SY_HANDLES has the limit 0. */
static inline bool sy_handle_in_range(const struct sy_handle_head *head, sy_handle handle) {
    return (uint32_t)handle < __atomic_load_n(&head->limit, __ATOMIC_RELAXED);
}

/* The object of a free ordinal comes to life. Nobody else changes a free word. */
static inline void *sy_handle_enliven(const struct sy_handle_head *head, uint64_t ordinal,
                                      sy_handle *handle) {
    uint64_t *word = &head->words[ordinal];
    uint64_t live = __atomic_load_n(word, __ATOMIC_RELAXED) + (UINT64_C(1) << SY_HANDLE_GENERATION);
    live |= SY_HANDLE_LIVE;
    __atomic_store_n(word, live, __ATOMIC_RELEASE);
    *handle = (live >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | ordinal;
    return sy_handle_place(head, ordinal);
}

static inline void *sy_handle_alloc_inline(sy_cache *cache, sy_handle *handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    uintptr_t ordinal;
    if (SY_LIKELY(sy_loaded_pop(sy_handle_loaded(head), &ordinal)))
        return sy_handle_enliven(head, ordinal, handle);
    return SY_ABI_NAME(sy_handle_alloc_slow)(cache, handle);
}

static inline void *sy_handle_get_inline(const sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return NULL;
    uint64_t word = __atomic_load_n(&head->words[(uint32_t)handle], __ATOMIC_ACQUIRE);
    if (SY_UNLIKELY((word & ~SY_HANDLE_PINS) != sy_handle_expected(head, handle))) return NULL;
    return sy_handle_place(head, (uint32_t)handle);
}

static inline bool sy_handle_free_inline(sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return false;
    uint64_t live = (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->plain;
    uint64_t free_word = live & ~SY_HANDLE_STATE;
    bool spent = handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX;
    if (SY_UNLIKELY(spent ||
                    !__atomic_compare_exchange_n(&head->words[(uint32_t)handle], &live, free_word,
                                                 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
        return SY_ABI_NAME(sy_handle_free_slow)(cache, handle);
    if (SY_LIKELY(sy_loaded_push(sy_handle_loaded(head), (uint32_t)handle))) return true;
    return SY_ABI_NAME(sy_handle_put_slow)(cache, (uint32_t)handle);
}

/*
 * sy_handle_alloc: a new object and, in *handle, its handle. NULL with errno as sy_cache_alloc, or
 * EINVAL for a cache without SY_HANDLES; *handle is then as before.
 *
 * sy_handle_get: the object of a live handle of this cache, else NULL; errno is kept. If another
 * thread may free it, it may be gone when the caller looks at it: then pin.
 *
 * sy_handle_free: frees the object. True once for each handle; false for what is stale, forged, 0,
 * or of another cache. The object stays until the last pin is gone.
 */
#ifdef SY_NO_INLINE
SY_API void *sy_handle_alloc(sy_cache *cache, sy_handle *handle);
SY_API void *sy_handle_get(const sy_cache *cache, sy_handle handle);
SY_API bool sy_handle_free(sy_cache *cache, sy_handle handle);
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
#endif

SY_END_DECLS

#endif
