//! Tests of the tool as a user runs it, on real programs.

mod common;

use common::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn record_threads() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "threads", &[]);
    let words = ["record", "-o", "t.syrec", program.to_str().unwrap()];
    ends_with(folder.path(), words, 7);
    let file = folder.path().join("t.syrec");
    (folder, file)
}

#[test]
fn every_operation_of_threads_and_children_is_recorded() {
    let (folder, _) = record_threads();
    let info = info(folder.path(), "t.syrec");
    // Each thread adds an allocation of libc's to the program's own.
    assert!(
        (750 + 100..750 + 120).contains(&number(&info, "malloc")),
        "{info}"
    );
    assert!((750..770).contains(&number(&info, "calloc")), "{info}");
    assert_eq!(number(&info, "aligned"), 1500, "{info}");
    assert_eq!(number(&info, "realloc"), 300, "{info}");
    assert!((3200..3220).contains(&number(&info, "free")), "{info}");
    assert!(number(&info, "by another thread") >= 3000, "{info}");
    assert_eq!(number(&info, "refused to program"), 1, "{info}");
    let processes = processes(&info);
    assert_eq!(processes.len(), 2, "{info}");
    assert_eq!(processes[1].0, 100);
    assert!(processes[1].1.ends_with("(forked)"));
}

#[test]
fn info_tells_what_lifetimes_cost() {
    let (folder, _) = record_threads();
    let output = done(folder.path(), ["info", "--lifetimes", "t.syrec"]);
    let text = stdout(&output);
    assert!(text.contains("the process is threads."), "{text}");
    assert!(text.contains("pages, all objects together"), "{text}");
    assert!(
        text.contains("long-lived objects apart would free"),
        "{text}"
    );
}

/// The recorder is not notified of the last free of such a thread.
#[test]
fn frees_of_a_thread_that_ends_are_written_in_blocks_and_leave_no_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "leaving", &[]);
    let words = ["record", "-o", "l.syrec", program.to_str().unwrap()];
    let output = done(folder.path(), words);
    let info = info(folder.path(), "l.syrec");
    assert!(number(&info, "malloc") >= 200_000, "{info}");
    assert!(number(&info, "free") >= 200_000, "{info}");
    let size = folder.path().join("l.syrec").metadata().unwrap().len();
    assert!(size < 10 * number(&info, "operations"), "{info}");
    let buffers: u32 = stdout(&output).trim().parse().unwrap();
    assert!((1..=10).contains(&buffers), "{buffers} buffers");
}

#[test]
fn all_allocators_replay_it_and_keep_every_byte() {
    let (folder, _) = record_threads();
    let arguments = ["replay", "t.syrec", "--repeats", "1", "--json", "t.json"];
    let output = done(folder.path(), arguments);
    let json = json(folder.path(), "t.json");
    let all = json["measurement"]["allocators"].as_array().unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    let mut expected = vec!["slabyard", "slabyard-caches", "glibc"];
    if cfg!(feature = "peers") {
        expected.extend(["mimalloc", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc"]);
    }
    assert_eq!(names, expected);
    for one in all {
        let name = &one["name"];
        assert!(one["checked"].as_u64().unwrap() >= 3400, "{name}");
        assert_eq!(one["refused"], 0, "{name}");
        assert!(one["failure"].is_null(), "{name}");
        assert!(
            one["peak_resident"]["median"].as_f64().unwrap() > 1e6,
            "{name}"
        );
        assert!(one["all"]["calls"].as_u64().unwrap() > 5000, "{name}");
        assert!(stdout(&output).contains(name.as_str().unwrap()));
    }
    assert_eq!(json["summary"]["unknown_frees"], 0);
}

/// The first objects of an allocator that starts before `main` lie in memory that it took then.
#[test]
fn no_peak_is_below_what_was_live() {
    let folder = tempfile::tempdir().unwrap();
    let script = "my @a = map { \"x\" x 200 } 1..9000; print 5";
    let words = ["record", "-o", "p.syrec", "perl", "-e", script];
    done(folder.path(), words);
    let words = "replay p.syrec -r 1 --no-verify --json p.json";
    done(folder.path(), words.split(' '));
    let json = json(folder.path(), "p.json");
    let live = json["summary"]["peak_payload"].as_f64().unwrap();
    for one in json["measurement"]["allocators"].as_array().unwrap() {
        let peak = one["peak_resident"]["median"].as_f64().unwrap();
        assert!(peak >= live, "{}: {peak} for {live}", one["name"]);
    }
}

/// Disables huge pages: with them, one written byte would make 2 MiB resident.
fn without_huge_pages() {
    // SAFETY: the call touches no memory. The programs that are started inherit the setting.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(result, 0);
}

/// Records the program `sparse` and replays it on glibc. Returns the output and the figures.
fn sparse(arguments: &[&str]) -> (String, serde_json::Value) {
    without_huge_pages();
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "sparse", &[]);
    let program = [
        &["record", "-o", "s.syrec", program.to_str().unwrap()],
        arguments,
    ]
    .concat();
    done(folder.path(), program);
    let words = "replay s.syrec -r 1 -a glibc --no-verify --json s.json";
    let output = done(folder.path(), words.split(' '));
    let said = stdout(&output).replace('\n', " ");
    (said, json(folder.path(), "s.json"))
}

/// The figures and the texts of a replay on glibc and Slabyard.
fn replayed(folder: &TempDir, more: &[&str]) -> (serde_json::Value, String, String) {
    let words = "replay p.syrec -a glibc -a slabyard -f --json p.json";
    let output = done(folder.path(), words.split(' ').chain(more.iter().copied()));
    let text = unbroken(&stdout(&output));
    (json(folder.path(), "p.json"), text, stderr(&output))
}

fn record_with(name: &str, arguments: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, name, &[]);
    let words = ["record", "-o", "p.syrec", program.to_str().unwrap()];
    done(folder.path(), [&words[..], arguments].concat());
    folder
}

