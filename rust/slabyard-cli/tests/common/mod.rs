//! What the tests of the tool share.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub fn slabyard<I: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = I>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles one of our programs.
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
    let output = slabyard(folder, ["info", file]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// How many processes the table at the end of `info` shows, and their operations.
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
