//! The plan: a recording converted into a form that replay threads can execute quickly.
//!
//! Addresses become *slots*: small numbers of places that hold a replayed object's pointer. The
//! records of all threads of all processes are merged by their stamps, and become one stream of
//! 16-byte [`Op`]s for each thread, in a file that the replay maps. Two rules make it safe to run
//! streams of several threads at the same time (see [`WINDOW`]):
//!
//! * an object that another thread allocated is taken from its slot only when the slot holds the
//!   expected generation (an object's number within its slot, modulo 2^16);
//! * no thread runs ahead of the slowest by more than the window. So a generation cannot be
//!   mistaken for one 65,536 later, and objects live about as long beside each other as in the
//!   program.
//!
//! Threads beyond the machine's processors are folded ([`fold`]). A pass that keeps the recorded
//! order lets threads run one at a time ([`turns`]). The first part of a long recording can be
//! replayed alone ([`part`]).

mod fold;
pub mod merge;
pub mod order;
pub mod part;
mod slots;
mod stream;
pub mod touch;
mod turns;

use anyhow::{Context, Result};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use touch::Touched;
pub use turns::{Turn, ROUND_BYTES};

/// A thread may begin an operation if its number in the process's order is at most this far beyond
/// the first unfinished operation, counted at checkpoints.
///
/// Checkpoints are at most [`CHECKPOINT_SPAN`] apart in that order, so two threads differ by at
/// most `WINDOW + 2 * CHECKPOINT_SPAN` operations. A generation takes at least two operations, so
/// generations differ by less than half of that, far below 2^16.
pub const WINDOW: u64 = 4096;
pub const CHECKPOINT_SPAN: u64 = 1024;
/// A thread has a checkpoint after at most this number of its operations.
pub const CHECKPOINT_OPS: u64 = 128;
/// After this number of further operations of its process, a freed slot may serve another thread.
pub const REUSE_DISTANCE: u64 = WINDOW + 2 * CHECKPOINT_SPAN;
const _: () = assert!(REUSE_DISTANCE < 1 << 16);

/// The number of samples of resident memory over a whole recording.
pub const SAMPLES: u64 = 240;

/// In an [`Op`], sizes have 40 bits and logarithms of alignments have 5.
pub const SIZE_LIMIT: u64 = 1 << 40;
pub const ALIGN_LOG2_LIMIT: u8 = 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    Malloc = 0,
    Calloc = 1,
    Aligned = 2,
    Free = 3,
    /// The object was allocated by another thread.
    FreeForeign = 4,
    Realloc = 5,
    ReallocForeign = 6,
}

impl OpKind {
    #[inline(always)]
    pub fn from_bits(bits: u64) -> OpKind {
        match bits & 7 {
            0 => OpKind::Malloc,
            1 => OpKind::Calloc,
            2 => OpKind::Aligned,
            3 => OpKind::Free,
            4 => OpKind::FreeForeign,
            5 => OpKind::Realloc,
            _ => OpKind::ReallocForeign,
        }
    }
}

/// One operation of a replay thread.
///
/// ```text
/// word:  63      size      24 23  generation  8 7 logarithm 3 2 kind 0
/// ```
///
/// - *size*: the requested size; in a free, the size of the object.
/// - *logarithm*: in an aligned allocation, that of the alignment; in a realloc, that of the old
///   size. In a malloc, a calloc and a free it is the number of the cache that would serve the
///   object instead; 0 means no cache.
/// - *generation*: in a free or realloc of another thread's object, that of the object. In other
///   operations that make an object it is the share that the program touched; see [`Touched`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    pub word: u64,
    pub slot: u32,
    /// The slot that a realloc's result goes to.
    pub second: u32,
}

impl Op {
    pub fn new(kind: OpKind, size: u64, log2: u8, generation: u16, slot: u32, second: u32) -> Op {
        debug_assert!(size < SIZE_LIMIT && log2 <= ALIGN_LOG2_LIMIT);
        let word = size << 24 | u64::from(generation) << 8 | u64::from(log2) << 3 | kind as u64;
        Op { word, slot, second }
    }

    #[inline(always)]
    pub fn kind(&self) -> OpKind {
        OpKind::from_bits(self.word)
    }

    #[inline(always)]
    pub fn size(&self) -> usize {
        (self.word >> 24) as usize
    }

    #[inline(always)]
    pub fn log2(&self) -> u32 {
        (self.word >> 3) as u32 & 31
    }

    #[inline(always)]
    pub fn generation(&self) -> u64 {
        self.word >> 8 & 0xFFFF
    }

