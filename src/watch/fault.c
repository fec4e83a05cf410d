/*
 * fault.c: see fault.h. A report is a headline and lines that are indented under it, each only when
 * something is known:
 *
 *     slabyard: overflow: 0x7f0012345644 in cache "order" (64 bytes)
 *       offset 68: 4 bytes past the end
 *       2 bytes damaged from offset 68:
 *         +68  41 41                                            AA
 *       allocated 1.2 ms ago by thread 4711:
 *         #0 make_order at orders.c:17
 *       next: run with SLABYARD=guard=all,explain to stop at the write itself
 */
#include "watch/fault.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"
#include "watch/options.h"
#include "watch/report.h"
#include "watch/stack.h"

enum { DUMP_MAX = 64 }; /* damaged bytes that are shown */

static _Atomic(sy_fault_handler) handler;

sy_fault_handler sy_set_fault_handler(sy_fault_handler new_handler) {
    return atomic_exchange(&handler, new_handler);
}

/* What is said of a kind: what happened; what to do next; and what, if who allocated the object is
 * known already. */
typedef struct words {
    const char *what, *next, *next_of_known;
} words;

static const words words_of[] = {
    [SY_FAULT_FOREIGN_POINTER] =
        {"free of a pointer that is not an object of Slabyard's",
         "see where the pointer comes from: another allocator, the stack, a variable, or memory "
         "that was freed and has gone back",
         NULL},
    [SY_FAULT_MISALIGNED_POINTER] =
        {"free of a pointer that is not the start of an object",
         "free the pointer that the allocation gave, not one into the object", NULL},
    [SY_FAULT_WRONG_CACHE] = {"free to the wrong cache",
                              "free the object to what it was allocated from", NULL},
    [SY_FAULT_DOUBLE_FREE] = {"double free", "run with SLABYARD=audit to see who freed it before",
                              "one of the two frees has to go: look for who owns the object"},
    [SY_FAULT_WRONG_SIZE] = {"free with the wrong size",
                             "free with the size that was asked for, or without one", NULL},
    [SY_FAULT_NOT_ALLOCATED] = {"free of a segment that is not allocated",
                                "free a segment once, by the value that its allocation gave", NULL},
    [SY_FAULT_SEGMENT_SIZE] = {"free of a segment with the wrong size",
                               "free the segment with the size that it was allocated with", NULL},
    [SY_FAULT_OVERFLOW] = {"overflow",
                           "run with SLABYARD=redzone,audit to see who allocated the object, with "
                           "SLABYARD=guard=all,explain to stop at the write itself",
                           "run with SLABYARD=guard=all,explain to stop at the write itself"},
    [SY_FAULT_UNDERFLOW] = {"underflow",
                            "run with SLABYARD=redzone,audit to see who allocated the object, "
                            "with SLABYARD=guard=all,explain to stop at the write itself",
                            "run with SLABYARD=guard=all,explain to stop at the write itself"},
    [SY_FAULT_WRITE_AFTER_FREE] =
        {"write after free",
         "run with SLABYARD=poison,audit to see who freed the object, "
         "with SLABYARD=guard=all,explain to stop at the write itself",
         "run with SLABYARD=guard=all,explain to stop at the write itself"},
    [SY_FAULT_SLAB_EDGE] = {"slab edge overwritten",
                            "run with SLABYARD=redzone,audit to find the object that was left",
                            NULL},
    [SY_FAULT_GUARD_OVERFLOW] = {"access behind an object (guard page)",
                                 "look at the stack of this access in a debugger: an index or a "
                                 "length is too large",
                                 NULL},
    [SY_FAULT_GUARD_UNDERFLOW] = {"access before an object (guard page)",
                                  "look at the stack of this access in a debugger: an index is "
                                  "negative, or a pointer was moved back",
                                  NULL},
    [SY_FAULT_USE_AFTER_FREE] = {"use after free (guard page)",
                                 "look at the stack of this access in a debugger: a pointer was "
                                 "kept after the free",
                                 NULL},
};

static const words *words_for(sy_fault_kind kind) {
    static const words unknown = {"misuse", "see slabyard/fault.h of this version", NULL};
    bool known = (size_t)kind < sizeof words_of / sizeof *words_of && words_of[kind].what;
    return known ? &words_of[kind] : &unknown;
}

/* ---- the headline ---- */

static void add_quoted(const char *before, const char *name) {
    sy_report_text(before);
    sy_report_text("\"");
    sy_report_text(name);
    sy_report_text("\"");
}

/* (size 16) in arena "ports" */
static void add_segment(const sy_fault *fault) {
    sy_report_text(" (size ");
    sy_report_number(fault->object_size);
    add_quoted(") in arena ", fault->cache);
}

/* in cache "order" (64 bytes), belongs to "trade" */
static void add_object(const sy_fault *fault) {
    add_quoted(" in cache ", fault->cache);
    if (fault->object_size) {
        sy_report_text(" (");
        sy_report_number(fault->object_size);
        sy_report_text(" bytes)");
    }
    if (fault->found_cache) add_quoted(", belongs to ", fault->found_cache);
}

