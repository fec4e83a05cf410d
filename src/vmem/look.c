/*
 * look.c: functions that read an arena: they look up values and sizes, count statistics, walk its
 * segments, and check its invariants (sy_vmem_verify).
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/sized.h"
#include "debug/callback.h"
#include "os/os.h"
#include "os/pages.h"
#include "vmem/arena.h"

static const unsigned EVERYTHING = SY_VMEM_ALLOCATED | SY_VMEM_FREE | SY_VMEM_SPANS;

/* Locks an arena that is const to the caller: only the lock changes. */
static sy_vmem *lock(const sy_vmem *arena_) {
    sy_vmem *arena = (sy_vmem *)(uintptr_t)arena_;
    sy_lock_acquire(&arena->lock);
    return arena;
}

int sy_vmem_contains(const sy_vmem *arena_, uintptr_t start, size_t size) {
    bool inside = size && size - 1 <= UINTPTR_MAX - start;
    if (!inside) return 0;
    uintptr_t last = start + (size - 1);
    sy_vmem *arena = lock(arena_);
    for (;;) {
        const sy_boundary *span = sy_span_at_or_before(arena, start);
        inside = span && sy_tag_last(span) >= start;
        if (!inside || sy_tag_last(span) >= last) break;
        start = sy_tag_last(span) + 1;
    }
    sy_lock_release(&arena->lock);
    return inside;
}

void sy_vmem_span_of(const sy_vmem *arena_, uintptr_t value, uintptr_t *start, size_t *size) {
    sy_vmem *arena = lock(arena_);
    const sy_boundary *span = sy_span_at_or_before(arena, value);
    *start = span->start;
    *size = span->size;
    sy_lock_release(&arena->lock);
}

/* Takes both locks, so that segments on their way from magazines to the arena are counted once. */
static sy_vmem *lock_with_held(const sy_vmem *arena_, size_t *held) {
    *held = 0;
    if (!arena_->cached_sizes) return lock(arena_);
    sy_clients_lock();
    sy_vmem *arena = lock(arena_);
    *held = sy_quantum_held(arena);
    sy_clients_unlock();
    return arena;
}

size_t sy_vmem_size(const sy_vmem *arena_, unsigned what) {
    size_t held;
    sy_vmem *arena = lock_with_held(arena_, &held);
    size_t free = arena->free, allocated = arena->total - free;
    sy_lock_release(&arena->lock);
    size_t units = 0;
    if (what & SY_VMEM_FREE) units += free;
    if (what & SY_VMEM_ALLOCATED) units += allocated - (held < allocated ? held : allocated);
    if ((what & (SY_VMEM_FREE | SY_VMEM_ALLOCATED)) == (SY_VMEM_FREE | SY_VMEM_ALLOCATED))
        units = free + allocated;
    return units;
}

static void fill_stats(const void *arena_, void *stats_) {
    sy_vmem_stats *stats = stats_;
    size_t held;
    sy_vmem *arena = lock_with_held(arena_, &held);
    size_t allocated = arena->total - arena->free;
    *stats = (sy_vmem_stats){
        .quantum = arena->quantum,
        .total = arena->total,
        .cached = held < allocated ? held : allocated,
        .free = arena->free,
        .imported = arena->imported,
        .spans = arena->spans,
        .imported_spans = arena->imported_spans,
        .segments_allocated = arena->allocated_segments,
        .segments_free = arena->free_segments,
        .buckets = arena->buckets,
        .allocs = arena->allocs,
        .frees = arena->frees,
        .failures = arena->failures,
        .imports = arena->imports,
        .releases = arena->releases,
        .probes = arena->probes,
        .steps = arena->steps,
        .bytes = arena->tag_bytes + sy_table_bytes(arena) + sizeof *arena,
    };
    stats->allocated = allocated - stats->cached;
    memcpy(stats->name, arena->name, sizeof stats->name);
    for (unsigned word = SY_LISTS / 64; word-- > 0;) {
        if (!arena->filled[word]) continue;
        const sy_boundary *tag = arena->list[word * 64 + sy_highest_bit(arena->filled[word])];
        stats->largest_free = tag->size;
        break;
    }
    sy_lock_release(&arena->lock);
}

int sy_vmem_get_stats_sized(const sy_vmem *arena, sy_vmem_stats *stats, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_vmem_stats, bytes, fill_stats);
    return sy_sized_fill(&sized, arena, stats, size);
}

/* ---- walk ---- */

typedef struct sy_view {
    uintptr_t start;
    size_t size;
    unsigned what;
} sy_view;

static unsigned what_is(const sy_boundary *tag) {
    switch ((sy_tag_kind)tag->kind) {
    case SY_TAG_SPAN: return SY_VMEM_SPANS;
    case SY_TAG_FREE: return SY_VMEM_FREE;
    case SY_TAG_ALLOCATED: break;
    }
    return SY_VMEM_ALLOCATED;
}

static size_t count_of(const sy_vmem *arena, unsigned what) {
    return (what & SY_VMEM_SPANS ? arena->spans : 0) +
           (what & SY_VMEM_FREE ? arena->free_segments : 0) +
           (what & SY_VMEM_ALLOCATED ? arena->allocated_segments : 0);
}

/* Copies all spans or segments that `what` names, if there is room for all; returns how many there
 * are. */
