/*
 * order_book.c: a limit order book. Orders come from a pool, as one thread owns the book: the order
 * that was filled last is the next one given, still in the processor's cache.
 *
 *     cc order_book.c $(pkg-config --cflags --libs slabyard) && ./a.out
 *
 * It checks what it shows: the exit status is 0 only if all of it was so.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabyard/pool.h>

enum {
    LEVELS = 1024,      /* prices, a tick each */
    ORDERS_MAX = 50000, /* open at a time: the pool is bounded, and says when it is full */
    REQUESTS = 2000000,
};

typedef enum side { BUY, SELL } side;

typedef struct order {
    struct order *next, *previous; /* at its price, the oldest first; a ring around the level */
    uint32_t price, amount;        /* what is left of it */
    uint32_t owner;                /* its place in `open` */
    side wants;
} order;

typedef struct book {
    sy_pool *orders;
    order levels[2][LEVELS]; /* heads of the rings */
    uint32_t best[2];        /* the highest buyer's price, the lowest seller's, if there is one */
    order *open[ORDERS_MAX]; /* whom to cancel; NULL: filled or cancelled */
    uint32_t vacant[ORDERS_MAX], vacant_count;
    uint64_t added, filled, cancelled, refused; /* orders */
    uint64_t asked, traded, withdrawn;          /* amounts; each trade counts for both sides */
} book;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static void begin(book *it) {
    it->orders = sy_pool_create(
        &(sy_pool_config){.name = "order", .size = sizeof(order), .capacity = ORDERS_MAX});
    expect(it->orders != NULL, "a pool is created");
    for (int wants = BUY; wants <= SELL; wants++)
        for (uint32_t price = 0; price < LEVELS; price++) {
            order *head = &it->levels[wants][price];
            head->next = head->previous = head;
        }
    it->best[BUY] = 0;
    it->best[SELL] = LEVELS - 1;
    for (uint32_t i = 0; i < ORDERS_MAX; i++) it->vacant[it->vacant_count++] = i;
}

static int is_empty(const order *head) { return head->next == head; }

static void remove_order(book *it, order *gone) {
    gone->previous->next = gone->next;
    gone->next->previous = gone->previous;
    it->open[gone->owner] = NULL;
    it->vacant[it->vacant_count++] = gone->owner;
    sy_pool_free(it->orders, gone);
}

/* The oldest order at the best price of this side, or NULL. */
static order *best_of(book *it, side of) {
    uint32_t *best = &it->best[of], worst = of == BUY ? 0 : LEVELS - 1;
    while (is_empty(&it->levels[of][*best]) && *best != worst) *best += of == BUY ? -1u : 1u;
    order *head = &it->levels[of][*best];
    return is_empty(head) ? NULL : head->next;
}

static int crosses(side wants, uint32_t price, const order *resting) {
    return wants == BUY ? price >= resting->price : price <= resting->price;
}

/* Trades with who is there, at their prices, the best and oldest first; what is left over. */
static uint32_t match(book *it, side wants, uint32_t price, uint32_t amount) {
    order *resting;
    while (amount > 0 && (resting = best_of(it, !wants)) && crosses(wants, price, resting)) {
        uint32_t traded = amount < resting->amount ? amount : resting->amount;
        amount -= traded;
        resting->amount -= traded;
        it->traded += 2 * (uint64_t)traded;
        if (resting->amount > 0) continue;
        remove_order(it, resting);
        it->filled++;
    }
    return amount;
}

static void place(book *it, side wants, uint32_t price, uint32_t amount) {
    it->asked += amount;
    it->added++;
    amount = match(it, wants, price, amount);
    if (amount == 0) {
        it->filled++;
        return;
    }
    order *fresh = sy_pool_alloc(it->orders), *head = &it->levels[wants][price];
    if (!fresh) { /* as many are open as may be */
        it->refused++;
        it->withdrawn += amount;
        return;
    }
    uint32_t owner = it->vacant[--it->vacant_count];
    *fresh = (order){.next = head,
                     .previous = head->previous,
                     .price = price,
                     .amount = amount,
                     .owner = owner,
                     .wants = wants};
    head->previous->next = fresh;
    head->previous = fresh;
    it->open[owner] = fresh;
    if (wants == BUY ? price > it->best[BUY] : price < it->best[SELL]) it->best[wants] = price;
}

static void cancel(book *it, uint32_t owner) {
    order *gone = it->open[owner];
    if (!gone) return;
    it->withdrawn += gone->amount;
    it->cancelled++;
    remove_order(it, gone);
}

static uint64_t random_below(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

int main(void) {
    static book it;
    uint64_t state = 1, left = 0;
    size_t most = 0;
    begin(&it);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        uint32_t middle = LEVELS / 2 + (uint32_t)(i / 20000) % 64;
        side wants = random_below(&state, 2) ? BUY : SELL;
        uint32_t offset = (uint32_t)random_below(&state, 200);
        uint32_t price = wants == BUY ? middle + 20 - offset : middle - 20 + offset;
        if (random_below(&state, 5) < 3)
            place(&it, wants, price, 1 + (uint32_t)random_below(&state, 100));
        else
            cancel(&it, (uint32_t)random_below(&state, ORDERS_MAX));
        size_t open = ORDERS_MAX - it.vacant_count;
        if (open > most) most = open;
    }
    for (uint32_t i = 0; i < ORDERS_MAX; i++) left += it.open[i] ? it.open[i]->amount : 0;
    const order *buyer = best_of(&it, BUY), *seller = best_of(&it, SELL);
    printf("%ju orders: %ju filled, %ju cancelled, %ju refused; %zu open at the most\n",
           (uintmax_t)it.added, (uintmax_t)it.filled, (uintmax_t)it.cancelled,
           (uintmax_t)it.refused, most);
    expect(!buyer || !seller || buyer->price < seller->price, "no two that could trade wait");
    expect(it.asked == it.traded + it.withdrawn + left, "nothing is bought that nobody sold");
    expect(sy_pool_in_use(it.orders) == ORDERS_MAX - it.vacant_count, "each open order has a slot");
    expect(it.filled + it.cancelled + it.refused + sy_pool_in_use(it.orders) == it.added,
           "each order is accounted for");
    expect(it.filled > 0 && it.cancelled > 0, "there was something to see");
    sy_pool_destroy(it.orders);
    return 0;
}
