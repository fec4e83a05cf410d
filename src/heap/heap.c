/*
 * heap.c: the malloc family of the general heap. Objects up to 128 KiB come from the cache of their
 * size class, larger ones are spans.
 *
 *     sy_malloc(size) -> class -> this thread's loaded slot for it     (the fast path)
 *                              -> sy_cache_alloc_slow of the class     (magazines, slabs)
 *                     -> sy_limit_take_span | sy_checked_large_alloc   (more than 128 KiB)
 *     sy_free(p)      -> the map -> loaded slot | cache | span | a fault
 *
 * Below: cache/, chunk/.
 */
#include <slabyard/heap.h>

#include <errno.h>
#include <string.h>

#include "base/cpu.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cache/guarded.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/mixed.h"
#include "cache/passed.h"
#include "cache/watched.h"
#include "debug/fault.h"
#include "debug/profile.h"
#include "heap/aligned.h"
#include "heap/checked.h"
#include "heap/classes.h"
#include "heap/fast.h"
#include "heap/misaligned.h"
#include "heap/sampled.h"
#include "heap/scope.h"
#include "magazine/turn.h"
#include "os/os.h"
#include "os/start.h"

/* The caches of the size classes, in the order in which the classes are first used. So a program
 * that uses few classes touches few pages. They are never destroyed. */
static sy_cache class_caches[SY_CLASSES];
static _Atomic(sy_cache *) classes[SY_CLASSES + 1]; /* NULL: not open, or no class; written under
                                                     * the lock of the start */

_Static_assert((int)SY_CLASS_MIXED == (int)SY_CLASSES, "the last entries are those of no class");

static sy_cache *class_known(unsigned class_number) {
    return atomic_load_explicit(&classes[class_number], memory_order_acquire);
}

/* The cache of the class if it is open, else the first one that is not. In the child of a fork it
 * may be open already: a thread of the parent had opened it, and not noted that yet. The lock of
 * the start is held. */
static sy_cache *place_class(unsigned class_number) {
    sy_cache *cache = class_caches;
    while (sy_cache_is_open(cache) && cache->class_number != class_number) cache++;
    return cache;
}

static void name_class(char *name, size_t size) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "heap-");
    sy_text_add_number(&text, size);
    memcpy(name, text.bytes, text.length);
    name[text.length] = 0;
}

static sy_cache *open_locked(unsigned class_number) {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size = sy_class_size(class_number), align = size & (~size + 1);
    sy_cache_config config = {.name = name, .size = size};
    config.align = align < SY_UNIT_BYTES ? align : SY_UNIT_BYTES;
    name_class(name, size);
    sy_cache *cache = place_class(class_number);
    if (sy_cache_is_open(cache)) return cache;
    memset(cache, 0, sizeof *cache);
    return sy_cache_open(cache, &config, class_number) == 0 ? cache : NULL;
}

/* The cache of a class, or NULL with ENOMEM. */
static sy_cache *cache_of_class(unsigned class_number) {
    sy_cache *cache = class_known(class_number);
    if (SY_LIKELY(cache != NULL)) return cache;
    if (sy_start() != 0) {
        sy_limit_refuse(SY_REFUSAL_SYSTEM);
        return NULL;
    }
    if (sy_start_lock()) {
        cache = class_known(class_number);
        if (!cache) {
            cache = open_locked(class_number);
            atomic_store_explicit(&classes[class_number], cache, memory_order_release);
        }
        sy_start_unlock();
        if (cache) return cache;
    }
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return NULL;
}

void *sy_class_alloc_apart(unsigned class_number) {
    sy_cache *cache = cache_of_class(class_number);
    bool plain = cache && cache->kind == &sy_kind_plain;
    return plain ? sy_cache_alloc_apart(cache) : NULL;
}

/* ---- spans ---- */

/* The span that begins at `object`, or NULL. */
static sy_slab *span_of(const void *object) {
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab && !sy_slab_owner(slab) && slab->first == (uintptr_t)object ? slab : NULL;
}

