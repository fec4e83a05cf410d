//! Tests of `slabyard run` and `slabyard compare --run` on real programs.

mod common;

use common::*;
use std::ffi::OsStr;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn which() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "which", &["-rdynamic"]);
    let program = program.to_str().unwrap().to_string();
    (folder, program)
}

/// Writes Slabyard's library to a file: a program that runs with it copies it.
fn library(folder: &Path) -> PathBuf {
    let copy = "cp ${LD_PRELOAD%% *} mine.so";
    done(folder, ["run", "--", "sh", "-c", copy]);
    folder.join("mine.so")
}

fn with_environment(folder: &Path, words: &[&str], name: &str, value: impl AsRef<OsStr>) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder)
        .args(words)
        .env(name, value)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_program_has_slabyard_for_its_malloc_and_ends_as_it_would() {
    let (folder, program) = which();
    let output = done(folder.path(), ["run", "--", &program]);
    assert_eq!(
        (stdout(&output), stderr(&output)),
        ("slabyard\n".into(), String::new())
    );
    ends_with(folder.path(), ["run", &program, "exit", "7"], 7);
    let output = slabyard(
        folder.path(),
        ["run", "--summary", "--", &program, "signal", "11"],
    );
    assert_eq!(output.status.signal(), Some(11));
    let said = stderr(&output);
    assert!(
        said.contains("was ended by signal 11 (SIGSEGV) after "),
        "{said}"
    );
    for what in ["CPU time ", "peak memory ", "page faults "] {
        assert!(said.contains(what), "{said}");
    }
    // The program's block of 1 MiB is a part of the peak.
    let peak = said
        .lines()
        .find(|line| line.contains("peak memory"))
        .unwrap();
    let mib: f64 = peak.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(
        peak.contains(" MiB ") && (1.5..50.0).contains(&mib),
        "{peak}"
    );
}

#[test]
fn children_have_it_too_and_other_preloaded_libraries_stay() {
    let (folder, program) = which();
    let script = format!("{program}; echo $LD_PRELOAD; cd /; {program}");
    let words = ["run", "--", "sh", "-c", &script];
    let mine = library(folder.path());
    let out = with_environment(folder.path(), &words, "LD_PRELOAD", &mine);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines[0], lines[2]), ("slabyard", "slabyard"), "{out}");
    let (first, second) = lines[1].split_once(' ').unwrap();
    assert!(first.ends_with("/libslabyard-malloc.so"), "{out}");
    assert_eq!(second, mine.to_str().unwrap());
    assert!(
        !Path::new(first).exists(),
        "the tool's file goes when the program has ended"
    );
}

