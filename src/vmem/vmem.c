/*
 * vmem.c: the functions of slabyard/vmem.h that change an arena: they create and destroy it,
 * allocate (with imports from its source) and free. look.c has those that only read.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "debug/callback.h"
#include "debug/fault.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/start.h"
#include "vmem/arena.h"

/* All arenas, for fork. */
static sy_lock list_lock = SY_LOCK_INIT(SY_RANK_ARENAS);
static sy_vmem *arenas; /* guarded by list_lock */

static int fail_with(int error) {
    errno = error;
    return -1;
}

/* ---- creation ---- */

bool sy_vmem_round(const sy_vmem *arena, size_t size, size_t *rounded) {
    size_t unit = arena->quantum - 1;
    *rounded = (size + unit) & ~unit;
    return size != 0 && *rounded >= size;
}

/* Whether [start, start + size) is a valid range of whole quanta. */
static bool valid_range(size_t quantum, uintptr_t start, size_t size) {
    return size && ((start | size) & (quantum - 1)) == 0 && size - 1 <= UINTPTR_MAX - start;
}

static bool valid_config(const sy_vmem_config *config) {
    if (!config) return false;
    size_t quantum = config->quantum ? config->quantum : 1;
    bool imports = config->import || config->source;
    bool valid = sy_is_power_of_two(quantum) && (config->base & (quantum - 1)) == 0 &&
                 (!config->size || valid_range(quantum, config->base, config->size)) &&
                 config->cached_max / quantum <= SY_VMEM_CACHED_SIZES &&
                 (config->cached_max / quantum < SY_VMEM_CACHED_SIZES ||
                  config->cached_max % quantum == 0) &&
                 !config->import == !config->release && (imports || !config->import_min) &&
                 !(config->source && !config->import && config->source->quantum > quantum);
    for (size_t i = 0; valid && i < sizeof config->reserved / sizeof *config->reserved; i++)
        valid = config->reserved[i] == 0;
    return valid;
}

/* The import function if the program gives none: allocates from the source. The source's values are
 * multiples of its own quantum only, so they may have to be aligned. */
static int import_from(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    const sy_vmem *arena = arg;
    *got = size;
    if (source->quantum == arena->quantum)
        return sy_vmem_alloc(source, size, SY_VMEM_INSTANT, start);
    const sy_vmem_constraints aligned = {.align = arena->quantum};
    return sy_vmem_xalloc(source, size, &aligned, SY_VMEM_INSTANT, start);
}

static void release_to(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    const sy_vmem *arena = arg;
    if (source->quantum == arena->quantum)
        sy_vmem_free(source, start, size);
    else
        sy_vmem_xfree(source, start, size);
}

static void set_up_arena(sy_vmem *arena, const sy_vmem_config *config) {
    const char *name = config->name ? config->name : "arena";
    for (size_t i = 0; i < SY_VMEM_NAME_MAX && name[i]; i++) arena->name[i] = name[i];
    arena->quantum = config->quantum ? config->quantum : 1;
    arena->quantum_shift = sy_lowest_bit(arena->quantum);
    arena->import = config->import;
    arena->release = config->release;
    arena->source = config->source;
    arena->arg = config->arg;
    arena->import_min = config->import_min;
    if (config->source && !config->import) {
        arena->import = import_from;
        arena->release = release_to;
        arena->arg = arena;
    }
    arena->buckets = SY_BUCKETS;
    arena->grow_at = SY_BUCKETS;
    sy_lock_init(&arena->lock, SY_RANK_ARENA);
}

static void enlist(sy_vmem *arena) {
    sy_lock_acquire(&list_lock);
    arena->next = arenas;
    if (arena->next) arena->next->previous = arena;
    sy_fork_order();
    arenas = arena;
    sy_lock_release(&list_lock);
}

static void delist(sy_vmem *arena) {
    sy_lock_acquire(&list_lock);
    if (arena->previous)
        arena->previous->next = arena->next;
    else
        arenas = arena->next;
    if (arena->next) arena->next->previous = arena->previous;
    sy_lock_release(&list_lock);
}

