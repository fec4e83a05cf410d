//! Audits: live objects by the code that allocated them, tags, and the last operations of a cache.
//!
//! An audit covers caches that were created with [`Checks::AUDIT`](crate::Checks::AUDIT), or while
//! the option `audit` or `leaks` was on ([`set_options`](crate::set_options), or `SLABYARD=audit`
//! in the environment). It covers the heap if one of these options was on at the heap's first use.
//! Nothing else is covered. An audited operation is a function call that captures a stack: some
//! hundred nanoseconds.
//!
//! ```
//! use slabyard::{audit, Cache, Checks};
//!
//! let orders = Cache::builder().name("order").checks(Checks::AUDIT).build().unwrap();
//! let book: Vec<_> = (0..10).map(|id| orders.insert(id)).collect();
//!
//! let held = orders.leaks(audit::Which::Live).unwrap();
//! assert_eq!((held[0].cache.as_str(), held[0].objects), ("order", 10)); // by one stack
//! drop(book);
//! assert!(orders.leaks(audit::Which::Live).unwrap().is_empty());
//! ```
//!
//! In a test, [`assert_no_leaks`] reports objects that were allocated in it and are live at its
//! end.
//!
//! All functions may be called from any thread. Results describe one moment.

use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void};
use core::fmt;

use slabyard_sys as sys;

use crate::report::{text, trace};
use crate::{Cache, Checks, Trace};
#[cfg(not(miri))]
use crate::{HandleMap, Key};

/// Selects live objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Which {
    /// All live objects.
    Live,
    /// Only objects to which nothing points. The search is conservative: an object is not listed if
    /// a value in the memory of the process, in a register of this thread or in a reachable object
    /// looks like a pointer into it. It runs in a copy of the process, made as by fork, and takes
    /// time in proportion to the process.
    Unreachable,
}

impl Which {
    fn flags(self) -> u32 {
        match self {
            Which::Live => 0,
            Which::Unreachable => sys::SY_LEAKS_UNREACHABLE,
        }
    }
}

/// Live objects of one cache that were allocated by the same stack.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Leak {
    /// The name of the cache, or "heap".
    pub cache: String,
    /// The number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Nanoseconds since the oldest of these allocations.
    pub oldest_ns: u64,
    /// Nanoseconds since the newest of these allocations.
    pub newest_ns: u64,
    /// The address of the oldest object.
    pub example: usize,
    /// The stack that allocated the oldest object, if one was captured.
    pub allocated: Option<Trace<'static>>,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (objects, bytes, cache) = (self.objects, self.bytes, &self.cache);
        let plural = if objects == 1 { "" } else { "s" };
        write!(f, "{objects} object{plural} of {cache:?}, {bytes} bytes")?;
        let Some(trace) = self.allocated else {
            return Ok(());
        };
        write!(f, ", by thread {}:", trace.thread)?;
        trace.frames.iter().try_for_each(|&it| write!(f, " {it:p}"))
    }
}

/// There is no memory for the result, or the system does not give access to the memory of the
/// process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AuditError;

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("who has what could not be found out")
    }
}

impl core::error::Error for AuditError {}

/// A copy of a struct that the library passes to a visitor.
trait Told {
    type Of;
    fn told(of: &Self::Of) -> Self;
}

type Visit<C> = unsafe extern "C" fn(*mut c_void, *const C) -> c_int;

/// Collects what `each` passes to its visitor in a vector.
fn list<T: Told>(
    each: impl FnOnce(Visit<T::Of>, *mut c_void) -> c_int,
) -> Result<Vec<T>, AuditError> {
    unsafe extern "C" fn add<T: Told>(list: *mut c_void, of: *const T::Of) -> c_int {
        // SAFETY: the call below passes such a list, which no other code uses meanwhile.
        let list = unsafe { &mut *list.cast::<Vec<T>>() };
        // SAFETY: the struct is valid during this call.
        list.push(T::told(unsafe { &*of }));
        0
    }

    let mut list = Vec::new();
    match each(add::<T>, (&raw mut list).cast()) {
        0 => Ok(list),
        _ => Err(AuditError),
    }
}

/// # Safety
/// `name` is null or a C string.
unsafe fn owned(name: *const c_char) -> String {
    // SAFETY: as the caller says.
    unsafe { text(name) }.unwrap_or("").into()
}

impl Told for Leak {
    type Of = sys::sy_leak;

    fn told(leak: &sys::sy_leak) -> Self {
        Leak {
            // SAFETY: a C string that is valid during the visit.
            cache: unsafe { owned(leak.cache) },
            objects: leak.objects,
            bytes: leak.bytes,
            oldest_ns: leak.oldest,
            newest_ns: leak.newest,
            example: leak.example.addr(),
            allocated: trace(&leak.allocated),
        }
    }
}

/// # Safety
/// `cache` is a cache or null.
unsafe fn leaks_of(cache: *mut sys::sy_cache, which: Which) -> Result<Vec<Leak>, AuditError> {
    // SAFETY: as the caller says; the visitor fits the list.
    list(|add, list| unsafe { sys::sy_leak_each(cache, which.flags(), add, list) })
}

