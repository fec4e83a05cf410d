/**
 * slabyard.hpp: the interfaces for C++17, in namespace slabyard. Only what your program uses is
 * compiled. A function throws std::bad_alloc if there is no memory, or the exception of an object's
 * constructor (the object's slot is then free again). A function whose name begins with try_
 * returns an empty result instead of throwing std::bad_alloc.
 *
 *     slabyard::cache<order> orders("order");
 *     auto one = orders.make_unique("ACME", 100);          freed when the pointer is destroyed
 *
 *     std::map<int, order, std::less<>, slabyard::allocator<std::pair<const int, order>>> book;
 *     auto shared = slabyard::make_shared<order>("ACME", 100);
 *
 *     slabyard::memory_resource tenant("tenant");          std::pmr: counted and released together
 *     std::pmr::vector<int> numbers(&tenant);
 *
 *     slabyard::handle_map<session> sessions("session");
 *     auto key = sessions.emplace(socket);
 *     if (auto session = sessions.get(key)) session->poll();   it stays while `session` exists
 *     sessions.erase(key);
 *
 * Thread rules: use a pool in one thread at a time; cache, allocator, memory_resource and
 * handle_map in any thread. The C headers say what each costs. The classes add only the calls of
 * constructors and destructors.
 *
 * Pools, caches, epochs and maps can be moved. The objects, unique pointers, keys and refs of the
 * source then belong to the target. After the move the source owns nothing: it converts to false,
 * and can be assigned to and destroyed, but not used. A memory_resource cannot be moved, because
 * containers keep its address.
 */
#ifndef SLABYARD_SLABYARD_HPP
#define SLABYARD_SLABYARD_HPP

#if __cplusplus < 201703L
#    error "slabyard.hpp needs C++17: compile with -std=c++17 or a later standard."
#else

#    include <slabyard/slabyard.h>

#    include <atomic>
#    include <cerrno>
#    include <cstddef>
#    include <cstdint>
#    include <cstdlib>
#    include <cstring>
#    include <cxxabi.h>
#    include <exception>
#    include <functional>
#    include <limits>
#    include <memory>
#    include <memory_resource>
#    include <new>
#    include <stdexcept>
#    include <type_traits>
#    include <utility>

namespace slabyard {

/* ---- helpers for the classes below ---- */

namespace detail {

/* Without exceptions (-fno-exceptions) the process ends where one would be thrown. */
template <class Exception, class... Args> [[noreturn]] inline void fail(Args... args) {
#    ifdef __cpp_exceptions
    throw Exception(args...);
#    else
    ((void)args, ...);
    std::abort();
#    endif
}

/* The pointer, which is not null; for a null pointer it throws std::bad_alloc. */
template <class P> P *checked(P *pointer) {
    if (SY_UNLIKELY(pointer == nullptr)) fail<std::bad_alloc>();
    return pointer;
}

/* Throws std::bad_alloc if `status`, the result of a function that fails for lack of memory, is not
 * 0. */
inline void check(int status) {
    if (SY_UNLIKELY(status != 0)) fail<std::bad_alloc>();
}

/* Calls a visitor, whose caller is a C function. An exception must not pass through this function:
 * it is kept in `thrown`, the result ends the iteration, and `rethrow` throws it after that. The
 * end of a thread passes through. */
template <class Call> int visit(std::exception_ptr &thrown, Call call) {
#    ifdef __cpp_exceptions
    try {
        call();
#        ifdef __GLIBCXX__
    } catch (abi::__forced_unwind &) {
        throw;
#        endif
    } catch (...) {
        thrown = std::current_exception();
    }
#    else
    call();
#    endif
    return thrown ? 1 : 0;
}

inline void rethrow(const std::exception_ptr &thrown) {
    if (thrown) std::rethrow_exception(thrown);
}

inline sy_cache_stats stats_of(const sy_cache *cache) noexcept {
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    return stats;
}

/* Constructs a T in `slot`. If its constructor throws, `give_back(slot)` is called. */
template <class T, class GiveBack, class... Args>
T *construct(void *slot, GiveBack give_back, Args &&...args) {
    if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
        return ::new (slot) T(std::forward<Args>(args)...);
    } else {
        struct attempt {
            void *slot;
            GiveBack &give_back;
            ~attempt() {
                if (SY_UNLIKELY(slot != nullptr)) give_back(slot);
            }
        } attempt{slot, give_back};
        /* cppcheck-suppress legacyUninitvar ; it takes the pack for no initializer */
        T *made = ::new (slot) T(std::forward<Args>(args)...);
        attempt.slot = nullptr;
        return made;
    }
}

/* The address of an object, for the functions that free it. */
template <class T> void *address_of(T *object) noexcept {
    return const_cast<void *>(static_cast<const volatile void *>(object));
}

/* Destroys an object and frees its slot. A double free is reported before a second destructor
 * runs. */
template <class T> void end(sy_pool *owner, T *object) noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
        if (SY_UNLIKELY(!sy_pool_may_free(owner, address_of(object)))) return;
        std::destroy_at(object);
    }
    sy_pool_free_checked_inline(owner, address_of(object));
}
template <class T> void end(sy_cache *owner, T *object) noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
        if (SY_UNLIKELY(!sy_cache_may_free(owner, address_of(object)))) return;
        std::destroy_at(object);
    }
    sy_cache_free(owner, address_of(object));
}