static void *span_alloc(size_t size, size_t align, size_t room, bool *clean) {
    if (sy_start() != 0) {
        sy_limit_refuse(SY_REFUSAL_SYSTEM);
        return NULL;
    }
    if (SY_UNLIKELY(align <= SY_CACHE_ALIGN_MAX && sy_heap_checks_large())) {
        if (clean) *clean = false;
        return sy_checked_large_alloc(size, align);
    }
    sy_slab *span = sy_limit_take_span(size, align, room, clean);
    if (!span) return NULL;
    span->first = span->start;
    int error = errno;
    if (span->bytes >= atomic_load_explicit(&sy_turn_span, memory_order_relaxed)) sy_turn_soon();
    sy_turn_of_alloc();
    errno = error;
    return (void *)span->start;
}

/* Takes a span for an object that the program writes before it reads. calloc does not use this: its
 * memory is often used sparsely. */
static void *span_to_write(size_t size, size_t align) {
    sy_cpu_keep_frame();
    void *object = span_alloc(size, align, 0, NULL);
    sy_slab *span = object ? span_of(object) : NULL;
    if (span) sy_run_back_ahead(span);
    return object;
}

/* An object beyond the classes, or NULL, has just been allocated or resized. It is no span if large
 * objects are checked. */
static void *note_span(void *object, size_t size) {
    if (SY_UNLIKELY(sy_profile_watches()) && object && span_of(object))
        sy_sampled_span(object, size);
    return object;
}

/* Whether the cache belongs to the general heap. */
static bool is_own_class(const sy_cache *cache) {
    return cache->class_number || sy_checked_owns(cache) || sy_sampled_owns(cache);
}

/* The class of an object in a mixed unit; 0: no object begins there. */
static SY_COLD unsigned sy_class_in_mixed(const void *object) {
    const sy_cache *cache = sy_mixed_cache_at((uintptr_t)object);
    return cache ? cache->class_number : 0;
}

/* The cache of a class whose slab apart lies at an address that has no class in the map; NULL. */
static sy_cache *apart_cache(const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    sy_cache *cache = slab && !sy_is_mixed(slab) ? sy_slab_owner(slab) : NULL;
    return cache && cache->class_number ? cache : NULL;
}

static SY_COLD unsigned sy_class_apart(const void *object) {
    const sy_cache *cache = apart_cache(object);
    return cache ? cache->class_number : 0;
}

/* The class of an object whose number in the map is `found`; 0: it has none, or no object begins
 * there. */
static inline unsigned true_class(const void *object, unsigned found) {
    if (SY_UNLIKELY(!found)) return sy_class_apart(object);
    return found == SY_CLASS_MIXED ? sy_class_in_mixed(object) : found;
}

/* ---- allocation ---- */

/* The cold functions keep their frames (sy_cpu_keep_frame): tools and audits record stacks in the
 * functions that they call. */

/* The cache of the class, if its objects can lie in scopes, else NULL. Those of 8 bytes have 16
 * there. */
static sy_cache *cache_in_scope(unsigned class_number) {
    sy_cache *cache = cache_of_class(class_number == 1 ? SY_CLASS_16 : class_number);
    return cache && sy_mixed_has(cache) ? cache : NULL;
}

static SY_COLD void *sy_class_alloc_slow(unsigned class_number, size_t size, size_t align) {
    sy_cpu_keep_frame();
    sy_cache *scoped = SY_UNLIKELY(sy_scope_now) ? cache_in_scope(class_number) : NULL;
    if (scoped) return sy_scope_alloc(scoped, class_number, size);
    sy_cache *cache = cache_of_class(class_number);
    uintptr_t object;
    return cache && cache->kind->alloc(cache, size, align, &object) ? (void *)object : NULL;
}

SY_COLD void *sy_malloc_slow(size_t size) {
    sy_cpu_keep_frame();
    if (size > SY_CLASS_SIZE_MAX) return note_span(span_to_write(size, SY_UNIT_BYTES), size);
    return sy_class_alloc_slow(sy_class_for(size), size, SY_MALLOC_ALIGN);
}

static inline void *alloc(size_t size) {
    unsigned class_number;
    if (SY_LIKELY(size <= SY_CLASS_TABLE_MAX))
        class_number = sy_class_table[(size + 7) / 8];
    else if (SY_LIKELY(size <= SY_WIDE_TABLE_MAX))
        class_number = sy_wide_class_table[(size + 15) / 16];
    else if (SY_LIKELY(size <= SY_CLASS_SIZE_MAX))
        class_number = sy_class_of(size);
    else
        return sy_malloc_slow(size);
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(&sy_abi_1[class_number], &object))) return (void *)object;
    return sy_malloc_slow(size);
}

