/*
 * large.c: spans too long for a chunk. What is freed is kept until a trim. A span of about the
 * size is used again as it is, without a system call. For another size, the memory of kept spans is
 * moved to a new one: page tables change hands, in a thousandth of the time of page faults.
 */
#include "chunk/large.h"

#include <errno.h>

#include "base/bits.h"
#include "chunk/headers.h"
#include "os/os.h"

enum {
    KEPT_MAX = 32,           /* spans */
    KEPT_BYTES = 64 << 20,   /* of all that are kept, or */
    KEPT_PART = 8,           /* this part of what is in use, if that is more */
    SPARE_PART = 8,          /* of a span: so much longer than needed it may be */
    PIECE_BYTES = 256 << 10, /* whole multiples of it are moved, */
    PIECES_MAX = 16384,      /* or of more, where so many are not all that is in use */

    /* Words of the bitmap, of which a span needs the first alone. */
    RESERVED = SY_SLAB_BITMAP_WORDS - 1, /* bytes of the segment */
    MEMORY = SY_SLAB_BITMAP_WORDS - 2,
    AGE = SY_SLAB_BITMAP_WORDS - 3,   /* of one that is kept */
    MOVED = SY_SLAB_BITMAP_WORDS - 4, /* not 0: some of it was moved here: it is several mappings */

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

/* The longest kept span that is used as it is: hardly longer than needed, if what is in longer ones
 * can be moved. One with room to grow will need the rest. */
static size_t longest_fit(const sy_memory *memory, size_t bytes, size_t room) {
    if (room > bytes) return room * 2;
    return bytes + (memory->systems && sy_os_can_move() ? bytes / SPARE_PART : bytes);
}

/* The smallest kept span that will do. NULL: none. */
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

/* ---- memory of kept spans moves to new ones ---- */

/* Address space that holds no memory, and the descriptor. */
static void give_address(sy_memory *memory, sy_slab *span) {
    sy_memory_give(memory, span->start, reserved_bytes(span));
    sy_descriptor_give(span);
}

/* The smallest kept span that has so much, or the largest; it is kept no longer. NULL: none. */
static sy_slab *take_source(sy_memory *memory, size_t wanted) {
    sy_lock_acquire(&memory->large_lock);
    sy_slab *best = memory->kept;
    for (sy_slab *span = best; span; span = span->next) {
        bool enough = span->bytes >= wanted, smaller = span->bytes < best->bytes;
        if (best->bytes >= wanted ? enough && smaller : !smaller) best = span;
    }
    if (best) unlink_kept(memory, best);
    sy_lock_release(&memory->large_lock);
    return best;
}

/* Keeps what is left of it, if there is any. */
static void give_source(sy_memory *memory, sy_slab *source) {
    if (source->bytes == 0) {
        give_address(memory, source);
        return;
    }
    sy_lock_acquire(&memory->large_lock);
    link_kept(memory, source);
    sy_lock_release(&memory->large_lock);
}

/* In what pieces memory is moved; 0: in none. Each piece can be a mapping, of which a process can
 * have 65,530. */
static size_t piece_bytes(sy_memory *memory) {
    if (!memory->systems || !sy_os_can_move()) return 0;
    sy_lock_acquire(&memory->large_lock);
    size_t used = memory->used_bytes, piece = memory->kept ? PIECE_BYTES : 0;
    sy_lock_release(&memory->large_lock);
    while (piece && used / piece > PIECES_MAX) piece *= 2;
    return piece <= SY_CHUNK_BYTES ? piece : 0;
}

/*
 * Moves the memory of kept spans to a new one, from the ends of the kept ones to its start and on:
 * whether anything was moved. Whole pieces can be longer than what the one has and the other needs,
 * since both are committed to the end of 4 MiB; what is too much goes.
 */
static bool gather(sy_memory *memory, sy_slab *span) {
    const size_t piece = piece_bytes(memory);
    size_t wanted = piece ? sy_round_up(span->bytes, piece) : 0, have = 0;
    while (have < wanted) {
        sy_slab *source = take_source(memory, wanted - have);
        if (!source) break;
        size_t whole = sy_round_up(source->bytes, piece);
        size_t bytes = whole < wanted - have ? whole : wanted - have;
        char *from = (char *)source->start + whole - bytes;
        bool moved = sy_os_move(from, (char *)span->start + have, bytes) == 0;
        if (moved) {
            have += bytes;
            source->bytes = whole - bytes;
            span->bits[MOVED] = 1;
        }
        give_source(memory, source);
        if (!moved) break;
    }
    if (have > span->bytes &&
        sy_os_discard((char *)span->start + span->bytes, have - span->bytes) != 0)
        span->bytes = have;
    return have;
}

sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    uintptr_t start;
    size_t reserved;
    sy_slab *span = take_kept(memory, bytes, align, room);
    if (span) {
        uint64_t moved = span->bits[MOVED];
        describe_span(span, memory, span->start, span->bytes, reserved_bytes(span));
        span->bits[MOVED] = moved;
        sy_map_set_owner(span->start, reserved_bytes(span), span);
        *clean = false;
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
    bool dirty = room <= bytes && gather(memory, span);
    *clean = memory->systems && !dirty;
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes += span->bytes;
    sy_lock_release(&memory->large_lock);
    sy_map_set_owner(start, reserved, span);
    return span;
}

bool sy_large_move(const sy_slab *from, sy_slab *to, size_t bytes) {
    if (!sy_large_memory(from)->systems || !sy_large_memory(to)->systems) return false;
    to->bits[MOVED] = 1;
    return sy_os_move((void *)from->start, (void *)to->start, bytes) == 0;
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
    /* If the mappings cannot become one, the address space may be another's. */
    if (span->bits[MOVED] && sy_os_join((void *)span->start, reserved_bytes(span)) != 0)
        sy_descriptor_give(span);
    else
        give_address(memory, span);
    return gone ? ALL_WENT : ADDRESS_WENT;
}

/* Gives the end of a long span back, and keeps the rest; false: all stays. */
static bool shorten(sy_memory *memory, sy_slab *span, size_t bytes, sy_age age) {
    char *rest = (char *)span->start + span->bytes - bytes;
    bool gone = sy_memory_discard(memory, rest, bytes) == 0;
    if (gone) span->bytes -= bytes;
    span->bits[AGE] = gone ? age : STUCK;
    sy_lock_acquire(&memory->large_lock);
    link_kept(memory, span);
    sy_lock_release(&memory->large_lock);
    return gone;
}

/* The largest of the kept spans if there is too much, the smallest if there are too many, and the
 * bytes that are too many; NULL: neither. The lock is held. */
static sy_slab *find_surplus(const sy_memory *memory, size_t *bytes) {
    size_t part = sy_round_down(memory->used_bytes / KEPT_PART, SY_UNIT_BYTES);
    size_t most = part > KEPT_BYTES ? part : KEPT_BYTES;
    bool much = memory->kept_bytes > most;
    if (!much && memory->kept_count <= KEPT_MAX) return NULL;
    sy_slab *worst = memory->kept;
    for (sy_slab *span = worst->next; span; span = span->next)
        if (much ? span->bytes > worst->bytes : span->bytes < worst->bytes) worst = span;
    *bytes = much ? memory->kept_bytes - most : worst->bytes;
    return worst;
}

/* Gives back what is too much of it, or all if that is as much; false: it stays. */
static bool give_back(sy_memory *memory, sy_slab *span, size_t surplus) {
    if (memory->systems && surplus < span->bytes)
        return shorten(memory, span, surplus, (sy_age)span->bits[AGE]);
    return release_span(memory, span) != STAYS;
}

/* Keeps the span, and gives back what is too much then. What cannot be given back stays. */
void sy_large_give(sy_slab *span) {
    sy_memory *memory = sy_large_memory(span);
    sy_slab *gone;
    size_t surplus;
    sy_map_set_owner(span->start, reserved_bytes(span), NULL);
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes -= span->bytes;
    link_kept(memory, span);
    sy_lock_release(&memory->large_lock);
    do {
        sy_lock_acquire(&memory->large_lock);
        gone = find_surplus(memory, &surplus);
        if (gone) unlink_kept(memory, gone);
        sy_lock_release(&memory->large_lock);
    } while (gone && give_back(memory, gone, surplus));
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

static void release_part(sy_memory *memory, sy_slab *span, size_t *bytes) {
    size_t held = span->bytes;
    if (memory->systems && held > (size_t)2 * STEP_BYTES) {
        if (shorten(memory, span, STEP_BYTES, AGED)) *bytes += STEP_BYTES;
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
