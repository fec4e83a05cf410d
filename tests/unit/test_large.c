/*
 * test_large.c: spans that do not fit in a chunk. They grow in place while there is room, and are
 * kept for reuse. Nothing is lost, whatever the system refuses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "chunk/chunk.h"
#include "chunk/large.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"
#include "support/wide.h"

static const size_t MIB = 1 << 20;

static sy_slab *take(size_t bytes, bool *clean) {
    sy_slab *span = sy_run_take(&sy_memory_main, bytes, SY_UNIT_BYTES, 0, clean);
    must(span != NULL && span->bytes >= bytes && span->start % SY_CHUNK_BYTES == 0);
    for (size_t at = 0; at < span->bytes; at += SY_CHUNK_BYTES)
        must(sy_slab_at(span->start + at) == span);
    must(sy_slab_at(span->start + span->bytes - 1) == span);
    must(sy_fake_is_committed((void *)span->start, span->bytes));
    return span;
}

/* Makes free address space behind a chunk. The next spans lie in it, one behind the other, since
 * free address space is used first. */
static uintptr_t open_extent(size_t bytes) {
    uintptr_t start;
    must(sy_memory_take(&sy_memory_main, bytes, SY_CHUNK_BYTES, &start));
    sy_memory_shorten(&sy_memory_main, start, bytes, SY_CHUNK_BYTES);
    return start;
}

static void close_extent(uintptr_t start) {
    sy_memory_give(&sy_memory_main, start, SY_CHUNK_BYTES);
}

/* The address space that the library holds, without the leaves of the map, which stay. */
static size_t reserved_space(void) {
    size_t leaves = 0, leaf = sy_round_up(sizeof(sy_leaf), sy_os_page_size());
    for (int i = 0; i < SY_LEAVES; i++) leaves += atomic_load(&sy_the_map.leaf_at[i]) != 0;
    return sy_fake_reserved() - leaves * leaf;
}

static size_t used(void) {
    size_t count, in_use, kept;
    sy_large_count(&sy_memory_main, &count, &in_use, &kept);
    return in_use;
}

static size_t used_count(void) {
    size_t count, in_use, kept;
    sy_large_count(&sy_memory_main, &count, &in_use, &kept);
    return count;
}

static size_t kept(void) {
    size_t count, in_use, kept_bytes;
    sy_large_count(&sy_memory_main, &count, &in_use, &kept_bytes);
    return kept_bytes;
}

static void nothing_is_left(void) {
    sy_large_trim(&sy_memory_main);
    assert_int_equal(used(), 0);
    assert_int_equal(kept(), 0);
}

static void sizes_up_to_a_gibibyte_are_had(void **state) {
    (void)state;
    bool first;
    sy_run_give(take(5 * MIB, &first)); /* makes the side memory for descriptors */
    nothing_is_left();
    size_t reserved = reserved_space();
    for (size_t bytes = 5 * MIB; bytes <= 1024 * MIB; bytes += bytes / 2 + 4097) {
        bool clean;
        sy_slab *span = take(bytes, &clean);
        char *start = (char *)span->start;
        assert_true(clean);
        assert_int_equal(start[0] + start[bytes - 1], 0);
        start[0] = start[bytes - 1] = 1;
        assert_int_equal(used(), sy_round_up(bytes, SY_UNIT_BYTES));
        sy_run_give(span);
        sy_large_trim(&sy_memory_main);
        assert_int_equal(reserved_space(), reserved);
    }
    nothing_is_left();
}

static void a_span_grows_into_its_own_space(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    bool clean;
    uintptr_t extent = open_extent(64 * MIB);
    sy_slab *span = take(5 * MIB, &clean);
    char *start = (char *)span->start;
    memset(start, 7, 5 * MIB);
    sy_slab *behind = take(20 * MIB, &clean);
    assert_true(sy_run_resize(span, 8 * MIB)); /* 8 MiB are reserved for 5 MiB */
    assert_int_equal(span->bytes, 8 * MIB);
    assert_int_equal(start[5 * MIB - 1], 7);
    assert_int_equal(start[8 * MIB - 1], 0);
    assert_int_equal(used(), 28 * MIB);
    assert_int_equal(behind->start, span->start + 8 * MIB);
    assert_false(sy_run_resize(span, 8 * MIB + 1));
    assert_false(sy_run_resize(span, SIZE_MAX / 4 * 3));
    sy_run_give(behind);
    sy_large_trim(&sy_memory_main);
    assert_true(sy_run_resize(span, 8 * MIB + 1));
    assert_int_equal(sy_slab_at(span->start + 12 * MIB - 1), span);
    assert_null(sy_slab_at(span->start + 12 * MIB));
    assert_int_equal(start[8 * MIB], 0);
    assert_true(sy_run_resize(span, 6 * MIB));
    assert_int_equal(used(), 6 * MIB);
    assert_int_equal(start[5 * MIB - 1], 7);
    assert_false(sy_run_resize(span, MIB)); /* a span of 1 MiB belongs in a chunk */
    assert_int_equal(span->bytes, 6 * MIB);
    sy_run_give(span);
    nothing_is_left();
    close_extent(extent);
}

