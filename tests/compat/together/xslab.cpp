#include "compat/together/together.h"

#include <new>

/* Includes the header as xslab's own programs do. */
extern "C" {
#include <x/base/slab.h>
}

struct Node {
    Node *left, *right;
    int key;
};

/* Passes NULL where the compiler can see it: the calls do nothing, and cause no warning. */
static bool nothing_is_done_without_a_pool() {
    xSlabDestroy(nullptr);
    xSlabReset(nullptr);
    xSlabFree(nullptr, nullptr);
    xSlabMtDestroy(nullptr);
    xSlabMtFree(nullptr, nullptr);
    return !xSlabAlloc(nullptr) && !xSlabMtAlloc(nullptr) && xSlabInUse(nullptr) == 0 &&
           xSlabSlotSize(nullptr) == 0 && xSlabMtSlotSize(nullptr) == 0;
}

int with_xslab_in_cpp(void) {
    if (!nothing_is_done_without_a_pool()) return 2;
    xSlab *one = xSlabCreate(sizeof(Node), alignof(Node), XSLAB_DEFAULT_CHUNK_BYTES);
    xSlabMt *all = xSlabMtCreate(sizeof(Node), XSLAB_DEFAULT_ALIGN, 0);
    Node *node = new (xSlabAlloc(one)) Node{nullptr, nullptr, 42};
    Node *other = new (xSlabMtAlloc(all)) Node{node, nullptr, 43};
    int wrong = other->left->key != 42 || xSlabInUse(one) != 1;
    wrong |= xSlabSlotSize(one) < sizeof(Node) || xSlabMtSlotSize(all) % 16 != 0;
    xSlabFree(one, node);
    xSlabReset(one);
    xSlabMtFree(all, other);
    xSlabDestroy(one);
    xSlabMtDestroy(all);
    return wrong;
}
