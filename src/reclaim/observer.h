/*
 * observer.h: the observer, a thread that reads the facts about the system (os/facts.h) while the
 * maintenance thread runs. The maintenance thread starts it and ends it.
 *
 * They are two threads because they need different descriptor tables. The observer opens files. If
 * it used the program's table, other threads would see its descriptors: the next open() of the
 * program would return another number. The maintenance thread calls functions of the program and,
 * as the last thread, ends the process. Both need the program's table.
 *
 * Above: maintenance.c. Below: chunk/pressure.h, os/.
 */
#ifndef SY_RECLAIM_OBSERVER_H
#define SY_RECLAIM_OBSERVER_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts the observer; false: the system has refused. Only the maintenance thread calls these two,
 * the second one after a success of the first one. */
bool sy_observer_start(void);
void sy_observer_end(void);

/* Whether the process has much free memory that could go back. Then tasks that wait for memory are
 * looked for every 20 ms, and the memory limit every 60 ms; else both once a second. */
void sy_observer_watch(bool closely);

/* What the observer has seen: tasks wait for memory; the memory limit is near. It wakes the
 * maintenance thread, which sets the word to 0. */
enum { SY_OBSERVER_STALL = 1, SY_OBSERVER_LIMIT = 2 };
extern SY_HIDDEN _Atomic unsigned sy_observer_saw;

#endif
