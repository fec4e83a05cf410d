//! Tests of the commands that look into processes, on processes that run with Slabyard.

mod common;

use common::*;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that waits until it is dropped.
struct Waits(Child);

impl Waits {
    /// Runs a copy of `sleep` with this name under Slabyard.
    fn named(folder: &Path, name: &str) -> Self {
        let copy = folder.join(name);
        let sleep = ["/bin/sleep", "/usr/bin/sleep"];
        let sleep = sleep.iter().find(|path| Path::new(path).exists()).unwrap();
        std::fs::copy(sleep, &copy).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_slabyard"))
            .args(["run", "--"])
            .arg(copy)
            .arg("100")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Waits(child)
    }

    /// The account, as soon as the program has begun.
    fn text(&self, folder: &Path, words: &[&str]) -> String {
        let mut text = String::new();
        let looked = until(|| {
            let output = slabyard(folder, words);
            text = stdout(&output);
            output.status.success()
        });
        assert!(looked, "{words:?}");
        text
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // SAFETY: the process is this one's child; it passes the signal on to its program.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_found_by_its_name_which_the_system_cuts_off() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("waits-for-a-look-{}", std::process::id());
    let waits = Waits::named(folder.path(), &name);
    let text = waits.text(folder.path(), &["account", &name]);
    assert!(
        text.starts_with("Memory of waits-for-a-loo (process "),
        "{text}"
    );
    assert!(text.contains("live objects"), "{text}");
    let json = waits.text(folder.path(), &["account", "--json", "--quick", &name]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["resident"]["live"]["rss_bytes"].as_u64().unwrap() > 0);
    assert!(json["pss_bytes"].is_null());
}

#[test]
fn a_snapshot_goes_into_a_pipe_and_does_not_replace_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("piped-{}", std::process::id());
    let waits = Waits::named(folder.path(), &name);
    waits.text(folder.path(), &["threads", &name]);
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    // Open at both ends, so that neither side waits for the other.
    let mut ends = std::fs::OpenOptions::new();
    let ends = ends.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let mut ends = ends.open(&pipe).unwrap();
    done(folder.path(), ["snapshot", &name, "-f", "-o", "pipe"]);
    let mut bytes = vec![0; 64 << 10];
    let count = ends.read(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes[..count]);
    assert!(text.contains("\"slabyard_account\": 1"), "{text}");
    assert!(!pipe.is_file());
    let refused = slabyard(folder.path(), ["snapshot", &name, "-o", "pipe"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("pipe exists; --force replaces it"));
}

#[test]
fn the_ending_of_a_file_says_what_map_draws() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("drawn-{}", std::process::id());
    let waits = Waits::named(folder.path(), &name);
    waits.text(folder.path(), &["threads", &name]);
    for (file, start) in [
        ("map.png", &b"\x89PNG\r\n\x1a\n"[..]),
        ("map.svg", b"<svg "),
        ("map.HTML", b"<!DOCTYPE html>"),
    ] {
        done(folder.path(), ["map", &name, "-o", file]);
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        assert!(bytes.starts_with(start), "{file}");
    }
    let again = slabyard(folder.path(), ["map", &name, "-o", "map.png"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("map.png exists; --force replaces it"));
    let other = slabyard(folder.path(), ["map", &name, "-o", "map.gif"]);
    assert!(stderr(&other).contains("must end in .html, .svg or .png"));
    assert!(!folder.path().join("map.gif").exists());
}

#[test]
fn names_in_a_snapshot_do_not_reach_the_terminal_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let account = r#"{"slabyard_account": 1, "time": 1.0, "pid": 1, "program": "a\u001b[31m",
        "libraries": [], "resident": {}, "rss_bytes": 0, "pss_bytes": null, "system_rss_bytes": null,
        "system_pss_bytes": null, "address_space_bytes": 0, "threads": [], "files": [],
        "problems": [], "caches": [CACHES]}"#;
    let cache = r#"{"name": "b\u001b[2J", "kind": "cache", "object_bytes": 8, "slot_bytes": 8,
        "live_objects": 1, "waiting_objects": 0, "live_bytes": 8, "waiting_bytes": 0, "free_bytes": 0,
        "resident_bytes": 8, "held_bytes": 8, "refills": 1, "flushes": 0, "limits_hit": 0}"#;
    let write = |file: &str, caches: &str| {
        let text = account.replace("CACHES", caches);
        std::fs::write(folder.path().join(file), text).unwrap();
    };
    write("before", "");
    write("after", cache);
    let text = stdout(&done(folder.path(), ["diff", "before", "after"]));
    assert!(text.contains("a?[31m") && text.contains("b?[2J"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn what_cannot_be_looked_into_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id().to_string();
    for (process, words) in [
        ("4194304999", "there is no process"),
        ("4194303", "there is no process 4194303"),
        ("no-such-program", "there is no process \"no-such-program\""),
        ("./nothing", "./nothing"),
    ] {
        let output = slabyard(folder.path(), ["account", process]);
        assert_eq!(output.status.code(), Some(1), "{process}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    // This process has no copy of the library.
    let output = slabyard(folder.path(), ["account", &own]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no Slabyard in this process"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_amount_to_trim_is_a_number_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (amount, words) in [
        ("lots", "a number of bytes, such as 65536, 64k, 64M or 1.5G"),
        ("-1", "unexpected argument"),
        ("0", "less than a byte"),
        ("64MiB", "there is no process \"no-such-program\""),
    ] {
        let output = slabyard(folder.path(), ["trim", "no-such-program", amount]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn the_options_of_the_library_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&done(folder.path(), ["options"]));
    assert!(
        text.contains("decay=TIME") && text.contains("slack=PER CENT"),
        "{text}"
    );
}