/* Another object takes the place of one that has not the alignment. */
static SY_COLD void *alloc_aligned(unsigned class_number, size_t size, size_t align,
                                   uintptr_t instead) {
    sy_cache *cache = class_known(class_number);
    sy_profile_undo((const void *)instead);
    sy_free((void *)instead);
    sy_cache *scoped =
        sy_scope_now && align <= SY_SCOPE_ALIGN_MAX ? cache_in_scope(class_number) : NULL;
    if (scoped) return sy_scope_alloc_aligned(scoped, size, align);
    void *object = sy_cache_alloc_in_slab(cache);
    if (object) sy_cache_profile_in_slab(cache, size, object);
    return object;
}

/* Allocates `size` bytes from a given class, whose slots may be larger than `size` needs. Slots
 * have the alignment; objects in mixed units need not have it. */
static void *alloc_in_class(unsigned class_number, size_t size, size_t align) {
    uintptr_t object;
    if (SY_UNLIKELY(!sy_loaded_pop(&sy_abi_1[class_number], &object)))
        object = (uintptr_t)sy_class_alloc_slow(class_number, size, align);
    return object % align == 0 ? (void *)object : alloc_aligned(class_number, size, align, object);
}

/* The names of inlined functions are in parentheses: slabyard/heap.h has macros of these names. */

void *(sy_malloc)(size_t size) { return alloc(size); }

/* The same, for callers whose allocations are counted (sampled.h). Those of spans need no count. */

SY_COLD void *sy_malloc_counted_slow(size_t size) {
    sy_cpu_keep_frame();
    if (size > SY_CLASS_SIZE_MAX) return sy_malloc_slow(size);
    void *object = sy_sampled_alloc(sy_class_for(size), size, SY_MALLOC_ALIGN);
    return object ? object : (sy_malloc)(size);
}

void *sy_malloc_counted(size_t size) {
    void *object;
    bool done;
    if (SY_LIKELY(size <= SY_WIDE_TABLE_MAX))
        done = sy_fast_alloc_counted(size, &object);
    else
        done = size <= SY_CLASS_SIZE_MAX && sy_fast_pop_counted(sy_class_of(size), &object);
    return SY_LIKELY(done) ? object : sy_malloc_counted_slow(size);
}

void *sy_calloc_counted(size_t size) {
    if (SY_UNLIKELY(size > SY_CLASS_SIZE_MAX)) return sy_calloc(1, size);
    void *object = sy_malloc_counted(size);
    return object ? memset(object, 0, size) : NULL;
}

/* Multiplies. False with ENOMEM, as for a size that no object can have: the product overflows. */
static inline bool multiply(size_t count, size_t size, size_t *bytes) {
    if (SY_LIKELY(!__builtin_mul_overflow(count, size, bytes))) return true;
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return false;
}

static inline void *alloc_zeroed(size_t bytes) {
    bool clean = false, is_span = bytes > SY_CLASS_SIZE_MAX;
    void *object = is_span ? span_alloc(bytes, SY_UNIT_BYTES, 0, &clean) : alloc(bytes);
    if (object && !clean) memset(object, 0, bytes);
    return is_span ? note_span(object, bytes) : object;
}

void *sy_calloc(size_t count, size_t size) {
    size_t bytes;
    return multiply(count, size, &bytes) ? alloc_zeroed(bytes) : NULL;
}

void *sy_zalloc(size_t size) { return alloc_zeroed(size); }

/* Whether any object of this size has the alignment. */
static bool is_aligned_anyway(size_t align, size_t size) {
    return align <= 8 || (align == 16 && size > 8);
}

/* The class for objects of this size at an alignment that not all classes have; 0: the object has
 * to be a span. */
static unsigned aligned_class(size_t align, size_t size) {
    if (size > SY_CLASS_SIZE_MAX || align > SY_UNIT_BYTES) return 0;
    unsigned class_number = sy_class_of(size > align ? size : align);
    while (class_number < SY_CLASSES && sy_class_size(class_number) % align) class_number++;
    return class_number < SY_CLASSES ? class_number : 0;
}

