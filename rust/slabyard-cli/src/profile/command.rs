//! The command `slabyard profile`: its arguments, and what it does.

use super::formats::{self, Format};
use super::{By, Which};
use crate::cli::{may_replace, open, write_whole};
use crate::{inspect, record, signals, ui};
use anyhow::{bail, Context, Result};
use clap::Args;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

const PROFILE_NOTES: &str = "\
Examples:
  slabyard profile -- ./prog                        run it; the places with most memory at the peak
  PYTHONPERFSUPPORT=1 slabyard profile -- python3 x.py   with the functions of Python 3.12 and later
  slabyard record --stacks -- ./prog                record once, then look at it in many ways:
  slabyard profile prog.syrec --of leaked           what was not freed at exit
  slabyard profile prog.syrec --of temporary --objects
  slabyard profile prog.syrec --by thread           also: size; time, which shows what grew when
  slabyard profile prog.syrec -o peak.svg           a flame graph of the peak
  slabyard profile prog.syrec -o heap.pb.gz         for go tool pprof and Pyroscope
  slabyard profile prog.syrec -o heap.json.gz       for https://profiler.firefox.com
  slabyard profile new.syrec --diff old.syrec       what grew since
  SLABYARD=profile slabyard run -- ./server         take samples; then, while it runs:
  slabyard profile server -o now.svg                what it has in use now";

#[derive(Args)]
#[command(after_help = PROFILE_NOTES)]
pub struct ProfileArgs {
    /// The recording (slabyard record --stacks), or a running process that takes samples: its number or
    /// name; unless a program follows after `--`
    #[arg(
        value_name = "RECORDING|PROCESS",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    file: Option<PathBuf>,
    /// Which objects count [default: peak; of a running process: live]
    #[arg(long = "of", value_name = "WHICH", value_enum)]
    which: Option<Which>,
    /// Count objects instead of bytes
    #[arg(long)]
    objects: bool,
    /// What the rows of the table are
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stack")]
    by: By,
    /// Subtract this recording: show what grew and what shrank
    #[arg(long, value_name = "RECORDING")]
    diff: Option<PathBuf>,
    /// Write a file instead of showing a table; its name tells the format: .svg, .pb.gz, .json
    /// (speedscope), .json.gz (Firefox profiler), .folded or .txt
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format [default: as the name of the file says, or text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,
    /// Show at most so many rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    most: usize,
    /// The process, if there are several [default: the one with the most operations]
    #[arg(long, value_name = "PID")]
    process: Option<u32>,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Use the part of a damaged recording before the damage
    #[arg(long)]
    salvage: bool,
    /// The program to run, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The format of a profile: that which is asked for, or that of the file's name.
fn format_of(args: &ProfileArgs) -> Result<Format> {
    let by_name = args.output.as_deref().map(|path| {
        Format::of(path).with_context(|| {
            format!(
                "the name {} asks for no format: it ends in .svg, .pb.gz, .json, .json.gz, .folded or .txt, \
                 or --format says which",
                path.display()
            )
        })
    });
    let format = match (args.format, by_name) {
        (Some(format), _) => format,
        (None, Some(by_name)) => by_name?,
        (None, None) => Format::Text,
    };
    if format.is_compressed() && args.output.is_none() && std::io::stdout().is_terminal() {
        bail!("this format is compressed and cannot be shown on a terminal; use -o FILE");
    }
    if args.by != By::Stack && (format != Format::Text || args.diff.is_some()) {
        bail!("--by thread, --by size and --by time are tables of one recording");
    }
    Ok(format)
}

pub fn show(args: &ProfileArgs) -> Result<u8> {
    let format = format_of(args)?;
    if let Some(file) = &args.output {
        may_replace(file, args.force)?;
    }
    if let Some(process) = process_in(args) {
        return show_process(args, &process, format);
    }
    let which = args.which.unwrap_or(Which::Peak);
    if which == Which::Live {
        bail!("--of live is for running processes; --of leaked shows what was in use at the end");
    }
    let scratch = tempfile::tempdir().context("cannot make a folder for the recording")?;
    signals::remove_when_ended(scratch.path().to_path_buf());
    let file = match &args.file {
        Some(file) => file.clone(),
        None => record_for_profile(&args.command, scratch.path())?,
    };
    let recording = open(&file, args.salvage)?;
    let show = super::Show {
        which,
        in_objects: args.objects,
        by: args.by,
        rows: args.most,
        pid: args.process,
    };
    let bytes = if args.by == By::Stack {
        let mut whole = super::of_recording(&recording, args.process)?;
        if let Some(earlier) = &args.diff {
            let earlier = open(earlier, args.salvage)?;
            whole = whole.minus(&super::of_recording(&earlier, None)?);
        }
        let measure = which.measure(args.objects);
        formats::render(&whole, measure, format, args.most)?
    } else {
        super::table_of(&recording, &show)?.into_bytes()
    };
    put(args, &bytes)
}

fn put(args: &ProfileArgs, bytes: &[u8]) -> Result<u8> {
    match &args.output {
        Some(path) => write_whole(path, bytes)?,
        None => ui::print_bytes(bytes)?,
    }
    Ok(0)
}

/// The process that is named instead of a recording.
fn process_in(args: &ProfileArgs) -> Option<String> {
    let name = args.file.as_deref().filter(|file| !file.exists())?;
    let name = name.to_str().filter(|name| !name.contains('/'))?;
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    (is_number || inspect::process(name).is_ok()).then(|| name.to_string())
}

fn show_process(args: &ProfileArgs, process: &str, format: Format) -> Result<u8> {
    if args.by != By::Stack || args.diff.is_some() {
        bail!("--by thread, --by size, --by time and --diff are for recordings");
    }
    let which = args.which.unwrap_or(Which::Live);
    let measure = which.measure_of_samples(args.objects).context(
        "samples of a running process say what is live and what was allocated; \
         for the rest, record the program: slabyard record --stacks",
    )?;
    let profile = super::live::of_process(process)?;
    put(
        args,
        &formats::render(&profile, measure, format, args.most)?,
    )
}

/// Records a program for a profile alone. Its output is that of the program, and then the profile.
fn record_for_profile(command: &[OsString], folder: &Path) -> Result<PathBuf> {
    let file = folder.join("profile.syrec");
    let plan = record::Plan {
        command,
        stacks: true,
        ..record::Plan::default()
    };
    record::record(&plan, &file)?;
    Ok(file)
}
