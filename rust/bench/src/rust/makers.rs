//! Makers of objects and the owners of the objects: slots of pools, boxes of caches, and boxes over
//! the peers.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use slabyard::{Cache, CacheBox, Pool, Slot};
#[cfg(feature = "peers")]
use slabyard_peers as peers;
use std::alloc::{GlobalAlloc, Layout};

/// The value of an object, all of whose words are written.
pub struct Object<const WORDS: usize>(pub [u64; WORDS]);

impl<const WORDS: usize> Object<WORDS> {
    #[inline(always)]
    pub fn new(seed: u64) -> Self {
        Object([seed; WORDS])
    }
}

/// Makes objects. A process has one maker, which is never dropped.
pub trait Maker<const WORDS: usize>: Sized + 'static {
    /// Owns an object.
    type Held: DerefMut<Target = Object<WORDS>>;

    /// For objects of which no more than `capacity` are live.
    fn open(capacity: usize) -> Self;

    fn make(&'static self, value: Object<WORDS>) -> Self::Held;

    /// Frees an object. Some owners need their maker for this.
    #[inline(always)]
    fn end(&'static self, held: Self::Held) {
        drop(held);
    }

    /// Frees all objects at once, if the maker does not free single objects.
    ///
    /// # Safety
    /// The objects are not used any more, and there is no reference to the maker.
    unsafe fn reset(_maker: *mut Self) {}
}

impl<const WORDS: usize> Maker<WORDS> for Pool<Object<WORDS>> {
    type Held = Slot<'static, Object<WORDS>>;

    fn open(capacity: usize) -> Self {
        Pool::bounded(capacity)
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        self.insert(value)
    }
}

impl<const WORDS: usize> Maker<WORDS> for Cache<Object<WORDS>> {
    type Held = CacheBox<'static, Object<WORDS>>;

    fn open(_capacity: usize) -> Self {
        Cache::new("bench")
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        self.insert(value)
    }
}

/// Objects in a chunk of nexus-slab's unbounded slab: the largest number in its documents, because
/// a free searches the chunks.
const NEXUS_CHUNK: usize = 4096;

/// Slabs of nexus-slab 2, and those of the crate that repeats its interface.
macro_rules! nexus_slab {
    ($nexus:ident $kind:ident, |$capacity:ident| $new:expr) => {
        impl<const WORDS: usize> Maker<WORDS> for $nexus::$kind::Slab<Object<WORDS>> {
            type Held = $nexus::Slot<Object<WORDS>>;

            fn open($capacity: usize) -> Self {
                // SAFETY: the slab is never dropped, and gets back the slots that it gave.
                unsafe { $new }
            }

            #[inline(always)]
            fn make(&'static self, value: Object<WORDS>) -> Self::Held {
                self.alloc(value)
            }

            #[inline(always)]
            fn end(&'static self, held: Self::Held) {
                self.free(held);
            }
        }
    };
}

nexus_slab!(nexus_slab bounded, |capacity| Self::with_capacity(capacity));
nexus_slab!(nexus_slab unbounded, |_capacity| Self::with_chunk_capacity(NEXUS_CHUNK));
nexus_slab!(nexus_slab_2_here bounded, |capacity| Self::with_capacity(capacity));
nexus_slab!(nexus_slab_2_here unbounded, |_capacity| Self::with_chunk_capacity(NEXUS_CHUNK));

/// Rust's own `Box`, over the C library's malloc.
pub struct StdBox;

impl<const WORDS: usize> Maker<WORDS> for StdBox {
    type Held = Box<Object<WORDS>>;

    fn open(_capacity: usize) -> Self {
        StdBox
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        Box::new(value)
    }
}

/// A heap: memory of any size.
pub trait Heap: 'static {
    fn alloc(layout: Layout) -> *mut c_void;

    /// # Safety
    /// A live object of that layout, which is not used again.
    unsafe fn free(object: *mut c_void, layout: Layout);
}

/// A `Box` over a heap, whose functions are called directly.
pub struct HeapBox<T, P: Heap>(NonNull<T>, PhantomData<P>);

