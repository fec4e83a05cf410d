//! mimalloc, to be preloaded for measurements.

#[macro_use]
mod family;

use slabyard_peers::mimalloc as peer;

family!(
    family::always_ready,
    peer::mi_malloc,
    peer::mi_calloc,
    peer::mi_realloc,
    peer::mi_aligned_alloc,
    peer::mi_free,
    peer::mi_usable_size
);