int sy_vmem_open(sy_vmem *arena, const sy_vmem_config *config) {
    if (!valid_config(config)) return fail_with(EINVAL);
    set_up_arena(arena, config);
    enlist(arena);
    if (!config->size || sy_vmem_add(arena, config->base, config->size) == 0) return 0;
    sy_vmem_close(arena);
    return -1;
}

void sy_vmem_close(sy_vmem *arena) {
    sy_leavings leavings = {0};
    delist(arena);
    while (arena->first) {
        sy_boundary *tag = arena->first;
        sy_tag_unlink(arena, tag);
        sy_tag_give(arena, tag, &leavings);
    }
    /* Every tag has been given back, so each block is in leavings.blocks or in arena->blocks. */
    sy_tag_blocks_release(leavings.blocks);
    sy_tag_blocks_release(arena->blocks);
    sy_table_release(arena);
}

static size_t bytes_of_arena(void) { return sy_round_up(sizeof(sy_vmem), sy_os_page_size()); }

sy_vmem *sy_vmem_create(const sy_vmem_config *config) {
    if (!valid_config(config)) {
        errno = EINVAL;
        return NULL;
    }
    if (sy_start() != 0) return NULL;
    sy_vmem *arena = sy_pages_take(bytes_of_arena(), sy_os_page_size(), "slabyard arena");
    if (!arena) return NULL;
    if (sy_vmem_open(arena, config) != 0) {
        sy_pages_give(arena, bytes_of_arena());
        return NULL;
    }
    if (sy_quantum_open(arena, config->cached_max) != 0) {
        int error = errno;
        sy_vmem_close(arena);
        sy_pages_give(arena, bytes_of_arena());
        errno = error;
        return NULL;
    }
    return arena;
}

/* Whether the program has allocated segments. Those in quantum caches do not count. No other thread
 * uses the arena. */
static bool has_segments(sy_vmem *arena) {
    sy_clients_lock();
    sy_lock_acquire(&arena->lock);
    bool any = arena->total - arena->free > sy_quantum_held(arena);
    sy_lock_release(&arena->lock);
    sy_clients_unlock();
    return any;
}

int sy_vmem_destroy(sy_vmem *arena) {
    if (!arena) return 0;
    if (atomic_load_explicit(&arena->calls, memory_order_relaxed)) return fail_with(EBUSY);
    if (!sy_quantum_suspend(arena)) return fail_with(EBUSY);
    if (has_segments(arena)) {
        sy_quantum_resume(arena);
        return fail_with(EBUSY);
    }
    sy_quantum_close(arena);
    sy_vmem_close(arena);
    sy_pages_give(arena, bytes_of_arena());
    return 0;
}

int sy_vmem_add(sy_vmem *arena, uintptr_t start, size_t size) {
    if (!valid_range(arena->quantum, start, size)) return fail_with(EINVAL);
    int error = 0;
    sy_lock_acquire(&arena->lock);
    bool ready = sy_tags_ready(arena, SY_TAGS_PER_SPAN);
    if (sy_span_overlaps(arena, start, size))
        error = EEXIST;
    else if (!ready || size > SIZE_MAX - arena->total)
        error = ENOMEM;
    else
        sy_span_insert(arena, start, size, false);
    sy_lock_release(&arena->lock);
    return error ? fail_with(error) : 0;
}

/* ---- allocation ---- */

/* The arenas whose import or release function this thread is calling. */
static SY_TLS sy_own own_calls;

static void begin_call(sy_vmem *arena) {
    sy_own_replace(&own_calls, NULL, arena);
    atomic_fetch_add_explicit(&arena->calls, 1, memory_order_relaxed);
}

static void end_call(sy_vmem *arena) {
    atomic_fetch_sub_explicit(&arena->calls, 1, memory_order_relaxed);
    sy_own_replace(&own_calls, arena, NULL);
}