#[test]
fn hundreds_of_threads_are_replayed_as_few_which_keep_every_byte() {
    let folder = record_with("many_threads", &["400"]);
    let (json, text, said) = replayed(&folder, &["-r", "1"]);
    let count = |what: &str| json["summary"][what].as_u64().unwrap();
    assert_eq!(count("threads"), 401);
    let processors = std::thread::available_parallelism().unwrap().get() as u64;
    let most = (16 * processors).max(32) + 1;
    assert!(
        count("replay_threads") <= most,
        "{}",
        count("replay_threads")
    );
    assert!(count("foreign_frees") > 1000);
    for one in json["measurement"]["allocators"].as_array().unwrap() {
        assert_eq!((&one["failure"], &one["refused"]), (&().into(), &0.into()));
        // All objects but those that the C library keeps.
        let checked = one["checked"].as_u64().unwrap();
        assert!(checked >= 400 * 500 && checked <= count("frees") + count("reallocs"));
    }
    if most < 401 {
        let merged = format!(
            "Its 401 threads were replayed as {}",
            count("replay_threads")
        );
        assert!(text.contains(&merged), "{text}");
        assert!(
            text.contains("memory is not foretold, because the program has more"),
            "{text}"
        );
    }
    assert!(
        said.contains("operations on 2 allocators in 1 round: about "),
        "{said}"
    );
    assert!(said.contains(" s, at most 1"), "{said}");
}

#[test]
fn what_a_short_time_leaves_out_is_said() {
    let folder = record_with("many_threads", &["100"]);
    let (json, text, said) = replayed(&folder, &["--within", "6"]);
    let measured = &json["measurement"];
    let is_part = measured["operations"].as_u64() < json["summary"]["operations"].as_u64();
    let (rounds, left_out) = (measured["repeats"].as_u64().unwrap(), &measured["left_out"]);
    assert!((1..=5).contains(&rounds), "{measured}");
    assert_eq!(
        text.contains("operations were replayed, because"),
        is_part,
        "{text}"
    );
    assert_eq!(text.contains("There was time for"), rounds < 5, "{text}");
    for sentence in left_out.as_array().unwrap() {
        assert!(text.contains(sentence.as_str().unwrap()), "{text}");
    }
    assert!(said.contains(" s, at most "), "{said}");
}

/// The workers that `parent` has started, and that have begun.
fn workers_of(parent: u32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or("");
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    // Before it begins, it is a copy of its parent, which waits for it.
    let is_worker = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).nth(1) == Some(b"worker")
    };
    pids.filter(is_child).filter(is_worker).collect()
}

