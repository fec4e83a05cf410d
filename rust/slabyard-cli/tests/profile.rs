//! Tests of stacks in recordings, and of what `slabyard profile` makes of them: programs of which it
//! is known who allocates what.

mod common;

use common::{done, ends_with, json, program, record_stacks, stderr, stdout};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// As compilers do it for distributions: tables, but no frame pointers.
const USUAL: [&str; 3] = ["-O2", "-g", "-fomit-frame-pointer"];

/// Records `sites` in these circumstances.
#[track_caller]
fn record(folder: &TempDir, flags: &[&str], words: &[&str]) {
    let binary = program(folder, "sites", flags);
    let command = [binary.to_str().unwrap()];
    record_stacks(
        folder.path(),
        command.into_iter().chain(words.iter().copied()),
    );
}

/// The folded stacks, with their weights.
#[track_caller]
fn folded(folder: &TempDir, arguments: &[&str]) -> BTreeMap<String, i64> {
    let words = ["profile", "sites.syrec", "--format", "folded"];
    let output = done(folder.path(), words.iter().chain(arguments));
    let line = |line: &str| {
        let (stack, value) = line.rsplit_once(' ').unwrap();
        (stack.to_string(), value.parse().unwrap())
    };
    stdout(&output).lines().map(line).collect()
}

/// The sum of the stacks that end so, and all of which begin with _start.
#[track_caller]
fn ending(stacks: &BTreeMap<String, i64>, end: &str, begin: &str) -> i64 {
    let found = stacks.iter().filter(|(stack, _)| stack.ends_with(end));
    found
        .map(|(stack, value)| {
            assert!(stack.starts_with(begin), "{stack}");
            value
        })
        .sum()
}

#[test]
fn what_is_leaked_used_at_once_and_at_the_peak_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["plain"]);
    let of = |which: &str| folded(&folder, &["--of", which, "--objects"]);
    let (leaked, at_once, all) = (of("leaked"), of("temporary"), of("allocated"));
    assert_eq!(ending(&leaked, ";main;keep", "_start"), 10);
    assert_eq!(ending(&leaked, ";main;call_in_line;in_line", "_start"), 1);
    assert_eq!(ending(&at_once, ";main;use_at_once", "_start"), 40);
    assert_eq!(ending(&at_once, ";keep", "_start"), 0);
    assert_eq!(ending(&all, ";main;keep", "_start"), 100);
    let peak = folded(&folder, &[]);
    assert_eq!(ending(&peak, ";main;keep", "_start"), 100_000);
    assert_eq!(ending(&peak, ";main;call_in_line;in_line", "_start"), 5000);
}

#[test]
fn the_table_has_lines_shares_and_sizes() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["plain"]);
    let text = stdout(&done(folder.path(), ["profile", "sites.syrec"]));
    assert!(text.starts_with("sites: 103 KiB in use at the peak\n\n97.7 KiB (95.2%)\n    keep at sites.c:18\n    main at sites.c:"), "{text}");
    let text = stdout(&done(
        folder.path(),
        ["profile", "sites.syrec", "--by", "size", "-n", "1"],
    ));
    let row: Vec<&str> = text.lines().nth(3).unwrap().split_whitespace().collect();
    assert_eq!(
        row,
        ["1,000", "B", "100", "97.7", "KiB", "97.7", "KiB", "9.8", "KiB", "0"]
    );
}

#[test]
fn the_table_by_time_ends_with_what_is_leaked() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["connections", "20", "1000"]);
    let words = ["profile", "sites.syrec", "--by", "time", "-n", "20"];
    let text = stdout(&done(folder.path(), words));
    assert!(text.starts_with("sites: 1.4 MiB at the peak\n"), "{text}");
    let rows: Vec<&str> = text.lines().skip(3).collect();
    let live = |row: &str| -> u64 {
        let of = row.split_whitespace().nth(3).unwrap();
        of.replace(',', "").parse().unwrap()
    };
    assert_eq!(rows.len(), 20, "{text}");
    // They are freed in equal steps.
    assert!((17_000..=20_000).contains(&live(rows[1])), "{text}");
    assert!((8_000..=12_000).contains(&live(rows[9])), "{text}");
    assert_eq!(live(rows[19]), 0, "{text}");
    assert!(
        rows[9].contains("############") && !rows[19].contains('#'),
        "{text}"
    );
}