#[test]
fn options_are_added_to_those_that_are_there() {
    let (folder, program) = which();
    let print = [
        "run",
        "--options",
        "poison",
        "--",
        "sh",
        "-c",
        "echo $SLABYARD",
    ];
    let out = with_environment(folder.path(), &print, "SLABYARD", "check");
    assert_eq!(out, "check,poison\n");
    let output = done(folder.path(), ["run", "--options", "stats", "--", &program]);
    assert!(
        stderr(&output).contains("slabyard: memory of process"),
        "{}",
        stderr(&output)
    );
    for (options, why) in [
        (
            "chekc",
            "--options: there is no option chekc; there are debug, check, redzone",
        ),
        (
            "redzone=7",
            "--options: redzone=7: the values of redzone are BYTES, 16 to 64K",
        ),
    ] {
        let words = ["run", "--options", options, "--", &program];
        let said = ends_with(folder.path(), words, 125);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_library_may_be_any_that_can_be_loaded() {
    let (folder, program) = which();
    library(folder.path());
    let script = format!("echo $LD_PRELOAD; cd /; {program}");
    let words = ["run", "--library", "./mine.so", "--", "sh", "-c", &script];
    let out = stdout(&done(folder.path(), words));
    let mine = folder.path().canonicalize().unwrap().join("mine.so");
    assert_eq!(out, format!("{}\nslabyard\n", mine.display()));
    let whole = std::fs::read(&mine).unwrap();
    std::fs::write(folder.path().join("torn.so"), &whole[..4096]).unwrap();
    std::fs::write(folder.path().join("text.so"), "no library").unwrap();
    std::fs::write(folder.path().join("none.c"), "int none;").unwrap();
    let none = ["-shared", "-fPIC", "none.c", "-o", "none.so"];
    let linked = Command::new("cc").current_dir(&folder).args(none).status();
    assert!(linked.unwrap().success());
    for (name, why) in [
        ("no.so", "cannot use no.so: No such file"),
        ("text.so", "is not a library"),
        ("torn.so", "torn.so cannot be preloaded into"),
        ("none.so", "none.so has no malloc, so it would not replace"),
    ] {
        let said = ends_with(
            folder.path(),
            ["run", "--library", name, "--", &program],
            125,
        );
        assert!(said.contains(why), "{said}");
        let allocator = format!("none={name}");
        let words = ["compare", "--run", "-a", &allocator, "--", &program];
        let said = ends_with(folder.path(), words, 1);
        assert!(said.contains(why), "{said}");
    }
}

/// Writes a file that is not one of the test programs.
fn put(folder: &Path, name: &str, bytes: &[u8], mode: u32) {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_program_that_nothing_can_be_preloaded_into_is_not_started() {
    let (folder, which) = which();
    let folder = folder.path();
    let here = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let mut bytes = std::fs::read(&which).unwrap();
    std::fs::remove_file(&which).unwrap();
    bytes[18] = 0xf3;
    put(folder, "riscv", &bytes, 0o755);
    bytes[4] = 1;
    put(folder, "narrow", &bytes, 0o755);
    put(folder, "text", b"not executable", 0o644);
    put(
        folder,
        "script",
        format!("#!{} -x\n", here("riscv")).as_bytes(),
        0o755,
    );
    put(
        folder,
        "by-env",
        b"#!/usr/bin/env no-such-interpreter\n",
        0o755,
    );
    put(
        folder,
        "loop",
        format!("#!{}\n", here("loop")).as_bytes(),
        0o755,
    );
    let tempdir = tempfile::tempdir().unwrap();
    let fixed = program(&tempdir, "which", &["-static"]);
    std::fs::copy(fixed, here("static")).unwrap();
    let cases = [
        ("./none", "there is no program ./none"),
        (
            "no-such-program",
            "there is no program no-such-program in PATH",
        ),
        (".", "there is no program . in PATH"),
        ("./", "./ is a folder"),
        ("./text", "./text is not executable (chmod +x ./text"),
        (
            "./riscv",
            "./riscv is a program for 64-bit RISC-V, and the library is for 64-bit",
        ),
        ("./narrow", "./narrow is a program for 32-bit RISC-V, and"),
        (
            "./static",
            "is statically linked, so no library can be preloaded into it; link",
        ),
        ("./script", "./script is a script for "),
        (
            "./by-env",
            "script for no-such-interpreter: there is no program no-such-interpreter in PATH",
        ),
        ("./loop", "too many of them"),
    ];
    for (program, why) in cases {
        for words in [
            &["run", "--", program][..],
            &["compare", "--run", "--", program],
        ] {
            let status = if words[0] == "run" { 125 } else { 1 };
            let said = ends_with(folder, words, status);
            assert!(said.contains(why), "{said}");
        }
    }
    let said = ends_with(folder, ["run", "./script"], 125);
    assert!(
        said.contains("riscv is a program for 64-bit RISC-V"),
        "{said}"
    );
}

#[test]
fn a_program_with_a_malloc_of_its_own_is_run_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "which", &["-rdynamic", "-DOWN_MALLOC"]);
    let program = program.to_str().unwrap();
    let said = ends_with(folder.path(), ["run", program], 0);
    assert!(
        said.contains("which has a malloc of its own, which comes before"),
        "{said}"
    );
    let words = [
        "compare", "--run", "-r", "1", "-a", "slabyard", "--", program,
    ];
    let out = stdout(&done(folder.path(), words));
    assert!(
        out.replace('\n', " ")
            .contains("which has a malloc of its own, which comes before"),
        "{out}"
    );
    assert!(out.contains("\nwhich's own "), "{out}");
    let said = ends_with(folder.path(), ["record", program], 125);
    assert!(said.contains("has a malloc of its own"), "{said}");
}

/// Such a program has another malloc than the C library's without any library, so its row is called
/// after that one, and the C library's malloc is one more to compare with.
#[test]
fn the_malloc_that_a_program_is_linked_with_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let linked = folder.path().join("libslabyard-malloc.so.1");
    std::fs::rename(folder.path().join("mine.so"), &linked).unwrap();
    let search = format!("-Wl,-rpath,{}", folder.path().display());
    let flags = [
        "-rdynamic",
        "-Wl,--no-as-needed",
        linked.to_str().unwrap(),
        &search,
    ];
    let program = program(&folder, "which", &[&flags[..], &["-DWAITS"]].concat());
    let program = program.to_str().unwrap();
    let output = done(
        folder.path(),
        ["compare", "--run", "-r", "2", "-a", "glibc", "--", program],
    );
    // A shell that starts it has glibc's malloc.
    let script = format!("{program}; :");
    let words = [
        "compare", "--run", "-r", "1", "-a", "slabyard", "--", "sh", "-c", &script,
    ];
    let started = stdout(&done(folder.path(), words));
    let started = started.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        started.contains("/which, which has the malloc of "),
        "{started}"
    );
    let out = stdout(&output);
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("\nslabyard (linked) "), "{out}");
    assert!(
        words.contains("libslabyard-malloc.so.1, with which the program is linked"),
        "{out}"
    );
    assert!(out.contains("libc.so.6"), "{out}");
}

