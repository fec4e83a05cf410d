/*
 * slab.h: the object caches of magazine-slab since version 1.2, implemented by Slabyard's. They are
 * those of version 1.0 (../magazine-slab/slab.h), and also have arenas that provide their memory,
 * quarantine, tags, and verification.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab-1.2 -lslabyard
 *
 * Differences from magazine-slab:
 *   - A cache over an arena takes 4 MiB at multiples of 4 MiB at a time, and returns them when the
 *     arena is destroyed. If an arena cannot supply them, allocations fail with ENOMEM.
 *   - slab_cache_verify verifies the whole process (sy_verify in slabyard/checks.h), at any time.
 *   - How long freed objects stay in quarantine is an option (slabyard/checks.h). The quarantine
 *     fields of the cache are gone.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_1_2_SLAB_H
#define SLABYARD_COMPAT_MAGAZINE_1_2_SLAB_H

#include <pthread.h>
#include <stdbool.h>

#include "../magazine-slab/slab.h"
#include "slab_tags.h"
#include "vmem.h"

#include <slabyard/checks.h>
#include <slabyard/memory.h>

SY_BEGIN_DECLS

#define SLAB_QUARANTINE_SIZE 64  /* objects that magazine-slab kept; here see SLABYARD=quarantine */
#define POOL_TAG_HASH_SIZE   256 /* buckets of the table of tags */

/* Returns the memory of all caches over an arena. Returns NULL with ENOMEM or EINVAL (a quantum
 * over 4 MiB). */
static inline sy_memory *sy_magazine_vmem_memory(vmem_t *vm) {
    sy_memory *memory = __atomic_load_n(&vm->memory, __ATOMIC_ACQUIRE), *there = NULL;
    sy_memory_config config;
    if (memory) return memory;
    memset(&config, 0, sizeof config);
    config.name = "vmem";
    config.arena = vm->arena;
    memory = sy_memory_create(&config);
    if (!memory || __atomic_compare_exchange_n(&vm->memory, &there, memory, false, __ATOMIC_ACQ_REL,
                                               __ATOMIC_ACQUIRE))
        return memory;
    (void)sy_memory_destroy(memory); /* another thread was first */
    return there;
}

/* As slab_cache_create, with objects in memory from an arena. The integers of the arena must be
 * addresses of memory that may be read and written. NULL: memory of the operating system. */
static inline struct slab_cache *slab_cache_create_vmem(const char *name, size_t size, size_t align,
                                                        uint32_t flags, void (*ctor)(void *),
                                                        void (*dtor)(void *), vmem_t *vmem_source) {
    sy_memory *memory = vmem_source ? sy_magazine_vmem_memory(vmem_source) : NULL;
    if (vmem_source && !memory) return NULL;
    return sy_magazine_slab_create(name, size, align, flags, ctor, dtor, memory);
}

/* Returns the number of broken invariants and damaged objects, which are also reported: 0 if all is
 * well. Returns -1 for NULL. */
static inline int slab_cache_verify(struct slab_cache *cache) {
    return cache ? (int)sy_verify() : -1;
}

/* As slab_alloc. The allocation is counted for the tag if the cache has SLAB_POOL_TAGS. */
static inline void *slab_alloc_tag(struct slab_cache *cache, POOL_TAG tag) {
    void *object = slab_alloc(cache);
    if (object && (cache->flags & SLAB_POOL_TAGS)) sy_pool_tag_alloc(tag, cache->raw_size);
    return object;
}

/* As slab_free. The free is counted for the tag if the cache has SLAB_POOL_TAGS. */
static inline void slab_free_tag(struct slab_cache *cache, void *obj, POOL_TAG tag) {
    if (cache && obj && (cache->flags & SLAB_POOL_TAGS)) sy_pool_tag_free(tag, cache->raw_size);
    slab_free(cache, obj);
}

/* The same with counters of the other set, as for slab_tag_alloc. The tag is the first four
 * characters. */
static inline void *slab_alloc_tagged(struct slab_cache *cache, const char *tag) {
    void *object = slab_alloc(cache);
    if (object && tag) slab_tag_alloc(sy_slab_tag_of(tag), cache->raw_size);
    return object;
}

static inline void slab_free_tagged(struct slab_cache *cache, void *obj, const char *tag) {
    if (cache && obj && tag) slab_tag_free(sy_slab_tag_of(tag), cache->raw_size);
    slab_free(cache, obj);
}

SY_END_DECLS

#endif
