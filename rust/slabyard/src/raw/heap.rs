//! Memory of any size. Each function that gets an object also gets the layout of its allocation.

pub(crate) use backend::{alloc, alloc_for_program, alloc_zeroed, free, resize};

#[cfg(not(miri))]
mod backend {
    use core::alloc::Layout;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use slabyard_sys as sys;

    /// Whether `sy_malloc` aligns well enough: it aligns to 16 bytes, and to 8 for sizes up to 8.
    #[inline(always)]
    const fn is_plain(layout: Layout) -> bool {
        layout.align() <= 8 || (layout.align() == 16 && layout.size() > 8)
    }

    #[inline(always)]
    pub(crate) fn alloc(layout: Layout) -> *mut u8 {
        // SAFETY: an alignment of a layout is a power of two.
        unsafe {
            if is_plain(layout) {
                sys::sy_malloc(layout.size()).cast()
            } else {
                sys::sy_aligned_alloc(layout.align(), layout.size()).cast()
            }
        }
    }

    /// The largest alignment for which the program's allocator needs no other look at a layout: 0
    /// until its first allocation, then 8. So the first allocation is found without an instruction
    /// of its own.
    static PLAIN_ALIGN: AtomicUsize = AtomicUsize::new(0);

    /// [`alloc`] for the allocator of the program. The first one makes `maintenance=auto` the
    /// default.
    #[inline(always)]
    pub(crate) fn alloc_for_program(layout: Layout) -> *mut u8 {
        let (align, size) = (layout.align(), layout.size());
        if align <= PLAIN_ALIGN.load(Ordering::Relaxed) || (align == 16 && size > 8) {
            // SAFETY: any size.
            return unsafe { sys::sy_malloc(size).cast() };
        }
        alloc_for_program_slow(layout)
    }

    #[cold]
    #[inline(never)]
    fn alloc_for_program_slow(layout: Layout) -> *mut u8 {
        if PLAIN_ALIGN.swap(8, Ordering::Relaxed) == 0 {
            be_the_allocator();
        }
        alloc(layout)
    }

    #[cfg(not(feature = "dlopen"))]
    fn be_the_allocator() {
        // SAFETY: any thread may call it. It changes words of the library only.
        unsafe { sys::sy_options_auto_maintenance() }
    }

    /// A plug-in starts no thread in a program that does not know of it.
    #[cfg(feature = "dlopen")]
    fn be_the_allocator() {}

    #[inline(always)]
    pub(crate) fn alloc_zeroed(layout: Layout) -> *mut u8 {
        // SAFETY: an alignment of a layout is a power of two.
        unsafe {
            if is_plain(layout) {
                sys::sy_zalloc(layout.size()).cast()
            } else {
                sys::sy_aligned_calloc(layout.align(), 1, layout.size()).cast()
            }
        }
    }

    /// # Safety
    /// `object` is live, was allocated or resized to this layout, and is not used again.
    #[inline(always)]
    pub(crate) unsafe fn free(object: *mut u8, layout: Layout) {
        // SAFETY: as the caller says. An aligned object may lie in a larger size class than its
        // size's.
        unsafe {
            if is_plain(layout) {
                sys::sy_free_sized(object.cast(), layout.size());
            } else {
                sys::sy_free(object.cast());
            }
        }
    }

    /// Resizes an object and keeps its alignment. Null: there is no memory, and the old object
    /// stays.
    ///
    /// # Safety
    /// `object` is live, and was allocated or resized to this layout. It is not used again unless
    /// null is returned. `size` rounded up to the alignment is at most `isize::MAX`.
    #[inline(always)]
    pub(crate) unsafe fn resize(object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            if is_plain(layout) && is_plain(wanted) {
                sys::sy_realloc(object.cast(), size).cast()
            } else {
                move_to(object, layout, wanted)
            }
        }
    }

    /// # Safety
    /// As for [`resize`].
    #[cold]
    unsafe fn move_to(object: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        let moved = alloc(wanted);
        if !moved.is_null() {
            // SAFETY: both have this many bytes.
            unsafe {
                moved.copy_from_nonoverlapping(object, layout.size().min(wanted.size()));
                free(object, layout);
            }
        }
        moved
    }
}

/// The model for Miri: the system's allocator.
#[cfg(miri)]
mod backend {
    use core::alloc::Layout;

    pub(crate) fn alloc(layout: Layout) -> *mut u8 {
        // SAFETY: callers of the crate's allocators do not ask for 0 bytes.
        unsafe { alloc::alloc::alloc(layout) }
    }

    pub(crate) fn alloc_for_program(layout: Layout) -> *mut u8 {
        alloc(layout)
    }

    pub(crate) fn alloc_zeroed(layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { alloc::alloc::alloc_zeroed(layout) }
    }

    pub(crate) unsafe fn free(object: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { alloc::alloc::dealloc(object, layout) }
    }

    pub(crate) unsafe fn resize(object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { alloc::alloc::realloc(object, layout, size) }
    }
}
