/*
 * fold.c: models of a block of ordinals that is folded while other threads use its object: who has
 * the handle finds the object, with what was written last; the object is freed once; and a handle
 * of a freed object finds nothing, also when the ordinal has its next object.
 *
 * The block has four ordinals of objects, of which one is out: 0, whose place is the word of
 * ordinal 1. In place of sy_ordinals_clear, only the words of this one become zero: the others are.
 */
#define MODEL_FOLDS
#define SY_BLOCK_ORDINALS 8
#define MODEL_PAGE        64 /* the words of a block */

#include "locks.h"

#define SY_READERS_LOOKS 1
#define SY_MOVING_LOOKS  0

#include "cache/fold.c"
#include "cache/handle.c"
#include "cache/moving.c"
#include "cache/plain.c"
#include "magazine/readers.c"

#include "one_movable.h"

static alignas(64) uint64_t words[SY_BLOCK_ORDINALS];
static sy_block_entry entry;
static uint64_t object; /* the memory of the objects that ordinal 0 has one after the other */
static sy_ordinal_block block;

uint64_t *sy_directory_words(void) { return words; }

sy_block_entry *sy_directory_blocks(void) { return &entry; }

size_t sy_ordinals_clear(uint32_t from, uint32_t count, uint32_t *highest) {
    (void)from;
    *highest = (uint32_t)(__atomic_load_n(&words[0], __ATOMIC_RELAXED) >> SY_HANDLE_GENERATION);
    __atomic_store_n(&words[0], 0, __ATOMIC_RELEASE);
    return count * sizeof *words; /* went back */
}

/* ---- one block, in no list; one record ---- */

void sy_block_enlist(sy_blocks *blocks, sy_ordinal_block *it) { (void)blocks, (void)it; }

void sy_block_delist(sy_blocks *blocks, sy_ordinal_block *it) { (void)blocks, (void)it; }

static alignas(64) uint64_t record[8];
static bool record_taken;

void *sy_side_take(size_t bytes) {
    assert(bytes <= sizeof record && !record_taken);
    record_taken = true;
    return record;
}

void sy_side_give(void *given, size_t bytes) {
    assert(given == record && bytes <= sizeof record && record_taken);
    record_taken = false;
}

/* ---- one mover ---- */

static sy_moves moves;

sy_moves *sy_mover_begin(sy_cache *of, uint64_t wait_ns) {
    (void)wait_ns;
    moves.cache = of;
    moves.chosen = 0;
    return &moves;
}

void sy_mover_end(void) {}

/* ---- what models are made of ---- */

static void begin(order_by how) {
    begin_cache(how);
    block.free[0] = ~UINT64_C(1);
    block.free_count = SY_BLOCK_OBJECTS - 1;
    cache.blocks.all = &block;
    entry.block = &block;
    sy_move_place(&cache.names, 0, (uintptr_t)&object);
    words[0] = UINT64_C(1) << SY_HANDLE_GENERATION | cache.names.slot;
    first = UINT64_C(1) << SY_HANDLE_GENERATION;
    object = 1;
}

static void fold_once(void *arg) {
    sy_compaction walk = {.whole = false};
    (void)arg;
    begin_thread();
    sy_blocks_fold_step(&cache, &walk, false);
}

static uint64_t content_now(void) {
    const uint64_t *pinned = sy_handle_pin(&cache, first);
    assert(pinned == &object && "a live object is found");
    uint64_t content = *pinned;
    sy_handle_unpin(&cache, first);
    return content;
}

static void use_beside_fold(order_by how, void (*use)(void), uint64_t adds) {
    model_thread folder;
    begin(how);
    model_start(&folder, 1, fold_once, NULL);
    use();
    model_join(&folder);
    assert(content_now() == 1 + adds && "nothing that was written is lost");
    assert(record_taken == (block.folded != NULL));
}

/* ---- uses ---- */

static void pin_and_add(void) {
    uint64_t *pinned = sy_handle_pin(&cache, first);
    assert(pinned && "a live object is pinned");
    ++*pinned;
    sy_handle_unpin(&cache, first);
}

static void add_in_guard(void) {
    sy_read_guard guard = sy_read_enter();
    uint64_t *got = sy_read_get(&cache, first);
    assert(got == &object && "a live object is got");
    ++*got;
    sy_read_leave(guard);
}

static void pin_twice(void) {
    pin_and_add();
    pin_and_add();
}

MODEL(a_pin_finds_the_object) { use_beside_fold(FENCES, pin_and_add, 1); }

MODEL(a_second_pin_finds_it_too) { use_beside_fold(FENCES, pin_twice, 2); }

MODEL_FOR_LOOM(a_guard_finds_the_object) { use_beside_fold(BARRIERS, add_in_guard, 1); }

MODEL(a_guard_with_fences_finds_the_object) { use_beside_fold(FENCES, add_in_guard, 1); }

/* It is folded again before the thread that has unfolded it looks at the word. */
static void use_while_folded_again(void (*use)(void), uint64_t adds) {
    model_thread folder;
    begin(FENCES);
    fold_once(NULL);
    assert(block.folded && !words[0]);
    model_start(&folder, 1, fold_once, NULL);
    use();
    model_join(&folder);
    assert(content_now() == 1 + adds);
}

MODEL(a_pin_finds_what_is_folded_again) { use_while_folded_again(pin_and_add, 1); }

MODEL(a_guard_finds_what_is_folded_again) { use_while_folded_again(add_in_guard, 1); }

/* Another thread unfolds the block, and folds it again, while this one looks. */
static void unfold_and_fold(void *arg) {
    begin_thread();
    assert(content_now() == 1);
    fold_once(arg);
}

MODEL(a_look_up_between_two_folds_finds_the_object) {
    model_thread other;
    begin(FENCES);
    fold_once(NULL);
    model_start(&other, 1, unfold_and_fold, NULL);
    assert(content_now() == 1);
    model_join(&other);
    assert(content_now() == 1);
}

/* Two threads look up what is folded. */
static void look_up(void *arg) {
    (void)arg;
    begin_thread();
    assert(content_now() == 1);
}

MODEL(two_look_ups_unfold_once) {
    model_thread other;
    begin(FENCES);
    fold_once(NULL);
    assert(block.folded && !words[0]);
    model_start(&other, 1, look_up, NULL);
    assert(content_now() == 1);
    model_join(&other);
    assert(!block.folded && !record_taken);
}

/* The free succeeds once, and the next object of the ordinal has another handle. */
MODEL(an_object_is_freed_while_its_block_is_folded) {
    model_thread folder;
    sy_handle next;
    begin(FENCES);
    model_start(&folder, 1, fold_once, NULL);
    assert(sy_handle_free(&cache, first) && "a live object is freed");
    assert(!sy_handle_pin(&cache, first) && !sy_read_get(&cache, first));
    uint64_t *made = sy_handle_prepare(&cache, &next);
    assert(made && next != first);
    sy_handle_publish(&cache, next);
    model_join(&folder);
    assert(sy_handle_pin(&cache, next) && !sy_handle_pin(&cache, first));
}

/* Another thread frees it. */
static void free_first(void *arg) {
    begin_thread();
    *(bool *)arg = sy_handle_free(&cache, first);
}

MODEL(a_pin_beside_a_free_of_a_folded_object) {
    static bool freed;
    model_thread other;
    begin(FENCES);
    fold_once(NULL);
    model_start(&other, 1, free_first, &freed);
    const uint64_t *pinned = sy_handle_pin(&cache, first);
    if (pinned) sy_handle_unpin(&cache, first);
    model_join(&other);
    assert(freed && !sy_handle_pin(&cache, first));
}
