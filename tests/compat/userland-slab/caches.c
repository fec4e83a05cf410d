#include "compat/compat.h"

#include <slab.h>

#include <slabyard/fail.h>

/* ---- as the document shows ---- */

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

static void initialised_once_and_for_all(void) {
    struct Objs_cache cache;
    EXPECT(slab_allocator_init());
    EXPECT(objs_cache_init(&cache, 24, NULL));
    EXPECT(slab_allocator_init()); /* a second call keeps all caches */
    void *object = objs_cache_alloc(&cache);
    EXPECT(object);
    objs_cache_free(&cache, object);
    objs_cache_destroy(&cache);
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

enum { OBJECTS = 1000000 };
static void *objects[OBJECTS];

/* A million objects need hardly more memory than their sizes. */
static void objects_have_no_metadata(void) {
    const size_t sizes[] = {8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 104, 128, 256};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct Objs_cache cache;
        size_t before = mapped_now();
        EXPECT(objs_cache_init(&cache, sizes[i], NULL));
        for (unsigned j = 0; j < OBJECTS; j++) EXPECT((objects[j] = objs_cache_alloc(&cache)));
        size_t bytes = OBJECTS * sizes[i];
        EXPECT(mapped_now() - before >= bytes);
        EXPECT(mapped_now() - before <= bytes + bytes / 50 + (1 << 20));
        objs_cache_destroy(&cache);
    }
}

/* ---- mistakes that the audit found ---- */

enum { MANY = 100000 };

static void rounds_hold_flat(void) {
    struct Objs_cache cache;
    size_t first = 0;
    EXPECT(objs_cache_init(&cache, 64, NULL));
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < MANY; i++) EXPECT((objects[i] = objs_cache_alloc(&cache)));
        for (unsigned i = 0; i < MANY; i++) objs_cache_free(&cache, objects[i]);
        if (round == 1) first = mapped_now();
    }
    EXPECT(mapped_now() <= first);
    objs_cache_destroy(&cache);
}

/* Destroying a cache returns its memory to the system at once, without a trim. */
static void all_memory_goes_back(void) {
    struct Objs_cache cache, other;
    sy_trim();
    size_t before = mapped_now();
    EXPECT(objs_cache_init(&cache, 100, NULL) && objs_cache_init(&other, 3000, NULL));
    for (unsigned i = 0; i < MANY; i++) EXPECT(objs_cache_alloc(&cache));
    EXPECT(mapped_now() > before + MANY * 100);
    objs_cache_destroy(&cache);
    EXPECT(mapped_now() <= before + (1 << 20));
    objs_cache_destroy(&cache); /* a second time: does nothing */
    for (unsigned i = 0; i < MANY / 10; i++) EXPECT(objs_cache_alloc(&other));
    EXPECT(mapped_now() > before + MANY * 300);
    slab_allocator_destroy();
    EXPECT(mapped_now() <= before + (1 << 20));
    EXPECT(slab_allocator_init());
}

static void objects_of_any_size(void) {
    for (size_t size = 1; size < 200000; size += size < 300 ? 1 : size) {
        struct Objs_cache cache;
        EXPECT(objs_cache_init(&cache, size, NULL));
        unsigned char *object = objs_cache_alloc(&cache);
        for (size_t align = 2; align <= 16; align *= 2)
            EXPECT(size % align != 0 || (uintptr_t)object % align == 0);
        memset(object, 1, size);
        objs_cache_free(&cache, object);
        objs_cache_free(&cache, NULL);
        objs_cache_destroy(&cache);
    }
    struct Objs_cache none;
    EXPECT(!objs_cache_init(&none, SIZE_MAX, NULL));
    errno = 0;
    EXPECT(!objs_cache_init(NULL, 8, NULL) && errno == EINVAL);
}

