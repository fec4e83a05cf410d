/*
 * The allocators, each as a policy for kernels.hpp and with the functions about its states.
 *
 * Peers are called by the cheapest form their public interface has: with the size at free where
 * the library takes it. Slabyard's pool and cache are the inline forms of its headers.
 */
#ifndef BENCH_POLICIES_HPP
#define BENCH_POLICIES_HPP

#include "kernels.hpp"
#include "limits.hpp"

#include <cstdlib>
#include <slabyard/cache.h>
#include <slabyard/handle.h>
#include <slabyard/heap.h>
#include <slabyard/pool.h>

extern "C" {
void *mi_malloc(size_t size);
void mi_free(void *object);

void *sn_malloc(size_t size);
void sn_free(void *object);

void *_rjem_malloc(size_t size);
void _rjem_sdallocx(void *object, size_t size, int flags);

void *TCMallocInternalNew(size_t size);
void TCMallocInternalDeleteSized(void *object, size_t size);

void *rpmalloc(size_t size);
void rpfree(void *object);
}

namespace {

/* A state that consists of a size, for allocators whose memory belongs to the process. */
struct Sized {
    size_t size;
};

template <class Library> struct General {
    size_t size;

    static General open(void *state) { return {static_cast<Sized *>(state)->size}; }
    void *alloc() const { return Library::alloc(size); }
    void free(void *object) const { Library::free(object, size); }
    size_t object_size() const { return size; }
};

struct Heap {
    static inline void *alloc(size_t size) { return sy_malloc(size); }
    static inline void free(void *object, size_t) { sy_free(object); }
};

/* The size is a constant, so that both functions are inlined. */
template <size_t Size> struct HeapConstant {
    static HeapConstant open(void *) { return {}; }
    void *alloc() const { return sy_malloc(Size); }
    void free(void *object) const { sy_free_sized(object, Size); }
    size_t object_size() const { return Size; }
};

struct Mimalloc {
    static inline void *alloc(size_t size) { return mi_malloc(size); }
    static inline void free(void *object, size_t) { mi_free(object); }
};

struct Snmalloc {
    static inline void *alloc(size_t size) { return sn_malloc(size); }
    static inline void free(void *object, size_t) { sn_free(object); }
};

struct Jemalloc {
    static inline void *alloc(size_t size) { return _rjem_malloc(size); }
    static inline void free(void *object, size_t size) { _rjem_sdallocx(object, size, 0); }
};

struct Tcmalloc {
    static inline void *alloc(size_t size) { return TCMallocInternalNew(size); }
    static inline void free(void *object, size_t size) {
        TCMallocInternalDeleteSized(object, size);
    }
};

struct Rpmalloc {
    static inline void *alloc(size_t size) { return rpmalloc(size); }
    static inline void free(void *object, size_t) { rpfree(object); }
};

struct Glibc {
    static inline void *alloc(size_t size) { return std::malloc(size); }
    static inline void free(void *object, size_t) { std::free(object); }
};

struct Cache {
    sy_cache *cache;

    static Cache open(void *state) { return {static_cast<sy_cache *>(state)}; }
    void *alloc() const { return sy_cache_alloc(cache); }
    void free(void *object) const { sy_cache_free(cache, object); }
    size_t object_size() const { return sy_cache_slot_size(cache); }
};

/* Objects by handle: a handle is as wide as the pointer in whose place it lies. */
struct Handles {
    sy_cache *cache;

    static Handles open(void *state) { return {static_cast<sy_cache *>(state)}; }
    static sy_handle handle_of(void *name) { return reinterpret_cast<sy_handle>(name); }
    void *pin(void *name) const { return sy_handle_pin(cache, handle_of(name)); }
    void unpin(void *name) const { sy_handle_unpin(cache, handle_of(name)); }
    void free(void *name) const { sy_handle_free(cache, handle_of(name)); }
    size_t object_size() const { return sy_cache_slot_size(cache); }
};

inline void *named(const Handles &policy, void **name) {
    sy_handle handle;
    void *object = sy_handle_alloc(policy.cache, &handle);
    *name = reinterpret_cast<void *>(handle);
    return object;
}

inline void *found(const Handles &policy, void *name) {
    return sy_handle_get(policy.cache, Handles::handle_of(name));
}

struct Pool {
    sy_pool *pool;

    static Pool open(void *state) { return {static_cast<sy_pool *>(state)}; }
    void *alloc() const { return sy_pool_alloc(pool); }
    void free(void *object) const { sy_pool_free(pool, object); }
    size_t object_size() const { return sy_pool_slot_size(pool); }
};

/* The size of the objects is read only in the verifying layout. */
struct Freelist {
    FreelistState *state;

    static Freelist open(void *state) { return {static_cast<FreelistState *>(state)}; }
    void *alloc() const { return freelist_alloc(state); }
    void free(void *object) const { freelist_free(state, object); }
    size_t object_size() const { return state->size; }
};

struct Magazine {
    MagazineState *state;

    static Magazine open(void *state) { return {static_cast<MagazineState *>(state)}; }
    void *alloc() const { return magazine_alloc(state); }
    void free(void *object) const { magazine_free(state, object); }
    size_t object_size() const { return magazine_object_size(state); }
};

/* No allocator: the cost of the loop itself. */
struct Nothing {
    void *object;

    static Nothing open(void *state) { return {state}; }
    void *alloc() const { return object; }
    void free(void *) const {}
    size_t object_size() const { return sizeof(uint64_t); }
};

} // namespace

#endif
