/*
 * callback.c: the report of a function of the program's that did not return.
 */
#include "debug/callback.h"

#include "debug/stack.h"
#include "os/os.h"
#include "report/report.h"

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
    const sy_callee *callee;
    const char *how, *next;
    uint32_t stack;
} leaving;

static void add_leaving(void *arg) {
    const leaving *left = arg;
    sy_report_loud();
    sy_report_text("slabyard: callback left: ");
    add_callee(left->callee);
    sy_report_text(left->how);
    sy_report_quiet();
    sy_report_text("\n");
    sy_report_place(left->stack);
    sy_report_text("  next: ");
    sy_report_text(left->next);
    sy_report_text("\n");
}

bool sy_callback_write(const sy_callee *callee, const char *how, const char *next) {
    leaving left = {callee, how, next, 0};
    if (!sy_report_begin()) return false;
    left.stack = sy_stack_whole();
    sy_os_on_own_stack(add_leaving, &left);
    sy_report_end();
    return true;
}
