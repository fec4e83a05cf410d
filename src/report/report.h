/*
 * report.h: writes reports for the user, all in one format: to stderr, or to the file that the
 * option `report` names. A report is put together in memory of its own, without allocating, one
 * report at a time.
 *
 *     slabyard: double free: 0x7f2 in cache "order" (64 bytes)    what and where; red on a terminal
 *       allocated 1.2 ms ago by thread 4711:                      when, by which thread, if known
 *         #0 make_order at orders.c:17
 *       next: ...                                                 what to do
 *
 * Below: lookup.h, debug/, os/. Used by the reports in this folder. A thread that begins a
 * report holds no lock. errno is kept from the beginning of a report to its end.
 */
#ifndef SY_REPORT_REPORT_H
#define SY_REPORT_REPORT_H

#include <slabyard/fault.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug/callback.h"
#include "debug/watch.h"
#include "os/start.h"
#include "report/lookup.h"

/* Begins a report; other threads wait. Returns false if this thread is in a report already: then
 * the caller writes nothing. A report longer than 64 KiB is cut off, and says so. */
bool sy_report_begin(void);
/* Writes the report, and lets other threads begin one. If the file cannot be written, the report
 * goes to stderr and says so. */
void sy_report_end(void);
/* In the child of a fork, no thread is in a report. */
extern SY_HIDDEN const sy_part sy_report_part;

/* Writes a line outside of reports, at once, even while a report is being made. The caller may hold
 * locks, except the lock of the options. errno is kept. */
void sy_report_line(const char *line, size_t bytes);

void sy_report_text(const char *text);
void sy_report_number(uint64_t value);
void sy_report_hex(uint64_t value);
/* "1.2 ms", "64 KiB", "1 byte" */
void sy_report_time(uint64_t ns);
void sy_report_bytes(uint64_t bytes);
/* "65536 bytes", "1 byte" */
void sy_report_exactly(uint64_t bytes);
/* The text between these two calls is emphasised on a terminal: the headline. */
void sy_report_loud(void);
void sy_report_quiet(void);
/*
 * Adds the lines of a stack, each with `indent` before it, numbered from #0: the program's function
 * that made the call. It leaves out the functions of Slabyard and of the C++ and Rust libraries
 * through which the call went, and the functions of the C library and of Rust's runtime around main
 * or a thread's function.
 */
void sy_report_stack(const void *const *frames, size_t depth, const char *indent);
/* Adds these lines in two steps: sy_report_look finds the lines, sy_report_looked adds them.
 * Between them, sy_report_sees_runtime_alone tells whether Rust's runtime made the call for itself:
 * before main, or for objects that it keeps. `next` (NULL: none) names the stacks that are added
 * after this one, so that their lines are found together (lookup.h). */
void sy_report_look(const void *const *frames, size_t depth, sy_lookup_next *next, void *arg);
bool sy_report_sees_runtime_alone(void);
/* A number of the line where the stack begins, most likely another one for each line. */
uint32_t sy_report_seen_line(void);
void sy_report_looked(const char *indent);
/* Adds the thread that writes the report, and the stack (stack.h) where it is. */
void sy_report_place(uint32_t stack);
/* Adds what was done ("freed"), when and by which thread, and a line for each frame. Adds nothing
 * if that was not recorded (no frames and no thread). */
void sy_report_trace(const char *done, const sy_trace *trace);
/* As sy_report_trace, but says how many nanoseconds later this was done than what was told before;
 * 0: does not say when. */
void sy_report_next_trace(const char *done, uint64_t later, const sy_trace *trace);
/* The reports of debug/tell.h: each begins and ends one. */
bool sy_fault_write(const sy_fault *fault);
bool sy_callback_write(const sy_callee *callee, const char *how, const char *next);
void sy_report_address(uintptr_t address);

/* The report on an address in the slot of a checked object, or in its zones. */
void sy_report_record(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object);

/* Adds `bytes` in hex, 16 in a line, counted from `offset`:  +64  41 00 ...  A. */
void sy_report_dump(const void *start, size_t bytes, ptrdiff_t offset, const char *indent);

#endif
