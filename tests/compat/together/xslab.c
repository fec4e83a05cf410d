#include "compat/together/together.h"

#include <stdlib.h>
#include <string.h>
#include <xbase/slab.h>

typedef struct Node Node;
struct Node {
    Node *left, *right;
    int key;
    void *value;
};

struct Task {
    int number;
};

static xSlabMt *g_task_pool;

static void task_pool_init(void) { g_task_pool = xSlabMtCreate(sizeof(struct Task), 0, 0); }

static struct Task *task_alloc(void) {
    struct Task *t = xSlabMtAlloc(g_task_pool);
    memset(t, 0, sizeof(*t));
    return t;
}

static void task_free(struct Task *t) { xSlabMtFree(g_task_pool, t); }

static void task_pool_shutdown(void) { xSlabMtDestroy(g_task_pool); }

int with_xslab(void) {
    xSlab *pool = xSlabCreate(sizeof(Node), 0, 0);
    Node *root = xSlabAlloc(pool);
    memset(root, 0, sizeof(*root));
    root->key = 42;
    xSlabFree(pool, root);
    if (xSlabAlloc(pool) != root) return 1;
    xSlabDestroy(pool);

    task_pool_init();
    struct Task *task = task_alloc();
    int number = task->number;
    task_free(task);
    task_pool_shutdown();
    return number;
}
