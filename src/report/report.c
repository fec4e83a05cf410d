/*
 * report.c: see report.h. The variables below the lock belong to the report that is being made.
 */
#include "report/report.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "os/facts.h"
#include "os/lock.h"
#include "os/os.h"
#include "report/lookup.h"
#include "report/symbols.h"

enum {
    REPORT_MAX = 64 << 10,
    DUMP_LINE = 16, /* bytes in a line of a dump */
};

static const char cut_off[] = "  (the report is longer: what follows is cut off)\n";
static const char emphasis[] = "\033[1;31m", plain[] = "\033[0m";

static sy_lock lock = SY_LOCK_INIT(SY_RANK_REPORT);
static char buffer[REPORT_MAX + sizeof cut_off];
static size_t length;
static bool full; /* something did not fit */
static bool coloured;
static bool has_stack;                    /* a stack was looked up */
static char path[SY_OPTION_TEXT_MAX + 1]; /* "": stderr */

static SY_TLS bool in_report;
static SY_TLS int errno_before;
static int cancellation_before;

/* ---- begin and end ---- */

static bool is_said(const char *name) {
    const char *text = sy_os_option(name);
    return text && *text;
}

static bool wants_colour(void) {
    unsigned when = atomic_load_explicit(&sy_options_now.colour, memory_order_relaxed);
    if (when != SY_WHEN_AUTO) return when == SY_WHEN_ALWAYS;
    return !*path && !sy_is_in_sandbox() && sy_os_is_terminal(sy_os_stderr()) &&
           !is_said("NO_COLOR");
}

bool sy_report_begin(void) {
    if (in_report) return false;
    in_report = true;
    errno_before = errno;
    sy_options_load();
    sy_lock_acquire(&lock);
    cancellation_before = sy_os_hold_cancellation();
    length = 0;
    full = has_stack = false;
    sy_lookup_forget();
    sy_options_report_path(path);
    coloured = wants_colour();
    return true;
}

/* Appends to the file. If `file` is "" or cannot be written to, writes to stderr. */
static void write_out(const char *file, const char *what, size_t bytes) {
    if (*file && !sy_is_in_sandbox() && sy_os_append(file, what, bytes) == 0) return;
    if (*file) {
        sy_text text = {.length = 0};
        sy_text_add(&text, "slabyard: cannot write to ");
        sy_text_add(&text, file);
        sy_text_add(&text, ", so here:\n");
        sy_os_write(sy_os_stderr(), text.bytes, text.length);
    }
    sy_os_write(sy_os_stderr(), what, bytes);
}

/* Ends a report that was too long with its last whole line, and a line that says so. */
static void mark_cut(void) {
    while (length && buffer[length - 1] != '\n') length--;
    memcpy(buffer + length, cut_off, sizeof cut_off - 1);
    length += sizeof cut_off - 1;
}

static const char without_files[] =
    "  note: files of /proc cannot be read, so lines are missing: see addr2line -e FILE ADDRESS\n";

void sy_report_end(void) {
    if (has_stack && !sy_is_in_sandbox() && !sy_os_tells_mappings()) sy_report_text(without_files);
    if (full) mark_cut();
    if (length) write_out(path, buffer, length);
    sy_os_drop_cancellation(cancellation_before);
    sy_lock_release(&lock);
    errno = errno_before;
    in_report = false;
}

void sy_report_line(const char *line, size_t bytes) {
    int error = errno;
    char file[SY_OPTION_TEXT_MAX + 1];
    sy_options_report_path(file);
    int before = sy_os_hold_cancellation();
    write_out(file, line, bytes);
    sy_os_drop_cancellation(before);
    errno = error;
}

static void forget_report(void) {
    sy_lock_init(&lock, SY_RANK_REPORT);
    in_report = false;
}

const sy_part sy_report_part = {.inherit = forget_report};

/* ---- words ---- */

static void add_text(const char *text, size_t bytes) {
    if (bytes > REPORT_MAX - length || full) {
        full = true;
        return;
    }
    memcpy(buffer + length, text, bytes);
    length += bytes;
}

void sy_report_text(const char *text) { add_text(text, strlen(text)); }

static void add_in_base(uint64_t value, unsigned base) {
    sy_text text = {.length = 0};
    sy_text_add_in_base(&text, value, base);
    add_text(text.bytes, text.length);
}

void sy_report_number(uint64_t value) { add_in_base(value, 10); }

void sy_report_hex(uint64_t value) {
    add_text("0x", 2);
    add_in_base(value, 16);
}

