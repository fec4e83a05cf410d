//! The two counts of a shared object: of those that own the value, and of those that keep its place.
//!
//! - `strong`: owners. The value lives while it is not 0, and it never leaves 0.
//! - `weak`: watchers, and one more for all owners together. The place lives while it is not 0.
//!   [`LOCKED`] while an owner makes sure that it is alone: whoever wants to watch waits.
//!
//! Memory orders: an owner that leaves *releases* what it did to the value, and the last one
//! *acquires* that before the value is dropped; the same for the place. Joining is relaxed, as whoever
//! joins stands on a count that he has already. [`Counts::is_alone`] acquires what the watchers
//! released that became owners and left: an upgrade needs a watcher, whose leaving is a release of
//! `weak` after that of `strong`.
//!
//! `rust/models` runs this file, as it is, under loom: `super::atomic` is loom's there.

use super::atomic::{spin, AtomicUsize, Ordering};

/// Beyond, counts could wrap if as many more were joined at once as there are threads.
const MOST: usize = isize::MAX as usize;
const LOCKED: usize = usize::MAX;

/// The last one sees what those before it released: the count that it reads here is of their release
/// sequences. A fence would do as well, but ThreadSanitizer knows none.
#[inline(always)]
fn acquire(count: &AtomicUsize) {
    count.load(Ordering::Acquire);
}

/// What a count was asked for that cannot be: more than [`MOST`].
#[cold]
fn overflow() -> ! {
    /// A panic while panicking ends the process, with the standard library or without.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            panic!("an object is shared too often");
        }
    }

    let _end = End;
    panic!("an object is shared too often");
}

pub(crate) struct Counts {
    strong: AtomicUsize,
    weak: AtomicUsize,
}

impl Counts {
    /// One owner.
    pub(crate) fn new() -> Self {
        Counts {
            strong: AtomicUsize::new(1),
            weak: AtomicUsize::new(1),
        }
    }

    /// No owner yet, and one watcher, which keeps the owners' share until there is one.
    pub(crate) fn unborn() -> Self {
        Counts {
            strong: AtomicUsize::new(0),
            weak: AtomicUsize::new(1),
        }
    }

    /// The value is written: the unborn has an owner, who has the share of `weak`.
    pub(crate) fn be_born(&self) {
        self.strong.store(1, Ordering::Release);
    }

    /// An owner makes another one.
    #[inline]
    pub(crate) fn join(&self) {
        if self.strong.fetch_add(1, Ordering::Relaxed) > MOST {
            overflow();
        }
    }

    /// An owner leaves; true: it was the last, sees all that was done to the value, and drops it.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        if self.strong.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        acquire(&self.strong);
        true
    }

    /// A watcher makes another one, or an owner of an unborn.
    pub(crate) fn watch(&self) {
        if self.weak.fetch_add(1, Ordering::Relaxed) > MOST {
            overflow();
        }
    }

    /// An owner makes a watcher.
    pub(crate) fn watch_as_owner(&self) {
        let mut weak = self.weak.load(Ordering::Relaxed);
        loop {
            if weak == LOCKED {
                spin();
                weak = self.weak.load(Ordering::Relaxed);
                continue;
            }
            if weak > MOST {
                overflow();
            }
            // Acquire: with the release that unlocked, so that what an owner alone did is before.
            match self.weak.compare_exchange_weak(
                weak,
                weak + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => weak = now,
            }
        }
    }

    /// A watcher leaves, or the owners together; true: the place goes.
    #[inline]
    pub(crate) fn unwatch(&self) -> bool {
        if self.weak.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        acquire(&self.weak);
        true
    }

    /// A watcher becomes an owner as well; false: the value is gone, or not born yet.
    pub(crate) fn upgrade(&self) -> bool {
        let mut strong = self.strong.load(Ordering::Relaxed);
        while strong != 0 {
            if strong > MOST {
                overflow();
            }
            // Acquire: with the release of be_born.
            match self.strong.compare_exchange_weak(
                strong,
                strong + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => strong = now,
            }
        }
        false
    }

    /// Whether the owner that asks is alone, with no watcher either.
    pub(crate) fn is_alone(&self) -> bool {
        let locked = self
            .weak
            .compare_exchange(1, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if !locked {
            return false;
        }
        // Acquire: with the releases of owners that left.
        let alone = self.strong.load(Ordering::Acquire) == 1;
        self.weak.store(1, Ordering::Release);
        alone
    }

    /// Takes the last owner's share, so that watchers see the value as gone; false: there are other
    /// owners.
    pub(crate) fn leave_if_last(&self) -> bool {
        self.strong
            .compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// A snapshot.
    pub(crate) fn owners(&self) -> usize {
        self.strong.load(Ordering::Relaxed)
    }

    /// A snapshot, without the owners' share.
    pub(crate) fn watchers(&self) -> usize {
        match self.weak.load(Ordering::Relaxed) {
            LOCKED => 0,
            weak => weak - usize::from(weak > 0),
        }
    }
}
