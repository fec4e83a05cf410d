/*
 * memory.c: the part of os.h for memory, by the C library's malloc alone.
 *
 * A reservation is a block of calloc, with room to align it:
 *
 *     | reservation | gap | start ... start + bytes | rest |
 *
 * Where the C library maps large blocks from the system, untouched pages of a block take no memory.
 * Elsewhere a reservation takes all its memory at once. Only a whole reservation can go back to the
 * C library, when all of it was released. Committing changes nothing, and discarding is refused.
 */
#include "base/cpu.h"
#include "os/failing.h"
#include "os/os.h"
#include "os/touch.h"

#if SY_PLATFORM_PORTABLE

#    include <errno.h>
#    include <stdlib.h>
#    include <string.h>

enum { PAGE_BYTES = 4096 }; /* no service depends on it: the smallest usual size wastes least */

size_t sy_os_page_size(void) { return PAGE_BYTES; }

typedef struct reservation {
    struct reservation *next;
    uintptr_t start, end;
    size_t left; /* bytes that are not released */
} reservation;

static reservation *reservations;
static atomic_flag reservations_lock = ATOMIC_FLAG_INIT; /* held for a walk of the list */

static void lock_reservations(void) {
    while (atomic_flag_test_and_set_explicit(&reservations_lock, memory_order_acquire))
        sy_cpu_relax();
}

static void unlock_reservations(void) {
    atomic_flag_clear_explicit(&reservations_lock, memory_order_release);
}

void *sy_os_reserve(size_t bytes, size_t align, const char *name) {
    (void)name;
    if (sy_os_is_failing("reserve")) return NULL;
    const size_t more = sizeof(reservation) + align - 1;
    int saved = errno;
    reservation *block = bytes <= SIZE_MAX - more ? calloc(1, bytes + more) : NULL;
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t start = ((uintptr_t)block + more) & -(uintptr_t)align;
    *block = (reservation){.start = start, .end = start + bytes, .left = bytes};
    lock_reservations();
    block->next = reservations;
    reservations = block;
    unlock_reservations();
    errno = saved;
    return (void *)start;
}

void sy_os_show_names(bool shown) { (void)shown; }

/* Bytes that the reservation has in common with a range. */
static size_t common(const reservation *block, uintptr_t start, uintptr_t end) {
    uintptr_t low = block->start > start ? block->start : start;
    uintptr_t high = block->end < end ? block->end : end;
    return low < high ? high - low : 0;
}

/* Takes the range out of the reservations, and those that have nothing left out of the list.
 * Returns these. */
static reservation *take_out(uintptr_t start, uintptr_t end) {
    reservation *empty = NULL;
    lock_reservations();
    for (reservation **place = &reservations; *place;) {
        reservation *block = *place;
        block->left -= common(block, start, end);
        if (block->left) {
            place = &block->next;
            continue;
        }
        *place = block->next;
        block->next = empty;
        empty = block;
    }
    unlock_reservations();
    return empty;
}

int sy_os_release(void *start, size_t bytes) {
    if (sy_os_is_failing("release")) return -1;
    int saved = errno;
    reservation *empty = take_out((uintptr_t)start, (uintptr_t)start + bytes);
    while (empty) {
        reservation *next = empty->next;
        free(empty);
        empty = next;
    }
    errno = saved;
    return 0;
}

int sy_os_commit(void *start, size_t bytes) {
    (void)start, (void)bytes;
    return sy_os_is_failing("commit") ? -1 : 0;
}

/* Writes to each page without changing it, even if other threads write. */
int sy_os_populate(void *start, size_t bytes) {
    if (sy_os_is_failing("populate")) return -1;
    sy_os_touch(start, bytes);
    return 0;
}

int sy_os_discard(void *start, size_t bytes) {
    (void)start, (void)bytes;
    return sy_os_is_failing("discard") ? -1 : sy_os_failed(ENOSYS);
}

/* What is committed next has to read as zero. */
int sy_os_decommit(void *start, size_t bytes) {
    if (sy_os_is_failing("decommit")) return -1;
    memset(start, 0, bytes);
    return 0;
}

#endif
