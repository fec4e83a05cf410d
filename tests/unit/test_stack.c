/*
 * test_stack.c: stacks have the program's frames, whichever way they are taken, and however it was
 * compiled: this file without frame pointers, test_stack_frames.c with them. The same stack has one
 * number.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unwind.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "os/fake.h"
#include "os/lock.h"
#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/sanitized.h"
#include "support/services.h"

#if !defined(WITH_FRAMES)
#    define WITH_FRAMES 0
#endif
#define FRAMES (WITH_FRAMES && sy_cpu_has_frames())

#define CALLED   __attribute__((noinline))
#define NOT_LAST __asm__ volatile("" : : : "memory") /* so that the call before is no tail call */

/* ---- how often tables are used ---- */

typedef _Unwind_Reason_Code backtrace(_Unwind_Trace_Fn each, void *arg);

static _Atomic int unwindings;
static uint32_t taken_within;
static _Atomic(void (*)(void)) run_within; /* once */

_Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn each, void *arg) {
    static backtrace *real;
    if (!real) real = (backtrace *)dlsym(RTLD_NEXT, "_Unwind_Backtrace");
    unwindings++;
    if (taken_within) taken_within = sy_stack_here();
    void (*body)(void) = atomic_exchange(&run_within, NULL);
    if (body) body();
    _Unwind_Reason_Code result = real(each, arg);
    NOT_LAST;
    return result;
}

typedef const void *find_tables(void *code, void *bases);

static bool tables_are_hidden;

const void *_Unwind_Find_FDE(void *code, void *bases);

const void *_Unwind_Find_FDE(void *code, void *bases) {
    find_tables *real = (find_tables *)dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
    return tables_are_hidden ? NULL : real(code, bases);
}

/* ---- functions that note their callers ---- */

enum { CALLS = 3 };
static const void *callers[CALLS];
static uint32_t taken;

enum { PLACES = 4 };
static bool copies; /* into the first place, else a stack is taken at once */

CALLED static void innermost(void) {
    callers[0] = __builtin_return_address(0);
    taken = copies ? sy_stack_copy(0) : sy_stack_here();
    NOT_LAST;
}

CALLED static void inner(void (*body)(void)) {
    callers[1] = __builtin_return_address(0);
    body();
    NOT_LAST;
}

CALLED static void outer(void (*body)(void)) {
    callers[2] = __builtin_return_address(0);
    inner(body);
    NOT_LAST;
}

/* The place of `caller` in the stack, which must have it once. */
static size_t place_of(const void *caller) {
    const void *const *frames;
    size_t depth = sy_stack_frames(taken, &frames), at = 0, found = 0;
    for (size_t i = 0; i < depth; i++) {
        if (frames[i] != caller) continue;
        at = i;
        found++;
    }
    must(found == 1);
    return at;
}

/* All callers, one after the other from place `first` on. */
static void expect_callers(size_t first) {
    for (size_t i = 0; i < CALLS; i++) must(place_of(callers[i]) == first + i);
}

static void *take_each_way(void *arg) {
    (void)arg;
    for (int round = 0; round < 3; round++) {
        sy_options_now.unwind = SY_UNWIND_TABLES;
        outer(innermost);
        expect_callers(1);
        sy_options_now.unwind = SY_UNWIND_AUTO;
        outer(innermost);
        expect_callers(1);
        if (!FRAMES) continue;
        sy_options_now.unwind = SY_UNWIND_FRAMES;
        outer(innermost);
        expect_callers(1);
    }
    sy_options_now.unwind = SY_UNWIND_AUTO;
    return NULL;
}

static void each_way_gives_who_called(void **state) {
    (void)state;
    take_each_way(NULL);
    if (is_emulated()) return; /* it does not say which pages of a stack can be read */
    in_thread(take_each_way, NULL);
}

/* ---- trust in frame pointers ---- */

/* A thread's function, so that the same call has the same stack each time. */
static void *take_one(void *arg) {
    int before = unwindings;
    outer(innermost);
    *(int *)arg = unwindings - before;
    expect_callers(1);
    return NULL;
}

