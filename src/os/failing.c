/*
 * failing.c: failures on demand.
 */
#include "os/failing.h"

#include <stdatomic.h>

#include "os/os.h"

const char *const sy_os_calls[] = {
    "reserve", "commit", "populate",     "discard",      "move",           "decommit", "release",
    "huge",    "guard",  "start_thread", "start_reader", "at_thread_exit", "at_fork",  NULL};

typedef bool due_function(const char *call);

static _Atomic(due_function *) failing;

void sy_os_set_failing(due_function *due) {
    atomic_store_explicit(&failing, due, memory_order_release);
}

bool sy_os_is_failing(const char *call) {
    due_function *due = atomic_load_explicit(&failing, memory_order_acquire);
    if (__builtin_expect(due == NULL, 1) || !due(call)) return false;
    errno = ENOMEM;
    return true;
}
