/*
 * drain.h: the last step of an allocation that found no item, for all kinds of clients. client.h
 * has the functions with which other layers drain and reap clients.
 *
 * Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_DRAIN_H
#define SY_MAGAZINE_DRAIN_H

#include "magazine/thread.h"

/*
 * An allocation that no magazine serves: the thread has no slot (NULL), or its slot could not be
 * filled. Gets one item from the slabs; if they have none, flushes items that wait elsewhere to the
 * slabs first. `flushed`: the caller has done so since the slabs had none. False with errno: there
 * are none.
 */
bool sy_client_alloc_unloaded(sy_client *client, const sy_slot *slot, bool flushed,
                              uintptr_t *item);

#endif
