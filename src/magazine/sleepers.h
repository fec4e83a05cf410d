/*
 * sleepers.h: takes items out of the slots of threads that run but do not use them: they sleep, or
 * hardly call.
 *
 * Above: reclaim/, for the maintenance thread. roster.c calls sy_threads_open_again.
 */
#ifndef SY_MAGAZINE_SLEEPERS_H
#define SY_MAGAZINE_SLEEPERS_H

#include <stdbool.h>

/*
 * Takes the items of each slot whose `top` is where it was at the last call, from all threads but
 * the calling one, and flushes them. `all`: of each slot. The newest item of a slot stays. Slots of
 * clients whose flush may call functions of the program are left out, reserved items too. Does
 * nothing if sy_threads_may_be_reached is false or the system has no barrier for threads.
 */
void sy_threads_reach(bool all);

/*
 * Whether another thread may change the bounds of a loaded slot: false. Replaceable: a product
 * defines this function if each operation of its programs reads the bounds anew, because it is a
 * call, or was compiled with headers that have sy_loaded_begin.
 */
bool sy_threads_may_be_reached(void);

/* In the child of a fork: the thread that was reaching into this thread's slots is gone. */
void sy_threads_open_again(void);

#endif
