//! `slabyard watch` writes a snapshot of a process from time to time into a [`ring`] of files;
//! `slabyard timeline` reads them as a [`timeline`] and makes a [`page`] of it.

mod page;
mod ring;
#[cfg(test)]
mod tests;
mod timeline;

use super::follow::{wait, Held, Target};
use super::snapshot::{write_whole, Snapshot};
use super::{Depth, Look};
use crate::{cli, ui};
use anyhow::{bail, Context, Result};
use clap::Args;
use ring::Ring;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use timeline::Timeline;

#[derive(Args)]
pub struct WatchArgs {
    /// The process: its number, or its name if it is the only one
    #[arg(value_name = "PROCESS")]
    process: String,
    /// The folder for the snapshots; it is made if there is none
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Time from one snapshot to the next (30s, 5m, 1h)
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = cli::time)]
    every: Duration,
    /// Keep so many snapshots; then the oldest one is removed for each new one
    #[arg(long, value_name = "N", default_value_t = 300,
          value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    keep: u32,
}

#[derive(Args)]
pub struct TimelineArgs {
    /// The folder that `slabyard watch` wrote
    folder: PathBuf,
    /// The page to write [default: the folder's name with .html]
    #[arg(short, long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Replace the page if it exists
    #[arg(short, long)]
    force: bool,
}

pub fn run(args: &WatchArgs) -> Result<()> {
    let target = Target::of(super::process(&args.process)?)?;
    // A signal ends the watch between two files.
    let held = Held::hold(&[libc::SIGHUP, libc::SIGINT, libc::SIGTERM])?;
    let snapshot = look(&target)?;
    let program = snapshot.account.program.clone();
    let mut ring = Ring::open(&args.output, args.keep as usize)?;
    ring.must_be_of(&program)?;
    ring.add(&snapshot)?;
    ui::warn(&format!(
        "a snapshot of {program} ({}) is written to {} every {}, the last {} are kept; Ctrl-C ends this",
        target.pid,
        args.output.display(),
        ui::span(args.every.as_secs_f64()),
        args.keep
    ));
    let mut next = Instant::now();
    let mut has_failed = false;
    loop {
        next = (next + args.every).max(Instant::now());
        while Instant::now() < next && !target.has_ended() {
            wait(&[held.as_fd(), target.as_fd()], Some(next))?;
            if held.take().is_some() {
                return Ok(());
            }
        }
        if target.has_ended() {
            ui::warn(&format!("process {} has ended", target.pid));
            return Ok(());
        }
        let written = look(&target).and_then(|snapshot| ring.add(&snapshot));
        // A full disk is no reason to end; it is told once.
        match &written {
            Err(error) if !has_failed && !target.has_ended() => {
                ui::warn(&format!("{error:#}; it is tried again each time"));
            }
            _ => (),
        }
        has_failed = written.is_err();
    }
}

fn look(target: &Target) -> Result<Snapshot> {
    let account = Look::at(target.pid, Depth::Whole)?.account();
    if target.has_ended() {
        bail!("process {} has ended", target.pid);
    }
    Ok(Snapshot::of(account))
}

pub fn make_page(args: &TimelineArgs) -> Result<()> {
    let page = match &args.page {
        Some(page) => page.clone(),
        None => named_after(&args.folder)?,
    };
    cli::may_replace(&page, args.force)?;
    let timeline = Timeline::read(&args.folder)?;
    for words in &timeline.left_out {
        ui::warn(words);
    }
    write_whole(&page, page::render(&timeline))?;
    ui::print(&format!("{}\n", page.display()))
}

/// Beside the folder, with its name.
fn named_after(folder: &Path) -> Result<PathBuf> {
    let whole = folder
        .canonicalize()
        .with_context(|| format!("cannot read {}", folder.display()))?;
    match whole.file_name() {
        Some(name) => {
            let mut name = name.to_os_string();
            name.push(".html");
            Ok(whole.with_file_name(name))
        }
        None => bail!("name the page with --page"),
    }
}
