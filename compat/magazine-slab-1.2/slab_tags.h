/*
 * slab_tags.h: the tags of magazine-slab since version 1.2. A tag is four characters; objects and
 * bytes are counted for each. There are two sets of counters:
 *
 *     counted by                             if                     read with
 *     slab_alloc_tag, slab_free_tag          SLAB_POOL_TAGS is set  slab_pool_tag_find
 *     slab_alloc_tagged, slab_free_tagged,   slab_tags_init was     slab_tag_lookup
 *     slab_tag_alloc, slab_tag_free          called
 *
 * One table holds both. A tag is never removed from it, so what a lookup returned stays valid. Any
 * thread may call any function, and no function waits. (slabyard/audit.h has tags that need no
 * special calls.)
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_1_2_SLAB_TAGS_H
#define SLABYARD_COMPAT_MAGAZINE_1_2_SLAB_TAGS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <slabyard/heap.h>

/* Programs read the counters with atomic_load. */
#ifdef __cplusplus
#    define SY_TAG_COUNTER(type) alignas(sizeof(type)) type /* as _Atomic is on i386 */
#else
#    include <stdatomic.h>
#    define SY_TAG_COUNTER(type) _Atomic type
#endif

SY_BEGIN_DECLS

#define SLAB_TAG(a, b, c, d)                                                         \
    (SY_CAST(uint32_t, a) | SY_CAST(uint32_t, b) << 8 | SY_CAST(uint32_t, c) << 16 | \
     SY_CAST(uint32_t, d) << 24)
#define SLAB_TAG_NONE             SLAB_TAG('N', 'o', 'n', 'e')
#define MAKE_POOL_TAG(a, b, c, d) SLAB_TAG(a, b, c, d)
#define POOL_TAG_NONE             SLAB_TAG_NONE

typedef uint32_t POOL_TAG;
typedef uint32_t slab_tag_t;

struct pool_tag_entry {
    POOL_TAG tag;
    SY_TAG_COUNTER(uint64_t) allocs, frees;
    SY_TAG_COUNTER(int64_t) active_bytes, peak_bytes;
    size_t obj_size; /* of the first object that was counted */
};

struct slab_tag_stats {
    slab_tag_t tag;
    SY_TAG_COUNTER(uint64_t) alloc_count, free_count;
    SY_TAG_COUNTER(uint64_t) active_count, active_bytes, peak_count, peak_bytes;
};

/* ---- the table ---- */

enum { SY_SLAB_TAG_BUCKETS = 256 };

struct sy_slab_tag {
    struct sy_slab_tag *next;
    struct pool_tag_entry pool;
    struct slab_tag_stats stats;
};

struct sy_slab_tags {
    struct sy_slab_tag *buckets[SY_SLAB_TAG_BUCKETS];
    int ready; /* for slab_tag_alloc and slab_tag_free */
};
/* NOLINTNEXTLINE(misc-definitions-in-headers): the linker keeps one of the weak ones. */
__attribute__((weak, visibility("hidden"))) struct sy_slab_tags sy_slab_tags = {{NULL}, 0};

static inline uint32_t sy_slab_tag_of(const char *text) {
    uint32_t tag = 0;
    for (unsigned i = 0; i < 4 && text[i]; i++) tag |= (uint32_t)(unsigned char)text[i] << 8 * i;
    return tag;
}

static inline struct sy_slab_tag **sy_slab_tag_bucket(uint32_t tag) {
    return &sy_slab_tags.buckets[tag * UINT32_C(2654435761) >> 24];
}

static inline struct sy_slab_tag *sy_slab_tag_in(struct sy_slab_tag *list, uint32_t tag) {
    while (list && list->pool.tag != tag) list = list->next;
    return list;
}

static inline struct sy_slab_tag *sy_slab_tag_find(uint32_t tag) {
    return sy_slab_tag_in(__atomic_load_n(sy_slab_tag_bucket(tag), __ATOMIC_ACQUIRE), tag);
}

