//! `slabyard record`: runs a program with the recorder preloaded, and joins the files of its
//! processes.
//!
//! [`crate::program`] runs the program and passes signals on. [`samples`] samples the memory of its
//! processes meanwhile. [`parts`] then finds the files that the processes wrote, and the buffers of
//! processes that were killed, and [`join`] makes one recording of them.

mod join;
mod parts;
mod samples;

#[cfg(any(test, feature = "fuzz"))]
pub use parts::rest_in;

use crate::preload::{self, elf::Elf, options, target};
use crate::program::{self, Ended, Reach, Signals, LOOK_AGAIN};
use crate::signals;
use crate::ui;
use anyhow::{bail, Context, Result};
use join::Joined;
use memchr::memmem;
use memmap2::Mmap;
use parts::{Left, Part};
use samples::Sampler;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The recorder as it was built with this tool.
static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// The result of a recording.
pub struct Recorded {
    pub ended: Ended,
    pub operations: u64,
    pub bytes: u64,
}

/// The temporary folders of a recording, which are removed with their content.
struct Scratch {
    /// The folder for the processes' files, on the file system of the recording.
    parts: TempDir,
    /// The folder for their buffers, on a tmpfs if there is one.
    buffers: Option<TempDir>,
    /// The folder with the recorder, if the loader cannot preload it from `parts`.
    _loadable: Option<TempDir>,
    library: PathBuf,
}

/// Runs `command` and writes its recording to `file`, which appears only when it is whole.
pub fn record(command: &[OsString], file: &Path) -> Result<Recorded> {
    let program = command.first().context("there is no program to record")?;
    let signals = Signals::hold();
    let scratch = Scratch::make(file)?;
    let mut sampler = Sampler::new(scratch.parts.path());
    let command = preloaded(command, &scratch);
    let mut sample = |_| sampler.take();
    let ended = program::run(command, &signals, LOOK_AGAIN, Reach::All, &mut sample)?;
    let Left {
        mut parts,
        without_file,
    } = parts::collect(scratch.parts.path())?;
    say_who_has_no_file(&without_file);
    for part in &mut parts {
        part.samples = sampler.of(&part.process);
    }
    if parts.is_empty() {
        say_how_it_ended(&ended, None);
        match parts::first_error(scratch.parts.path()) {
            Some(error) => bail!("nothing was recorded: {error}"),
            None if !without_file.is_empty() => bail!("nothing was recorded"),
            None => bail!("{}", why_nothing(program, std::env::var_os("SLABYARD"))),
        }
    }
    let Joined {
        operations,
        failure,
    } = join::join(&parts, scratch.parts.path(), file)?;
    say_how_it_ended(&ended, Some(operations));
    say_what_is_missing(&parts, &ended);
    if ended.leaves_others {
        scratch.stay();
    }
    if lacks_objects(program, std::env::var_os("SLABYARD")) {
        ui::warn(&format!(
            "{} uses Slabyard's functions, and the recording lacks the objects that it allocates \
             with them. To record these too, set SLABYARD=tools=malloc in the environment",
            program.to_string_lossy()
        ));
    }
    if let Some(failure) = failure {
        ui::warn(&format!("there is no room for the rest of it: {failure}"));
    }
    Ok(Recorded {
        ended,
        operations,
        bytes: std::fs::metadata(file)?.len(),
    })
}

