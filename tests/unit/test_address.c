/*
 * test_address.c: the library takes address space from the system in few mappings, and returns it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "chunk/address.h"
#include "chunk/chunk.h"
#include "chunk/map.h"
#include "chunk/memory.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"
#include "support/wide.h"

static const size_t MIB = 1 << 20;

static uintptr_t import(size_t bytes, size_t expected) {
    uintptr_t start = 0;
    size_t got = 0;
    must(sy_address_import(NULL, NULL, bytes, &start, &got) == 0);
    must(got == expected && start && start % SY_CHUNK_BYTES == 0);
    return start;
}

static size_t leaves(void) {
    size_t count = 0;
    for (size_t i = 0; i < SY_LEAVES; i++) count += atomic_load(&sy_the_map.leaf_at[i]) != 0;
    return count;
}

/* Address space in extents: what is reserved, without the leaves of the map. */
static size_t extent_bytes(void) {
    return sy_fake_reserved() - leaves() * sy_round_up(sizeof(sy_leaf), sy_os_page_size());
}

static void grow(void *arg) {
    static const size_t sizes[] = {8, 8, 8, 8, 8, 8, 12, 12, 16, 20, 24};
    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        import(SY_CHUNK_BYTES, sizes[i] * MIB);
    import(3000 * MIB, 3000 * MIB);
    import(SY_CHUNK_BYTES, 780 * MIB); /* a quarter of what there is */
    import(SY_CHUNK_BYTES, 976 * MIB);
    import(SY_CHUNK_BYTES, 1024 * MIB);
    must(sy_fake_calls(SY_FAKE_RESERVE) == sizeof sizes / sizeof *sizes + 4);
    must(leaves() == 0); /* all lie in the map's window */
}

static void extents_grow_so_that_mappings_stay_few(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    needs_wide_addresses();
    assert_int_equal(in_child(grow, NULL), 0);
}

static void release(void *arg) {
    (void)arg;
    uintptr_t first = import(SY_CHUNK_BYTES, 8 * MIB), second = import(SY_CHUNK_BYTES, 8 * MIB);
    import(100 * MIB, 100 * MIB);
    sy_address_release(NULL, NULL, first, 8 * MIB);
    must(extent_bytes() == 108 * MIB);
    sy_address_release(NULL, NULL, second, 8 * MIB);
    must(extent_bytes() == 100 * MIB);
    import(SY_CHUNK_BYTES, 24 * MIB); /* a quarter of what there is */
}

static void what_is_released_goes(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(release, NULL), 0);
}

/* An extent is released when the last chunk or large span in it is freed. */
static void retire(void *arg) {
    enum { CHUNKS = 40 };
    static sy_slab *chunks[CHUNKS];
    bool clean;
    (void)arg;
    must(sy_memory_part.start() == 0);
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i] = sy_run_take(&sy_memory_main, 63 * SY_UNIT_BYTES, 1, 0, &clean);
        must(chunks[i] != NULL);
        memset((void *)chunks[i]->start, 0xff, chunks[i]->bytes);
    }
    uintptr_t first = chunks[0]->start;
    size_t reserved = extent_bytes();
    sy_slab *large = sy_run_take(&sy_memory_main, 700 * MIB, 1, 0, &clean);
    must(large != NULL);
    for (int i = 0; i < CHUNKS; i++) sy_run_give(chunks[i]);
    sy_run_give(large);
    size_t bytes = sy_chunk_trim(&sy_memory_main);
    must(bytes >= CHUNKS * 63 * (size_t)SY_UNIT_BYTES);
    must(!sy_slab_at(first) && sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED | SY_VMEM_FREE) == 0);
    must(extent_bytes() <= reserved - CHUNKS * (size_t)SY_CHUNK_BYTES + 5 * MIB);
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i] = sy_run_take(&sy_memory_main, 63 * SY_UNIT_BYTES, 1, 0, &clean);
        must(chunks[i] && clean && *(char *)chunks[i]->start == 0);
    }
}

