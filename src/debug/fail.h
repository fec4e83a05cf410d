/*
 * fail.h: decides whether an allocation or a system call is made to fail. slabyard/fail.h describes
 * the rules.
 *
 *     allocation in cache/, heap/ ---sy_fail_due---+
 *                                                  +--> rules, each with a count --> a report
 *     os/failing.c --function of sy_os_set_failing-+
 *
 * Every rule that matches an allocation counts it, whether another rule makes it fail or not. So
 * the counts do not depend on the order of the rules. Without rules, an allocation only tests one
 * byte.
 *
 * Above: the functions that see every allocation; options.c, which calls sy_fail_valid. Below:
 * tell.h, options.h, os/.
 */
#ifndef SY_DEBUG_FAIL_H
#define SY_DEBUG_FAIL_H

#include <slabyard/base.h>
#include <slabyard/fail.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "os/start.h"

/* Whether there are rules for allocations. */
extern SY_HIDDEN _Atomic bool sy_fail_armed;

bool sy_fail_due_armed(const char *cache, size_t size);

/* Called once by each allocation, before it takes anything. Returns true if the allocation has to
 * fail: errno is ENOMEM then, and the failure was reported. Returns false with errno kept. The
 * caller holds no lock. */
static inline bool sy_fail_due(const char *cache, size_t size) {
    return atomic_load_explicit(&sy_fail_armed, memory_order_relaxed) &&
           sy_fail_due_armed(cache, size);
}

/* Whether a rule matches this cache. Then each of its allocations must call sy_fail_due. */
bool sy_fail_wants(const char *cache);

/* Whether the text is a specification. */
bool sy_fail_valid(const char *specification);

/* Carries out the option `fail` if it was set since the last call (options.h). */
void sy_fail_apply_option(void);

extern SY_HIDDEN const sy_part sy_fail_part;

#endif
