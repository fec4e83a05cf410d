//! The recording: a file of blocks that the recorder wrote, and how the tool reads it.
//!
//! `recorder/format.h` defines the bytes. [`blocks`] finds and checks the blocks, [`records`]
//! decodes the operations of a block, [`stacks`] their stacks, [`made`] the names of functions made at run
//! time, and [`writer`] writes the blocks that `record` adds when it joins the files of several processes. Nothing here depends on the replay.

pub mod blocks;
pub mod made;
pub mod records;
pub mod stacks;
pub mod writer;

pub use blocks::{Process, ReadError, Recording, Strictness, Thread};
pub use made::Made;
pub use records::{Operation, Record, Records};
pub use stacks::{Module, Node};

/// The first bytes of a recording.
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
pub const KIND_STACKED: u8 = 7;
pub const KIND_STACKS: u8 = 8;
pub const KIND_MODULE: u8 = 9;
pub const KIND_MADE: u8 = 10;

/// The size of the fixed part of a process block; the command line follows.
pub const PROCESS_BYTES: usize = 32;
/// The sizes of an end block with and without the peak resident memory, which older recorders do
/// not write.
pub const END_BYTES: usize = 32;
pub const SHORT_END_BYTES: usize = 24;
pub const FINISH_BYTES: usize = 24;

/// The sizes of a thread's buffer in shared memory, and of the fixed part at its beginning.
pub const BUFFER_BYTES: usize = 64 << 10;
pub const BUFFER_HEAD_BYTES: usize = 48;
pub const BUFFER_MAGIC: u32 = 0x3242_5953;

/// Reads a little-endian number; the caller guarantees that it lies inside `bytes`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
pub(crate) mod tests;