/* The constructor is not called for an object that cannot be allocated. */
static void no_memory_is_no_end(void) {
    struct Objs_cache cache;
    EXPECT(objs_cache_init(&cache, SIZE_MAX / 2 - 65534, construct));
    constructed = 0;
    errno = 0;
    EXPECT(!objs_cache_alloc(&cache) && errno == ENOMEM);
    objs_cache_destroy(&cache);
    EXPECT(sy_set_failures("Objs_cache:2") == 0);
    EXPECT(objs_cache_init(&cache, 24, construct));
    EXPECT(objs_cache_alloc(&cache) && !objs_cache_alloc(&cache) && objs_cache_alloc(&cache));
    EXPECT(constructed == 2 && sy_set_failures(NULL) == 0);
    objs_cache_destroy(&cache);
}

/* ---- as the header shows ---- */

static void *alloc_and_free(void *arg) {
    void *mine[100];
    for (unsigned round = 0; round < 1000; round++) {
        for (unsigned i = 0; i < 100; i++) {
            EXPECT((mine[i] = objs_cache_alloc(arg)) != NULL);
            own(mine[i], 40, (uintptr_t)&mine[i]);
        }
        for (unsigned i = 0; i < 100; i++) {
            EXPECT(is_own(mine[i], 40, (uintptr_t)&mine[i]));
            objs_cache_free(arg, mine[i]);
        }
    }
    return NULL;
}

/* Each thread also creates and destroys caches of its own, in the list that all threads share. */
static void *init_and_destroy(void *arg) {
    for (unsigned i = 0; i < 200; i++) {
        struct Objs_cache cache;
        EXPECT(objs_cache_init(&cache, 16 + i, NULL) && objs_cache_alloc(&cache));
        objs_cache_destroy(&cache);
    }
    return alloc_and_free(arg);
}

static void any_thread_may_use_a_cache(void) {
    struct Objs_cache cache;
    EXPECT(objs_cache_init(&cache, 40, NULL));
    in_threads(4, init_and_destroy, &cache);
    EXPECT(sy_cache_in_use(cache.cache) == 0);
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
    objs_cache_destroy(&caches[0]); /* destroyed already: the new cache is not affected */
    EXPECT(objs_cache_alloc(&caches[50]));
    slab_allocator_destroy();
    slab_allocator_destroy();
}

/* An Objs_cache whose cache went with the allocator has no objects any more, whatever caches are
 * created afterwards. */
static void a_cache_that_went_with_the_allocator_is_none(void) {
    struct Objs_cache ended, other;
    EXPECT(slab_allocator_init() && objs_cache_init(&ended, 64, NULL));
    void *object = objs_cache_alloc(&ended);
    EXPECT(object);
    slab_allocator_destroy();
    errno = 0;
    EXPECT(!objs_cache_alloc(&ended) && errno == EINVAL);
    EXPECT(slab_allocator_init() && objs_cache_init(&other, 4096, construct));
    objs_cache_free(&ended, object);
    objs_cache_destroy(&ended);
    display_cache_info(&ended);
    errno = 0;
    EXPECT(!objs_cache_alloc(&ended) && errno == EINVAL);
    EXPECT(objs_cache_alloc(&other) && sy_cache_in_use(other.cache) == 1);
    EXPECT(objs_cache_init(&ended, 64, NULL) && objs_cache_alloc(&ended)); /* a new one */
    slab_allocator_destroy();
}

int main(void) {
    struct Objs_cache early;
    EXPECT(!objs_cache_init(&early, 8, NULL));
    a_cache_of_numbers();
    initialised_once_and_for_all();
    the_constructor_is_called_at_each_allocation();
    objects_have_no_metadata();
    rounds_hold_flat();
    all_memory_goes_back();
    objects_of_any_size();
    no_memory_is_no_end();
    any_thread_may_use_a_cache();
    caches_that_are_left_go_with_the_allocator();
    a_cache_that_went_with_the_allocator_is_none();
    return 0;
}
