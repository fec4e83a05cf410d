//! Joins the files of all recorded processes into one recording. The first process's file becomes
//! the recording, so a single process needs no further disk space. If there is no room for all
//! blocks, the recording holds those that fit.

use super::parts::Part;
use crate::perf_map;
use crate::recording::{writer, Made, Recording, Strictness, BLOCK_HEADER_BYTES, HEADER_BYTES};
use crate::ui;
use anyhow::{Context, Result};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The result of a join.
pub struct Joined {
    pub operations: u64,
    /// The error if some blocks are missing.
    pub failure: Option<io::Error>,
}

/// Makes `file` of the parts. `folder` holds the other files of the parts, on the same file system.
pub fn join(
    parts: &[Part],
    folder: &Path,
    file: &Path,
    maps: &perf_map::Recorded,
) -> Result<Joined> {
    let path = folder.join("joined");
    let failure = append_all(parts, &path).err();
    let operations = close(&path, maps).with_context(|| match &failure {
        Some(failure) => format!("cannot write {}: {failure}", file.display()),
        None => format!("cannot write {}", file.display()),
    })?;
    let named = fs::set_permissions(&path, Permissions::from_mode(0o644))
        .and_then(|()| fs::rename(&path, file));
    named.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Joined {
        operations,
        failure,
    })
}

fn append_all(parts: &[Part], path: &Path) -> io::Result<()> {
    let (base, others) = match parts.split_first() {
        Some((first, others)) if !first.runs => (Some(first), others),
        _ => (None, parts),
    };
    let bar = ui::bar("joining", others.iter().map(|part| part.good_bytes).sum());
    let mut out = BufWriter::new(match base {
        Some(base) => take(base, path)?,
        None => new_file(path)?,
    });
    base.map_or(Ok(()), |base| append_rest(&mut out, base))?;
    for part in others {
        append_file(&mut out, part)?;
        append_rest(&mut out, part)?;
        bar.inc(part.good_bytes);
    }
    out.flush()?;
    bar.finish_and_clear();
    Ok(())
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    file.write_all(&writer::header())?;
    Ok(file)
}

/// Takes the part's own file, cut off after its last whole block.
fn take(part: &Part, path: &Path) -> io::Result<File> {
    fs::rename(&part.path, path)?;
    let mut file = File::options().write(true).open(path)?;
    file.set_len(part.good_bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// Appends all blocks of the part, and removes its file.
fn append_file(out: &mut impl Write, part: &Part) -> io::Result<()> {
    let mut from = File::open(&part.path)?;
    from.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
    let mut good = from.take(part.good_bytes - HEADER_BYTES as u64);
    io::copy(&mut good, out)?;
    fs::remove_file(&part.path)
}

fn append_rest(out: &mut impl Write, part: &Part) -> io::Result<()> {
    for rest in &part.rest {
        let head = writer::Head {
            kind: rest.kind,
            thread: rest.thread,
            records: rest.records,
            stamp: rest.stamp,
        };
        writer::write_block(out, head, &rest.payload)?;
    }
    if part.samples.is_empty() {
        return Ok(());
    }
    writer::write_samples(out, part.process.birth_ns, &part.samples)
}

/// Writes the names of functions made at run time and the closing block after the last whole one. If
/// there is no room for these, leaves out the names; if there is still none, removes the last block of
/// operations and tries again. Returns the number of operations in the recording.
fn close(path: &Path, maps: &perf_map::Recorded) -> Result<u64> {
    let mut names = Names::Wanted;
    loop {
        let recording = Recording::open(path, Strictness::Part)?;
        let counts = (
            recording.processes.len() as u64,
            recording.blocks,
            recording.records_of_all(),
        );
        let operations = recording.operations();
        let (end, last) = (recording.good_bytes, recording.last_block);
        let made = match names {
            Names::Wanted => maps.names(&recording.processes),
            Names::LeftOut => Vec::new(),
        };
        drop(recording);
        let error = match finish(path, end, &made, counts) {
            Ok(()) => return Ok(operations),
            Err(error) => error,
        };
        if matches!(names, Names::Wanted) {
            names = Names::LeftOut;
            continue;
        }
        // The first block names the process; without it the file is not a recording.
        let first = (HEADER_BYTES + BLOCK_HEADER_BYTES) as u64;
        if last < first {
            return Err(error.into());
        }
        File::options().write(true).open(path)?.set_len(last)?;
    }
}

/// Whether the recording gets names of functions made at run time.
enum Names {
    Wanted,
    LeftOut,
}

fn finish(
    path: &Path,
    end: u64,
    made: &[Made],
    (processes, blocks, records): (u64, u64, u64),
) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let mut file = BufWriter::new(file);
    let mut of_names = 0;
    for (process, made) in (0..).zip(made).filter(|(_, made)| made.len() > 0) {
        writer::write_made(&mut file, process, made)?;
        of_names += 1;
    }
    writer::write_finish(&mut file, processes, blocks + of_names, records)?;
    file.flush()
}
