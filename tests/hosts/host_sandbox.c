/* A program that forbids itself all system calls but those of memory and time, with some memory in
 * use before and without, and then is hungry. A call that is not allowed kills it, is trapped, or
 * fails. */
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

typedef struct stay {
    const sandbox *box;
    unsigned action;
    size_t before; /* MiB in use when the filter is set: the background thread runs then, or not */
} stay;

static void enter(const stay *in) {
    set_filter(in->box->calls, in->box->count, in->box->allow, in->action);
}

static void live_in(void *arg) {
    const stay *in = arg;
    void *kept[64] = {NULL};
    for (size_t i = 0; i < in->before; i++) memset(kept[i] = malloc(1 << 20), 1, 1 << 20);
    if (in->before) hungry(in->before);
    enter(in);
    hungry(64);
    for (size_t i = 0; i < in->before; i++) free(kept[i]);
    hungry(64);
}

/* A mistake in a sandbox is reported, although the report can have no names. */
static void err_in(void *arg) {
    hungry(20);
    enter(arg);
    host_free_twice(NULL);
}

/* The filter may refuse the signal of abort, so any signal may end the child. */
static void expect_report(stay in) {
    static char text[1 << 16];
    int status = host_listen(err_in, &in, text, sizeof text);
    host_expect(text, "double free");
    CHECK(WIFSIGNALED(status));
}

int main(void) {
    const unsigned actions[] = {KILL, TRAP, REFUSE};
    const size_t before[] = {0, 1, 40};
    for (size_t box = 0; box < COUNT_OF(sandboxes); box++)
        for (size_t action = 0; action < COUNT_OF(actions); action++)
            for (size_t i = 0; i < COUNT_OF(before); i++)
                host_lives(live_in, &(stay){&sandboxes[box], actions[action], before[i]});
    for (size_t box = 0; box < COUNT_OF(sandboxes); box++)
        expect_report((stay){&sandboxes[box], KILL, 0});
    return 0;
}
