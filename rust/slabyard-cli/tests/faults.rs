//! Tests of `slabyard faults` as a user runs it, on a program linked with the library.

mod common;

use common::{is_gone, tool_that_heeds_signals};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Makes a folder that contains the program.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("cc")
        .args(["-O1", "-w", "-pthread", "-I", env!("SLABYARD_INCLUDE")])
        .arg(here.join("tests/programs/failures.c"))
        .args([OsStr::new(env!("SLABYARD_LIBRARY")), OsStr::new("-o")])
        .arg(folder.path().join("failures"))
        .status()
        .unwrap();
    assert!(status.success());
    folder
}

/// `slabyard faults OPTIONS -- ./failures WAY`
fn faults(folder: &TempDir, options: &[&str], way: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder.path())
        .env_remove("SLABYARD")
        .arg("faults")
        .args(options)
        .args(["--", "./failures", way])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a run that ends with this status.
fn shown(output: &Output, status: i32) -> String {
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{shown}{errors}");
    assert_eq!(errors, "");
    shown
}

/// The error message of a run in which no failure could be tried.
fn complaint(output: &Output) -> String {
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(125), "{shown}{errors}");
    assert_eq!(shown, "");
    errors
}

#[test]
fn a_program_that_survives_all_is_tried_to_its_end() {
    let folder = folder();
    for way in ["survive", "exit"] {
        let shown = shown(&faults(&folder, &[], way), 0);
        assert_eq!(shown, "5 failures, all survived\n");
    }
}

#[test]
fn a_crash_is_shown_with_the_command_to_see_it_again() {
    let folder = folder();
    let output = faults(&folder, &[], "third");
    let expected = "\
allocation 3 of cache \"order\" (64 bytes): killed by SIGSEGV
  end of its output:
    no object 3
  again: SLABYARD='fail=*:3' ./failures third

3 failures, 1 not survived
stopped at the first (--all continues); --from 4 continues
";
    assert_eq!(shown(&output, 1), expected);
    let again = Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", "SLABYARD='fail=*:3' ./failures third"])
        .output()
        .unwrap();
    let told = "slabyard: made allocation 3 of cache \"order\" (64 bytes) fail";
    assert!(text(&again.stderr).contains(told));
    assert!(!again.status.success());
}

#[test]
fn all_crashes_are_shown_on_request() {
    let folder = folder();
    let shown = shown(&faults(&folder, &["--all"], "odd"), 1);
    assert_eq!(shown.matches("killed by SIGSEGV").count(), 3, "{shown}");
    assert!(shown.ends_with("\n5 failures, 3 not survived\n"), "{shown}");
}

#[test]
fn several_at_a_time_show_the_same() {
    let folder = folder();
    for options in [&[][..], &["--all"]] {
        let one = shown(&faults(&folder, options, "odd"), 1);
        let together = [options, &["--jobs", "4"]].concat();
        assert_eq!(shown(&faults(&folder, &together, "odd"), 1), one);
    }
}

#[test]
fn a_report_is_shown() {
    let folder = folder();
    let shown = shown(&faults(&folder, &[], "misuse"), 1);
    let head =
        "allocation 4 of cache \"trade\" (64 bytes): free of a pointer that is not an object";
    assert!(shown.starts_with(head), "{shown}");
    assert!(
        shown.contains("  report:\n    slabyard: free of a pointer"),
        "{shown}"
    );
}

/// Whether the process whose id is in the file ends. It was killed, but it dies only when it is
/// scheduled, which may be after the tool has ended.
fn dies(file: &Path) -> bool {
    let number = std::fs::read_to_string(file).unwrap();
    is_gone(number.trim().parse().unwrap())
}

#[test]
fn a_program_that_hangs_is_ended_with_its_children() {
    let folder = folder();
    let shown = shown(&faults(&folder, &["--timeout", "3"], "hang"), 1);
    let head = "allocation 2 of cache \"trade\" (64 bytes): still running after 3 s\n";
    assert!(shown.starts_with(head), "{shown}");
    assert!(dies(&folder.path().join("child")));
}

