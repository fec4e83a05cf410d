/*
 * rows.h: what the unwinding tables of a file say of an address, in one word: the address's row. By
 * rows, a walk finds the caller of a frame. To find a row takes about a microsecond, and a step
 * with it some ten nanoseconds, so users keep rows.
 *
 * Nothing here takes a lock or allocates, and nothing of the loader or of the compiler's runtime is
 * called: a thread may allocate while it, or another one, holds any of their locks.
 *
 * Above: steps.c; and recorder/unwind.c, so this file knows nothing of the library. For x86-64.
 */
#ifndef SY_OS_LINUX_ROWS_H
#define SY_OS_LINUX_ROWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/platform.h"

#if SY_PLATFORM_LINUX && defined(__x86_64__) && defined(__LP64__)
#    define SY_ROWS 1
#else
#    define SY_ROWS 0
#endif

/* A function that has called another one: the address that it goes on at, its stack pointer then,
 * and the frame pointer's register. */
typedef struct sy_row_frame {
    uintptr_t code, stack, pointer;
} sy_row_frame;

/* The stack that may be read: from the current stack pointer to its end. */
typedef struct sy_row_bounds {
    uintptr_t low, high;
} sy_row_bounds;

/* The addresses of a file in memory, and where its table of contents lies (.eh_frame_hdr; 0: it has
 * none). */
typedef struct sy_row_table {
    uintptr_t start, end, head;
} sy_row_table;

/* The lowest three bits of a row. */
enum sy_row_kind {
    SY_ROW_NONE = 1,     /* there is no table for the address */
    SY_ROW_FROM_STACK,   /* CFA = stack pointer + distance */
    SY_ROW_FROM_POINTER, /* CFA = frame pointer + distance */
    SY_ROW_AT_POINTER,   /* CFA = the word at frame pointer + distance */
    SY_ROW_END,          /* the first function of a thread */
    SY_ROW_CUT,          /* the table says what is not understood here */
};

static inline enum sy_row_kind sy_row_kind(uint64_t row) { return (enum sy_row_kind)(row & 7); }

/* The row of the address, which is that of an instruction: of a call, the one before its return
 * address. */
uint64_t sy_row_find(const sy_row_table *table, uintptr_t code);

/* The row of code that clears `distance` bytes from the stack and returns. `pointer`: where among
 * these bytes the caller's frame pointer is; -1: the code does not change it. */
uint64_t sy_row_from_stack(int64_t distance, int64_t pointer);

/* Makes *frame its caller's, by the row of its code. False: the row does not lead to a caller. */
bool sy_row_step(uint64_t row, const sy_row_bounds *stack, sy_row_frame *frame);

/* A row that is kept without a lock: the row, and the row with the address's key mixed in. If two
 * threads write one, or a thread reads it meanwhile, the words do not fit together, and it counts
 * as empty. No key is 0. */
typedef struct sy_row_kept {
    _Atomic uint64_t row, check;
} sy_row_kept;

/* The row that is kept for the key; 0: none. */
static inline uint64_t sy_row_get(const sy_row_kept *from, uint64_t key) {
    uint64_t row = atomic_load_explicit(&from->row, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&from->check, memory_order_relaxed);
    return (row ^ check) == key ? row : 0;
}

static inline void sy_row_keep(sy_row_kept *in, uint64_t key, uint64_t row) {
    atomic_store_explicit(&in->row, row, memory_order_relaxed);
    atomic_store_explicit(&in->check, row ^ key, memory_order_relaxed);
}

/* The place of an address among 1 << log2 rows that are kept. */
static inline uint64_t sy_row_place(uintptr_t code, unsigned log2) {
    return code * UINT64_C(0x9e3779b97f4a7c15) >> (64 - log2);
}

#endif
