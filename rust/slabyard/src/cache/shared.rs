//! Shared objects: [`ObjectArc`] and [`ObjectWeak`]. The counts lie in the slot, before the value.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::pin::Pin;
use core::ptr::{addr_of_mut, NonNull};
use core::{cmp, fmt};

use super::counts::Counts;
use super::{no_room, Cache, CacheHome};
use crate::Full;

/// A value with its counts: the object type of a cache whose objects are shared,
/// `Cache<Counted<T>>`. It takes 16 bytes more than the value.
#[repr(C)]
pub struct Counted<T> {
    counts: Counts,
    value: T,
}

impl<T> Counted<T> {
    /// Writes the counts of one owner, and returns the place of the value.
    ///
    /// # Safety
    /// The object is taken, and no other code uses it.
    pub(super) unsafe fn begin(object: NonNull<Self>) -> NonNull<T> {
        // SAFETY: as the caller says; a field of an object is not null.
        unsafe {
            addr_of_mut!((*object.as_ptr()).counts).write(Counts::new());
            NonNull::new_unchecked(addr_of_mut!((*object.as_ptr()).value))
        }
    }
}

impl<T> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

/// Owns an object of a home together with other owners, as `Arc` does for an object of the heap.
///
/// [`CacheArc`] is the shared owner for a [`Cache`], `StaticArc` for a static cache.
///
/// Thread rule: if `T` is `Send` and `Sync`, owners may be sent to other threads. The last owner
/// drops the value, on its thread.
pub struct ObjectArc<T, H: CacheHome<Counted<T>>> {
    object: NonNull<Counted<T>>,
    home: H,
    owned: PhantomData<Counted<T>>,
}

/// Watches a shared object without owning it: keeps its memory, and can become an owner while the
/// value lives.
pub struct ObjectWeak<T, H: CacheHome<Counted<T>>> {
    object: NonNull<Counted<T>>,
    home: H,
}

/// Owns an object of a [`Cache`] together with others.
///
/// ```
/// use slabyard::{Cache, CacheArc, Counted};
///
/// let sessions = Cache::<Counted<String>>::new("session");
/// let session = sessions.insert_arc("Ada".to_string());
/// let other = session.clone();
/// let watcher = CacheArc::downgrade(&session);
/// assert_eq!((&*other, CacheArc::strong_count(&session)), (&"Ada".to_string(), 2));
/// drop((session, other));
/// assert!(watcher.upgrade().is_none());
/// ```
pub type CacheArc<'c, T> = ObjectArc<T, &'c Cache<Counted<T>>>;

/// Watches an object of a [`Cache`].
pub type CacheWeak<'c, T> = ObjectWeak<T, &'c Cache<Counted<T>>>;

// SAFETY: as for std::sync::Arc: other threads may use the value, and this thread may drop it.
unsafe impl<T: Send + Sync, H: CacheHome<Counted<T>> + Send> Send for ObjectArc<T, H> {}
// SAFETY: the same, as a reference can be cloned.
unsafe impl<T: Send + Sync, H: CacheHome<Counted<T>> + Sync + Send> Sync for ObjectArc<T, H> {}
// SAFETY: the same, as a watcher can become an owner.
unsafe impl<T: Send + Sync, H: CacheHome<Counted<T>> + Send> Send for ObjectWeak<T, H> {}
// SAFETY: the same.
unsafe impl<T: Send + Sync, H: CacheHome<Counted<T>> + Sync + Send> Sync for ObjectWeak<T, H> {}

impl<T, H: CacheHome<Counted<T>>> Unpin for ObjectArc<T, H> {}
impl<T, H: CacheHome<Counted<T>>> Unpin for ObjectWeak<T, H> {}

impl<T, H: CacheHome<Counted<T>>> ObjectArc<T, H> {
    /// Puts a value into a home and returns its first owner.
    ///
    /// # Panics
    /// If the limit of the cache is reached. If there is no memory, this fails as `Arc::new` does.
    #[inline]
    #[track_caller]
    pub fn new_in(value: T, home: H) -> Self {
        match Self::try_new_in(value, home) {
            Ok(arc) => arc,
            Err(_) => no_room::<Counted<T>>(),
        }
    }

    /// Puts a value into a home and returns its first owner. If there is no room, the value is
    /// returned.
    #[inline]
    pub fn try_new_in(value: T, home: H) -> Result<Self, Full<T>> {
        let Some(object) = home.take() else {
            return Err(Full(value));
        };
        // SAFETY: the slot was taken above, and no other code uses it.
        unsafe {
            object.write(Counted {
                counts: Counts::new(),
                value,
            });
            Ok(Self::from_parts(object, home))
        }
    }