static int call_import(sy_vmem *arena, size_t size, uintptr_t *start, size_t *got) {
    begin_call(arena);
    SY_CALLBACK(call, "import function", "arena", arena->name, false);
    int result = arena->import(arena->source, arena->arg, size, start, got);
    call.returned = true;
    end_call(arena);
    return result;
}

static void call_release(sy_vmem *arena, uintptr_t start, size_t size) {
    begin_call(arena);
    SY_CALLBACK(call, "release function", "arena", arena->name, false);
    arena->release(arena->source, arena->arg, start, size);
    call.returned = true;
    end_call(arena);
}

void sy_leavings_settle(sy_vmem *arena, sy_leavings *leavings) {
    if (SY_LIKELY(!leavings->any)) return;
    int error = errno;
    sy_tag_blocks_release(leavings->blocks);
    if (leavings->part) sy_pages_give(leavings->part, leavings->part_bytes);
    if (leavings->span) call_release(arena, leavings->span_start, leavings->span_size);
    errno = error;
    *leavings = (sy_leavings){0};
}

/* Takes the request from a free segment; the lock is held. */
static void take_segment(sy_vmem *arena, const sy_request *request, sy_boundary *free,
                         uintptr_t value) {
    SY_HOLDS(&arena->lock);
    sy_boundary *taken = sy_segment_carve(arena, free, value, request->size);
    if (request->fit != SY_VMEM_NEXT) return;
    arena->rotor_set = true;
    arena->rotor = value + (request->size - 1);
    arena->rotor_tag = taken;
}

/* Serves the request from a free segment. 0, or -1 with errno: ENOMEM if there is no memory for
 * tags, EAGAIN if no free segment serves. */
static int serve_here(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    int error = 0;
    sy_lock_acquire(&arena->lock);
    sy_table_ready(arena);
    if (SY_LIKELY(sy_tags_ready(arena, SY_TAGS_PER_SPLIT))) {
        sy_boundary *free = sy_fit_find(arena, request, value);
        if (SY_LIKELY(free != NULL))
            take_segment(arena, request, free, *value);
        else
            error = EAGAIN;
    } else {
        error = ENOMEM;
    }
    sy_lock_release(&arena->lock);
    return error ? fail_with(error) : 0;
}

typedef enum sy_import_result { SERVED, NOTHING_TO_IMPORT, OF_NO_USE } sy_import_result;

/* Adds an imported span, and serves the request from it. False: the span cannot be used, and is to
 * be released. */
static bool add_and_serve(sy_vmem *arena, const sy_request *request, uintptr_t start, size_t size,
                          uintptr_t *value) {
    bool served = false;
    if (!valid_range(arena->quantum, start, size)) return false;
    if (!sy_request_fits(request, start, start + (size - 1), value)) return false;
    sy_lock_acquire(&arena->lock);
    if (sy_tags_ready(arena, SY_TAGS_MOST) && size <= SIZE_MAX - arena->total &&
        !sy_span_overlaps(arena, start, size)) {
        sy_boundary *free = sy_span_insert(arena, start, size, true);
        served = sy_fit_in(arena, request, free, value);
        take_segment(arena, request, free, *value);
    }
    sy_lock_release(&arena->lock);
    return served;
}

/* Serves the request from a new span. A span that the source gives is used at once, or else given
 * back. */
static sy_import_result serve_by_import(sy_vmem *arena, const sy_request *request,
                                        uintptr_t *value) {
    if (!arena->import) return NOTHING_TO_IMPORT;
    size_t size = request->ample ? request->ample : request->size;
    if (size < arena->import_min && !sy_vmem_round(arena, arena->import_min, &size))
        return NOTHING_TO_IMPORT;
    uintptr_t start = 0;
    size_t got = size;
    if (call_import(arena, size, &start, &got) != 0) return NOTHING_TO_IMPORT;
    if (got >= size && add_and_serve(arena, request, start, got, value)) return SERVED;
    call_release(arena, start, got);
    return OF_NO_USE;
}

