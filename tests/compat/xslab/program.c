/*
 * program.c: an ordinary program for xslab. Threads submit tasks from a common pool, another thread
 * runs them, and each thread keeps a tree in a pool of its own. It includes what such a program
 * includes.
 */
#include <x/base/slab.h>

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { SUBMITTERS = 3, TASKS = 20000 };

XDEF_STRUCT(Task) {
    Task *next;
    int number;
};

XDEF_STRUCT(Node) {
    Node *left, *right;
    int key;
};

static xSlabMt *tasks;
static _Atomic(Task *) submitted;
static atomic_long sum;

static void insert(xSlab *pool, Node **root, int key) {
    while (*root) root = key < (*root)->key ? &(*root)->left : &(*root)->right;
    *root = xSlabAlloc(pool);
    memset(*root, 0, xSlabSlotSize(pool));
    (*root)->key = key;
}

static void *submit(void *unused) {
    xSlab *pool = xSlabCreate(sizeof(Node), 0, 0);
    Node *root = NULL;
    (void)unused;
    for (int i = 0; i < TASKS; i++) {
        Task *task = xSlabMtAlloc(tasks);
        task->number = 1;
        task->next = atomic_load(&submitted);
        while (!atomic_compare_exchange_weak(&submitted, &task->next, task)) {}
        insert(pool, &root, i * 7919 % 10007);
    }
    assert(xSlabInUse(pool) == TASKS);
    xSlabFree(pool, root);
    assert(xSlabInUse(pool) == TASKS - 1);
    xSlabReset(pool);
    assert(xSlabInUse(pool) == 0);
    xSlabDestroy(pool);
    return NULL;
}

static void *run(void *unused) {
    (void)unused;
    while (atomic_load(&sum) < SUBMITTERS * TASKS) {
        Task *next = atomic_exchange(&submitted, NULL);
        for (Task *task = next; task; task = next) {
            next = task->next;
            atomic_fetch_add(&sum, task->number);
            xSlabMtFree(tasks, task);
        }
        sched_yield();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[SUBMITTERS + 1];
    tasks = xSlabMtCreate(sizeof(Task), 0, 0);
    assert(tasks);
    for (int i = 0; i <= SUBMITTERS; i++)
        pthread_create(&threads[i], NULL, i < SUBMITTERS ? submit : run, NULL);
    for (int i = 0; i <= SUBMITTERS; i++) pthread_join(threads[i], NULL);
    xSlabMtDestroy(tasks);
    printf("%ld tasks ran\n", atomic_load(&sum));
    return sum != SUBMITTERS * TASKS;
}
