//! Runs the models of `tests/models`, which are C, under loom.
//!
//! clang compiles a file of models, with the library's sources that it includes, as it does for
//! ThreadSanitizer: before each access to memory that threads may share it calls a function, and an
//! atomic operation is such a call itself, with the memory order as an argument. This crate has
//! these functions. For each atomic variable they use one of loom's: loom decides which thread runs
//! next, and which value a load sees. For each other variable they use one of loom's cells, which
//! find data races.
//!
//! - Memory always holds the value that was stored last. So an access that is not atomic, which the
//!   program makes itself, reads the right value.
//! - Before each execution the program's variables are put back to what they were at its start.
//! - Thread-local variables are emulated (`-femulated-tls`): loom's threads are one of the system's.
//!
//! `tests/models/checkers.py` compiles and links; [`main`] is the program's.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
use loom::thread::{JoinHandle, Thread, ThreadId};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{addr_of, addr_of_mut, null_mut};

/// Variables of one model that its threads may share.
const ATOMICS: usize = 160;
const CELLS: usize = 1024;

/// Steps in one execution; more are a loop that does not end.
const MOST_STEPS: usize = 10_000;

/// How often threads are interrupted in one execution where they could go on, if the model does not
/// say it.
const PREEMPTIONS: usize = 2;

/// An atomic variable holds `first` more than what the highest bits of loom's say. So loom's can be
/// made before it is known which variable it is for.
///
/// loom tries another order of two operations if they depend on each other. It remembers the last
/// one on a variable alone. So where a thread loads and then stores, it forgets that another one has
/// loaded before, and misses orders. Hence each operation is one on `turn` first, of a kind that
/// depends on all others.
struct Atomic {
    turn: AtomicU64,
    shared: AtomicU64,
    first: u64,
    bits: u32,
}

impl Atomic {
    fn take_turn(&self) -> &AtomicU64 {
        self.turn.fetch_add(0, Ordering::Relaxed);
        &self.shared
    }

    fn value(&self, shared: u64) -> u64 {
        self.cut((shared >> (64 - self.bits)).wrapping_add(self.first))
    }

    fn shared_value(&self, value: u64) -> u64 {
        self.difference(value.wrapping_sub(self.first))
    }

    fn difference(&self, value: u64) -> u64 {
        value << (64 - self.bits)
    }

    fn cut(&self, value: u64) -> u64 {
        value & (u64::MAX >> (64 - self.bits))
    }
}

/// One execution of a model. All of loom's objects are made by the thread that starts the others,
/// before it does: to loom, whoever makes one has written to it.
#[derive(Default)]
struct Execution {
    has_started: bool, // another thread
    atomics: Vec<Atomic>,
    atomic_at: HashMap<usize, usize>,
    cells: Vec<UnsafeCell<()>>,
    cell_at: HashMap<usize, usize>,
    /// Atomic variables that the program is storing to in another way.
    stored: Vec<usize>,
    /// What was in the program's variables, eight bytes each.
    before: HashMap<usize, u64>,
    locals: HashMap<(ThreadId, usize), Vec<u128>>,
    threads: Vec<Option<JoinHandle<()>>>,
    /// Those that wait until there is a store to an atomic variable.
    waiting: Vec<(usize, Thread)>,
    barriers: Barriers,
}

/// One thread can make all others run a full memory barrier, wherever they are, as the system call
/// membarrier does. A thread runs it before its next access, so between any two of them. A thread
/// that sleeps has run one before, and runs one when it wakes up.
///
/// loom does not know that accesses depend on such a barrier. So with barriers each access is an
/// operation on `turn` first, which depends on all others.
#[derive(Default)]
struct Barriers {
    used: bool,
    turn: Option<AtomicU64>,
    alive: Vec<ThreadId>,
    asleep: Vec<ThreadId>,
    to_pass: Vec<ThreadId>,
    waits: Option<Thread>, // until `to_pass` is empty
}

static mut EXECUTION: *mut Execution = null_mut();

