/* host_last_thread.c in programs that are linked with the library: there the background thread is
 * one of the C library's, which counts it as one of the process. Each child starts it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include <slabyard/slabyard.h>

static void start_thread(void) {
    if (sy_maintenance_start() != 0) abort();
}

/* After the library's own function, which the first use has registered. */
__attribute__((constructor)) static void prepare_children(void) {
    sy_free(sy_malloc(1));
    pthread_atfork(NULL, NULL, start_thread);
}

#define malloc sy_malloc
#define free   sy_free
#include "hosts/host_last_thread.c"
