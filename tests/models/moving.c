/*
 * moving.c: models of an object that is moved while other threads use it: a thread that has the
 * object, by a pin or in a read guard, has it where nobody copies from or to, and finds what was
 * written last; the object is freed once; the slot where it was belongs to its next owner.
 *
 * The magazines are a list under a lock, as in handle.c. There is one ordinal, 0, whose place is
 * the word of ordinal 1, and three slots. The mover's next owner of a slot writes to it.
 */
#include "locks.h"

#define SY_READERS_LOOKS 1
#define SY_MOVING_LOOKS  0

#include "cache/handle.c"
#include "cache/moving.c"
#include "cache/plain.c"
#include "magazine/readers.c"

/* Both source files have static functions with these names. */
#define claim directory_claim
#include "cache/directory.c"

#include "one_movable.h"

enum { SHIFT = 9, NONE = 0 };

static alignas(64) uint64_t directory_memory[(1 << SHIFT) + 32];
static uint64_t slots[3];

static sy_handle allocate(uint64_t content) {
    sy_handle handle;
    sy_read_guard guard = sy_read_enter();
    uint64_t *made = sy_handle_alloc(&cache, &handle);
    if (made) *made = content;
    sy_read_leave(guard);
    return made ? handle : NONE;
}

/* An object in slot 0 with the content 1. */
static void begin(order_by how) {
    atomic_store_explicit(&directory, (uintptr_t)directory_memory + SHIFT, memory_order_release);
    begin_cache(how);
    sy_move_place(&cache.names, 0, (uintptr_t)&slots[0]);
    sy_ordinal_prepare(0, CACHE_NUMBER);
    waits = true;
    first = allocate(1);
}

static bool moved; /* written by the mover */

/* Moves the object from slot 0 to slot 1, unless another thread calls this off. Then slot 0 has its
 * next owner. */
static void move_first(void *arg) {
    (void)arg;
    sy_moving object = {.ordinal = 0, .from = (uintptr_t)&slots[0], .to = (uintptr_t)&slots[1]};
    begin_thread();
    if (!sy_moving_announce(&cache.names, &object)) return;
    if (!sy_readers_await()) {
        sy_moving_cancel(&cache.names, &object);
        return;
    }
    if (!sy_moving_begin(&cache.names, &object)) return;
    slots[1] = slots[0];
    sy_moving_end(&cache.names, &object);
    slots[0] = 99;
    moved = true;
}

static uint64_t content_now(void) {
    const uint64_t *pinned = sy_handle_pin(&cache, first);
    assert(pinned && pinned == &slots[moved] && "an object is where it was moved");
    uint64_t content = *pinned;
    sy_handle_unpin(&cache, first);
    return content;
}

/* ---- uses ---- */

static void pin_and_add(void *arg) {
    (void)arg;
    begin_thread();
    uint64_t *pinned = sy_handle_pin(&cache, first);
    assert(pinned && "a live object is pinned");
    ++*pinned;
    sy_handle_unpin(&cache, first);
}

static void add_in_guard(void *arg) {
    (void)arg;
    begin_thread();
    sy_read_guard guard = sy_read_enter();
    uint64_t *got = sy_read_get(&cache, first);
    assert(got && "a live object is got");
    ++*got;
    sy_read_leave(guard);
}

static void add_in_two_guards(void *arg) {
    add_in_guard(arg);
    sy_read_guard guard = sy_read_enter();
    sy_read_guard inner = sy_read_enter();
    uint64_t *got = sy_read_get(&cache, first);
    sy_read_leave(inner);
    ++*got;
    sy_read_leave(guard);
}

/* Another thread uses the object while it is moved, `adds` times. */
static void use_beside_move(order_by how, void (*use)(void *arg), uint64_t adds) {
    model_thread mover;
    begin(how);
    model_start(&mover, 1, move_first, NULL);
    use(NULL);
    model_join(&mover);
    assert(content_now() == 1 + adds && "nothing that was written is lost");
}

MODEL(what_a_pin_writes_moves_with_the_object) { use_beside_move(FENCES, pin_and_add, 1); }

MODEL_FOR_LOOM(what_a_guard_writes_moves_with_the_object) {
    use_beside_move(BARRIERS, add_in_guard, 1);
}

static void add_and_stay_in_guard(void *arg) {
    (void)arg;
    sy_thread_own = &records[1];
    sy_read_enter();
    uint64_t *got = sy_read_get(&cache, first);
    ++*got;
}