#[test]
fn an_allocator_inside_a_program_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "which", &["-DINSIDE=\"<jemalloc>: \""]);
    let words = ["compare", "--run", "-r", "1", "-a", "slabyard", "--"];
    let words = [&words[..], &[program.to_str().unwrap()]].concat();
    let out = stdout(&done(folder.path(), words));
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("which contains jemalloc, which it may call by"),
        "{out}"
    );
}

/// The test skips what the compiler cannot link here.
#[test]
fn a_program_with_a_sanitizer_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.c"), "int main(void) { return 0; }").unwrap();
    for (compiler, flags, name) in [
        ("cc", "-fsanitize=address", "AddressSanitizer"),
        ("cc", "-fsanitize=thread", "ThreadSanitizer"),
        ("cc", "-fsanitize=leak", "LeakSanitizer"),
        (
            "cc",
            "-fsanitize=address -static-libasan",
            "AddressSanitizer",
        ),
        ("clang", "-fsanitize=address", "AddressSanitizer"),
        ("clang", "-fsanitize=thread -s", "ThreadSanitizer"),
        ("clang", "-fsanitize=memory", "MemorySanitizer"),
    ] {
        let linked = Command::new(compiler)
            .current_dir(&folder)
            .args(flags.split(' '))
            .args(["main.c", "-o", "main"])
            .stderr(Stdio::null())
            .status();
        if !linked.is_ok_and(|status| status.success()) {
            continue;
        }
        let option = flags.split(' ').next().unwrap();
        for (words, status) in [
            (&["run", "--", "./main"][..], 125),
            (&["compare", "--run", "--", "./main"], 1),
        ] {
            let said = ends_with(folder.path(), words, status);
            let why = format!("./main is built with {name}, which needs a malloc of its own");
            assert!(said.contains(&why), "{compiler} {flags}: {said}");
            assert!(said.contains(&format!("without {option}")), "{said}");
        }
    }
    let harmless = ["-fsanitize=undefined", "main.c", "-o", "main"];
    let linked = Command::new("cc")
        .current_dir(&folder)
        .args(harmless)
        .status();
    if linked.is_ok_and(|status| status.success()) {
        done(folder.path(), ["run", "--", "./main"]);
    }
}