#[test]
fn an_interrupt_ends_all_and_shows_what_there_is() {
    let folder = folder();
    let tool = tool_that_heeds_signals()
        .current_dir(folder.path())
        .env_remove("SLABYARD")
        .args(["faults", "--jobs", "2", "--", "./failures", "hang"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let child = folder.path().join("child");
    while !child.exists() {
        std::thread::yield_now();
    }
    // SAFETY: kill touches no memory; the tool is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGINT) };
    let output = tool.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    // The run before the one that hangs may or may not have ended.
    let shown = text(&output.stdout);
    let after_one = "1 failure, all survived\ninterrupted; --from 2 continues\n";
    let before = "0 failures, all survived\ninterrupted; --from 1 continues\n";
    assert!(shown == after_one || shown == before, "{shown}");
    assert!(dies(&child));
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let folder = folder();
    let tool = Command::new("nohup")
        .current_dir(folder.path())
        .env_remove("SLABYARD")
        .arg(env!("CARGO_BIN_EXE_slabyard"))
        .args(["faults", "--timeout", "3", "--", "./failures", "hang"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.path().join("child").exists() {
        std::thread::yield_now();
    }
    // SAFETY: it touches no memory; the tool was not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGHUP) };
    let output = tool.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("still running after 3 s"));
}

#[test]
fn only_some_are_made_to_fail() {
    let folder = folder();
    let shown_of = |options: &[&str], status| shown(&faults(&folder, options, "third"), status);
    assert_eq!(
        shown_of(&["--only", "trade"], 0),
        "2 failures, all survived\n"
    );
    let both = shown_of(&["--only", "tr*", "--only", "order"], 1);
    assert!(both.contains("fail=tr*|order:3"), "{both}");
    assert_eq!(shown_of(&["--from", "4"], 0), "2 failures, all survived\n");
    assert_eq!(shown_of(&["--every", "3"], 0), "2 failures, all survived\n");
    let most = "2 failures, all survived\nstopped at --max; --from 3 continues\n";
    assert_eq!(shown_of(&["--max", "2"], 0), most);
}

#[test]
fn calls_to_the_system_fail_too() {
    let folder = folder();
    let shown = shown(&faults(&folder, &["--os", "reserve"], "system"), 1);
    // Which call the program does not survive depends on the library. All calls before it are tried
    // and survived.
    let (call, _) = shown.split_once(" of sy_os_reserve: ").unwrap();
    let number: u32 = call.strip_prefix("call ").unwrap().parse().unwrap();
    let again = format!("SLABYARD=fail=os:reserve:{number} ./failures system");
    let expected = format!(
        "\
call {number} of sy_os_reserve: killed by SIGSEGV
  again: {again}

{number} failure{}, 1 not survived
stopped at the first (--all continues); --from {} continues
",
        if number == 1 { "" } else { "s" },
        number + 1
    );
    assert_eq!(shown, expected);
    let again = Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", &again])
        .output()
        .unwrap();
    let told = format!("slabyard: made call {number} of sy_os_reserve fail");
    assert!(text(&again.stderr).contains(&told));
    assert!(!again.status.success());
}

#[test]
fn what_was_found_is_written_as_json() {
    let folder = folder();
    let output = faults(&folder, &["--json", "f.json", "--all"], "third");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(folder.path().join("f.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(json["command"], serde_json::json!(["./failures", "third"]));
    assert_eq!(
        (&json["tried"], &json["stopped"]),
        (&5.into(), &"all_tried".into())
    );
    let finding = &json["findings"][0];
    assert_eq!(finding["count"], 3);
    assert_eq!(finding["end"]["signal"], 11);
    assert_eq!(
        finding["made"][0],
        "allocation 3 of cache \"order\" (64 bytes)"
    );
    assert_eq!(finding["output"], "no object 3");
    assert_eq!(json["findings"].as_array().unwrap().len(), 1);
}

#[test]
fn settings_of_the_environment_are_kept() {
    let folder = folder();
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder.path())
        .env("SLABYARD", "check,fail=order:1")
        .args(["faults", "--", "./failures", "third"])
        .output()
        .unwrap();
    let shown = shown(&output, 1);
    assert!(
        shown.contains("again: SLABYARD='check,fail=order:1,fail=*:3' ./failures"),
        "{shown}"
    );
}

#[test]
fn a_program_without_allocations_is_told_so() {
    let folder = folder();
    let errors = complaint(&faults(&folder, &[], "none"));
    assert!(
        errors.contains("nothing was made to fail: ./failures makes no"),
        "{errors}"
    );
    assert!(errors.contains("not linked with Slabyard"), "{errors}");
    let errors = complaint(&faults(&folder, &["--only", "orders"], "survive"));
    assert!(errors.contains("no allocation of \"orders\""), "{errors}");
    let errors = complaint(&faults(&folder, &["--from", "6"], "survive"));
    assert!(errors.contains("fewer than 6"), "{errors}");
}

#[test]
fn a_program_that_ends_badly_by_itself_is_told_so() {
    let folder = folder();
    let errors = complaint(&faults(&folder, &[], "crash"));
    assert!(
        errors.contains("does not end well even if nothing is made to fail: killed by SIGABRT"),
        "{errors}"
    );
}

#[test]
fn a_program_that_cannot_be_run_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let errors = complaint(&faults(&folder, &[], ""));
    assert!(errors.contains("cannot run ./failures"), "{errors}");
}

#[test]
fn wrong_words_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: [&[&str]; 6] = [
        &["--from", "0"],
        &["--every", "0"],
        &["--max", "0"],
        &["--jobs", "0"],
        &["--only", "a+b"],
        &["--only", "a", "--os", "commit"],
    ];
    for options in wrong {
        let output = faults(&folder, options, "");
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}
