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

use crate::perf_map;
use crate::preload::{self, elf::Elf, options, serving, target};
use crate::program::{self, Ended, Reach, Signals, Watch, LOOK_AGAIN};
use crate::run;
use crate::service::{Load, Service, Window};
use crate::signals;
use crate::ui;
use anyhow::{bail, Context, Result};
use join::Joined;
use memchr::memmem;
use memmap2::Mmap;
use parts::{Left, Part};
use samples::Sampler;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The recorder as it was built with this tool.
static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// What is recorded, and how.
#[derive(Default)]
pub struct Plan<'a> {
    pub command: &'a [OsString],
    /// The program is ended after this time.
    pub window: Option<Duration>,
    /// The load on a server.
    pub load: Option<&'a Load>,
    /// A command for the shell that runs before.
    pub before: Option<&'a OsStr>,
    /// Whether the stack of each allocation is recorded.
    pub stacks: bool,
    /// Whether a program that allocates nothing is no error. There is no recording then.
    pub may_be_empty: bool,
}

/// The result of a recording.
pub struct Recorded {
    /// Whether the program was ended because its time was over.
    pub is_cut: bool,
    pub ended: Ended,
    pub operations: u64,
    pub bytes: u64,
}

impl Recorded {
    fn empty(ended: Ended) -> Self {
        Recorded {
            is_cut: false,
            ended,
            operations: 0,
            bytes: 0,
        }
    }
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

/// Runs a program and writes its recording to `file`, which appears only when it is whole.
pub fn record(plan: &Plan, file: &Path) -> Result<Recorded> {
    let program = plan.command.first();
    let program = program.context("there is no program to record")?;
    let recorder = Elf::of_bytes(RECORDER).context("the tool's own recorder is not a library")?;
    target::find(program, &recorder).context("nothing is recorded")?;
    let signals = Signals::hold();
    if let Some(before) = plan.before {
        program::prepare_input(before, &signals)?;
    }
    let scratch = Scratch::make(file)?;
    let mut sampler = Sampler::new(scratch.parts.path());
    let mut maps = perf_map::Recorded::new();
    let (ended, is_cut) = watched(plan, &scratch, &signals, &mut sampler)?;
    let Left {
        mut parts,
        without_file,
    } = parts::collect(scratch.parts.path())?;
    say_who_has_no_file(&without_file);
    for part in &mut parts {
        part.samples = sampler.of(&part.process);
        maps.owners.insert(part.process.pid, part.owner);
    }
    if parts.is_empty() {
        say_how_it_ended(plan, &ended, None);
        match parts::first_error(scratch.parts.path()) {
            Some(error) => bail!("nothing was recorded: {error}"),
            None if !without_file.is_empty() => bail!("nothing was recorded"),
            None if plan.may_be_empty => return Ok(Recorded::empty(ended)),
            None => bail!("{}", why_nothing(program, std::env::var_os("SLABYARD"))),
        }
    }
    let Joined {
        operations,
        failure,
    } = join::join(&parts, scratch.parts.path(), file, &maps)?;
    match plan.window.filter(|_| is_cut) {
        Some(time) => ui::warn(&format!(
            "the program was ended after {}, as --for asks",
            run::seconds(time)
        )),
        None => say_how_it_ended(plan, &ended, Some(operations)),
    }
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
        is_cut,
        ended,
        operations,
        bytes: std::fs::metadata(file)?.len(),
    })
}

/// Runs the program: a server under load, or for a time, or to its end. Returns how it ended, and
/// whether because its time was over.
fn watched(
    plan: &Plan,
    scratch: &Scratch,
    signals: &Signals,
    sampler: &mut Sampler,
) -> Result<(Ended, bool)> {
    let command = preloaded(plan, scratch);
    let run = |watch: &mut dyn Watch| program::run(command, signals, LOOK_AGAIN, Reach::All, watch);
    if let Some(load) = plan.load {
        let mut sample = |_, _, _| {
            sampler.take();
            0
        };
        let mut service = Service::new(load, signals, &mut sample)?;
        let ended = run(&mut service)?;
        if ended.signalled.is_none() {
            if let Err(why) = service.result() {
                bail!("the program {why}");
            }
        }
        return Ok((ended, false));
    }
    let mut sample = |_| sampler.take();
    let Some(time) = plan.window else {
        return Ok((run(&mut sample)?, false));
    };
    let mut window = Window::new(time, &mut sample);
    let ended = run(&mut window)?;
    Ok((ended, window.is_over()))
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
        libc::statfs(name.as_ptr(), &mut about) == 0
            && i128::from(about.f_type) == i128::from(libc::TMPFS_MAGIC)
    }
}

fn preloaded(plan: &Plan, scratch: &Scratch) -> Command {
    let mut program = Command::new(&plan.command[0]);
    if plan.stacks {
        program.env("SLABYARD_RECORD_STACKS", "1");
    }
    program
        .args(&plan.command[1..])
        .env("LD_PRELOAD", preload::before_others(&scratch.library))
        .env("SLABYARD_RECORD", scratch.parts.path());
    program
}

/// Says which signal ended the program. A server under load is ended by one.
fn say_how_it_ended(plan: &Plan, ended: &Ended, operations: Option<u64>) {
    let is_expected = plan.load.is_some() && ended.signalled.is_none();
    let Some(signal) = ended.status.signal().filter(|_| !is_expected) else {
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
        _ => match serving::of(program)
            .ok()
            .flatten()
            .filter(|own| own.is_program)
        {
            Some(_) => format!(
                "nothing was recorded: {name} has a malloc of its own, which no library replaces"
            ),
            None => format!("nothing was recorded: {name} allocates nothing through malloc"),
        },
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
        let command = [program.into_os_string()];
        let plan = Plan {
            command: &command,
            ..Plan::default()
        };
        record(&plan, &file).unwrap();
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
