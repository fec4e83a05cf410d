//! Values of all types that go together.
//!
//! ```text
//!     chunk:  | free                    | value | value | value | footer |--> the chunk before it
//!             ^ start                   ^ top                   16 bytes aligned
//! ```
//!
//! Values are placed downward, so that what is rounded for alignment is an address and not a size and an
//! address. `top` is always at a multiple of [`UNIT`].
//!
//! A maker (`alloc_with`, `alloc_slice_with`) may panic, or use the arena: its place was taken before, and is lost
//! then. It cannot reset the arena, which is borrowed. Values are never dropped, compared or cloned here.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::mem::needs_drop;
use core::ptr::NonNull;

use crate::raw::heap;
use crate::Full;

/// Bytes of which each place is a multiple: most types need no more alignment.
const UNIT: usize = 8;
/// Of chunks, and of footers' sizes.
const CHUNK_ALIGN: usize = 16;
const FIRST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 1 << 20;

/// At the end of a chunk.
#[repr(C, align(16))]
struct Footer {
    base: NonNull<u8>,
    /// Of the chunk, the footer included.
    bytes: usize,
    before: Option<NonNull<Footer>>,
}

/// Values of all types and sizes that go together: a parse tree, what a request or a frame needs.
///
/// A value costs a compare and a store beside itself, and nothing when it goes: all go at once, with
/// [`reset`](Self::reset) or with the arena. So they are of types that have nothing to drop, which is seen
/// when the program is compiled; they may hold references to one another. Memory is of the heap, in
/// chunks that become larger up to 1 MiB.
///
/// What is to be dropped lies in a [`Pool`](crate::Pool), or, if it is dropped one by one all the same,
/// in caches with an [`Epoch`](crate::Epoch).
///
/// Thread rule: one thread at a time; an arena that nobody borrows may be sent to another.
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
/// A vector would have to be dropped:
///
/// ```compile_fail
/// slabyard::Arena::new().alloc(vec![1]);
/// ```
///
/// With the feature `allocator-api2`, `&Arena` is an allocator: containers that are larger than the last
/// one move, and leave their old memory behind.
pub struct Arena {
    top: Cell<NonNull<u8>>,
    /// The lowest address of the chunk, and no pointer.
    start: Cell<usize>,
    newest: Cell<Option<NonNull<Footer>>>,
}

// SAFETY: chunks are the arena's, and nobody has a reference to a value of one that is sent.
unsafe impl Send for Arena {}

#[cold]
#[inline(never)]
#[track_caller]
fn no_room() -> ! {
    panic!("there is no memory for a value of an arena")
}

#[allow(clippy::mut_from_ref)] // each place is given out once
impl Arena {
    /// An empty arena. Allocates nothing.
    pub const fn new() -> Self {
        Arena {
            top: Cell::new(NonNull::<u64>::dangling().cast()),
            start: Cell::new(align_of::<u64>()),
            newest: Cell::new(None),
        }
    }

    /// Puts a value in.
    ///
    /// # Panics
    /// If there is no memory; so do the others but [`try_alloc`](Self::try_alloc).
    #[inline(always)]
    #[track_caller]
    pub fn alloc<T>(&self, value: T) -> &mut T {
        self.alloc_with(|| value)
    }

    /// Puts a value in.
    ///
    /// # Errors
    /// [`Full`], with the value: there is no memory, or a limit is reached.
    #[inline(always)]
    pub fn try_alloc<T>(&self, value: T) -> Result<&mut T, Full<T>> {
        const { assert!(!needs_drop::<T>(), "values of an arena are not dropped") }
        match self.place(Layout::new::<T>()) {
            // SAFETY: a place for a T that nobody else has, as long as the arena is borrowed.
            Some(place) => unsafe {
                let place = place.cast::<T>();
                place.write(value);
                Ok(&mut *place.as_ptr())
            },
            None => Err(Full(value)),
        }
    }

    /// Puts in what the function returns, built in its place if the compiler can. It may use the arena.
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

