/*
 * watch.c: red zones, poison and records of the slots of one cache or pool: they are written at
 * each allocation and free, and compared later.
 */
#include "debug/watch.h"

#include <string.h>

#include "base/bits.h"
#include "base/random.h"
#include "debug/access.h"
#include "debug/fault.h"
#include "debug/history.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "debug/tags.h"
#include "debug/tools.h"
#include "os/os.h"
#include "os/pages.h"

/* No byte of a pattern is ASCII, so that text that overflows, and the 0 that ends it, always
 * damages the pattern. */
static const uint64_t NO_ASCII = UINT64_C(0x8080808080808080);

SY_TLS uint32_t sy_watch_scope;

static const unsigned BRING_CHECKED = SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT;

unsigned sy_watch_untold(unsigned flags, const char *name) {
    unsigned checks = atomic_load_explicit(&sy_options_now.checks, memory_order_relaxed);
    if (checks && sy_options_mean(name)) flags |= checks;
    return flags & BRING_CHECKED ? flags | SY_CHECKED : flags;
}

static unsigned tools_option(void) {
    return atomic_load_explicit(&sy_options_now.tools, memory_order_relaxed);
}

bool sy_watch_passes(void) { return tools_option() == SY_TOOLS_MALLOC; }

/* Flags under a tool. Guarded objects are left out: the tool finds these accesses itself. memcheck
 * keeps stacks of its own, so only AddressSanitizer needs audit. */
static unsigned told(unsigned flags, sy_tool present) {
    flags = (flags & ~(unsigned)SY_GUARD) | SY_TOLD | SY_CHECKED | SY_QUARANTINE;
    return present == SY_TOOL_ASAN ? flags | SY_AUDIT : flags;
}

unsigned sy_watch_checks(unsigned flags, const char *name, bool passable) {
    sy_tool present = tools_option() == SY_TOOLS_OFF ? SY_TOOL_NONE : sy_tool_present();
    bool passes = passable && sy_watch_passes();
    if (passes && sy_options_mean(name))
        return (flags & ~(unsigned)SY_CHECK_FLAGS) | SY_PASSED | SY_CHECKED;
    flags = sy_watch_untold(flags, name);
    return present != SY_TOOL_NONE && sy_options_mean(name) ? told(flags, present) : flags;
}

bool sy_watch_changes_any(void) {
    unsigned checks = atomic_load_explicit(&sy_options_now.checks, memory_order_relaxed);
    bool has_tool = tools_option() != SY_TOOLS_OFF && sy_tool_present() != SY_TOOL_NONE;
    return checks & (BRING_CHECKED | SY_CHECKED | SY_GUARD) || has_tool || sy_watch_passes();
}

/* With a tool one byte between objects would be enough. 16 keep a small overflow from reaching the
 * next object unseen. */
static const size_t TOLD_ZONE = 16;

size_t sy_watch_zone(unsigned checks) {
    if (!(checks & SY_REDZONE)) return checks & SY_TOLD ? TOLD_ZONE : 0;
    return atomic_load_explicit(&sy_options_now.redzone, memory_order_relaxed);
}

static bool is_told(const sy_watch *watch) { return watch->checks & SY_TOLD; }

enum {
    QUARANTINE_BYTES = 16 << 20, /* the most that one cache keeps back, whatever the option says */
    WAITING_FOR_MEMCHECK = 1 << 18
};

/* How many objects of the cache wait at most. memcheck remembers the last 20 MB of freed blocks,
 * and shows the oldest that had the address. So under it an address is reused late. */
static uint32_t most_waiting(const sy_watch *watch) {
    bool said = atomic_load_explicit(&sy_options_now.quarantine_said, memory_order_relaxed);
    uint32_t most = atomic_load_explicit(&sy_options_now.quarantine, memory_order_relaxed);
    if (is_told(watch) && !said && sy_tool_present() == SY_TOOL_MEMCHECK)
        most = WAITING_FOR_MEMCHECK;
    size_t fit = QUARANTINE_BYTES / watch->size;
    return most > fit ? (uint32_t)fit + 1 : most;
}

