//! Short runs of the part `checks`: with each check the loops lose no object and damage none, and
//! the command writes what it prints to files.

mod common;

use common::{has, kept_run};
use slabyard_bench::checks::contender::{self, Contender};
use slabyard_bench::checks::measure::{measure, Effort, Row};
use slabyard_bench::kernels::{verify_live, LAYOUTS, VERIFY};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

/// A measuring process for few objects, with these copies of the loops.
fn command(row: &str, names: &str, layouts: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slabyard-bench"));
    command
        .args(["checks", "--child", row, names, layouts, "100", "2000", "1"])
        .env_remove("SLABYARD");
    command
}

fn child(row: &str, names: &str, layouts: &str) -> Output {
    command(row, names, layouts).output().unwrap()
}

/// The lines that a successful process printed.
fn answer(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn no_object_is_shared_or_damaged() {
    for who in contender::all() {
        for row in ["pair", "steady"] {
            let lines = answer(&child(row, &who.name(), &VERIFY.to_string()));
            assert_eq!(lines.len(), 1, "{} {row}", who.name());
        }
    }
}

/// Runs in this process, because it reads the process's ledger of live objects.
#[test]
fn no_object_is_left() {
    let shared: Vec<Contender> = contender::all()
        .into_iter()
        .filter(|who| !who.alone())
        .collect();
    let effort = Effort {
        sample: Duration::from_micros(100),
        live: 500,
        layouts: vec![VERIFY],
        repeat: 1,
    };
    for row in [Row::Pair, Row::Steady] {
        let figures = measure(row, &shared, &effort).unwrap();
        assert_eq!(figures.len(), shared.len());
        assert!(figures.iter().all(|figure| figure.value > 0.0));
        assert_eq!(verify_live(), 0);
    }
}

#[test]
fn those_who_share_a_process_have_a_figure_in_each_layout() {
    let shared = contender::all().into_iter().filter(|who| !who.alone());
    let names: Vec<String> = shared.map(|who| who.name()).collect();
    for row in ["pair", "steady"] {
        let lines = answer(&child(row, &names.join(","), "0,1,2"));
        assert_eq!(lines.len(), LAYOUTS * names.len());
        for name in &names {
            let own = lines
                .iter()
                .filter(|line| line.contains(&format!(",{name},")));
            assert_eq!(own.count(), LAYOUTS, "{name}");
        }
    }
}

/// Resident bytes for each of 2,000 objects.
fn resident(name: &str) -> f64 {
    let lines = answer(&child("memory", name, "0"));
    lines[0].rsplit(',').next().unwrap().parse().unwrap()
}

/// Flags reach the caches, and options the heap: objects have red zones of 64 bytes on each side.
#[test]
fn red_zones_are_seen_in_memory() {
    for interface in ["cache", "heap"] {
        let (off, zones) = (
            resident(&format!("{interface}/off")),
            resident(&format!("{interface}/redzone")),
        );
        assert!(zones > off + 100.0, "{interface}: {off} and {zones}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (row, names) in [
        ("pair", "cache/nonsense"),
        ("pairs", "cache/off"),
        ("memory", "cache/off,cache/check"),
    ] {
        let output = child(row, names, "0");
        assert_eq!(output.status.code(), Some(2), "{row} {names}");
        assert!(!output.stderr.is_empty());
    }
}

/// Runs between fork and exec. The process may lock no memory, not even as root.
fn lock_nothing() -> std::io::Result<()> {
    const CAP_IPC_LOCK: libc::c_ulong = 14; // linux/capability.h
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: sets a limit of this process, and drops a capability of the program that it executes.
    // A process that may not drop the capability does not have it.
    unsafe {
        libc::prctl(libc::PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
        match libc::setrlimit(libc::RLIMIT_MEMLOCK, &none) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

#[test]
fn memory_that_cannot_be_locked_is_a_line_and_no_crash() {
    for interface in ["cache", "heap"] {
        let name = format!("{interface}/lock+no-dump");
        let mut command = command("steady", &name, "0");
        // SAFETY: it makes two system calls.
        unsafe { command.pre_exec(lock_nothing) };
        let output = command.output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {complaint}");
        let expected = format!("{name}: memory for only 0 objects");
        assert!(complaint.contains(&expected), "{complaint}");
    }
}

#[test]
fn a_run_prints_tables_and_keeps_the_raw_data() {
    let arguments = ["--only=poison,glibc", "--repeats=1", "--sample-ms=1"];
    let (shown, raw) = kept_run("checks", &arguments);
    let expected = [
        "pair:",
        "steady:",
        "memory:",
        "relative to off",
        "page size",
    ];
    has(&shown, &expected);
    // The heading; for each of five contenders two rows of times in each layout, and one of memory.
    assert_eq!(raw.lines().count(), 1 + 5 * (2 * LAYOUTS + 1));
}
