/*
 * The file that the recorder writes, as its writer sees it. docs/compare.md describes the same
 * bytes for readers; rust/slabyard-cli/src/recording/ reads them.
 *
 *     file   := header block*
 *     header := "slabyard record\n"  version:u32  crc:u32          (crc of the 20 bytes before it)
 *     block  := magic:u32 kind:u8 zero:u8[3] thread:u32 records:u32 stamp:u64 length:u32 crc:u32
 *               payload[length]
 *
 * All numbers are little-endian. A block's crc (CRC-32 as in zip) covers the 28 bytes before it and
 * the payload, so a block is either whole or recognised as damaged. Blocks of one thread are in
 * order; blocks of different threads lie in the order in which they filled.
 *
 * An operation block holds `records` records. A record is
 *
 *     head:u8  [logarithm]  ticks  address  [address  ticks]  [size]
 *
 * where head is the operation (bits 0-2), whether addresses count in units of 16 bytes (bit 3) and,
 * for aligned allocations, the base-two logarithm of the alignment less 3, at most 15 (bits 4-7;
 * 15 means that a varint of it follows the head). All others are varints: ticks since the previous
 * record of the block (the first counts from the block's stamp), then address as signed (zigzag)
 * distance from the previous address in the block (the first from 0). A realloc has two addresses,
 * the old and then the new one, and the ticks that the call took. Everything but a free ends with
 * its size. Before the free or the realloc of an object of RECORD_LARGE_BYTES or more comes a
 * record of how many bytes of its pages were in RAM. It is no operation of the program's; its size
 * is that number.
 *
 * The stamp of a free is taken before the call, that of an allocation after it, and a realloc has
 * both: it gives the old address up at the first and has the new one at the second. So if one
 * thread gives an address up and another receives it, the former has the smaller stamp; and an
 * object is freed after it was allocated, for its address went from one thread to the other in
 * between.
 *
 * What a thread has recorded since its last block lies in a struct record_buffer, in shared memory
 * where there is any: a process that ends without notice leaves it to `slabyard record`, which
 * makes a block of it.
 */
#ifndef SLABYARD_RECORD_FORMAT_H
#define SLABYARD_RECORD_FORMAT_H

#include <stdint.h>

#define RECORD_MAGIC       "slabyard record\n"
#define RECORD_VERSION     1u
#define RECORD_BLOCK_MAGIC 0x31425953u /* "SYB1" */

/* The processes' files, in the folder that SLABYARD_RECORD names; %s is "pid.image". The second
 * is on a tmpfs, where memory that was had once is there for good, and holds the buffers. */
#define RECORD_PART_NAME    "%s.part"
#define RECORD_BUFFERS_NAME "live/%s.buffers"
#define RECORD_BUFFER_BYTES ((size_t)64 << 10)
#define RECORD_BUFFER_MAGIC 0x32425953u /* "SYB2" */

enum record_block {
    BLOCK_PROCESS = 1,    /* a process begins: struct record_process, then its command line */
    BLOCK_OPERATIONS = 2, /* what one thread did */
    BLOCK_END = 3,        /* the process left in good order: struct record_end */
    BLOCK_FINISH = 4,     /* written by `slabyard record` once all processes' files are joined */
    BLOCK_UNTOUCHED = 5,  /* before BLOCK_END: see RECORD_LARGE_BYTES */
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
    RECORD_FAILED = 5, /* an allocation that the program was refused: address 0 */
    RECORD_TOUCHED = 6 /* what the next record's object had in RAM */
};

/* Objects of so many usable bytes are looked at: how much of them has the program touched? Of those
 * that are live when the process ends, BLOCK_UNTOUCHED tells it. It lists runs of pages of the
 * process's writable memory that are not in RAM. A run is two varints: the number of pages from the
 * run before (in each block the first counts from address 0), and its length in pages. `records`
 * counts the runs. A process that was killed has no such block. */
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

/* Both clocks are read together: with those of record_end they tell how long a tick is. */
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
    /* The most memory that the process had in RAM, its code and the buffers included; 0 if the
     * system does not say. Readers take a shorter block, without this, too. */
    uint64_t peak_resident;
};

/* How a buffer of RECORD_BUFFER_BYTES begins; `filled` is stored last. */
struct record_buffer {
    uint32_t magic;
    uint32_t payload;        /* where in the buffer the payload begins */
    _Atomic uint64_t filled; /* records << 32 | bytes of payload */
    uint64_t stamp;          /* of the first record */
    uint32_t thread;
    uint32_t closed; /* the process has written it for the last time */
    uint32_t lost;   /* blocks that could not be written */
    uint32_t error;  /* the errno of the first of them */
};

_Static_assert(sizeof(struct record_block_header) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_process) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_end) == 32, "the file has no padding");
_Static_assert(sizeof(struct record_buffer) == 40, "the tool reads it as it lies");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

#endif
