/*
 * heap_by_address.h: an intrusive pairing heap of nodes ordered by their own address.
 *
 * Finding the lowest node and inserting a node take O(1); removing any node takes O(log n)
 * amortised (Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap", 1986). Slabs that are equally
 * full are in one such heap. So the slab with the lowest address is filled first, and the highest
 * ones drain.
 *
 * Lowest layer; the caller holds the lock that guards the heap.
 */
#ifndef SY_BASE_HEAP_BY_ADDRESS_H
#define SY_BASE_HEAP_BY_ADDRESS_H

#include <stddef.h>

typedef struct sy_heap_node {
    struct sy_heap_node *child;    /* the first of its children */
    struct sy_heap_node *sibling;  /* the next child of its parent */
    struct sy_heap_node *previous; /* the sibling before it, or the parent of the first child */
} sy_heap_node;

/* Joins two trees (either may be NULL); returns the root. */
static inline sy_heap_node *sy_heap_join(sy_heap_node *a, sy_heap_node *b) {
    if (!a) return b;
    if (!b) return a;
    if (b < a) {
        sy_heap_node *lower = b;
        b = a;
        a = lower;
    }
    b->previous = a;
    b->sibling = a->child;
    if (a->child) a->child->previous = b;
    a->child = b;
    return a;
}

static inline void sy_heap_insert(sy_heap_node **root, sy_heap_node *node) {
    *node = (sy_heap_node){0};
    *root = sy_heap_join(*root, node);
}

/* Joins a list of siblings in two passes, without recursion; returns the root. */
static inline sy_heap_node *sy_heap_join_siblings(sy_heap_node *first) {
    sy_heap_node *pairs = NULL;
    while (first) {
        sy_heap_node *second = first->sibling;
        sy_heap_node *rest = second ? second->sibling : NULL;
        first->sibling = NULL;
        if (second) second->sibling = NULL;
        sy_heap_node *joined = sy_heap_join(first, second);
        joined->sibling = pairs;
        pairs = joined;
        first = rest;
    }
    sy_heap_node *root = NULL;
    while (pairs) {
        sy_heap_node *rest = pairs->sibling;
        pairs->sibling = NULL;
        root = sy_heap_join(root, pairs);
        pairs = rest;
    }
    if (root) root->previous = NULL;
    return root;
}

/* `node` is in the heap. */
static inline void sy_heap_remove(sy_heap_node **root, sy_heap_node *node) {
    if (node != *root) {
        if (node->previous->child == node)
            node->previous->child = node->sibling;
        else
            node->previous->sibling = node->sibling;
        if (node->sibling) node->sibling->previous = node->previous;
        *root = sy_heap_join(*root, sy_heap_join_siblings(node->child));
    } else {
        *root = sy_heap_join_siblings(node->child);
    }
}

#endif
