//! What the tool states and what is real, as text: a block for each program, a table for a document
//! with the misses first, and the counts.

use super::programs::{Kind, Program};
use super::stated::Replayed;
use super::verdict::{self, Ratio, Verdict, HITS_GOAL, WIDTH_GOAL};
use crate::preloaded::{OURS, PEER};
use crate::stats::median;
use crate::table::{or_dash, Table};
use slabyard_certainty::mean;

/// Runs of one allocator: those before the tool's, and those after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    pub before: Vec<f64>,
    pub after: Vec<f64>,
}

impl Runs {
    pub fn all(&self) -> Vec<f64> {
        [self.before.as_slice(), &self.after].concat()
    }
}

/// One allocator's figures of one program: milliseconds of CPU time, KiB at the peak.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub who: &'static str,
    pub cpu: Runs,
    pub peak: Runs,
    /// What the tool states; none for glibc.
    pub stated_cpu: Option<Ratio>,
    pub stated_peak: Option<Ratio>,
    /// The tool's own runs.
    pub tool_cpu: Vec<f64>,
    pub tool_peak: Vec<f64>,
}

/// A program and the figures of all allocators, glibc first.
#[derive(Clone, Debug)]
pub struct Found {
    pub program: Program,
    pub sentence: String,
    pub replayed: Option<Replayed>,
    pub entries: Vec<Entry>,
}

/// The verdicts on an allocator.
struct Line<'a> {
    entry: &'a Entry,
    cpu: Option<Verdict>,
    peak: Option<Verdict>,
}

impl Line<'_> {
    fn both(&self) -> [Option<Verdict>; 2] {
        [self.cpu, self.peak]
    }

    fn misses(&self) -> usize {
        let all = self.both().into_iter().flatten();
        all.filter(|verdict| !verdict.is_hit()).count()
    }
}

fn verdict(stated: Option<Ratio>, ours: &Runs, peer: &Runs) -> Option<Verdict> {
    Some(Verdict {
        stated: stated?,
        real: verdict::ratio(&ours.all(), &peer.all())?,
    })
}

impl Found {
    fn entry(&self, who: &str) -> Option<&Entry> {
        self.entries.iter().find(|one| one.who == who)
    }

    /// All allocators but glibc.
    fn lines(&self) -> Vec<Line<'_>> {
        let Some(peer) = self.entry(PEER) else {
            return Vec::new();
        };
        let others = self.entries.iter().filter(|one| one.who != PEER);
        others
            .map(|entry| Line {
                entry,
                cpu: verdict(entry.stated_cpu, &entry.cpu, &peer.cpu),
                peak: verdict(entry.stated_peak, &entry.peak, &peer.peak),
            })
            .collect()
    }

    fn ours(&self) -> Option<Line<'_>> {
        self.lines().into_iter().find(|line| line.entry.who == OURS)
    }
}

/// A ratio as a difference in percent: `-12.3`.
fn percent(ratio: f64) -> String {
    format!("{:+.1}", (ratio - 1.0) * 100.0)
}

fn stated(ratio: Ratio) -> String {
    let (low, high) = (ratio.interval.low, ratio.interval.high);
    format!("{} to {}", percent(low), percent(high))
}

fn real(ratio: Ratio) -> String {
    let half = (ratio.interval.high - ratio.interval.low) * 50.0;
    format!("{} ±{half:.1}", percent(ratio.mean))
}

/// The real ratio before and after the tool's runs, which shows drift of the machine.
fn halves(ours: &Runs, peer: &Runs) -> String {
    let ratio = |ours: &[f64], peer: &[f64]| percent(mean(ours) / mean(peer));
    let before = ratio(&ours.before, &peer.before);
    format!("{before}, {}", ratio(&ours.after, &peer.after))
}

fn mark(verdict: &Verdict) -> &'static str {
    match (verdict.is_hit(), verdict.agrees()) {
        (true, _) => "",
        (false, true) => "missed, within both intervals",
        (false, false) => "MISSED",
    }
}