static void room_to_grow_is_had_where_asked_for(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    bool clean;
    uintptr_t extent = open_extent(64 * MIB);
    sy_slab *span = sy_run_take(&sy_memory_main, 5 * MIB, 1, 40 * MIB, &clean);
    sy_slab *behind = take(5 * MIB, &clean);
    assert_int_equal(behind->start, span->start + 40 * MIB);
    assert_int_equal(sy_slab_at(span->start + 40 * MIB - 1), span);
    assert_true(sy_run_resize(span, 40 * MIB));
    assert_false(sy_run_resize(span, 41 * MIB));
    sy_run_give(span);
    sy_run_give(behind);
    sy_fake_fail_above(SY_FAKE_RESERVE, 80 * MIB);
    span = sy_run_take(&sy_memory_main, 5 * MIB, 1, 1000 * MIB, &clean);
    assert_non_null(span); /* without room to grow */
    sy_run_give(span);
    nothing_is_left();
    close_extent(extent);
}

static void growing_fails_without_memory(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    bool clean;
    sy_slab *span = take(5 * MIB, &clean);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    assert_false(sy_run_resize(span, 8 * MIB));
    sy_fake_succeed(SY_FAKE_COMMIT);
    assert_int_equal(span->bytes, 5 * MIB);
    assert_int_equal(used(), 5 * MIB);
    assert_true(sy_run_resize(span, 8 * MIB));
    sy_run_give(span);
    nothing_is_left();
}

static void a_freed_span_is_kept_for_its_like(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    bool clean;
    sy_slab *span = take(10 * MIB, &clean), *other;
    uintptr_t start = span->start;
    memset((void *)start, 7, MIB);
    sy_run_give(span);
    assert_null(sy_slab_at(start));
    assert_int_equal(kept(), 10 * MIB);
    sy_fake_forbid_moves(true);
    other = take(5 * MIB - SY_UNIT_BYTES, &clean); /* half of the kept span would be wasted */
    assert_true(other->start != start);
    span = take(9 * MIB, &clean);
    assert_int_equal(span->start, start);
    assert_false(clean);
    assert_int_equal(kept(), 0);
    sy_run_give(span);
    sy_run_give(other);
    nothing_is_left();
}

/* A vector that grows and is freed, again and again, uses the same memory. */
static void what_grows_takes_what_is_kept(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *span = take(16 * MIB, &clean);
    uintptr_t start = span->start;
    sy_run_give(span);
    span = sy_run_take(&sy_memory_main, 5 * MIB, 1, 10 * MIB, &clean);
    assert_int_equal(span->start, start);
    assert_false(clean);
    assert_true(sy_run_resize(span, 16 * MIB));
    assert_int_equal(kept(), 0);
    sy_run_give(span);
    span = sy_run_take(&sy_memory_main, 5 * MIB, 1, 7 * MIB, &clean); /* too much would be wasted */
    assert_true(span->start != start);
    sy_run_give(span);
    nothing_is_left();
}

static void a_kept_span_must_have_the_alignment(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *spans[4];
    for (int i = 0; i < 4; i++) spans[i] = take(5 * MIB, &clean);
    for (int i = 0; i < 4; i++) sy_run_give(spans[i]);
    for (size_t align = 4 * MIB; align <= 1024 * MIB; align *= 2) {
        sy_slab *span = sy_run_take(&sy_memory_main, 5 * MIB, align, 0, &clean);
        assert_non_null(span);
        assert_int_equal(span->start % align, 0);
        assert_int_equal(used_count(), 1);
        sy_run_give(span);
        assert_int_equal(used_count(), 0);
    }
    nothing_is_left();
}