#[test]
fn frame_pointers_are_followed_where_there_are_no_tables() {
    let folder = tempfile::tempdir().unwrap();
    let without = [
        "-O2",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let with_pointers = [&without[..], &["-fno-omit-frame-pointer"]].concat();
    record(&folder, &with_pointers, &["plain"]);
    let leaked = folded(&folder, &["--of", "leaked", "--objects"]);
    assert_eq!(ending(&leaked, ";main;keep", "_start"), 10);
}

#[test]
fn a_stack_that_cannot_be_unwound_is_marked_as_cut() {
    let folder = tempfile::tempdir().unwrap();
    let without = [
        "-O2",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    record(&folder, &without, &["plain"]);
    let leaked = folded(&folder, &["--of", "leaked", "--objects"]);
    assert_eq!(ending(&leaked, ";keep", "[cut]"), 10);
    let said = stderr(&done(folder.path(), ["profile", "sites.syrec"]));
    assert!(said.contains("allocations are cut"), "{said}");
}

#[test]
fn deep_stacks_keep_their_inner_frames() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["deep", "200"]);
    let deep = folded(&folder, &["--objects"]);
    assert_eq!(ending(&deep, ";go_down;go_down;keep", "_start"), 10);
    record(&folder, &USUAL, &["deep", "2000"]);
    let deeper = folded(&folder, &["--objects"]);
    assert_eq!(
        ending(&deeper, ";go_down;go_down;keep", "[cut];go_down;"),
        10
    );
}

#[test]
fn small_stacks_signal_stacks_and_children_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    for (how, count, begin) in [("signal", 20, "[cut]"), ("thread", 50, "")] {
        record(&folder, &USUAL, &[how]);
        let stacks = folded(&folder, &["--objects"]);
        assert_eq!(ending(&stacks, ";keep", begin), count, "{how}");
    }
    record(&folder, &USUAL, &["fork"]);
    let stacks = folded(&folder, &["--objects"]);
    assert_eq!(ending(&stacks, ";main;in_child;keep", "_start"), 70);
}

#[test]
fn the_stacks_of_a_program_that_was_killed_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["killed"]);
    let stacks = folded(&folder, &["--objects"]);
    assert_eq!(ending(&stacks, ";main;keep", "_start"), 60);
}

fn library(folder: &Path, name: &str) -> PathBuf {
    let source = folder.join(format!("{name}.c"));
    let text = format!(
        "#include <stdlib.h>\nvoid {name}(void **kept, int n) {{ while (n > 0) kept[--n] = malloc(8); }}\n"
    );
    std::fs::write(&source, text).unwrap();
    let made = folder.join(format!("lib{name}.so"));
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&made, &source])
        .status()
        .unwrap();
    assert!(status.success());
    made
}

#[test]
fn libraries_at_one_address_are_not_confused() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| library(folder.path(), name));
    let words = ["libraries", one.to_str().unwrap(), other.to_str().unwrap()];
    record(&folder, &USUAL, &words);
    let stacks = folded(&folder, &["--of", "allocated", "--objects"]);
    for name in [";one", ";other"] {
        assert_eq!(ending(&stacks, name, "_start;"), 30, "{stacks:?}");
    }
    std::fs::copy(&other, &one).unwrap();
    let said = stderr(&done(folder.path(), ["profile", "sites.syrec"]));
    assert!(
        said.contains("libone.so is not the file that the program used"),
        "{said}"
    );
}

