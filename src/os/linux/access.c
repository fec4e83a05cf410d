/*
 * access.c: the part of os.h for accesses that the system refuses: the handler of SIGSEGV and
 * SIGBUS, and the registers at the access. It reads only what the kernel passes to the handler, and
 * no memory at the bad address.
 */
#define _GNU_SOURCE

#include "os/os.h"
#include "os/registers.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <signal.h>
#    include <string.h>
#    include <sys/syscall.h>
#    include <ucontext.h>
#    include <unistd.h>

/* ---- registers ---- */

#    if defined(__x86_64__) || defined(__i386__)

static const struct {
    char name[4];
    int number;
} registers[] = {
#        if defined(__i386__)
    {"eax", REG_EAX}, {"ebx", REG_EBX}, {"ecx", REG_ECX}, {"edx", REG_EDX},
    {"esi", REG_ESI}, {"edi", REG_EDI}, {"ebp", REG_EBP},
#        else
    {"rax", REG_RAX}, {"rbx", REG_RBX}, {"rcx", REG_RCX}, {"rdx", REG_RDX}, {"rsi", REG_RSI},
    {"rdi", REG_RDI}, {"rbp", REG_RBP}, {"r8", REG_R8},   {"r9", REG_R9},   {"r10", REG_R10},
    {"r11", REG_R11}, {"r12", REG_R12}, {"r13", REG_R13}, {"r14", REG_R14}, {"r15", REG_R15},
#        endif
};

enum { REGISTERS = sizeof registers / sizeof *registers };

const char *sy_os_register_name(unsigned number) { return registers[number].name; }

static void read_registers(const ucontext_t *context, sy_os_access *access) {
#        if defined(__i386__)
    access->code = (uintptr_t)context->uc_mcontext.gregs[REG_EIP];
#        else
    access->code = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#        endif
    for (unsigned i = 0; i < REGISTERS; i++)
        access->values[i] = (uintptr_t)context->uc_mcontext.gregs[registers[i].number];
    access->registers = REGISTERS;
}

enum { PAGE_FAULT = 14, WAS_WRITE = 2 };

static sy_os_way way_of(const ucontext_t *context) {
    if (context->uc_mcontext.gregs[REG_TRAPNO] != PAGE_FAULT) return SY_OS_WAY_UNKNOWN;
    return context->uc_mcontext.gregs[REG_ERR] & WAS_WRITE ? SY_OS_WRITE : SY_OS_READ;
}

#    elif defined(__aarch64__)

enum { REGISTERS = SY_ARM_REGISTERS };

static void read_registers(const ucontext_t *context, sy_os_access *access) {
    access->code = (uintptr_t)context->uc_mcontext.pc;
    for (unsigned i = 0; i < REGISTERS; i++) access->values[i] = context->uc_mcontext.regs[i];
    access->registers = REGISTERS;
}

/* Behind the registers the kernel puts a list of records. One of them has the syndrome of the
 * fault. */
typedef struct addition {
    uint32_t magic, size;
    uint64_t syndrome;
} addition;

enum { SYNDROME = 0x45535201, CLASS_SHIFT = 26, DATA_ABORT = 0x24, WAS_WRITE = 1 << 6 };

static sy_os_way way_of(const ucontext_t *context) {
    const unsigned char *at = (const unsigned char *)context->uc_mcontext.__reserved;
    const unsigned char *end = at + sizeof context->uc_mcontext.__reserved;
    addition here;
    for (; (size_t)(end - at) >= sizeof here; at += here.size) {
        memcpy(&here, at, sizeof here);
        if (here.size < 8 || here.size > (size_t)(end - at)) break;
        if (here.magic != SYNDROME) continue;
        if (((here.syndrome >> CLASS_SHIFT) & 0x3e) != DATA_ABORT) break;
        return here.syndrome & WAS_WRITE ? SY_OS_WRITE : SY_OS_READ;
    }
    return SY_OS_WAY_UNKNOWN;
}

#    else

enum { REGISTERS = 0 };

const char *sy_os_register_name(unsigned number) {
    (void)number;
    return "";
}

static void read_registers(const ucontext_t *context, sy_os_access *access) {
    (void)context;
    (void)access;
}

static sy_os_way way_of(const ucontext_t *context) {
    (void)context;
    return SY_OS_WAY_UNKNOWN;
}

#    endif

_Static_assert((int)REGISTERS <= (int)SY_OS_REGISTERS_MAX, "an access has room for all");

/* ---- the handler ---- */

typedef bool explainer(const sy_os_access *);

static _Atomic(explainer *) bad_access;

/* Of SIGSEGV and SIGBUS, what there was before each of our handlers: written before it is
 * installed. */
static struct sigaction before_start[2], before_us[2];
static _Atomic bool is_installed[2]; /* on_bad_access, perhaps over on_access_from_start */

/* The threads whose access is being explained. This is not a thread-local variable: in a library
 * that was loaded at run time the first use of one allocates, and the thread may be within
 * malloc. */
typedef struct explained {
    _Atomic pid_t thread; /* 0: the entry is free */
    uintptr_t code;
} explained;

