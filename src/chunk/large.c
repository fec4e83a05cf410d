#include "chunk/large.h"

#include <errno.h>

#include "base/bits.h"
#include "chunk/side.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    KEPT_MAX = 8,
    KEPT_BYTES_MAX = 64 << 20, /* of all that are kept */
    KEPT_SPAN_MAX = 32 << 20,  /* of one that is kept */
    RESERVED =
        SY_SLAB_BITMAP_WORDS - 1, /* word of the bitmap, of which a span needs the first alone */
};

static sy_lock lock = SY_LOCK_INIT(SY_RANK_LARGE);
static sy_slab *kept[KEPT_MAX]; /* guarded by lock, as are all below */
static unsigned kept_count;
static size_t kept_bytes, used_bytes;

static size_t reserved_for(size_t bytes) {
    size_t chunks = sy_divide_up(bytes, SY_CHUNK_BYTES);
    return ((size_t)2 << sy_highest_bit(chunks * 2 - 1)) / 2 * SY_CHUNK_BYTES;
}

/* The smallest kept span that will do without wasting half of it, or NULL. */
static sy_slab *take_kept(size_t bytes, size_t align) {
    sy_slab *best = NULL;
    sy_lock_acquire(&lock);
    unsigned index = 0;
    for (unsigned i = 0; i < kept_count; i++) {
        sy_slab *span = kept[i];
        if (span->bytes < bytes || span->bytes / 2 > bytes || span->start & (align - 1)) continue;
        if (!best || span->bytes < best->bytes) best = span, index = i;
    }
    if (best) {
        kept[index] = kept[--kept_count];
        kept_bytes -= best->bytes;
        used_bytes += best->bytes;
        best->next = best->previous = NULL;
    }
    sy_lock_release(&lock);
    return best;
}

static sy_slab *make_span(void *start, size_t bytes, size_t reserved) {
    if (sy_os_commit(start, bytes) != 0) return NULL;
    sy_slab *span = sy_side_take(sizeof *span);
    if (!span) return NULL;
    span->start = (uintptr_t)start;
    span->bytes = bytes;
    span->bits[RESERVED] = reserved;
    return span;
}

sy_slab *sy_large_take(size_t bytes, size_t align, bool *clean) {
    *clean = false;
    sy_slab *span = take_kept(bytes, align);
    if (span) {
        size_t reserved = span->bits[RESERVED], start = span->start, have = span->bytes;
        *span = (sy_slab){.start = start, .bytes = have};
        span->bits[RESERVED] = reserved;
        sy_map_set_owner(start, reserved, span);
        return span;
    }
    *clean = true;
    size_t reserved = reserved_for(bytes), least = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (align < SY_CHUNK_BYTES) align = SY_CHUNK_BYTES;
    void *start = sy_os_reserve(reserved, align, "slabyard span");
    if (!start) start = sy_os_reserve(reserved = least, align, "slabyard span");
    if (!start) return NULL;
    span = make_span(start, bytes, reserved);
    if (!span) {
        sy_os_release(start, reserved);
        errno = ENOMEM;
        return NULL;
    }
    sy_lock_acquire(&lock);
    used_bytes += bytes;
    sy_lock_release(&lock);
    sy_map_set_owner((uintptr_t)start, reserved, span);
    return span;
}

/* If its address space cannot go (that can take one mapping too many), its memory does. */
static void release_span(sy_slab *span) {
    if (sy_os_release((void *)span->start, span->bits[RESERVED]) != 0)
        sy_os_discard((void *)span->start, span->bytes);
    sy_side_give(span, sizeof *span);
}

/* Keeps the span, or if there are too many the largest goes; gives what is to be released. */
static sy_slab *keep(sy_slab *span) {
    if (span->bytes > KEPT_SPAN_MAX) return span;
    kept_bytes += span->bytes;
    if (kept_count < KEPT_MAX) {
        kept[kept_count++] = span;
        span = NULL;
    }
    if (!span && kept_bytes <= KEPT_BYTES_MAX) return NULL;
    unsigned largest = 0;
    for (unsigned i = 1; i < kept_count; i++)
        if (kept[i]->bytes > kept[largest]->bytes) largest = i;
    sy_slab *evicted = kept[largest];
    kept[largest] = span ? span : kept[--kept_count];
    kept_bytes -= evicted->bytes;
    return evicted;
}

void sy_large_give(sy_slab *span) {
    sy_map_set_owner(span->start, span->bits[RESERVED], NULL);
    sy_lock_acquire(&lock);
    used_bytes -= span->bytes;
    sy_slab *gone = keep(span);
    sy_lock_release(&lock);
    if (gone) release_span(gone);
}

bool sy_large_resize(sy_slab *span, size_t bytes) {
    if (bytes > span->bits[RESERVED]) return false;
    bytes = sy_round_up(bytes, SY_UNIT_BYTES);
    if (bytes <= SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES) return false; /* it belongs in a chunk */
    char *start = (char *)span->start;
    if (bytes > span->bytes && sy_os_commit(start + span->bytes, bytes - span->bytes) != 0)
        return false;
    if (bytes < span->bytes) sy_os_discard(start + bytes, span->bytes - bytes);
    sy_lock_acquire(&lock);
    used_bytes += bytes - span->bytes;
    sy_lock_release(&lock);
    span->bytes = bytes;
    return true;
}

size_t sy_large_trim(void) {
    size_t bytes = 0;
    for (;;) {
        sy_lock_acquire(&lock);
        sy_slab *span = kept_count ? kept[--kept_count] : NULL;
        if (span) kept_bytes -= span->bytes;
        sy_lock_release(&lock);
        if (!span) return bytes;
        bytes += span->bytes;
        release_span(span);
    }
}

void sy_large_count(size_t *used, size_t *kept_for_reuse) {
    sy_lock_acquire(&lock);
    *used = used_bytes;
    *kept_for_reuse = kept_bytes;
    sy_lock_release(&lock);
}

void sy_large_lock_for_fork(void) { sy_lock_acquire(&lock); }

void sy_large_unlock_after_fork(void) { sy_lock_release(&lock); }
