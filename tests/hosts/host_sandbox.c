/* A program that forbids itself all system calls but those of memory and time, with some memory in
 * use before and without, and then is hungry. A call that is not allowed kills it, is trapped, or
 * fails. */
#include <sys/wait.h>

#include "hosts/sandbox.h"

typedef struct sandbox {
    const long *calls;
    size_t count;
    bool allow;
} sandbox;

static const sandbox sandboxes[] = {
    {memory_calls, COUNT_OF(memory_calls), true},
    {forbidden_to_renderers, COUNT_OF(forbidden_to_renderers), false},
};

/* `before`: MiB in use when the filter is set. The background thread runs then, or not yet. */
static void live_in(const sandbox *box, unsigned action, size_t before) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        void *kept[64] = {NULL};
        for (size_t i = 0; i < before; i++) memset(kept[i] = malloc(1 << 20), 1, 1 << 20);
        if (before) hungry(before);
        set_filter(box->calls, box->count, box->allow, action);
        hungry(64);
        for (size_t i = 0; i < before; i++) free(kept[i]);
        hungry(64);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) exit(SKIPPED);
    CHECK(status == 0);
}

/* A mistake in a sandbox is reported, although the report can have no names. */
static void mistake_in(const sandbox *box, unsigned action) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        hungry(20);
        char *volatile block = malloc(100);
        set_filter(box->calls, box->count, box->allow, action);
        free(block);
        free(block);
        _exit(1);
    }
    close(ends[1]);
    static char text[1 << 16];
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) exit(SKIPPED);
    CHECK(WIFSIGNALED(status));
    CHECK(strstr(text, "double free"));
}

int main(void) {
    const unsigned actions[] = {KILL, TRAP, REFUSE};
    const size_t before[] = {0, 1, 40};
    for (size_t box = 0; box < COUNT_OF(sandboxes); box++)
        for (size_t action = 0; action < COUNT_OF(actions); action++)
            for (size_t i = 0; i < COUNT_OF(before); i++)
                live_in(&sandboxes[box], actions[action], before[i]);
    for (size_t box = 0; box < COUNT_OF(sandboxes); box++) mistake_in(&sandboxes[box], KILL);
    return 0;
}
