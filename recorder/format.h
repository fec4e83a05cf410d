/*
 * format.h: the format of the file that the recorder writes. docs/compare.md describes the same
 * format for those who read such files; rust/slabyard-cli/src/recording/ reads them.
 *
 *     file   := header block*
 *     header := "slabyard record\n"  version:u32  crc:u32          (crc of the 20 bytes before it)
 *     block  := magic:u32 kind:u8 zero:u8[3] thread:u32 records:u32 stamp:u64 length:u32 crc:u32
 *               payload[length]
 *
 * All numbers are little-endian. A block's crc (CRC-32 as in zip) covers the 28 bytes before it and
 * the payload, so a reader recognises a damaged block. The blocks of one thread are in order; the
 * blocks of different threads come in the order in which they became full.
 *
 * An operation block holds `records` records. A record is
 *
 *     head:u8  [logarithm]  ticks  address  [address  ticks]  [size]
 *
 * The bits of head are:
 *
 *     0-2   the operation
 *     3     1: addresses count in units of 16 bytes
 *     4-7   for aligned allocations: the base-two logarithm of the alignment, minus 3. 15 means
 *           that the logarithm follows the head as a varint
 *
 * All other fields are varints:
 *
 *     ticks       since the previous record of the block; the first record counts from the block's
 *                 stamp
 *     address     the signed distance (zigzag) from the previous address in the block; the first
 *                 counts from 0. A realloc has two addresses, the old one and then the new one,
 *                 and the ticks that the call took
 *     size        of every operation but a free
 *
 * Before the free or the realloc of an object of RECORD_LARGE_BYTES or more, there is a record of
 * how many bytes of its pages were in RAM (RECORD_TOUCHED). It is not an operation of the program;
 * its size is that number.
 *
 * With stacks (BLOCK_STACKED), the record of each allocation, also of one that failed, has one more
 * varint at its end: the number of its stack. 0: it is not known. The table of stacks is a tree. A
 * node is a return address and the node of its caller; a stack is the node of its innermost
 * function. The nodes of a process are numbered from 1 in the order of their blocks (BLOCK_STACKS;
 * its stamp is the first one's number). A node is two varints:
 *
 *     caller      how many numbers before this one its caller is; 0: this is the outermost one
 *     address     the signed distance (zigzag) from the previous node's; the first counts from 0
 *
 * An outermost node with the address 0 says that the rest of the stack could not be found.
 *
 * A module (BLOCK_MODULE) is where a file with code is mapped, for all nodes from the number in its
 * stamp on, until a later module with the same addresses: three varints, its first address, its
 * length in bytes, and what is to be subtracted from an address for that in the file; then its
 * build id and its path, each after its length as a varint. An empty path: memory of no file.
 *
 * `slabyard record` adds the names of functions that a process made at run time (BLOCK_MADE), if
 * the process wrote a map for perf, /tmp/perf-PID.map. The block's `thread` is the process's index
 * in the file. For each name, there are its length as a varint, its bytes, the number of addresses
 * of calls in it, and the signed distance (zigzag) of each from the previous one; the first of the
 * block counts from 0.
 *
 * The stamp of a free is taken before the call, that of an allocation after it. A realloc has both:
 * it gives the old address up at the first, and has the new address at the second. So if one thread
 * frees an address and another receives it, the free has the smaller stamp. If one thread frees
 * what another has allocated, the free has the larger stamp, because the address went from thread
 * to thread in between.
 *
 * The records of a thread since its last block are in a struct record_buffer, in shared memory if
 * there is any. If a process is killed, `slabyard record` makes a block of each such buffer.
 */
#ifndef SLABYARD_RECORD_FORMAT_H
#define SLABYARD_RECORD_FORMAT_H

#include <stdint.h>

#define RECORD_MAGIC       "slabyard record\n"
#define RECORD_VERSION     1u
#define RECORD_BLOCK_MAGIC 0x31425953u /* "SYB1" */

/* The files of a process, in the folder that SLABYARD_RECORD names; %s is "pid.image". The second
 * one holds the buffers. It is on a tmpfs, where memory that was once allocated stays allocated. */
