/*
 * answers.c: bad input to each function of xslab. The answers have to be those of xslab, or a
 * report where it continued with corrupted memory. This program runs with checks and without.
 */
#define SY_NO_INLINE /* each free is a call, and can be checked */
#include "compat/compat.h"

#include <xbase/slab.h>

static void *volatile none; /* NULL, which the compiler cannot know */
static xSlab *one, *other;
static xSlabMt *all, *others;
static uint64_t memory[8];

static bool pool_reports(void *slot) {
    xSlabFree(one, slot);
    return reported();
}

static bool pool_mt_reports(void *slot) {
    xSlabMtFree(all, slot);
    return reported();
}

static void *freed(void) {
    void *slot = xSlabAlloc(one);
    xSlabFree(one, slot);
    return slot;
}

static void *freed_mt(void) {
    void *slot = xSlabMtAlloc(all);
    xSlabMtFree(all, slot);
    return slot;
}

/* Returns true if such a pool is refused, or has no slots. */
static bool none_of(size_t size, size_t align, size_t chunk_bytes) {
    xSlab *pool = xSlabCreate(size, align, chunk_bytes);
    return !xSlabAlloc(pool);
}

static bool none_of_mt(size_t size, size_t align) {
    xSlabMt *pool = xSlabMtCreate(size, align, 0);
    return !xSlabMtAlloc(pool);
}

#define ANSWERS(A)                                                                               \
    A(xSlabCreate, ZERO, !xSlabCreate(0, 0, 0) && one && xSlabSlotSize(one) == 16)               \
    A(xSlabCreate, OTHER, !xSlabCreate(8, 3, 0) && !xSlabCreate(8, 7, 0))                        \
    A(xSlabCreate, HUGE_SIZE,                                                                    \
      none_of(SIZE_MAX, 0, 0) && none_of(SIZE_MAX - 7, 8, 0) && none_of(PTRDIFF_MAX, 0, 0) &&    \
          none_of(8, SIZE_MAX, 0) && none_of(8, SIZE_MAX / 2 + 1, 0) &&                          \
          (none_of(8, 0, SIZE_MAX), true))                                                       \
    A(xSlabDestroy, NOTHING, (xSlabDestroy(none), true))                                         \
    A(xSlabAlloc, NOTHING, !xSlabAlloc(none))                                                    \
    A(xSlabFree, NOTHING,                                                                        \
      (xSlabFree(one, NULL), xSlabFree(none, memory), xSlabFree(none, NULL), memory[0] == 0))    \
    A(xSlabFree, FOREIGN, pool_reports(memory) && (faults = 0, pool_reports(xSlabAlloc(other)))) \
    A(xSlabFree, STALE, pool_reports(freed()) && xSlabInUse(one) == 0)                           \
    A(xSlabReset, NOTHING, (xSlabReset(none), true))                                             \
    A(xSlabInUse, NOTHING, xSlabInUse(none) == 0)                                                \
    A(xSlabSlotSize, NOTHING, xSlabSlotSize(none) == 0)                                          \
    A(xSlabMtCreate, ZERO, !xSlabMtCreate(0, 0, 0) && all && xSlabMtSlotSize(all) == 16)         \
    A(xSlabMtCreate, OTHER, !xSlabMtCreate(8, 3, 0))                                             \
    A(xSlabMtCreate, HUGE_SIZE,                                                                  \
      none_of_mt(SIZE_MAX, 0) && none_of_mt(SIZE_MAX - 7, 8) && none_of_mt(PTRDIFF_MAX, 0) &&    \
          none_of_mt(8, SIZE_MAX) && xSlabMtCreate(8, 0, SIZE_MAX))                              \
    A(xSlabMtDestroy, NOTHING, (xSlabMtDestroy(none), true))                                     \
    A(xSlabMtAlloc, NOTHING, !xSlabMtAlloc(none))                                                \
    A(xSlabMtFree, NOTHING,                                                                      \
      (xSlabMtFree(all, NULL), xSlabMtFree(none, memory), xSlabMtFree(none, NULL), !memory[0]))  \
    A(xSlabMtFree, FOREIGN,                                                                      \
      pool_mt_reports(memory) && (faults = 0, pool_mt_reports(xSlabMtAlloc(others))))            \
    A(xSlabMtFree, STALE, pool_mt_reports(freed_mt()))                                           \
    A(xSlabMtSlotSize, NOTHING, xSlabMtSlotSize(none) == 0)

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    size_t count = sizeof answers / sizeof *answers;
    sy_set_fault_handler(note_fault);
    one = xSlabCreate(8, 0, 0);
    other = xSlabCreate(8, 0, 0);
    all = xSlabMtCreate(8, 0, 0);
    others = xSlabMtCreate(8, 0, 0);
    return check_header(COMPAT "xbase/slab.h", answers, count) + check_answers(answers, count);
}