/// All of loom's threads are one of the system's, and none is interrupted but in a function of
/// loom's. No reference to a field is kept over one, but for those to loom's own objects.
fn execution() -> &'static mut Execution {
    // SAFETY: `explore` has set it, and ends it after the last thread.
    unsafe { &mut *EXECUTION }
}

// ---- memory ----

extern "C" {
    static mut __data_start: u8;
    static mut _end: u8;
}

fn is_variable(address: usize) -> bool {
    (addr_of!(__data_start) as usize..addr_of!(_end) as usize).contains(&address)
}

/// The program is about to write there.
fn keep(address: usize, bytes: usize) {
    if !is_variable(address) {
        return;
    }
    for word in (address & !7..address + bytes).step_by(8) {
        // SAFETY: a variable of the program lies there.
        let value = || unsafe { (word as *const u64).read() };
        execution().before.entry(word).or_insert_with(value);
    }
}

fn put_back(before: &HashMap<usize, u64>) {
    for (&word, &value) in before {
        // SAFETY: `keep` has read it there.
        unsafe { (word as *mut u64).write(value) };
    }
}

fn read(address: usize, bits: u32) -> u64 {
    let mut value = 0u64;
    // SAFETY: the program says that a variable of so many bits lies there.
    unsafe {
        std::ptr::copy_nonoverlapping(
            address as *const u8,
            addr_of_mut!(value).cast(),
            bits as usize / 8,
        );
    }
    value
}

/// An atomic variable has this value from now on.
fn write(address: usize, bits: u32, value: u64) {
    wake(address);
    keep(address, bits as usize / 8);
    // SAFETY: as above.
    unsafe {
        std::ptr::copy_nonoverlapping(
            addr_of!(value).cast(),
            address as *mut u8,
            bits as usize / 8,
        );
    }
}

// ---- barriers ----

fn own_id() -> ThreadId {
    loom::thread::current().id()
}

fn take_turn_of_all() {
    let turn = execution().barriers.turn.as_ref();
    turn.expect("it is made").fetch_add(0, Ordering::Relaxed);
}

/// The thread has run a barrier.
fn has_passed(thread: ThreadId) {
    let barriers = &mut execution().barriers;
    let before = barriers.to_pass.len();
    barriers.to_pass.retain(|it| *it != thread);
    if before > 0 && barriers.to_pass.is_empty() {
        barriers.waits.take().expect("one waits").unpark();
    }
}

/// Before each access: the place for a barrier.
fn pass() {
    if !execution().barriers.used || !execution().has_started {
        return;
    }
    take_turn_of_all();
    if execution().barriers.to_pass.contains(&own_id()) {
        fence(Ordering::SeqCst);
        has_passed(own_id());
    }
}

/// The thread sleeps in `body`.
fn sleep_in(body: impl FnOnce()) {
    if !execution().barriers.used {
        return body();
    }
    fence(Ordering::SeqCst);
    execution().barriers.asleep.push(own_id());
    has_passed(own_id());
    body();
    execution().barriers.asleep.retain(|it| *it != own_id());
    fence(Ordering::SeqCst);
}

fn thread_ends() {
    if execution().barriers.used {
        fence(Ordering::SeqCst);
        execution().barriers.alive.retain(|it| *it != own_id());
        has_passed(own_id());
    }
}

/// From now on in this execution, threads can make barriers.
#[no_mangle]
extern "C" fn model_use_barriers() {
    execution().barriers.used = true;
    execution().barriers.alive.push(own_id());
}

/// All other threads run a full memory barrier, and so does this one.
#[no_mangle]
extern "C" fn model_barrier() {
    tell_stored();
    take_turn_of_all();
    fence(Ordering::SeqCst);
    let barriers = &mut execution().barriers;
    assert!(barriers.waits.is_none(), "one makes a barrier at a time");
    let asleep = &barriers.asleep;
    let others = barriers.alive.iter().copied();
    barriers.to_pass = others
        .filter(|it| *it != own_id() && !asleep.contains(it))
        .collect();
    barriers.waits = (!barriers.to_pass.is_empty()).then(loom::thread::current);
    while !execution().barriers.to_pass.is_empty() {
        loom::thread::park();
    }
    fence(Ordering::SeqCst);
}