static size_t copy_views(const sy_vmem *arena_, unsigned what, sy_view *views, size_t room) {
    sy_vmem *arena = lock(arena_);
    size_t count = count_of(arena, what), done = 0;
    if (count <= room)
        for (const sy_boundary *tag = arena->first; done < count; tag = tag->next)
            if (what_is(tag) & what) views[done++] = (sy_view){tag->start, tag->size, what_is(tag)};
    sy_lock_release(&arena->lock);
    return count;
}

static sy_view *take_views(size_t views, size_t *bytes) {
    *bytes = sy_round_up((views + 1) * sizeof(sy_view), sy_os_page_size());
    return sy_pages_take(*bytes, sy_os_page_size(), "slabyard arena walk");
}

int sy_vmem_each(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg) {
    if (!what || what & ~EVERYTHING) {
        errno = EINVAL;
        return -1;
    }
    sy_vmem_drain((sy_vmem *)(uintptr_t)arena);
    for (size_t room = copy_views(arena, what, NULL, 0);;) {
        size_t bytes;
        sy_view *views = take_views(room, &bytes);
        if (!views) {
            errno = ENOMEM;
            return -1;
        }
        size_t count = copy_views(arena, what, views, room);
        int result = 0;
        SY_CALLBACK(call, .function = "visitor of sy_vmem_each");
        if (count <= room)
            for (size_t i = 0; i < count && result == 0; i++)
                result = visit(arg, views[i].what, views[i].start, views[i].size);
        call.returned = true;
        sy_pages_give(views, bytes);
        if (count <= room) return result;
        room = count + count / 8;
    }
}

/* ---- invariants ---- */

typedef struct sy_tally {
    size_t wrong, spans, imported_spans, free_segments, allocated_segments, total, imported, free;
} sy_tally;

static void tally_segment(sy_vmem *arena, const sy_boundary *tag, sy_tally *tally) {
    const sy_boundary *previous = tag->previous;
    bool first = previous && previous->kind == SY_TAG_SPAN;
    tally->wrong += !previous;
    if (!previous) return;
    tally->wrong += tag->start != (first ? previous->start : sy_tag_last(previous) + 1);
    if (tag->kind == SY_TAG_FREE) {
        tally->free_segments++;
        tally->free += tag->size;
        tally->wrong += previous->kind == SY_TAG_FREE;
    } else {
        tally->allocated_segments++;
        tally->wrong += sy_table_find(arena, tag->start) != tag;
    }
    bool ends = !tag->next || tag->next->kind == SY_TAG_SPAN;
    if (!ends) return;
    const sy_boundary *span = sy_span_at_or_before(arena, tag->start);
    tally->wrong += !span || sy_tag_last(span) != sy_tag_last(tag);
    tally->wrong += span && span->imported && first && tag->kind == SY_TAG_FREE;
}

static void tally_span(const sy_vmem *arena, const sy_boundary *span, sy_tally *tally) {
    tally->spans++;
    tally->total += span->size;
    tally->imported_spans += span->imported;
    tally->imported += span->imported ? span->size : 0;
    tally->wrong += sy_span_at_or_before(arena, span->start) != span;
    tally->wrong += !span->next || span->next->kind == SY_TAG_SPAN;
    tally->wrong += span->previous && sy_tag_last(span->previous) >= span->start;
}

static size_t verify_lists(const sy_vmem *arena) {
    size_t wrong = 0, members = 0;
    for (unsigned list = 0; list < SY_LISTS; list++) {
        const sy_boundary *previous = NULL;
        wrong += (arena->list[list] != NULL) != (arena->filled[list / 64] >> list % 64 & 1);
        for (const sy_boundary *tag = arena->list[list]; tag;
             previous = tag, tag = tag->kin, members++) {
            wrong += tag->kind != SY_TAG_FREE || tag->kin_previous != previous;
            wrong += sy_list_of(tag->size >> arena->quantum_shift) != list;
        }
    }
    return wrong + (members != arena->free_segments);
}

static size_t verify_blocks(const sy_vmem *arena) {
    size_t wrong = 0, spare = 0;
    const sy_tag_block *previous = NULL;
    for (const sy_tag_block *block = arena->blocks; block; previous = block, block = block->next) {
        wrong += block->previous != previous || block->used >= block->tags;
        wrong += sy_pool_in_use(block->pool) != block->used + 1;
        spare += block->tags - block->used;
    }
    return wrong + (spare != arena->spare);
}

size_t sy_vmem_verify(const sy_vmem *arena_) {
    sy_vmem *arena = lock(arena_);
    sy_tally tally = {0};
    uint64_t steps = arena->steps;
    const sy_boundary *previous = NULL;
    for (const sy_boundary *tag = arena->first; tag; previous = tag, tag = tag->next) {
        tally.wrong += tag->previous != previous;
        tally.wrong += tag->block->used > tag->block->tags;
        tally.wrong += ((tag->start | tag->size) & (arena->quantum - 1)) != 0 || !tag->size;
        if (tag->kind == SY_TAG_SPAN)
            tally_span(arena, tag, &tally);
        else
            tally_segment(arena, tag, &tally);
    }
    arena->steps = steps; /* the statistics do not count the steps of this check */
    size_t wrong = tally.wrong + verify_lists(arena) + verify_blocks(arena);
    wrong += arena->last != previous;
    wrong += tally.spans != arena->spans || tally.imported_spans != arena->imported_spans;
    wrong += tally.free_segments != arena->free_segments;
    wrong += tally.allocated_segments != arena->allocated_segments;
    wrong += tally.total != arena->total || tally.imported != arena->imported;
    wrong += tally.free != arena->free;
    sy_lock_release(&arena->lock);
    return wrong;
}