/// The test runs only as root, because only root can make such a program.
#[test]
fn a_set_uid_program_is_not_started() {
    let (folder, which) = which();
    let made = chown(&which, Some(1), None);
    let mode = std::fs::Permissions::from_mode(0o4755);
    if made
        .and_then(|()| std::fs::set_permissions(&which, mode))
        .is_ok()
    {
        let said = ends_with(folder.path(), ["run", "--", &which], 125);
        assert!(said.contains("is set-uid, and in such a program"), "{said}");
    }
}

#[test]
fn signals_reach_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 5' TERM; touch ready; while :; do sleep 0.01; done";
    let mut tool = Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder.path())
        .args(["run", "--", "sh", "-c", script])
        .spawn()
        .unwrap();
    assert!(until(|| folder.path().join("ready").exists()));
    // SAFETY: the tool is a child of this process, and is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(tool.wait().unwrap().code(), Some(5));
}

/// The system counts in a program's peak what the tool has between fork and exec. On a system with
/// huge pages that was 8 MiB, of the allocators that the tool is built with.
#[test]
fn the_peak_of_a_small_program_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare --run --times 2 -a slabyard --json r.json -- true";
    done(folder.path(), words.split(' '));
    let glibc = json(folder.path(), "r.json")["allocators"][0].take();
    let peak = glibc["peak_bytes"]["median"].as_f64().unwrap();
    assert!(peak < 4e6, "{peak}");
}

#[test]
fn real_runs_take_turns_and_are_compared() {
    let (folder, program) = which();
    library(folder.path());
    let words = "compare --run --times 3 -a slabyard -a mine=mine.so --keep kept --json r.json --";
    let output = done(
        folder.path(),
        words.split(' ').chain([program.as_str(), "exit", "0"]),
    );
    let json = json(folder.path(), "r.json");
    assert_eq!(
        (&json["rounds"], &json["ends"]),
        (&3.into(), &"ends with status 0".into())
    );
    let all = json["allocators"].as_array().unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glibc", "slabyard", "mine"]);
    for one in all {
        let name = one["name"].as_str().unwrap();
        assert!(one["failure"].is_null(), "{name}");
        for kind in ["wall_s", "cpu_s", "peak_bytes", "page_faults"] {
            let (median, runs) = (&one[kind]["median"], &one[kind]["runs"]);
            assert!(median.as_f64().unwrap() > 0.0, "{name}: {kind}");
            assert_eq!(runs.as_array().unwrap().len(), 3, "{name}: {kind}");
            let ratio = &one[kind]["to_first"]["ratio"];
            assert_eq!(ratio.is_null(), name == "glibc", "{name}: {kind}");
        }
        assert!(
            one["peak_bytes"]["median"].as_f64().unwrap() > 1048576.0,
            "{name}"
        );
        assert!(
            one["mean_resident_bytes"].is_null(),
            "too short to be looked at"
        );
        for round in 0..=3 {
            let file = folder.path().join(format!("kept/{name}.{round}.out"));
            let wrote = std::fs::read_to_string(file).unwrap();
            let whose = if name == "glibc" {
                "glibc\n"
            } else {
                "slabyard\n"
            };
            assert_eq!(wrote, whose, "{name}");
        }
        assert!(
            stdout(&output).contains(&format!("\n{name} ")),
            "{}",
            stdout(&output)
        );
    }
    let caveats = json["caveats"].to_string();
    assert!(caveats.contains("3 rounds are too few"), "{caveats}");
    assert!(caveats.contains("runs only briefly"), "{caveats}");
    assert!(stdout(&output).contains("3 rounds are too few"));
}