/* The deleters with which the owners below release what they own. */
struct ends {
    void operator()(sy_pool *pool) const noexcept { sy_pool_destroy(pool); }
    void operator()(sy_cache *cache) const noexcept { sy_cache_destroy(cache); }
    void operator()(sy_epoch *epoch) const noexcept { sy_epoch_close(epoch); }
    void operator()(sy_scope *scope) const noexcept { sy_scope_destroy(scope); }
};

/* The alignment of T, and at least the alignment of a pointer, because a free slot holds
 * pointers. */
template <class T>
inline constexpr std::size_t align_of = alignof(T) > alignof(void *) ? alignof(T) : alignof(void *);

template <class T>
sy_cache *create_cache(const char *name, std::size_t limit, unsigned flags,
                       void (*dispose)(void *, void *) = nullptr,
                       void (*relocate)(void *, void *, void *) = nullptr) {
    sy_cache_config config{};
    config.name = name;
    config.size = sizeof(T);
    config.align = align_of<T>;
    config.limit = limit;
    config.flags = flags;
    config.dispose = dispose;
    config.relocate = relocate;
    return checked(sy_cache_create(&config));
}

/* Writes the name of T as the compiler writes it: the end of this function's own name, from "T = "
 * on. */
template <class T> void name_of(char (&name)[SY_CACHE_NAME_MAX + 1]) {
    const char *begin = std::strstr(__PRETTY_FUNCTION__, "T = ");
    begin = begin ? begin + 4 : __PRETTY_FUNCTION__;
    std::size_t length = std::strcspn(begin, ";]");
    if (length > SY_CACHE_NAME_MAX) length = SY_CACHE_NAME_MAX;
    std::memcpy(name, begin, length);
    name[length] = 0;
}

/* The cache of a type, one for the whole program. It is created when it is first used, and is never
 * destroyed, because objects may be freed after every destructor has run. The cache has the same
 * visibility to the linker as the functions that create it: if a shared object has its own copy of
 * the library, it has its own cache too. */
template <class T> class SY_API type_cache {
  public:
    static sy_cache *get() {
        sy_cache *cache = made.load(std::memory_order_acquire);
        return SY_LIKELY(cache != nullptr) ? cache : make();
    }

  private:
    static inline std::atomic<sy_cache *> made{nullptr};

    SY_COLD static sy_cache *make() {
        char name[SY_CACHE_NAME_MAX + 1];
        name_of<T>(name);
        sy_cache *fresh = create_cache<T>(name, 0, 0), *other = nullptr;
        if (made.compare_exchange_strong(other, fresh, std::memory_order_acq_rel)) return fresh;
        sy_cache_destroy(fresh);
        return other;
    }
};

} // namespace detail

/* ---- objects for one thread ---- */

/**
 * Objects of one kind for one thread at a time: sy_pool. The object that was freed last is the next
 * one allocated. The memory is released when the pool is destroyed. The destructors of objects that
 * are live then are not called, and these objects must not be used any more.
 */
