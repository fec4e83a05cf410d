/* Children of all kinds, of a program with threads that allocate: fork, vfork, posix_spawn, system,
 * clone without the hooks of fork, children of children, and programs that a child executes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

#include "hosts/hosts.h"

extern char **environ;

static _Atomic bool over;

static void *eat(void *unused) {
    while (!over) hungry(1);
    return unused;
}

static void ends_well(pid_t child) {
    CHECK(child > 0);
    CHECK(host_end_of(child) == 0);
}

static void eat_in_child(void *depth) {
    size_t deeper = (size_t)depth;
    hungry(deeper ? 2 : 24); /* the last one starts a background thread of its own */
    if (deeper) host_lives(eat_in_child, (void *)(deeper - 1));
}

static void in_forks(void) {
    for (int round = 0; round < 10; round++) host_lives(eat_in_child, (void *)(size_t)(round % 3));
}

static void in_vforks(const char *program) {
    for (volatile int round = 0; round < 50; round++) {
        pid_t child = vfork();
        if (child == 0) {
            execl(program, program, "inner", (char *)NULL);
            _exit(1);
        }
        ends_well(child);
    }
}

/* The child of a vfork runs in its parent's memory and thread. Some allocate there, although POSIX
 * forbids it. */
static void allocating_in_vforks(void) {
    for (volatile int round = 0; round < 50; round++) {
        pid_t child = vfork();
        if (child == 0) {
            char *volatile block = malloc(100 + (size_t)round * 1000);
            free(block);
            _exit(block ? 0 : 1);
        }
        ends_well(child);
    }
}

static void in_spawned(const char *program) {
    char *arguments[] = {(char *)(size_t)program, (char[]){"inner"}, NULL};
    for (int round = 0; round < 50; round++) {
        pid_t child;
        CHECK(posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0);
        ends_well(child);
    }
    for (int round = 0; round < 5; round++) CHECK(system("exit 0") == 0);
    FILE *lines = popen("echo line", "r");
    char line[16] = "";
    CHECK(lines && fgets(line, sizeof line, lines) && strcmp(line, "line\n") == 0);
    CHECK(pclose(lines) == 0);
}

/* No hooks run: at this moment another thread may hold any lock. So the child allocates only if
 * there is none. */
static void without_hooks(bool alone, const char *program) {
    for (int round = 0; round < 20; round++) {
        pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
        if (child == 0) {
            if (alone) hungry(4);
            execl(program, program, "inner", (char *)NULL);
            _exit(1);
        }
        ends_well(child);
    }
}

static int be_clone(void *arg) {
    *(int *)arg = 1;
    return 0;
}

/* A process in the same memory, on a stack from malloc, without a thread's structure. */
static void in_same_memory(void) {
    enum { BYTES = 64 << 10 };
    for (int round = 0; round < 20; round++) {
        int ran = 0;
        char *stack = malloc(BYTES);
        pid_t child = clone(be_clone, stack + BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &ran);
        ends_well(child);
        CHECK(ran == 1);
        free(stack);
    }
}

static void hold_on(void) { CHECK(malloc(10)); }

int main(int count, char **arguments) {
    if (count > 1) {
        hungry(1);
        return 0;
    }
    enum { THREADS = 2 };
    pthread_t threads[THREADS];
    hungry(2);
    without_hooks(true, arguments[0]);
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    in_forks();
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, eat, NULL) == 0);
    CHECK(pthread_atfork(hold_on, hold_on, hold_on) == 0);
    in_forks();
    in_vforks(arguments[0]);
    allocating_in_vforks();
    in_spawned(arguments[0]);
    without_hooks(false, arguments[0]);
    in_same_memory();
    over = true;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free(kept);
    host_reports(host_free_twice, NULL);
    return 0;
}
