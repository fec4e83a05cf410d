/*
 * test_heap.c: what heap.h promises, one behaviour a test. The fake stands between the library and
 * the real system.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/fault.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "heap/classes.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

static const size_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

/* The last fault of a test, and the number of its faults. */
static sy_fault last_fault;
static int faults;

static void note_fault(const sy_fault *fault) {
    last_fault = *fault;
    faults++;
}

static void *get(size_t size) {
    void *object = sy_malloc(size);
    must(object != NULL);
    return object;
}

/* A pattern that depends on address and place. */
static unsigned char mark(const void *object, size_t at) {
    return (unsigned char)((uintptr_t)object / 8 + at * 7 + at / 251);
}

static void fill(unsigned char *object, size_t size) {
    for (size_t at = 0; at < size; at++) object[at] = mark(object, at);
}

static void is_filled(const unsigned char *object, size_t size) {
    for (size_t at = 0; at < size; at++) must(object[at] == mark(object, at));
}

/* ---- sizes ---- */

static void classes_follow_one_another_and_lose_an_eighth_at_most(void **state) {
    (void)state;
    unsigned last = 1;
    for (size_t size = 0; size <= SY_CLASS_SIZE_MAX; size++) {
        unsigned class_number = sy_class_of(size);
        bool pages = size >= SY_PAGES_LEAST && size <= SY_PAGES_MOST;
        assert_int_equal(sy_class_for(size), pages ? SY_CLASS_PAGES : class_number);
        assert_int_equal(sy_class_size(class_number), sy_class_size_of(class_number));
        assert_true(class_number == last || class_number == last + 1);
        assert_true(class_number < SY_CLASSES);
        assert_true(sy_class_size(class_number) >= size);
        if (class_number > 1) assert_true(sy_class_size(class_number - 1) < size);
        if (size > 128) assert_true((sy_class_size(class_number) - size) * 8 <= size);
        if (size > 8) assert_int_equal(sy_class_size(class_number) % 16, 0);
        if (size <= SY_CLASS_TABLE_MAX)
            assert_int_equal(sy_class_table[(size + 7) / 8], class_number);
        for (unsigned other = 0; other < SY_CLASSES; other++)
            must(sy_class_has(other, size) ==
                 (other == class_number || (pages && other == SY_CLASS_PAGES)));
        last = class_number;
    }
    assert_int_equal(last, SY_CLASS_PAGES - 1);
    assert_false(sy_class_has(last, SY_CLASS_SIZE_MAX + 1));
}

static void every_size_can_be_had_and_used_whole(void **state) {
    (void)state;
    for (size_t size = 0; size <= 300 * KIB; size += size < 2100 ? 1 : size / 97) {
        unsigned char *object = get(size), *other = get(size);
        size_t usable = sy_usable_size(object);
        assert_true(usable >= size);
        assert_int_equal((uintptr_t)object % (size > 8 ? 16 : 8), 0);
        fill(object, usable);
        fill(other, sy_usable_size(other));
        is_filled(object, usable);
        sy_free(object);
        is_filled(other, usable);
        sy_free(other);
    }
}

static void both_sides_of_every_class_boundary(void **state) {
    (void)state;
    for (unsigned class_number = 1; class_number < SY_CLASSES; class_number++) {
        size_t size = sy_class_size(class_number);
        unsigned char *at = get(size), *past = get(size + 1);
        assert_int_equal(sy_usable_size(at), size);
        assert_true(sy_usable_size(past) > size);
        fill(at, size);
        fill(past, size + 1);
        is_filled(at, size);
        is_filled(past, size + 1);
        sy_free(at);
        sy_free(past);
    }
}

