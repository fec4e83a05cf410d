//! Maps that give out keys for values. A key is valid until its value is removed. It stays invalid
//! from then on, even when another value lies in the same place.
//!
//! [`HandleMap`] is for all threads, [`LocalHandleMap`] for one owner with `&mut`. [`SecondaryMap`]
//! and [`SparseSecondaryMap`] keep further values for the keys of another map.
//!
//! # The word of an ordinal, in a [`HandleMap`]
//!
//! Every value has a word with its generation, the number of its guards and a state
//! (`slabyard/handle.h` draws it). The C functions for words do not run `Drop`. So this module
//! changes words itself, by these rules:
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
//! 1. *One owner.* The thread that makes a word *dying without guards* is the only owner of the
//!    value, and no other thread uses the word. It is either a `remove` that finds no guards, or
//!    the drop of the last guard.
//! 2. *No way back.* A guard is made of a live word only. So a dying word gets no new guards, and
//!    one of its guards is the last.
//! 3. *Value first.* A word becomes live after the value was written (release), and a guard is made
//!    by a compare-exchange that acquires. So a thread with a guard sees the whole value.
//! 4. *Guards before drop.* Dropping a guard is a subtraction that releases, and the thread that
//!    becomes the owner acquires. So everything done through guards happens before the value is
//!    dropped.
//! 5. *Value last.* The owner drops the value or moves it out, then stores a free word, then frees
//!    the ordinal. The order is the same if the drop panics.
//!
//! `get` is one compare-exchange, the drop of a guard one subtraction. `remove` is one
//! compare-exchange and a plain store, because no other thread writes the word by then.
//! `rust/models` explores this, and shows for each rule what happens without it.
//!
//! # Values that move
//!
//! The library moves the values of a `MovableMap` by copying their bytes (`slabyard/handle.h`,
//! `src/cache/moving.c`). It makes a word *moving* by a compare-exchange from *live without guards*,
//! so a value with a guard, and one that is dying, stays where it is. Rules 1 to 5 hold, and two
//! more:
//!
//! 6. *A moving value is live.* A `get` or `remove` that finds a moving word makes the library call
//!    the move off, or waits for the end of the copy, and tries again.
//! 7. *The place is read last*, after the compare-exchange that made the guard, or that made the
//!    word dying. It acquires the end of the last move, which published the place.
//!
//! Without a guard, a value stays where it is only in a read guard of the library. Such a guard does
//! not keep a value from being removed. So the map has to be borrowed exclusively
//! (`MovableMap::while_still`). The read guards of a thread must end in reverse order, so there only
//! is a function that calls a closure.
//!
//! Another thread may copy a value's bytes, so values are `Send`. It never reads them as a value, so
//! they need not be `Sync` for that. Values may have guards of several threads, so a map that is
//! shared needs `Sync` values, as a `HandleMap` does.
//!
//! # What safe code of the program can do to a map
//!
//! - *A key's conversions* may answer differently each time, panic, or call the map. So each
//!   function converts the key once, at its beginning, and works with the [`RawKey`]; walks and
//!   drops do not convert keys back. A function that returns a key converts it last, when the map
//!   is consistent and the value has an owner.
//! - *A key's other traits* (`Eq`, `Ord`, `Hash`) are never called; `Debug` only for panics and
//!   texts.
//! - *A value's drop* may panic, or use the map. It runs after the word became dying, without a
//!   lock, and a drop guard frees the ordinal. Safe code cannot use a map whose drop runs from a
//!   value: a value cannot borrow its map, because the map has a `Drop` of its own, and a value's
//!   `Arc` of it would keep it alive.
//! - *A value's clone* ([`LocalHandleMap`]) gets a shared map. If it panics, `Vec` drops the values
//!   cloned so far.
//! - *Closures* (`insert_with_key`, `retain`, `for_each`, `get_or_insert_with`) run while the value
//!   is guarded or borrowed. If they panic, a place without a value is freed.
//! - *Iterators of the program* (`Extend`) are read item by item; their `size_hint` is not used.
//!
//! A value can have 65,535 guards. The last 1,023 are for walks, which hold one at a time: so no
//! number of guards that the program holds makes a walk leave a value out, unless it keeps the
//! guards of walks. `clear` needs no guard.
//!
//! A leaked guard stays counted. So `remove` does not drop the value of a leaked guard. The drop of
//! the map drops it, because no guard outlives the map. While a method with `&mut self` runs, no
//! guard is in use. So the guards that are counted then were leaked, and are ignored.

mod builder;
mod entry;
mod guard;
mod kept;
mod key;
mod local;
mod map;
#[cfg(not(miri))]
mod movable;
mod secondary;
mod secondary_entry;
#[cfg(feature = "serde")]
mod serial;
#[cfg(feature = "std")]
mod sparse;
#[cfg(not(miri))]
mod still;
mod walk;
mod word;

/// Panics at the line of the program that called `reserve`.
#[cold]
#[inline(never)]
#[track_caller]
fn no_memory(error: &dyn core::fmt::Display) -> ! {
    panic!("{error}")
}

pub use builder::HandleMapBuilder;
pub use entry::VacantEntry;
pub use guard::{MappedRef, OwnedRef, Ref};
pub use key::{DefaultKey, Key, NoKey, RawKey};
pub use local::{
    Drain as LocalDrain, IntoIter as LocalIntoIter, Iter as LocalIter, IterMut as LocalIterMut,
    Keys as LocalKeys, LocalHandleMap, LocalVacantEntry, Values as LocalValues,
    ValuesMut as LocalValuesMut,
};
pub use map::{GetError, HandleMap, TakeError};
#[cfg(not(miri))]
pub use movable::MovableMap;
pub use secondary::{Iter as SecondaryIter, IterMut as SecondaryIterMut, SecondaryMap};
pub use secondary_entry::{EmptyEntry, Entry, OccupiedEntry, Secondary};
#[cfg(feature = "serde")]
pub use serial::Restored;
#[cfg(feature = "std")]
pub use sparse::{
    Iter as SparseSecondaryIter, IterMut as SparseSecondaryIterMut, SparseSecondaryMap,
};
#[cfg(not(miri))]
pub use still::Still;
pub use walk::{Drain, Iter, IterMut};
