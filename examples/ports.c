/*
 * ports.c: arenas that allocate integers: the ports of a NAT or a proxy, and the ids of requests.
 *
 *     cc -DSY_STATIC ports.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * The program checks its results: the exit status is 0 only if all of them are right.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/fault.h>
#include <slabyard/vmem.h>

enum {
    FIRST_PORT = 1, /* 0 stands for "any" in the socket calls */
    LAST_PORT = 65535,
    FIRST_DYNAMIC_PORT = 49152, /* ports from here on are assigned to no service (RFC 6335) */
    DYNAMIC_PORTS = LAST_PORT - FIRST_DYNAMIC_PORT + 1,

    WORKERS = 4,
    REQUESTS_OPEN = 300, /* requests that a worker has open at a time */
    REQUESTS = 100000,   /* requests of one worker, one after another */
};

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- ports ---- */

/* Allocates a port in [first, last]. Returns 0 if none is free. */
static uintptr_t take_port(sy_vmem *ports, uintptr_t first, uintptr_t last, sy_vmem_fit fit) {
    uintptr_t port;
    const sy_vmem_constraints within = {.min = first, .max = last + 1};
    return sy_vmem_xalloc(ports, 1, &within, fit, &port) == 0 ? port : 0;
}

static const char *outcome(uintptr_t port, int error) {
    if (port) return "a port";
    return error == ENOMEM ? "none is free" : "refused";
}

/* Allocates a port for a connection: the one that was freed longest ago. So a late packet of the
 * port's last connection does not reach a new one. */
static uintptr_t take_dynamic_port(sy_vmem *ports) {
    return take_port(ports, FIRST_DYNAMIC_PORT, LAST_PORT, SY_VMEM_NEXT);
}

static void give_port(sy_vmem *ports, uintptr_t port) {
    expect(sy_vmem_free(ports, port, 1) == 0, "a port that was taken can be given back");
}

static void show_reuse(sy_vmem *ports) {
    uintptr_t first = take_dynamic_port(ports), port = first;
    unsigned connections = 0;
    do {
        give_port(ports, port);
        port = take_dynamic_port(ports);
        connections++;
    } while (port != first && connections <= DYNAMIC_PORTS);
    give_port(ports, port);
    printf("port %ju comes again after %u connections\n", (uintmax_t)first, connections);
    expect(connections == DYNAMIC_PORTS, "every other port had its turn first");
}

static void show_services(sy_vmem *ports) {
    uintptr_t web = take_port(ports, 80, 80, SY_VMEM_INSTANT);
    uintptr_t again = take_port(ports, 80, 80, SY_VMEM_INSTANT);
    int error = errno;
    printf("port %ju is taken by number; a second time: %s\n", (uintmax_t)web,
           outcome(again, error));
    expect(web == 80 && !again && error == ENOMEM, "one port is given once");

    uintptr_t service = take_port(ports, 8000, 8099, SY_VMEM_INSTANT);
    printf("port %ju is any of 8000 to 8099\n", (uintmax_t)service);
    expect(service >= 8000 && service <= 8099, "it lies in the range");
    give_port(ports, web);
    give_port(ports, service);
}

/* Allocates an even port for RTP and the odd one above it for RTCP (RFC 3550): two units, aligned
 * to two. */
static uintptr_t take_pair(sy_vmem *ports) {
    uintptr_t pair;
    const sy_vmem_constraints even = {.align = 2, .min = FIRST_DYNAMIC_PORT, .max = LAST_PORT + 1};
    return sy_vmem_xalloc(ports, 2, &even, SY_VMEM_NEXT, &pair) == 0 ? pair : 0;
}

static void show_pairs(sy_vmem *ports) {
    uintptr_t single, pairs[3];
    do { /* an even one, so that the next pair cannot simply follow it */
        single = take_dynamic_port(ports);
        if (single % 2) give_port(ports, single);
    } while (single % 2);
    printf("beside port %ju the pairs", (uintmax_t)single);
    for (unsigned i = 0; i < 3; i++) {
        pairs[i] = take_pair(ports);
        printf(" %ju+%ju", (uintmax_t)pairs[i], (uintmax_t)pairs[i] + 1);
        expect(pairs[i] && pairs[i] % 2 == 0, "a pair begins at an even port");
        expect(pairs[i] != single && pairs[i] + 1 != single, "a pair is two free ports");
    }
    printf("\n");
    for (unsigned i = 0; i < 3; i++)
        expect(sy_vmem_free(ports, pairs[i], 2) == 0, "a pair is given back as a pair");
    give_port(ports, single);
}

static void show_exhaustion(sy_vmem *ports) {
    uintptr_t taken[10];
    for (unsigned i = 0; i < 10; i++) taken[i] = take_port(ports, 6000, 6009, SY_VMEM_BEST);
    uintptr_t more = take_port(ports, 6000, 6009, SY_VMEM_BEST);
    int error = errno;
    printf("after 6000 to 6009 are taken: %s\n", outcome(more, error));
    expect(taken[9] && !more && error == ENOMEM, "there are ten from 6000 to 6009");

    give_port(ports, taken[4]);
    more = take_port(ports, 6000, 6009, SY_VMEM_BEST);
    expect(more == taken[4], "the one given back is the one to be had");
    for (unsigned i = 0; i < 10; i++) give_port(ports, taken[i]);
}

/* ---- wrong releases ---- */

static sy_fault last_fault;

/* Without a handler, the library writes a report to stderr and aborts. */
static void refuse(const sy_fault *fault) {
    last_fault = *fault;
    printf("refused: %zu at %ju to \"%s\", ", fault->object_size,
           (uintmax_t)(uintptr_t)fault->address, fault->cache);
    if (fault->kind == SY_FAULT_SEGMENT_SIZE)
        printf("which gave %zu there\n", fault->found_size);
    else
        printf("which has none out there\n");
}

