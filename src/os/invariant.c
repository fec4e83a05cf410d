/*
 * invariant.c: in a debug build, writes a broken invariant to stderr and aborts.
 */
#include "os/invariant.h"

#include <stdio.h>

#include "os/os.h"

#ifdef SY_DEBUG

_Noreturn void sy_invariant_broken(const char *condition, const char *file, int line) {
    char text[512];
    snprintf(text, sizeof text, "slabyard: invariant broken: %s at %s:%d\n", condition, file, line);
    sy_os_abort(text);
}

#endif