#[test]
fn workers_that_do_not_end_are_ended_at_the_end_of_the_time() {
    let folder = record_with("many_threads", &["200"]);
    let words = "replay p.syrec -a glibc -r 1 --within 3";
    let mut tool = std::process::Command::new(env!("CARGO_BIN_EXE_slabyard"))
        .current_dir(folder.path())
        .args(words.split(' '))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stopped = 0;
    let ended = until(|| {
        for worker in workers_of(tool.id()) {
            // SAFETY: kill touches no memory; the tool has not waited for its child yet.
            stopped += u32::from(unsafe { libc::kill(worker, libc::SIGSTOP) } == 0);
        }
        tool.try_wait().unwrap().is_some()
    });
    if !ended {
        tool.kill().unwrap();
    }
    let output = tool.wait_with_output().unwrap();
    assert!(ended && stopped > 0, "{stopped}: {}", stderr(&output));
    let (code, said) = (output.status.code(), stderr(&output));
    assert!(code == Some(1) || code == Some(3), "{code:?}: {said}");
}

#[test]
fn the_program_s_own_memory_is_part_of_its_foretold_peak() {
    let folder = record_with("own_memory", &[]);
    let (json, text, _) = replayed(&folder, &["-r", "3"]);
    const MIB: f64 = 1048576.0;
    let program = &json["measurement"]["program"];
    let bytes = |value: &serde_json::Value| value.as_f64().unwrap() / MIB;
    assert!((63.0..66.0).contains(&bytes(&program["own"])), "{program}");
    assert_eq!(program["with_code"], true);
    for one in json["measurement"]["allocators"].as_array().unwrap() {
        // On every allocator, 64 MiB of its own and 4 MiB of malloc, and a little more.
        let peak = &one["program_peak"];
        assert!((68.0..80.0).contains(&bytes(&peak["bytes"])), "{peak}");
        assert!(bytes(&peak["more"]) < 6.0, "{peak}");
        assert!(peak["low"].as_f64() < peak["high"].as_f64(), "{peak}");
    }
    assert!(
        text.contains("The program's peak memory is foretold to be"),
        "{text}"
    );
    assert!(text.contains("MiB are not malloc's:"), "{text}");
}

#[test]
fn memory_of_large_objects_that_a_program_does_not_touch_is_not_replayed() {
    let (said, json) = sparse(&[]);
    let glibc = &json["measurement"]["allocators"][0];
    let peak = glibc["peak_resident"]["median"].as_f64().unwrap();
    // 64 pages, 4 MiB, and glibc's memory for the small objects.
    let least = f64::from(64 * 4096 + (4 << 20));
    assert!((least..1.1 * least).contains(&peak), "{peak} of {least}");
    assert!(!said.contains("they write on every page"), "{said}");
    let seen = json["summary"]["resident"].as_array().unwrap().iter();
    let most = seen
        .map(|sample| sample[1].as_f64().unwrap())
        .fold(0.0, f64::max);
    assert!((least..2.0 * least).contains(&most), "{most} of {least}");
}

#[test]
fn memory_of_others_that_a_program_does_not_touch_is_told_beside_the_replay_s() {
    let (said, json) = sparse(&["pieces"]);
    assert!(said.contains("they write on every page"), "{said}");
    let peak = json["summary"]["peak_resident"].as_u64().unwrap();
    assert!((256 << 10..64 << 20).contains(&peak), "{peak}");
}

#[test]
fn a_replay_that_needs_more_memory_than_there_is_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "sparse", &[]);
    let program = program.to_str().unwrap();
    let words = ["record", "-o", "s.syrec", program, "killed"];
    ends_with(folder.path(), words, 128 + 9);
    if number(&info(folder.path(), "s.syrec"), "refused to program") > 0 {
        return; // This system does not overcommit memory.
    }
    let said = ends_with(folder.path(), ["replay", "s.syrec", "-r", "1"], 1);
    assert!(said.contains("a replay needs"), "{said}");
}

#[test]
fn rounds_go_on_until_the_wanted_precision_or_the_end_of_the_time() {
    let (folder, _) = record_threads();
    let words = "replay t.syrec -r 2 -a glibc -a slabyard --no-verify -f --json t.json";
    let runs = |more: &[&str]| {
        let output = done(folder.path(), words.split(' ').chain(more.iter().copied()));
        let figures = json(folder.path(), "t.json")["measurement"].take();
        let said = stdout(&output).replace('\n', " ");
        let missed = said.contains("was requested. A larger --within");
        (figures, missed)
    };
    let (figures, missed) = runs(&[]);
    assert_eq!((&figures["repeats"], missed), (&2.into(), false));
    let (figures, missed) = runs(&["--precision", "0.1%", "--within", "6"]);
    assert!(figures["repeats"].as_u64().unwrap() > 2, "{figures}");
    let reached = figures["precision"].as_f64().unwrap() <= 0.001; // which can happen, but rarely
    assert_eq!(missed, !reached, "{figures}");
}

