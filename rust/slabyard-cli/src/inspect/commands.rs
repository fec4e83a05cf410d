//! The subcommands that look into processes.

use super::snapshot::{self, write_whole, Snapshot, StackRow};
use super::{map, metrics, process, text, top, trim, watch, Depth, Look};
use crate::cli::size;
use crate::profile::{leaks, live};
use crate::ui;
use anyhow::{bail, Context, Result};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Subcommand)]
pub enum Ask {
    /// Show where the memory of a process or of a core file is, in rows that add up to its RSS
    Account(AccountArgs),
    /// Show the caches and size classes of a process
    Caches(ListArgs),
    /// Show what waits in the magazines of the threads of a process
    Threads(ListArgs),
    /// Show which objects and which magazines keep free memory of a process
    Pins(PinsArgs),
    /// Say what lies at an address of a process
    Whatis(WhatisArgs),
    /// Draw the heap of a process: a page to zoom into (.html), or a picture (.svg, .png)
    Map(MapArgs),
    /// List the live objects of a cache: their addresses and sizes
    Walk(WalkArgs),
    /// Show how old the live objects are, by size and by stack: a cache, or a leak? From the samples of
    /// a process that was started with SLABYARD=profile
    Leaks(LeaksArgs),
    /// Look for free objects that are in two places or in the wrong one, as after a double free
    Verify(VerifyArgs),
    /// Ask a running process to give free memory back now: all, or an amount
    Trim(TrimArgs),
    /// Write the account of a process to a file
    Snapshot(SnapshotArgs),
    /// Show what has changed between two snapshots
    Diff(DiffArgs),
    /// Show the memory, caches and threads of a running process live, or choose a process
    Top(top::TopArgs),
    /// Write a snapshot of a running process from time to time, and keep the last ones
    Watch(watch::WatchArgs),
    /// Make a page with the memory over time from the snapshots of `watch`
    Timeline(watch::TimelineArgs),
    /// Serve the accounts of running processes as OpenMetrics, for Prometheus
    Export(ExportArgs),
}

#[derive(Args)]
pub struct AccountArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Leave out what takes the system long: the PSS, and the comparison with its sums
    #[arg(long)]
    quick: bool,
    /// Write it as JSON
    #[arg(long, conflicts_with = "openmetrics")]
    json: bool,
    /// Write it as OpenMetrics
    #[arg(long)]
    openmetrics: bool,
}

#[derive(Args)]
pub struct ListArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Show all of them, not only the largest
    #[arg(short, long)]
    all: bool,
}

#[derive(Args)]
pub struct PinsArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Show so many pages
    #[arg(long, value_name = "N", default_value_t = 10)]
    pages: usize,
}

#[derive(Args)]
pub struct WhatisArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Addresses, in hexadecimal
    #[arg(required = true, value_name = "ADDRESS", value_parser = address)]
    addresses: Vec<u64>,
}

#[derive(Args)]
pub struct MapArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// The file to write: FILE.html is a page that needs no network, FILE.svg or FILE.png an overview
    /// for documents and messages
    #[arg(short, long, value_name = "FILE", value_parser = map_file)]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
}

#[derive(Args)]
pub struct WalkArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// The cache: its name, or its address (0x...)
    #[arg(value_name = "CACHE")]
    cache: String,
    /// List the free slots that have memory instead, and where they wait
    #[arg(long)]
    free: bool,
    /// List at most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    most: usize,
}

#[derive(Args)]
pub struct LeaksArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Show so many stacks
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    stacks: usize,
}

#[derive(Args)]
pub struct VerifyArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
}

#[derive(Args)]
pub struct TrimArgs {
    /// The process: its number, or its name if it is the only one
    #[arg(value_name = "PROCESS")]
    process: String,
    /// How much, such as 64MiB or 1.5G; all of it if you leave this out
    #[arg(value_name = "AMOUNT", value_parser = amount)]
    amount: Option<u64>,
}

#[derive(Args)]
pub struct SnapshotArgs {
    /// The process: its number, its name if it is the only one, or a core file
    #[arg(value_name = "PROCESS")]
    process: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
}

#[derive(Args)]
pub struct DiffArgs {
    /// The earlier snapshot
    before: PathBuf,
    /// The later one
    after: PathBuf,
}

#[derive(Args)]
pub struct ExportArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9778")]
    listen: String,
    /// The processes: numbers, or names of which there is only one; they may start later
    #[arg(required = true, value_name = "PROCESS")]
    processes: Vec<String>,
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal number".to_string())
}

fn amount(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("less than a byte; without an amount, all free memory goes back".into()),
        bytes => Ok(bytes),
    }
}

fn map_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match map::Format::of(&file) {
        Some(_) => Ok(file),
        None => Err("the name must end in .html, .svg or .png".into()),
    }
}

/// Reads what the user names: a path is a core, a number is a process, and a name is that of a process,
/// or else of a core in this folder.
fn look(name: &str, depth: Depth) -> Result<Look> {
    let path = Path::new(name);
    if name.contains('/') {
        return Look::of_core(path);
    }
    match process(name) {
        Ok(pid) => Look::at(pid, depth),
        Err(_) if path.is_file() => Look::of_core(path),
        Err(error) => Err(error),
    }
}

