/*
 * fault.c: the report of a misuse: a headline with indented lines below it. Each line is written
 * only if its content is known:
 *
 *     slabyard: overflow: 0x7f0012345644 in cache "order" (64 bytes)
 *       offset 68: 4 bytes past the end
 *       2 bytes damaged from offset 68:
 *         +68  41 41                                            AA
 *       allocated 1.2 ms ago by thread 4711:
 *         #0 make_order at orders.c:17
 *       next: run with SLABYARD=guard=all to stop at the write itself
 */
#include <slabyard/fault.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "debug/options.h"
#include "debug/stack.h"
#include "os/facts.h"
#include "os/os.h"
#include "report/report.h"

enum { DUMP_MAX = 64 }; /* damaged bytes that are shown */

/* The words for a kind of fault. `what`: what happened; `where`: what stands behind it, or NULL.
 * With it, "read" or "write" replaces `what` if a guard page tells which it was. `next`: what to do
 * next; `next_of_known`: the same, if the object's allocation or free is known already;
 * `next_of_guarded`: if all objects are guarded already. */
typedef struct words {
    const char *what, *where, *next, *next_of_known, *next_of_guarded;
} words;

static const char stop_at_write[] = "run with SLABYARD=guard=all to stop at the write itself";

static const char watch_it[] =
    "no guard was hit: set a watchpoint on the damaged bytes in a debugger";

static const words words_of[] = {
    [SY_FAULT_FOREIGN_POINTER] =
        {.what = "free of a pointer that is not an object of Slabyard's",
         .next = "see where the pointer comes from: another allocator, the stack, a variable, or "
                 "memory that was freed and returned to the system"},
    [SY_FAULT_MISALIGNED_POINTER] =
        {.what = "free of a pointer that is not the start of an object",
         .next = "free the pointer that the allocation gave, not one into the object"},
    [SY_FAULT_WRONG_CACHE] = {.what = "free to the wrong cache",
                              .next = "free the object to what it was allocated from"},
    [SY_FAULT_DOUBLE_FREE] =
        {.what = "double free",
         .next = "run with SLABYARD=audit to see where it was freed before",
         .next_of_known =
             "remove one of the two frees: decide which part of the program owns the object"},
    [SY_FAULT_WRONG_SIZE] = {.what = "free with the wrong size",
                             .next = "free with the size that was asked for, or without one"},
    [SY_FAULT_NOT_ALLOCATED] = {.what = "free of a segment that is not allocated",
                                .next =
                                    "free a segment once, by the value that its allocation gave"},
    [SY_FAULT_SEGMENT_SIZE] = {.what = "free of a segment with the wrong size",
                               .next = "free the segment with the size that it was allocated with"},
    [SY_FAULT_OVERFLOW] =
        {.what = "overflow",
         .next = "run with SLABYARD=redzone,audit to see where the object was allocated, "
                 "with SLABYARD=guard=all to stop at the write itself",
         .next_of_known = stop_at_write,
         .next_of_guarded = watch_it},
    [SY_FAULT_UNDERFLOW] =
        {.what = "underflow",
         .next = "run with SLABYARD=redzone,audit to see where the object was allocated, "
                 "with SLABYARD=guard=all to stop at the write itself",
         .next_of_known = stop_at_write,
         .next_of_guarded = watch_it},
    [SY_FAULT_WRITE_AFTER_FREE] =
        {.what = "write after free",
         .next = "run with SLABYARD=poison,audit to see where the object was freed, with "
                 "SLABYARD=guard=all to stop at the write itself",
         .next_of_known = stop_at_write,
         .next_of_guarded = watch_it},
    [SY_FAULT_SLAB_EDGE] =
        {.what = "slab edge overwritten",
         .next = "run with SLABYARD=redzone,audit to find the object that was overrun"},
    [SY_FAULT_GUARD_OVERFLOW] =
        {.what = "access",
         .where = " behind an object (guard page)",
         .next = "see the stack of this access: an index or a length is too large"},
    [SY_FAULT_GUARD_UNDERFLOW] =
        {.what = "access",
         .where = " before an object (guard page)",
         .next = "see the stack of this access: an index is negative, or a pointer was moved back"},
    [SY_FAULT_USE_AFTER_FREE] =
        {.what = "use",
         .where = " after free (guard page)",
         .next = "see the stack of this access: a pointer was kept after the free"},
    [SY_FAULT_NOT_PINNED] = {.what = "unpin without a pin",
                             .next = "unpin a handle once for each pin of it that gave an object"},
    [SY_FAULT_FREED_POINTER] =
        {.what = "access by a pointer read from freed memory",
         .next = "run with SLABYARD=guard=all to stop where the freed object is read",
         .next_of_guarded = "find the free of the object that this pointer was read from"},
    [SY_FAULT_UNWRITTEN_POINTER] =
        {.what = "access by a pointer read from memory never written",
         .next = "find the pointer that this access follows, and the code that should have set it"},
};