void *sy_aligned_alloc(size_t align, size_t size) {
    if (!sy_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    if (is_aligned_anyway(align, size)) return alloc(size);
    unsigned class_number = aligned_class(align, size);
    if (class_number) return alloc_in_class(class_number, size, align);
    return note_span(span_to_write(size ? size : 1, align), size);
}

void *sy_aligned_alloc_counted(size_t align, size_t size) {
    unsigned class_number = aligned_class(align, size);
    void *object = class_number ? sy_sampled_alloc(class_number, size, align) : NULL;
    return object ? object : sy_aligned_alloc(align, size);
}

void *sy_aligned_calloc(size_t align, size_t count, size_t size) {
    size_t bytes;
    if (!sy_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    if (!multiply(count, size, &bytes)) return NULL;
    if (is_aligned_anyway(align, bytes)) return alloc_zeroed(bytes);
    unsigned class_number = aligned_class(align, bytes);
    bool clean = false;
    void *object = class_number ? alloc_in_class(class_number, bytes, align)
                                : span_alloc(bytes ? bytes : 1, align, 0, &clean);
    if (object && !clean) memset(object, 0, bytes);
    return class_number ? object : note_span(object, bytes);
}

/* ---- free ---- */

static void raise_fault(sy_fault_kind kind, const void *object, const char *found) {
    sy_fault fault = {.kind = kind, .cache = "heap", .address = object, .found_cache = found};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
}

/* Raises the fault of a free with a size that no object of the found cache has, or none with the
 * alignment of the free. `found`: NULL for a span. */
static void sy_raise_wrong_size(const void *object, const sy_cache *found, size_t told) {
    int error = errno;
    sy_fault fault = {.kind = SY_FAULT_WRONG_SIZE,
                      .cache = "heap",
                      .object_size = found ? found->size : 0,
                      .address = object,
                      .found_cache = found ? found->name : NULL,
                      .told_size = told};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
    errno = error;
}

static void free_guarded(sy_cache *cache, void *object, size_t told) {
    sy_profile_forget(object);
    cache->kind->free(cache, object, told);
}

/* Frees an address among guarded objects. It is an object of the heap, or a fault is raised. */
static SY_COLD void sy_free_at_guards(void *object, size_t told) {
    sy_cpu_keep_frame();
    sy_cache *cache = sy_guarded_cache(object);
    if (!cache)
        raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
    else if (cache->class_number || sy_sampled_owns(cache))
        free_guarded(cache, object, told);
    else if (sy_checked_owns(cache))
        sy_checked_large_free(object, told);
    else
        raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
}

/* Frees an object that was passed on to the C library. While passing on is enabled, it also hands
 * unknown addresses to the C library's free. False: neither applies. */
static bool free_block(void *object, size_t told) {
    sy_cpu_keep_frame();
    size_t size;
    sy_cache *cache = sy_passed_owner(object, &size);
    if (!cache && !sy_watch_passes()) return false;
    if (!cache)
        sy_os_block_free(object);
    else if (is_own_class(cache))
        sy_cache_free_sized(cache, object, told);
    else
        raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
    return true;
}

/* Whether an object of `size` bytes can have this span. A span of more than a chunk's units may be
 * longer than its object needs: it was kept from another object, or its object has shrunk. */
static bool may_have(const sy_slab *span, size_t size) {
    bool exact = span->bytes <= SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES;
    if (exact && sy_round_up(size, SY_UNIT_BYTES) != span->bytes) return false;
    return size > SY_CLASS_SIZE_MAX && size <= span->bytes;
}

/* Frees an address in a slab apart. Only a flush notices whether an object begins there. */
static SY_COLD void sy_free_apart(sy_cache *cache, void *object) {
    sy_cpu_keep_frame();
    sy_profile_forget(object);
    cache->kind->flush(cache, &(uintptr_t){(uintptr_t)object}, 1, NULL);
    sy_turn();
}

/* Frees an address that the map has no class for. It is a span, a large checked object, a guarded
 * object, one in a slab apart or a block of the C library, or else a fault is raised. */
static void free_unclassed(void *object, size_t told) {
    sy_cpu_keep_frame();
    sy_slab *span = span_of(object);
    if (SY_UNLIKELY(sy_guard_owns((uintptr_t)object))) {
        sy_free_at_guards(object, told);
        return;
    }
    if (SY_UNLIKELY(span && told != SIZE_MAX && !may_have(span, told))) {
        sy_raise_wrong_size(object, NULL, told);
        return;
    }
    if (span) {
        sy_profile_forget(object);
        span->first = 0; /* a second free finds no span */
        sy_quota_give_run(&sy_quota_process, span);
        sy_turn();
        return;
    }
    sy_cache *apart = apart_cache(object);
    if (apart) {
        sy_free_apart(apart, object);
        return;
    }
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? sy_slab_owner(slab) : NULL;
    if (!slab && free_block(object, told)) return;
    if (!slab)
        raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
    else if (sy_is_mixed(slab))
        raise_fault(sy_mixed_fault((uintptr_t)object), object, NULL);
    else if (cache && sy_checked_owns(cache))
        sy_checked_large_free(object, told);
    else if (cache)
        raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
    else
        raise_fault(slab->first ? SY_FAULT_MISALIGNED_POINTER : SY_FAULT_DOUBLE_FREE, object, NULL);
}

/* Frees an object by the class of its address. `told`: the size that the caller names; SIZE_MAX: it
 * names none. */
static void sy_free_in_class(void *object, unsigned class_number, size_t told) {
    sy_cpu_keep_frame();
    int error = errno;
    sy_cache *cache = class_known(class_number); /* NULL for class 0 */
    if (class_number == SY_CLASS_MIXED) cache = &sy_mixed;
    if (cache)
        cache->kind->free(cache, object, told);
    else if (object)
        free_unclassed(object, told);
    errno = error;
}

/* Looks up the class again: to keep it for this call would cost the fast path an instruction. An
 * object outside of the map's window has not been tried yet. */
SY_COLD void sy_free_slow(void *object) {
    unsigned class_number;
    if (!object) return;
    if (!sy_class_near((uintptr_t)object, &class_number)) {
        class_number = sy_class_far((uintptr_t)object);
        if (sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object)) return;
    }
    sy_cpu_keep_frame();
    sy_free_in_class(object, class_number, SIZE_MAX);
}

void sy_free(void *object) {
    if (SY_UNLIKELY(!sy_fast_free(object))) sy_free_slow(object);
}

/* A cache without checks validates an address only in a flush, so the address is flushed alone. */
SY_COLD void sy_free_misaligned(void *object) {
    sy_cpu_keep_frame();
    int error = errno;
    unsigned class_number = true_class(object, sy_class_at((uintptr_t)object));
    sy_cache *cache = class_known(class_number);
    if (cache && !sy_cache_checks(cache))
        cache->kind->flush(cache, &(uintptr_t){(uintptr_t)object}, 1, NULL);
    else
        sy_free_in_class(object, class_number, SIZE_MAX);
    errno = error;
}

/* The cache of a checked object of exactly this size, or NULL. */
static const sy_cache *checked_with_size(const void *object, size_t size) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? sy_slab_owner(slab) : NULL;
    size_t bytes;
    if (!cache || !is_own_class(cache) || !sy_cache_checks(cache)) return NULL;
    return cache->kind->find(cache, object, &bytes) && bytes == size ? cache : NULL;
}

