//! [`BlockCache`]: blocks of one size, for containers that allocate node by node.

use allocator_api2::alloc::{AllocError, Allocator};
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::allocator::{moved, nothing};
use crate::cache::ALIGN_MAX;
use crate::raw::cache::{self as raw, Config, OwnedCache};
use crate::{CacheStats, CreateError, Slabyard};

/// A cache of blocks, as an allocator for containers. An allocation that fits a block gets one; any
/// other allocation comes from the heap. The layout decides, at the free too.
///
/// Use it for lists, trees and boxes, whose nodes have one size. A container with one large piece
/// of memory gains nothing.
///
/// A free whose layout does not fit a block goes to the heap, which reports memory that is not its
/// own at once. A free whose layout fits goes to the cache. If the memory is not a block of the
/// cache, this is reported at once with `SLABYARD=check`, otherwise when the cache's slow path
/// meets it.
///
/// Thread rule: all functions may be called from any thread. Containers borrow the cache. Dropping
/// it frees its memory, unless blocks were forgotten.
///
/// ```
/// use allocator_api2::boxed::Box;
/// use slabyard::BlockCache;
/// use std::alloc::Layout;
///
/// struct Node<'c> { value: u32, next: Option<Box<Node<'c>, &'c BlockCache>> }
///
/// let nodes = BlockCache::new("node", Layout::new::<Node>())?;
/// let mut list = None;
/// for value in 0..3 {
///     list = Some(Box::new_in(Node { value, next: list }, &nodes));
/// }
/// assert_eq!((nodes.in_use(), list.as_ref().unwrap().value), (3, 2));
/// # Ok::<(), slabyard::CreateError>(())
/// ```
pub struct BlockCache {
    owned: OwnedCache,
    block: Layout,
}

impl BlockCache {
    /// Creates a cache of blocks with this layout, its size rounded up to its alignment.
    pub fn new(name: &str, block: Layout) -> Result<Self, CreateError> {
        if block.align() > ALIGN_MAX {
            return Err(CreateError::Unsupported);
        }
        let block = block.pad_to_align();
        let config = Config {
            name,
            size: block.size().max(1),
            align: block.align(),
            limit: 0,
            flags: 0,
            lifecycle: None,
        };
        let owned = OwnedCache(raw::create(&config).ok_or(CreateError::NoMemory)?);
        Ok(BlockCache { owned, block })
    }

    /// The number of blocks in use. It is exact while no other thread uses the cache.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// Returns free memory to the system; the result is the number of bytes.
    pub fn trim(&self) -> usize {
        raw::trim(self.owned.0)
    }

    /// Statistics of the cache.
    pub fn stats(&self) -> CacheStats {
        CacheStats::of(self.owned.0)
    }

    /// Whether the layout fits a block. A layout of 0 bytes needs no block.
    #[inline(always)]
    fn fits(&self, layout: Layout) -> bool {
        layout.size() <= self.block.size() && layout.align() <= self.block.align()
    }

    /// Grows or shrinks a block: in place if both layouts fit a block of the cache, in the heap if
    /// neither does.
    /// # Safety
    /// `object` is live and has layout `old`. After success, it must not be used again.
    unsafe fn change(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let is_empty = old.size() == 0 || new.size() == 0;
        // SAFETY: as the caller says.
        match (self.fits(old), self.fits(new)) {
            (true, true) if !is_empty => Ok(NonNull::slice_from_raw_parts(object, new.size())),
            (false, false) if !is_empty => unsafe { Slabyard.change(object, old, new) },
            _ => unsafe { moved(&self, object, old, new) },
        }
    }
}

// SAFETY: a block stays where it is until it is given back. Its layout alone tells whether it came
// from the cache: all layouts that a block can have here fit a block, or none does. A cache is not
// destroyed while a block is out.
unsafe impl Allocator for &BlockCache {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(nothing(layout));
        }
        if !self.fits(layout) {
            return Slabyard.allocate(layout);
        }
        let block = self.owned.0.take().ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller says; its layout tells where it came from.
        unsafe {
            if layout.size() == 0 {
            } else if self.fits(layout) {
                self.owned.0.give(object);
            } else {
                Slabyard.deallocate(object, layout);
            }
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

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("name", &self.stats().name)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}