static void frames_that_tables_confirmed_are_trusted(void **state) {
    (void)state;
    int first = 0, second = 0;
    in_thread(take_one, &first);
    in_thread(take_one, &second);
    assert_int_equal(first, 1);
    assert_int_equal(second, FRAMES && !is_emulated() ? 0 : 1);
}

static int compare(const void *a, const void *b) {
    static bool within;
    if (!within) {
        within = true;
        innermost();
        within = false;
    }
    return *(const int *)a - *(const int *)b;
}

CALLED static void sort(void) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    NOT_LAST;
}

/* The C library need not keep frame pointers. */
static void through_code_of_others_the_stack_is_whole(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        outer(sort);
        assert_true(place_of(callers[0]) == 1);
        assert_true(place_of(callers[1]) > 2);
        assert_true(place_of(callers[2]) == place_of(callers[1]) + 1);
    }
}

/* ---- copies ---- */

/* A frame whose size the compiler does not know. */
CALLED static void within_array(size_t bytes, void (*body)(void)) {
    volatile char array[bytes];
    for (size_t i = 0; i < bytes; i++) array[i] = 1; /* else what lies there may be addresses */
    body();
    array[bytes - 1] = array[0];
}

static void call_past_1_kib(void) {
    within_array(1 << 10, innermost);
    NOT_LAST;
}

static void call_past_8_kib(void) {
    within_array(8 << 10, innermost);
    NOT_LAST;
}

/* Other frames lie where those that were copied were. */
CALLED static void overwrite(void) {
    volatile char array[16 << 10];
    for (size_t i = 0; i < sizeof array; i++) array[i] = 0x55;
}

static void *copy_each(void *arg) {
    (void)arg;
    outer(innermost);
    overwrite();
    expect_callers(1);
    outer(call_past_1_kib);
    overwrite();
    must(place_of(callers[1]) > 2 && place_of(callers[2]) == place_of(callers[1]) + 1);
    outer(sort);
    overwrite();
    if (!SANITIZED) { /* sanitizers' qsort has frames of more words than are copied */
        must(place_of(callers[1]) > 2 && place_of(callers[2]) == place_of(callers[1]) + 1);
    }
    outer(call_past_8_kib); /* more than is copied: the innermost frames */
    overwrite();
    must(place_of(callers[0]) == 1);
    return NULL;
}

/* ---- rows of tables that are kept ---- */

/* Whether the stack of this call has one number, with rows and without, and comes from rows when
 * they are not refused. */
static void take_by_rows(void (*shape)(void)) {
    uint32_t numbers[2];
    sy_options_now.unwind = SY_UNWIND_TABLES;
    for (volatile int refused = 0; refused < 2; refused++) { /* not unrolled: one call */
        int before = unwindings;
        sy_fake_refuse_rows(refused);
        outer(shape);
        must((unwindings > before) == (refused || !SY_OS_STEPS));
        numbers[refused] = taken;
    }
    must(numbers[0] != 0 && numbers[0] == numbers[1]);
    sy_options_now.unwind = SY_UNWIND_AUTO;
}

static void *take_each_shape(void *arg) {
    (void)arg;
    for (int round = 0; round < 2; round++) { /* then all rows are known */
        take_by_rows(innermost);
        take_by_rows(sort);
        take_by_rows(call_past_1_kib);
        take_by_rows(call_past_8_kib);
    }
    return NULL;
}

static void rows_give_what_the_unwinder_gives(void **state) {
    (void)state;
    if (is_emulated()) skip(); /* it does not say which pages of a stack can be read */
    take_each_shape(NULL);
    in_thread(take_each_shape, NULL);
}

static int allow_rows(void **state) {
    (void)state;
    sy_fake_refuse_rows(false);
    return 0;
}

/* The tests about the unwinder need to reach it. */
static int refuse_rows(void **state) {
    (void)state;
    sy_fake_refuse_rows(true);
    return 0;
}

/* ---- copies, taken apart later ---- */

