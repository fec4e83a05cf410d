/**
 * slabyard/options.h: options that you set when a program starts, or by a call, without
 * recompiling.
 *
 *     SLABYARD=check,poison,quarantine=1000 ./server
 *
 * The environment variable SLABYARD is read when the library is first used. (It is ignored in
 * programs that run with more rights than their user, AT_SECURE.) It holds options separated by
 * commas, each `name` or `name=value`. Unknown options and values are reported on stderr, and the
 * others apply. The same options can be set by sy_set_options. All options, their values and
 * meanings are in docs/options.md and in sy_option_each().
 *
 * Options that change how objects are laid out apply to a cache when it is created, and to each
 * size class of sy_malloc when the class is first used. Set such options before that.
 */
#ifndef SLABYARD_OPTIONS_H
#define SLABYARD_OPTIONS_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/** An option, as sy_option_each describes it. */
typedef struct sy_option {
    const char *name;
    const char *values;  /* the values allowed after `=`, for people: "N, 1 to 64" */
    const char *bare;    /* the meaning of the name alone; NULL: a value is needed */
    const char *initial; /* the value in this library when the option was not set */
    const char *meaning; /* a sentence */
} sy_option;

/**
 * Sets options, written as in SLABYARD. If two contradict each other, the later one applies.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL     an option is unknown or has no such value
 *     ENOTSUP    an option needs a service that the platform does not have (sy_platform_has)
 *
 * Threads: any thread.
 */
SY_API int sy_set_options(const char *text);

/**
 * Writes the value of an option, as it was set last, to `value`, in the form that sy_set_options
 * takes. `room`: bytes at `value`, for the text and its terminating 0.
 *
 * Returns the length of the text, or -1 with errno.
 *
 * Errors:
 *     EINVAL    there is no such option
 *     ERANGE    not enough room
 *
 * Threads: any thread.
 */
SY_API int sy_get_option(const char *name, char *value, size_t room);

/**
 * Calls `visit` for each option until `visit` returns a value other than 0. The strings are
 * constants; the struct is valid until `visit` returns.
 *
 * Returns the value with which `visit` ended the iteration, or 0.
 */
SY_API int sy_option_each(int (*visit)(void *arg, const sy_option *option), void *arg);

/**
 * Tells whether the platform for which the library was built has a service. The services are those
 * in the table of docs/platforms.md: "free-addresses", "discards", "moves", "huge-pages", "locks",
 * "guards", "accesses", "threads", "background", "observer", "barriers", "forks", "copies",
 * "limits", "resident", "stacks", "places", "detectors", "locked-returns", "reports" and "signals".
 * On Linux all are there; the running kernel may still lack some, and a library may be built
 * without reports.
 *
 * Returns 1 or 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    there is no such service
 *
 * Threads: any thread. An example:
 *
 *     const char *checks = sy_platform_has("guards") == 1 ? "check,guard=1/100" : "check";
 *     if (sy_set_options(checks) != 0) perror("sy_set_options");
 */
SY_API int sy_platform_has(const char *service);

/**
 * Tells the version of the library, as SY_VERSION is that of the headers. So a program can see that
 * it runs with another version than it was compiled with.
 *
 * Returns a number such as 10203, which is 1.2.3.
 *
 * Threads: any thread. An example:
 *
 *     if (sy_version() != SY_VERSION)
 *         printf("compiled for %d, runs with %u\n", SY_VERSION, sy_version());
 */
SY_API unsigned sy_version(void);

SY_END_DECLS

#endif
