/*
 * services.c: what a program can ask about the library: its version, and whether its platform has a
 * service.
 */
#include "debug/services.h"

#include <errno.h>
#include <slabyard/options.h>
#include <string.h>

#include "os/os.h"

/* Indexed by the number of the bit. */
static const struct {
    char name[16], meaning[44]; /* no pointers: the table is in no page of a process's own */
} services[] = {
    {"free-addresses", "address space that takes no memory"},
    {"discards", "return of single pages"},
    {"moves", "pages that move"},
    {"huge-pages", "huge pages"},
    {"locks", "locked memory"},
    {"guards", "guard pages"},
    {"accesses", "reports of bad accesses"},
    {"threads", "threads"},
    {"background", "background threads"},
    {"observer", "a background thread that reads files"},
    {"barriers", "memory barriers on all threads"},
    {"forks", "fork"},
    {"copies", "copies of the process"},
    {"limits", "limits of memory"},
    {"resident", "the memory in use"},
    {"stacks", "recorded stacks"},
    {"places", "names of functions"},
    {"detectors", "detectors of races"},
    {"locked-returns", "return of locked pages"},
    {"reports", "reports"},
    {"signals", "signals"},
};

enum { SERVICES = sizeof services / sizeof *services };

_Static_assert(SY_OS_SIGNALS == 1u << (SERVICES - 1), "a row for each bit");

const char *sy_service_meaning(unsigned service) {
    unsigned row = 0;
    while (row < SERVICES - 1 && !(service & 1u << row)) row++;
    return services[row].meaning;
}

int sy_platform_has(const char *service) {
    for (unsigned row = 0; service && row < SERVICES; row++)
        if (strcmp(service, services[row].name) == 0) return sy_os_has(1u << row);
    errno = EINVAL;
    return -1;
}

unsigned sy_version(void) { return SY_VERSION; }
