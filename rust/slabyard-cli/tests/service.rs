//! Tests of `slabyard compare` on programs that do not end by themselves.

mod common;

use common::*;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// The server, and the words that load it: this many requests of this size.
fn server() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let server = program(&folder, "server", &[]);
    (folder, server.to_str().unwrap().to_string())
}

fn words<'a>(load: &'a str, more: &[&'a str], server: &'a str, how: &'a str) -> Vec<&'a str> {
    let mut all = vec!["compare", "--force", "--times", "2", "--rest", "1"];
    all.extend(["-a", "slabyard", "-a", "glibc", "--load", load]);
    all.extend(more);
    all.extend(["--", server, "server", "0", "socket", how]);
    all
}

fn kind(file: &serde_json::Value, allocator: usize, path: &str) -> f64 {
    let value = file.pointer(&format!("/allocators/{allocator}/{path}/median"));
    value
        .and_then(|value| value.as_f64())
        .unwrap_or_else(|| panic!("{path}: {file}"))
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(".slabyard")
    };
    entries.filter(is_ours).collect()
}

#[test]
fn a_server_is_loaded_on_each_allocator_and_ended() {
    let (folder, server) = server();
    let load = format!("{server} client socket 40000000 30");
    let more = ["--run", "--read", "lag=lag ([0-9.]+) s", "--json", "o.json"];
    let output = done(folder.path(), words(&load, &more, &server, ""));
    let out = in_one_line(&stdout(&output));
    assert!(
        out.contains("the server's CPU time under this load"),
        "{out}"
    );
    assert!(out.contains("its memory after the load"), "{out}");
    for head in [
        "load time ratio",
        "idle memory ratio",
        "requests/s ratio",
        "lag ratio",
    ] {
        assert!(out.contains(head), "{head}: {out}");
    }
    assert!(!out.contains("p99"), "the load says nothing of it: {out}");
    assert!(!out.contains("may not have done its work"), "{out}");
    assert!(out.contains(&format!("The load: {load}")), "{out}");
    let printed = stdout(&output);
    let table = printed.lines().filter(|line| !line.starts_with(['-', ' ']));
    assert!(
        table.clone().all(|line| line.chars().count() <= 80),
        "{printed}"
    );
    let file = json(folder.path(), "o.json");
    assert_eq!(file["load"], load);
    for allocator in 0..2 {
        // The server has the block of 40 MB at its peak, and glibc not at rest. The load has none.
        assert!(kind(&file, allocator, "peak_bytes") > 40e6);
        let idle = kind(&file, allocator, "served/idle_bytes");
        assert!(idle > 0.0 && (allocator > 0 || idle < 12e6), "{idle}");
        assert_eq!(kind(&file, allocator, "served/readings/0"), 30.0);
        assert_eq!(kind(&file, allocator, "served/readings/1"), 2.5);
        assert!(kind(&file, allocator, "served/load_s") > 0.0);
    }
    assert_eq!(file["ends"], "is ended by signal 15 (SIGTERM)");
}

#[test]
fn a_server_is_recorded_under_load_too_and_a_daemon_as_well() {
    let (folder, server) = server();
    let load = format!("{server} client socket 100000 200");
    for how in ["", "daemon"] {
        let output = done(folder.path(), words(&load, &[], &server, how));
        let (out, said) = (in_one_line(&stdout(&output)), stderr(&output));
        assert!(
            out.contains("the server's CPU time under this load"),
            "{out}"
        );
        assert!(out.contains("Replayed alone"), "{out}");
        assert!(!said.contains("left processes behind"), "{said}");
        let operations = number(&info(folder.path(), "server.syrec"), "operations");
        assert!(operations >= 390, "{how}: {operations}");
    }
    assert_eq!(left_behind(folder.path()), [] as [PathBuf; 0]);
}

#[test]
fn the_sign_that_a_server_is_ready_can_be_named() {
    let (folder, server) = server();
    let load = format!("rm -f mark; {server} client socket 1000 10");
    let mut all = words(&load, &["--run", "--ready", "./mark"], "sh", "");
    all.truncate(all.len() - 4);
    let script =
        format!("trap 'kill $!' TERM; {server} server 1 socket & sleep 2; touch mark; wait $!");
    all.extend(["-c", &script]);
    let out = stdout(&done(folder.path(), all));
    assert!(out.contains("requests/s"), "{out}");
    for wrong in ["0", "port", "host:", "99999"] {
        let said = ends_with(
            folder.path(),
            words("true", &["--ready", wrong], &server, ""),
            2,
        );
        assert!(
            said.contains("a port, HOST:PORT, or the path of a file"),
            "{said}"
        );
    }
}

