/*
 * callback.c: notes each call of a function of the program's, and reports one that did not return.
 */
#include "debug/callback.h"

#include "debug/stack.h"
#include "debug/tell.h"
#include "os/os.h"

SY_TLS sy_callback_note sy_callback_now;

static SY_COLD void sy_callback_report(const char *how, const char *next) {
    bool told = sy_tell->callback(&sy_callback_now.callee, how, next);
    sy_os_abort(told ? NULL : "slabyard: callback left, while a report was written\n");
}

SY_COLD void sy_callback_unwound(void) {
    sy_callback_report(" was left by an exception, or by the end of its thread",
                       "catch what it throws, and let it return");
}

/* A frame on another stack is not read: the stack of a fiber may be unmapped by now. */
SY_COLD bool sy_callback_returns_elsewhere(uintptr_t frame) {
    return sy_stack_is_own(frame) &&
           sy_callback_return((const uintptr_t *)frame) != sy_callback_now.returns_to;
}

SY_COLD void sy_callback_jumped(uintptr_t frame) {
    bool both = sy_stack_is_own(frame) && sy_stack_is_own((uintptr_t)sy_callback_now.frame);
    if (!both || sy_os_on_signal_stack()) return;
    sy_callback_report(" was left by longjmp, before this call",
                       "look for the longjmp, and let the function return");
}