static void show_wrong_release(sy_vmem *ports) {
    sy_fault_handler before = sy_set_fault_handler(refuse);
    uintptr_t pair = take_pair(ports);

    int status = sy_vmem_free(ports, 4711, 1);
    expect(status == -1 && errno == EINVAL, "the release is refused");
    expect(last_fault.kind == SY_FAULT_NOT_ALLOCATED, "it is told that the port was not taken");
    expect(strcmp(last_fault.cache, "tcp ports") == 0, "it is told by name");

    status = sy_vmem_free(ports, pair, 1);
    expect(status == -1 && last_fault.kind == SY_FAULT_SEGMENT_SIZE, "half a pair is refused");
    expect(last_fault.found_size == 2, "it is told what was taken");

    expect(sy_vmem_free(ports, pair, 2) == 0, "the pair is still there to be given back");
    sy_set_fault_handler(before);
}

/* The arena has no quantum cache. Ports are scarce, and ports that wait in the magazines of one
 * thread would be missing for the others. */
static void show_ports(void) {
    sy_vmem *ports = sy_vmem_create(&(sy_vmem_config){
        .name = "tcp ports", .base = FIRST_PORT, .size = LAST_PORT - FIRST_PORT + 1});
    expect(ports != NULL, "an arena is made");
    show_reuse(ports);
    show_services(ports);
    show_pairs(ports);
    show_exhaustion(ports);
    show_wrong_release(ports);
    expect(sy_vmem_size(ports, SY_VMEM_FREE) == LAST_PORT, "every port is free again");
    expect(sy_vmem_destroy(ports) == 0, "an arena of which nothing is out can be destroyed");
}

/* ---- request ids, from many threads ---- */

typedef struct worker {
    pthread_t thread;
    sy_vmem *ids;
    uintptr_t open[REQUESTS_OPEN];
} worker;

static uintptr_t begin_request(sy_vmem *ids) {
    uintptr_t id;
    expect(sy_vmem_alloc(ids, 1, SY_VMEM_INSTANT, &id) == 0, "there is an id");
    return id;
}

static void *work(void *argument) {
    worker *self = argument;
    for (unsigned i = 0; i < REQUESTS_OPEN; i++) self->open[i] = begin_request(self->ids);
    for (unsigned i = 0; i < REQUESTS; i++) {
        uintptr_t *oldest = &self->open[i % REQUESTS_OPEN], id = begin_request(self->ids);
        sy_vmem_free(self->ids, *oldest, 1);
        *oldest = id;
    }
    return NULL;
}

static void run_workers(worker *workers, sy_vmem *ids) {
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].ids = ids;
        expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread starts");
    }
    for (unsigned i = 0; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
}

static int compare_ids(const void *a, const void *b) {
    uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return left < right ? -1 : left > right;
}

static void expect_distinct(const worker *workers) {
    static uintptr_t ids[WORKERS * REQUESTS_OPEN];
    for (unsigned i = 0; i < WORKERS; i++)
        memcpy(ids + (size_t)i * REQUESTS_OPEN, workers[i].open, sizeof workers[i].open);
    qsort(ids, sizeof ids / sizeof *ids, sizeof *ids, compare_ids);
    expect(ids[0] != 0, "nobody was given the id that is kept");
    for (unsigned i = 1; i < WORKERS * REQUESTS_OPEN; i++)
        expect(ids[i] != ids[i - 1], "no id is out twice");
}

static void expect_counts(sy_vmem *ids) {
    sy_vmem_stats stats;
    sy_vmem_get_stats(ids, &stats);
    printf("%d requests asked the arena for %ju ids; %zu are open, %zu wait in quantum caches\n",
           WORKERS * (REQUESTS_OPEN + REQUESTS), (uintmax_t)stats.allocs, stats.allocated,
           stats.cached);
    expect(stats.allocated == WORKERS * REQUESTS_OPEN + 1, "what is open is counted exactly");
    expect(stats.allocs < WORKERS * REQUESTS / 10, "nearly all were served by the quantum caches");

    sy_vmem_drain(ids); /* the threads have ended, so all ids in their magazines can be taken out */
    sy_vmem_get_stats(ids, &stats);
    expect(stats.cached == 0, "what waited is given back");
}

/* The ids are all 32-bit numbers but the last, which the program can use for "no id". */
static void show_ids(void) {
    static worker workers[WORKERS];
    sy_vmem *ids = sy_vmem_create(
        &(sy_vmem_config){.name = "request ids", .size = UINT32_MAX, .cached_max = 1});
    expect(ids != NULL, "an arena is made");

    uintptr_t greeting = 1;
    const sy_vmem_constraints zero = {.max = 1};
    expect(sy_vmem_xalloc(ids, 1, &zero, SY_VMEM_INSTANT, &greeting) == 0, "0 is an id");
    expect(greeting == 0, "and apart from the status");

    run_workers(workers, ids);
    expect_distinct(workers);
    expect_counts(ids);
    expect(sy_vmem_destroy(ids) == -1 && errno == EBUSY, "what is open keeps the arena");
    for (unsigned i = 0; i < WORKERS; i++)
        for (unsigned j = 0; j < REQUESTS_OPEN; j++) sy_vmem_free(ids, workers[i].open[j], 1);
    sy_vmem_free(ids, greeting, 1);
    expect(sy_vmem_destroy(ids) == 0, "then all is free");
}

int main(void) {
    show_ports();
    show_ids();
    return 0;
}
