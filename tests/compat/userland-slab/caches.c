#include "compat/compat.h"

#include <slab.h>

/* ---- what the document shows ---- */

static void a_cache_of_numbers(void) {
    struct Objs_cache a_cache;
    EXPECT(slab_allocator_init());
    EXPECT(objs_cache_init(&a_cache, sizeof(unsigned long), NULL) == &a_cache);
    unsigned long *number = objs_cache_alloc(&a_cache);
    *number = 7;
    objs_cache_free(&a_cache, number);
    objs_cache_destroy(&a_cache);
    slab_allocator_destroy();
}

static unsigned constructed;

static void construct(void *object) {
    memset(object, 5, 24);
    constructed++;
}

static void the_constructor_is_called_at_each_allocation(void) {
    struct Objs_cache cache;
    EXPECT(objs_cache_init(&cache, 24, construct));
    for (unsigned i = 0; i < 100; i++) {
        unsigned char *object = objs_cache_alloc(&cache);
        EXPECT(constructed == i + 1 && object[0] == 5 && object[23] == 5);
        memset(object, 9, 24);
        objs_cache_free(&cache, object);
    }
    objs_cache_destroy(&cache);
}

/* ---- what was found ---- */

enum { OBJECTS = 100000 };
static void *objects[OBJECTS];

static void rounds_hold_flat(void) {
    struct Objs_cache cache;
    size_t first = 0;
    EXPECT(objs_cache_init(&cache, 64, NULL));
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < OBJECTS; i++) EXPECT((objects[i] = objs_cache_alloc(&cache)));
        for (unsigned i = 0; i < OBJECTS; i++) objs_cache_free(&cache, objects[i]);
        if (round == 1) first = mapped_now();
    }
    EXPECT(mapped_now() <= first);
    objs_cache_destroy(&cache);
}

static void all_memory_goes_back(void) {
    struct Objs_cache cache;
    sy_trim();
    size_t before = mapped_now();
    EXPECT(objs_cache_init(&cache, 100, NULL));
    for (unsigned i = 0; i < OBJECTS; i++) EXPECT((objects[i] = objs_cache_alloc(&cache)));
    EXPECT(mapped_now() > before + OBJECTS * 100);
    objs_cache_destroy(&cache);
    sy_trim();
    EXPECT(mapped_now() <= before + (1 << 20));
    objs_cache_destroy(&cache); /* again */
}

static void objects_of_any_size(void) {
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        struct Objs_cache cache;
        EXPECT(objs_cache_init(&cache, size, NULL));
        unsigned char *object = objs_cache_alloc(&cache);
        EXPECT(size < 16 || (uintptr_t)object % 16 == 0);
        memset(object, 1, size);
        objs_cache_free(&cache, object);
        objs_cache_free(&cache, NULL);
        objs_cache_destroy(&cache);
    }
    struct Objs_cache none;
    EXPECT(!objs_cache_init(&none, 0, NULL));
    EXPECT(!objs_cache_init(&none, SIZE_MAX, NULL));
    EXPECT(!objs_cache_init(NULL, 8, NULL));
}

static void no_memory_is_no_end(void) {
    struct Objs_cache cache;
    EXPECT(objs_cache_init(&cache, SIZE_MAX / 4, NULL));
    errno = 0;
    EXPECT(!objs_cache_alloc(&cache) && errno == ENOMEM);
    objs_cache_destroy(&cache);
}

static void caches_that_are_left_go_with_the_allocator(void) {
    static struct Objs_cache caches[100];
    for (unsigned i = 0; i < 100; i++) {
        EXPECT(objs_cache_init(&caches[i], 32 + i, NULL));
        EXPECT(objs_cache_alloc(&caches[i]));
    }
    objs_cache_destroy(&caches[50]);
    slab_allocator_destroy();
    EXPECT(!objs_cache_init(&caches[50], 8, NULL));
    EXPECT(slab_allocator_init());
    EXPECT(objs_cache_init(&caches[50], 8, NULL));
    objs_cache_destroy(&caches[0]); /* gone already: nothing happens to the new one */
    EXPECT(objs_cache_alloc(&caches[50]));
    slab_allocator_destroy();
    slab_allocator_destroy();
}

int main(void) {
    struct Objs_cache early;
    EXPECT(!objs_cache_init(&early, 8, NULL));
    a_cache_of_numbers();
    EXPECT(slab_allocator_init());
    the_constructor_is_called_at_each_allocation();
    rounds_hold_flat();
    all_memory_goes_back();
    objects_of_any_size();
    no_memory_is_no_end();
    caches_that_are_left_go_with_the_allocator();
    return 0;
}
