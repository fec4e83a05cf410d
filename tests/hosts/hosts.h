/*
 * hosts.h: what the programs of tests/hosts share: a check that ends the program with a message, a
 * way to run with options of the library, child processes, and a program that is hungry for memory
 * (`hungry`).
 */
#ifndef SLABYARD_TESTS_HOSTS_H
#define SLABYARD_TESTS_HOSTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
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

/* Closes what the program was started with, but standard streams. */
static inline void host_close_others(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
}

/* Runs the program with these options of the library: starts it once more if it has others. */
static inline void with_options(const char *options, char **arguments) {
    const char *now = getenv("SLABYARD");
    if (now && strcmp(now, options) == 0) return;
    CHECK(setenv("SLABYARD", options, 1) == 0);
    execv("/proc/self/exe", arguments);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

/* ---- children ---- */

typedef void host_body(void *arg);

/* In a child: runs body(arg), and ends with status 0, or after a minute by a signal. */
static inline _Noreturn void host_run(host_body *body, void *arg) {
    alarm(60);
    body(arg);
    _exit(0);
}

/* Runs body(arg) in a child. */
static inline pid_t host_start(host_body *body, void *arg) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) host_run(body, arg);
    return child;
}

/* Waits for the child, and returns its status. If the machine cannot be the child's host, it cannot
 * be this program's either. */
static inline int host_end_of(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) _exit(SKIPPED);
    return status;
}

/* The body has to run to its end, in a child. */
static inline void host_lives(host_body *body, void *arg) {
    int status = host_end_of(host_start(body, arg));
    if (status != 0) {
        char text[64];
        snprintf(text, sizeof text, "the child ended with the status 0x%x\n", (unsigned)status);
        host_say(text);
    }
    CHECK(status == 0);
}

/* Runs body(arg) in a child, writes the child's stderr into `text` as a string, and returns the
 * child's status. */
static inline int host_listen(host_body *body, void *arg, char *text, size_t room) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        host_run(body, arg);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    return host_end_of(child);
}

/* The text has to contain these words. */
static inline void host_expect(const char *text, const char *words) {
    if (strstr(text, words)) return;
    host_say("no \"");
    host_say(words);
    host_say("\" in the report:\n");
    host_say(text);
    _exit(1);
}

static inline void host_rest(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- what all hosts run ---- */

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

/* The life of an ordinary program: it grows, and is hungry with much memory in use and with
 * little. */
static inline void host_live(void) {
    void *kept = malloc(20 << 20);
    CHECK(kept != NULL);
    memset(kept, 1, 20 << 20);
    hungry(64);
    free(kept);
    hungry(64);
}

/* A mistake that the library reports. */
static inline void host_free_twice(void *unused) {
    (void)unused;
    char *volatile object = malloc(100);
    free(object);
    free(object);
}

/* The body makes this mistake in a child: it is reported, and ends the child by SIGABRT. */
static inline void host_reports(host_body *body, void *arg) {
    static char text[1 << 16];
    int status = host_listen(body, arg, text, sizeof text);
    host_expect(text, "double free");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#endif
