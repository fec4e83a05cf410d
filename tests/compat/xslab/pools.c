#include "compat/compat.h"

#include <xbase/slab.h>

/* ---- what the document shows ---- */

typedef struct Node Node;
struct Node {
    Node *left, *right;
    int key;
    void *value;
};

static void a_pool_of_tree_nodes(void) {
    xSlab *pool = xSlabCreate(sizeof(Node), 0, 0);
    Node *root = xSlabAlloc(pool);
    memset(root, 0, sizeof(*root));
    root->key = 42;
    EXPECT((uintptr_t)root % XSLAB_DEFAULT_ALIGN == 0);
    EXPECT(xSlabSlotSize(pool) == sizeof(Node));
    EXPECT(xSlabInUse(pool) == 1);
    xSlabFree(pool, root);
    xSlabFree(pool, NULL);
    EXPECT(xSlabInUse(pool) == 0);
    xSlabDestroy(pool);
    xSlabDestroy(NULL);
}

struct Task {
    void (*run)(void *arg);
    void *arg;
    uint64_t owner;
};

static xSlabMt *task_pool;

static void *free_task(void *task) {
    xSlabMtFree(task_pool, task);
    return NULL;
}

static void a_pool_of_tasks_for_all_threads(void) {
    task_pool = xSlabMtCreate(sizeof(struct Task), 0, 0);
    struct Task *task = xSlabMtAlloc(task_pool);
    memset(task, 0, sizeof(*task));
    in_threads(1, free_task, task);
    EXPECT(xSlabMtSlotSize(task_pool) >= sizeof(struct Task));
    xSlabMtFree(task_pool, NULL);
    xSlabMtDestroy(task_pool);
    xSlabMtDestroy(NULL);
}

/* ---- what was found ---- */

enum { SLOTS = 10000 };
static void *slots[SLOTS];

static void the_slot_freed_last_is_the_next_one(void) {
    xSlab *pool = xSlabCreate(64, 64, 0);
    for (unsigned i = 0; i < SLOTS; i++) slots[i] = xSlabAlloc(pool);
    for (unsigned i = 0; i < SLOTS; i++) xSlabFree(pool, slots[i]);
    for (unsigned i = SLOTS; i > 0; i--) EXPECT(xSlabAlloc(pool) == slots[i - 1]);
    xSlabDestroy(pool);
}

/* Content that a reset would have written over is there when the slot is given again. */
static void a_reset_touches_no_slot(void) {
    xSlab *pool = xSlabCreate(40, 8, 4096);
    for (unsigned i = 0; i < SLOTS; i++) own(slots[i] = xSlabAlloc(pool), 40, i);
    xSlabReset(pool);
    EXPECT(xSlabInUse(pool) == 0);
    for (unsigned i = 0; i < SLOTS; i++) EXPECT(is_own(slots[i], 40, i));
    void *again = xSlabAlloc(pool);
    bool known = false;
    for (unsigned i = 0; i < SLOTS; i++) known |= again == slots[i];
    EXPECT(known);
    xSlabDestroy(pool);
}

static void every_alignment_holds(void) {
    for (size_t align = 8; align <= (size_t)2 << 20; align *= 2) {
        xSlab *one = xSlabCreate(64, align, 0);
        xSlabMt *all = xSlabMtCreate(64, align, 0);
        EXPECT(one && all);
        for (unsigned i = 0; i < 8; i++) {
            EXPECT((uintptr_t)xSlabAlloc(one) % align == 0);
            EXPECT((uintptr_t)xSlabMtAlloc(all) % align == 0);
        }
        xSlabDestroy(one);
        xSlabMtDestroy(all);
    }
    errno = 0;
    EXPECT(!xSlabCreate(64, (size_t)4 << 20, 0) && errno == EINVAL);
    errno = 0;
    EXPECT(!xSlabMtCreate(64, (size_t)4 << 20, 0) && errno == EINVAL);
    EXPECT(!xSlabCreate(64, 24, 0) && !xSlabMtCreate(64, 24, 0));
}

static void objects_of_a_line_do_not_straddle(void) {
    xSlab *pool = xSlabCreate(64, 64, 0);
    for (unsigned i = 0; i < SLOTS; i++) EXPECT((uintptr_t)xSlabAlloc(pool) % 64 == 0);
    xSlabDestroy(pool);
}

static void sizes_that_are_none_are_refused(void) {
    EXPECT(!xSlabCreate(SIZE_MAX, 0, 0) && !xSlabMtCreate(SIZE_MAX, 0, 0));
    EXPECT(!xSlabCreate(0, 0, 0) && !xSlabMtCreate(0, 0, 0));
}

static void what_is_in_use_is_never_below_zero(void) {
    xSlab *pool = xSlabCreate(32, 0, 0);
    void *slot = xSlabAlloc(pool);
    xSlabFree(pool, slot);
    xSlabFree(pool, slot); /* a mistake */
    EXPECT(xSlabInUse(pool) <= 1);
    xSlabDestroy(pool);
}

static void *churn(void *arg) {
    xSlabMt *pool = arg;
    void *mine[64] = {NULL};
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t turn = i * 2654435761u;
        void **slot = &mine[turn % 64];
        uint64_t owner = (uintptr_t)slot;
        if (*slot) {
            EXPECT(is_own(*slot, 48, owner));
            xSlabMtFree(pool, *slot);
            *slot = NULL;
        } else {
            EXPECT((*slot = xSlabMtAlloc(pool)) != NULL);
            own(*slot, 48, owner);
        }
    }
    for (unsigned i = 0; i < 64; i++) xSlabMtFree(pool, mine[i]);
    return NULL;
}

static void no_slot_has_two_owners(void) {
    xSlabMt *pool = xSlabMtCreate(48, 0, 0);
    in_threads(4, churn, pool);
    EXPECT(sy_cache_in_use((sy_cache *)pool) == 0);
    xSlabMtDestroy(pool);
}

int main(void) {
    a_pool_of_tree_nodes();
    a_pool_of_tasks_for_all_threads();
    the_slot_freed_last_is_the_next_one();
    a_reset_touches_no_slot();
    every_alignment_holds();
    objects_of_a_line_do_not_straddle();
    sizes_that_are_none_are_refused();
    what_is_in_use_is_never_below_zero();
    no_slot_has_two_owners();
    return 0;
}