    /// The cache of a malloc, a calloc or a free; see [`HotSize`].
    #[inline(always)]
    pub fn cache(&self) -> u32 {
        self.log2()
    }

    /// The touched share of the memory that the operation makes; unknown for a realloc of another
    /// thread's object.
    #[inline(always)]
    pub fn touched(&self) -> Touched {
        match self.kind() {
            OpKind::ReallocForeign => Touched::UNKNOWN,
            _ => Touched(self.generation() as u16),
        }
    }

    fn set_touched(&mut self, touched: Touched) {
        if self.kind() != OpKind::ReallocForeign {
            self.word = self.word & !(0xFFFF << 8) | u64::from(touched.0) << 8;
        }
    }

    fn forget_cache(&mut self) {
        self.word &= !(31 << 3);
    }

    fn bytes(&self) -> [u8; size_of::<Op>()] {
        let mut bytes = [0; size_of::<Op>()];
        bytes[..8].copy_from_slice(&self.word.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.second.to_ne_bytes());
        bytes
    }

    fn of_bytes(bytes: [u8; size_of::<Op>()]) -> Op {
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
        Op {
            word: u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes")),
            slot: half(8),
            second: half(12),
        }
    }
}

/// A thread passes this checkpoint just before its operation `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Checkpoint {
    pub at: u64,
    /// The number of that operation in its process's order.
    pub order: u64,
}

/// Resident memory is read before operation `at` of a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    pub at: u64,
    /// Its number in the order of all operations of all processes.
    pub x: u64,
    /// The bytes that the process had allocated at that time.
    pub payload: u64,
    /// The number of these bytes that are in RAM at least; see [`touch::sure_bytes`].
    pub sure: u64,
}

/// A run of elements in one of the plan's files.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Extent {
    pub first: u64,
    pub count: u64,
}

/// A replay thread: a recorded thread, or several that are folded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadPlan {
    pub ops: Extent,
    pub checkpoints: Extent,
    /// The numbers of the thread's first and last operation in its process's order.
    pub begins: u64,
    pub ends: u64,
    pub samples: Vec<Sample>,
}

/// An object that a forked process got from its parent and used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Inherited {
    pub size: u64,
    pub slot: u32,
}

/// How far a process has come when a part of the recording ends.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Mark {
    pub operations: u64,
    pub turns: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessPlan {
    pub name: String,
    pub pid: u32,
    pub operations: u64,
    pub slots: u32,
    pub inherited: Vec<Inherited>,
    pub threads: Vec<ThreadPlan>,
    /// The turns of its threads in a pass that keeps the recorded order; none for one thread.
    pub turns: Extent,
    /// For each of [`Plan::parts`].
    pub marks: Vec<Mark>,
    /// Its lifetime, in the order of all operations.
    pub first_x: u64,
    pub last_x: u64,
    pub last_payload: u64,
}

/// The class of a size: class n holds sizes up to 8 * 2^n that are in no lower class.
#[inline(always)]
pub fn size_class(size: u64) -> usize {
    size.max(8).next_power_of_two().trailing_zeros() as usize - 3
}

/// The number of requests for sizes of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SizeClass {
    pub up_to: u64,
    pub count: u64,
    pub bytes: u64,
}

/// The number of sizes that get object caches; see [`Summary::hot`].
pub const HOT_SIZES: usize = 3;

/// A size that many objects have. A cache would serve its objects that are never resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSize {
    pub size: u64,
    /// The number of objects that its cache would serve.
    pub count: u64,
}

/// Facts about the recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub operations: u64,
    pub mallocs: u64,
    pub callocs: u64,
    pub aligned: u64,
    pub reallocs: u64,
    pub frees: u64,
    /// Frees of objects that another thread allocated.
    pub foreign_frees: u64,
    pub failed: u64,
    pub unknown_frees: u64,
    pub unseen_frees: u64,
    pub bytes: u64,
    pub peak_payload: u64,
    pub peak_objects: u64,
    /// The peak resident memory of the program's largest process, with code and libraries; 0: no
    /// process reported it.
    pub peak_resident: u64,
    /// 0: no process reported the time of its end.
    pub seconds: f64,
    pub processes: u64,
    pub threads: u64,
    /// The number of threads in a replay; less than `threads` if threads are folded.
    pub replay_threads: u64,
    pub size_classes: Vec<SizeClass>,
    /// The sizes up to 4 KiB that malloc and calloc were asked for most, hottest first.
    pub hot: Vec<HotSize>,
    /// The allocated bytes of all processes together: (operation, bytes).
    pub payload: Vec<(u64, u64)>,
    /// The anonymous memory of all processes in RAM together, where it was sampled: (operation,
    /// bytes).
    pub resident: Vec<(u64, u64)>,
    /// Some of these samples, at exactly the operation before which replays are sampled too.
    pub moments: Vec<(u64, u64)>,
}

