/*
 * turn.c: does a turn: first it lets go of clients whose destruction was put off, then it calls the
 * registered work.
 */
#include "magazine/turn.h"

#include <stdint.h>

#include "magazine/client.h"

_Atomic bool sy_turn_wanted;
SY_TLS unsigned sy_turns;
_Atomic size_t sy_turn_span = SIZE_MAX;

static _Atomic(void (*)(bool)) work;

void sy_turn_serve(void (*served)(bool)) { atomic_store(&work, served); }

/* A client whose slow path is further up this thread's stack cannot be left yet: a later turn does
 * it. */
void sy_turn_slow(bool allocates) {
    if (sy_clients_leave()) sy_turn_soon();
    void (*served)(bool) = atomic_load_explicit(&work, memory_order_relaxed);
    if (served) served(allocates);
}
