/*
 * fake.h: the operating system of tests. It stands between Slabyard and the real one, fails what it
 * is told to fail, keeps account of what is outstanding, and dictates processor and time.
 *
 * Above: tests. Below: the platform's file. A test program links fake.c and gives the linker
 * --wrap=sy_os_x for every __wrap_sy_os_x in it; nothing in the library knows.
 *
 * Whatever is not told otherwise goes through to the real system. The preconditions of os.h are
 * checked at every call: a call that breaks one prints it and aborts. All calls may come from any
 * thread. Scripts are of the process, and count from when they are given.
 */
#ifndef SLABYARD_OS_FAKE_H
#define SLABYARD_OS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calls that can fail. SY_FAKE_ANY: in a script whichever comes, in a question all together. */
typedef enum sy_fake_call {
    SY_FAKE_RESERVE,
    SY_FAKE_COMMIT,
    SY_FAKE_POPULATE,
    SY_FAKE_DISCARD,
    SY_FAKE_MOVE,
    SY_FAKE_DECOMMIT,
    SY_FAKE_RELEASE,
    SY_FAKE_HUGE,
    SY_FAKE_LOCK,
    SY_FAKE_GUARD,
    SY_FAKE_AT_THREAD_EXIT,
    SY_FAKE_AT_FORK,
    SY_FAKE_START_THREAD,
    SY_FAKE_APPEND,
    SY_FAKE_STACK,
    SY_FAKE_LOCATE,
    SY_FAKE_LOAD, /* of a library, and of each name in it */
    SY_FAKE_ASK_CHILD,
    SY_FAKE_ASK_COPY,
    SY_FAKE_EACH_WRITTEN,
    SY_FAKE_AT_EXIT,
    SY_FAKE_BLOCK,
    SY_FAKE_ANY
} sy_fake_call;

/* ---- scripts: each stays until sy_fake_reset() or the next one for the same call ---- */

/* No call fails any more, the clock is the real one and so is this thread's processor, and counters
 * start from 0. What is outstanding stays so. */
void sy_fake_reset(void);

/* The n-th call from now fails, once; n is at least 1. */
void sy_fake_fail_nth(sy_fake_call call, uint64_t n);

/* The n-th call from now and every later one fails. */
void sy_fake_fail_from(sy_fake_call call, uint64_t n);

/* Of a thousand calls about `per_thousand` fail, the same ones for the same seed. */
void sy_fake_fail_randomly(sy_fake_call call, unsigned per_thousand, uint64_t seed);

/* Calls for more than `bytes` fail. */
void sy_fake_fail_above(sy_fake_call call, size_t bytes);

/* `function` runs before each call of this kind is made or fails, on its thread, where it may call
 * the library; NULL: nothing does. */
void sy_fake_run_before(sy_fake_call call, void (*function)(void));

/* The calls of this kind do as they would again. */
void sy_fake_succeed(sy_fake_call call);

/* sy_os_cpu() of the calling thread is `cpu` from now on; -1: the real one. */
void sy_fake_set_cpu(int cpu);

/* sy_os_cpu_count() and sy_os_memory_limit(); 0: the real ones. */
void sy_fake_set_cpu_count(unsigned count);
void sy_fake_set_memory_limit(size_t bytes);

/* What the next children do in place of what they are asked for; NULL: that again. */
void sy_fake_set_child(void (*work)(const void *question, void *answer));

/* sy_os_guards_split() says so, whatever the system has. */
void sy_fake_set_guards_split(bool split);

/* sy_os_can_move() is false, and moves fail, whatever the system can do. */
void sy_fake_forbid_moves(bool forbidden);

/* sy_os_now() stands at `ns`, and moves only by sy_fake_advance_clock(). */
void sy_fake_set_clock(uint64_t ns);
void sy_fake_advance_clock(uint64_t ns);

/* What the environment says under a name, whatever it is really; NULL: nothing. Both stay where
 * they are; one name at a time. */
void sy_fake_set_option(const char *name, const char *text);

/* Whether file descriptors lead to a terminal. */
void sy_fake_set_terminal(bool terminal);

/* Whether a debugger is attached; false: as it is. */
void sy_fake_set_traced(bool traced);

/* ---- account ---- */

/* Since the last sy_fake_reset(): calls, those of them that failed by script, and the bytes that
 * the others were for. */
uint64_t sy_fake_calls(sy_fake_call call);
uint64_t sy_fake_failures(sy_fake_call call);
uint64_t sy_fake_bytes(sy_fake_call call);

/* What the library holds now: bytes and pieces of address space (neighbours are one piece, as they
 * are one mapping), and the bytes of it that are committed. */
size_t sy_fake_reserved(void);
size_t sy_fake_pieces(void);
size_t sy_fake_committed(void);

/* Blocks of the C library's that the library has asked for, less those that it has freed. */
size_t sy_fake_blocks(void);

/* Returns once so many threads at least wait for a word (sy_os_wait, sy_os_wait_for). */
void sy_fake_await_waiting(unsigned threads);

/* Is all of the range held, and committed? */
bool sy_fake_is_committed(const void *start, size_t bytes);

/* ---- the end, caught ---- */

/* What the library wrote to file descriptor 2 in the last sy_fake_catch(), ended by NUL, cut at
 * some thousand bytes. It did not go to the terminal. */
const char *sy_fake_written(void);

/* Run `body(arg)`; true if it ended in sy_os_abort(), on this thread, which is then left as it is
 * at that point: with whatever locks the library held. */
bool sy_fake_catch(void (*body)(void *), void *arg);

#endif