/* Returns the tag's entry, and enters the tag if it is new. Returns NULL if there is no memory. */
static inline struct sy_slab_tag *sy_slab_tag_enter(uint32_t tag, size_t size) {
    struct sy_slab_tag **bucket = sy_slab_tag_bucket(tag), *fresh, *found;
    struct sy_slab_tag *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    found = sy_slab_tag_in(first, tag);
    if (found) return found;
    fresh = (struct sy_slab_tag *)sy_calloc(1, sizeof *fresh);
    if (!fresh) return NULL;
    fresh->pool.tag = fresh->stats.tag = tag;
    fresh->pool.obj_size = size;
    do {
        fresh->next = first;
        if (__atomic_compare_exchange_n(bucket, &first, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return fresh;
        found = sy_slab_tag_in(first, tag);
    } while (!found);
    sy_free(fresh);
    return found;
}

/* ---- counters ---- */

static inline uint64_t sy_tag_read(const void *counter) {
    return __atomic_load_n((const uint64_t *)counter, __ATOMIC_RELAXED);
}

static inline void sy_tag_set_to(void *counter, uint64_t value) {
    __atomic_store_n((uint64_t *)counter, value, __ATOMIC_RELAXED);
}

/* Adds modulo 2^64, so it can also subtract. */
static inline uint64_t sy_tag_add(void *counter, uint64_t more) {
    return __atomic_add_fetch((uint64_t *)counter, more, __ATOMIC_RELAXED);
}

/* Adds to a counter and updates its peak. The counter is signed: it is below 0 if objects were
 * freed with another tag than they were allocated with. */
static inline void sy_tag_add_with_peak(void *counter, void *peak_, uint64_t more) {
    int64_t *peak = (int64_t *)peak_, now = (int64_t)sy_tag_add(counter, more);
    int64_t before = (int64_t)sy_tag_read(peak);
    while (before < now && !__atomic_compare_exchange_n(peak, &before, now, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        continue;
}

/* Calls `visit` for each tag. */
static inline void sy_slab_tag_each(void (*visit)(struct sy_slab_tag *tag)) {
    for (unsigned i = 0; i < SY_SLAB_TAG_BUCKETS; i++) {
        struct sy_slab_tag *tag = __atomic_load_n(&sy_slab_tags.buckets[i], __ATOMIC_ACQUIRE);
        for (; tag; tag = tag->next) visit(tag);
    }
}

static inline void sy_slab_tag_print(uint32_t tag) {
    fprintf(stderr, "tag '%c%c%c%c': ", (int)(tag & 255), (int)(tag >> 8 & 255),
            (int)(tag >> 16 & 255), (int)(tag >> 24));
}

/* ---- the counters of caches with SLAB_POOL_TAGS ---- */

static inline void sy_pool_tag_alloc(POOL_TAG tag, size_t size) {
    struct sy_slab_tag *entry = sy_slab_tag_enter(tag, size);
    if (!entry) return;
    sy_tag_add(&entry->pool.allocs, 1);
    sy_tag_add_with_peak(&entry->pool.active_bytes, &entry->pool.peak_bytes, size);
}

static inline void sy_pool_tag_free(POOL_TAG tag, size_t size) {
    struct sy_slab_tag *entry = sy_slab_tag_enter(tag, size);
    if (!entry) return;
    sy_tag_add(&entry->pool.frees, 1);
    sy_tag_add(&entry->pool.active_bytes, -(uint64_t)size);
}

/* Returns the counters of a tag, or NULL if nothing was allocated or freed with it. */
static inline const struct pool_tag_entry *slab_pool_tag_find(POOL_TAG tag) {
    struct sy_slab_tag *entry = sy_slab_tag_find(tag);
    if (!entry || sy_tag_read(&entry->pool.allocs) + sy_tag_read(&entry->pool.frees) == 0)
        return NULL;
    return &entry->pool;
}

static inline void sy_pool_tag_report(struct sy_slab_tag *tag) {
    const struct pool_tag_entry *pool = &tag->pool;
    uint64_t allocs = sy_tag_read(&pool->allocs), frees = sy_tag_read(&pool->frees);
    if (allocs + frees == 0) return;
    sy_slab_tag_print(pool->tag);
    fprintf(stderr,
            "%" PRIu64 " allocated, %" PRIu64 " freed, %" PRIu64 " live, %" PRIu64
            " bytes, at most %" PRIu64 "\n",
            allocs, frees, allocs - frees, sy_tag_read(&pool->active_bytes),
            sy_tag_read(&pool->peak_bytes));
}

/* Writes a line for each tag to stderr. */
static inline void slab_pool_tag_stats(void) { sy_slab_tag_each(sy_pool_tag_report); }

/* ---- the counters between slab_tags_init and slab_tags_fini ---- */

static inline void sy_slab_tag_clear(struct sy_slab_tag *tag) {
    sy_tag_set_to(&tag->stats.alloc_count, 0);
    sy_tag_set_to(&tag->stats.free_count, 0);
    sy_tag_set_to(&tag->stats.active_count, 0);
    sy_tag_set_to(&tag->stats.active_bytes, 0);
    sy_tag_set_to(&tag->stats.peak_count, 0);
    sy_tag_set_to(&tag->stats.peak_bytes, 0);
}

static inline bool sy_slab_tags_ready(void) {
    return __atomic_load_n(&sy_slab_tags.ready, __ATOMIC_RELAXED) != 0;
}

/* Sets all counters to 0 and starts counting. */
static inline void slab_tags_init(void) {
    sy_slab_tag_each(sy_slab_tag_clear);
    __atomic_store_n(&sy_slab_tags.ready, 1, __ATOMIC_RELAXED);
}

static inline void slab_tag_alloc(slab_tag_t tag, size_t obj_size) {
    struct sy_slab_tag *entry = sy_slab_tags_ready() ? sy_slab_tag_enter(tag, obj_size) : NULL;
    if (!entry) return;
    sy_tag_add(&entry->stats.alloc_count, 1);
    sy_tag_add_with_peak(&entry->stats.active_count, &entry->stats.peak_count, 1);
    sy_tag_add_with_peak(&entry->stats.active_bytes, &entry->stats.peak_bytes, obj_size);
}

static inline void slab_tag_free(slab_tag_t tag, size_t obj_size) {
    struct sy_slab_tag *entry = sy_slab_tags_ready() ? sy_slab_tag_enter(tag, obj_size) : NULL;
    if (!entry) return;
    sy_tag_add(&entry->stats.free_count, 1);
    sy_tag_add(&entry->stats.active_count, -(uint64_t)1);
    sy_tag_add(&entry->stats.active_bytes, -(uint64_t)obj_size);
}

/* Returns the counters of a tag, or NULL if nothing was counted for it since slab_tags_init, or
 * slab_tags_init was not called. */
static inline const struct slab_tag_stats *slab_tag_lookup(slab_tag_t tag) {
    struct sy_slab_tag *entry = sy_slab_tags_ready() ? sy_slab_tag_find(tag) : NULL;
    if (!entry ||
        sy_tag_read(&entry->stats.alloc_count) + sy_tag_read(&entry->stats.free_count) == 0)
        return NULL;
    return &entry->stats;
}

static inline void sy_slab_tag_report(struct sy_slab_tag *tag) {
    const struct slab_tag_stats *stats = &tag->stats;
    uint64_t allocs = sy_tag_read(&stats->alloc_count), frees = sy_tag_read(&stats->free_count);
    if (allocs + frees == 0) return;
    sy_slab_tag_print(stats->tag);
    fprintf(stderr,
            "%" PRIu64 " allocated, %" PRIu64 " freed, %" PRIu64 " live, at most %" PRIu64
            ", %" PRIu64 " bytes, at most %" PRIu64 "\n",
            allocs, frees, sy_tag_read(&stats->active_count), sy_tag_read(&stats->peak_count),
            sy_tag_read(&stats->active_bytes), sy_tag_read(&stats->peak_bytes));
}

static inline void sy_slab_tag_report_live(struct sy_slab_tag *tag) {
    if (sy_tag_read(&tag->stats.active_count) != 0) sy_slab_tag_report(tag);
}

/* Writes a line to stderr for each tag, or (if `show_all` is false) for each tag with live
 * objects. */
static inline void slab_tag_report(bool show_all) {
    sy_slab_tag_each(show_all ? sy_slab_tag_report : sy_slab_tag_report_live);
}

/* Reports the tags that have live objects, and stops counting. */
static inline void slab_tags_fini(void) {
    if (!sy_slab_tags_ready()) return;
    slab_tag_report(false);
    __atomic_store_n(&sy_slab_tags.ready, 0, __ATOMIC_RELAXED);
}

SY_END_DECLS

#endif
