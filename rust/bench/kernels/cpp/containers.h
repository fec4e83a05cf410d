/*
 * Containers of the standard library and owners of objects, over each who makes their nodes.
 *
 * Above: src/cpp/kernels.rs, which mirrors this struct field by field, and decides what runs when
 * and what it counts as. Below: containers.hpp, whose loops these are, and contenders.hpp.
 *
 * What always holds: for one kind of container, the same calls with the same seed do the same with
 * whoever it is, and give the same sum of the elements that were looked at.
 */
#ifndef BENCH_CONTAINERS_H
#define BENCH_CONTAINERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is done again and again. */
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

    /* What the nodes of several containers come from. */
    void *(*open)(void);
    void (*close)(void *state);
    /* Nothing lives in it: gives back to the system what its interface can. Or NULL. */
    void (*trim)(void *state);

    /* An empty container for `live` elements; `places` has BENCH_PLACE bytes for each, and is
     * there for as long as the container. One thread at a time. */
    void *(*begin)(void *state, void *places, size_t live, uint64_t seed);
    void (*end)(void *container);
    /* All elements, inserted, and erased one after the other. */
    uint64_t (*fill)(void *container);
    uint64_t (*clear)(void *container);

    /* So many operations; NULL where there is none. The container is filled for BENCH_REPLACE and
     * BENCH_FIND, and empty for the others. */
    uint64_t (*run[BENCH_OPERATIONS])(void *container, uint64_t count);
} bench_container;

/* The tables of the layouts; `count` gets their length. */
const bench_container *bench_containers_0(size_t *count);
const bench_container *bench_containers_1(size_t *count);
const bench_container *bench_containers_2(size_t *count);

/* The version of Boost; NULL where there was none when this was built. */
const char *bench_boost_version(void);

#ifdef __cplusplus
}
#endif
#endif