enum { EXPLAINED_MAX = 16 }; /* at a time; further bad accesses are not explained */
static explained all_explained[EXPLAINED_MAX];

static pid_t own_thread(void) { return (pid_t)syscall(SYS_gettid); }

/* Without `claim`: the entry of this thread. With `claim`: a free entry, which the thread takes.
 * NULL: there is none. */
static explained *explained_of(pid_t thread, bool claim) {
    for (size_t i = 0; i < EXPLAINED_MAX; i++) {
        pid_t free_entry = 0;
        if (claim ? atomic_compare_exchange_strong(&all_explained[i].thread, &free_entry, thread)
                  : atomic_load(&all_explained[i].thread) == thread)
            return &all_explained[i];
    }
    return NULL;
}

/* Usually no thread's access is being explained. Then the thread needs no number, for which a
 * sandbox may end it. */
uintptr_t sy_os_interrupted(void) {
    bool any = false;
    for (size_t i = 0; i < EXPLAINED_MAX && !any; i++) any = atomic_load(&all_explained[i].thread);
    const explained *own = any ? explained_of(own_thread(), false) : NULL;
    return own ? own->code : 0;
}

/* Whether the kernel sent the signal because of an access. If a process sent it, si_code is 0 or
 * negative. */
static bool is_access(const siginfo_t *info) { return info->si_code > 0; }

static void explain_signal(const siginfo_t *info, const ucontext_t *context) {
    explainer *body = atomic_load_explicit(&bad_access, memory_order_acquire);
    if (!body || !is_access(info)) return;
    int saved = errno;
    pid_t thread = own_thread();
    explained *own = explained_of(thread, false) ? NULL : explained_of(thread, true);
    if (!own) return;
    sy_os_access access = {.address = (uintptr_t)info->si_addr};
    access.placed = info->si_code != SI_KERNEL;
    access.way = way_of(context);
    read_registers(context, &access);
    own->code = access.code;
    body(&access);
    own->code = 0;
    atomic_store(&own->thread, 0);
    errno = saved;
}

/* Gives the signal its default effect after the return from our handler: a bad access is repeated,
 * and a signal that a process sent is sent again. */
static void leave_to_system(int signal_number, const siginfo_t *info) {
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(signal_number, &normal, NULL);
    if (!is_access(info)) raise(signal_number);
}

static void pass_on(const struct sigaction *before, int signal_number, siginfo_t *info,
                    void *context) {
    if (before->sa_handler == SIG_DFL)
        leave_to_system(signal_number, info);
    else if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(signal_number, info, context);
    else
        before->sa_handler(signal_number);
}

static void on_bad_access(int signal_number, siginfo_t *info, void *context) {
    explain_signal(info, context);
    pass_on(&before_us[signal_number == SIGBUS], signal_number, info, context);
}

/* The program's handler may call this one, which it has replaced. If on_bad_access was installed
 * over that handler, the access is explained already. */
static void on_access_from_start(int signal_number, siginfo_t *info, void *context) {
    bool second = signal_number == SIGBUS;
    if (!atomic_load(&is_installed[second])) explain_signal(info, context);
    pass_on(&before_start[second], signal_number, info, context);
}

/* The program's handler, which ours calls, has to find everything as it has asked for: the stack,
 * the signals that are blocked, what happens to system calls, and whether it is called once. So
 * ours is installed with the same flags and the same mask. Where there is no handler, ours runs on
 * the thread's alternate stack if there is one, because the thread's stack may be full. An ignored
 * signal is left alone: an access ends the process nevertheless, and programs that this one starts
 * ignore it too. */
static void install(int signal_number, const struct sigaction *before,
                    void (*handler)(int, siginfo_t *, void *)) {
    if (before->sa_handler == SIG_IGN) return;
    struct sigaction ours = *before;
    ours.sa_sigaction = handler;
    ours.sa_flags |= SA_SIGINFO;
    if (before->sa_handler == SIG_DFL) ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal_number, &ours, NULL);
}

static const int bad_accesses[2] = {SIGSEGV, SIGBUS};

static bool is_from_start(const struct sigaction *now) {
    return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == on_access_from_start;
}

void sy_os_expect_bad_access(void) {
    int saved = errno;
    for (unsigned i = 0; i < 2; i++)
        if (sigaction(bad_accesses[i], NULL, &before_start[i]) == 0)
            install(bad_accesses[i], &before_start[i], on_access_from_start);
    errno = saved;
}

void sy_os_on_bad_access(bool (*body)(const sy_os_access *access)) {
    explainer *none = NULL;
    if (!atomic_compare_exchange_strong(&bad_access, &none, body)) return;
    int saved = errno;
    for (unsigned i = 0; i < 2; i++) {
        if (sigaction(bad_accesses[i], NULL, &before_us[i]) != 0 || is_from_start(&before_us[i]))
            continue;
        atomic_store(&is_installed[i], true);
        install(bad_accesses[i], &before_us[i], on_bad_access);
    }
    errno = saved;
}

#endif
