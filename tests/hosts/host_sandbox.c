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

int main(void) {
    const unsigned actions[] = {KILL, TRAP, REFUSE};
    const size_t before[] = {0, 1, 40};
    for (size_t box = 0; box < COUNT_OF(sandboxes); box++)
        for (size_t action = 0; action < COUNT_OF(actions); action++)
            for (size_t i = 0; i < COUNT_OF(before); i++)
                live_in(&sandboxes[box], actions[action], before[i]);
    return 0;
}