template <class T> class pool {
  public:
    struct deleter {
        sy_pool *owner;
        void operator()(T *object) const noexcept { detail::end(owner, object); }
    };
    /** Owns an object, and destroys it with its slot. */
    using unique = std::unique_ptr<T, deleter>;

    /** capacity: objects at a time at most, whose memory is taken at once; 0: the pool grows. name:
     * copied, for reports. flags: as in sy_pool_config. */
    explicit pool(std::size_t capacity = 0, const char *name = nullptr, unsigned flags = 0) {
        sy_pool_config config{};
        config.size = sizeof(T);
        config.align = detail::align_of<T>;
        config.capacity = capacity;
        config.name = name;
        config.flags = flags;
        pool_.reset(detail::checked(sy_pool_create(&config)));
    }

    /** Makes an object. Returns nullptr if the pool is full or there is no memory. */
    template <class... Args> T *try_make(Args &&...args) {
        void *slot = sy_pool_alloc(get());
        if (SY_UNLIKELY(slot == nullptr)) return nullptr;
        return detail::construct<T>(
            slot, [this](void *unused) { sy_pool_free(get(), unused); },
            std::forward<Args>(args)...);
    }

    /** Makes an object, as try_make, but throws std::bad_alloc. */
    template <class... Args> T *make(Args &&...args) {
        return detail::checked(try_make(std::forward<Args>(args)...));
    }

    /** Makes an object that a unique pointer owns, as try_make. */
    template <class... Args> unique try_make_unique(Args &&...args) {
        return unique(try_make(std::forward<Args>(args)...), deleter{get()});
    }
    /** Makes an object that a unique pointer owns, as make. */
    template <class... Args> unique make_unique(Args &&...args) {
        return unique(make(std::forward<Args>(args)...), deleter{get()});
    }

    /** Destroys an object of this pool. nullptr is allowed and does nothing. */
    void destroy(T *object) noexcept {
        if (object != nullptr) deleter{get()}(object);
    }

    /** Frees every object without calling its destructor, and keeps all memory. It takes the same
     * time for one object as for millions. */
    void reset() noexcept { sy_pool_reset(get()); }

    /** Gives memory back to the system if no object is live. Returns the number of bytes. */
    std::size_t trim() noexcept { return sy_pool_trim(get()); }

    /** Returns the number of live objects. */
    std::size_t in_use() const noexcept { return sy_pool_in_use(get()); }
    /** Returns how many objects fit (sy_pool_capacity). */
    std::size_t capacity() const noexcept { return sy_pool_capacity(get()); }

    /* False after a move. */
    explicit operator bool() const noexcept { return pool_ != nullptr; }

    /** For C functions that have no counterpart here. The class still owns the pool. */
    sy_pool *get() const noexcept { return pool_.get(); }

  private:
    std::unique_ptr<sy_pool, detail::ends> pool_;
};

/* ---- objects for any thread ---- */

/**
 * Objects of one kind for all threads: sy_cache. If objects are live when the cache is destroyed,
 * they stay valid, and their memory is not released.
 */
template <class T> class cache {
  public:
    struct deleter {
        sy_cache *owner;
        void operator()(T *object) const noexcept { detail::end(owner, object); }
    };
    /** Owns an object, and destroys it with its slot. */
    using unique = std::unique_ptr<T, deleter>;

    /** name: copied, for reports. limit: of live objects; 0: none. flags: as in sy_cache_config,
     * such as SY_EPOCHS or SY_LIMIT_EXACT. */
    explicit cache(const char *name = nullptr, std::size_t limit = 0, unsigned flags = 0)
        : cache_(detail::create_cache<T>(name, limit, flags)) {}

    /** Makes an object. Returns nullptr if there is no memory or the limit is reached. */
    template <class... Args> T *try_make(Args &&...args) {
        void *slot = sy_cache_alloc(get());
        if (SY_UNLIKELY(slot == nullptr)) return nullptr;
        return detail::construct<T>(
            slot, [this](void *unused) { sy_cache_free(get(), unused); },
            std::forward<Args>(args)...);
    }

    /** Makes an object, as try_make, but throws std::bad_alloc. */
    template <class... Args> T *make(Args &&...args) {
        return detail::checked(try_make(std::forward<Args>(args)...));
    }

    /** Makes an object that a unique pointer owns, as try_make. */
    template <class... Args> unique try_make_unique(Args &&...args) {
        return unique(try_make(std::forward<Args>(args)...), deleter{get()});
    }
    /** Makes an object that a unique pointer owns, as make. */
    template <class... Args> unique make_unique(Args &&...args) {
        return unique(make(std::forward<Args>(args)...), deleter{get()});
    }

    /** Destroys an object of this cache. nullptr is allowed and does nothing. */
    void destroy(T *object) noexcept {
        if (object != nullptr) deleter{get()}(object);
    }

    /** Reserves memory for `count` more objects (sy_cache_reserve). Throws std::bad_alloc. */
    void reserve(std::size_t count) { detail::check(sy_cache_reserve(get(), count)); }

    /** Returns the number of live objects. */
    std::size_t in_use() const noexcept { return sy_cache_in_use(get()); }
    /** Gives free memory back to the system (sy_cache_trim). Returns the number of bytes. */
    std::size_t trim() noexcept { return sy_cache_trim(get()); }
    /** Returns the statistics of the cache. */
    sy_cache_stats stats() const noexcept { return detail::stats_of(get()); }

    /* False after a move. */
    explicit operator bool() const noexcept { return cache_ != nullptr; }

    /** For C functions that have no counterpart here. The class still owns the cache. */
    sy_cache *get() const noexcept { return cache_.get(); }

  private:
    std::unique_ptr<sy_cache, detail::ends> cache_;
};

/* ---- containers ---- */

