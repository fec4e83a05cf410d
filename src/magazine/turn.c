/*
 * turn.c: what a turn does, beside what a layer above has it do.
 */
#include "magazine/turn.h"

#include <stddef.h>

#include "magazine/client.h"

_Atomic bool sy_turn_wanted;
SY_TLS unsigned sy_turns;

static _Atomic(void (*)(void)) work;

void sy_turn_serve(void (*served)(void)) { atomic_store(&work, served); }

/* A client that is still in use further up, by a function of the program's, is left there. */
void sy_turn_slow(void) {
    if (sy_clients_leave()) sy_turn_soon();
    void (*served)(void) = atomic_load_explicit(&work, memory_order_relaxed);
    if (served) served();
}
