//! The two counts of a shared object: the owners of its value, and the watchers of its place.
//!
//! - `strong`: the number of owners. The value lives while it is not 0. Once it is 0 again, it
//!   stays 0.
//! - `weak`: the number of watchers, and one more for all owners together. The place lives while it
//!   is not 0. It is [`LOCKED`] while an owner checks that it is alone; an owner that makes a
//!   watcher waits meanwhile.
//!
//! Memory orders: an owner that leaves *releases* what it did to the value, and the last owner
//! *acquires* that before it drops the value. The same holds for watchers and the place. Joining is
//! relaxed, because the thread that joins holds a share of the count already. [`Counts::is_alone`]
//! must also see what was done by watchers that became owners and left. It acquires `weak`: such a
//! watcher releases `weak` after it released `strong`.
//!
//! `rust/models` runs this file unchanged under loom, where `super::atomic` is loom's.

use super::atomic::{spin, AtomicUsize, Ordering};

/// A count above this panics. It leaves room for as many more joins at once as there are threads.
const MOST: usize = isize::MAX as usize;
const LOCKED: usize = usize::MAX;

/// The last one sees what all earlier ones released, because the count that it reads here belongs
/// to their release sequences. A fence would do as well, but ThreadSanitizer does not support
/// fences.
#[inline(always)]
fn acquire(count: &AtomicUsize) {
    count.load(Ordering::Acquire);
}

/// Panics: a count would exceed [`MOST`].
#[cold]
fn overflow() -> ! {
    /// A panic during a panic ends the process, with or without the standard library.
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
    /// Counts for one owner.
    pub(crate) fn new() -> Self {
        Counts {
            strong: AtomicUsize::new(1),
            weak: AtomicUsize::new(1),
        }
    }

    /// Counts for an object without a value: no owner, and one watcher. This watcher holds the
    /// owners' share of `weak` until there is an owner.
    pub(crate) fn unborn() -> Self {
        Counts {
            strong: AtomicUsize::new(0),
            weak: AtomicUsize::new(1),
        }
    }

    /// The value is written: the object has one owner now, which takes over the share of `weak`.
    pub(crate) fn be_born(&self) {
        self.strong.store(1, Ordering::Release);
    }

    /// An owner makes another owner.
    #[inline]
    pub(crate) fn join(&self) {
        if self.strong.fetch_add(1, Ordering::Relaxed) > MOST {
            overflow();
        }
    }

    /// An owner leaves. True: it was the last one; it sees all that was done to the value, and
    /// drops it.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        if self.strong.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        acquire(&self.strong);
        true
    }

    /// A watcher makes another watcher.
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
            // Acquire: with the release in is_alone, so that what the lone owner did happens
            // before.
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

    /// A watcher leaves, or the last owner gives up the owners' share. True: the place must be
    /// freed.
    #[inline]
    pub(crate) fn unwatch(&self) -> bool {
        if self.weak.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        acquire(&self.weak);
        true
    }

    /// A watcher makes an owner. False: the value is gone, or is not written yet.
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

    /// Whether the calling owner is the only one, and there is no watcher.
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

    /// Gives up the calling owner's share if it is the last owner. Watchers then see the value as
    /// gone. False: there are other owners.
    pub(crate) fn leave_if_last(&self) -> bool {
        self.strong
            .compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// The number of owners: a snapshot.
    pub(crate) fn owners(&self) -> usize {
        self.strong.load(Ordering::Relaxed)
    }

    /// The number of watchers, without the owners' share: a snapshot.
    pub(crate) fn watchers(&self) -> usize {
        match self.weak.load(Ordering::Relaxed) {
            LOCKED => 0,
            weak => weak - usize::from(weak > 0),
        }
    }
}
