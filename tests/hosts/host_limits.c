/* Programs below limits of the system (ulimit): on address space, data, stacks, descriptors, files
 * and processes, set before the program starts and while it runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "hosts/hosts.h"

typedef struct limit {
    int resource;
    rlim_t value;
    bool at_start; /* a program can be started below it */
} limit;

static const limit limits[] = {
    {RLIMIT_AS, 400 << 20, true}, {RLIMIT_DATA, 150 << 20, true}, {RLIMIT_STACK, 64 << 10, true},
    {RLIMIT_NOFILE, 4, true},     {RLIMIT_NOFILE, 0, false},      {RLIMIT_FSIZE, 0, true},
    {RLIMIT_NPROC, 0, false},     {RLIMIT_MEMLOCK, 0, true},      {RLIMIT_SIGPENDING, 0, true},
    {RLIMIT_RTPRIO, 0, true},     {RLIMIT_CPU, 50, true},         {RLIMIT_CORE, 0, true},
};

static const char *program;

static void set_limit(const limit *wanted) {
    /* The superuser may have more processes than the limit. */
    if (wanted->resource == RLIMIT_NPROC && geteuid() == 0)
        if (setgid(65534) != 0 || setuid(65534) != 0) _exit(SKIPPED);
    const struct rlimit both = {wanted->value, wanted->value};
    CHECK(setrlimit((__rlimit_resource_t)wanted->resource, &both) == 0);
}

static void live_below(void *arg) {
    set_limit(arg);
    host_live();
}

static void grow_and_live_below(void *arg) {
    host_live();
    set_limit(arg);
    host_live();
}

static void start_below(void *arg) {
    set_limit(arg);
    execl(program, program, "inner", (char *)NULL);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

static void err_below(void *arg) {
    set_limit(arg);
    hungry(20);
    host_free_twice(NULL);
}

/* What does not fit is refused with ENOMEM. The program goes on, and what it frees can be used. */
static void use_up(void *arg) {
    enum { BLOCKS = 4000 };
    static void *blocks[BLOCKS];
    set_limit(arg);
    for (int round = 0; round < 3; round++) {
        size_t count = 0;
        errno = 0;
        while (count < BLOCKS && (blocks[count] = malloc(500000))) {
            memset(blocks[count], 1, 4096);
            count++;
        }
        CHECK(count < BLOCKS && errno == ENOMEM);
        CHECK(count >= 100);
        while (count > 0) free(blocks[--count]);
        hungry(16);
    }
}

int main(int count, char **arguments) {
    host_close_others();
    if (count > 1) {
        host_live();
        return 0;
    }
    program = arguments[0];
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        limit wanted = limits[i];
        host_lives(live_below, &wanted);
        host_lives(grow_and_live_below, &wanted);
        if (wanted.at_start) host_lives(start_below, &wanted);
        host_reports(err_below, &wanted);
    }
    limit address_space = {RLIMIT_AS, 400 << 20, true}, data = {RLIMIT_DATA, 150 << 20, true};
    host_lives(use_up, &address_space);
    host_lives(use_up, &data);
    return 0;
}
