/*
 * nothing.c: what userland_slab answers to NULL and 0, function by function; and NULL or nothing,
 * where it crashed or ended the process.
 */
#include <slab.h>

#include "../compat.h"

static void *volatile none; /* so that no compiler knows */
static struct Objs_cache cache, ended, of_nothing;
static uint64_t object;

#define ANSWERS(A)                                                                         \
    A(init_twice, slab_allocator_init() && slab_allocator_init())                          \
    A(init_nowhere, objs_cache_init(none, 8, NULL) == NULL)                                \
    A(init_empty, objs_cache_init(&of_nothing, 0, NULL) == &of_nothing)                    \
    A(alloc_empty, objs_cache_init(&of_nothing, 0, NULL) && objs_cache_alloc(&of_nothing)) \
    A(alloc, objs_cache_alloc(none) == NULL)                                               \
    A(alloc_ended, objs_cache_alloc(&ended) == NULL)                                       \
    A(free_nothing, (objs_cache_free(&cache, NULL), true))                                 \
    A(free_nowhere, (objs_cache_free(none, &object), object == 0))                         \
    A(free_both, (objs_cache_free(none, NULL), true))                                      \
    A(free_ended, (objs_cache_free(&ended, &object), object == 0))                         \
    A(destroy, (objs_cache_destroy(none), true))                                           \
    A(destroy_ended, (objs_cache_destroy(&ended), true))                                   \
    A(destroy_all_twice, (slab_allocator_destroy(), slab_allocator_destroy(), true))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    EXPECT(slab_allocator_init());
    EXPECT(objs_cache_init(&cache, 8, NULL) && objs_cache_init(&ended, 8, NULL));
    objs_cache_destroy(&ended);
    return check_answers(answers, sizeof answers / sizeof *answers);
}
