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
use std::sync::Arc;

/// Where the bytes of resident pages come from.
pub trait Source {
    /// Reads all of `into`, or nothing; false: that part cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;

    /// Reads many parts, whose bytes are without gaps in `into`; zeros for those that cannot be read.
    fn read_all(&self, parts: &[Range<u64>], into: &mut [u8]) {
        read_each(self, parts, into);
    }

    /// The same source for another thread. `None`: it can be read by one thread only.
    fn again(&self) -> Option<Box<dyn Source + Send>> {
        None
    }
}

/// Reads the parts one by one, as [`Source::read_all`] does it.
pub fn read_each<S: Source + ?Sized>(source: &S, parts: &[Range<u64>], mut into: &mut [u8]) {
    for part in parts {
        let (bytes, rest) = into.split_at_mut((part.end - part.start) as usize);
        if !source.read(part.start, bytes) {
            bytes.fill(0);
        }
        into = rest;
    }
}

const BLOCK: u64 = 16 << 10;

/// So many blocks are kept for later reads: the records of 15,000 caches.
const BLOCKS_MAX: usize = 1024;

/// Bytes that may be read of an image without memory, and of each byte of memory.
const BUDGET_LEAST: u64 = 256 << 20;
const BUDGET_FACTOR: u64 = 16;

/// So many bytes are fetched at once at most.
const FETCHED_MAX: u64 = 16 << 20;

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
    pub mappings: Arc<Vec<Mapping>>,
    pub resident: Arc<Resident>,
    /// Other bytes that the source has: of files, which a core leaves out.
    elsewhere: Arc<Vec<Range<u64>>>,
    blocks: RefCell<HashMap<u64, Block>>,
    fetched: RefCell<Fetched>,
    /// What a block without memory reads as.
    zeros: Rc<[u8]>,
    budget: Cell<u64>,
}

/// An image for another thread.
pub struct Again {
    source: Box<dyn Source + Send>,
    mappings: Arc<Vec<Mapping>>,
    resident: Arc<Resident>,
    elsewhere: Arc<Vec<Range<u64>>>,
    budget: u64,
}

/// What a thread has spent of the budget.
pub struct Spent(u64);

impl Again {
    /// Gives the image to `read`.
    pub fn read<T>(self, read: impl FnOnce(&Image) -> T) -> (T, Spent) {
        let image = Image {
            source: self.source,
            mappings: self.mappings,
            resident: self.resident,
            elsewhere: self.elsewhere,
            blocks: RefCell::default(),
            fetched: RefCell::default(),
            zeros: vec![0; BLOCK as usize].into(),
            budget: Cell::new(self.budget),
        };
        let result = read(&image);
        (result, Spent(self.budget - image.budget.get()))
    }
}

impl Image {
    pub fn new(source: Box<dyn Source>, mappings: Vec<Mapping>, pages: &[Range<u64>]) -> Self {
        let resident = Resident::new(&mappings, pages);
        let budget = resident.all().bytes.saturating_mul(BUDGET_FACTOR);
        Image {
            source,
            resident: resident.into(),
            mappings: mappings.into(),
            elsewhere: Arc::default(),
            blocks: RefCell::default(),
            fetched: RefCell::default(),
            zeros: vec![0; BLOCK as usize].into(),
            budget: Cell::new(budget.saturating_add(BUDGET_LEAST)),
        }
    }

    /// The same with bytes that the source has though no memory holds them. `elsewhere`: in order of
    /// address, without overlaps.
    pub fn with(self, elsewhere: Vec<Range<u64>>) -> Self {
        let elsewhere = elsewhere.into();
        Image { elsewhere, ..self }
    }

    /// What another thread needs to read the same; `None`: only one thread can.
    pub fn again(&self) -> Option<Again> {
        Some(Again {
            source: self.source.again()?,
            mappings: self.mappings.clone(),
            resident: self.resident.clone(),
            elsewhere: self.elsewhere.clone(),
            budget: self.budget.get(),
        })
    }

