//! The recording: a file of blocks that the recorder wrote, read back.
//!
//! `recorder/format.h` defines the bytes. [`blocks`] checks and finds the blocks, [`records`]
//! takes the operations out of one, [`writer`] writes what `record` adds when it joins the files
//! of several processes. Nothing here knows about replay.

pub mod blocks;
pub mod records;
pub mod writer;

pub use blocks::{Process, Recording, Strictness, Thread};
pub use records::{Operation, Record, Records};

/// What a recording begins with.
pub const MAGIC: &[u8; 16] = b"slabyard record\n";
pub const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 24;
pub const BLOCK_MAGIC: u32 = 0x3142_5953;
pub const BLOCK_HEADER_BYTES: usize = 32;

pub const KIND_PROCESS: u8 = 1;
pub const KIND_OPERATIONS: u8 = 2;
pub const KIND_END: u8 = 3;
pub const KIND_FINISH: u8 = 4;
pub const KIND_UNTOUCHED: u8 = 5;
pub const KIND_MEMORY: u8 = 6;

/// A process block's fixed part; the command line follows.
pub const PROCESS_BYTES: usize = 32;
/// With and without the largest size in RAM, which recorders of before do not say.
pub const END_BYTES: usize = 32;
pub const SHORT_END_BYTES: usize = 24;
pub const FINISH_BYTES: usize = 24;

/// A thread's buffer in shared memory, and the fixed part at its beginning.
pub const BUFFER_BYTES: usize = 64 << 10;
pub const BUFFER_HEAD_BYTES: usize = 40;
pub const BUFFER_MAGIC: u32 = 0x3242_5953;

/// Little-endian numbers at a place that the caller knows to be inside.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
pub(crate) mod tests;
