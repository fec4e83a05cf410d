/*
 * os.h: what Slabyard asks of an operating system, and nothing else does.
 *
 * Above: every layer. Below: one file per platform (linux.c) that implements all of it; fake.c
 * stands between the two in tests, so that each failure named here can be made to happen. Anyone
 * above may call; nobody above makes a system call by another way, and no layer has an #ifdef.
 *
 * An address goes through these states, always in whole pages:
 *
 *                 reserve              commit              first write, populate
 *      (nothing) --------> reserved --------> committed --------------------> backed
 *                             ^                  ^                              |
 *          release from any   |                  +---------- discard -----------+
 *          of them: nothing   +-- (never again: what is committed stays so)
 *
 * What always holds:
 *   - Failure is NULL or -1 with errno, and nothing has changed unless said otherwise.
 *   - Success leaves errno as it was. (A free must not disturb it.)
 *   - Nothing here calls malloc, except where said; nothing here takes a lock.
 *   - All of it may be called from any thread. Ranges are the caller's: two threads must not work
 *     on the same range at once.
 *   - start and bytes of a range are multiples of sy_os_page_size(), bytes is not 0, and the whole
 *     range lies in address space that sy_os_reserve gave and sy_os_release did not take. The
 *     range may span reservations that happen to be neighbours. Breaking this is the caller's bug:
 *     unchecked here, fatal in the fake.
 */
#ifndef SLABYARD_OS_H
#define SLABYARD_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory ---- */

/* Address space, not accessible, costing no memory: `bytes` of it, its start a multiple of
 * `align` (a power of two, at least the page size). `name` shows in the system's list of mappings
 * where it has names: printable, under 80 characters, without \ $ ` [ ]; NULL for none.
 * ENOMEM: no address space, a limit on it, or too many mappings. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name);

/* The range becomes readable and writable and reads as zero; memory comes with the first write to
 * each page. What was committed before stays as it is, content included, so committing twice is
 * harmless. ENOMEM: the system does not promise that much, or too many mappings; then a front
 * part may have been committed all the same, which is again harmless. */
int sy_os_commit(void *start, size_t bytes);

/* Back a committed range with memory now, content untouched. ENOMEM: there is none; part of the
 * range may have been backed, which discard takes back. Where the system cannot say so (it only
 * overcommits), the failure is not seen here. */
int sy_os_populate(void *start, size_t bytes);

/* The content of a committed range is lost, its memory goes back to the system, and it reads as
 * zero. -1: the content may be lost or not, the memory is still held. */
int sy_os_discard(void *start, size_t bytes);

/* What `from` holds, memory and content, comes to lie at `to`, instead of what was there; both are
 * committed ranges of `bytes`, and `from` stays one, that reads as zero. -1: `from` is as it was,
 * the content of `to` may be lost; the system cannot do this, or not here. */
int sy_os_move(void *from, void *to, size_t bytes);

/* A reservation, or a part of one, goes, in whatever state its pages are. ENOMEM: taking out a
 * middle part would make one mapping too many; the range is as it was. */
int sy_os_release(void *start, size_t bytes);

/* Ask for transparent huge pages in the range, or ask that there be none. Advice: -1 where the
 * system has no such thing, and nothing depends on the answer. */
int sy_os_huge(void *start, size_t bytes, bool wanted);

/* Bytes of a page: a power of two, the same for the life of the process. */
size_t sy_os_page_size(void);

/* ---- processors, limits, time ---- */

/* A small number that differs between threads running at the same moment, and that a thread seldom
 * sees change: the concurrency id of the process, or else the processor. A hint: it may be stale
 * when it is read, and it may reach or pass sy_os_cpu_count(). Never fails; a load or two. */
unsigned sy_os_cpu(void);

/* Processors that this process may use at once: affinity and control-group quota (rounded up)
 * honoured. At least 1. Reads files: ask once. */
unsigned sy_os_cpu_count(void);

/* Processors that this process may run on at once, affinity alone honoured: what sy_os_cpu can tell
 * apart. At least 1. One system call, no file. */
unsigned sy_os_affinity_count(void);

/* Bytes of memory that this process may use: the least of control-group and resource limits,
 * SIZE_MAX if there is none. Reads files: ask seldom. */
size_t sy_os_memory_limit(void);

/* Nanoseconds of a clock that never goes back, from an arbitrary start. */
uint64_t sy_os_now(void);

/* 64 bits that outsiders cannot foresee; weaker where the system refuses. Never fails, never
 * waits. */
uint64_t sy_os_random(void);

/* ---- threads and processes ---- */

/* Sleep while *word == expected. May return for no reason: the caller looks again. */
void sy_os_wait(_Atomic uint32_t *word, uint32_t expected);

/* The same, for `ns` nanoseconds at most. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);

/* Wake up to `count` threads that sleep on the word. */
void sy_os_wake(_Atomic uint32_t *word, int count);

/* Run body(arg) on a new thread that nobody waits for, and to which no signal is delivered. EAGAIN
 * or ENOMEM: there is none. May call malloc. */
int sy_os_start_thread(void *(*body)(void *), void *arg);

/* When the calling thread exits, hook(arg) runs on it. There is one hook for the process (another
 * one is EINVAL) and one arg for each thread, the one said last; NULL takes it back. The hook may
 * register its thread again, and is then run once more, a few times at most. It does not run on
 * exit() of the process. ENOMEM or EAGAIN: not registered; may call malloc. */
int sy_os_at_thread_exit(void (*hook)(void *), void *arg);

/* Around fork: prepare in the parent before (last registered, first run), then parent or child
 * after it (first registered, first run). Any may be NULL. ENOMEM: not registered; may call
 * malloc. For ever: there is no way to take it back. */
int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* ---- the end ---- */

/* Write all of `text` to file descriptor `fd`, giving up at the first error; errno untouched. */
void sy_os_write(int fd, const char *text, size_t length);

/* End the process abnormally, with a core where the system makes them. */
_Noreturn void sy_os_abort(void);

#endif
