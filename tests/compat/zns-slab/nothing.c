/*
 * nothing.c: what ZNS-Slab answers to NULL and 0, function by function; and NULL or nothing, where
 * it crashed.
 */
#include <slab_alloc.h>

#include "../compat.h"

static void *volatile none; /* so that no compiler knows */
static SlabAllocator *alloc;
static SlabHandle handle;
static PerfCounters counters;
static uint64_t object;

/* 0 of everything; what was there before is gone. */
static bool counts_nothing(SlabAllocator *of, uint32_t size_class) {
    static const PerfCounters zero;
    memset(&counters, 1, sizeof counters);
    get_perf_counters(of, size_class, &counters);
    return memcmp(&counters, &zero, sizeof zero) == 0;
}

#define ANSWERS(A)                                                        \
    A(init, (allocator_init(none), true))                                 \
    A(destroy, (allocator_destroy(none), true))                           \
    A(free_allocator, (slab_allocator_free(none), true))                  \
    A(obj_nowhere, alloc_obj(none, 64, &handle) == NULL && handle == 7)   \
    A(obj_unsaid, alloc_obj(alloc, 64, none) != NULL)                     \
    A(obj_neither, alloc_obj(none, 0, none) == NULL)                      \
    A(obj_empty, alloc_obj(alloc, 0, &handle) && free_obj(alloc, handle)) \
    A(free_obj_zero, !free_obj(alloc, 0))                                 \
    A(free_obj_nowhere, !free_obj(none, 7) && !free_obj(none, 0))         \
    A(malloc_empty, slab_malloc(alloc, 0) == NULL)                        \
    A(malloc_nowhere, slab_malloc(none, 8) == NULL)                       \
    A(malloc_neither, slab_malloc(none, 0) == NULL)                       \
    A(free_nothing, (slab_free(alloc, NULL), true))                       \
    A(free_nowhere, (slab_free(none, &object), object == 0))              \
    A(free_both, (slab_free(none, NULL), true))                           \
    A(counters_unsaid, (get_perf_counters(alloc, 0, none), true))         \
    A(counters_nowhere, counts_nothing(none, 0))                          \
    A(counters_fresh, counts_nothing(alloc, 0))                           \
    A(counters_beyond, counts_nothing(alloc, 4))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    alloc = slab_allocator_create();
    handle = 7;
    EXPECT(alloc);
    return check_answers(answers, sizeof answers / sizeof *answers);
}
