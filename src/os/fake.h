/*
 * fake.h: the operating system of tests. It stands between Slabyard and the real system. A test
 * tells it which calls fail, and can set the processor and the clock. It keeps account of the
 * address space and memory that Slabyard holds.
 *
 * Above: tests. Below: the platform's file. A test program links fake.c and gives the linker
 * --wrap=sy_os_x for every __wrap_sy_os_x in it; the library itself is the same.
 *
 * A call without a script goes to the real system. The preconditions of os.h are checked at every
 * call: if a call breaks one, the fake prints it and aborts. Any thread may make any call. A script
 * holds for all threads, and counts the calls that are made after it was set.
 */
#ifndef SLABYARD_OS_FAKE_H
#define SLABYARD_OS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calls that can fail. SY_FAKE_ANY stands for all of them: a script for it applies to each
 * call, and its counters are the sums. */
typedef enum sy_fake_call {
    SY_FAKE_RESERVE,
    SY_FAKE_COMMIT,
    SY_FAKE_POPULATE,
    SY_FAKE_DISCARD,
    SY_FAKE_MOVE,
    SY_FAKE_DECOMMIT,
    SY_FAKE_RELEASE,
    SY_FAKE_HUGE,
    SY_FAKE_MAKE_HUGE, /* small pages instead, as not each system has huge ones */
    SY_FAKE_LOCK,
    SY_FAKE_GUARD,
    SY_FAKE_AT_THREAD_EXIT,
    SY_FAKE_AT_FORK,
    SY_FAKE_START_THREAD,
    SY_FAKE_START_READER,
    SY_FAKE_BARRIER_THREADS,
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

/* Removes all scripts and settings: no call fails any more, and the clock and the processor of this
 * thread are the real ones. Counters of calls start from 0. The account of what Slabyard holds
 * stays. */
void sy_fake_reset(void);

/* The n-th call from now fails, once; n is at least 1. */
void sy_fake_fail_nth(sy_fake_call call, uint64_t n);

/* The n-th call from now and every later one fails. */
void sy_fake_fail_from(sy_fake_call call, uint64_t n);

/* About `per_thousand` of a thousand calls fail. The same seed lets the same calls fail. */
void sy_fake_fail_randomly(sy_fake_call call, unsigned per_thousand, uint64_t seed);

/* Calls for more than `bytes` fail. */
void sy_fake_fail_above(sy_fake_call call, size_t bytes);

/* `function` runs before each call of this kind, on the calling thread, whether the call fails or
 * not. It may call the library. NULL: no function runs. */
void sy_fake_run_before(sy_fake_call call, void (*function)(void));

/* Removes the script for these calls: they go to the real system again. */
void sy_fake_succeed(sy_fake_call call);

/* sy_os_cpu() of the calling thread is `cpu` from now on; -1: the real one. */
void sy_fake_set_cpu(int cpu);

/* ---- facts: the library's sy_facts_now has them when these functions return ---- */

/* Set the results of sy_os_cpu_count() and sy_os_affinity_count(), and of sy_os_memory_limit(); 0:
 * the real ones. */
void sy_fake_set_cpu_count(unsigned count);
void sy_fake_set_memory_limit(size_t bytes);

/* Set the results of sy_os_resident() and sy_os_memory_stall(); 0: the real ones. SIZE_MAX as
 * resident memory: it is unknown. */
void sy_fake_set_resident(size_t bytes);
void sy_fake_set_memory_stall(uint64_t ns);

/* `function` runs before each reading of the resident memory; NULL: none does. It is for one test:
 * sy_fake_reset() removes it. */
void sy_fake_run_before_reading(void (*function)(void));

/* Says what sy_os_huge_is_usual() answers: false at first, whatever the real setting. */
void sy_fake_set_huge_is_usual(bool usual);

/* ---- the rest ---- */

/* The children of later calls of sy_os_ask_child() run `work` instead of the function given to that
 * call; NULL: they run that function again. */
void sy_fake_set_child(void (*work)(const void *question, void *answer));

/* If `split`, sy_os_guards_split() is true on any system; else it is the real one's result. */
void sy_fake_set_guards_split(bool split);

/* The next move loses its target when half of it has moved; later ones are forbidden. */
void sy_fake_lose_move(void);

/* If `forbidden`, sy_os_can_move() is false and moves fail on any system. */
void sy_fake_forbid_moves(bool forbidden);

/* Whether sy_os_unwind_own refuses to unwind, so that the compiler's unwinder has to. */
void sy_fake_refuse_rows(bool refused);

/* Stops the clock: sy_os_now() and sy_os_thread_time() return `ns`, plus what
 * sy_fake_advance_clock() has added. */
void sy_fake_set_clock(uint64_t ns);
void sy_fake_advance_clock(uint64_t ns);
/* As sy_fake_advance_clock, but the processor time of threads does not advance. */
void sy_fake_let_wait(uint64_t ns);

/* Sets the result of sy_os_option() for one name; NULL: not set. Only the last name counts. The
 * fake keeps the pointers and does not copy the strings. */
void sy_fake_set_option(const char *name, const char *text);

/* Sets the result of sy_os_is_terminal() for all file descriptors. */
void sy_fake_set_terminal(bool terminal);

/* If true, sy_os_locks_all() is true; else it is the real result. */
void sy_fake_set_locks_all(bool locks);

/* If true, sy_os_is_traced() is true; else it is the real result. */
void sy_fake_set_traced(bool traced);

/* ---- account ---- */

/* Since the last sy_fake_reset(): the number of calls, the number of calls that a script let fail,
 * and the sum of the bytes of the calls that succeeded. */
uint64_t sy_fake_calls(sy_fake_call call);
uint64_t sy_fake_failures(sy_fake_call call);
uint64_t sy_fake_bytes(sy_fake_call call);

/* What the library holds now: the bytes of reserved address space, the number of pieces of it
 * (neighbours count as one piece), and the bytes that are committed. */
size_t sy_fake_reserved(void);
size_t sy_fake_pieces(void);
size_t sy_fake_committed(void);

/* The number of blocks that the library has taken by sy_os_block() and not freed. */
size_t sy_fake_blocks(void);

/* Returns as soon as at least `threads` threads are in sy_os_wait or sy_os_wait_for. */
void sy_fake_await_waiting(unsigned threads);

/* Is all of the range held, and committed? */
bool sy_fake_is_committed(const void *start, size_t bytes);

/* ---- catching the end of the process ---- */

/* The text that the library wrote to file descriptor 2 in the last sy_fake_catch(), ended by NUL
 * and cut at 256 KiB. It was not written to the real descriptor. */
const char *sy_fake_written(void);

/* Runs `body(arg)` on this thread. True: body called sy_os_abort(), and was left there by a long
 * jump. The library's state is as it was at that point, and its locks that were held stay held. */
bool sy_fake_catch(void (*body)(void *), void *arg);

#endif