/* Drains the quantum caches, and serves the request from a free segment or, since the drain may
 * have given spans back to the source, by another import. */
static bool serve_after_drain(sy_vmem *arena, const sy_request *request, uintptr_t *value,
                              bool import) {
    sy_vmem_drain(arena);
    return serve_here(arena, request, value) == 0 ||
           (import && serve_by_import(arena, request, value) == SERVED);
}

/* Serves a request for which no free segment was found at first: by an import, by a search through
 * all free segments, or after a drain. */
static bool serve_otherwise(sy_vmem *arena, const sy_request *request, uintptr_t *value,
                            bool drain) {
    sy_request patient = *request;
    patient.patience = SY_PATIENCE_WITHOUT_END;
    sy_import_result result = serve_by_import(arena, request, value);
    if (result == SERVED) return true;
    if (request->patience < SY_PATIENCE_WITHOUT_END && serve_here(arena, &patient, value) == 0)
        return true;
    return drain && arena->cached_sizes &&
           serve_after_drain(arena, &patient, value, result == NOTHING_TO_IMPORT);
}

static void count_failure(sy_vmem *arena) {
    sy_lock_acquire(&arena->lock);
    arena->failures++;
    sy_lock_release(&arena->lock);
}

int sy_vmem_serve(sy_vmem *arena, const sy_request *request, uintptr_t *value, bool drain) {
    int error = errno;
    if (SY_UNLIKELY(serve_here(arena, request, value) != 0)) {
        if (errno == ENOMEM) return -1;
        if (!serve_otherwise(arena, request, value, drain)) {
            count_failure(arena);
            return fail_with(ENOMEM);
        }
    }
    errno = error;
    return 0;
}

/* Not inlined: it would come into the fast path of quantum caches where all sources are compiled as
 * one file. */
__attribute__((noinline)) int sy_vmem_xalloc(sy_vmem *arena, size_t size,
                                             const sy_vmem_constraints *constraints,
                                             sy_vmem_fit fit, uintptr_t *value) {
    sy_request request;
    uintptr_t found;
    if (sy_request_make(arena, size, constraints, fit, &request) != 0) return -1;
    if (sy_vmem_serve(arena, &request, &found, true) != 0) return -1;
    *value = found;
    return 0;
}

/* ---- free ---- */

void sy_vmem_fault(const sy_vmem *arena, uintptr_t value, size_t size, size_t found_size) {
    const sy_fault fault = {
        .kind = found_size ? SY_FAULT_SEGMENT_SIZE : SY_FAULT_NOT_ALLOCATED,
        .cache = arena->name,
        .object_size = size,
        .address = (const void *)value,
        .found_size = found_size,
    };
    sy_fault_raise(&fault);
}

/* The allocated segment [value, value + size); NULL: there is none. *found_size becomes the size of
 * the segment that starts at the value, 0: none does. The lock is held. */
static sy_boundary *find_exact(sy_vmem *arena, uintptr_t value, size_t size, size_t *found_size) {
    SY_HOLDS(&arena->lock);
    size_t rounded;
    sy_boundary *tag = sy_table_find(arena, value);
    *found_size = tag ? tag->size : 0;
    return tag && sy_vmem_round(arena, size, &rounded) && rounded == tag->size ? tag : NULL;
}

int sy_vmem_xfree(sy_vmem *arena, uintptr_t value, size_t size) {
    sy_leavings leavings = {0};
    size_t found_size;
    sy_lock_acquire(&arena->lock);
    sy_boundary *tag = find_exact(arena, value, size, &found_size);
    if (SY_LIKELY(tag != NULL)) sy_segment_free(arena, tag, &leavings);
    sy_lock_release(&arena->lock);
    if (SY_UNLIKELY(!tag)) {
        sy_vmem_fault(arena, value, size, found_size);
        return fail_with(EINVAL);
    }
    sy_leavings_settle(arena, &leavings);
    return 0;
}

