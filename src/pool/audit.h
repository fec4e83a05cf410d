/*
 * audit.h: checks the invariants of a pool, for tests and to find misuse.
 */
#ifndef SLABYARD_POOL_AUDIT_H
#define SLABYARD_POOL_AUDIT_H

#include <slabyard/pool.h>

/* NULL, or a sentence that names the broken invariant. Costs a few loads for each free slot. Even
 * if the program has overwritten free slots, it terminates and reads only the pool's memory. */
const char *sy_pool_audit(const sy_pool *pool);

#endif
