/*
 * child.c: the part of os.h that runs a function in a child process or in a copy of this
 * process, and that loads libraries.
 *
 * The child is made by the system call clone, not by fork: fork runs hooks, which take locks,
 * malloc's among them, and the caller may be in the handler of a fault with any of these locks
 * held. The child sends no signal at its end, so a wait() of the program does not find it. It
 * answers in shared memory. A pipe would need two descriptors, and would not end while a child that
 * the program forks meanwhile has its copy open.
 */
#define _GNU_SOURCE

#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <dlfcn.h>
#    include <errno.h>
#    include <fcntl.h>
#    include <pthread.h>
#    include <sched.h>
#    include <signal.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/mman.h>
#    include <sys/prctl.h>
#    include <sys/resource.h>
#    include <sys/syscall.h>
#    include <sys/wait.h>
#    include <unistd.h>

/* The child gets a stack of this size, because the caller's may be a signal stack of a few KiB. It
 * is address space: pages that are not touched cost nothing. */
static const size_t STACK_BYTES = (size_t)8 << 20;

/* Weak, since older C libraries have dlsym in a separate library, which the program may lack.
 * dlopen and dlmopen are found by name at run time: the linker would warn if a statically linked
 * program referred to them. Such a program loads no libraries. */
#    pragma weak dlsym

typedef void *open_anew(long list, const char *library, int mode); /* dlmopen of glibc */
typedef void *open_here(const char *library, int mode);

/* The task of a child, and how the child runs. */
typedef struct job {
    sy_os_work *work;
    const void *question;
    void *answer;       /* in memory that both processes share */
    void *stack;        /* the child's stack; NULL: the caller's */
    unsigned seconds;   /* after which the child is ended; 0: no limit */
    void (*made)(void); /* called in both processes; NULL: no function is */
} job;

static job task; /* of the child: each child sets its own copy */

/* Handlers of the program must not run in the child. */
static void forget_handlers(void) {
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    for (int signal = 1; signal < NSIG; signal++) sigaction(signal, &normal, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A crash of the child leaves no message of malloc and no core. (With a limit of 1 the kernel makes
 * no core even if cores are piped to a program.) The child does not outlive its parent. */
static void be_silent(void) {
    const struct rlimit none = {1, 1};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

/* No exit: sanitizers and Valgrind have things to do at one, such as writing what is in the buffers
 * of the program's streams. */
static _Noreturn void work_and_end(void) {
    task.work(task.question, task.answer);
    kill(getpid(), SIGKILL);
    _exit(1); /* if a filter of system calls refuses the signal */
}

static int be_the_child(void *wanted) {
    task = *(job *)wanted;
    alarm(task.seconds);
    be_silent();
    if (task.made)
        task.made(); /* a copy: it never lets signals in */
    else
        forget_handlers();
    work_and_end();
}

/* Signals wait meanwhile: a handler must not find itself in the child. */
static pid_t make_child(job *wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid;
    if (wanted->stack) {
        pid = clone(be_the_child, (char *)wanted->stack + STACK_BYTES, 0, wanted);
    } else {
        pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
        if (pid == 0) be_the_child(wanted);
    }
    int error = errno;
    if (wanted->made) wanted->made();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void await(pid_t pid) {
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) continue;
}

/* Copies the child's answer, of `bytes`, to `answer`. Sets wanted->answer itself. */
static int ask_child(job *wanted, void *answer, size_t bytes) {
    int saved = errno;
    void *both = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) {
        if (wanted->made) wanted->made();
        errno = ENOMEM;
        return -1;
    }
    wanted->answer = both;
    pid_t pid = make_child(wanted);
    int error = errno;
    if (pid > 0) {
        await(pid);
        memcpy(answer, both, bytes);
    }
    munmap(both, bytes);
    errno = pid > 0 ? saved : error;
    return pid > 0 ? 0 : -1;
}

int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds) {
    const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, own, -1, 0);
    if (stack == MAP_FAILED) return -1;
    job wanted = {.work = work, .question = question, .stack = stack, .seconds = seconds};
    int result = ask_child(&wanted, answer, bytes), error = errno;
    munmap(stack, STACK_BYTES);
    errno = error;
    return result;
}

int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void)) {
    job wanted = {.work = work, .question = question, .made = made};
    return ask_child(&wanted, answer, bytes);
}

/* /proc/self/status has the tracer's number behind this word; 0: no tracer. */
bool sy_os_is_traced(void) {
    static const char word[] = "\nTracerPid:\t";
    char text[1024] = "";
    int saved = errno, file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got = read(file, text, sizeof text - 1);
        text[got < 0 ? 0 : got] = 0;
        close(file);
    }
    errno = saved;
    const char *found = strstr(text, word);
    return found && found[sizeof word - 1] != '0';
}

void *sy_os_symbol(void *library, const char *name) {
    return dlsym ? dlsym(library ? library : RTLD_DEFAULT, name) : NULL;
}

#    define NEW_LIST (-1) /* LM_ID_NEWLM */

/* In a list of its own the library gets its own C library, whose heap is not corrupted. A C library
 * other than glibc has one list. */
void *sy_os_load(const char *library) {
    open_anew *anew = (open_anew *)sy_os_symbol(NULL, "dlmopen");
    void *loaded = anew ? anew(NEW_LIST, library, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (loaded) return loaded;
    open_here *here = (open_here *)sy_os_symbol(NULL, "dlopen");
    return here ? here(library, RTLD_NOW | RTLD_LOCAL) : NULL;
}

#endif
