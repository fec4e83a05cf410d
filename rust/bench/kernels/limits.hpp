/*
 * The limit prototypes: no allocator of their kind can be faster, because they do nothing else.
 *
 * freelist: one thread, an intrusive list of slots linked when it is opened, nothing checked.
 * magazine: any thread; a thread pops from and pushes to an array of pointers, holds a second
 *           array, and swaps full for empty arrays at a depot under a mutex. There are no slabs:
 *           new objects come from a bump pointer, freed objects never leave the arrays.
 *
 * One magazine state may be open at a time, because its arrays are a plain thread-local.
 */
#ifndef BENCH_LIMITS_HPP
#define BENCH_LIMITS_HPP

#include <cstddef>

struct FreelistSlot {
    FreelistSlot *next;
};

struct FreelistState {
    FreelistSlot *head;
    size_t size;
    void *memory;
    size_t bytes;
};

FreelistState *freelist_open(size_t size, size_t capacity);
void freelist_close(FreelistState *state);

static inline void *freelist_alloc(FreelistState *state) {
    FreelistSlot *slot = state->head;
    state->head = slot->next;
    return slot;
}

static inline void freelist_free(FreelistState *state, void *object) {
    auto *slot = static_cast<FreelistSlot *>(object);
    slot->next = state->head;
    state->head = slot;
}

struct LoadedMagazine {
    void **top;   /* pops come from top[-1], pushes go to top[0] */
    void **base;  /* top == base: empty */
    void **limit; /* top == limit: full */
    void **spare; /* the second array, or NULL before the first use */
    bool spare_full;
};

/* Shut (all NULL) until the first use, so that the fast paths need no test for it. */
extern __thread LoadedMagazine loaded_magazine __attribute__((tls_model("local-exec")));

struct MagazineState;
MagazineState *magazine_open(size_t size);
size_t magazine_object_size(const MagazineState *state);
void magazine_close(MagazineState *state);
void magazine_thread_end(MagazineState *state);
void *magazine_alloc_slow(MagazineState *state);
void magazine_free_slow(MagazineState *state, void *object);

static inline void *magazine_alloc(MagazineState *state) {
    void **top = loaded_magazine.top;
    if (__builtin_expect(top == loaded_magazine.base, 0)) {
        return magazine_alloc_slow(state);
    }
    loaded_magazine.top = --top;
    return *top;
}

static inline void magazine_free(MagazineState *state, void *object) {
    void **top = loaded_magazine.top;
    if (__builtin_expect(top == loaded_magazine.limit, 0)) {
        magazine_free_slow(state, object);
        return;
    }
    *top = object;
    loaded_magazine.top = top + 1;
}

#endif
