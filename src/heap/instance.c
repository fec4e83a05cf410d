/*
 * instance.c: separate heaps: creates and destroys them, and allocates and frees their objects by
 * address.
 */
#include "heap/instance.h"

#include <errno.h>
#include <string.h>

#include "base/sized.h"
#include "base/text.h"
#include "cache/directory.h"
#include "cache/guarded.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/passed.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "debug/profile.h"
#include "debug/tell.h"
#include "magazine/turn.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/start.h"

static const unsigned KNOWN_FLAGS = SY_HANDLES | SY_EPOCHS | SY_CHECK_FLAGS;

/* ---- sizes ---- */

static const size_t SIZE_MOST = (size_t)1 << SY_HEAP_SIZE_SHIFT;

/* The class of objects of `size` bytes. `size` is at most SIZE_MOST. */
static inline unsigned class_for(size_t size) {
    if (SY_LIKELY(size <= SY_CLASS_TABLE_MAX)) return sy_class_table[(size + 7) / 8];
    if (size > SY_CLASS_SIZE_MAX) size = sy_round_up(size, SY_UNIT_BYTES);
    return sy_class_of(size);
}

/* The alignment of a class's objects: the largest power of two that divides its size, at most a
 * unit or, in the second half of the classes, SY_CACHE_ALIGN_MAX. */
static size_t align_of(unsigned class_number) {
    size_t size = sy_heap_class_size(class_number), align = size & (~size + 1);
    size_t most = class_number < SY_HEAP_CLASSES ? SY_UNIT_BYTES : SY_CACHE_ALIGN_MAX;
    return align < most ? align : most;
}

/* The least class for objects of `size` bytes at `align`. `align` is at most `size`. */
static unsigned class_for_aligned(size_t size, size_t align) {
    unsigned class_number = class_for(size);
    if (align > SY_UNIT_BYTES) class_number += SY_HEAP_CLASSES;
    while (align_of(class_number) < align) class_number++;
    return class_number;
}

/* ---- classes ---- */

/* The name of a class has the heap's name and the size: tenant-112. */
static void name_class(const sy_heap *heap, size_t size, char *name) {
    sy_text text = {.length = 0};
    sy_text_add(&text, heap->name);
    sy_text_add(&text, "-");
    sy_text_add_number(&text, size);
    memcpy(name, text.bytes, text.length);
    name[text.length] = 0;
}

_Static_assert(SY_HEAP_NAME_MAX + 1 + 15 <= SY_CACHE_NAME_MAX, "a name, and 2^47 in digits");

static int open_cache(sy_heap *heap, unsigned class_number, sy_cache *cache) {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size = sy_heap_class_size(class_number);
    name_class(heap, size, name);
    cache->quota = &heap->quota;
    if (sy_cache_open(cache,
                      &(sy_cache_config){.name = name,
                                         .size = size,
                                         .align = align_of(class_number),
                                         .flags = heap->flags,
                                         .memory = heap->memory},
                      0) != 0)
        return -1;
    /* No empty slab of a large object is kept: its units can serve objects of other sizes. */
    if (cache->layout.slots == 1) cache->empties_least = 0;
    if (heap->classes_of)
        __atomic_store_n(&heap->classes_of[cache->client.number], (uint16_t)class_number,
                         __ATOMIC_RELAXED);
    return 0;
}

static SY_COLD sy_cache *add_class(sy_heap *heap, unsigned class_number) {
    int before = errno, error = ENOMEM;
    sy_cache *fresh = sy_side_take(sizeof *fresh);
    bool locked = sy_start_lock();
    sy_cache *cache = sy_heap_cache(heap, class_number);
    bool opens = !cache && fresh && locked;
    if (opens && open_cache(heap, class_number, fresh) == 0) {
        cache = fresh;
        fresh = NULL;
        cache->of_quota = atomic_load_explicit(&heap->quota.caches, memory_order_relaxed);
        atomic_store_explicit(&heap->quota.caches, cache, memory_order_release);
        atomic_store_explicit(&heap->caches[class_number], cache, memory_order_release);
    } else if (opens) {
        error = errno;
    }
    if (locked) sy_start_unlock();
    if (fresh) sy_side_give(fresh, sizeof *fresh);
    errno = cache ? before : error;
    if (!cache) sy_limit_refuse(error == ENOSPC ? SY_REFUSAL_CACHES : SY_REFUSAL_SYSTEM);
    return cache;
}

