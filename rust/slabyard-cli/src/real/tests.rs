use super::*;
use crate::preload::serving::LIBC;

fn took(cpu_ms: u64, mean_resident: Option<f64>) -> Run {
    Run {
        usage: Usage {
            wall: Duration::from_millis(cpu_ms + 1),
            user: Duration::from_millis(cpu_ms),
            peak_bytes: cpu_ms << 20,
            faults: 10 * cpu_ms,
            ..Usage::default()
        },
        mean_resident,
        served: None,
        peak_together: Some(0),
    }
}

fn record(times: &[u64]) -> Record {
    Record {
        runs: times.iter().map(|&ms| took(ms, Some(1e6))).collect(),
        failure: None,
    }
}

fn plan() -> Plan {
    Plan {
        command: vec!["a".into(), "b\u{1b}".into()],
        rounds: Some(3),
        precision: None,
        within: Duration::from_secs(9),
        same_output: false,
        keep: None,
        ended: None,
        load: None,
        before: None,
    }
}

/// Makes the results of a comparison of glibc and libraries called slabyard and torn from these
/// records.
fn summary(records: Vec<Record>, rounds: usize, plan: &Plan, status: i32) -> RealRuns {
    let contenders: Vec<Contender> = [LIBC, "slabyard", "torn"]
        .into_iter()
        .take(records.len())
        .map(|name| Contender {
            name: name.to_string(),
            library: (name != LIBC).then(|| crate::preload::Library::carried().unwrap()),
        })
        .collect();
    let status = ExitStatus::from_raw(status << 8);
    summarise(
        plan,
        &contenders,
        records,
        rounds,
        (status, &BTreeSet::new()),
        None,
    )
}

#[test]
fn every_round_begins_with_another_and_has_all() {
    assert_eq!(order(3, 0), [0, 1, 2]);
    assert_eq!(order(3, 1), [0, 2, 1]);
    assert_eq!(order(3, 2), [2, 0, 1]);
    for round in 0..9 {
        let mut all = order(4, round);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }
}

#[test]
fn figures_are_compared_with_glibc_round_by_round() {
    let records = vec![record(&[200, 220, 240, 999]), record(&[100, 110, 120])];
    let all = summary(records, 3, &plan(), 0);
    let [glibc, ours] = &all.allocators[..] else {
        panic!("{all:?}")
    };
    assert_eq!(glibc.cpu_s.figure.runs, [0.2, 0.22, 0.24]);
    assert!(glibc.cpu_s.to_first.is_none());
    let ratio = ours.cpu_s.to_first.unwrap();
    let interval = ratio.interval.unwrap();
    assert!((ratio.ratio - 0.5).abs() < 1e-9 && interval.precision() < 1e-9);
    assert_eq!(ours.peak_bytes.figure.median, f64::from(110 << 20));
    assert_eq!(ours.page_faults.figure.median, 1100.0);
    let mean = ours.mean_resident_bytes.as_ref().unwrap();
    assert_eq!(mean.to_first.unwrap().ratio, 1.0);
}

