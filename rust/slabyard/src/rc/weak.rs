//! [`Weak`]: a reference to a slot that does not keep the value.

use super::{count_up, counts, Forget, Node, Shared};
use crate::home::{Home, In};
use core::fmt;
use core::ptr::NonNull;

/// A weak reference to a slot in an [`RcPool`](crate::RcPool); see [`Weak`].
pub type WeakSlot<'p, T> = Weak<T, In<'p>>;

/// A reference to a slot that keeps the slot but not the value.
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
    /// The node belongs to the home, and the caller is counted as a weak reference.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(node: NonNull<Node<T>>, home: H) -> Weak<T, H> {
        Weak { node, home }
    }

    #[inline(always)]
    fn counts(&self) -> &super::Counts {
        // SAFETY: the slot is not freed while a weak reference exists.
        unsafe { counts(self.node) }
    }

    /// Makes an owner, if the value still exists.
    ///
    /// # Panics
    /// If there are 4 billion of them.
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

    /// The number of owners.
    #[inline]
    pub fn strong_count(&self) -> usize {
        self.counts().strong.get() as usize
    }

    /// Whether both refer to the same slot.
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