int sy_vmem_resize(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size) {
    sy_leavings leavings = {0};
    size_t rounded, found_size;
    if (!sy_vmem_round(arena, new_size, &rounded)) return fail_with(EINVAL);
    sy_lock_acquire(&arena->lock);
    bool ready = sy_tags_ready(arena, 1);
    sy_boundary *tag = find_exact(arena, value, size, &found_size);
    bool done = ready && tag && sy_segment_resize(arena, tag, rounded, &leavings);
    sy_lock_release(&arena->lock);
    if (!tag) {
        sy_vmem_fault(arena, value, size, found_size);
        return fail_with(EINVAL);
    }
    sy_leavings_settle(arena, &leavings);
    return done ? 0 : fail_with(ENOMEM);
}

int sy_vmem_split(sy_vmem *arena, uintptr_t value, size_t first) {
    sy_lock_acquire(&arena->lock);
    sy_table_ready(arena);
    bool ready = sy_tags_ready(arena, 1);
    if (ready) sy_segment_split(arena, sy_table_find(arena, value), first);
    sy_lock_release(&arena->lock);
    return ready ? 0 : -1;
}

/* ---- fork ---- */

void sy_vmem_each_arena(void (*visit)(sy_vmem *arena, void *arg), void *arg) {
    sy_lock_acquire(&list_lock);
    for (sy_vmem *arena = arenas; arena; arena = arena->next) visit(arena, arg);
    sy_lock_release(&list_lock);
}

static void hold_arenas(void) {
    if (!sy_lock_hold(&list_lock)) return;
    for (sy_vmem *arena = arenas; arena; arena = arena->next) sy_lock_hold(&arena->lock);
}

static void drop_arenas(void) {
    if (!sy_lock_has(&list_lock)) return;
    for (sy_vmem *arena = arenas; arena; arena = arena->next)
        if (sy_lock_drop(&arena->lock)) arena->torn = true;
    sy_lock_drop(&list_lock);
}

/* Another thread may have been changing the list too: one store links or unlinks an arena. This is
 * done at once, because the other parts use arenas when they recover. The list's lock is not taken:
 * it may be held for work that the fork interrupted, and the child has one thread. */
static void inherit_arenas(void) {
    sy_vmem *previous = NULL;
    for (sy_vmem *arena = arenas; arena; previous = arena, arena = arena->next) {
        arena->previous = previous;
        atomic_store_explicit(&arena->calls, sy_own_times(&own_calls, arena), memory_order_relaxed);
        if (arena->torn) sy_vmem_recover(arena);
    }
}

const sy_part sy_arenas_part = {
    .hold = hold_arenas, .drop = drop_arenas, .inherit = inherit_arenas};

/* ---- for tools that read the process (base/shape.h) ---- */

#define VMEM_VARIABLES(row) row(sy_arenas, arenas)

static const sy_shape_row vmem_shape_rows[] = {SY_SHAPE_FIELD(sy_vmem, sy_vmem, next),
                                               SY_SHAPE_FIELD(sy_vmem, sy_vmem, first),
                                               SY_SHAPE_FIELD(sy_vmem, sy_vmem, blocks),
                                               SY_SHAPE_FIELD(sy_vmem, sy_vmem, part),
                                               SY_SHAPE_TYPE(sy_vmem, sy_vmem),
                                               SY_SHAPE_FIELD(sy_boundary, sy_boundary, next),
                                               SY_SHAPE_FIELD(sy_boundary, sy_boundary, block),
                                               SY_SHAPE_FIELD(sy_tag_block, sy_tag_block, next),
                                               SY_SHAPE_FIELD(sy_tag_block, sy_tag_block, bytes),
                                               SY_SHAPE_CONSTANT(SY_TABLE_PARTS),
                                               SY_SHAPE_CONSTANT(SY_BUCKETS),
                                               VMEM_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const vmem_shape_addresses[] = {VMEM_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_vmem_shape = SY_SHAPE_PART(vmem_shape_rows, vmem_shape_addresses);
