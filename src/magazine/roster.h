/*
 * roster.h: the table of clients by number, their pins, and moves of magazines that are flushed.
 *
 * While a client is pinned, it is not closed and no other client gets its number.
 *
 * Used by the rest of magazine/ alone; client.h has what other layers call.
 */
#ifndef SY_MAGAZINE_ROSTER_H
#define SY_MAGAZINE_ROSTER_H

#include "magazine/client.h"
#include "magazine/store.h"

/* The lock of the thread list is held: the client of that number, or NULL. */
sy_client *sy_roster_at(unsigned number);

/* The lock is held before and after. sy_roster_unpin releases it meanwhile if it has to call an end
 * that was put off. */
void sy_roster_pin(sy_client *client);
void sy_roster_unpin(sy_client *client);

/* A move: sy_client_held still counts the items of its magazines, and sy_client_holds finds them.
 * sy_move_begin is called under the lock of the thread list, which the caller took before it took
 * the magazines. sy_move_flush is called with no lock held; it flushes and stores them, and returns
 * whether there was an item in them. */
void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain);
bool sy_move_flush(sy_client *client, sy_move *move);

#endif
