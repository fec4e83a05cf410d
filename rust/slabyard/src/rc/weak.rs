//! A name of a slot that does not keep the value.

use super::{count_up, counts, Forget, Node, Shared};
use crate::home::{Home, In};
use core::fmt;
use core::ptr::NonNull;

/// A name of a slot in an [`RcPool`](crate::RcPool) that does not keep its value; see [`Weak`].
pub type WeakSlot<'p, T> = Weak<T, In<'p>>;

/// A name of a slot that keeps the slot but not the value.
///
/// ```
/// let pool = slabyard::RcPool::unbounded();
/// let owner = pool.insert(1);
/// let weak = owner.downgrade();
/// assert_eq!(*weak.upgrade().unwrap().borrow(), 1);
/// drop(owner);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(pool.in_use(), 1);
/// drop(weak);
/// assert_eq!(pool.in_use(), 0);
/// ```
pub struct Weak<T, H: Home> {
    node: NonNull<Node<T>>,
    home: H,
}

impl<T, H: Home> Weak<T, H> {
    /// # Safety
    /// The node is one of the home, and counts the caller as one who knows of it.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(node: NonNull<Node<T>>, home: H) -> Weak<T, H> {
        Weak { node, home }
    }

    #[inline(always)]
    fn counts(&self) -> &super::Counts {
        // SAFETY: the slot is there as long as anybody knows of it.
        unsafe { counts(self.node) }
    }

    /// An owner of the value, if it is still there.
    ///
    /// # Panics
    /// There are 4 billion.
    #[inline]
    #[track_caller]
    pub fn upgrade(&self) -> Option<Shared<T, H>> {
        let strong = &self.counts().strong;
        if strong.get() == 0 {
            return None;
        }
        count_up(strong);
        // SAFETY: it was counted, and the value is there.
        Some(unsafe { Shared::from_parts(self.node, self.home) })
    }

    /// How many own the value.
    #[inline]
    pub fn strong_count(&self) -> usize {
        self.counts().strong.get() as usize
    }

    /// Is it the same slot?
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T, H: Home> Clone for Weak<T, H> {
    #[inline]
    #[track_caller]
    fn clone(&self) -> Self {
        count_up(&self.counts().weak);
        // SAFETY: it was counted.
        unsafe { Weak::from_parts(self.node, self.home) }
    }
}

impl<T, H: Home> Drop for Weak<T, H> {
    #[inline]
    fn drop(&mut self) {
        drop(Forget(self.node, self.home));
    }
}

impl<T, H: Home> fmt::Debug for Weak<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
