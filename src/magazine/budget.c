/*
 * budget.c: decides how many items the magazines of a thread may hold, and whether a full magazine
 * goes to the depot or is flushed to the slabs. It adapts both numbers to what the program uses.
 */
#include "magazine/budget.h"

#include "magazine/slot.h"
#include "os/facts.h"
#include "os/os.h"

enum {
    START_ITEMS = 16,       /* first capacity of a magazine: the client may be seldom used */
    START_BYTES = 16 << 10, /* most bytes of items in the first capacity, unless one item is more */
    EASY_ITEMS = 64,        /* up to this capacity each exchange doubles it */
    EXCHANGES_MORE = 16,    /* exchanges of a slot before it may grow beyond that */
    LOADED_BYTES_MAX = 4 << 20, /* bytes of items up to which one thread's magazines may grow */
    LARGE_ITEM = 16 << 10,      /* a larger item of the general heap waits in magazines */
    LARGE_ITEM_SHARE = 2048,    /* if it is at most 1/2048 of the memory of all slabs */
};

enum {
    BUDGET_START = 256 << 10, /* first budget of a shard in bytes of items; at least one magazine */
    BUDGET_EASY = 4 << 20,    /* bytes to which any budget may grow, whatever the memory limit */
    MEMORY_SHARE = 8,         /* beyond that a shard may hold 1/8 of the process's memory limit */
    MUCH_MEMORY = 4 << 20,   /* of all clients' slabs: more than a processor's nearer caches have */
    PLACED_BYTES = 512,      /* where larger items lie makes no difference that can be measured */
    GROWTH_SHARE = 32,       /* while caches grow, a shard keeps 1/32 of the memory of all slabs, */
    GROWTH_LEAST = 64 << 10, /* and at least so many bytes of items */
    ALONG_SHARE = 4,         /* magazines flushed along leave 1/4 of the budget, */
    ALONG_MOST = 16,         /* and are at most so many */
};

static _Atomic size_t slab_bytes; /* as sy_budget_note_memory was told last */

void sy_budget_note_memory(size_t bytes) {
    atomic_store_explicit(&slab_bytes, bytes, memory_order_relaxed);
}

/* ---- of a thread ---- */

bool sy_capacity_may_begin(const sy_client *client) {
    size_t bytes = client->config.item_bytes;
    if (!client->config.place_matters || bytes <= LARGE_ITEM) return true;
    return bytes <= atomic_load_explicit(&slab_bytes, memory_order_relaxed) / LARGE_ITEM_SHARE;
}

static bool allow_items(sy_client *client, uint64_t items) {
    if (!client->config.loaded_items) return true;
    uint64_t allowed = atomic_fetch_add_explicit(&client->allowed, items, memory_order_relaxed);
    if (allowed + items <= client->config.loaded_items) return true;
    atomic_fetch_sub_explicit(&client->allowed, items, memory_order_relaxed);
    return false;
}

static uint32_t first_capacity(const sy_client *client) {
    size_t items = START_BYTES / client->config.item_bytes;
    return items > START_ITEMS ? START_ITEMS : items ? (uint32_t)items : 1;
}

static void leave_as_holder(sy_client *client) { atomic_fetch_sub(&client->holders, 1); }

/* Called before a thread without items of the client gets some; false: it may not. The thread is
 * counted before `admits` is asked, so a limit that is set meanwhile counts it too. */
static bool enter_as_holder(sy_client *client) {
    const sy_client_config *config = &client->config;
    size_t holders = atomic_fetch_add(&client->holders, 1) + 1;
    if (!config->admits || config->admits(config->owner, holders * 2 * config->magazine_items))
        return true;
    leave_as_holder(client);
    return false;
}

bool sy_capacity_widen(sy_client *client, sy_thread *thread, sy_slot *slot, uint32_t want) {
    if (slot->capacity >= want) return true;
    bool first = !slot->capacity;
    if (first && !enter_as_holder(client)) return false;
    uint64_t more = 2 * (uint64_t)(want - slot->capacity); /* two magazines */
    if (!allow_items(client, more)) {
        if (first) leave_as_holder(client);
        return false;
    }
    atomic_fetch_add_explicit(&thread->loaded_bytes, more * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint8_t)want;
    return true;
}