/* Adds the value in units of `unit`, with one decimal digit if it is below 10. */
static void add_amount(uint64_t value, uint64_t unit, const char *name) {
    add_in_base(value / unit, 10);
    if (unit > 1 && value / unit < 10) {
        add_text(".", 1);
        add_in_base(value % unit * 10 / unit, 10);
    }
    add_text(" ", 1);
    sy_report_text(name);
}

typedef struct unit {
    uint64_t worth;
    char name[8];
} unit;

/* Adds the value in the largest unit that is not larger than the value. */
static void add_in_units(uint64_t value, const unit *units, size_t count) {
    size_t which = 0;
    while (which + 1 < count && value >= units[which + 1].worth) which++;
    add_amount(value, units[which].worth, units[which].name);
}

void sy_report_time(uint64_t ns) {
    static const unit units[] = {{1, "ns"},
                                 {1000, "us"},
                                 {1000000, "ms"},
                                 {1000000000, "s"},
                                 {UINT64_C(60) * 1000000000, "min"},
                                 {UINT64_C(3600) * 1000000000, "h"}};
    add_in_units(ns, units, sizeof units / sizeof *units);
}

void sy_report_bytes(uint64_t bytes) {
    static const unit units[] = {{1, "bytes"},
                                 {1 << 10, "KiB"},
                                 {1 << 20, "MiB"},
                                 {1 << 30, "GiB"},
                                 {UINT64_C(1) << 40, "TiB"}};
    if (bytes == 1)
        sy_report_text("1 byte");
    else
        add_in_units(bytes, units, sizeof units / sizeof *units);
}

void sy_report_exactly(uint64_t bytes) {
    sy_report_number(bytes);
    sy_report_text(bytes == 1 ? " byte" : " bytes");
}

void sy_report_loud(void) {
    if (coloured) sy_report_text(emphasis);
}

void sy_report_quiet(void) {
    if (coloured) sy_report_text(plain);
}

/* ---- stacks ---- */

enum {
    LINES_MAX = 2 * SY_SYMBOLS_MAX,
    START_LINES = 3, /* functions of the C library around main */
};

/* The lines of the stack that was looked up. The first character of each is its sy_whose. */
static const char *lines[LINES_MAX];
static size_t line_count;

void sy_report_look(const void *const *frames, size_t depth, sy_lookup_next *next, void *arg) {
    bool deep = atomic_load_explicit(&sy_options_now.symbols, memory_order_relaxed);
    has_stack = true;
    sy_lookup_stack(frames, depth, deep, next, arg);
    if (depth > SY_SYMBOLS_MAX) depth = SY_SYMBOLS_MAX;
    line_count = 0;
    for (size_t i = 0; i < depth; i++)
        for (const char *line = sy_lookup_lines(frames[i]); *line;) {
            if (line_count < LINES_MAX) lines[line_count++] = line;
            line = strchr(line, '\n') + 1;
        }
}

static bool is_whose(size_t line, sy_whose whose) { return *lines[line] == (char)whose; }

/* The first line from `line` on that belongs to neither of the two. */
static size_t past(size_t line, sy_whose whose, sy_whose or_whose) {
    while (line < line_count && (is_whose(line, whose) || is_whose(line, or_whose))) line++;
    return line;
}

/* The line where the report begins: the program's function that called Slabyard. If there is none:
 * the first line that is not Slabyard's own, or 0. */
static size_t first_line(void) {
    size_t first = past(0, SY_WHOSE_OWN, SY_WHOSE_LANGUAGE);
    while (first < line_count && is_whose(first, SY_WHOSE_RUNTIME))
        first = past(first, SY_WHOSE_LANGUAGE, SY_WHOSE_RUNTIME);
    if (first < line_count && is_whose(first, SY_WHOSE_PROGRAM)) return first;
    first = past(0, SY_WHOSE_OWN, SY_WHOSE_OWN);
    return first < line_count ? first : 0;
}

/* Whether it is main, or main.cold, into which compilers put code of main that rarely runs. */
static bool is_main(const char *line) {
    static const char name[] = "main";
    if (strncmp(line + 1, name, sizeof name - 1) != 0) return false;
    return line[sizeof name] == ' ' || line[sizeof name] == '+' || line[sizeof name] == '.';
}

static size_t past_main(void) {
    for (size_t line = line_count; line > 0 && line_count - line <= START_LINES; line--)
        if (is_main(lines[line - 1])) return line;
    return line_count;
}

/* The line where the code around the program begins; the report ends before it. */
static size_t last_line(size_t first) {
    size_t start = first;
    while (start < line_count && !is_whose(start, SY_WHOSE_START)) start++;
    if (start == line_count) return past_main();
    while (start > first && is_whose(start - 1, SY_WHOSE_LANGUAGE)) start--;
    return start > first ? start : line_count;
}

