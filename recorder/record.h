/*
 * record.h: what the files of the recorder share. record.c has the file and the buffers, stacks.c
 * the stacks of allocations, unwind.c the steps from frame to frame.
 */
#ifndef SLABYARD_RECORD_RECORD_H
#define SLABYARD_RECORD_RECORD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format.h"

/* The most frames of a stack that are kept, from the innermost on. */
#define STACK_DEPTH_MAX 400u

struct buffer {
    struct record_buffer shared;
    struct buffer *next; /* all buffers of threads; never leaves the list */
    uint64_t stamp;      /* of the previous record */
    uintptr_t address;   /* of the previous record */
    bool taken;          /* a thread owns it; guarded by `files` */
    pid_t leaver;        /* the thread that owns it, if it took it after its destructors; else 0 */
    struct record_block_header header;
    /* The stack that the thread takes: a program's stack may have no room for it. */
    uintptr_t codes[STACK_DEPTH_MAX];
    unsigned char payload[];
};

#define PAYLOAD_BYTES (RECORD_BUFFER_BYTES - sizeof(struct buffer))

/* The thread's state to restore when it releases `files`. */
struct pause {
    sigset_t signals;
    int cancel;
    bool busy;
};

/* Reads a file line by line; used under `files`. */
struct lines {
    int fd;
    ssize_t length, at; /* of what has been read */
    char text[4096];
};

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void record_lock_files(struct pause *pause);
HIDDEN void record_unlock_files(const struct pause *pause);

/* All of these under `files`. */
HIDDEN bool record_write_block(struct record_block_header *header, const void *payload);
HIDDEN struct buffer *record_map_buffer(void);
HIDDEN void record_empty_buffer(struct buffer *buffer);
HIDDEN bool record_next_line(struct lines *lines, char *line, size_t room);

HIDDEN uint64_t record_nanoseconds(void);

static inline __attribute__((always_inline)) unsigned char *put_varint(unsigned char *p,
                                                                       uint64_t value) {
    for (; value >= 128; value >>= 7) *p++ = (unsigned char)(value | 128);
    *p++ = (unsigned char)value;
    return p;
}

static inline uint64_t zigzag(int64_t number) {
    return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

#endif
