//! Maps that give keys out for values: a key is good until its value is removed, and good for
//! nothing ever after, whatever comes to lie in its place.
//!
//! [`HandleMap`] is for all threads, [`LocalHandleMap`] for one owner with `&mut`; [`SecondaryMap`]
//! and [`SparseSecondaryMap`] keep more about what another map has keys for.
//!
//! # The word of an ordinal, in a [`HandleMap`]
//!
//! Every value has a word, which says its generation, how many guards there are, and a state
//! (`slabyard/handle.h` draws it). What C does with words does not know of `Drop`, so this module
//! changes them itself, by these rules:
//!
//! ```text
//!               insert                      remove, no guards
//!     free ---------------> live, 0 guards ------------------> dying, 0 guards
//!       ^                    | ^                                 ^    |
//!       |            get     v | guard goes                      |    |
//!       |                   live, n guards                       |    |
//!       |                      | remove              last guard  |    |
//!       |                      v                     goes        |    |
//!       |                   dying, n guards ---------------------+    |
//!       +-------------------------------------------------------------+
//!                      the value is dropped or moved out
//! ```
//!
//! 1. *One owner.* Who makes a word *dying without guards* owns the value alone, and nobody else
//!    touches the word. Either `remove` finds no guards, or a guard that goes is the last.
//! 2. *No way back.* A guard is made of a live word only. So the guards of a dying word only become
//!    fewer, and one of them is the last.
//! 3. *Value first.* A word becomes live after the value was written (release), and a guard is made
//!    by an exchange that acquires: so the value is seen whole.
//! 4. *Guards before drop.* A guard goes by a subtraction that releases, and who becomes owner
//!    acquires: what was done through guards happens before the drop.
//! 5. *Value last.* The owner drops the value, or moves it out, then stores a free word, then puts
//!    the ordinal back, in this order also if the drop panics.
//!
//! `get` is one compare-exchange, the end of a guard one subtraction, `remove` one compare-exchange
//! and, since nobody else writes the word by then, a plain store. `rust/models` explores this and
//! shows for each rule what happens without it.
//!
//! # What safe code of the program can do to it
//!
//! - *A key's conversions* may answer differently each time, panic, or call the map. So each function
//!   converts the key at its entrance, once, and works with the [`RawKey`] alone; walks and drops convert no
//!   key back. On the way out the conversion comes last, when the map is whole and the value has an owner.
//! - *A key's other traits* (`Eq`, `Ord`, `Hash`, `Debug`) are never called, but for `Debug` in panics and texts.
//! - *A value's drop* may panic, or use the map: it runs after the word is dying, when no lock is held, and the
//!   ordinal goes back behind a drop guard. A map that is dropped cannot be reached from a value, as the map
//!   has a `Drop` of its own, so values may not borrow it, and an `Arc` of it was the last.
//! - *A value's clone* ([`LocalHandleMap`]) sees a shared map; a half of it that was cloned is dropped by `Vec`.
//! - *Closures* (`insert_with_key`, `retain`, `for_each`, `get_or_insert_with`) run while the value is under a guard
//!   or borrowed, and a place that has no value yet goes back if they panic.
//! - *Iterators of the program* (`Extend`) are pulled one item at a time; their `size_hint` is not asked.
//!
//! A guard that is leaked stays counted: its value is not dropped by `remove`, but by the map's own
//! end, which no guard outlives. The same holds for every method with `&mut self`: nobody can have
//! a guard then, so what is counted was leaked, and does not matter.

mod builder;
mod entry;
mod guard;
mod kept;
mod key;
mod local;
mod map;
mod secondary;
#[cfg(feature = "serde")]
mod serial;
#[cfg(feature = "std")]
mod sparse;
mod walk;
mod word;

/// The panic of a `reserve`, in the line of the program that called it.
#[cold]
#[inline(never)]
#[track_caller]
fn no_memory(error: &dyn core::fmt::Display) -> ! {
    panic!("{error}")
}

pub use builder::HandleMapBuilder;
pub use entry::VacantEntry;
pub use guard::{OwnedRef, Ref};
pub use key::{DefaultKey, Key, RawKey};
pub use local::{
    Drain as LocalDrain, Iter as LocalIter, IterMut as LocalIterMut, Keys as LocalKeys,
    LocalHandleMap, LocalVacantEntry, Values as LocalValues, ValuesMut as LocalValuesMut,
};
pub use map::{HandleMap, TakeError};
pub use secondary::SecondaryMap;
#[cfg(feature = "serde")]
pub use serial::Restored;
#[cfg(feature = "std")]
pub use sparse::SparseSecondaryMap;
pub use walk::{Drain, Iter, IterMut};
