/* Threads allocate, and stacks of their objects are taken by unwinding tables, while another thread
 * forks: the child must not wait for a lock that one of them held. Another thread unwinds by
 * itself, as exceptions do. */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unwind.h>

#include "hosts/hosts.h"

enum { THREADS = 3, FORKS = 200 };

static _Atomic bool ended;

#define NOT_LAST __asm__ volatile("" : : : "memory")

__attribute__((noinline)) static void allocate(int depth) {
    if (depth > 0) {
        allocate(depth - 1);
    } else {
        void *volatile object = malloc(100);
        free(object);
    }
    NOT_LAST;
}

static void *work(void *arg) {
    while (!atomic_load(&ended)) allocate(3);
    return arg;
}

static _Unwind_Reason_Code pass(struct _Unwind_Context *context, void *arg) {
    return (void)context, (void)arg, _URC_NO_REASON;
}

static void *unwind(void *arg) {
    while (!atomic_load(&ended)) (void)_Unwind_Backtrace(pass, NULL);
    return arg;
}

int main(int count, char **arguments) {
    (void)count;
    with_options("audit,sample=1/10,unwind=tables", arguments);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, i ? work : unwind, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(20);
            allocate(3);
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    atomic_store(&ended, true);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
