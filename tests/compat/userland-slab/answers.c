/*
 * answers.c: bad input to each function of userland_slab. The answers have to be those of
 * userland_slab, with two exceptions. Where it crashed or ended the process, the call returns
 * NULL or does nothing. Where it continued with corrupted memory, the mistake is reported. This
 * program runs with checks and without.
 */
#include "compat/compat.h"

#include <slab.h>

static void *volatile none; /* NULL, which the compiler cannot know */
static struct Objs_cache cache, other, ended, made;
static uint64_t memory[8];

static bool reports(void *object) {
    objs_cache_free(&cache, object);
    return reported();
}

static void *freed(void) {
    void *object = objs_cache_alloc(&cache);
    objs_cache_free(&cache, object);
    return object;
}

/* Returns true if a cache of this size is refused, or has no objects. */
static bool none_of(size_t size) {
    struct Objs_cache *it = objs_cache_init(&made, size, NULL);
    return !objs_cache_alloc(it);
}

#define ANSWERS(A)                                                                                \
    A(display_cache_info, NOTHING, (display_cache_info(none), true))                              \
    A(slab_allocator_init, OTHER, slab_allocator_init() && slab_allocator_init())                 \
    A(slab_allocator_destroy, OTHER,                                                              \
      (slab_allocator_destroy(), slab_allocator_destroy(), !objs_cache_init(&made, 8, NULL)))     \
    A(objs_cache_init, NOTHING, !objs_cache_init(none, 8, NULL))                                  \
    A(objs_cache_init, ZERO, objs_cache_init(&made, 0, NULL) && objs_cache_alloc(&made))          \
    A(objs_cache_init, HUGE_SIZE, none_of(SIZE_MAX) && none_of(PTRDIFF_MAX))                      \
    A(objs_cache_alloc, NOTHING, !objs_cache_alloc(none))                                         \
    A(objs_cache_alloc, STALE, !objs_cache_alloc(&ended))                                         \
    A(objs_cache_free, NOTHING,                                                                   \
      (objs_cache_free(&cache, NULL), objs_cache_free(none, memory), objs_cache_free(none, NULL), \
       memory[0] == 0))                                                                           \
    A(objs_cache_free, FOREIGN,                                                                   \
      reports(memory) && (faults = 0, reports(objs_cache_alloc(&other))))                         \
    A(objs_cache_free, STALE,                                                                     \
      reports(freed()) && (objs_cache_free(&ended, memory), memory[0] == 0))                      \
    A(objs_cache_destroy, NOTHING, (objs_cache_destroy(none), true))                              \
    A(objs_cache_destroy, STALE, (objs_cache_destroy(&ended), objs_cache_alloc(&cache)))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    size_t count = sizeof answers / sizeof *answers;
    sy_set_fault_handler(note_fault);
    EXPECT(slab_allocator_init() && objs_cache_init(&cache, 8, NULL));
    EXPECT(objs_cache_init(&other, 8, NULL) && objs_cache_init(&ended, 8, NULL));
    objs_cache_destroy(&ended);
    return check_header(COMPAT "slab.h", answers, count) + check_answers(answers, count);
}
