/*
 * fault.c: see fault.h.
 */
#include "debug/fault.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "debug/callback.h"
#include "debug/options.h"
#include "debug/tell.h"
#include "os/os.h"

static _Atomic(sy_fault_handler) handler;

sy_fault_handler sy_set_fault_handler(sy_fault_handler new_handler) {
    return atomic_exchange(&handler, new_handler);
}

/* Calls the handler, if there is one. Returns whether there is. */
static bool handled(const sy_fault *fault) {
    sy_fault_handler current = atomic_load(&handler);
    if (!current) return false;
    if (sy_os_interrupted()) { /* without SY_CALLBACK: its thread-local note may not exist yet, and
                                * making it allocates */
        current(fault);
        return true;
    }
    SY_CALLBACK(call, .function = "fault handler");
    current(fault);
    call.returned = true;
    return true;
}

void sy_fault_raise(const sy_fault *fault) {
    if (handled(fault)) return;
    bool reported = sy_tell->fault(fault);
    if (!atomic_load_explicit(&sy_options_now.go_on, memory_order_relaxed))
        sy_os_abort(reported ? NULL : "slabyard: misuse was found while a report was written\n");
}

void sy_fault_tell(const sy_fault *fault) {
    if (!handled(fault)) sy_tell->fault(fault);
}
