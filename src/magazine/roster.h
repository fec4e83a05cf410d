/*
 * roster.h: the clients by number, their pins, and the magazines that are on their way to a client.
 *
 * A client that is pinned is not closed, and its number is nobody else's.
 *
 * Used by the rest of magazine/ alone; client.h has what other layers call.
 */
#ifndef SY_MAGAZINE_ROSTER_H
#define SY_MAGAZINE_ROSTER_H

#include "magazine/client.h"
#include "magazine/store.h"

/* The lock of the thread list is held: the client of that number, or NULL. */
sy_client *sy_roster_at(unsigned number);

/* The lock is held before and after. To unpin lets it go if the client's end was put off. */
void sy_roster_pin(sy_client *client);
void sy_roster_unpin(sy_client *client);

/* What is moved stays counted, and is found by sy_client_holds. The lock of the thread list is held
 * at the beginning, since before the magazines were taken; none is while they are flushed and
 * stored. Whether there was an item in them. */
void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain);
bool sy_move_flush(sy_client *client, sy_move *move);

#endif
