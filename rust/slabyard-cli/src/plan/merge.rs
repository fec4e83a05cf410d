//! Makes the plan of a recording, in one pass over all records in the order of their stamps.
//!
//! The clocks of two cores may differ a little. So a record may come too early: it frees an address
//! that no thread has allocated yet, or allocates an address that is still live. Such a record
//! waits for the record of another thread that makes it possible. If none comes in time, the record
//! is applied as it is, and counted: a free of an address that is not live is left out; if an
//! address is allocated twice, the first object is never freed.

use super::fold::{fold, Life};
use super::order::{Action, Cursor, Queue};
use super::slots::Slots;
use super::stream::{PlanFile, Stream};
use super::touch::{pages_of, sure_bytes, sure_of_touched, Touched, LARGE, LINE};
use super::turns::Turns;
use super::*;
use crate::recording::{Process, Recording};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// How long a record waits. Clocks of two cores differ by less than a microsecond.
const PATIENCE_NS: f64 = 100_000.0;

/// Hashes an address by one multiplication, which is good enough for addresses.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only addresses are hashed");
    }
    fn write_u64(&mut self, address: u64) {
        let product = u128::from(address) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

pub type AddressMap<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;
type AddressSet = HashSet<u64, BuildHasherDefault<AddressHasher>>;

/// An object that is live at this point of the merge.
#[derive(Clone, Copy)]
struct Live {
    size: u64,
    /// The number of its bytes that are in RAM at least.
    sure: u64,
    slot: u32,
    /// The replay thread, and the recorded thread.
    thread: u32,
    recorded: u32,
    generation: u16,
    /// The number of the cache that would serve it.
    cache: u8,
    /// The operation of its thread that allocated it; `None` for an object of the process's parent.
    /// `since` is the number of that operation in the order of all. If it was a realloc, `before`
    /// holds the pages, and the touched pages, that the object had before it.
    allocated_by: Option<u64>,
    since: u64,
    before: (u64, u64),
}

/// The thread of an operation: a replay thread of a process, and the number of the recorded thread
/// in that process.
#[derive(Clone, Copy)]
struct By {
    process: usize,
    thread: usize,
    recorded: usize,
}

/// A new object, as an operation makes it. The fields are those of [`Live`].
struct Made {
    size: u64,
    sure: u64,
    cache: u8,
    before: (u64, u64),
}

impl Made {
    /// An object of malloc without a cache.
    fn of(size: u64) -> Self {
        Made {
            size,
            sure: sure_bytes(size),
            cache: 0,
            before: (0, 0),
        }
    }
}

/// A lane whose next record waits until `address` is live (`until_live`) or is not.
struct Parked {
    lane: usize,
    address: u64,
    until_live: bool,
    deadline: u64,
}

#[derive(Default)]
struct ThreadState {
    checkpoints: Vec<Checkpoint>,
    plan: ThreadPlan,
    stream: Stream,
}

/// The object that a realloc has given up, until the realloc ends.
struct GivenUp {
    live: Live,
    touched: Option<u64>,
}

struct ProcessState {
    plan: ProcessPlan,
    threads: Vec<ThreadState>,
    /// For each recorded thread.
    given_up: Vec<Option<GivenUp>>,
    turns: Turns,
    live: AddressMap<Live>,
    slots: Slots,
    payload: u64,
    sure: u64,
    /// The highest payload, the thread whose operation reached it, and the sample there.
    peak: (u64, usize, Sample),
    next_sample: u64,
    parked: Vec<Parked>,
    lanes_left: usize,
    /// The number of forked children that were not born yet, and so may need this process's
    /// objects.
    births_left: usize,
    /// Addresses of the parent's objects that this process and its children will use.
    wanted: AddressSet,
    parent: Option<usize>,
}

/// A recorded thread.
struct Lane<'a> {
    by: By,
    cursor: Cursor<'a>,
    /// Whether the next record is applied even if it seems impossible.
    forced: bool,
}

struct Merge<'a> {
    recording: &'a Recording,
    resident: Resident,
    lanes: Vec<Lane<'a>>,
    processes: Vec<ProcessState>,
    queue: Queue,
    ops: PlanFile,
    turns: PlanFile,
    /// The number of replay threads of a process at a time, beside its first.
    at_a_time: usize,
    /// The first operation, of all processes, behind each part that may be replayed alone.
    parts: Vec<u64>,
    summary: Summary,
    payload: u64,
    objects: u64,
    step: u64,
    largest: u64,
    patience: u64,
}

