/*
 * unwind.c: see unwind.h. It takes no locks and calls nothing of the loader or the compiler's
 * runtime: a thread may allocate while it, or another one, holds any of their locks.
 *
 * Frames are found by the rows of unwinding tables (os/linux/rows.h of the library), which are kept
 * in a cache without locks.
 *
 * Code without a table, as that of compilers at run time, has frame pointers at best. The walk
 * follows one if it leads up the stack, to the address of code. But if the instructions behind the
 * call only clear the stack and return, they say as much as a table: so the trampolines look that
 * CPython makes for perf, and CPython itself often has no frame pointers. On processors other than
 * x86-64, all steps are made by frame pointers.
 */
#define _GNU_SOURCE
#include "unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_word(const sy_row_bounds *stack, uintptr_t at, uintptr_t *word) {
    if (at < stack->low || at > stack->high - sizeof *word || at % sizeof *word != 0) return false;
    *word = *(const uintptr_t *)at;
    return true;
}

static enum step step_by_pointer(sy_row_frame *frame, const sy_row_bounds *stack) {
    uintptr_t pointer, code;
    if (frame->pointer == 0) return STEP_END; /* so the system starts programs and threads */
    if (frame->pointer < frame->stack || !read_word(stack, frame->pointer, &pointer) ||
        !read_word(stack, frame->pointer + sizeof pointer, &code) || stacks_module(code) == NULL)
        return STEP_CUT;
    frame->stack = frame->pointer + 2 * sizeof pointer;
    frame->pointer = pointer;
    frame->code = code;
    return STEP_OUT;
}

#if SY_ROWS

/* ---- rows ---- */

/* Code that was made at run time may be gone by now: the system copies it, or says so. Copies no
 * more than the rest of the page. */
static size_t read_code(uintptr_t code, unsigned char *into, size_t length) {
    enum { PAGE_LEAST = 4096 };
    size_t rest = PAGE_LEAST - code % PAGE_LEAST;
    int saved = errno;
    struct iovec own = {.iov_base = into, .iov_len = length < rest ? length : rest};
    struct iovec there = {.iov_base = (void *)code, .iov_len = own.iov_len}; // NOLINT
    ssize_t copied = process_vm_readv(getpid(), &own, 1, &there, 1, 0);
    errno = saved;
    return copied > 0 ? (size_t)copied : 0;
}

/* Follows the instructions at a return address up to the next return: "add $n, %rsp" and "pop".
 * SY_ROW_NONE: there are others. */
static uint64_t row_without_table(uintptr_t code) {
    enum { ADD_TO_STACK = 0xc48348, EXTENDED = 0x41, RETURN = 0xc3 };
    enum { POP = 0x58, POP_STACK = 0x5c, POP_POINTER = 0x5d, POP_LAST = 0x5f };
    unsigned char bytes[32 + sizeof(uint32_t)] = {0}; /* the last ones stay 0 */
    size_t length = read_code(code, bytes, 32), at = 0;
    int64_t distance = 0, pointer = -1;
    while (at < length && bytes[at] != RETURN) {
        uint32_t word;
        memcpy(&word, bytes + at, sizeof word);
        bool is_extended = bytes[at] == EXTENDED; /* r8 to r15 */
        unsigned char op = bytes[at + is_extended];
        if ((word & 0xffffff) == ADD_TO_STACK && word >> 24 < 128) {
            distance += word >> 24;
            at += sizeof word;
        } else if (op >= POP && op <= POP_LAST && (is_extended || op != POP_STACK)) {
            if (op == POP_POINTER && !is_extended) pointer = distance;
            distance += 8;
            at += 1 + (size_t)is_extended;
        } else {
            return SY_ROW_NONE;
        }
    }
    return at < length ? sy_row_from_stack(distance, pointer) : SY_ROW_NONE;
}

/* `code` is a return address: the call before it decides which function it is in. */
static uint64_t make_row(uintptr_t code) {
    const struct module *module = stacks_module(code - 1);
    if (module == NULL) return SY_ROW_NONE;
    const sy_row_table table = {module->start, module->end, module->table};
    uint64_t row = sy_row_find(&table, code - 1);
    return row != SY_ROW_NONE ? row : row_without_table(code);
}

enum { ROWS_LOG2 = 15 }; /* a large program allocates from some ten thousand call chains */

static sy_row_kept rows[1 << ROWS_LOG2];

static _Atomic uint64_t generation; /* part of each key: rows of earlier ones do not count */

void unwind_forget(void) { atomic_fetch_add(&generation, UINT64_C(1) << 48); }

static uint64_t find_row(uintptr_t code) {
    sy_row_kept *kept = &rows[sy_row_place(code, ROWS_LOG2)];
    uint64_t key = code ^ atomic_load_explicit(&generation, memory_order_relaxed);
    uint64_t row = sy_row_get(kept, key);
    if (__builtin_expect(row != 0, 1)) return row;
    row = make_row(code);
    sy_row_keep(kept, key, row);
    return row;
}

enum step unwind_step(sy_row_frame *frame, const sy_row_bounds *stack) {
    uint64_t row = find_row(frame->code);
    if (sy_row_kind(row) == SY_ROW_END) return STEP_END;
    if (sy_row_kind(row) == SY_ROW_NONE) return step_by_pointer(frame, stack);
    if (!sy_row_step(row, stack, frame)) return STEP_CUT;
    return frame->code != 0 ? STEP_OUT : STEP_END;
}

#else

void unwind_forget(void) {}

enum step unwind_step(sy_row_frame *frame, const sy_row_bounds *stack) {
    return step_by_pointer(frame, stack);
}

#endif
