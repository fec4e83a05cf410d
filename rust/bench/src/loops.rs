//! The measured loops for slabs written in Rust: the same loops as in `kernels.hpp`, generic over a
//! slab.
//!
//! The slab leaves objects uninitialised if it can, like the allocators in C. The loop writes the
//! first eight bytes and hides the name from the optimiser, as the C++ loops do.

use crate::kernels::{
    bench_verify_born, bench_verify_died, bench_verify_seen, Kernels, Objects, RawHistogram, VERIFY,
};
use core::arch::asm;
use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use core::ffi::{c_int, c_void, CStr};
use core::mem::MaybeUninit;

/// An object of that many words.
pub type Object<const WORDS: usize> = MaybeUninit<[u64; WORDS]>;

/// A slab that the loops measure. An object is freed by its name: 64 bits in the place of a
/// pointer, its address or a key.
pub trait Slab: Sized {
    const NAME: &'static CStr;
    const TRAITS: u64;
    const SIZE: usize;
    /// Whether `find` pins the object for a moment, so that it cannot be freed meanwhile.
    const PINS: bool = false;

    /// # Safety
    /// Objects are freed to the same slab, and not used after the slab is dropped.
    unsafe fn with_capacity(capacity: usize) -> Self;
    /// A new object's name.
    fn alloc(&self) -> *mut c_void;
    /// # Safety
    /// `name` is of a live object of this slab.
    unsafe fn free(&self, name: *mut c_void);
    /// The object of a name, by the slab's public look-up.
    ///
    /// # Safety
    /// As for `free`.
    unsafe fn find(&self, name: *mut c_void) -> *mut c_void;
    /// Writes the first eight bytes of a new object, in the shortest way that the slab has.
    ///
    /// # Safety
    /// As for `free`.
    unsafe fn write_first(&self, name: *mut c_void);
}

/// Hides from the compiler where the object is and what memory contains.
#[inline(always)]
pub(crate) fn hide(mut object: *mut c_void) -> *mut c_void {
    // SAFETY: an empty statement. The compiler assumes that it changes the register and memory.
    unsafe { asm!("/* {0} */", inout(reg) object, options(nostack, preserves_flags)) };
    object
}

/// As many bytes of no-operations as the C++ kernels of the same layout begin with.
macro_rules! enter {
    ($layout:ident) => {
        // SAFETY: no-operations.
        unsafe {
            core::arch::asm!(".skip {}, 0x90", const [1, 22, 44, 1][$layout],
                 options(nomem, nostack, preserves_flags))
        }
    };
}
pub(crate) use enter;

#[inline(always)]
fn born<S: Slab, const LAYOUT: usize>(slab: &S) -> *mut c_void {
    let name = slab.alloc();
    // SAFETY: the object is live and of the size of the slab.
    unsafe {
        if LAYOUT == VERIFY {
            bench_verify_born(slab.find(name), S::SIZE, name);
        } else {
            slab.write_first(name);
        }
    }
    hide(name)
}

/// # Safety
/// `name` is of a live object of this slab.
#[inline(always)]
unsafe fn died<S: Slab, const LAYOUT: usize>(slab: &S, name: *mut c_void) {
    // SAFETY: passed on to the caller.
    unsafe {
        if LAYOUT == VERIFY {
            bench_verify_died(slab.find(name), S::SIZE, name);
        }
        slab.free(name);
        asm!("", options(nostack, preserves_flags));
    }
}

/// # Safety
/// `state` came from `open` of the same slab type.
#[inline(always)]
unsafe fn slab_of<'a, S>(state: *mut c_void) -> &'a S {
    // SAFETY: passed on to the caller.
    unsafe { &*state.cast::<S>() }
}

unsafe extern "C" fn open<S: Slab>(_size: usize, capacity: usize) -> *mut c_void {
    // SAFETY: the kernels free what they take to the slab they took it from.
    Box::into_raw(Box::new(unsafe { S::with_capacity(capacity.max(1)) })).cast()
}

unsafe extern "C" fn close<S: Slab>(state: *mut c_void) {
    // SAFETY: `state` came from `open` and is not used again.
    drop(unsafe { Box::from_raw(state.cast::<S>()) });
}

