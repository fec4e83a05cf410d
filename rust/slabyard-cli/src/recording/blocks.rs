//! Finds and checks the blocks of a recording.
//!
//! Opening a recording reads the whole file once and checks every checksum and every record, so
//! later readers can rely on both. The file is mapped, not read into memory.

use super::records::{Malformed, Operation, Records, Runs};
use super::*;
use memmap2::Mmap;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

/// Sizes up to this one are counted individually.
pub const SMALL_BYTES: usize = 4096;

/// Where and how a recording is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the first wrong byte.
    pub offset: u64,
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "damaged at byte {}: {}", self.offset, self.what)
    }
}

/// Why a recording cannot be used.
#[derive(Debug)]
pub enum ReadError {
    Io(std::io::Error),
    Damaged(Damage),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(out, "{error}"),
            ReadError::Damaged(damage) => write!(out, "{damage}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// How to treat a damaged recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Refuse it.
    Whole,
    /// Use the part before the damage.
    Salvage,
    /// The file of one process, which is not joined yet: it has no closing block, and the process
    /// may have been killed while it wrote.
    Part,
}

/// One block of operations of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The offset of the payload in the file.
    pub offset: usize,
    pub length: usize,
    pub stamp: u64,
    /// Whether each allocation has its stack.
    pub has_stacks: bool,
}

/// The blocks of one thread, in order.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub number: u32,
    pub blocks: Vec<Block>,
    pub records: u64,
}

/// One program in one process. An exec begins a new one.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub forked: bool,
    pub birth_ticks: u64,
    pub birth_ns: u64,
    /// The time of its end, in ticks and in nanoseconds; `None`: it was killed.
    pub end: Option<(u64, u64)>,
    /// Its peak resident memory, with code and libraries; 0: it did not report it.
    pub peak_resident: u64,
    /// The size of its pages, and the pages that were not in RAM when it ended; `None`: it did not
    /// report them.
    pub page_bytes: u64,
    pub untouched: Option<Runs>,
    /// Samples of its anonymous memory in RAM: the time in nanoseconds, and the bytes.
    pub samples: Vec<(u64, u64)>,
    /// The number of blocks that the recorder could not write.
    pub lost_blocks: u32,
    pub command: Vec<String>,
    pub threads: Vec<Thread>,
    /// Whether its allocations have stacks, the nodes of these, and where its code lay.
    pub has_stacks: bool,
    pub stacks: Vec<Node>,
    pub modules: Vec<Module>,
    /// The names of functions that it made at run time.
    pub made: Made,
}

impl Process {
    pub fn records(&self) -> u64 {
        self.threads.iter().map(|thread| thread.records).sum()
    }

    /// The number of the `bytes` bytes from `address` on that were in RAM when the process ended.
    pub fn bytes_touched(&self, address: u64, bytes: u64) -> Option<u64> {
        let (runs, page) = (self.untouched.as_ref()?, self.page_bytes);
        let (first, end) = (address / page, address.saturating_add(bytes).div_ceil(page));
        let before = runs.partition_point(|&(start, pages)| start + pages <= first);
        let overlapping = runs[before..].iter().take_while(|&&(start, _)| start < end);
        let untouched =
            overlapping.map(|&(start, pages)| (start + pages).min(end) - start.max(first));
        Some((end - first - untouched.sum::<u64>()).saturating_mul(page))
    }

    /// The program's name without its folder.
    pub fn name(&self) -> &str {
        let first = self.command.first().map_or("?", String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }
}

/// A recording that was opened and is good, completely or up to its damage.
pub struct Recording {
    bytes: Source,
    pub processes: Vec<Process>,
    /// The damage of the rest; always `None` with [`Strictness::Whole`].
    pub damage: Option<Damage>,
    /// The number of blocks, the beginning of the last one, and its end.
    pub blocks: u64,
    pub last_block: u64,
    pub good_bytes: u64,
    /// For each size up to [`SMALL_BYTES`], the number of requests by malloc and calloc.
    pub small_sizes: Vec<u64>,
    /// The number of records that are not operations.
    notes: u64,
}

enum Source {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Source {
    fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(map) => map,
            Source::Owned(bytes) => bytes,
        }
    }
}

