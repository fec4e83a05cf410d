#include "compat/compat.h"

#include <sched.h>

#include <slab.h>

#include "support/sanitized.h"
#include "support/steps.h"

_Static_assert(SLAB_DEBUG == (SLAB_RED_ZONE | SLAB_POISON), "both, as the document says");

/* ---- as the document shows ---- */

static void a_cache_and_its_life(void) {
    struct slab_cache *cache = slab_cache_create("my_cache", 64, 0, 0, NULL, NULL);
    void *obj = slab_alloc(cache);
    EXPECT(obj);
    memset(obj, 1, 64);
    slab_free(cache, obj);
    slab_free(cache, NULL);
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
    EXPECT(slab_kmalloc(4097) == NULL && errno == ENOMEM && slab_kmalloc(SIZE_MAX) == NULL);
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

static void print(void *cache) { slab_cache_stats(cache); }

static void statistics_are_printed(void) {
    char text[1000];
    struct slab_cache *cache = slab_cache_create("my_cache", 64, 0, 0, NULL, NULL);
    void *object = slab_alloc(cache);
    overhear(print, cache, text, sizeof text);
    EXPECT(strstr(text, "my_cache") && strstr(text, "64 bytes") && strstr(text, " 1 live"));
    slab_free(cache, object);
    slab_cache_destroy(cache);
}

static void fields_say_what_was_asked_for_and_made(void) {
    struct slab_cache *cache = slab_cache_create("fields", 30, 32, SLAB_NO_MAGAZINES, NULL, NULL);
    sy_cache_stats stats;
    EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0);
    EXPECT(strcmp(cache->name, "fields") == 0 && cache->flags == SLAB_NO_MAGAZINES);
    EXPECT(cache->raw_size == 30 && cache->obj_size == 32 && cache->align == 32);
    EXPECT(cache->slab_size == stats.slab_bytes && cache->objs_per_slab == stats.slots_per_slab);
    slab_cache_destroy(cache);
    cache = slab_cache_create("zoned", 30, 0, SLAB_RED_ZONE, NULL, NULL);
    EXPECT(cache->obj_size >= 30 + 2 * 8 && cache->raw_size == 30 && cache->align == 8);
    slab_cache_destroy(cache);
}

/* A destroyed cache has no objects: a use of it fails or ends the process, but never gives an
 * object of the cache that was created next. */
static void a_destroyed_cache_has_no_objects(void) {
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        struct slab_cache *ended = slab_cache_create("ended", 64, 0, 0, NULL, NULL);
        slab_free(ended, slab_alloc(ended));
        slab_cache_destroy(ended);
        sy_cache_config config = {.name = "next", .size = 4096};
        sy_cache *next = sy_cache_create(&config);
        sy_cache_free(next, sy_cache_alloc(next));
        _exit(slab_alloc(ended) != NULL);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(!WIFEXITED(status) || WEXITSTATUS(status) != 1);
}

/* By default objects lie at multiples of 8, or of 16 if that costs nothing. */
static void objects_take_no_more_than_their_words(void) {
    const size_t sizes[] = {1, 8, 12, 16, 20, 24, 40, 48, 56, 72, 104};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct slab_cache *cache = slab_cache_create("packed", sizes[i], 0, 0, NULL, NULL);
        EXPECT(cache && cache->obj_size == (sizes[i] + 7) / 8 * 8);
        EXPECT(cache->align == (sizes[i] % 16 ? SLAB_ALIGN_DEFAULT : 16));
        slab_cache_destroy(cache);
    }
}

/* slab_kfree takes each size that magazine-slab has in the same class, a power of two. */
static void a_size_of_the_same_class_frees(void) {
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    faults = 0;
    for (size_t asked = 1; asked <= 4096; asked += asked < 300 ? 1 : 97)
        for (size_t class_of = 8; class_of <= 4096; class_of *= 2) {
            if (asked > class_of || (class_of > 8 && asked <= class_of / 2)) continue;
            slab_kfree(slab_kmalloc(asked), class_of);
            slab_kfree(slab_kmalloc(class_of), asked);
            slab_kfree(slab_kmalloc(asked), class_of > 8 ? class_of / 2 + 1 : 0);
        }
    EXPECT(faults == 0);
    slab_kfree(slab_kmalloc(100), 129);
    sy_thread_flush();
    EXPECT(faults == 1);
    sy_set_fault_handler(before);
}

/* slab_alloc and slab_free keep the counts roughly. slab_cache_stats and slab_cache_shrink make
 * them exact. */
static void slabs_are_counted_as_they_come_and_go(uint32_t flags) {
    struct slab_cache *cache = slab_cache_create("counted", 64, 0, flags, NULL, NULL);
    unsigned count = 5u * cache->objs_per_slab;
    EXPECT(cache->nr_slabs == 0 && count <= OBJECTS);
    for (unsigned i = 0; i < count; i++) EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    EXPECT(cache->nr_slabs >= 3 && cache->nr_slabs <= 5 && cache->nr_free == 0);
    slab_cache_stats(cache);
    EXPECT(cache->nr_slabs == 5 && cache->nr_partial == 0 && cache->nr_free == 0);
    for (unsigned i = 0; i < count; i++) slab_free(cache, objects[i]);
    EXPECT(flags == 0 || cache->nr_free > 0);
    EXPECT(slab_cache_shrink(cache) > 0 && cache->nr_slabs == 0 && cache->nr_free == 0);
    slab_cache_destroy(cache);
}

