//! Blocks of one size, for containers that allocate node by node.

use allocator_api2::alloc::{AllocError, Allocator};
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::allocator::{moved, nothing};
use crate::cache::ALIGN_MAX;
use crate::raw::cache::{self as raw, Config, OwnedCache};
use crate::{CacheStats, CreateError, Slabyard};

/// A cache of blocks, as the allocator of containers: what fits into a block is one, all else comes
/// from the heap. The layout says which it is, so freeing knows.
///
/// For lists, trees and boxes, whose nodes are of one size; a container of one large piece gains
/// nothing.
///
/// A free with a layout that no block has goes to the heap, which reports at once what is a block or not
/// its own. A free with a layout that fits is a free to a cache: what is no block of it is reported at
/// once with `SLABYARD=check`, else when the cache's slow path meets it.
///
/// Thread rule: all of it from any thread. Containers borrow it; dropping it gives its memory up, unless
/// blocks were forgotten.
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
    /// A cache of blocks of this layout, rounded up to its alignment.
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

    /// Blocks that are in use: exact while no other thread uses the cache.
    pub fn in_use(&self) -> usize {
        raw::in_use(self.owned.0)
    }

    /// Gives free memory back to the system, and says how many bytes.
    pub fn trim(&self) -> usize {
        raw::trim(self.owned.0)
    }

    /// Where the memory is.
    pub fn stats(&self) -> CacheStats {
        CacheStats::of(self.owned.0)
    }

    /// Whether a block serves it. Nothing at all needs none.
    #[inline(always)]
    fn fits(&self, layout: Layout) -> bool {
        layout.size() <= self.block.size() && layout.align() <= self.block.align()
    }

    /// Grows or shrinks: where it is if both layouts fit a block, in the heap if neither does.
    ///
    /// # Safety
    /// `object` is live and of layout `old`; unless it fails, it is gone.
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

// SAFETY: a block stays where it is until it is given back; where it came from follows from its layout
// alone, and all layouts that a block is said to have here fit it, or none does. A cache with a block
// that is out is not destroyed.
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
        // SAFETY: as the caller says: it came from where its layout says.
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
