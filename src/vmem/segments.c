/*
 * segments.c: the tags of an arena in order of value, and the free segments in lists by size. It
 * cuts an allocated segment out of a free one, resizes it, and joins free neighbours at a free.
 */
#include "base/bits.h"
#include "base/fork.h"
#include "os/invariant.h"
#include "vmem/arena.h"

/* ---- lists by size ---- */

unsigned sy_list_of(size_t quanta) {
    if (quanta < 1u << SY_SPLIT_SHIFT) return (unsigned)quanta;
    unsigned shift = sy_highest_bit(quanta) - SY_SPLIT_SHIFT;
    return (shift << SY_SPLIT_SHIFT) + (unsigned)(quanta >> shift);
}

unsigned sy_list_above(size_t quanta) {
    unsigned list = sy_list_of(quanta);
    if (quanta < 2u << SY_SPLIT_SHIFT) return list;
    unsigned shift = sy_highest_bit(quanta) - SY_SPLIT_SHIFT;
    return list + ((quanta & sy_low_bits(shift)) != 0);
}

unsigned sy_list_filled(const sy_vmem *arena, unsigned from) {
    if (from >= SY_LISTS) return SY_LISTS;
    uint64_t word = arena->filled[from / 64] & ~sy_low_bits(from % 64);
    for (unsigned index = from / 64;;) {
        if (word) return index * 64 + sy_lowest_bit(word);
        if (++index == SY_LISTS / 64) return SY_LISTS;
        word = arena->filled[index];
    }
}

static void list_add(sy_vmem *arena, sy_boundary *tag, unsigned list) {
    tag->kin_previous = NULL;
    tag->kin = arena->list[list];
    if (tag->kin) tag->kin->kin_previous = tag;
    arena->list[list] = tag;
    arena->filled[list / 64] |= UINT64_C(1) << list % 64;
}

static void list_remove(sy_vmem *arena, sy_boundary *tag, unsigned list) {
    if (tag->kin) tag->kin->kin_previous = tag->kin_previous;
    if (tag->kin_previous) {
        tag->kin_previous->kin = tag->kin;
        return;
    }
    arena->list[list] = tag->kin;
    if (!tag->kin) arena->filled[list / 64] &= ~(UINT64_C(1) << list % 64);
}

static unsigned list_of_size(const sy_vmem *arena, size_t size) {
    return sy_list_of(size >> arena->quantum_shift);
}

void sy_free_list_add(sy_vmem *arena, sy_boundary *tag) {
    arena->free_segments++;
    arena->free += tag->size;
    list_add(arena, tag, list_of_size(arena, tag->size));
}

void sy_free_list_remove(sy_vmem *arena, sy_boundary *tag) {
    arena->free_segments--;
    arena->free -= tag->size;
    list_remove(arena, tag, list_of_size(arena, tag->size));
}

/* Changes the bounds of a free segment. Most often it stays in its list. */
static void change_free(sy_vmem *arena, sy_boundary *tag, uintptr_t start, size_t size) {
    unsigned from = list_of_size(arena, tag->size), to = list_of_size(arena, size);
    arena->free += size - tag->size;
    if (from != to) list_remove(arena, tag, from);
    tag->start = start;
    tag->size = size;
    if (from != to) list_add(arena, tag, to);
}

/* ---- order of value: one store links or unlinks a tag, for the child of a fork ---- */

void sy_tag_link(sy_vmem *arena, sy_boundary *tag, sy_boundary *previous) {
    tag->previous = previous;
    tag->next = previous ? previous->next : arena->first;
    if (tag->next)
        tag->next->previous = tag;
    else
        arena->last = tag;
    sy_fork_order();
    if (previous)
        previous->next = tag;
    else
        arena->first = tag;
    sy_fork_order();
}

void sy_tag_unlink(sy_vmem *arena, sy_boundary *tag) {
    if (tag->next)
        tag->next->previous = tag->previous;
    else
        arena->last = tag->previous;
    if (tag->previous)
        tag->previous->next = tag->next;
    else
        arena->first = tag->next;
    sy_fork_order();
    if (arena->rotor_tag == tag) arena->rotor_tag = tag->previous;
}

/* Sets rotor_tag after bounds have changed: the rotor lies in `tag` or in a segment behind it. */
static void settle_rotor(sy_vmem *arena, sy_boundary *tag) {
    while (tag->next && tag->next->kind != SY_TAG_SPAN && tag->next->start <= arena->rotor)
        tag = tag->next;
    arena->rotor_tag = tag;
}

/* ---- segments ---- */

/* Whether two tags that follow one another are consistent. A segment begins where the segment
 * before it ends, or where its span begins; the two are not both free. Before a span there may be a
 * gap. */