/// One program as text.
pub fn block(found: &Found) -> String {
    let text = format!("\n{}: {}\n", found.program.name, found.program.says);
    let Some(peer) = found.entry(PEER) else {
        return text;
    };
    let runs = format!(
        "  {PEER}: {:.1} ms, {:.1} MiB; {} rounds of the tool, {} before and {} after\n  {}\n",
        mean(&peer.cpu.all()),
        mean(&peer.peak.all()) / 1024.0,
        peer.tool_cpu.len(),
        peer.cpu.before.len(),
        peer.cpu.after.len(),
        found.sentence
    );
    let of = |what, verdict: FigureOf, runs: fn(&Entry) -> &Runs| {
        let mut table = Table::new(what, ["stated", "real", "before, after"]);
        for line in found.lines() {
            if let Some(verdict) = verdict(&line) {
                let cells = [
                    stated(verdict.stated),
                    real(verdict.real),
                    halves(runs(line.entry), runs(peer)),
                    mark(&verdict).to_owned(),
                ];
                table.line(line.entry.who, cells);
            }
        }
        table.text()
    };
    let cpu = of("CPU %", |line| line.cpu, |entry| &entry.cpu);
    let peak = of("peak %", |line| line.peak, |entry| &entry.peak);
    text + &runs + &cpu + &peak
}

fn cells(verdict: Option<Verdict>) -> [String; 2] {
    let is_hit = verdict.is_none_or(|verdict| verdict.is_hit());
    let cells = [
        or_dash(verdict, |verdict| stated(verdict.stated)),
        or_dash(verdict, |verdict| real(verdict.real)),
    ];
    match is_hit {
        true => cells,
        false => cells.map(|cell| format!("**{cell}**")),
    }
}

/// A table of Slabyard's figures for a document, with the misses first and bold.
pub fn table(found: &[Found]) -> String {
    let mut lines: Vec<(&str, Line)> = found
        .iter()
        .filter_map(|one| Some((one.program.name, one.ours()?)))
        .collect();
    lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.misses()));
    let heads = ["CPU, stated", "CPU, real", "peak, stated", "peak, real"];
    let mut table = Table::new("program", heads);
    for (name, line) in lines {
        table.line(name, line.both().map(cells).concat());
    }
    let title = "as stated and as it is (bold: missed)";
    table.below(&format!("Difference of {OURS} to {PEER} in %, {title}"))
}

/// The cells about one figure over all programs and allocators.
fn counts(all: &[Verdict]) -> [String; 4] {
    let count = |is: fn(&Verdict) -> bool| all.iter().filter(|one| is(one)).count();
    let hits = count(Verdict::is_hit);
    let widths: Vec<f64> = all.iter().map(Verdict::width).collect();
    let width = median(&widths).unwrap_or(0.0);
    let is_met = hits as f64 >= HITS_GOAL * all.len() as f64 && width < WIDTH_GOAL;
    [
        format!("{hits} of {}", all.len()),
        count(Verdict::agrees).to_string(),
        format!("{:.1} points", width * 100.0),
        if is_met { "yes" } else { "**no**" }.to_owned(),
    ]
}

/// One of an allocator's two verdicts.
type FigureOf = fn(&Line) -> Option<Verdict>;

/// How many stated intervals hold the real figure, and how wide they are.
pub fn summary(found: &[Found]) -> String {
    let lines: Vec<Line> = found.iter().flat_map(Found::lines).collect();
    let cpu = |line: &Line| line.cpu;
    let peak = |line: &Line| line.peak;
    let figures: [(&str, FigureOf); 2] = [("CPU time", cpu), ("peak", peak)];
    let heads = [
        "the stated interval holds the real figure",
        "the two agree, by both intervals",
        "median width",
        "goal met",
    ];
    let mut table = Table::new("figure", heads);
    for (what, of) in figures {
        let is_ours = |line: &&Line| line.entry.who == OURS;
        let ours: Vec<Verdict> = lines.iter().filter(is_ours).filter_map(of).collect();
        let all: Vec<Verdict> = lines.iter().filter_map(of).collect();
        table.line(&format!("{what}, {OURS}"), counts(&ours));
        table.line(&format!("{what}, all allocators"), counts(&all));
    }
    table.below(&format!(
        "Goal: {:.0} % held, median width below {:.0} points",
        HITS_GOAL * 100.0,
        WIDTH_GOAL * 100.0
    ))
}

/// How far a program's real gain by Slabyard was from that of its replay.
struct Model {
    kind: Kind,
    /// Real by replayed; None if one of the two may be none.
    factor: Option<f64>,
    /// Real less replayed.
    mib: f64,
}

fn model(found: &Found) -> Option<Model> {
    let (ours, peer) = (found.entry(OURS)?, found.entry(PEER)?);
    let replayed = found.replayed?;
    let real = found.ours()?.cpu?.real;
    let gain = mean(&ours.cpu.all()) - mean(&peer.cpu.all());
    let peak = mean(&ours.peak.all()) - mean(&peer.peak.all());
    let is_sure = replayed.is_sure && !real.interval.holds(1.0);
    Some(Model {
        kind: found.program.kind,
        factor: is_sure.then_some(gain / replayed.cpu_ms),
        mib: (peak - replayed.peak_kib) / 1024.0,
    })
}

