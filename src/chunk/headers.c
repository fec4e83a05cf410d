/*
 * headers.c: takes and gives back headers of chunks and descriptors of large spans. Their memory
 * stays mapped for the life of the process, so that a lookup of any address can read it.
 */
#include "chunk/headers.h"

#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "chunk/chunk.h"
#include "chunk/pressure.h"
#include "chunk/side.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

enum {
    PLACES = SY_OS_SERVICES & SY_OS_FREE_ADDRESSES ? 64 : 8,
    HEADER_BYTES = sizeof(sy_chunk),
    AREA_BYTES = PLACES * HEADER_BYTES, /* 1 MiB; 128 KiB where address space takes memory */
};

_Static_assert(HEADER_BYTES == 16 << 10, "whole pages of 4 and 16 KiB, and areas of 1 MiB");

/* It lies in the first place of each area. */
typedef struct area {
    struct area *previous;
    uint64_t unused; /* a bit for each place; the first one's is never set */
} area;

/* Each change of these lists takes effect by one store, for the child of a fork (base/fork.h). */
static sy_lock lock = SY_LOCK_INIT(SY_RANK_SIDE);
static area *last_area;             /* the list of all areas; the lock guards it and their
                                     * `unused` */
static sy_slab *unused_descriptors; /* linked by next; guarded by the lock */

static sy_chunk *take_unused(void) {
    for (area *each = last_area; each; each = each->previous) {
        if (!each->unused) continue;
        unsigned place = sy_lowest_bit(each->unused);
        each->unused &= each->unused - 1;
        return (sy_chunk *)((char *)each + (size_t)place * HEADER_BYTES);
    }
    return NULL;
}

static void add_area(area *added) {
    added->unused = sy_low_bits(PLACES) & ~UINT64_C(1);
    sy_lock_acquire(&lock);
    added->previous = last_area;
    sy_fork_order();
    last_area = added;
    sy_lock_release(&lock);
}

sy_chunk *sy_header_take(void) {
    for (;;) {
        sy_lock_acquire(&lock);
        sy_chunk *header = take_unused();
        sy_lock_release(&lock);
        if (header) {
            sy_pressure_note(HEADER_BYTES);
            return header;
        }
        void *added = sy_pages_take(AREA_BYTES, AREA_BYTES, "slabyard headers");
        if (!added) return NULL;
        add_area(added);
    }
}

void sy_header_give(sy_chunk *header) {
    uintptr_t address = (uintptr_t)header, start = sy_round_down(address, AREA_BYTES);
    if (sy_os_page_size() > HEADER_BYTES || sy_os_discard(header, HEADER_BYTES) != 0)
        memset(header, 0, HEADER_BYTES);
    sy_pressure_note_return(HEADER_BYTES); /* if it is still held, the next one takes it */
    sy_lock_acquire(&lock);
    ((area *)start)->unused |= UINT64_C(1) << (address - start) / HEADER_BYTES;
    sy_lock_release(&lock);
}

size_t sy_header_bytes(void) {
    size_t bytes = 0;
    sy_lock_acquire(&lock);
    for (const area *each = last_area; each; each = each->previous) {
        size_t used = PLACES - 1 - sy_count_bits(each->unused);
        bytes += used * HEADER_BYTES + sy_os_page_size();
    }
    sy_lock_release(&lock);
    return bytes;
}

sy_slab *sy_descriptor_take(void) {
    sy_lock_acquire(&lock);
    sy_slab *descriptor = unused_descriptors;
    if (descriptor) unused_descriptors = descriptor->next;
    sy_lock_release(&lock);
    return descriptor ? descriptor : sy_side_take(sizeof *descriptor);
}

void sy_descriptor_give(sy_slab *descriptor) {
    sy_lock_acquire(&lock);
    descriptor->next = unused_descriptors;
    sy_fork_order();
    unused_descriptors = descriptor;
    sy_lock_release(&lock);
}

void sy_header_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&lock);
    for (const area *each = last_area; each; each = each->previous) visit(each, AREA_BYTES, arg);
    sy_lock_release(&lock);
}

void sy_headers_lock_for_fork(void) { sy_lock_hold(&lock); }

void sy_headers_unlock_after_fork(void) { sy_lock_drop(&lock); }

/* ---- for tools that read the process (base/shape.h) ---- */

#define HEADERS_VARIABLES(row) row(sy_header_areas, last_area)

static const sy_shape_row headers_shape_rows[] = {SY_SHAPE_FIELD(sy_header_area, area, previous),
                                                  {"sy_header_area.bytes", AREA_BYTES, 0},
                                                  HEADERS_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const headers_shape_addresses[] = {HEADERS_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_headers_shape = SY_SHAPE_PART(headers_shape_rows, headers_shape_addresses);
