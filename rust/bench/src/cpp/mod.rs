//! Containers of the C++ library over Slabyard's allocator and resource, beside `std::pmr`, Boost's
//! pools and others; and owners of single objects.
//!
//! * `rows`: what is measured, as a list;
//! * `kernels`: the containers and loops, in C++ (`kernels/cpp/containers.h`);
//! * `measure`: measures a row inside a process.
//!
//! The order of processes and the tables are in `alone`.

pub mod kernels;
mod measure;
mod rows;

pub use rows::Row;

#[cfg(test)]
mod tests;
