//! The heap as the allocator of a whole program, and of single containers.

use core::alloc::{GlobalAlloc, Layout};

use crate::raw::heap;

/// The heap: memory of any size, for any thread.
///
/// As the allocator of a program:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;
///
/// fn main() {
///     let text: String = "any allocation".into();
///     assert!(slabyard::stats().mapped > text.len());
/// }
/// ```
///
/// With the feature `allocator-api2` it is an `allocator_api2::alloc::Allocator` as well, for single
/// containers.
///
/// Any alignment is kept. A free of what is not the heap's is reported at once. So is a free with a size
/// of another size class, unless the alignment is above 16. Thread rule: all of it from any
/// thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slabyard;

// SAFETY: the heap keeps layouts, does not unwind, and gives out what nobody else has.
unsafe impl GlobalAlloc for Slabyard {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap::alloc(layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        heap::alloc_zeroed(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { heap::free(object, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { heap::resize(object, layout, size) }
    }
}

#[cfg(feature = "allocator-api2")]
mod api2 {
    use allocator_api2::alloc::{AllocError, Allocator};
    use core::alloc::Layout;
    use core::ptr::{slice_from_raw_parts_mut, NonNull};

    use super::Slabyard;
    use crate::raw::heap;

    /// No bytes at all, at an address that is aligned.
    pub(crate) fn nothing(layout: Layout) -> NonNull<[u8]> {
        let place = core::ptr::without_provenance_mut(layout.align());
        // SAFETY: an alignment is not 0.
        unsafe { NonNull::new_unchecked(slice_from_raw_parts_mut(place, 0)) }
    }

    fn block(object: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
        let object = NonNull::new(object).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(object, size))
    }

    /// A block of another layout with the same bytes.
    ///
    /// # Safety
    /// `object` is a live block of `allocator`, of layout `old`; unless it fails, it is gone.
    #[cold]
    pub(crate) unsafe fn moved(
        allocator: &impl Allocator,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = allocator.allocate(new)?;
        let bytes = old.size().min(new.size());
        // SAFETY: both have as many bytes, and lie apart.
        unsafe {
            moved.cast::<u8>().copy_from_nonoverlapping(object, bytes);
            allocator.deallocate(object, old);
        }
        Ok(moved)
    }

    impl Slabyard {
        /// Grows or shrinks a block.
        ///
        /// # Safety
        /// As [`moved`].
        pub(crate) unsafe fn change(
            &self,
            object: NonNull<u8>,
            old: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            let (from, to) = (old.size(), new.size());
            // SAFETY: as the caller says.
            unsafe {
                if from > 0 && to > 0 && old.align() == new.align() {
                    block(heap::resize(object.as_ptr(), old, to), to)
                } else {
                    moved(self, object, old, new)
                }
            }
        }
    }

    // SAFETY: blocks stay where they are until they are given back to any `Slabyard`.
    unsafe impl Allocator for Slabyard {
        #[inline]
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(nothing(layout));
            }
            block(heap::alloc(layout), layout.size())
        }

        #[inline]
        fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if layout.size() == 0 {
                return Ok(nothing(layout));
            }
            block(heap::alloc_zeroed(layout), layout.size())
        }

        #[inline]
        unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
            if layout.size() > 0 {
                // SAFETY: as the caller says.
                unsafe { heap::free(object.as_ptr(), layout) }
            }
        }

        unsafe fn grow(
            &self,
            object: NonNull<u8>,
            old: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: as the caller says.
            unsafe { self.change(object, old, new) }
        }

        unsafe fn grow_zeroed(
            &self,
            object: NonNull<u8>,
            old: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: as the caller says; the bytes beyond the old ones are the block's.
            unsafe {
                let grown = self.grow(object, old, new)?;
                let rest = grown.cast::<u8>().add(old.size());
                rest.write_bytes(0, new.size() - old.size());
                Ok(grown)
            }
        }

        unsafe fn shrink(
            &self,
            object: NonNull<u8>,
            old: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            // SAFETY: as the caller says.
            unsafe { self.change(object, old, new) }
        }
    }
}

#[cfg(feature = "allocator-api2")]
pub(crate) use api2::{moved, nothing};
