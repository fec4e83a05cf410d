/*
 * Reports where there is little room: in a handler on an alternate stack as Rust's programs set it,
 * in a thread with the smallest stack, on the stack of a coroutine, in a child of vfork.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "hosts/hosts.h"

enum { OBJECT = 4080 };

/* For the library's handler, beside the kernel's frame. */
#ifdef __OPTIMIZE__
enum { FRAME = 2500 };
#else
enum { FRAME = 8 << 10 };
#endif

#define LEAST_FOR_KERNEL 51 /* AT_MINSIGSTKSZ */

static char report[64 << 10];
static int status;

static void call(void *program) { (*(void (**)(void))program)(); }

/* Runs the program in a child, and reads what it writes to stderr. */
static void run(void (*program)(void)) {
    status = host_listen(call, &program, report, sizeof report);
}

#define EXPECT(words) host_expect(report, words)

/* Objects lie at the right and at the left end of their pages, so one of two writes is seen. */
__attribute__((noinline)) void write_behind(void) {
    for (int i = 0; i < 4; i++) {
        volatile char *volatile object = malloc(OBJECT);
        CHECK(object != NULL);
        object[4096] = 1;
    }
}

static char *map(size_t bytes) {
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

/* Memory below which nothing can be written. */
static char *map_alone(size_t bytes) {
    char *start = map(bytes + (64 << 10));
    CHECK(mprotect(start, 64 << 10, PROT_NONE) == 0);
    return start + (64 << 10);
}

static void on_alternate_stack(void) {
    size_t kernel = getauxval(LEAST_FOR_KERNEL);
    if (!kernel) kernel = (size_t)MINSIGSTKSZ;
    const size_t bytes = kernel + FRAME;
    const stack_t stack = {.ss_sp = map_alone(bytes), .ss_size = bytes};
    CHECK(sigaltstack(&stack, NULL) == 0);
    write_behind();
}

static char *freed;

static void *free_twice(void *arg) {
    (void)arg;
    free(freed);
    free(freed);
    return NULL;
}

static void *write_in_thread(void *arg) {
    (void)arg;
    write_behind();
    return NULL;
}

static void in_small_thread(void *(*body)(void *)) {
    size_t bytes = (size_t)PTHREAD_STACK_MIN;
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, map_alone(bytes), bytes) == 0);
    CHECK(pthread_create(&thread, &attributes, body, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void twice_in_small_thread(void) {
    freed = malloc(100);
    in_small_thread(free_twice);
}

static void behind_in_small_thread(void) { in_small_thread(write_in_thread); }

static ucontext_t here, there;

static void in_coroutine(void) {
    size_t bytes = 32 << 10;
    CHECK(getcontext(&there) == 0);
    there.uc_stack.ss_sp = map_alone(bytes);
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    makecontext(&there, write_behind, 0);
    CHECK(swapcontext(&here, &there) == 0);
}

/* The child runs in its parent's memory. The parent goes on, and can make a report of its own. */
static void in_child_of_vfork(void) {
    freed = malloc(OBJECT); /* made by the parent, written by the child */
    char *volatile other = malloc(OBJECT);
    pid_t pid = vfork();
    if (pid == 0) {
        ((volatile char *)freed)[4096] = 1;
        ((volatile char *)other)[4096] = 1;
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    write_behind();
}

int main(int count, char **arguments) {
    (void)count;
    with_options("sample=1", arguments);
    run(on_alternate_stack);
    EXPECT("slabyard: write behind an object");
    EXPECT("write_behind");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    run(behind_in_small_thread);
    EXPECT("write behind an object");
    EXPECT("write_behind");
    run(in_coroutine);
    EXPECT("write behind an object");
    EXPECT("write_behind");
    run(twice_in_small_thread);
    EXPECT("slabyard: double free");
    EXPECT("free_twice");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    run(in_child_of_vfork);
    EXPECT("write behind an object");
    EXPECT("write_behind");
    return 0;
}
