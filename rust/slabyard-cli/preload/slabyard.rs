//! Slabyard's general heap, to be preloaded for measurements.

#[macro_use]
mod family;

use slabyard_sys as sys;

family!(
    family::always_ready,
    sys::sy_malloc,
    sys::sy_calloc,
    sys::sy_realloc,
    sys::sy_aligned_alloc,
    sys::sy_free,
    sys::sy_usable_size
);