    /// Takes what another thread has spent of the same budget.
    pub fn pay_for(&self, other: &Spent) {
        self.budget.set(self.budget.get().saturating_sub(other.0));
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
        if self.fetched.borrow().read(address, into) {
            return Ok(());
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

    /// Reads the memory in some ranges at once, for the reads that follow, until the next call: so the
    /// source is asked a few times, not for each block. `ranges`: in order of address. Of ranges that
    /// overlap, the first is read.
    pub fn fetch(&self, ranges: impl Iterator<Item = Range<u64>>) {
        let mut fetched = self.fetched.borrow_mut();
        fetched.clear();
        for range in ranges {
            fetched.add(range.clone(), self.parts(range));
        }
        let bytes = fetched.length();
        match self.pay(bytes as u64) {
            true => fetched.fill(self.source.as_ref()),
            false => fetched.clear(),
        }
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

    /// The same, read through another source.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn through(self, wrap: impl FnOnce(Box<dyn Source>) -> Box<dyn Source>) -> Self {
        let source = wrap(self.source);
        Image { source, ..self }
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
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let (start, end) = (range.start, range.end);
        let first = self.elsewhere.partition_point(|one| one.end <= start);
        let elsewhere = self.elsewhere[first..]
            .iter()
            .take_while(move |one| one.start < end)
            .map(move |one| one.start.max(start)..one.end.min(end));
        self.resident.within(range).chain(elsewhere)
    }
}

/// Ranges of which all memory was read.
#[derive(Default)]
struct Fetched {
    /// In order of address; with each, the number of its first part.
    ranges: Vec<(Range<u64>, usize)>,
    /// In order of address.
    parts: Vec<Range<u64>>,
    /// Where the bytes of each part begin, and where the last one's end.
    starts: Vec<usize>,
    /// It is never given back: memory that was just used is faster.
    bytes: Vec<u8>,
}

impl Fetched {
    fn clear(&mut self) {
        self.ranges.clear();
        self.parts.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    fn add(&mut self, range: Range<u64>, parts: impl Iterator<Item = Range<u64>>) {
        let last = self.ranges.last().map_or(0, |(range, _)| range.end);
        let mut end = self.length();
        let parts: Vec<_> = parts.collect();
        let bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
        if range.start < last || range.end < range.start || end as u64 + bytes > FETCHED_MAX {
            return;
        }
        self.ranges.push((range, self.parts.len()));
        for part in parts {
            end += (part.end - part.start) as usize;
            self.starts.push(end);
            self.parts.push(part);
        }
    }

    fn length(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn fill(&mut self, source: &dyn Source) {
        let length = self.length();
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        source.read_all(&self.parts, &mut self.bytes[..length]);
    }

    /// False: not all of it lies in one of the ranges.
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let end = address.saturating_add(into.len() as u64);
        let at = self
            .ranges
            .partition_point(|(range, _)| range.end <= address);
        let range = self.ranges.get(at);
        let Some((_, first)) = range.filter(|(one, _)| one.start <= address && end <= one.end)
        else {
            return false;
        };
        let last = self
            .ranges
            .get(at + 1)
            .map_or(self.parts.len(), |next| next.1);
        let behind = self.parts[*first..last].partition_point(|part| part.end <= address);
        let (mut next, mut done) = (first + behind, 0);
        while done < into.len() {
            let from = address + done as u64;
            let ahead = self.parts[..last].get(next);
            let rest = &mut into[done..];
            done += match ahead.filter(|part| part.start <= from) {
                Some(part) => {
                    let count = rest.len().min((part.end - from) as usize);
                    let at = self.starts[next] + (from - part.start) as usize;
                    rest[..count].copy_from_slice(&self.bytes[at..at + count]);
                    next += 1;
                    count
                }
                None => {
                    let gap = ahead.map_or(end, |part| part.start) - from;
                    let count = rest.len().min(gap as usize);
                    rest[..count].fill(0);
                    count
                }
            };
        }
        true
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
}

/// Answers questions that are mostly about the same run as the question before.
pub struct Cursor<'a> {
    resident: &'a Resident,
    last: usize,
}

impl Cursor<'_> {
    pub fn between(&mut self, range: Range<u64>) -> Weight {
        let Some(run) = self.run_with(&range) else {
            return self.resident.between(range);
        };
        let bytes = range.end.saturating_sub(range.start);
        let shares = bytes as f64 * run.share;
        Weight { bytes, shares }
    }

    /// Whether all of a range lies in one run: its pages are resident, with the same share.
    pub fn has_all(&mut self, range: &Range<u64>) -> bool {
        self.run_with(range).is_some()
    }

    /// The run that has all of a range.
    fn run_with(&mut self, range: &Range<u64>) -> Option<&Run> {
        let runs = &self.resident.runs;
        let holds = |run: &&Run| run.pages.start <= range.start && range.end <= run.pages.end;
        if runs.get(self.last).filter(holds).is_none() {
            self.last = runs.partition_point(|run| run.pages.end <= range.start);
        }
        runs.get(self.last).filter(holds)
    }
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
        self.below(range.end) - self.below(range.start)
    }

    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            resident: self,
            last: 0,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte says its address; one page cannot be read.
    struct Pattern;

    const TORN: u64 = 40 << 12;

    fn byte(address: u64) -> u8 {
        (address ^ address >> 12) as u8 | 1
    }

    impl Source for Pattern {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            let end = address + into.len() as u64;
            for (at, to) in (address..).zip(into) {
                *to = byte(at);
            }
            !(address..end).contains(&TORN)
        }
    }

    fn image() -> Image {
        let mapping = Mapping {
            range: 0x1000..1 << 20,
            name: String::new(),
            offset: 0,
            writable: true,
            share: 1.0,
        };
        let pages = [
            1 << 12..9 << 12,
            10 << 12..11 << 12,
            TORN..TORN + 0x1000,
            41 << 12..100 << 12,
        ];
        Image::new(Box::new(Pattern), vec![mapping], &pages)
    }

    #[test]
    fn what_was_fetched_reads_as_block_by_block() {
        let (plain, fetched) = (image(), image());
        // Overlaps, an empty range, and a range that leads out of the mapping.
        let ranges = [
            0x1800..0x3001,
            0x2000..0x4000,
            0x8000..0x8000,
            0x8ff0..0x30_000,
            0x60_000..1 << 30,
        ];
        fetched.fetch(ranges.into_iter());
        for start in (0x1000..0x66_000).step_by(0x3f1) {
            for bytes in [1, 8, 0x400, 0x1234, 0x9000] {
                let (a, b) = (plain.bytes(start, bytes), fetched.bytes(start, bytes));
                assert_eq!(a, b, "{bytes} bytes at {start:#x}");
            }
        }
    }

    #[test]
    fn what_is_fetched_costs_of_the_budget() {
        let image = image();
        while !image.is_spent() {
            image.fetch(std::iter::once(0x1000..0x60_000));
        }
        assert!(image.word(0x1000).is_err());
    }
}
