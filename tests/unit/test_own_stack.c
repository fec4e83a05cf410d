/*
 * test_own_stack.c: what sy_os_on_own_stack promises: room, a way back, the caller's frames for who
 * looks at the stack, and that handlers of signals leave alone what waits on the stack for signals.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

#define CALLED   __attribute__((noinline))
#define NOT_LAST __asm__ volatile("" : : : "memory") /* so that the call before is no tail call */

#if defined(__x86_64__) || defined(__aarch64__)
enum { SWITCHES = true };
#else
enum { SWITCHES = false };
#endif

enum { MUCH = 200 << 10 };

static uintptr_t frame_of_caller(void) { return (uintptr_t)__builtin_frame_address(0); }

/* Writes to 200 KiB of stack. */
CALLED static void use_much(void *arg) {
    volatile char much[MUCH];
    for (size_t i = 0; i < MUCH; i += 256) much[i] = 1;
    *(bool *)arg = much[MUCH - 256] == 1;
}

static void *on_small_stack(void *arg) {
    sy_os_on_own_stack(use_much, arg);
    return NULL;
}

static void there_is_room(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    if (!SWITCHES || SANITIZED) skip();
    const size_t least = (size_t)PTHREAD_STACK_MIN, small = least > 64 << 10 ? least : 64 << 10;
    bool done = false;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, small), 0);
    assert_int_equal(pthread_create(&thread, &attributes, on_small_stack, &done), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_true(done);
}

static void note_frame(void *arg) { *(uintptr_t *)arg = frame_of_caller(); }

static void note_two_frames(void *arg) {
    uintptr_t *frames = arg;
    frames[0] = frame_of_caller();
    sy_os_on_own_stack(note_frame, &frames[1]);
}

static void a_call_within_stays_there(void **state) {
    (void)state;
    uintptr_t frames[2] = {0};
    sy_os_on_own_stack(note_two_frames, frames);
    uintptr_t apart = frames[0] - frames[1];
    assert_true(frames[1] != 0 && apart < MUCH);
}

static void ask_about_both(void *frame) {
    sy_os_bounds here = {0, 0}, left = {0, 0};
    must(!sy_os_stack((uintptr_t)&here, &here));
    must(sy_os_stack((uintptr_t)frame, &left));
    must(left.low <= (uintptr_t)frame && (uintptr_t)frame < left.high);
}

static void the_threads_stack_is_the_one_it_left(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    if (!SWITCHES) skip();
    sy_os_on_own_stack(ask_about_both, (void *)frame_of_caller());
}

static void find(void *frame) {
    sy_os_data data;
    sy_os_find((uintptr_t)frame, &data);
    must(data.region == SY_OS_OWN_STACK);
}

static void *find_ones_frame(void *arg) {
    sy_os_on_own_stack(find, (void *)frame_of_caller());
    return arg;
}

static void an_address_on_it_is_found_there(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    if (!SWITCHES) skip();
    pthread_t other;
    find_ones_frame(NULL);
    assert_int_equal(pthread_create(&other, NULL, find_ones_frame, NULL), 0);
    pthread_join(other, NULL);
}

/* ---- who looks at the stack ---- */

static const void *caller;

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *arg) {
    if ((const void *)(uintptr_t)_Unwind_GetIP(context) == caller) *(bool *)arg = true;
    return _URC_NO_REASON;
}

CALLED static void look(void *arg) {
    _Unwind_Backtrace(see, arg);
    NOT_LAST;
}

CALLED static void look_from_there(bool *seen) {
    caller = __builtin_return_address(0);
    sy_os_on_own_stack(look, seen);
    NOT_LAST;
}

static void tables_lead_to_the_caller(void **state) {
    (void)state;
    bool seen = false;
    look_from_there(&seen);
    assert_true(seen);
}

/* ---- the stack for signals ---- */

static char alternate[64 << 10];
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number) {
    (void)signal_number;
    volatile char some[8 << 10];
    for (size_t i = 0; i < sizeof some; i += 64) some[i] = 1;
    interrupted = some[0];
}

static void be_interrupted(void *arg) {
    (void)arg;
    raise(SIGUSR2);
}

/* On the alternate stack. A handler within the call must not begin at the top of it. */
static void visit(int signal_number) {
    (void)signal_number;
    char kept[4 << 10], same[4 << 10];
    memset(kept, 7, sizeof kept);
    memset(same, 7, sizeof same);
    stack_t before, after;
    must(sigaltstack(NULL, &before) == 0 && before.ss_flags & SS_ONSTACK);
    sy_os_on_own_stack(be_interrupted, NULL);
    must(memcmp(kept, same, sizeof kept) == 0);
    must(sigaltstack(NULL, &after) == 0 && after.ss_flags == before.ss_flags);
    must(after.ss_sp == before.ss_sp && after.ss_size == before.ss_size);
}

static void visit_from_signal(void *arg) {
    (void)arg;
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction outer = {.sa_handler = visit, .sa_flags = SA_ONSTACK};
    struct sigaction inner = {.sa_handler = interrupt, .sa_flags = SA_ONSTACK};
    must(sigaltstack(&stack, NULL) == 0);
    must(sigaction(SIGUSR1, &outer, NULL) == 0 && sigaction(SIGUSR2, &inner, NULL) == 0);
    raise(SIGUSR1);
    must(interrupted);
}

static void what_waits_on_the_stack_for_signals_stays(void **state) {
    (void)state;
    assert_int_equal(in_child(visit_from_signal, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_room),
        cmocka_unit_test(a_call_within_stays_there),
        cmocka_unit_test(the_threads_stack_is_the_one_it_left),
        cmocka_unit_test(an_address_on_it_is_found_there),
        cmocka_unit_test(tables_lead_to_the_caller),
        cmocka_unit_test(what_waits_on_the_stack_for_signals_stays),
    };
    return cmocka_run_group_tests_name("own_stack", tests, NULL, NULL);
}