static void what_is_kept_is_bounded(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *spans[30];
    for (int i = 0; i < 30; i++) spans[i] = take((size_t)(5 + i) * MIB, &clean);
    for (int i = 0; i < 30; i++) {
        sy_run_give(spans[i]);
        assert_true(kept() <= (used() / 8 > 64 * MIB ? used() / 8 : 64 * MIB));
    }
    assert_int_equal(used(), 0);
    assert_true(kept() > 0);
    size_t bytes = kept(), reserved = reserved_space();
    assert_int_equal(sy_large_trim(&sy_memory_main), bytes);
    assert_true(reserved_space() <= reserved - bytes);
    nothing_is_left();
}

static void a_few_spans_are_kept(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_wide_addresses();
    enum { SPANS = 40, KEPT = 32 };
    bool clean;
    sy_slab *spans[SPANS];
    sy_slab *much = take(2048 * MIB, &clean); /* an eighth of this may be kept */
    for (int i = 0; i < SPANS; i++) spans[i] = take(4 * MIB, &clean);
    for (int i = 0; i < SPANS; i++) sy_run_give(spans[i]);
    assert_int_equal(kept(), KEPT * 4 * MIB);
    sy_large_trim(&sy_memory_main);
    sy_run_give(much);
    nothing_is_left();
}

static void of_what_is_huge_a_part_is_kept(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    bool clean;
    size_t reserved = reserved_space();
    sy_slab *span = take(100 * MIB, &clean);
    memset((void *)span->start, 7, 100 * MIB);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_run_give(span);
    assert_int_equal(kept(), 64 * MIB);
    assert_int_equal(sy_fake_bytes(SY_FAKE_DISCARD) - before, 36 * MIB);
    nothing_is_left();
    assert_int_equal(reserved_space(), reserved);
}

/* ---- memory of kept spans moves to new ones ---- */

/* A span of so many MiB, filled with `byte`. */
static sy_slab *take_filled(size_t mebibytes, int byte) {
    bool clean;
    sy_slab *span = take(mebibytes * MIB, &clean);
    memset((void *)span->start, byte, span->bytes);
    return span;
}

/* The number of the span's pages that begin with `byte`. */
static size_t count_pages(const sy_slab *span, int byte) {
    size_t count = 0;
    for (size_t at = 0; at < span->bytes; at += 4096) count += *(char *)(span->start + at) == byte;
    return count;
}

static const size_t PAGES = 256; /* in 1 MiB */

static void a_shorter_span_takes_the_end_of_a_kept_one(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_run_give(take_filled(20, 1));
    sy_slab *span = take(12 * MIB, &clean);
    assert_false(clean);
    assert_int_equal(count_pages(span, 1), 12 * PAGES);
    assert_int_equal(kept(), 8 * MIB);
    assert_int_equal(used(), 12 * MIB);
    sy_slab *other = take(8 * MIB, &clean); /* gets the rest of the kept span, unmoved */
    assert_false(clean);
    assert_int_equal(count_pages(other, 1), 8 * PAGES);
    assert_int_equal(kept(), 0);
    sy_run_give(span);
    sy_run_give(other);
    nothing_is_left();
}

static void a_longer_span_takes_several(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_slab *first = take_filled(6, 1), *second = take_filled(8, 2), *third = take_filled(20, 3);
    sy_run_give(first);
    sy_run_give(second);
    sy_slab *span = take(17 * MIB, &clean);
    assert_false(clean);
    assert_int_equal(count_pages(span, 2), 8 * PAGES);
    assert_int_equal(count_pages(span, 1), 6 * PAGES);
    assert_int_equal(count_pages(span, 0), 3 * PAGES);
    assert_int_equal(count_pages(third, 3), 20 * PAGES);
    assert_int_equal(kept(), 0);
    memset((void *)span->start, 4, span->bytes);
    sy_run_give(third);
    sy_run_give(span); /* 37 MiB are kept now; the next span takes 33 of them */
    span = take(33 * MIB, &clean);
    assert_int_equal(count_pages(span, 0), 0);
    assert_int_equal(kept(), 4 * MIB);
    sy_run_give(span);
    nothing_is_left();
    span = take(100 * MIB, &clean); /* no kept memory is left for it */
    assert_true(clean);
    assert_int_equal(count_pages(span, 0), 100 * PAGES);
    sy_run_give(span);
    nothing_is_left();
}

/* Memory moves in pieces of 256 KiB. The part of the last piece that the span does not need is
 * discarded, so it is not there when the span grows. If the discard fails, the span keeps the whole
 * piece. */
