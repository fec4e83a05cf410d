/*
 * reached.c: whether other threads may change the bounds of a loaded slot (sleepers.h).
 */
#include "magazine/sleepers.h"
#include "os/platform.h"

SY_REPLACEABLE bool sy_threads_may_be_reached(void) { return false; }
