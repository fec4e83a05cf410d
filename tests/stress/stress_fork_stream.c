/*
 * stress_fork_stream.c: threads fork while others are inside the C library's streams.
 *
 * A stream's functions allocate, as getline and the streams' buffers do if the heap is the
 * program's malloc. One thread flushes all streams: it has the lock of their list, waits for a
 * stream, and that stream's user may wait for a lock of the library's. fork waits for the list.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"
#include "support/services.h"

enum { FORKERS = 2, WRITERS = 3, CHILD_SECONDS = 60, PIECES = 64 };

static _Atomic bool over;
static _Atomic unsigned forks;

/* Through the slow paths, and their locks. */
static ssize_t write_nowhere(void *cookie, const char *text, size_t bytes) {
    void *pieces[PIECES];
    (void)text;
    for (size_t i = 0; i < PIECES; i++) pieces[i] = sy_malloc(10 + 100 * i);
    for (size_t i = 0; i < PIECES; i++) {
        stress_expect(pieces[i] != NULL, "there is memory");
        sy_free(pieces[i]);
    }
    sy_thread_flush();
    (void)cookie;
    return (ssize_t)bytes;
}

static void *writer(void *arg) {
    while (!over) {
        FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_nowhere});
        stress_expect(stream != NULL, "a stream is opened");
        for (int i = 0; i < 20; i++) {
            fprintf(stream, "%d", i);
            fflush(stream);
        }
        fclose(stream);
    }
    return arg;
}

static void *flusher(void *arg) {
    while (!over) fflush(NULL);
    return arg;
}

static void *forker(void *arg) {
    while (!over) {
        pid_t child = fork();
        stress_expect(child >= 0, "a process forks");
        if (child == 0) {
            alarm(CHILD_SECONDS);
            write_nowhere(NULL, NULL, 0);
            stress_verify();
            _exit(0);
        }
        int status;
        while (waitpid(child, &status, 0) < 0)
            stress_expect(errno == EINTR, "a child is waited for");
        stress_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
        atomic_fetch_add(&forks, 1);
    }
    return arg;
}

int main(int argc, char **argv) {
    must_have(SY_OS_FORKS, "fork");
    stress_run run = stress_arguments(argc, argv);
    pthread_t threads[FORKERS + WRITERS + 1];
    alarm((unsigned)run.seconds + CHILD_SECONDS);
    for (unsigned i = 0; i < FORKERS + WRITERS + 1; i++) {
        void *(*body)(void *) = i < FORKERS ? forker : i < FORKERS + WRITERS ? writer : flusher;
        stress_expect(pthread_create(&threads[i], NULL, body, NULL) == 0, "a thread starts");
    }
    double end = stress_now() + run.seconds;
    while (stress_now() < end) usleep(10000);
    over = true;
    for (unsigned i = 0; i < FORKERS + WRITERS + 1; i++) pthread_join(threads[i], NULL);
    stress_verify();
    stress_expect(stress_heap_in_use() == 0, "nothing is in use at the end");
    printf("stress: %u forks beside streams\n", forks);
    return 0;
}
