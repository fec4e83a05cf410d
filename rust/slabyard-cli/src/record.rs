//! `slabyard record`: runs a program with the recorder preloaded and joins what its processes wrote.

use crate::recording::{writer, Recording, Strictness, HEADER_BYTES};
use crate::ui;
use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The recorder as it was built with this tool.
static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// What became of a recording.
pub struct Recorded {
    pub status: ExitStatus,
    pub file: PathBuf,
    pub operations: u64,
    pub bytes: u64,
}

/// Runs `command` and writes its recording to `file`, which appears only when it is whole.
pub fn record(command: &[OsString], file: &Path) -> Result<Recorded> {
    let program = command.first().context("there is no program to record")?;
    let folder = scratch_folder(file)?;
    let library = folder.path().join("libslabyard-record.so");
    std::fs::write(&library, RECORDER)
        .with_context(|| format!("cannot write the recorder to {}", library.display()))?;
    let status = run(command, folder.path(), &library)?;
    let mut parts = open_parts(folder.path())?;
    if parts.is_empty() {
        bail!("{}", why_nothing(program));
    }
    parts.sort_by_key(|(_, part)| part.processes[0].birth_ticks);
    say_what_is_missing(&parts);
    join(&parts, file)?;
    let operations = parts.iter().map(|(_, part)| part.operations()).sum();
    Ok(Recorded {
        status,
        file: file.to_path_buf(),
        operations,
        bytes: std::fs::metadata(file)?.len(),
    })
}

/// Beside the file, where there is room for it; the loader cannot preload from a path with blanks.
fn scratch_folder(file: &Path) -> Result<tempfile::TempDir> {
    let beside = match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let beside = beside
        .canonicalize()
        .with_context(|| format!("there is no folder {}", beside.display()))?;
    let fits = |path: &Path| {
        let text = path.as_os_str().to_string_lossy();
        text.len() < 400 && !text.contains([' ', ':', ';', '\n', '\t'])
    };
    let place = if fits(&beside) {
        beside
    } else {
        std::env::temp_dir()
    };
    let builder = tempfile::Builder::new()
        .prefix(".slabyard-")
        .tempdir_in(&place);
    builder.with_context(|| format!("cannot make a folder in {}", place.display()))
}

/// Keyboard signals are the program's business: the tool stays to join what was written.
fn run(command: &[OsString], folder: &Path, library: &Path) -> Result<ExitStatus> {
    let mut preload = library.as_os_str().to_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(" ");
        preload.push(others);
    }
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    child
        .env("LD_PRELOAD", preload)
        .env("SLABYARD_RECORD", folder);
    // SAFETY: only signal(), which may be called between fork and exec.
    unsafe {
        child.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            Ok(())
        });
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
    }
    let status = child.status();
    // SAFETY: as above.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::signal(libc::SIGQUIT, libc::SIG_DFL);
    }
    status.with_context(|| format!("cannot run {}", command[0].to_string_lossy()))
}

/// The processes' files; one that holds nothing usable is left out.
fn open_parts(folder: &Path) -> Result<Vec<(PathBuf, Recording)>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "part")
        {
            if let Ok(part) = Recording::open(&path, Strictness::Part) {
                parts.push((path, part));
            }
        }
    }
    Ok(parts)
}

fn say_what_is_missing(parts: &[(PathBuf, Recording)]) {
    for (_, part) in parts {
        let process = &part.processes[0];
        let who = format!("process {} ({})", process.pid, process.name());
        if let Some(damage) = &part.damage {
            ui::warn(&format!("{who}: its last block is left out, {damage}"));
        } else if process.lost_blocks > 0 {
            ui::warn(&format!(
                "{who}: {} blocks could not be written",
                process.lost_blocks
            ));
        } else if process.end.is_none() {
            // SAFETY: signal 0 only asks whether the process exists.
            let alive = unsafe { libc::kill(process.pid as libc::pid_t, 0) } == 0;
            ui::warn(&if alive {
                format!("{who} still runs; only what it wrote so far is recorded")
            } else {
                format!("{who} was killed; what it did last may be missing")
            });
        }
    }
}

/// Everything goes into one file, which gets its name at the end.
fn join(parts: &[(PathBuf, Recording)], file: &Path) -> Result<()> {
    let parent = file.parent().filter(|parent| *parent != Path::new(""));
    let mut joined = tempfile::Builder::new()
        .prefix(".slabyard-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(parent.unwrap_or(Path::new(".")))?;
    let total = parts.iter().map(|(_, part)| part.good_bytes).sum();
    let bar = ui::bar("joining", total);
    let mut out = BufWriter::new(joined.as_file_mut());
    out.write_all(&writer::header())?;
    let (mut blocks, mut records) = (0, 0);
    for (path, part) in parts {
        let mut from = File::open(path)?;
        from.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        let mut good = std::io::Read::take(from, part.good_bytes - HEADER_BYTES as u64);
        std::io::copy(&mut good, &mut out)?;
        blocks += part.blocks;
        records += part.operations();
        bar.inc(part.good_bytes);
    }
    writer::write_finish(&mut out, parts.len() as u64, blocks, records)?;
    out.flush()?;
    drop(out);
    bar.finish_and_clear();
    let named = joined.persist(file);
    named.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// The most likely reason that a program left no trace.
fn why_nothing(program: &OsString) -> String {
    let name = program.to_string_lossy();
    match find_program(program).map(|path| has_interpreter(&path)) {
        Some(Some(false)) => format!(
            "nothing was recorded: {name} is statically linked, so nothing can be preloaded into it"
        ),
        _ => format!(
            "nothing was recorded: {name} allocates nothing through malloc, brings a malloc of its \
             own, or runs with raised privileges (setuid), which forbids preloading"
        ),
    }
}

fn find_program(program: &OsString) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_path_buf());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|candidate| candidate.is_file())
}

/// Whether an ELF file names a loader; `None` for whatever is not 64-bit little-endian ELF.
fn has_interpreter(path: &Path) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let bytes = std::fs::read(path).ok()?;
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize, length: usize| -> Option<usize> {
        let mut wide = [0; 8];
        wide[..length].copy_from_slice(bytes.get(at..at + length)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()
    };
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let kinds = (0..count).map(|index| number(table + index * size, 4));
    Some(kinds.flatten().any(|kind| kind as u32 == PT_INTERP))
}

/// What a shell would say of a program that ended so.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => (128 + signal) as u8,
        (None, None) => 125,
    }
}