/* As a program that inlines sy_malloc for a constant size may have it: in the next class. */
static void pages_with_a_header_have_a_class_of_their_own(void **state) {
    (void)state;
    assert_int_equal(SY_PAGES_MOST, 4368);
    volatile size_t least = 4104; /* else the compiler may inline sy_malloc */
    unsigned char *own = get(least), *next = sy_realloc(get(4600), 4200);
    assert_int_equal(sy_usable_size(own), 4368);
    assert_int_equal(sy_usable_size(next), 4608);
    assert_int_equal(sy_good_size(4368), 4368);
    assert_int_equal(sy_good_size(4369), 4608);
    assert_ptr_equal(sy_realloc(own, 4368), own);
    sy_free_sized(own, 4097);
    sy_free_sized(next, 4200);
    void *aligned = sy_aligned_alloc(64, 4200);
    assert_int_equal((uintptr_t)aligned % 64, 0);
    sy_free_aligned_sized(aligned, 64, 4200);
    assert_int_equal(faults, 0);
    assert_int_equal(sy_verify(), 0);
}

static void size_0_gives_pointers_of_their_own(void **state) {
    (void)state;
    void *a = sy_malloc(0), *b = sy_malloc(0), *c = sy_calloc(0, 10), *d = sy_aligned_alloc(64, 0);
    assert_true(a && b && c && d);
    assert_true(a != b && b != c && a != c && d != a);
    assert_int_equal((uintptr_t)d % 64, 0);
    sy_free(a);
    sy_free(b);
    sy_free(c);
    sy_free(d);
}

static void large_spans_up_to_a_gibibyte(void **state) {
    (void)state;
    for (size_t size = 5 * MIB; size <= GIB; size = size * 2 + 12345) {
        unsigned char *object = get(size);
        assert_true(sy_usable_size(object) >= size);
        for (size_t at = 0; at < size; at += MIB) object[at] = mark(object, at);
        object[size - 1] = 7;
        for (size_t at = 0; at < size; at += MIB) must(object[at] == mark(object, at));
        sy_free(object);
    }
    unsigned char *whole = get(GIB);
    whole[0] = whole[GIB - 1] = 1;
    sy_free(whole);
}

static void sizes_that_nothing_can_hold_are_refused(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX,        SIZE_MAX - 1,     SIZE_MAX - 65535,
                                   SIZE_MAX / 2,    SIZE_MAX / 2 + 1, SIZE_MAX / 8 * 5,
                                   SIZE_MAX / 4 * 3};
    void *object = get(100);
    for (int i = 0; i < 7; i++) {
        errno = 0;
        assert_null(sy_malloc(sizes[i]));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_calloc(1, sizes[i]));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_realloc(object, sizes[i]));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_aligned_alloc(64, sizes[i]));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_aligned_alloc(GIB, sizes[i]));
        assert_int_equal(errno, ENOMEM);
    }
    sy_free(object);
}

/* ---- alignment ---- */

static void every_power_of_two_is_an_alignment(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 8, 9, 100, 4096, 65536, 100000, 131072, 131073, 5 << 20};
    for (size_t align = 1; align <= GIB; align *= 2)
        for (int i = 0; i < 11; i++) {
            unsigned char *a = sy_aligned_alloc(align, sizes[i]);
            unsigned char *b = sy_aligned_alloc(align, sizes[i]);
            must(a && b && a != b);
            assert_int_equal((uintptr_t)a % align, 0);
            assert_int_equal((uintptr_t)b % align, 0);
            assert_true(sy_usable_size(a) >= sizes[i]);
            memset(a, 1, sizes[i]);
            memset(b, 2, sizes[i]);
            if (sizes[i]) assert_int_equal(a[0] + a[sizes[i] - 1], 2);
            sy_free(a);
            sy_free(b);
        }
}

