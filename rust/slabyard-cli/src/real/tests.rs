use super::*;

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
        rounds: 3,
        precision: None,
        within: Duration::from_secs(9),
        same_output: false,
        keep: None,
        ended: None,
    }
}

/// Makes the results of a comparison of glibc and libraries called slabyard and torn from these
/// records.
fn summary(records: Vec<Record>, rounds: usize, plan: &Plan, status: i32) -> RealRuns {
    let contenders: Vec<Contender> = [GLIBC, "slabyard", "torn"]
        .into_iter()
        .take(records.len())
        .map(|name| Contender {
            name: name.to_string(),
            library: (name != GLIBC).then(|| crate::preload::Library::carried().unwrap()),
        })
        .collect();
    let status = ExitStatus::from_raw(status << 8);
    summarise(plan, &contenders, records, rounds, status, None)
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
    assert!(glibc.cpu_s.to_glibc.is_none());
    let ratio = ours.cpu_s.to_glibc.unwrap();
    let interval = ratio.interval.unwrap();
    assert!((ratio.ratio - 0.5).abs() < 1e-9 && interval.precision() < 1e-9);
    assert_eq!(ours.peak_bytes.figure.median, f64::from(110 << 20));
    assert_eq!(ours.page_faults.figure.median, 1100.0);
    let mean = ours.mean_resident_bytes.as_ref().unwrap();
    assert_eq!(mean.to_glibc.unwrap().ratio, 1.0);
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
    assert!(text.contains("\na b?\n3 rounds, in which"), "{text}");
    let answer =
        "CPU time is 20.0 % less than with glibc (20.0 to 20.0 %), and its peak memory is 20.0 % less";
    assert!(text.replace('\n', " ").contains(answer), "{text}");
}

#[test]
fn what_cannot_be_told_is_not_told() {
    let records = vec![record(&[100, 102, 98]), record(&[101, 97, 103])];
    let text = text::render(&summary(records, 3, &plan(), 0)).replace('\n', " ");
    assert!(
        text.contains("CPU time cannot be distinguished from that with glibc (0.8"),
        "{text}"
    );
    let once = summary(vec![record(&[100]), record(&[50])], 1, &plan(), 0);
    assert!(once.allocators[1]
        .cpu_s
        .to_glibc
        .unwrap()
        .interval
        .is_none());
    let text = text::render(&once).replace('\n', " ");
    let unsure =
        "CPU time was 0.50 of that with glibc, in runs that do not show how certain this is";
    assert!(text.contains(unsure), "{text}");
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
        summary(records, times.len(), plan, status)
            .caveats
            .join(" ")
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
        rounds: 2,
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
