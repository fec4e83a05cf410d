//! The processes that use Slabyard.

use super::super::account::What;
use super::super::{live, shape, Depth, Look};
use super::table::{column, Column, Row, Shape, Table, Tone, Value};
use procfs::process::{all_processes, Process};
use procfs::WithCurrentSystemInfo;
use std::fs;

#[derive(Debug, Clone)]
pub struct Found {
    pub pid: u32,
    pub program: String,
    /// The system's figure.
    pub rss_bytes: u64,
    /// Live bytes, and free ones; `None`: the memory could not be read.
    pub figures: Option<(u64, u64)>,
    pub command: String,
}

const COLUMNS: &[Column] = &[
    column("program", 0, Shape::Words),
    column("process", 0, Shape::Figure),
    column("RSS", 0, Shape::Figure),
    column("live", 0, Shape::Figure),
    column("free", 0, Shape::Figure),
    column("command", 1, Shape::Rest),
];

pub const ORDER: usize = 2;

/// The column with the number of the process.
pub const PID: usize = 1;

/// The processes of this user that have a copy of the library; root sees those of all users.
pub fn all() -> Vec<Found> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let processes = all_processes().into_iter().flatten().flatten();
    let processes = processes.filter(|one| {
        let is_own = one.pid as u32 == std::process::id();
        !is_own && (user == 0 || one.uid().is_ok_and(|uid| uid == user))
    });
    processes.filter_map(|one| read(&one)).collect()
}

fn read(process: &Process) -> Option<Found> {
    let pid = process.pid as u32;
    let starts = live::open_starts(pid).ok()?;
    if shape::find(&starts).is_empty() {
        return None;
    }
    let account = Look::at(pid, Depth::Quick).ok().map(|look| look.account());
    let stat = process.stat().ok()?;
    Some(Found {
        pid,
        program: stat.comm.replace(char::is_control, "?"),
        rss_bytes: stat.rss_bytes().get(),
        figures: account.map(|account| {
            let live = [What::Live, What::Large, What::Guarded];
            let live = live.iter().map(|&what| account.of(what)).sum();
            (live, account.free())
        }),
        command: command(pid),
    })
}

/// The command line, without characters that could move the cursor.
fn command(pid: u32) -> String {
    const MOST: usize = 200;
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).replace('\0', " ");
    let text = text.trim_end().replace(char::is_control, "?");
    text.chars().take(MOST).collect()
}

pub fn table(all: &[Found]) -> Table {
    let row = |one: &Found| {
        let figure = |of: fn((u64, u64)) -> u64| {
            let figures = one.figures.map(of);
            figures.map_or(Value::Missing, Value::Bytes)
        };
        Row {
            values: vec![
                Value::Words(one.program.clone()),
                Value::Number(one.pid.into()),
                Value::Bytes(one.rss_bytes),
                figure(|(live, _)| live),
                figure(|(_, free)| free),
                Value::Words(one.command.clone()),
            ],
            tone: Tone::Plain,
            group: 0,
        }
    };
    Table {
        columns: COLUMNS,
        rows: all.iter().map(row).collect(),
    }
}
