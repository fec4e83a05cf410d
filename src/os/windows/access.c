/*
 * access.c: the part of os.h for accesses that the system refuses: a vectored handler, which the
 * system calls before the handlers of the program's functions, and the registers at the access. The
 * handler lets the search for other handlers go on, so nothing else changes.
 */
#include "os/os.h"
#include "os/registers.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    include <errno.h>
#    include <stddef.h>

/* ---- registers ---- */

#    if defined(__x86_64__)

#        define REGISTER(name, member) \
            { name, offsetof(CONTEXT, member) }

static const struct {
    const char *name;
    size_t offset;
} registers[] = {
    REGISTER("rax", Rax), REGISTER("rbx", Rbx), REGISTER("rcx", Rcx), REGISTER("rdx", Rdx),
    REGISTER("rsi", Rsi), REGISTER("rdi", Rdi), REGISTER("rbp", Rbp), REGISTER("r8", R8),
    REGISTER("r9", R9),   REGISTER("r10", R10), REGISTER("r11", R11), REGISTER("r12", R12),
    REGISTER("r13", R13), REGISTER("r14", R14), REGISTER("r15", R15),
};

enum { REGISTERS = sizeof registers / sizeof *registers };

const char *sy_os_register_name(unsigned number) { return registers[number].name; }

static void read_registers(const CONTEXT *context, sy_os_access *access) {
    access->code = context->Rip;
    for (unsigned i = 0; i < REGISTERS; i++)
        access->values[i] =
            *(const DWORD64 *)(const void *)((const char *)context + registers[i].offset);
    access->registers = REGISTERS;
}

#    elif defined(__aarch64__)

enum { REGISTERS = SY_ARM_REGISTERS };

static void read_registers(const CONTEXT *context, sy_os_access *access) {
    access->code = context->Pc;
    for (unsigned i = 0; i < REGISTERS; i++) access->values[i] = context->X[i];
    access->registers = REGISTERS;
}

#    else

enum { REGISTERS = 0 };

const char *sy_os_register_name(unsigned number) {
    (void)number;
    return "";
}

static void read_registers(const CONTEXT *context, sy_os_access *access) {
    (void)context;
    (void)access;
}

#    endif

_Static_assert((int)REGISTERS <= (int)SY_OS_REGISTERS_MAX, "an access has room for all");

/* ---- the handler ---- */

typedef bool explainer(const sy_os_access *);

static _Atomic(explainer *) bad_access;

/* Of the access that is being explained on this thread. */
static SY_TLS uintptr_t explained_code;

uintptr_t sy_os_interrupted(void) { return explained_code; }

/* What the system tells of an access: how, and where. */
enum { HOW, WHERE, TOLD };
enum { TO_READ = 0, TO_WRITE = 1 };

/* The system reports an impossible address as this one. */
static const uintptr_t NOWHERE = UINTPTR_MAX;

static LONG NTAPI on_exception(EXCEPTION_POINTERS *about) {
    const EXCEPTION_RECORD *record = about->ExceptionRecord;
    explainer *body = atomic_load_explicit(&bad_access, memory_order_acquire);
    bool refused = record->ExceptionCode == EXCEPTION_ACCESS_VIOLATION ||
                   record->ExceptionCode == EXCEPTION_IN_PAGE_ERROR;
    if (!refused || record->NumberParameters < TOLD || explained_code)
        return EXCEPTION_CONTINUE_SEARCH;
    int error = errno;
    DWORD last = GetLastError();
    const ULONG_PTR *told = record->ExceptionInformation;
    sy_os_access access = {.address = told[WHERE], .placed = told[WHERE] != NOWHERE};
    access.way = told[HOW] == TO_WRITE  ? SY_OS_WRITE
                 : told[HOW] == TO_READ ? SY_OS_READ
                                        : SY_OS_WAY_UNKNOWN;
    read_registers(about->ContextRecord, &access);
    explained_code = access.code;
    body(&access);
    explained_code = 0;
    SetLastError(last);
    errno = error;
    return EXCEPTION_CONTINUE_SEARCH;
}

/* The handler is the last of those of its kind: the program's may know the access. */
void sy_os_on_bad_access(bool (*body)(const sy_os_access *access)) {
    explainer *none = NULL;
    if (!atomic_compare_exchange_strong(&bad_access, &none, body)) return;
    AddVectoredExceptionHandler(0, on_exception);
}

/* A runtime's handler stays beside this one, in whatever order they are installed. */
void sy_os_expect_bad_access(void) {}

#endif
