/*
 * report.c: see report.h. What is guarded by the lock belongs to the report that is being made.
 */
#include "watch/report.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "os/lock.h"
#include "os/os.h"
#include "watch/dwarf.h"
#include "watch/options.h"
#include "watch/symbols.h"

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
static char path[SY_OPTION_TEXT_MAX + 1]; /* "": stderr */
static sy_symbols symbols;

static SY_TLS bool in_report;
static SY_TLS int errno_before;

/* ---- begin and end ---- */

static bool is_said(const char *name) {
    const char *text = sy_os_option(name);
    return text && *text;
}

static bool wants_colour(void) {
    unsigned when = atomic_load_explicit(&sy_options_now.colour, memory_order_relaxed);
    if (when != SY_WHEN_AUTO) return when == SY_WHEN_ALWAYS;
    return !*path && sy_os_is_terminal(2) && !is_said("NO_COLOR");
}

bool sy_report_begin(void) {
    if (in_report) return false;
    in_report = true;
    errno_before = errno;
    sy_options_load();
    sy_lock_acquire(&lock);
    length = 0;
    full = false;
    sy_options_report_path(path);
    coloured = wants_colour();
    return true;
}

/* To the end of the file, or to stderr if it is "" or cannot be written to. */
static void write_out(const char *file, const char *what, size_t bytes) {
    if (*file && sy_os_append(file, what, bytes) == 0) return;
    if (*file) {
        sy_text text = {.length = 0};
        sy_text_add(&text, "slabyard: cannot write to ");
        sy_text_add(&text, file);
        sy_text_add(&text, ", so here:\n");
        sy_os_write(2, text.bytes, text.length);
    }
    sy_os_write(2, what, bytes);
}

/* What was cut ends with a whole line, and says so. */
static void mark_cut(void) {
    while (length && buffer[length - 1] != '\n') length--;
    memcpy(buffer + length, cut_off, sizeof cut_off - 1);
    length += sizeof cut_off - 1;
}

void sy_report_end(void) {
    if (full) mark_cut();
    write_out(path, buffer, length);
    sy_lock_release(&lock);
    errno = errno_before;
    in_report = false;
}

void sy_report_line(const char *line, size_t bytes) {
    int error = errno;
    char file[SY_OPTION_TEXT_MAX + 1];
    sy_options_report_path(file);
    write_out(file, line, bytes);
    errno = error;
}

void sy_report_recover(void) {
    sy_lock_init(&lock, SY_RANK_REPORT);
    in_report = false;
}

/* ---- words ---- */

static void add(const char *text, size_t bytes) {
    if (bytes > REPORT_MAX - length || full) {
        full = true;
        return;
    }
    memcpy(buffer + length, text, bytes);
    length += bytes;
}

void sy_report_text(const char *text) { add(text, strlen(text)); }

static void add_in_base(uint64_t value, unsigned base) {
    sy_text text = {.length = 0};
    sy_text_add_in_base(&text, value, base);
    add(text.bytes, text.length);
}

void sy_report_number(uint64_t value) { add_in_base(value, 10); }

void sy_report_hex(uint64_t value) {
    add("0x", 2);
    add_in_base(value, 16);
}

/* The value in units of `unit`, with one digit behind the point while it is small. */
static void add_amount(uint64_t value, uint64_t unit, const char *name) {
    add_in_base(value / unit, 10);
    if (unit > 1 && value / unit < 10) {
        add(".", 1);
        add_in_base(value % unit * 10 / unit, 10);
    }
    add(" ", 1);
    sy_report_text(name);
}

typedef struct unit {
    uint64_t worth;
    const char *name;
} unit;

/* In the largest unit of which there is one. */
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

/* A function of the library's own: by its name, or, if it is static, by its file. */
static bool is_own(const char *line) {
    if (strncmp(line, "sy_", 3) == 0) return true;
    const char *file = strstr(line, " at " SY_DWARF_OWN_FILES), *end = strchr(line, '\n');
    return file && file < end;
}

/* The number of lines in front that are such; 0, if all are. */
static size_t own_lines(size_t depth) {
    size_t lines = 0;
    for (size_t i = 0; i < depth; i++)
        for (const char *line = sy_symbols_lines(&symbols, i); *line; line++) {
            if (!is_own(line)) return lines;
            lines++;
            line = strchr(line, '\n');
        }
    return 0;
}

static bool is_main(const char *line) {
    return strncmp(line, "main", 4) == 0 && (line[4] == ' ' || line[4] == '+');
}

enum { START_LINES = 3 }; /* of the C library, which calls main */

/* The number of lines up to that of main, without the few that are around it. */
static size_t lines_to_main(size_t depth) {
    size_t lines = 0, to_main = 0;
    for (size_t i = 0; i < depth; i++)
        for (const char *line = sy_symbols_lines(&symbols, i); *line;) {
            const char *next = strchr(line, '\n') + 1;
            lines++;
            if (is_main(line) && !*next) to_main = lines;
            line = next;
        }
    return to_main && lines - to_main <= START_LINES ? to_main : lines;
}

static void add_frame(const char *indent, size_t number, const char *line, size_t bytes) {
    sy_report_text(indent);
    add("#", 1);
    sy_report_number(number);
    add(" ", 1);
    add(line, bytes);
}

void sy_report_stack(const void *const *frames, size_t depth, const char *indent) {
    bool deep = atomic_load_explicit(&sy_options_now.symbols, memory_order_relaxed);
    sy_symbols_find(&symbols, frames, depth, deep);
    if (depth > SY_SYMBOLS_MAX) depth = SY_SYMBOLS_MAX;
    size_t own = own_lines(depth), end_of_program = lines_to_main(depth), seen = 0;
    for (size_t i = 0; i < depth; i++) {
        const char *line = sy_symbols_lines(&symbols, i);
        for (const char *end; *line; line = end) {
            end = strchr(line, '\n') + 1;
            seen++;
            if (seen > own && seen <= end_of_program)
                add_frame(indent, seen - 1 - own, line, (size_t)(end - line));
        }
    }
}

void sy_report_trace(const char *done, const sy_trace *trace) {
    if (!trace->depth && !trace->thread) return;
    sy_report_text("  ");
    sy_report_text(done);
    sy_report_text(" ");
    sy_report_time(trace->age);
    sy_report_text(" ago by thread ");
    sy_report_number(trace->thread);
    sy_report_text(trace->depth ? ":\n" : "\n");
    if (trace->depth) sy_report_stack(trace->frames, trace->depth, "    ");
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

/* What is shown may be hidden from the program, or being written by others. */
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
    pad_to(&text, width + 1 + 3 * DUMP_LINE + 2);
    for (size_t i = 0; i < bytes; i++) {
        bool printable = at[i] >= ' ' && at[i] < 127;
        sy_text_add(&text, (char[]){printable ? (char)at[i] : '.', 0});
    }
    add(text.bytes, text.length);
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
        add("\n", 1);
    }
}
