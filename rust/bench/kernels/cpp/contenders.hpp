/*
 * The contenders of the C++ part. A contender that makes nodes of containers has
 *     name, traits                            as in bench_container
 *     State                                   where the nodes come from, with trim()
 *     Of<T>, of<T>(State &)                   the type of its allocator, and an allocator
 * A contender that makes single objects has
 *     name, traits, State
 *     Owner, make(State &, seed)              a smart pointer, and an object owned by one
 *
 * Included by containers.cpp. Everything is in an unnamed namespace, as in kernels.hpp: the copies
 * of the layouts must not be merged. Code of Boost and of the C++ library that is not a template
 * over our types exists once.
 */
#ifndef BENCH_CONTENDERS_HPP
#define BENCH_CONTENDERS_HPP

#include "../kernels.hpp"

#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <memory_resource>
#include <new>
#include <slabyard/slabyard.hpp>
#include <utility>

#ifdef BENCH_BOOST
#    include <boost/pool/object_pool.hpp>
#    include <boost/pool/pool_alloc.hpp>
#endif

extern "C" {
void *mi_malloc(size_t size);
void *mi_malloc_aligned(size_t size, size_t align);
void mi_free(void *object);
void mi_collect(bool force);
}

namespace {

/* An element of the containers. All of it is written. */
struct Value {
    uint64_t words[3];
    explicit Value(uint64_t seed) : words{seed, seed, seed} {}
};

inline void *checked(void *memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

/* ---- allocators ---- */

/* The state of allocators that share the memory of the process: trim() is for the process. */
template <void (*Trim)()> struct Process {
    void trim() { Trim(); }
};

inline void trim_slabyard() {
    sy_thread_flush();
    sy_trim();
}
inline void trim_glibc() { malloc_trim(0); }
inline void trim_mimalloc() { mi_collect(true); }

struct Slabyard {
    static constexpr const char *name = "slabyard::allocator";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Process<trim_slabyard>;
    template <class T> using Of = slabyard::allocator<T>;
    template <class T> static Of<T> of(State &) { return {}; }
};

struct Standard {
    static constexpr const char *name = "std::allocator";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Process<trim_glibc>;
    template <class T> using Of = std::allocator<T>;
    template <class T> static Of<T> of(State &) { return {}; }
};

template <class T> struct MimallocAllocator {
    using value_type = T;
    MimallocAllocator() = default;
    template <class U> MimallocAllocator(const MimallocAllocator<U> &) {}
    T *allocate(size_t count) { return static_cast<T *>(checked(mi_malloc(count * sizeof(T)))); }
    void deallocate(T *objects, size_t) { mi_free(objects); }
    bool operator==(const MimallocAllocator &) const { return true; }
    bool operator!=(const MimallocAllocator &) const { return false; }
};

struct Mimalloc {
    static constexpr const char *name = "mimalloc";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Process<trim_mimalloc>;
    template <class T> using Of = MimallocAllocator<T>;
    template <class T> static Of<T> of(State &) { return {}; }
};

/* ---- resources ---- */

/* Containers of std::pmr, over a resource of type R. */
template <class R> struct Resource {
    struct State {
        R resource;
        void trim() {
            give_back(resource);
            trim_glibc(); /* most resources get their memory from glibc */
        }
    };
    template <class T> using Of = std::pmr::polymorphic_allocator<T>;
    template <class T> static Of<T> of(State &state) { return &state.resource; }

  private:
    static void give_back(slabyard::memory_resource &resource) { resource.trim(); }
    static void give_back(std::pmr::unsynchronized_pool_resource &resource) { resource.release(); }
    static void give_back(std::pmr::synchronized_pool_resource &resource) { resource.release(); }
    static void give_back(std::pmr::memory_resource &) { trim_mimalloc(); }
};

struct MimallocMemory : std::pmr::memory_resource {
    void *do_allocate(size_t bytes, size_t align) override {
        bool natural = align <= alignof(std::max_align_t);
        return checked(natural ? mi_malloc(bytes) : mi_malloc_aligned(bytes, align));
    }
    void do_deallocate(void *object, size_t, size_t) override { mi_free(object); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other;
    }
};

struct SlabyardResource : Resource<slabyard::memory_resource> {
    static constexpr const char *name = "slabyard::memory_resource";
    static constexpr uint64_t traits = BENCH_SHARED;
};

struct UnsynchronizedPool : Resource<std::pmr::unsynchronized_pool_resource> {
    static constexpr const char *name = "unsynchronized_pool_resource";
    static constexpr uint64_t traits = 0;
};

struct SynchronizedPool : Resource<std::pmr::synchronized_pool_resource> {
    static constexpr const char *name = "synchronized_pool_resource";
    static constexpr uint64_t traits = BENCH_SHARED;
};

/* The default resource of std::pmr. */
struct StandardResource {
    static constexpr const char *name = "new_delete_resource";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Process<trim_glibc>;
    template <class T> using Of = std::pmr::polymorphic_allocator<T>;
    template <class T> static Of<T> of(State &) { return std::pmr::new_delete_resource(); }
};

struct MimallocResource : Resource<MimallocMemory> {
    static constexpr const char *name = "mimalloc";
    static constexpr uint64_t traits = BENCH_SHARED;
};

/* ---- single objects ---- */

struct Nothing {};

struct SlabyardPool {
    static constexpr const char *name = "slabyard::pool";
    static constexpr uint64_t traits = 0;
    using State = slabyard::pool<Value>;
    using Owner = State::unique;
    static Owner make(State &state, uint64_t seed) { return state.make_unique(seed); }
};

struct SlabyardCache {
    static constexpr const char *name = "slabyard::cache";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = slabyard::cache<Value>;
    using Owner = State::unique;
    static Owner make(State &state, uint64_t seed) { return state.make_unique(seed); }
};

struct SlabyardUnique {
    static constexpr const char *name = "slabyard::make_unique";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Nothing;
    using Owner = slabyard::unique_ptr<Value>;
    static Owner make(State &, uint64_t seed) { return slabyard::make_unique<Value>(seed); }
};

struct StandardUnique {
    static constexpr const char *name = "std::make_unique";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Nothing;
    using Owner = std::unique_ptr<Value>;
    static Owner make(State &, uint64_t seed) { return std::make_unique<Value>(seed); }
};

struct MimallocUnique {
    static constexpr const char *name = "mimalloc";
    static constexpr uint64_t traits = BENCH_SHARED;
    using State = Nothing;
    struct Deleter {
        void operator()(Value *object) const { mi_free(object); }
    };
    using Owner = std::unique_ptr<Value, Deleter>;
    static Owner make(State &, uint64_t seed) {
        return Owner(::new (checked(mi_malloc(sizeof(Value)))) Value(seed));
    }
};

#ifdef BENCH_BOOST

/* ---- Boost ---- */

using Mutex = boost::details::pool::default_mutex;
using NoMutex = boost::details::pool::null_mutex;

/* Boost's pools belong to the whole program, one for each size. */
template <class Lock> struct FastPool {
    template <class T>
    using Of = boost::fast_pool_allocator<T, boost::default_user_allocator_new_delete, Lock>;

    struct State {
        void trim() {
            purge(std::make_index_sequence<16>());
            trim_glibc();
        }

      private:
        template <size_t... Words> static void purge(std::index_sequence<Words...>) {
            (purge_of<8 * (Words + 1)>(), ...);
        }
        /* purge_memory frees a whole pool; nothing in it is live. */
        template <size_t Bytes> static void purge_of() {
            boost::singleton_pool<boost::fast_pool_allocator_tag, Bytes,
                                  boost::default_user_allocator_new_delete, Lock, 32,
                                  0>::purge_memory();
        }
    };
    template <class T> static Of<T> of(State &) { return {}; }
};

struct LockedPool : FastPool<Mutex> {
    static constexpr const char *name = "fast_pool_allocator";
    static constexpr uint64_t traits = BENCH_SHARED;
};

struct UnlockedPool : FastPool<NoMutex> {
    static constexpr const char *name = "fast_pool_allocator null_mutex";
    static constexpr uint64_t traits = 0;
};

/*
 * Calls the static functions for one object. A new allocator object would look through the pool.
 */
template <class Pool> struct FastPoolObject {
    static constexpr const char *name = Pool::name;
    static constexpr uint64_t traits = Pool::traits;
    using State = Nothing;
    using Of = typename Pool::template Of<Value>;
    struct Deleter {
        void operator()(Value *object) const { Of::deallocate(object); }
    };
    using Owner = std::unique_ptr<Value, Deleter>;
    static Owner make(State &, uint64_t seed) { return Owner(::new (Of::allocate()) Value(seed)); }
};

struct ObjectPool {
    static constexpr const char *name = "object_pool";
    static constexpr uint64_t traits = 0;
    using State = boost::object_pool<Value>;
    struct Deleter {
        State *pool;
        void operator()(Value *object) const { pool->destroy(object); }
    };
    using Owner = std::unique_ptr<Value, Deleter>;
    static Owner make(State &state, uint64_t seed) {
        return Owner(static_cast<Value *>(checked(state.construct(seed))), Deleter{&state});
    }
};

#endif

} // namespace

#endif
