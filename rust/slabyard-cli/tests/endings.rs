//! Tests of the ends of recorded programs, and of full disks. In each case the records made so far
//! are kept and can be read, the end is reported, the exit status is the program's, and no file is
//! left.

mod common;

use common::*;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The number of the program's objects of 4321 bytes in the recording.
fn recorded(folder: &Path) -> u64 {
    let info = info(folder, "e.syrec");
    let line = info
        .lines()
        .find(|line| line.trim_start().starts_with("8.0 KiB"))
        .unwrap_or_else(|| panic!("{info}"));
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

struct Try {
    folder: TempDir,
    program: PathBuf,
}

impl Try {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = program(&folder, "endings", &[]);
        Try { folder, program }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, way: &str) -> Command {
        let mut command = tool_that_heeds_signals();
        command
            .current_dir(self.folder.path())
            .args(["record", "-f", "-o", "e.syrec"])
            .arg(&self.program)
            .arg(way)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, way: &str) -> Output {
        let output = self.command(way).output().unwrap();
        assert_eq!(leftovers(self.path()), [""; 0], "{way}");
        output
    }

    /// Runs the tool under `ulimit -f`, in KiB.
    fn run_limited(&self, kibibytes: u64, way: &str) -> Output {
        let tool = env!("CARGO_BIN_EXE_slabyard");
        let script = format!("ulimit -f {kibibytes}; exec \"$0\" record -f -o e.syrec \"$@\"");
        let output = Command::new("bash")
            .current_dir(self.path())
            .args(["-c", &script, tool])
            .arg(&self.program)
            .arg(way)
            .output()
            .unwrap();
        assert_eq!(leftovers(self.path()), [""; 0], "{way}");
        output
    }

    /// Starts the tool on a program that waits. Returns both processes and the folder of the
    /// buffers.
    fn start(&self, way: &str) -> (Child, u32, PathBuf) {
        let mut tool = self
            .command(way)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(tool.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        let parts = leftovers(self.path());
        assert_eq!(parts.len(), 1, "{parts:?}");
        let live = self.path().join(&parts[0]).join("live");
        let buffers = std::fs::read_link(live).unwrap();
        assert!(buffers.exists());
        (tool, line.trim().parse().unwrap(), buffers)
    }
}

/// The exit status and the text on stderr.
fn end_of(mut tool: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    let mut err = tool.stderr.take().unwrap();
    err.read_to_string(&mut said).unwrap();
    (tool.wait().unwrap().code(), said)
}

fn send(process: u32, signal: i32) {
    // SAFETY: kill touches no memory.
    assert_eq!(unsafe { libc::kill(process as libc::pid_t, signal) }, 0);
}

#[test]
fn every_ending_keeps_what_was_recorded_and_is_said() {
    let tried = Try::new();
    let ways = [
        ("crash", 139, "ended by signal 11 (SIGSEGV)", 10),
        ("thread", 139, "ended by signal 11 (SIGSEGV)", 20),
        ("kill", 137, "ended by signal 9 (SIGKILL)", 10),
        ("term", 143, "ended by signal 15 (SIGTERM)", 10),
        ("abort", 134, "ended by signal 6 (SIGABRT)", 10),
        ("vanish", 3, "", 10),
        ("child", 3, "what it did until then is recorded", 20),
    ];
    for (way, code, words, objects) in ways {
        let output = tried.run(way);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{way}: {said}");
        assert!(said.contains(words), "{way}: {said}");
        assert_eq!(recorded(tried.path()), objects, "{way}: {said}");
        let killed = !matches!(way, "abort" | "child");
        let unknown = info(tried.path(), "e.syrec").contains("no process ended by itself");
        assert_eq!(unknown, killed, "{way}");
        let counts = said.matches(" operations").count();
        let signal = words.starts_with("ended by");
        assert_eq!(counts, if signal { 2 } else { 1 }, "{way}: {said}");
    }
}

#[test]
fn a_killed_program_loses_nothing_of_many_blocks() {
    let tried = Try::new();
    let output = tried.run("many and crash");
    assert_eq!(output.status.code(), Some(139), "{}", stderr(&output));
    let info = info(tried.path(), "e.syrec");
    assert!(number(&info, "malloc") >= 400_010, "{info}");
    assert!(number(&info, "free") >= 400_000, "{info}");
}

#[test]
fn signals_to_the_tool_are_passed_on() {
    let tried = Try::new();
    let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];
    for signal in signals {
        let (tool, program, buffers) = tried.start("wait");
        send(tool.id(), signal);
        let (code, said) = end_of(tool);
        assert_eq!(code, Some(128 + signal), "{said}");
        assert!(said.contains(&format!("by signal {signal} (")), "{said}");
        assert_eq!(recorded(tried.path()), 10);
        assert!(is_gone(program));
        assert!(!buffers.exists());
        assert_eq!(leftovers(tried.path()), [""; 0]);
    }
}

#[test]
fn a_program_may_answer_a_signal_as_it_likes() {
    let tried = Try::new();
    let (tool, _, buffers) = tried.start("catch");
    send(tool.id(), libc::SIGTERM);
    let (code, said) = end_of(tool);
    assert_eq!(code, Some(5), "{said}");
    assert!(!said.contains("signal"), "{said}");
    assert_eq!(recorded(tried.path()), 10);
    assert!(!buffers.exists());
}

#[test]
fn signals_to_the_program_are_its_end_and_not_the_tools() {
    let tried = Try::new();
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let (tool, program, buffers) = tried.start("wait");
        send(program, signal);
        let (code, said) = end_of(tool);
        assert_eq!(code, Some(128 + signal), "{said}");
        assert_eq!(recorded(tried.path()), 10);
        assert!(!buffers.exists());
        assert_eq!(leftovers(tried.path()), [""; 0]);
    }
}