static void what_is_too_much_of_a_piece_goes(void **state) {
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        const size_t kib = 1024, wanted = 5 * MIB + 64 * kib, whole = 5 * MIB + 256 * kib;
        bool clean;
        if (!sy_os_can_move()) skip();
        sy_run_give(take_filled(16, 1));
        if (refuse) sy_fake_fail_nth(SY_FAKE_DISCARD, 1);
        sy_slab *span = take(wanted, &clean);
        assert_false(clean);
        assert_int_equal(span->bytes, refuse ? whole : wanted);
        assert_int_equal(used(), span->bytes);
        assert_int_equal(kept(), 16 * MIB - whole);
        size_t pages = span->bytes / 4096;
        sy_large_trim(&sy_memory_main); /* else the part that it grows by gets kept memory */
        assert_true(sy_run_resize(span, 8 * MIB));
        assert_int_equal(count_pages(span, 1), pages);
        sy_run_give(span);
        nothing_is_left();
    }
}

/* With more memory in use the pieces are longer, so that there are not too many mappings. */
static void pieces_grow_with_what_is_in_use(void **state) {
    (void)state;
    needs_wide_addresses();
    const size_t kib = 1024;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_slab *much = take(3 * 1024 * MIB, &clean);
    sy_run_give(take_filled(16, 1));
    sy_slab *span = take(5 * MIB + 64 * kib, &clean);
    assert_int_equal(span->bytes, 5 * MIB + 64 * kib);
    assert_int_equal(kept(), 16 * MIB - (5 * MIB + 512 * kib));
    sy_run_give(span);
    sy_run_give(much);
    nothing_is_left();
}

static void what_cannot_move_stays(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_run_give(take_filled(16, 1));
    sy_fake_fail_nth(SY_FAKE_MOVE, 1);
    sy_slab *span = take(5 * MIB, &clean);
    assert_true(clean);
    assert_int_equal(count_pages(span, 0), 5 * PAGES);
    assert_int_equal(kept(), 16 * MIB);
    sy_run_give(span);
    nothing_is_left();
}

/* The span is made elsewhere, from new memory. */
static void a_span_that_a_move_loses_is_replaced(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_run_give(take_filled(16, 1));
    sy_fake_lose_move();
    sy_slab *span = take(6 * MIB, &clean);
    assert_true(clean);
    assert_int_equal(count_pages(span, 0), 6 * PAGES);
    assert_int_equal(used(), 6 * MIB);
    assert_int_equal(kept(), 16 * MIB);
    sy_run_give(span);
    nothing_is_left();
}

static void content_that_moved_to_a_lost_span_comes_back(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_slab *from = take_filled(8, 1), *to = take(12 * MIB, &clean);
    uintptr_t start = to->start;
    sy_fake_lose_move();
    assert_false(sy_run_move(from, to, 8 * MIB));
    assert_int_equal(count_pages(from, 1), 8 * PAGES);
    sy_run_give(to);
    assert_int_equal(kept(), 0);
    assert_null(sy_slab_at(start));
    sy_slab *next = take(12 * MIB, &clean);
    assert_true(next->start != start);
    sy_run_give(next);
    sy_run_give(from);
    nothing_is_left();
}

static void what_does_not_move_is_copied(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    bool clean;
    sy_slab *from = take_filled(8, 1), *to = take(12 * MIB, &clean);
    sy_fake_forbid_moves(true);
    assert_true(sy_run_move(from, to, 8 * MIB));
    assert_int_equal(count_pages(to, 1), 8 * PAGES);
    sy_run_give(to);
    sy_run_give(from);
    nothing_is_left();
}

/* A span with room to grow gets no memory of kept spans: it is made for an object that grows, whose
 * content is moved to it and would replace that memory. */
static void what_has_room_to_grow_gathers_nothing(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_run_give(take_filled(30, 1));
    sy_slab *span = sy_run_take(&sy_memory_main, 6 * MIB, 1, 12 * MIB, &clean);
    assert_non_null(span);
    assert_true(clean);
    assert_int_equal(kept(), 30 * MIB);
    sy_run_give(span);
    nothing_is_left();
}

/* ---- memory of kept spans moves to the part that a span grows by ---- */

/* A span of 6 MiB, filled with 2, that has address space for 12 MiB, while 30 MiB are kept that are
 * filled with 1. */
static sy_slab *take_growing(void) {
    bool clean;
    sy_run_give(take_filled(30, 1));
    sy_slab *span = sy_run_take(&sy_memory_main, 6 * MIB, 1, 12 * MIB, &clean);
    must(span && clean && kept() == 30 * MIB);
    memset((void *)span->start, 2, span->bytes);
    return span;
}

