/*
 * options.h: the options as the library reads them. The table of their names, values and meanings
 * is in options.c; docs/options.md shows it, and a test holds the two equal.
 *
 * Read at the first use of the library (sy_options_load), changed by sy_set_options. A reader takes
 * a field at a time: each is a word of its own, written atomically. Options that layers above carry
 * out wait here until these take them.
 *
 * Lowest of watch/, over values.h and os/.
 */
#ifndef SY_WATCH_OPTIONS_H
#define SY_WATCH_OPTIONS_H

#include <slabyard/checks.h>
#include <slabyard/options.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

enum { SY_OPTION_TEXT_MAX = 255 }; /* bytes of a path, of names, of a specification of failures */

typedef enum sy_when { SY_WHEN_AUTO, SY_WHEN_ALWAYS, SY_WHEN_NEVER } sy_when;
typedef enum sy_unwind { SY_UNWIND_AUTO, SY_UNWIND_FRAMES, SY_UNWIND_TABLES } sy_unwind;
typedef enum sy_tools { SY_TOOLS_AUTO, SY_TOOLS_OFF, SY_TOOLS_MALLOC } sy_tools;
/* Whether bad accesses are explained; auto: once there are guarded objects. */
typedef enum sy_explain { SY_EXPLAIN_AUTO, SY_EXPLAIN_YES, SY_EXPLAIN_NO } sy_explain;
/* Whether a thread does passes; auto: once there is much memory. */
typedef enum sy_maintenance {
    SY_MAINTENANCE_AUTO,
    SY_MAINTENANCE_YES,
    SY_MAINTENANCE_NO
} sy_maintenance;
/* The last: only what nothing points to any more is told. */
enum { SY_LEAKS_AT_DESTROY = 1, SY_LEAKS_AT_EXIT = 2, SY_LEAKS_LOST = 4 };
/* What others carry out: milliseconds, 0: never; 0 or 1; bytes, 0: none; a text. */
typedef enum sy_late {
    SY_LATE_DECAY,
    SY_LATE_MAINTENANCE,
    SY_LATE_LIMIT,
    SY_LATE_FAILURES
} sy_late;

typedef struct sy_options {
    _Atomic unsigned checks;      /* SY_CHECKED and its kin, for every cache that is meant */
    _Atomic uint32_t redzone;     /* bytes on each side: a multiple of 16, 16 to 65,536 */
    _Atomic uint32_t quarantine;  /* objects of a cache that wait, at least 1 */
    _Atomic uint32_t audit_log;   /* operations of a cache that are kept: a power of two, or 0 */
    _Atomic uint32_t guard_every; /* one allocation in so many; 1: all */
    _Atomic uint32_t
        sample_every;             /* the drop-in malloc guards one allocation in so many; 0: none */
    _Atomic uint32_t guard_slots; /* guarded objects at a time, freed ones included */
    _Atomic uint32_t stack_depth; /* frames of a stack that are noted */
    _Atomic unsigned unwind;      /* sy_unwind */
    _Atomic unsigned leaks;       /* SY_LEAKS_...; 0: off */
    _Atomic unsigned leak_status; /* exit status where leaks were found; 0: what it would be */
    _Atomic unsigned explain;     /* sy_explain */
    _Atomic unsigned tools;       /* sy_tools */
    _Atomic unsigned colour;      /* sy_when */
    _Atomic bool exit_check;      /* free objects with poison are verified when the process ends */
    _Atomic bool symbols;         /* reports name functions and lines */
    _Atomic bool stats;           /* an account of memory is written at exit */
    _Atomic bool go_on;           /* reports do not end the process */
} sy_options;

extern SY_HIDDEN sy_options sy_options_now;

/* Reads SLABYARD, the first time; later calls find it done. Any thread, any time; no lock of rank
 * SY_RANK_OPTIONS is held. errno is kept. */
void sy_options_load(void);

/* Whether options for all caches mean the one of this name: `only`, names with * and ?, + between.
 */
bool sy_options_mean(const char *cache);

/* The options of text: a copy of at most SY_OPTION_TEXT_MAX bytes and a 0. "" when not set. */
void sy_options_report_path(char *path);
void sy_options_failures(char *text);

/* Whether the option was said since the last call, and what; for the layer that carries it out. */
bool sy_options_take(sy_late option, uint64_t *value);

/* From now on `changed` is called, without a lock, when sy_set_options has changed something. */
void sy_options_on_change(void (*changed)(void));

extern SY_HIDDEN const sy_part sy_options_part;

#endif
