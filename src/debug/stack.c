/*
 * stack.c: see stack.h. This file takes stacks in two ways, or copies them to take them later, and
 * has the table of the stacks that were taken.
 *
 * Frame pointers. Each function that keeps one has two words on the stack: the caller's frame
 * pointer and the return address. A walk from frame to frame costs about a nanosecond a frame. If a
 * function keeps no frame pointer, the walk goes wrong unnoticed: it skips that function's caller,
 * or takes a number for a frame pointer that is none. It reads only this thread's stack, above the
 * current frame, so a wrong number does no harm.
 *
 * Unwinding tables give the right stack wherever they exist, but take microseconds, unless the rows
 * of all addresses are known already (os/linux/steps.c).
 *
 * Both together. Whether a step of the walk is right depends on the return address alone: it is
 * right if the code at that address has a frame pointer set up. So if tables have confirmed a chain
 * of return addresses once, the same chain is right whenever a walk finds it again. The table of
 * stacks records for each stack whether its STEPS were confirmed, and whether its END was (the walk
 * found no next step, rather than no room for one). If a walk finds a confirmed stack, it is done.
 * If not, the stack is taken by tables too. If any code in the chain has no frame pointer, the two
 * differ: such stacks are never confirmed, and always come from tables. (Frames outside of a
 * thread's first function are not compared: ROOT_FRAMES.)
 *
 * The table.
 *
 *     | heads: a word a chain | entry | entry | ...          one reservation; an entry's number
 *          |                     ^  next |                   is its distance in units of 16 bytes
 *          +---------------------+       +--> older ones of the chain
 *
 * There are two kinds of chains: short ones, whose heads are on one page, and long ones. A short
 * chain is full when it has SHORT_CHAIN stacks, and stays so. Only stacks for which there is no
 * room in their short chain are in a long one. So a program with few stacks, as those that take
 * samples only, uses one page of heads, and one with many has short searches.
 *
 * A thread writes an entry once, and then puts it at the front of its chain by a compare-exchange
 * with release. A thread that finds the entry has read the head with acquire, or has read `next` of
 * an entry that was written before such a release. So it sees the whole entry. (The exchanges of
 * one head are a release sequence: a later one does not undo the effect of an earlier one.) `next`
 * never changes after that, and no entry is ever taken out. So there is no ABA problem, and after a
 * chain was searched, only entries in front of the old head need to be searched again. If two
 * threads add the same stack, they exchange the same head: the second exchange fails, and that
 * thread finds the entry of the first. (If the first made the short chain full, the second searches
 * the long one next.) No thread waits for another. A thread that stops in the middle, or does not
 * exist after a fork, leaves at most some bytes unused.
 */
#include "debug/stack.h"

#include <errno.h>
#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "base/shape.h"
#include "debug/options.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

/* ---- the table ---- */

enum {
    SHORT_HEADS = 1 << 9,
    SHORT_CHAIN = 4,
    HEADS = 1 << 16, /* chains of 15 entries on average, when the table is full of usual stacks */
    UNIT = 16,
};

/* A stack of 15 frames takes 136 bytes, so there is room for a million stacks (with 32 bits, 76
 * bytes and 400,000 stacks). Only a program that generates code as it runs has more, and its stacks
 * have no names to show. */
static const size_t TABLE_BYTES = SY_ADDRESS_SPACE(128, 32) << 20;

/* Committed at a time: room for thousands of stacks for one system call. */
static const size_t COMMIT_BYTES = (size_t)1 << 20;

enum { STEPS = 1, END = 2 };

typedef struct entry {
    uint32_t next; /* number of the next older entry of the chain; 0: none */
    uint32_t hash;
    uint32_t number; /* the entry's own; distinguishes entries from other memory */
    uint16_t depth;
    _Atomic uint8_t confirmed; /* STEPS, END */
    uint8_t place;             /* in a short chain: 1, 2, ... from its oldest entry; else 0 */
    const void *frames[];
} entry;

typedef struct table {
    _Atomic size_t used, committed; /* bytes, from the beginning of the table */
    _Atomic size_t count;
    _Atomic uint32_t short_heads[SHORT_HEADS];
    _Atomic uint32_t heads[HEADS];
} table;

_Static_assert(sizeof(entry) == 16, "an entry begins with two words, on either side of a unit");
_Static_assert(sizeof(table) < (size_t)1 << 20, "the first commit holds the heads");

static _Atomic(table *) stacks;