    /// Puts a copy of a slice in.
    #[inline]
    #[track_caller]
    pub fn alloc_slice<T: Copy>(&self, values: &[T]) -> &mut [T] {
        let Some(place) = self.place(Layout::for_value(values)) else {
            no_room()
        };
        // SAFETY: a place for as many, apart from these.
        unsafe {
            let place = place.cast::<T>();
            place.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len());
            &mut *NonNull::slice_from_raw_parts(place, values.len()).as_ptr()
        }
    }

    /// Puts a copy of a text in.
    #[inline]
    #[track_caller]
    pub fn alloc_str(&self, text: &str) -> &mut str {
        let bytes = self.alloc_slice(text.as_bytes());
        // SAFETY: they are those of a text.
        unsafe { core::str::from_utf8_unchecked_mut(bytes) }
    }

    /// Puts in as many values as `count` says, each of which the function makes from its index. It may
    /// use the arena.
    #[track_caller]
    pub fn alloc_slice_with<T>(&self, count: usize, mut make: impl FnMut(usize) -> T) -> &mut [T] {
        const { assert!(!needs_drop::<T>(), "values of an arena are not dropped") }
        let layout = Layout::array::<T>(count).ok();
        let Some(place) = layout.and_then(|layout| self.place(layout)) else {
            no_room()
        };
        // SAFETY: a place for as many, all of which are written.
        unsafe {
            let place = place.cast::<T>();
            (0..count).for_each(|index| place.add(index).write(make(index)));
            &mut *NonNull::slice_from_raw_parts(place, count).as_ptr()
        }
    }

    /// All values go; the newest chunk, as a rule the largest, stays for those that come.
    pub fn reset(&mut self) {
        let Some(newest) = self.newest.get() else {
            return;
        };
        // SAFETY: chunks are ours, and nobody has a value.
        unsafe {
            free_chunks((*newest.as_ptr()).before.take());
        }
        self.top.set(newest.cast());
    }

    /// All values go, and all memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Bytes of its chunks, for values or not.
    pub fn allocated_bytes(&self) -> usize {
        let mut bytes = 0;
        let mut chunk = self.newest.get();
        while let Some(footer) = chunk {
            // SAFETY: chunks are there as long as the arena is.
            let footer = unsafe { footer.as_ref() };
            bytes += footer.bytes;
            chunk = footer.before;
        }
        bytes
    }

    /// Memory that nobody else has.
    #[inline(always)]
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.place_here(layout) {
            None => self.place_in_new(layout),
            there => there,
        }
    }

    #[inline(always)]
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>> {
        // No layout is so large that this overflows.
        let bytes = (layout.size() + (UNIT - 1)) & !(UNIT - 1);
        let top = self.top.get();
        let room = top.addr().get() - self.start.get();
        let past = if layout.align() > UNIT {
            // From the rounded-down address up to `top`.
            let odd = top.addr().get().wrapping_sub(bytes) & (layout.align() - 1);
            bytes.checked_add(odd)?
        } else {
            bytes
        };
        if past > room {
            return None;
        }
        // SAFETY: so many bytes are below, in the chunk; or it is none.
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
        // SAFETY: the footer's place is in the chunk, and aligned as its end is.
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
/// These chunks, each with the ones before it, are the caller's, and not used again.
unsafe fn free_chunks(mut chunk: Option<NonNull<Footer>>) {
    while let Some(footer) = chunk {
        // SAFETY: as the caller says; it was allocated so.
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

    // SAFETY: a place stays, and is nobody else's, as long as the arena is borrowed; so it does where
    // the reference moves or is copied.
    unsafe impl Allocator for &Arena {
        #[inline]
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            let place = self.place(layout).ok_or(AllocError)?;
            Ok(NonNull::slice_from_raw_parts(place, layout.size()))
        }

        /// What was placed last has its place again.
        #[inline]
        unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
            if object == self.top.get() {
                let bytes = (layout.size() + (UNIT - 1)) & !(UNIT - 1);
                // SAFETY: it was placed in the chunk, at the top. The object's own pointer may be good
                // for the object alone; `top` is for the whole chunk.
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
                // SAFETY: both have so many bytes, and lie apart.
                unsafe { moved.cast().copy_from_nonoverlapping(object, new.size()) };
                return Ok(moved);
            }
            Ok(NonNull::slice_from_raw_parts(object, new.size()))
        }
    }
}