unsafe extern "C" fn thread_end(_state: *mut c_void) {}

/// A loop of the table: its padding, then its body, which has the slab of `state` and may call
/// unsafe functions. The harness passes a state of this slab. `objects` has room for as many names
/// as the loop stores, and holds live ones where the loop frees them. Histograms are valid and
/// distinct.
macro_rules! kernel {
    ($name:ident($slab:ident $(, $argument:ident: $type:ty)*) $body:block) => {
        unsafe extern "C" fn $name<S: Slab, const LAYOUT: usize>(
            state: *mut c_void,
            $($argument: $type),*
        ) {
            enter!(LAYOUT);
            // SAFETY: what the harness passes is described above.
            unsafe {
                let $slab: &S = slab_of(state);
                $body
            }
        }
    };
}

kernel! {
    fill(slab, objects: Objects, count: usize) {
        for i in 0..count {
            *objects.add(i) = born::<S, LAYOUT>(slab);
        }
    }
}

kernel! {
    drain(slab, objects: Objects, count: usize) {
        for i in 0..count {
            died::<S, LAYOUT>(slab, *objects.add(i));
        }
    }
}

kernel! {
    pair(slab, count: u64) {
        for _ in 0..count {
            died::<S, LAYOUT>(slab, born::<S, LAYOUT>(slab));
        }
    }
}

kernel! {
    batch_lifo(slab, objects: Objects, size: usize, rounds: u64) {
        for _ in 0..rounds {
            for i in 0..size {
                *objects.add(i) = born::<S, LAYOUT>(slab);
            }
            for i in (0..size).rev() {
                died::<S, LAYOUT>(slab, *objects.add(i));
            }
        }
    }
}

kernel! {
    batch_fifo(slab, objects: Objects, size: usize, rounds: u64) {
        for _ in 0..rounds {
            for i in 0..size {
                *objects.add(i) = born::<S, LAYOUT>(slab);
            }
            for i in 0..size {
                died::<S, LAYOUT>(slab, *objects.add(i));
            }
        }
    }
}

kernel! {
    batch_random(slab, objects: Objects, order: *const u32, size: usize, rounds: u64) {
        for _ in 0..rounds {
            for i in 0..size {
                *objects.add(i) = born::<S, LAYOUT>(slab);
            }
            for i in 0..size {
                died::<S, LAYOUT>(slab, *objects.add(*order.add(i) as usize));
            }
        }
    }
}

/// The generator of `kernels.hpp`.
pub(crate) struct Random(pub u64);

impl Random {
    #[inline(always)]
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 32).wrapping_mul(bound as u64) >> 32) as usize
    }
}

kernel! {
    steady(slab, objects: Objects, live: usize, count: u64, seed: u64) {
        let mut random = Random(seed);
        for _ in 0..count {
            let place = objects.add(random.below(live));
            died::<S, LAYOUT>(slab, *place);
            *place = born::<S, LAYOUT>(slab);
        }
    }
}

kernel! {
    churn(slab, rounds: u64) {
        let mut objects = [core::ptr::null_mut(); 64];
        for _ in 0..rounds {
            for place in &mut objects {
                *place = born::<S, LAYOUT>(slab);
            }
            for &object in &objects {
                died::<S, LAYOUT>(slab, object);
            }
        }
    }
}

// This is also the loop of pins, for a slab whose look-ups pin the object.
kernel! {
    get(slab, objects: Objects, live: usize, rounds: u64) {
        for _ in 0..rounds {
            for i in 0..live {
                let name = *objects.add(i);
                let object = hide(slab.find(name));
                if LAYOUT == VERIFY {
                    bench_verify_seen(object, name);
                }
            }
        }
    }
}

#[inline(always)]
pub(crate) fn ticks_before() -> u64 {
    // SAFETY: reads the clock.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[inline(always)]
pub(crate) fn ticks_after() -> u64 {
    let mut processor = 0;
    // SAFETY: reads the clock.
    unsafe {
        let ticks = __rdtscp(&mut processor);
        _mm_lfence();
        ticks
    }
}

/// The ticks that freeing took.
///
/// # Safety
/// As for `died`.
#[inline(always)]
unsafe fn timed_death<S: Slab, const LAYOUT: usize>(slab: &S, name: *mut c_void) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe {
        if LAYOUT == VERIFY {
            bench_verify_died(slab.find(name), S::SIZE, name);
        }
        let start = ticks_before();
        slab.free(hide(name));
        ticks_after() - start
    }
}