bool sy_capacity_grow(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t have = slot->capacity, most = (uint32_t)client->config.magazine_items;
    if (have >= most || (have >= EASY_ITEMS && slot->exchanges < EXCHANGES_MORE)) return false;
    uint32_t want = have ? have * 2 : first_capacity(client);
    if (want > most) want = most;
    uint64_t bytes = 2 * (uint64_t)(want - have) * client->config.item_bytes;
    uint64_t loaded = atomic_load_explicit(&thread->loaded_bytes, memory_order_relaxed);
    if (have && loaded + bytes > LOADED_BYTES_MAX) return false;
    return sy_capacity_widen(client, thread, slot, want);
}

void sy_capacity_give_up(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint64_t items = 2 * (uint64_t)slot->capacity;
    if (items) leave_as_holder(client);
    atomic_fetch_sub_explicit(&thread->loaded_bytes, items * client->config.item_bytes,
                              memory_order_relaxed);
    if (client->config.loaded_items)
        atomic_fetch_sub_explicit(&client->allowed, items, memory_order_relaxed);
    slot->capacity = 0;
}

void sy_capacity_halve(const sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t less = slot->capacity / 2;
    atomic_fetch_sub_explicit(&thread->loaded_bytes, 2 * (uint64_t)less * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint8_t)(slot->capacity - less);
}

/* ---- of the depot ---- */

int sy_budget_start(void) {
    uint32_t shards = atomic_load_explicit(&sy_facts_now.affinity, memory_order_relaxed);
    return sy_depot_start(shards, SY_CLIENTS_MAX);
}

/* Whether a shard may hold `bytes` bytes of items. */
static bool is_allowed(uint64_t bytes) {
    if (bytes <= BUDGET_EASY) return true;
    size_t limit = atomic_load_explicit(&sy_facts_now.memory_limit, memory_order_relaxed);
    return bytes <= limit / MEMORY_SHARE;
}

static sy_depot_shard *own_shard(const sy_client *client) {
    return sy_depot_shards_of(client->number) + (sy_os_cpu() & (sy_depot_shard_count - 1));
}

static uint64_t first_budget(const sy_client *client) {
    uint64_t items = BUDGET_START / client->config.item_bytes,
             least = client->config.magazine_items;
    return items > least ? items : least;
}

static uint64_t budget_of(const sy_client *client, const sy_depot_shard *shard) {
    uint64_t budget = atomic_load_explicit(&shard->budget, memory_order_relaxed);
    return budget ? budget : first_budget(client);
}

static void put_in(const sy_client *client, sy_depot_shard *shard, sy_magazine *magazine) {
    uint32_t home = (uint32_t)(shard - sy_depot_shards_of(client->number));
    atomic_store_explicit(&magazine->home, home, memory_order_relaxed);
    sy_depot_push(shard, magazine);
    sy_drained_end();
}

void sy_budget_put(const sy_client *client, sy_magazine *magazine, bool surplus) {
    if (!sy_magazine_count(magazine)) {
        sy_store_put(magazine);
        return;
    }
    sy_depot_shard *shard = own_shard(client);
    if (surplus)
        atomic_fetch_add_explicit(&shard->surplus, sy_magazine_count(magazine),
                                  memory_order_relaxed);
    put_in(client, shard, magazine);
}

static void reverse(sy_magazine *magazine) {
    uintptr_t *low = magazine->items, *high = low + sy_magazine_count(magazine);
    while (low < --high) {
        uintptr_t item = *low;
        *low++ = *high;
        *high = item;
    }
}

/*
 * Whether most items are no neighbours, nor next but one, of the items before them. If they waited
 * in the depot, the program would later get objects one after the other that lie apart, and would
 * wait for memory at each of them. A flush to the slabs takes some nanoseconds for such an item,
 * but then the slots in between, which were freed before or after it, are given out with it: a
 * refill gives out the fullest slab's slots in the order of their addresses.
 */
static bool is_scattered(const sy_client *client, const sy_magazine *magazine) {
    enum { EACH = 4 };
    const uintptr_t near = 2 * client->config.item_bytes;
    uint32_t count = sy_magazine_count(magazine), looks = 0, far = 0;
    for (uint32_t i = EACH; i < count; i += EACH, looks++) {
        uintptr_t apart = magazine->items[i] - magazine->items[i - 1];
        far += apart + near > 2 * near;
    }
    return 2 * far > looks;
}

