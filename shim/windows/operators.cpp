/*
 * operators.cpp: C++'s operators new and delete on Windows, over the heap (slabyard/heap.h). A
 * program that is linked with this file and the static library has its objects from there. The
 * forms that are not here call these, by the C++ standard: those for arrays, and those that do not
 * throw. What a DLL allocates by its own operators has to be deleted there.
 */
#include <cstddef>
#include <new>

#include <slabyard/slabyard.h>

namespace {

/* All that the program may put into so many bytes is aligned. */
constexpr std::size_t least = __STDCPP_DEFAULT_NEW_ALIGNMENT__ / 2 + 1;

std::size_t size_for(std::size_t size) { return size < least ? least : size; }

void *allocate(std::size_t size, std::size_t align) {
    return align <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? sy_malloc(size_for(size))
                                                     : sy_aligned_alloc(align, size_for(size));
}

/* Tries again as long as the program's new_handler makes room. */
void *allocate_or_throw(std::size_t size, std::size_t align) {
    for (;;) {
        if (void *object = allocate(size, align)) return object;
        std::new_handler handler = std::get_new_handler();
        if (!handler) throw std::bad_alloc();
        handler();
    }
}

} // namespace

void *operator new(std::size_t size) {
    return allocate_or_throw(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}

void *operator new(std::size_t size, std::align_val_t align) {
    return allocate_or_throw(size, static_cast<std::size_t>(align));
}

void operator delete(void *object) noexcept { sy_free(object); }

void operator delete(void *object, std::align_val_t) noexcept { sy_free(object); }

void operator delete(void *object, std::size_t size) noexcept {
    if (object) sy_free_sized(object, size_for(size));
}

void operator delete(void *object, std::size_t, std::align_val_t) noexcept { sy_free(object); }
