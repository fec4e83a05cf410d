/*
 * memory.c: creates and destroys engine instances, and takes their address space from their arenas.
 */
#include "chunk/memory.h"

#include <errno.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "base/sized.h"
#include "chunk/address.h"
#include "chunk/chunk.h"
#include "chunk/headers.h"
#include "chunk/large.h"
#include "chunk/pressure.h"
#include "chunk/side.h"
#include "debug/callback.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/start.h"
#include "vmem/arena.h"

static sy_vmem main_arena;
sy_memory sy_memory_main = {
    .arena = &main_arena,
    .systems = true,
    .name = "system",
    .lock = SY_LOCK_INIT(SY_RANK_CHUNK),
    .large_lock = SY_LOCK_INIT(SY_RANK_LARGE),
};

static sy_lock list_lock = SY_LOCK_INIT(SY_RANK_MEMORIES);
static sy_memory *memories = &sy_memory_main; /* guarded by list_lock */

static int start_main(void) {
    return sy_vmem_open(&main_arena, &(sy_vmem_config){.name = "slabyard",
                                                       .quantum = SY_CHUNK_BYTES,
                                                       .import = sy_address_import,
                                                       .release = sy_address_release});
}

/* ---- address space ---- */

/* Whether the maps have a place for all of the range, and no chunk or large span is there. This is
 * checked because the arena of a program may return any addresses. */
static bool can_be_ours(uintptr_t start, size_t bytes) {
    if (!start || start > SY_ADDRESS_MAX || bytes - 1 > SY_ADDRESS_MAX - start) return false;
    for (size_t at = 0; at < bytes; at += SY_CHUNK_BYTES)
        if (sy_owner_at(start + at)) return false;
    return true;
}

bool sy_memory_take(const sy_memory *memory, size_t bytes, size_t align, uintptr_t *start) {
    const sy_vmem_constraints aligned = {.align = align};
    if (sy_vmem_xalloc(memory->arena, bytes, &aligned, SY_VMEM_INSTANT, start) != 0) return false;
    if (memory->systems || can_be_ours(*start, bytes)) return true;
    sy_vmem_xfree(memory->arena, *start, bytes);
    errno = ENOMEM;
    return false;
}

void sy_memory_give(const sy_memory *memory, uintptr_t start, size_t bytes) {
    sy_vmem_xfree(memory->arena, start, bytes);
}

bool sy_memory_extend(const sy_memory *memory, uintptr_t start, size_t bytes, size_t more) {
    int error = errno;
    bool extended = sy_vmem_resize(memory->arena, start, bytes, more) == 0;
    errno = error;
    if (!extended || memory->systems || can_be_ours(start + bytes, more - bytes)) return extended;
    sy_memory_shorten(memory, start, more, bytes);
    return false;
}

void sy_memory_shorten(const sy_memory *memory, uintptr_t start, size_t bytes, size_t less) {
    sy_vmem_resize(memory->arena, start, bytes, less);
}

bool sy_memory_split(const sy_memory *memory, uintptr_t start, size_t first) {
    return sy_vmem_split(memory->arena, start, first) == 0;
}

/* Near the most mappings that a process may have, the system refuses to commit a part of a mapping,
 * since this would make two of one. To commit the whole span makes none, and takes no memory
 * either. */
int sy_memory_commit(const sy_memory *memory, uintptr_t start, size_t bytes) {
    int error = errno;
    if (!memory->systems || sy_os_commit((void *)start, bytes) == 0) return 0;
    sy_vmem_span_of(memory->arena, start, &start, &bytes);
    if (sy_os_commit((void *)start, bytes) != 0) return -1;
    errno = error;
    return 0;
}

bool sy_memory_discards(const sy_memory *memory) {
    return memory->systems ? sy_os_has(SY_OS_DISCARDS) : memory->discard != NULL;
}

int sy_memory_discard(const sy_memory *memory, void *start, size_t bytes) {
    if (memory->systems) {
        int result = sy_os_discard(start, bytes);
        if (result == 0) sy_pressure_note_return(bytes);
        return result;
    }
    if (!memory->discard) return -1;
    SY_CALLBACK(call, .function = "discard function of a memory");
    int result = memory->discard(memory->arg, start, bytes);
    call.returned = true;
    return result == 0 ? 0 : -1;
}

int sy_memory_empty(const sy_memory *memory, void *start, size_t bytes) {
    if (!memory->systems) return sy_memory_discard(memory, start, bytes);
    int result = sy_pages_empty(start, bytes);
    if (result == 0) sy_pressure_note_return(bytes);
    return result;
}

