/*
 * depot.c: models of the depot's stacks: no magazine is popped twice, none is lost, the thread that
 * pops one sees the items that were put in, and each count of items was true at some moment.
 */
#include "locks.h"

#include "magazine/depot.c"
#include "magazine/slot.h"

enum { MAGAZINES = 4 };

_Atomic(sy_magazine *) sy_magazine_segments[SY_MAGAZINE_SEGMENTS];

static sy_magazine headers[MAGAZINES]; /* number 0 names none */
static uintptr_t items[MAGAZINES];     /* one item for each magazine */
static sy_depot_shard two_shards[2];
static sy_depot_shard *const shard = &two_shards[0], *const other_shard = &two_shards[1];

static uintptr_t item_of(uint32_t number) { return number * 1000; }

/* 2, 4, 8: each sum of them says which they are. */
static uint32_t count_of(uint32_t number) { return UINT32_C(1) << number; }

static void begin(void) {
    for (uint32_t number = 1; number < MAGAZINES; number++) {
        headers[number].number = number;
        headers[number].items = &items[number];
    }
    atomic_store_explicit(&sy_magazine_segments[0], headers, memory_order_release);
}

/* Only the calling thread has the magazine, so these are plain stores. */
static void fill_and_push(sy_depot_shard *to, uint32_t number) {
    sy_magazine *magazine = &headers[number];
    magazine->items[0] = item_of(number);
    sy_magazine_set_count(magazine, count_of(number));
    sy_depot_push(to, magazine);
}

/* The thread that pops a magazine may change its items. */
static sy_magazine *pop_and_take(void) {
    sy_magazine *magazine = sy_depot_pop(shard);
    if (magazine) {
        assert(sy_magazine_count(magazine) == count_of(magazine->number));
        assert(magazine->items[0] == item_of(magazine->number));
        magazine->items[0] = 0;
    }
    return magazine;
}

static sy_magazine *popped[MAGAZINES]; /* by the threads; read when they have ended */

static void expect_once(bool *seen, const sy_magazine *magazine) {
    if (!magazine) return;
    assert(!seen[magazine->number] && "a magazine is in two places");
    seen[magazine->number] = true;
}

/* Each of magazines 1 to `count` was popped or is still in the stack. The stack's count of items is
 * the sum of those in it. */
static void expect_all_once(uint32_t count) {
    static bool seen[MAGAZINES];
    for (uint32_t i = 0; i < MAGAZINES; i++) expect_once(seen, popped[i]);
    uint64_t items_left = 0;
    for (uint32_t number = 1; number <= count; number++)
        if (!seen[number]) items_left += count_of(number);
    assert(sy_depot_items(shard) == items_left);
    for (uint32_t i = 0; i < count; i++) expect_once(seen, sy_depot_pop(shard));
    for (uint32_t number = 1; number <= count; number++) assert(seen[number] && "one is lost");
    assert(!sy_depot_pop(shard));
}

static void push_one(void *arg) { fill_and_push(shard, *(const uint32_t *)arg); }

/* Two threads push one each. */
MODEL(what_two_push_is_counted) {
    static const uint32_t numbers[] = {1, 2};
    model_thread first, second;
    begin();
    fill_and_push(shard, 3);
    model_start(&first, 1, push_one, (void *)&numbers[0]);
    model_start(&second, 2, push_one, (void *)&numbers[1]);
    model_join(&first);
    model_join(&second);
    expect_all_once(3);
}

static void pop_one(void *arg) { *(sy_magazine **)arg = pop_and_take(); }

/* Two threads push one each, one pops, and so does the model's own. */
MODEL(each_magazine_is_popped_once_with_its_items) {
    static const uint32_t numbers[] = {1, 2};
    model_thread first, second, popper;
    begin();
    model_start(&first, 1, push_one, (void *)&numbers[0]);
    model_start(&second, 2, push_one, (void *)&numbers[1]);
    model_start(&popper, 3, pop_one, &popped[0]);
    popped[1] = pop_and_take();
    model_join(&first);
    model_join(&second);
    model_join(&popper);
    expect_all_once(2);
}

