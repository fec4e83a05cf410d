/*
 * files.c: the part of os.h that writes to files by their descriptors. The portable platform has it
 * too, where the C library has descriptors.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_DESCRIPTORS

#    include <errno.h>
#    include <fcntl.h>
#    include <unistd.h>

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

static int write_file(const char *path, int how, const char *text, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0600);
    if (fd < 0) return -1;
    int result = write_all(fd, text, length), error = errno;
    close(fd);
    errno = error;
    return result;
}

int sy_os_append(const char *path, const char *text, size_t length) {
    return write_file(path, O_APPEND, text, length);
}

int sy_os_replace(const char *path, const char *text, size_t length) {
    return write_file(path, O_TRUNC, text, length);
}

int sy_os_write(int fd, const char *text, size_t length) {
    int saved = errno;
    int error = write_all(fd, text, length) == 0 ? 0 : errno;
    errno = saved;
    return error;
}

#endif