impl Recording {
    /// Opens a file and checks it completely.
    pub fn open(path: &Path, strictness: Strictness) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(ReadError::Io)?;
        if file.metadata().map_err(ReadError::Io)?.len() == 0 {
            return Self::from_bytes(Vec::new(), strictness);
        }
        // SAFETY: a recording does not change once it has its name. If it is truncated while it is
        // read, this process gets SIGBUS, as with any mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(ReadError::Io)?;
        Self::from_source(Source::Mapped(map), strictness)
    }

    /// The same for bytes in memory.
    pub fn from_bytes(bytes: Vec<u8>, strictness: Strictness) -> Result<Self, ReadError> {
        Self::from_source(Source::Owned(bytes), strictness)
    }

    fn from_source(bytes: Source, strictness: Strictness) -> Result<Self, ReadError> {
        let mut scan = Scan::new(bytes.bytes());
        let mut damage = scan.run().err();
        let (blocks, last_block, good_bytes) = (scan.blocks, scan.last as u64, scan.at as u64);
        let (processes, small_sizes, notes) = (scan.processes, scan.small_sizes, scan.notes);
        if strictness == Strictness::Part && good_bytes == bytes.bytes().len() as u64 {
            damage = None;
        }
        match damage {
            Some(damage) if strictness == Strictness::Whole || processes.is_empty() => {
                Err(ReadError::Damaged(damage))
            }
            damage => Ok(Recording {
                bytes,
                processes,
                damage,
                blocks,
                last_block,
                good_bytes,
                small_sizes,
                notes,
            }),
        }
    }

    /// The records of a block, which belongs to this recording.
    pub fn records(&self, block: &Block) -> Records<'_> {
        let payload = &self.bytes.bytes()[block.offset..block.offset + block.length];
        Records::new(payload, block.stamp, block.has_stacks)
    }

    /// Lets the system take back the memory of the pages that were read so far.
    pub fn forget_pages(&self) {
        if let Source::Mapped(map) = &self.bytes {
            // SAFETY: the mapping is of a file and only read, so its pages can be read again.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }

    /// The size of the file.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.bytes().len() as u64
    }

    pub fn records_of_all(&self) -> u64 {
        self.processes.iter().map(Process::records).sum()
    }

    /// The number of the program's operations.
    pub fn operations(&self) -> u64 {
        self.records_of_all() - self.notes
    }

    /// The length of a tick in nanoseconds, measured over the longest process that ended normally.
    pub fn ns_per_tick(&self) -> f64 {
        let spans = self.processes.iter().filter_map(|process| {
            let (ticks, ns) = process.end?;
            let ticks = ticks.checked_sub(process.birth_ticks).filter(|&t| t > 0)?;
            Some((ticks, ns.checked_sub(process.birth_ns)?))
        });
        match spans.max() {
            Some((ticks, ns)) => ns as f64 / ticks as f64,
            None => 1.0,
        }
    }
}

/// One pass over the file.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The beginning of the block before `at`.
    last: usize,
    processes: Vec<Process>,
    /// The index of each thread of the current process, by its number.
    threads: HashMap<u32, usize>,
    blocks: u64,
    records: u64,
    small_sizes: Vec<u64>,
    notes: u64,
}

