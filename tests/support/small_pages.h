/*
 * small_pages.h: whether the kernel was told to give a mapping no huge pages.
 */
#ifndef SLABYARD_TESTS_SMALL_PAGES_H
#define SLABYARD_TESTS_SMALL_PAGES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/child.h"

/* Whether the mapping at an address has the advice. */
static inline bool keeps_small_pages(const void *address) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    uintptr_t start, end, at = (uintptr_t)address;
    bool inside = false, advised = false;
    must(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2)
            inside = start <= at && at < end;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) advised = strstr(line, " nh") != NULL;
    }
    fclose(maps);
    return advised;
}

/* False where the kernel has no huge pages, or does not list the advice. */
static inline bool has_small_page_advice(void) {
    const size_t bytes = (size_t)getpagesize();
    void *own = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(own != MAP_FAILED);
    bool has = madvise(own, bytes, MADV_NOHUGEPAGE) == 0 && keeps_small_pages(own);
    must(munmap(own, bytes) == 0);
    return has;
}

#endif