/* Frees an object that is not in the class of the size and alignment that the caller names. A
 * checked cache knows the object's size. If the caller names this size, only the alignment is
 * wrong; else the cache describes the fault. An address in no class may be a guarded object. */
static SY_COLD void sy_free_mismatched(void *object, unsigned class_number, size_t told) {
    sy_cpu_keep_frame();
    const sy_cache *cache = class_known(class_number); /* NULL for class 0 */
    const sy_cache *same_size = checked_with_size(object, told);
    if (same_size)
        sy_raise_wrong_size(object, same_size, told);
    else if (!cache || sy_cache_checks(cache))
        sy_free_in_class(object, class_number, told);
    else
        sy_raise_wrong_size(object, cache, told);
}

/* A size of SIZE_MAX, which would mean "no size", is passed on as one less. */
static SY_COLD void sy_free_sized_slow(void *object, size_t size) {
    unsigned found = sy_class_at((uintptr_t)object), class_number = true_class(object, found);
    bool fits = sy_class_has(class_number, size) ||
                (found == SY_CLASS_MIXED && class_number == SY_CLASS_16 && size <= 8);
    if (fits && sy_loaded_push_once(&sy_abi_1[found], (uintptr_t)object)) return;
    sy_cpu_keep_frame();
    size_t told = size == SIZE_MAX ? size - 1 : size;
    if (fits || (!class_number && size > SY_CLASS_SIZE_MAX))
        sy_free_in_class(object, found, told);
    else
        sy_free_mismatched(object, class_number, told);
}