/// The header of a block, which was checked.
struct Header {
    kind: u8,
    thread: u32,
    records: u32,
    stamp: u64,
    payload: usize,
    length: usize,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Scan {
            bytes,
            at: 0,
            last: 0,
            processes: Vec::new(),
            threads: HashMap::new(),
            blocks: 0,
            records: 0,
            small_sizes: vec![0; SMALL_BYTES + 1],
            notes: 0,
        }
    }

    fn damage<T>(&self, offset: usize, what: impl Into<String>) -> Result<T, Damage> {
        Err(Damage {
            offset: offset as u64,
            what: what.into(),
        })
    }

    fn run(&mut self) -> Result<(), Damage> {
        self.file_header()?;
        loop {
            if self.at == self.bytes.len() {
                return self.damage(
                    self.at,
                    "the file ends before its closing block; its recording was cut short",
                );
            }
            let header = self.block_header()?;
            if header.kind == KIND_FINISH {
                return self.finish(&header);
            }
            self.block(&header)?;
            self.last = self.at;
            self.at = header.payload + header.length;
            self.blocks += 1;
        }
    }

    fn file_header(&mut self) -> Result<(), Damage> {
        let Some(header) = self.bytes.get(..HEADER_BYTES) else {
            return self.damage(self.bytes.len(), "the file is too short to be a recording");
        };
        if &header[..16] != MAGIC {
            return self.damage(0, "this is not a recording of slabyard's");
        }
        if u32_at(header, 20) != crc32fast::hash(&header[..20]) {
            return self.damage(16, "the file header does not match its checksum");
        }
        let version = u32_at(header, 16);
        if version != VERSION {
            return self.damage(
                16,
                format!("version {version} of the format is unknown to this tool"),
            );
        }
        self.at = HEADER_BYTES;
        Ok(())
    }

    fn block_header(&mut self) -> Result<Header, Damage> {
        let rest = &self.bytes[self.at..];
        if rest.len() < BLOCK_HEADER_BYTES {
            return self.damage(self.bytes.len(), "the file ends inside a block's header");
        }
        if u32_at(rest, 0) != BLOCK_MAGIC {
            return self.damage(self.at, "no block begins where one should");
        }
        let length = u32_at(rest, 24) as usize;
        let Some(payload) = rest[BLOCK_HEADER_BYTES..].get(..length) else {
            return self.damage(self.bytes.len(), "the file ends inside a block");
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&rest[..28]);
        crc.update(payload);
        if crc.finalize() != u32_at(rest, 28) {
            return self.damage(self.at, "the block does not match its checksum");
        }
        Ok(Header {
            kind: rest[4],
            thread: u32_at(rest, 8),
            records: u32_at(rest, 12),
            stamp: u64_at(rest, 16),
            payload: self.at + BLOCK_HEADER_BYTES,
            length,
        })
    }

    fn block(&mut self, header: &Header) -> Result<(), Damage> {
        match header.kind {
            KIND_PROCESS => self.process(header),
            KIND_OPERATIONS | KIND_STACKED => self.operations(header),
            KIND_STACKS => self.stacks(header),
            KIND_MODULE => self.module(header),
            KIND_MADE => self.made(header),
            KIND_UNTOUCHED => self.untouched(header),
            KIND_MEMORY => self.memory(header),
            KIND_END => self.end(header),
            kind => self.damage(self.at, format!("a block of unknown kind {kind}")),
        }
    }

    fn payload(&self, header: &Header) -> &'a [u8] {
        &self.bytes[header.payload..header.payload + header.length]
    }

    fn process(&mut self, header: &Header) -> Result<(), Damage> {
        let payload = self.payload(header);
        if payload.len() < PROCESS_BYTES {
            return self.damage(self.at, "a process block that is too short");
        }
        let command = payload[PROCESS_BYTES..]
            .split(|&byte| byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .filter(|word| !word.is_empty())
            .collect();
        self.threads.clear();
        self.processes.push(Process {
            pid: u32_at(payload, 0),
            parent: u32_at(payload, 4),
            forked: u32_at(payload, 8) == 1,
            page_bytes: u64::from(u32_at(payload, 12)).max(1),
            birth_ticks: u64_at(payload, 16),
            birth_ns: u64_at(payload, 24),
            command,
            ..Process::default()
        });
        Ok(())
    }

    fn operations(&mut self, header: &Header) -> Result<(), Damage> {
        if self.processes.is_empty() {
            return self.damage(self.at, "operations before any process");
        }
        if let Err(damage) = self.check_records(header) {
            self.forget_records(header);
            return Err(damage);
        }
        let process = self.processes.last_mut().expect("just seen");
        let index = *self.threads.entry(header.thread).or_insert_with(|| {
            process.threads.push(Thread {
                number: header.thread,
                ..Thread::default()
            });
            process.threads.len() - 1
        });
        let thread = &mut process.threads[index];
        thread.blocks.push(Block {
            offset: header.payload,
            length: header.length,
            stamp: header.stamp,
            has_stacks: header.kind == KIND_STACKED,
        });
        process.has_stacks |= header.kind == KIND_STACKED;
        thread.records += u64::from(header.records);
        self.records += u64::from(header.records);
        Ok(())
    }

    fn check_records(&mut self, header: &Header) -> Result<(), Damage> {
        let mut records = Records::new(
            self.payload(header),
            header.stamp,
            header.kind == KIND_STACKED,
        );
        let mut count = 0;
        loop {
            match records.next() {
                Ok(Some(record)) => {
                    count += 1;
                    if let Some(counter) = self.counter(record.operation) {
                        *counter += 1;
                    }
                }
                Ok(None) if count == u64::from(header.records) => return Ok(()),
                Ok(None) => {
                    let what = format!("a block of {count} records says {}", header.records);
                    return self.damage(self.at, what);
                }
                Err(bad) => return self.damage(header.payload + bad.at, bad.what),
            }
        }
    }

    /// Subtracts the records that `check_records` counted in a block that proved bad later.
    fn forget_records(&mut self, header: &Header) {
        let mut records = Records::new(
            self.payload(header),
            header.stamp,
            header.kind == KIND_STACKED,
        );
        while let Ok(Some(record)) = records.next() {
            if let Some(counter) = self.counter(record.operation) {
                *counter -= 1;
            }
        }
    }

    /// The counter for records of this kind, if there is one.
    fn counter(&mut self, operation: Operation) -> Option<&mut u64> {
        match operation {
            Operation::Malloc { size, .. } | Operation::Calloc { size, .. } => {
                self.small_sizes.get_mut(usize::try_from(size).ok()?)
            }
            Operation::Touched { .. } => Some(&mut self.notes),
            _ => None,
        }
    }

    /// The pairs of numbers of a block, which must be as many as its header says.
    fn counted(
        &self,
        header: &Header,
        pairs: Result<Vec<(u64, u64)>, Malformed>,
    ) -> Result<Vec<(u64, u64)>, Damage> {
        match pairs {
            Err(Malformed { at, what }) => self.damage(header.payload + at, what),
            Ok(pairs) if pairs.len() as u64 != u64::from(header.records) => {
                let what = format!("a block of {} pairs says {}", pairs.len(), header.records);
                self.damage(self.at, what)
            }
            Ok(pairs) => Ok(pairs),
        }
    }

    fn stacks(&mut self, header: &Header) -> Result<(), Damage> {
        let Some(process) = self.processes.last() else {
            return self.damage(self.at, "stacks before any process");
        };
        let first = process.stacks.len() as u64 + 1;
        if header.stamp != first {
            let what = format!("stacks from number {} after {}", header.stamp, first - 1);
            return self.damage(self.at, what);
        }
        match stacks::nodes(self.payload(header), first) {
            Err(Malformed { at, what }) => self.damage(header.payload + at, what),
            Ok(nodes) if nodes.len() as u64 != u64::from(header.records) => {
                let what = format!("a block of {} nodes says {}", nodes.len(), header.records);
                self.damage(self.at, what)
            }
            Ok(nodes) => {
                self.processes
                    .last_mut()
                    .expect("just seen")
                    .stacks
                    .extend(nodes);
                Ok(())
            }
        }
    }

    fn module(&mut self, header: &Header) -> Result<(), Damage> {
        let Some(process) = self.processes.last_mut() else {
            return self.damage(self.at, "a module before any process");
        };
        let payload = &self.bytes[header.payload..header.payload + header.length];
        match Module::decode(payload, header.stamp) {
            Ok(module) => process.modules.push(module),
            Err(Malformed { at, what }) => return self.damage(header.payload + at, what),
        }
        Ok(())
    }

    /// Its thread is the index of the process.
    fn made(&mut self, header: &Header) -> Result<(), Damage> {
        let made = match Made::decode(self.payload(header)) {
            Err(Malformed { at, what }) => return self.damage(header.payload + at, what),
            Ok(made) => made,
        };
        if made.len() as u64 != u64::from(header.records) {
            let what = format!("a block of {} names says {}", made.len(), header.records);
            return self.damage(self.at, what);
        }
        let Some(process) = self.processes.get_mut(header.thread as usize) else {
            return self.damage(self.at, "names of a process that does not exist");
        };
        process.made = made;
        Ok(())
    }

    fn memory(&mut self, header: &Header) -> Result<(), Damage> {
        let Some(process) = self.processes.last() else {
            return self.damage(self.at, "samples before any process");
        };
        let samples = Records::samples(self.payload(header), process.birth_ns);
        let samples = self.counted(header, samples)?;
        self.processes.last_mut().expect("just seen").samples = samples;
        Ok(())
    }

    fn untouched(&mut self, header: &Header) -> Result<(), Damage> {
        let runs = self.counted(header, Records::runs(self.payload(header)))?;
        let Some(process) = self.processes.last_mut() else {
            return self.damage(self.at, "pages before any process");
        };
        let known = process.untouched.get_or_insert_default();
        let behind = known.last().map_or(0, |&(first, pages)| first + pages);
        if runs.first().is_some_and(|&(first, _)| first < behind) {
            return self.damage(self.at, "pages that do not ascend");
        }
        known.extend(runs);
        Ok(())
    }

    fn end(&mut self, header: &Header) -> Result<(), Damage> {
        let payload = self.payload(header);
        if ![END_BYTES, SHORT_END_BYTES].contains(&payload.len()) {
            return self.damage(self.at, "an end block of the wrong size");
        }
        let Some(process) = self.processes.last_mut() else {
            return self.damage(self.at, "an end before any process");
        };
        process.lost_blocks = u32_at(payload, 4);
        process.end = Some((u64_at(payload, 8), u64_at(payload, 16)));
        if payload.len() == END_BYTES {
            process.peak_resident = u64_at(payload, 24);
        }
        Ok(())
    }

    fn finish(&mut self, header: &Header) -> Result<(), Damage> {
        let payload = self.payload(header);
        if payload.len() != FINISH_BYTES {
            return self.damage(self.at, "a closing block of the wrong size");
        }
        let said = [u64_at(payload, 0), u64_at(payload, 8), u64_at(payload, 16)];
        let found = [self.processes.len() as u64, self.blocks, self.records];
        if said != found {
            let what = format!(
                "the closing block counts {} processes, {} blocks and {} operations; \
                 there are {}, {} and {}",
                said[0], said[1], said[2], found[0], found[1], found[2]
            );
            return self.damage(self.at, what);
        }
        let after = header.payload + header.length;
        if after != self.bytes.len() {
            return self.damage(after, "there are bytes after the closing block");
        }
        Ok(())
    }
}