/* The mover runs first, so that it is interrupted once less between its steps. */
MODEL_DEEP(a_guard_within_a_move_keeps_the_object) {
    model_thread user;
    begin(BARRIERS);
    records[1].next = NULL;
    model_start(&user, 1, add_and_stay_in_guard, NULL);
    move_first(NULL);
    model_join(&user);
    assert(slots[moved] == 2 && "nothing that was written is lost");
}

MODEL_FOR_LOOM(what_nested_guards_write_moves_with_the_object) {
    use_beside_move(BARRIERS, add_in_two_guards, 2);
}

MODEL(a_guard_with_fences_does_as_well) { use_beside_move(FENCES, add_in_guard, 1); }

/* The mover runs first of all in some executions: then the announcement is what the guard meets. */
static void guard_then_pin(void *arg) {
    add_in_guard(arg);
    pin_and_add(arg);
}

MODEL_FOR_LOOM(a_pin_after_a_guard_finds_the_object) {
    use_beside_move(BARRIERS, guard_then_pin, 2);
}

/* ---- a thread without a record ---- */

static void add_without_record(void *arg) {
    (void)arg;
    sy_thread_own = NULL;
    sy_read_guard guard = sy_read_enter();
    uint64_t *got = sy_read_get(&cache, first);
    assert(got && "a live object is got");
    ++*got;
    sy_read_leave(guard);
    begin_thread();
}

MODEL_FOR_LOOM(a_guard_of_a_thread_without_record_keeps_the_object) {
    use_beside_move(BARRIERS, add_without_record, 1);
}

MODEL(a_guard_without_record_with_fences_does_as_well) {
    use_beside_move(FENCES, add_without_record, 1);
}

/* ---- free, and the next object of the ordinal ---- */

/* The free succeeds, whatever the mover does. The ordinal is then joined with slot 2. */
static void free_beside_move(bool slowly) {
    model_thread mover;
    begin(FENCES);
    model_start(&mover, 1, move_first, NULL);
    bool freed =
        slowly ? SY_ABI_NAME(sy_handle_free_slow)(&cache, first) : sy_handle_free(&cache, first);
    assert(freed && "a live object is freed");
    assert(!sy_handle_pin(&cache, first) && !sy_read_get(&cache, first));
    sy_move_place(&cache.names, 0, (uintptr_t)&slots[2]);
    sy_handle next = allocate(5);
    assert(next != NONE && next != first);
    model_join(&mover);
    const uint64_t *pinned = sy_handle_pin(&cache, next);
    assert(pinned == &slots[2] && *pinned == 5 && "the next object is not moved in place of it");
    sy_handle_unpin(&cache, next);
    assert(sy_handle_free(&cache, next));
}

MODEL(an_object_is_freed_while_it_is_moved) { free_beside_move(false); }

MODEL(an_object_is_freed_slowly_while_it_is_moved) { free_beside_move(true); }

/* ---- two users ---- */

static void free_first(void *arg) {
    begin_thread();
    *(bool *)arg = sy_handle_free(&cache, first);
}

/* The pin finds the object or nothing; if it finds it, the object stays until the unpin. */
MODEL(a_pin_beside_a_free_and_a_move_keeps_the_object) {
    static bool freed;
    model_thread mover, other;
    begin(FENCES);
    model_start(&mover, 1, move_first, NULL);
    model_start(&other, 2, free_first, &freed);
    const uint64_t *pinned = sy_handle_pin(&cache, first);
    if (pinned) {
        assert(*pinned == 1 && "what is pinned is whole");
        sy_handle_unpin(&cache, first);
    }
    model_join(&mover);
    model_join(&other);
    assert(freed && !sy_handle_pin(&cache, first));
}

/* ---- the end of a slab's ordinals ---- */

/* The mover has chosen the object, which is freed, and whose ordinal leaves the cache. */
MODEL(a_mover_leaves_alone_what_is_gone) {
    model_thread mover;
    begin(FENCES);
    assert(sy_handle_free(&cache, first));
    model_start(&mover, 1, move_first, NULL);
    sy_move_place(&cache.names, 0, 0);
    sy_ordinals_give(0, 2, 0);
    model_join(&mover);
    assert(!moved && !directory_memory[0]);
}

/* ---- objects that are being prepared ---- */

MODEL(an_object_that_is_prepared_is_not_moved) {
    model_thread mover;
    sy_handle handle;
    begin(FENCES);
    assert(sy_handle_free(&cache, first));
    uint64_t *made = sy_handle_prepare(&cache, &handle);
    model_start(&mover, 1, move_first, NULL);
    assert(made);
    *made = 7;
    sy_handle_publish(&cache, handle);
    model_join(&mover);
    first = handle;
    assert(content_now() == 7);
}
