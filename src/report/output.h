/*
 * output.h: text on its way to a descriptor or to a file. It is collected in pages from the system
 * and written in pieces of up to 64 KiB, so the accounts of several processes that append to one
 * file are seldom mixed up.
 *
 * Below: os/. Used by account.c and json.c.
 */
#ifndef SY_REPORT_OUTPUT_H
#define SY_REPORT_OUTPUT_H

#include <stddef.h>

enum { SY_OUTPUT_ROOM = 64 << 10 };

typedef struct sy_output {
    const char *path; /* of a file that is appended to; NULL: `fd` */
    int fd, error;    /* the first errno */
    size_t length;
    char *text; /* SY_OUTPUT_ROOM bytes */
} sy_output;

void sy_output_add(sy_output *to, const char *text, size_t length);

/* Writes what was collected. */
void sy_output_flush(sy_output *to);

#endif