static void begin_copies(void) {
    bool real_pages =
        getenv("SLABYARD_TEST_PAGES") == NULL; /* else a thread's bounds are unknown */
    if (!sy_os_unwinds_rebuilt() || is_emulated() || !real_pages) skip();
    copies = sy_stack_copies_here = true;
    sy_stack_make_places(PLACES);
}

static void end_copies(void) { copies = sy_stack_copies_here = false; }

static void a_copy_gives_who_called(void **state) {
    (void)state;
    begin_copies();
    copy_each(NULL);
    in_thread(copy_each, NULL);
    end_copies();
}

static void a_copy_needs_no_tables(void **state) {
    (void)state;
    begin_copies();
    int before = unwindings;
    outer(innermost);
    assert_int_equal(unwindings, before);
    expect_callers(1);
    assert_int_not_equal(unwindings, before);
    end_copies();
}

static void a_copy_is_replaced(void **state) {
    (void)state;
    begin_copies();
    outer(innermost);
    uint32_t first = taken;
    inner(innermost);
    assert_int_equal(taken, first);
    assert_int_equal(place_of(callers[1]), 2);
    const void *const *frames;
    size_t depth = sy_stack_frames(first, &frames);
    for (size_t i = 0; i < depth; i++) assert_ptr_not_equal(frames[i], callers[2]);
    end_copies();
}

static void where_stacks_are_not_copied(void **state) {
    (void)state;
    begin_copies();
    assert_int_equal(sy_stack_copy(PLACES), 0);
    sy_options_now.unwind = SY_UNWIND_TABLES;
    assert_int_equal(sy_stack_copy(0), 0);
    sy_options_now.unwind = SY_UNWIND_FRAMES;
    assert_int_equal(sy_stack_copy(0), 0);
    sy_options_now.unwind = SY_UNWIND_AUTO;
    sy_stack_copies_here = false; /* this test is not a shared library */
    assert_int_equal(sy_stack_copy(0), 0);
    end_copies();
    const void *const *frames;
    assert_int_equal(sy_stack_frames((UINT32_C(1) << 31) + PLACES, &frames), 0);
    assert_int_equal(sy_stack_frames((UINT32_C(1) << 31) + PLACES - 1, &frames), 0);
}

static _Atomic bool is_measured, ended;

/* The two stacks that copy_on copies. */
static const void *const *frames_of[2];
static size_t depth_of[2];

CALLED static void copy_below(int depth) {
    if (depth == 0)
        sy_stack_copy(PLACES - 2);
    else
        copy_below(depth - 1);
    NOT_LAST;
}

static const uint32_t WRITTEN = (UINT32_C(1) << 31) + PLACES - 2;

/* Once to know the frames, and then again and again. `i` is volatile, so that the compiler makes
 * one call of this, with one return address. */
static void *copy_on(void *arg) {
    const struct timespec moment = {.tv_nsec = 20000};
    for (volatile int i = 0; !atomic_load(&ended); i++) {
        copy_below(i % 2 ? 12 : 1);
        if (i < 2) depth_of[i] = sy_stack_frames(WRITTEN, &frames_of[i]);
        if (i == 1) atomic_store(&is_measured, true);
        if (i % 64 == 0) nanosleep(&moment, NULL);
    }
    return arg;
}

static bool is_known(const void *const *frames, size_t depth) {
    for (int i = 0; i < 2; i++)
        if (depth == depth_of[i] && memcmp(frames, frames_of[i], depth * sizeof *frames) == 0)
            return true;
    return false;
}

/* A thread writes copies of two stacks in turns: who reads finds one of them, or none. */
static void a_copy_is_read_whole(void **state) {
    (void)state;
    enum { WHOLE = 6000 };
    begin_copies();
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, copy_on, NULL), 0);
    while (!atomic_load(&is_measured)) sched_yield();
    assert_true(depth_of[0] > 2 && depth_of[1] > depth_of[0]);
    for (int whole = 0; whole < WHOLE;) {
        const void *const *frames;
        size_t depth = sy_stack_frames(WRITTEN, &frames);
        if (!depth) continue;
        must(is_known(frames, depth));
        whole++;
    }
    atomic_store(&ended, true);
    assert_int_equal(pthread_join(writer, NULL), 0);
    end_copies();
}

