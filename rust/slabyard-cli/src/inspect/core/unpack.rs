//! Opens the file of a core, also if systemd-coredump has compressed it.

use anyhow::{bail, Context, Result};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Compressed files that this tool cannot read.
const OTHERS: [(&[u8], &str); 4] = [
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
];

/// Opens a core. True: it was compressed, and the result is a temporary file without a name.
pub fn open(path: &Path) -> Result<(File, bool)> {
    let cannot = || format!("cannot open {}", path.display());
    if !path.metadata().with_context(cannot)?.is_file() {
        bail!("{} is not a file", path.display());
    }
    let mut file = File::open(path).with_context(cannot)?;
    let mut magic = Vec::new();
    (&file)
        .take(8)
        .read_to_end(&mut magic)
        .with_context(cannot)?;
    file.rewind().with_context(cannot)?;
    if let Some((_, name)) = OTHERS.iter().find(|(start, _)| magic.starts_with(start)) {
        bail!(
            "{} is compressed with {name}, which this tool does not read: decompress it first \
             (coredumpctl dump -o FILE does so)",
            path.display()
        );
    }
    if !magic.starts_with(ZSTD) {
        return Ok((file, false));
    }
    let core = decompress(file).with_context(|| format!("cannot decompress {}", path.display()))?;
    Ok((core, true))
}

fn decompress(file: File) -> Result<File> {
    const PIECE: usize = 64 << 10;
    let mut from = ruzstd::decoding::StreamingDecoder::new(BufReader::new(file))?;
    let mut core = tempfile::tempfile().context("cannot make a temporary file")?;
    let mut piece = Vec::with_capacity(PIECE);
    let mut length = 0;
    loop {
        piece.clear();
        let result = from.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        write_sparse(&mut core, &piece)
            .context("cannot write to the folder of temporary files (TMPDIR)")?;
        length += piece.len() as u64;
        match result {
            // A file that is cut off has a beginning, at least.
            Err(error) if length == 0 => return Err(error.into()),
            Err(_) | Ok(0) => break,
            Ok(_) => {}
        }
    }
    core.set_len(length)?;
    Ok(core)
}

/// Writes at the end, with holes for zeros.
fn write_sparse(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    for block in bytes.chunks(4096) {
        if block.iter().all(|&byte| byte == 0) {
            file.seek(SeekFrom::Current(block.len() as i64))?;
        } else {
            file.write_all(block)?;
        }
    }
    Ok(())
}