static void other_alignments_are_refused(void **state) {
    (void)state;
    static const size_t aligns[] = {0, 3, 24, 100, SIZE_MAX, SIZE_MAX / 2};
    for (int i = 0; i < 6; i++) {
        errno = 0;
        assert_null(sy_aligned_alloc(aligns[i], 64));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(sy_aligned_alloc(SIZE_MAX / 2 + 1, 64));
    assert_int_equal(errno, ENOMEM);
}

/* ---- calloc ---- */

static void calloc_zeroes_what_was_used_before(void **state) {
    (void)state;
    static const size_t sizes[] = {1,      8,      16,     100,     1000,   5000,
                                   100000, 131072, 131073, 1 << 20, 9 << 20};
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 11; i++) {
            unsigned char *object = get(sizes[i]);
            memset(object, 0xff, sizes[i]);
            sy_free(object);
            if (round == 2) sy_trim();
            object = sy_calloc(1, sizes[i]);
            must(object != NULL);
            for (size_t at = 0; at < sizes[i]; at++) must(object[at] == 0);
            memset(object, 0xff, sizes[i]);
            sy_free(object);
        }
}

static void calloc_refuses_products_that_overflow(void **state) {
    (void)state;
    enum { ROOT_BITS = 4 * sizeof(size_t) };
    const size_t ROOT = (size_t)1 << ROOT_BITS;
    const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX},        {SIZE_MAX / 2 + 1, 2},
                               {ROOT, ROOT},  {SIZE_MAX, SIZE_MAX}, {SIZE_MAX / 16 + 2, 16}};
    for (int i = 0; i < 6; i++) {
        errno = 0;
        assert_null(sy_calloc(pairs[i][0], pairs[i][1]));
        assert_int_equal(errno, ENOMEM);
    }
}

static void calloc_multiplies(void **state) {
    (void)state;
    unsigned char *object = sy_calloc(100, 33);
    assert_true(sy_usable_size(object) >= 3300);
    for (int at = 0; at < 3300; at++) assert_int_equal(object[at], 0);
    sy_free(object);
}

/* ---- realloc ---- */

static void realloc_keeps_the_content(void **state) {
    (void)state;
    static const size_t sizes[] = {0,       1,       8,       9,       16,     100,    128,
                                   129,     1000,    5000,    65536,   131072, 131073, 200000,
                                   1 << 20, 3 << 20, 5 << 20, 8 << 20, 9 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (int from = 0; from < COUNT; from++)
        for (int to = 0; to < COUNT; to++) {
            size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
            unsigned char *object = get(sizes[from]);
            for (size_t at = 0; at < sizes[from]; at += 1 + at / 512)
                object[at] = (unsigned char)(at * 7 + 3);
            unsigned char *moved = sy_realloc(object, sizes[to]);
            must(moved != NULL && sy_usable_size(moved) >= sizes[to]);
            for (size_t at = 0; at < common; at += 1 + at / 512)
                must(moved[at] == (unsigned char)(at * 7 + 3));
            sy_free(moved);
        }
}

static void realloc_of_null_allocates(void **state) {
    (void)state;
    unsigned char *object = sy_realloc(NULL, 100);
    assert_true(sy_usable_size(object) >= 100);
    fill(object, 100);
    sy_free(object);
}

static void realloc_stays_in_its_class(void **state) {
    (void)state;
    char *object = get(1000);
    size_t usable = sy_usable_size(object), least = sy_class_size(sy_class_of(1000) - 1) + 1;
    for (size_t size = least; size <= usable; size++)
        assert_ptr_equal(sy_realloc(object, size), object);
    sy_free(object);
}

static void realloc_grows_and_shrinks_a_span_in_place(void **state) {
    (void)state;
    char *large = get(5 * MIB);
    assert_ptr_equal(sy_realloc(large, 7 * MIB), large);
    assert_true(sy_usable_size(large) >= 7 * MIB);
    assert_ptr_equal(sy_realloc(large, 5 * MIB), large);
    sy_free(large);
    char *span = get(MIB);
    assert_ptr_equal(sy_realloc(span, 512 * KIB), span);
    assert_int_equal(sy_usable_size(span), 512 * KIB);
    assert_ptr_equal(sy_realloc(span, 600 * KIB), span); /* into the memory that it gave up */
    sy_free(span);
    must(sy_chunk_verify(&sy_memory_main) == 0);
}

/* The system moves large spans. If a move fails, the span is copied. */
static void realloc_moves_large_spans(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        if (fails) sy_fake_fail_from(SY_FAKE_MOVE, 1);
        size_t size = 5 * MIB;
        unsigned char *large = sy_malloc(size);
        for (size_t at = 0; at < size; at += 4096) large[at] = (unsigned char)(at >> 12);
        for (; size < 200 * MIB; size *= 2) {
            void *behind = sy_malloc(5 * MIB); /* keeps the span from growing in place */
            unsigned char *moved = sy_realloc(large, 2 * size);
            assert_non_null(moved);
            for (size_t at = 0; at < size; at += 4096)
                assert_int_equal(moved[at], (unsigned char)(at >> 12));
            for (size_t at = size; at < 2 * size; at += 4096) moved[at] = (unsigned char)(at >> 12);
            large = moved;
            sy_free(behind);
        }
        large = sy_realloc(large, 4 * MIB + 1);
        for (size_t at = 0; at < 4 * MIB; at += 4096)
            assert_int_equal(large[at], (unsigned char)(at >> 12));
        sy_free(large);
        sy_fake_reset();
    }
    assert_int_equal(sy_chunk_verify(&sy_memory_main), 0);
}

