//! [`Shared`]: an owner of a value.

use super::{count_up, counts, Borrowed, Forget, Node, Ref, RefMut, Weak};
use crate::home::{Home, In};
use crate::slot::Owned;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// An owner of a value in an [`RcPool`](crate::RcPool); see [`Shared`].
pub type RcSlot<'p, T> = Shared<T, In<'p>>;

/// One of several owners of a value in a slot: like an `Rc<RefCell<T>>` with memory of a pool.
///
/// The value is dropped with its last owner. The slot is freed when there is no owner and no
/// [`Weak`]. The value is accessed by borrowing it, which is checked at run time. Owners cannot
/// leave their thread.
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
    /// The node belongs to the home and holds a value, and the caller is counted as an owner.
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
        // SAFETY: this is an owner, so the slot is not freed.
        unsafe { counts(self.node) }
    }

    #[inline(always)]
    fn value(&self) -> *mut T {
        // SAFETY: this is an owner, so the value exists; no reference is made.
        unsafe { (&raw mut (*self.node.as_ptr()).value).cast() }
    }

    /// Borrows the value for reading.
    ///
    /// # Panics
    /// If the value is borrowed for writing: a [`RefMut`] exists.
    #[inline]
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        match self.try_borrow() {
            Ok(value) => value,
            Err(borrowed) => borrowed.panic(),
        }
    }

    /// Borrows the value for reading.
    ///
    /// # Errors
    /// [`Borrowed`]: a [`RefMut`] exists.
    #[inline]
    pub fn try_borrow(&self) -> Result<Ref<'_, T>, Borrowed> {
        // SAFETY: the value exists as long as this owner, which is borrowed.
        unsafe { Ref::new(&*self.value().cast(), &self.counts().borrows) }
    }

    /// Borrows the value for writing.
    ///
    /// # Panics
    /// If the value is borrowed: a [`Ref`] or [`RefMut`] exists.
    #[inline]
    #[track_caller]
    pub fn borrow_mut(&self) -> RefMut<'_, T> {
        match self.try_borrow_mut() {
            Ok(value) => value,
            Err(borrowed) => borrowed.panic(),
        }
    }

    /// Borrows the value for writing.
    ///
    /// # Errors
    /// [`Borrowed`]: a [`Ref`] or [`RefMut`] exists.
    #[inline]
    pub fn try_borrow_mut(&self) -> Result<RefMut<'_, T>, Borrowed> {
        // SAFETY: as in try_borrow.
        unsafe { RefMut::new(&*self.value().cast(), &self.counts().borrows) }
    }

    /// The value, if there is no other owner and no weak reference.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: the only reference to the slot is borrowed for that long, so the value has no
        // other access. A guard that was forgotten gives none.
        (self.is_only()).then(|| unsafe { &mut *self.value() })
    }

    /// The number of owners.
    #[inline]
    pub fn strong_count(&self) -> usize {
        self.counts().strong.get() as usize
    }

    /// The number of weak references.
    #[inline]
    pub fn weak_count(&self) -> usize {
        self.counts().weak.get() as usize - 1
    }

    fn is_only(&self) -> bool {
        self.strong_count() == 1 && self.weak_count() == 0
    }

    /// Makes a weak reference.
    ///
    /// # Panics
    /// If there are 4 billion of them.
    #[inline]
    #[track_caller]
    pub fn downgrade(&self) -> Weak<T, H> {
        count_up(&self.counts().weak);
        // SAFETY: it was counted.
        unsafe { Weak::from_parts(self.node, self.home) }
    }

    /// Whether both own the same value, in the same slot.
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.node == other.node
    }

    /// The address of the value; valid while it has an owner.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.value()
    }

    /// Moves the value out if there is no other owner. Weak references can then no longer be
    /// upgraded.
    ///
    /// # Errors
    /// This owner, if there are others.
    #[inline]
    pub fn try_into_inner(self) -> Result<T, Self> {
        if self.strong_count() != 1 {
            return Err(self);
        }
        let last = ManuallyDrop::new(self);
        last.counts().strong.set(0);
        let _forget = Forget(last.node, last.home);
        // SAFETY: this was the last owner, so the value cannot be reached any more.
        Ok(unsafe { last.value().read() })
    }

    /// Turns this owner into the slot of a plain value, if there is no other owner and no weak
    /// reference.
    ///
    /// # Errors
    /// This owner, if there are others or weak references.
    #[inline]
    pub fn try_into_slot(self) -> Result<Owned<T, H>, Self> {
        if !self.is_only() {
            return Err(self);
        }
        let last = ManuallyDrop::new(self);
        // SAFETY: this is the only reference to the slot, which holds a value at its start.
        Ok(unsafe { Owned::from_parts(last.node.cast(), last.home) })
    }
}

impl<T, H: Home> Clone for Shared<T, H> {
    /// Makes another owner.
    ///
    /// # Panics
    /// If there are 4 billion of them.
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
            // SAFETY: this was the last owner. While the value is dropped, no weak reference can be
            // upgraded.
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
