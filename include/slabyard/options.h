/*
 * slabyard/options.h: what can be set without compiling anything again.
 *
 *     SLABYARD=check,poison,quarantine=1000 ./server
 *
 * The environment variable SLABYARD is read when the library is first used (not in programs that
 * run with more rights than their user, AT_SECURE): options with commas between, each `name` or
 * `name=value`. What it does not understand is told on stderr, and the rest holds. The same can be
 * said by call. All options, with their values and meanings, are in docs/options.md and in
 * sy_each_option().
 *
 * Options that say how objects lie bind a cache when it is created, and the size classes of
 * sy_malloc when they are first used: set them first.
 */
#ifndef SLABYARD_OPTIONS_H
#define SLABYARD_OPTIONS_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

typedef struct sy_option {
    const char *name;
    const char *values;  /* what may be said after `=`, for people: "N, 1 to 64" */
    const char *bare;    /* what the name alone means; NULL: a value is needed */
    const char *initial; /* the value when nothing was said */
    const char *meaning; /* a sentence */
} sy_option;

/* Sets options, written as in SLABYARD; of two that contradict each other the later one holds. 0;
 * or -1 with EINVAL: one is unknown or has no such value, and nothing was changed. Any thread. */
SY_API int sy_set_options(const char *text);

/* The value of an option as it was said last, in the form that sy_set_options takes: text of at
 * most `room` bytes with its 0. Its length; or -1 with EINVAL (no such option) or ERANGE (no room).
 * Any thread. */
SY_API int sy_get_option(const char *name, char *value, size_t room);

/* Calls `visit` for each option until it returns something else than 0; returns that. */
SY_API int sy_each_option(int (*visit)(void *arg, const sy_option *option), void *arg);

SY_END_DECLS

#endif
