/*
 * large.c: takes, resizes and gives back spans that are too long for a chunk, and releases those
 * that are kept for reuse.
 *
 * A freed span is kept, with its memory, until a trim. A new span gets its memory in one of four
 * ways, the cheapest first:
 *
 *     take_kept      a kept span of about the size, as it is: no system call
 *     fill_new       a new segment, and the memory of kept spans moved to its end. A move changes
 *                    page tables only; it takes about a thousandth of the time of the page faults
 *     (chunk.c)      memory of free units, moved to its end
 *     (the system)   a new segment, and page faults as it is used; or huge pages ahead of use, if
 *                    the program writes its spans densely
 *
 * What a span grows by gets memory of kept spans too (fill_grown), and so do chunks
 * (sy_large_lend).
 */
#include "chunk/large.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "chunk/gauge.h"
#include "chunk/headers.h"
#include "chunk/huge.h"
#include "chunk/pressure.h"
#include "os/os.h"

enum {
    /* When a span is given back, at most 32 stay kept, of at most 64 MiB, or of an eighth of the
     * bytes in use if that is more. */
    KEPT_MAX = 32,
    KEPT_BYTES = 64 << 20,
    KEPT_PART = 8,

    SPARE_PART = 8, /* a kept span that is at most an eighth too long is used whole */

    /* Memory moves in pieces of 256 KiB times a power of two, chosen so that 8,192 pieces are at
     * least as long as all that is in use. Each piece can be a separate mapping, and Linux allows a
     * process 65,530 mappings. */
    PIECE_BYTES = 256 << 10,
    PIECES_MAX = 8192,

    STEP_BYTES = 256 << 10, /* released in one step of a trim */

    /* Huge pages ahead of use begin with a quarter of the bytes in use from which caches get them.
     * A span gets at most a quarter of the bytes in use, and at most 32 MiB. */
    AHEAD_START = 4,
    AHEAD_PART = 4,
    AHEAD_BYTES = 32 << 20,
};

sy_memory *sy_large_memory(const sy_slab *span) { return span->large.memory; }

static void describe_span(sy_slab *span, sy_memory *memory, uintptr_t start, size_t bytes,
                          size_t reserved, bool moved) {
    *span = (sy_slab){.start = start, .bytes = bytes};
    span->large = (sy_large){.memory = memory, .reserved = reserved, .moved = moved};
}

static void unlink_kept(sy_memory *memory, sy_slab *span) {
    sy_slab **link = &memory->kept;
    while (*link != span) link = &(*link)->next;
    *link = span->next;
    memory->kept_count--;
    memory->kept_bytes -= span->bytes;
}

static void keep_span(sy_memory *memory, sy_slab *span) {
    sy_lock_acquire(&memory->large_lock);
    span->next = memory->kept;
    sy_fork_order();
    memory->kept = span;
    memory->kept_count++;
    memory->kept_bytes += span->bytes;
    sy_lock_release(&memory->large_lock);
}

void sy_large_recover(sy_memory *memory) {
    memory->kept_bytes = 0;
    memory->kept_count = 0;
    for (const sy_slab *span = memory->kept; span; span = span->next) {
        memory->kept_count++;
        memory->kept_bytes += span->bytes;
    }
}

/* The length of the longest kept span that is used whole for a span of `bytes` with room to grow to
 * `room`. If memory can be moved, a longer span is better used as a source of memory. */
static size_t longest_fit(const sy_memory *memory, size_t bytes, size_t room) {
    if (room > bytes) return room * 2;
    return bytes + (memory->systems && sy_os_can_move() ? bytes / SPARE_PART : bytes);
}

/* Takes the smallest kept span that fits out of the kept ones. NULL: none fits. */
static sy_slab *take_kept(sy_memory *memory, size_t bytes, size_t align, size_t room) {
    const size_t most = longest_fit(memory, bytes, room);
    sy_slab *best = NULL;
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next) {
        if (span->bytes < bytes || span->bytes > most || span->start & (align - 1)) continue;
        if (!best || span->bytes < best->bytes) best = span;
    }
    if (best) {
        unlink_kept(memory, best);
        memory->used_count++;
        memory->used_bytes += best->bytes;
    }
    sy_lock_release(&memory->large_lock);
    return best;
}

