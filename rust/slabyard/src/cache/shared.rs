//! Objects that are counted: the counts are in the slot, beside the value.

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

/// A value with its counts: what a cache holds whose objects are shared, as
/// `Cache<Counted<T>>`. 16 bytes more than the value.
#[repr(C)]
pub struct Counted<T> {
    counts: Counts,
    value: T,
}

impl<T> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

/// Owns an object of a home together with others, as `Arc` owns one of the heap.
///
/// [`CacheArc`] is the one of a [`Cache`], `StaticArc` that of a static cache.
///
/// Thread rule: goes to other threads where `T` is `Send` and `Sync`; the last one drops the value,
/// in whatever thread that is.
pub struct ObjectArc<T, H: CacheHome<Counted<T>>> {
    object: NonNull<Counted<T>>,
    home: H,
    owned: PhantomData<Counted<T>>,
}

/// Keeps the place of a shared object, and becomes an owner while there is one.
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

// SAFETY: as std::sync::Arc: others may reach the value, and this thread may drop it.
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
    /// Puts a value into a home, with a count of one.
    ///
    /// # Panics
    /// If the limit of the cache is reached. Where there is no memory, it does as `Arc::new`.
    #[inline]
    #[track_caller]
    pub fn new_in(value: T, home: H) -> Self {
        match Self::try_new_in(value, home) {
            Ok(arc) => arc,
            Err(_) => no_room::<Counted<T>>(),
        }
    }

    /// Puts a value into a home, with a count of one, or gives it back: there is no room.
    #[inline]
    pub fn try_new_in(value: T, home: H) -> Result<Self, Full<T>> {
        let Some(object) = home.take() else {
            return Err(Full(value));
        };
        // SAFETY: the place is ours.
        unsafe {
            object.write(Counted {
                counts: Counts::new(),
                value,
            })
        };
        Ok(ObjectArc {
            object,
            home,
            owned: PhantomData,
        })
    }

    /// A value that has a way to itself: `make` is given a watcher, which upgrades once it has
    /// returned.
    ///
    /// # Panics
    /// As [`new_in`](Self::new_in), and where `make` does; then the room goes back with the last
    /// watcher.
    #[track_caller]
    pub fn new_cyclic_in(home: H, make: impl FnOnce(&ObjectWeak<T, H>) -> T) -> Self {
        let Some(object) = home.take() else {
            no_room::<Counted<T>>();
        };
        // SAFETY: the place is ours; the counts are written before anyone sees them, the value
        // before anyone is an owner.
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

    /// Puts a value into a home, with a count of one, pinned: all its owners are clones of this one, so
    /// none of them can move it out. An owner that is there already cannot be pinned, since its clones could
    /// still move the value.
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
        // SAFETY: there is no other owner and no watcher, and a pinned owner makes pinned ones only.
        // None gives a `Self` or `&mut T` out; the memory is given back after the value was dropped,
        // or never.
        unsafe { Pin::new_unchecked(Self::new_in(value, home)) }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: the place lives while there is an owner.
        unsafe { &self.object.as_ref().counts }
    }

    /// How many own the object: a snapshot.
    pub fn strong_count(this: &Self) -> usize {
        this.counts().owners()
    }

    /// How many watch it: a snapshot.
    pub fn weak_count(this: &Self) -> usize {
        this.counts().watchers()
    }

    /// Whether both own the same object.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.object == other.object
    }

    /// Its address.
    pub fn as_ptr(this: &Self) -> *const T {
        &raw const **this
    }

    /// A watcher.
    pub fn downgrade(this: &Self) -> ObjectWeak<T, H> {
        this.counts().watch_as_owner();
        ObjectWeak {
            object: this.object,
            home: this.home,
        }
    }

    /// The value, if nobody else owns or watches it.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if !this.counts().is_alone() {
            return None;
        }
        // SAFETY: nobody else can reach it, as long as this owner is borrowed.
        Some(unsafe { &mut (*this.object.as_ptr()).value })
    }

    /// The value out of its place, if nobody else owns it; else the owner back.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if !this.counts().leave_if_last() {
            return Err(this);
        }
        let this = ManuallyDrop::new(this);
        // The owners' share of `weak`.
        let _place = ObjectWeak {
            object: this.object,
            home: this.home,
        };
        // SAFETY: it was the last owner, and the value is moved out once.
        Ok(unsafe { addr_of_mut!((*this.object.as_ptr()).value).read() })
    }

    /// The value out of its place, if nobody else owns it: of several owners that ask at once, one
    /// gets it.
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
        // The owners' share of `weak`, given up even if the value's drop panics.
        let _place = ObjectWeak {
            object: self.object,
            home: self.home,
        };
        // SAFETY: it was the last owner.
        unsafe { addr_of_mut!((*self.object.as_ptr()).value).drop_in_place() }
    }
}

impl<T: Clone, H: CacheHome<Counted<T>>> ObjectArc<T, H> {
    /// The value to be changed: this one if nobody else owns or watches it, else a clone of it in an
    /// object of its own.
    ///
    /// # Panics
    /// As [`new_in`](Self::new_in).
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        if !this.counts().is_alone() {
            let clone = Self::new_in(T::clone(this), this.home);
            *this = clone;
        }
        // SAFETY: nobody else can reach it.
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
        // SAFETY: the place lives while there is a watcher; the value may be gone, so that no
        // reference is made to it.
        unsafe { &(*self.object.as_ptr()).counts }
    }

    /// An owner; `None`: the value is gone.
    pub fn upgrade(&self) -> Option<ObjectArc<T, H>> {
        self.counts().upgrade().then(|| ObjectArc {
            object: self.object,
            home: self.home,
            owned: PhantomData,
        })
    }

    /// How many own the object: a snapshot.
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
            // SAFETY: nobody owns or watches it any more, and it was taken from there.
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