#[test]
fn a_difference_shows_what_grew() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["plain"]);
    std::fs::rename(
        folder.path().join("sites.syrec"),
        folder.path().join("old.syrec"),
    )
    .unwrap();
    record(&folder, &USUAL, &["deep", "0"]);
    let changes = folded(&folder, &["--diff", "old.syrec", "--objects"]);
    assert_eq!(ending(&changes, ";main;keep", "_start"), -100);
    assert_eq!(ending(&changes, ";main;go_down;keep", "_start"), 10);
    let svg = [
        "profile",
        "sites.syrec",
        "--diff",
        "old.syrec",
        "-o",
        "change.svg",
    ];
    done(folder.path(), svg);
    assert!(std::fs::read_to_string(folder.path().join("change.svg"))
        .unwrap()
        .contains("go_down"));
}

#[test]
fn a_program_is_profiled_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "sites", &USUAL);
    let output = done(
        folder.path(),
        [
            "profile",
            "--of",
            "leaked",
            "--",
            binary.to_str().unwrap(),
            "plain",
        ],
    );
    let text = stdout(&output);
    assert!(
        text.starts_with("sites: 14.6 KiB not freed at exit\n"),
        "{text}"
    );
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the program");
}

/// The content of the fences of a page that open so.
fn fences(page: &str, opening: &str) -> Vec<String> {
    let mut parts = page.split("\n```");
    let of_kind = |part: &str| {
        part.strip_prefix(opening)?
            .strip_prefix('\n')
            .map(str::to_string)
    };
    parts.by_ref().filter_map(of_kind).collect()
}

#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profile.md");
    let page = std::fs::read_to_string(page).unwrap();
    std::fs::write(
        folder.path().join("service.c"),
        &fences(&page, "c example")[0],
    )
    .unwrap();
    let tool = Path::new(env!("CARGO_BIN_EXE_slabyard")).parent().unwrap();
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap());
    let run = |command: &str| {
        let output = Command::new("sh")
            .args(["-ec", command])
            .env("PATH", &path)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        stdout(&output)
    };
    run("cc -O2 -g -o service service.c");
    // It leaves no map behind.
    let script = "import os\nmap = f'/tmp/perf-{os.getpid()}.map'\n\
                  if os.path.exists(map): os.remove(map)\n";
    std::fs::write(folder.path().join("script.py"), script).unwrap();
    let mut commands = fences(&page, "sh");
    if Command::new("python3").arg("-V").output().is_err() {
        commands.retain(|command| !command.contains("python3"));
    }
    assert!(commands.len() >= 10, "{commands:?}");
    let said: Vec<String> = commands.iter().map(|command| run(command)).collect();
    let shown =
        "service: 490 KiB in use at the peak\n\n488 KiB (99.6%)\n    load_users at service.c:9\n";
    assert!(said[1].starts_with(shown), "{}", said[1]);
    for file in ["peak.svg", "heap.pb.gz", "peak.json", "peak.folded"] {
        assert!(
            folder.path().join(file).metadata().unwrap().len() > 100,
            "{file}"
        );
    }
}

#[test]
fn all_formats_have_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["plain"]);
    for (which, sum) in [("peak", 105_000), ("allocated", 117_000)] {
        let sum_of_folded: i64 = folded(&folder, &["--of", which]).values().sum();
        assert_eq!(sum_of_folded, sum, "{which}");
        for file in ["all.json", "all.json.gz"] {
            let words = ["profile", "sites.syrec", "--of", which, "-f", "-o", file];
            done(folder.path(), words);
        }
        let speedscope = json(folder.path(), "all.json");
        let packed = std::fs::File::open(folder.path().join("all.json.gz")).unwrap();
        let firefox: serde_json::Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(packed)).unwrap();
        let samples = [
            &speedscope["profiles"][0]["weights"],
            &firefox["threads"][0]["samples"]["weight"],
        ];
        for weights in samples {
            let weights = weights.as_array().unwrap().iter();
            let of_all: i64 = weights.map(|weight| weight.as_i64().unwrap()).sum();
            assert_eq!(of_all, sum, "{which}");
        }
    }
}

