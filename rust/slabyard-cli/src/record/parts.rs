//! Reads the files that the recorded processes left: one file for each process, and the buffers of
//! processes that were killed.

use super::samples::Sample;
use crate::recording::{
    stacks, u32_at, u64_at, BUFFER_BYTES, BUFFER_HEAD_BYTES, BUFFER_MAGIC, KIND_OPERATIONS,
    KIND_STACKED, KIND_STACKS,
};
use crate::recording::{Process, Recording, Records, Strictness};
use anyhow::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The records of a thread since its last block, or nodes of stacks.
pub struct Rest {
    pub kind: u8,
    pub thread: u32,
    pub records: u32,
    pub stamp: u64,
    pub payload: Vec<u8>,
}

/// One process's file, and the records that its buffers add to it.
pub struct Part {
    pub path: PathBuf,
    pub process: Process,
    /// The user of the process.
    pub owner: u32,
    pub good_bytes: u64,
    /// Whether the process still runs, and may write.
    pub runs: bool,
    pub rest: Vec<Rest>,
    /// Samples of its resident memory.
    pub samples: Vec<Sample>,
    /// Whether no records are lost: the process had written all, or its buffers could be read.
    pub is_whole: bool,
    /// The error that kept the process from writing.
    pub error: Option<std::io::Error>,
    /// The damage at the end of the file.
    pub damage: Option<String>,
}

impl Part {
    /// The process's number and name.
    pub fn who(&self) -> String {
        format!("process {} ({})", self.process.pid, self.process.name())
    }
}

/// The content of a buffers file.
#[derive(Default)]
struct Buffers {
    rest: Vec<Rest>,
    error: Option<i32>,
}

/// The files of all processes in `folder`.
#[derive(Default)]
pub struct Left {
    /// Ordered by the processes' births.
    pub parts: Vec<Part>,
    /// The ids of processes that could not even write the beginning of their file.
    pub without_file: Vec<String>,
}

pub fn collect(folder: &Path) -> Result<Left> {
    let mut left = Left::default();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_name().and_then(|name| name.to_str());
        let Some(stem) = stem.and_then(|name| name.strip_suffix(".part")) else {
            continue;
        };
        let buffers = read_buffers(&folder.join("live").join(format!("{stem}.buffers")));
        match Recording::open(&path, Strictness::Part) {
            Ok(recording) if !recording.processes.is_empty() => {
                left.parts.push(part_of(path, &recording, buffers));
            }
            _ => {
                let pid = stem.split('.').next().unwrap_or(stem);
                left.without_file.push(pid.to_string());
            }
        }
    }
    left.parts.sort_by_key(|part| part.process.birth_ticks);
    Ok(left)
}

/// The error that kept a process from writing anything at all.
pub fn first_error(folder: &Path) -> Option<std::io::Error> {
    let entries = std::fs::read_dir(folder.join("live")).ok()?;
    let mut buffers = entries.filter_map(|entry| read_buffers(&entry.ok()?.path()));
    let error = buffers.find_map(|buffers| buffers.error)?;
    Some(std::io::Error::from_raw_os_error(error))
}

fn part_of(path: PathBuf, recording: &Recording, buffers: Option<Buffers>) -> Part {
    let process = recording.processes[0].clone();
    // SAFETY: signal 0 only checks whether the process exists.
    let runs = process.end.is_none() && unsafe { libc::kill(process.pid as libc::pid_t, 0) } == 0;
    let is_whole = process.end.is_some() || buffers.is_some();
    let mut buffers = buffers.unwrap_or_default();
    if runs || buffers.error.is_some() {
        buffers.rest.clear();
    }
    buffers.rest.retain(|rest| !is_written(&process, rest));
    let owner = std::fs::metadata(&path).map_or(u32::MAX, |about| about.uid());
    Part {
        path,
        owner,
        good_bytes: recording.good_bytes,
        runs,
        rest: buffers.rest,
        samples: Vec::new(),
        is_whole,
        error: buffers.error.map(std::io::Error::from_raw_os_error),
        damage: recording.damage.as_ref().map(ToString::to_string),
        process,
    }
}

/// Whether a buffer was written already. A process that is killed between writing a buffer and
/// emptying it leaves its records in both places.
fn is_written(process: &Process, rest: &Rest) -> bool {
    if rest.kind == KIND_STACKS {
        return rest.stamp != process.stacks.len() as u64 + 1;
    }
    let mut threads = process.threads.iter();
    let last = threads
        .find(|thread| thread.number == rest.thread)
        .and_then(|thread| thread.blocks.last());
    last.is_some_and(|block| block.stamp == rest.stamp && block.length == rest.payload.len())
}