// ---- what is not atomic ----

fn cell_at(address: usize) -> &'static UnsafeCell<()> {
    let run = execution();
    let next = run.cell_at.len();
    let index = *run.cell_at.entry(address).or_insert(next);
    assert!(index < CELLS, "CELLS is too small");
    &run.cells[index]
}

/// What the program has stored to atomic variables by itself, loom hears of now.
fn tell_stored() {
    while let Some(address) = execution().stored.pop() {
        let atomic = atomic_at(address, 0);
        let value = atomic.shared_value(read(address, atomic.bits));
        atomic.shared.with_mut(|shared| *shared = value);
    }
}

/// Variables of four bytes and more are taken as pieces of four.
fn access(address: usize, bytes: usize, writes: bool) {
    if writes {
        keep(address, bytes);
    }
    if !execution().has_started {
        return;
    }
    tell_stored();
    pass();
    for piece in (address..address + bytes).step_by(4) {
        if execution().atomic_at.contains_key(&piece) {
            access_atomic(piece, writes);
        } else if writes {
            cell_at(piece).with_mut(|_| ());
        } else {
            cell_at(piece).with(|_| ());
        }
    }
}

fn access_atomic(address: usize, writes: bool) {
    let atomic = atomic_at(address, 0);
    if writes {
        atomic.shared.with_mut(|_| ());
        execution().stored.push(address);
    } else {
        // SAFETY: loom sees it if this is a data race.
        unsafe { atomic.shared.unsync_load() };
    }
}

macro_rules! accesses {
    ($($bytes:literal: $read:ident $write:ident)*) => {$(
        #[no_mangle]
        extern "C" fn $read(address: usize) {
            access(address, $bytes, false);
        }

        #[no_mangle]
        extern "C" fn $write(address: usize) {
            access(address, $bytes, true);
        }
    )*};
}

accesses! {
    1: __tsan_read1 __tsan_write1
    2: __tsan_read2 __tsan_write2
    4: __tsan_read4 __tsan_write4
    8: __tsan_read8 __tsan_write8
    16: __tsan_read16 __tsan_write16
    2: __tsan_unaligned_read2 __tsan_unaligned_write2
    4: __tsan_unaligned_read4 __tsan_unaligned_write4
    8: __tsan_unaligned_read8 __tsan_unaligned_write8
    16: __tsan_unaligned_read16 __tsan_unaligned_write16
}

/// What the program calls in place of `memset`.
#[no_mangle]
extern "C" fn model_memset(to: *mut u8, byte: c_int, bytes: usize) -> *mut u8 {
    access(to as usize, bytes, true);
    // SAFETY: the program wants it.
    unsafe { to.write_bytes(byte as u8, bytes) };
    to
}

/// In place of `memcpy`.
#[no_mangle]
extern "C" fn model_memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    access(from as usize, bytes, false);
    access(to as usize, bytes, true);
    // SAFETY: the program wants it.
    unsafe { to.copy_from(from, bytes) };
    to
}

#[no_mangle]
extern "C" fn __tsan_init() {}

#[no_mangle]
extern "C" fn __tsan_func_entry(_caller: usize) {}

#[no_mangle]
extern "C" fn __tsan_func_exit() {}

// ---- what is ----

/// `bits` are those of a variable that may be new.
fn atomic_at(address: usize, bits: u32) -> &'static mut Atomic {
    let run = execution();
    let next = run.atomic_at.len();
    let index = *run.atomic_at.entry(address).or_insert(next);
    assert!(index < ATOMICS, "ATOMICS is too small");
    let atomic = &mut run.atomics[index];
    if atomic.bits == 0 {
        atomic.bits = bits;
        atomic.first = read(address, bits);
        cell_at(address).with(|_| ()); // it may have been written in another way
    }
    atomic
}