/* ---- trims under way ---- */

void sy_memory_begin_trim(sy_memory *memory) {
    if (!memory->systems) return;
    atomic_fetch_add_explicit(&memory->trimming, 1, memory_order_relaxed);
}

void sy_memory_end_trim(sy_memory *memory) {
    if (!memory->systems) return;
    /* In the child of a fork the count may be 0 already. */
    uint32_t trimming = atomic_load_explicit(&memory->trimming, memory_order_relaxed);
    while (trimming &&
           !atomic_compare_exchange_weak_explicit(&memory->trimming, &trimming, trimming - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    sy_os_wake(&memory->trimming, 1 << 20);
}

bool sy_memory_wait_for_trim(sy_memory *memory) {
    if (sy_lock_is_forking()) return false; /* a trim may be waiting for this thread's locks */
    uint32_t trimming = atomic_load_explicit(&memory->trimming, memory_order_relaxed);
    if (trimming) sy_os_wait(&memory->trimming, trimming);
    return trimming;
}

/* ---- life ---- */

/* Finds the part of a region that consists of whole chunks. False: there is none, or its addresses
 * cannot be used. */
static bool whole_chunks(const sy_memory_config *config, uintptr_t *start, size_t *bytes) {
    uintptr_t from = (uintptr_t)config->start, end = from + config->bytes;
    if (!from || end < from) return false;
    *start = sy_round_up(from, SY_CHUNK_BYTES);
    end = sy_round_down(end, SY_CHUNK_BYTES);
    *bytes = end > *start ? end - *start : 0;
    return *bytes > 0 && can_be_ours(*start, *bytes);
}

/* Checks the configuration. Without an arena, *start and *bytes get the usable part of the
 * region. */
static bool valid_memory_config(const sy_memory_config *config, uintptr_t *start, size_t *bytes) {
    if (!config || (config->arena && (config->start || config->bytes))) return false;
    if (config->arena && config->arena->quantum > SY_CHUNK_BYTES) return false;
    *start = *bytes = 0;
    if (!config->arena && !whole_chunks(config, start, bytes)) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i]) return false;
    return true;
}

static void set_up_memory(sy_memory *memory, const sy_memory_config *config) {
    const char *name = config->name ? config->name : "memory";
    for (size_t i = 0; i < SY_VMEM_NAME_MAX && name[i]; i++) memory->name[i] = name[i];
    memory->discard = config->discard;
    memory->arg = config->arg;
    sy_lock_init(&memory->lock, SY_RANK_CHUNK);
    sy_lock_init(&memory->large_lock, SY_RANK_LARGE);
}

sy_memory *sy_memory_create(const sy_memory_config *config) {
    uintptr_t start;
    size_t bytes;
    if (!valid_memory_config(config, &start, &bytes)) {
        errno = EINVAL;
        return NULL;
    }
    if (sy_start() != 0) return NULL;
    sy_memory *memory = sy_side_take(sizeof *memory);
    if (!memory) return NULL;
    set_up_memory(memory, config);
    memory->own_arena = !config->arena;
    memory->arena = config->arena;
    if (memory->own_arena)
        memory->arena = sy_vmem_create(&(sy_vmem_config){
            .name = memory->name, .base = start, .size = bytes, .quantum = SY_CHUNK_BYTES});
    if (!memory->arena) {
        sy_side_give(memory, sizeof *memory);
        return NULL;
    }
    sy_lock_acquire(&list_lock);
    memory->next = memories;
    memory->next->previous = memory;
    sy_fork_order();
    memories = memory;
    sy_lock_release(&list_lock);
    return memory;
}

int sy_memory_destroy(sy_memory *memory) {
    if (!memory) return 0;
    sy_lock_acquire(&list_lock);
    bool busy = memory->caches > 0;
    if (!busy) {
        if (memory->previous)
            memory->previous->next = memory->next;
        else
            memories = memory->next;
        if (memory->next) memory->next->previous = memory->previous;
    }
    sy_lock_release(&list_lock);
    if (busy) {
        errno = EBUSY;
        return -1;
    }
    sy_large_trim(memory);
    sy_chunk_release_all(memory);
    if (memory->own_arena) sy_vmem_destroy(memory->arena);
    sy_side_give(memory, sizeof *memory);
    return 0;
}

