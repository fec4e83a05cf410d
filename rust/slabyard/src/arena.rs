//! [`Arena`]: a bump allocator for values of all types that are freed together.
//!
//! ```text
//!     chunk:  | free                    | value | value | value | footer |--> the chunk before it
//!             ^ start                   ^ top                   16 bytes aligned
//! ```
//!
//! Values are placed from the end of a chunk towards its start: then only one address has to be
//! rounded for alignment. `top` is always at a multiple of [`UNIT`].
//!
//! A function that makes values (`alloc_with`, `alloc_slice_with`) may panic, or use the arena. The
//! place of the value was taken before the call; if the function panics, the place is lost. The
//! function cannot reset the arena, because the arena is borrowed. The arena never drops, compares
//! or clones values.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::mem::needs_drop;
use core::ptr::NonNull;

use crate::raw::heap;
use crate::Full;

/// Each place has a multiple of this number of bytes: most types need no more alignment.
const UNIT: usize = 8;
/// The alignment of chunks and of the sizes of footers.
const CHUNK_ALIGN: usize = 16;
const FIRST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 1 << 20;

/// The descriptor at the end of a chunk.
#[repr(C, align(16))]
struct Footer {
    base: NonNull<u8>,
    /// Bytes of the chunk, including the footer.
    bytes: usize,
    before: Option<NonNull<Footer>>,
}

/// Values of all types and sizes that are freed together, as for a parse tree, a request or a
/// frame.
///
/// A value costs a compare and a store in addition to writing it, and nothing when it is freed: all
/// values are freed together, by [`reset`](Self::reset) or with the arena. So their types must have
/// nothing to drop, which is checked at compile time. Values may hold references to one another.
/// The memory comes from the heap, in chunks that grow up to 1 MiB.
///
/// For values that must be dropped, use a [`Pool`](crate::Pool), or caches with an
/// [`Epoch`](crate::Epoch).
///
/// Thread rule: one thread at a time. An arena that is not borrowed may be sent to another thread.
///
/// ```
/// use slabyard::Arena;
///
/// struct Node<'a> { name: &'a str, next: Option<&'a Node<'a>> }
///
/// let mut arena = Arena::new();
/// let last = arena.alloc(Node { name: arena.alloc_str("last"), next: None });
/// let first = arena.alloc(Node { name: "first", next: Some(last) });
/// assert_eq!(first.next.unwrap().name, "last");
/// arena.reset(); // no node can be used from here on
/// ```
///
/// A vector must be dropped, so this does not compile:
///
/// ```compile_fail
/// slabyard::Arena::new().alloc(vec![1]);
/// ```
///
/// With the feature `allocator-api2`, `&Arena` is an allocator. If a container grows and is not the
/// last allocation, it moves, and its old memory stays unused.
pub struct Arena {
    top: Cell<NonNull<u8>>,
    /// The lowest address of the chunk, as a number.
    start: Cell<usize>,
    newest: Cell<Option<NonNull<Footer>>>,
}

// SAFETY: the arena owns its chunks, and an arena that is sent has no references to its values.
unsafe impl Send for Arena {}

#[cold]
#[inline(never)]
#[track_caller]
fn no_room() -> ! {
    panic!("there is no memory for a value of an arena")
}

#[allow(clippy::mut_from_ref)] // each place is given out once
impl Arena {
    /// Creates an empty arena. Allocates nothing.
    pub const fn new() -> Self {
        Arena {
            top: Cell::new(NonNull::<u64>::dangling().cast()),
            start: Cell::new(align_of::<u64>()),
            newest: Cell::new(None),
        }
    }

    /// Puts a value into the arena.
    ///
    /// # Panics
    /// If there is no memory. All functions but [`try_alloc`](Self::try_alloc) panic then.
    #[inline(always)]
    #[track_caller]
    pub fn alloc<T>(&self, value: T) -> &mut T {
        self.alloc_with(|| value)
    }

    /// Puts a value into the arena.
    ///
    /// # Errors
    /// [`Full`], with the value: there is no memory, or a limit is reached.
    #[inline(always)]
    pub fn try_alloc<T>(&self, value: T) -> Result<&mut T, Full<T>> {
        const { assert!(!needs_drop::<T>(), "values of an arena are not dropped") }
        match self.place(Layout::new::<T>()) {
            // SAFETY: a place for a T that no other code uses, as long as the arena is borrowed.
            Some(place) => unsafe {
                let place = place.cast::<T>();
                place.write(value);
                Ok(&mut *place.as_ptr())
            },
            None => Err(Full(value)),
        }
    }