/* Both return 0, or -1 with ENOMEM. */

static int begin_history(sy_watch *watch) {
    uint32_t operations = atomic_load_explicit(&sy_options_now.audit_log, memory_order_relaxed);
    if (!(watch->checks & SY_AUDIT) || !operations) return 0;
    watch->history = sy_history_make(operations);
    return watch->history ? 0 : -1;
}

static int begin_quarantine(sy_watch *watch) {
    if (!(watch->checks & SY_QUARANTINE)) return 0;
    uint32_t most = most_waiting(watch);
    size_t bytes = sy_round_up(most * sizeof *watch->waiting, sy_os_page_size());
    watch->waiting = sy_pages_take(bytes, sy_os_page_size(), "slabyard quarantine");
    watch->waiting_max = most;
    return watch->waiting ? 0 : -1;
}

int sy_watch_open(sy_watch *watch, const char *name, size_t size, unsigned checks) {
    *watch = (sy_watch){
        .name = name,
        .size = size,
        .checks = checks,
        .zone = (uint32_t)sy_watch_zone(checks),
        .pattern = sy_os_random() | NO_ASCII,
        .random = sy_os_random() | 1,
    };
    if (begin_history(watch) != 0) return -1;
    if (begin_quarantine(watch) != 0) {
        sy_history_end(watch->history);
        return -1;
    }
    if (is_told(watch)) sy_tool_open(watch, watch->zone);
    if (checks & SY_POISON) sy_access_expect_patterns();
    return 0;
}

void sy_watch_close(sy_watch *watch) {
    if (is_told(watch)) sy_tool_close(watch);
    sy_history_end(watch->history);
    if (watch->waiting)
        sy_pages_give(watch->waiting,
                      sy_round_up(watch->waiting_max * sizeof *watch->waiting, sy_os_page_size()));
}

/* ---- patterns: the byte at an address is the one of the pattern at the address modulo 8 ---- */

/* Verification may read memory that other threads write, or that is hidden from the program. */
#define UNSEEN __attribute__((no_sanitize_address, no_sanitize_thread))

UNSEEN static unsigned char byte_of(uint64_t pattern, uintptr_t address) {
    unsigned char bytes[sizeof pattern];
    __builtin_memcpy(bytes, &pattern, sizeof bytes);
    return bytes[address % sizeof bytes];
}

UNSEEN static void fill(void *start, size_t bytes, uint64_t pattern) {
    sy_tool_enter();
    unsigned char *at = start, *end = at + bytes;
    for (; at < end && (uintptr_t)at % sizeof pattern; at++) *at = byte_of(pattern, (uintptr_t)at);
    for (; (size_t)(end - at) >= sizeof pattern; at += sizeof pattern)
        __builtin_memcpy(at, &pattern, sizeof pattern);
    for (; at < end; at++) *at = byte_of(pattern, (uintptr_t)at);
    sy_tool_leave();
}

/* Returns the first byte from `at` on that differs from the pattern, or `end`. */
UNSEEN static const unsigned char *find_other(const unsigned char *at, const unsigned char *end,
                                              uint64_t pattern) {
    for (; at < end && (uintptr_t)at % sizeof pattern; at++)
        if (*at != byte_of(pattern, (uintptr_t)at)) return at;
    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        __builtin_memcpy(&word, at, sizeof word);
        if (word != pattern) break;
    }
    for (; at < end; at++)
        if (*at != byte_of(pattern, (uintptr_t)at)) return at;
    return end;
}

/* Returns the first byte that differs from the pattern, or NULL, and sets *damaged to the bytes
 * from there to the last one that differs. */
UNSEEN static const void *find_damage(const void *start, size_t bytes, uint64_t pattern,
                                      size_t *damaged) {
    const unsigned char *end = (const unsigned char *)start + bytes;
    const unsigned char *first = find_other(start, end, pattern);
    if (first == end) return NULL;
    while (end[-1] == byte_of(pattern, (uintptr_t)(end - 1))) end--;
    *damaged = (size_t)(end - first);
    return first;
}