void(sy_free_sized)(void *object, size_t size) {
    unsigned class_number;
    if (SY_UNLIKELY(!sy_class_near((uintptr_t)object, &class_number) ||
                    !sy_class_has(class_number, size) ||
                    !sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object)))
        sy_free_sized_slow(object, size);
}

/* Frees an object of the class, or a span if the class is 0. */
static SY_COLD void sy_free_aligned_slow(void *object, unsigned class_number, size_t size) {
    sy_cpu_keep_frame();
    unsigned found = sy_class_at((uintptr_t)object), its_class = true_class(object, found);
    if (!found && !class_number && span_of(object))
        sy_free_in_class(object, 0, SIZE_MAX);
    else if (its_class == class_number)
        sy_free_in_class(object, found, size);
    else
        sy_free_mismatched(object, its_class, size);
}

void sy_free_aligned_sized(void *object, size_t align, size_t size) {
    if (is_aligned_anyway(align, size)) {
        sy_free_sized(object, size);
        return;
    }
    unsigned class_number = aligned_class(align, size);
    bool fits = class_number && sy_class_at((uintptr_t)object) == class_number;
    if (SY_UNLIKELY(!fits || !sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object)))
        sy_free_aligned_slow(object, class_number, size == SIZE_MAX ? size - 1 : size);
}

/* The heap's cache whose object at this address is checked, guarded or passed on; NULL: none. */
static const sy_cache *checking(const void *object) {
    size_t size;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? sy_slab_owner(slab) : sy_guarded_cache(object);
    if (!slab && !cache) cache = sy_passed_owner(object, &size);
    return cache && is_own_class(cache) && (!slab || sy_cache_checks(cache)) ? cache : NULL;
}

/* Whether an object of the heap may begin at `object`, and the bytes of it that the program may
 * use. If objects there are checked, guarded or passed on, the answer is exact. */
static bool find_object(const void *object, size_t *bytes) {
    const sy_cache *checker = object ? checking(object) : NULL;
    if (SY_UNLIKELY(checker)) return checker->kind->find(checker, object, bytes);
    unsigned class_number = sy_class_at((uintptr_t)object);
    const sy_slab *span = class_number || !object ? NULL : span_of(object);
    if (!class_number && !span && object) class_number = sy_class_apart(object);
    *bytes = class_number ? sy_class_size(class_number) : span ? span->bytes : 0;
    return class_number || span;
}

/* Whether every address in the slabs of the class is taken for an object without checks. */
static inline bool is_plain_class(unsigned class_number) {
    const sy_cache *cache = class_known(class_number); /* NULL for class 0 */
    return SY_LIKELY(cache && !sy_cache_checks(cache));
}

size_t sy_usable_size(const void *object) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (is_plain_class(class_number)) return sy_class_size(class_number);
    size_t bytes;
    return find_object(object, &bytes) ? bytes : 0;
}

static size_t span_size(size_t size) {
    return size > SIZE_MAX - SY_UNIT_BYTES ? size : sy_round_up(size, SY_UNIT_BYTES);
}

size_t sy_good_size(size_t size) {
    if (size <= SY_CLASS_SIZE_MAX) return sy_class_size(sy_class_for(size));
    return span_size(size);
}

size_t sy_good_size_aligned(size_t align, size_t size) {
    if (is_aligned_anyway(align, size)) return sy_good_size(size);
    unsigned class_number = aligned_class(align, size);
    return class_number ? sy_class_size(class_number) : span_size(size);
}

/* ---- realloc ---- */

/* Whether the span can keep its object at the new size. */
static bool span_fits(sy_slab *span, size_t size) {
    /* A large span may be up to twice as long as its object: a growing object needs it soon. */
    bool large = span->bytes > SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES;
    if (large && size <= span->bytes && size > span->bytes / 2) return true;
    return size > SY_CLASS_SIZE_MAX && sy_limit_resize_span(span, size);
}

/* The span has changed its size: it is in the profile as a new object. */
static void *note_resized(void *object, size_t size) {
    sy_profile_forget(object);
    return note_span(object, size);
}

/* Allocates for an object that has grown beyond its span. It will probably grow again, so the new
 * span gets twice the address space that it needs now. */
static void *alloc_growing(size_t size) { return span_alloc(size, SY_UNIT_BYTES, size * 2, NULL); }