static void what_chunks_leave_goes(void **state) {
    (void)state;
    assert_int_equal(in_child(retire, NULL), 0);
}

/* The system gives no more memory. A large span is placed where freed chunks lay that were not
 * trimmed, and chunks are placed where a freed span lay, with its memory. */
static void take_turns(void *arg) {
    enum { CHUNKS = 15, WITH_MEMORY = 50 / 4 }; /* 4 MiB each, of a span of 50 */
    static sy_slab *chunks[CHUNKS];
    bool clean;
    uintptr_t start;
    (void)arg;
    must(sy_memory_part.start() == 0);
    must(sy_memory_take(&sy_memory_main, 64 * MIB, SY_CHUNK_BYTES, &start));
    sy_memory_shorten(&sy_memory_main, start, 64 * MIB,
                      SY_CHUNK_BYTES);                                /* so that the rest stays */
    sy_run_give(sy_run_take(&sy_memory_main, 5 * MIB, 1, 0, &clean)); /* its descriptor is here */
    must(sy_chunk_trim(&sy_memory_main) == 5 * MIB);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < CHUNKS; i++) {
            chunks[i] = sy_run_take(&sy_memory_main, 63 * SY_UNIT_BYTES, 1, 0, &clean);
            must(chunks[i] && chunks[i]->start > start);
            must(clean == (turn == 0 || i >= WITH_MEMORY));
            must(chunks[i]->start < start + 64 * MIB);
            memset((void *)chunks[i]->start, 0xff, chunks[i]->bytes);
        }
        sy_fake_fail_from(SY_FAKE_RESERVE, 1);
        must(!sy_run_take(&sy_memory_main, 50 * MIB, 1, 0, &clean) && errno == ENOMEM);
        uintptr_t seen = chunks[7]->start;
        for (int i = 0; i < CHUNKS; i++) sy_run_give(chunks[i]);
        sy_slab *large = sy_run_take(&sy_memory_main, 50 * MIB, 1, 0, &clean);
        must(large && clean && large->start > start && large->start < start + 64 * MIB);
        for (size_t at = 0; at < large->bytes; at += 4096) {
            must(*(char *)(large->start + at) == 0);
            memset((void *)(large->start + at), 0xff, 4096);
        }
        must(sy_slab_at(seen) == large && sy_chunk_verify(&sy_memory_main) == 0);
        sy_run_give(large);
        must(!sy_slab_at(seen));
    }
}

static void what_chunks_leave_serves_large_spans(void **state) {
    (void)state;
    assert_int_equal(in_child(take_turns, NULL), 0);
}

static void shortage(void *arg) {
    uintptr_t start;
    size_t got;
    (void)arg;
    import(200 * MIB, 200 * MIB);
    sy_fake_fail_above(SY_FAKE_RESERVE, 21 * MIB);
    import(SY_CHUNK_BYTES, 12 * MIB); /* a quarter would be 48, half of that 24 */
    import(20 * MIB, 20 * MIB);
    must(sy_address_import(NULL, NULL, 24 * MIB, &start, &got) != 0);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    must(sy_address_import(NULL, NULL, SY_CHUNK_BYTES, &start, &got) != 0);
    must(extent_bytes() == 232 * MIB);
}

static void where_space_is_short_a_small_extent_will_do(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(shortage, NULL), 0);
}

/* An extent outside of the map's window needs a leaf. Below a limit, the extent itself may have
 * taken the address space that the leaf needs. */
static void lack_leaves(void *arg) {
    (void)arg;
    if (SY_ADDRESS_BITS == 32) return; /* the window is everywhere */
    sy_map_place(SY_ADDRESS_MAX / 128 + 1);
    import(100 * MIB, 100 * MIB);
    size_t reserved = sy_fake_reserved();
    for (size_t i = 0; i < SY_LEAVES; i++) atomic_store(&sy_the_map.leaf_at[i], NULL);
    sy_fake_fail_nth(SY_FAKE_RESERVE, 2); /* the leaf of 24 MiB */
    import(SY_CHUNK_BYTES, 12 * MIB);
    must(leaves() == 1 || leaves() == 2);
    must(extent_bytes() == reserved + 12 * MIB);
}