impl Scratch {
    fn make(file: &Path) -> Result<Self> {
        let beside = match file.parent() {
            Some(parent) if parent != Path::new("") => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let beside = beside
            .canonicalize()
            .with_context(|| format!("there is no folder {}", beside.display()))?;
        let parts = temporary(&beside)?;
        let buffers = tmpfs().and_then(|place| temporary(&place).ok());
        if let Some(buffers) = &buffers {
            std::os::unix::fs::symlink(buffers.path(), parts.path().join("live"))?;
        }
        let loadable = (!preload::can_stand_in_preload(parts.path()))
            .then(|| temporary(&std::env::temp_dir()))
            .transpose()?;
        let folder = loadable.as_ref().map_or(parts.path(), TempDir::path);
        let library = folder.join("libslabyard-record.so");
        std::fs::write(&library, RECORDER)
            .with_context(|| format!("cannot write the recorder to {}", library.display()))?;
        Ok(Scratch {
            library,
            parts,
            buffers,
            _loadable: loadable,
        })
    }

    /// Leaves the recorder where it is, for processes that may still start others with it.
    fn stay(self) {
        let folder = self.library.parent().map(Path::to_path_buf);
        let _ = self.parts.keep();
        self.buffers
            .into_iter()
            .chain(self._loadable)
            .for_each(|kept| {
                let _ = kept.keep();
            });
        ui::warn(&format!(
            "the recorder stays in {} for the processes that still run; remove the folder when they \
             have ended",
            folder.unwrap_or_default().display()
        ));
    }
}

fn temporary(place: &Path) -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix(".slabyard-")
        .tempdir_in(place);
    folder.with_context(|| format!("cannot make a folder in {}", place.display()))
}

/// Finds a folder whose files are in memory. Once a page of such a file is allocated, no write to
/// it fails, even if the disks are full.
fn tmpfs() -> Option<PathBuf> {
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [
        Some(PathBuf::from("/dev/shm")),
        user,
        Some(std::env::temp_dir()),
    ];
    places.into_iter().flatten().find(|place| is_tmpfs(place))
}

fn is_tmpfs(place: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(place.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: a statfs may be all zero, and the call fills it.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        libc::statfs(name.as_ptr(), &mut about) == 0 && about.f_type == libc::TMPFS_MAGIC
    }
}

fn preloaded(command: &[OsString], scratch: &Scratch) -> Command {
    let mut program = Command::new(&command[0]);
    program
        .args(&command[1..])
        .env("LD_PRELOAD", preload::before_others(&scratch.library))
        .env("SLABYARD_RECORD", scratch.parts.path());
    program
}

fn say_how_it_ended(ended: &Ended, operations: Option<u64>) {
    let Some(signal) = ended.status.signal() else {
        return;
    };
    let signal = signals::described(signal);
    ui::warn(&match operations {
        Some(count) => format!(
            "the program was ended by {signal}; the recording so far has {} operations",
            ui::grouped(count)
        ),
        None => format!("the program was ended by {signal}"),
    });
}

fn say_who_has_no_file(without_file: &[String]) {
    for pid in without_file {
        ui::warn(&format!(
            "process {pid} could not write the beginning of its file: there is no room, or a limit \
             (ulimit -f) forbids it"
        ));
    }
}

fn say_what_is_missing(parts: &[Part], ended: &Ended) {
    for part in parts {
        let who = part.who();
        if let Some(error) = &part.error {
            ui::warn(&format!("{who}: its recording stops early: {error}"));
        } else if part.runs {
            ui::warn(&format!(
                "{who} still runs; only what it wrote so far is recorded"
            ));
        } else if let (Some(damage), false) = (&part.damage, part.is_whole) {
            ui::warn(&format!("{who}: its last block is left out, {damage}"));
        } else if part.process.lost_blocks > 0 {
            let lost = part.process.lost_blocks;
            ui::warn(&format!("{who}: {lost} blocks could not be written"));
        } else if !part.is_whole {
            ui::warn(&format!(
                "{who} was killed; up to ten thousand operations of each thread are missing"
            ));
        } else if part.process.end.is_none() && part.process.pid != ended.pid {
            ui::warn(&format!(
                "{who} was killed or crashed; what it did until then is recorded"
            ));
        }
    }
}

/// Whether the program allocates objects with Slabyard's functions, and not from malloc. `options`:
/// the variable SLABYARD. A program whose symbols were removed is not recognised.
fn lacks_objects(program: &OsString, options: Option<OsString>) -> bool {
    if options::without("tools", options.clone()) != options {
        return false;
    }
    let Ok(path) = target::find_program(program) else {
        return false;
    };
    // SAFETY: a program that is changed while it is searched may end this process, but nothing is
    // lost: the recording is written.
    let Ok(bytes) = File::open(path).and_then(|file| unsafe { Mmap::map(&file) }) else {
        return false;
    };
    let names: [&[u8]; 2] = [b"\0sy_cache_create\0", b"\0sy_malloc\0"];
    let has = |name: &[u8]| memmem::find(&bytes, name).is_some();
    bytes.starts_with(b"\x7fELF") && names.into_iter().any(has)
}

