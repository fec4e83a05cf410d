//! An owner of a value.

use super::{count_up, counts, Borrowed, Forget, Node, Ref, RefMut, Weak};
use crate::home::{Home, In};
use crate::slot::Owned;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// An owner of a value in an [`RcPool`](crate::RcPool); see [`Shared`].
pub type RcSlot<'p, T> = Shared<T, In<'p>>;

/// One of several owners of a value in a slot: an `Rc<RefCell<T>>` whose memory is a pool's.
///
/// The value is dropped with its last owner; the slot goes back when there is no [`Weak`] either.
/// What is looked at is borrowed, which is checked when the program runs. Owners cannot leave
/// their thread.
///
/// ```
/// let pool = slabyard::RcPool::unbounded();
/// let first = pool.insert(vec![1]);
/// let second = first.clone();
/// second.borrow_mut().push(2);
/// assert_eq!(*first.borrow(), [1, 2]);
/// assert_eq!(first.strong_count(), 2);
/// ```
pub struct Shared<T, H: Home> {
    node: NonNull<Node<T>>,
    home: H,
    owns: PhantomData<T>,
}

impl<T, H: Home> Shared<T, H> {
    /// # Safety
    /// The node is one of the home, holds a value, and counts the caller as an owner.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(node: NonNull<Node<T>>, home: H) -> Shared<T, H> {
        Shared {
            node,
            home,
            owns: PhantomData,
        }
    }

    #[inline(always)]
    fn counts(&self) -> &super::Counts {
        // SAFETY: we are an owner, so the slot is there.
        unsafe { counts(self.node) }
    }

    #[inline(always)]
    fn value(&self) -> *mut T {
        // SAFETY: we are an owner, so the value is there; no reference is made.
        unsafe { (&raw mut (*self.node.as_ptr()).value).cast() }
    }

    /// Looks at the value.
    ///
    /// # Panics
    /// Somebody may change it: a [`RefMut`] is there.
    #[inline]
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        match self.try_borrow() {
            Ok(value) => value,
            Err(borrowed) => borrowed.panic(),
        }
    }

    /// Looks at the value.
    ///
    /// # Errors
    /// [`Borrowed`]: a [`RefMut`] is there.
    #[inline]
    pub fn try_borrow(&self) -> Result<Ref<'_, T>, Borrowed> {
        // SAFETY: the value is there as long as we are, who are borrowed.
        unsafe { Ref::new(&*self.value().cast(), &self.counts().borrows) }
    }

    /// Looks at the value, to change it.
    ///
    /// # Panics
    /// Somebody looks at it: a [`Ref`] or [`RefMut`] is there.
    #[inline]
    #[track_caller]
    pub fn borrow_mut(&self) -> RefMut<'_, T> {
        match self.try_borrow_mut() {
            Ok(value) => value,
            Err(borrowed) => borrowed.panic(),
        }
    }

    /// Looks at the value, to change it.
    ///
    /// # Errors
    /// [`Borrowed`]: a [`Ref`] or [`RefMut`] is there.
    #[inline]
    pub fn try_borrow_mut(&self) -> Result<RefMut<'_, T>, Borrowed> {
        // SAFETY: as in try_borrow.
        unsafe { RefMut::new(&*self.value().cast(), &self.counts().borrows) }
    }

    /// The value itself, if nobody else owns or knows of it.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: the only name of the slot is borrowed for that long, so nobody else looks at the
        // value; a borrow that was forgotten cannot.
        (self.is_only()).then(|| unsafe { &mut *self.value() })
    }

    /// How many own the value.
    #[inline]
    pub fn strong_count(&self) -> usize {
        self.counts().strong.get() as usize
    }

    /// How many know of it and do not own it.
    #[inline]
    pub fn weak_count(&self) -> usize {
        self.counts().weak.get() as usize - 1
    }

    fn is_only(&self) -> bool {
        self.strong_count() == 1 && self.weak_count() == 0
    }

    /// A name of the slot that does not keep the value.
    ///
    /// # Panics
    /// There are 4 billion.
    #[inline]
    #[track_caller]
    pub fn downgrade(&self) -> Weak<T, H> {
        count_up(&self.counts().weak);
        // SAFETY: it was counted.
        unsafe { Weak::from_parts(self.node, self.home) }
    }

    /// Is it the same value, in the same slot?
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.node == other.node
    }

    /// Where the value lies, for as long as it is owned.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.value()
    }

    /// Takes the value out, if nobody else owns it. Who knows of it finds it gone.
    ///
    /// # Errors
    /// This, if there are other owners.
    #[inline]
    pub fn try_into_inner(self) -> Result<T, Self> {
        if self.strong_count() != 1 {
            return Err(self);
        }
        let last = ManuallyDrop::new(self);
        last.counts().strong.set(0);
        let _forget = Forget(last.node, last.home);
        // SAFETY: the last owner's value, which nobody can reach any more.
        Ok(unsafe { last.value().read() })
    }

    /// The slot as that of a plain value, if nobody else owns or knows of it.
    ///
    /// # Errors
    /// This, if there are others.
    #[inline]
    pub fn try_into_slot(self) -> Result<Owned<T, H>, Self> {
        if !self.is_only() {
            return Err(self);
        }
        let last = ManuallyDrop::new(self);
        // SAFETY: the slot is ours alone and holds a value, at its start.
        Ok(unsafe { Owned::from_parts(last.node.cast(), last.home) })
    }
}

impl<T, H: Home> Clone for Shared<T, H> {
    /// One more owner.
    ///
    /// # Panics
    /// There are 4 billion.
    #[inline]
    #[track_caller]
    fn clone(&self) -> Self {
        count_up(&self.counts().strong);
        // SAFETY: it was counted.
        unsafe { Shared::from_parts(self.node, self.home) }
    }
}

impl<T, H: Home> Drop for Shared<T, H> {
    #[inline]
    fn drop(&mut self) {
        let strong = &self.counts().strong;
        let left = strong.get() - 1;
        strong.set(left);
        if left == 0 {
            let _forget = Forget(self.node, self.home);
            // SAFETY: the last owner's value. While it is dropped, it cannot be had by a weak name.
            unsafe { self.value().drop_in_place() }
        }
    }
}

// The value does not move with its owners.
impl<T, H: Home> Unpin for Shared<T, H> {}

impl<T: fmt::Debug, H: Home> fmt::Debug for Shared<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_borrow() {
            Ok(value) => value.fmt(f),
            Err(borrowed) => fmt::Debug::fmt(&borrowed, f),
        }
    }
}
