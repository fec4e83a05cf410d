//! Writes the plan's large files. In the file of operations, each thread's stream has its place, and
//! is written in stretches. The file is not mapped: a full disk then gives an error instead of
//! SIGBUS.

use super::Op;
use anyhow::{Context, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const OP_BYTES: u64 = size_of::<Op>() as u64;
/// The number of a thread's operations that are written together: 32 KiB.
const STRETCH: usize = 2048;

/// A file of the plan, and the first error of a write.
pub struct PlanFile {
    file: File,
    failure: Option<io::Error>,
}

/// One thread's operations: those before `written` are in the file already.
#[derive(Default)]
pub struct Stream {
    first: u64,
    written: u64,
    waiting: Vec<Op>,
}

impl PlanFile {
    pub fn create(path: &Path) -> Result<Self> {
        let options = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        Ok(PlanFile {
            file: options.with_context(|| format!("cannot create {}", path.display()))?,
            failure: None,
        })
    }

    pub fn write(&mut self, bytes: &[u8], place: u64) {
        let result = self.file.write_all_at(bytes, place);
        self.keep(result);
    }

    fn keep(&mut self, result: io::Result<()>) {
        self.failure = self.failure.take().or(result.err());
    }

    /// Returns an error if something is not in the file.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl Stream {
    /// Makes a stream whose first operation is number `first` of the file.
    pub fn at(first: u64) -> Self {
        Stream {
            first,
            ..Stream::default()
        }
    }

    pub fn push(&mut self, op: Op, file: &mut PlanFile) {
        self.waiting.push(op);
        if self.waiting.len() == STRETCH {
            self.flush(file);
        }
    }

    pub fn flush(&mut self, file: &mut PlanFile) {
        let mut bytes = Vec::with_capacity(self.waiting.len() * OP_BYTES as usize);
        self.waiting.iter().for_each(|op| bytes.extend(op.bytes()));
        let place = (self.first + self.written) * OP_BYTES;
        file.write(&bytes, place);
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// Changes operation `at` of the stream, in memory or in the file.
    pub fn change(&mut self, at: u64, change: impl FnOnce(&mut Op), file: &mut PlanFile) {
        if at >= self.written {
            change(&mut self.waiting[(at - self.written) as usize]);
            return;
        }
        let place = (self.first + at) * OP_BYTES;
        let mut bytes = [0; OP_BYTES as usize];
        let result = file.file.read_exact_at(&mut bytes, place).and_then(|()| {
            let mut op = Op::of_bytes(bytes);
            change(&mut op);
            file.file.write_all_at(&op.bytes(), place)
        });
        file.keep(result);
    }
}
