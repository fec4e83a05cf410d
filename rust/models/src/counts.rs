//! The counts of shared objects. Not transcribed: it is the file of the crate, with loom's atomics.

/// What the crate's file finds as `super::atomic`.
mod atomic {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::thread::yield_now as spin;
}

#[allow(dead_code)] // what the crate calls and no model does
#[path = "../../slabyard/src/cache/counts.rs"]
mod shipped;

/// As `ObjectArc` and `ObjectWeak` use them: a value that is dropped, in a place that goes.
pub struct Shared {
    counts: shipped::Counts,
    value: loom::cell::UnsafeCell<u32>,
    place: loom::cell::UnsafeCell<bool>,
}

/// What the last owner leaves as the value.
pub const DROPPED: u32 = u32::MAX;

// SAFETY: value and place are reached as the counts allow; loom sees it where that is not enough.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Shared {}

/// An owner.
pub struct Owner(std::sync::Arc<Shared>);

/// A watcher.
pub struct Watcher(std::sync::Arc<Shared>);

impl Shared {
    /// One owner, and a look at what becomes of it.
    pub fn with_owner(value: u32) -> (std::sync::Arc<Self>, Owner) {
        let shared = std::sync::Arc::new(Shared {
            counts: shipped::Counts::new(),
            value: loom::cell::UnsafeCell::new(value),
            place: loom::cell::UnsafeCell::new(true),
        });
        (shared.clone(), Owner(shared))
    }

    /// No owner yet, and one watcher.
    pub fn unborn() -> (std::sync::Arc<Self>, Watcher) {
        let shared = std::sync::Arc::new(Shared {
            counts: shipped::Counts::unborn(),
            value: loom::cell::UnsafeCell::new(DROPPED),
            place: loom::cell::UnsafeCell::new(true),
        });
        (shared.clone(), Watcher(shared))
    }

    /// When all threads have ended: whether the value was dropped, and the place given back.
    pub fn is_gone(&self) -> bool {
        // SAFETY: nobody else is there; loom sees it if somebody is.
        unsafe { self.value.with(|value| *value == DROPPED) && self.place.with(|place| !*place) }
    }

    /// Whoever has a count finds the place there.
    fn look_at_place(&self) {
        // SAFETY: it stays while there is a watcher; loom sees it if it does not.
        self.place
            .with(|place| assert!(unsafe { *place }, "the place is gone"));
    }

    fn unwatch(&self) {
        if self.counts.unwatch() {
            self.place.with_mut(|place| {
                // SAFETY: nobody watches any more; loom sees it if somebody does.
                assert!(
                    std::mem::replace(unsafe { &mut *place }, false),
                    "it went twice"
                );
            });
        }
    }
}

impl Owner {
    /// Reads the value, which is there.
    pub fn read(&self) -> u32 {
        self.0.look_at_place();
        // SAFETY: the value lives while there is an owner; loom sees it if it does not.
        let value = self.0.value.with(|value| unsafe { *value });
        assert_ne!(value, DROPPED, "an owner found the value dropped");
        value
    }

    /// Writes the value, if this owner is alone.
    pub fn write_if_alone(&mut self, new: u32) -> bool {
        let alone = self.0.counts.is_alone();
        if alone {
            // SAFETY: nobody else reaches it; loom sees it if somebody does.
            self.0.value.with_mut(|value| unsafe { *value = new });
        }
        alone
    }

    /// A watcher.
    pub fn watcher(&self) -> Watcher {
        self.0.counts.watch_as_owner();
        Watcher(self.0.clone())
    }

    /// Takes the value, if no other owner is there.
    pub fn take_if_last(self) -> Option<u32> {
        if !self.0.counts.leave_if_last() {
            return None;
        }
        let value = self.drop_value();
        std::mem::forget(self); // leaks a reference of the model's own, not one of loom's
        Some(value)
    }

    fn drop_value(&self) -> u32 {
        let value = self.0.value.with_mut(|value| {
            // SAFETY: it was the last owner; loom sees it if another one is there.
            std::mem::replace(unsafe { &mut *value }, DROPPED)
        });
        assert_ne!(value, DROPPED, "it was dropped twice");
        self.0.unwatch();
        value
    }
}

impl Clone for Owner {
    fn clone(&self) -> Self {
        self.0.counts.join();
        Owner(self.0.clone())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.0.counts.leave() {
            self.drop_value();
        }
    }
}

impl Watcher {
    /// An owner, while there is one.
    pub fn upgrade(&self) -> Option<Owner> {
        self.0.look_at_place();
        self.0.counts.upgrade().then(|| Owner(self.0.clone()))
    }

    /// Writes the value that was not born yet; its place is the owner's now.
    pub fn be_born(self, new: u32) -> Owner {
        // SAFETY: nobody is an owner yet; loom sees it if somebody is.
        self.0.value.with_mut(|value| unsafe { *value = new });
        self.0.counts.be_born();
        let owner = Owner(self.0.clone());
        std::mem::forget(self);
        owner
    }
}

impl Clone for Watcher {
    fn clone(&self) -> Self {
        self.0.counts.watch();
        Watcher(self.0.clone())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.unwatch();
    }
}