#[test]
fn go_reads_the_format_of_pprof() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("skipped: there is no go here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &USUAL, &["plain"]);
    done(
        folder.path(),
        ["profile", "sites.syrec", "-o", "heap.pb.gz"],
    );
    let top = |measure: &str| {
        let output = Command::new("go")
            .args([
                "tool",
                "pprof",
                "-top",
                "-unit=count",
                &format!("-sample_index={measure}"),
            ])
            .arg(folder.path().join("heap.pb.gz"))
            .env("HOME", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stdout(&output);
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let flat = words.next()?.to_string();
            Some((words.nth(4)?.to_string(), flat))
        };
        text.lines().filter_map(row).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(top("leaked_objects")["keep"], "10");
    assert_eq!(top("temporary_objects")["use_at_once"], "40");
}

#[test]
fn bad_requests_are_said_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    record(&folder, &USUAL, &["plain"]);
    let bytes = std::fs::read(path.join("sites.syrec")).unwrap();
    std::fs::write(path.join("cut.syrec"), &bytes[..bytes.len() / 2]).unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["profile", "none.syrec"], "cannot use none.syrec"),
        (&["profile", "cut.syrec"], "--salvage uses the part"),
        (
            &["profile", "sites.syrec", "-o", "peak.png"],
            "asks for no format",
        ),
        (
            &["profile", "sites.syrec", "--by", "size", "-o", "peak.svg"],
            "tables of one recording",
        ),
        (
            &["profile", "sites.syrec", "--process", "1"],
            "there is no process 1",
        ),
        (
            &[
                "profile",
                "sites.syrec",
                "--diff",
                "sites.syrec",
                "-o",
                "peak.svg",
            ],
            "nothing to draw",
        ),
    ];
    for (words, wanted) in cases {
        let said = ends_with(path, words, 1);
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
    assert!(!path.join("peak.png").exists() && !path.join("peak.svg").exists());
}

#[test]
fn a_recording_without_stacks_has_its_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "sites", &USUAL);
    let words = [
        "record",
        "-o",
        "bare.syrec",
        "--",
        binary.to_str().unwrap(),
        "plain",
    ];
    done(folder.path(), words);
    let said = ends_with(folder.path(), ["profile", "bare.syrec"], 1);
    assert!(said.contains("slabyard record --stacks"), "{said}");
    let sizes = stdout(&done(
        folder.path(),
        ["profile", "bare.syrec", "--by", "size"],
    ));
    assert!(sizes.contains("1,000 B            100"), "{sizes}");
}

/// A program under the drop-in malloc, which waits until the test ends. The first line that it prints
/// is its number.
struct Running {
    child: std::process::Child,
    said: BufReader<std::process::ChildStdout>,
    number: String,
}

