#include "compat/together/together.h"

#include <xbase/slab.h>

#include <new>

struct Node {
    Node *left, *right;
    int key;
};

int with_xslab_in_cpp(void) {
    xSlab *one = xSlabCreate(sizeof(Node), alignof(Node), XSLAB_DEFAULT_CHUNK_BYTES);
    xSlabMt *all = xSlabMtCreate(sizeof(Node), XSLAB_DEFAULT_ALIGN, 0);
    Node *node = new (xSlabAlloc(one)) Node{nullptr, nullptr, 42};
    Node *other = new (xSlabMtAlloc(all)) Node{node, nullptr, 43};
    int wrong = other->left->key != 42 || xSlabInUse(one) != 1;
    wrong |= xSlabSlotSize(one) != 24 || xSlabMtSlotSize(all) != 32;
    xSlabFree(one, node);
    xSlabReset(one);
    xSlabMtFree(all, other);
    xSlabDestroy(one);
    xSlabMtDestroy(all);
    return wrong;
}