/// The samples of all processes' memory, in the order of time.
struct Resident {
    /// For each sample: the time in ticks, the process, and the bytes.
    samples: Vec<(u64, usize, u64)>,
    /// The number of samples passed, and the time of the next one.
    seen: usize,
    next: u64,
    /// The bytes at the last sample of each process, and the sum over all processes.
    last: Vec<u64>,
    sum: u64,
}

impl Resident {
    fn of(recording: &Recording) -> Self {
        let rate = recording.ns_per_tick();
        let mut samples = Vec::new();
        for (index, process) in recording.processes.iter().enumerate() {
            let ticks = |ns: u64| {
                let since = ns.saturating_sub(process.birth_ns) as f64 / rate;
                process.birth_ticks.saturating_add(since as u64)
            };
            let seen = process.samples.iter();
            samples.extend(seen.map(|&(ns, bytes)| (ticks(ns), index, bytes)));
            // A process's memory ends with it, except the first process's, which is counted to the
            // end.
            let end = process.end.filter(|_| index > 0);
            samples.extend(end.map(|(ticks, _)| (ticks, index, 0)));
        }
        samples.sort_unstable();
        let mut resident = Resident {
            samples,
            seen: 0,
            next: 0,
            last: vec![0; recording.processes.len()],
            sum: 0,
        };
        resident.next = resident.due();
        resident
    }

    fn due(&self) -> u64 {
        self.samples
            .get(self.seen)
            .map_or(u64::MAX, |sample| sample.0)
    }

    /// The sums over all processes, one for each sample up to `now`.
    fn until(&mut self, now: u64) -> Vec<u64> {
        let mut sums = Vec::new();
        while let Some(&(_, process, bytes)) = self.samples.get(self.seen).filter(|s| s.0 <= now) {
            let others = self.sum.wrapping_sub(self.last[process]);
            self.sum = others.wrapping_add(bytes); // wraps for a damaged recording
            self.last[process] = bytes;
            sums.push(self.sum);
            self.seen += 1;
        }
        self.next = self.due();
        sums
    }
}

enum Outcome {
    Done,
    Waits { address: u64, until_live: bool },
}