impl Running {
    fn start(binary: &Path, options: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_slabyard"))
            .args(["run", "--"])
            .arg(binary)
            .env("SLABYARD", options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut running = Running {
            child,
            said,
            number: String::new(),
        };
        running.number = running.line();
        running
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// With a sample for each 32 KiB of 64 MiB, the standard error is 2 %.
#[test]
fn a_running_process_is_asked_for_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "sampled", &USUAL);
    let running = Running::start(&binary, "profile=32K");
    let of = |which: &str| {
        let words = [
            "profile",
            &running.number,
            "--format",
            "folded",
            "--of",
            which,
        ];
        let output = done(folder.path(), words);
        let text = stdout(&output);
        let bytes = |end: &str| -> f64 {
            let found = text.lines().filter_map(|line| line.rsplit_once(' '));
            let found = found.filter(|(stack, _)| stack.contains(";main") && stack.ends_with(end));
            found.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
        };
        (bytes(";keep"), bytes(";pass_on"))
    };
    let is_near = |bytes: f64| (bytes / 65_536_000.0 - 1.0).abs() < 0.1;
    let (kept, passed) = of("live");
    assert!(is_near(kept) && passed == 0.0, "{kept} {passed}");
    let (kept, passed) = of("allocated");
    assert!(is_near(kept) && is_near(passed), "{kept} {passed}");
    let text = stdout(&done(folder.path(), ["profile", &running.number]));
    assert!(text.starts_with("sampled: "), "{text}");
    let refused = ends_with(
        folder.path(),
        ["profile", &running.number, "--of", "peak"],
        1,
    );
    assert!(refused.contains("slabyard record --stacks"), "{refused}");
}

/// The lines about the place with this function.
fn place<'a>(text: &'a str, function: &str) -> &'a str {
    let places = text.split("\n\n");
    let of = |place: &&str| place.lines().any(|line| line.trim().starts_with(function));
    places.skip(1).find(of).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn ages_tell_a_leak_from_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "aging", &USUAL);
    let mut running = Running::start(&binary, "profile=8K");
    assert_eq!(running.line(), "done");
    // A process that pauses is judged as before.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let text = stdout(&done(folder.path(), ["leaks", &running.number]));
    assert!(text.starts_with("aging: "), "{text}");
    assert!(
        place(&text, "leak at aging.c:19").contains("A leak?"),
        "{text}"
    );
    let cache = place(&text, "replace at aging.c:26");
    assert!(cache.contains("a cache: what is old was freed"), "{text}");
    assert!(
        place(&text, "load at aging.c:15").contains("kept: nothing is new"),
        "{text}"
    );
    let row = text.lines().find(|line| line.starts_with("heap-1024"));
    assert!(row.unwrap().ends_with("A leak?"), "{text}");
    let one = stdout(&done(folder.path(), ["leaks", &running.number, "-n", "1"]));
    assert!(one.ends_with(" more: -n\n"), "{one}");
}

#[test]
fn a_difference_of_snapshots_names_the_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "aging", &USUAL);
    let mut running = Running::start(&binary, "profile=8K");
    let snapshot = |file: &str| {
        done(
            folder.path(),
            ["snapshot", &running.number, "-f", "-o", file],
        )
    };
    // Its table of samples is there once it has one.
    let has_samples = common::until(|| {
        snapshot("before");
        json(folder.path(), "before").get("stacks").is_some()
    });
    assert!(has_samples);
    assert_eq!(running.line(), "done");
    done(folder.path(), ["snapshot", &running.number, "-o", "after"]);
    let text = stdout(&done(folder.path(), ["diff", "before", "after"]));
    let (_, stacks) = text.split_once("\n+").unwrap_or_else(|| panic!("{text}"));
    let mut lines = stacks.lines();
    assert!(
        lines.next().unwrap().ends_with("estimated from samples:"),
        "{text}"
    );
    assert!(lines.any(|line| line == "    leak"), "{text}");
}

#[test]
fn a_process_without_samples_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "sampled", &USUAL);
    let running = Running::start(&binary, "");
    let said = ends_with(folder.path(), ["leaks", &running.number], 1);
    assert!(said.contains("SLABYARD=profile"), "{said}");
    let said = ends_with(folder.path(), ["profile", &running.number], 1);
    assert!(said.contains("SLABYARD=profile"), "{said}");
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let said = ends_with(folder.path(), ["profile", &other.id().to_string()], 1);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(said.contains("no Slabyard"), "{said}");
}

/// A map for perf, which is removed.
struct Map(String);

