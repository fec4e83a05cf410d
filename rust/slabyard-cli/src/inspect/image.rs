//! The memory of a process as the tool reads it: from the running process, which is not stopped, or
//! from a copy.
//!
//! Pages that hold no memory are not read, because a read would give them memory. They read as zero.
//! The process runs on meanwhile, and it may be broken, so nothing that is read here is trusted. A
//! list in it may lead around in circles: the reads of an image have a budget, which is a multiple of
//! its memory. Reads fail when it is spent.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// Where the bytes of resident pages come from.
pub trait Source {
    /// Reads all of `into`, or nothing; false: that part cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

const BLOCK: u64 = 16 << 10;

/// So many blocks are kept for later reads.
const BLOCKS_MAX: usize = 256;

/// Bytes that may be read of an image without memory, and of each byte of memory.
const BUDGET_LEAST: u64 = 256 << 20;
const BUDGET_FACTOR: u64 = 16;

/// What a read costs beside its bytes.
const READ_COST: u64 = 64;

/// The most bytes that are read as one piece: no structure of the library is larger.
const PIECE_MAX: u64 = 64 << 20;

/// A part of the process's address space.
#[derive(Debug, Clone)]
pub struct Mapping {
    pub range: Range<u64>,
    /// What the system calls it: a path, `[heap]`; empty: anonymous memory.
    pub name: String,
    /// Where in its file the mapping begins.
    pub offset: u64,
    pub writable: bool,
    /// Of its resident bytes, the share that belongs to this process: less than 1 if others map the
    /// same pages.
    pub share: f64,
}

/// An address that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable(pub u64);

impl fmt::Display for Unreadable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the address {:#x} cannot be read", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// A part of the memory. `None`: nothing is mapped there.
type Block = Option<Rc<[u8]>>;

pub struct Image {
    source: Box<dyn Source>,
    /// In order of address.
    pub mappings: Vec<Mapping>,
    pub resident: Resident,
    /// Other bytes that the source has: of files, which a core leaves out.
    elsewhere: Vec<Range<u64>>,
    blocks: RefCell<HashMap<u64, Block>>,
    /// What a block without memory reads as.
    zeros: Rc<[u8]>,
    budget: Cell<u64>,
}

impl Image {
    pub fn new(source: Box<dyn Source>, mappings: Vec<Mapping>, pages: &[Range<u64>]) -> Self {
        let resident = Resident::new(&mappings, pages);
        let budget = resident.all().bytes.saturating_mul(BUDGET_FACTOR);
        Image {
            source,
            resident,
            mappings,
            elsewhere: Vec::new(),
            blocks: RefCell::default(),
            zeros: vec![0; BLOCK as usize].into(),
            budget: Cell::new(budget.saturating_add(BUDGET_LEAST)),
        }
    }

    /// The same with bytes that the source has though no memory holds them. `elsewhere`: in order of
    /// address, without overlaps.
    pub fn with(self, elsewhere: Vec<Range<u64>>) -> Self {
        Image { elsewhere, ..self }
    }

    /// Whether so much was read that the structures cannot be right.
    pub fn is_spent(&self) -> bool {
        self.budget.get() == 0
    }

    /// Takes the cost of some bytes from the budget; false: it is spent.
    pub fn pay(&self, bytes: u64) -> bool {
        let cost = bytes.saturating_add(READ_COST);
        self.budget.set(self.budget.get().saturating_sub(cost));
        !self.is_spent()
    }

    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let at = self
            .mappings
            .partition_point(|one| one.range.end <= address);
        self.mappings
            .get(at)
            .filter(|one| one.range.contains(&address))
    }

    /// Reads a number of 1, 2, 4 or 8 bytes.
    pub fn number(&self, address: u64, bytes: u32) -> Result<u64, Unreadable> {
        let mut word = [0; 8];
        let bytes = (bytes as usize).min(word.len());
        self.read(address, &mut word[..bytes])?;
        Ok(u64::from_le_bytes(word))
    }

    pub fn word(&self, address: u64) -> Result<u64, Unreadable> {
        self.number(address, 8)
    }

    pub fn bytes(&self, address: u64, count: u64) -> Result<Vec<u8>, Unreadable> {
        if count > PIECE_MAX {
            return Err(Unreadable(address));
        }
        let mut bytes = vec![0; count as usize];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    pub fn words(&self, address: u64, count: u64) -> Result<Vec<u64>, Unreadable> {
        let bytes = count.checked_mul(8).ok_or(Unreadable(address))?;
        let bytes = self.bytes(address, bytes)?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Ok(bytes.chunks_exact(8).map(word).collect())
    }

    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        if !self.pay(into.len() as u64) {
            return Err(Unreadable(address));
        }
        let mut done = 0;
        while done < into.len() {
            let at = address
                .checked_add(done as u64)
                .ok_or(Unreadable(address))?;
            let block = self.block(at / BLOCK).ok_or(Unreadable(at))?;
            let from = (at % BLOCK) as usize;
            let count = (into.len() - done).min(block.len() - from);
            into[done..done + count].copy_from_slice(&block[from..from + count]);
            done += count;
        }
        Ok(())
    }

    fn block(&self, number: u64) -> Block {
        if let Some(known) = self.blocks.borrow().get(&number) {
            return known.clone();
        }
        let block = self.read_block(number);
        let mut blocks = self.blocks.borrow_mut();
        if blocks.len() == BLOCKS_MAX {
            blocks.clear();
        }
        blocks.insert(number, block.clone());
        block
    }

