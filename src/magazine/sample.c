/*
 * sample.c: tells the slow path of an allocation whether this allocation is to be guarded. A
 * guarded cache asks this first in its slow path.
 */
#include "magazine/sample.h"

bool sy_client_due(sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    if (!client->config.magazine_items) return sy_guard_due();
    if (slot->reserved) return false;
    if (slot->loaded) sy_sample_count(slot);
    bool due = sy_guard_left <= 1 && sy_guard_due();
    if (slot->loaded) sy_sample_arm(slot);
    return due;
}