static inline sy_cache *cache_of_class(sy_heap *heap, unsigned class_number) {
    sy_cache *cache = sy_heap_cache(heap, class_number);
    return SY_LIKELY(cache != NULL) ? cache : add_class(heap, class_number);
}

static SY_COLD sy_cache *too_large(void) {
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return NULL;
}

sy_cache *sy_heap_cache_for(sy_heap *heap, size_t size) {
    return SY_LIKELY(size <= SIZE_MOST) ? cache_of_class(heap, class_for(size)) : too_large();
}

/* ---- life ---- */

static bool valid_heap_config(const sy_heap_config *config) {
    if (!config || config->flags & ~KNOWN_FLAGS || !sy_limit_valid(&config->limit)) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i]) return false;
    return true;
}

static void set_up_heap(sy_heap *heap, const sy_heap_config *config) {
    const char *name = config->name ? config->name : "heap";
    for (size_t i = 0; i < SY_HEAP_NAME_MAX && name[i]; i++) heap->name[i] = name[i];
    heap->flags = config->flags;
    heap->memory = config->memory ? config->memory : &sy_memory_main;
    heap->quota.parent = heap->memory == &sy_memory_main ? &sy_quota_process : NULL;
    sy_quota_set(&heap->quota, &config->limit);
}

sy_heap *sy_heap_create(const sy_heap_config *config) {
    if (!valid_heap_config(config)) {
        errno = EINVAL;
        return NULL;
    }
    bool named = config->flags & SY_HANDLES;
    if (!sy_cache_flags_are_here(config->flags)) return NULL;
    if (sy_start() != 0 || (named && sy_directory_start() != 0)) return NULL;
    sy_heap *heap = sy_side_take(sizeof *heap);
    if (!heap) return NULL;
    if (named) {
        size_t bytes = sy_round_up(SY_HEAP_NUMBERS_BYTES, sy_os_page_size());
        heap->classes_of = sy_pages_take(bytes, sy_os_page_size(), "slabyard heap");
        if (!heap->classes_of) {
            sy_side_give(heap, sizeof *heap);
            return NULL;
        }
    }
    set_up_heap(heap, config);
    sy_memory_hold(heap->memory);
    return heap;
}

static void end_all(void *heap) { sy_heap_destroy_all(heap); }

static void tell_leaks(const sy_heap *heap) {
    sy_cache *newest = atomic_load_explicit(&heap->quota.caches, memory_order_acquire);
    if (newest) sy_tell->leaks(newest);
}

static bool is_of_heap(const void *object, const void *heap) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const void *owner = slab ? sy_slab_owner(slab) : NULL;
    for (unsigned i = 0; owner && i < SY_HEAP_CACHES; i++)
        if (owner == sy_heap_cache(heap, i)) return true;
    return false;
}

/* Looks once for all caches through what was profiled or counted. */
static void forget_profiled(const sy_heap *heap) {
    bool profiled = false;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        const sy_cache *cache = sy_heap_cache(heap, i);
        profiled |= cache && cache->profiled;
    }
    if (profiled) sy_profile_forget_all(is_of_heap, heap);
}

void sy_heap_destroy_all(sy_heap *heap) {
    if (!heap) return;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache && !sy_cache_suspend(cache, end_all, heap)) return;
    }
    tell_leaks(heap);
    forget_profiled(heap);
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) sy_cache_destroy_all(sy_heap_cache(heap, i));
    if (heap->classes_of)
        sy_pages_give(heap->classes_of, sy_round_up(SY_HEAP_NUMBERS_BYTES, sy_os_page_size()));
    sy_memory_let_go(heap->memory);
    sy_side_give(heap, sizeof *heap);
}

/* Suspends the caches one after the other, until one has a live object or is at work in a caller of
 * this thread. Returns how many classes were passed before that. */
