/*
 * large.c: spans too long for a chunk. A freed one is kept until a trim, because reusing it costs
 * no system call.
 */
#include "chunk/large.h"

#include <errno.h>

#include "base/bits.h"
#include "chunk/headers.h"

enum {
    KEPT_MAX = 8,
    KEPT_BYTES_MAX = 64 << 20, /* of all that are kept */
    KEPT_SPAN_MAX = 32 << 20,  /* of one that is kept */

    /* Words of the bitmap, of which a span needs the first alone. */
    RESERVED = SY_SLAB_BITMAP_WORDS - 1, /* bytes of the segment */
    MEMORY = SY_SLAB_BITMAP_WORDS - 2,
    AGE = SY_SLAB_BITMAP_WORDS - 3, /* of one that is kept */

    STEP_BYTES = 256 << 10, /* given back in one step of a trim */
};

/* Kept since the last trim by age; since before it; and the trim at work could not give it back. */
typedef enum sy_age { NEW, AGED, STUCK } sy_age;

static size_t reserved_bytes(const sy_slab *span) { return span->bits[RESERVED]; }

sy_memory *sy_large_memory(const sy_slab *span) { return (sy_memory *)span->bits[MEMORY]; }

static void describe_span(sy_slab *span, sy_memory *memory, uintptr_t start, size_t bytes,
                          size_t reserved) {
    *span = (sy_slab){.start = start, .bytes = bytes};
    span->bits[RESERVED] = reserved;
    span->bits[MEMORY] = (uintptr_t)memory;
}

static void unlink_kept(sy_memory *memory, sy_slab *span) {
    sy_slab **link = &memory->kept;
    while (*link != span) link = &(*link)->next;
    *link = span->next;
    memory->kept_count--;
    memory->kept_bytes -= span->bytes;
}

static void link_kept(sy_memory *memory, sy_slab *span) {
    span->next = memory->kept;
    memory->kept = span;
    memory->kept_count++;
    memory->kept_bytes += span->bytes;
}

/* The smallest kept span that will do without wasting half of it, or of what has room to grow: its
 * memory is there already, and the span will need it. NULL: none. */
static sy_slab *take_kept(sy_memory *memory, size_t bytes, size_t align, size_t room) {
    size_t most = (room > bytes ? room : bytes) * 2;
    sy_slab *best = NULL;
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next) {
        if (span->bytes < bytes || span->bytes > most || span->start & (align - 1)) continue;
        if (!best || span->bytes < best->bytes) best = span;
    }
    if (best) {
        unlink_kept(memory, best);
        memory->used_bytes += best->bytes;
    }
    sy_lock_release(&memory->large_lock);
    return best;
}

/* A segment for `bytes`, with room to grow if there is so much; *reserved is what it has. */
static bool take_segment(sy_memory *memory, size_t bytes, size_t align, size_t room,
                         uintptr_t *start, size_t *reserved) {
    size_t least = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (align < SY_CHUNK_BYTES) align = SY_CHUNK_BYTES;
    *reserved = sy_round_up(room, SY_CHUNK_BYTES);
    if (*reserved > least && sy_memory_take(memory, *reserved, align, start)) return true;
    *reserved = least;
    return sy_memory_take(memory, least, align, start);
}

/* To the end of its last 4 MiB, so that neighbours are one mapping. */
static int commit_span(const sy_memory *memory, uintptr_t start, size_t bytes) {
    return sy_memory_commit(memory, start, sy_round_up(bytes, SY_CHUNK_BYTES));
}

sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    uintptr_t start;
    size_t reserved;
    sy_slab *span = take_kept(memory, bytes, align, room);
    *clean = !span && memory->systems;
    if (span) {
        describe_span(span, memory, span->start, span->bytes, reserved_bytes(span));
        sy_map_set_owner(span->start, reserved_bytes(span), span);
        return span;
    }
    if (!take_segment(memory, bytes, align, room, &start, &reserved)) return NULL;
    if (commit_span(memory, start, bytes) == 0 && sy_map_cover(start, reserved) == 0)
        span = sy_descriptor_take();
    if (!span) {
        sy_memory_give(memory, start, reserved);
        errno = ENOMEM;
        return NULL;
    }
    describe_span(span, memory, start, bytes, reserved);
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes += bytes;
    sy_lock_release(&memory->large_lock);
    sy_map_set_owner(start, reserved, span);
    return span;
}

typedef enum sy_release { STAYS, ADDRESS_WENT, ALL_WENT } sy_release;

/* Its memory goes, if it can, and its address space to the arena. The system's stays if its memory
 * cannot go, since it would not read as zero: it is kept then, beyond any measure. */
static sy_release release_span(sy_memory *memory, sy_slab *span) {
    bool gone = sy_memory_discard(memory, (void *)span->start, span->bytes) == 0;
    if (!gone && memory->systems) {
        sy_lock_acquire(&memory->large_lock);
        span->bits[AGE] = STUCK;
        link_kept(memory, span);
        sy_lock_release(&memory->large_lock);
        return STAYS;
    }
    sy_memory_give(memory, span->start, reserved_bytes(span));
    sy_descriptor_give(span);
    return gone ? ALL_WENT : ADDRESS_WENT;
}