static void where_the_map_lacks_space_a_smaller_extent_will_do(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(lack_leaves, NULL), 0);
}

/* 8 GiB of slabs' runs and of spans of all sizes, in turn. */
static void fill(void *arg) {
    bool clean;
    uint64_t random = 1;
    (void)arg;
    must(sy_memory_part.start() == 0);
    for (size_t bytes = 0; bytes < (size_t)8192 * MIB;) {
        size_t wanted = next_random(&random) % 50 ? 1 + next_random(&random) % (2 * MIB)
                                                  : 4 * MIB + next_random(&random) % (200 * MIB);
        sy_slab *run = sy_run_take(&sy_memory_main, wanted, SY_UNIT_BYTES, 0, &clean);
        must(run != NULL);
        bytes += run->bytes;
    }
    must(sy_vmem_verify(sy_memory_main.arena) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    /* Each extent is a quarter of all address space so far. This makes 49 or 50 extents, which
     * depends on whether neighbours merge. Extents of the least size would be more than 500. */
    must(sy_fake_calls(SY_FAKE_RESERVE) < 100);
    printf("# 8 GiB in %zu extents, %zu pieces of address space\n",
           (size_t)sy_fake_calls(SY_FAKE_RESERVE), sy_fake_pieces());
}

static void eight_gibibytes_are_few_pieces(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(fill, NULL), 0);
}

static void no_commit(void *arg) {
    bool clean;
    (void)arg;
    must(sy_memory_part.start() == 0);
    sy_slab *run = sy_run_take(&sy_memory_main, 1, 1, 0, &clean);
    must(run != NULL);
    sy_vmem_stats before, after;
    sy_vmem_get_stats(sy_memory_main.arena, &before);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    errno = 0;
    must(!sy_run_take(&sy_memory_main, 63 * SY_UNIT_BYTES, 1, 0, &clean) && errno == ENOMEM);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    errno = 0;
    must(!sy_run_take(&sy_memory_main, 20 * MIB, 1, 0, &clean) && errno == ENOMEM);
    sy_vmem_get_stats(sy_memory_main.arena, &after);
    must(after.allocated == before.allocated && after.total == before.total);
}

/* Near the most mappings a part of an extent cannot be committed, but all of it can. */
static void one_commit_less(void *arg) {
    bool clean;
    (void)arg;
    must(sy_memory_part.start() == 0);
    sy_fake_fail_nth(SY_FAKE_COMMIT, 3); /* after those of a header and the descriptors */
    errno = 7;
    sy_slab *run = sy_run_take(&sy_memory_main, 1, 1, 0, &clean);
    must(run && errno == 7 && sy_fake_failures(SY_FAKE_COMMIT) == 1);
    must(sy_fake_is_committed((void *)(run->start - SY_UNIT_BYTES), 2 * SY_CHUNK_BYTES));
}

static void an_extent_is_committed_whole_if_a_part_cannot_be(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    assert_int_equal(in_child(one_commit_less, NULL), 0);
}

static void what_cannot_be_committed_is_not_lost(void **state) {
    (void)state;
    assert_int_equal(in_child(no_commit, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_grow_so_that_mappings_stay_few),
        cmocka_unit_test(what_is_released_goes),
        cmocka_unit_test(what_chunks_leave_goes),
        cmocka_unit_test(what_chunks_leave_serves_large_spans),
        cmocka_unit_test(where_space_is_short_a_small_extent_will_do),
        cmocka_unit_test(where_the_map_lacks_space_a_smaller_extent_will_do),
        cmocka_unit_test(eight_gibibytes_are_few_pieces),
        cmocka_unit_test(what_cannot_be_committed_is_not_lost),
        cmocka_unit_test(an_extent_is_committed_whole_if_a_part_cannot_be),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