#[test]
fn compare_records_replays_and_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare -r 1 -a glibc -a slabyard --page".split(' ');
    let script = "my @a = map { \"x\" x ($_ % 300) } 1..20000; print 5";
    let command = ["my page.html", "--", "perl", "-e", script];
    let output = done(folder.path(), words.chain(command));
    assert!(stdout(&output).starts_with('5'), "{}", stdout(&output));
    assert!(stdout(&output).contains("The page: my page.html"));
    let page = std::fs::read_to_string(folder.path().join("my page.html")).unwrap();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(&page, options).unwrap();
    assert!(page.contains("What perl costs on each allocator"));
    assert!(folder.path().join("perl.syrec").exists());
}

#[test]
fn a_shell_and_its_children_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let script = "perl -e '$x = \"a\" x 99' & (perl -e 'exit 2'); wait; exec perl -e 'print 1'";
    let output = slabyard(
        folder.path(),
        ["record", "-o", "s.syrec", "sh", "-c", script],
    );
    assert_eq!(stdout(&output), "1");
    let info = info(folder.path(), "s.syrec");
    let perls = processes(&info)
        .iter()
        .filter(|(_, command)| command.starts_with("perl "))
        .count();
    assert_eq!(perls, 3, "{info}");
    assert!(!stderr(&output).contains("killed"), "{}", stderr(&output));
}

/// The program allocates ten objects of 4321 bytes before it ends in each way.
#[test]
fn nothing_is_lost_however_a_program_ends() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "ways_out", &[]);
    let program = program.to_str().unwrap();
    let ways = [
        ("return", 3, 1),
        ("exit", 3, 1),
        ("_exit", 3, 1),
        ("quick_exit", 3, 1),
        ("abort", 134, 1),
        ("execv", 3, 2),
        ("execvp", 3, 2),
        ("execve", 3, 2),
        ("execl", 3, 2),
        ("execlp", 3, 2),
        ("execle", 3, 2),
        ("vfork", 3, 1),
        ("closed", 3, 1),
    ];
    for (way, code, images) in ways {
        let words = ["record", "-f", "-o", "w.syrec", program, way];
        ends_with(folder.path(), words, code);
        let info = info(folder.path(), "w.syrec");
        let line = info
            .lines()
            .find(|line| line.trim_start().starts_with("8.0 KiB"))
            .unwrap();
        let count: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        assert!(
            count >= 10 * images && count < 10 * images + 5,
            "{way}: {info}"
        );
    }
}

#[test]
fn a_fork_that_nobody_announced_has_a_recording_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "ways_out", &[]);
    let program = program.to_str().unwrap();
    let words = ["record", "-o", "h.syrec", program, "hidden"];
    ends_with(folder.path(), words, 3);
    let info = info(folder.path(), "h.syrec");
    let processes = processes(&info);
    assert_eq!(processes.len(), 2, "{info}");
    assert!(
        processes[1].0 > 50_000 && processes[1].0 <= 100_000,
        "{info}"
    );
    assert!(processes[0].0 < 100, "{info}");
}

#[test]
fn what_cannot_be_recorded_is_said_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(&folder, "ways_out", &["-static"]);
    let said = ends_with(folder.path(), ["record", program.to_str().unwrap()], 125);
    assert!(said.contains("statically linked"), "{said}");
    let said = ends_with(folder.path(), ["record", "/no/such/program"], 125);
    assert!(
        said.contains("there is no program /no/such/program"),
        "{said}"
    );
}

#[test]
fn a_recording_is_not_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("true.syrec"), "mine").unwrap();
    let said = ends_with(folder.path(), ["record", "true"], 125);
    assert!(said.contains("exists"), "{said}");
    assert_eq!(
        std::fs::read(folder.path().join("true.syrec")).unwrap(),
        b"mine"
    );
}

