/*
 * history.c: the ring of a cache's last operations. Any number of threads write it without a lock.
 */
#include "debug/history.h"

#include <errno.h>

#include "base/bits.h"
#include "debug/callback.h"
#include "os/os.h"
#include "os/pages.h"

/* The content of an entry, as it was read. */
typedef struct sy_noted {
    uint64_t object, size_and_freed, time, stack_and_thread;
} sy_noted;

sy_history *sy_history_make(size_t operations) {
    size_t bytes = sizeof(sy_history) + operations * sizeof(sy_entry);
    bytes = sy_round_up(bytes, sy_os_page_size());
    sy_history *history = sy_pages_take(bytes, sy_os_page_size(), "slabyard history");
    if (!history) return NULL;
    history->operations = operations;
    history->bytes = bytes;
    return history;
}

void sy_history_end(sy_history *history) {
    if (history) sy_pages_give(history, history->bytes);
}

size_t sy_history_bytes(const sy_history *history) { return history->bytes; }

/* ---- writing ---- */

static bool claim_entry(sy_entry *entry, uint64_t number) {
    uint64_t seen = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    if (seen % 2 || seen > 2 * number) return false;
    return atomic_compare_exchange_strong_explicit(&entry->sequence, &seen, 2 * number + 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* The words of an entry are stored with release and loaded with acquire. So a reader that sees a
 * new word also sees the odd sequence that was stored before it. */
static void set(_Atomic uint64_t *word, uint64_t value) {
    atomic_store_explicit(word, value, memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

void sy_history_note(sy_history *history, bool freed, const void *object, size_t size,
                     const sy_stamp *stamp) {
    uint64_t number = atomic_fetch_add_explicit(&history->next, 1, memory_order_relaxed);
    sy_entry *entry = &history->entries[number & (history->operations - 1)];
    if (!claim_entry(entry, number)) return;
    set(&entry->object, (uintptr_t)object);
    set(&entry->size_and_freed, (uint64_t)size << 1 | freed);
    set(&entry->time, stamp->time);
    set(&entry->stack_and_thread, (uint64_t)stamp->stack << 32 | stamp->thread);
    set(&entry->sequence, 2 * number + 2);
}

/* ---- reading ---- */

static bool read_entry(const sy_entry *entry, uint64_t number, sy_noted *noted) {
    if (get(&entry->sequence) != 2 * number + 2) return false;
    noted->object = get(&entry->object);
    noted->size_and_freed = get(&entry->size_and_freed);
    noted->time = get(&entry->time);
    noted->stack_and_thread = get(&entry->stack_and_thread);
    return atomic_load_explicit(&entry->sequence, memory_order_relaxed) == 2 * number + 2;
}

static size_t copy(const sy_history *history, sy_noted *noted) {
    uint64_t next = atomic_load_explicit(&history->next, memory_order_acquire);
    uint64_t last = next > history->operations ? next - history->operations : 0;
    size_t count = 0;
    while (next-- > last) {
        const sy_entry *entry = &history->entries[next & (history->operations - 1)];
        count += read_entry(entry, next, &noted[count]);
    }
    return count;
}

static sy_operation operation_of(const sy_noted *noted, uint64_t now) {
    const sy_stamp stamp = {
        .time = noted->time,
        .stack = (uint32_t)(noted->stack_and_thread >> 32),
        .thread = (uint32_t)noted->stack_and_thread,
    };
    return (sy_operation){
        .freed = noted->size_and_freed & 1,
        .object = (void *)(uintptr_t)noted->object,
        .size = (size_t)(noted->size_and_freed >> 1),
        .trace = sy_stamp_trace(&stamp, now),
    };
}

int sy_history_each(const sy_history *history,
                    int (*visit)(void *arg, const sy_operation *operation), void *arg) {
    size_t bytes = sy_round_up(history->operations * sizeof(sy_noted), sy_os_page_size());
    sy_noted *noted = sy_pages_take(bytes, sy_os_page_size(), "slabyard history walk");
    if (!noted) {
        errno = ENOMEM;
        return -1;
    }
    size_t count = copy(history, noted);
    uint64_t now = sy_os_now();
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        sy_operation operation = operation_of(&noted[i], now);
        SY_CALLBACK(call, .function = "visitor of sy_cache_history");
        result = visit(arg, &operation);
        call.returned = true;
    }
    sy_pages_give(noted, bytes);
    return result;
}