static void realloc_that_fails_changes_nothing(void **state) {
    (void)state;
    static const size_t sizes[] = {100, 131072, 200000, 5 << 20};
    for (int i = 0; i < 4; i++) {
        unsigned char *object = get(sizes[i]);
        size_t usable = sy_usable_size(object);
        fill(object, sizes[i]);
        sy_fake_fail_from(SY_FAKE_ANY, 1);
        errno = 0;
        assert_null(sy_realloc(object, 300 * MIB));
        assert_int_equal(errno, ENOMEM);
        sy_fake_reset();
        assert_int_equal(sy_usable_size(object), usable);
        is_filled(object, sizes[i]);
        sy_free(object);
    }
}

static void realloc_to_a_random_walk_of_sizes(void **state) {
    (void)state;
    enum { OBJECTS = 50 };
    unsigned char *objects[OBJECTS] = {NULL};
    size_t sizes[OBJECTS] = {0};
    uint64_t random = 11;
    for (int step = 0; step < 20000; step++) {
        size_t i = next_random(&random) % OBJECTS;
        for (size_t at = 0; at < sizes[i]; at += 1 + at / 16)
            must(objects[i][at] == (unsigned char)(i + at));
        size_t size = next_random(&random) % ((size_t)1 << next_random(&random) % 20);
        objects[i] = sy_realloc(objects[i], size);
        must(objects[i] != NULL);
        size_t common = size < sizes[i] ? size : sizes[i];
        for (size_t at = 0; at < common; at += 1 + at / 16)
            must(objects[i][at] == (unsigned char)(i + at));
        for (size_t at = 0; at < size; at++) objects[i][at] = (unsigned char)(i + at);
        sizes[i] = size;
    }
    for (size_t i = 0; i < OBJECTS; i++) sy_free(objects[i]);
}

/* ---- free ---- */

static void free_of_null_does_nothing(void **state) {
    (void)state;
    sy_free(NULL);
    sy_free_sized(NULL, 0);
    sy_free_sized(NULL, 100);
    sy_free_sized(NULL, GIB);
    assert_int_equal(faults, 0);
}

static void free_keeps_errno(void **state) {
    (void)state;
    enum { COUNT = 2000 };
    static void *objects[COUNT];
    for (size_t i = 0; i < COUNT; i++) objects[i] = get(i % 10 ? i * 37 : 6 * MIB);
    errno = 12345;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    for (size_t i = 0; i < COUNT; i++) sy_free(objects[i]);
    assert_int_equal(errno, 12345);
    sy_fake_reset();
}

