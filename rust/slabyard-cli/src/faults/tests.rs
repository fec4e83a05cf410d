use super::*;

fn plan() -> Plan {
    Plan {
        command: vec!["./a b".into(), "-x".into()],
        only: Vec::new(),
        call: None,
        from: 1,
        every: 1,
        most: None,
        time: Duration::from_secs(60),
        jobs: 1,
        all: false,
        leaks: false,
        settings: OsString::new(),
    }
}

fn run(end: End, made: bool, report: &str) -> Run {
    Run {
        end,
        made: made.then(|| "allocation".to_string()).into_iter().collect(),
        report: report.to_string(),
        output: String::new(),
    }
}

fn judged(plan: &Plan, runs: Vec<Run>) -> Faults {
    let runs = (1..).zip(runs.into_iter().map(Ok));
    judge(
        plan,
        &mut runs.collect::<Vec<_>>().into_iter(),
        &mut |_, _| (),
    )
    .unwrap()
}

#[test]
fn settings_add_to_what_there_is() {
    let mut plan = plan();
    assert_eq!(plan.settings(None), "");
    assert_eq!(plan.settings(Some(7)), "fail=*:7");
    plan.settings = "check,poison".into();
    plan.leaks = true;
    assert_eq!(plan.settings(None), "check,poison,leaks=exit");
    plan.only = vec!["order".into(), "heap-*".into()];
    let all = "check,poison,leaks=exit,fail=order|heap-*:7";
    assert_eq!(plan.settings(Some(7)), all);
    plan.call = Some("commit".into());
    plan.settings.clear();
    assert_eq!(plan.settings(Some(7)), "leaks=exit,fail=os:commit:7");
}

#[test]
fn the_command_to_see_it_again_is_a_shells() {
    assert_eq!(plan().again(7), "SLABYARD='fail=*:7' './a b' -x");
    assert_eq!(text::quoted(OsStr::new("it's")), r"'it'\''s'");
    assert_eq!(text::quoted(OsStr::new("")), "''");
}

#[test]
fn ways_to_end_are_judged() {
    let time = Duration::from_secs(5);
    let of = |end, report: &str| complaint(&run(end, true, report), time);
    assert_eq!(of(End::Exit(0), ""), None);
    assert_eq!(of(End::Exit(3), ""), None);
    assert_eq!(
        of(End::Signal(libc::SIGSEGV), "").unwrap(),
        "killed by SIGSEGV"
    );
    assert_eq!(of(End::Signal(63), "").unwrap(), "killed by signal 63");
    assert_eq!(of(End::TimeUp, "").unwrap(), "still running after 5 s");
    let report = "slabyard: double free: 0x10\n  next: look";
    assert_eq!(
        of(End::Signal(libc::SIGABRT), report).unwrap(),
        "double free: 0x10"
    );
    assert_eq!(of(End::Exit(0), report).unwrap(), "double free: 0x10");
}

#[test]
fn trying_ends_with_a_run_in_which_nothing_fails() {
    let fine = || run(End::Exit(1), true, "");
    let faults = judged(
        &plan(),
        vec![fine(), fine(), run(End::Exit(0), false, ""), fine()],
    );
    assert_eq!((faults.tried, faults.next), (2, 3));
    assert_eq!(faults.stopped, Stopped::AllTried);
    assert!(faults.findings.is_empty());
}

#[test]
fn the_first_that_is_not_survived_ends_it_unless_all_are_wanted() {
    let crash = || run(End::Signal(libc::SIGSEGV), true, "");
    let runs = || {
        vec![
            run(End::Exit(0), true, ""),
            crash(),
            crash(),
            run(End::Exit(0), false, ""),
        ]
    };
    let mut plan = plan();
    let faults = judged(&plan, runs());
    assert_eq!((faults.tried, faults.findings.len()), (2, 1));
    assert_eq!(
        (faults.findings[0].count, faults.stopped),
        (2, Stopped::AtFirst)
    );
    plan.all = true;
    let faults = judged(&plan, runs());
    assert_eq!((faults.tried, faults.findings.len()), (3, 2));
    assert_eq!(faults.stopped, Stopped::AllTried);
}

#[test]
fn results_are_taken_in_order() {
    let (send, receive) = mpsc::channel();
    for turn in [2, 0, 1, 4] {
        send.send((turn, turn + 10, Ok(run(End::Exit(0), true, ""))))
            .unwrap();
    }
    drop(send);
    let counts: Vec<u64> = in_order(receive).map(|(count, _)| count).collect();
    assert_eq!(counts, [10, 11, 12]);
}

#[test]
fn numbers_go_from_where_they_should_as_often_as_they_may() {
    let mut plan = plan();
    (plan.from, plan.every, plan.most) = (5, 3, Some(2));
    let numbers: Vec<_> = (0..3).map(|turn| number(&plan, turn)).collect();
    assert_eq!(numbers, [Some(5), Some(8), None]);
    (plan.from, plan.most) = (u64::MAX, None);
    assert_eq!(number(&plan, 1), None);
}
