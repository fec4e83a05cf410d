/*
 * reserve.c: sy_client_reserve fills a thread's magazines in advance, so that the thread's next
 * `count` allocations need nothing from the layers below. Reserved items are never guarded, and
 * stay in the slot however long they are unused. This ends when a slow path finds the slot empty or
 * full, or when the client is drained (`reserved` in sy_slot).
 */
#include "magazine/budget.h"
#include "magazine/slot.h"

void sy_client_prepare(sy_client *client) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot_ready(client, thread);
}

/* Refills a magazine that has `have` items, up to `want`; returns how many it has then. */
static size_t top_up(sy_client *client, sy_magazine *magazine, size_t have, size_t want) {
    const sy_client_config *config = &client->config;
    if (have >= want) return have;
    return have + config->refill(config->owner, magazine->items + have, want - have);
}

size_t sy_slot_fill_loaded(sy_client *client, sy_slot *slot, size_t want, size_t reserved) {
    size_t have = (size_t)(slot->top - slot->loaded->items);
    have = top_up(client, slot->loaded, have, want);
    slot->reserved = (uint32_t)reserved;
    sy_magazine_set_count(slot->loaded, have);
    sy_client_kind_of(client)->load(slot, slot->loaded);
    return have;
}

static size_t fill_previous(sy_client *client, sy_thread *thread, sy_slot *slot, size_t want) {
    sy_magazine *magazine = slot->previous;
    if (!want) return 0;
    if (!magazine) {
        magazine = sy_thread_take_empty(thread);
        if (!magazine) return 0;
        sy_magazine_set_count(magazine, 0);
        sy_slot_set_magazines(slot, slot->loaded, magazine);
    }
    size_t have = top_up(client, magazine, sy_magazine_count(magazine), want);
    sy_magazine_set_count(magazine, have);
    return have;
}

size_t sy_slot_reserve_both(sy_client *client, size_t count) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    size_t most = client->config.magazine_items;
    size_t first = count < most ? count : most, rest = count - first;
    if (rest > most) return 0;
    if (!slot || !sy_capacity_widen(client, thread, slot, (uint32_t)first)) return 0;
    size_t have = sy_slot_fill_loaded(client, slot, first, count);
    return have + fill_previous(client, thread, slot, rest);
}
