//! The commands of Slabyard in gdb (tools/gdb) say what the tool says: of a stopped process, and of
//! its core.

mod common;

use common::{done, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOOL: &str = env!("CARGO_BIN_EXE_slabyard");
const COMMANDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/gdb/slabyard.py");

fn has_gdb() -> bool {
    let version = Command::new("gdb").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// A program that sleeps, with Slabyard as its malloc.
struct Sleeper {
    tool: Child,
    pid: String,
}

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new(TOOL);
        command.args(["run", "--", "sleep", "600"]);
        let mut sleeper = Sleeper {
            tool: command.stdin(Stdio::null()).spawn().unwrap(),
            pid: String::new(),
        };
        let children = format!("/proc/{0}/task/{0}/children", sleeper.tool.id());
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(Instant::now() < end, "the program does not start");
            std::thread::sleep(Duration::from_millis(20));
            let pids = std::fs::read_to_string(&children).unwrap();
            let Some(pid) = pids.split_whitespace().next() else {
                continue;
            };
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if state.contains("(sleep) S") {
                sleeper.pid = pid.to_string();
                return sleeper;
            }
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid]).status();
        let _ = self.tool.wait();
    }
}

/// What gdb prints between marks, for each command.
fn gdb(folder: &Path, open: &str, commands: &[String]) -> Vec<String> {
    const MARK: &str = "=== mark ===";
    let mut gdb = Command::new("gdb");
    gdb.current_dir(folder).args(["-q", "-nx", "-batch"]);
    gdb.args(["-ex", &format!("source {COMMANDS}")]);
    gdb.args(["-ex", &format!("set slabyard-tool {TOOL}"), "-ex", open]);
    for command in commands {
        gdb.args(["-ex", &format!("echo {MARK}\\n"), "-ex", command]);
    }
    let output = gdb.stdin(Stdio::null()).output().unwrap();
    let text = stdout(&output);
    let parts: Vec<String> = text
        .split(&format!("{MARK}\n"))
        .skip(1)
        .map(str::to_string)
        .collect();
    assert_eq!(
        parts.len(),
        commands.len(),
        "{text}{}",
        common::stderr(&output)
    );
    parts
}

/// The name of a size class with live objects.
fn class_in(folder: &Path, pid: &str) -> String {
    let account = stdout(&done(folder, ["account", "--json", pid]));
    let account: serde_json::Value = serde_json::from_str(&account).unwrap();
    let caches = account["caches"].as_array().unwrap();
    let live = caches
        .iter()
        .find(|cache| cache["live_objects"].as_u64() > Some(3));
    live.unwrap()["name"].as_str().unwrap().to_string()
}

/// An account without the last column, which changes when other processes map the same files.
fn without_shares(account: &str) -> Vec<&str> {
    let lines = account.lines();
    lines.filter_map(|line| line.split('%').next()).collect()
}

#[test]
fn gdb_says_what_the_tool_says() {
    if !has_gdb() {
        eprintln!("skipped: gdb is not installed (apt-get install gdb)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sleeper = Sleeper::start();
    let pid = &sleeper.pid;
    let class = class_in(folder, pid);
    let walk = format!("walk {pid} {class}");
    let in_gdb = gdb(
        folder,
        &format!("attach {pid}"),
        &[
            "slabyard account".into(),
            format!("shell {TOOL} account {pid}"),
            format!("slabyard walk {class}"),
            format!("shell {TOOL} {walk}"),
            "generate-core-file core".into(),
            "detach".into(),
        ],
    );
    assert!(in_gdb[0].contains("Memory of sleep"), "{}", in_gdb[0]);
    assert_eq!(without_shares(&in_gdb[0]), without_shares(&in_gdb[1]));
    assert!(in_gdb[2].starts_with("0x"), "{}", in_gdb[2]);
    assert_eq!(in_gdb[2], in_gdb[3]);

    let first = in_gdb[2].split_whitespace().next().unwrap();
    let of_core = gdb(
        folder,
        "core core",
        &[
            "slabyard account".into(),
            format!("slabyard walk {class}"),
            format!("slabyard whatis {first}"),
            "slabyard walk none".into(),
        ],
    );
    assert_eq!(of_core[0], stdout(&done(folder, ["account", "./core"])));
    assert_eq!(of_core[1], in_gdb[2]);
    assert!(of_core[2].contains("a live object of"), "{}", of_core[2]);
}
