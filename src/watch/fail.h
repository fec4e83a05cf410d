/*
 * fail.h: what asks whether an allocation is made to fail. The rules are those of slabyard/fail.h.
 *
 *     door of cache/, heap/ --sy_fail_due--+
 *                                          +--> rules, each with its count --> a line of report
 *     os/linux.c --sy_os_set_failing's-----+
 *
 * Every rule that means an allocation counts it, whether another one makes it fail or not; so the
 * counts do not depend on their order. Without rules all this costs a door the test of one byte.
 *
 * Above: the doors that see every allocation; options.c, which asks whether a text is a
 * specification. Below: report.h, options.h, os/.
 */
#ifndef SY_WATCH_FAIL_H
#define SY_WATCH_FAIL_H

#include <slabyard/base.h>
#include <slabyard/fail.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "os/start.h"

/* Whether there are rules. */
extern SY_HIDDEN _Atomic bool sy_fail_armed;

bool sy_fail_due_armed(const char *cache, size_t size);

/* Asked once by each allocation, before anything is taken. True: it is to fail; errno is ENOMEM and
 * it was told. False: errno is kept. The caller holds no lock. */
static inline bool sy_fail_due(const char *cache, size_t size) {
    return atomic_load_explicit(&sy_fail_armed, memory_order_relaxed) &&
           sy_fail_due_armed(cache, size);
}

/* Whether a rule means this cache, which then has to ask for each of its allocations. */
bool sy_fail_wants(const char *cache);

/* Whether it is a specification. */
bool sy_fail_valid(const char *specification);

/* Carries out what the option `fail` says, if it was said since the last time; options.h. */
void sy_fail_apply_option(void);

extern SY_HIDDEN const sy_part sy_fail_part;

#endif