/**
 * An allocator for the containers of the standard library. Single objects, such as nodes, come from
 * a cache of their type; arrays come from sy_malloc or sy_aligned_alloc. It has no state: all
 * allocators are equal. The caches of types exist until the process ends.
 *
 * If a program and its shared libraries pass such containers to each other, they must export the
 * element types (-fvisibility). Otherwise each has a cache of its own for the type.
 */
template <class T> class allocator {
  public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    allocator() noexcept = default;
    template <class U> allocator(const allocator<U> &) noexcept {}

    /** Allocates memory for `count` objects. Throws std::bad_alloc. */
    [[nodiscard]] T *allocate(std::size_t count) {
        if (SY_LIKELY(count == 1))
            return static_cast<T *>(detail::checked(sy_cache_alloc(detail::type_cache<T>::get())));
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::fail<std::bad_array_new_length>();
        return static_cast<T *>(detail::checked(many(count * sizeof(T))));
    }

    /** Frees memory that allocate returned for the same `count`. */
    void deallocate(T *objects, std::size_t count) noexcept {
        if (SY_LIKELY(count == 1))
            sy_cache_free(detail::type_cache<T>::get(), objects);
        else if (over_aligned)
            sy_free(objects);
        else
            sy_free_sized(objects, count * sizeof(T));
    }

  private:
    static constexpr bool over_aligned = alignof(T) > alignof(std::max_align_t);

    static void *many(std::size_t bytes) noexcept {
        return over_aligned ? sy_aligned_alloc(alignof(T), bytes) : sy_malloc(bytes);
    }
};

template <class T, class U> bool operator==(const allocator<T> &, const allocator<U> &) noexcept {
    return true;
}
template <class T, class U> bool operator!=(const allocator<T> &, const allocator<U> &) noexcept {
    return false;
}

/** A unique_ptr to an object from the cache of its type. It has the size of a plain pointer. */
template <class T> struct type_deleter {
    constexpr type_deleter() noexcept = default;
    /** To a pointer to const. */
    template <class U, class = std::enable_if_t<std::is_same_v<T, const U>>>
    constexpr type_deleter(const type_deleter<U> &) noexcept {}

    void operator()(T *object) const noexcept {
        detail::end(detail::type_cache<std::remove_cv_t<T>>::get(), object);
    }
};
/** Owns an object from the cache of its type. */
template <class T> using unique_ptr = std::unique_ptr<T, type_deleter<T>>;

/** Makes an object in the cache of its type. */
template <class T, class... Args> unique_ptr<T> make_unique(Args &&...args) {
    sy_cache *cache = detail::type_cache<std::remove_cv_t<T>>::get();
    return unique_ptr<T>(detail::construct<T>(
        detail::checked(sy_cache_alloc(cache)), [cache](void *slot) { sy_cache_free(cache, slot); },
        std::forward<Args>(args)...));
}

/** The deleter of a unique_base. It knows the type that the object was made with. */
template <class Base> class base_deleter {
  public:
    /** For an empty unique_base. */
    constexpr base_deleter() = default;
    template <class T, class = std::enable_if_t<std::is_base_of_v<Base, T>>>
    base_deleter(const type_deleter<T> &) noexcept : end_(end<T>) {}

    void operator()(Base *object) const noexcept { end_(object); }

  private:
    void (*end_)(Base *object) noexcept = nullptr;

    template <class T> static void end(Base *object) noexcept {
#    ifdef __cpp_rtti
        if constexpr (std::is_polymorphic_v<Base>) /* a virtual base knows no static_cast */
            return type_deleter<T>()(dynamic_cast<T *>(object));
        else
#    endif
            return type_deleter<T>()(static_cast<T *>(object));
    }
};
/**
 * Owns an object by a pointer to its base class, which needs no virtual destructor, or is empty. It
 * has the size of two pointers, and is made from what slabyard::make_unique returns:
 *
 *     struct secret_order : order {
 *         secret_order() : order("ACME", 100) {}
 *     };
 *     std::vector<slabyard::unique_base<order>> book;
 *     book.push_back(slabyard::make_unique<order>("ACME", 200));
 *     book.push_back(slabyard::make_unique<secret_order>());
 */
template <class Base> using unique_base = std::unique_ptr<Base, base_deleter<Base>>;

/** Makes a shared object. The object and its reference counts are in one slot of one cache. */
template <class T, class... Args> std::shared_ptr<T> make_shared(Args &&...args) {
    return std::allocate_shared<T>(allocator<T>(), std::forward<Args>(args)...);
}

/* ---- std::pmr ---- */

/**
 * A separate heap (slabyard/heaps.h) for std::pmr. Any thread may use it. Every size comes from the
 * cache of its class. `limit` is in bytes (0: none). The destructor releases the whole heap, with
 * all that is still live in it. Misuse is found as in caches: at once with SY_CHECKED, else in the
 * slow path.
 */
