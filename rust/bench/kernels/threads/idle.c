/*
 * idle: a server of one thread has served its sessions, freed everything, and waits in poll.
 *
 * After https://github.com/minpeter/et.rs/pull/82: a server of terminal sessions, with as many
 * threads, descriptors and connections as before the sessions, stays at the most memory that it
 * ever had while it is completely idle: 65 MiB after 354 sessions, where a new one has 4. The
 * numbers here are our own: 29 MiB in blocks of 30 to 630 bytes, 100,000 of which are replaced,
 * all freed in random order.
 */
#include "readings.h"

enum { LEAST = 30, MOST = 630, LIVE = 29 << 20, REPLACED = 100000 };

static size_t draw_size(struct random *random) { return LEAST + below(random, MOST - LEAST + 1); }

static uint64_t serve(struct blocks *blocks, struct random *random) {
    uint64_t sum = 0;
    for (size_t bytes = 0; bytes < LIVE;) {
        size_t size = draw_size(random);
        blocks_add(blocks, size, next(random));
        bytes += size;
    }
    for (size_t i = 0; i < REPLACED; i++) {
        size_t place = below(random, blocks->count);
        sum += give(blocks->at[place]);
        blocks->at[place] = take(draw_size(random), next(random));
    }
    return sum;
}

/* As a server that waits for a connection. */
static void wait_in_poll(long ms) { poll(NULL, 0, (int)ms); }

int main(int count, char **arguments) {
    struct request request = read_request(count, arguments);
    struct blocks blocks = blocks_for(LIVE / LEAST);
    struct random random = random_from(1);
    uint64_t sum = serve(&blocks, &random);
    tell_resident("peak");
    blocks_shuffle(&blocks, &random);
    sum += blocks_give(&blocks);
    blocks_end(&blocks);
    tell("live", 0);
    tell_waits(&request, wait_in_poll);
    tell("sum", sum);
    return 0;
}
