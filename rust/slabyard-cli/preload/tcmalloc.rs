//! TCMalloc, to be preloaded for measurements.

#[macro_use]
mod family;

use slabyard_peers::tcmalloc as peer;

family!(
    family::always_ready,
    peer::TCMallocInternalMalloc,
    peer::TCMallocInternalCalloc,
    peer::TCMallocInternalRealloc,
    peer::TCMallocInternalAlignedAlloc,
    peer::TCMallocInternalFree,
    peer::TCMallocInternalMallocSize
);