#define RECORD_PART_NAME    "%s.part"
#define RECORD_BUFFERS_NAME "live/%s.buffers"
#define RECORD_BUFFER_BYTES ((size_t)64 << 10)
#define RECORD_BUFFER_MAGIC 0x32425953u /* "SYB2" */

enum record_block {
    BLOCK_PROCESS = 1,    /* a process begins: struct record_process, then its command line */
    BLOCK_OPERATIONS = 2, /* records of one thread */
    BLOCK_END = 3,        /* the process ended by exit, abort or exec: struct record_end */
    BLOCK_FINISH = 4,     /* written by `slabyard record` once all processes' files are joined */
    BLOCK_UNTOUCHED = 5,  /* before BLOCK_END: see RECORD_LARGE_BYTES */
    BLOCK_STACKED = 7,    /* as BLOCK_OPERATIONS, and each allocation ends with its stack */
    BLOCK_STACKS = 8,     /* nodes of the table of stacks */
    BLOCK_MODULE = 9,     /* a file with code, or executable memory of no file */
    BLOCK_MADE = 10,      /* written by `slabyard record`: names of functions made at run time */
    BLOCK_MEMORY = 6      /* written by `slabyard record`: the process's anonymous memory in RAM at
                             times, each two varints: nanoseconds since the time before (the first
                             since the birth of the process), and bytes */
};

enum record_operation {
    RECORD_MALLOC = 0,
    RECORD_FREE = 1,
    RECORD_REALLOC = 2,
    RECORD_CALLOC = 3,
    RECORD_ALIGNED = 4,
    RECORD_FAILED = 5, /* an allocation that failed: address 0 */
    RECORD_TOUCHED = 6 /* the bytes of the next record's object that are in RAM */
};

/* For objects of at least so many usable bytes, it is recorded how much of them the program has
 * touched. For those that are live when the process ends, BLOCK_UNTOUCHED says it: it lists runs of
 * pages of the process's writable memory that are not in RAM. A run is two varints: the number of
 * pages since the previous run (in each block the first counts from address 0), and its length in
 * pages. `records` is the number of runs. A process that was killed has no such block. */
#define RECORD_LARGE_BYTES ((size_t)64 << 10)

enum record_origin { ORIGIN_EXEC = 0, ORIGIN_FORK = 1 };
enum record_end_reason { END_EXIT = 0, END_EXEC = 1 };

struct record_block_header {
    uint32_t magic;
    uint8_t kind;
    uint8_t zero[3];
    uint32_t thread;
    uint32_t records;
    uint64_t stamp;
    uint32_t length;
    uint32_t crc;
};

/* Both clocks are read together. With those of record_end they give the length of a tick. */
struct record_process {
    uint32_t pid;
    uint32_t parent; /* the process that forked it, or else its parent */
    uint32_t origin;
    uint32_t page_size;
    uint64_t ticks;
    uint64_t nanoseconds;
};

struct record_end {
    uint32_t reason;
    uint32_t lost; /* blocks that could not be written */
    uint64_t ticks;
    uint64_t nanoseconds;
    /* The process's peak resident memory in bytes, its code and the buffers included; 0: not known.
     * Readers also accept a shorter block without this field. */
    uint64_t peak_resident;
};

/* The start of a buffer of RECORD_BUFFER_BYTES. `filled` is stored last. */
struct record_buffer {
    uint32_t magic;
    uint32_t payload;        /* where in the buffer the payload begins */
    _Atomic uint64_t filled; /* records << 32 | bytes of payload */
    uint64_t stamp;          /* of the first record */
    uint32_t thread;
    uint32_t closed; /* 1: the process will not write to it any more */
    uint32_t lost;   /* blocks that could not be written */
    uint32_t error;  /* errno of the first failed write */
    uint32_t kind;   /* of its block; in one of BLOCK_STACKS, stamp is the first node's number */
    uint32_t zero;
};

_Static_assert(sizeof(struct record_block_header) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_process) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_end) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_buffer) == 48, "the tool reads it as it lies");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

#endif
