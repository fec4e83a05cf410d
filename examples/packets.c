/*
 * packets.c: packets whose buffers pass through three threads. The first thread receives packets,
 * the second inspects them, and the third sends them on and frees the buffers. The freed buffers
 * come back to the first thread in whole magazines.
 *
 *     cc -DSY_STATIC packets.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 *     receive  -- ring -->  inspect  -- ring -->  send
 *        ^                                          |
 *        +------------ the cache "packet" <---------+
 *
 * Memory is bounded: while all buffers are in use, arriving packets are dropped, as a network card
 * does. The program checks its results: the exit status is 0 only if all of them are right.
 */
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/cache.h>

enum {
    PACKETS = 300000,   /* that arrive */
    BURST = 32,         /* packets that are handled together, at most */
    BUFFERS_MAX = 1024, /* in use at a time */
    RING = 2048,        /* places: a power of two, and more than there are buffers */
    LENGTH_MIN = 60,    /* bytes */
    LENGTH_MAX = 1500,
    HOPS = 64,
};

typedef struct packet {
    uint64_t number; /* in the order of arrival */
    uint32_t length;
    uint32_t hops; /* number of hops that the packet may still take */
    uint32_t sum;  /* of the bytes */
    unsigned char bytes[LENGTH_MAX];
} packet;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static uint32_t sum_of(const unsigned char *bytes, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = sum * 31 + bytes[i];
    return sum;
}

/* ---- a ring from one thread to another ---- */

/* Fields that different threads write lie in different cache lines. */
typedef struct ring {
    alignas(64) atomic_size_t put; /* written by the first thread, as is `closed` */
    atomic_bool closed;
    alignas(64) size_t taken; /* used by the second thread alone */
    alignas(64) packet *places[RING];
} ring;

/* Puts packets into the ring. There is always room, because a ring has more places than there are
 * buffers. */
static void put(ring *to, packet *const *packets, size_t count) {
    size_t at = atomic_load_explicit(&to->put, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) to->places[(at + i) % RING] = packets[i];
    atomic_store_explicit(&to->put, at + count, memory_order_release); /* after their content */
}

/* Waits for packets. Returns how many it took, BURST at most; 0 if the ring is closed and empty. */
static size_t take(ring *from, packet **packets) {
    size_t at = from->taken, count;
    for (;;) { /* reads `closed` first, so that it then sees all that was put before the close */
        bool closed = atomic_load_explicit(&from->closed, memory_order_acquire);
        count = atomic_load_explicit(&from->put, memory_order_acquire) - at;
        if (count > 0 || closed) break;
        sched_yield();
    }
    if (count > BURST) count = BURST;
    for (size_t i = 0; i < count; i++) packets[i] = from->places[(at + i) % RING];
    from->taken += count;
    return count;
}

static void finish(ring *of) { atomic_store_explicit(&of->closed, true, memory_order_release); }

/* ---- the threads ---- */

static sy_cache *buffers;
static ring arrived, inspected;
static uint64_t dropped, damaged, sent; /* each written by one thread, read at the end */

static void fill(packet *it, uint64_t number) {
    it->number = number;
    it->length = (uint32_t)(LENGTH_MIN + number * 7919 % (LENGTH_MAX - LENGTH_MIN + 1));
    it->hops = HOPS;
    memset(it->bytes, (int)(number % 251), it->length);
    it->sum = sum_of(it->bytes, it->length);
}

/* Allocates the buffers of a burst with one call. It may get fewer than it asks for. */
static void *receive(void *none) {
    packet *burst[BURST];
    for (uint64_t number = 0; number < PACKETS; number += BURST) {
        size_t count = sy_cache_alloc_batch(buffers, (void **)burst, BURST);
        for (size_t i = 0; i < count; i++) fill(burst[i], number + i);
        put(&arrived, burst, count);
        dropped += BURST - count;
        if (count < BURST) sched_yield(); /* wait a little before the next burst */
    }
    finish(&arrived);
    return none;
}

static void *inspect(void *none) {
    packet *burst[BURST];
    for (size_t count; (count = take(&arrived, burst)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            packet *it = burst[i];
            damaged += sum_of(it->bytes, it->length) != it->sum;
            it->hops--;
        }
        put(&inspected, burst, count);
    }
    finish(&inspected);
    return none;
}

/* This thread never allocates. The buffers that it frees fill its magazines, and full magazines go
 * back to the cache. */
static void *send_on(void *none) {
    packet *burst[BURST];
    uint64_t next = 0;
    for (size_t count; (count = take(&inspected, burst)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            expect(burst[i]->number >= next, "packets stay in order");
            expect(burst[i]->hops == HOPS - 1, "each was inspected once");
            next = burst[i]->number + 1;
        }
        sy_cache_free_batch(buffers, (void *const *)burst, count);
        sent += count;
    }
    return none;
}

int main(void) {
    buffers = sy_cache_create(&(sy_cache_config){
        .name = "packet", .size = sizeof(packet), .align = 64, .limit = BUFFERS_MAX});
    expect(buffers != NULL, "a cache is created");

    void *(*const work[])(void *) = {receive, inspect, send_on};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        expect(pthread_create(&threads[i], NULL, work[i], NULL) == 0, "a thread starts");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);

    printf("%d packets arrived: %ju were sent on, %ju dropped, %ju damaged\n", PACKETS,
           (uintmax_t)sent, (uintmax_t)dropped, (uintmax_t)damaged);
    expect(sent + dropped == PACKETS && sent > 0, "each packet is accounted for");
    expect(damaged == 0, "none was changed on its way");
    expect(sy_cache_in_use(buffers) == 0, "all buffers came back");
    expect(sy_cache_destroy(buffers) == 0, "and the cache is destroyed");
    return 0;
}