static bool tells_found_size(const sy_fault *fault) {
    return fault->kind == SY_FAULT_SEGMENT_SIZE || fault->kind == SY_FAULT_WRONG_SIZE;
}

static void add_headline(const sy_fault *fault) {
    bool segment = fault->kind == SY_FAULT_NOT_ALLOCATED || fault->kind == SY_FAULT_SEGMENT_SIZE;
    sy_report_loud();
    sy_report_text("slabyard: ");
    sy_report_text(words_for(fault->kind)->what);
    sy_report_text(": ");
    sy_report_hex((uintptr_t)fault->address);
    if (segment)
        add_segment(fault);
    else
        add_object(fault);
    if (fault->told_size) {
        sy_report_text(", freed with size ");
        sy_report_number(fault->told_size);
    }
    if (fault->found_size && tells_found_size(fault)) {
        sy_report_text(", allocated with size ");
        sy_report_number(fault->found_size);
    }
    sy_report_quiet();
    sy_report_text("\n");
}

/* ---- the lines under it ---- */

static void add_signed(ptrdiff_t value) {
    if (value < 0) sy_report_text("-");
    sy_report_number(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void add_bytes(uint64_t count, const char *after) {
    sy_report_exactly(count);
    sy_report_text(after);
}

/* The bytes that the program may use of the object concerned. */
static uint64_t size_of_object(const sy_fault *fault) {
    return fault->found_size ? fault->found_size : fault->object_size;
}

static void add_past_the_end(const sy_fault *fault, uint64_t size) {
    uint64_t past = (uint64_t)fault->offset - size;
    if (past)
        add_bytes(past, " past the end");
    else
        sy_report_text("the first byte past the end");
    if (size != fault->object_size) {
        sy_report_text(" of the ");
        sy_report_number(size);
        sy_report_text(" asked for");
    }
}

/* Where in the object; its start alone is nothing new. */
static void add_position(const sy_fault *fault) {
    if (!fault->object || (!fault->offset && !fault->damage)) return;
    uint64_t size = size_of_object(fault);
    sy_report_text("  offset ");
    add_signed(fault->offset);
    sy_report_text(": ");
    if (fault->offset < 0) {
        add_bytes(0 - (uint64_t)fault->offset, " before its start");
    } else if (size && (uint64_t)fault->offset >= size) {
        add_past_the_end(fault, size);
    } else if (!fault->offset) {
        sy_report_text("its start");
    } else {
        sy_report_text("inside, ");
        add_bytes((uint64_t)fault->offset, " from its start");
    }
    sy_report_text("\n");
}

static void add_damage(const sy_fault *fault) {
    if (!fault->damage) return;
    size_t shown = fault->damage_bytes < DUMP_MAX ? fault->damage_bytes : DUMP_MAX;
    sy_report_text("  ");
    add_bytes(fault->damage_bytes, " damaged");
    if (fault->object) {
        sy_report_text(" from offset ");
        add_signed(fault->offset);
    }
    sy_report_text(":\n");
    sy_report_dump(fault->damage, shown, fault->object ? fault->offset : 0, "    ");
    if (shown == fault->damage_bytes) return;
    sy_report_text("    ... ");
    add_bytes(fault->damage_bytes - shown, " more\n");
}

/* Where the fault was seen: the second of two frees, or the first that looked at what was damaged.
 */
static void add_place(void) {
    const void *const *frames;
    size_t depth = sy_stack_frames(sy_stack_here(), &frames);
    sy_report_text("  seen by thread ");
    sy_report_number(sy_os_thread());
    sy_report_text(depth ? ":\n" : "\n");
    if (depth) sy_report_stack(frames, depth, "    ");
}

static void add_next(const sy_fault *fault) {
    const words *said = words_for(fault->kind);
    bool known = said->next_of_known && (fault->allocated.thread || fault->freed.thread);
    sy_report_text("  next: ");
    sy_report_text(known ? said->next_of_known : said->next);
    sy_report_text("\n");
}

/* ---- the doors ---- */

void sy_report_fault(const sy_fault *fault) {
    if (!sy_report_begin()) return;
    add_headline(fault);
    add_position(fault);
    add_damage(fault);
    add_place();
    sy_report_trace("allocated", &fault->allocated);
    sy_report_trace("freed", &fault->freed);
    add_next(fault);
    sy_report_end();
}

/* Whether there is a handler that was told. */
static bool handled(const sy_fault *fault) {
    sy_fault_handler current = atomic_load(&handler);
    if (current) current(fault);
    return current;
}

void sy_fault_raise(const sy_fault *fault) {
    if (handled(fault)) return;
    sy_report_fault(fault);
    if (!atomic_load_explicit(&sy_options_now.go_on, memory_order_relaxed)) sy_os_abort();
}

void sy_fault_tell(const sy_fault *fault) {
    if (!handled(fault)) sy_report_fault(fault);
}
