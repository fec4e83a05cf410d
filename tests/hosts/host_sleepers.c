/* Threads that free everything and then sleep, or hardly call: a server that waits for its next
 * client. What they have freed goes back to the system, although they make no call. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "hosts/hosts.h"

enum {
    MIB = 31,             /* that the server has at its peak */
    BLOCKS = 100000,      /* of 30 to 630 bytes */
    SLEEPERS = 8,         /* threads */
    KEPT_BYTES = 5 << 20, /* at most, by one thread and by all of them */
};

/* Allocates nothing: no stream. */
static size_t resident(void) {
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0) exit(SKIPPED);
    CHECK(read(file, text, sizeof text - 1) > 0);
    close(file);
    const char *at = strchr(text, ' ');
    CHECK(at != NULL);
    return strtoul(at, NULL, 10) * (size_t)getpagesize();
}

static unsigned next(unsigned *seed) {
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

/* Frees in another order than it allocates, so that magazines hold objects of many pages. */
static void peak(void **blocks, size_t mib, unsigned seed) {
    size_t count = 0, taken = 0;
    while (taken < mib << 20 && count < BLOCKS) {
        size_t bytes = 30 + next(&seed) % 600;
        CHECK((blocks[count] = malloc(bytes)) != NULL);
        memset(blocks[count++], 1, bytes);
        taken += bytes;
    }
    for (size_t left = count; left > 0; left--) {
        size_t i = next(&seed) % left;
        free(blocks[i]);
        blocks[i] = blocks[left - 1];
    }
}

static void until_it_is_less_than(size_t bytes) {
    while (resident() > bytes) poll(NULL, 0, 20);
}

/* ---- several threads ---- */

static pthread_barrier_t meet;

static void *sleep_after_peak(void *blocks) {
    peak(blocks, MIB / SLEEPERS + 1, (unsigned)(uintptr_t)blocks);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet); /* it sleeps here */
    peak(blocks, 1, 1);
    return NULL;
}

static void *hardly_call(void *blocks) {
    struct timespec once = {0, 100000000};
    sleep_after_peak(blocks);
    for (int i = 0; i < 3; i++) {
        free(malloc(100 + (size_t)i));
        nanosleep(&once, NULL);
    }
    return NULL;
}

int main(void) {
    long barriers = syscall(SYS_membarrier, 0, 0, 0); /* those that the system has */
    if (barriers < 0 || !(barriers & 1 << 3)) return SKIPPED;
    static void *blocks[SLEEPERS][BLOCKS];
    pthread_t threads[SLEEPERS];
    memset(blocks, 1, sizeof blocks);
    size_t before = resident();
    peak(blocks[0], MIB, 1);
    until_it_is_less_than(before + KEPT_BYTES);
    peak(blocks[0], MIB, 2); /* it goes on */
    pthread_barrier_init(&meet, NULL, SLEEPERS + 1);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK(pthread_create(&threads[i], NULL, hardly_call, blocks[i]) == 0);
    pthread_barrier_wait(&meet);
    until_it_is_less_than(before + KEPT_BYTES + SLEEPERS * 100000);
    pthread_barrier_wait(&meet);
    for (int i = 0; i < SLEEPERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