impl Map {
    fn of(process: &str) -> Self {
        Map(format!("/tmp/perf-{}.map", process.trim()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// CPython's trampolines have neither tables nor frame pointers, as CPython itself. The names stay in
/// the recording when the map is gone.
#[test]
fn functions_made_at_run_time_are_unwound_and_named() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program makes code for x86-64");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (how, flag) in [
        ("plain", "-fomit-frame-pointer"),
        ("pointers", "-fno-omit-frame-pointer"),
    ] {
        let binary = program(&folder, "made", &["-O2", "-g", flag]);
        let binary = binary.to_str().unwrap();
        let output = record_stacks(folder.path(), [binary, how]);
        drop(Map::of(&stdout(&output)));
        let stacks = folded(&folder, &["--of", "leaked", "--objects"]);
        let end = ";main;py::outer;call_inner;inner of made.js;keep";
        assert_eq!(ending(&stacks, end, "_start"), 1000, "{how}: {stacks:?}");
        let text = stdout(&done(folder.path(), ["profile", "sites.syrec"]));
        assert!(text.contains("%)\n    py::outer at made.py\n\n"), "{text}");
    }
}

#[test]
fn a_map_of_another_user_or_a_link_names_nothing() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program makes code for x86-64");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "made", &["-O2", "-g"]);
    let script = folder.path().join("with_link");
    // The program appends to the map, which is a link by then.
    let text = format!(
        "#!/bin/sh\nln -s {}/elsewhere /tmp/perf-$$.map\nexec {} pointers\n",
        folder.path().display(),
        binary.display()
    );
    std::fs::write(&script, text).unwrap();
    let output = record_stacks(folder.path(), ["sh", "with_link"]);
    drop(Map::of(&stdout(&output)));
    assert!(folder.path().join("elsewhere").exists());
    let said = stderr(&output);
    assert!(said.contains(".map are not used: it is a link."), "{said}");
    let stacks = folded(&folder, &["--of", "leaked", "--objects"]);
    let named = stacks.keys().filter(|stack| stack.contains("py::outer"));
    assert_eq!(named.count(), 0, "{stacks:?}");
}

#[test]
fn the_functions_that_a_running_process_made_have_names() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program makes code for x86-64");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = program(&folder, "made", &["-O2", "-g", "-fno-omit-frame-pointer"]);
    // With tables, a stack would end at the function made at run time.
    let running = Running::start(&binary, "profile=1K,unwind=frames");
    let _map = Map::of(&running.number);
    let words = ["profile", &running.number, "--format", "folded"];
    let text = stdout(&done(folder.path(), words));
    let end = ";main;py::outer;call_inner;inner of made.js;keep ";
    assert!(text.contains(end), "{text}");
    let leaks = stdout(&done(folder.path(), ["leaks", &running.number]));
    assert!(leaks.contains("    inner of made.js\n"), "{leaks}");
}

/// A Python with functions for perf: from 3.12 on.
fn python() -> Option<&'static str> {
    const TEST: &str = "import sys, sysconfig; \
        sys.exit(not sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE'))";
    let names = ["python3", "python3.14", "python3.13", "python3.12"];
    names.into_iter().find(|name| {
        let output = Command::new(name).args(["-c", TEST]).output();
        output.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn functions_of_python_are_shown() {
    let Some(python) = python() else {
        eprintln!("skipped: there is no python3 of version 3.12 or later");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = "\
import os
kept = []
def make_rows():
    for i in range(500):
        kept.append(bytearray(100_000))
def load():
    make_rows()
load()
print(os.getpid(), flush=True)
os._exit(0)
";
    std::fs::write(folder.path().join("load.py"), script).unwrap();
    let output = record_stacks(folder.path(), [python, "-X", "perf", "load.py"]);
    drop(Map::of(&stdout(&output)));
    let text = stdout(&done(folder.path(), ["profile", "sites.syrec"]));
    let wanted =
        "\n    py::make_rows at load.py\n    py::load at load.py\n    py::<module> at load.py\n\n";
    assert!(text.contains(wanted), "{text}");
}