impl<T, P: Heap> HeapBox<T, P> {
    #[inline(always)]
    fn new(value: T) -> Self {
        let layout = Layout::new::<T>();
        let Some(place) = NonNull::new(P::alloc(layout).cast::<T>()) else {
            std::alloc::handle_alloc_error(layout)
        };
        // SAFETY: the place is new, and large enough.
        unsafe { place.write(value) };
        HeapBox(place, PhantomData)
    }
}

impl<T, P: Heap> Drop for HeapBox<T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the box owns the object, which was allocated with this layout.
        unsafe {
            self.0.drop_in_place();
            P::free(self.0.as_ptr().cast(), Layout::new::<T>());
        }
    }
}

impl<T, P: Heap> Deref for HeapBox<T, P> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is owned.
        unsafe { self.0.as_ref() }
    }
}

impl<T, P: Heap> DerefMut for HeapBox<T, P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it is owned.
        unsafe { self.0.as_mut() }
    }
}

/// Makes boxes over a heap.
pub struct Boxes<P>(PhantomData<P>);

impl<const WORDS: usize, P: Heap> Maker<WORDS> for Boxes<P> {
    type Held = HeapBox<Object<WORDS>, P>;

    fn open(_capacity: usize) -> Self {
        Boxes(PhantomData)
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        HeapBox::new(value)
    }
}

/// Slabyard's heap, by the functions that a `#[global_allocator]` has.
pub struct OurHeap;

impl Heap for OurHeap {
    #[inline(always)]
    fn alloc(layout: Layout) -> *mut c_void {
        // SAFETY: objects have a size.
        unsafe { slabyard::Slabyard.alloc(layout).cast() }
    }

    #[inline(always)]
    unsafe fn free(object: *mut c_void, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { slabyard::Slabyard.dealloc(object.cast(), layout) }
    }
}

#[cfg(feature = "peers")]
macro_rules! heaps {
    ($($name:ident: $module:ident $malloc:ident $free:ident;)+) => {$(
        pub struct $name;

        impl Heap for $name {
            #[inline(always)]
            fn alloc(layout: Layout) -> *mut c_void {
                // SAFETY: the thread is known to the allocator.
                unsafe { peers::$module::$malloc(layout.size()) }
            }

            #[inline(always)]
            unsafe fn free(object: *mut c_void, _layout: Layout) {
                // SAFETY: as the caller says.
                unsafe { peers::$module::$free(object) }
            }
        }
    )+};
}

#[cfg(feature = "peers")]
heaps! {
    Mimalloc: mimalloc mi_malloc mi_free;
    Snmalloc: snmalloc sn_malloc sn_free;
    Jemalloc: jemalloc _rjem_malloc _rjem_free;
    Tcmalloc: tcmalloc TCMallocInternalMalloc TCMallocInternalFree;
    Rpmalloc: rpmalloc rpmalloc rpfree;
}

impl<const WORDS: usize> Maker<WORDS> for bumpalo::Bump {
    type Held = &'static mut Object<WORDS>;

    fn open(capacity: usize) -> Self {
        bumpalo::Bump::with_capacity(capacity * size_of::<Object<WORDS>>())
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        self.alloc(value)
    }

    unsafe fn reset(maker: *mut Self) {
        // SAFETY: as the caller says.
        unsafe { (*maker).reset() }
    }
}

/// An arena of a type, with its capacity.
pub struct Arena<const WORDS: usize>(typed_arena::Arena<Object<WORDS>>, usize);

impl<const WORDS: usize> Maker<WORDS> for Arena<WORDS> {
    type Held = &'static mut Object<WORDS>;

    fn open(capacity: usize) -> Self {
        Arena(typed_arena::Arena::with_capacity(capacity), capacity)
    }

    #[inline(always)]
    fn make(&'static self, value: Object<WORDS>) -> Self::Held {
        self.0.alloc(value)
    }

    unsafe fn reset(maker: *mut Self) {
        // SAFETY: as the caller says.
        unsafe { *maker = Self::open((*maker).1) }
    }
}