static void *alloc_and_free_all(void *cache) {
    for (unsigned i = 0; i < OBJECTS; i++) EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    for (unsigned i = 0; i < OBJECTS; i++) slab_free(cache, objects[i]);
    return NULL;
}

/* The objects of an ended thread's magazines are in no magazine of a thread any more. */
static void a_threads_end_empties_its_magazines(void) {
    struct slab_cache *cache = slab_cache_create("left", 200, 0, 0, NULL, NULL);
    sy_cache_stats stats;
    in_threads(1, alloc_and_free_all, cache);
    EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.in_loaded == 0);
    EXPECT(slab_cache_shrink(cache) > 0);
    EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.slabs == 0);
    slab_cache_destroy(cache);
}

static void without_magazines_an_object_is_in_its_slab_at_once(void) {
    struct slab_cache *cache = slab_cache_create("plain", 64, 0, SLAB_NO_MAGAZINES, NULL, NULL);
    sy_cache_stats stats;
    for (unsigned i = 0; i < 1000; i++) EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    for (unsigned i = 0; i < 1000; i++) {
        slab_free(cache, objects[i]);
        EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.in_use == 999 - i);
        EXPECT(stats.in_loaded == 0 && stats.in_depot == 0);
    }
    slab_cache_destroy(cache);
}

/* ---- mistakes that the audit found ---- */

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

/* Of thirty objects, three are live at a time: three slots are constructed. */
static void an_object_is_constructed_once(void) {
    struct slab_cache *cache = slab_cache_create("built", 32, 0, SLAB_NO_MAGAZINES, build, unbuild);
    built = unbuilt = 0;
    for (unsigned i = 0; i < 30; i++) {
        if (i >= 3) slab_free(cache, objects[i - 3]);
        EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    }
    EXPECT(built == 3 && unbuilt == 0);
    for (unsigned i = 27; i < 30; i++) slab_free(cache, objects[i]);
    slab_cache_destroy(cache);
    EXPECT(built == 3 && unbuilt == 3);
}

static void alignment_holds_for_every_slab(void) {
    const size_t sizes[] = {8, 24, 100, 192, 1000, 4096, 70000};
    for (size_t align = 8; align <= (size_t)2 << 20; align *= 2)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned count = align * sizes[i] < (1 << 20) ? 3000 : 10;
            struct slab_cache *cache = slab_cache_create("aligned", sizes[i], align, 0, NULL, NULL);
            for (unsigned j = 0; j < count; j++) {
                EXPECT((objects[j] = slab_alloc(cache)) != NULL);
                EXPECT((uintptr_t)objects[j] % align == 0);
            }
            for (unsigned j = 0; j < count; j++) slab_free(cache, objects[j]);
            slab_cache_destroy(cache);
        }
}

/* In different slabs, the first object has different distances from the start of the slab. */
static void slabs_have_colours(void) {
    for (size_t size = 8; size <= 192; size += 8) {
        struct slab_cache *cache = slab_cache_create("coloured", size, 0, 0, NULL, NULL);
        bool seen[1024] = {false};
        unsigned colours = 0;
        sy_cache_stats stats;
        EXPECT(sy_cache_get_stats(cache->cache, &stats) == 0 && stats.colours >= 2);
        unsigned count = 3 * (unsigned)stats.slots_per_slab;
        for (unsigned i = 0; i < count && i < OBJECTS; i++) objects[i] = slab_alloc(cache);
        for (unsigned i = 0; i < count && i < OBJECTS; i++) {
            uintptr_t start = (uintptr_t)objects[i] % stats.slab_bytes;
            if (start >= sizeof seen || start % 64 != 0 || seen[start]) continue;
            bool first = true; /* the first object of its slab */
            for (unsigned j = 0; j < count && j < OBJECTS; j++)
                first &= (uintptr_t)objects[j] != (uintptr_t)objects[i] - stats.slot_size;
            seen[start] |= first;
            colours += first;
        }
        EXPECT(colours >= 2);
        for (unsigned i = 0; i < count && i < OBJECTS; i++) slab_free(cache, objects[i]);
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
    EXPECT((object = slab_alloc(cache)));
    object[-1] = 1;
    slab_free(cache, object);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_UNDERFLOW);
    object = slab_alloc(cache);
    slab_free(cache, object);
    slab_free(cache, object);
    EXPECT(faults == 3 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    object[23] ^= 1; /* only the last byte */
    slab_cache_destroy(cache);
    EXPECT(faults == 4 && last_fault.kind == SY_FAULT_WRITE_AFTER_FREE && last_fault.offset == 23);
    sy_set_fault_handler(before);
}

static void each_flag_is_enough_for_its_mistake(void) {
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    const size_t places[] = {0, 11, 23};
    faults = 0;
    struct slab_cache *cache = slab_cache_create("zoned", 24, 0, SLAB_RED_ZONE, NULL, NULL);
    char *object = slab_alloc(cache);
    object[24] ^= 1;
    slab_free(cache, object);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_OVERFLOW);
    EXPECT((object = slab_alloc(cache)));
    object[-1] ^= 1;
    slab_free(cache, object);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_UNDERFLOW);
    slab_cache_destroy(cache);

    cache = slab_cache_create("poisoned", 24, 0, SLAB_POISON, NULL, NULL);
    for (unsigned i = 0; i < 3; i++) { /* a byte at the start, in the middle, at the end */
        object = slab_alloc(cache);
        slab_free(cache, object);
        object[places[i]] ^= 1;
        EXPECT(slab_alloc(cache) == object); /* checks the content first */
        EXPECT(faults == 3 + i && last_fault.kind == SY_FAULT_WRITE_AFTER_FREE);
        EXPECT((size_t)last_fault.offset == places[i]);
        slab_free(cache, object);
    }
    slab_cache_destroy(cache);

    cache = slab_cache_create("plain", 24, 0, SLAB_NO_MAGAZINES, NULL, NULL);
    object = slab_alloc(cache);
    slab_free(cache, object);
    slab_free(cache, object);
    EXPECT(faults == 6 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    slab_cache_destroy(cache);
    sy_set_fault_handler(before);
}

