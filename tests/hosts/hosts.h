/*
 * hosts.h: what the programs of tests/hosts share: a check that ends the program with a message, a
 * way to run with options of the library, and a program that is hungry for memory (`hungry`).
 */
#ifndef SLABYARD_TESTS_HOSTS_H
#define SLABYARD_TESTS_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 }; /* exit status: this machine cannot be the host */

/* Ends the program if `holds` is false. Uses no stream, so it also works on a small stack. */
#define CHECK(holds)                                           \
    do {                                                       \
        if (!(holds)) host_failed(__FILE__, __LINE__, #holds); \
    } while (0)

static inline void host_say(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static inline _Noreturn void host_failed(const char *file, int line, const char *condition) {
    char digits[12];
    int at = sizeof digits - 1;
    digits[at] = '\0';
    for (; line > 0; line /= 10) digits[--at] = (char)('0' + line % 10);
    host_say(file);
    host_say(":");
    host_say(digits + at);
    host_say(": not so: ");
    host_say(condition);
    host_say("\n");
    _exit(1);
}

/* Runs the program with these options of the library: starts it once more if it has others. */
static inline void with_options(const char *options, char **arguments) {
    const char *now = getenv("SLABYARD");
    if (now && strcmp(now, options) == 0) return;
    CHECK(setenv("SLABYARD", options, 1) == 0);
    execv("/proc/self/exe", arguments);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

/* Allocates `mib` MiB in blocks of 16 bytes to 4 KiB and a large block for every MiB, writes and
 * checks each, and frees all of them. Needs about 100 bytes of stack. */
static inline void hungry(size_t mib) {
    enum { LARGE = 200000 };
    unsigned seed = 1;
    unsigned char *last = NULL; /* a list: each block begins with the address of the one before */
    size_t taken = 0, since_large = 0;
    while (taken < mib << 20) {
        seed = seed * 1103515245u + 12345u;
        size_t bytes = 16 + (seed >> 16) % 4080;
        if (since_large >= 1 << 20) bytes = LARGE, since_large = 0;
        unsigned char *block = malloc(bytes);
        CHECK(block != NULL);
        memset(block, (int)(bytes & 0xff), bytes);
        memcpy(block, &last, sizeof last);
        last = block;
        taken += bytes;
        since_large += bytes;
    }
    while (last) {
        unsigned char *before;
        memcpy(&before, last, sizeof before);
        free(last);
        last = before;
    }
}

#endif
