//! The loops of the rows about checks: the C side of `kernels/checks.h`, field by field.

use core::ffi::{c_char, c_void, CStr};

/// Bytes of an object.
pub const SIZE: usize = 64;

type Objects = *mut *mut c_void;

/// `bench_loops`: functions of the C side, which alone calls them.
#[repr(C)]
pub struct Loops {
    name: *const c_char,
    fill: *const c_void,
    drain: *const c_void,
    pair: *const c_void,
    steady: *const c_void,
}

// SAFETY: a table of functions and a static string, never written.
unsafe impl Sync for Loops {}

/// `bench_step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Fill = 0,
    Drain,
    Pair,
    Steady,
}

/// `bench_task`.
#[repr(C)]
struct Task {
    loops: *const Loops,
    state: *mut c_void,
    objects: Objects,
    live: usize,
    step: u64,
    count: u64,
    seed: u64,
    filled: u64,
    ns: u64,
}

extern "C" {
    fn bench_checks_0(count: *mut usize) -> *const Loops;
    fn bench_checks_1(count: *mut usize) -> *const Loops;
    fn bench_checks_2(count: *mut usize) -> *const Loops;
    fn bench_checks_3(count: *mut usize) -> *const Loops;
    fn bench_checks_run(task: *mut Task);
}

/// The loops over an allocator, in one layout.
pub fn loops(layout: usize, name: &str) -> Option<&'static Loops> {
    let of = [
        bench_checks_0,
        bench_checks_1,
        bench_checks_2,
        bench_checks_3,
    ][layout];
    let mut count = 0;
    // SAFETY: gives a static array and its length.
    let all = unsafe { core::slice::from_raw_parts(of(&mut count), count) };
    let named = |loops: &&Loops| {
        // SAFETY: every table carries a static string.
        let own = unsafe { CStr::from_ptr(loops.name) };
        own.to_bytes() == name.as_bytes()
    };
    all.iter().find(named)
}

/// The result of a task.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Objects, after [`Step::Fill`].
    pub filled: usize,
    /// Processor time of the loop.
    pub ns: u64,
}

/// Runs one step on the thread that runs all steps of the process, and waits for it.
///
/// # Safety
/// `state` is the state of the loops. After [`Step::Fill`], the first of `objects` are live: as
/// many as it returned. For [`Step::Drain`] and [`Step::Steady`], all of them are live. No other
/// step is running.
pub unsafe fn run(
    loops: &Loops,
    state: *mut c_void,
    objects: &mut [*mut c_void],
    step: Step,
    count: u64,
    seed: u64,
) -> Done {
    let mut task = Task {
        loops,
        state,
        objects: objects.as_mut_ptr(),
        live: objects.len(),
        step: step as u64,
        count,
        seed,
        filled: 0,
        ns: 0,
    };
    // SAFETY: as the caller guarantees.
    unsafe { bench_checks_run(&mut task) };
    Done {
        filled: task.filled as usize,
        ns: task.ns,
    }
}