#[test]
fn a_load_that_fails_and_a_server_that_ends_or_does_not_end_are_named() {
    let (folder, server) = server();
    let client = format!("{server} client socket 1000 10");
    for (load, how, why) in [
        (
            "echo broken; exit 5",
            "",
            "was loaded by a command that failed (exit status: 5): broken",
        ),
        (&client, "dies", "ends by itself under the load"),
        (
            &client,
            "stubborn",
            "does not end within 10 s after SIGTERM",
        ),
    ] {
        let output = slabyard(folder.path(), words(load, &["--run"], &server, how));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{how}: {said}");
    }
    let slow = ["--run", "--ready", "./never", "--ready-within", "1"];
    let output = slabyard(folder.path(), words(&client, &slow, &server, "daemon"));
    let said = stderr(&output);
    assert!(
        said.contains("after 1.00 s the server has not made ./never"),
        "{said}"
    );
    assert!(until(|| is_free(folder.path())), "the server was ended");
    let nothing = [
        "compare", "--run", "--load", "true", "--", "sh", "-c", "exit 0",
    ];
    let said = ends_with(folder.path(), nothing, 1);
    assert!(said.contains("ends before it is ready"), "{said}");
    let said = ends_with(folder.path(), ["compare", "--load", "true", "x.syrec"], 2);
    assert!(said.contains("--load"), "{said}");
}

/// Whether no server listens at the socket.
fn is_free(folder: &Path) -> bool {
    UnixStream::connect(folder.join("socket")).is_err()
}

#[test]
fn a_signal_ends_the_server_and_its_load() {
    let (folder, server) = server();
    let load = "echo $$ >load; exec sleep 60";
    let mut tool = tool_that_heeds_signals();
    tool.current_dir(&folder)
        .args(words(load, &["--run"], &server, "daemon"));
    let mut tool = tool
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = folder.path().join("load");
    assert!(until(
        || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    ));
    let load: u32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    // SAFETY: kill touches no memory; the tool is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGINT) };
    assert!(!tool.wait().unwrap().success());
    assert!(is_gone(load) && until(|| is_free(folder.path())));
}

#[test]
fn a_program_that_runs_for_hours_is_ended_after_its_time() {
    let (folder, _) = server();
    let script = "x=; while :; do x=$x.; [ ${#x} -lt 999 ] || x=; done";
    for command in ["record", "compare"] {
        let words = [
            command, "--for", "0.3s", "-o", "o.syrec", "--force", "--", "sh", "-c", script,
        ];
        let said = stderr(&done(folder.path(), words));
        assert!(said.contains("ended after 300 ms, as --for asks"), "{said}");
        assert!(number(&info(folder.path(), "o.syrec"), "operations") > 100);
    }
    for wrong in ["0", "x", "5d", "99999999h"] {
        ends_with(folder.path(), ["record", "--for", wrong, "--", "true"], 2);
    }
}

#[test]
fn the_input_of_a_program_is_restored_before_each_run() {
    let (folder, _) = server();
    let consumes = ["--", "sh", "-c", "grep -q data input && rm input"];
    let run = |more: &[&'static str]| {
        let mut words = vec!["compare", "--force", "--times", "2", "-a", "slabyard"];
        words.extend(more);
        words.extend(consumes);
        slabyard(folder.path(), words)
    };
    fs::write(folder.path().join("input"), "data").unwrap();
    let said = stderr(&run(&["--run"]));
    assert!(said.contains("--before COMMAND restores it"), "{said}");
    for more in [&["--run"][..], &[]] {
        let output = run(&[more, &["--before", "echo data >input"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(in_one_line(&stdout(&output)).contains("With Slabyard, the program's CPU time"));
    }
    let said = stderr(&run(&["--run", "--before", "exit 9"]));
    assert!(
        said.contains("the command of --before failed (exit status: 9)"),
        "{said}"
    );
}