void sy_watch_lay(const sy_watch *watch, void *start, size_t bytes) {
    fill(start, bytes, watch->pattern);
}

/* ---- audit ---- */

sy_stamp sy_stamp_here(const sy_watch *watch) {
    if (!(watch->checks & SY_AUDIT)) return (sy_stamp){0};
    return (sy_stamp){
        .time = sy_os_now(),
        .stack = sy_stack_here(),
        .thread = sy_os_thread(),
    };
}

sy_trace sy_stamp_trace(const sy_stamp *stamp, uint64_t now) {
    sy_trace trace = {.thread = stamp->thread};
    if (!stamp->time) return trace;
    trace.age = now > stamp->time ? now - stamp->time : 0;
    trace.depth = sy_stack_frames(stamp->stack, &trace.frames);
    return trace;
}

/* Notes an allocation, before the program gets the object: so it is counted before its free. */
static void note_allocation(const sy_watch *watch, sy_record *record, const void *object,
                            size_t size) {
    record->allocated = sy_stamp_here(watch);
    if (!(watch->checks & SY_AUDIT)) return;
    record->tag = (uint8_t)sy_tag_count_allocation(size);
    record->scope = sy_watch_scope % SY_WATCH_SCOPES;
    if (watch->history) sy_history_note(watch->history, false, object, size, &record->allocated);
}

static void note_free(const sy_watch *watch, sy_record *record, const void *object) {
    record->freed = sy_stamp_here(watch);
    if (!(watch->checks & SY_AUDIT)) return;
    size_t size = sy_record_size(record);
    sy_tag_count_free(record->tag, size);
    if (watch->history) sy_history_note(watch->history, true, object, size, &record->freed);
}

/* Reads a stamp that another thread may be writing. If it is, the result means nothing. */
UNSEEN static sy_stamp read_stamp(const sy_stamp *stamp) {
    const volatile sy_stamp *now = stamp;
    return (sy_stamp){.time = now->time, .stack = now->stack, .thread = now->thread};
}

UNSEEN static uint32_t read_scope(const sy_record *record) {
    const volatile sy_record *now = record;
    return now->scope;
}

static sy_trace trace_of(const sy_stamp *of_record, uint64_t now) {
    sy_stamp stamp = read_stamp(of_record);
    return sy_stamp_trace(&stamp, now);
}

bool sy_record_live(const sy_record *record, sy_live *live) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    if (word % SY_OBJECT_STATES != SY_OBJECT_LIVE) return false;
    *live = (sy_live){sy_record_size(record), read_scope(record), read_stamp(&record->allocated)};
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&record->word, memory_order_relaxed) == word;
}

/* ---- faults ---- */

void sy_watch_describe(const sy_record *record, sy_fault *fault) {
    sy_object_state state = sy_record_state(record);
    bool free = state != SY_OBJECT_LIVE && state != SY_OBJECT_FREEING;
    fault->found_size = sy_record_size(record);
    uint64_t now = sy_os_now();
    fault->allocated = trace_of(&record->allocated, now);
    if (free) fault->freed = trace_of(&record->freed, now);
}

static sy_fault describe_fault(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                               const void *address, const void *object) {
    sy_fault fault = {
        .kind = kind,
        .cache = watch->name,
        .object_size = watch->size,
        .address = address,
        .object = object,
        .offset = object ? (const char *)address - (const char *)object : 0,
    };
    if (record) sy_watch_describe(record, &fault);
    return fault;
}

void sy_watch_raise(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                    const void *address, const void *object) {
    sy_fault fault = describe_fault(watch, record, kind, address, object);
    sy_fault_raise(&fault);
}

/* ---- damage ---- */

typedef struct sy_finding {
    sy_fault_kind kind; /* SY_FAULT_NONE: nothing was found */
    const void *first;
    size_t bytes;
} sy_finding;

static sy_finding look(const void *start, size_t bytes, uint64_t pattern, sy_fault_kind kind) {
    sy_finding finding = {.kind = kind};
    sy_tool_enter();
    finding.first = find_damage(start, bytes, pattern, &finding.bytes);
    sy_tool_leave();
    return finding.first ? finding : (sy_finding){0};
}

