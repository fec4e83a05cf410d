//! [`Scope`]: places what a thread allocates from the heap together, and counts what is left.

use alloc::ffi::CString;
use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::ptr::{null_mut, NonNull};
use core::task::{Context, Poll};

use crate::reclaim;

/// A place for what threads allocate from the heap: that of a request, a session, a task. If
/// [`Slabyard`](crate::Slabyard) is the global allocator, all values of up to 8 KiB that a thread
/// allocates in a scope lie in memory of the scope's own. When they are dropped, this memory is free
/// as a whole, whatever else lives; and [`live`](Scope::live) says what was not dropped.
///
/// A scope drops nothing. Its values are dropped as ever, by any thread, during or after it. Entering
/// and leaving a scope takes some tens of nanoseconds.
///
/// Thread rule: any number of threads may be in a scope, and a thread may be in up to 32 nested
/// scopes.
///
/// ```
/// use slabyard::{Scope, Slabyard};
///
/// #[global_allocator]
/// static ALLOCATOR: Slabyard = Slabyard;
///
/// let request = Scope::new("request").unwrap();
/// let answer = request.run(|| String::from("in the scope, as all that is made on the way")).unwrap();
/// assert_eq!(request.live().objects, 1);
/// drop(answer);
/// assert_eq!(request.live().objects, 0);
/// ```
pub struct Scope {
    scope: NonNull<slabyard_sys::sy_scope>,
}

/// What lives in a [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The number of objects.
    pub objects: usize,
    /// Their bytes, rounded up to size classes.
    pub bytes: usize,
}

// SAFETY: the functions of scopes may be called from any thread.
unsafe impl Send for Scope {}
// SAFETY: as above.
unsafe impl Sync for Scope {}

/// This thread is in the scope. It leaves when this is dropped.
struct Entered(*mut slabyard_sys::sy_scope);

impl Entered {
    /// `None`: the thread stays where it is.
    fn new(scope: *mut slabyard_sys::sy_scope) -> Option<Self> {
        // SAFETY: the scope exists while it is borrowed, and this is not called in a destructor.
        let entered = reclaim::unless_within(|| unsafe { slabyard_sys::sy_scope_enter(scope) }, -1);
        (entered == 0).then_some(Entered(scope))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: any thread may call this. This scope is the innermost one, since calls nest.
        unsafe { slabyard_sys::sy_scope_leave(self.0) };
    }
}

impl Scope {
    /// Creates a scope. `None`: there is no memory. The first 31 bytes of the name are kept.
    pub fn new(name: &str) -> Option<Self> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a C string, which is copied.
        let scope = NonNull::new(unsafe { slabyard_sys::sy_scope_create(name.as_ptr()) })?;
        Some(Scope { scope })
    }

    /// Runs `work` in the scope, on this thread, and leaves the scope also if `work` panics. `None`:
    /// `work` was not run, because the thread is in 32 scopes already, there is no memory, or this
    /// is called in a destructor that the library runs.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let _entered = Entered::new(self.scope.as_ptr())?;
        Some(work())
    }

    /// Runs `work` outside of all scopes, on this thread: for values that are to outlive the scopes
    /// that the thread is in. `None`: as for [`run`](Scope::run).
    pub fn outside<R>(work: impl FnOnce() -> R) -> Option<R> {
        let _entered = Entered::new(null_mut())?;
        Some(work())
    }

    /// Wraps a future, which then is in this scope each time that it is polled, on whatever thread.
    /// `self` is a reference to the scope, or an `Arc`. If the scope cannot be entered for a poll,
    /// the future is polled outside of it.
    ///
    /// ```
    /// # use slabyard::Scope;
    /// # use std::sync::Arc;
    /// let request = Arc::new(Scope::new("request").unwrap());
    /// let future = Scope::around(request.clone(), async { vec![1, 2, 3] });
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # struct Nothing;
    /// # impl std::task::Wake for Nothing { fn wake(self: Arc<Self>) {} }
    /// # let waker = Waker::from(Arc::new(Nothing));
    /// let Poll::Ready(numbers) = pin!(future).poll(&mut Context::from_waker(&waker)) else {
    ///     panic!("it waits for nothing")
    /// };
    /// assert_eq!(numbers.len(), 3);
    /// ```
    pub fn around<S: Deref<Target = Scope>, F: Future>(scope: S, future: F) -> InScope<S, F> {
        InScope { scope, future }
    }

    /// What lives in the scope. Values that other threads have dropped count until those threads
    /// have put their memory back ([`thread_flush`](crate::thread_flush)).
    pub fn live(&self) -> Live {
        let mut bytes = 0;
        // SAFETY: the scope exists, and `bytes` may be written.
        let objects = unsafe { slabyard_sys::sy_scope_live(self.scope.as_ptr(), &mut bytes) };
        Live { objects, bytes }
    }

    /// Writes what lives in the scope to stderr, by size, and with the option `audit` also by the stack
    /// that allocated it, if anything does. The result is the number of objects.
    pub fn report(&self) -> usize {
        // SAFETY: the scope exists.
        unsafe { slabyard_sys::sy_scope_report(self.scope.as_ptr()) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: the scope is ours, and is not used again. If a thread is in it (an `InScope` was
        // leaked in a poll), it is refused and stays.
        unsafe { slabyard_sys::sy_scope_destroy(self.scope.as_ptr()) };
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.live()).finish()
    }
}

/// A future that is polled in a [`Scope`]: see [`Scope::around`].
#[must_use = "futures do nothing unless they are polled"]
pub struct InScope<S, F> {
    scope: S,
    future: F,
}

impl<S: Deref<Target = Scope>, F: Future> Future for InScope<S, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = Entered::new(self.scope.scope.as_ptr());
        // SAFETY: `future` is pinned with the whole, and is moved neither here nor on drop.
        let future = unsafe { self.map_unchecked_mut(|whole| &mut whole.future) };
        future.poll(context)
    }
}

impl<S, F> fmt::Debug for InScope<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InScope")
    }
}
