//! The stores that are compared: where sessions lie, and what names them.

use crate::allocators::{self, Allocator};
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::NonNull;
use slabyard_sys as sys;

/// Words of a session's data.
pub const DATA_WORDS: usize = 14;

/// One session: the fields of `examples/session_store.c`.
#[repr(C)]
pub struct Session {
    pub secret: u64,
    /// The next session in the same slot of the timer wheel, or `NONE`.
    pub next_due: Cell<u64>,
    pub user: u32,
    pub requests: Cell<u32>,
    pub created: u32,
    pub last_used: Cell<u32>,
    /// Minutes without a request after which it expires.
    pub idle: u32,
    pub data: [u64; DATA_WORDS],
}

/// The name of no session. No store gives this name.
pub const NONE: u64 = u64::MAX;

/// A store of sessions for one thread. A name is that of a live session.
pub trait Store {
    fn insert(&mut self, session: Session) -> u64;
    fn with<R>(&mut self, name: u64, work: impl FnOnce(&Session) -> R) -> R;
    fn remove(&mut self, name: u64);
}

/// Sessions that move, by handle: the functions that `examples/session_store.c` calls.
pub struct Movable(NonNull<sys::sy_cache>);

impl Movable {
    pub fn new() -> Option<Movable> {
        let config = sys::sy_cache_config {
            size: size_of::<Session>(),
            align: align_of::<Session>(),
            flags: sys::SY_HANDLES | sys::SY_MOVABLE,
            ..Default::default()
        };
        // SAFETY: the configuration is valid.
        NonNull::new(unsafe { sys::sy_cache_create(&config) }).map(Movable)
    }
}

impl Store for Movable {
    fn insert(&mut self, session: Session) -> u64 {
        let mut handle = 0;
        // SAFETY: the cache has handles, and objects of this size. No other thread sees the object
        // before it is published.
        unsafe {
            let object = sys::sy_handle_prepare(self.0.as_ptr(), &mut handle);
            assert!(!object.is_null(), "there is memory for a session");
            object.cast::<Session>().write(session);
            sys::sy_handle_publish(self.0.as_ptr(), handle);
        }
        handle
    }

    #[inline(always)]
    fn with<R>(&mut self, name: u64, work: impl FnOnce(&Session) -> R) -> R {
        // SAFETY: the object does not move before the guard ends, and only this thread frees it.
        unsafe {
            let guard = sys::sy_read_enter();
            let object = sys::sy_read_get_inline(self.0.as_ptr(), name);
            let found = object.cast::<Session>().as_ref();
            let result = work(found.expect("the session is live"));
            sys::sy_read_leave(guard);
            result
        }
    }

    fn remove(&mut self, name: u64) {
        // SAFETY: the cache has handles.
        let is_freed = unsafe { sys::sy_handle_free_inline(self.0.as_ptr(), name) };
        assert!(is_freed, "the session is live");
    }
}

impl Store for sharded_slab::Slab<Session> {
    fn insert(&mut self, session: Session) -> u64 {
        let key = sharded_slab::Slab::insert(self, session);
        key.expect("there is room for a session") as u64
    }

    #[inline(always)]
    fn with<R>(&mut self, name: u64, work: impl FnOnce(&Session) -> R) -> R {
        work(&self.get(name as usize).expect("the session is live"))
    }

    fn remove(&mut self, name: u64) {
        let is_removed = sharded_slab::Slab::remove(self, name as usize);
        assert!(is_removed, "the session is live");
    }
}

/// Sessions by pointer, from a `malloc`.
pub struct Pointers {
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Pointers {
    /// Over the `malloc` of this name.
    pub fn find(name: &str) -> Option<(Pointers, Allocator)> {
        let name = if name == super::OWN_MALLOC {
            "heap"
        } else {
            name
        };
        let allocator = allocators::find(name)?;
        let (malloc, free) = allocator.any_size()?;
        Some((Pointers { malloc, free }, allocator))
    }
}

impl Store for Pointers {
    fn insert(&mut self, session: Session) -> u64 {
        // SAFETY: the block has the size of a session.
        unsafe {
            let block = (self.malloc)(size_of::<Session>());
            assert!(!block.is_null(), "there is memory for a session");
            block.cast::<Session>().write(session);
            block as u64
        }
    }

    #[inline(always)]
    fn with<R>(&mut self, name: u64, work: impl FnOnce(&Session) -> R) -> R {
        // SAFETY: the name of a live session is its address.
        work(unsafe { &*(name as *const Session) })
    }

    fn remove(&mut self, name: u64) {
        // SAFETY: the session is live, and freed once.
        unsafe { (self.free)(name as *mut c_void) }
    }
}
