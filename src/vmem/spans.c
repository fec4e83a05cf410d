/*
 * spans.c: the spans of an arena, in a tree by value, so that an import takes logarithmic time,
 * also with a hundred thousand spans. (The tree is a treap: a search tree by start that is a heap
 * by the start's hash; Seidel and Aragon, "Randomized search trees", Algorithmica 1996.)
 */
#include "vmem/arena.h"

/* The fields `kin` and `kin_previous` of a span are its children. */
static sy_boundary **lesser(sy_boundary *span) { return &span->kin; }

static sy_boundary **greater(sy_boundary *span) { return &span->kin_previous; }

static uint64_t priority(const sy_boundary *span) {
    uint64_t hash = (uint64_t)span->start * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static void tree_insert(sy_boundary **at, sy_boundary *span) {
    while (*at && priority(*at) >= priority(span))
        at = span->start < (*at)->start ? lesser(*at) : greater(*at);
    /* The subtree at this place is split in the spans before the new one and those after it. */
    sy_boundary **low = lesser(span), **high = greater(span);
    for (sy_boundary *rest = *at; rest;) {
        if (rest->start < span->start) {
            *low = rest;
            low = greater(rest);
            rest = *low;
        } else {
            *high = rest;
            high = lesser(rest);
            rest = *high;
        }
    }
    *low = *high = NULL;
    *at = span;
}

static void tree_remove(sy_boundary **at, sy_boundary *span) {
    while (*at != span) at = span->start < (*at)->start ? lesser(*at) : greater(*at);
    sy_boundary *low = *lesser(span), *high = *greater(span);
    while (low && high) {
        if (priority(low) >= priority(high)) {
            *at = low;
            at = greater(low);
            low = *at;
        } else {
            *at = high;
            at = lesser(high);
            high = *at;
        }
    }
    *at = low ? low : high;
}

sy_boundary *sy_span_at_or_before(const sy_vmem *arena, uintptr_t value) {
    sy_boundary *found = NULL;
    for (sy_boundary *span = arena->span_tree; span;) {
        if (span->start <= value) {
            found = span;
            span = *greater(span);
        } else {
            span = *lesser(span);
        }
    }
    return found;
}

sy_boundary *sy_span_after(const sy_vmem *arena, uintptr_t value) {
    sy_boundary *found = NULL;
    for (sy_boundary *span = arena->span_tree; span;) {
        if (span->start > value) {
            found = span;
            span = *lesser(span);
        } else {
            span = *greater(span);
        }
    }
    return found;
}

bool sy_span_overlaps(const sy_vmem *arena, uintptr_t start, size_t size) {
    const sy_boundary *before = sy_span_at_or_before(arena, start);
    if (before && sy_tag_last(before) >= start) return true;
    const sy_boundary *after = sy_span_after(arena, start);
    return after && after->start <= start + (size - 1);
}

void sy_span_enter(sy_vmem *arena, sy_boundary *span) {
    tree_insert(&arena->span_tree, span);
    arena->spans++;
    arena->total += span->size;
    if (!span->imported) return;
    arena->imported_spans++;
    arena->imported += span->size;
}

sy_boundary *sy_span_insert(sy_vmem *arena, uintptr_t start, size_t size, bool imported) {
    sy_boundary *span = sy_tag_take(arena, SY_TAG_SPAN, start, size);
    sy_boundary *free = sy_tag_take(arena, SY_TAG_FREE, start, size);
    sy_boundary *after = sy_span_after(arena, start);
    span->imported = imported;
    sy_span_enter(arena, span);
    arena->imports += imported;
    sy_tag_link(arena, span, after ? after->previous : arena->last);
    sy_tag_link(arena, free, span);
    sy_free_list_add(arena, free);
    return free;
}

void sy_span_remove(sy_vmem *arena, sy_boundary *span, sy_leavings *leavings) {
    sy_boundary *free = span->next;
    leavings->any = leavings->span = true;
    leavings->span_start = span->start;
    leavings->span_size = span->size;
    arena->spans--;
    arena->imported_spans--;
    arena->total -= span->size;
    arena->imported -= span->size;
    arena->releases++;
    sy_free_list_remove(arena, free);
    tree_remove(&arena->span_tree, span);
    sy_tag_unlink(arena, free);
    sy_tag_unlink(arena, span);
    sy_tag_give(arena, free, leavings);
    sy_tag_give(arena, span, leavings);
}