fn range(values: &[f64], worded: impl Fn(f64) -> String) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match values.len() {
        0 => "-".to_owned(),
        1 => worded(least),
        _ => format!("{} to {}", worded(least), worded(most)),
    }
}

/// The error of the replays, by kind of program: what a program gains for each millisecond that its
/// replayed allocations gain.
pub fn models(found: &[Found]) -> String {
    let all: Vec<Model> = found.iter().filter_map(model).collect();
    let heads = ["programs", "time, factor", "peak, MiB"];
    let mut table = Table::new("kind of program", heads);
    for kind in Kind::ALL {
        let here: Vec<&Model> = all.iter().filter(|one| one.kind == kind).collect();
        if here.is_empty() {
            continue;
        }
        let factors: Vec<f64> = here.iter().filter_map(|one| one.factor).collect();
        let peaks: Vec<f64> = here.iter().map(|one| one.mib).collect();
        let cells = [
            here.len().to_string(),
            range(&factors, |factor| format!("{factor:.1}")),
            range(&peaks, |mib| format!("{mib:+.1}")),
        ];
        table.line(kind.says(), cells);
    }
    table.below(
        "Replays: the program's own gain, divided by the gain of its replayed allocations (where \
         both are sure); its peak's difference less the replay's",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::programs::ALL;
    use slabyard_certainty::Interval;

    fn runs(values: [f64; 2]) -> Runs {
        Runs {
            before: values.to_vec(),
            after: values.to_vec(),
        }
    }

    fn around(mean: f64, half: f64) -> Option<Ratio> {
        let interval = Interval {
            low: mean - half,
            high: mean + half,
        };
        Some(Ratio { mean, interval })
    }

    fn found(name: &str, stated: f64) -> Found {
        let entry = |who, cpu: [f64; 2], stated_cpu| Entry {
            who,
            cpu: runs(cpu),
            peak: runs([10240.0, 10240.0]),
            stated_cpu,
            stated_peak: stated_cpu.and_then(|_| around(1.0, 0.01)),
            ..Entry::default()
        };
        Found {
            program: *ALL.iter().find(|one| one.name == name).unwrap(),
            sentence: "With Slabyard, less.".to_owned(),
            replayed: Some(Replayed {
                cpu_ms: -10.0,
                is_sure: true,
                peak_kib: 1024.0,
            }),
            entries: vec![
                entry(PEER, [200.0, 202.0], None),
                entry(OURS, [180.0, 181.8], around(stated, 0.02)),
                entry("mimalloc", [190.0, 191.9], around(0.95, 0.01)),
            ],
        }
    }

    #[test]
    fn a_block_shows_what_is_stated_and_what_is_real() {
        let text = block(&found("json", 0.8));
        let line = |who: &str| {
            let mut lines = text.lines().map(str::trim);
            let line = lines.find(|line| line.starts_with(who)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line("slabyard"),
            "slabyard -22.0 to -18.0 -10.0 ±0.0 -10.0, -10.0 MISSED"
        );
        assert_eq!(
            line("mimalloc"),
            "mimalloc -6.0 to -4.0 -5.0 ±0.0 -5.0, -5.0"
        );
    }

    #[test]
    fn misses_come_first_and_are_counted() {
        let all = [found("json", 0.9), found("lua", 0.8)];
        let text = table(&all);
        let row = "| lua | **-22.0 to -18.0** | **-10.0 ±0.0** | -1.0 to +1.0 | +0.0 ±0.0 |";
        let (lua, json) = (text.find(row), text.find("| json | -12.0 to -8.0"));
        assert!(lua.is_some() && json > lua, "{text}");
        let text = summary(&all);
        for expected in [
            "| CPU time, slabyard | 1 of 2 | 1 | 4.0 points | **no** |",
            "| CPU time, all allocators | 3 of 4 | 3 | 3.0 points | **no** |",
            "| peak, slabyard | 2 of 2 | 2 | 2.0 points | yes |",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn the_error_of_replays_is_shown_by_kind() {
        let mut unsure = found("lua", 0.9);
        unsure.replayed.as_mut().unwrap().is_sure = false;
        let text = models(&[found("json", 0.9), found("map", 0.9), unsure]);
        assert!(
            text.contains("| mostly small objects | 2 | 2.0 to 2.0 | -1.0 to -1.0 |"),
            "{text}"
        );
        assert!(text.contains("databases | 1 | - | -1.0 |"), "{text}");
    }
}
