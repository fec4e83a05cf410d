/*
 * stack.c: the part of os.h for stacks on Windows: their bounds, and their frames by the tables
 * that compilers make for exceptions.
 */
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

/* The system grows a stack from its upper end, so all above its present limit is readable. */
bool sy_os_stack(uintptr_t here, sy_os_bounds *bounds) {
    const NT_TIB *own = (const NT_TIB *)(const void *)NtCurrentTeb();
    uintptr_t low = (uintptr_t)own->StackLimit, high = (uintptr_t)own->StackBase;
    if (here < low || here >= high) return false;
    *bounds = (sy_os_bounds){low, high};
    return true;
}

bool sy_os_on_signal_stack(void) { return false; } /* handlers run on the thread's own */

void sy_os_on_own_stack(void (*body)(void *arg), void *arg) { body(arg); }

void sy_os_lose_tables(void) {}

#    if defined(__x86_64__)

bool sy_os_has_tables(void) { return true; }

/* Moves the context to the caller. Code that is in no table is a function that calls none and has
 * no frame: its return address is on top of the stack. False: that is not on the stack. */
static bool leave_frame(CONTEXT *context, uintptr_t top) {
    DWORD64 image, establisher;
    void *handler;
    uintptr_t stack = context->Rsp;
    PRUNTIME_FUNCTION entry = RtlLookupFunctionEntry(context->Rip, &image, NULL);
    if (entry) {
        RtlVirtualUnwind(UNW_FLAG_NHANDLER, image, context->Rip, entry, context, &handler,
                         &establisher, NULL);
    } else {
        if (stack % sizeof stack != 0 || stack >= top) return false;
        context->Rip = *(const DWORD64 *)stack;
        context->Rsp += sizeof stack;
    }
    return context->Rsp > stack && context->Rsp <= top;
}

void sy_os_unwind(sy_os_each_frame *each, void *arg) {
    const NT_TIB *own = (const NT_TIB *)(const void *)NtCurrentTeb();
    uintptr_t top = (uintptr_t)own->StackBase, interrupted = sy_os_interrupted();
    CONTEXT context;
    RtlCaptureContext(&context);
    while (context.Rip) {
        uintptr_t code = context.Rip + (context.Rip == interrupted);
        if (!each(arg, code, context.Rsp) || !leave_frame(&context, top)) return;
    }
}

#    else

bool sy_os_has_tables(void) { return false; }

void sy_os_unwind(sy_os_each_frame *each, void *arg) { (void)each, (void)arg; }

#    endif
#endif