fn read_buffers(path: &Path) -> Option<Buffers> {
    Some(buffers_in(&std::fs::read(path).ok()?))
}

/// The records in a buffers file that were not written, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn rest_in(bytes: &[u8]) -> Vec<Rest> {
    buffers_in(bytes).rest
}

fn buffers_in(bytes: &[u8]) -> Buffers {
    let mut buffers = Buffers::default();
    for buffer in bytes.chunks_exact(BUFFER_BYTES) {
        if u32_at(buffer, 0) != BUFFER_MAGIC {
            continue;
        }
        let error = u32_at(buffer, 36) as i32;
        buffers.error = buffers.error.or((error != 0).then_some(error));
        buffers.rest.extend(rest_of(buffer));
    }
    buffers.rest.sort_by_key(|rest| rest.stamp);
    buffers
}

/// The records in a buffer. `None`: it is empty, or was written for the last time; see
/// `recorder/format.h`.
fn rest_of(buffer: &[u8]) -> Option<Rest> {
    let (start, filled) = (u32_at(buffer, 4) as usize, u64_at(buffer, 8));
    let (records, length) = ((filled >> 32) as u32, filled as u32 as usize);
    let (stamp, thread, closed) = (
        u64_at(buffer, 16),
        u32_at(buffer, 24),
        u32_at(buffer, 28) != 0,
    );
    if records == 0 || closed || start < BUFFER_HEAD_BYTES {
        return None;
    }
    let payload = buffer.get(start..)?.get(..length)?;
    let kind = u8::try_from(u32_at(buffer, 40)).ok()?;
    (count(payload, stamp, kind) == Some(records)).then(|| Rest {
        kind,
        thread,
        records,
        stamp,
        payload: payload.to_vec(),
    })
}

fn count(payload: &[u8], stamp: u64, kind: u8) -> Option<u32> {
    if kind == KIND_STACKS {
        return Some(stacks::nodes(payload, stamp).ok()?.len() as u32);
    }
    if ![KIND_OPERATIONS, KIND_STACKED].contains(&kind) {
        return None;
    }
    let mut records = Records::new(payload, stamp, kind == KIND_STACKED);
    let mut count = 0;
    while records.next().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::{encode, free, malloc};

    fn buffer(records: u32, closed: u32, error: u32) -> Vec<u8> {
        let payload = encode(&[malloc(70, 0x1000, 8), free(80, 0x1000)], 70);
        let filled = u64::from(records) << 32 | payload.len() as u64;
        let mut bytes = BUFFER_MAGIC.to_le_bytes().to_vec();
        bytes.extend((BUFFER_HEAD_BYTES as u32).to_le_bytes());
        bytes.extend(filled.to_le_bytes());
        bytes.extend(70u64.to_le_bytes());
        let kind = u32::from(KIND_OPERATIONS);
        for word in [3, closed, u32::from(error != 0), error, kind, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(payload);
        bytes.resize(BUFFER_BYTES, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Buffers {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_buffers(file.path()).unwrap()
    }

    #[test]
    fn a_buffer_is_read_as_the_recorder_left_it() {
        let buffers = read(&buffer(2, 0, 0));
        assert_eq!(buffers.error, None);
        let rest = &buffers.rest[0];
        assert_eq!((rest.thread, rest.records, rest.stamp), (3, 2, 70));
    }

    #[test]
    fn buffers_that_are_closed_empty_or_torn_add_nothing() {
        for bytes in [
            buffer(2, 1, 0),
            buffer(0, 0, 0),
            buffer(3, 0, 0),
            vec![0; BUFFER_BYTES],
            vec![7; 100],
        ] {
            assert!(read(&bytes).rest.is_empty());
        }
    }

    #[test]
    fn why_a_process_could_not_write_is_known() {
        assert_eq!(read(&buffer(2, 0, 28)).error, Some(28));
    }

    #[test]
    fn a_buffer_that_was_written_is_not_taken_twice() {
        let rest = &read(&buffer(2, 0, 0)).rest[0];
        let block = crate::recording::blocks::Block {
            offset: 0,
            length: rest.payload.len(),
            stamp: 70,
            has_stacks: false,
        };
        let mut process = Process::default();
        process.threads.push(crate::recording::Thread {
            number: 3,
            blocks: vec![block],
            records: 2,
        });
        assert!(is_written(&process, rest));
        process.threads[0].blocks[0].stamp = 69;
        assert!(!is_written(&process, rest));
    }
}
