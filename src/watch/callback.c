/*
 * callback.c: notes each call of a function of the program's, and reports one that did not return.
 */
#include "watch/callback.h"

#include "os/os.h"
#include "watch/report.h"
#include "watch/stack.h"

SY_TLS sy_callback_note sy_callback_now;

/* Adds, for example: the destructor of cache "order" */
static void add_callee(const sy_callee *callee) {
    sy_report_text("the ");
    sy_report_text(callee->function);
    if (!callee->of) return;
    sy_report_text(" of ");
    sy_report_text(callee->of);
    sy_report_text(" \"");
    sy_report_text(callee->name);
    sy_report_text("\"");
}

typedef struct leaving {
    const char *how, *next;
    uint32_t stack;
} leaving;

static void add_leaving(void *arg) {
    const leaving *left = arg;
    sy_report_loud();
    sy_report_text("slabyard: callback left: ");
    add_callee(&sy_callback_now.callee);
    sy_report_text(left->how);
    sy_report_quiet();
    sy_report_text("\n");
    sy_report_place(left->stack);
    sy_report_text("  next: ");
    sy_report_text(left->next);
    sy_report_text("\n");
}

static SY_COLD void sy_callback_report(const char *how, const char *next) {
    leaving left = {how, next, 0};
    bool reports = sy_report_begin();
    if (reports) {
        left.stack = sy_stack_whole();
        sy_os_on_own_stack(add_leaving, &left);
        sy_report_end();
    }
    sy_os_abort(reports ? NULL : "slabyard: callback left, while a report was written\n");
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
