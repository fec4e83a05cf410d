/*
 * fault.h: one road for every misuse that is seen: the user's handler, or a line on stderr and
 * abort.
 *
 * Nothing here allocates or takes a lock; callers hold none. Below: os.
 */
#ifndef SY_WATCH_FAULT_H
#define SY_WATCH_FAULT_H

#include <slabyard/fault.h>

void sy_fault_raise(const sy_fault *fault);

#endif
