//! Memory for objects of one kind, of which a program makes and drops many: orders, connections,
//! timers, nodes, futures.
//!
//! What you get, instead of `Box`, `Arc` or an index:
//!
//! - A slot in a few instructions, compiled into your code: no lock, no atomic, no call. The one
//!   that was freed last comes first, still in the processor's cache.
//! - A limit, where you want one: the value that finds no room comes back to you.
//! - Objects that may be dropped on any thread, or keys that stay stale for ever once their value
//!   is gone.
//! - Memory that goes back to the system page by page, reports that name the cache when something
//!   is freed twice, and no way to undefined behaviour from safe code.
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
//! # Which type is mine?
//!
//! | I want | Type | Threads | An object costs, hit |
//! |---|---|---|---|
//! | objects of one type, in one place of the program | [`Pool`] | one at a time | a pop, a push |
//! | the same by name, with slots of 8 bytes | [`bounded_allocator!`], [`unbounded_allocator!`] | a pool in each | the same |
//! | objects of several types in slots of one size | [`BytePool`] | one at a time | the same |
//! | several owners on one thread | [`RcPool`], [`bounded_rc_allocator!`], [`unbounded_rc_allocator!`] | one at a time, or a pool in each | the same; counts are plain |
//! | objects that any thread makes, sends and drops | [`Cache`], with [`CacheBox`] | all | a compare, a load and a store |
//! | the same by name, with boxes of 8 bytes | [`static_cache!`], with [`StaticBox`] | all | the same |
//! | several owners on several threads | [`CacheArc`], of a cache of [`Counted`] | all | an atomic a clone, and a drop |
//! | buffers that keep their capacity, and the like | [`RecycleCache`] | all | as a cache, and `recycle` |
//! | keys instead of references, used by all threads | [`HandleMap`] | all | a compare-exchange a `get` |
//! | keys instead of references, with one owner | [`LocalHandleMap`] | as a `Vec` | two compares a `get` |
//! | more about what another map has keys for | [`SecondaryMap`], [`SparseSecondaryMap`] | as a `Vec` | two compares; a hash |
//! | all allocations of the program | [`Slabyard`] as the `#[global_allocator]` | all | by size, a table and a pop |
//! | the memory of one request or frame together | [`Epoch`], over caches | all | a free becomes a call |
//! | the same, of types that have nothing to drop | [`Arena`] | one at a time | a subtraction; nothing |
//!
//! Pools have the slots [`Slot`], [`PinnedSlot`], [`Vacant`] and [`RcSlot`]; those of the macros have
//! the same, as [`BoxSlot`](local::BoxSlot) and its kin. Objects are as large as their type: nothing
//! is written beside them, but 12 bytes of counts with `Rc`, 16 with `Arc`.
//!
//! # What does not hit
//!
//! A pool that has no free slot cuts one from its chunk, or maps another chunk: 64 KiB unless said.
//! A bounded pool is all mapped when it is made. A cache without an object at hand exchanges a
//! magazine of up to 127 with other threads, or fetches as many from its slabs under its lock. So
//! of many operations few are such steps; `prefault`, `reserve` and [`Cache::reserve_for_thread`] do
//! them before.
//!
//! # No room
//!
//! `try_insert` and `try_new` give the value back in [`Full`]; `insert` and `new` panic where a limit
//! is reached. Limits are of a pool (`bounded`), a cache or map (`limit`), or the process
//! ([`Limit`]); [`last_refusal`] says which it was. A pool of a thread that was not built is a panic.
//!
//! # Forgetting, leaking, panics
//!
//! What is forgotten keeps its slot. A cache, map or pool that ends before it keeps the memory that
//! anybody may still point to: all of a cache with a live object; of a pool, if the forgotten value
//! was pinned. A value whose drop panics gives its slot back all the same.
//!
//! # Features
//!
//! | | |
//! |---|---|
//! | `std` (default) | pools of a thread, [`RecycleCache`], [`SparseSecondaryMap`] |
//! | `allocator-api2` | [`Slabyard`] and `BlockCache` as allocators of `hashbrown` and others' containers |
//! | `serde` | keys, maps and statistics |
//! | `log` | reports become records of the `log` crate |
//! | `checked` | pools see each free in release builds too, if `SLABYARD=check` says so |
//!
//! Without `std` the crate needs `alloc`, and the C library: it is built from C sources, with `cc`. Linux,
//! Rust 1.85 and newer.
//!
//! # When something is wrong
//!
//! The environment variable `SLABYARD` turns checks on in a program as it is (`SLABYARD=check`);
//! [`options`] lists what it can say, [`Checks`] what a cache can ask for, [`on_report`] takes over
//! what happens with a finding. [`stats`] and [`Cache::stats`] say where memory is, [`audit`] who has it.
//!
//! # Guide
//!
//! The module [`guide`](guide/index.html) goes through the choice, has recipes, and tells who comes from
//! nexus-slab, slotmap or sharded-slab what is different here and why. Whole programs are in
//! `examples/`: an order book, the tasks of an async runtime, a timer wheel of several threads, and a
//! graph.

#![no_std]
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
mod limit;
#[cfg(feature = "std")]
pub mod local;
mod options;
#[doc(hidden)]
pub mod parts;
mod pinned;
mod pool;
mod pool_doors;
mod raw;
mod rc;
mod reclaim;
#[cfg(feature = "std")]
mod recycle;
mod refusal;
mod report;
mod slot;
mod stats;
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
pub use cache::{Cache, CacheBuilder, CacheHome, CacheVacant, Checks, CreateError};
pub use epoch::Epoch;
pub use full::Full;
#[cfg(feature = "std")]
pub use handle::SparseSecondaryMap;
pub use handle::{
    DefaultKey, HandleMap, HandleMapBuilder, Key, LocalHandleMap, RawKey, SecondaryMap, TakeError,
};
pub use limit::{memory_used, Limit, LimitError};
#[cfg(feature = "std")]
pub use local::LocalStatic;
pub use options::{get_option, options, set_options, OptionError, OptionInfo};
pub use pinned::{Pinned, PinnedSlot};
pub use pool::Pool;
pub use rc::{Borrowed, RcPool, RcSlot, Ref, RefMut, Shared, Weak, WeakSlot};
pub use reclaim::{
    set_decay, start_maintenance, stop_maintenance, thread_flush, thread_idle, trim, trim_some,
    verify,
};
#[cfg(feature = "std")]
pub use recycle::{Recycle, RecycleBox, RecycleCache};
pub use refusal::{last_refusal, Refusal};
#[cfg(feature = "log")]
pub use report::log_reports;
pub use report::{no_report_handler, on_report, Action, FaultKind, Report, Trace};
pub use slot::{Claim, Owned, Slot, Vacant};
#[cfg(feature = "std")]
pub use stats::print_stats;
pub use stats::{caches, stats, CacheKind, CacheStats, Stats};

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde as __serde;
