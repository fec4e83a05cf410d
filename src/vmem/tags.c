/*
 * tags.c: the memory of boundary tags. Tags lie in pools on pages directly from the system. The
 * capacity of a pool is fixed when it is made, so taking or giving a tag makes no call of the
 * system. A pool without a tag in use goes back to the system.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/fork.h"
#include "os/os.h"
#include "vmem/arena.h"

enum {
    BLOCK_BYTES_MAX = 1 << 20,
    POOL_TAGS = 4, /* tags' worth of a block's bytes that the pool's own data takes */
};

void sy_tag_block_list(sy_vmem *arena, sy_tag_block *block) {
    block->previous = NULL;
    block->next = arena->blocks;
    if (block->next) block->next->previous = block;
    sy_fork_order();
    arena->blocks = block;
}

static void unlist_block(sy_vmem *arena, sy_tag_block *block) {
    if (block->previous)
        block->previous->next = block->next;
    else
        arena->blocks = block->next;
    if (block->next) block->next->previous = block->previous;
}

/* Makes a block of `bytes`, at least a page. The caller asks for as much as all blocks have. */
static sy_tag_block *make_block(size_t bytes) {
    size_t page = sy_os_page_size();
    if (bytes < page) bytes = page;
    if (bytes > BLOCK_BYTES_MAX) bytes = BLOCK_BYTES_MAX;
    bytes = sy_round_up(bytes, page);
    size_t slots = bytes / sizeof(sy_boundary) - POOL_TAGS;
    sy_pool *pool = sy_pool_create(&(sy_pool_config){
        .size = sizeof(sy_boundary), .align = sizeof(sy_boundary), .capacity = slots});
    if (!pool) return NULL;
    sy_tag_block *block = sy_pool_alloc_inline(pool);
    *block = (sy_tag_block){.pool = pool, .tags = slots - 1, .bytes = bytes};
    return block;
}

bool sy_tags_ready(sy_vmem *arena, size_t count) {
    while (arena->spare < count) {
        size_t bytes = arena->tag_bytes;
        sy_lock_release(&arena->lock);
        sy_tag_block *block = make_block(bytes);
        sy_lock_acquire(&arena->lock);
        if (!block) {
            errno = ENOMEM;
            return false;
        }
        sy_tag_block_list(arena, block);
        arena->spare += block->tags;
        arena->tag_bytes += block->bytes;
    }
    return true;
}

sy_boundary *sy_tag_take(sy_vmem *arena, sy_tag_kind kind, uintptr_t start, size_t size) {
    sy_tag_block *block = arena->blocks;
    sy_boundary *tag = sy_pool_alloc_inline(block->pool);
    arena->spare--;
    if (++block->used == block->tags) unlist_block(arena, block);
    tag->start = start;
    tag->size = size;
    tag->block = block;
    tag->kind = (uint8_t)kind;
    tag->imported = false;
    return tag;
}

void sy_tag_give(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_tag_block *block = tag->block;
    sy_pool_free_inline(block->pool, tag);
    arena->spare++;
    if (block->used-- == block->tags) sy_tag_block_list(arena, block);
    /* The block goes only if enough tags remain: the next operations shall not make it again. */
    bool plenty = arena->spare - block->tags >= block->tags / 2 + SY_TAGS_MOST;
    if (block->used > 0 || !plenty) return;
    unlist_block(arena, block);
    arena->spare -= block->tags;
    arena->tag_bytes -= block->bytes;
    block->next = leavings->blocks;
    leavings->blocks = block;
    leavings->any = true;
}

void sy_tag_blocks_release(sy_tag_block *blocks) {
    while (blocks) {
        sy_pool *pool = blocks->pool;
        blocks = blocks->next;
        sy_pool_destroy(pool);
    }
}
