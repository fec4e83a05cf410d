/*
 * answers.c: bad input to each function of ZNS-Slab. The answers have to be those of ZNS-Slab.
 * Where it crashed, the call returns NULL or does nothing.
 */
#include "compat/compat.h"

#include <slab_alloc.h>

static void *volatile none; /* NULL, which the compiler cannot know */
static SlabAllocator *alloc, *other;
static SlabHandle handle, live, stale, elsewhere;
static PerfCounters counters;
static void *object, *freed;
static uint64_t memory[8];

/* Returns true if all counters are set to 0. */
static bool counts_nothing(SlabAllocator *of, uint32_t size_class) {
    static const PerfCounters zero;
    memset(&counters, 1, sizeof counters);
    get_perf_counters(of, size_class, &counters);
    return memcmp(&counters, &zero, sizeof zero) == 0;
}

/* Returns true if a free does nothing: the live object stays live. */
static bool does_nothing(SlabAllocator *of, void *ptr) {
    slab_free(of, ptr);
    return faults == 0 && sy_handle_of(object) == live;
}

#define ANSWERS(A)                                                                                 \
    A(allocator_init, NOTHING, (allocator_init(none), true))                                       \
    A(allocator_destroy, NOTHING, (allocator_destroy(none), true))                                 \
    A(slab_allocator_create, OTHER, alloc &&other)                                                 \
    A(slab_allocator_free, NOTHING, (slab_allocator_free(none), true))                             \
    A(alloc_obj, NOTHING,                                                                          \
      !alloc_obj(none, 64, &handle) && handle == 7 && alloc_obj(alloc, 64, none) &&                \
          !alloc_obj(none, 0, none))                                                               \
    A(alloc_obj, ZERO, alloc_obj(alloc, 0, &handle) && free_obj(alloc, handle))                    \
    A(alloc_obj, HUGE_SIZE,                                                                        \
      !alloc_obj(alloc, 513, &handle) && !alloc_obj(alloc, UINT32_MAX, &handle) && handle == 7)    \
    A(free_obj, NOTHING, !free_obj(none, live) && free_obj(alloc, live))                           \
    A(free_obj, ZERO, !free_obj(alloc, 0) && !free_obj(none, 0))                                   \
    A(free_obj, FOREIGN,                                                                           \
      !free_obj(alloc, elsewhere) && !free_obj(alloc, (uintptr_t)memory) &&                        \
          !free_obj(alloc, UINT64_MAX) && free_obj(other, elsewhere))                              \
    A(free_obj, STALE, !free_obj(alloc, stale) && free_obj(alloc, live))                           \
    A(slab_malloc, NOTHING, !slab_malloc(none, 8) && !slab_malloc(none, 0))                        \
    A(slab_malloc, ZERO, !slab_malloc(alloc, 0))                                                   \
    A(slab_malloc, HUGE_SIZE, !slab_malloc(alloc, 505) && !slab_malloc(alloc, SIZE_MAX))           \
    A(slab_free, NOTHING,                                                                          \
      does_nothing(alloc, NULL) && does_nothing(none, object) && does_nothing(none, NULL))         \
    A(slab_free, FOREIGN, does_nothing(other, object) && does_nothing(alloc, memory))              \
    A(slab_free, STALE, does_nothing(alloc, freed))                                                \
    A(get_perf_counters, NOTHING, (get_perf_counters(alloc, 0, none), counts_nothing(none, 0)))    \
    A(get_perf_counters, ZERO, counts_nothing(other, 0))                                           \
    A(get_perf_counters, HUGE_SIZE, counts_nothing(alloc, 4) && counts_nothing(alloc, UINT32_MAX)) \
    A(slab_object_count, ZERO, slab_object_count(0) == 0)                                          \
    A(slab_object_count, HUGE_SIZE, slab_object_count(UINT32_MAX) == 0)                            \
    A(read_rss_bytes_linux, OTHER, read_rss_bytes_linux() > 0)                                     \
    A(now_ns, OTHER, now_ns() > 0)

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    size_t count = sizeof answers / sizeof *answers;
    sy_set_fault_handler(note_fault);
    alloc = slab_allocator_create();
    other = slab_allocator_create();
    EXPECT(alloc && other && alloc_obj(other, 128, &elsewhere));
    freed = alloc_obj(alloc, 128, &stale);
    EXPECT(freed && free_obj(alloc, stale));
    object = alloc_obj(alloc, 256, &live);
    EXPECT(object);
    handle = 7;
    return check_header(COMPAT "slab_alloc.h", answers, count) + check_answers(answers, count);
}