    /// The blocks that were read.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn touched(&self) -> Vec<Range<u64>> {
        let blocks = self.blocks.borrow();
        let mut touched: Vec<_> = blocks
            .keys()
            .map(|at| at * BLOCK..(at + 1) * BLOCK)
            .collect();
        touched.sort_by_key(|range| range.start);
        touched
    }

    fn read_block(&self, number: u64) -> Block {
        let start = number.checked_mul(BLOCK)?;
        let end = start.checked_add(BLOCK)?;
        let first = self.mappings.partition_point(|one| one.range.end <= start);
        self.mappings
            .get(first)
            .filter(|one| one.range.start < end)?;
        let parts: Vec<_> = self.parts(start..end).collect();
        if parts.is_empty() {
            return Some(self.zeros.clone());
        }
        let mut block: Rc<[u8]> = std::iter::repeat_n(0, BLOCK as usize).collect();
        let bytes = Rc::get_mut(&mut block).expect("nobody else has it");
        for pages in parts {
            let part = (pages.start - start) as usize..(pages.end - start) as usize;
            if !self.source.read(pages.start, &mut bytes[part.clone()]) {
                // The mapping is gone, or cannot be read at all: other parts are read alone.
                bytes[part].fill(0);
            }
        }
        Some(block)
    }

    /// The parts of a range that the source has.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let (start, end) = (range.start, range.end);
        let first = self.elsewhere.partition_point(|one| one.end <= start);
        let elsewhere = self.elsewhere[first..]
            .iter()
            .take_while(move |one| one.start < end)
            .map(move |one| one.start.max(start)..one.end.min(end));
        self.resident.within(range).chain(elsewhere)
    }
}

/// The text up to the first zero. Control characters are replaced.
pub fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]);
    text.replace(char::is_control, "?")
}

/// The resident pages, with running sums: the resident bytes between two addresses are a difference.
#[derive(Debug, Default)]
pub struct Resident {
    runs: Vec<Run>,
    /// The run that was asked for last: the next question is mostly about the same one.
    last: Cell<usize>,
}

#[derive(Debug)]
struct Run {
    pages: Range<u64>,
    share: f64,
    /// Of all runs before it.
    bytes_before: u64,
    shares_before: f64,
}

/// Resident bytes, and the part of them that belongs to this process (RSS and PSS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    #[serde(rename = "rss_bytes")]
    pub bytes: u64,
    #[serde(rename = "pss_bytes")]
    pub shares: f64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.shares += other.shares;
    }
}

impl std::ops::Sub for Weight {
    type Output = Weight;
    fn sub(self, other: Self) -> Self {
        Weight {
            bytes: self.bytes.saturating_sub(other.bytes),
            shares: (self.shares - other.shares).max(0.0),
        }
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Weight::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

impl Resident {
    /// `pages`: in order of address, without overlaps.
    fn new(mappings: &[Mapping], pages: &[Range<u64>]) -> Self {
        let mut all = Resident::default();
        let mut sum = Weight::default();
        let mut maps = mappings.iter().peekable();
        for pages in pages {
            while maps.next_if(|one| one.range.end <= pages.start).is_some() {}
            let mut ahead = maps.clone();
            let mut at = pages.start;
            while at < pages.end {
                while ahead.next_if(|one| one.range.end <= at).is_some() {}
                // Pages outside of all mappings were mapped since the mappings were listed.
                let (end, share) = match ahead.peek() {
                    Some(one) if one.range.start <= at => (one.range.end, one.share),
                    Some(one) => (one.range.start, 1.0),
                    None => (u64::MAX, 1.0),
                };
                let end = end.min(pages.end);
                all.runs.push(Run {
                    pages: at..end,
                    share,
                    bytes_before: sum.bytes,
                    shares_before: sum.shares,
                });
                sum.bytes += end - at;
                sum.shares += (end - at) as f64 * share;
                at = end;
            }
        }
        all
    }

    /// All below the address.
    fn below(&self, address: u64) -> Weight {
        let next = self.runs.partition_point(|run| run.pages.start < address);
        let Some(run) = next.checked_sub(1).and_then(|at| self.runs.get(at)) else {
            return Weight::default();
        };
        let bytes = address.min(run.pages.end) - run.pages.start;
        Weight {
            bytes: run.bytes_before + bytes,
            shares: run.shares_before + bytes as f64 * run.share,
        }
    }

    pub fn between(&self, range: Range<u64>) -> Weight {
        if range.start >= range.end {
            return Weight::default();
        }
        let holds = |run: &&Run| run.pages.start <= range.start && range.end <= run.pages.end;
        if let Some(run) = self.runs.get(self.last.get()).filter(holds) {
            let bytes = range.end - range.start;
            let shares = bytes as f64 * run.share;
            return Weight { bytes, shares };
        }
        let first = self
            .runs
            .partition_point(|run| run.pages.end <= range.start);
        self.last.set(first);
        self.below(range.end) - self.below(range.start)
    }

    pub fn all(&self) -> Weight {
        self.below(u64::MAX)
    }

    /// The resident pages within a range, in order.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self
            .runs
            .partition_point(|run| run.pages.end <= range.start);
        self.runs[first..]
            .iter()
            .take_while(move |run| run.pages.start < range.end)
            .map(move |run| run.pages.start.max(range.start)..run.pages.end.min(range.end))
    }
}
