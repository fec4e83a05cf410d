//! Reports of misuse, and handlers for them.

use alloc::boxed::Box;
use core::ffi::{c_char, CStr};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::{fmt, ptr};

use slabyard_sys as sys;

/// The kind of misuse that was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// Freed memory is not Slabyard's, or not in use.
    ForeignPointer,
    /// A freed address is inside a slab of the cache, but not at the start of an object.
    MisalignedPointer,
    /// A freed object belongs to another cache.
    WrongCache,
    /// A freed object is free already.
    DoubleFree,
    /// A free has a size of another size class.
    WrongSize,
    /// A range was freed to an arena that did not allocate it.
    NotAllocated,
    /// A range was freed to an arena with another size.
    SegmentSize,
    /// The red zone behind an object was written to.
    Overflow,
    /// The red zone before an object was written to.
    Underflow,
    /// A free object was written to.
    WriteAfterFree,
    /// The edge of a slab was written to.
    SlabEdge,
    /// An access hit the guard page behind an object.
    GuardOverflow,
    /// An access hit the guard page before an object.
    GuardUnderflow,
    /// An access hit an object on a page of its own after the object was freed.
    UseAfterFree,
    /// An object was unpinned that is not pinned.
    NotPinned,
    /// An access used a pointer that was read from freed memory.
    FreedPointer,
    /// An access used a pointer that was read from an object not written since its allocation.
    UnwrittenPointer,
    /// A kind that this version of the crate does not know.
    Other,
}

/// The code and thread that allocated or freed an object, if an audit recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Trace<'r> {
    /// The return addresses, the innermost first.
    pub frames: &'r [*const core::ffi::c_void],
    /// The system's id of the thread.
    pub thread: u32,
    /// Nanoseconds since the operation.
    pub age_ns: u64,
}

/// A report of misuse, as the handler of [`on_report`] gets it. Its `Display` text is the report in
/// one line.
pub struct Report<'r> {
    fault: *const sys::sy_fault,
    during: PhantomData<&'r sys::sy_fault>,
}

impl<'r> Report<'r> {
    fn fault(&self) -> &'r sys::sy_fault {
        // SAFETY: the fault is valid while the handler runs.
        unsafe { &*self.fault }
    }

    /// The kind of misuse.
    pub fn kind(&self) -> FaultKind {
        match self.fault().kind {
            sys::SY_FAULT_FOREIGN_POINTER => FaultKind::ForeignPointer,
            sys::SY_FAULT_MISALIGNED_POINTER => FaultKind::MisalignedPointer,
            sys::SY_FAULT_WRONG_CACHE => FaultKind::WrongCache,
            sys::SY_FAULT_DOUBLE_FREE => FaultKind::DoubleFree,
            sys::SY_FAULT_WRONG_SIZE => FaultKind::WrongSize,
            sys::SY_FAULT_NOT_ALLOCATED => FaultKind::NotAllocated,
            sys::SY_FAULT_SEGMENT_SIZE => FaultKind::SegmentSize,
            sys::SY_FAULT_OVERFLOW => FaultKind::Overflow,
            sys::SY_FAULT_UNDERFLOW => FaultKind::Underflow,
            sys::SY_FAULT_WRITE_AFTER_FREE => FaultKind::WriteAfterFree,
            sys::SY_FAULT_SLAB_EDGE => FaultKind::SlabEdge,
            sys::SY_FAULT_GUARD_OVERFLOW => FaultKind::GuardOverflow,
            sys::SY_FAULT_GUARD_UNDERFLOW => FaultKind::GuardUnderflow,
            sys::SY_FAULT_USE_AFTER_FREE => FaultKind::UseAfterFree,
            sys::SY_FAULT_NOT_PINNED => FaultKind::NotPinned,
            sys::SY_FAULT_FREED_POINTER => FaultKind::FreedPointer,
            sys::SY_FAULT_UNWRITTEN_POINTER => FaultKind::UnwrittenPointer,
            _ => FaultKind::Other,
        }
    }

    /// The name of the cache, heap or arena that was used.
    pub fn cache(&self) -> &'r str {
        // SAFETY: null or a C string that is valid while the handler runs.
        unsafe { text(self.fault().cache) }.unwrap_or("")
    }

    /// The cache that owns the object, if the object was freed to another one or to the heap.
    pub fn found_cache(&self) -> Option<&'r str> {
        // SAFETY: as in cache.
        unsafe { text(self.fault().found_cache) }
    }

    /// The object size of the cache in bytes, or of [`Report::found_cache`] if the cache is a heap; 0:
    /// not known.
    pub fn object_size(&self) -> usize {
        self.fault().object_size
    }

    /// What was freed, or the first byte that was damaged or accessed.
    pub fn address(&self) -> usize {
        self.fault().address.addr()
    }

    /// The start of the object concerned, if known.
    pub fn object(&self) -> Option<usize> {
        Some(self.fault().object.addr()).filter(|object| *object != 0)
    }

    /// The distance in bytes from the start of the object to the address.
    pub fn offset(&self) -> isize {
        self.fault().offset
    }

    /// The current content of memory, from the first damaged byte to the last.
    pub fn damage(&self) -> &'r [u8] {
        let fault = self.fault();
        if fault.damage.is_null() {
            return &[];
        }
        // SAFETY: this number of bytes is readable while the handler runs.
        unsafe { core::slice::from_raw_parts(fault.damage.cast(), fault.damage_bytes) }
    }

    /// The last allocation of the object.
    pub fn allocated(&self) -> Option<Trace<'r>> {
        trace(&self.fault().allocated)
    }

    /// The last free of the object.
    pub fn freed(&self) -> Option<Trace<'r>> {
        trace(&self.fault().freed)
    }

    /// Writes the whole report, of several lines, to the place where reports are written without a
    /// handler.
    pub fn write(&self) {
        // SAFETY: this is the fault that the handler was given.
        unsafe { sys::sy_report_fault(self.fault) }
    }
}