/* The items of a magazine below another one are visible too: the later exchanges continue the
 * release sequence of its push. */
MODEL(what_lies_below_is_seen_too) {
    static const uint32_t numbers[] = {1, 2};
    model_thread first, second;
    begin();
    model_start(&first, 1, push_one, (void *)&numbers[0]);
    model_start(&second, 2, push_one, (void *)&numbers[1]);
    popped[0] = pop_and_take();
    popped[1] = pop_and_take();
    model_join(&first);
    model_join(&second);
    expect_all_once(2);
}

/* The first popped magazine is pushed back on the rest. */
static void pop_two_push_first(void *arg) {
    (void)arg;
    sy_magazine *first = sy_depot_pop(shard);
    popped[0] = sy_depot_pop(shard);
    if (first) sy_depot_push(shard, first);
}

static void pop_beside_reuse(uint32_t count) {
    model_thread other;
    begin();
    for (uint32_t number = 1; number <= count; number++) fill_and_push(shard, number);
    model_start(&other, 1, pop_two_push_first, NULL);
    popped[1] = sy_depot_pop(shard);
    model_join(&other);
    expect_all_once(count);
}

MODEL(a_stalled_pop_is_not_fooled_by_reuse) { pop_beside_reuse(2); }

MODEL(a_stalled_pop_is_not_fooled_by_reuse_above_a_third) { pop_beside_reuse(3); }

static void push_third(void *arg) {
    (void)arg;
    fill_and_push(shard, 3);
}

/* A push that was stalled while the top was taken and put back. */
MODEL(a_stalled_push_is_not_fooled_by_reuse) {
    model_thread other;
    begin();
    fill_and_push(shard, 1);
    fill_and_push(shard, 2);
    model_start(&other, 1, push_third, NULL);
    pop_two_push_first(NULL);
    model_join(&other);
    expect_all_once(3);
}

/* 1 lies below 2; another thread takes 2, takes 1, and puts 2 back: 6 items, 2, none, 4. */
MODEL(a_count_is_one_that_was_true) {
    model_thread other;
    begin();
    fill_and_push(shard, 1);
    fill_and_push(shard, 2);
    model_start(&other, 1, pop_two_push_first, NULL);
    uint64_t count = sy_depot_items(shard);
    assert(count == 6 || count == 2 || count == 0 || count == 4);
    model_join(&other);
    assert(sy_depot_items(shard) == 4);
    expect_all_once(2);
}

static void move_to_other_shard(void *arg) {
    (void)arg;
    sy_depot_push(other_shard, sy_depot_pop(shard));
}

/* The only magazine of one stack goes to another one, where it has more below it. */
MODEL(a_count_is_of_its_own_stack) {
    model_thread other;
    begin();
    fill_and_push(shard, 1);
    fill_and_push(other_shard, 2);
    model_start(&other, 1, move_to_other_shard, NULL);
    uint64_t count = sy_depot_items(shard);
    assert(count == 2 || count == 0);
    model_join(&other);
    assert(sy_depot_items(shard) == 0 && sy_depot_items(other_shard) == 6);
}

/* What is in the one stack goes, and a magazine comes to it that had more below it in the other. */
static void replace_from_other_shard(void *arg) {
    (void)arg;
    sy_depot_pop(shard);
    sy_depot_push(shard, sy_depot_pop(other_shard));
}

MODEL(a_count_is_of_what_was_pushed) {
    model_thread other;
    begin();
    fill_and_push(shard, 3);
    fill_and_push(other_shard, 2);
    fill_and_push(other_shard, 1);
    model_start(&other, 1, replace_from_other_shard, NULL);
    uint64_t count = sy_depot_items(shard);
    assert(count == 8 || count == 0 || count == 2);
    model_join(&other);
    assert(sy_depot_items(shard) == 2 && sy_depot_items(other_shard) == 4);
}