/* Copies an object into its new place. If both places are spans and the system can, their pages are
 * moved instead. False: the new place was lost, and can only be freed. */
static bool move_content(const void *from, void *to, size_t bytes) {
    const sy_slab *source = bytes > SY_CLASS_SIZE_MAX ? span_of(from) : NULL;
    sy_slab *target = source ? span_of(to) : NULL;
    if (target) return sy_run_move(source, target, bytes);
    memcpy(to, from, bytes);
    return true;
}

/* Whether an object of a mixed unit or of a slab apart begins here whose class is that of the new
 * size. */
static bool fits_outside(const void *object, size_t size) {
    unsigned found = sy_class_at((uintptr_t)object);
    bool may = (!found || found == SY_CLASS_MIXED) && size <= SY_CLASS_SIZE_MAX;
    return may && sy_class_has(true_class(object, found), size);
}

/* Raises the fault of resizing what is no object. */
static void raise_no_object(void *object) {
    if (sy_class_at((uintptr_t)object) == SY_CLASS_MIXED)
        raise_fault(sy_mixed_fault((uintptr_t)object), object, NULL);
    else if (checking(object) || sy_slab_at((uintptr_t)object))
        sy_free(object); /* raises the fault */
    else
        raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
}

/* Objects that are spans, become spans, are checked or guarded, or are none. */
static SY_COLD void *sy_realloc_slow(void *object, size_t size, bool counts) {
    sy_cpu_keep_frame();
    size_t have;
    if (fits_outside(object, size)) return object;
    if (!find_object(object, &have)) {
        raise_no_object(object);
        errno = EINVAL;
        return NULL;
    }
    sy_slab *span = checking(object) ? NULL : span_of(object);
    if (span && span_fits(span, size)) return note_resized(object, size);
    bool grows = size > have && size > SY_CLASS_SIZE_MAX;
    for (;;) {
        void *moved = grows ? alloc_growing(size) : counts ? sy_malloc_counted(size) : alloc(size);
        if (!moved) return NULL;
        bool done = move_content(object, moved, have < size ? have : size);
        sy_free(done ? object : moved);
        if (done) return grows ? note_span(moved, size) : moved;
    }
}

static inline void *move_to_class(void *object, unsigned class_number, size_t size, bool counts) {
    void *moved = counts ? sy_malloc_counted(size) : alloc(size);
    if (!moved) return NULL;
    size_t have = sy_class_size(class_number);
    memcpy(moved, object, have < size ? have : size);
    sy_free(object);
    return moved;
}

/* A small object stays where it is only if its class is exactly the class of the new size, so that
 * a sized free agrees with it. */
static inline __attribute__((always_inline)) void *resize(void *object, size_t size, bool counts) {
    if (!object) return counts ? sy_malloc_counted(size) : alloc(size);
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (!is_plain_class(class_number) || SY_UNLIKELY(size > SY_CLASS_SIZE_MAX))
        return sy_realloc_slow(object, size, counts);
    if (sy_class_has(class_number, size)) return object;
    return move_to_class(object, class_number, size, counts);
}

void *sy_realloc(void *object, size_t size) { return resize(object, size, false); }

void *sy_realloc_counted(void *object, size_t size) { return resize(object, size, true); }

void *sy_reallocarray(void *object, size_t count, size_t size) {
    size_t bytes;
    return multiply(count, size, &bytes) ? sy_realloc(object, bytes) : NULL;
}

/* The same objects as in sy_realloc_slow. A checked object has exactly the size that was asked for,
 * and patterns behind it. Its class can be one of larger objects, if it is aligned. */
static SY_COLD bool sy_expand_slow(void *object, size_t size) {
    sy_cpu_keep_frame();
    size_t have;
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (fits_outside(object, size)) return true;
    if (!find_object(object, &have)) {
        raise_no_object(object);
        return false;
    }
    if (checking(object))
        return size == have && (!class_number || sy_class_has(class_number, size));
    sy_slab *span = span_of(object);
    return span && span_fits(span, size) && note_resized(object, size);
}

/* In place by the same rules as sy_realloc. */
bool sy_expand(void *object, size_t size) {
    if (!object) return false;
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (is_plain_class(class_number))
        return size <= SY_CLASS_SIZE_MAX && sy_class_has(class_number, size);
    int error = errno;
    bool done = sy_expand_slow(object, size);
    errno = error;
    return done;
}
