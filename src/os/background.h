/*
 * background.h: how lower layers wake the background thread (reclaim/maintenance.c), and what this
 * thread learns about the end of the program's threads.
 *
 * Above: magazine/, chunk/, reclaim/. Below: lock.h, os.h.
 */
#ifndef SY_OS_BACKGROUND_H
#define SY_OS_BACKGROUND_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/start.h"

/* Changes at each call. The background thread sleeps while it stays the same. */
extern SY_HIDDEN _Atomic uint32_t sy_background_calls;

/* Wakes the background thread, if it runs. */
void sy_background_call(void);

/* Called by each thread that has used magazines, when it ends. If the first thread of the process
 * has ended, perhaps only background threads are left now. So this wakes the background thread. */
void sy_background_thread_ends(void);

/* Whether the first thread has called that. */
bool sy_background_first_has_ended(void);

/* In the child of a fork, the thread that forked is the first one. */
extern SY_HIDDEN const sy_part sy_background_part;

#endif
