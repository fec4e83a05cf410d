//! Functions that the tests of the tool share.
#![allow(dead_code)]

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub fn slabyard<I: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = I>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn ended<I: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = I>,
    status: i32,
) -> Output {
    let words = arguments.into_iter().map(|word| word.as_ref().to_owned());
    let words: Vec<OsString> = words.collect();
    let output = slabyard(folder, &words);
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(status), "{words:?}: {out}{said}");
    output
}

/// Runs the tool, which must succeed, and returns its output.
#[track_caller]
pub fn done<I: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = I>) -> Output {
    ended(folder, arguments, 0)
}

/// Runs the tool, which must end with this status, and returns the text on stderr.
#[track_caller]
pub fn ends_with<I: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = I>,
    status: i32,
) -> String {
    stderr(&ended(folder, arguments, status))
}

/// Records a program with its stacks as `sites.syrec`, which must exist then, however the program has
/// ended. Returns the output of the tool.
#[track_caller]
pub fn record_stacks<'a>(folder: &Path, command: impl IntoIterator<Item = &'a str>) -> Output {
    let words = ["record", "--stacks", "-f", "-o", "sites.syrec", "--"];
    let output = slabyard(folder, words.into_iter().chain(command));
    assert!(folder.join("sites.syrec").exists(), "{}", stderr(&output));
    output
}

/// The tool, in which no signal is ignored: a test that runs in the background, or under nohup, has
/// some ignored.
pub fn tool_that_heeds_signals() -> Command {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_slabyard"));
    // SAFETY: signal() may be called between fork and exec.
    unsafe { tool.pre_exec(heed_signals) };
    tool
}

fn heed_signals() -> std::io::Result<()> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: the default action is not a function of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

pub fn json(folder: &Path, file: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Waits until a condition holds, long enough for a busy machine. Returns whether it does.
pub fn until(mut what: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Waits until a process has ended; it may not be waited for yet.
pub fn is_gone(process: u32) -> bool {
    until(|| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    })
}

/// The text in one line, with single blanks between its words.
pub fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles one of the test programs.
pub fn program(folder: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let binary = folder.path().join(name);
    let status = Command::new("cc")
        .args(["-O0", "-fno-builtin", "-pthread", "-w"])
        .args(flags)
        .args([source.as_os_str(), OsStr::new("-o"), binary.as_os_str()])
        .status()
        .unwrap();
    assert!(status.success());
    binary
}

/// The number in the line of `info` that begins with `name`.
pub fn number(info: &str, name: &str) -> u64 {
    let line = info
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name))
        .unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

pub fn info(folder: &Path, file: &str) -> String {
    stdout(&done(folder, ["info", file]))
}

/// The operations and names of the processes in the table at the end of `info`.
pub fn processes(info: &str) -> Vec<(u64, String)> {
    let table = info
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("process"));
    table
        .skip(1)
        .map(|line| {
            let mut words = line.split_whitespace().skip(2);
            let operations = words.next().unwrap().replace(',', "").parse().unwrap();
            (operations, words.collect::<Vec<_>>().join(" "))
        })
        .collect()
}