static void sized_free_is_free(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++)
        for (size_t size = 0; size <= 300 * KIB; size += size < 2100 ? 1 : size / 53) {
            unsigned char *a = get(size), *b = sy_calloc(1, size);
            must(a != b);
            sy_free_sized(a, size);
            sy_free_sized(b, size);
        }
    unsigned char *large = get(9 * MIB);
    sy_free_sized(large, 9 * MIB);
    sy_thread_flush();
    assert_int_equal(faults, 0);
}

static void aligned_sized_free_is_free(void **state) {
    (void)state;
    for (size_t align = 1; align <= 8 * MIB; align *= 2)
        for (size_t size = 0; size <= 300 * KIB; size += size < 300 ? 1 : size / 13) {
            void *object = sy_aligned_alloc(align, size);
            must(object && (uintptr_t)object % align == 0);
            sy_free_aligned_sized(object, align, size);
            sy_free_aligned_sized(NULL, align, size);
        }
    sy_thread_flush();
    assert_int_equal(faults, 0);
}

/* The size class depends on the alignment too. */
static void aligned_sized_free_of_another_size_is_reported(void **state) {
    (void)state;
    void *object = sy_aligned_alloc(64, 100), *span = sy_aligned_alloc(64, 6 * MIB);
    sy_free_aligned_sized(object, 64, 200);
    assert_int_equal(faults, 1);
    sy_free_aligned_sized(object, 256, 100);
    assert_int_equal(faults, 2);
    sy_free_aligned_sized(object, 64, 6 * MIB);
    assert_int_equal(faults, 3);
    sy_free_aligned_sized(span, 64, 100);
    assert_int_equal(faults, 4);
    sy_free_aligned_sized(object, 64, SIZE_MAX);
    assert_int_equal(faults, 5);
    sy_free_aligned_sized(object, 24, 100); /* 24 is no power of two, so no alignment */
    assert_int_equal(faults, 6);
    sy_free_aligned_sized(object, 64, 128); /* 128 is in the same class */
    sy_free_aligned_sized(span, 64, 6 * MIB);
    assert_int_equal(faults, 6);
    faults = 0;
}

/* After a realloc an object is freed with its new size. */
static void sized_free_after_realloc(void **state) {
    (void)state;
    uint64_t random = 12;
    for (int step = 0; step < 20000; step++) {
        void *object = get(next_random(&random) % 3000);
        size_t size = next_random(&random) % (step % 8 ? 3000 : 300 * KIB);
        must((object = sy_realloc(object, size)) != NULL);
        sy_free_sized(object, size);
    }
    sy_thread_flush();
    assert_int_equal(faults, 0);
}

static void usable_size_of_what_is_not_the_heaps_is_0(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64});
    void *object = sy_cache_alloc(cache);
    char local, *span = get(MIB);
    assert_int_equal(sy_usable_size(NULL), 0);
    assert_int_equal(sy_usable_size(&local), 0);
    assert_int_equal(sy_usable_size(object), 0);
    assert_int_equal(sy_usable_size(span + 65536), 0);
    assert_int_equal(sy_usable_size((void *)1), 0);
    sy_free(span);
    assert_int_equal(sy_usable_size(span), 0);
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}

static void freed_memory_is_used_again(void **state) {
    (void)state;
    sy_stats first, last;
    for (int round = 0; round < 30; round++) {
        static void *objects[3000];
        for (size_t i = 0; i < 3000; i++) objects[i] = get(i % 100 ? i * 5 : 200 * KIB);
        for (size_t i = 0; i < 3000; i++) sy_free(objects[i]);
        sy_get_stats(round == 2 ? &first : &last);
    }
    assert_int_equal(last.mapped, first.mapped);
}

