/* host_last_thread.c in programs that are linked with the library: there the background thread is
 * one of the C library's, which counts it as one of the process. */
#define _GNU_SOURCE
#include <stdlib.h>

#include <slabyard/slabyard.h>

/* Where there is no /proc, only the end of a thread that has had magazines is noticed. */
static void start_thread(void) {
    sy_free(sy_malloc(1));
    if (sy_maintenance_start() != 0) abort();
}

#define BEGIN  start_thread()
#define malloc sy_malloc
#define free   sy_free
#include "hosts/host_last_thread.c"