/// All live objects of all caches and of the heap, those with the most bytes first.
///
/// # Errors
/// There is no memory, or, for [`Which::Unreachable`], the process cannot be copied.
pub fn leaks(which: Which) -> Result<Vec<Leak>, AuditError> {
    // SAFETY: null stands for all caches.
    unsafe { leaks_of(core::ptr::null_mut(), which) }
}

/// Writes live objects as a report with function names and lines: to stderr, or to the file of the
/// option `report`. The result is the number of objects. If there are none, nothing is written.
pub fn report_leaks(which: Which) -> usize {
    // SAFETY: null stands for all caches.
    unsafe { sys::sy_report_leaks(core::ptr::null_mut(), which.flags()) }
}

/// Sends live objects to the `log` crate, one warning of the target `slabyard` for each stack. The
/// result is the number of objects.
///
/// # Errors
/// As [`leaks`].
#[cfg(feature = "log")]
pub fn log_leaks(which: Which) -> Result<usize, AuditError> {
    let leaks = leaks(which)?;
    for leak in &leaks {
        log::warn!(target: "slabyard", "live: {leak}");
    }
    Ok(leaks.iter().map(|leak| leak.objects).sum())
}

/// Live objects of all caches of one name that were allocated by the same stack.
struct Group {
    of: Leak,
    anew: bool,
}

/// Groups live objects. `began` is the address of a marker, which is not counted: objects that
/// were allocated after it are new.
fn groups(leaks: Vec<Leak>, began: Option<usize>) -> Vec<Group> {
    // All ages are taken at one moment, so a smaller age means a later allocation.
    let mark = leaks.iter().find(|it| Some(it.example) == began);
    let mark = mark.map_or(0, |it| it.oldest_ns);
    let mut groups: Vec<Group> = Vec::new();
    for of in leaks.into_iter().filter(|it| Some(it.example) != began) {
        let anew = of.newest_ns < mark;
        let Some(known) = groups.iter_mut().find(|it| same(&it.of, &of)) else {
            groups.push(Group { of, anew });
            continue;
        };
        known.anew |= anew;
        known.of.objects += of.objects;
        known.of.bytes += of.bytes;
        known.of.newest_ns = known.of.newest_ns.min(of.newest_ns);
        known.of.oldest_ns = known.of.oldest_ns.max(of.oldest_ns);
    }
    groups
}

/// Whether two stacks are the same: equal stacks have the same frames, which stay valid.
fn same(one: &Leak, other: &Leak) -> bool {
    let frames = |leak: &Leak| leak.allocated.map(|trace| trace.frames.as_ptr());
    one.cache == other.cache && frames(one) == frames(other)
}

/// Describes in a line each group that has objects which were not live before.
fn what_leaked(before: &[Group], after: &[Group]) -> String {
    let mut leaked = String::new();
    for Group { of, anew } in after {
        let known = before.iter().find(|it| same(&it.of, of));
        match of
            .objects
            .saturating_sub(known.map_or(0, |it| it.of.objects))
        {
            0 if *anew => leaked += &alloc::format!("\n  as many, but not the same: {of}"),
            0 => {}
            more => leaked += &alloc::format!("\n  {more} more: {of}"),
        }
    }
    leaked
}

/// Runs `work`, and panics if audited objects are live after it that were allocated since it began.
/// It counts the allocations of all threads, so no other test may run at the same time: give the
/// test a file of its own in `tests/`, or run `cargo test -- --test-threads=1`. A report of all live objects is written too, with function names and lines.
///
/// The time of the allocation counts: if `work` replaces an object, the new one counts. The text of
/// the panic tells, for each cache name and stack, how many more objects there are than before.
///
/// The option `audit` has to be on before the caches concerned are created.
///
/// ```should_panic
/// slabyard::set_options("audit").unwrap();
/// slabyard::audit::assert_no_leaks(|| {
///     let orders = slabyard::Cache::new("order");
///     std::mem::forget(orders.insert(1)); // and so the cache stays
/// });
/// ```
///
/// # Panics
/// If objects were leaked, or if this cannot be determined.
#[track_caller]
pub fn assert_no_leaks<R>(work: impl FnOnce() -> R) -> R {
    // An object of our own marks the beginning, by the clock that gives the ages.
    let clock = Cache::builder()
        .name("assert_no_leaks")
        .checks(Checks::AUDIT);
    let clock = clock.build().expect("a cache");
    let before = groups(leaks(Which::Live).expect("what is live before"), None);
    let began = clock.insert(0u64);
    let result = work();
    let after = leaks(Which::Live).expect("what is live after");
    let after = groups(after, Some(core::ptr::from_ref(&*began).addr()));
    let leaked = what_leaked(&before, &after);
    if !leaked.is_empty() {
        drop(began);
        report_leaks(Which::Live);
        panic!("leaked:{leaked}");
    }
    result
}

/// An operation of a cache, as an audit recorded it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Operation {
    /// True: the object was freed; false: it was allocated.
    pub freed: bool,
    /// The address of the object.
    pub object: usize,
    /// The size of the object in bytes.
    pub size: usize,
    /// The code and thread, and the time.
    pub by: Option<Trace<'static>>,
}