/* For SY_FAULT_WRONG_SIZE, if the object has the size that was passed, and if it may have it: its
 * own size is not known, and an alignment can put it into a larger slot than its size needs. */
static const words wrong_alignment = {.what = "free with the wrong alignment",
                                      .next = "free with the alignment that was asked for"};
static const words wrong_size_or_alignment = {
    .what = "free with the wrong size or alignment",
    .next = "free with the size and alignment that were asked for, or without them"};

static const words *words_for(const sy_fault *fault) {
    static const words unknown = {.what = "misuse", .next = "see slabyard/fault.h of this version"};
    size_t kind = fault->kind;
    if (kind == SY_FAULT_WRONG_SIZE && fault->told_size) {
        if (fault->found_size == fault->told_size) return &wrong_alignment;
        if (!fault->found_size && fault->told_size <= fault->object_size)
            return &wrong_size_or_alignment;
    }
    bool known = kind < sizeof words_of / sizeof *words_of && words_of[kind].what;
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

static void add_size(size_t size) {
    if (!size) return;
    sy_report_text(" (");
    sy_report_number(size);
    sy_report_text(" bytes)");
}

/* in cache "order" (64 bytes)
 * in cache "heap", belongs to "heap-64" (64 bytes) */
static void add_object(const sy_fault *fault) {
    add_quoted(" in cache ", fault->cache);
    if (fault->found_cache) add_quoted(", belongs to ", fault->found_cache);
    add_size(fault->object_size);
}

static bool is_heap(const char *name) { return strcmp(name, "heap") == 0; }

/* freed to cache "order" (64 bytes), belongs to cache "trade" (48 bytes) */
static void add_both_caches(const sy_fault *fault) {
    if (fault->object_size)
        add_quoted(" freed to cache ", fault->cache);
    else if (is_heap(fault->cache))
        sy_report_text(" freed by sy_free");
    else
        add_quoted(" freed to heap ", fault->cache);
    add_size(fault->object_size);
    if (is_heap(fault->found_cache))
        sy_report_text(", belongs to sy_malloc's heap");
    else
        add_quoted(", belongs to cache ", fault->found_cache);
    add_size(fault->found_size);
}

static void add_place_of_pointer(const sy_fault *fault) {
    sy_report_text(" in register ");
    sy_report_text(fault->held_in);
}

static void add_what(const sy_fault *fault) {
    const words *said = words_for(fault);
    bool reads = said->where && fault->access == SY_ACCESS_READ;
    bool writes = said->where && fault->access == SY_ACCESS_WRITE;
    sy_report_text(reads ? "read" : writes ? "write" : said->what);
    if (said->where) sy_report_text(said->where);
}

static bool tells_found_size(const sy_fault *fault) {
    return fault->kind == SY_FAULT_SEGMENT_SIZE || fault->kind == SY_FAULT_WRONG_SIZE;
}

static void add_fault_headline(const sy_fault *fault) {
    bool segment = fault->kind == SY_FAULT_NOT_ALLOCATED || fault->kind == SY_FAULT_SEGMENT_SIZE;
    sy_report_loud();
    sy_report_text("slabyard: ");
    add_what(fault);
    sy_report_text(": ");
    sy_report_hex((uintptr_t)fault->address);
    if (segment)
        add_segment(fault);
    else if (fault->held_in)
        add_place_of_pointer(fault);
    else if (fault->kind == SY_FAULT_WRONG_CACHE && fault->found_cache)
        add_both_caches(fault);
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

/* The bytes of the object that the program may use. */
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

/* Adds the place in the object. The object's start is left out, because the headline has it. */
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

/* price+0x4 (.data) in /usr/bin/shop */
static void add_variable(const sy_os_data *data) {
    if (data->name[0]) {
        sy_report_text(data->name);
        sy_report_text("+");
        sy_report_hex(data->behind);
    } else {
        sy_report_text("data");
    }
    if (data->section[0]) {
        sy_report_text(" (");
        sy_report_text(data->section);
        sy_report_text(")");
    }
    sy_report_text(" in ");
    sy_report_text(data->file);
}

/* Adds what lies at a foreign pointer's address. */
static void add_target(const sy_fault *fault) {
    static const char *const regions[] = {
        [SY_OS_NOWHERE] = "nothing: no memory is mapped there",
        [SY_OS_UNTOLD] = "not known: files of /proc cannot be read",
        [SY_OS_ANONYMOUS] = "memory without a name, of another allocator's or of a stack",
        [SY_OS_NAMED] = "memory of the process, ",
        [SY_OS_OWN_STACK] = "the stack of this thread",
        [SY_OS_FIRST_STACK] = "the stack of the first thread",
        [SY_OS_OF_FILE] = "a mapping of ",
        [SY_OS_OF_PROGRAM] = "",
    };
    sy_os_data data;
    if (fault->kind != SY_FAULT_FOREIGN_POINTER || sy_is_in_sandbox()) return;
    sy_os_find((uintptr_t)fault->address, &data);
    sy_report_text("  points to: ");
    sy_report_text(regions[data.region]);
    if (data.region == SY_OS_NAMED || data.region == SY_OS_OF_FILE) sy_report_text(data.file);
    if (data.region == SY_OS_OF_PROGRAM) add_variable(&data);
    sy_report_text(strcmp(data.file, "[heap]") == 0 ? " (the C library's heap)\n" : "\n");
}

static bool guards_all(void) {
    return atomic_load_explicit(&sy_options_now.checks, memory_order_relaxed) & SY_GUARD &&
           atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed) == 1;
}

static const char *next_of(const sy_fault *fault) {
    const words *said = words_for(fault);
    bool known = said->next_of_known && (fault->allocated.thread || fault->freed.thread);
    if (said->next_of_guarded && guards_all()) return said->next_of_guarded;
    return known ? said->next_of_known : said->next;
}

static void add_next(const sy_fault *fault) {
    sy_report_text("  next: ");
    sy_report_text(next_of(fault));
    sy_report_text("\n");
}

/* ---- the whole ---- */

typedef struct finding {
    const sy_fault *fault;
    uint32_t stack; /* the second of two frees, or where damage was found; 0: not taken */
} finding;

/* Adds the lines, on the library's own stack. From there tables alone can take the stack that was
 * left; from a handler of a signal nothing else would do. */
static void add_fault(void *arg) {
    const finding *found = arg;
    const sy_fault *fault = found->fault;
    uintptr_t code = sy_os_interrupted();
    add_fault_headline(fault);
    add_position(fault);
    add_target(fault);
    add_damage(fault);
    sy_report_place(code ? sy_stack_from(code) : found->stack);
    sy_report_trace("allocated", &fault->allocated);
    sy_report_trace("freed", &fault->freed);
    add_next(fault);
}

bool sy_fault_write(const sy_fault *fault) {
    finding found = {.fault = fault};
    if (!sy_report_begin()) return false;
    if (!sy_os_interrupted()) found.stack = sy_stack_whole();
    sy_os_on_own_stack(add_fault, &found);
    sy_report_end();
    return true;
}

void sy_report_fault(const sy_fault *fault) { sy_fault_write(fault); }
