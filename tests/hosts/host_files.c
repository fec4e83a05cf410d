/* Which files the library opens at the start, in the thread of the program. `open` here is the one
 * that the library calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "hosts/hosts.h"

static int opened;

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    opened++;
    return (int)syscall(SYS_openat, (long)AT_FDCWD, path, (long)flags, (long)mode);
}

static const struct {
    const char *options;
    bool opens;
} rows[] = {{"tools=off", false}, /* when it has grown, the background thread does */
            {"tools=off,maintenance=no", true},
            {"tools=off,maintenance=no,system-files=no", false}};

int main(int count, char **arguments) {
    char row[2] = {count > 1 ? arguments[1][0] : '0', '\0'};
    size_t number = (size_t)(row[0] - '0');
    char *again[] = {arguments[0], row, NULL};
    with_options(rows[number].options, again);
    hungry(4);
    CHECK((opened > 0) == rows[number].opens);
    row[0]++;
    if (number + 1 < sizeof rows / sizeof *rows) with_options(rows[number + 1].options, again);
    return 0;
}
