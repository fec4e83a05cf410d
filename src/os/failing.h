/*
 * failing.h: how the functions of os.h fail: with errno, and on demand (sy_os_set_failing).
 *
 * Above: the files of all platforms.
 */
#ifndef SY_OS_FAILING_H
#define SY_OS_FAILING_H

#include <errno.h>
#include <stdbool.h>

/* Sets errno. Returns -1. */
static inline int sy_os_failed(int error) {
    errno = error;
    return -1;
}

/* Whether the function of sy_os_set_failing lets this call fail; then errno is ENOMEM. */
bool sy_os_is_failing(const char *call);

#endif
