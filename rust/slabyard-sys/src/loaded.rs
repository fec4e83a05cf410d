//! `slabyard/loaded.h`: a thread's loaded slots, for the functions that are compiled into programs.
//!
//! Stable Rust cannot name a thread-local variable of C. On targets where this crate knows the
//! instructions ([`SY_LOADED_INLINE`]), it uses them directly. On other targets, and with the
//! feature `dlopen`, the functions that are inline in C are calls.

use core::ptr::addr_of_mut;
use core::sync::atomic::{compiler_fence, AtomicPtr, AtomicUsize, Ordering};

/// A thread's loaded slot for one client of the magazine layer: `base <= top <= limit` delimit free
/// items in a magazine, the newest below `top`. Only the thread itself writes it.
#[repr(C)]
pub struct sy_loaded_slot {
    pub(crate) reserved: [usize; 4],
    pub(crate) top: *mut usize,
    pub(crate) base: *mut usize,
    pub(crate) limit: *mut usize,
    pub(crate) reserved_too: usize,
}

/// Whether this thread's loaded slots can be reached without a call.
pub const SY_LOADED_INLINE: bool = cfg!(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, feature = "dlopen"))
));

/// This thread's loaded slots, by client number (`sy_abi_1` of the header).
#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, feature = "dlopen"))
))]
#[inline(always)]
pub fn sy_loaded_slots() -> *mut sy_loaded_slot {
    let slots;
    // SAFETY: reads a thread-local variable of the library that is linked in; the model is initial
    // exec, as in the header, and the linker makes a constant of it in an executable.
    unsafe {
        core::arch::asm!(
            "mov {slots}, qword ptr [rip + sy_abi_1@GOTTPOFF]",
            "mov {slots}, qword ptr fs:[{slots}]",
            slots = out(reg) slots,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    slots
}

/// Not called: see [`SY_LOADED_INLINE`].
#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, feature = "dlopen"))
)))]
pub fn sy_loaded_slots() -> *mut sy_loaded_slot {
    unreachable!("the functions are calls on this target")
}

/// Takes the newest item. `None`: the slot is shut, and the slow path decides.
///
/// # Safety
/// `slot` is this thread's, from [`sy_loaded_slots`].
#[inline(always)]
pub unsafe fn sy_loaded_pop(slot: *mut sy_loaded_slot) -> Option<usize> {
    // SAFETY: as the caller says; other threads only read the slot, so its writes are atomic.
    unsafe {
        let top = (*slot).top;
        if top <= (*slot).base {
            return None;
        }
        let newest = top.sub(1);
        let item = *newest;
        AtomicPtr::from_ptr(addr_of_mut!((*slot).top)).store(newest, Ordering::Relaxed);
        Some(item)
    }
}

/// Puts an item in. False: the slot is shut. A thread that reads the slot between the two stores
/// sees one item too few.
///
/// # Safety
/// `slot` is this thread's, from [`sy_loaded_slots`]; the item belongs to the slot's client.
#[inline(always)]
pub unsafe fn sy_loaded_push(slot: *mut sy_loaded_slot, item: usize) -> bool {
    // SAFETY: as for sy_loaded_pop.
    unsafe {
        let top = (*slot).top;
        if top >= (*slot).limit {
            return false;
        }
        store(slot, top, item);
        true
    }
}

/// Puts an item in, as [`sy_loaded_push`] does. It also returns false if the item is the newest in
/// the slot already, because it was freed twice in a row.
///
/// # Safety
/// As for [`sy_loaded_push`].
#[inline(always)]
pub unsafe fn sy_loaded_push_once(slot: *mut sy_loaded_slot, item: usize) -> bool {
    // SAFETY: as for sy_loaded_pop; before the items of an empty magazine there is a word.
    unsafe {
        let top = (*slot).top;
        if top >= (*slot).limit || *top.sub(1) == item {
            return false;
        }
        store(slot, top, item);
        true
    }
}

/// # Safety
/// As for [`sy_loaded_push`]; there is room at `top`.
#[inline(always)]
unsafe fn store(slot: *mut sy_loaded_slot, top: *mut usize, item: usize) {
    // SAFETY: as the caller says; other threads only read the slot, so its writes are atomic.
    unsafe {
        AtomicUsize::from_ptr(top).store(item, Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        AtomicPtr::from_ptr(addr_of_mut!((*slot).top)).store(top.add(1), Ordering::Relaxed);
    }
}