class memory_resource : public std::pmr::memory_resource {
  public:
    /** name: copied, for reports. limit: bytes; 0: none. flags: as in sy_heap_config. */
    explicit memory_resource(const char *name = nullptr, std::size_t limit = 0,
                             unsigned flags = 0) {
        sy_heap_config config{};
        config.name = name;
        config.limit.hard = limit;
        config.flags = flags;
        heap_ = detail::checked(sy_heap_create(&config));
    }
    ~memory_resource() override { sy_heap_destroy_all(heap_); }
    memory_resource(const memory_resource &) = delete;
    memory_resource &operator=(const memory_resource &) = delete;

    /** Gives free memory back to the system (sy_heap_trim). Returns the number of bytes. */
    std::size_t trim() noexcept { return sy_heap_trim(heap_); }
    /** Returns the statistics of the heap. */
    sy_heap_stats stats() const noexcept {
        sy_heap_stats stats;
        sy_heap_get_stats(heap_, &stats);
        return stats;
    }

    /** For C functions that have no counterpart here. The class still owns the heap. */
    sy_heap *get() const noexcept { return heap_; }

  private:
    static constexpr std::size_t most_known = 1024; /* bytes: largest with a remembered cache */

    sy_heap *heap_;
    std::atomic<sy_cache *> caches_[most_known / 8 + 1] = {}; /* by size in words; null: not yet */

    /* Whether sy_heap_alloc aligns objects of `bytes` to `align`. */
    static constexpr bool is_natural(std::size_t bytes, std::size_t align) noexcept {
        return align <= 8 || (align <= alignof(std::max_align_t) && bytes > 8);
    }

    /* This thread's loaded slot for such objects. nullptr: call the heap's functions. */
    sy_loaded_slot *loaded(std::size_t bytes, std::size_t align) const noexcept {
#    ifndef SY_NO_INLINE
        if (SY_LIKELY(bytes <= most_known && is_natural(bytes, align))) {
            sy_cache *cache = caches_[(bytes + 7) / 8].load(std::memory_order_acquire);
            if (SY_LIKELY(cache != nullptr)) return sy_cache_loaded(cache);
        }
#    else
        (void)bytes, (void)align;
#    endif
        return nullptr;
    }

    /* For an alignment that is too large for the heap. Allocates a larger block, and aligns the
     * object in it. The word before the object holds the address of the block. */
    void *allocate_within(std::size_t bytes, std::size_t align) {
        if (bytes > std::numeric_limits<std::size_t>::max() - align) detail::fail<std::bad_alloc>();
        void *whole = detail::checked(sy_heap_alloc(heap_, bytes + align));
        std::uintptr_t start = (SY_AS(std::uintptr_t, whole) + align) & ~(align - 1);
        void **object = SY_AS(void **, start);
        object[-1] = whole;
        return object;
    }

    SY_COLD void *allocate_slow(std::size_t bytes, std::size_t align) {
        if (align > SY_CACHE_ALIGN_MAX) return allocate_within(bytes, align);
        if (!is_natural(bytes, align))
            return detail::checked(sy_heap_aligned_alloc(heap_, align, bytes));
        if (bytes <= most_known && !caches_[(bytes + 7) / 8].load(std::memory_order_relaxed))
            caches_[(bytes + 7) / 8].store(sy_heap_cache_for(heap_, bytes),
                                           std::memory_order_release);
        return detail::checked(sy_heap_alloc(heap_, bytes));
    }

    SY_COLD void deallocate_slow(void *object, std::size_t bytes, std::size_t align) noexcept {
        if (align > SY_CACHE_ALIGN_MAX)
            sy_heap_free(heap_, static_cast<void **>(object)[-1]);
        else if (is_natural(bytes, align))
            sy_heap_free_sized(heap_, object, bytes);
        else
            sy_heap_free(heap_, object);
    }

    void *do_allocate(std::size_t bytes, std::size_t align) override {
        sy_loaded_slot *slot = loaded(bytes, align);
        std::uintptr_t object;
        if (SY_LIKELY(slot != nullptr && sy_loaded_pop(slot, &object)))
            return reinterpret_cast<void *>(object);
        return allocate_slow(bytes, align);
    }
    /* As a free to a cache: an address that is no object of this size is reported when it reaches
     * the slow path. */
    void do_deallocate(void *object, std::size_t bytes, std::size_t align) override {
        sy_loaded_slot *slot = loaded(bytes, align);
        if (SY_UNLIKELY(object == nullptr)) return;
        if (SY_LIKELY(slot != nullptr &&
                      sy_loaded_push_once(slot, reinterpret_cast<std::uintptr_t>(object))))
            return;
        deallocate_slow(object, bytes, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other;
    }
};

/* ---- phases ---- */

/**
 * A phase (slabyard/epoch.h). It ends when this object is destroyed or close() is called. While a
 * thread is in a scope of the epoch, objects that it allocates from caches with SY_EPOCHS lie in
 * slabs of the epoch's own.
 */
class epoch {
  public:
    /** name: copied, for sy_epoch_report_stuck. */
    explicit epoch(const char *name = nullptr) : epoch_(detail::checked(sy_epoch_create(name))) {}

