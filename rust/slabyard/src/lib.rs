//! Memory for programs that create and drop many objects of one kind: orders, connections, timers,
//! nodes, futures.
//!
//! What you get, instead of `Box`, `Arc` or an index:
//!
//! - An allocation takes a few inlined instructions: no lock, no atomic operation, no call. The
//!   slot freed last is used first, while it is still in the processor's cache.
//! - A limit, if you set one. An insertion that finds no room returns the value to you.
//! - Objects that may be dropped on any thread, or keys that stay invalid once their value is
//!   removed.
//! - Unused memory is returned to the system page by page. Reports name the cache when an object is
//!   freed twice. Safe code cannot cause undefined behaviour.
//!
//! ```
//! #[derive(Debug)]
//! struct Order { id: u64, price: f64 }
//!
//! let orders = slabyard::Cache::new("order");
//! let order = orders.insert(Order { id: 1, price: 100.0 });
//! std::thread::scope(|scope| {
//!     scope.spawn(move || assert_eq!(order.price, 100.0)); // and is dropped there
//! });
//! assert_eq!(orders.in_use(), 0);
//! ```
//!
//! # Which type do I need?
//!
//! | I want | Type | Threads | Usual cost of an insertion and a drop |
//! |---|---|---|---|
//! | objects of one type, in one place of the program | [`Pool`] | one at a time | a pop, a push |
//! | the same by name, with slots of 8 bytes | [`bounded_allocator!`], [`unbounded_allocator!`] | a pool in each | the same |
//! | objects of several types in slots of one size | [`BytePool`] | one at a time | the same |
//! | several owners on one thread | [`RcPool`], [`bounded_rc_allocator!`], [`unbounded_rc_allocator!`] | one at a time, or a pool in each | the same; counts are plain |
//! | objects that any thread makes, sends and drops | [`Cache`], with [`CacheBox`] | all | a compare, a load and a store |
//! | the same by name, with boxes of 8 bytes | [`static_cache!`], with [`StaticBox`] | all | the same |
//! | objects of several types behind one trait | [`DynBox`], of caches | all | the same |
//! | several owners on several threads | [`CacheArc`], of a cache of [`Counted`] | all | an atomic a clone, and a drop |
//! | buffers that keep their capacity, and the like | [`RecycleCache`] | all | as a cache, and `recycle` |
//! | keys instead of references, used by all threads | [`HandleMap`] | all | a compare-exchange a `get` |
//! | the same, with values that move so that memory follows what is live | [`MovableMap`] | all | the same |
//! | keys instead of references, with one owner | [`LocalHandleMap`] | as a `Vec` | two compares a `get` |
//! | more about what another map has keys for | [`SecondaryMap`], [`SparseSecondaryMap`] | as a `Vec` | two compares; a hash |
//! | all allocations of the program | [`Slabyard`] as the `#[global_allocator]` | all | by size, a table and a pop |
//! | the memory of one request or frame together | [`Epoch`], over caches | all | a free becomes a call |
//! | the same, of all types, however they are allocated | [`Scope`], with [`Slabyard`] | all | slow at first |
//! | the same, of types that have nothing to drop | [`Arena`] | one at a time | a subtraction; nothing |
//!
//! The slots of pools are [`Slot`], [`PinnedSlot`], [`Vacant`] and [`RcSlot`]. The pools of the
//! macros have the same ones in [`local`], such as [`BoxSlot`](local::BoxSlot). An object is as
//! large as its type, without a header. Only shared objects have counts beside them: 12 bytes with
//! `Rc`, 16 with `Arc`.
//!
//! # Slow paths
//!
//! If a pool has no free slot, it cuts one from its chunk or maps another chunk (64 KiB by
//! default). A bounded pool is mapped completely when it is built. If a thread holds no free object
//! of a cache, it exchanges a magazine of up to 127 objects with other threads, or takes as many
//! from the cache's slabs under a lock. So only few operations are slow. `prefault`, `reserve` and
//! [`Cache::thread_reserve`] do this work in advance.
//!
//! # When there is no room
//!
//! If a limit is reached, `try_insert` and `try_new` return the value in [`Full`]; `insert` and
//! `new` panic. A limit belongs to a pool (`bounded`), to a cache or map (`limit`), or to the
//! process ([`Limit`]). [`last_refusal`] reports which one was reached. Using a thread's pool
//! panics if the thread has not built it.
//!
//! # Forgetting, leaking, panics
//!
//! A forgotten object keeps its slot. If a cache is dropped while it has forgotten objects, all of
//! its memory is leaked. If a pool is dropped, its memory is leaked only if a forgotten value was
//! pinned. If the drop of a value panics, its slot is freed nevertheless.
//!
//! # Features
//!
//! | | |
//! |---|---|
//! | `std` (default) | per-thread pools, [`RecycleCache`], [`SparseSecondaryMap`] |
//! | `allocator-api2` | [`Slabyard`] and `BlockCache` as allocators for the containers of `hashbrown` and other crates |
//! | `nightly` | the same for the containers of the standard library, whose `Allocator` trait needs nightly Rust |
//! | `full` | all features but `nightly` |
//! | `serde` | keys, maps and statistics |
//! | `log` | reports are written as records of the `log` crate |
//! | `dlopen` | for a plug-in (`cdylib`): takes no static thread-local storage, of which a process has room for one plug-in; the fast paths of caches and maps are calls |
//! | `checked` | pools check each free in release builds too, if `SLABYARD=check` is set |
//!
//! Without `std`, the crate needs `alloc`, the C library and libgcc, and links both. Panics have to
//! abort (`panic = "abort"` in the profiles). The program then defines its panic handler, an empty
//! `extern "C" fn rust_eh_personality()`, and `main` as the C library calls it:
//! `tests/no_std/program.rs` is such a program. The crate is built from C sources with `cc`. It
//! needs Rust 1.85 or newer, and Linux or Windows (`x86_64-pc-windows-gnu`, tested under wine); it
//! also compiles for macOS.
//!
//! # When something is wrong
//!
//! The environment variable `SLABYARD` turns checks on without a rebuild (`SLABYARD=check`).
//! [`options`] lists all options, [`Checks`] the checks of a single cache. [`on_report`] installs a
//! handler for findings. [`stats`] and [`Cache::stats`] show where the memory is; [`audit`] shows
//! which code allocated it.
//!
//! # Guide
//!
//! The module [`guide`](guide/index.html) helps with the choice of a type, has recipes, and
//! explains the differences to nexus-slab, slotmap and sharded-slab. Whole programs are in
//! `examples/`: an order book, the tasks of an async runtime, a timer wheel of several threads, and
//! a graph.