void sy_memory_hold(sy_memory *memory) {
    sy_lock_acquire(&list_lock);
    memory->caches++;
    sy_lock_release(&list_lock);
}

void sy_memory_let_go(sy_memory *memory) {
    sy_lock_acquire(&list_lock);
    memory->caches--;
    sy_lock_release(&list_lock);
}

void sy_memory_each(void (*visit)(sy_memory *memory, void *arg), void *arg) {
    sy_lock_acquire(&list_lock);
    for (sy_memory *memory = memories; memory; memory = memory->next) visit(memory, arg);
    sy_lock_release(&list_lock);
}

static void fill_stats(const void *memory, void *stats_) {
    sy_memory_stats *stats = stats_;
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(memory, &chunks);
    *stats = (sy_memory_stats){
        .chunks = chunks.chunks,
        .mapped = chunks.chunks * SY_CHUNK_BYTES + chunks.large_bytes + chunks.large_kept,
        .free = chunks.units_free * SY_UNIT_BYTES + chunks.large_kept,
        .clean = chunks.units_clean * SY_UNIT_BYTES,
        .headers = chunks.chunks * SY_UNIT_BYTES,
    };
    stats->used = stats->mapped - stats->free - stats->headers;
}

int sy_memory_get_stats_sized(const sy_memory *memory, sy_memory_stats *stats, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_memory_stats, headers, fill_stats);
    return sy_sized_fill(&sized, memory ? memory : &sy_memory_main, stats, size);
}

/* ---- fork: all locks of one rank, then those of the next ---- */

static void hold_memories(void) {
    bool all = sy_lock_hold(&list_lock);
    for (sy_memory *memory = all ? memories : NULL; memory; memory = memory->next)
        sy_lock_hold(&memory->lock);
    for (sy_memory *memory = all ? memories : NULL; memory; memory = memory->next)
        sy_lock_hold(&memory->large_lock);
    sy_side_lock_for_fork();
    sy_headers_lock_for_fork();
}

static void drop_memories(void) {
    sy_headers_unlock_after_fork();
    sy_side_unlock_after_fork();
    if (!sy_lock_has(&list_lock)) return;
    for (sy_memory *memory = memories; memory; memory = memory->next) {
        if (sy_lock_drop(&memory->large_lock)) sy_large_recover(memory);
        if (sy_lock_drop(&memory->lock)) memory->torn = true;
    }
    sy_lock_drop(&list_lock);
}

/* Another thread may have been changing the list: one store links or unlinks a memory. */
static void inherit_memories(void) {
    sy_memory *previous = NULL;
    for (sy_memory *memory = memories; memory; previous = memory, memory = memory->next)
        memory->previous = previous;
}

/* The child has one thread, so the list's lock is not taken. It could not be: its rank comes after
 * that of the arenas, which sy_chunk_recover locks. */
static void recover_memories(void) {
    for (sy_memory *memory = memories; memory; memory = memory->next) {
        atomic_store_explicit(&memory->trimming, 0, memory_order_relaxed);
        memory->watched = NULL; /* perhaps a span that another thread was about to write */
        memory->dense = false;
        sy_chunk_recover(memory);
    }
}

const sy_part sy_memory_part = {.start = start_main,
                                .hold = hold_memories,
                                .drop = drop_memories,
                                .inherit = inherit_memories,
                                .recover = recover_memories};

/* ---- for tools that read the process (base/shape.h) ---- */

#define MEMORY_VARIABLES(row) row(sy_memories, memories)

static const sy_shape_row memory_shape_rows[] = {SY_SHAPE_FIELD(sy_memory, sy_memory, next),
                                                 SY_SHAPE_FIELD(sy_memory, sy_memory, kept),
                                                 SY_SHAPE_FIELD(sy_chunk, sy_chunk, first_unit),
                                                 SY_SHAPE_FIELD(sy_chunk, sy_chunk, slabs),
                                                 SY_SHAPE_TYPE(sy_chunk, sy_chunk),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, first),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, owner),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, free),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, slots),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, free_count),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, watermark),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, pieces),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, bytes),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, next),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, start),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, bits),
                                                 SY_SHAPE_TYPE(sy_slab, sy_slab),
                                                 SY_SHAPE_FIELD(sy_slab, sy_slab, large.reserved),
                                                 SY_SHAPE_CONSTANT(SY_OWNER_IS_CHUNK),
                                                 MEMORY_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const memory_shape_addresses[] = {MEMORY_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_memory_shape = SY_SHAPE_PART(memory_shape_rows, memory_shape_addresses);
