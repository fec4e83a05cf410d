/*
 * stack.c: the part of os.h that runs a function on a stack of the library's own, and that
 * tells whether stacks can be unwound. The calling thread's stack may be one for signal handlers of
 * a few KiB, half of them filled by the kernel.
 *
 * The switch keeps the chain of frame pointers, and describes its frame for unwinding tables. So
 * tools, profilers and stack.c see the frames of the stack that was left.
 */
#define _GNU_SOURCE

#include "base/cpu.h"
#include "os/facts.h"
#include "os/linux/thread.h"
#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <signal.h>
#    include <sys/auxv.h>

/* Has room for a handler of the program that interrupts the function. Untouched pages cost
 * nothing. */
enum { OWN_BYTES = 256 << 10 };

static _Alignas(64) unsigned char own_stack[OWN_BYTES];
static uintptr_t left; /* a frame of the stack that was left */

static bool is_own(uintptr_t frame) { return frame - (uintptr_t)own_stack < OWN_BYTES; }

uintptr_t sy_linux_left(uintptr_t frame) { return is_own(frame) ? left : frame; }

typedef void body_function(void *arg);

/* Calls body(arg) with `top` as the stack pointer. */
void SY_HIDDEN sy_linux_call_on(void *arg, body_function *body, void *top);

#    if defined(__x86_64__)

__asm__(".pushsection .text\n"
        ".hidden sy_linux_call_on\n"
        ".globl sy_linux_call_on\n"
        ".type sy_linux_call_on, @function\n"
        "sy_linux_call_on:\n"
        ".cfi_startproc\n"
        "    pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "    movq %rdx, %rsp\n"
        "    call *%rsi\n"
        "    movq %rbp, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "    popq %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size sy_linux_call_on, . - sy_linux_call_on\n"
        ".popsection");

#    elif defined(__aarch64__)

__asm__(".pushsection .text\n"
        ".hidden sy_linux_call_on\n"
        ".globl sy_linux_call_on\n"
        ".type sy_linux_call_on, @function\n"
        "sy_linux_call_on:\n"
        ".cfi_startproc\n"
        "    stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x29, -16\n"
        ".cfi_offset x30, -8\n"
        "    mov x29, sp\n"
        ".cfi_def_cfa_register x29\n"
        "    mov sp, x2\n"
        "    blr x1\n"
        "    mov sp, x29\n"
        ".cfi_def_cfa_register sp\n"
        "    ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size sy_linux_call_on, . - sy_linux_call_on\n"
        ".popsection");

#    else /* stays on the stack that it is on */

void sy_linux_call_on(void *arg, body_function *body, void *top) {
    (void)top;
    body(arg);
}

#    endif

typedef struct visit {
    body_function *body;
    void *arg;
    stack_t signals; /* the thread's stack for signal handlers */
} visit;

/* Runs the body on a stack that the thread's handlers of signals do not know. The kernel takes a
 * thread that is here for one that has left its stack for signal handlers. The next handler would
 * begin at its top again, on the frames that wait there. So it gets no such stack meanwhile. */
static void run_elsewhere(const visit *now) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    bool waits = now->signals.ss_flags & SS_ONSTACK;
    if (waits) sigaltstack(&none, NULL);
    now->body(now->arg);
    if (waits) sigaltstack(&now->signals, NULL);
}

/* The calling thread's visit to another stack. */
static visit visit_of(body_function *body, void *arg) {
    visit now = {.body = body, .arg = arg};
    if (!sy_is_in_sandbox()) sigaltstack(NULL, &now.signals);
    return now;
}

static void run_visit(void *arg) {
    visit now = *(const visit *)arg;
    if (!is_own((uintptr_t)&now)) now.signals.ss_flags = 0; /* there is no other stack */
    run_elsewhere(&now);
}

void sy_os_on_own_stack(void (*body)(void *arg), void *arg) {
    enum { REGISTER_STACK = 0x1501 }; /* a request to Valgrind */
    const uintptr_t low = (uintptr_t)own_stack, high = low + OWN_BYTES;
    const uintptr_t request[6] = {REGISTER_STACK, low, high - 1};
    if (is_own((uintptr_t)request)) {
        body(arg);
        return;
    }
    visit now = visit_of(body, arg);
    sy_valgrind_ask(request, 0);
    left = (uintptr_t)__builtin_frame_address(0);
    sy_linux_call_on(&now, run_visit, own_stack + OWN_BYTES);
}

#    if SY_OS_UNWINDS_REBUILT

/* Calls body(arg) with the registers of a frame that has called this function, as far as unwinding
 * tables tell: its return address lies below `stack`. The call itself goes on below that. */
void SY_HIDDEN sy_linux_call_in(void *arg, body_function *body, uintptr_t stack, uintptr_t frame);

__asm__(".pushsection .text\n"
        ".hidden sy_linux_call_in\n"
        ".globl sy_linux_call_in\n"
        ".type sy_linux_call_in, @function\n"
        "sy_linux_call_in:\n"
        ".cfi_startproc\n"
        "    pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "    pushq %rbx\n"
        ".cfi_def_cfa_offset 24\n"
        ".cfi_offset %rbx, -24\n"
        ".cfi_remember_state\n"
        "    movq %rsp, %rbx\n"
        ".cfi_def_cfa_register %rbx\n"
        "    leaq -16(%rdx), %rsp\n"
        "    movq %rcx, %rbp\n"
        ".cfi_def_cfa %rsp, 16\n"
        ".cfi_same_value %rbp\n"
        ".cfi_same_value %rbx\n"
        "    call *%rsi\n"
        "    movq %rbx, %rsp\n"
        ".cfi_restore_state\n"
        "    popq %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_restore %rbx\n"
        "    popq %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        ".cfi_restore %rbp\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size sy_linux_call_in, . - sy_linux_call_in\n"
        ".popsection");

SY_REPLACEABLE bool sy_os_is_own_code(uintptr_t code) {
    (void)code;
    return false;
}

typedef struct look {
    sy_os_each_frame *each;
    void *arg;
} look;

static void run_look(void *arg) {
    const look *now = arg;
    sy_os_unwind(now->each, now->arg);
}

static void run_rebuilt(void *arg) { run_elsewhere(arg); }

void sy_os_unwind_rebuilt(const sy_os_rebuilt *from, sy_os_each_frame *each, void *arg) {
    look what = {each, arg};
    visit now = visit_of(run_look, &what);
    ((uintptr_t *)from->stack)[-1] = from->code;
    sy_linux_call_in(&now, run_rebuilt, from->stack, from->frame);
}

#    endif

/* Of this library's constructor and destructor: the compiler's own run before and after them. */
static _Atomic bool between;

__attribute__((constructor)) static void note_start(void) { between = true; }

__attribute__((destructor)) static void note_end(void) { between = false; }

/* With a loader, the program has its address (AT_BASE). */
bool sy_os_has_tables(void) { return between || getauxval(AT_BASE) != 0; }

void sy_os_lose_tables(void) { between = false; }

#endif
