/*
 * still.c: linked into tests that count the library's memory. It switches off the return of memory
 * by age, so that the counts do not depend on the time. A test of the return by age sets its own
 * decay.
 */
#include <slabyard/reclaim.h>

__attribute__((constructor)) static void stand_still(void) { sy_set_decay(0); }
