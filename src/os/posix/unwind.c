/*
 * unwind.c: the part of os.h that finds the frames of a stack by the tables that compilers make for
 * exceptions, with the unwinder of the compiler.
 */
#include "os/os.h"

#if SY_PLATFORM_POSIX && (SY_OS_SERVICES & SY_OS_STACKS)

#    include <unwind.h>

/* A function of GCC's unwinder: the entry of its tables for the code at an address. NULL: none. */
extern __attribute__((weak, visibility("default"))) const void *_Unwind_Find_FDE(void *code,
                                                                                 void *bases);

/* Whether the unwinder finds its own code in the tables. If not, it aborts. */
static bool unwinder_is_ready(void) {
    static _Atomic bool known;
    void *bases[3];
    if (!sy_os_has_tables()) return false;
    if (atomic_load_explicit(&known, memory_order_relaxed) || !_Unwind_Find_FDE) return true;
    bool ready = _Unwind_Find_FDE((void *)(uintptr_t)_Unwind_Backtrace, bases);
    if (ready) atomic_store_explicit(&known, true, memory_order_relaxed);
    return ready;
}

typedef struct visitor {
    sy_os_each_frame *each;
    void *arg;
} visitor;

static _Unwind_Reason_Code visit_frame(struct _Unwind_Context *context, void *arg) {
    const visitor *to = arg;
    int interrupted = 0;
    uintptr_t code = (uintptr_t)_Unwind_GetIPInfo(context, &interrupted);
    if (code == 0) return _URC_END_OF_STACK;
    code += interrupted ? 1 : 0;
    return to->each(to->arg, code, _Unwind_GetCFA(context)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void sy_os_unwind(sy_os_each_frame *each, void *arg) {
    visitor to = {each, arg};
    if (unwinder_is_ready()) _Unwind_Backtrace(visit_frame, &to);
}

#    if SY_OS_UNWINDS_REBUILT

bool sy_os_unwinds_rebuilt(void) { return _Unwind_Find_FDE != NULL; }

bool sy_os_has_table(uintptr_t code) {
    void *bases[3];
    return unwinder_is_ready() && _Unwind_Find_FDE &&
           _Unwind_Find_FDE((void *)(code - 1), bases) != NULL;
}

#    endif

#endif