kernel! {
    tail_steady(
        slab, objects: Objects, live: usize, count: u64, seed: u64,
        allocs: *mut RawHistogram, frees: *mut RawHistogram
    ) {
        let mut random = Random(seed);
        let (allocs, frees) = (&mut *allocs, &mut *frees);
        for _ in 0..count {
            let place = objects.add(random.below(live));
            let freed = timed_death::<S, LAYOUT>(slab, *place);
            let restart = ticks_before();
            let fresh = hide(slab.alloc());
            let end = ticks_after();
            if LAYOUT == VERIFY {
                bench_verify_born(slab.find(fresh), S::SIZE, fresh);
            } else {
                slab.write_first(fresh);
            }
            *place = hide(fresh);
            frees.add(freed);
            allocs.add(end - restart);
        }
    }
}

kernel! {
    tail_grow(slab, objects: Objects, count: usize, write: c_int, allocs: *mut RawHistogram) {
        let allocs = &mut *allocs;
        for i in 0..count {
            let start = ticks_before();
            let mut name = hide(slab.alloc());
            if write != 0 {
                slab.write_first(name);
                name = hide(name);
            }
            let end = ticks_after();
            slab.write_first(name);
            if LAYOUT == VERIFY {
                bench_verify_born(slab.find(name), S::SIZE, name);
            }
            *objects.add(i) = hide(name);
            allocs.add(end - start);
        }
    }
}

kernel! {
    tail_drain(slab, objects: Objects, count: usize, frees: *mut RawHistogram) {
        let frees = &mut *frees;
        for i in 0..count {
            frees.add(timed_death::<S, LAYOUT>(slab, *objects.add(i)));
        }
    }
}

/// The loops of a slab in one layout.
pub fn table<S: Slab, const LAYOUT: usize>() -> Kernels {
    Kernels {
        name: S::NAME.as_ptr(),
        traits: S::TRAITS,
        open: open::<S>,
        close: close::<S>,
        thread_end,
        fill: fill::<S, LAYOUT>,
        drain: drain::<S, LAYOUT>,
        pair: pair::<S, LAYOUT>,
        batch_lifo: batch_lifo::<S, LAYOUT>,
        batch_fifo: batch_fifo::<S, LAYOUT>,
        batch_random: batch_random::<S, LAYOUT>,
        steady: steady::<S, LAYOUT>,
        churn: churn::<S, LAYOUT>,
        get: get::<S, LAYOUT>,
        pin: S::PINS.then_some(get::<S, LAYOUT>),
        ring_put: None,
        ring_take: None,
        ring_read: None,
        queue_put: None,
        queue_take: None,
        exchange: None,
        tail_steady: tail_steady::<S, LAYOUT>,
        tail_grow: tail_grow::<S, LAYOUT>,
        tail_drain: tail_drain::<S, LAYOUT>,
    }
}

/// `tables(layout, size)`: what `both::<WORDS, LAYOUT>()` gives, for the sizes that are compiled.
#[cfg(feature = "peers")]
macro_rules! tables_of {
    ($both:ident) => {
        fn of_size<const LAYOUT: usize>(size: usize) -> Option<[Kernels; 2]> {
            Some(match size {
                8 => $both::<1, LAYOUT>(),
                16 => $both::<2, LAYOUT>(),
                64 => $both::<8, LAYOUT>(),
                256 => $both::<32, LAYOUT>(),
                1024 => $both::<128, LAYOUT>(),
                4096 => $both::<512, LAYOUT>(),
                _ => return None,
            })
        }

        /// Both, for the sizes that are compiled.
        pub fn tables(layout: usize, size: usize) -> Option<[Kernels; 2]> {
            match layout {
                0 => of_size::<0>(size),
                1 => of_size::<1>(size),
                2 => of_size::<2>(size),
                _ => of_size::<{ $crate::kernels::VERIFY }>(size),
            }
        }
    };
}
#[cfg(feature = "peers")]
pub(crate) use tables_of;