    /// # Safety
    /// The object was taken from that home, holds a value, and counts one owner, which is the
    /// caller's.
    #[inline]
    pub(super) unsafe fn from_parts(object: NonNull<Counted<T>>, home: H) -> Self {
        ObjectArc {
            object,
            home,
            owned: PhantomData,
        }
    }

    /// Creates a value that holds a watcher of itself. `make` gets the watcher, which can be
    /// upgraded once `make` has returned.
    ///
    /// # Panics
    /// As [`new_in`](Self::new_in), and if `make` panics. Then the slot is freed with the last
    /// watcher.
    #[track_caller]
    pub fn new_cyclic_in(home: H, make: impl FnOnce(&ObjectWeak<T, H>) -> T) -> Self {
        let Some(object) = home.take() else {
            no_room::<Counted<T>>();
        };
        // SAFETY: the slot was taken above. The counts are written before a watcher exists, the
        // value before an owner exists.
        unsafe {
            addr_of_mut!((*object.as_ptr()).counts).write(Counts::unborn());
            let weak = ObjectWeak { object, home };
            let value = make(&weak);
            addr_of_mut!((*object.as_ptr()).value).write(value);
            (*object.as_ptr()).counts.be_born();
            core::mem::forget(weak); // its share of `weak` is the owners' now
        }
        ObjectArc {
            object,
            home,
            owned: PhantomData,
        }
    }

    /// Puts a value into a home and returns its first owner, pinned. All other owners are clones of
    /// this one, so none of them can move the value. An existing owner cannot be pinned, because
    /// its clones could still move the value.
    ///
    /// ```
    /// use slabyard::{Cache, CacheArc, Counted};
    /// use std::pin::Pin;
    ///
    /// let nodes = Cache::<Counted<std::marker::PhantomPinned>>::new("node");
    /// let node: Pin<CacheArc<_>> = CacheArc::pin_in(std::marker::PhantomPinned, &nodes);
    /// let other = node.clone(); // pinned as well
    /// assert!(std::ptr::eq(&*node, &*other));
    /// ```
    ///
    /// # Panics
    /// As [`new_in`](Self::new_in).
    #[inline]
    #[track_caller]
    pub fn pin_in(value: T, home: H) -> Pin<Self> {
        // SAFETY: there is no other owner and no watcher, and a pinned owner makes pinned ones
        // only. None of them gives out a `Self` or `&mut T`. The memory is given back after the
        // value was dropped, or never.
        unsafe { Pin::new_unchecked(Self::new_in(value, home)) }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: the memory of the counts lives while there is an owner.
        unsafe { &self.object.as_ref().counts }
    }

    /// The number of owners: a snapshot.
    pub fn strong_count(this: &Self) -> usize {
        this.counts().owners()
    }

    /// The number of watchers: a snapshot.
    pub fn weak_count(this: &Self) -> usize {
        this.counts().watchers()
    }

    /// Whether both own the same object.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.object == other.object
    }

    /// The address of the value.
    pub fn as_ptr(this: &Self) -> *const T {
        &raw const **this
    }

    /// Makes a watcher.
    pub fn downgrade(this: &Self) -> ObjectWeak<T, H> {
        this.counts().watch_as_owner();
        ObjectWeak {
            object: this.object,
            home: this.home,
        }
    }

    /// The value, if there is no other owner and no watcher.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if !this.counts().is_alone() {
            return None;
        }
        // SAFETY: no other owner or watcher exists, and none can be made while this owner is
        // borrowed.
        Some(unsafe { &mut (*this.object.as_ptr()).value })
    }

    /// Moves the value out if there is no other owner; otherwise returns the owner.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if !this.counts().leave_if_last() {
            return Err(this);
        }
        let this = ManuallyDrop::new(this);
        // Holds the owners' share of `weak`, and gives it up when it is dropped.
        let _place = ObjectWeak {
            object: this.object,
            home: this.home,
        };
        // SAFETY: this was the last owner, and the value is moved out once.
        Ok(unsafe { addr_of_mut!((*this.object.as_ptr()).value).read() })
    }

    /// Moves the value out if there is no other owner. If several owners call this at once, exactly
    /// one gets the value.
    pub fn into_inner(this: Self) -> Option<T> {
        let this = ManuallyDrop::new(this);
        if !this.counts().leave() {
            return None;
        }
        let _place = ObjectWeak {
            object: this.object,
            home: this.home,
        };
        // SAFETY: as for try_unwrap.
        Some(unsafe { addr_of_mut!((*this.object.as_ptr()).value).read() })
    }

    #[cold]
    #[inline(never)]
    fn drop_value(&mut self) {
        // Holds the owners' share of `weak`, and gives it up even if the value's drop panics.
        let _place = ObjectWeak {
            object: self.object,
            home: self.home,
        };
        // SAFETY: this was the last owner.
        unsafe { addr_of_mut!((*self.object.as_ptr()).value).drop_in_place() }
    }
}

