/*
 * recover.c: makes an arena whole again in the child of a fork, if another thread of the parent was
 * changing it.
 *
 * That thread may have been at any instruction under the arena's lock. The tags in order of value
 * are complete at each of them, because one store links a tag or unlinks it (sy_tag_link,
 * sy_tag_unlink). Everything else is computed again from these tags: the sizes of the segments, the
 * tree of spans, the lists by size, the table, the spare tags, and all counts.
 *
 * The interrupted operation counts as not begun or as done. If it was an allocation or a release,
 * its segment may stay allocated in the child; an imported span without an allocated segment leaves
 * the arena, and its source does not get it back.
 */
#include <stdint.h>
#include <string.h>

#include "vmem/arena.h"

/* As the `used` of a block: its tags are still to be counted. */
#define UNCOUNTED SIZE_MAX

static void remove_tag(sy_vmem *arena, sy_boundary *tag) {
    sy_tag_unlink(arena, tag);
    sy_pool_free_inline(tag->block->pool, tag);
}

static void mend_links(sy_vmem *arena) {
    sy_boundary *previous = NULL;
    for (sy_boundary *tag = arena->first; tag; previous = tag, tag = tag->next)
        tag->previous = previous;
    arena->last = previous;
}

static bool is_segment(const sy_boundary *tag) { return tag && tag->kind != SY_TAG_SPAN; }

/*
 * Makes the segments of a span cover it: each one ends where the next one begins. Two that begin at
 * the same value are a new segment and the free one that it was cut from, whose start was not moved
 * yet. Free neighbours become one. Returns the tag after the span's segments.
 */
static sy_boundary *mend_segments(sy_vmem *arena, sy_boundary *span) {
    sy_boundary *tag = span->next;
    while (is_segment(tag)) {
        sy_boundary *next = tag->next;
        if (is_segment(next) && next->start == tag->start) next->start += tag->size;
        tag->size = (is_segment(next) ? next->start : span->start + span->size) - tag->start;
        if (tag->kind == SY_TAG_FREE && tag->previous->kind == SY_TAG_FREE) {
            tag->previous->size += tag->size;
            remove_tag(arena, tag);
        }
        tag = next;
    }
    return tag;
}

/* Whether the span was being added or removed. */
static bool is_passing(const sy_boundary *span) {
    const sy_boundary *segment = span->next;
    if (!is_segment(segment)) return true;
    return span->imported && segment->kind == SY_TAG_FREE && segment->size == span->size;
}

static void mend_spans(sy_vmem *arena) {
    sy_boundary *span = arena->first;
    while (span) {
        sy_boundary *next = mend_segments(arena, span);
        if (is_passing(span)) {
            if (is_segment(span->next)) remove_tag(arena, span->next);
            remove_tag(arena, span);
        }
        span = next;
    }
}

/* Empties the lists, the tree and the table, and sets their counts to 0. The table keeps the parts
 * that it has, and grows into them again. */
static void empty_indexes(sy_vmem *arena) {
    memset(arena->list, 0, sizeof arena->list);
    memset(arena->filled, 0, sizeof arena->filled);
    memset(arena->bucket, 0, sizeof arena->bucket);
    arena->span_tree = NULL;
    arena->buckets = arena->grow_at = SY_BUCKETS;
    for (unsigned part = 0; part < SY_TABLE_PARTS && arena->part[part]; part++) arena->grow_at *= 2;
    arena->free_segments = arena->allocated_segments = arena->spans = arena->imported_spans = 0;
    arena->total = arena->imported = arena->free = 0;
}

static void fill_indexes(sy_vmem *arena) {
    arena->rotor_tag = NULL;
    for (sy_boundary *tag = arena->first; tag; tag = tag->next) {
        if (tag->kind == SY_TAG_SPAN)
            sy_span_enter(arena, tag);
        else if (tag->kind == SY_TAG_FREE)
            sy_free_list_add(arena, tag);
        else
            sy_table_insert(arena, tag);
        if (arena->rotor_set && tag->start <= arena->rotor) arena->rotor_tag = tag;
    }
}

/* Lists a block, unless it is listed already. A tag that the interrupted operation had taken, or
 * was about to give back, counts as in use. */
static void list_block(sy_vmem *arena, sy_tag_block *block) {
    if (block->used != UNCOUNTED) return;
    block->used = sy_pool_in_use(block->pool) - 1;
    if (block->used < block->tags) sy_tag_block_list(arena, block);
    arena->spare += block->tags - block->used;
}

/* Lists the blocks with a free tag again. A block without any tag in use can be found in the old
 * list only. */
static void mend_blocks(sy_vmem *arena) {
    sy_tag_block *block = arena->blocks, *next;
    for (; block; block = block->next) block->used = UNCOUNTED;
    for (sy_boundary *tag = arena->first; tag; tag = tag->next) tag->block->used = UNCOUNTED;
    block = arena->blocks;
    arena->blocks = NULL;
    arena->spare = 0;
    for (; block; block = next) {
        next = block->next;
        list_block(arena, block);
    }
    for (sy_boundary *tag = arena->first; tag; tag = tag->next) list_block(arena, tag->block);
}

void sy_vmem_recover(sy_vmem *arena) {
    arena->torn = false;
    mend_links(arena);
    mend_spans(arena);
    empty_indexes(arena);
    fill_indexes(arena);
    mend_blocks(arena);
}
