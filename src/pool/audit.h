/*
 * audit.h: what always holds in a pool, as a function. For tests and for who looks for a misuse.
 */
#ifndef SLABYARD_POOL_AUDIT_H
#define SLABYARD_POOL_AUDIT_H

#include <slabyard/pool.h>

/* NULL, or a sentence that names what does not hold. Costs a few loads for each free slot; ends and
 * reads only the pool's own memory, whatever was done to it through its objects. */
const char *sy_pool_audit(const sy_pool *pool);

#endif