/* Takes a segment for `bytes`, with room to grow to `room` if there is so much address space.
 * *reserved: the length of the segment. */
static bool take_segment(sy_memory *memory, size_t bytes, size_t align, size_t room,
                         uintptr_t *start, size_t *reserved) {
    size_t least = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (align < SY_CHUNK_BYTES) align = SY_CHUNK_BYTES;
    *reserved = sy_round_up(room, SY_CHUNK_BYTES);
    if (*reserved > least && sy_memory_take(memory, *reserved, align, start)) return true;
    *reserved = least;
    return sy_memory_take(memory, least, align, start);
}

/* Commits up to the end of the last 4 MiB, so that neighbouring spans are one mapping. */
static int commit_span(const sy_memory *memory, uintptr_t start, size_t bytes) {
    return sy_memory_commit(memory, start, sy_round_up(bytes, SY_CHUNK_BYTES));
}

/* ---- moving the memory of kept spans ---- */

/* Forgets a span in whose segment a move has lost addresses: they may be other memory of the
 * program now. `moved` bytes at the start are still the span's, and their memory goes back to the
 * system. */
static void forget_lost(sy_slab *span, size_t moved) {
    if (moved) sy_os_discard((void *)span->start, moved);
    sy_descriptor_give(span);
}

/* Gives back the address space of a span that has no memory, and its descriptor. A span with moved
 * memory has many mappings, which become one here. If that fails, another thread may have got the
 * addresses, so they are not given back. */
static void give_address(sy_memory *memory, sy_slab *span) {
    if (!span->large.moved || sy_os_decommit((void *)span->start, span->large.reserved) == 0)
        sy_memory_give(memory, span->start, span->large.reserved);
    sy_descriptor_give(span);
}

/* The smallest kept span of at least `wanted` bytes, or else the largest. NULL: none is kept. The
 * caller holds the lock. */
static sy_slab *find_source(const sy_memory *memory, size_t wanted) {
    SY_HOLDS(&memory->large_lock);
    sy_slab *best = memory->kept;
    for (sy_slab *span = best; span; span = span->next) {
        bool enough = span->bytes >= wanted, smaller = span->bytes < best->bytes;
        if (best->bytes >= wanted ? enough && smaller : !smaller) best = span;
    }
    return best;
}

/* Takes this span out of the kept ones, unless it has fewer than `least` bytes. */
static sy_slab *take_source(sy_memory *memory, size_t wanted, size_t least) {
    sy_lock_acquire(&memory->large_lock);
    sy_slab *source = find_source(memory, wanted);
    if (source && source->bytes < least) source = NULL;
    if (source) unlink_kept(memory, source);
    sy_lock_release(&memory->large_lock);
    return source;
}

/* The length of the pieces in which memory moves now. 0: it cannot be moved. *kept: the bytes that
 * are kept. */
static size_t piece_bytes(sy_memory *memory, size_t *kept) {
    *kept = 0;
    if (!memory->systems || !sy_os_can_move()) return 0;
    size_t units = atomic_load_explicit(&memory->units_used, memory_order_relaxed);
    sy_lock_acquire(&memory->large_lock);
    size_t used = memory->used_bytes + units * SY_UNIT_BYTES, piece = PIECE_BYTES;
    *kept = memory->kept_bytes;
    sy_lock_release(&memory->large_lock);
    while (used / piece > PIECES_MAX) piece *= 2;
    return piece <= SY_CHUNK_BYTES ? piece : 0;
}

/* The bytes at the start of a new span that get no kept memory, if it moves in such pieces. If the
 * span gets huge pages, these bytes are whole huge pages and a gauge, and some bytes stay kept. */
static size_t fresh_bytes(const sy_slab *span, size_t kept, size_t piece) {
    if (kept >= span->bytes) return 0;
    size_t fresh = span->bytes - kept;
    if (span->large.ahead) fresh = sy_round_up(fresh, SY_HUGE_BYTES) + SY_GAUGE_BYTES;
    return sy_round_up(fresh < span->bytes ? fresh : span->bytes, piece);
}

