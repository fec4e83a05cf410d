/*
 * checked.c: the pools of xslab with checks. It runs with SLABYARD=check,redzone.
 */
#define SY_NO_INLINE /* each free is a call, and can be checked */
#include "compat/compat.h"

#include <xbase/slab.h>

static xSlab *one;
static xSlabMt *all;

/* As without checks, a slot has the size that was asked for, rounded up. */
static void the_whole_slot_is_the_programs(void) {
    void *slot = xSlabAlloc(one), *slot_too = xSlabMtAlloc(all);
    EXPECT(xSlabSlotSize(one) == 48 && xSlabMtSlotSize(all) == 48);
    memset(slot, 0, xSlabSlotSize(one));
    memset(slot_too, 0, xSlabMtSlotSize(all));
    xSlabFree(one, slot);
    xSlabMtFree(all, slot_too);
    EXPECT(faults == 0);
}

static void what_is_written_behind_it_is_seen(void) {
    char *slot = xSlabAlloc(one), *slot_too = xSlabMtAlloc(all);
    faults = 0;
    slot[xSlabSlotSize(one)] ^= 1;
    xSlabFree(one, slot);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_OVERFLOW);
    slot_too[xSlabMtSlotSize(all)] ^= 1;
    xSlabMtFree(all, slot_too);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_OVERFLOW);
}

/* xslab allocated the slot twice, and counted fewer than 0 slots in use. */
static void a_double_free_is_seen_and_does_nothing(void) {
    void *slot = xSlabAlloc(one), *slot_too = xSlabMtAlloc(all);
    faults = 0;
    xSlabFree(one, slot);
    xSlabFree(one, slot);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_DOUBLE_FREE && last_fault.address == slot);
    EXPECT(xSlabInUse(one) == 0);
    slot = xSlabAlloc(one);
    EXPECT(xSlabAlloc(one) != slot && xSlabInUse(one) == 2);

    xSlabMtFree(all, slot_too);
    xSlabMtFree(all, slot_too);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_DOUBLE_FREE);
    EXPECT(last_fault.address == slot_too && strcmp(last_fault.cache, "xSlabMt") == 0);
    slot_too = xSlabMtAlloc(all);
    EXPECT(xSlabMtAlloc(all) != slot_too);
}

static void what_is_no_slot_is_refused(void) {
    int on_stack;
    faults = 0;
    xSlabMtFree(all, &on_stack);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_FOREIGN_POINTER);
    xSlabFree(one, &on_stack);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_FOREIGN_POINTER);
}

int main(void) {
    sy_set_fault_handler(note_fault);
    one = xSlabCreate(40, 0, 0);
    all = xSlabMtCreate(40, 0, 0);
    the_whole_slot_is_the_programs();
    what_is_written_behind_it_is_seen();
    a_double_free_is_seen_and_does_nothing();
    what_is_no_slot_is_refused();
    xSlabDestroy(one);
    xSlabMtDestroy(all);
    return 0;
}
