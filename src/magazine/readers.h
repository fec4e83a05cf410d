/*
 * readers.h: read guards (slabyard/handle.h). A thread that moves objects waits for the guards that
 * other threads had begun before it announced the move.
 *
 * Below: thread.h, os. Above: cache/.
 */
#ifndef SY_MAGAZINE_READERS_H
#define SY_MAGAZINE_READERS_H

#include <stdbool.h>
#include <stdint.h>

/* sy_read_enter and sy_read_leave. */
uint64_t sy_readers_enter(void);
void sy_readers_leave(uint64_t guard);

/* Chooses how readers and movers are ordered (readers.c), before the first cache whose objects
 * move. */
void sy_readers_start(void);

/* Whether this thread is in a read guard. */
bool sy_readers_has_own(void);

/* In the child of a fork: guards of threads without a record end, except this thread's. */
void sy_readers_forget_others(void);

/* Whether forks have ended guards of other threads, in which objects may have been half made. */
bool sy_readers_lost_any(void);

/* Waits some microseconds for the read guards that began before this call; false: one of them
 * lasts, or the system does not tell. Each guard that begins later sees what the caller stored
 * before the call. */
bool sy_readers_await(void);

#endif