/* The zone behind the object is examined first, because programs overwrite it most. */
static sy_finding look_at_zones(const sy_watch *watch, const sy_record *record,
                                const void *object) {
    if (!(watch->checks & SY_REDZONE)) return (sy_finding){0};
    const char *start = object;
    size_t size = sy_record_size(record);
    sy_finding behind =
        look(start + size, watch->size - size + watch->zone, watch->pattern, SY_FAULT_OVERFLOW);
    if (behind.kind) return behind;
    return look(start - watch->zone, watch->zone, watch->pattern, SY_FAULT_UNDERFLOW);
}

static sy_finding look_at_poison(const sy_watch *watch, const void *object) {
    if (!(watch->checks & SY_POISON)) return (sy_finding){0};
    return look(object, watch->size, SY_PATTERN_FREE, SY_FAULT_WRITE_AFTER_FREE);
}

static sy_fault describe_finding(const sy_watch *watch, const sy_record *record, const void *object,
                                 const sy_finding *finding) {
    sy_fault fault = describe_fault(watch, record, finding->kind, finding->first, object);
    fault.damage = finding->first;
    fault.damage_bytes = finding->bytes;
    return fault;
}

static void raise_finding(const sy_watch *watch, const sy_record *record, const void *object,
                          const sy_finding *finding) {
    sy_fault fault = describe_finding(watch, record, object, finding);
    sy_tool_enter(); /* damaged bytes are shown in the report, and may be hidden */
    sy_fault_raise(&fault);
    sy_tool_leave();
}

bool sy_watch_look_at_edge(const sy_watch *watch, const void *start, size_t bytes,
                           sy_fault *fault) {
    sy_finding finding = look(start, bytes, watch->pattern, SY_FAULT_SLAB_EDGE);
    if (finding.kind) *fault = describe_finding(watch, NULL, NULL, &finding);
    return finding.kind;
}

/* ---- when the process ends ---- */

int sy_watch_at_exit(sy_exit_check *check) {
    if (atomic_exchange(&check->registered, true)) return 0;
    if (sy_os_at_exit(check->verify) == 0) return 0;
    atomic_store(&check->registered, false);
    return -1;
}

/* ---- an object's life ---- */

static uint32_t changed(uint32_t word, sy_object_state state) {
    return (word / SY_OBJECT_STATES + 1) * SY_OBJECT_STATES + state;
}

/* For an object that only this thread uses at the moment. */
static void set_record_state(sy_record *record, sy_object_state state) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_relaxed);
    atomic_store_explicit(&record->word, changed(word, state), memory_order_release);
}

static void sy_watch_verify_free(const sy_watch *watch, const sy_record *record,
                                 const void *object) {
    sy_finding finding = look_at_poison(watch, object);
    if (finding.kind) raise_finding(watch, record, object, &finding);
}

void sy_watch_taken(const sy_watch *watch, sy_record *record, void *object) {
    bool was_free = sy_record_state(record) == SY_OBJECT_FREE;
    set_record_state(record, SY_OBJECT_TAKEN);
    if (was_free) sy_watch_verify_free(watch, record, object);
}

void sy_watch_show(const sy_watch *watch, sy_record *record, const void *object, size_t size) {
    if (!is_told(watch)) return;
    atomic_store_explicit(&record->size, size, memory_order_relaxed);
    sy_tool_allocated(watch, object, size);
}

static void hide(const sy_watch *watch, const void *object, size_t size) {
    if (is_told(watch)) sy_tool_freed(watch, object, size);
}

void sy_watch_given(const sy_watch *watch, sy_record *record, void *object, size_t size,
                    bool built) {
    atomic_store_explicit(&record->size, size, memory_order_relaxed);
    note_allocation(watch, record, object, size);
    if (watch->checks & SY_POISON && !built) {
        fill(object, size, SY_PATTERN_NEW);
        if (is_told(watch)) sy_tool_unwritten(object, size);
    }
    if (watch->checks & SY_REDZONE) {
        fill((char *)object + size, watch->size - size + watch->zone, watch->pattern);
        fill((char *)object - watch->zone, watch->zone, watch->pattern);
    }
    set_record_state(record, SY_OBJECT_LIVE);
}

