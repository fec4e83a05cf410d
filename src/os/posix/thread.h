/*
 * thread.h: what the threads of the C library and those of which it does not know share.
 */
#ifndef SY_OS_POSIX_THREAD_H
#define SY_OS_POSIX_THREAD_H

#include <slabyard/base.h>

/* Runs the hook of sy_os_at_thread_exit on the calling thread, whose argument is `arg`. */
void sy_posix_run_exit_hook(void *arg);

#endif