static void trim_gives_spans_and_classes_back(void **state) {
    (void)state;
    static void *objects[3000];
    sy_stats stats;
    for (size_t i = 0; i < 3000; i++) memset(objects[i] = get(i * 20), 1, i * 20);
    void *large = get(20 * MIB);
    for (size_t i = 0; i < 3000; i++) sy_free(objects[i]);
    sy_free(large);
    assert_true(sy_trim() >= 20 * MIB + 3000 * 1500 * 20);
    sy_get_stats(&stats);
    assert_int_equal(stats.spans, 0);
    assert_int_equal(stats.units_free - stats.units_clean, 0);
}

/* ---- threads ---- */

static void *churn(void *arg) {
    enum { OBJECTS = 200 };
    unsigned char *objects[OBJECTS] = {NULL};
    size_t sizes[OBJECTS];
    uint64_t random = (uintptr_t)arg;
    for (int step = 0; step < 40000; step++) {
        size_t i = next_random(&random) % OBJECTS;
        if (objects[i]) {
            for (size_t at = 0; at < sizes[i]; at += 1 + at / 4)
                must(objects[i][at] == mark(objects[i], at));
            sy_free(objects[i]);
            objects[i] = NULL;
        } else {
            sizes[i] = next_random(&random) % ((size_t)1 << next_random(&random) % 19);
            objects[i] = get(sizes[i]);
            for (size_t at = 0; at < sizes[i]; at += 1 + at / 4)
                objects[i][at] = mark(objects[i], at);
        }
        if (step % 9000 == 8999) sy_trim();
    }
    for (size_t i = 0; i < OBJECTS; i++) sy_free(objects[i]);
    return NULL;
}

static void threads_never_share_an_object(void **state) {
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    sy_thread_flush();
    assert_int_equal(faults, 0);
    assert_int_equal(sy_chunk_verify(&sy_memory_main), 0);
}

static void *take_first(void *arg) {
    (void)arg;
    for (unsigned class_number = 1; class_number < SY_CLASSES; class_number++)
        must(get(sy_class_size(class_number)) != NULL);
    return NULL;
}

/* All threads at once open the classes that were not used so far. */
static void open_together(void *arg) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) must(pthread_create(&threads[i], NULL, take_first, arg) == 0);
    for (int i = 0; i < 4; i++) must(pthread_join(threads[i], NULL) == 0);
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.caches == SY_CLASSES - 1);
}

static void the_first_users_of_a_class_agree(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) assert_int_equal(in_child(open_together, NULL), 0);
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    faults = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

/* ---- cache lines ---- */

enum { APART = 4, LINE = 64 };

static struct apart {
    void *given[APART]; /* neighbours, one for each thread */
    void *own[APART];   /* what the thread got after it had freed its own */
    size_t size;
    int error; /* the thread's errno after its first free */
    pthread_barrier_t all;
} apart;

static void *free_and_take(void *number) {
    size_t self = (size_t)number;
    errno = 77;
    sy_free(apart.given[self]);
    if (errno != 77) apart.error = errno;
    apart.own[self] = get(apart.size);
    pthread_barrier_wait(&apart.all); /* all are live */
    sy_free(apart.own[self]);
    must(get(apart.size) == apart.own[self]); /* the thread keeps to it */
    sy_free(apart.own[self]);
    return NULL;
}