impl<T: Clone, H: CacheHome<Counted<T>>> ObjectArc<T, H> {
    /// A reference for changing the value. If there is another owner or a watcher, the value is
    /// cloned into an object of its own first.
    ///
    /// # Panics
    /// As [`new_in`](Self::new_in).
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        if !this.counts().is_alone() {
            let clone = Self::new_in(T::clone(this), this.home);
            *this = clone;
        }
        // SAFETY: there is no other owner and no watcher.
        unsafe { &mut (*this.object.as_ptr()).value }
    }
}

impl<T, H: CacheHome<Counted<T>>> Clone for ObjectArc<T, H> {
    #[inline]
    fn clone(&self) -> Self {
        self.counts().join();
        ObjectArc {
            object: self.object,
            home: self.home,
            owned: PhantomData,
        }
    }
}

impl<T, H: CacheHome<Counted<T>>> Drop for ObjectArc<T, H> {
    #[inline]
    fn drop(&mut self) {
        if self.counts().leave() {
            self.drop_value();
        }
    }
}

impl<T, H: CacheHome<Counted<T>>> Deref for ObjectArc<T, H> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value lives while there is an owner.
        unsafe { &self.object.as_ref().value }
    }
}

impl<T, H: CacheHome<Counted<T>>> ObjectWeak<T, H> {
    fn counts(&self) -> &Counts {
        // SAFETY: the memory of the counts lives while there is a watcher. The value may be gone,
        // so no reference to it is made.
        unsafe { &(*self.object.as_ptr()).counts }
    }

    /// Makes an owner. `None`: the value is gone.
    pub fn upgrade(&self) -> Option<ObjectArc<T, H>> {
        self.counts().upgrade().then(|| ObjectArc {
            object: self.object,
            home: self.home,
            owned: PhantomData,
        })
    }

    /// The number of owners: a snapshot.
    pub fn strong_count(&self) -> usize {
        self.counts().owners()
    }

    /// Whether both watch the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl<T, H: CacheHome<Counted<T>>> Clone for ObjectWeak<T, H> {
    fn clone(&self) -> Self {
        self.counts().watch();
        ObjectWeak {
            object: self.object,
            home: self.home,
        }
    }
}

impl<T, H: CacheHome<Counted<T>>> Drop for ObjectWeak<T, H> {
    fn drop(&mut self) {
        if self.counts().unwatch() {
            // SAFETY: there is no owner and no other watcher, and the memory was taken from this
            // home.
            unsafe { self.home.give(self.object) }
        }
    }
}

impl<T, H: CacheHome<Counted<T>>> fmt::Debug for ObjectWeak<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}

impl<T, H: CacheHome<Counted<T>>> AsRef<T> for ObjectArc<T, H> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, H: CacheHome<Counted<T>>> Borrow<T> for ObjectArc<T, H> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: fmt::Debug, H: CacheHome<Counted<T>>> fmt::Debug for ObjectArc<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: fmt::Display, H: CacheHome<Counted<T>>> fmt::Display for ObjectArc<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: PartialEq, H: CacheHome<Counted<T>>> PartialEq for ObjectArc<T, H> {
    fn eq(&self, other: &Self) -> bool {
        T::eq(self, other)
    }
}

impl<T: Eq, H: CacheHome<Counted<T>>> Eq for ObjectArc<T, H> {}

impl<T: PartialOrd, H: CacheHome<Counted<T>>> PartialOrd for ObjectArc<T, H> {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        T::partial_cmp(self, other)
    }
}

impl<T: Ord, H: CacheHome<Counted<T>>> Ord for ObjectArc<T, H> {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        T::cmp(self, other)
    }
}

impl<T: Hash, H: CacheHome<Counted<T>>> Hash for ObjectArc<T, H> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        T::hash(self, state);
    }
}
