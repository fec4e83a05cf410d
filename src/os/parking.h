/*
 * parking.h: a parking lot: threads wait for words of memory, and wake each other, by mutexes and
 * condition variables. It is for platforms whose system has no call for this (SY_PLATFORM_PARKS);
 * there it defines sy_os_wait, sy_os_wait_for and sy_os_wake.
 *
 * Above: the files of these platforms. Below: the C library's threads. It does not allocate.
 */
#ifndef SY_OS_PARKING_H
#define SY_OS_PARKING_H

/* Called in the child of a fork, before any other function of the lot: other threads of the parent
 * may have been in it. */
void sy_parking_clear(void);

#endif