static void handle(int signal) {
    (void)signal;
    innermost();
}

CALLED static void be_interrupted(void) {
    must(raise(SIGUSR1) == 0);
    NOT_LAST;
}

static void from_a_handler_it_is_whole(void **state) {
    (void)state;
    if (is_emulated() && !sy_cpu_has_frames()) skip(); /* its frame of a handler is another */
    const struct sigaction action = {.sa_handler = handle};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int round = 0; round < 3; round++) {
        outer(be_interrupted);
        assert_true(place_of(callers[0]) == 1);
        assert_true(place_of(callers[1]) > 1);
        assert_true(place_of(callers[2]) == place_of(callers[1]) + 1);
    }
    sigaction(SIGUSR1, &before, NULL);
}

/* A handler on a stack above that of its thread. `arg`: this stack, in the first thread's. */
static void *be_interrupted_below(void *arg) {
    const stack_t above = {.ss_sp = arg, .ss_size = 64 << 10}, none = {.ss_flags = SS_DISABLE};
    must(sigaltstack(&above, NULL) == 0);
    outer(be_interrupted);
    must(place_of(callers[2]) == place_of(callers[1]) + 1);
    must(sigaltstack(&none, NULL) == 0);
    return NULL;
}

static void on_a_lower_stack_are_frames_too(void **state) {
    (void)state;
    if (is_emulated() && !sy_cpu_has_frames()) skip();
    char above[64 << 10];
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    in_thread(be_interrupted_below, above);
    sigaction(SIGUSR1, &before, NULL);
}

/* A function whose first instruction traps: it has made no call yet, and the code before it
 * belongs to another function. */
void test_stack_trap(void);
#if defined(__x86_64__) || defined(__i386__)
#    define TRAP "ud2"
#elif defined(__arm__)
#    define TRAP ".inst 0xe7f000f0"
#else
#    define TRAP ".long 0"
#endif
__asm__(".pushsection .text\n\t.p2align 4\n"
        "test_stack_trap:\n\t.cfi_startproc\n\t" TRAP "\n\t.cfi_endproc\n\t.popsection");

static sigjmp_buf after_trap;

static void handle_trap(int signal) {
    (void)signal;
    innermost();
    siglongjmp(after_trap, 1);
}

static void what_was_interrupted_is_in_its_function(void **state) {
    (void)state;
    if (is_emulated() && !sy_cpu_has_frames()) skip();
    const struct sigaction action = {.sa_handler = handle_trap};
    struct sigaction before;
    assert_int_equal(sigaction(SIGILL, &action, &before), 0);
    if (sigsetjmp(after_trap, 1) == 0) test_stack_trap();
    sigaction(SIGILL, &before, NULL);
    assert_true(place_of((const char *)(uintptr_t)test_stack_trap + 1) > 1);
}

static ucontext_t here, there;

static void on_another_stack(void) {
    outer(innermost);
    expect_callers(1);
    sy_options_now.unwind = SY_UNWIND_FRAMES;
    outer(innermost);
    sy_options_now.unwind = SY_UNWIND_AUTO;
}

