/*
 * resident.h: how much memory the system holds for this process.
 */
#ifndef SLABYARD_TESTS_RESIDENT_H
#define SLABYARD_TESTS_RESIDENT_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/child.h"

/* Some systems give pages of 2 MiB to every program. Then one byte that is written makes 2 MiB
 * resident. This process gets none from here on, nor do its children. */
static inline void take_small_pages_only(void) { (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

/* Bytes that belong to no file, counted exactly, page by page; without allocating. One thread at a
 * time. */
static inline size_t resident_anonymous(void) {
    static const char name[] = "\nAnonymous:";
    static char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    must(length > 0);
    text[length] = 0;
    const char *line = strstr(text, name);
    must(line != NULL);
    return strtoull(line + sizeof name - 1, NULL, 10) << 10;
}

#endif