static bool tags_agree(const sy_boundary *tag, const sy_boundary *next) {
    if (next->previous != tag) return false;
    if (next->kind == SY_TAG_SPAN) return sy_tag_last(tag) < next->start;
    if (tag->kind == SY_TAG_SPAN) return next->start == tag->start;
    bool both_free = tag->kind == SY_TAG_FREE && next->kind == SY_TAG_FREE;
    return next->start == sy_tag_last(tag) + 1 && !both_free;
}

/* Whether a segment is consistent with the tags before and behind it. */
static bool segment_neighbours_agree(const sy_boundary *tag) {
    if (!tag->previous || tag->previous->next != tag || tag->kind == SY_TAG_SPAN) return false;
    return tags_agree(tag->previous, tag) && (!tag->next || tags_agree(tag, tag->next));
}

/* Gives back a tag whose segment has become part of a neighbour. */
static void drop(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_tag_unlink(arena, tag);
    sy_tag_give(arena, tag, leavings);
}

sy_boundary *sy_segment_carve(sy_vmem *arena, sy_boundary *free, uintptr_t value, size_t size) {
    bool rotor = arena->rotor_tag == free;
    size_t before = value - free->start, after = free->size - before - size;
    sy_boundary *leftmost = free, *taken = free;
    if (!before && !after) {
        sy_free_list_remove(arena, free);
        free->kind = SY_TAG_ALLOCATED;
    } else {
        taken = sy_tag_take(arena, SY_TAG_ALLOCATED, value, size);
        if (!before) {
            sy_tag_link(arena, taken, free->previous);
            change_free(arena, free, value + size, after);
            leftmost = taken;
        } else {
            change_free(arena, free, free->start, before);
            sy_tag_link(arena, taken, free);
            if (after) {
                sy_boundary *rest = sy_tag_take(arena, SY_TAG_FREE, value + size, after);
                sy_tag_link(arena, rest, taken);
                sy_free_list_add(arena, rest);
            }
        }
    }
    if (rotor) settle_rotor(arena, leftmost);
    sy_table_insert(arena, taken);
    arena->allocs++;
    SY_INVARIANT(segment_neighbours_agree(taken));
    return taken;
}

void sy_segment_free(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    arena->frees++;
    sy_table_remove(arena, tag, leavings);
    tag->kind = SY_TAG_FREE;
    sy_boundary *before = tag->previous, *after = tag->next;
    if (after && after->kind == SY_TAG_FREE) {
        tag->size += after->size;
        sy_free_list_remove(arena, after);
        drop(arena, after, leavings);
    }
    if (before->kind == SY_TAG_FREE) {
        change_free(arena, before, before->start, before->size + tag->size);
        drop(arena, tag, leavings);
        tag = before;
    } else {
        sy_free_list_add(arena, tag);
    }
    SY_INVARIANT(segment_neighbours_agree(tag));
    sy_boundary *span = tag->previous;
    if (span->kind == SY_TAG_SPAN && span->imported && span->size == tag->size)
        sy_span_remove(arena, span, leavings);
}

bool sy_segment_resize(sy_vmem *arena, sy_boundary *tag, size_t size, sy_leavings *leavings) {
    sy_boundary *after = tag->next && tag->next->kind == SY_TAG_FREE ? tag->next : NULL;
    size_t room = tag->size + (after ? after->size : 0);
    if (size > room) return false;
    bool rotor = arena->rotor_tag == tag || (after && arena->rotor_tag == after);
    tag->size = size;
    if (after && size == room) {
        sy_free_list_remove(arena, after);
        drop(arena, after, leavings);
    } else if (after) {
        change_free(arena, after, tag->start + size, room - size);
    } else if (size < room) {
        after = sy_tag_take(arena, SY_TAG_FREE, tag->start + size, room - size);
        sy_tag_link(arena, after, tag);
        sy_free_list_add(arena, after);
    }
    if (rotor) settle_rotor(arena, tag);
    SY_INVARIANT(segment_neighbours_agree(tag));
    return true;
}

/* The child of a fork may find the second segment linked and the first one still long. Recovery
 * shortens the first one then. */
void sy_segment_split(sy_vmem *arena, sy_boundary *tag, size_t size) {
    sy_boundary *rest = sy_tag_take(arena, SY_TAG_ALLOCATED, tag->start + size, tag->size - size);
    bool rotor = arena->rotor_tag == tag;
    sy_tag_link(arena, rest, tag);
    tag->size = size;
    if (rotor) settle_rotor(arena, tag);
    sy_table_insert(arena, rest);
    arena->allocs++;
    SY_INVARIANT(segment_neighbours_agree(tag));
    SY_INVARIANT(segment_neighbours_agree(rest));
}
