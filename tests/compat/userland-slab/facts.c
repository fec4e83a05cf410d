/*
 * facts.c: what a program gets from the header of userland_slab (c05fbbc) besides functions: other
 * headers, macros and fields. This program includes no other header first. What is missing here is
 * listed in docs/compat.md.
 */
#include <slab.h>

static uint8_t from_stdint = UINT8_MAX;

#define FIELDS(F)                        \
    F(size_t, obj_size)                  \
    F(size_t, actual_obj_size)           \
    F(size_t, slab_size)                 \
    F(unsigned int, objs_per_slab)       \
    F(unsigned int, free_objs_count)     \
    F(unsigned int, used_objs_count)     \
    F(unsigned int, slab_count)          \
    F(unsigned int, free_slabs_count)    \
    F(unsigned int, partial_slabs_count) \
    F(unsigned int, full_slabs_count)

#define HAS_TYPE(type, field) \
    _Static_assert(_Generic(((struct Objs_cache *)NULL)->field, type : 1, default : 0), #field);
FIELDS(HAS_TYPE)

/* The next include would bring headers that userland_slab's does not. */
#include "compat/compat.h"

enum { COUNT = 100000 };
static void *objects[COUNT];

static void the_counters_are_those_of_the_last_count(void) {
    struct Objs_cache cache;
    EXPECT(objs_cache_init(&cache, 20, NULL));
    EXPECT(cache.obj_size == 20 && cache.actual_obj_size >= 20 && cache.used_objs_count == 0);
    for (unsigned i = 0; i < COUNT; i++) EXPECT((objects[i] = objs_cache_alloc(&cache)));
    EXPECT(cache.used_objs_count > COUNT / 2 && cache.used_objs_count <= COUNT);
    display_cache_info(&cache);
    EXPECT(cache.used_objs_count == COUNT && cache.slab_count >= COUNT / cache.objs_per_slab);
    EXPECT(cache.slab_count ==
           cache.free_slabs_count + cache.partial_slabs_count + cache.full_slabs_count);
    for (unsigned i = 0; i < COUNT; i++) objs_cache_free(&cache, objects[i]);
    display_cache_info(&cache);
    EXPECT(cache.used_objs_count == 0);
    EXPECT(cache.free_objs_count == cache.slab_count * cache.objs_per_slab);
    objs_cache_destroy(&cache);
}

int main(void) {
    EXPECT(from_stdint && slab_allocator_init());
    the_counters_are_those_of_the_last_count();
    slab_allocator_destroy();
    return 0;
}
