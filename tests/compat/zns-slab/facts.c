/*
 * facts.c: what a program gets from the headers of ZNS-Slab (56725b5 of temporal-slab) besides
 * functions: other headers, macros, types and fields. This program includes no other header first.
 * What is missing here is listed in docs/compat.md.
 */
#include <slab_alloc.h>

static bool from_stdbool = true;
static uint64_t from_stdint = UINT64_MAX;
static ptrdiff_t from_stddef = 1;

#define MACROS(M) M(SLAB_PAGE_SIZE, 4096u) M(sizeof(SlabHandle), 8)

#define FIELDS(F)                          \
    F(uint64_t, slow_path_hits)            \
    F(uint64_t, new_slab_count)            \
    F(uint64_t, list_move_partial_to_full) \
    F(uint64_t, list_move_full_to_partial) \
    F(uint64_t, current_partial_null)      \
    F(uint64_t, current_partial_full)      \
    F(uint64_t, empty_slab_recycled)       \
    F(uint64_t, empty_slab_overflowed)

#define HAS_VALUE(macro, value) _Static_assert((macro) == (value), #macro);
#define HAS_TYPE(type, field) \
    _Static_assert(_Generic(((PerfCounters *)NULL)->field, type : 1, default : 0), #field);
MACROS(HAS_VALUE)
FIELDS(HAS_TYPE)

/* The internal header has two more. */
#include <slab_alloc_internal.h>

static pthread_key_t from_pthread;
static atomic_uintptr_t from_stdatomic;
static SlabAllocator own_storage;
static SizeClassAlloc *size_class;

#include "compat/compat.h"

int main(void) {
    EXPECT(from_stdbool && from_stdint && from_stddef);
    EXPECT(pthread_key_create(&from_pthread, NULL) == 0 && atomic_load(&from_stdatomic) == 0);
    allocator_init(&own_storage);
    size_class = &own_storage.classes[3];
    EXPECT(size_class && alloc_obj(&own_storage, 512, NULL));
    allocator_destroy(&own_storage);
    return 0;
}
