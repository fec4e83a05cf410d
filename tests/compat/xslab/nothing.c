/*
 * nothing.c: what xslab answers to NULL and 0, function by function.
 */
#include <xbase/slab.h>

#include "../compat.h"

static void *volatile none; /* so that no compiler knows */
static xSlab *one;
static xSlabMt *all;
static uint64_t slot;

#define ANSWERS(A)                                                              \
    A(create_empty, xSlabCreate(0, 0, 0) == NULL)                               \
    A(create_odd, xSlabCreate(8, 3, 0) == NULL && xSlabCreate(8, 7, 0) == NULL) \
    A(create_default, one != NULL && xSlabSlotSize(one) == 16)                  \
    A(destroy, (xSlabDestroy(none), true))                                      \
    A(alloc, xSlabAlloc(none) == NULL)                                          \
    A(free_nothing, (xSlabFree(one, NULL), xSlabInUse(one) == 0))               \
    A(free_nowhere, (xSlabFree(none, &slot), slot == 0))                        \
    A(free_both, (xSlabFree(none, NULL), true))                                 \
    A(reset, (xSlabReset(none), true))                                          \
    A(in_use, xSlabInUse(none) == 0)                                            \
    A(slot_size, xSlabSlotSize(none) == 0)                                      \
    A(mt_create_empty, xSlabMtCreate(0, 0, 0) == NULL)                          \
    A(mt_create_odd, xSlabMtCreate(8, 3, 0) == NULL)                            \
    A(mt_create_default, all != NULL && xSlabMtSlotSize(all) == 16)             \
    A(mt_destroy, (xSlabMtDestroy(none), true))                                 \
    A(mt_alloc, xSlabMtAlloc(none) == NULL)                                     \
    A(mt_free_nothing, (xSlabMtFree(all, NULL), true))                          \
    A(mt_free_nowhere, (xSlabMtFree(none, &slot), slot == 0))                   \
    A(mt_free_both, (xSlabMtFree(none, NULL), true))                            \
    A(mt_slot_size, xSlabMtSlotSize(none) == 0)

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    one = xSlabCreate(8, 0, 0);
    all = xSlabMtCreate(8, 0, 0);
    return check_answers(answers, sizeof answers / sizeof *answers);
}