fn order(number: c_int) -> Ordering {
    match number {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        5 => Ordering::SeqCst,
        _ => panic!("there is no memory order {number}"),
    }
}

fn load(address: usize, bits: u32, order: Ordering) -> u64 {
    if !execution().has_started {
        return read(address, bits);
    }
    tell_stored();
    pass();
    let atomic = atomic_at(address, bits);
    atomic.value(atomic.take_turn().load(order))
}

fn store(address: usize, bits: u32, value: u64, order: Ordering) {
    if execution().has_started {
        tell_stored();
        pass();
        let atomic = atomic_at(address, bits);
        atomic.take_turn().store(atomic.shared_value(value), order);
    }
    write(address, bits, value);
}

/// An operation that reads, changes and writes: what was there. `shared` does it to loom's variable,
/// `change` to the value.
fn change(
    address: usize,
    bits: u32,
    shared: impl FnOnce(&Atomic) -> u64,
    change: impl Fn(u64) -> u64,
) -> u64 {
    let before = if execution().has_started {
        tell_stored();
        pass();
        let atomic = atomic_at(address, bits);
        atomic.value(shared(atomic))
    } else {
        read(address, bits)
    };
    write(address, bits, change(before));
    before
}

/// One that loom does not have for numbers that lie as they do in [`Atomic`].
fn update(address: usize, bits: u32, order: Ordering, new: impl Fn(u64) -> u64 + Copy) -> u64 {
    let shared = |atomic: &Atomic| {
        let change = |shared| atomic.shared_value(new(atomic.value(shared)));
        atomic.take_turn().update(order, Ordering::Relaxed, change)
    };
    change(address, bits, shared, new)
}

fn exchange(address: usize, bits: u32, value: u64, order: Ordering) -> u64 {
    let shared = |atomic: &Atomic| atomic.take_turn().swap(atomic.shared_value(value), order);
    change(address, bits, shared, |_| value)
}

fn add(address: usize, bits: u32, value: u64, order: Ordering) -> u64 {
    let shared = |atomic: &Atomic| {
        atomic
            .take_turn()
            .fetch_add(atomic.difference(value), order)
    };
    change(address, bits, shared, |before| before.wrapping_add(value))
}

/// What was there; nothing has changed if that is not `expected`.
fn compare_exchange(
    address: usize,
    bits: u32,
    [expected, desired]: [u64; 2],
    [success, failure]: [Ordering; 2],
) -> u64 {
    let shared = |atomic: &Atomic| {
        let (old, new) = (atomic.shared_value(expected), atomic.shared_value(desired));
        let result = atomic
            .take_turn()
            .compare_exchange(old, new, success, failure);
        result.unwrap_or_else(|seen| seen)
    };
    if execution().has_started {
        tell_stored();
        pass();
        let atomic = atomic_at(address, bits);
        let before = atomic.value(shared(atomic));
        if before == expected {
            write(address, bits, desired);
        }
        return before;
    }
    let before = read(address, bits);
    if before == expected {
        write(address, bits, desired);
    }
    before
}

