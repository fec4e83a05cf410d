/*
 * test_heaps_failures.c: one history of heaps with limits, by address and by handle. It runs once
 * for each n, with the n-th call to the system failing, and again with all calls failing from the
 * n-th on until the phase is over. A function that fails sets ENOMEM and says why. The objects that
 * were there before a failure are there after it, and the counted bytes are the bytes held.
 *
 * Each run is a child of a process that has not used the library, so each run starts the library
 * anew.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk/side.h"
#include "os/fake.h"
#include "support/heaps.h"
#include "support/history.h"
#include "support/services.h"

enum { HEAPS = 2, OBJECTS = 2 * SIZES };

static const unsigned kinds[HEAPS] = {0, SY_HANDLES};

static struct tenant {
    sy_heap *heap;
    void *objects[OBJECTS];
    size_t sizes[OBJECTS], live;
} tenants[HEAPS];

static void *span;
static unsigned told;

static void tell(void *arg, size_t used, size_t soft) {
    (void)arg;
    must(used > 0 && soft > 0);
    told++;
}

static void all_is_well(void) {
    size_t most = 0;
    for (const struct tenant *tenant = tenants; tenant < tenants + HEAPS; tenant++) {
        if (!tenant->heap) continue;
        heap_is_sound(tenant->heap, tenant->live);
        for (size_t i = 0; i < OBJECTS; i++)
            must(!tenant->objects[i] ||
                 ends_filled(tenant->objects[i], tenant->sizes[i], (unsigned)i));
    }
    sy_stats stats;
    sy_get_stats(&stats);
    most = stats.slabs + stats.spans;
    must(sy_limit_used() == most);
}

/* An allocation has failed, for a reason that the test caused. */
static void has_failed(void) {
    must(errno == ENOMEM);
    must(sy_last_refusal() == SY_REFUSAL_SYSTEM || sy_last_refusal() == SY_REFUSAL_HEAP_LIMIT);
    must(sy_last_refusal() == SY_REFUSAL_HEAP_LIMIT || sy_fake_failures(SY_FAKE_ANY) > 0);
    all_is_well();
    errno = 0;
}

/* ---- phases ---- */

static void create_heaps(void) {
    for (int i = 0; i < HEAPS; i++) {
        sy_heap_config config = {.name = "tenant", .flags = kinds[i]};
        config.limit = (sy_limit){.hard = 40 * MIB, .soft = 4 * MIB, .callback = tell};
        while (!(tenants[i].heap = sy_heap_create(&config))) {
            must(errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0);
            all_is_well();
            sy_fake_succeed(SY_FAKE_ANY);
        }
    }
    sy_free(span);
    span = sy_malloc(MIB);
    if (!span) has_failed();
}

static void take(struct tenant *tenant, size_t i) {
    size_t size = all_sizes[(i * 7 + told) % SIZES];
    sy_handle handle;
    if (tenant->objects[i]) return;
    if (i % 3 == 0)
        tenant->objects[i] = sy_heap_aligned_alloc(tenant->heap, (size_t)1 << i % 20, size);
    else if (i % 3 == 1 && tenant == &tenants[1])
        tenant->objects[i] = sy_heap_alloc_handle(tenant->heap, size, &handle);
    else
        tenant->objects[i] = sy_heap_alloc(tenant->heap, size);
    if (!tenant->objects[i]) {
        has_failed();
        return;
    }
    tenant->live++;
    tenant->sizes[i] = size;
    fill_ends(tenant->objects[i], size, (unsigned)i);
}

static void give(struct tenant *tenant, size_t i) {
    if (!tenant->objects[i]) return;
    errno = KEPT_ERRNO;
    sy_heap_free(tenant->heap, tenant->objects[i]);
    must(errno == KEPT_ERRNO);
    tenant->objects[i] = NULL;
    tenant->live--;
}

static void fill_heaps(void) {
    for (size_t i = 0; i < OBJECTS; i++) take(&tenants[i % HEAPS], i);
}

static void resize_some(void) {
    for (size_t i = 0; i < OBJECTS; i += 5) {
        struct tenant *tenant = &tenants[i % HEAPS];
        size_t size = all_sizes[(i + 3) % SIZES];
        void *object =
            tenant->objects[i] ? sy_heap_realloc(tenant->heap, tenant->objects[i], size) : NULL;
        if (!object && tenant->objects[i]) has_failed();
        if (!object) continue;
        tenant->objects[i] = object;
        tenant->sizes[i] = size;
        fill_ends(object, size, (unsigned)i);
    }
}

static void thin_out(void) {
    for (size_t i = 0; i < OBJECTS; i++)
        if (i % 7) give(&tenants[i % HEAPS], i);
}

static void trim(void) {
    for (int i = 0; i < HEAPS; i++) sy_heap_trim(tenants[i].heap);
}

static int count_one(void *arg, sy_handle handle, void *object) {
    (void)object;
    must(handle != 0);
    ++*(size_t *)arg;
    return 0;
}

static void walk(void) {
    size_t count = 0;
    int result = sy_heap_each(tenants[1].heap, count_one, &count);
    if (result == 0)
        must(count == tenants[1].live);
    else
        must(result == -1 && errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0);
}

/* Destroys one heap with all its objects and makes a new one. The other heap still has objects, so
 * it refuses to be destroyed. */
static void replace_one(void) {
    sy_heap_destroy_all(tenants[0].heap);
    memset(&tenants[0], 0, sizeof tenants[0]);
    take(&tenants[1], OBJECTS - 1);
    must(!tenants[1].live || (sy_heap_destroy(tenants[1].heap) == -1 && errno == EBUSY));
    all_is_well();
    sy_heap *kept = tenants[1].heap;
    create_heaps();
    must(sy_heap_destroy(tenants[1].heap) == 0);
    tenants[1].heap = kept;
}

static phase *const phases[] = {create_heaps, fill_heaps, thin_out,    trim,      fill_heaps,
                                resize_some,  walk,       replace_one, fill_heaps};

static void end_history(void) {
    must(told > 0);
    sy_fake_reset();
    for (size_t i = 0; i < OBJECTS; i++) give(&tenants[1], i);
    sy_heap_destroy_all(tenants[0].heap);
    must(sy_heap_destroy(tenants[1].heap) == 0);
    sy_free(span);
    sy_trim();
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.slabs == 0 && stats.spans == 0 && stats.chunks == 0 && stats.caches == 0);
    must(sy_limit_used() == 0);
}

static const history whole = {
    .phases = phases,
    .count = sizeof phases / sizeof *phases,
    .look = all_is_well,
    .end = end_history,
};

static void any_one_call_may_fail(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, false, 50); /* the history has at least 50 calls */
}

static void all_calls_may_fail_for_a_while(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, true, 50);
}

static void fail_to_create(void *arg) {
    (void)arg;
    const sy_heap_config named = {.name = "tenant", .flags = SY_HANDLES};
    sy_heap *heap = sy_heap_create(&named);
    must(heap != NULL && sy_heap_destroy(heap) == 0);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    size_t before = sy_side_bytes();
    for (int i = 0; i < 100; i++) must(!sy_heap_create(&named));
    must(sy_side_bytes() == before);
}

static void a_heap_that_cannot_be_had_leaves_nothing(void **state) {
    (void)state;
    assert_int_equal(in_child(fail_to_create, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_call_may_fail),
        cmocka_unit_test(all_calls_may_fail_for_a_while),
        cmocka_unit_test(a_heap_that_cannot_be_had_leaves_nothing),
    };
    return cmocka_run_group_tests_name("heaps_failures", tests, NULL, NULL);
}