static void wrong_size(const sy_watch *watch, const sy_record *record, const void *object,
                       size_t told) {
    sy_fault fault = describe_fault(watch, record, SY_FAULT_WRONG_SIZE, object, object);
    fault.told_size = told;
    sy_fault_raise(&fault);
}

void sy_watch_claimed(const sy_watch *watch, sy_record *record, const void *object) {
    sy_finding finding = look_at_zones(watch, record, object);
    record->freed = (sy_stamp){0};
    if (finding.kind) raise_finding(watch, record, object, &finding);
    note_free(watch, record, object);
}

bool sy_watch_claim(const sy_watch *watch, sy_record *record, void *object, size_t told) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    bool live = word % SY_OBJECT_STATES == SY_OBJECT_LIVE;
    if (live && told != SIZE_MAX && told != sy_record_size(record)) {
        wrong_size(watch, record, object, told);
        return false;
    }
    if (!live ||
        !atomic_compare_exchange_strong(&record->word, &word, changed(word, SY_OBJECT_FREEING))) {
        if (is_told(watch)) sy_tool_freed_twice(watch, object);
        sy_watch_raise(watch, record, SY_FAULT_DOUBLE_FREE, object, object);
        return false;
    }
    sy_watch_claimed(watch, record, object);
    return true;
}

bool sy_watch_try_claim(sy_record *record) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    return word % SY_OBJECT_STATES == SY_OBJECT_LIVE &&
           atomic_compare_exchange_strong(&record->word, &word, changed(word, SY_OBJECT_FREEING));
}

void sy_watch_fill(const sy_watch *watch, sy_record *record, void *object) {
    if (watch->checks & SY_POISON)
        fill(object, watch->size, SY_PATTERN_FREE);
    else if (watch->checks & SY_ZERO)
        memset(object, 0, sy_record_size(record));
    hide(watch, object, sy_record_size(record));
    set_record_state(record, SY_OBJECT_FREE);
}

void sy_watch_forget(const sy_watch *watch, sy_record *record, void *object) {
    sy_object_state state = sy_record_state(record);
    bool counted = state == SY_OBJECT_LIVE && watch->checks & SY_AUDIT;
    if (counted) sy_tag_count_free(record->tag, sy_record_size(record));
    if (state == SY_OBJECT_LIVE || state == SY_OBJECT_TAKEN)
        hide(watch, object, sy_record_size(record));
    set_record_state(record, SY_OBJECT_FRESH);
    if (state == SY_OBJECT_FREE) sy_watch_verify_free(watch, record, object);
}

bool sy_watch_look(const sy_watch *watch, const sy_record *record, const void *object,
                   sy_fault *fault) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    sy_finding finding = {0};
    if (word % SY_OBJECT_STATES == SY_OBJECT_LIVE) finding = look_at_zones(watch, record, object);
    if (word % SY_OBJECT_STATES == SY_OBJECT_FREE) finding = look_at_poison(watch, object);
    if (finding.kind == SY_FAULT_NONE) return false;
    *fault = describe_finding(watch, record, object, &finding);
    /* Another thread may have allocated or freed the object meanwhile. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&record->word, memory_order_relaxed) == word;
}

/* ---- quarantine ---- */

bool sy_watch_next(sy_watch *watch, uintptr_t *out) {
    if (!watch->waiting_count) return false;
    uint32_t index = sy_random_below(&watch->random, watch->waiting_count);
    *out = watch->waiting[index];
    watch->waiting[index] = watch->waiting[--watch->waiting_count];
    return true;
}

bool sy_watch_wait(sy_watch *watch, uintptr_t item, uintptr_t *out) {
    if (!watch->waiting_max) {
        *out = item;
        return true;
    }
    bool full = watch->waiting_count == watch->waiting_max && sy_watch_next(watch, out);
    watch->waiting[watch->waiting_count++] = item;
    return full;
}
