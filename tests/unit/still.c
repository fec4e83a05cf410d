/*
 * still.c: linked into tests that count what the library holds: nothing goes back by itself there,
 * however slowly they run. Tests of that set a decay of their own.
 */
#include <slabyard/reclaim.h>

__attribute__((constructor)) static void stand_still(void) { sy_set_decay(0); }
