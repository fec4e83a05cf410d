//! Writes blocks: the closing block that `record` adds to joined files, and whole recordings for
//! tests.

use super::*;
use std::io::{self, Write};

/// The file header.
pub fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(MAGIC);
    header[16..20].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32fast::hash(&header[..20]);
    header[20..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The fields of a block's header, except its length and checksum.
#[derive(Clone, Copy, Default)]
pub struct Head {
    pub kind: u8,
    pub thread: u32,
    pub records: u32,
    pub stamp: u64,
}

/// The length of a payload, which has 32 bits in the header.
fn length(bytes: usize) -> io::Result<u32> {
    let refused = |_| io::Error::other("a block of a recording has less than 4 GiB");
    u32::try_from(bytes).map_err(refused)
}

/// Writes one block. Nothing is written of one that is too long.
pub fn write_block(out: &mut impl Write, head: Head, payload: &[u8]) -> io::Result<()> {
    let mut header = [0; BLOCK_HEADER_BYTES];
    header[..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
    header[4] = head.kind;
    header[8..12].copy_from_slice(&head.thread.to_le_bytes());
    header[12..16].copy_from_slice(&head.records.to_le_bytes());
    header[16..24].copy_from_slice(&head.stamp.to_le_bytes());
    header[24..28].copy_from_slice(&length(payload.len())?.to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..28]);
    crc.update(payload);
    header[28..].copy_from_slice(&crc.finalize().to_le_bytes());
    out.write_all(&header)?;
    out.write_all(payload)
}

/// Writes samples of a process's memory: the nanoseconds since the previous sample, or since its
/// birth, and the bytes.
pub fn write_samples(
    out: &mut impl Write,
    birth_ns: u64,
    samples: &[(u64, u64)],
) -> io::Result<()> {
    let (mut payload, mut before) = (Vec::new(), birth_ns);
    for &(ns, bytes) in samples {
        put_varint(&mut payload, ns.saturating_sub(before));
        put_varint(&mut payload, bytes);
        before = ns;
    }
    let head = Head {
        kind: KIND_MEMORY,
        records: samples.len() as u32,
        ..Head::default()
    };
    write_block(out, head, &payload)
}

/// Writes the names of functions that the process with this index made at run time.
pub fn write_made(out: &mut impl Write, process: u32, made: &Made) -> io::Result<()> {
    let head = Head {
        kind: KIND_MADE,
        thread: process,
        records: made.len() as u32,
        ..Head::default()
    };
    write_block(out, head, &made.encode())
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the closing block of a recording.
pub fn write_finish(
    out: &mut impl Write,
    processes: u64,
    blocks: u64,
    records: u64,
) -> io::Result<()> {
    let mut payload = [0; FINISH_BYTES];
    payload[..8].copy_from_slice(&processes.to_le_bytes());
    payload[8..16].copy_from_slice(&blocks.to_le_bytes());
    payload[16..].copy_from_slice(&records.to_le_bytes());
    let head = Head {
        kind: KIND_FINISH,
        ..Head::default()
    };
    write_block(out, head, &payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_whose_length_has_more_than_32_bits_is_refused() {
        assert_eq!(length(u32::MAX as usize).unwrap(), u32::MAX);
        let said = length(u32::MAX as usize + 1).unwrap_err().to_string();
        assert!(said.contains("less than 4 GiB"), "{said}");
    }
}
