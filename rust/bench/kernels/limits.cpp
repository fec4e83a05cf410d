/* The slow halves of the limit prototypes; see limits.hpp. */
#include "limits.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sys/mman.h>
#include <vector>

namespace {

constexpr size_t magazine_capacity = 128;
constexpr size_t magazine_region = size_t{1} << 36; /* address space; touched as it is used */

char *map(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("bench: mmap");
        std::abort();
    }
    return static_cast<char *>(memory);
}

} // namespace

FreelistState *freelist_open(size_t size, size_t capacity) {
    auto *state = new FreelistState{nullptr, size, nullptr, size * capacity};
    char *memory = map(state->bytes);
    state->memory = memory;
    for (size_t i = capacity; i > 0; i--) {
        freelist_free(state, memory + (i - 1) * size);
    }
    return state;
}

void freelist_close(FreelistState *state) {
    munmap(state->memory, state->bytes);
    delete state;
}

__thread LoadedMagazine loaded_magazine;

struct MagazineState {
    size_t size;
    char *region, *bump;
    std::mutex lock; /* guards bump and the two stacks */
    std::vector<void **> full, empty;
};

MagazineState *magazine_open(size_t size) {
    auto *state = new MagazineState{};
    state->size = size;
    state->region = map(magazine_region);
    state->bump = state->region;
    return state;
}

size_t magazine_object_size(const MagazineState *state) { return state->size; }

void magazine_close(MagazineState *state) {
    magazine_thread_end(state);
    for (void **array : state->full) {
        delete[] array;
    }
    for (void **array : state->empty) {
        delete[] array;
    }
    munmap(state->region, magazine_region);
    delete state;
}

void magazine_thread_end(MagazineState *state) {
    LoadedMagazine &loaded = loaded_magazine;
    if (loaded.spare != nullptr) {
        std::lock_guard<std::mutex> hold(state->lock);
        /* Completes a partly filled array with fresh objects, so that "full" stays exact. */
        for (; loaded.top != loaded.base && loaded.top != loaded.limit; loaded.top++) {
            *loaded.top = state->bump;
            state->bump += state->size;
        }
        (loaded.top == loaded.base ? state->empty : state->full).push_back(loaded.base);
        (loaded.spare_full ? state->full : state->empty).push_back(loaded.spare);
    }
    loaded = LoadedMagazine{};
}

static void load(void **array, bool full) {
    loaded_magazine.base = array;
    loaded_magazine.limit = array + magazine_capacity;
    loaded_magazine.top = full ? loaded_magazine.limit : array;
}

static void first_use() {
    if (loaded_magazine.spare == nullptr) {
        load(new void *[magazine_capacity], false);
        loaded_magazine.spare = new void *[magazine_capacity];
        loaded_magazine.spare_full = false;
    }
}

/* Makes the loaded array full: from the spare, the depot, or the bump pointer. */
void *magazine_alloc_slow(MagazineState *state) {
    first_use();
    void **empty = loaded_magazine.base;
    if (loaded_magazine.spare_full) {
        load(loaded_magazine.spare, true);
        loaded_magazine.spare = empty;
        loaded_magazine.spare_full = false;
        return magazine_alloc(state);
    }
    std::lock_guard<std::mutex> hold(state->lock);
    if (!state->full.empty()) {
        load(state->full.back(), true);
        state->full.pop_back();
        state->empty.push_back(empty);
        return magazine_alloc(state);
    }
    /* Pops take from the end, so the lowest address goes there. */
    for (size_t i = magazine_capacity; i > 0; i--) {
        empty[i - 1] = state->bump;
        state->bump += state->size;
    }
    load(empty, true);
    return magazine_alloc(state);
}

/* Makes the loaded array empty: by the spare, or by handing a full one to the depot. */
void magazine_free_slow(MagazineState *state, void *object) {
    if (loaded_magazine.spare == nullptr) {
        first_use();
        magazine_free(state, object);
        return;
    }
    void **full = loaded_magazine.base;
    if (!loaded_magazine.spare_full) {
        load(loaded_magazine.spare, false);
        loaded_magazine.spare = full;
        loaded_magazine.spare_full = true;
        magazine_free(state, object);
        return;
    }
    void **empty = nullptr;
    {
        std::lock_guard<std::mutex> hold(state->lock);
        state->full.push_back(full);
        if (!state->empty.empty()) {
            empty = state->empty.back();
            state->empty.pop_back();
        }
    }
    load(empty != nullptr ? empty : new void *[magazine_capacity], false);
    magazine_free(state, object);
}
