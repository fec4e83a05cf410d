/*
 * access.h: accesses that the system refuses, as far as something is known of them: of guarded
 * objects, and by pointers that were read from where watch.h had written a pattern. The option
 * `explain` decides who is heard.
 *
 * Below: fault.h, options.h, os/. Used by guard.c and watch.c.
 */
#ifndef SY_WATCH_ACCESS_H
#define SY_WATCH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

/* What watch.h fills objects with: free ones, and those just allocated. What illumos made famous. A
 * pointer read from either leads nowhere. */
#define SY_PATTERN_FREE UINT64_C(0xdeadbeefdeadbeef)
#define SY_PATTERN_NEW  UINT64_C(0xbaddcafebaddcafe)

/* Tells the fault that an access was, and true; false: nothing is known of it. Takes no lock; as
 * safe in the handler of a signal as a report is. */
typedef bool sy_explainer(const sy_os_access *access);

/* From now on there are guarded objects, of which `explain` knows; or patterns. */
void sy_access_expect_guards(sy_explainer *explain);
void sy_access_expect_patterns(void);

/* One by a pointer that was read from a pattern, as the registers have it. */
bool sy_access_explain_pattern(const sy_os_access *access);

#endif
