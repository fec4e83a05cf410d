//! [`Slabyard`]: the heap as the allocator of a whole program, or of single containers.

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
/// With the feature `allocator-api2`, it also implements `allocator_api2::alloc::Allocator`, for
/// single containers.
///
/// # Unused memory returns by itself
///
/// As the allocator of a program, it has the default `maintenance=auto`, as the drop-in `malloc`
/// does: the allocation that finds 16 MiB in use starts a background thread, which returns memory
/// that has not been used for a second. So a server gives its spike back even when it only serves
/// a few requests. The thread blocks all signals and never keeps the process alive. The child of a
/// fork starts its own.
///
/// Say `SLABYARD=maintenance=no`, or call `set_options("maintenance=no")` or
/// [`stop_maintenance`](crate::stop_maintenance), if the program must have no such thread: for
/// system calls that need a process with one thread (`unshare(CLONE_NEWUSER)`), and before a filter
/// for system calls ([`enter_sandbox`](crate::enter_sandbox)). Threads then return memory on slow
/// paths, and a program that never takes one keeps its memory. With the feature `dlopen`, no thread
/// starts by itself.
///
/// # Layouts
///
/// All alignments are supported. If memory is freed that is not the heap's, this is reported at
/// once. The same holds for a free with a size of another size class, unless the alignment is above
/// 16. Thread rule: all functions may be called from any thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slabyard;

// SAFETY: the heap respects layouts, does not unwind, and gives out memory that no other code uses.
unsafe impl GlobalAlloc for Slabyard {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap::alloc_for_program(layout)
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

    /// A block of 0 bytes, at an aligned address.
    pub(crate) fn nothing(layout: Layout) -> NonNull<[u8]> {
        let place = core::ptr::without_provenance_mut(layout.align());
        // SAFETY: an alignment is not 0.
        unsafe { NonNull::new_unchecked(slice_from_raw_parts_mut(place, 0)) }
    }

    fn block(object: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
        let object = NonNull::new(object).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(object, size))
    }

    /// Moves a block into a new block of another layout.
    ///
    /// # Safety
    /// `object` is a live block of `allocator` with layout `old`. After success, it must not be
    /// used again.
    #[cold]
    pub(crate) unsafe fn moved(
        allocator: &impl Allocator,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let moved = allocator.allocate(new)?;
        let bytes = old.size().min(new.size());
        // SAFETY: both have this many bytes, and do not overlap.
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

    // SAFETY: blocks do not move, and any `Slabyard` can free them.
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
            // SAFETY: as the caller says; the bytes behind the old ones belong to the block.
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