#[test]
fn a_mean_that_was_not_seen_in_all_runs_is_not_told() {
    let mut short = record(&[50, 60]);
    short.runs[1].mean_resident = None;
    let all = summary(vec![record(&[50, 60]), short], 2, &plan(), 0);
    let seen = all
        .allocators
        .iter()
        .map(|one| one.mean_resident_bytes.is_some());
    assert_eq!(seen.collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_allocator_that_failed_is_named_and_has_no_figures() {
    let mut torn = record(&[1]);
    torn.failure = Some("ends with status 1, and ends with status 0 on glibc".to_string());
    let records = vec![record(&[100, 110, 120]), record(&[80, 88, 96]), torn];
    let all = summary(records, 3, &plan(), 0);
    assert!(all.allocators[2].cpu_s.figure.runs.is_empty());
    let text = text::render(&all);
    assert!(
        text.contains("torn FAILED: the program ends with status 1, and"),
        "{text}"
    );
    let rows = text.lines().filter(|line| line.starts_with("torn "));
    assert_eq!(rows.count(), 1, "{text}");
    assert!(
        text.contains("\na b?\n\nThe program on each allocator: 3 rounds, in which"),
        "{text}"
    );
    let answer =
        "CPU time is 20.0 % less than with glibc (20.0 to 20.0 %), and its peak memory is 20.0 % less";
    assert!(text.replace('\n', " ").contains(answer), "{text}");
}

/// A single run, or runs whose ratio is unknown, have a sentence too.
#[test]
fn every_outcome_has_a_sentence_that_says_what_is_not_known() {
    let said = |records: Vec<Record>| {
        let rounds = records[0].runs.len();
        summary(records, rounds, &plan(), 0).answer.unwrap()
    };
    assert_eq!(
        said(vec![record(&[90, 100, 110]), record(&[91, 104, 107])]),
        "With Slabyard, the program's CPU time is the same as with glibc, as far as can be measured \
         (8.8 % less to 12.9 % more), and its peak memory is the same, as far as can be measured \
         (8.9 % less to 12.9 % more)."
    );
    assert_eq!(
        said(vec![record(&[100]), record(&[50])]),
        "With Slabyard, the program's CPU time was 50.0 % less than with glibc, and its peak memory \
         was 50.0 % less: one run each does not show how certain this is."
    );
    // One process, whose peak is below what can be seen, and which takes no whole tick of the clock.
    assert_eq!(
        said(vec![record(&[0, 0, 0]), record(&[0, 1, 0])]),
        "With Slabyard, the program's CPU time is too little to compare (0.33 ms, and 0.00 ms with \
         glibc), and its peak memory is below 2 MiB, too little to compare."
    );
    assert_eq!(
        said(vec![record(&[1, 1, 1]), record(&[4, 4, 4])]),
        "With Slabyard, the program's CPU time is 300 % more than with glibc (300 to 300 %), and its \
         peak memory is 4.0 MiB, and below 2 MiB with glibc."
    );
    assert_eq!(
        said(vec![record(&[10, 300, 20]), record(&[50, 51, 52])]),
        "With Slabyard, the program's CPU time varies too much to compare (10.0 ms to 300 ms with \
         glibc), and its peak memory varies too much to compare (10.0 MiB to 300 MiB with glibc)."
    );
    let mut torn = record(&[1]);
    torn.failure = Some("is ended by signal 11 (SIGSEGV), and ends with status 0 on glibc".into());
    assert_eq!(
        said(vec![record(&[100, 110]), torn]),
        "The program fails with Slabyard: it is ended by signal 11 (SIGSEGV), and ends with status 0 \
         on glibc."
    );
    assert_eq!(answer::sentence(&RealRuns::default()), None);
}

#[test]
fn without_slabyard_the_sentence_is_on_another() {
    let mut all = summary(
        vec![record(&[100, 110]), record(&[50, 55]), record(&[25, 27])],
        2,
        &plan(),
        0,
    );
    all.allocators[1].name = "other".to_string();
    let said = answer::sentence(&all).unwrap();
    assert!(said.starts_with("With torn, the program's CPU time is 75.2 % less than with glibc ("));
    assert!(said.ends_with(" Slabyard was not run."), "{said}");
    assert!(answer::better(&all).is_empty());
}

/// A reader may divide two figures of a column and gets the ratio beside them.
#[test]
fn the_tables_show_what_the_ratios_are_made_of() {
    let all = summary(
        vec![record(&[100, 100, 400]), record(&[100, 260, 240])],
        3,
        &plan(),
        0,
    );
    let rows = &text::tables(&all)[0].rows;
    assert_eq!(rows[1][..2], ["glibc", "200 ms"]);
    assert_eq!(rows[2][..3], ["slabyard", "200 ms", "1.00"]);
}

/// Another allocator is named if it surely takes less than Slabyard, and not if glibc does, with
/// which the first sentence compares.
#[test]
fn an_allocator_that_takes_surely_less_than_slabyard_is_named() {
    let said = |records| summary(records, 3, &plan(), 0);
    let ours = || record(&[80, 82, 81]);
    let all = said(vec![
        record(&[100, 101, 102]),
        ours(),
        record(&[60, 61, 62]),
    ]);
    let sentence =
        "torn takes 24.7 % less CPU time than Slabyard (21.4 to 27.9 %) and 24.7 % less \
                    peak memory (21.4 to 27.9 %).";
    assert_eq!(all.others.as_deref(), Some(sentence));
    let text = text::render(&all).replace('\n', " ");
    assert!(text.contains(&format!(" %). {sentence}")), "{text}");
    let json = serde_json::to_value(&all).unwrap();
    assert_eq!(json["others"], sentence);
    assert_eq!(json["better"][0]["figure"], "CPU time");
    assert_eq!(json["better"][1]["name"], "torn");
    assert!(json["better"][0]["to_slabyard"]["ratio"].as_f64().unwrap() < 0.76);
    // It may be as fast, it is slower, or glibc takes the least.
    for others in [
        vec![record(&[100, 101, 102]), ours(), record(&[70, 90, 80])],
        vec![record(&[100, 101, 102]), ours(), record(&[90, 91, 92])],
        vec![record(&[40, 41, 42]), ours(), record(&[60, 61, 62])],
    ] {
        assert_eq!(said(others).others, None);
    }
    let mut torn = record(&[1]);
    torn.failure = Some("ends with status 1".to_string());
    let all = said(vec![record(&[100, 101, 102]), ours(), torn]);
    assert_eq!(all.others, None);
}

/// Two allocators are better, each at something else.
#[test]
fn the_best_of_each_figure_is_named() {
    let mut all = summary(
        vec![
            record(&[100, 101, 102]),
            record(&[80, 82, 81]),
            record(&[60, 61, 62]),
        ],
        3,
        &plan(),
        0,
    );
    let mut small = all.allocators[2].clone();
    small.name = "small".to_string();
    small.cpu_s = all.allocators[0].cpu_s.clone();
    all.allocators[2].peak_bytes = all.allocators[0].peak_bytes.clone();
    all.allocators.push(small);
    let said = answer::others(&answer::better(&all)).unwrap();
    let wanted =
        "torn takes 24.7 % less CPU time than Slabyard (21.4 to 27.9 %); small takes 24.7 % \
                  less peak memory (21.4 to 27.9 %).";
    assert_eq!(said, wanted);
}

/// What makes the answer doubtful stands right below it; other caveats only in the list.
#[test]
fn doubts_stand_below_the_answer() {
    let records = vec![record(&[9, 9, 9]), record(&[8, 8, 8])];
    let all = summary(records, 3, &plan(), 7);
    let doubts = [
        "there were 3 rounds only",
        "the program ends with status 7 on glibc",
    ];
    assert_eq!(all.doubts, doubts);
    assert_eq!(all.caveats.len(), 3);
    let text = text::render(&all).replace('\n', " ");
    let line =
        "This is doubtful: there were 3 rounds only; the program ends with status 7 on glibc \
                (see the caveats below).";
    let places = [
        "With Slabyard",
        line,
        "a b?",
        "CPU time  ratio",
        "Caveats",
        "Notes",
    ]
    .map(|words| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    });
    assert!(places.is_sorted(), "{places:?} {text}");
    let json = serde_json::to_value(&all).unwrap();
    assert_eq!(json["doubts"][0], doubts[0]);
    assert!(json["caveats"][0]
        .as_str()
        .unwrap()
        .starts_with("3 rounds are too few"));
}

/// All peaks of a comparison are of the same kind.
#[test]
fn several_processes_have_a_peak_together_if_they_were_seen_together() {
    let seen = |last| {
        let mut glibc = record(&[100, 100, 100]);
        glibc.runs[0].peak_together = Some(300 << 20);
        glibc.runs[2].peak_together = last;
        summary(vec![glibc, record(&[80, 80, 80])], 3, &plan(), 0)
    };
    let mib = |all: &RealRuns| {
        let runs = &all.allocators[0].peak_bytes.figure.runs;
        runs.iter()
            .map(|bytes| bytes / 1048576.0)
            .collect::<Vec<_>>()
    };
    let together = seen(Some(200 << 20));
    assert_eq!(mib(&together), [300.0, 100.0, 200.0]);
    assert!(!text::render(&together).contains("largest process"));
    let alone = seen(None);
    assert_eq!(mib(&alone), [100.0, 100.0, 100.0]);
    let said = text::render(&alone).replace('\n', " ");
    let answer = "and the peak memory of its largest process is 20.0 % less";
    assert!(
        said.contains(answer) && said.contains("too briefly to be seen"),
        "{said}"
    );
}

#[test]
fn figures_that_may_mislead_come_with_a_reason() {
    let said = |times: &[u64], plan: &Plan, status| {
        let records = vec![record(times), record(times)];
        let caveats = summary(records, times.len(), plan, status).caveats;
        let texts: Vec<_> = caveats.iter().map(|one| one.text.as_str()).collect();
        texts.join(" ")
    };
    let steady = [100, 101, 102, 100, 101];
    assert_eq!(said(&steady, &plan(), 0), "");
    assert!(said(&steady[..1], &plan(), 0).starts_with("One round is too few"));
    assert!(said(&steady[..4], &plan(), 0).starts_with("4 rounds are too few"));
    assert!(said(&[100, 150, 101, 99, 98], &plan(), 0).contains("98.0 ms to 150 ms"));
    assert!(said(&[9; 5], &plan(), 0).starts_with("The program runs only briefly"));
    assert!(said(&steady, &plan(), 1).starts_with("The program ends with status 1 on glibc"));
    let small = said(&[1; 5], &plan(), 0);
    assert!(
        small.contains("Peaks below 2 MiB cannot be measured"),
        "{small}"
    );
    let precise = Plan {
        precision: Some(0.01),
        ..plan()
    };
    assert_eq!(said(&steady, &precise, 0), "");
    assert!(said(&steady[..1], &precise, 0).contains("ratio of CPU time is unknown"));
}

#[test]
fn rounds_go_on_until_the_precision_or_the_end_of_the_time() {
    let precise = Plan {
        rounds: Some(2),
        precision: Some(0.05),
        ..plan()
    };
    let rough = [record(&[100, 120, 90]), record(&[120, 80, 110])];
    let sure = [record(&[100, 120, 90]), record(&[50, 60, 45])];
    let (soon, late) = (Duration::ZERO, Duration::from_secs(10));
    assert!(wants_more(&precise, 1, &sure, late));
    assert!(wants_more(&precise, 3, &rough, soon));
    assert!(!wants_more(&precise, 3, &rough, late));
    assert!(!wants_more(&precise, 3, &sure, soon));
    assert!(wants_more(&plan(), 2, &sure, late) && !wants_more(&plan(), 3, &rough, soon));
}
