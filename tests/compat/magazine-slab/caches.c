#include "compat/compat.h"

#include <sched.h>

#include <slab.h>

/* ---- what the document shows ---- */

static void a_cache_and_its_life(void) {
    struct slab_cache *cache = slab_cache_create("my_cache", 64, 0, 0, NULL, NULL);
    void *obj = slab_alloc(cache);
    EXPECT(obj);
    memset(obj, 1, 64);
    slab_free(cache, obj);
    slab_cache_shrink(cache);
    slab_cache_stats(cache);
    slab_cache_destroy(cache);
    slab_cache_destroy(NULL);
}

static void any_size(void) {
    slab_system_init();
    void *buf = slab_kmalloc(100);
    EXPECT(buf);
    memset(buf, 1, 100);
    slab_kfree(buf, 100);
    slab_kfree(NULL, 8);
    for (size_t size = 8; size <= 4096; size *= 2) {
        void *object = slab_kmalloc(size);
        EXPECT(object && (size < 16 || (uintptr_t)object % 16 == 0));
        memset(object, 2, size);
        slab_kfree(object, size);
    }
    slab_system_fini();
}

enum { OBJECTS = 20000 };
static void *objects[OBJECTS];

static void empty_slabs_are_given_up(void) {
    struct slab_cache *cache = slab_cache_create("shrunk", 200, 0, 0, NULL, NULL);
    for (unsigned i = 0; i < OBJECTS; i++) EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    EXPECT(slab_cache_shrink(cache) == 0);
    for (unsigned i = 0; i < OBJECTS; i++) slab_free(cache, objects[i]);
    sy_cache_stats stats;
    EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.slabs > 0);
    EXPECT(slab_cache_shrink(cache) == stats.slabs);
    EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.slabs == 0);
    slab_cache_destroy(cache);
}

/* ---- what was found ---- */

static unsigned built, unbuilt;

static void build(void *object) {
    memset(object, 6, 32);
    built++;
}

static void unbuild(void *object) {
    EXPECT(((unsigned char *)object)[31] == 6);
    unbuilt++;
}

static void constructors_and_destructors_are_paired(void) {
    const uint32_t flags[] = {0, SLAB_NO_MAGAZINES, SLAB_RED_ZONE, SLAB_POISON, SLAB_DEBUG};
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct slab_cache *cache = slab_cache_create("built", 32, 0, flags[i], build, unbuild);
        built = unbuilt = 0;
        for (unsigned j = 0; j < 30; j++) EXPECT((objects[j] = slab_alloc(cache)) != NULL);
        EXPECT(built - unbuilt >= 30);
        for (unsigned j = 0; j < 30; j++) slab_free(cache, objects[j]);
        slab_cache_destroy(cache);
        EXPECT(built >= 30 && built == unbuilt);
    }
}

static void alignment_holds_for_every_slab(void) {
    for (size_t align = 8; align <= 4096; align *= 2) {
        struct slab_cache *cache = slab_cache_create("aligned", align, align, 0, NULL, NULL);
        for (unsigned i = 0; i < 2000; i++) {
            EXPECT((objects[i] = slab_alloc(cache)) != NULL);
            EXPECT((uintptr_t)objects[i] % align == 0);
        }
        for (unsigned i = 0; i < 2000; i++) slab_free(cache, objects[i]);
        slab_cache_destroy(cache);
    }
}

static void mistakes_are_seen_with_magazines_on(void) {
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    struct slab_cache *cache = slab_cache_create("checked", 24, 0, SLAB_DEBUG, NULL, NULL);
    faults = 0;
    char *object = slab_alloc(cache);
    object[24] = 1;
    slab_free(cache, object);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_OVERFLOW);
    object = slab_alloc(cache);
    object[-1] = 1;
    slab_free(cache, object);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_UNDERFLOW);
    object = slab_alloc(cache);
    slab_free(cache, object);
    slab_free(cache, object);
    EXPECT(faults == 3 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    object[23] ^= 1; /* the last byte alone */
    slab_cache_destroy(cache);
    EXPECT(faults == 4 && last_fault.kind == SY_FAULT_WRITE_AFTER_FREE && last_fault.offset == 23);
    sy_set_fault_handler(before);
}

