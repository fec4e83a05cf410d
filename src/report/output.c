/*
 * output.c: see output.h.
 */
#include "report/output.h"

#include <errno.h>
#include <string.h>

#include "os/os.h"

void sy_output_flush(sy_output *to) {
    int saved = errno;
    if (to->length && !to->error && to->path)
        to->error = sy_os_append(to->path, to->text, to->length) == 0 ? 0 : errno;
    else if (to->length && !to->error)
        to->error = sy_os_write(to->fd, to->text, to->length);
    to->length = 0;
    errno = saved;
}

void sy_output_add(sy_output *to, const char *text, size_t length) {
    if (length > SY_OUTPUT_ROOM - to->length) sy_output_flush(to);
    memcpy(to->text + to->length, text, length);
    to->length += length;
}
