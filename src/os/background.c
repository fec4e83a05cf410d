/*
 * background.c: the word on which the background thread sleeps, and the first thread's end.
 */
#include "os/background.h"

#include "os/lock.h"
#include "os/os.h"

_Atomic uint32_t sy_background_calls;

static const sy_lock_holder *first_thread; /* its own one; NULL: not known */
static _Atomic bool first_has_ended;

void sy_background_call(void) {
    atomic_fetch_add_explicit(&sy_background_calls, 1, memory_order_release);
    sy_os_wake(&sy_background_calls, 1);
}

bool sy_background_first_has_ended(void) {
    return atomic_load_explicit(&first_has_ended, memory_order_relaxed);
}

void sy_background_thread_ends(void) {
    if (&sy_lock_self == first_thread) atomic_store(&first_has_ended, true);
    if (sy_background_first_has_ended()) sy_background_call();
}

static void note_first_thread(void) {
    first_thread = &sy_lock_self;
    atomic_store(&first_has_ended, false);
}

/* Another thread may load the library. */
__attribute__((constructor(103))) static void begin(void) {
    if ((int)sy_os_thread() == sy_os_process()) note_first_thread();
}

const sy_part sy_background_part = {.recover = note_first_thread};
