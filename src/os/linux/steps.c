/*
 * steps.c: the part of os.h that finds the frames of a thread's own stack by rows of unwinding
 * tables (rows.h), which are kept. The compiler's unwinder reads the tables anew for each frame of
 * each stack, some 2,000 instructions; a step with a kept row takes some 60.
 *
 * The loader says in which file an address lies (_dl_find_object: glibc from 2.35 on), without a
 * lock. Elsewhere, and where a row is not understood, the compiler's unwinder has to do it.
 *
 * A row is kept for an address as long as the process lives. If a library is closed and another one
 * gets its addresses, a walk can go wrong there. It reads within the thread's stack alone, so a
 * stack in a report is wrong at worst. (stack.c makes the same assumption about whole stacks.)
 */
#include "os/linux/rows.h"
#include "os/os.h"

#if SY_OS_STEPS

/* struct dl_find_object of <dlfcn.h>, which older systems lack. */
typedef struct found_object {
    unsigned long long flags;
    void *start, *end, *link_map, *eh_frame_header;
    unsigned long long reserved[7];
} found_object;

/* _dl_find_object. By another name, since <dlfcn.h> may declare it. */
int sy_linux_find_object(void *address, found_object *result) __asm__("_dl_find_object")
    __attribute__((weak, visibility("default")));

enum { ROWS_LOG2 = 12 }; /* samples of a large program have some thousand addresses */

static sy_row_kept rows[1 << ROWS_LOG2];

static uint64_t make_row(uintptr_t call) {
    found_object in;
    if (!sy_linux_find_object || sy_linux_find_object((void *)call, &in) != 0) return SY_ROW_NONE;
    return sy_row_find(&(sy_row_table){.start = (uintptr_t)in.start,
                                       .end = (uintptr_t)in.end,
                                       .head = (uintptr_t)in.eh_frame_header},
                       call);
}

/* `code` is a return address: the call before it decides which function it is in. */
static uint64_t row_of_code(uintptr_t code) {
    sy_row_kept *kept = &rows[sy_row_place(code, ROWS_LOG2)];
    uint64_t row = sy_row_get(kept, code);
    if (SY_LIKELY(row != 0)) return row;
    row = make_row(code - 1);
    sy_row_keep(kept, code, row);
    return row;
}

bool sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each, void *arg) {
    const uintptr_t *words = (const uintptr_t *)frame;
    const sy_row_bounds stack = {frame, high};
    sy_row_frame at = {.code = words[1], .stack = (uintptr_t)(words + 2), .pointer = words[0]};
    while (at.code && each(arg, at.code, at.stack)) {
        uint64_t row = row_of_code(at.code);
        if (sy_row_kind(row) == SY_ROW_END) return true;
        if (!sy_row_step(row, &stack, &at)) return false;
    }
    return true;
}

#endif