/// By default a program is recorded, run on each allocator, and its allocations are replayed.
#[test]
fn the_program_itself_is_run_before_its_allocations_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare -r 3 --no-verify -a slabyard -a glibc --json r.json -- perl -e";
    let script = "open(F, '>>', 'runs'); print F qq(run\n); my @a = map { [$_] } 1..20000; exit 4";
    let output = done(folder.path(), words.split(' ').chain([script]));
    let said = stdout(&output);
    assert!(
        said.trim_start()
            .starts_with("With Slabyard, the program's CPU time "),
        "{said}"
    );
    let said = said.replace('\n', " ");
    assert!(
        said.contains("Replayed alone, the allocations take "),
        "{said}"
    );
    assert!(said.contains("; the program takes "), "{said}");
    let json = json(folder.path(), "r.json");
    let all = json["runs"]["allocators"].as_array().unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glibc", "slabyard"]);
    assert_eq!(json["runs"]["ends"], "ends with status 4");
    assert!(json["no_runs"].is_null());
    // Once recorded, and three measured rounds after one that is not.
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 2 * 4, "{runs}");

    std::fs::remove_file(folder.path().join("runs")).unwrap();
    let words =
        "compare --replay -f -r 1 --no-verify -a slabyard -a glibc --json r.json -- perl -e";
    let said = stdout(&done(folder.path(), words.split(' ').chain([script])));
    assert!(said.trim_start().starts_with("Replayed alone, "), "{said}");
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
}

/// A program that cannot be run again still gets its replay, and the reason is told.
#[test]
fn a_program_that_cannot_be_repeated_is_only_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |more: &str, script: &str| {
        let words =
            format!("compare -f --no-verify -a slabyard -a glibc {more} --json r.json -- perl -e");
        let output = done(folder.path(), words.split_whitespace().chain([script]));
        let why = json(folder.path(), "r.json")["no_runs"].take();
        let why = why.as_str().unwrap().to_string();
        let said = unbroken(&stdout(&output));
        assert!(
            said.contains(&format!("not run on each allocator: {why}.")),
            "{said}"
        );
        why
    };
    let once = "my @a = map { [$_] } 1..9000; exit(-e 'done' ? 1 : 0 * open(F, '>', 'done'))";
    let why = compare("-r 1", once);
    assert!(
        why.contains("ends with status 1, and ends with status 0 when it was recorded"),
        "{why}"
    );
    let why = compare(
        "--within 1",
        "my @a = map { [$_] } 1..9000; select(undef, undef, undef, 0.3)",
    );
    assert!(
        why.contains("3 rounds take longer than half of --within 1"),
        "{why}"
    );
}

/// A tool that is told to end while the program is run keeps the recording.
#[test]
fn a_signal_during_the_runs_keeps_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "open(F, '>>', 'runs'); print F qq(run\n); close F; select(undef, undef, undef, 0.05)";
    let tool = tool_that_heeds_signals()
        .current_dir(folder.path())
        .args("compare -r 1000 -a slabyard -- perl -e".split(' '))
        .arg(script)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap_or_default();
    assert!(until(|| runs().lines().count() > 4));
    // SAFETY: the tool is a child of this process, and is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGTERM) };
    let output = tool.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM));
    let said = stderr(&output);
    assert!(
        said.contains("slabyard compare perl.syrec continues"),
        "{said}"
    );
    assert!(folder.path().join("perl.syrec").exists());
    assert!(!folder.path().join("perl.html").exists());
}

/// What a script leaves in the background belongs to the program, and so does a daemon.
#[test]
fn processes_that_the_program_leaves_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let script = "my @a; if (fork) { exit 3 } setpgrp; fork and exit; \
                  select(undef, undef, undef, 0.3); @a = map { [$_] } 1..50000; \
                  open(F, '>', 'done'); exit 9";
    let words = ["record", "-o", "p.syrec", "perl", "-e", script];
    ends_with(folder.path(), words, 3);
    assert!(folder.path().join("done").exists());
    let info = info(folder.path(), "p.syrec");
    let mallocs = info
        .lines()
        .find_map(|line| line.trim().strip_prefix("malloc "));
    let mallocs: u64 = mallocs.unwrap().trim().replace(',', "").parse().unwrap();
    assert!(mallocs > 50_000, "{info}");
    let used = "compare --run -r 1 -a slabyard --json r.json -- perl -e";
    let script = "fork and exit; my $x = 'a' x 5e7; select(undef, undef, undef, 0.2)";
    done(folder.path(), used.split(' ').chain([script]));
    let glibc = json(folder.path(), "r.json")["allocators"][0].take();
    let faults = glibc["page_faults"]["median"].as_f64().unwrap();
    let peak = glibc["peak_bytes"]["median"].as_f64().unwrap();
    // The first process has neither.
    assert!(
        faults > 6000.0 && peak > 5e7,
        "faults {faults}, peak {peak}"
    );
}