/* Moves `wanted` bytes of memory, whole pieces, from the ends of kept spans to the range of a span
 * that begins at its byte `at`. Returns how many bytes have moved. *lost: see sy_os_move. */
static size_t gather(sy_memory *memory, sy_slab *span, size_t at, size_t wanted, size_t piece,
                     bool *lost) {
    size_t have = 0;
    *lost = false;
    while (have < wanted) {
        sy_slab *source = take_source(memory, wanted - have, 0);
        if (!source) break;
        size_t whole = sy_round_up(source->bytes, piece);
        size_t bytes = whole < wanted - have ? whole : wanted - have;
        char *from = (char *)source->start + whole - bytes;
        size_t moved = sy_os_move(from, (char *)span->start + at + have, bytes, lost);
        have += moved;
        if (moved) span->large.moved = true;
        if (moved == bytes) source->bytes = whole - bytes; /* else it has a part without memory */
        if (source->bytes)
            keep_span(memory, source);
        else
            give_address(memory, source);
        if (moved < bytes) break;
    }
    return have;
}

/*
 * Moves memory of kept spans to the end of a new span. *dirty: the bytes of memory that the span
 * has then. False: addresses of the span were lost, and it is gone.
 *
 * Only whole pieces move. So the last piece of a source may be longer than the source, and the last
 * piece that moves may reach beyond the new span: both are committed up to a multiple of 4 MiB. The
 * memory beyond the new span is discarded. If that fails, the span becomes longer, so that its
 * `bytes` still cover all memory in its segment.
 */
static bool fill_new(sy_memory *memory, sy_slab *span, size_t *dirty) {
    size_t kept;
    bool lost;
    const size_t piece = piece_bytes(memory, &kept);
    *dirty = 0;
    if (!piece) return true;
    const size_t fresh = fresh_bytes(span, kept, piece);
    const size_t wanted = sy_round_up(span->bytes, piece) - fresh;
    const size_t have = gather(memory, span, fresh, wanted, piece, &lost);
    const size_t end = fresh + have;
    if (lost) forget_lost(span, end);
    if (lost || !have) return !lost;
    span->large.fresh = fresh;
    if (end > span->bytes &&
        sy_os_discard((char *)span->start + span->bytes, end - span->bytes) != 0)
        span->bytes = end;
    *dirty = end < span->bytes ? have : span->bytes - fresh;
    return true;
}

/*
 * Moves memory of kept spans to a span that grows or that an object moves to: to the part from
 * `from` to `to`, which holds no memory yet, its front first, since an object that grows fills its
 * span from the front on. Whole pieces of the part get memory. False: addresses of the part were
 * lost. The span keeps what is before `from`, cannot grow any more, and is not used again.
 */
static bool fill_grown(sy_memory *memory, sy_slab *span, size_t from, size_t to) {
    size_t kept;
    bool lost;
    const size_t piece = piece_bytes(memory, &kept);
    if (!piece) return true;
    const size_t at = sy_round_up(from, piece), end = sy_round_down(to, piece);
    size_t wanted = end > at ? end - at : 0;
    if (wanted > kept) wanted = sy_round_down(kept, piece);
    const size_t have = gather(memory, span, at, wanted, piece, &lost);
    sy_pressure_note_return(have); /* it will be noted as growth, with the rest of the part */
    if (!lost) return true;
    span->large.lost = true;
    span->large.fresh = at + have;
    return false;
}

void sy_large_keep(sy_memory *memory, sy_slab *span, uintptr_t start, size_t bytes, bool pieces) {
    describe_span(span, memory, start, bytes, SY_CHUNK_BYTES, pieces);
    keep_span(memory, span);
}

size_t sy_large_piece(sy_memory *memory) {
    size_t kept;
    return piece_bytes(memory, &kept);
}

size_t sy_large_fresh(const sy_slab *span, size_t *least) {
    *least = span->large.ahead ? SY_HUGE_BYTES + SY_GAUGE_BYTES : 0;
    return span->large.fresh;
}

void sy_large_set_fresh(sy_slab *span, size_t bytes, bool lost) {
    if (bytes < span->large.fresh) span->large.moved = true;
    span->large.fresh = bytes;
    if (lost) span->large.lost = true;
}

