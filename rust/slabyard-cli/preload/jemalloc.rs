//! jemalloc, to be preloaded for measurements.

#[macro_use]
mod family;

use slabyard_peers::jemalloc as peer;

family!(
    family::always_ready,
    peer::_rjem_malloc,
    peer::_rjem_calloc,
    peer::_rjem_realloc,
    peer::_rjem_aligned_alloc,
    peer::_rjem_free,
    peer::_rjem_malloc_usable_size
);
