/*
 * touch.h: backs memory by an access, for systems that have no call for it.
 */
#ifndef SY_OS_TOUCH_H
#define SY_OS_TOUCH_H

#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

/* Writes to each page without changing it, even if other threads write. */
static inline void sy_os_touch(void *start, size_t bytes) {
    for (size_t at = 0; at < bytes; at += sy_os_page_size())
        __atomic_fetch_or((uint32_t *)(void *)((char *)start + at), 0, __ATOMIC_RELAXED);
}

#endif
