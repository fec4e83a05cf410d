/*
 * fuzz_heap.c: calls sy_malloc and the other functions of the heap at random, and compares them
 * with a model.
 *
 * An input is a list of calls. This thread or one of two others does the next call while the others
 * wait. The input also says which calls to the system fail. The model knows the size, alignment and
 * pattern of each live object. No call may change the contents of other objects. The heap's counts
 * must be those of the live objects. An allocation may fail only if the model knows a reason.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/slabyard.h>

#include "cache/guarded.h"
#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "debug/watch.h"
#include "fuzz.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "turns.h"

enum {
    LIVE_MAX = 3000,
    LIVE_BYTES_MAX = 48 << 20,
    WHOLE = 512, /* bytes at the front of an object that are written all; then 64 of each 1024, */
    END = 16,    /* and these */
    ALIGN_SHIFT_MAX = 30,
};

typedef struct live {
    unsigned char *object;
    size_t size, align;
    uint64_t stamp;
    bool sized; /* may be freed with its size */
} live;

static live all[LIVE_MAX];
static size_t live_count, live_bytes;
static uint64_t last_stamp;
static sy_cache *cache; /* its objects do not belong to the heap */

/* ---- patterns ---- */

static unsigned char byte_of(uint64_t stamp, size_t at) {
    return (unsigned char)((stamp + at) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static size_t next_written(size_t at) {
    return at + 1 < WHOLE || (at + 1) % 1024 < 64 ? at + 1 : (at + 1024) / 1024 * 1024;
}

static void mark(const live *it) {
    for (size_t at = 0; at < it->size; at = next_written(at))
        it->object[at] = byte_of(it->stamp, at);
    for (size_t at = it->size > END ? it->size - END : 0; at < it->size; at++)
        it->object[at] = byte_of(it->stamp, at);
}

static void expect_front(const unsigned char *object, size_t size, uint64_t stamp) {
    for (size_t at = 0; at < size; at = next_written(at))
        fuzz_expect(object[at] == byte_of(stamp, at), "content stays");
}

static void expect_marked(const live *it) {
    expect_front(it->object, it->size, it->stamp);
    for (size_t at = it->size > END ? it->size - END : 0; at < it->size; at++)
        fuzz_expect(it->object[at] == byte_of(it->stamp, at), "content stays to the end");
}

/* ---- allocation ---- */

/* Most are small; some are spans, a few of them large. */
static size_t make_size(fuzz_input *input) {
    uint8_t magnitude = fuzz_byte(input);
    size_t size = fuzz_u16(input);
    if (magnitude < 160) return size % ((size_t)1 << magnitude % 13);
    if (magnitude < 230) return size * (1u + magnitude % 4);
    return size * (1u + magnitude % 8 * (magnitude > 250 ? 16u : 1u));
}

static bool has_room(size_t size) {
    return live_count < LIVE_MAX && live_bytes + size <= LIVE_BYTES_MAX;
}

static void expect_sound(const live *it) {
    fuzz_expect((uintptr_t)it->object % it->align == 0, "an object is aligned");
    fuzz_expect(sy_usable_size(it->object) >= it->size, "an object is as large as asked for");
}

static void add_live(void *object, size_t size, size_t align, bool sized) {
    if (!object) {
        fuzz_expect(errno == ENOMEM, "what fails is said");
        fuzz_expect(sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
        return;
    }
    live *it = &all[live_count++];
    *it = (live){object, size, align, ++last_stamp, sized};
    live_bytes += size;
    expect_sound(it);
    mark(it);
}

static size_t natural_align(size_t size) { return size <= 8 ? 8 : 16; }

static void take(fuzz_input *input) {
    size_t size = make_size(input);
    if (has_room(size)) add_live(sy_malloc(size), size, natural_align(size), true);
}

static void take_many(fuzz_input *input) {
    size_t size = make_size(input) % 2048;
    for (uint8_t count = fuzz_byte(input); count > 0 && has_room(size); count--)
        add_live(sy_malloc(size), size, natural_align(size), true);
}

static void take_zeroed(fuzz_input *input) {
    size_t size = make_size(input), count = 1 + fuzz_byte(input) % 8;
    if (!has_room(size)) return;
    size_t each = size / count;
    unsigned char *object = sy_calloc(count, each);
    if (object)
        for (size_t at = 0; at < count * each; at++) fuzz_expect(object[at] == 0, "zeroes");
    add_live(object, count * each, natural_align(count * each), true);
}

static void take_aligned(fuzz_input *input) {
    size_t size = make_size(input);
    unsigned most = fuzz_byte(input) % 8 ? 13 : ALIGN_SHIFT_MAX + 1;
    size_t align = (size_t)1 << fuzz_byte(input) % most;
    if (has_room(size)) add_live(sy_aligned_alloc(align, size), size, align, false);
}

/* Sizes that cannot be allocated, and wrong arguments. */
static void take_absurd(uint8_t choice, size_t some) {
    errno = 0;
    void *object = NULL;
    int expected = ENOMEM;
    switch (choice % 6) {
    case 0: object = sy_malloc(SIZE_MAX - some); break;
    case 1: object = sy_calloc(SIZE_MAX / 2 - some, 3); break;
    case 2: object = sy_calloc(SIZE_MAX / 4, 4); break;
    case 3: object = sy_aligned_alloc(16, SIZE_MAX / 2 + some); break;
    case 4: object = sy_aligned_alloc(SIZE_MAX / 2 + 1, 1 + some); break;
    default:
        object = sy_aligned_alloc((size_t)3 << some % 8, some);
        expected = EINVAL;
        break;
    }
    fuzz_expect(!object && errno == expected, "what is absurd is refused");
}

/* ---- resizing and freeing ---- */

static void resize(fuzz_input *input, size_t which) {
    size_t size = make_size(input);
    if (live_count == 0 || !has_room(size)) return;
    live *it = &all[which % live_count];
    expect_marked(it);
    bool stays = which % 2 && sy_expand(it->object, size);
    if (!stays) expect_marked(it);
    unsigned char *object = stays ? it->object : sy_realloc(it->object, size);
    if (!object) {
        fuzz_expect(errno == ENOMEM, "what fails is said");
        fuzz_expect(sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
        expect_marked(it);
        return;
    }
    expect_front(object, size < it->size ? size : it->size, it->stamp);
    live_bytes += size - it->size;
    *it = (live){object, size, natural_align(size), ++last_stamp, true};
    expect_sound(it);
    mark(it);
}

static void free_one(size_t which, bool sized) {
    if (live_count == 0) return;
    live *it = &all[which % live_count], gone = *it;
    expect_marked(it);
    *it = all[--live_count];
    live_bytes -= gone.size;
    errno = 77;
    if (sized && gone.sized)
        sy_free_sized(gone.object, gone.size);
    else
        sy_free(gone.object);
    fuzz_expect(errno == 77, "a free keeps errno");
}

static unsigned faults;

static void note_fault(const sy_fault *fault) {
    (void)fault;
    faults++;
}

enum { FOREIGN, OF_A_CACHE, WILD, INNER, WRONG_SORTS };

/* A pointer whose free is reported at once; NULL: there is none of this kind now. */
static void *wrong_pointer(uint8_t sort, size_t which) {
    static unsigned char foreign[64];
    uintptr_t wild = (uintptr_t)(which * UINT64_C(0x9e3779b97f4a7c15) >> 1 | 1);
    switch (sort) {
    case FOREIGN: return foreign;
    case OF_A_CACHE: return sy_cache_alloc(cache);
    case WILD: return sy_slab_at(wild) ? NULL : (void *)wild;
    default: break;
    }
    const live *it = live_count ? &all[which % live_count] : NULL;
    bool is_span = it && !sy_slab_at((uintptr_t)it->object)->owner;
    return is_span ? it->object + 1 + which % 4096 : NULL;
}

static void free_wrong(uint8_t sort, size_t which) {
    void *pointer = wrong_pointer(sort, which);
    if (!pointer) return;
    faults = 0;
    sy_free(pointer);
    fuzz_expect(faults == 1, "a wrong free is reported once");
    fuzz_expect(sy_usable_size(pointer) == 0, "it has no size here");
    errno = 0;
    fuzz_expect(!sy_realloc(pointer, 100) && errno == EINVAL, "nor can it be resized");
    faults = 0;
    fuzz_expect(!sy_expand(pointer, 100) && faults == 1, "nor in place");
    if (sort == OF_A_CACHE) sy_cache_free(cache, pointer);
}

/* ---- the whole ---- */

/* The library's counts of objects in classes and of bytes in spans. */
static size_t class_objects(void) {
    size_t objects = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *one = sy_cache_of_client(client);
        if (one) fuzz_expect(sy_cache_verify(one) == 0, "a class is sound");
        if (one && one->class_number) objects += sy_cache_in_use(one);
        sy_client_unpin(client);
    }
    fuzz_expect(sy_mixed_verify() == 0, "mixed units are sound");
    return objects - sy_mixed_waiting();
}

static void compare_all(void) {
    sy_stats stats;
    size_t in_classes = 0, in_spans = 0;
    for (size_t i = 0; i < live_count; i++) {
        expect_marked(&all[i]);
        const sy_cache *guarding = sy_guarded_cache(all[i].object);
        if (guarding ? guarding->class_number : sy_class_at((uintptr_t)all[i].object))
            in_classes++;
        else if (!guarding && !sy_slab_at((uintptr_t)all[i].object)->owner) /* nor checked */
            in_spans += sy_usable_size(all[i].object);
    }
    fuzz_expect(class_objects() == in_classes, "objects in use are those that live");
    sy_get_stats(&stats);
    fuzz_expect(stats.spans == in_spans, "and so are spans");
    fuzz_expect(stats.mapped == stats.slabs + stats.spans + stats.units_free + stats.chunk_headers,
                "every mapped byte is accounted for");
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0, "chunks are sound");
    fuzz_expect(sy_store_verify() == 0, "the store is sound");
}

/* Sets which calls to the system will fail: none in half of the cases. */
static void script(fuzz_input *input) {
    uint8_t choice = fuzz_byte(input);
    turns_reset(4);
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 200, choice);
}

static void step(fuzz_input *input) {
    uint8_t operation = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    switch (operation % 32) {
    case 0: script(input); break;
    case 1: compare_all(); break;
    case 2: sy_trim(); break;
    case 3: sy_thread_idle(); break;
    case 4: sy_thread_flush(); break;
    case 5: take_absurd((uint8_t)which, which >> 8); break;
    case 6: free_wrong((uint8_t)(which % WRONG_SORTS), which / WRONG_SORTS); break;
    case 7:
    case 8: take_aligned(input); break;
    case 9:
    case 10: take_zeroed(input); break;
    case 11:
    case 12: take_many(input); break;
    case 13:
    case 14:
    case 15:
    case 16: resize(input, which); break;
    case 17: /* many objects, last in first out */
        for (which %= 256; which > 0; which--) free_one(live_count - 1, which % 2);
        break;
    case 18: /* many objects, at random */
        for (size_t i = which % 256; i > 0; i--) free_one(which += 7919, i % 2);
        break;
    case 19:
    case 20:
    case 21:
    case 22:
    case 23: free_one(which, operation / 32 % 2); break;
    default: take(input); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    sy_stats stats;
    turns_reset(4);
    sy_set_fault_handler(note_fault);
    cache = sy_cache_create(&(sy_cache_config){.name = "beside", .size = 100});
    fuzz_expect(cache != NULL, "a cache is made");
    turns_run(&input, step);
    turns_reset(4);
    compare_all();
    while (live_count) free_one(live_count / 2, live_count % 2);
    turns_end_all();
    fuzz_expect(sy_cache_destroy(cache) == 0, "the cache beside is unused");
    compare_all();
    sy_trim();
    sy_get_stats(&stats);
    fuzz_expect(stats.mapped == 0, "a trim leaves nothing mapped");
    return 0;
}
