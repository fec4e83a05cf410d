/*
 * host_locked_memory.c: a program that locks all memory that it will get, below the usual limit on
 * locked memory. It gets some memory, is refused the rest, and goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hosts.h"

enum { BLOCKS = 8000, BYTES = 1000, LARGE = 300000, LIMIT = 8 << 20, NOBODY = 65534 };

/* The bytes that the program has locked, read without a stream, which would allocate. */
static size_t locked(void) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    const char *row = length < 0 ? NULL : strstr(text, "VmLck:");
    if (file >= 0) close(file);
    return row ? strtoul(row + strlen("VmLck:"), NULL, 10) << 10 : LIMIT;
}

int main(void) {
    static unsigned char *blocks[BLOCKS];
    const struct rlimit limit = {LIMIT, LIMIT};
    size_t got = 0;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return SKIPPED;
    if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) return SKIPPED;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return SKIPPED; /* it has more already */
    size_t room = LIMIT - locked();
    if (room < 256 << 10) return SKIPPED;
    for (int round = 0; round < 3; round++) {
        for (got = 0; got < BLOCKS && (blocks[got] = malloc(BYTES)) != NULL; got++)
            memset(blocks[got], (int)got, BYTES);
        CHECK(got * BYTES >= room / 4);
        CHECK(got < BLOCKS && errno == ENOMEM);
        CHECK(realloc(blocks[0], LIMIT) == NULL);
        for (size_t i = 0; i < got; i++) {
            CHECK(blocks[i][0] == (i & 255) && blocks[i][BYTES - 1] == (i & 255));
            free(blocks[i]);
        }
        void *large = malloc(LARGE);
        CHECK(large != NULL);
        free(large);
    }
    return 0;
}