    /** Closes the epoch. Returns how many objects count as live; 0 if the epoch was closed before,
     * or was moved from. */
    std::size_t close() noexcept { return sy_epoch_close(epoch_.release()); }

    /* False once it is closed, and after a move. */
    explicit operator bool() const noexcept { return epoch_ != nullptr; }

    /** While a scope exists, its thread is in the epoch. The constructor throws std::bad_alloc if
     * the thread is in SY_EPOCH_DEPTH_MAX epochs already, or if the epoch is closed. */
    class scope {
      public:
        explicit scope(epoch &in) : epoch_(in.epoch_.get()) {
            if (epoch_ == nullptr || sy_epoch_begin(epoch_) != 0) detail::fail<std::bad_alloc>();
        }
        ~scope() { sy_epoch_end(epoch_); }
        scope(const scope &) = delete;
        scope &operator=(const scope &) = delete;

      private:
        sy_epoch *epoch_;
    };

  private:
    std::unique_ptr<sy_epoch, detail::ends> epoch_;
};

/**
 * A place for what threads allocate from the heap (slabyard/scope.h). While a thread has an
 * `entered`, what it allocates by sy_malloc, and under the drop-in malloc by new and malloc, lies
 * in the scope. The scope ends when this object is destroyed; the objects in it stay.
 *
 *     slabyard::scope request("request");
 *     {
 *         slabyard::scope::entered in(request);
 *         std::vector<int> numbers(1000);   in the scope, under the drop-in malloc
 *     }
 *     std::size_t left = request.live();
 */
class scope {
  public:
    /** name: copied, for report(). */
    explicit scope(const char *name = nullptr) : scope_(detail::checked(sy_scope_create(name))) {}

    /** Counts the objects that live in the scope, and stores their bytes in *bytes. */
    std::size_t live(std::size_t *bytes = nullptr) const noexcept {
        return sy_scope_live(scope_.get(), bytes);
    }

    /** Writes what lives in the scope to stderr, by size; with the option `audit` also by stack.
     * Returns how many objects. */
    std::size_t report() const noexcept { return sy_scope_report(scope_.get()); }

    /** While it exists, its thread allocates in the scope. It is destroyed by the thread that made
     * it, in the reverse order. The constructor throws std::bad_alloc if there is no memory, if the
     * thread is in SY_SCOPE_DEPTH_MAX scopes already, and in a function that Slabyard calls. */
    class entered {
      public:
        explicit entered(const scope &in) : scope_(in.scope_.get()) {
            if (sy_scope_enter(scope_) != 0) detail::fail<std::bad_alloc>();
        }
        ~entered() { sy_scope_leave(scope_); }
        entered(const entered &) = delete;
        entered &operator=(const entered &) = delete;

      private:
        sy_scope *scope_;
    };

  private:
    std::unique_ptr<sy_scope, detail::ends> scope_;
};

/* ---- handles ---- */

/**
 * The key of an object in a handle_map<T, Tag>: 64 bits, which can be sent anywhere and come back.
 * Maps with another T or Tag have another type of key. A default-constructed key belongs to no
 * object and converts to false.
 */
template <class T, class Tag = T> class handle_key {
  public:
    constexpr handle_key() noexcept = default;

    /** Any bits may be passed: a map only compares them, and never uses them as an address. */
    static constexpr handle_key from_bits(std::uint64_t bits) noexcept {
        handle_key key;
        key.bits_ = bits;
        return key;
    }
    /** Returns the 64 bits of the key. */
    constexpr std::uint64_t to_bits() const noexcept { return bits_; }

    constexpr explicit operator bool() const noexcept { return bits_ != 0; }
    friend constexpr bool operator==(handle_key a, handle_key b) noexcept {
        return a.bits_ == b.bits_;
    }
    friend constexpr bool operator!=(handle_key a, handle_key b) noexcept {
        return a.bits_ != b.bits_;
    }
    friend constexpr bool operator<(handle_key a, handle_key b) noexcept {
        return a.bits_ < b.bits_;
    }

  private:
    sy_handle bits_ = 0;
};

/**
 * While a read_guard exists, the objects that its thread looks up with it stay where they are
 * (sy_read_enter). A guard ends in the thread that began it. Guards nest, and end in reverse order.
 */
class read_guard {
  public:
    read_guard() noexcept : guard_(sy_read_enter()) {}
    ~read_guard() { sy_read_leave(guard_); }
    read_guard(const read_guard &) = delete;
    read_guard &operator=(const read_guard &) = delete;