macro_rules! atomics {
    ($($bits:literal $int:ty: $load:ident $store:ident $exchange:ident $add:ident $sub:ident
       $and:ident $or:ident $xor:ident $strong:ident $weak:ident $val:ident)*) => {$(
        #[no_mangle]
        extern "C" fn $load(address: usize, number: c_int) -> $int {
            load(address, $bits, order(number)) as $int
        }

        #[no_mangle]
        extern "C" fn $store(address: usize, value: $int, number: c_int) {
            store(address, $bits, value.into(), order(number));
        }

        #[no_mangle]
        extern "C" fn $exchange(address: usize, value: $int, number: c_int) -> $int {
            exchange(address, $bits, value.into(), order(number)) as $int
        }

        #[no_mangle]
        extern "C" fn $add(address: usize, value: $int, number: c_int) -> $int {
            add(address, $bits, value.into(), order(number)) as $int
        }

        #[no_mangle]
        extern "C" fn $sub(address: usize, value: $int, number: c_int) -> $int {
            add(address, $bits, value.wrapping_neg().into(), order(number)) as $int
        }

        #[no_mangle]
        extern "C" fn $and(address: usize, value: $int, number: c_int) -> $int {
            update(address, $bits, order(number), |old| old & u64::from(value)) as $int
        }

        #[no_mangle]
        extern "C" fn $or(address: usize, value: $int, number: c_int) -> $int {
            update(address, $bits, order(number), |old| old | u64::from(value)) as $int
        }

        #[no_mangle]
        extern "C" fn $xor(address: usize, value: $int, number: c_int) -> $int {
            update(address, $bits, order(number), |old| old ^ u64::from(value)) as $int
        }

        #[no_mangle]
        extern "C" fn $val(
            address: usize,
            expected: $int,
            desired: $int,
            success: c_int,
            failure: c_int,
        ) -> $int {
            let values = [expected.into(), desired.into()];
            compare_exchange(address, $bits, values, [order(success), order(failure)]) as $int
        }

        /// # Safety
        ///
        /// The caller has what it expects at `expected`.
        #[no_mangle]
        unsafe extern "C" fn $strong(
            address: usize,
            expected: *mut $int,
            desired: $int,
            success: c_int,
            failure: c_int,
        ) -> c_int {
            let wanted = *expected;
            *expected = $val(address, wanted, desired, success, failure);
            (*expected == wanted).into()
        }

        /// # Safety
        ///
        /// As above.
        #[no_mangle]
        unsafe extern "C" fn $weak(
            address: usize,
            expected: *mut $int,
            desired: $int,
            success: c_int,
            failure: c_int,
        ) -> c_int {
            $strong(address, expected, desired, success, failure)
        }
    )*};
}

atomics! {
    8 u8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange
        __tsan_atomic8_fetch_add __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and
        __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
        __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
        __tsan_atomic8_compare_exchange_val
    16 u16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange
        __tsan_atomic16_fetch_add __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and
        __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
        __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
        __tsan_atomic16_compare_exchange_val
    32 u32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange
        __tsan_atomic32_fetch_add __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and
        __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
        __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
        __tsan_atomic32_compare_exchange_val
    64 u64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange
        __tsan_atomic64_fetch_add __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and
        __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
        __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
        __tsan_atomic64_compare_exchange_val
}

#[no_mangle]
extern "C" fn __tsan_atomic_thread_fence(number: c_int) {
    fence(order(number));
}

#[no_mangle]
extern "C" fn __tsan_atomic_signal_fence(_number: c_int) {}

// ---- threads ----

/// Of an emulated thread-local variable, as compilers lay it out.
#[repr(C)]
struct Local {
    bytes: usize,
    align: usize,
    index: usize,
    first: *const u8,
}