/* Passive false sharing: threads get no neighbouring objects for those that they were given. */
static void threads_write_to_lines_of_their_own(void **state) {
    static const size_t sizes[] = {8, 16, 40, 56, 80, 112, 240};
    (void)state;
    if (sy_mixed_least == 0) skip(); /* not promised for objects in mixed units */
    sy_thread_flush();
    sy_trim(); /* objects lie beside one another */
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        pthread_t threads[APART];
        apart.size = sizes[s];
        must(pthread_barrier_init(&apart.all, NULL, APART) == 0);
        for (size_t i = 0; i < APART; i++) apart.given[i] = get(apart.size);
        for (size_t i = 0; i < APART; i++)
            must(pthread_create(&threads[i], NULL, free_and_take, (void *)i) == 0);
        for (size_t i = 0; i < APART; i++) must(pthread_join(threads[i], NULL) == 0);
        for (size_t i = 0; i < APART; i++)
            for (size_t j = 0; j < i; j++) {
                uintptr_t a = (uintptr_t)apart.own[i], b = (uintptr_t)apart.own[j];
                uintptr_t low = a < b ? a : b, high = a < b ? b : a;
                must((low + apart.size - 1) / LINE < high / LINE);
            }
        must(pthread_barrier_destroy(&apart.all) == 0);
    }
    assert_int_equal(apart.error, 0);
    assert_int_equal(sy_verify(), 0);
}

/* The first free of a thread takes fresh objects. If there is no memory for them, it is a free like
 * any other. */
static void *free_without_memory(void *object) {
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 77;
    sy_free(object);
    must(errno == 77);
    sy_fake_reset();
    return NULL;
}

static void a_first_free_needs_no_memory(void **state) {
    (void)state;
    enum { MOST = 1 << 19 }; /* objects of a few chunks */
    static void *objects[MOST];
    pthread_t thread;
    size_t count = 0;
    sy_trim();
    objects[count++] = get(24);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    while (count < MOST && (objects[count] = sy_malloc(24)) != NULL) count++;
    sy_fake_reset();
    must(count < MOST);
    must(pthread_create(&thread, NULL, free_without_memory, objects[--count]) == 0);
    must(pthread_join(thread, NULL) == 0);
    while (count > 0) sy_free(objects[--count]);
    assert_int_equal(sy_verify(), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

static void a_large_object_that_shrinks_gives_memory_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    char *object = sy_malloc((size_t)40 << 20);
    assert_non_null(object);
    object[0] = 'x';
    object = sy_realloc(object, (size_t)6 << 20);
    assert_non_null(object);
    assert_true(sy_usable_size(object) < (size_t)12 << 20);
    assert_int_equal(object[0], 'x');
    sy_free(object);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_first_users_of_a_class_agree), /* first: no class is open yet */
        TEST(classes_follow_one_another_and_lose_an_eighth_at_most),
        TEST(every_size_can_be_had_and_used_whole),
        TEST(both_sides_of_every_class_boundary),
        TEST(pages_with_a_header_have_a_class_of_their_own),
        TEST(size_0_gives_pointers_of_their_own),
        TEST(large_spans_up_to_a_gibibyte),
        TEST(sizes_that_nothing_can_hold_are_refused),
        TEST(every_power_of_two_is_an_alignment),
        TEST(other_alignments_are_refused),
        TEST(calloc_zeroes_what_was_used_before),
        TEST(calloc_refuses_products_that_overflow),
        TEST(calloc_multiplies),
        TEST(realloc_keeps_the_content),
        TEST(realloc_of_null_allocates),
        TEST(realloc_stays_in_its_class),
        TEST(realloc_grows_and_shrinks_a_span_in_place),
        TEST(realloc_moves_large_spans),
        TEST(realloc_that_fails_changes_nothing),
        TEST(realloc_to_a_random_walk_of_sizes),
        TEST(free_of_null_does_nothing),
        TEST(free_keeps_errno),
        TEST(sized_free_is_free),
        TEST(aligned_sized_free_is_free),
        TEST(aligned_sized_free_of_another_size_is_reported),
        TEST(sized_free_after_realloc),
        TEST(usable_size_of_what_is_not_the_heaps_is_0),
        TEST(freed_memory_is_used_again),
        TEST(trim_gives_spans_and_classes_back),
        TEST(threads_never_share_an_object),
        TEST(threads_write_to_lines_of_their_own),
        TEST(a_first_free_needs_no_memory),
        TEST(a_large_object_that_shrinks_gives_memory_back),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