/* It went to the magazine of another class, which sees it when it goes back to its slabs. */
static void a_wrong_size_is_seen(void) {
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    faults = 0;
    void *object = slab_kmalloc(100);
    slab_kfree(object, 3000);
    sy_thread_flush();
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_WRONG_SIZE);
    EXPECT(last_fault.address == object);
    sy_set_fault_handler(before);
}

static void live_objects_outlive_a_destroy(void) {
    struct slab_cache *cache = slab_cache_create("live", 64, 0, 0, NULL, NULL);
    void *object = slab_alloc(cache);
    own(object, 64, 4);
    slab_cache_destroy(cache);
    EXPECT(is_own(object, 64, 4));
    slab_free(cache, object);
    slab_cache_destroy(cache);
}

static void thousands_of_caches(void) {
    enum { CACHES = 4096 };
    static struct slab_cache *caches[CACHES];
    for (unsigned i = 0; i < CACHES; i++) {
        EXPECT((caches[i] = slab_cache_create("one of many", 16 + i % 64, 0, 0, NULL, NULL)));
        EXPECT((objects[i] = slab_alloc(caches[i])) != NULL);
    }
    for (unsigned i = 0; i < CACHES; i++) {
        slab_free(caches[i], objects[i]);
        slab_cache_destroy(caches[i]);
    }
}

static void what_is_no_flag_is_refused(void) {
    EXPECT(!slab_cache_create("none", 64, 0, 0x80, NULL, NULL));
    EXPECT(!slab_cache_create("none", 0, 0, 0, NULL, NULL));
    EXPECT(!slab_cache_create("none", 64, 24, 0, NULL, NULL));
}

/* A producer and a consumer with 256 objects between them: what is freed elsewhere comes back. */
enum { RING = 256, HANDED = 500000 };
static void *ring[RING];
static struct slab_cache *packets;

static void *consume(void *arg) {
    (void)arg;
    for (unsigned i = 0; i < HANDED; i++) {
        void *packet, **place = &ring[i % RING];
        while (!(packet = __atomic_load_n(place, __ATOMIC_ACQUIRE))) sched_yield();
        EXPECT(is_own(packet, 64, i));
        __atomic_store_n(place, NULL, __ATOMIC_RELEASE);
        slab_free(packets, packet);
    }
    return NULL;
}

static void what_crosses_threads_stays_bounded(void) {
    pthread_t consumer;
    packets = slab_cache_create("packet", 64, 0, 0, NULL, NULL);
    size_t before = mapped_now();
    EXPECT(pthread_create(&consumer, NULL, consume, NULL) == 0);
    for (unsigned i = 0; i < HANDED; i++) {
        void *packet = slab_alloc(packets);
        EXPECT(packet);
        own(packet, 64, i);
        while (__atomic_load_n(&ring[i % RING], __ATOMIC_ACQUIRE)) sched_yield();
        __atomic_store_n(&ring[i % RING], packet, __ATOMIC_RELEASE);
    }
    EXPECT(pthread_join(consumer, NULL) == 0);
    EXPECT(mapped_now() < before + (1 << 20));
    slab_cache_destroy(packets);
}

int main(void) {
    a_cache_and_its_life();
    any_size();
    empty_slabs_are_given_up();
    constructors_and_destructors_are_paired();
    alignment_holds_for_every_slab();
    mistakes_are_seen_with_magazines_on();
    a_wrong_size_is_seen();
    live_objects_outlive_a_destroy();
    thousands_of_caches();
    what_is_no_flag_is_refused();
    what_crosses_threads_stays_bounded();
    return 0;
}