static void what_a_span_grows_by_was_kept(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    sy_slab *span = take_growing();
    assert_true(sy_run_resize(span, 12 * MIB));
    assert_int_equal(count_pages(span, 2), 6 * PAGES);
    assert_int_equal(count_pages(span, 1), 6 * PAGES);
    assert_int_equal(kept(), 24 * MIB);
    assert_int_equal(used(), 12 * MIB);
    sy_run_give(span);
    nothing_is_left();
}

/* As many pieces as are kept go to the front of the part, which is written first. */
static void what_is_kept_goes_to_the_front(void **state) {
    (void)state;
    size_t bytes = 0;
    if (!sy_os_can_move()) skip();
    sy_slab *span = take_growing();
    while (kept() > 2 * MIB) must(sy_large_trim_step(&sy_memory_main, false, &bytes));
    assert_true(sy_run_resize(span, 6 * MIB + SY_UNIT_BYTES)); /* less than a piece */
    assert_int_equal(kept(), 2 * MIB);
    assert_true(sy_run_resize(span, 12 * MIB));
    assert_int_equal(kept(), 0);
    assert_int_equal(count_pages(span, 1), 2 * PAGES);
    assert_int_equal(*(char *)(span->start + 6 * MIB + 256 * 1024), 1);
    assert_int_equal(*(char *)(span->start + 8 * MIB + 256 * 1024 - 4096), 1);
    sy_run_give(span);
    nothing_is_left();
}

/* The object's memory moves along. Behind it there is kept memory, and where the object is copied,
 * all of the new place is. */
static void what_moves_to_a_longer_span_has_kept_memory_behind_it(void **state) {
    (void)state;
    static const size_t sizes[] = {7, 3}; /* a large span, a run in a chunk */
    if (!sy_os_can_move()) skip();
    for (int i = 0; i < 2; i++) {
        bool clean;
        sy_slab *from = sy_run_take(&sy_memory_main, sizes[i] * MIB, 1, 0, &clean);
        must(from != NULL);
        memset((void *)from->start, 3, from->bytes);
        sy_run_give(take_filled(30, 1));
        sy_slab *to = sy_run_take(&sy_memory_main, 12 * MIB, 1, 14 * MIB, &clean);
        must(to && clean && kept() == 30 * MIB);
        assert_true(sy_run_move(from, to, sizes[i] * MIB));
        assert_int_equal(count_pages(to, 3), sizes[i] * PAGES);
        assert_int_equal(count_pages(to, 1), (12 - sizes[i]) * PAGES);
        assert_int_equal(kept(), (30 - 12 + (i == 0 ? sizes[i] : 0)) * MIB);
        sy_run_give(from);
        sy_run_give(to);
        nothing_is_left();
    }
}

/* A span that took kept memory as it is has no part without memory. */
static void what_was_kept_whole_gets_no_other_memory(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_slab *from = take_filled(7, 3), *other = take_filled(20, 2), *like = take_filled(12, 1);
    sy_run_give(like);
    sy_run_give(other);
    sy_slab *to = sy_run_take(&sy_memory_main, 12 * MIB, 1, 14 * MIB, &clean);
    assert_int_equal(count_pages(to, 1), 12 * PAGES);
    assert_true(sy_run_move(from, to, 7 * MIB));
    assert_int_equal(count_pages(to, 1), 5 * PAGES);
    assert_int_equal(kept(), 20 * MIB);
    sy_run_give(from);
    sy_run_give(to);
    nothing_is_left();
}

/* The object stays as it is. It does not grow here any more. Its memory goes back in the end. */
static void a_span_that_loses_what_it_grows_by_keeps_the_rest(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    sy_slab *span = take_growing();
    uintptr_t start = span->start;
    sy_fake_lose_move();
    assert_false(sy_run_resize(span, 12 * MIB));
    assert_int_equal(span->bytes, 6 * MIB);
    assert_int_equal(used(), 6 * MIB);
    assert_int_equal(count_pages(span, 2), 6 * PAGES);
    assert_false(sy_run_resize(span, 7 * MIB));
    assert_int_equal(kept(), 30 * MIB);
    sy_run_give(span);
    assert_int_equal(kept(), 30 * MIB);
    assert_null(sy_slab_at(start));
    nothing_is_left();
}