/* The object is in the magazine of another class. The mistake is reported when this magazine
 * returns its objects to the slabs. */
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

static void destroy(void *cache) { slab_cache_destroy(cache); }

static void live_objects_outlive_a_destroy(void) {
    char text[1000];
    struct slab_cache *cache = slab_cache_create("live", 64, 0, 0, NULL, NULL);
    void *object = slab_alloc(cache);
    own(object, 64, 4);
    overhear(destroy, cache, text, sizeof text);
    EXPECT(strstr(text, " 1 live"));
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
    pthread_key_t key; /* all caches together use one key at most */
    EXPECT(pthread_key_create(&key, NULL) == 0 && pthread_key_delete(key) == 0);
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

/* A producer hands 256 objects at a time to a consumer. The objects that the consumer frees
 * return to the producer. */
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
    EXPECT(slab_cache_shrink(packets) > 0);
    sy_cache_stats stats;
    EXPECT(sy_cache_get_stats(packets->cache, &stats) == 0 && stats.slots * 64 <= 128 << 10);
    slab_cache_destroy(packets);
}

/* ---- cost of a free ---- */

typedef struct history {
    uint32_t flags;
    unsigned live, frees;
} history;

static void free_some(const void *arg) {
    const history *it = arg;
    void **all = calloc(it->live, sizeof *all);
    uint64_t random = 18;
    struct slab_cache *cache = slab_cache_create("freed", 64, 0, it->flags, NULL, NULL);
    EXPECT(all && cache);
    sy_set_decay(0); /* no memory is returned to the system */
    for (unsigned i = 0; i < it->live; i++) EXPECT((all[i] = slab_alloc(cache)) != NULL);
    shuffle(all, it->live, &random);
    count_from_here();
    for (unsigned i = 0; i < it->frees; i++) slab_free(cache, all[i]);
    count_to_here();
}

/* Counts the instructions of frees in random order: with magazines, more frees than two of them
 * hold, and without magazines. */
static void a_free_is_no_dearer_among_a_million(void) {
    const history histories[] = {{0, 1000000, 300}, {SLAB_NO_MAGAZINES, 1000000, 30}};
    for (unsigned i = 0; i < 2; i++) {
        history it = histories[i];
        uint64_t many = instructions_of(free_some, &it);
        it.live = it.frees;
        uint64_t few = instructions_of(free_some, &it);
        if (few == 0) return; /* tracing is not permitted on this machine */
        EXPECT(few > it.frees && many < 2 * few);
    }
}

int main(void) {
    a_cache_and_its_life();
    any_size();
    statistics_are_printed();
    fields_say_what_was_asked_for_and_made();
    objects_take_no_more_than_their_words();
    a_destroyed_cache_has_no_objects();
    a_size_of_the_same_class_frees();
    slabs_are_counted_as_they_come_and_go(0);
    slabs_are_counted_as_they_come_and_go(SLAB_NO_MAGAZINES);
    empty_slabs_are_given_up();
    a_threads_end_empties_its_magazines();
    without_magazines_an_object_is_in_its_slab_at_once();
    constructors_and_destructors_are_paired();
    an_object_is_constructed_once();
    alignment_holds_for_every_slab();
    slabs_have_colours();
    mistakes_are_seen_with_magazines_on();
    each_flag_is_enough_for_its_mistake();
    a_wrong_size_is_seen();
    live_objects_outlive_a_destroy();
    thousands_of_caches();
    what_is_no_flag_is_refused();
    what_crosses_threads_stays_bounded();
    if (!SANITIZED) a_free_is_no_dearer_among_a_million();
    return 0;
}
