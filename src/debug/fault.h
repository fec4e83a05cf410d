/*
 * fault.h: the one path of every misuse that is found: to the program's fault handler, or else to a
 * report and the end of the process (option on-fault).
 *
 * Nothing here allocates. Callers hold no lock. Below: tell.h, options.h, os/.
 */
#ifndef SY_DEBUG_FAULT_H
#define SY_DEBUG_FAULT_H

#include <slabyard/fault.h>

/* Calls the fault handler; without one, reports the fault and ends the process. Returns if the
 * program is to continue. errno is kept, unless a handler changes it. */
void sy_fault_raise(const sy_fault *fault);

/* Tells of a fault, but never ends the process: for callers that only examine. */
void sy_fault_tell(const sy_fault *fault);

#endif