/* Items that other CPUs take are not looked at: the depot is their shortest way. */
static bool belongs_in_slabs(const sy_client *client, sy_depot_shard *shard,
                             const sy_magazine *magazine) {
    return atomic_load_explicit(&slab_bytes, memory_order_relaxed) > MUCH_MEMORY &&
           client->config.place_matters && client->config.item_bytes < PLACED_BYTES &&
           !atomic_load_explicit(&shard->exported, memory_order_relaxed) &&
           is_scattered(client, magazine);
}

bool sy_budget_try_put(sy_client *client, sy_magazine *magazine) {
    if (client->config.loaded_items || client->config.returns) return false;
    sy_depot_shard *shard = own_shard(client);
    if (belongs_in_slabs(client, shard, magazine)) return false;
    if (sy_depot_items(shard) + sy_magazine_count(magazine) > budget_of(client, shard)) {
        atomic_fetch_add_explicit(&shard->refused, sy_magazine_count(magazine),
                                  memory_order_relaxed);
        return false;
    }
    if (atomic_load_explicit(&shard->exported, memory_order_relaxed)) reverse(magazine);
    put_in(client, shard, magazine);
    return true;
}

sy_magazine *sy_budget_take_along(sy_client *client) {
    if (!client->config.flushes_many || client->config.loaded_items) return NULL;
    sy_depot_shard *shard = own_shard(client);
    uint64_t stays = budget_of(client, shard) / ALONG_SHARE;
    sy_magazine *chain = NULL, *magazine;
    for (unsigned i = 1; i < ALONG_MOST && sy_depot_items(shard) > stays; i++) {
        if (!(magazine = sy_depot_pop(shard))) break;
        atomic_fetch_add_explicit(&shard->refused, sy_magazine_count(magazine),
                                  memory_order_relaxed);
        magazine->chain = chain, chain = magazine;
    }
    return chain;
}

/*
 * Called when no shard had a magazine. If a shard has refused magazines before, one of them would
 * have served now. So that shard's budget grows by as many items (at most the items of one
 * magazine): after one round of allocations and frees the depot holds the items that the next round
 * needs.
 */
static void raise_budget(sy_client *client, sy_depot_shard *shards) {
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t refused = atomic_load_explicit(&shards[i].refused, memory_order_relaxed);
        if (!refused) continue;
        uint64_t more = refused < SY_MAGAZINE_ITEMS ? refused : SY_MAGAZINE_ITEMS;
        uint64_t budget = budget_of(client, &shards[i]) + more;
        atomic_store_explicit(&shards[i].refused, refused - more, memory_order_relaxed);
        if (is_allowed(budget * client->config.item_bytes))
            atomic_store_explicit(&shards[i].budget, budget, memory_order_relaxed);
        return;
    }
}

static void count_hit(sy_depot_shard *own, sy_depot_shard *from) {
    uint32_t exported = from != own;
    atomic_fetch_add_explicit(&own->hits, 1, memory_order_relaxed);
    if (exported) atomic_fetch_add_explicit(&own->steals, 1, memory_order_relaxed);
    if (atomic_load_explicit(&from->exported, memory_order_relaxed) != exported)
        atomic_store_explicit(&from->exported, exported, memory_order_relaxed);
}

/* Lowers `low` of the shard to the number of items that were left when `magazine` was taken. */
static void note_low(sy_depot_shard *shard, const sy_magazine *magazine) {
    uint64_t down = atomic_load_explicit(&magazine->items_down, memory_order_relaxed);
    uint64_t left = down - sy_magazine_count(magazine);
    if (left < atomic_load_explicit(&shard->low, memory_order_relaxed))
        atomic_store_explicit(&shard->low, left, memory_order_relaxed);
}