static void a_longer_span_that_loses_its_end_can_only_be_given_back(void **state) {
    (void)state;
    bool clean;
    if (!sy_os_can_move()) skip();
    sy_slab *from = take_filled(7, 3);
    sy_run_give(take_filled(30, 1));
    sy_slab *to = sy_run_take(&sy_memory_main, 12 * MIB, 1, 14 * MIB, &clean);
    sy_fake_lose_move();
    assert_false(sy_run_move(from, to, 7 * MIB));
    assert_int_equal(count_pages(from, 3), 7 * PAGES);
    sy_run_give(to);
    sy_run_give(from);
    nothing_is_left();
}

/* When a span of pieces is released, they become one mapping. If that fails, the span's addresses
 * are lost, and nothing else. */
static void pieces_become_one_mapping_in_the_end(void **state) {
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        bool clean;
        if (!sy_os_can_move()) skip();
        sy_slab *first = take_filled(6, 1), *second = take_filled(8, 2);
        sy_run_give(first);
        sy_run_give(second);
        sy_slab *span = take(14 * MIB, &clean);
        uintptr_t start = span->start;
        sy_run_give(span);
        if (refuse) sy_fake_fail_nth(SY_FAKE_DECOMMIT, 1);
        assert_int_equal(sy_large_trim(&sy_memory_main), 14 * MIB);
        assert_int_equal(sy_fake_calls(SY_FAKE_DECOMMIT), refuse + 1);
        assert_null(sy_slab_at(start));
        span = take(14 * MIB, &clean);
        assert_true(clean);
        if (refuse) assert_true(span->start != start);
        sy_run_give(span);
        nothing_is_left();
    }
}

/* The same for a span of pieces that gives all of its memory to a new span. */
static void a_source_of_pieces_becomes_one_mapping(void **state) {
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        bool clean;
        if (!sy_os_can_move()) skip();
        sy_slab *first = take_filled(6, 1), *second = take_filled(8, 2);
        sy_run_give(first);
        sy_run_give(second);
        uint64_t before = sy_fake_calls(SY_FAKE_DECOMMIT);
        sy_slab *pieces = take(14 * MIB, &clean);
        uintptr_t start = pieces->start;
        assert_int_equal(sy_fake_calls(SY_FAKE_DECOMMIT), before);
        sy_run_give(pieces);
        if (refuse) sy_fake_fail_nth(SY_FAKE_DECOMMIT, 1);
        sy_slab *span = take(17 * MIB, &clean);
        assert_int_equal(sy_fake_calls(SY_FAKE_DECOMMIT), before + 1);
        sy_slab *next = take(14 * MIB, &clean);
        assert_true(clean);
        if (refuse) assert_true(next->start != start);
        sy_run_give(next);
        sy_run_give(span);
        nothing_is_left();
    }
}

/* As a program with blocks of all sizes: after a while it needs no new memory. */
static void blocks_of_all_sizes_live_in_the_same_memory(void **state) {
    (void)state;
    enum { SPANS = 16, ROUNDS = 400 };
    sy_slab *spans[SPANS] = {0};
    uint64_t random = 1;
    size_t fresh = 0, all = 0;
    if (!sy_os_can_move()) skip();
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned at = (unsigned)(random >> 60);
        size_t bytes = (5 + (random >> 32) % 20) * MIB;
        bool clean;
        if (spans[at]) {
            must(count_pages(spans[at], (int)at + 1) == spans[at]->bytes / 4096);
            sy_run_give(spans[at]);
        }
        spans[at] = take(bytes, &clean);
        if (round > ROUNDS / 2) {
            fresh += count_pages(spans[at], 0);
            all += spans[at]->bytes / 4096;
        }
        memset((void *)spans[at]->start, (int)at + 1, spans[at]->bytes);
    }
    assert_true(fresh < all / 5);
    for (int i = 0; i < SPANS; i++)
        if (spans[i]) sy_run_give(spans[i]);
    nothing_is_left();
}

static void with_little_space_none_is_left_to_grow(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_fake_fail_above(SY_FAKE_RESERVE, 20 * MIB);
    sy_slab *span = take(17 * MIB, &clean); /* would have 32 MiB of address space */
    assert_false(sy_run_resize(span, 21 * MIB));
    assert_true(sy_run_resize(span, 20 * MIB));
    sy_run_give(span);
    sy_fake_reset();
    nothing_is_left();
}

enum { SIDE_AND_TAGS = (4 << 20) + 65536 }; /* never given back */

