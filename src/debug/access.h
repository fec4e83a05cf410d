/*
 * access.h: explains accesses that the system refuses (SIGSEGV, SIGBUS): accesses to guarded
 * objects, and accesses through pointers that were read from a pattern of watch.h. The option
 * `explain` decides which of them are explained.
 *
 * Below: fault.h, options.h, os/. Used by guard.c and watch.c.
 */
#ifndef SY_DEBUG_ACCESS_H
#define SY_DEBUG_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

/* The patterns with which watch.h fills free objects, and objects just allocated. illumos made both
 * values famous. A pointer read from either leads nowhere. */
#define SY_PATTERN_FREE UINT64_C(0xdeadbeefdeadbeef)
#define SY_PATTERN_NEW  UINT64_C(0xbaddcafebaddcafe)

/* Reports the fault behind an access. Returns false if nothing is known about the access. It takes
 * no lock, and is as safe in a signal handler as a report is. */
typedef bool sy_explainer(const sy_os_access *access);

/* From now on `explain` is asked about bad accesses, because there are guarded objects; or accesses
 * through patterns are explained too. With explain=no neither function does anything. With
 * explain=auto, patterns are explained only once there are guarded objects. */
void sy_access_expect_guards(sy_explainer *explain);
void sy_access_expect_patterns(void);

/* Explains an access through a pointer that was read from a pattern and is still in a register. */
bool sy_access_explain_pattern(const sy_os_access *access);

#endif