    /// Puts the value that the function returns into the arena, without a copy if the compiler can.
    /// The function may use the arena.
    #[inline(always)]
    #[track_caller]
    pub fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        const { assert!(!needs_drop::<T>(), "values of an arena are not dropped") }
        let Some(place) = self.place(Layout::new::<T>()) else {
            no_room()
        };
        // SAFETY: as in try_alloc.
        unsafe {
            let place = place.cast::<T>();
            place.write(make());
            &mut *place.as_ptr()
        }
    }

    /// Puts a copy of a slice into the arena.
    #[inline]
    #[track_caller]
    pub fn alloc_slice<T: Copy>(&self, values: &[T]) -> &mut [T] {
        let Some(place) = self.place(Layout::for_value(values)) else {
            no_room()
        };
        // SAFETY: a place for as many values, which does not overlap them.
        unsafe {
            let place = place.cast::<T>();
            place.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len());
            &mut *NonNull::slice_from_raw_parts(place, values.len()).as_ptr()
        }
    }

    /// Puts a copy of a string into the arena.
    #[inline]
    #[track_caller]
    pub fn alloc_str(&self, text: &str) -> &mut str {
        let bytes = self.alloc_slice(text.as_bytes());
        // SAFETY: the bytes are those of a string.
        unsafe { core::str::from_utf8_unchecked_mut(bytes) }
    }

    /// Puts `count` values into the arena, each made by the function from its index. The function
    /// may use the arena.
    #[track_caller]
    pub fn alloc_slice_with<T>(&self, count: usize, mut make: impl FnMut(usize) -> T) -> &mut [T] {
        const { assert!(!needs_drop::<T>(), "values of an arena are not dropped") }
        let layout = Layout::array::<T>(count).ok();
        let Some(place) = layout.and_then(|layout| self.place(layout)) else {
            no_room()
        };
        // SAFETY: a place for as many values, all of which are written.
        unsafe {
            let place = place.cast::<T>();
            (0..count).for_each(|index| place.add(index).write(make(index)));
            &mut *NonNull::slice_from_raw_parts(place, count).as_ptr()
        }
    }

    /// Frees all values. The newest chunk, usually the largest, is kept for new values.
    pub fn reset(&mut self) {
        let Some(newest) = self.newest.get() else {
            return;
        };
        // SAFETY: the arena owns its chunks, and no reference to a value exists.
        unsafe {
            free_chunks((*newest.as_ptr()).before.take());
        }
        self.top.set(newest.cast());
    }

    /// Frees all values and all memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The number of bytes of all chunks, used or not.
    pub fn allocated_bytes(&self) -> usize {
        let mut bytes = 0;
        let mut chunk = self.newest.get();
        while let Some(footer) = chunk {
            // SAFETY: chunks exist as long as the arena.
            let footer = unsafe { footer.as_ref() };
            bytes += footer.bytes;
            chunk = footer.before;
        }
        bytes
    }

    /// Takes memory that no other code uses. `None`: there is no memory.
    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.place_here(layout) {
            None => self.place_in_new(layout),
            there => there,
        }
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        // No layout is large enough for this to overflow.
        let bytes = (layout.size() + (UNIT - 1)) & !(UNIT - 1);
        let top = self.top.get();
        let room = top.addr().get() - self.start.get();
        let past = if layout.align() > UNIT {
            // The bytes from the rounded-down address to `top`.
            let odd = top.addr().get().wrapping_sub(bytes) & (layout.align() - 1);
            bytes.checked_add(odd)?
        } else {
            bytes
        };
        if past > room {
            return None;
        }
        // SAFETY: the chunk has this many bytes below `top`; without a chunk, the number is 0.
        let place = unsafe { top.sub(past) };
        self.top.set(place);
        Some(place)
    }

    #[cold]
    #[inline(never)]
    fn place_in_new(&self, layout: Layout) -> Option<NonNull<u8>> {
        let next = self.allocated_bytes().clamp(FIRST_CHUNK, LARGEST_CHUNK);
        let extra = size_of::<Footer>() + UNIT + layout.align();
        let bytes = layout.size().checked_add(extra)?.max(next);
        let bytes = bytes.checked_next_multiple_of(CHUNK_ALIGN)?;
        let chunk = Layout::from_size_align(bytes, CHUNK_ALIGN).ok()?;
        let base = NonNull::new(heap::alloc(chunk))?;
        // SAFETY: the footer lies in the chunk, and is aligned as the chunk's end is.
        unsafe {
            let footer = base.add(bytes - size_of::<Footer>()).cast::<Footer>();
            footer.write(Footer {
                base,
                bytes,
                before: self.newest.get(),
            });
            self.newest.set(Some(footer));
            self.top.set(footer.cast());
        }
        self.start.set(base.addr().get());
        self.place_here(layout)
    }
}

/// # Safety
/// The caller owns these chunks, each with the ones before it, and does not use them again.
unsafe fn free_chunks(mut chunk: Option<NonNull<Footer>>) {
    while let Some(footer) = chunk {
        // SAFETY: as the caller says; the chunk was allocated with this layout.
        unsafe {
            let Footer {
                base,
                bytes,
                before,
            } = footer.read();
            chunk = before;
            let layout = Layout::from_size_align_unchecked(bytes, CHUNK_ALIGN);
            heap::free(base.as_ptr(), layout);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: as in reset.
        unsafe { free_chunks(self.newest.take()) }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("allocated_bytes", &self.allocated_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "allocator-api2")]
mod api2 {
    use allocator_api2::alloc::{AllocError, Allocator};
    use core::alloc::Layout;
    use core::ptr::NonNull;

    use super::{Arena, UNIT};

    // SAFETY: a place stays and is used by no other code as long as the arena is borrowed, also
    // when the reference is moved or copied.
    unsafe impl Allocator for &Arena {
        #[inline]
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            let place = self.place(layout).ok_or(AllocError)?;
            Ok(NonNull::slice_from_raw_parts(place, layout.size()))
        }

        /// Frees the place if it is the last one; otherwise does nothing.
        #[inline]
        unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
            if object == self.top.get() {
                let bytes = (layout.size() + (UNIT - 1)) & !(UNIT - 1);
                // SAFETY: it was placed in the chunk, at the top. The object's own pointer may be
                // valid for the object only; `top` is valid for the whole chunk.
                self.top.set(unsafe { self.top.get().add(bytes) });
            }
        }

        #[inline]
        unsafe fn shrink(
            &self,
            object: NonNull<u8>,
            _: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            if object.addr().get() & (new.align() - 1) != 0 {
                let moved = self.allocate(new)?;
                // SAFETY: both have this many bytes, and do not overlap.
                unsafe { moved.cast().copy_from_nonoverlapping(object, new.size()) };
                return Ok(moved);
            }
            Ok(NonNull::slice_from_raw_parts(object, new.size()))
        }
    }
}
