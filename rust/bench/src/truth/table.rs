//! Predicted and real figures as text: a block for each program, two tables for a document, and the
//! number of predictions within the goals.

use super::contender::PEER;
use super::verdict::{self, Pair, Verdict, PEAK_GOAL, TIME_GOAL};
use slabyard_certainty::mean;
use std::fmt::Write;

/// One allocator's figures of one program: milliseconds of CPU time, KiB at the peak.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub who: &'static str,
    pub cpu: Pair,
    pub peak: Pair,
}

/// A program and the figures of all allocators, glibc first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub program: &'static str,
    pub says: &'static str,
    pub entries: Vec<Entry>,
}

impl Found {
    fn peer(&self) -> Option<&Entry> {
        self.entries.iter().find(|one| one.who == PEER)
    }

    /// The entries of all allocators but glibc.
    fn times(&self) -> Vec<(&'static str, Verdict)> {
        let Some(peer) = self.peer() else {
            return Vec::new();
        };
        let others = self.entries.iter().filter(|one| one.who != PEER);
        others
            .filter_map(|one| Some((one.who, verdict::time(&one.cpu, &peer.cpu)?)))
            .collect()
    }

    fn peaks(&self) -> Vec<(&'static str, Verdict)> {
        let all = self.entries.iter();
        all.filter_map(|one| Some((one.who, verdict::peak(&one.peak)?)))
            .collect()
    }

    fn order(&self) -> (usize, usize) {
        let times: Vec<Pair> = self.entries.iter().map(|one| one.cpu.clone()).collect();
        verdict::order(&times)
    }
}

fn verdict_of(all: &[(&'static str, Verdict)], who: &str) -> Option<Verdict> {
    all.iter().find(|one| one.0 == who).map(|one| one.1)
}

fn half_width(low: f64, high: f64) -> f64 {
    (high - low) / 2.0
}

fn percent(share: f64) -> String {
    format!("{:+.1}", share * 100.0)
}

/// A share and its error in percent: `-12.3 +-0.4`.
fn percent_within(value: f64, low: f64, high: f64) -> String {
    format!("{} ±{:.1}", percent(value), half_width(low, high) * 100.0)
}

fn mib(kib: f64) -> String {
    format!("{:.1}", kib / 1024.0)
}

/// Whether the order to glibc is right; `-` if the real difference may be zero.
fn direction(verdict: &Verdict) -> &'static str {
    match (verdict.is_certain(), verdict.is_right_direction()) {
        (false, _) => "-",
        (true, true) => "right",
        (true, false) => "WRONG",
    }
}

fn missed(verdict: &Verdict) -> &'static str {
    if verdict.within_goal {
        ""
    } else {
        "missed"
    }
}

fn time_line(who: &str, verdict: &Verdict) -> String {
    let (real, predicted) = (verdict.real_interval, verdict.predicted_interval);
    format!(
        "    {who:<12} {:>14} {:>14} {:>8} {:>8} {:>7}  {}\n",
        percent_within(verdict.real, real.low, real.high),
        percent_within(verdict.predicted, predicted.low, predicted.high),
        percent(verdict.error),
        format!("{:+.0} %", verdict.relative() * 100.0),
        direction(verdict),
        missed(verdict)
    )
}

fn peak_line(who: &str, verdict: &Verdict) -> String {
    let real = verdict.real_interval;
    format!(
        "    {who:<12} {:>14} {:>14} {:>8} {:>8} {:>7}  {}\n",
        format!(
            "{} ±{}",
            mib(verdict.real),
            mib(half_width(real.low, real.high))
        ),
        mib(verdict.predicted),
        format!("{:+.1}", verdict.error / 1024.0),
        format!("{:+.0} %", verdict.relative() * 100.0),
        "",
        missed(verdict)
    )
}

/// One program as text.
pub fn block(found: &Found) -> String {
    let mut text = format!("\n{}: {}\n", found.program, found.says);
    if let Some(peer) = found.peer() {
        let _ = writeln!(
            text,
            "  {PEER}: {:.1} ms, of which the replay puts {:.1} down to malloc",
            mean(&peer.cpu.real),
            mean(&peer.cpu.replayed)
        );
    }
    let head = |what: &str, unit: &str| {
        format!(
            "  {what:<14} {:>14} {:>14} {:>8} {:>8} {:>7}\n",
            format!("real {unit}"),
            format!("predicted"),
            "error",
            "of it",
            "order"
        )
    };
    text += &head("time", "%");
    for (who, verdict) in found.times() {
        text += &time_line(who, &verdict);
    }
    text += &head("peak", "MiB");
    for (who, verdict) in found.peaks() {
        text += &peak_line(who, &verdict);
    }
    text
}