/// # Safety
/// `pointer` is null or a C string that is valid for `'r`.
pub(crate) unsafe fn text<'r>(pointer: *const c_char) -> Option<&'r str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_str().unwrap_or("(a name that is no text)"))
}

/// Converts a trace, whose frames stay valid.
pub(crate) fn trace<'r>(trace: &sys::sy_trace) -> Option<Trace<'r>> {
    let noted = trace.depth > 0 && !trace.frames.is_null();
    noted.then(|| Trace {
        // SAFETY: this number of frames exist, and they stay valid.
        frames: unsafe { core::slice::from_raw_parts(trace.frames, trace.depth) },
        thread: trace.thread,
        age_ns: trace.age,
    })
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::ForeignPointer => "free of a foreign pointer",
            FaultKind::MisalignedPointer => "free of a misaligned pointer",
            FaultKind::WrongCache => "free to the wrong cache",
            FaultKind::DoubleFree => "double free",
            FaultKind::WrongSize => "free with the wrong size",
            FaultKind::NotAllocated => "free of a segment that is not allocated",
            FaultKind::SegmentSize => "free of a segment with the wrong size",
            FaultKind::Overflow => "overflow",
            FaultKind::Underflow => "underflow",
            FaultKind::WriteAfterFree => "write after free",
            FaultKind::SlabEdge => "slab edge overwritten",
            FaultKind::GuardOverflow => "access behind an object (guard page)",
            FaultKind::GuardUnderflow => "access before an object (guard page)",
            FaultKind::UseAfterFree => "use after free (guard page)",
            FaultKind::NotPinned => "unpin without a pin",
            FaultKind::FreedPointer => "access by a pointer read from freed memory",
            FaultKind::UnwrittenPointer => "access by a pointer read from memory never written",
            FaultKind::Other => "a fault",
        })
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in {:?} at {:#x}",
            self.kind(),
            self.cache(),
            self.address()
        )?;
        if let Some(object) = self.object() {
            write!(f, " ({:+} of the object at {object:#x})", self.offset())?;
        }
        match self.found_cache() {
            Some(cache) => write!(f, ", an object of {cache:?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("kind", &self.kind())
            .field("cache", &self.cache())
            .field("address", &self.address())
            .field("object", &self.object())
            .field("offset", &self.offset())
            .field("found_cache", &self.found_cache())
            .finish_non_exhaustive()
    }
}

/// The reaction to a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Writes the report and ends the process, as without a handler.
    Abort,
    /// Goes on. An object that was freed wrongly is left alone; damaged memory is repaired.
    GoOn,
}

type Handler = Box<dyn Fn(&Report<'_>) -> Action + Send + Sync>;

static HANDLER: AtomicPtr<Handler> = AtomicPtr::new(ptr::null_mut());

/// Sets the handler that is called for each misuse, on the thread that found it. It replaces the
/// previous handler. It may use Slabyard. If it panics, the process ends. An access that hit a
/// guard page is repeated after the handler, so the process ends in this case.
///
/// Memory of handlers is never freed, because a thread may be running one.
///
/// ```
/// use slabyard::{Action, FaultKind};
///
/// slabyard::on_report(|report| {
///     eprintln!("{report}");
///     if report.kind() == FaultKind::DoubleFree { Action::GoOn } else { Action::Abort }
/// });
/// ```
pub fn on_report(handler: impl Fn(&Report<'_>) -> Action + Send + Sync + 'static) {
    let handler: Handler = Box::new(handler);
    HANDLER.store(Box::into_raw(Box::new(handler)), Ordering::Release);
    // SAFETY: the handler may be called from any thread.
    unsafe { sys::sy_set_fault_handler(Some(handle)) };
}

/// Removes the handler: reports are written to stderr again, and end the process.
pub fn no_report_handler() {
    // SAFETY: a null handler is allowed.
    unsafe { sys::sy_set_fault_handler(None) };
}

/// Sends reports to the `log` crate, as errors of the target `slabyard`, then does `action`.
#[cfg(feature = "log")]
pub fn log_reports(action: Action) {
    on_report(move |report| {
        log::error!(target: "slabyard", "{report}");
        action
    });
}

unsafe extern "C" fn handle(fault: *const sys::sy_fault) {
    // SAFETY: handlers are never freed; the pointer is null only before the first one is set.
    let Some(handler) = (unsafe { HANDLER.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let report = Report {
        fault,
        during: PhantomData,
    };
    if handler(&report) == Action::Abort {
        report.write();
        abort();
    }
}

#[cfg(feature = "std")]
fn abort() -> ! {
    std::process::abort()
}

/// Ends the process: a panic must not leave an `extern "C"` function.
#[cfg(not(feature = "std"))]
fn abort() -> ! {
    panic!("the program misused memory")
}
