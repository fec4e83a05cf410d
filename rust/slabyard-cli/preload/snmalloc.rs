//! snmalloc, to be preloaded for measurements.

#[macro_use]
mod family;

use slabyard_peers::snmalloc as peer;

family!(
    family::always_ready,
    peer::sn_malloc,
    peer::sn_calloc,
    peer::sn_realloc,
    peer::sn_aligned_alloc,
    peer::sn_free,
    peer::sn_malloc_usable_size
);