/// Does what was asked; returns the exit status.
pub fn run(ask: &Ask) -> Result<u8> {
    match ask {
        Ask::Account(args) => show_account(args)?,
        Ask::Caches(args) => ui::print(&text::caches(
            &look(&args.process, Depth::Quick)?.account(),
            args.all,
        ))?,
        Ask::Threads(args) => ui::print(&text::threads(
            &look(&args.process, Depth::Quick)?.account(),
            args.all,
        ))?,
        Ask::Pins(args) => {
            let look = look(&args.process, Depth::Quick)?;
            let pins = look.pins(args.pages);
            ui::print(&text::pins(&look.account(), &look.heaps, &pins))?;
        }
        Ask::Whatis(args) => {
            let look = look(&args.process, Depth::Quick)?;
            for &address in &args.addresses {
                ui::print(&format!("{address:#x}: {}\n", look.what_is(address)))?;
            }
        }
        Ask::Map(args) => write_map(args)?,
        Ask::Walk(args) => {
            let look = look(&args.process, Depth::Quick)?;
            let (lines, count) = look.walk(&args.cache, args.free, args.most)?;
            ui::print(&lines)?;
            let left = count.saturating_sub(args.most as u64);
            if left > 0 {
                ui::warn(&format!(
                    "{} more are not listed: --most",
                    ui::grouped(left)
                ));
            }
        }
        Ask::Leaks(args) => {
            let look = look(&args.process, Depth::Quick)?;
            ui::print(&leaks::of(&look, args.stacks)?)?;
        }
        Ask::Verify(args) => return verify(&args.process),
        Ask::Trim(args) => ui::print(&trim::trim(process(&args.process)?, args.amount)?)?,
        Ask::Snapshot(args) => write_snapshot(args)?,
        Ask::Diff(args) => {
            let (before, after) = (Snapshot::read(&args.before)?, Snapshot::read(&args.after)?);
            ui::print(&text::changes(&snapshot::changes(&before, &after)))?;
        }
        Ask::Top(args) => top::run(args)?,
        Ask::Watch(args) => watch::run(args)?,
        Ask::Timeline(args) => watch::make_page(args)?,
        Ask::Export(args) => metrics::serve(&args.listen, &args.processes)?,
    }
    Ok(0)
}

fn show_account(args: &AccountArgs) -> Result<()> {
    let depth = if args.quick {
        Depth::Quick
    } else {
        Depth::Whole
    };
    let look = look(&args.process, depth)?;
    let account = look.account();
    // The process ends here: to free hundreds of thousands of slabs one by one would only take time.
    std::mem::forget(look);
    ui::print(&match (args.json, args.openmetrics) {
        (true, _) => Snapshot::of(account).to_json()?,
        (_, true) => metrics::open_metrics(&[account]),
        _ => text::account(&account),
    })
}

/// So often a running process is looked at before a fault is one.
const LOOKS: usize = 5;
const LOOKS_APART: Duration = Duration::from_millis(50);

fn verify(process: &str) -> Result<u8> {
    let first = look(process, Depth::Quick)?;
    let mut report = first.verify();
    for _ in 1..LOOKS {
        if !first.is_running() || report.faults.is_empty() {
            break;
        }
        std::thread::sleep(LOOKS_APART);
        report.keep_common(&Look::at(first.pid, Depth::Quick)?.verify());
    }
    ui::print(&text::faults(&report))?;
    Ok(u8::from(!report.faults.is_empty()))
}

fn write_map(args: &MapArgs) -> Result<()> {
    let format =
        map::Format::of(&args.output).context("the name must end in .html, .svg or .png")?;
    may_write(&args.output, args.force)?;
    let map = map::draw(&look(&args.process, Depth::Quick)?, format)?;
    write_whole(&args.output, &map)
}

fn write_snapshot(args: &SnapshotArgs) -> Result<()> {
    may_write(&args.output, args.force)?;
    let look = look(&args.process, Depth::Whole)?;
    Snapshot::of(look.account())
        .with_stacks(stacks(&look))
        .write(&args.output)
}

/// The stacks with most live memory; `None`: the process takes no samples.
fn stacks(look: &Look) -> Option<Vec<StackRow>> {
    const STACKS_MAX: usize = 1000;
    let profile = live::of_look(look).ok()?;
    let row = |stack: &&crate::profile::data::Stack| StackRow {
        functions: stack
            .frames
            .iter()
            .rev()
            .map(|&at| profile.frames[at as usize].function.clone())
            .collect(),
        live_bytes: stack.values[0].max(0) as u64,
        live_objects: stack.values[1].max(0) as u64,
    };
    let sorted = profile.sorted(0);
    Some(sorted.iter().take(STACKS_MAX).map(row).collect())
}

fn may_write(file: &Path, force: bool) -> Result<()> {
    if file.exists() && !force {
        bail!("{} exists; --force replaces it", file.display());
    }
    Ok(())
}