sy_magazine *sy_budget_get(sy_client *client, bool *remote) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number), *own = own_shard(client);
    unsigned mine = (unsigned)(own - shards), mask = sy_depot_shard_count - 1;
    for (unsigned i = 0; i <= mask; i++) {
        sy_depot_shard *from = &shards[(mine + i) & mask];
        sy_magazine *magazine = sy_depot_pop(from);
        if (!magazine) continue;
        note_low(from, magazine);
        count_hit(own, from);
        *remote = atomic_load_explicit(&magazine->home, memory_order_relaxed) != mine;
        return magazine;
    }
    atomic_fetch_add_explicit(&own->misses, 1, memory_order_relaxed);
    raise_budget(client, shards);
    return NULL;
}

sy_magazine *sy_budget_take(sy_client *client, unsigned most) {
    sy_magazine *chain = NULL, *magazine;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++)
        while (most > 0 && (magazine = sy_depot_pop(&shards[i])) != NULL) {
            note_low(&shards[i], magazine);
            magazine->chain = chain, chain = magazine;
            most--;
        }
    return chain;
}

sy_magazine *sy_budget_take_all(sy_client *client) { return sy_budget_take(client, UINT32_MAX); }

/* ---- reaping ---- */

/* The items that a shard may keep while caches grow. */
static uint64_t growing_share(const sy_client *client) {
    size_t bytes = atomic_load_explicit(&slab_bytes, memory_order_relaxed) / GROWTH_SHARE;
    return (bytes > GROWTH_LEAST ? bytes : GROWTH_LEAST) / client->config.item_bytes;
}

/* So many items as full magazines, but not more than `most`. */
static uint64_t whole_magazines(const sy_client *client, uint64_t items, uint64_t most) {
    uint64_t each = client->config.magazine_items, whole = (items + each - 1) / each * each;
    return whole < most ? whole : most;
}

void sy_budget_begin_reap(sy_client *client, bool forget) {
    const uint64_t most = forget ? UINT32_MAX : growing_share(client);
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t items = sy_depot_items(&shards[i]);
        uint64_t low = atomic_load_explicit(&shards[i].low, memory_order_relaxed);
        uint64_t surplus = low < items ? low : items;
        if (items > most + surplus) surplus = whole_magazines(client, items - most, items);
        bool forgets = forget || surplus;
        if (forgets && atomic_load_explicit(&shards[i].refused, memory_order_relaxed))
            atomic_store_explicit(&shards[i].refused, 0, memory_order_relaxed);
        if (!items && !low) continue; /* perhaps never used: do not write to its page of zeros */
        atomic_store_explicit(&shards[i].surplus, (uint32_t)surplus, memory_order_relaxed);
        atomic_store_explicit(&shards[i].low, items - surplus, memory_order_relaxed);
    }
}

static void lower_budget(const sy_client *client, sy_depot_shard *shard, uint64_t items) {
    uint64_t budget = budget_of(client, shard), least = first_budget(client) + items;
    atomic_store_explicit(&shard->budget, budget > least ? budget - items : 0,
                          memory_order_relaxed);
}

/* Takes one magazine of a shard's surplus, or returns NULL. */
static sy_magazine *reap_one(const sy_client *client, sy_depot_shard *shard) {
    uint64_t surplus = atomic_load_explicit(&shard->surplus, memory_order_relaxed);
    sy_magazine *magazine = surplus ? sy_depot_pop(shard) : NULL;
    uint64_t count = magazine ? sy_magazine_count(magazine) : 0;
    bool taken = magazine && count <= surplus;
    if (magazine && !taken) sy_depot_push(shard, magazine);
    if (surplus)
        atomic_store_explicit(&shard->surplus, (uint32_t)(taken ? surplus - count : 0),
                              memory_order_relaxed);
    if (!taken) return NULL;
    lower_budget(client, shard, count);
    return magazine;
}

sy_magazine *sy_budget_reap(sy_client *client, unsigned most) {
    sy_magazine *chain = NULL, *magazine;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++)
        while (most > 0 && (magazine = reap_one(client, &shards[i])) != NULL) {
            magazine->chain = chain, chain = magazine;
            most--;
        }
    return chain;
}

void sy_budget_reset(const sy_client *client) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        atomic_store(&shards[i].budget, 0);
        atomic_store(&shards[i].refused, 0);
        atomic_store(&shards[i].hits, 0);
        atomic_store(&shards[i].misses, 0);
        atomic_store(&shards[i].steals, 0);
        atomic_store(&shards[i].surplus, 0);
        atomic_store(&shards[i].low, 0);
    }
}
