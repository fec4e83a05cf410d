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
//! * `stats`, `table`, `report`: medians, spreads, ratios, tables.
//!
//! In addition there are parts with rows of their own. Each part is a subcommand. `part` has their
//! common options, the report and its files; `figure` has the figures that their processes print;
//! `preloaded` has the allocators that whole programs are run over.
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
//! * `sessions`: a session store through a day, where sessions move, over each malloc, and in
//!   sharded-slab;
//! * `survivors`: few survivors of many objects, where objects move and where they stay;
//! * `threads`: workloads of people whose process was killed: memory after most was freed;
//! * `littered`: loops and whole programs on a heap that was fragmented before.
//!
//! The program of `rust/earlier/seeds` needs none of the other allocators, which take minutes to
//! compile. So the feature `peers` has everything that needs them.

#[cfg(feature = "peers")]
pub mod allocators;
pub mod alone;
#[cfg(feature = "peers")]
pub mod checks;
#[cfg(feature = "peers")]
pub mod cpp;
pub mod figure;
pub mod kernels;
#[cfg(feature = "peers")]
pub mod keyed;
#[cfg(feature = "peers")]
pub mod littered;
pub mod loops;
pub mod machine;
#[cfg(feature = "peers")]
pub mod measure;
#[cfg(feature = "peers")]
pub mod nexus;
pub mod part;
#[cfg(feature = "peers")]
pub mod preloaded;
#[cfg(feature = "peers")]
pub mod programs;
#[cfg(feature = "peers")]
pub mod report;
#[cfg(feature = "peers")]
pub mod requests;
#[cfg(feature = "peers")]
pub mod rows;
#[cfg(feature = "peers")]
pub mod run;
pub mod rust;
#[cfg(feature = "peers")]
pub mod server;
#[cfg(feature = "peers")]
pub mod service;
#[cfg(feature = "peers")]
pub mod sessions;
pub mod stats;
#[cfg(feature = "peers")]
pub mod survivors;
pub mod table;
#[cfg(feature = "peers")]
pub mod threads;
#[cfg(feature = "peers")]
pub mod truth;
#[cfg(feature = "peers")]
pub mod vmem;
