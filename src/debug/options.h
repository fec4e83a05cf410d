/*
 * options.h: the options as the library reads them. The table of their names, values and meanings
 * is in options.c. docs/options.md contains the same table, and a test compares the two.
 *
 * The options are read at the first use of the library (sy_options_load), and changed by
 * sy_set_options. Each field is a word of its own, written atomically, and is read by itself. If a
 * layer above implements an option, the value waits here until that layer takes it
 * (sy_options_take).
 *
 * Lowest file of debug/, over values.h and os/.
 */
#ifndef SY_DEBUG_OPTIONS_H
#define SY_DEBUG_OPTIONS_H

#include <slabyard/checks.h>
#include <slabyard/options.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

enum { SY_OPTION_TEXT_MAX = 255 }; /* bytes of an option's text: a path, names, rules */

typedef enum sy_when { SY_WHEN_AUTO, SY_WHEN_ALWAYS, SY_WHEN_NEVER } sy_when;
typedef enum sy_unwind { SY_UNWIND_AUTO, SY_UNWIND_FRAMES, SY_UNWIND_TABLES } sy_unwind;
typedef enum sy_tools { SY_TOOLS_AUTO, SY_TOOLS_OFF, SY_TOOLS_MALLOC } sy_tools;
/* Whether bad accesses are explained. Auto: once there are guarded objects. */
typedef enum sy_explain { SY_EXPLAIN_AUTO, SY_EXPLAIN_YES, SY_EXPLAIN_NO } sy_explain;
/* Whether a background thread does passes. Auto: once much memory is in use. */
typedef enum sy_maintenance {
    SY_MAINTENANCE_AUTO,
    SY_MAINTENANCE_YES,
    SY_MAINTENANCE_NO
} sy_maintenance;
/* SY_LEAKS_LOST: only unreachable objects are reported. */
enum { SY_LEAKS_AT_DESTROY = 1, SY_LEAKS_AT_EXIT = 2, SY_LEAKS_LOST = 4 };
/* Options that other layers carry out. Their values: milliseconds, 0: never; sy_maintenance; bytes,
 * 0: none; per cent, 0: none; a text; a signal (os.h), 0: none. */
typedef enum sy_late {
    SY_LATE_DECAY,
    SY_LATE_MAINTENANCE,
    SY_LATE_LIMIT,
    SY_LATE_SLACK,
    SY_LATE_FAILURES,
    SY_LATE_STATS_ON
} sy_late;

typedef struct sy_options {
    _Atomic unsigned checks;      /* SY_CHECKED and other flags, for caches that `only` matches */
    _Atomic uint32_t redzone;     /* bytes on each side: a multiple of 16, 16 to 65,536 */
    _Atomic uint32_t quarantine;  /* freed objects that a cache keeps back, at least 1 */
    _Atomic bool quarantine_said; /* SLABYARD or the program has set the option by its name */
    _Atomic uint32_t audit_log;   /* operations that a cache records: a power of two, or 0 */
    _Atomic uint32_t guard_every; /* one allocation in so many; 1: all */
    _Atomic uint32_t
        sample_every;             /* the drop-in malloc guards one allocation in so many; 0: none */
    _Atomic uint64_t profile;     /* bytes that one sample of the profile stands for; 0: none */
    _Atomic uint32_t guard_slots; /* guarded objects at a time, freed ones included */
    _Atomic uint32_t stack_depth; /* frames of a stack that are recorded */
    _Atomic unsigned unwind;      /* sy_unwind */
    _Atomic unsigned leaks;       /* SY_LEAKS_...; 0: off */
    _Atomic unsigned leak_status; /* exit status of a process with leaks; 0: unchanged */
    _Atomic unsigned explain;     /* sy_explain */
    _Atomic unsigned tools;       /* sy_tools */
    _Atomic unsigned colour;      /* sy_when */
    _Atomic size_t huge;          /* bytes in use from which there are huge pages; 0: never */
    _Atomic bool exit_check;      /* free objects with poison are verified when the process ends */
    _Atomic bool symbols;         /* reports name functions and lines */
    _Atomic bool system_files;    /* files of the system are read in the background */
    _Atomic bool stats;           /* an account of memory is written at exit */
    _Atomic bool go_on;           /* the process continues after a report */
} sy_options;

extern SY_HIDDEN sy_options sy_options_now;

/* Reads SLABYARD at the first call; later calls do nothing. Any thread may call it at any time, if
 * it holds no lock of rank SY_RANK_OPTIONS. errno is kept. */
void sy_options_load(void);

/* Whether SLABYARD asks for reports of bad accesses: by `explain`, or by guarded objects from the
 * first allocation on. It looks at the text, and reads no options. */
bool sy_options_ask_for_accesses(void);

/* Makes `maintenance=auto` the default, as it is the drop-in malloc's. If SLABYARD or the program
 * has set the option, nothing changes. The Rust crate calls it when it serves the first allocation
 * of a program whose allocator it is; the library may have started before. */
void sy_options_auto_maintenance(void);

/* Whether the option `only` matches a cache of this name. It has names with * and ?, and + between
 * them. */
bool sy_options_mean(const char *cache);

/* Copies the option's text: at most SY_OPTION_TEXT_MAX bytes and a 0; "" if it is not set. */
void sy_options_report_path(char *path);
void sy_options_stats_path(char *path);
void sy_options_profile_path(char *path);
void sy_options_failures(char *text);

/* For the layer that carries out the option: whether it was set since the last call. Sets *value to
 * its present value. */
bool sy_options_take(sy_late option, uint64_t *value);

/* From now on `changed` is called, without a lock, when sy_set_options has changed an option. */
void sy_options_on_change(void (*changed)(void));

extern SY_HIDDEN const sy_part sy_options_part;

#endif
