//! Slabyard's pool, cache and heap beside the peers and the limits.
//!
//! One measurement is one child process: a fresh heap, the allocator alone in it, every layout of
//! the loops in turn. The parent interleaves the children, so that drift of the machine meets all
//! allocators alike, and makes the table. From below to above:
//!
//! * `kernels`, `loops`: the loops themselves, in C++ and in Rust; `nexus`, `keyed`: whom the
//!   latter are over;
//! * `allocators`: who is measured, and what each of them can do;
//! * `machine`: clocks, processors, resident memory, the cache-line round trip;
//! * `rows`: what is measured, as a list; `measure`: how, inside the child;
//! * `run`: the parent's loop over rows, repeats and allocators;
//! * `stats`, `report`: medians, spreads, ratios, tables;
//! * `vmem`: the same for arenas, whose rows are their own;
//! * `checks`: what each check costs a cache and the heap;
//! * `alone`: rows of which each contender has a process of its own, with their tables;
//! * `rust`: such rows: the Rust crate beside other crates, and `Box` over the peers;
//! * `cpp`: such rows: containers of the C++ library over allocators and resources;
//! * `requests`: a server of requests, whose memory is looked at after each burst of them;
//! * `server`: the key-value server of the examples, asked over sockets;
//! * `truth`: programs run for real, beside what `slabyard compare` predicts for them;
//! * `seeds`: the tables of five earlier systems' documents, repeated.

pub mod allocators;
pub mod alone;
pub mod checks;
pub mod cpp;
pub mod figure;
pub mod kernels;
pub mod keyed;
pub mod loops;
pub mod machine;
pub mod measure;
pub mod nexus;
pub mod part;
pub mod report;
pub mod requests;
pub mod rows;
pub mod run;
pub mod rust;
pub mod seeds;
pub mod server;
pub mod stats;
pub mod truth;
pub mod vmem;