/* The n-th call to the system fails. The child ends with 1 if there were fewer calls. */
static void refused(void *arg) {
    bool clean;
    must(sy_memory_part.start() == 0);
    size_t reserved = reserved_space();
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    errno = 0;
    sy_slab *span = sy_run_take(&sy_memory_main, 17 * MIB, SY_UNIT_BYTES, 0, &clean);
    uint64_t failures = sy_fake_failures(SY_FAKE_ANY);
    sy_fake_reset();
    if (!span) {
        must(errno == ENOMEM && used() == 0 && used_count() == 0);
        must(sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED | SY_VMEM_FREE) == 0);
        must(reserved_space() <= reserved + SIDE_AND_TAGS);
        span = sy_run_take(&sy_memory_main, 17 * MIB, SY_UNIT_BYTES, 0, &clean);
    }
    must(span && used() == 17 * MIB && used_count() == 1);
    sy_run_give(span);
    must(used_count() == 0);
    must(sy_large_trim(&sy_memory_main) == 17 * MIB);
    if (!failures) _exit(1);
}

static void whatever_fails_nothing_is_lost(void **state) {
    (void)state;
    uint64_t n = 1;
    int status;
    while ((status = in_child(refused, &n)) == 0) n++;
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(n >= 7); /* address space and memory, for tags, a leaf, the span, its descriptor */
}

/* If a release fails, the address space is lost, but its memory goes back. */
static void what_cannot_be_released_is_discarded(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *span = take(100 * MIB, &clean);
    memset((void *)span->start, 7, MIB);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_fake_fail_nth(SY_FAKE_RELEASE, 1);
    sy_run_give(span);
    assert_int_equal(sy_large_trim(&sy_memory_main), 64 * MIB);
    assert_int_equal(sy_fake_failures(SY_FAKE_RELEASE), 1);
    assert_true(sy_fake_bytes(SY_FAKE_DISCARD) - before >= 100 * MIB);
    nothing_is_left();
}

/* Its content is unknown, so it is not given out as clean again. */
static void what_cannot_be_discarded_is_kept(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *span = take(100 * MIB, &clean);
    uintptr_t start = span->start;
    memset((void *)start, 7, MIB);
    sy_fake_fail_nth(SY_FAKE_DISCARD, 1);
    sy_run_give(span);
    assert_int_equal(kept(), 100 * MIB);
    sy_fake_fail_nth(SY_FAKE_DISCARD, 1);
    assert_int_equal(sy_large_trim(&sy_memory_main), 0);
    assert_int_equal(kept(), 100 * MIB);
    span = take(99 * MIB, &clean);
    assert_int_equal(span->start, start);
    assert_false(clean);
    sy_run_give(span);
    nothing_is_left();
}

/* If the end of a span cannot be discarded, the span keeps it. So memory with old content is not
 * taken for clean later. */
static void a_span_that_cannot_shrink_stays_as_long(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_slab *span = take(40 * MIB, &clean);
    memset((void *)span->start, 7, 40 * MIB);
    sy_fake_fail_nth(SY_FAKE_DISCARD, 1);
    assert_true(sy_run_resize(span, 5 * MIB));
    assert_int_equal(span->bytes, 40 * MIB);
    sy_run_give(span);
    nothing_is_left();
    span = take(40 * MIB, &clean);
    assert_true(clean);
    for (size_t at = 0; at < 40 * MIB; at += 4096) assert_int_equal(*(char *)(span->start + at), 0);
    sy_run_give(span);
    nothing_is_left();
}

/* ---- in steps ---- */

static void a_step_gives_back_a_part(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    size_t bytes = 0, steps = 0;
    sy_slab *span = take(30 * MIB, &clean);
    memset((void *)span->start, 7, 30 * MIB);
    sy_run_give(span);
    for (size_t before = 0; sy_large_trim_step(&sy_memory_main, false, &bytes); before = bytes) {
        assert_in_range(bytes - before, 1, 8 * MIB);
        assert_int_equal(kept(), 30 * MIB - bytes);
        steps++;
    }
    assert_true(steps >= 4);
    assert_int_equal(bytes, 30 * MIB);
    assert_int_equal(kept(), 0);
}

