//! Explores the counts of shared objects under loom. The code is the crate's own file, compiled
//! with loom's atomics.

/// The module that the crate's file imports as `super::atomic`.
mod atomic {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::thread::yield_now as spin;
}

#[allow(dead_code)] // the models do not call all functions of the crate
#[path = "../../slabyard/src/cache/counts.rs"]
mod shipped;

/// A shared object as `ObjectArc` and `ObjectWeak` have it: a value that is dropped, in a place
/// that is freed.
pub struct Shared {
    counts: shipped::Counts,
    value: loom::cell::UnsafeCell<u32>,
    place: loom::cell::UnsafeCell<bool>,
}

/// The value after its drop.
pub const DROPPED: u32 = u32::MAX;

// SAFETY: the counts say who may access the value and the place; loom reports any other access.
unsafe impl Sync for Shared {}
// SAFETY: none of its fields belongs to one thread.
unsafe impl Send for Shared {}

/// An owner of the value, as `ObjectArc`.
pub struct Owner(std::sync::Arc<Shared>);

/// A weak reference, as `ObjectWeak`.
pub struct Watcher(std::sync::Arc<Shared>);

impl Shared {
    /// Makes an object with one owner; the first result observes its end.
    pub fn with_owner(value: u32) -> (std::sync::Arc<Self>, Owner) {
        let shared = std::sync::Arc::new(Shared {
            counts: shipped::Counts::new(),
            value: loom::cell::UnsafeCell::new(value),
            place: loom::cell::UnsafeCell::new(true),
        });
        (shared.clone(), Owner(shared))
    }

    /// Makes an object without a value and owner, but with one weak reference.
    pub fn unborn() -> (std::sync::Arc<Self>, Watcher) {
        let shared = std::sync::Arc::new(Shared {
            counts: shipped::Counts::unborn(),
            value: loom::cell::UnsafeCell::new(DROPPED),
            place: loom::cell::UnsafeCell::new(true),
        });
        (shared.clone(), Watcher(shared))
    }

    /// After all threads have ended: whether the value was dropped and the place was freed.
    pub fn is_gone(&self) -> bool {
        // SAFETY: no other thread accesses the object; loom would report it.
        unsafe { self.value.with(|value| *value == DROPPED) && self.place.with(|place| !*place) }
    }

    /// Checks that the place is not freed, as the caller has a count.
    fn look_at_place(&self) {
        // SAFETY: the place exists while there is a weak reference; loom would report a violation.
        self.place
            .with(|place| assert!(unsafe { *place }, "the place is gone"));
    }

    fn unwatch(&self) {
        if self.counts.unwatch() {
            self.place.with_mut(|place| {
                // SAFETY: there is no weak reference any more; loom would report a violation.
                assert!(
                    std::mem::replace(unsafe { &mut *place }, false),
                    "it went twice"
                );
            });
        }
    }
}

impl Owner {
    /// Reads the value, which must not be dropped.
    pub fn read(&self) -> u32 {
        self.0.look_at_place();
        // SAFETY: the value is live while there is an owner; loom would report a violation.
        let value = self.0.value.with(|value| unsafe { *value });
        assert_ne!(value, DROPPED, "an owner found the value dropped");
        value
    }

    /// Writes the value, if this is the only reference.
    pub fn write_if_alone(&mut self, new: u32) -> bool {
        let alone = self.0.counts.is_alone();
        if alone {
            // SAFETY: this is the only reference; loom would report another access.
            self.0.value.with_mut(|value| unsafe { *value = new });
        }
        alone
    }

    /// Makes a weak reference.
    pub fn watcher(&self) -> Watcher {
        self.0.counts.watch_as_owner();
        Watcher(self.0.clone())
    }

    /// Takes the value, if this is the only owner.
    pub fn take_if_last(self) -> Option<u32> {
        if !self.0.counts.leave_if_last() {
            return None;
        }
        let value = self.drop_value();
        std::mem::forget(self); // leaks a reference of the model, not one of loom's
        Some(value)
    }

    fn drop_value(&self) -> u32 {
        let value = self.0.value.with_mut(|value| {
            // SAFETY: this was the last owner; loom would report an access of another one.
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
    /// Makes an owner, if there is one.
    pub fn upgrade(&self) -> Option<Owner> {
        self.0.look_at_place();
        self.0.counts.upgrade().then(|| Owner(self.0.clone()))
    }

    /// Writes the value of an object that has none yet, and becomes its first owner.
    pub fn be_born(self, new: u32) -> Owner {
        // SAFETY: there is no owner yet; loom would report an access of one.
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