/* Keeps the span, or if there are too many the largest goes; gives what is to be released. */
static sy_slab *keep(sy_memory *memory, sy_slab *span) {
    if (span->bytes > KEPT_SPAN_MAX) return span;
    link_kept(memory, span);
    if (memory->kept_count <= KEPT_MAX && memory->kept_bytes <= KEPT_BYTES_MAX) return NULL;
    sy_slab *largest = memory->kept;
    for (sy_slab *other = largest->next; other; other = other->next)
        if (other->bytes > largest->bytes) largest = other;
    unlink_kept(memory, largest);
    return largest;
}

void sy_large_give(sy_slab *span) {
    sy_memory *memory = sy_large_memory(span);
    sy_map_set_owner(span->start, reserved_bytes(span), NULL);
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes -= span->bytes;
    sy_slab *gone = keep(memory, span);
    sy_lock_release(&memory->large_lock);
    if (gone) release_span(memory, gone);
}

/* Makes the segment so large; false if what lies behind is not free. */
static bool extend(sy_memory *memory, sy_slab *span, size_t bytes) {
    size_t reserved = reserved_bytes(span), more = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (more <= reserved) return true;
    if (!sy_memory_extend(memory, span->start, reserved, more)) return false;
    if (sy_map_cover(span->start + reserved, more - reserved) != 0) {
        sy_memory_shorten(memory, span->start, more, reserved);
        return false;
    }
    span->bits[RESERVED] = more;
    sy_map_set_owner(span->start + reserved, more - reserved, span);
    return true;
}

bool sy_large_resize(sy_slab *span, size_t bytes) {
    sy_memory *memory = sy_large_memory(span);
    if (bytes > (size_t)1 << (SY_ADDRESS_BITS - 1)) return false;
    bytes = sy_round_up(bytes, SY_UNIT_BYTES);
    if (bytes <= SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES) return false; /* it belongs in a chunk */
    if (!extend(memory, span, bytes)) return false;
    char *start = (char *)span->start;
    if (bytes > span->bytes && commit_span(memory, span->start, bytes) != 0) return false;
    if (bytes < span->bytes && sy_memory_discard(memory, start + bytes, span->bytes - bytes) != 0)
        return true; /* as long as it was: what is given back one day is what it has used */
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes += bytes - span->bytes;
    sy_lock_release(&memory->large_lock);
    span->bytes = bytes;
    return true;
}

bool sy_large_release_kept(sy_memory *memory, size_t *bytes) {
    bool any = false;
    *bytes = 0;
    sy_lock_acquire(&memory->large_lock);
    sy_slab *spans = memory->kept;
    memory->kept = NULL;
    memory->kept_count = memory->kept_bytes = 0;
    sy_lock_release(&memory->large_lock);
    while (spans) {
        sy_slab *span = spans;
        size_t held = span->bytes;
        spans = span->next;
        sy_release result = release_span(memory, span);
        any |= result != STAYS;
        if (result == ALL_WENT) *bytes += held;
    }
    return any;
}

/* One of the kept spans that may go, or NULL; the lock is held. */
static sy_slab *find_due(const sy_memory *memory, bool aged) {
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == AGED || (!aged && span->bits[AGE] == NEW)) return span;
    return NULL;
}

/* Gives the end of a long span back; false if it stays. */
static bool shorten(sy_memory *memory, sy_slab *span) {
    char *rest = (char *)span->start + span->bytes - STEP_BYTES;
    bool gone = sy_memory_discard(memory, rest, STEP_BYTES) == 0;
    sy_lock_acquire(&memory->large_lock);
    if (gone) span->bytes -= STEP_BYTES;
    link_kept(memory, span);
    span->bits[AGE] = gone ? AGED : STUCK;
    sy_lock_release(&memory->large_lock);
    return gone;
}

static void release_part(sy_memory *memory, sy_slab *span, size_t *bytes) {
    size_t held = span->bytes;
    if (memory->systems && held > (size_t)2 * STEP_BYTES) {
        if (shorten(memory, span)) *bytes += STEP_BYTES;
        return;
    }
    if (release_span(memory, span) == ALL_WENT) *bytes += held;
}

bool sy_large_trim_step(sy_memory *memory, bool aged, size_t *bytes) {
    sy_lock_acquire(&memory->large_lock);
    sy_slab *span = find_due(memory, aged);
    if (span) {
        unlink_kept(memory, span);
        sy_memory_begin_trim(memory);
    }
    sy_lock_release(&memory->large_lock);
    if (!span) return false;
    release_part(memory, span, bytes);
    sy_memory_end_trim(memory);
    return true;
}

void sy_large_try_again(sy_memory *memory) {
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == STUCK) span->bits[AGE] = AGED;
    sy_lock_release(&memory->large_lock);
}

void sy_large_age(sy_memory *memory) {
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == NEW) span->bits[AGE] = AGED;
    sy_lock_release(&memory->large_lock);
}

size_t sy_large_trim(sy_memory *memory) {
    size_t bytes;
    sy_large_release_kept(memory, &bytes);
    return bytes;
}

void sy_large_count(sy_memory *memory, size_t *used, size_t *kept_for_reuse) {
    sy_lock_acquire(&memory->large_lock);
    *used = memory->used_bytes;
    *kept_for_reuse = memory->kept_bytes;
    sy_lock_release(&memory->large_lock);
}
