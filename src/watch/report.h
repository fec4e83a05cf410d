/*
 * report.h: what a person is told, in one format: on stderr, or in the file that the option
 * `report` names. Put together in memory of its own, without allocating, one report at a time.
 *
 *     slabyard: double free: 0x7f2 in cache "order" (64 bytes)    what and where; red on a terminal
 *       allocated 1.2 ms ago by thread 4711:                      who, if it is known
 *         #0 make_order at orders.c:17
 *       next: ...                                                 what to do
 *
 * Below: lookup.h, options.h, os/. Used by fault.c and the reports of leaks. Whoever begins a
 * report holds no lock; errno is kept from its beginning to its end.
 */
#ifndef SY_WATCH_REPORT_H
#define SY_WATCH_REPORT_H

#include <slabyard/fault.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"
#include "watch/lookup.h"

/* Begins a report; others wait. If this thread is in one already: false, and nothing is to be
 * done. What is longer than 64 KiB is cut off, and the report says so. */
bool sy_report_begin(void);
/* Writes what there is, and lets others. If the file cannot be written: to stderr, and says so. */
void sy_report_end(void);
/* In the child of a fork nobody is in a report. */
extern SY_HIDDEN const sy_part sy_report_part;

/* A line that is no report: written at once, whatever reports are being made; locks may be held,
 * but that of the options. errno is kept. */
void sy_report_line(const char *line, size_t bytes);

void sy_report_text(const char *text);
void sy_report_number(uint64_t value);
void sy_report_hex(uint64_t value);
/* "1.2 ms", "64 KiB", "1 byte" */
void sy_report_time(uint64_t ns);
void sy_report_bytes(uint64_t bytes);
/* "65536 bytes", "1 byte" */
void sy_report_exactly(uint64_t bytes);
/* The headline is emphasised between these, on a terminal. */
void sy_report_loud(void);
void sy_report_quiet(void);
/*
 * Lines of a stack, each with `indent` before, numbered from #0: the program's function that made
 * the call. Left out are functions of Slabyard and of the libraries of C++ and Rust that it called
 * to get there, and what the C library and Rust's runtime do around main and a thread's function.
 */
void sy_report_stack(const void *const *frames, size_t depth, const char *indent);
/* The same in two steps: the lines are found, and told. Between them: whether Rust's runtime made
 * the call for itself, before main or for what it keeps. `next` (NULL: none) tells the stacks that
 * are told after this one, so that their lines are found together (lookup.h). */
void sy_report_look(const void *const *frames, size_t depth, sy_lookup_next *next, void *arg);
bool sy_report_sees_runtime_alone(void);
void sy_report_looked(const char *indent);
/* Which thread writes the report, and the stack (stack.h) of where it is. */
void sy_report_place(uint32_t stack);
/* What was done ("freed"), when, by whom: a line, and one for each frame; nothing if that was not
 * noted (no frames and no thread). */
void sy_report_trace(const char *done, const sy_trace *trace);
/* `bytes` in hex, 16 in a line, counted from `offset`:  +64  41 00 ...  A. */
void sy_report_dump(const void *start, size_t bytes, ptrdiff_t offset, const char *indent);

#endif
