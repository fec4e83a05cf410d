/*
 * pages.c: reserves and commits memory for the library's own tables in one call, and returns it.
 */
#include "os/pages.h"

#include <errno.h>

#include "os/race.h"

void *sy_pages_take(size_t bytes, size_t align, const char *name) {
    void *start = sy_os_reserve(bytes, align, name);
    if (!start) return NULL;
    if (sy_os_commit(start, bytes) == 0) {
        sy_race_own(start, bytes);
        return start;
    }
    sy_os_release(start, bytes);
    errno = ENOMEM;
    return NULL;
}

void sy_pages_give(void *start, size_t bytes) {
    int error = errno;
    if (sy_os_release(start, bytes) != 0) sy_os_discard(start, bytes);
    errno = error;
}