/// The most likely reason that a program, started with `options` in SLABYARD, left no recording.
fn why_nothing(program: &OsString, options: Option<OsString>) -> String {
    let name = program.to_string_lossy();
    let path = target::find_program(program).ok();
    match path.and_then(|path| Elf::open(&path).ok().flatten()) {
        Some(elf) if elf.loader.is_none() => format!(
            "nothing was recorded: {name} is statically linked, so nothing can be preloaded into it"
        ),
        _ if lacks_objects(program, options) => format!(
            "nothing was recorded: {name} allocates with Slabyard's functions, and nothing through \
             malloc. To record its objects, set SLABYARD=tools=malloc in the environment"
        ),
        _ => format!(
            "nothing was recorded: {name} allocates nothing through malloc, brings a malloc of its \
             own, or runs with raised privileges (setuid), which forbids preloading"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::records::Operation;
    use crate::recording::{Recording, Strictness};

    #[test]
    fn programs_that_use_slabyard_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            path.into_os_string()
        };
        let of_caches = file("caches", b"\x7fELF..\0main\0sy_cache_create\0exit\0");
        let of_heap = file("heap", b"\x7fELF..\0sy_malloc\0");
        let other = file("other", b"\x7fELF..\0my_sy_malloc\0sy_malloc_too\0");
        let script = file("script", b"#!/bin/sh\n\0sy_malloc\0");
        for (program, options, expected) in [
            (&of_caches, None, true),
            (&of_heap, Some("decay=off"), true),
            (&of_heap, Some("tools=malloc"), false),
            (&of_caches, Some("zero,tools=off"), false),
            (&other, None, false),
            (&script, None, false),
            (&OsString::from("/no/such/program"), None, false),
        ] {
            let options = options.map(OsString::from);
            let lacks = lacks_objects(program, options.clone());
            assert_eq!(lacks, expected, "{program:?} {options:?}");
            let said = why_nothing(program, options);
            assert_eq!(said.contains("tools=malloc"), expected, "{said}");
        }
    }

    /// The operations of one of the test programs, in the order of its first thread.
    fn operations_of(name: &str) -> Vec<Operation> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
        let (program, file) = (folder.path().join(name), folder.path().join("o.syrec"));
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O0", "-fno-builtin", "-w", "-o"])
            .arg(&program);
        assert!(compiler.arg(source).status().unwrap().success());
        record(&[program.into_os_string()], &file).unwrap();
        let recording = Recording::open(&file, Strictness::Whole).unwrap();
        let blocks = &recording.processes[0].threads[0].blocks;
        let mut operations = Vec::new();
        for block in blocks {
            let mut records = recording.records(block);
            while let Some(record) = records.next().unwrap() {
                operations.push(record.operation);
            }
        }
        operations
    }

    #[test]
    fn calls_that_give_more_than_they_name_are_noted_as_they_are() {
        let done = operations_of("odd_calls");
        let aligned: Vec<_> = done
            .iter()
            .filter_map(|operation| match *operation {
                Operation::Aligned {
                    size, align_log2, ..
                } => Some((size, align_log2)),
                _ => None,
            })
            .collect();
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        let pages = 100_001u64.next_multiple_of(page);
        assert_eq!(aligned, [(1001, 6), (pages, page.ilog2() as u8)]);
        let failed: Vec<_> = done
            .iter()
            .filter_map(|operation| match *operation {
                Operation::Failed { size } => Some(size),
                _ => None,
            })
            .collect();
        assert_eq!(failed, [u64::MAX, u64::MAX, u64::MAX / 8 * 2]);
    }
}
