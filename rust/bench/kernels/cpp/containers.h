/*
 * Containers of the standard library and owners of objects, over each contender that makes nodes.
 *
 * Above: src/cpp/kernels.rs, which mirrors this struct field by field, and decides which operation
 * runs and how its work is counted. Below: containers.hpp, which has the loops, and contenders.hpp.
 *
 * What always holds: for one kind of container, the same calls with the same seed do the same
 * operations with each contender, and return the same sum of the elements that were looked at.
 */
#ifndef BENCH_CONTAINERS_H
#define BENCH_CONTAINERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The operations that are repeated. */
typedef enum bench_operation {
    BENCH_PAIR,    /* an element made, looked at, destroyed */
    BENCH_REPLACE, /* a random element erased (of a list the oldest), another inserted */
    BENCH_FIND,    /* a random element found, and looked at */
    BENCH_BUILD,   /* from empty: all elements inserted, looked at, and erased */
    BENCH_OPERATIONS,
} bench_operation;

enum { BENCH_PLACE = 16 }; /* bytes that a container may use beside it for an element */

typedef struct bench_container {
    const char *kind, *who;
    uint64_t traits; /* BENCH_SHARED: any thread may have a container of the same state */

    /* Opens a state that the nodes of several containers come from. */
    void *(*open)(void);
    void (*close)(void *state);
    /* Gives memory of a state without containers back to the system, as far as its interface
     * can. May be NULL. */
    void (*trim)(void *state);

    /* Makes an empty container for `live` elements. `places` has BENCH_PLACE bytes for each of
     * them, and exists as long as the container. One thread at a time uses it. */
    void *(*begin)(void *state, void *places, size_t live, uint64_t seed);
    void (*end)(void *container);
    /* Inserts all elements; erases all elements, one after the other. */
    uint64_t (*fill)(void *container);
    uint64_t (*clear)(void *container);

    /* Performs `count` operations; NULL if the container does not have the operation. The
     * container is full for BENCH_REPLACE and BENCH_FIND, and empty for the others. */
    uint64_t (*run[BENCH_OPERATIONS])(void *container, uint64_t count);
} bench_container;

/* The tables of the layouts; `count` receives their length. */
const bench_container *bench_containers_0(size_t *count);
const bench_container *bench_containers_1(size_t *count);
const bench_container *bench_containers_2(size_t *count);

/* The version of Boost; NULL if Boost was missing when this was built. */
const char *bench_boost_version(void);

#ifdef __cplusplus
}
#endif
#endif
