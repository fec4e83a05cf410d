//! The common part of all raw handles: an address that the program must give back explicitly.
//!
//! There are four kinds: of typed slabs and of byte slabs, each with a movable or a pinned value.
//! They are separate types, so the macros here define them.

/// Panics because a handle was dropped instead of given back, unless the thread panics already.
#[cfg(debug_assertions)]
#[track_caller]
pub(crate) fn dropped<T>(handle: &str, remedy: &str) {
    #[cfg(feature = "std")]
    if std::thread::panicking() {
        return;
    }
    panic!(
        "{handle}<{}> dropped without being freed: {remedy}",
        core::any::type_name::<T>()
    );
}

/// Defines a raw handle of a value of type `T` at the start of a `$cell`. If `$cell` does not name
/// T, `$holds` is `T`; otherwise it is `()`.
macro_rules! handle {
    ($(#[$doc:meta])* $handle:ident of $cell:ty, holds $holds:ty, $shown:literal, $remedy:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $handle<T>(NonNull<$cell>, PhantomData<$holds>);

        impl<T> $handle<T> {
            /// The handle of a slot.
            ///
            /// # Safety
            /// The slot holds a T, and has no other handle that is used.
            #[inline(always)]
            pub(crate) unsafe fn of(value: NonNull<T>) -> Self {
                $handle(value.cast(), PhantomData)
            }

            /// The address of the value.
            #[inline(always)]
            fn place(&self) -> NonNull<T> {
                self.0.cast()
            }

            /// The address of the value; only the caller can free the slot from now on.
            #[inline(always)]
            pub(crate) fn into_place(self) -> NonNull<T> {
                ManuallyDrop::new(self).place()
            }

            /// The address of the slot.
            #[inline]
            pub fn as_ptr(&self) -> *mut $cell {
                self.0.as_ptr()
            }

            /// The address of the slot. It stays taken, and debug builds do not panic for it.
            /// [`from_raw`](Self::from_raw) makes a handle of it again.
            #[inline]
            pub fn into_raw(self) -> *mut $cell {
                ManuallyDrop::new(self).as_ptr()
            }

            /// The handle of a slot again.
            ///
            /// # Safety
            /// The address came from [`into_raw`](Self::into_raw) of this type, the slot has been
            /// taken since, and its value was not moved or dropped.
            #[inline]
            pub unsafe fn from_raw(cell: *mut $cell) -> Self {
                // SAFETY: no slot is at address 0.
                $handle(unsafe { NonNull::new_unchecked(cell) }, PhantomData)
            }
        }

        impl<T> Deref for $handle<T> {
            type Target = T;
            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: the slot holds a value, and its memory stays as long as it is taken.
                unsafe { self.place().as_ref() }
            }
        }

        impl<T> Borrow<T> for $handle<T> {
            #[inline]
            fn borrow(&self) -> &T {
                self
            }
        }

        impl<T: fmt::Debug> fmt::Debug for $handle<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($shown).field("value", &**self).finish()
            }
        }

        #[cfg(debug_assertions)]
        impl<T> Drop for $handle<T> {
            #[track_caller]
            fn drop(&mut self) {
                crate::handle::dropped::<T>($shown, $remedy);
            }
        }
    };
}

/// The functions of handles whose value may be changed and moved.
macro_rules! movable {
    ($handle:ident, $pinned:ident) => {
        impl<T> $handle<T> {
            /// Makes a second handle of the slot.
            ///
            /// # Safety
            /// The slot is freed by one of the two only, when the other is not used any more, and
            /// the value is not changed through one while a reference came from the other.
            #[inline]
            pub unsafe fn clone_ptr(&self) -> Self {
                $handle(self.0, PhantomData)
            }

            /// Pins the value: it can no longer be moved out of the slot. `free_pinned` drops it in
            /// place, and must be called before the slab is dropped.
            #[inline]
            pub fn into_pinned(self) -> $pinned<T> {
                // SAFETY: this handle is forgotten.
                unsafe { $pinned::of(self.into_place()) }
            }
        }

        impl<T> DerefMut for $handle<T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: as in deref; this is the only handle that is used.
                unsafe { self.place().as_mut() }
            }
        }

        impl<T> AsRef<T> for $handle<T> {
            #[inline]
            fn as_ref(&self) -> &T {
                self
            }
        }

        impl<T> AsMut<T> for $handle<T> {
            #[inline]
            fn as_mut(&mut self) -> &mut T {
                self
            }
        }

        impl<T> BorrowMut<T> for $handle<T> {
            #[inline]
            fn borrow_mut(&mut self) -> &mut T {
                self
            }
        }
    };
}

/// The functions of handles whose value must not move.
macro_rules! pinned {
    ($handle:ident) => {
        impl<T> $handle<T> {
            /// The value, pinned.
            #[inline]
            #[allow(clippy::should_implement_trait)] // as `Pin` has it
            pub fn as_ref(&self) -> Pin<&T> {
                // SAFETY: slots do not move, and this handle gives no way to move the value.
                unsafe { Pin::new_unchecked(self) }
            }

            /// The value, pinned, for changing it.
            #[inline]
            #[allow(clippy::should_implement_trait)] // as `Pin` has it
            pub fn as_mut(&mut self) -> Pin<&mut T> {
                // SAFETY: as in `as_ref`; this is the only handle that is used.
                unsafe { Pin::new_unchecked(self.place().as_mut()) }
            }
        }
    };
}

pub(crate) use {handle, movable, pinned};
