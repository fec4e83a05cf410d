//! The background thread of a program whose allocator is Slabyard.
#![cfg(all(target_os = "linux", not(any(miri, feature = "dlopen"))))]

use std::process::Command;

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

const THREADS: &str = "/proc/self/task";

/// Whether the maintenance thread runs. Its name is set by the system before the thread begins.
fn runs() -> bool {
    let threads = std::fs::read_dir(THREADS).unwrap();
    threads.flatten().any(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm"));
        name.is_ok_and(|it| it.trim() == "slabyard")
    })
}

/// Allocates until the process has 32 MiB in use, by slow paths, which look at the clock.
fn grow() -> Vec<Vec<u8>> {
    (0..128).map(|_| vec![1; 256 << 10]).collect()
}

/// Runs a test of this file alone, with these options, in a process of its own.
fn run(test: &str, options: Option<&str>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", test]);
    command.env_remove("SLABYARD");
    if let Some(options) = options {
        command.env("SLABYARD", options);
    }
    assert!(command.status().unwrap().success(), "{test} {options:?}");
}

#[test]
#[ignore = "runs in a process of its own"]
fn starts() {
    assert_eq!(slabyard::get_option("maintenance").unwrap(), "auto");
    let all = grow();
    // The thread that has started it goes on before the system has named it.
    while !runs() {
        std::thread::yield_now();
    }
    slabyard::stop_maintenance();
    drop((all, grow(), grow()));
    assert!(!runs());
}

#[test]
#[ignore = "runs in a process of its own"]
fn starts_not() {
    assert_eq!(slabyard::get_option("maintenance").unwrap(), "no");
    drop((grow(), grow()));
    assert!(!runs());
}

#[test]
fn the_thread_starts_when_the_program_has_grown() {
    run("starts", None);
    run("starts", Some("exit-check=no"));
}

#[test]
fn the_user_may_forbid_the_thread() {
    run("starts_not", Some("maintenance=no"));
}
