/*
 * moving.c: the words of objects that are being moved (SY_MOVABLE), and look-ups that meet one.
 *
 *     live           --announce-->          announced        by the mover
 *     announced      --pin, get, free-->    live             by any thread: the move is called off
 *     announced      --begin-->             being copied     by the mover, after it has waited for
 *                                                            the read guards (magazine/readers.h)
 *     being copied   --end-->               live             by the mover, elsewhere
 *
 * An announced object is still where it was. A thread that looks it up makes it live again, so the
 * mover cannot begin. When the mover begins, no thread has the address: pins would have been seen
 * in the word; guards that began before the announcement are over; threads in later guards see the
 * announcement, and call the move off before they use the address. While an object is being copied,
 * a thread that looks it up waits for the end of the copy.
 *
 * Memory order: the announcement acquires what the last unpin released; the wait for guards, what
 * the guards wrote. The end releases the copy and the place. A word that is announced or called off
 * continues the release sequence of the word before.
 *
 * tests/models/moving.c has the models.
 */
#include "base/cpu.h"
#include "base/fork.h"
#include "cache/movable.h"
#include "magazine/readers.h"
#include "os/os.h"

#ifndef SY_MOVING_LOOKS
#    define SY_MOVING_LOOKS 1000 /* with a pause of the processor each, before a thread sleeps */
#endif

enum { SLEEP_NS = 20000 }; /* the copying thread may be interrupted */

/* Continues the release sequence of the word before, and publishes nothing itself. */
static bool exchange(uint64_t *word, uint64_t expected, uint64_t desired) {
    return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

/* ---- movers ---- */

bool sy_moving_announce(const struct sy_handle_head *head, sy_moving *object) {
    uint64_t *word = &head->words[object->ordinal];
    uint64_t seen = sy_names_word(head, object->ordinal);
    object->live = (seen >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->slot;
    sy_fork_order(); /* for sy_moving_abandon */
    if (seen != object->live ||
        !__atomic_compare_exchange_n(word, &seen, object->live | SY_HANDLE_MOVING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    /* It may have been freed since the mover chose it. Then this is the next object. */
    if (sy_moved_place(head, object->ordinal) == object->from) return true;
    sy_moving_cancel(head, object);
    return false;
}

void sy_moving_cancel(const struct sy_handle_head *head, const sy_moving *object) {
    exchange(&head->words[object->ordinal], object->live | SY_HANDLE_MOVING, object->live);
}

bool sy_moving_begin(const struct sy_handle_head *head, const sy_moving *object) {
    uint64_t announced = object->live | SY_HANDLE_MOVING;
    return exchange(&head->words[object->ordinal], announced, announced + SY_HANDLE_PIN);
}

void sy_moving_end(const struct sy_handle_head *head, const sy_moving *object) {
    sy_move_place(head, object->ordinal, object->to);
    __atomic_store_n(&head->words[object->ordinal], object->live, __ATOMIC_RELEASE);
}

void sy_moving_abandon(const struct sy_handle_head *head, const sy_moving *object) {
    uint64_t *word = &head->words[object->ordinal], announced = object->live | SY_HANDLE_MOVING;
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (seen == announced || seen == announced + SY_HANDLE_PIN)
        __atomic_store_n(word, object->live, __ATOMIC_RELAXED); /* there is no other thread */
}

/* ---- look-ups ---- */

/* Waits while the object is being copied. */
static void await_copy(const uint64_t *at, uint64_t copying) {
    static _Atomic uint32_t nothing;
    for (unsigned looks = 0; __atomic_load_n(at, __ATOMIC_RELAXED) == copying; looks++) {
        if (looks < SY_MOVING_LOOKS)
            sy_cpu_relax();
        else
            sy_os_wait_for(&nothing, 0, SLEEP_NS);
    }
}

SY_COLD bool sy_moving_settle_slow(const struct sy_handle_head *head, uint64_t *at,
                                   uint64_t *word) {
    uint64_t moving = *word, live = (moving & ~SY_HANDLE_STATE) | SY_HANDLE_LIVE;
    if (!moving) {
        *word = sy_names_word_slow(head, (uint32_t)(at - head->words));
        return *word;
    }
    if (moving & SY_HANDLE_PINS)
        await_copy(at, moving);
    else
        exchange(at, moving, live);
    *word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    return true;
}

sy_read_guard sy_read_enter(void) { return sy_readers_enter(); }

void sy_read_leave(sy_read_guard guard) { sy_readers_leave(guard); }

void *SY_ABI_NAME(sy_read_get_slow)(const sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = &cache->names;
    if (!sy_handle_in_range(head, handle)) return NULL;
    if (!sy_names_move(head)) return sy_handle_get_inline(cache, handle);
    uint64_t *at = &head->words[(uint32_t)handle], live = sy_names_expected(head, handle);
    uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    do {
        if ((word & ~SY_HANDLE_PINS) != live) continue;
        uintptr_t place = sy_moved_place(head, (uint32_t)handle);
        if (SY_LIKELY(place)) return (void *)place;
        word = 0; /* this thread is in no guard, and the block is being folded */
    } while (sy_moving_settle(head, at, live, &word));
    return NULL;
}