static void a_coroutine_has_its_own(void **state) {
    (void)state;
    enum { BYTES = 256 << 10 };
    void *stack = malloc(BYTES);
    assert_non_null(stack);
    assert_int_equal(getcontext(&there), 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = BYTES;
    there.uc_link = &here;
    makecontext(&there, on_another_stack, 0);
    assert_int_equal(swapcontext(&here, &there), 0);
    const void *const *frames;
    bool knows = sy_cpu_has_frames() && !is_emulated(); /* that it is no stack of a thread */
    if (knows) assert_int_equal(sy_stack_frames(taken, &frames), 1);
    free(stack);
}

/* A thread whose stack is unknown. */
static void *without_bounds(void *arg) {
    (void)arg;
    const void *const *frames;
    sy_fake_fail_nth(SY_FAKE_STACK, 1);
    outer(innermost);
    expect_callers(1);
    sy_options_now.unwind = SY_UNWIND_FRAMES;
    outer(innermost);
    must(!sy_cpu_has_frames() || sy_stack_frames(taken, &frames) == 1);
    sy_options_now.unwind = SY_UNWIND_AUTO;
    return NULL;
}

static void without_bounds_tables_are_used(void **state) {
    (void)state;
    in_thread(without_bounds, NULL);
    bool asks = sy_cpu_has_frames() || sy_os_has_tables();
    assert_int_equal(sy_fake_failures(SY_FAKE_STACK), asks);
    sy_fake_reset();
    sy_fake_refuse_rows(true);
}

#if defined(__x86_64__)
/* Calls sy_stack_here with a wrong frame pointer, as code does that uses the register for other
 * values. The tables do not know of this. */
CALLED static uint32_t with_frame_pointer(uintptr_t wrong) {
    uint64_t number;
    __asm__ volatile("mov %%rbp, %%r12\n\t"
                     "mov %%rsp, %%r13\n\t"
                     "mov %1, %%rbp\n\t"
                     "sub $256, %%rsp\n\t"
                     "and $-64, %%rsp\n\t"
                     "call *%2\n\t"
                     "mov %%r13, %%rsp\n\t"
                     "mov %%r12, %%rbp"
                     : "=a"(number)
                     : "r"(wrong), "r"(sy_stack_here)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "memory",
                       "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return (uint32_t)number;
}

static void a_wrong_frame_pointer_leads_nowhere(void **state) {
    (void)state;
    sy_os_bounds bounds = {0, 0};
    uintptr_t here_now = (uintptr_t)&bounds;
    assert_true(sy_os_stack(here_now, &bounds));
    const uintptr_t low = bounds.low, high = bounds.high;
    const uintptr_t wrong[] = {0,
                               1,
                               16,
                               here_now - 4096,
                               here_now + 3,
                               low,
                               high - 8,
                               high - 1,
                               high,
                               high + 4096,
                               1 << 20,
                               here_now + (2 << 20),
                               UINTPTR_MAX - 7,
                               UINTPTR_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const void *const *frames;
        sy_options_now.unwind = SY_UNWIND_FRAMES;
        assert_int_equal(sy_stack_frames(with_frame_pointer(wrong[i]), &frames), 1);
        sy_options_now.unwind = SY_UNWIND_AUTO;
    }
}
#else
static void a_wrong_frame_pointer_leads_nowhere(void **state) { (void)state; }
#endif

/* ---- depth ---- */

/* If a walk ends because it has enough frames, later walks do not end at its last frame. */
static void a_short_stack_is_not_taken_for_a_whole_one(void **state) {
    (void)state;
    for (unsigned depth = 1; depth < 6; depth++) {
        sy_options_now.stack_depth = depth;
        outer(innermost);
        sy_options_now.stack_depth = 32;
        outer(innermost);
        expect_callers(1);
    }
}

CALLED static void descend(int levels) {
    if (levels == 0)
        innermost();
    else
        descend(levels - 1);
    NOT_LAST;
}

static void not_more_frames_than_wanted(void **state) {
    (void)state;
    const void *const *frames;
    for (unsigned way = SY_UNWIND_AUTO; way <= SY_UNWIND_TABLES; way++) {
        if (way == SY_UNWIND_FRAMES && !FRAMES) continue;
        sy_options_now.unwind = way;
        for (unsigned depth = 1; depth < 70; depth++) {
            sy_options_now.stack_depth = depth;
            descend(100);
            size_t most = depth < SY_STACK_DEPTH_MAX ? depth : SY_STACK_DEPTH_MAX;
            assert_int_equal(sy_stack_frames(taken, &frames), most);
        }
    }
    sy_options_now.unwind = SY_UNWIND_AUTO;
    sy_options_now.stack_depth = 0;
    assert_int_equal(sy_stack_here(), 0);
    sy_options_now.stack_depth = 32;
}

/* ---- numbers of stacks ---- */

static void a_stack_has_one_number(void **state) {
    (void)state;
    int used;
    in_thread(take_one, &used);
    uint32_t first = taken;
    size_t count = sy_stack_count();
    assert_int_not_equal(first, 0);
    in_thread(take_one, &used);
    assert_int_equal(taken, first);
    assert_int_equal(sy_stack_count(), count);
    descend(3);
    assert_int_not_equal(taken, first);
    assert_int_equal(sy_stack_count(), count + 1);
}

enum { SOME = 4000 };

/* Makes frames that no program has. */
static size_t make_up(uint64_t seed, const void **frames) {
    size_t depth = 1 + seed % SY_STACK_DEPTH_MAX;
    for (size_t i = 0; i < depth; i++) frames[i] = (const void *)(uintptr_t)next_random(&seed);
    return depth;
}

static void what_is_kept_is_read_back(void **state) {
    (void)state;
    static uint32_t numbers[SOME];
    const void *made[SY_STACK_DEPTH_MAX], *const *frames;
    size_t count = sy_stack_count();
    for (size_t i = 0; i < SOME; i++) {
        numbers[i] = sy_stack_keep(made, make_up(i, made));
        assert_int_not_equal(numbers[i], 0);
    }
    assert_int_equal(sy_stack_count(), count + SOME);
    for (size_t i = 0; i < SOME; i++) {
        size_t depth = make_up(i, made);
        assert_int_equal(sy_stack_keep(made, depth), numbers[i]);
        assert_int_equal(sy_stack_frames(numbers[i], &frames), depth);
        assert_memory_equal(frames, made, depth * sizeof *made);
    }
    assert_int_equal(sy_stack_count(), count + SOME);
}

static void what_is_no_number_has_no_frames(void **state) {
    (void)state;
    const void *made[SY_STACK_DEPTH_MAX], *const *frames;
    uint32_t last = sy_stack_keep(made, make_up(SOME + 63, made));
    assert_true(sy_stack_frames(last, &frames) > 1);
    size_t known = 0;
    for (uint32_t number = 0; number < last; number++)
        known += sy_stack_frames(number, &frames) > 0;
    assert_int_equal(known + 1, sy_stack_count());
    for (uint32_t number = last + 1; number < last + 1000; number++)
        assert_int_equal(sy_stack_frames(number, &frames), 0);
    assert_int_equal(sy_stack_frames(UINT32_MAX, &frames), 0);
    assert_null(frames);
}

/* A signal handler may interrupt the taking of a stack. It gets no stack, and does not wait. */
static void none_is_taken_within_another(void **state) {
    (void)state;
    taken_within = 1;
    descend(7);
    assert_int_equal(taken_within, 0);
    assert_int_not_equal(taken, 0);
}

/* ---- forks ---- */

static _Atomic bool held, released;

static void be_held(void) {
    atomic_store(&held, true);
    while (!atomic_load(&released)) sched_yield();
    atomic_store(&held, false);
}

static void *unwind_held(void *arg) {
    (void)arg;
    must(sy_stack_here() != 0);
    return NULL;
}

/* Once the fork waits: this thread gets no stack, and lets the other one go on. */
static void *come_later(void *arg) {
    _Atomic uint32_t *stack = arg;
    sy_fake_await_waiting(1);
    atomic_store(stack, sy_stack_here());
    atomic_store(&released, true);
    return NULL;
}

static void take_in_child(void *arg) {
    (void)arg;
    must(!atomic_load(&held));
    must(sy_stack_here() != 0);
}

static void a_fork_waits_for_other_threads_in_tables(void **state) {
    (void)state;
    pthread_t one, other;
    _Atomic uint32_t later = 1;
    sy_options_now.unwind = SY_UNWIND_TABLES;
    run_within = be_held;
    assert_int_equal(pthread_create(&one, NULL, unwind_held, NULL), 0);
    while (!atomic_load(&held)) sched_yield();
    assert_int_equal(pthread_create(&other, NULL, come_later, &later), 0);
    pthread_detach(one); /* they may have ended when the fork comes: the child joins no one */
    pthread_detach(other);
    assert_int_equal(in_child(take_in_child, NULL), 0);
    assert_int_equal(atomic_load(&later), 0);
    assert_int_not_equal(sy_stack_here(), 0);
    sy_options_now.unwind = SY_UNWIND_AUTO;
}

static pid_t forked;

static void fork_within(void) { forked = fork(); }

static void nothing(void *arg) { (void)arg; }

/* A handler of a signal may fork that interrupted the unwinder. The clock stands still, so a fork
 * that waits for the thread itself waits for ever. */
static void fork_in_tables(void *arg) {
    (void)arg;
    alarm(60);
    sy_options_now.unwind = SY_UNWIND_TABLES;
    sy_fake_set_clock(1);
    run_within = fork_within;
    must(sy_stack_here() != 0);
    must(sy_stack_here() != 0);
    must(in_child(nothing, NULL) == 0);
    int status = 0;
    must(forked == 0 || (waitpid(forked, &status, 0) == forked && status == 0));
}

static void a_fork_within_waits_for_no_one(void **state) {
    (void)state;
    assert_int_equal(in_child(fork_in_tables, NULL), 0);
}

/* A thread forks in the unwinder, and cannot wait for another one that is there. The child has no
 * other thread, and no fork in it waits. */
static void fork_beside_another(void *arg) {
    (void)arg;
    pthread_t other;
    alarm(60);
    sy_options_now.unwind = SY_UNWIND_TABLES;
    sy_lock_patience_ns = 1;
    atomic_store(&released, false);
    run_within = be_held;
    must(pthread_create(&other, NULL, unwind_held, NULL) == 0);
    while (!atomic_load(&held)) sched_yield();
    run_within = fork_within;
    must(sy_stack_here() != 0);
    if (forked == 0) {
        sy_fake_set_clock(1);
        must(in_child(nothing, NULL) == 0);
        _exit(0);
    }
    int status = -1;
    must(waitpid(forked, &status, 0) == forked && status == 0);
    atomic_store(&released, true);
    pthread_join(other, NULL);
}

static void a_child_has_no_other_thread_in_tables(void **state) {
    (void)state;
    assert_int_equal(in_child(fork_beside_another, NULL), 0);
}

static void take_before_there_are_tables(void *arg) {
    (void)arg;
    sy_options_now.unwind = SY_UNWIND_TABLES;
    tables_are_hidden = true;
    must(sy_stack_here() == 0 && unwindings == 0);
    tables_are_hidden = false;
    must(sy_stack_here() != 0 && unwindings == 1);
}

static void before_there_are_tables_there_is_no_stack(void **state) {
    (void)state;
    assert_int_equal(in_child(take_before_there_are_tables, NULL), 0);
}

static void errno_is_kept(void **state) {
    (void)state;
    errno = EBADF;
    for (int i = 0; i < 2; i++) assert_int_not_equal(sy_stack_here(), 0);
    assert_int_equal(errno, EBADF);
}

/* ---- failures of the first use, each in a process of its own ---- */

static void first_use_fails(void *arg) {
    const void *const *frames;
    must(sy_stack_frames(1, &frames) == 0 && sy_stack_bytes() == 0 && sy_stack_count() == 0);
    sy_fake_fail_nth(*(sy_fake_call *)arg, 1);
    errno = EBADF;
    must(sy_stack_here() == 0);
    must(errno == EBADF);
    must(sy_fake_failures(SY_FAKE_ANY) == 1 && sy_fake_reserved() == 0);
    must(sy_stack_here() != 0);
    must(sy_stack_count() == 1 && sy_stack_bytes() == sy_fake_committed());
}

static void without_memory_there_is_no_stack(void **state) {
    (void)state;
    sy_fake_call reserve = SY_FAKE_RESERVE, commit = SY_FAKE_COMMIT;
    assert_int_equal(in_child(first_use_fails, &reserve), 0);
    assert_int_equal(in_child(first_use_fails, &commit), 0);
}

/* Keeps stacks until there is no room. Returns the seed of the first that was not kept. */
static uint64_t fill(uint64_t seed) {
    const void *made[SY_STACK_DEPTH_MAX];
    while (sy_stack_keep(made, make_up(seed, made)) != 0) seed++;
    return seed;
}

static void grow(void *arg) {
    (void)arg;
    const void *made[SY_STACK_DEPTH_MAX];
    uint32_t first = sy_stack_keep(made, make_up(0, made));
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    uint64_t stopped = fill(0);
    size_t bytes = sy_stack_bytes();
    must(stopped > 100 && bytes == sy_fake_committed());
    must(sy_stack_keep(made, make_up(0, made)) == first);
    sy_fake_reset();
    uint64_t full = fill(stopped);
    must(full > stopped && sy_stack_count() == full && sy_stack_bytes() == sy_fake_reserved());
    must(sy_stack_keep(made, make_up(0, made)) == first);
    must(sy_stack_keep(made, make_up(full - 1, made)) != 0);
}

static void when_full_what_is_known_stays(void **state) {
    (void)state;
    assert_int_equal(in_child(grow, NULL), 0);
}

#define WITH_ROWS(test) cmocka_unit_test_setup_teardown(test, allow_rows, refuse_rows)

int main(void) {
    must_have(SY_OS_STACKS, "recorded stacks");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_there_are_tables_there_is_no_stack),
        cmocka_unit_test(without_memory_there_is_no_stack),
        cmocka_unit_test(when_full_what_is_known_stays),
        cmocka_unit_test(each_way_gives_who_called),
        cmocka_unit_test(frames_that_tables_confirmed_are_trusted),
        cmocka_unit_test(through_code_of_others_the_stack_is_whole),
        cmocka_unit_test(a_copy_gives_who_called),
        cmocka_unit_test(a_copy_needs_no_tables),
        cmocka_unit_test(a_copy_is_replaced),
        cmocka_unit_test(where_stacks_are_not_copied),
        cmocka_unit_test(a_copy_is_read_whole),
        cmocka_unit_test(from_a_handler_it_is_whole),
        cmocka_unit_test(on_a_lower_stack_are_frames_too),
        cmocka_unit_test(what_was_interrupted_is_in_its_function),
        cmocka_unit_test(a_coroutine_has_its_own),
        cmocka_unit_test(without_bounds_tables_are_used),
        cmocka_unit_test(a_wrong_frame_pointer_leads_nowhere),
        cmocka_unit_test(a_short_stack_is_not_taken_for_a_whole_one),
        cmocka_unit_test(not_more_frames_than_wanted),
        cmocka_unit_test(a_stack_has_one_number),
        cmocka_unit_test(what_is_kept_is_read_back),
        cmocka_unit_test(what_is_no_number_has_no_frames),
        cmocka_unit_test(none_is_taken_within_another),
        cmocka_unit_test(a_fork_waits_for_other_threads_in_tables),
        cmocka_unit_test(a_fork_within_waits_for_no_one),
        cmocka_unit_test(a_child_has_no_other_thread_in_tables),
        cmocka_unit_test(errno_is_kept),
        WITH_ROWS(rows_give_what_the_unwinder_gives),
        WITH_ROWS(each_way_gives_who_called),
        WITH_ROWS(through_code_of_others_the_stack_is_whole),
        WITH_ROWS(from_a_handler_it_is_whole),
        WITH_ROWS(on_a_lower_stack_are_frames_too),
        WITH_ROWS(what_was_interrupted_is_in_its_function),
        WITH_ROWS(a_coroutine_has_its_own),
        WITH_ROWS(a_wrong_frame_pointer_leads_nowhere),
        WITH_ROWS(a_short_stack_is_not_taken_for_a_whole_one),
        WITH_ROWS(not_more_frames_than_wanted),
        WITH_ROWS(errno_is_kept),
    };
    return cmocka_run_group_tests(tests, refuse_rows, NULL);
}