bool sy_report_sees_runtime_alone(void) {
    size_t outer = past(0, SY_WHOSE_OWN, SY_WHOSE_LANGUAGE);
    if (outer == line_count) return false;
    return is_whose(outer, SY_WHOSE_START) || is_whose(outer, SY_WHOSE_RUNTIME);
}

/* The text ends with the line, so that the same text is the same line. */
uint32_t sy_report_seen_line(void) {
    size_t first = first_line();
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    if (first >= line_count) return 0;
    for (const char *at = lines[first]; *at != '\n'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    return hash;
}

static void add_frame(const char *indent, size_t number, const char *line) {
    const char *end = strchr(line, '\n') + 1;
    sy_report_text(indent);
    add_text("#", 1);
    sy_report_number(number);
    add_text(" ", 1);
    add_text(line + 1, (size_t)(end - line) - 1);
}

void sy_report_looked(const char *indent) {
    size_t first = first_line(), end = last_line(first);
    for (size_t i = first; i < end; i++) add_frame(indent, i - first, lines[i]);
}

void sy_report_stack(const void *const *frames, size_t depth, const char *indent) {
    sy_report_look(frames, depth, NULL, NULL);
    sy_report_looked(indent);
}

void sy_report_place(uint32_t stack) {
    const void *const *frames;
    size_t depth = sy_stack_frames(stack, &frames);
    sy_report_text("  seen by thread ");
    sy_report_number(sy_os_thread());
    sy_report_text(depth ? ":\n" : "\n");
    if (depth) sy_report_stack(frames, depth, "    ");
}

/* `when`: what follows the time; NULL: the time is not told. */
static void add_trace(const char *done, uint64_t time, const char *when, const sy_trace *trace) {
    if (!trace->depth && !trace->thread) return;
    sy_report_text("  ");
    sy_report_text(done);
    if (when) {
        sy_report_text(" ");
        sy_report_time(time);
        sy_report_text(when);
    }
    sy_report_text(" by thread ");
    sy_report_number(trace->thread);
    sy_report_text(trace->depth ? ":\n" : "\n");
    if (trace->depth) sy_report_stack(trace->frames, trace->depth, "    ");
}

void sy_report_trace(const char *done, const sy_trace *trace) {
    add_trace(done, trace->age, " ago", trace);
}

void sy_report_next_trace(const char *done, uint64_t later, const sy_trace *trace) {
    add_trace(done, later, later ? " later" : NULL, trace);
}

/* ---- dumps ---- */

/* "+64", "-8" */
static void add_offset(sy_text *text, ptrdiff_t offset) {
    sy_text_add(text, offset < 0 ? "-" : "+");
    sy_text_add_number(text, offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset);
}

static size_t width_of(ptrdiff_t offset) {
    sy_text text = {.length = 0};
    add_offset(&text, offset);
    return text.length;
}

static void pad_to(sy_text *text, size_t column) {
    while (text->length < column) sy_text_add(text, " ");
}

/* The bytes may be hidden from the program, or other threads may be writing them. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static void dump_line(
    const unsigned char *at, size_t bytes, ptrdiff_t offset, size_t width) {
    sy_text text = {.length = 0};
    add_offset(&text, offset);
    pad_to(&text, width + 1);
    for (size_t i = 0; i < bytes; i++) {
        sy_text_add(&text, " ");
        sy_text_add_in_base(&text, at[i] >> 4, 16);
        sy_text_add_in_base(&text, at[i] & 15, 16);
    }
    pad_to(&text, width + 1 + (size_t)3 * DUMP_LINE + 2);
    for (size_t i = 0; i < bytes; i++) {
        bool printable = at[i] >= ' ' && at[i] < 127;
        sy_text_add(&text, (char[]){(char)(printable ? at[i] : '.'), 0});
    }
    add_text(text.bytes, text.length);
}

void sy_report_dump(const void *start, size_t bytes, ptrdiff_t offset, const char *indent) {
    size_t lines_before_last = bytes ? (bytes - 1) / DUMP_LINE : 0;
    size_t width = width_of(offset);
    size_t last = width_of(offset + (ptrdiff_t)(lines_before_last * DUMP_LINE));
    if (last > width) width = last;
    for (size_t done = 0; done < bytes; done += DUMP_LINE) {
        size_t left = bytes - done;
        sy_report_text(indent);
        dump_line((const unsigned char *)start + done, left < DUMP_LINE ? left : DUMP_LINE,
                  offset + (ptrdiff_t)done, width);
        add_text("\n", 1);
    }
}