bool sy_large_fill(sy_slab *span, size_t from) {
    return fill_grown(sy_large_memory(span), span, from, span->large.fresh);
}

/* ---- memory of kept spans for chunks ---- */

bool sy_large_keeps(sy_memory *memory, size_t least) {
    if (!memory->systems) return false;
    sy_lock_acquire(&memory->large_lock);
    const sy_slab *span = find_source(memory, least);
    bool keeps = span && span->bytes >= least;
    sy_lock_release(&memory->large_lock);
    return keeps;
}

/* Of a span whose first 4 MiB were lent: keeps the rest, or gives its address space back if it has
 * no memory. */
static void keep_rest(sy_memory *memory, sy_slab *span) {
    if (span->large.reserved == SY_CHUNK_BYTES) {
        sy_descriptor_give(span);
        return;
    }
    span->start += SY_CHUNK_BYTES;
    span->large.reserved -= SY_CHUNK_BYTES;
    bool any = span->bytes > SY_CHUNK_BYTES;
    if (any) span->bytes -= SY_CHUNK_BYTES;
    if (any)
        keep_span(memory, span);
    else
        give_address(memory, span);
}

bool sy_large_lend(sy_memory *memory, size_t least, uintptr_t *start, size_t *bytes, bool *pieces) {
    sy_slab *span = memory->systems ? take_source(memory, least, least) : NULL;
    if (!span) return false;
    *start = span->start;
    *bytes = span->bytes < SY_CHUNK_BYTES ? span->bytes : SY_CHUNK_BYTES;
    *pieces = span->large.moved;
    if (span->large.reserved > SY_CHUNK_BYTES &&
        !sy_memory_split(memory, span->start, SY_CHUNK_BYTES)) {
        keep_span(memory, span);
        return false;
    }
    keep_rest(memory, span);
    return true;
}

/* ---- huge pages ahead of use ----
 *
 * They hold memory before the program writes, so they pay only if it writes the whole span
 * (gauge.h). Then the last part of its fresh bytes, its gauge, has small pages. While the gauge
 * is not written, no other span gets huge pages. So at most one span has some that are not needed.
 */

/* The most bytes of a new span that may be backed with huge pages now. 0: none. */
static size_t bytes_ahead(sy_memory *memory) {
    if (!memory->systems || !sy_huge_is_ready() || !sy_pressure_is_far()) return 0;
    size_t units = atomic_load_explicit(&memory->units_used, memory_order_relaxed);
    sy_lock_acquire(&memory->large_lock);
    size_t used = memory->used_bytes + units * SY_UNIT_BYTES;
    sy_lock_release(&memory->large_lock);
    if (!sy_huge_is_allowed(used / SY_UNIT_BYTES * AHEAD_START)) return 0;
    if (!sy_gauge_look(memory, NULL)) return 0;
    return used / AHEAD_PART < AHEAD_BYTES ? used / AHEAD_PART : AHEAD_BYTES;
}

void sy_large_back_ahead(sy_slab *span) {
    sy_memory *memory = sy_large_memory(span);
    size_t fresh = span->large.fresh, ahead = span->large.ahead, done = 0;
    if (fresh < SY_HUGE_BYTES + SY_GAUGE_BYTES || !sy_huge_is_allowed(SIZE_MAX)) return;
    if (ahead > fresh - SY_GAUGE_BYTES) ahead = fresh - SY_GAUGE_BYTES;
    ahead = sy_round_down(ahead, SY_HUGE_BYTES);
    if (!sy_gauge_set(memory, span, ahead, fresh)) return;
    while (done < ahead && sy_pressure_is_far() && sy_huge_back((char *)span->start + done))
        done += SY_HUGE_BYTES;
    if (!done) sy_gauge_without_huge(memory, span);
}

/* ---- taking, moving, giving back ---- */

sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, size_t *clean) {
    uintptr_t start;
    size_t reserved;
    sy_slab *span = take_kept(memory, bytes, align, room);
    if (span) {
        describe_span(span, memory, span->start, span->bytes, span->large.reserved,
                      span->large.moved);
        sy_map_set_owner(span->start, span->large.reserved, span);
        *clean = 0;
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
    describe_span(span, memory, start, bytes, reserved, 0);
    span->large.fresh = bytes;
    bool grows = room > bytes;
    span->large.ahead = grows ? 0 : bytes_ahead(memory);
    size_t dirty = 0;
    if (!grows && !fill_new(memory, span, &dirty)) /* nothing moves from now on */
        return sy_large_take(memory, bytes, align, room, clean);
    *clean = span->bytes - dirty;
    sy_lock_acquire(&memory->large_lock);
    memory->used_count++;
    memory->used_bytes += span->bytes;
    sy_lock_release(&memory->large_lock);
    sy_map_set_owner(start, reserved, span);
    return span;
}

/* What has moved comes back by copying if the target is lost. */
bool sy_large_move(const sy_slab *from, sy_slab *to, size_t bytes) {
    bool lost = false;
    char *source = (char *)from->start, *target = (char *)to->start;
    size_t moved = 0;
    if (sy_large_memory(from)->systems && sy_large_memory(to)->systems) {
        to->large.moved = true;
        moved = sy_os_move(source, target, bytes, &lost);
    }
    if (lost) {
        memcpy(source, target, moved);
        to->large.lost = true;
        to->large.fresh = moved;
        return false;
    }
    memcpy(target + moved, source + moved, bytes - moved);
    return true;
}

typedef enum sy_release { STAYS, ADDRESS_WENT, ALL_WENT } sy_release;

/* Returns the memory of a span to the system, and its address space to the arena. If the system
 * refuses to take the memory, the span is kept, whatever the limits: the next user of its addresses
 * would not read zeros. */
static sy_release release_span(sy_memory *memory, sy_slab *span) {
    bool gone = sy_memory_empty(memory, (void *)span->start, span->bytes) == 0;
    if (!gone && memory->systems) {
        span->large.age = SY_KEPT_STUCK;
        keep_span(memory, span);
        return STAYS;
    }
    give_address(memory, span);
    return gone ? ALL_WENT : ADDRESS_WENT;
}

/* Returns the memory of the last `bytes` of a span to the system, and keeps the rest with this age.
 * False: the system refused, and the whole span is kept as STUCK. */
static bool shorten(sy_memory *memory, sy_slab *span, size_t bytes, sy_kept_age age) {
    char *rest = (char *)span->start + span->bytes - bytes;
    bool gone = sy_memory_discard(memory, rest, bytes) == 0;
    if (gone) span->bytes -= bytes;
    span->large.age = gone ? age : SY_KEPT_STUCK;
    keep_span(memory, span);
    return gone;
}

/* Takes a span out of the kept ones if these exceed a limit: the largest span if they have too many
 * bytes, the smallest if they are too many. *surplus: the bytes to give back. NULL: no limit is
 * exceeded. */
static sy_slab *take_surplus(sy_memory *memory, size_t *surplus) {
    sy_lock_acquire(&memory->large_lock);
    size_t part = sy_round_down(memory->used_bytes / KEPT_PART, SY_UNIT_BYTES);
    size_t most = part > KEPT_BYTES ? part : KEPT_BYTES;
    bool much = memory->kept_bytes > most, many = memory->kept_count > KEPT_MAX;
    sy_slab *worst = much || many ? memory->kept : NULL;
    for (sy_slab *span = worst; span; span = span->next)
        if (much ? span->bytes > worst->bytes : span->bytes < worst->bytes) worst = span;
    if (worst) {
        *surplus = much ? memory->kept_bytes - most : worst->bytes;
        unlink_kept(memory, worst);
    }
    sy_lock_release(&memory->large_lock);
    return worst;
}

/* Whether a span can give up its end alone. */
static bool can_shorten(const sy_memory *memory) {
    return memory->systems && sy_memory_discards(memory);
}

/* Releases the last `surplus` bytes of a span, or all of it if it has no more. False: nothing was
 * released. */
static bool give_surplus(sy_memory *memory, sy_slab *span, size_t surplus) {
    if (can_shorten(memory) && surplus < span->bytes)
        return shorten(memory, span, surplus, span->large.age);
    return release_span(memory, span) != STAYS;
}

/* Keeps the span, then releases memory until no limit is exceeded, or the system refuses to take
 * some. */
void sy_large_give(sy_slab *span) {
    sy_memory *memory = sy_large_memory(span);
    size_t surplus;
    sy_map_set_owner(span->start, span->large.reserved, NULL);
    sy_lock_acquire(&memory->large_lock);
    memory->used_count--;
    memory->used_bytes -= span->bytes;
    sy_lock_release(&memory->large_lock);
    if (span->large.lost) {
        forget_lost(span, span->large.fresh);
        return;
    }
    keep_span(memory, span);
    while ((span = take_surplus(memory, &surplus)) && give_surplus(memory, span, surplus)) {}
}

/* Makes the segment at least `bytes` long. False: the addresses behind it are not free, or there is
 * no memory for the map. */
static bool extend(sy_memory *memory, sy_slab *span, size_t bytes) {
    size_t reserved = span->large.reserved, more = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (more <= reserved) return true;
    if (!sy_memory_extend(memory, span->start, reserved, more)) return false;
    if (sy_map_cover(span->start + reserved, more - reserved) != 0) {
        sy_memory_shorten(memory, span->start, more, reserved);
        return false;
    }
    span->large.reserved = more;
    sy_map_set_owner(span->start + reserved, more - reserved, span);
    return true;
}

bool sy_large_resize(sy_slab *span, size_t bytes) {
    sy_memory *memory = sy_large_memory(span);
    if (bytes > SY_RUN_BYTES_MAX) return false;
    bytes = sy_round_up(bytes, SY_UNIT_BYTES);
    if (bytes <= SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES) return false; /* it belongs in a chunk */
    if (span->large.lost) return false;
    if (!extend(memory, span, bytes)) return false;
    char *start = (char *)span->start;
    if (bytes > span->bytes && commit_span(memory, span->start, bytes) != 0) return false;
    if (bytes < span->bytes && sy_memory_discard(memory, start + bytes, span->bytes - bytes) != 0)
        return true; /* the span keeps its length, so that `bytes` still covers all of its memory */
    if (bytes > span->bytes && !fill_grown(memory, span, span->bytes, bytes)) return false;
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
    memory->kept_bytes = 0;
    memory->kept_count = 0;
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

/* A kept span that this trim may release, or NULL. The caller holds the lock. */
static sy_slab *find_due(const sy_memory *memory, bool aged) {
    SY_HOLDS(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->large.age == SY_KEPT_AGED || (!aged && span->large.age == SY_KEPT_NEW))
            return span;
    return NULL;
}

static void release_part(sy_memory *memory, sy_slab *span, size_t *bytes) {
    size_t held = span->bytes;
    if (can_shorten(memory) && held > (size_t)2 * STEP_BYTES) {
        if (shorten(memory, span, STEP_BYTES, SY_KEPT_AGED)) *bytes += STEP_BYTES;
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
        if (span->large.age == SY_KEPT_STUCK) span->large.age = SY_KEPT_AGED;
    sy_lock_release(&memory->large_lock);
}

void sy_large_age(sy_memory *memory) {
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->large.age == SY_KEPT_NEW) span->large.age = SY_KEPT_AGED;
    sy_lock_release(&memory->large_lock);
}

size_t sy_large_trim(sy_memory *memory) {
    size_t bytes;
    sy_large_release_kept(memory, &bytes);
    return bytes;
}

size_t sy_large_verify(sy_memory *memory) {
    size_t count = 0, bytes = 0;
    sy_lock_acquire(&memory->large_lock);
    for (const sy_slab *span = memory->kept; span; span = span->next, count++) bytes += span->bytes;
    size_t wrong = count != memory->kept_count;
    wrong += bytes != memory->kept_bytes;
    sy_lock_release(&memory->large_lock);
    return wrong;
}

void sy_large_count(sy_memory *memory, size_t *count, size_t *used, size_t *kept_for_reuse) {
    sy_lock_acquire(&memory->large_lock);
    *count = memory->used_count;
    *used = memory->used_bytes;
    *kept_for_reuse = memory->kept_bytes;
    sy_lock_release(&memory->large_lock);
}