impl ProcessPlan {
    /// The bytes that are in RAM at least: the largest number of all samples.
    pub fn sure_peak(&self) -> u64 {
        let samples = self.threads.iter().flat_map(|thread| &thread.samples);
        samples.map(|sample| sample.sure).max().unwrap_or(0)
    }
}

impl Summary {
    /// The program's own peak resident memory, if it is known.
    pub fn real_peak(&self) -> String {
        match self.peak_resident {
            0 => "unknown: no process ended by itself".to_string(),
            most => format!(
                "{}, with code and libraries{}",
                crate::ui::bytes(most),
                self.seen_peak()
            ),
        }
    }

    fn seen_peak(&self) -> String {
        let peak = self.resident.iter().map(|sample| sample.1).max();
        peak.map_or(String::new(), |peak| {
            let peak = crate::ui::bytes(peak);
            format!("; its anonymous memory was {peak} at most, as far as samples tell")
        })
    }

    /// The duration of the recorded run.
    pub fn duration(&self) -> String {
        if self.seconds > 0.0 {
            format!("{:.2} s", self.seconds)
        } else {
            "unknown: no process ended by itself".to_string()
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    pub summary: Summary,
    pub processes: Vec<ProcessPlan>,
    /// The number of operations that are replayed: all, or those of the first part.
    pub replayed: u64,
    /// The ends of the parts that can be replayed alone, ascending; see [`part`].
    pub parts: Vec<u64>,
    /// The largest requested size, for the allocator that does nothing.
    pub largest: u64,
}

/// A plan in its folder, as replay uses it.
pub struct MappedPlan {
    pub plan: Plan,
    ops: Option<Mmap>,
    checkpoints: Option<Mmap>,
    turns: Option<Mmap>,
}

/// The files of a plan.
pub fn ops_path(folder: &Path) -> PathBuf {
    folder.join("ops")
}

fn checkpoints_path(folder: &Path) -> PathBuf {
    folder.join("checkpoints")
}

fn turns_path(folder: &Path) -> PathBuf {
    folder.join("turns")
}

fn plan_path(folder: &Path) -> PathBuf {
    folder.join("plan.json")
}

fn open_mapped(path: &Path) -> Result<Option<Mmap>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the files of a plan do not change once they are written.
    Ok(Some(unsafe { Mmap::map(&file) }?))
}

impl MappedPlan {
    pub fn open(folder: &Path) -> Result<Self> {
        let text = std::fs::read(plan_path(folder))
            .with_context(|| format!("cannot read the plan in {}", folder.display()))?;
        Ok(MappedPlan {
            plan: serde_json::from_slice(&text)?,
            ops: open_mapped(&ops_path(folder))?,
            checkpoints: open_mapped(&checkpoints_path(folder))?,
            turns: open_mapped(&turns_path(folder))?,
        })
    }

    pub fn ops(&self, thread: &ThreadPlan) -> &[Op] {
        elements(&self.ops, thread.ops)
    }

    pub fn checkpoints(&self, thread: &ThreadPlan) -> &[Checkpoint] {
        elements(&self.checkpoints, thread.checkpoints)
    }

    pub fn turns(&self, process: &ProcessPlan) -> &[Turn] {
        elements(&self.turns, process.turns)
    }
}

impl Plan {
    /// Writes the plan into its folder, where a replay finds it. The other files stay as they are.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_vec(self)?;
        std::fs::write(plan_path(folder), text)
            .with_context(|| format!("cannot write the plan to {} (--scratch)", folder.display()))
    }
}

/// The elements of an extent. `T` is one of the plan's plain types, which are valid for any bits.
/// The file ends after the last element, so an empty extent may begin beyond the end.
fn elements<T: Copy>(map: &Option<Mmap>, extent: Extent) -> &[T] {
    let Some(map) = map.as_ref().filter(|_| extent.count > 0) else {
        return &[];
    };
    let size = size_of::<T>();
    let (first, count) = (extent.first as usize, extent.count as usize);
    assert!(
        (first + count) * size <= map.len(),
        "a plan that is cut off"
    );
    // SAFETY: inside the mapping, which is page-aligned; Op and Checkpoint are plain integers.
    unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<T>().add(first), count) }
}

#[cfg(test)]
mod tests;