/// A line for each program, a column for each allocator. Errors outside the goal are bold.
fn matrix(
    found: &[Found],
    names: &[&str],
    verdicts: impl Fn(&Found) -> Vec<(&'static str, Verdict)>,
    cell: impl Fn(&Verdict) -> String,
) -> String {
    let bars = "---|".repeat(names.len() + 1);
    let mut text = format!("| | {} |\n|{bars}\n", names.join(" | "));
    for one in found {
        let verdicts = verdicts(one);
        let cells = names.iter().map(|name| match verdict_of(&verdicts, name) {
            Some(verdict) if verdict.within_goal => cell(&verdict),
            Some(verdict) => format!("**{}**", cell(&verdict)),
            None => "-".to_owned(),
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", one.program, cells.join(" | "));
    }
    text
}

/// All figures as two tables for a document.
pub fn tables(found: &[Found]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in found.iter().flat_map(|one| &one.entries) {
        if !names.contains(&entry.who) {
            names.push(entry.who);
        }
    }
    let others: Vec<&str> = names.iter().copied().filter(|name| *name != PEER).collect();
    let time = |verdict: &Verdict| {
        let unsure = if verdict.is_certain() { "" } else { "=" };
        format!(
            "{}{unsure} / {}",
            percent(verdict.real),
            percent(verdict.predicted)
        )
    };
    let peak = |verdict: &Verdict| format!("{} / {}", mib(verdict.real), mib(verdict.predicted));
    format!(
        "\nTime beyond {PEER}'s, in % of the program's time on {PEER}: real / predicted (= may be none; \
         bold: outside the goal)\n\n{}\nPeak, MiB: real / predicted\n\n{}",
        matrix(found, &others, Found::times, time),
        matrix(found, &names, Found::peaks, peak)
    )
}

fn count(verdicts: &[Verdict], is: impl Fn(&Verdict) -> bool) -> String {
    let hits = verdicts.iter().filter(|verdict| is(verdict)).count();
    format!("{hits} of {}", verdicts.len())
}

/// The number of predictions within the goals.
pub fn summary(found: &[Found]) -> String {
    let all = |of: fn(&Found) -> Vec<(&'static str, Verdict)>| -> Vec<Verdict> {
        found.iter().flat_map(of).map(|one| one.1).collect()
    };
    let (times, peaks) = (all(Found::times), all(Found::peaks));
    let orders = found.iter().map(Found::order);
    let (certain, right) = orders.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let goal = |share: f64| format!("{:.0} %", share * 100.0);
    let lines = [
        format!(
            "difference to {PEER} within {} of itself: {}",
            goal(TIME_GOAL),
            count(&times, |verdict| verdict.within_goal)
        ),
        format!(
            "difference to {PEER} within 5 % of the program's time: {}",
            count(&times, |verdict| verdict.error.abs() <= 0.05)
        ),
        format!("right order, of pairs that surely differ: {right} of {certain}"),
        format!(
            "peak within {} of itself: {}",
            goal(PEAK_GOAL),
            count(&peaks, |verdict| verdict.within_goal)
        ),
    ];
    format!("\nsummary:\n  {}\n", lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::replay;

    /// The tool's JSON, without the fields that are not read.
    const JSON: &str = r#"{
        "summary": {"operations": 1000000},
        "measurement": {"allocators": [
            {"name": "glibc", "note": null, "failure": null,
             "ns_per_op": {"runs": [50.0, 51.0]}, "peak_resident": {"runs": [10485760, 10485760]}},
            {"name": "mimalloc", "note": null, "failure": null,
             "ns_per_op": {"runs": [30.0, 31.0]}, "peak_resident": {"runs": [20971520, 20971520]}},
            {"name": "tcmalloc", "note": "no per-CPU caches", "failure": null,
             "ns_per_op": {"runs": [60.0, 61.0]}, "peak_resident": {"runs": [12582912, 12582912]}},
            {"name": "rpmalloc", "note": null, "failure": "killed by signal 11",
             "ns_per_op": {"runs": []}, "peak_resident": {"runs": []}}
        ]}
    }"#;

    fn found() -> Found {
        let replayed = replay::read(JSON).unwrap();
        assert_eq!(replayed["rpmalloc"], Err("killed by signal 11".to_owned()));
        let real = [
            ("glibc", [200.0, 202.0], 10240.0),
            ("mimalloc", [180.0, 182.0], 20480.0),
            ("tcmalloc", [190.0, 192.0], 14336.0),
        ];
        let entry = |(who, cpu, peak): (&'static str, [f64; 2], f64)| {
            let replayed = replayed[who].clone().unwrap();
            Entry {
                who,
                cpu: Pair {
                    real: cpu.to_vec(),
                    replayed: replayed.cpu_ms,
                },
                peak: Pair {
                    real: vec![peak; 2],
                    replayed: replayed.peak_kib,
                },
            }
        };
        Found {
            program: "json",
            says: "texts",
            entries: real.map(entry).to_vec(),
        }
    }

    #[test]
    fn a_block_shows_real_and_predicted() {
        let text = block(&found());
        let line = |start: &str| {
            let mut lines = text.lines().map(str::trim);
            let line = lines.find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line("glibc:"),
            "glibc: 201.0 ms, of which the replay puts 50.5 down to malloc"
        );
        assert_eq!(
            line("mimalloc"),
            "mimalloc -10.0 ±0.0 -10.0 ±0.0 +0.0 +0 % right"
        );
        assert_eq!(
            line("tcmalloc"),
            "tcmalloc -5.0 ±0.0 +5.0 ±0.0 +10.0 +200 % WRONG missed"
        );
        assert_eq!(line("glibc  "), "glibc 10.0 ±0.0 10.0 +0.0 +0 %");
    }

    #[test]
    fn the_tables_set_bold_what_is_missed_and_the_summary_counts() {
        let all = [found()];
        let text = tables(&all);
        assert!(
            text.contains("| json | -10.0 / -10.0 | **-5.0 / +5.0** |"),
            "{text}"
        );
        assert!(
            text.contains("| json | 10.0 / 10.0 | 20.0 / 20.0 | **14.0 / 12.0** |"),
            "{text}"
        );
        let text = summary(&all);
        for expected in [
            "of itself: 1 of 2",
            "time: 1 of 2",
            "differ: 2 of 3",
            "itself: 2 of 3",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn json_that_is_not_the_tool_s_is_refused() {
        assert!(replay::read("{}").is_err());
        assert!(replay::read("nothing").is_err());
    }
}
