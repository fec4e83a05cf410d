/*
 * slab.h: the object caches of magazine-slab since version 1.2, over Slabyard's: those of version
 * 1.0 (../magazine-slab/slab.h), and arenas that they take their memory from, quarantine, tags, and
 * verification.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab-1.2 -lslabyard
 *
 * Where it is not as there:
 *   - a cache over an arena takes 4 MiB at multiples of 4 MiB at a time, and gives them back when
 *     the arena is destroyed; an arena that cannot give them serves no object (ENOMEM);
 *   - slab_cache_verify verifies all that there is (sy_verify in slabyard/checks.h), at any time;
 *   - how long freed objects wait in quarantine is an option (slabyard/checks.h), and the fields of
 *     it are gone.
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

#define SLAB_QUARANTINE_SIZE 64 /* objects that waited there; here see SLABYARD=quarantine */

/* The memory of all caches over an arena. NULL with ENOMEM or EINVAL (a quantum over 4 MiB). */
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

/* slab_cache_create, with objects in memory from an arena (NULL: the system's), whose integers are
 * addresses of memory that may be read and written. */
static inline struct slab_cache *slab_cache_create_vmem(const char *name, size_t size, size_t align,
                                                        uint32_t flags, void (*ctor)(void *),
                                                        void (*dtor)(void *), vmem_t *vmem_source) {
    sy_memory *memory = vmem_source ? sy_magazine_vmem_memory(vmem_source) : NULL;
    if (vmem_source && !memory) return NULL;
    return sy_magazine_slab_create(name, size, align, flags, ctor, dtor, memory);
}

/* How many invariants are broken, or objects damaged, which is reported: 0 when all is well. -1 for
 * NULL. */
static inline int slab_cache_verify(struct slab_cache *cache) {
    return cache ? (int)sy_verify() : -1;
}

/* slab_alloc, counted for the tag if the cache has SLAB_POOL_TAGS. */
static inline void *slab_alloc_tag(struct slab_cache *cache, POOL_TAG tag) {
    void *object = slab_alloc(cache);
    if (object && (cache->flags & SLAB_POOL_TAGS)) sy_pool_tag_alloc(tag, cache->raw_size);
    return object;
}

/* slab_free, counted for the tag if the cache has SLAB_POOL_TAGS. */
static inline void slab_free_tag(struct slab_cache *cache, void *obj, POOL_TAG tag) {
    if (cache && obj && (cache->flags & SLAB_POOL_TAGS)) sy_pool_tag_free(tag, cache->raw_size);
    slab_free(cache, obj);
}

/* The same, counted as slab_tag_alloc does; the tag is the first four characters. */
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