impl Told for Operation {
    type Of = sys::sy_operation;

    fn told(operation: &sys::sy_operation) -> Self {
        Operation {
            freed: operation.freed,
            object: operation.object.addr(),
            size: operation.size,
            by: trace(&operation.trace),
        }
    }
}

/// # Safety
/// `cache` is a cache.
#[cfg(not(miri))]
unsafe fn history_of(cache: *mut sys::sy_cache) -> Result<Vec<Operation>, AuditError> {
    // SAFETY: as the caller says; the visitor fits the list.
    list(|add, list| unsafe { sys::sy_cache_history(cache, add, list) })
}

#[cfg(not(miri))]
macro_rules! of_cache {
    ($($of:ty, [$($parameters:tt)*];)+) => {$(
        /// Records of an audit: see [`audit`](crate::audit).
        impl<$($parameters)*> $of {
            /// Live objects by the code that allocated them, those with the most bytes first.
            ///
            /// # Errors
            /// As [`audit::leaks`](crate::audit::leaks).
            pub fn leaks(&self, which: Which) -> Result<Vec<Leak>, AuditError> {
                // SAFETY: the cache exists.
                unsafe { leaks_of(self.as_sys(), which) }
            }

            /// The last operations, the latest first. The option `audit=N` sets how many are kept.
            ///
            /// # Errors
            /// There is no memory.
            pub fn history(&self) -> Result<Vec<Operation>, AuditError> {
                // SAFETY: the cache exists.
                unsafe { history_of(self.as_sys()) }
            }
        }
    )+};
}

#[cfg(not(miri))] // there are other caches there
of_cache! {
    Cache<T>, [T];
    HandleMap<T, K>, [T, K: Key];
}

/// A tag names a part of the program, to count its allocations: all allocations of a thread while
/// the thread has the tag. A process can have 255 tags; they are never removed.
///
/// ```
/// use slabyard::{audit::{self, Tag}, Cache, Checks};
///
/// let nodes = Cache::builder().checks(Checks::AUDIT).build().unwrap();
/// let parser = Tag::open("parser").unwrap();
/// let node = parser.scope(|| nodes.insert([0u64; 4]));
///
/// let all = audit::tags().unwrap();
/// let of_parser = all.iter().find(|it| it.tag == parser).unwrap();
/// assert_eq!((of_parser.name.as_str(), of_parser.live, of_parser.live_bytes), ("parser", 1, 32));
/// # drop(node);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(sys::sy_tag);

impl Tag {
    /// The tag of untagged allocations.
    pub const NONE: Tag = Tag(0);

    /// The tag with this name; the same name gives the same tag. The first 31 bytes of the name are
    /// kept, up to a zero byte. `None`: there are 255 tags already.
    pub fn open(name: &str) -> Option<Tag> {
        let name = name.split('\0').next().unwrap_or("");
        if name.is_empty() {
            return Some(Tag::NONE);
        }
        let name = alloc::ffi::CString::new(name).ok()?;
        // SAFETY: a C string.
        Some(Tag(unsafe { sys::sy_tag_open(name.as_ptr()) })).filter(|tag| *tag != Tag::NONE)
    }

    /// Runs `work`. Allocations of this thread meanwhile get the tag, except within an inner scope.
    /// Then the thread gets its previous tag back, also if `work` panics.
    pub fn scope<R>(self, work: impl FnOnce() -> R) -> R {
        struct Before(Tag);
        impl Drop for Before {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let _before = Before(self.set());
        work()
    }

    /// Sets the tag for the following allocations of this thread, and returns the previous tag.
    pub fn set(self) -> Tag {
        // SAFETY: the argument is a tag.
        Tag(unsafe { sys::sy_tag_set(self.0) })
    }
}

/// Statistics of a tag.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TagStats {
    /// The tag.
    pub tag: Tag,
    /// The name of the tag; "" for untagged allocations.
    pub name: String,
    /// How many objects were allocated.
    pub allocations: u64,
    /// How many of these objects were freed, by any thread.
    pub frees: u64,
    /// How many of these objects are live.
    pub live: usize,
    /// The bytes of the live objects.
    pub live_bytes: usize,
    /// The maximum of these bytes so far.
    pub peak_bytes: usize,
}

impl Told for TagStats {
    type Of = sys::sy_tag_stats;

    fn told(stats: &sys::sy_tag_stats) -> Self {
        TagStats {
            tag: Tag(stats.tag),
            // SAFETY: the name ends with a zero byte.
            name: unsafe { owned(stats.name.as_ptr()) },
            allocations: stats.allocations,
            frees: stats.frees,
            live: stats.live,
            live_bytes: stats.live_bytes,
            peak_bytes: stats.peak_bytes,
        }
    }
}

/// Statistics of all tags; the first one is for untagged allocations.
///
/// # Errors
/// There is no memory.
pub fn tags() -> Result<Vec<TagStats>, AuditError> {
    // SAFETY: the visitor fits the list.
    list(|add, list| unsafe { sys::sy_tag_each(add, list) })
}