static unsigned suspend(const sy_heap *heap) {
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        if (!sy_client_suspend(&cache->client, NULL, NULL)) return i;
        if (sy_cache_in_use(cache) == 0) continue;
        sy_client_resume(&cache->client);
        return i;
    }
    return SY_HEAP_CACHES;
}

int sy_heap_destroy(sy_heap *heap) {
    if (!heap) return 0;
    unsigned suspended = suspend(heap);
    if (suspended == SY_HEAP_CACHES) {
        sy_heap_destroy_all(heap);
        return 0;
    }
    for (unsigned i = 0; i < suspended; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache) sy_client_resume(&cache->client);
    }
    tell_leaks(heap);
    errno = EBUSY;
    return -1;
}

/* ---- allocation ---- */

void *sy_heap_alloc(sy_heap *heap, size_t size) {
    sy_cache *cache = sy_heap_cache_for(heap, size);
    uintptr_t object;
    if (SY_UNLIKELY(!cache)) return NULL;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return (void *)object;
    return sy_cache_alloc_sized(cache, size, SY_MALLOC_ALIGN);
}

/* `count` times `size`; if this overflows, more than any object can have. */
static size_t product(size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

void *sy_heap_calloc(sy_heap *heap, size_t count, size_t size) {
    size_t bytes = product(count, size);
    void *object = sy_heap_alloc(heap, bytes);
    return object ? memset(object, 0, bytes) : NULL;
}

void *sy_heap_aligned_alloc(sy_heap *heap, size_t align, size_t size) {
    if (!sy_is_power_of_two(align) || align > SY_CACHE_ALIGN_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t bytes = size < align ? align : size;
    sy_cache *cache =
        bytes <= SIZE_MOST ? cache_of_class(heap, class_for_aligned(bytes, align)) : too_large();
    return cache ? sy_cache_alloc_sized(cache, size, align) : NULL;
}

void *sy_heap_aligned_calloc(sy_heap *heap, size_t align, size_t count, size_t size) {
    size_t bytes = product(count, size);
    void *object = sy_heap_aligned_alloc(heap, align, bytes);
    return object ? memset(object, 0, bytes) : NULL;
}

/* ---- free ---- */

void sy_heap_fault(const sy_heap *heap, sy_fault_kind kind, const void *object, const char *found) {
    sy_fault fault = {.kind = kind, .cache = heap->name, .address = object, .found_cache = found};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
}

/* The heap's cache of which an object can begin at `object`. NULL: there is none; then *fault is
 * the fault of freeing it, and *found names the cache that has the address, or is NULL. */
static sy_cache *cache_at(const sy_heap *heap, const void *object, sy_fault_kind *fault,
                          const char **found) {
    size_t size;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    sy_cache *cache = slab ? sy_slab_owner(slab) : sy_guarded_cache(object);
    if (!slab && !cache) cache = sy_passed_owner(object, &size);
    *found = NULL;
    if (SY_UNLIKELY(!cache || cache->quota != &heap->quota)) {
        *fault = slab || cache ? SY_FAULT_WRONG_CACHE : SY_FAULT_FOREIGN_POINTER;
        if (slab || cache) *found = cache ? cache->name : "heap";
        return NULL;
    }
    if (SY_UNLIKELY(!slab)) return cache; /* the cache knows its objects outside of slabs */
    *fault = SY_FAULT_MISALIGNED_POINTER;
    bool begins = sy_slab_index(slab, &cache->layout, (uintptr_t)object) != UINT32_MAX;
    return SY_LIKELY(begins) ? cache : NULL;
}

/* The cache of an object that is to be freed; if there is none, raises the fault. */
static sy_cache *owner_of(const sy_heap *heap, const void *object) {
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    if (SY_LIKELY(cache != NULL)) return cache;
    if (fault == SY_FAULT_FOREIGN_POINTER && sy_watch_passes())
        sy_os_block_free((void *)(uintptr_t)object); /* malloc's checker reports the bad pointer */
    else
        sy_heap_fault(heap, fault, object, found);
    return NULL;
}

void sy_heap_free(sy_heap *heap, void *object) {
    sy_cache *cache = object ? owner_of(heap, object) : NULL;
    if (cache) sy_cache_free_inline(cache, object);
}

/* Bytes that the program may use of an object that can begin there. */
static size_t size_of(const sy_cache *cache, const void *object) {
    size_t bytes;
    return cache->kind->find(cache, object, &bytes) ? bytes : 0;
}

/* Whether the size that the program asked for is recorded. */
static bool is_sized(const sy_cache *cache, const void *object) {
    return sy_cache_checks(cache) || sy_guard_owns((uintptr_t)object);
}

void sy_heap_free_sized(sy_heap *heap, void *object, size_t size) {
    sy_cache *cache = object ? owner_of(heap, object) : NULL;
    if (!cache) return;
    bool of_class = size <= SIZE_MOST && sy_class_size_of(class_for(size)) == cache->size;
    if (SY_LIKELY(of_class) || (is_sized(cache, object) && size_of(cache, object) == size))
        sy_cache_free_sized(cache, object, size);
    else
        sy_heap_fault(heap, SY_FAULT_WRONG_SIZE, object, NULL);
}

bool sy_heap_try_free(sy_heap *heap, void *object) {
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    return cache && sy_cache_try_free(cache, object);
}

size_t sy_heap_usable_size(const sy_heap *heap, const void *object) {
    sy_fault_kind fault;
    const char *found;
    const sy_cache *cache = cache_at(heap, object, &fault, &found);
    return cache ? size_of(cache, object) : 0;
}

void *sy_heap_realloc(sy_heap *heap, void *object, size_t size) {
    if (!object) return sy_heap_alloc(heap, size);
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    if (!cache) {
        sy_heap_fault(heap, fault, object, found);
        errno = EINVAL;
        return NULL;
    }
    size_t have = size_of(cache, object);
    bool stays = size <= SIZE_MOST && sy_class_size_of(class_for(size)) == cache->size;
    if (stays && !is_sized(cache, object)) return object;
    void *moved = sy_heap_alloc(heap, size);
    if (!moved) return NULL;
    memcpy(moved, object, have < size ? have : size);
    sy_cache_free_inline(cache, object);
    return moved;
}

/* ---- trim and statistics ---- */

static sy_cache *first_cache(const sy_heap *heap) {
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++)
        if (sy_heap_cache(heap, i)) return sy_heap_cache(heap, i);
    return NULL;
}

static size_t trim_caches(sy_heap *heap, sy_cache *first) {
    SY_SLOW_PATH(&first->client); /* the heap is not destroyed before this path ends */
    size_t bytes = 0;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache || !sy_client_pin(&cache->client)) continue;
        bytes += sy_cache_trim_slabs(cache);
        sy_client_unpin(&cache->client);
    }
    return bytes + sy_cache_trim_rest(heap->memory, heap->flags & SY_HANDLES);
}

size_t sy_heap_trim(sy_heap *heap) {
    sy_cache *first = first_cache(heap);
    if (!first) return sy_cache_trim_rest(heap->memory, heap->flags & SY_HANDLES);
    size_t bytes = trim_caches(heap, first);
    sy_turn();
    return bytes;
}

static void fill_stats(const void *heap_, void *stats_) {
    const sy_heap *heap = heap_;
    sy_heap_stats *stats = stats_;
    sy_limit limit = sy_quota_limit(&heap->quota); /* it does not change */
    *stats = (sy_heap_stats){
        .used = atomic_load_explicit(&heap->quota.used, memory_order_relaxed),
        .limit = limit.hard,
        .soft = limit.soft,
        .limits_hit = atomic_load_explicit(&heap->quota.hits, memory_order_relaxed),
    };
    memcpy(stats->name, heap->name, sizeof stats->name);
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        const sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        size_t objects = sy_cache_in_use(cache);
        stats->caches++;
        stats->objects += objects;
        stats->live_bytes += objects * cache->size;
    }
}

int sy_heap_get_stats_sized(const sy_heap *heap, sy_heap_stats *stats, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_heap_stats, limits_hit, fill_stats);
    return sy_sized_fill(&sized, heap, stats, size);
}