#[test]
fn a_killed_tool_leaves_no_program_behind() {
    let tried = Try::new();
    let (mut tool, program, buffers) = tried.start("wait");
    send(tool.id(), libc::SIGKILL);
    tool.wait().unwrap();
    assert!(is_gone(program));
    std::fs::remove_dir_all(buffers).unwrap(); // no process was left to remove them
}

#[test]
fn handlers_may_fork_and_exit_wherever_they_interrupt() {
    let tried = Try::new();
    let output = tried.run("fork");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let output = tried.run("leave");
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(number(&info(tried.path(), "e.syrec"), "operations") > 100);
}

#[test]
fn a_file_size_limit_ends_the_recording_and_not_the_program() {
    let tried = Try::new();
    let output = tried.run_limited(300, "many");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(stdout(&output), "done\n");
    assert!(said.contains("stops early: File too large"), "{said}");
    let size = tried.path().join("e.syrec").metadata().unwrap().len();
    assert!((200 << 10..=300 << 10).contains(&size), "{size}");
    assert!(number(&info(tried.path(), "e.syrec"), "operations") > 30_000);
}

/// At any limit, no signal ends the program, and the tool reports that records are missing.
#[test]
fn a_program_that_limits_its_own_files_is_recorded_as_far_as_they_go() {
    let tried = Try::new();
    for (kibibytes, words, blocks) in [
        (0, "could not write the beginning of its file", false),
        (1, "blocks could not be written", false),
        (40, "blocks could not be written", false),
        (100, "stops early: File too large", true),
        (300, "stops early: File too large", true),
    ] {
        let output = tried.run(&format!("limit {kibibytes}"));
        let said = stderr(&output);
        assert!(said.contains(words), "{kibibytes}: {said}");
        assert!(
            !said.contains("panicked") && !said.contains("signal"),
            "{said}"
        );
        let code = if kibibytes == 0 { 125 } else { 3 };
        assert_eq!(output.status.code(), Some(code), "{kibibytes}: {said}");
        if kibibytes > 0 {
            let info = info(tried.path(), "e.syrec");
            assert_eq!(number(&info, "operations") > 10_000, blocks, "{info}");
            assert!(!info.contains("no process ended by itself"), "{info}");
        }
    }
}

/// The limit is too small for the recorder itself, so the program is not started.
#[test]
fn a_tiny_file_size_limit_is_said() {
    let tried = Try::new();
    let output = tried.run_limited(4, "many");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("cannot write the recorder"), "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert!(!tried.path().join("e.syrec").exists());
}

/// Uses a small file system of its own, if the system lets a user mount one.
#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let tried = Try::new();
    let script = "mount -t tmpfs -o size=\"$1\" none small && cd small || exit 77
        shift; \"$@\"; echo status $?; ls -A; cp ./*.syrec .. 2>/dev/null; exit 0";
    let on_a_small_disk = |size: &str| {
        let _ = std::fs::create_dir(tried.path().join("small"));
        let words = ["-rm", "sh", "-c", script, "sh", size];
        let output = Command::new("unshare")
            .current_dir(tried.path())
            .args(words)
            .args([env!("CARGO_BIN_EXE_slabyard"), "record", "-o", "e.syrec"])
            .arg(&tried.program)
            .arg("many")
            .output()
            .ok()?;
        output.status.success().then_some(output)
    };
    let Some(output) = on_a_small_disk("512k") else {
        eprintln!("not tried: no file system of one's own is to be had here");
        return;
    };
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(out, "done\nstatus 3\ne.syrec\n", "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(number(&info(tried.path(), "e.syrec"), "operations") > 30_000);

    let output = on_a_small_disk("8k").unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(out, "status 125\n", "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_no_panic() {
    let tried = Try::new();
    tried.run("term");
    let tool = env!("CARGO_BIN_EXE_slabyard");
    for script in [
        "\"$0\" info e.syrec >/dev/full",
        "\"$0\" replay e.syrec -r 1 -a glibc >/dev/full",
        "\"$0\" info e.syrec >/dev/full 2>/dev/full",
    ] {
        let output = Command::new("sh")
            .current_dir(tried.path())
            .args(["-c", script, tool])
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{script}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        let silent = script.contains("2>");
        assert!(silent || said.contains("No space left"), "{said}");
    }
}

/// Whether a process has this word in its command line.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.into_iter().any(|process| {
        let path = process.unwrap().path().join("cmdline");
        let words = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(word)
    })
}

#[test]
fn a_replay_that_is_ended_leaves_no_plan_and_no_worker() {
    let tried = Try::new();
    tried.run("many");
    let scratch = tried.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let tool = Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(tried.path())
        .args(["replay", "e.syrec", "-r", "1000", "--scratch"])
        .arg(&scratch)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let word = format!("worker\0{}", scratch.display());
    assert!(until(|| runs(&word)));
    send(tool.id(), libc::SIGTERM);
    assert_eq!(end_of(tool), (None, String::new()));
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
    assert!(until(|| !runs(&word)));
}

/// The plan takes 16 bytes per operation, which is more than the file size limit allows.
#[test]
fn a_plan_that_finds_no_room_is_an_error() {
    let tried = Try::new();
    tried.run("many");
    let script = "ulimit -f 2000; exec \"$0\" replay e.syrec";
    let output = Command::new("bash")
        .current_dir(tried.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_slabyard")])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the plan"), "{said}");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn a_device_is_not_replaced_by_a_recording() {
    let tried = Try::new();
    let output = slabyard(tried.path(), ["record", "-f", "-o", "/dev/null", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("/dev/null is not a file"));
}
