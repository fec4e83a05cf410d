/*
 * graph.c: a graph whose edges are handles. Nodes are removed without a look at who points to them:
 * an edge to what is gone is stale, is seen to be, and gets a new end when somebody comes by.
 *
 *     cc graph.c $(pkg-config --cflags --libs slabyard) && ./a.out
 *
 * It checks what it shows: the exit status is 0 only if all of it was so.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabyard/handle.h>

enum { NODES = 20000, DEGREE = 6, ROUNDS = 50 };

typedef struct node {
    sy_handle edges[DEGREE]; /* 0: none */
    uint32_t seen;           /* by the walk with this number */
    uint32_t index;          /* in `names`, of this program's own */
} node;

static sy_handle names[NODES]; /* who a node is now: some are replaced */

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static uint64_t random_below(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

static void add_node(sy_cache *graph, uint32_t index, uint64_t *state) {
    node *it = sy_handle_alloc(graph, &names[index]);
    expect(it != NULL, "there is memory for a node");
    *it = (node){.index = index};
    for (int i = 0; i < DEGREE; i++) it->edges[i] = names[random_below(state, NODES)];
}

/* How many nodes can be reached from one; counts the stale edges on the way, and mends them. */
static size_t walk(sy_cache *graph, sy_handle from, uint32_t number, uint64_t *state,
                   size_t *stale) {
    static sy_handle stack[NODES * DEGREE];
    size_t depth = 0, reached = 0;
    stack[depth++] = from;
    while (depth > 0) {
        node *it = sy_handle_get(graph, stack[--depth]);
        if (!it || it->seen == number) continue;
        it->seen = number;
        reached++;
        for (int i = 0; i < DEGREE; i++) {
            const node *next = sy_handle_get(graph, it->edges[i]);
            *stale += it->edges[i] && !next;
            if (!next) it->edges[i] = names[random_below(state, NODES)];
            if (!next || next->seen != number) stack[depth++] = it->edges[i];
        }
    }
    return reached;
}

int main(void) {
    uint64_t state = 1;
    size_t removed = 0, stale = 0, reached = 0;
    sy_cache *graph = sy_cache_create(
        &(sy_cache_config){.name = "node", .size = sizeof(node), .flags = SY_HANDLES});
    expect(graph != NULL, "a cache is created");
    for (uint32_t i = 0; i < NODES; i++) add_node(graph, i, &state);

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < NODES / 20; i++) { /* nodes go, and others take their memory */
            uint32_t index = (uint32_t)random_below(&state, NODES);
            sy_handle gone = names[index];
            expect(sy_handle_free(graph, gone), "a node is removed once");
            add_node(graph, index, &state);
            expect(!sy_handle_get(graph, gone), "and its name stays with it");
            removed++;
        }
        reached = walk(graph, names[random_below(&state, NODES)], round, &state, &stale);
        expect(reached <= NODES, "a node is walked through once");
        for (uint32_t i = 0; i < NODES; i += 97) {
            const node *it = sy_handle_get(graph, names[i]);
            expect(it && it->index == i, "a name leads to its node");
        }
    }
    printf("%zu nodes were removed, %zu edges to them were found stale; %zu of %d are reached\n",
           removed, stale, reached, NODES);
    expect(removed > 0 && stale > 0 && reached > 1, "there was something to see");
    expect(sy_cache_in_use(graph) == NODES, "as many are there as at first");
    sy_cache_destroy_all(graph);
    return 0;
}
