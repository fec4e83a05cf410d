/*
 * process.c: the part of os.h for the process: its environment, its files, blocks of the C
 * library's malloc, and its end.
 */
#define _GNU_SOURCE

#include "base/cpu.h"
#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <fcntl.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/auxv.h>
#    include <unistd.h>

/* ---- environment, terminal, report files ---- */

const char *sy_os_option(const char *name) {
    int saved = errno;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets variables meanwhile. */
    const char *text = getauxval(AT_SECURE) ? NULL : getenv(name);
    errno = saved;
    return text;
}

__attribute__((weak)) const char *sy_os_default_options(void) { return ""; }

bool sy_os_is_terminal(int fd) {
    int saved = errno;
    bool answer = isatty(fd);
    errno = saved;
    return answer;
}

/* -1 with the errno of the error; on success errno is unchanged. */
static int write_all(int fd, const char *text, size_t length) {
    int saved = errno;
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -1;
        if (written == 0) return sy_os_failed(ENOSPC);
        text += written;
        length -= (size_t)written;
    }
    errno = saved;
    return 0;
}

int sy_os_append(const char *path, const char *text, size_t length) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    int result = write_all(fd, text, length), error = errno;
    close(fd);
    errno = error;
    return result;
}

int sy_os_write(int fd, const char *text, size_t length) {
    int saved = errno;
    int error = write_all(fd, text, length) == 0 ? 0 : errno;
    errno = saved;
    return error;
}

/* Tools take a stack here (sy_cpu_keep_frame keeps this function on it). */
__attribute__((weak)) void *sy_os_block(size_t bytes, size_t align) {
    sy_cpu_keep_frame();
    int saved = errno;
    void *block = NULL;
    if (align <= _Alignof(max_align_t))
        block = malloc(bytes);
    else if (posix_memalign(&block, align, bytes) != 0)
        block = NULL;
    errno = block == NULL ? ENOMEM : saved;
    return block;
}

__attribute__((weak)) void sy_os_block_free(void *block) {
    sy_cpu_keep_frame();
    int saved = errno;
    free(block);
    errno = saved;
}

/* ---- the end ---- */

int sy_os_at_exit(void (*hook)(void)) {
    sy_os_keep_stderr();
    return atexit(hook) == 0 ? 0 : sy_os_failed(ENOMEM);
}

_Noreturn void sy_os_end(int status) {
    fflush(NULL);
    _exit(status);
}

_Noreturn void sy_os_abort(const char *why) {
    if (why) (void)write_all(sy_os_stderr(), why, strlen(why));
    abort();
}

#endif
