/*
 * pprof.h: the part of the library that writes the profile when the process ends, if the option
 * `profile-file` asks for it. slabyard/profile.h declares the public functions of pprof.c.
 * Above: parts.c. Below: debug/profile.h.
 */
#ifndef SY_HEAP_PPROF_H
#define SY_HEAP_PPROF_H

#include "os/start.h"

/* At the start: has the profile written at the end of the process, if the option asks for it. */
extern SY_HIDDEN const sy_part sy_pprof_part;

#endif
