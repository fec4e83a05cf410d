/*
 * order_book.c: a limit order book. One thread owns the book, so its orders come from a pool: the
 * order that was freed last is allocated next, while it is still in the processor's cache.
 *
 *     cc -DSY_STATIC order_book.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * `./a.out malloc` takes the orders from malloc, for comparison. The program checks its results:
 * the exit status is 0 only if all of them are right.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/pool.h>

enum {
    LEVELS = 1024,      /* prices, one for each tick */
    ORDERS_MAX = 50000, /* open at a time: the capacity of the pool */
    REQUESTS = 2000000,
};

typedef enum side { BUY, SELL } side;

typedef struct order {
    struct order *next, *previous; /* orders of the same price, the oldest first, in a ring */
    uint32_t price, amount;        /* the amount that is not traded yet */
    uint32_t number;               /* its index in `open` */
    side wants;
} order;

typedef struct book {
    sy_pool *orders;         /* NULL: orders come from malloc */
    order levels[2][LEVELS]; /* heads of the rings */
    uint32_t best[2];        /* no buyer's price is above it, no seller's below */
    order *open[ORDERS_MAX]; /* orders by number; NULL: none */
    uint32_t vacant[ORDERS_MAX], vacant_count;
    uint64_t added, filled, cancelled, refused; /* orders */
    uint64_t asked, traded, withdrawn;          /* amounts; each trade counts for both sides */
} book;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static void begin(book *it, int plain) {
    if (!plain) {
        it->orders = sy_pool_create(
            &(sy_pool_config){.name = "order", .size = sizeof(order), .capacity = ORDERS_MAX});
        expect(it->orders != NULL, "a pool is created");
    }
    for (int wants = BUY; wants <= SELL; wants++)
        for (uint32_t price = 0; price < LEVELS; price++) {
            order *head = &it->levels[wants][price];
            head->next = head->previous = head;
        }
    it->best[BUY] = 0;
    it->best[SELL] = LEVELS - 1;
    for (uint32_t i = 0; i < ORDERS_MAX; i++) it->vacant[it->vacant_count++] = i;
}

/* Memory for an order, or NULL if ORDERS_MAX orders are open. */
static order *new_order(book *it) {
    if (it->orders) return sy_pool_alloc(it->orders);
    return it->vacant_count > 0 ? malloc(sizeof(order)) : NULL;
}

static void free_order(book *it, order *gone) {
    if (it->orders)
        sy_pool_free(it->orders, gone);
    else
        free(gone);
}

static int is_empty(const order *head) { return head->next == head; }

static void remove_order(book *it, order *gone) {
    gone->previous->next = gone->next;
    gone->next->previous = gone->previous;
    it->open[gone->number] = NULL;
    it->vacant[it->vacant_count++] = gone->number;
    free_order(it, gone);
}

/* Returns the oldest order at the best price of this side, or NULL. */
static order *best_of(book *it, side of) {
    uint32_t *best = &it->best[of], worst = of == BUY ? 0 : LEVELS - 1;
    while (is_empty(&it->levels[of][*best]) && *best != worst) *best += of == BUY ? -1u : 1u;
    order *head = &it->levels[of][*best];
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): remove_order has unlinked what it freed. */
    return is_empty(head) ? NULL : head->next;
}

static int crosses(side wants, uint32_t price, const order *resting) {
    return wants == BUY ? price >= resting->price : price <= resting->price;
}

/* Trades with the orders of the other side, the best price first, and the oldest first of a price.
 * Returns the amount that is left. */
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
    order *fresh = new_order(it), *head = &it->levels[wants][price];
    if (!fresh) { /* the pool is full: refuse the order, take no more memory */
        it->refused++;
        it->withdrawn += amount;
        return;
    }
    uint32_t number = it->vacant[--it->vacant_count];
    *fresh = (order){.next = head,
                     .previous = head->previous,
                     .price = price,
                     .amount = amount,
                     .number = number,
                     .wants = wants};
    head->previous->next = fresh;
    head->previous = fresh;
    it->open[number] = fresh;
    if (wants == BUY ? price > it->best[BUY] : price < it->best[SELL]) it->best[wants] = price;
}

static void cancel(book *it, uint32_t number) {
    order *gone = it->open[number];
    if (!gone) return;
    it->withdrawn += gone->amount;
    it->cancelled++;
    remove_order(it, gone);
}

static uint64_t random_below(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

int main(int argc, char **argv) {
    static book it;
    uint64_t state = 1, left = 0;
    size_t most = 0;
    begin(&it, argc > 1 && strcmp(argv[1], "malloc") == 0);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        uint32_t middle = LEVELS / 2 + (uint32_t)(i / 20000) % 64;
        side wants = random_below(&state, 2) ? BUY : SELL;
        uint32_t offset = (uint32_t)random_below(&state, 200);
        uint32_t price = wants == BUY ? middle + 20 - offset : middle - 20 + offset;
        if (random_below(&state, 5) < 3)
            place(&it, wants, price, 1 + (uint32_t)random_below(&state, 100));
        else
            cancel(&it, (uint32_t)random_below(&state, ORDERS_MAX));
        if (ORDERS_MAX - it.vacant_count > most) most = ORDERS_MAX - it.vacant_count;
    }
    for (uint32_t i = 0; i < ORDERS_MAX; i++) left += it.open[i] ? it.open[i]->amount : 0;
    const order *buyer = best_of(&it, BUY), *seller = best_of(&it, SELL);
    printf("%ju orders: %ju filled, %ju cancelled, %ju refused; %zu open at the most\n",
           (uintmax_t)it.added, (uintmax_t)it.filled, (uintmax_t)it.cancelled,
           (uintmax_t)it.refused, most);
    expect(!buyer || !seller || buyer->price < seller->price,
           "no two orders that could trade are left");
    expect(it.asked == it.traded + it.withdrawn + left, "all amounts add up");
    size_t open = ORDERS_MAX - it.vacant_count;
    expect(it.filled + it.cancelled + it.refused + open == it.added, "each order is accounted for");
    expect(it.filled > 0 && it.cancelled > 0, "orders were filled and cancelled");
    if (!it.orders) {
        for (uint32_t i = 0; i < ORDERS_MAX; i++) free(it.open[i]);
        return 0;
    }
    expect(sy_pool_in_use(it.orders) == open, "each open order has a slot");
    sy_pool_destroy(it.orders); /* with all open orders */
    return 0;
}