/* After one step of a trim the rest of a span is kept like any span. */
static void a_part_is_taken_again(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    bool clean;
    size_t bytes = 0;
    sy_slab *span = take(30 * MIB, &clean);
    uintptr_t start = span->start;
    memset((void *)start, 7, 30 * MIB);
    sy_run_give(span);
    assert_true(sy_large_trim_step(&sy_memory_main, false, &bytes));
    sy_fake_forbid_moves(true);
    span = take(20 * MIB, &clean);
    assert_int_equal(span->start, start);
    assert_false(clean);
    memset((void *)start, 8, 20 * MIB);
    assert_true(sy_run_resize(span, 30 * MIB));
    assert_int_equal(*(char *)(start + 19 * MIB), 8);
    memset((void *)start, 9, 30 * MIB);
    sy_run_give(span);
    nothing_is_left();
}

static void by_age_a_step_takes_what_was_there_before(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    size_t bytes = 0;
    sy_slab *old = take(5 * MIB, &clean), *young = take(7 * MIB, &clean);
    sy_run_give(old);
    assert_false(sy_large_trim_step(&sy_memory_main, true, &bytes));
    sy_large_age(&sy_memory_main);
    sy_run_give(young);
    while (sy_large_trim_step(&sy_memory_main, true, &bytes)) {}
    assert_int_equal(bytes, 5 * MIB);
    assert_int_equal(kept(), 7 * MIB);
    sy_large_age(&sy_memory_main);
    sy_run_give(take(7 * MIB, &clean)); /* used since then: young again */
    assert_false(sy_large_trim_step(&sy_memory_main, true, &bytes));
    nothing_is_left();
}

static void a_step_that_fails_keeps_the_span(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    static const size_t sizes[] = {5, 30};
    for (int i = 0; i < 2; i++) {
        bool clean;
        size_t bytes = 0;
        sy_run_give(take(sizes[i] * MIB, &clean));
        sy_fake_fail_from(SY_FAKE_DISCARD, 1);
        assert_true(sy_large_trim_step(&sy_memory_main, false, &bytes));
        assert_false(sy_large_trim_step(&sy_memory_main, false, &bytes)); /* a span is tried once */
        assert_int_equal(bytes, 0);
        assert_int_equal(kept(), sizes[i] * MIB);
        sy_fake_reset();
        sy_large_try_again(&sy_memory_main);
        assert_true(sy_large_trim_step(&sy_memory_main, false, &bytes));
        nothing_is_left();
    }
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

static int start(void **state) {
    (void)state;
    return sy_memory_part.start();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(whatever_fails_nothing_is_lost), /* first: there is no side memory yet */
        TEST(sizes_up_to_a_gibibyte_are_had),
        TEST(a_span_grows_into_its_own_space),
        TEST(room_to_grow_is_had_where_asked_for),
        TEST(growing_fails_without_memory),
        TEST(a_freed_span_is_kept_for_its_like),
        TEST(what_grows_takes_what_is_kept),
        TEST(a_kept_span_must_have_the_alignment),
        TEST(what_is_kept_is_bounded),
        TEST(of_what_is_huge_a_part_is_kept),
        TEST(a_shorter_span_takes_the_end_of_a_kept_one),
        TEST(a_longer_span_takes_several),
        TEST(what_is_too_much_of_a_piece_goes),
        TEST(pieces_grow_with_what_is_in_use),
        TEST(what_cannot_move_stays),
        TEST(a_span_that_a_move_loses_is_replaced),
        TEST(content_that_moved_to_a_lost_span_comes_back),
        TEST(what_does_not_move_is_copied),
        TEST(what_has_room_to_grow_gathers_nothing),
        TEST(what_a_span_grows_by_was_kept),
        TEST(what_is_kept_goes_to_the_front),
        TEST(what_moves_to_a_longer_span_has_kept_memory_behind_it),
        TEST(what_was_kept_whole_gets_no_other_memory),
        TEST(a_span_that_loses_what_it_grows_by_keeps_the_rest),
        TEST(a_longer_span_that_loses_its_end_can_only_be_given_back),
        TEST(pieces_become_one_mapping_in_the_end),
        TEST(a_source_of_pieces_becomes_one_mapping),
        TEST(blocks_of_all_sizes_live_in_the_same_memory),
        TEST(with_little_space_none_is_left_to_grow),
        TEST(what_cannot_be_released_is_discarded),
        TEST(what_cannot_be_discarded_is_kept),
        TEST(a_span_that_cannot_shrink_stays_as_long),
        TEST(a_step_gives_back_a_part),
        TEST(a_part_is_taken_again),
        TEST(by_age_a_step_takes_what_was_there_before),
        TEST(a_step_that_fails_keeps_the_span),
        TEST(a_few_spans_are_kept),
    };
    return cmocka_run_group_tests_name("large", tests, start, NULL);
}