/// Ctrl-C ends the wait for a process that does not end.
#[test]
fn a_wait_for_processes_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = "fork and exit 5; my @a = map { [$_] } 1..9000; open(F, '>', 'pid'); print F $$; \
                  close F; sleep 300";
    let mut tool = tool_that_heeds_signals()
        .current_dir(folder.path())
        .args(["record", "-o", "p.syrec", "perl", "-e", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = || std::fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
    assert!(until(|| !pid().is_empty()));
    let mut said = std::io::BufReader::new(tool.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(
        line.contains("has ended and left processes behind: ") && line.contains(&pid()),
        "{line}"
    );
    // SAFETY: the tool is a child of this process, and is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(tool.wait().unwrap().code(), Some(5));
    // SAFETY: the process is this test's grandchild, which sleeps.
    unsafe { libc::kill(pid().parse().unwrap(), libc::SIGKILL) };
    line.clear();
    std::io::Read::read_to_string(&mut said, &mut line).unwrap();
    assert!(
        line.contains("still runs") && line.contains("the recorder stays in "),
        "{line}"
    );
}

/// A file as standard input is read from its beginning by each run.
#[test]
fn each_run_reads_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "one\ntwo\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder.path())
        .args("compare --run -r 1 -a slabyard --keep kept -- cat".split(' '))
        .stdin(std::fs::File::open(folder.path().join("text")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["glibc.0", "glibc.1", "slabyard.0", "slabyard.1"] {
        let wrote = std::fs::read(folder.path().join(format!("kept/{name}.out"))).unwrap();
        assert_eq!(wrote, b"one\ntwo\n", "{name}");
    }
}

#[test]
fn memory_over_the_run_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare --run --times 1 -a slabyard --json r.json -- perl -e";
    let script = "$x = 'a' x 3e7; select(undef, undef, undef, 1)";
    done(folder.path(), words.split(' ').chain([script]));
    let json = json(folder.path(), "r.json");
    let glibc = &json["allocators"][0];
    let mean = glibc["mean_resident_bytes"]["median"].as_f64().unwrap();
    let peak = glibc["peak_bytes"]["median"].as_f64().unwrap();
    assert!(mean > 0.3 * peak && mean < 1.1 * peak, "{mean} of {peak}");
}

#[test]
fn an_allocator_on_which_the_program_goes_wrong_has_no_figures() {
    let folder = tempfile::tempdir().unwrap();
    let mine = library(folder.path());
    let compare = |more: &str, script: &str, status| {
        let words = format!(
            "compare --run -r 1 -a slabyard -a mine={} -f --json r.json",
            mine.display()
        );
        let words = words.split(' ').chain(more.split_whitespace());
        let output = slabyard(folder.path(), words.chain(["--", "sh", "-c", script]));
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let failures = json(folder.path(), "r.json")["allocators"].take();
        let failures = failures
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["failure"].clone());
        (unbroken(&stdout(&output)), failures.collect::<Vec<_>>())
    };
    let script = "case $LD_PRELOAD in *mine.so) exit 3;; esac; echo $LD_PRELOAD";
    let (out, failures) = compare("", script, 3);
    let why = "ends with status 3, and ends with status 0 on glibc";
    assert!(
        out.contains(&format!("mine FAILED: the program {why}")),
        "{out}"
    );
    assert_eq!(
        failures,
        [().into(), ().into(), serde_json::Value::from(why)]
    );
    let (out, failures) = compare("--same-output", script, 3);
    let other = "wrote something else to standard output than on glibc";
    assert!(
        out.contains(&format!("slabyard FAILED: the program {other}")),
        "{out}"
    );
    let first = format!("The program fails with Slabyard: it {other}. sh -c ");
    assert!(out.starts_with(&first), "{out}");
    assert_eq!(failures[1], other);
    let (_, failures) = compare("--same-output", "echo same; exit 4", 0);
    assert!(
        failures.iter().all(|failure| failure.is_null()),
        "{failures:?}"
    );
    // The program's output differs from run to run.
    let words = [
        "compare",
        "--run",
        "--same-output",
        "-a",
        "slabyard",
        "--",
        "sh",
        "-c",
        "echo $$",
    ];
    let said = ends_with(folder.path(), [&words[..], &[]].concat(), 1);
    assert!(
        said.contains("slabyard") || said.contains("glibc itself differ"),
        "{said}"
    );
}

#[test]
fn an_interrupt_shows_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare --run --times 1000 -a slabyard --keep kept --json r.json -- sleep 0.02";
    let tool = tool_that_heeds_signals()
        .current_dir(folder.path())
        .args(words.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(until(|| folder.path().join("kept/slabyard.3.out").exists()));
    // SAFETY: the tool is a child of this process, and is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGINT) };
    let output = tool.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 2), "{}", stderr(&output));
    let json = json(folder.path(), "r.json");
    assert_eq!(json["interrupted"], 2);
    let rounds = json["rounds"].as_u64().unwrap() as usize;
    assert!((2..1000).contains(&rounds), "{rounds}");
    for one in json["allocators"].as_array().unwrap() {
        assert_eq!(one["cpu_s"]["runs"].as_array().unwrap().len(), rounds);
    }
    assert!(
        stdout(&output).contains("page faults"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn an_interrupt_before_there_are_figures_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let files = || std::fs::read_dir(&temporary).unwrap().count();
    let words = "compare --run -a slabyard --keep kept --json r.json -- sleep 20";
    let tool = tool_that_heeds_signals()
        .current_dir(folder.path())
        .args(words.split(' '))
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(until(|| folder.path().join("kept/glibc.0.err").exists()));
    assert_eq!(files(), 1, "the library's folder");
    // SAFETY: the tool is a child of this process, and is not waited for yet.
    unsafe { libc::kill(tool.id() as libc::pid_t, libc::SIGTERM) };
    let output = tool.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("interrupted before the first round"),
        "{said}"
    );
    assert!(stdout(&output).is_empty() && !folder.path().join("r.json").exists());
    assert_eq!(files(), 0);
}

