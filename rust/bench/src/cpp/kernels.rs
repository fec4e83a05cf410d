//! Containers and their loops: the C side of `kernels/cpp/containers.h`, field by field.

use crate::kernels::SHARED;
use core::ffi::{c_char, c_void, CStr};

/// `bench_operation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Pair,
    Replace,
    Find,
    Build,
}

const OPERATIONS: usize = 4;

impl Operation {
    /// Whether the container is full before and after the operation. Otherwise it is empty.
    pub fn takes_full(self) -> bool {
        matches!(self, Operation::Replace | Operation::Find)
    }
}

/// `BENCH_PLACE`.
const PLACE: usize = 16;

/// `bench_container`.
#[repr(C)]
struct Functions {
    kind: *const c_char,
    who: *const c_char,
    traits: u64,
    open: unsafe extern "C" fn() -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    trim: Option<unsafe extern "C" fn(*mut c_void)>,
    begin: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, u64) -> *mut c_void,
    end: unsafe extern "C" fn(*mut c_void),
    fill: unsafe extern "C" fn(*mut c_void) -> u64,
    clear: unsafe extern "C" fn(*mut c_void) -> u64,
    run: [Option<unsafe extern "C" fn(*mut c_void, u64) -> u64>; OPERATIONS],
}

// SAFETY: functions and static strings, never written.
unsafe impl Sync for Functions {}

extern "C" {
    fn bench_containers_0(count: *mut usize) -> *const Functions;
    fn bench_containers_1(count: *mut usize) -> *const Functions;
    fn bench_containers_2(count: *mut usize) -> *const Functions;
    fn bench_boost_version() -> *const c_char;
}

/// The version of Boost that this was built with.
pub fn boost() -> Option<&'static str> {
    // SAFETY: gives a static string or null.
    let version = unsafe {
        let version = bench_boost_version();
        (!version.is_null()).then(|| CStr::from_ptr(version))
    };
    version.and_then(|version| version.to_str().ok())
}

/// One kind of container with one contender.
#[derive(Clone, Copy)]
pub struct Maker(&'static Functions);

/// All kinds of containers in one layout, in the order of the tables.
pub fn all(layout: usize) -> impl Iterator<Item = Maker> {
    let of = [bench_containers_0, bench_containers_1, bench_containers_2][layout];
    let mut count = 0;
    // SAFETY: gives a static array and its length.
    let all = unsafe { core::slice::from_raw_parts(of(&mut count), count) };
    all.iter().map(Maker)
}

impl Maker {
    pub fn find(layout: usize, kind: &str, who: &str) -> Option<Maker> {
        all(layout).find(|one| one.kind() == kind && one.who() == who)
    }

    pub fn kind(&self) -> &'static str {
        // SAFETY: every table has static strings.
        let kind = unsafe { CStr::from_ptr(self.0.kind) };
        kind.to_str().expect("words")
    }

    pub fn who(&self) -> &'static str {
        // SAFETY: as above.
        let who = unsafe { CStr::from_ptr(self.0.who) };
        who.to_str().expect("words")
    }

    /// Whether several threads may have containers of the same state.
    pub fn is_shared(&self) -> bool {
        self.0.traits & SHARED != 0
    }

    pub fn has(&self, operation: Operation) -> bool {
        self.0.run[operation as usize].is_some()
    }

    pub fn open(&self) -> State {
        // SAFETY: it may be opened at any time.
        let pointer = unsafe { (self.0.open)() };
        State {
            maker: *self,
            pointer,
        }
    }
}

/// Memory for the places beside a container, one for each of its elements. It is touched.
pub struct Places(Vec<[u64; PLACE / 8]>);

impl Places {
    pub fn new(live: usize) -> Places {
        Places(vec![[1; PLACE / 8]; live])
    }
}

/// The state that the nodes of containers come from.
pub struct State {
    maker: Maker,
    pointer: *mut c_void,
}

// SAFETY: the functions that several threads may call, they may call at the same time; see `begin`.
unsafe impl Sync for State {}

impl State {
    /// An empty container, for as many elements as there are places.
    ///
    /// # Safety
    /// If the state is not shared, one thread at a time uses all of its containers.
    pub unsafe fn begin<'a>(&'a self, places: &'a mut Places, seed: u64) -> Container<'a> {
        let live = places.0.len();
        // SAFETY: the places are there for as long as the container; the rest as the caller says.
        let pointer =
            unsafe { (self.maker.0.begin)(self.pointer, places.0.as_mut_ptr().cast(), live, seed) };
        Container {
            state: self,
            pointer,
            live,
            filled: false,
        }
    }

    /// Gives back as much memory as possible. No container exists at this time.
    pub fn trim(&mut self) {
        if let Some(trim) = self.maker.0.trim {
            // SAFETY: no container exists, because containers borrow the state.
            unsafe { trim(self.pointer) };
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the state is open, and no container is left.
        unsafe { (self.maker.0.close)(self.pointer) };
    }
}

/// A container, of one thread at a time.
pub struct Container<'a> {
    state: &'a State,
    pointer: *mut c_void,
    live: usize,
    filled: bool,
}

// SAFETY: it is of one thread at a time.
unsafe impl Send for Container<'_> {}

impl Container<'_> {
    /// Inserts all elements into an empty container.
    pub fn fill(&mut self) -> u64 {
        assert!(!self.filled, "there are elements already");
        self.filled = true;
        // SAFETY: the container is live.
        unsafe { (self.state.maker.0.fill)(self.pointer) }
    }

    /// Erases all elements.
    pub fn clear(&mut self) -> u64 {
        assert!(self.filled, "there is nothing");
        self.filled = false;
        // SAFETY: the container is live, and full.
        unsafe { (self.state.maker.0.clear)(self.pointer) }
    }

    /// Runs at least `count` operations, on a container that is full or empty as the operation
    /// needs it. Returns the number of operations, and the sum of the elements that were looked at.
    pub fn run(&mut self, operation: Operation, count: u64) -> (u64, u64) {
        assert_eq!(self.filled, operation.takes_full());
        let each = match operation {
            Operation::Build => self.live as u64,
            _ => 1,
        };
        let rounds = count.div_ceil(each);
        let run = self.state.maker.0.run[operation as usize].expect("such an operation");
        // SAFETY: the container is live, and full or empty.
        (rounds * each, unsafe { run(self.pointer, rounds) })
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { (self.state.maker.0.end)(self.pointer) };
    }
}
