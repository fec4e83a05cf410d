//! What a replay says of the program: calls, foretold memory, and how far the program may be from it.

use super::*;

#[test]
fn single_calls_that_add_up_to_something_else_are_no_explanation_in_time() {
    let report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    // For a difference of 30 ms less: the calls of allocations and frees, in milliseconds less.
    let origin = |allocations: f64, frees: f64, threads: u64| {
        let mut report = report.clone();
        (report.summary.threads, report.summary.replay_threads) = (threads, threads);
        let all = &mut report.measurement.allocators;
        all[1].calls_ns = vec![vec![allocations * 1e6], vec![frees * 1e6], vec![0.0]];
        all[0].calls_ns = vec![vec![0.0]; 3];
        let answer = answer::of(&report.summary, &report.measurement, None);
        answer.unwrap().origin
    };
    says(
        &origin(50.0, 10.0, 1),
        "allocations 50 ms less and frees 10 ms less. By size",
    );
    let much = "Single calls, each timed alone, add up to 400 ms less, which is far more. So only \
                their shares are shown. By kind of call: allocations 75 % and frees 25 %. By size, the \
                largest differences: up to 8 B 100 %.";
    assert_eq!(origin(300.0, 100.0, 1), much);
    says(
        &origin(300.0, 100.0, 4),
        "which is far more: waits for other threads and for the processor are in them. So only",
    );
    let none = "Single calls, each timed alone, do not explain this: they add up to";
    // In the other direction; of both directions and far more; nearly nothing.
    for (allocations, frees) in [(-50.0, 10.0), (500.0, -200.0), (2.0, 1.0)] {
        says(&origin(allocations, frees, 1), none);
    }
}

/// A report on a program with 100 MiB of which most is not malloc's.
fn with_own_memory(more: f64, low: f64, high: f64) -> Report {
    const MIB: f64 = 1048576.0;
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.measurement.program = Some(OnGlibc {
        bytes: 100.0 * MIB,
        with_code: true,
        own: 80.0 * MIB,
    });
    for (one, more) in report.measurement.allocators.iter_mut().zip([more, 0.0]) {
        one.program_peak = Some(Foretold {
            bytes: (100.0 + more) * MIB,
            more: more * MIB,
            low: low * MIB,
            high: high * MIB,
        });
    }
    report.answer = answer::of(&report.summary, &report.measurement, None);
    report
}

#[test]
fn memory_is_foretold_for_the_program_and_not_for_its_malloc() {
    let report = with_own_memory(12.0, 9.0, 15.5);
    let sentence =
        "The program's peak memory is foretold to be 112.0 MiB with Slabyard and 100.0 MiB \
                    with glibc, of which 80.0 MiB are not malloc's: 9.0 to 15.5 % more.";
    let answer = report.answer.as_ref().unwrap();
    assert_eq!(answer.memory_sentence, sentence);
    says_not(&answer.sentence, "memory");
    let (table, page) = (unbroken(&table::render(&report)), html::render(&report));
    says(&table, sentence);
    says(
        &table,
        "The program's own peak, foretold: glibc 100 MiB, slabyard 112 MiB (9.0 to 15.5 % more).",
    );
    says(&words_of(&page), sentence);
    says(&page, "<td>112 MiB</td><td>9.0 to 15.5 % more</td>");
    let json = serde_json::to_value(report.figures()).unwrap();
    let peak = &json["measurement"]["allocators"][0]["program_peak"];
    assert_eq!(peak["more"].as_f64(), Some(12.0 * 1048576.0));
    assert_eq!(json["answer"]["foretold"]["bytes"], peak["bytes"]);
    let said = |report: &Report| report.answer.as_ref().unwrap().memory_sentence.clone();
    let tie = said(&with_own_memory(1.0, -2.0, 4.0));
    assert!(tie.ends_with(": 2.0 % less to 4.0 % more."), "{tie}");
    let less = said(&with_own_memory(-10.0, -12.0, -8.0));
    assert!(less.ends_with(": 8.0 to 12.0 % less."), "{less}");
}

#[test]
fn why_memory_is_not_foretold_is_said() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.measurement.not_foretold = Some("only a part was replayed");
    report.answer = answer::of(&report.summary, &report.measurement, None);
    let text = unbroken(&table::render(&report));
    says(
        &text,
        "The program's own peak memory is not foretold, because only a part was replayed.",
    );
    says(&text, "and 2.0 MiB more memory at their peak");
}

#[test]
fn what_was_left_out_and_merged_is_told_everywhere() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let sentence = "There was time for 3 rounds of 5";
    assert!(!told_everywhere(&report, sentence));
    report.measurement.left_out = vec![format!("{sentence} (--within 9).")];
    assert!(told_everywhere(&report, sentence));
    let merged = "Its 501 threads were replayed as 33, because the machine has few processors";
    assert!(!told_everywhere(&report, merged));
    (report.summary.threads, report.summary.replay_threads) = (501, 33);
    assert!(told_everywhere(&report, merged));
    report.measurement.operations = 2_500_000;
    let answer = answer::of(&report.summary, &report.measurement, None).unwrap();
    says(
        &answer.sentence,
        "Replayed alone, the first 2,500,000 of 10,000,000 operations take 7.5 ms less CPU time",
    );
}

#[test]
fn how_far_the_program_may_be_depends_on_its_kind() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let of = |report: &Report| answer::of(&report.summary, &report.measurement, None).unwrap();
    (report.summary.peak_payload, report.summary.peak_objects) = (4 << 20, 40_000);
    let small = of(&report);
    says(
        &small.model_error,
        "gain 0.6 to 1.5 times as much, or take 25 % of its time less",
    );
    // A quarter of the recorded second, besides the 31 ms of the replay.
    says(&small.model_error, ": 281 ms less to 0.9 ms more.");
    let json = serde_json::to_value(&small).unwrap();
    assert_eq!(json["model"]["high_factor"], 1.5);
    assert_eq!(json["model"]["kinds"][0], "small objects");
    assert!(json["program_interval_ms"]["low"].as_f64().unwrap() < -280.0);
    (report.summary.threads, report.summary.replay_threads) = (4, 4);
    says(&of(&report).model_error, "gain 0.4 to 5.5 times as much");
    let tie = of(&with_answer([20.0, 20.6, 19.9, 20.1, 19.9], THEIRS));
    says(&tie.model_error, " ms less to ");
}
