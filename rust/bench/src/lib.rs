//! Slabyard's pool, cache and heap beside the peers and the limits.
//!
//! One measurement is one child process with a fresh heap. It measures one allocator, with every
//! copy (layout) of the loops in turn. The parent interleaves the children, so that drift of the
//! machine is the same for all allocators, and makes the table. From below to above:
//!
//! * `kernels`, `loops`: the loops themselves, in C++ and in Rust; `nexus`, `keyed`: the crates
//!   that the loops in Rust measure;
//! * `allocators`: the allocators that are measured, and what each of them can do;
//! * `machine`: clocks, processors, resident memory, the cache-line round trip;
//! * `rows`: what is measured, as a list; `measure`: how, inside the child;
//! * `run`: the parent's loop over rows, repeats and allocators;
//! * `stats`, `report`: medians, spreads, ratios, tables.
//!
//! In addition there are parts with rows of their own. Each part is a subcommand. `part` has their
//! common options, the report and its files; `figure` has the figures that their processes print.
//!
//! * `vmem`: arenas;
//! * `checks`: what each check costs a cache and the heap;
//! * `alone`: common code of `rust` and `cpp`, where each contender has a process of its own;
//! * `rust`: the Rust crate beside other crates, and `Box` over the peers;
//! * `cpp`: containers of the C++ library over allocators and resources;
//! * `requests`: a server of requests, whose memory is read after each burst;
//! * `server`: the key-value server of the examples, asked over sockets;
//! * `truth`: programs run for real, beside what `slabyard compare` predicts for them;
//! * `programs`: the workloads of published allocator benchmarks, and real programs, over each malloc;
//! * `service`: resident memory of a service whose load rises and falls, over each malloc;
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
pub mod programs;
pub mod report;
pub mod requests;
pub mod rows;
pub mod run;
pub mod rust;
pub mod seeds;
pub mod server;
pub mod service;
pub mod stats;
pub mod truth;
pub mod vmem;