/// # Safety
///
/// `local` describes a variable of the program.
#[no_mangle]
unsafe extern "C" fn __emutls_get_address(local: *const Local) -> *mut u8 {
    let Local { bytes, first, .. } = local.read();
    let thread = loom::thread::current().id();
    let place = execution().locals.entry((thread, local as usize));
    let place = place.or_insert_with(|| {
        let mut value = vec![0u128; bytes.div_ceil(16)];
        if !first.is_null() {
            value.as_mut_ptr().cast::<u8>().copy_from(first, bytes);
        }
        value
    });
    place.as_mut_ptr().cast()
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

#[no_mangle]
extern "C" fn model_create(start: Start, argument: *mut c_void) -> usize {
    tell_stored_if_started();
    execution().has_started = true;
    let thread = loom::thread::spawn(move || {
        start(argument);
        tell_stored();
        thread_ends();
    });
    execution().barriers.alive.push(thread.thread().id());
    execution().threads.push(Some(thread));
    execution().threads.len() - 1
}

fn tell_stored_if_started() {
    if execution().has_started {
        tell_stored();
    }
}

#[no_mangle]
extern "C" fn model_wait_for_end(thread: usize) {
    tell_stored();
    let thread = execution().threads[thread].take();
    let thread = thread.expect("it is waited for once");
    sleep_in(|| thread.join().unwrap());
}

/// The thread has just looked at the word, and cannot go on before another one stores to it.
#[no_mangle]
extern "C" fn model_wait(word: usize) {
    tell_stored();
    execution().waiting.push((word, loom::thread::current()));
    let is_waiting = || {
        let mut all = execution().waiting.iter();
        all.any(|it| it.0 == word && it.1.id() == own_id())
    };
    sleep_in(|| {
        while is_waiting() {
            loom::thread::park();
        }
    });
}

/// The thread has looked at a word in a loop, and lets others go on. Then it sees none of the values
/// again that it has seen, if there are newer ones.
#[no_mangle]
extern "C" fn model_yield() {
    tell_stored();
    loom::thread::yield_now();
}

fn wake(word: usize) {
    while let Some(at) = execution().waiting.iter().position(|it| it.0 == word) {
        execution().waiting.swap_remove(at).1.unpark();
    }
}

/// An assertion does not hold.
///
/// # Safety
///
/// `file` is a text.
#[no_mangle]
unsafe extern "C" fn model_failed(file: *const c_char, line: c_int) {
    let file = CStr::from_ptr(file).to_string_lossy();
    panic!("the assertion at {file}:{line} does not hold");
}

// ---- models ----

/// As in `tests/models/model.h`.
#[repr(C)]
struct Model {
    name: *const c_char,
    run: extern "C" fn(),
    preemptions: usize, // 0: as in others
}

extern "C" {
    static __start_model_entries: Model;
    static __stop_model_entries: Model;
}

fn models() -> &'static [Model] {
    // SAFETY: the linker has laid them out between these.
    unsafe {
        let (start, stop) = (
            addr_of!(__start_model_entries),
            addr_of!(__stop_model_entries),
        );
        std::slice::from_raw_parts(start, stop.offset_from(start) as usize)
    }
}

fn begin() -> Execution {
    Execution {
        atomics: (0..ATOMICS)
            .map(|_| Atomic {
                turn: AtomicU64::new(0),
                shared: AtomicU64::new(0),
                first: 0,
                bits: 0,
            })
            .collect(),
        cells: (0..CELLS).map(|_| UnsafeCell::new(())).collect(),
        barriers: Barriers {
            turn: Some(AtomicU64::new(0)),
            ..Barriers::default()
        },
        ..Execution::default()
    }
}

static mut EXECUTIONS: u64 = 0;

fn explore(model: &Model) {
    let (run, preemptions) = (model.run, model.preemptions.max(PREEMPTIONS));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = MOST_STEPS;
    builder.check(move || {
        let mut this = begin();
        // SAFETY: there is one thread at this point, and one execution at a time.
        unsafe {
            EXECUTION = addr_of_mut!(this);
            EXECUTIONS += 1;
        }
        run();
        let left = execution().threads.iter().flatten().count();
        assert_eq!(
            left, 0,
            "the model waits for each thread that it has started"
        );
        put_back(&execution().before);
    });
}

/// The names of models are arguments; without any, all are run. Each that passed is a line with its
/// name and how often it was executed; the first that fails ends the program.
///
/// # Safety
///
/// It is what a C program begins with.
#[no_mangle]
unsafe extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::exit(1);
    }));
    let wanted: Vec<_> = (1..count as usize)
        .map(|at| CStr::from_ptr(*arguments.add(at)))
        .collect();
    for model in models() {
        let name = CStr::from_ptr(model.name);
        if wanted.is_empty() || wanted.contains(&name) {
            EXECUTIONS = 0;
            explore(model);
            println!("{} {}", name.to_string_lossy(), addr_of!(EXECUTIONS).read());
        }
    }
    0
}