/// A tool without peers says how to get them, and refuses those that are not there with the same words.
#[test]
fn a_tool_without_peers_says_how_to_get_them() {
    let (folder, _) = record_threads();
    let how = "built with --features peers, it replays on them too";
    let without = !cfg!(feature = "peers");
    for (more, is_told) in [("", without), (" -a glibc", false)] {
        let words = format!("compare t.syrec -r 1 --force --page p.html{more}");
        let output = done(folder.path(), words.split(' '));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains(how), is_told, "{said}");
    }
    if without {
        let words = "replay t.syrec -a mimalloc".split(' ');
        let said = ends_with(folder.path(), words, 2);
        assert!(said.contains(how), "{said}");
    }
}

#[test]
fn compare_overwrites_nothing_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let measure = ["compare", "-r", "1", "-a", "glibc", "--json", "mine.json"];
    let program = ["--", "perl", "-e", "print 1"];
    let words = |more: &[&'static str]| [&measure[..], more, &program].concat();
    for name in ["perl.syrec", "perl.html", "mine.json"] {
        std::fs::write(path(name), "mine").unwrap();
        let said = ends_with(folder.path(), words(&[]), 1);
        assert!(said.contains(&format!("{name} exists; --force")), "{said}");
        assert_eq!(std::fs::read(path(name)).unwrap(), b"mine");
        let others = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(others, 1, "nothing is written, and the program not run");
        std::fs::remove_file(path(name)).unwrap();
    }
    done(folder.path(), words(&["-o", "new.syrec"]));
    assert!(path("new.syrec").exists() && path("new.html").exists());
    done(folder.path(), words(&["-o", "new.syrec", "-f"]));
}

#[test]
fn caches_for_the_hottest_sizes_are_a_row_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = "my @a = map { [$_] } 1..50000; print 5";
    let words = ["record", "-o", "p.syrec", "perl", "-e", script];
    done(folder.path(), words);
    let words = "replay p.syrec -r 1 -a slabyard -a slabyard-caches --json p.json";
    let out = stdout(&done(folder.path(), words.split(' ')));
    assert!(out.contains("\nslabyard-caches "), "{out}");
    assert!(out.contains("object caches (sy_cache_alloc)"), "{out}");
    let json = json(folder.path(), "p.json");
    assert_eq!(json["summary"]["hot"].as_array().unwrap().len(), 3);
    let row = &json["measurement"]["allocators"][1];
    assert!(row["checked"].as_u64().unwrap() > 1000, "{row}");
    assert_eq!(row["refused"], 0);
}

#[test]
fn a_damaged_recording_is_refused_with_its_offset_and_salvaged_on_request() {
    let (folder, file) = record_threads();
    let whole = std::fs::read(&file).unwrap();
    let cut = whole.len() - 40;
    std::fs::write(&file, &whole[..cut]).unwrap();
    for command in ["replay", "compare", "info"] {
        let complaint = ends_with(folder.path(), [command, "t.syrec"], 1);
        let place = format!("damaged at byte {cut}");
        assert!(complaint.contains(&place), "{complaint}");
        assert!(complaint.contains("--salvage"), "{complaint}");
    }
    let words = ["replay", "t.syrec", "--salvage", "-r", "1", "-a", "glibc"];
    let out = stdout(&done(folder.path(), words));
    assert!(out.contains("The recording is damaged"), "{out}");
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_a_hint_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    let program = [0x7f; 4096];
    std::fs::write(folder.path().join("program"), program).unwrap();
    for command in ["replay", "compare", "info"] {
        let complaint = ends_with(folder.path(), [command, "program"], 1);
        assert!(
            complaint.contains("slabyard record -- PROGRAM"),
            "{complaint}"
        );
        assert!(!complaint.contains("--salvage"), "{complaint}");
        let complaint = ends_with(folder.path(), [command, "missing"], 1);
        assert!(complaint.contains("No such file"), "{complaint}");
        assert!(!complaint.contains("--salvage"), "{complaint}");
    }
}

#[test]
fn wrong_words_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        &["replay"][..],
        &["compare"],
        &["record"],
        &["replay", "x", "-a", "umem"],
        &["replay", "x", "--precision", "0"],
        &["replay", "x", "--within", "0"],
    ] {
        ends_with(folder.path(), words, 2);
    }
    let said = ends_with(folder.path(), ["replay", "x", "-a", "umem"], 2);
    assert!(said.contains("slabyard, slabyard-caches, glibc"), "{said}");
    let said = ends_with(folder.path(), ["replay", "missing.syrec"], 1);
    assert!(said.contains("missing.syrec"), "{said}");
}
