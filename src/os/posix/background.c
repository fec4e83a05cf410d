/*
 * background.c: the part of os.h for background threads, by POSIX threads.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_POSIX && !SY_PLATFORM_LINUX

#    include <errno.h>
#    include <pthread.h>
#    include <signal.h>

static void *run(void *plan) {
    ((const sy_os_background *)plan)->body();
    return NULL;
}

/* The mask of the thread that started the last background thread. */
static sigset_t starters_mask;

static int start_with_stack(const sy_os_background *plan, size_t stack) {
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack) pthread_attr_setstacksize(&attributes, stack);
    error = pthread_create(&thread, &attributes, run, (void *)plan);
    pthread_attr_destroy(&attributes);
    return error;
}

/* If the system refuses the size of the stack, the thread gets the usual one. */
static int start_detached(const sy_os_background *plan) {
    int error = start_with_stack(plan, plan->stack);
    return error == EINVAL && plan->stack ? start_with_stack(plan, 0) : error;
}

/* A new thread inherits the signal mask. So all signals are blocked while it is made. */
int sy_os_start_thread(const sy_os_background *thread) {
    if (sy_os_is_failing("start_thread")) return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    starters_mask = before;
    int error = start_detached(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? 0 : sy_os_failed(error);
}

void sy_os_forget_background(void) {}

void sy_os_take_signals(void) { pthread_sigmask(SIG_SETMASK, &starters_mask, NULL); }

#endif
