/*
 * random.c: random bits without help of the system. The clock, a stack address and a count of calls
 * differ a little between calls and processes.
 */
#include "os/random.h"

#include <stdatomic.h>

#include "base/random.h"
#include "os/os.h"

uint64_t sy_os_weak_random(void) {
    static _Atomic uint64_t calls;
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    uint64_t bits = sy_os_now() ^ (uintptr_t)&call ^ (call * SY_RANDOM_STEP);
    return sy_random_mix(bits);
}