#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod allocator;
mod arena;
pub mod audit;
#[cfg(feature = "allocator-api2")]
mod blocks;
mod build_error;
mod builder;
mod byte_pool;
mod cache;
mod epoch;
mod full;
#[cfg(all(doc, feature = "std"))]
#[doc = include_str!("../guide.md")]
pub mod guide {}
pub mod handle;
pub mod home;
mod in_place;
mod limit;
#[cfg(feature = "std")]
pub mod local;
mod options;
#[cfg(feature = "std")]
mod os;
#[doc(hidden)]
pub mod parts;
mod pinned;
mod pool;
mod pool_functions;
#[cfg(feature = "std")]
pub mod profile;
mod raw;
mod rc;
mod reclaim;
#[cfg(feature = "std")]
mod recycle;
mod refusal;
mod report;
mod scope;
mod slot;
mod stats;
#[cfg(feature = "std")]
pub mod test;
mod type_name;

pub use allocator::Slabyard;
pub use arena::Arena;
#[cfg(feature = "allocator-api2")]
pub use blocks::BlockCache;
pub use build_error::BuildError;
pub use builder::PoolBuilder;
pub use byte_pool::{BytePool, ByteSlot};
pub use cache::boxed::{CacheBox, ObjectBox};
pub use cache::shared::{CacheArc, CacheWeak, Counted, ObjectArc, ObjectWeak};
pub use cache::statics::{StaticArc, StaticBox, StaticCache, StaticState, StaticWeak};
pub use cache::unsized_box::DynBox;
pub use cache::{Cache, CacheBuilder, CacheHome, CacheVacant, Checks, CreateError};
pub use epoch::Epoch;
pub use full::Full;
#[cfg(not(miri))]
pub use handle::MovableMap;
#[cfg(feature = "std")]
pub use handle::SparseSecondaryMap;
pub use handle::{
    DefaultKey, GetError, HandleMap, HandleMapBuilder, Key, LocalHandleMap, RawKey, SecondaryMap,
    TakeError,
};
pub use in_place::Zeroable;
pub use limit::{memory_used, Limit, LimitError};
#[cfg(feature = "std")]
pub use local::LocalStatic;
pub use options::{get_option, options, set_options, OptionError, OptionInfo};
pub use pinned::{Pinned, PinnedSlot};
pub use pool::Pool;
pub use rc::{Borrowed, RcPool, RcSlot, RcVacant, Ref, RefMut, Shared, Weak, WeakSlot};
pub use reclaim::{
    decay, enter_sandbox, set_decay, set_slack, slack, start_maintenance, stop_maintenance,
    thread_flush, thread_idle, trim, trim_some, verify,
};
#[cfg(feature = "std")]
pub use recycle::{Recycle, RecycleBox, RecycleCache};
pub use refusal::{last_refusal, Refusal};
#[cfg(feature = "log")]
pub use report::log_reports;
pub use report::{no_report_handler, on_report, Action, FaultKind, Report, Trace};
pub use scope::{InScope, Live, Scope};
pub use slot::{Claim, Owned, Slot, Vacant};
#[cfg(feature = "std")]
pub use stats::print_stats;
pub use stats::{account, caches, stats, Account, CacheKind, CacheStats, Stats};

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde as __serde;