  private:
    sy_read_guard guard_;
};

/**
 * Objects by 64-bit keys that stay invalid once the object is erased (slabyard/handle.h). Any
 * thread may use a map, at any time.
 *
 * A ref holds its object. If the object is erased meanwhile, its key becomes stale at once, and the
 * object is destroyed when its last ref ends. If a ref outlives the map, the memory of the map is
 * never released.
 *
 * With the flag SY_MOVABLE the objects of sparse slabs move to fuller ones, so that memory follows
 * what is live. A ref and a read_guard keep an object in its place; outside of them keep keys only.
 * T needs a move constructor that is noexcept. Objects are moved by memcpy if T is trivially
 * copyable, else by this constructor and T's destructor. Neither may use the library for that: not
 * even to look up an object.
 *
 * To give two maps of one T different key types, give them different tags; any types will do.
 */
template <class T, class Tag = T> class handle_map {
  public:
    /** The key of an object of this map. */
    using key = handle_key<T, Tag>;

    /** A held object, or nothing. */
    class ref {
      public:
        ref() noexcept = default;
        ref(ref &&other) noexcept
            : cache_(other.cache_), key_(other.key_),
              object_(std::exchange(other.object_, nullptr)) {}
        ref &operator=(ref &&other) noexcept {
            ref taken(std::move(other));
            std::swap(cache_, taken.cache_);
            std::swap(key_, taken.key_);
            std::swap(object_, taken.object_);
            return *this;
        }
        ~ref() {
            if (object_ != nullptr) sy_handle_unpin(cache_, key_.to_bits());
        }

        explicit operator bool() const noexcept { return object_ != nullptr; }
        T &operator*() const noexcept { return *object_; }
        T *operator->() const noexcept { return object_; }
        T *get() const noexcept { return object_; }

      private:
        friend class handle_map;
        ref(sy_cache *cache, key name, T *object) noexcept
            : cache_(cache), key_(name), object_(object) {}
        sy_cache *cache_ = nullptr;
        key key_;
        T *object_ = nullptr;
    };

    /** name: copied, for reports. limit: of live objects; 0: none. flags: as in sy_cache_config.
     * Throws std::invalid_argument for SY_MOVABLE if T cannot be moved without an exception. */
    explicit handle_map(const char *name = nullptr, std::size_t limit = 0, unsigned flags = 0)
        : cache_(detail::create_cache<T>(name, limit, flags | SY_HANDLES, destroy,
                                         flags & SY_MOVABLE ? relocation() : nullptr)) {}

    /*
     * Destroys all objects, as clear() does. If objects remain, the whole memory of the map stays.
     * Objects remain if they are held, if they were left after the last pass, or if there is no
     * memory for a pass.
     */
    ~handle_map() {
        if (cache_ == nullptr) return;
        (void)erase_all();
        sy_cache_destroy(cache_);
    }
    handle_map(handle_map &&other) noexcept : cache_(std::exchange(other.cache_, nullptr)) {}
    handle_map &operator=(handle_map &&other) noexcept {
        handle_map taken(std::move(other));
        std::swap(cache_, taken.cache_);
        return *this;
    }

    /* Makes an object and returns its key. Returns a false key if there is no memory or the limit
     * is reached. */
    template <class... Args> key try_emplace(Args &&...args) {
        sy_handle handle;
        void *slot = sy_handle_prepare(cache_, &handle);
        if (SY_UNLIKELY(slot == nullptr)) return key();
        detail::construct<T>(
            slot, [this, handle](void *) { sy_handle_cancel(cache_, handle); },
            std::forward<Args>(args)...);
        sy_handle_publish(cache_, handle);
        return key::from_bits(handle);
    }

    /* The same, but throws std::bad_alloc. */
    template <class... Args> key emplace(Args &&...args) {
        key made = try_emplace(std::forward<Args>(args)...);
        if (SY_UNLIKELY(!made)) detail::fail<std::bad_alloc>();
        return made;
    }

    /* Returns the object, held; or an empty ref if the key is stale or was never valid. */
    ref get(key name) noexcept {
        return ref(cache_, name, static_cast<T *>(sy_handle_pin(cache_, name.to_bits())));
    }

    /* Looks an object up for as long as the guard exists, at less cost than a ref. Returns nullptr
     * if the key is stale or was never valid. If another thread may erase the object meanwhile, get
     * a ref instead. */
    T *get(const read_guard &, key name) const noexcept {
        return static_cast<T *>(sy_read_get(cache_, name.to_bits()));
    }

    /* Erases an object. Returns true once for each key. The object is destroyed now, or when its
     * last ref ends. */
    bool erase(key name) noexcept { return sy_handle_free(cache_, name.to_bits()); }

    /* Calls `visit(key, object)` for each object, which is held during the call. Throws
     * std::bad_alloc, or the exception of `visit`, which ends the iteration. */
    template <class Visit> void each(Visit visit) {
        struct walk {
            Visit &visit;
            std::exception_ptr thrown;
        } walk{visit, nullptr};
        auto call = [](void *arg, sy_handle handle, void *object) {
            auto &to = *static_cast<struct walk *>(arg);
            return detail::visit(
                to.thrown, [&] { to.visit(key::from_bits(handle), *static_cast<T *>(object)); });
        };
        int result = sy_handle_each(cache_, call, &walk);
        detail::rethrow(walk.thrown);
        detail::check(result);
    }

    /*
     * Erases all objects, in passes over the map until a pass finds none. So objects that
     * destructors emplace are erased too. It stops after 1,000 passes, in case a destructor always
     * emplaces another object. Throws std::bad_alloc if there is no memory for a pass.
     */
    void clear() { detail::check(erase_all()); }

    /* Reserves memory for `count` more objects (sy_cache_reserve). Throws std::bad_alloc. */
    void reserve(std::size_t count) { detail::check(sy_cache_reserve(cache_, count)); }

    /* Moves objects now, for `budget_ns` nanoseconds at most (sy_cache_compact). Returns the bytes
     * of slabs that it emptied: 0 without SY_MOVABLE. */
    std::size_t compact(std::size_t bytes = SIZE_MAX,
                        std::uint64_t budget_ns = UINT64_MAX) noexcept {
        return sy_cache_compact(cache_, bytes, budget_ns);
    }

    /** Returns the number of objects. */
    std::size_t size() const noexcept { return sy_cache_in_use(cache_); }
    /** Gives free memory back to the system (sy_cache_trim). Returns the number of bytes. */
    std::size_t trim() noexcept { return sy_cache_trim(cache_); }
    /** Returns the statistics of the cache. */
    sy_cache_stats stats() const noexcept { return detail::stats_of(cache_); }

    /* False after a move. */
    explicit operator bool() const noexcept { return cache_ != nullptr; }

  private:
    sy_cache *cache_;

    static constexpr int passes_max = 1000;

    static void destroy(void *object, void *) noexcept { static_cast<T *>(object)->~T(); }

    static void relocate(void *from, void *to, void *) noexcept {
        T *object = static_cast<T *>(from);
        ::new (to) T(std::move(*object));
        std::destroy_at(object);
    }

    /* What moves a T: nullptr for memcpy. */
    static auto relocation() -> void (*)(void *, void *, void *) {
        if constexpr (!std::is_nothrow_move_constructible_v<T>)
            detail::fail<std::invalid_argument>("slabyard::handle_map: SY_MOVABLE needs a type "
                                                "whose move constructor is noexcept");
        else if constexpr (!std::is_trivially_copyable_v<T>)
            return relocate;
        return nullptr;
    }

    /* Returns 0, or -1 if there was no memory for a pass. */
    int erase_all() noexcept {
        struct pass {
            sy_cache *cache;
            bool found;
        } pass{cache_, true};
        auto erase = [](void *arg, sy_handle handle, void *) {
            auto &at = *static_cast<struct pass *>(arg);
            at.found = true;
            sy_handle_free(at.cache, handle);
            return 0;
        };
        for (int i = 0; i < passes_max && std::exchange(pass.found, false); i++)
            if (sy_handle_each(cache_, erase, &pass) != 0) return -1;
        return 0;
    }
};

/* ---- statistics ---- */

/** Calls `visit(const sy_cache_account &)` for each cache of the process (sy_cache_each). If
 * `visit` throws, no other cache is visited, and the exception is thrown here. */
template <class Visit> void each_cache(Visit visit) {
    struct state {
        Visit &visit;
        std::exception_ptr thrown;
    } all{visit, nullptr};
    auto visit_one = [](void *arg, const sy_cache_account *account) {
        auto &of = *static_cast<state *>(arg);
        return detail::visit(of.thrown, [&] { of.visit(*account); });
    };
    sy_cache_each(visit_one, &all);
    detail::rethrow(all.thrown);
}

/** As sy_print_stats. Returns false with errno if not everything was written. */
inline bool print_stats(int fd = 2) noexcept { return sy_print_stats(fd) == 0; }

} // namespace slabyard

template <class T, class Tag> struct std::hash<slabyard::handle_key<T, Tag>> {
    std::size_t operator()(slabyard::handle_key<T, Tag> key) const noexcept {
        return std::hash<std::uint64_t>()(key.to_bits());
    }
};

#endif /* C++17 */
#endif