#[test]
fn wrong_words_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("full")).unwrap();
    std::fs::write(folder.path().join("full/mine"), "").unwrap();
    std::fs::write(folder.path().join("r.json"), "").unwrap();
    for (words, status, why) in [
        ("run", 2, "required"),
        ("compare --run", 2, "required"),
        ("compare --run x.syrec", 2, "PROGRAM"),
        (
            "compare --run --page p.html -- true",
            2,
            "cannot be used with",
        ),
        (
            "compare --run --no-verify -- true",
            2,
            "cannot be used with",
        ),
        ("compare --same-output x.syrec", 2, "PROGRAM"),
        ("compare --replay x.syrec", 2, "PROGRAM"),
        ("compare --replay --same-output -- true", 2, "--same-output"),
        ("compare --replay --run -- true", 2, "--run"),
        ("compare --run --times 0 -- true", 2, "0 is not in 1..=1000"),
        (
            "compare --run -a umem -- true",
            2,
            "--allocator umem=PATH names",
        ),
        ("compare --run -a =x -- true", 2, "NAME=PATH"),
        (
            "compare --replay -a mine=x.so -- true",
            2,
            "a replay has no libraries",
        ),
        (
            "compare -a umem -- true",
            2,
            "there are slabyard, slabyard-caches, glibc",
        ),
        ("compare --run -a mine=no.so -- true", 1, "cannot use no.so"),
        (
            "compare --run --keep full -- true",
            1,
            "full is not empty; --force",
        ),
        (
            "compare --run --json r.json -- true",
            1,
            "r.json exists; --force",
        ),
    ] {
        let said = ends_with(folder.path(), words.split(' '), status);
        assert!(said.contains(why), "{words}: {said}");
    }
}