/// Writes the plan of `recording` into `folder`. `progress` is called with the records done.
pub fn make_plan(
    recording: &Recording,
    folder: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Plan> {
    make_folded_plan(recording, folder, super::fold::most_at_a_time(), progress)
}

/// The same with at most `at_a_time` replay threads at a time, beside the first one.
pub fn make_folded_plan(
    recording: &Recording,
    folder: &Path,
    at_a_time: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Plan> {
    let mut merge = Merge::new(recording, folder, at_a_time)?;
    merge.run(progress);
    merge.finish(folder)
}

/// The bytes that are in RAM at least of an object after a realloc to `size` bytes. The part by
/// which it grows is written. The old part counts only if all its pages were touched.
fn sure_after(live: Live, pages_touched: u64, size: u64) -> u64 {
    let grown = sure_bytes(size).saturating_sub(sure_bytes(live.size));
    let all = pages_touched == pages_of(live.size);
    let sure = if all { live.sure } else { 0 };
    (sure + grown).min(sure_bytes(size))
}

/// The sizes that occur most often; of sizes that occur equally often, the smaller come first.
fn hot_sizes(counts: &[u64]) -> Vec<HotSize> {
    let sizes = counts.iter().enumerate().skip(1);
    let mut hot: Vec<HotSize> = sizes
        .filter(|(_, &count)| count > 0)
        .map(|(size, &count)| HotSize {
            size: size as u64,
            count,
        })
        .collect();
    hot.sort_by_key(|hot| (std::cmp::Reverse(hot.count), hot.size));
    hot.truncate(HOT_SIZES);
    hot
}

/// The addresses that a forked process frees before it was given them.
fn inherited_addresses(recording: &Recording, process: &Process) -> AddressSet {
    let mut queue = Queue::default();
    let mut cursors: Vec<_> = process
        .threads
        .iter()
        .map(|thread| Cursor::new(recording, thread))
        .collect();
    for (lane, cursor) in cursors.iter().enumerate() {
        if let Some(record) = cursor.next {
            queue.push(record.stamp, lane);
        }
    }
    let (mut own, mut wanted) = (AddressSet::default(), AddressSet::default());
    while let Some((_, lane)) = queue.pop() {
        let event = cursors[lane]
            .next
            .expect("only lanes with records are queued");
        if let Some(address) = event.action.gives_up() {
            if !own.remove(&address) {
                wanted.insert(address);
            }
        }
        own.extend(event.action.receives());
        cursors[lane].advance();
        if let Some(record) = cursors[lane].next {
            queue.push(record.stamp, lane);
        }
    }
    wanted
}

/// The process that forked this one: the last program with the parent's process id that began
/// earlier.
fn parent_of(processes: &[Process], child: &Process) -> Option<usize> {
    let born_before = |process: &&(usize, &Process)| {
        process.1.pid == child.parent && process.1.birth_ticks <= child.birth_ticks
    };
    let all: Vec<_> = processes.iter().enumerate().collect();
    let parent = all.iter().filter(born_before);
    parent
        .max_by_key(|(_, process)| process.birth_ticks)
        .map(|(index, _)| *index)
}

impl<'a> Merge<'a> {
    fn new(recording: &'a Recording, folder: &Path, at_a_time: usize) -> Result<Self> {
        let records = recording.operations();
        let mut merge = Merge {
            recording,
            resident: Resident::of(recording),
            lanes: Vec::new(),
            processes: Vec::new(),
            queue: Queue::default(),
            ops: PlanFile::create(&ops_path(folder))?,
            turns: PlanFile::create(&turns_path(folder))?,
            at_a_time,
            parts: part::ends_of(records),
            summary: Summary {
                hot: hot_sizes(&recording.small_sizes),
                ..Summary::default()
            },
            payload: 0,
            objects: 0,
            step: (records / SAMPLES).max(1),
            largest: 1,
            patience: (PATIENCE_NS / recording.ns_per_tick()) as u64,
        };
        let mut first_op = 0;
        for process in &recording.processes {
            merge.add_process(process, &mut first_op);
        }
        merge.link_parents();
        merge.queue_all();
        Ok(merge)
    }

    fn add_process(&mut self, process: &'a Process, first_op: &mut u64) {
        let mut recorded: Vec<_> = process.threads.iter().collect();
        recorded.sort_by_key(|thread| thread.number);
        let lives = recorded
            .iter()
            .map(|thread| Life::of(self.recording, thread));
        let replay_of = fold(&lives.collect::<Vec<_>>(), self.at_a_time);
        let mut state = ProcessState::new(process, &replay_of, *first_op);
        let mut records = vec![0; state.threads.len()];
        for (thread, &replay) in recorded.iter().zip(&replay_of) {
            records[replay] += thread.records;
        }
        for (thread, records) in state.threads.iter_mut().zip(records) {
            thread.plan.ops.first = *first_op;
            thread.stream = Stream::at(*first_op);
            *first_op += records;
        }
        for (number, thread) in recorded.into_iter().enumerate() {
            self.lanes.push(Lane {
                by: By {
                    process: self.processes.len(),
                    thread: replay_of[number],
                    recorded: number,
                },
                cursor: Cursor::new(self.recording, thread),
                forced: false,
            });
        }
        if process.forked {
            state.wanted = inherited_addresses(self.recording, process);
        }
        self.processes.push(state);
    }

    /// Visits the youngest children first, so that the addresses that a grandchild wants reach its
    /// grandparent.
    fn link_parents(&mut self) {
        let recorded = &self.recording.processes;
        let mut by_birth: Vec<_> = (0..recorded.len())
            .filter(|&n| recorded[n].forked)
            .collect();
        by_birth.sort_by_key(|&n| std::cmp::Reverse(recorded[n].birth_ticks));
        for child in by_birth {
            let Some(parent) = parent_of(recorded, &recorded[child]).filter(|&p| p != child) else {
                continue;
            };
            self.processes[child].parent = Some(parent);
            self.processes[parent].births_left += 1;
            if recorded[parent].forked {
                let wanted = self.processes[child].wanted.clone();
                self.processes[parent].wanted.extend(wanted);
            }
        }
    }

    /// In the queue, a process's birth has the number of lanes plus its index.
    fn queue_all(&mut self) {
        for (index, lane) in self.lanes.iter().enumerate() {
            if let Some(record) = lane.cursor.next {
                self.queue.push(record.stamp, index);
            }
        }
        for (index, process) in self.processes.iter().enumerate() {
            if process.parent.is_some() {
                let stamp = self.recording.processes[index].birth_ticks;
                self.queue.push(stamp, self.lanes.len() + index);
            }
        }
    }

    fn run(&mut self, progress: &mut dyn FnMut(u64)) {
        loop {
            while let Some((_, lane)) = self.queue.pop() {
                if lane >= self.lanes.len() {
                    self.birth(lane - self.lanes.len());
                } else {
                    self.run_lane(lane, progress);
                }
            }
            // Records that still wait here wait for records that do not exist.
            if !self.force_all() {
                break;
            }
        }
    }

    /// Runs one lane until another lane is due, its record must wait, or it ends.
    fn run_lane(&mut self, index: usize, progress: &mut dyn FnMut(u64)) {
        let mut horizon = self.queue.horizon();
        while let Some(record) = self.lanes[index].cursor.next {
            if record.stamp > horizon {
                self.queue.push(record.stamp, index);
                return;
            }
            if record.stamp >= self.resident.next {
                self.see_resident(record.stamp);
            }
            let by = self.lanes[index].by;
            let forced = self.lanes[index].forced || self.processes[by.process].threads.len() == 1;
            match self.apply(by, record.action, forced) {
                Outcome::Waits {
                    address,
                    until_live,
                } => {
                    self.park(index, record.stamp, address, until_live);
                    return;
                }
                Outcome::Done => {
                    self.lanes[index].forced = false;
                    self.lanes[index].cursor.advance();
                }
            }
            if !self.processes[by.process].parked.is_empty() {
                self.wake(by.process, record.stamp);
                horizon = self.queue.horizon();
            }
            if self.summary.operations & 0xFFFF == 0 {
                progress(self.summary.operations);
                self.forget_pages();
            }
        }
        self.lane_ends(index);
    }

    fn see_resident(&mut self, now: u64) {
        let (x, step) = (self.summary.operations, self.step);
        let curve = &mut self.summary.resident;
        for bytes in self.resident.until(now) {
            match curve.last_mut() {
                // Keep the highest value of each step.
                Some(last) if last.0 / step == x / step => last.1 = last.1.max(bytes),
                _ => curve.push((x, bytes)),
            }
            let moments = &mut self.summary.moments;
            if moments.last().is_none_or(|last| last.0 / step < x / step) {
                moments.push((x, bytes));
                // The replay's memory at this moment is needed for the same difference.
                let processes = self.processes.iter_mut();
                processes.for_each(|process| process.next_sample = 0);
            }
        }
    }

    /// Now and then lets the system take back the memory of the part of the recording that was
    /// read.
    fn forget_pages(&self) {
        if self.summary.operations & 0x3F_FFFF != 0 {
            return;
        }
        self.recording.forget_pages();
    }

    fn park(&mut self, lane: usize, stamp: u64, address: u64, until_live: bool) {
        self.processes[self.lanes[lane].by.process]
            .parked
            .push(Parked {
                lane,
                address,
                until_live,
                deadline: stamp.saturating_add(self.patience),
            });
    }

    /// Lets parked lanes continue if the state of their address allows it, or if they have waited
    /// long enough.
    fn wake(&mut self, process: usize, now: u64) {
        let state = &mut self.processes[process];
        let mut index = 0;
        while let Some(parked) = state.parked.get(index) {
            let ready = state.live.contains_key(&parked.address) == parked.until_live;
            if !ready && now < parked.deadline {
                index += 1;
                continue;
            }
            let parked = state.parked.swap_remove(index);
            let lane = &mut self.lanes[parked.lane];
            lane.forced = !ready;
            let stamp = lane.cursor.next.map_or(now, |record| record.stamp);
            self.queue.push(stamp, parked.lane);
        }
    }

    fn force_all(&mut self) -> bool {
        let mut any = false;
        for process in 0..self.processes.len() {
            any |= !self.processes[process].parked.is_empty();
            self.wake(process, u64::MAX);
        }
        any
    }

    /// Gives a forked process those of its parent's objects that it will use.
    fn birth(&mut self, child: usize) {
        let Some(parent) = self.processes[child].parent else {
            return;
        };
        let wanted = std::mem::take(&mut self.processes[child].wanted);
        let mut found: Vec<_> = wanted
            .iter()
            .filter_map(|address| Some((*address, self.processes[parent].live.get(address)?.size)))
            .collect();
        found.sort_unstable();
        let state = &mut self.processes[child];
        for (address, size) in found {
            let (slot, generation) = state.slots.take(0, 0);
            state.plan.inherited.push(Inherited { size, slot });
            let thread = 0;
            state.live.insert(
                address,
                Live {
                    size,
                    sure: sure_bytes(size),
                    slot,
                    thread,
                    recorded: 0,
                    generation,
                    cache: 0,
                    allocated_by: None,
                    since: 0,
                    before: (0, 0),
                },
            );
            state.payload += size;
            state.sure += sure_bytes(size);
            self.payload += size;
            self.objects += 1;
        }
        self.processes[parent].births_left -= 1;
        self.release(parent);
    }

    fn lane_ends(&mut self, index: usize) {
        let process = self.lanes[index].by.process;
        self.processes[process].lanes_left -= 1;
        self.release(process);
    }

    /// Forgets a process's objects when no record can name them any more.
    fn release(&mut self, process: usize) {
        let state = &mut self.processes[process];
        if state.lanes_left > 0 || state.births_left > 0 {
            return;
        }
        let live = std::mem::take(&mut state.live);
        self.payload -= state.payload;
        self.objects -= live.len() as u64;
        state.plan.last_payload = state.payload;
        state.payload = 0;
        let recorded = &self.recording.processes[process];
        for (address, live) in live {
            if live.size >= LARGE {
                let touched = recorded.bytes_touched(address, live.size);
                self.know_touched(process, live, touched);
            }
        }
    }

    /// Applies the touched bytes of an object, which are known only at its end, if at all (`None`):
    /// sets the share in the operation that made it, and corrects the samples since then. Returns
    /// the number of its pages that were touched.
    fn know_touched(&mut self, process: usize, live: Live, touched: Option<u64>) -> u64 {
        let pages = pages_of(live.size);
        let (Some(bytes), Some(at)) = (touched.filter(|_| live.size >= LARGE), live.allocated_by)
        else {
            return pages;
        };
        let touched = pages_of(bytes).min(pages);
        let (pages_before, touched_before) = live.before;
        let made = pages.saturating_sub(pages_before);
        let share = Touched::share(touched.saturating_sub(touched_before), made);
        let state = &mut self.processes[process];
        let stream = &mut state.threads[live.thread as usize].stream;
        stream.change(at, |op| op.set_touched(share), &mut self.ops);
        state.lower_sure(
            live.since,
            live.sure.saturating_sub(sure_of_touched(bytes, live.size)),
        );
        touched
    }

    fn apply(&mut self, by: By, action: Action, forced: bool) -> Outcome {
        let live = &self.processes[by.process].live;
        if !forced {
            if let Some(address) = action.gives_up().filter(|a| !live.contains_key(a)) {
                return Outcome::Waits {
                    address,
                    until_live: true,
                };
            }
            if let Some(address) = action.receives().filter(|a| live.contains_key(a)) {
                return Outcome::Waits {
                    address,
                    until_live: false,
                };
            }
        }
        match action {
            Action::Allocate {
                kind,
                object,
                size,
                align_log2,
            } => {
                self.allocate(by, kind, object, size, align_log2);
            }
            Action::Free { object, touched } => self.free(by, object, touched),
            Action::GiveUp { old, touched } => {
                let state = &mut self.processes[by.process];
                let live = state.live.remove(&old);
                state.given_up[by.recorded] = live.map(|live| GivenUp { live, touched });
                return Outcome::Done;
            }
            Action::Receive { new, size } => self.reallocate(by, new, size),
            Action::Failed => self.summary.failed += 1,
        }
        self.summary.operations += 1;
        Outcome::Done
    }

    fn allocate(&mut self, by: By, kind: OpKind, at: u64, size: u64, log2: u8) {
        match kind {
            OpKind::Malloc => self.summary.mallocs += 1,
            OpKind::Calloc => self.summary.callocs += 1,
            _ => self.summary.aligned += 1,
        }
        if size >= SIZE_LIMIT || log2 > ALIGN_LOG2_LIMIT {
            self.summary.failed += 1;
            return;
        }
        let served = kind != OpKind::Aligned;
        let cache = if served { self.cache_of(size) } else { 0 };
        let log2 = if served { cache } else { log2 };
        // Zeroed memory is only read, except for its first line.
        let written = if kind == OpKind::Calloc {
            size.min(LINE as u64)
        } else {
            size
        };
        let made = Made {
            sure: sure_bytes(written),
            cache,
            ..Made::of(size)
        };
        let slot = self.insert(by, at, made);
        self.emit(by, Op::new(kind, size, log2, 0, slot, 0), size, None);
    }

    /// The number of the cache for that size; 0: there is none.
    fn cache_of(&self, size: u64) -> u8 {
        let place = self.summary.hot.iter().position(|hot| hot.size == size);
        place.map_or(0, |place| place as u8 + 1)
    }

    /// Makes the object of the thread's next operation live, and returns its slot.
    fn insert(&mut self, by: By, address: u64, made: Made) -> u32 {
        let Made { size, sure, .. } = made;
        self.count_size(size);
        let state = &mut self.processes[by.process];
        let (slot, generation) = state.slots.take(by.thread, state.plan.operations);
        let live = Live {
            size,
            sure,
            slot,
            thread: by.thread as u32,
            recorded: by.recorded as u32,
            generation,
            cache: made.cache,
            allocated_by: Some(state.threads[by.thread].plan.ops.count),
            since: self.summary.operations,
            before: made.before,
        };
        if state.live.insert(address, live).is_some() {
            self.summary.unseen_frees += 1;
            self.objects -= 1;
        }
        state.payload += size;
        state.sure += sure;
        self.payload += size;
        self.objects += 1;
        self.summary.peak_payload = self.summary.peak_payload.max(self.payload);
        self.summary.peak_objects = self.summary.peak_objects.max(self.objects);
        slot
    }

    /// Frees the slot of an object, for operations after this one.
    fn drop_object(&mut self, process: usize, thread: usize, live: Live) {
        let state = &mut self.processes[process];
        state.slots.give(live.slot, thread, state.plan.operations);
        state.payload -= live.size;
        state.sure -= live.sure;
        self.payload -= live.size;
        self.objects -= 1;
    }

    fn free(&mut self, by: By, address: u64, touched: Option<u64>) {
        self.summary.frees += 1;
        let Some(live) = self.processes[by.process].live.remove(&address) else {
            self.summary.unknown_frees += 1;
            return;
        };
        self.know_touched(by.process, live, touched);
        self.drop_object(by.process, by.thread, live);
        self.summary.foreign_frees += u64::from(live.recorded != by.recorded as u32);
        let (kind, needs) = if live.thread == by.thread as u32 {
            (OpKind::Free, None)
        } else {
            (OpKind::FreeForeign, Some(live.since))
        };
        let op = Op::new(kind, live.size, live.cache, live.generation, live.slot, 0);
        self.emit(by, op, live.size, needs);
    }

    /// Applies the end of a realloc, which gives it its place in the order.
    fn reallocate(&mut self, by: By, new: u64, size: u64) {
        self.summary.reallocs += 1;
        let process = by.process;
        let given_up = self.processes[process].given_up[by.recorded].take();
        let size = size.min(SIZE_LIMIT - 1);
        let Some(GivenUp { live, touched }) = given_up else {
            self.summary.unknown_frees += 1;
            let slot = self.insert(by, new, Made::of(size));
            self.emit(by, Op::new(OpKind::Malloc, size, 0, 0, slot, 0), size, None);
            return;
        };
        self.drop_object(process, by.thread, live);
        self.leave_cache(process, live);
        let known = self.know_touched(process, live, touched);
        let (kind, generation, needs) = if live.thread == by.thread as u32 {
            (OpKind::Realloc, Touched::UNKNOWN.0, None)
        } else {
            (OpKind::ReallocForeign, live.generation, Some(live.since))
        };
        let log2 = (live.size | 1).ilog2().min(u32::from(ALIGN_LOG2_LIMIT)) as u8;
        let made = Made {
            sure: sure_after(live, known, size),
            before: (pages_of(live.size), known),
            ..Made::of(size)
        };
        let slot = self.insert(by, new, made);
        let op = Op::new(kind, size, log2, generation, live.slot, slot);
        self.emit(by, op, size + live.size, needs);
    }

    /// Removes an object from its cache, because a program has no cache for objects that it
    /// resizes.
    fn leave_cache(&mut self, process: usize, live: Live) {
        if live.cache == 0 {
            return;
        }
        self.summary.hot[usize::from(live.cache) - 1].count -= 1;
        let Some(at) = live.allocated_by else {
            return;
        };
        let allocator = &mut self.processes[process].threads[live.thread as usize];
        let stream = &mut allocator.stream;
        stream.change(at, Op::forget_cache, &mut self.ops);
    }

    fn count_size(&mut self, size: u64) {
        self.summary.bytes += size;
        self.largest = self.largest.max(size);
        let class = super::size_class(size);
        let classes = &mut self.summary.size_classes;
        while classes.len() <= class {
            let up_to = 8 << classes.len();
            classes.push(SizeClass {
                up_to,
                ..SizeClass::default()
            });
        }
        classes[class].count += 1;
        classes[class].bytes += size;
    }

    /// Appends an operation to its thread's stream. It allocates or frees `bytes`; `needs` is the
    /// operation of another thread that made the object that it takes.
    fn emit(&mut self, by: By, op: Op, bytes: u64, needs: Option<u64>) {
        let x = self.summary.operations;
        self.sample_payload(x);
        let thread = by.thread;
        let state = &mut self.processes[by.process];
        let first = state.plan.operations == 0;
        if first {
            state.plan.first_x = x;
        }
        if first || x >= state.next_sample {
            state.sample(thread, x);
            state.next_sample = (x / self.step + 1) * self.step;
        }
        state.plan.last_x = x;
        state.mark(x, &self.parts, &mut self.turns);
        if state.threads.len() > 1 {
            state
                .turns
                .add(x, thread as u32, bytes, needs, &mut self.turns);
        }
        state.checkpoint(thread);
        state.threads[thread].plan.ops.count += 1;
        state.threads[thread].stream.push(op, &mut self.ops);
        state.plan.operations += 1;
        state.note_peak(thread, x);
    }

    fn sample_payload(&mut self, x: u64) {
        let due = self
            .summary
            .payload
            .last()
            .is_none_or(|&(last, _)| x >= last + self.step);
        if due {
            self.summary.payload.push((x, self.payload));
        }
    }

    /// Writes the remaining files: checkpoints and the plan itself.
    fn finish(mut self, folder: &Path) -> Result<Plan> {
        self.see_resident(u64::MAX);
        self.summarise();
        let threads = self.processes.iter_mut().flat_map(|p| &mut p.threads);
        threads.for_each(|thread| thread.stream.flush(&mut self.ops));
        let no_room = || format!("cannot write the plan to {} (--scratch)", folder.display());
        self.ops.finish().with_context(no_room)?;
        let mut plan = Plan {
            replayed: self.summary.operations,
            parts: std::mem::take(&mut self.parts),
            summary: std::mem::take(&mut self.summary),
            processes: Vec::new(),
            largest: self.largest,
        };
        let mut checkpoints: Vec<u8> = Vec::new();
        for mut state in self.processes {
            state.mark(u64::MAX, &plan.parts, &mut self.turns);
            state.plan.turns.count = state.turns.finish(&mut self.turns);
            plan.processes.push(state.finish(&mut checkpoints));
        }
        self.turns.finish().with_context(no_room)?;
        std::fs::write(checkpoints_path(folder), &checkpoints).with_context(no_room)?;
        plan.write(folder)?;
        Ok(plan)
    }

    fn summarise(&mut self) {
        let recorded = &self.recording.processes;
        let begin = recorded.iter().map(|process| process.birth_ticks).min();
        let last_stamp = |process: &Process| process.end.map_or(0, |(ticks, _)| ticks);
        let end = recorded.iter().map(last_stamp).max();
        let ticks = end.unwrap_or(0).saturating_sub(begin.unwrap_or(0));
        self.summary.seconds = ticks as f64 * self.recording.ns_per_tick() * 1e-9;
        let resident = recorded.iter().map(|process| process.peak_resident);
        self.summary.peak_resident = resident.max().unwrap_or(0);
        self.summary.processes = recorded.len() as u64;
        self.summary.threads = self.lanes.len() as u64;
        let replayed = self
            .processes
            .iter()
            .map(|process| process.threads.len() as u64);
        self.summary.replay_threads = replayed.sum();
        let left = self
            .processes
            .first()
            .map_or(0, |first| first.plan.last_payload);
        self.summary.payload.push((self.summary.operations, left));
    }
}

impl ProcessState {
    /// `replay_of`: the replay thread of each recorded thread; `first`: the place of the process's
    /// operations and turns in the files.
    fn new(process: &Process, replay_of: &[usize], first: u64) -> Self {
        let threads = replay_of.iter().max().map_or(0, |most| most + 1);
        ProcessState {
            plan: ProcessPlan {
                name: process.name().to_string(),
                pid: process.pid,
                turns: Extent { first, count: 0 },
                ..ProcessPlan::default()
            },
            threads: (0..threads).map(|_| ThreadState::default()).collect(),
            given_up: replay_of.iter().map(|_| None).collect(),
            turns: Turns::at(first),
            live: AddressMap::default(),
            slots: Slots::new(threads.max(1)),
            payload: 0,
            sure: 0,
            peak: (0, 0, Sample::default()),
            next_sample: 0,
            parked: Vec::new(),
            lanes_left: replay_of.len(),
            births_left: 0,
            wanted: AddressSet::default(),
            parent: None,
        }
    }

    fn sample(&mut self, thread: usize, x: u64) {
        let plan = &mut self.threads[thread].plan;
        let at = plan.ops.count;
        plan.samples.push(Sample {
            at,
            x,
            payload: self.payload,
            sure: self.sure,
        });
    }

    /// Subtracts bytes that turned out not to be in RAM from all samples since then.
    fn lower_sure(&mut self, since: u64, bytes: u64) {
        let samples = self.threads.iter_mut().flat_map(|thread| {
            let samples = &mut thread.plan.samples;
            let first = samples.partition_point(|sample| sample.x < since);
            &mut samples[first..]
        });
        for sample in samples.chain([&mut self.peak.2]) {
            if sample.x >= since {
                sample.sure = sample.sure.saturating_sub(bytes);
            }
        }
    }

    fn note_peak(&mut self, thread: usize, x: u64) {
        if self.payload > self.peak.0 {
            let at = self.threads[thread].plan.ops.count;
            self.peak = (
                self.payload,
                thread,
                Sample {
                    at,
                    x,
                    payload: self.payload,
                    sure: self.sure,
                },
            );
        }
    }

    /// Notes how far the process has come if a part of the recording ends before operation `x`.
    fn mark(&mut self, x: u64, parts: &[u64], turns: &mut PlanFile) {
        while parts
            .get(self.plan.marks.len())
            .is_some_and(|&end| x >= end)
        {
            self.plan.marks.push(Mark {
                operations: self.plan.operations,
                turns: self.turns.seal(turns),
            });
        }
    }

    /// Adds a checkpoint if one is due. The first operation of a thread behind a mark has one, so
    /// that the part before the mark can be cut exactly there. A process with one thread needs none.
    fn checkpoint(&mut self, thread: usize) {
        let lone = self.threads.len() == 1;
        let state = &mut self.threads[thread];
        let (at, order) = (state.plan.ops.count, self.plan.operations);
        if at == 0 {
            state.plan.begins = order;
        }
        state.plan.ends = order;
        let marked = self.plan.marks.last().map_or(0, |mark| mark.operations);
        let due = state.checkpoints.last().is_none_or(|last| {
            at - last.at >= CHECKPOINT_OPS
                || order - last.order >= CHECKPOINT_SPAN
                || last.order < marked
        });
        if due && !lone {
            state.checkpoints.push(Checkpoint { at, order });
        }
    }

    fn finish(mut self, checkpoints: &mut Vec<u8>) -> ProcessPlan {
        let (peak, thread, sample) = self.peak;
        if peak > 0 {
            let samples = &mut self.threads[thread].plan.samples;
            let at = samples.partition_point(|other| (other.at, other.x) <= (sample.at, sample.x));
            samples.insert(at, sample);
        }
        self.plan.slots = self.slots.count();
        for mut thread in self.threads {
            thread.plan.checkpoints = Extent {
                first: (checkpoints.len() / size_of::<Checkpoint>()) as u64,
                count: thread.checkpoints.len() as u64,
            };
            for checkpoint in &thread.checkpoints {
                checkpoints.extend(checkpoint.at.to_le_bytes());
                checkpoints.extend(checkpoint.order.to_le_bytes());
            }
            self.plan.threads.push(thread.plan);
        }
        self.plan
    }
}
