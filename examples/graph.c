/*
 * graph.c: a graph whose edges are handles. A node is removed without a search for the edges that
 * lead to it. The handles in these edges become stale. A later walk finds the stale edges and gives
 * each a new end.
 *
 *     cc -DSY_STATIC graph.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * The program checks its results: the exit status is 0 only if all of them are right.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabyard/handle.h>

enum { NODES = 20000, DEGREE = 6, ROUNDS = 50 };

typedef struct node {
    sy_handle edges[DEGREE]; /* 0: none */
    uint32_t seen;           /* number of the last walk that reached the node */
    uint32_t index;          /* of the node's handle in `names` */
} node;

static sy_handle names[NODES]; /* handles of the present nodes; a replaced node has a new one */

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

/* Counts the nodes that can be reached from one. Counts the stale edges on the way, and gives each
 * a new end. */
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
        for (int i = 0; i < NODES / 20; i++) { /* new nodes get the memory of removed ones */
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