static size_t entry_bytes(size_t depth) {
    return (sizeof(entry) + depth * sizeof(void *) + UNIT - 1) / UNIT * UNIT;
}

static entry *entry_at(table *in, uint32_t number) {
    return (entry *)(void *)((char *)in + (size_t)number * UNIT);
}

/* If several threads make a table at once, all but one release theirs. */
static table *make_table(void) {
    table *made = sy_os_reserve(TABLE_BYTES, sy_os_page_size(), "slabyard stacks"), *known = NULL;
    if (!made) return NULL;
    if (sy_os_commit(made, COMMIT_BYTES) != 0) {
        sy_os_release(made, TABLE_BYTES);
        return NULL;
    }
    atomic_init(&made->used, (sizeof(table) + UNIT - 1) / UNIT * UNIT);
    atomic_init(&made->committed, COMMIT_BYTES);
    if (atomic_compare_exchange_strong_explicit(&stacks, &known, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    sy_os_release(made, TABLE_BYTES);
    return known;
}

static table *known_table(void) { return atomic_load_explicit(&stacks, memory_order_acquire); }

/* Makes the table's first `bytes` accessible. `committed` is stored after its bytes were made
 * accessible, so a thread that reads it can use them. */
static bool commit_table(table *in, size_t bytes) {
    size_t known = atomic_load_explicit(&in->committed, memory_order_acquire);
    while (known < bytes) {
        if (sy_os_commit((char *)in + known, COMMIT_BYTES) != 0) return false;
        if (atomic_compare_exchange_strong_explicit(&in->committed, &known, known + COMMIT_BYTES,
                                                    memory_order_acq_rel, memory_order_acquire))
            known += COMMIT_BYTES;
    }
    return true;
}

/* Takes room for an entry. Returns its number; 0: there is no room. */
static uint32_t take_room(table *in, size_t bytes) {
    size_t at = atomic_load_explicit(&in->used, memory_order_relaxed);
    do {
        if (bytes > TABLE_BYTES - at || !commit_table(in, at + bytes)) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&in->used, &at, at + bytes,
                                                    memory_order_acquire, memory_order_relaxed));
    return (uint32_t)(at / UNIT);
}

/* Gives room back. If another thread has taken the room behind it meanwhile, it stays unused. With
 * release: what was written there is ordered before the writes of the next user. */
static void give_room(table *in, uint32_t number, size_t bytes) {
    size_t at = (size_t)number * UNIT, end = at + bytes;
    atomic_compare_exchange_strong_explicit(&in->used, &end, at, memory_order_release,
                                            memory_order_relaxed);
}

static uint32_t hash_of(const void *const *frames, size_t depth) {
    uint64_t hash = depth;
    for (size_t i = 0; i < depth; i++) {
        hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* Searches the chain from entry `from` to before entry `to`. */
static entry *search(table *in, uint32_t from, uint32_t to, uint32_t hash,
                     const void *const *frames, size_t depth) {
    while (from != to) {
        entry *here = entry_at(in, from);
        if (here->hash == hash && here->depth == depth &&
            memcmp(here->frames, frames, depth * sizeof *frames) == 0)
            return here;
        from = here->next;
    }
    return NULL;
}

static _Atomic uint32_t *short_head(table *in, uint32_t hash) {
    return &in->short_heads[hash / HEADS % SHORT_HEADS];
}

static _Atomic uint32_t *long_head(table *in, uint32_t hash) { return &in->heads[hash % HEADS]; }

static entry *find_in_chain(table *in, const _Atomic uint32_t *head, uint32_t hash,
                            const void *const *frames, size_t depth) {
    return search(in, atomic_load_explicit(head, memory_order_acquire), 0, hash, frames, depth);
}

static entry *find_stack(const void *const *frames, size_t depth) {
    table *in = known_table();
    if (!in) return NULL;
    uint32_t hash = hash_of(frames, depth);
    entry *found = find_in_chain(in, short_head(in, hash), hash, frames, depth);
    return found ? found : find_in_chain(in, long_head(in, hash), hash, frames, depth);
}

static entry *write_entry(table *in, uint32_t hash, const void *const *frames, size_t depth) {
    uint32_t number = take_room(in, entry_bytes(depth));
    if (!number) return NULL;
    entry *made = entry_at(in, number);
    made->hash = hash;
    made->number = number;
    made->depth = (uint16_t)depth;
    atomic_init(&made->confirmed, 0);
    memcpy(made->frames, frames, depth * sizeof *frames);
    return made;
}

/* The place of a new entry in a short chain in front of `first`; 0: the chain is full. */
static uint8_t place_before(table *in, uint32_t first) {
    uint8_t taken = first ? entry_at(in, first)->place : 0;
    return taken < SHORT_CHAIN ? (uint8_t)(taken + 1) : 0;
}

/* Finds the stack in a chain, or puts it at the front of it. *made is the entry to be put there; it
 * is written when it is needed. Returns NULL if a short chain is full, or if there is no memory. */
static entry *keep_in_chain(table *in, _Atomic uint32_t *head, bool is_short, uint32_t hash,
                            const void *const *frames, size_t depth, entry **made) {
    uint32_t first = atomic_load_explicit(head, memory_order_acquire), searched = 0;
    for (;;) {
        entry *known = search(in, first, searched, hash, frames, depth);
        uint8_t place = is_short ? place_before(in, first) : 0;
        if (known || (is_short && !place)) return known;
        if (!*made) *made = write_entry(in, hash, frames, depth);
        if (!*made) return NULL;
        (*made)->place = place;
        (*made)->next = searched = first;
        if (atomic_compare_exchange_strong_explicit(head, &first, (*made)->number,
                                                    memory_order_acq_rel, memory_order_acquire)) {
            atomic_fetch_add_explicit(&in->count, 1, memory_order_relaxed);
            return *made;
        }
    }
}

static entry *keep_in(table *in, const void *const *frames, size_t depth) {
    uint32_t hash = hash_of(frames, depth);
    entry *made = NULL;
    entry *kept = keep_in_chain(in, short_head(in, hash), true, hash, frames, depth, &made);
    if (!kept) kept = keep_in_chain(in, long_head(in, hash), false, hash, frames, depth, &made);
    if (made && kept != made) give_room(in, made->number, entry_bytes(depth));
    return kept;
}

static entry *keep(const void *const *frames, size_t depth) {
    table *in = known_table();
    if (!in) in = make_table();
    return in ? keep_in(in, frames, depth) : NULL;
}

uint32_t sy_stack_keep(const void *const *frames, size_t depth) {
    int saved = errno;
    const entry *kept = keep(frames, depth);
    errno = saved;
    return kept ? kept->number : 0;
}

static size_t frames_of(uint32_t stack, const void *const **frames) {
    table *in = known_table();
    *frames = NULL;
    if (!in || stack < sizeof(table) / UNIT) return 0;
    size_t used = atomic_load_explicit(&in->used, memory_order_relaxed);
    size_t at = (size_t)stack * UNIT;
    if (at >= used) return 0;
    const entry *here = entry_at(in, stack);
    if (here->number != stack || here->depth == 0 || here->depth > SY_STACK_DEPTH_MAX ||
        entry_bytes(here->depth) > used - at || hash_of(here->frames, here->depth) != here->hash)
        return 0;
    *frames = here->frames;
    return here->depth;
}

size_t sy_stack_bytes(void) {
    table *in = known_table();
    return in ? atomic_load_explicit(&in->committed, memory_order_relaxed) : 0;
}

size_t sy_stack_count(void) {
    table *in = known_table();
    return in ? atomic_load_explicit(&in->count, memory_order_relaxed) : 0;
}

/* ---- the unwinder ---- */

/* The number of threads in the unwinder, and above it the number of forks from the first process to
 * this one. */
static _Atomic uint32_t inside;
enum { PROCESS = 1 << 16 };

static _Atomic uint32_t forks; /* forks that keep threads out of the unwinder */
static SY_TLS uint32_t own_forks;
static SY_TLS bool own_inside;         /* this thread is counted */
static SY_TLS bool parent_had_threads; /* set by the thread that forks */

uint64_t sy_stack_patience_ns = 1000000000; /* unwinding takes microseconds */

/* `entered`: what `inside` was. In a child of that process, the thread is not counted. */
static void leave_unwinder(uint32_t entered) {
    uint32_t seen = atomic_load(&inside);
    own_inside = false;
    while (seen / PROCESS == entered / PROCESS &&
           !atomic_compare_exchange_weak(&inside, &seen, seen - 1)) {}
    if (atomic_load(&forks)) sy_os_wake(&inside, 1 << 20);
}

/* Runs the body, or not: while a process forks. */
static void in_unwinder(void (*body)(void *arg), void *arg) {
    uint32_t entered = atomic_fetch_add(&inside, 1);
    own_inside = true;
    if (!atomic_load(&forks)) body(arg);
    leave_unwinder(entered);
}

/* The unwinder takes locks of its own and of the loader. A child of a fork would never get one
 * that another thread held. So a fork waits until no other thread is inside. Threads that come
 * meanwhile take no stack: they may hold locks that the fork is going to take. A thread that
 * throws an exception of the program is in the unwinder too, and is not counted (see
 * sy_os_lose_tables). */
static void await_unwinders(void) {
    parent_had_threads = sy_os_has_had_threads();
    bool burdened = own_inside || sy_lock_self.held;
    uint64_t now = sy_os_now(), end = now + (burdened ? sy_lock_patience_ns : sy_stack_patience_ns);
    own_forks++;
    atomic_fetch_add(&forks, 1);
    for (uint32_t seen; now < end; now = sy_os_now()) {
        seen = atomic_load(&inside);
        if (seen % PROCESS <= own_inside) break;
        sy_os_wait_for(&inside, seen, end - now);
    }
}

static void admit_unwinders(void) {
    own_forks--;
    atomic_fetch_sub(&forks, 1);
}

static void forget_rebuilt(void);

static void forget_unwinders(void) {
    if (parent_had_threads) sy_os_lose_tables();
    atomic_store(&forks, own_forks);
    atomic_store(&inside, (atomic_load(&inside) / PROCESS + 1) * PROCESS);
    forget_rebuilt();
}

const sy_part sy_stack_part = {
    .settle = await_unwinders, .drop = admit_unwinders, .inherit = forget_unwinders};

/* ---- taking one ---- */

/* The C library's frames outside of main, or of a thread's first function; some keep no frame
 * pointer. The walk ends at the first of them, and tables may find up to this many more (_start,
 * and what it calls before main). If the walk had ended earlier, main would be one more. */
enum { ROOT_FRAMES = 2 };

/* Largest frame of a function. A larger distance shows that a number is no frame pointer. */
static const uintptr_t FRAME_BYTES_MAX = (uintptr_t)1 << 20;

/* Has room for more frames than are kept: the frames behind the end of a walk show whether it ended
 * in the right place. */
typedef struct trace {
    size_t depth, max;
    /* The first frame of the trace is the first one behind `inner`, or with `from` the first one
     * with this return address. (The frames behind it may be on another stack, below `inner`.) */
    uintptr_t inner, from;
    const void *frames[SY_STACK_DEPTH_MAX + ROOT_FRAMES + 1];
} trace;

static void begin_trace(trace *empty, size_t max, uintptr_t inner) {
    empty->depth = 0;
    empty->max = max;
    empty->inner = inner;
    empty->from = 0;
}

static SY_TLS sy_os_bounds own_stack;
static SY_TLS uintptr_t refused_block; /* the last one that was not on the thread's stack */
static SY_TLS bool busy;

enum { BLOCK_BYTES = 16 << 10 }; /* about one answer of the system for so many bytes of stack */

bool sy_stack_is_own(uintptr_t frame) {
    if (frame >= own_stack.low && frame < own_stack.high) return true;
    uintptr_t block = frame / BLOCK_BYTES + 1;
    if (block == refused_block) return false;
    bool own = sy_os_stack(frame, &own_stack);
    if (!own) refused_block = block;
    return own;
}

/* Sanitizers do not check this function: the words that it reads may be no frame. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void walk(uintptr_t frame,
                                                                                uintptr_t high,
                                                                                trace *into) {
    const uintptr_t record = 2 * sizeof(uintptr_t);
    while (into->depth < into->max) {
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t code = sy_cpu_return_address(words[1]), outer = words[0];
        if (code == 0) return;
        into->frames[into->depth++] = (const void *)code;
        if (outer <= frame || outer - frame > FRAME_BYTES_MAX || outer % sizeof outer != 0 ||
            outer >= high || high - outer < record)
            return;
        frame = outer;
    }
}

static bool add_frame(void *arg, uintptr_t code, uintptr_t stack) {
    trace *into = arg;
    bool here = into->from ? code - into->from <= 1 : stack > into->inner;
    if (into->depth == 0 && !here) return true;
    into->frames[into->depth++] = (const void *)code;
    return into->depth < into->max;
}

static uint32_t keep_trace(const trace *taken) {
    const entry *kept = taken->depth ? keep(taken->frames, taken->depth) : NULL;
    return kept ? kept->number : 0;
}

/* What tables have to confirm of a walk, and confirm if both agree: all steps, or also the end. */
static uint8_t claims(const trace *walked) { return walked->depth == walked->max ? STEPS : END; }

static bool agree(const trace *walked, const trace *taken) {
    if (walked->depth == 0 || walked->depth > taken->depth) return false;
    if (claims(walked) == END && taken->depth - walked->depth > ROOT_FRAMES) return false;
    return memcmp(walked->frames, taken->frames, walked->depth * sizeof *walked->frames) == 0;
}

/* A confirmed END includes the STEPS. */
static bool is_confirmed(const entry *known, const trace *walked) {
    return atomic_load_explicit(&known->confirmed, memory_order_relaxed) >= claims(walked);
}

static uint32_t take_by_frames(uintptr_t frame, unsigned max) {
    trace walked;
    begin_trace(&walked, max, frame);
    walk(frame, sy_stack_is_own(frame) ? own_stack.high : 0, &walked);
    return keep_trace(&walked);
}

static void unwind_here(void *taken) { sy_os_unwind(add_frame, taken); }

/* Finds the frames by tables: with rows that are kept if that works, else with the unwinder. */
static void find_frames(trace *taken) {
    if (!taken->from && sy_stack_is_own(taken->inner) &&
        sy_os_unwind_own(taken->inner, own_stack.high, add_frame, taken))
        return;
    taken->depth = 0;
    in_unwinder(unwind_here, taken);
}

static uint32_t take_by_tables(uintptr_t frame, unsigned max, uintptr_t from) {
    trace taken;
    begin_trace(&taken, max, frame);
    taken.from = from;
    find_frames(&taken);
    return keep_trace(&taken);
}

/* Takes the stack by tables. If the walk agrees, keeps the stack as walked, so that later walks
 * find it. Without tables, keeps the walk as it is. */
static uint32_t confirm(const trace *walked, uintptr_t frame) {
    trace taken;
    if (!sy_os_has_tables()) return keep_trace(walked);
    begin_trace(&taken, walked->max + ROOT_FRAMES + 1, frame);
    find_frames(&taken);
    if (!agree(walked, &taken)) {
        if (taken.depth > walked->max) taken.depth = walked->max;
        return keep_trace(&taken);
    }
    entry *kept = keep(walked->frames, walked->depth);
    if (!kept) return 0;
    atomic_fetch_or_explicit(&kept->confirmed, claims(walked), memory_order_relaxed);
    return kept->number;
}

static uint32_t take_by_either(uintptr_t frame, unsigned max) {
    if (!sy_stack_is_own(frame)) return take_by_tables(frame, max, 0);
    trace walked;
    begin_trace(&walked, max, frame);
    walk(frame, own_stack.high, &walked);
    const entry *known = walked.depth ? find_stack(walked.frames, walked.depth) : NULL;
    if (known && is_confirmed(known, &walked)) return known->number;
    return confirm(&walked, frame);
}

/* `from`: as in a trace. If it is given, only tables work: frame pointers skip the function that a
 * signal interrupted. */
static uint32_t take_stack(uintptr_t frame, uintptr_t from, unsigned max) {
    unsigned way = atomic_load_explicit(&sy_options_now.unwind, memory_order_relaxed);
    if (max > SY_STACK_DEPTH_MAX) max = SY_STACK_DEPTH_MAX;
    if (max == 0) return 0;
    if (way == SY_UNWIND_TABLES || !sy_os_has_frames() || from)
        return take_by_tables(frame, max, from);
    return way == SY_UNWIND_FRAMES ? take_by_frames(frame, max) : take_by_either(frame, max);
}

/* Takes the stack of the frames around `frame`, unless this thread is taking one already. */
static uint32_t take_once(uintptr_t frame, uintptr_t from, unsigned max) {
    if (busy) return 0;
    int saved = errno;
    busy = true;
    uint32_t number = take_stack(frame, from, max);
    busy = false;
    errno = saved;
    return number;
}

/* The walk begins at the frame of the public function, which has to exist until the walk is done.
 * So take_once must not be a tail call: it would reuse the memory of this frame. (On x86 the two
 * words would still be in their places, on arm they would not.) */
static inline __attribute__((always_inline)) uint32_t take_here(uintptr_t from, unsigned max) {
    uint32_t number = take_once((uintptr_t)__builtin_frame_address(0), from, max);
    sy_cpu_keep_frame();
    return number;
}

static unsigned wanted_depth(void) {
    return atomic_load_explicit(&sy_options_now.stack_depth, memory_order_relaxed);
}

__attribute__((noinline)) uint32_t sy_stack_here(void) { return take_here(0, wanted_depth()); }

__attribute__((noinline)) uint32_t sy_stack_whole(void) { return take_here(0, SY_STACK_DEPTH_MAX); }

__attribute__((noinline)) uint32_t sy_stack_from(uintptr_t code) {
    return take_here(code, SY_STACK_DEPTH_MAX);
}

/* ---- copies ---- */

/*
 * A copy has the words of the stack that can be return addresses or addresses in the stack. The
 * others are left out: the unwinder needs only these, as long as it finds each frame by the stack
 * pointer or the frame pointer. It is run on a stack that is put together from the copy, in which
 * addresses in the stack are those in the new one.
 */
enum {
    COPY_SPAN = 512, /* words of the stack that are looked at, */
    COPY_WORDS = 64, /* and that are kept */
    WORD_BYTES = sizeof(uintptr_t) < 6 ? sizeof(uintptr_t) : 6, /* the others are 0 */
    STACK_MOST = 1 << 20, /* bytes of a stack that is copied: a larger one is taken at once */
    SITE_DEPTH = 8,       /* frames that make a site */
    OWN_DEPTH = 32,       /* the library's own frames, at most */
};

/* The number of the stack in place p is COPIED + p. */
static const uint32_t COPIED = UINT32_C(1) << 31;

/* Addresses below are numbers, and addresses above the kernel's. */
static const uintptr_t ADDRESS_LEAST = 64 << 10, ADDRESS_MOST = UINTPTR_MAX >> 17;

typedef struct stack_copy {
    uintptr_t code;              /* a return address; 0: there is no copy */
    uintptr_t start, end;        /* the stack pointer behind it, and the end of the stack */
    uintptr_t frame;             /* the frame pointer there */
    uint64_t of[COPY_SPAN / 64]; /* a bit for each word from `start` on: it is kept */
    unsigned char words[COPY_WORDS * WORD_BYTES];
} stack_copy;

/* A place for a copy. One thread at a time writes it. The version is odd meanwhile (and in the
 * child of a fork, if that was another thread). */
typedef struct place_of_copy {
    _Atomic uint32_t version;
    stack_copy copy;
} place_of_copy;

/* A stack that is put together. Beyond the words that were looked at it has as many zeros as the
 * thread's stack may have had bytes: a frame may be long, and unwinding goes on behind it. */
typedef struct rebuilt {
    stack_copy from;
    trace taken;
    unsigned char room[256 << 10]; /* for the functions that unwind it, and handlers of signals */
    _Alignas(16) uintptr_t words[COPY_SPAN];
    unsigned char behind[STACK_MOST];
} rebuilt;

/* The rebuilt stack lies behind the places, so that a report takes no memory: it may be written in
 * a sandbox. */
typedef struct place_table {
    rebuilt *stack;
    _Atomic bool is_rebuilding; /* a thread has it */
    uint32_t count;
    size_t bytes; /* of the table, with the rebuilt stack */
    place_of_copy of[];
} place_table;

static _Atomic(place_table *) places;

bool sy_stack_copies_here;

bool sy_stack_has_places(void) {
    return atomic_load_explicit(&places, memory_order_relaxed) != NULL;
}

size_t sy_stack_place_bytes(void) { return sy_stack_has_places() ? sizeof(place_of_copy) : 0; }

/* If several threads make a table at once, all but one release theirs. The table of stacks is made
 * too, for the same reason. */
void sy_stack_make_places(uint32_t count) {
    size_t page = sy_os_page_size();
    size_t before = sy_round_up(sizeof(place_table) + count * sizeof(place_of_copy), page);
    size_t bytes = before + sy_round_up(sizeof(rebuilt), page);
    bool own = sy_os_is_own_code((uintptr_t)sy_stack_make_places) || sy_stack_copies_here;
    if (!own || !sy_os_unwinds_rebuilt() || sy_stack_has_places()) return;
    if (!known_table() && !make_table()) return;
    place_table *made = sy_pages_take(bytes, page, "slabyard copies of stacks"), *known = NULL;
    if (!made) return;
    made->stack = (rebuilt *)(void *)((char *)made + before);
    made->count = count;
    made->bytes = bytes;
    if (!atomic_compare_exchange_strong_explicit(&places, &known, made, memory_order_acq_rel,
                                                 memory_order_relaxed))
        sy_pages_give(made, bytes);
}

static place_of_copy *place_at(uint32_t place) {
    place_table *in = atomic_load_explicit(&places, memory_order_acquire);
    return in && place < in->count ? &in->of[place] : NULL;
}

typedef bool is_object(uintptr_t word);

static _Atomic(is_object *) left_out;

void sy_stack_leave_out(is_object *object) {
    atomic_store_explicit(&left_out, object, memory_order_relaxed);
}

/* Whether the word can be a return address or an address in the stack. */
static bool is_wanted(const stack_copy *copy, is_object *object, uintptr_t word) {
    if (word < ADDRESS_LEAST || word > ADDRESS_MOST) return false;
    return word - copy->start < copy->end - copy->start || !object || !object(word);
}

/* Sanitizers do not check this function: it reads words of other functions. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void copy_words(
    stack_copy *copy) {
    const uintptr_t *from = (const uintptr_t *)copy->start;
    size_t count = (copy->end - copy->start) / sizeof *from, kept = 0;
    is_object *object = atomic_load_explicit(&left_out, memory_order_relaxed);
    if (count > COPY_SPAN) count = COPY_SPAN;
    memset(copy->of, 0, sizeof copy->of);
    for (size_t i = 0; i < count && kept < COPY_WORDS; i++) {
        const uintptr_t word = from[i];
        if (!is_wanted(copy, object, word)) continue;
        copy->of[i / 64] |= UINT64_C(1) << i % 64;
        memcpy(&copy->words[WORD_BYTES * kept++], &word, WORD_BYTES);
    }
}

/* Follows the frame pointers of the library's functions, from `frame`. Returns the last frame whose
 * return address lies in the library: the function there, most often the one that the program has
 * called, may have no frame pointer. 0: there is none. */
static uintptr_t outermost_own(uintptr_t frame) {
    const uintptr_t high = own_stack.high - 2 * sizeof frame;
    uintptr_t last = sy_stack_copies_here ? frame : 0;
    for (int depth = 0; depth < OWN_DEPTH; depth++) {
        const uintptr_t *words = (const uintptr_t *)frame;
        if (!sy_os_is_own_code(words[1])) break;
        last = frame;
        if (words[0] <= frame || words[0] > high || words[0] % sizeof frame) break;
        frame = words[0];
    }
    return last;
}

static void copy_stack(stack_copy *copy, uintptr_t frame) {
    const uintptr_t *words = (const uintptr_t *)frame;
    copy->code = words[1];
    copy->start = frame + 2 * sizeof *words;
    copy->end = own_stack.high;
    copy->frame = words[0];
    copy_words(copy);
}

__attribute__((noinline)) uint32_t sy_stack_copy(uint32_t place) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    unsigned way = atomic_load_explicit(&sy_options_now.unwind, memory_order_relaxed);
    place_of_copy *to = way == SY_UNWIND_AUTO && wanted_depth() ? place_at(place) : NULL;
    int saved = errno;
    frame = to && sy_stack_is_own(frame) ? outermost_own(frame) : 0;
    errno = saved;
    if (!frame || own_stack.high - frame > STACK_MOST) return 0;
    uint32_t version = atomic_load_explicit(&to->version, memory_order_relaxed) | 1;
    atomic_store_explicit(&to->version, version, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_stack(&to->copy, frame);
    atomic_store_explicit(&to->version, version + 1, memory_order_release);
    sy_cpu_keep_frame();
    return COPIED + place;
}

__attribute__((noinline)) uint32_t sy_stack_site(void) {
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    trace walked;
    int saved = errno;
    begin_trace(&walked, SITE_DEPTH, frame);
    if (sy_os_has_frames() && sy_stack_is_own(frame)) walk(frame, own_stack.high, &walked);
    errno = saved;
    sy_cpu_keep_frame();
    return hash_of(walked.frames, walked.depth);
}

/* What a word of the copied stack is in the rebuilt one: an address in the stack moves with it, and
 * a return address stays. Whatever else it was, it can be read there. */
static uintptr_t moved(const rebuilt *stack, uintptr_t word) {
    const stack_copy *from = &stack->from;
    if (word - from->start < from->end - from->start)
        return (uintptr_t)stack->words + (word - from->start);
    return sy_os_has_table(word) ? word : (uintptr_t)stack->behind;
}

/* Another thread may be writing the copy: then false. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static bool read_copy(
    const place_of_copy *place, stack_copy *into) {
    uint32_t version = atomic_load_explicit(&place->version, memory_order_acquire);
    for (size_t i = 0; i < sizeof *into / sizeof(uintptr_t); i++)
        ((uintptr_t *)into)[i] = ((const volatile uintptr_t *)&place->copy)[i];
    atomic_thread_fence(memory_order_acquire);
    uint32_t after = atomic_load_explicit(&place->version, memory_order_relaxed);
    return version == after && version % 2 == 0 && into->code;
}

static void rebuild(rebuilt *stack) {
    const stack_copy *from = &stack->from;
    for (size_t i = 0, kept = 0; i < COPY_SPAN; i++) {
        bool has = kept < COPY_WORDS && from->of[i / 64] >> i % 64 & 1;
        uintptr_t word = 0;
        if (has) memcpy(&word, &from->words[WORD_BYTES * kept++], WORD_BYTES); /* little-endian */
        stack->words[i] = has ? moved(stack, word) : 0;
    }
}

static bool add_rebuilt(void *arg, uintptr_t code, uintptr_t stack) {
    rebuilt *into = arg;
    return stack < (uintptr_t)into->behind && add_frame(&into->taken, code, stack);
}

/* The copied stack, if tables describe its innermost frame: else that frame alone. */
static void unwind_rebuilt(void *stack_) {
    rebuilt *stack = stack_;
    const uintptr_t code = stack->from.code;
    begin_trace(&stack->taken, wanted_depth(), 0);
    stack->taken.from = code;
    if (!sy_os_has_table(code)) {
        stack->taken.frames[stack->taken.depth++] = (const void *)code;
        return;
    }
    rebuild(stack);
    const sy_os_rebuilt frames = {
        .code = code, .stack = (uintptr_t)stack->words, .frame = moved(stack, stack->from.frame)};
    sy_os_unwind_rebuilt(&frames, add_rebuilt, stack);
}

/* Waits for another thread that has the rebuilt stack, for 0.1 s at most. */
static bool take_rebuilt(place_table *in) {
    static _Atomic uint32_t nothing;
    for (int looks = 0; atomic_exchange_explicit(&in->is_rebuilding, true, memory_order_acquire);) {
        if (++looks == 1000) return false;
        sy_os_wait_for(&nothing, 0, 100000);
    }
    return true;
}

/* The number of the stack in a place, with its frames; 0: there is none. */
static uint32_t find_copied(uint32_t place) {
    place_table *in = atomic_load_explicit(&places, memory_order_acquire);
    const place_of_copy *from = place_at(place);
    uint32_t number = 0;
    int saved = errno;
    if (!from || busy || !take_rebuilt(in)) return 0;
    busy = true;
    in->stack->taken.depth = 0;
    if (read_copy(from, &in->stack->from)) in_unwinder(unwind_rebuilt, in->stack);
    number = keep_trace(&in->stack->taken);
    busy = false;
    atomic_store_explicit(&in->is_rebuilding, false, memory_order_release);
    errno = saved;
    return number;
}

/* In the child of a fork: another thread may have had it. */
static void forget_rebuilt(void) {
    place_table *in = atomic_load_explicit(&places, memory_order_relaxed);
    if (in && !busy) atomic_store_explicit(&in->is_rebuilding, false, memory_order_relaxed);
}

size_t sy_stack_frames(uint32_t stack, const void *const **frames) {
    return frames_of(stack < COPIED ? stack : find_copied(stack - COPIED), frames);
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define STACK_VARIABLES(row) row(sy_stack_table, stacks) row(sy_stack_places, places)

static const sy_shape_row stack_shape_rows[] = {
    {"sy_stack_table.bytes", (uint32_t)(SY_ADDRESS_SPACE(128, 32) << 20), 0},
    SY_SHAPE_FIELD(sy_stack_table, table, used),
    SY_SHAPE_FIELD(sy_stack_places, place_table, bytes),
    SY_SHAPE_FIELD(sy_stack_entry, entry, number),
    SY_SHAPE_FIELD(sy_stack_entry, entry, depth),
    {"sy_stack_entry.frames", offsetof(entry, frames), 0},
    {"sy_stack_unit", UNIT, 0},
    SY_SHAPE_CONSTANT(SY_STACK_DEPTH_MAX),
    STACK_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const stack_shape_addresses[] = {STACK_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_stack_shape = SY_SHAPE_PART(stack_shape_rows, stack_shape_addresses);
