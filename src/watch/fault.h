/*
 * fault.h: one road for every misuse that is seen: the user's handler, or a report and the end of
 * the process (option on-fault).
 *
 * Nothing here allocates; callers hold no lock. Below: report.h, options.h, os/.
 */
#ifndef SY_WATCH_FAULT_H
#define SY_WATCH_FAULT_H

#include <slabyard/fault.h>

/* To the handler, or a report and the end of the process. Returns if the program is to go on; errno
 * is kept, unless a handler changes it. */
void sy_fault_raise(const sy_fault *fault);

/* The same for who only looks: the process goes on. */
void sy_fault_tell(const sy_fault *fault);

#endif
