//! Reports: the same figures as text for the terminal, as an HTML page, and as JSON (by serde). All
//! three begin with the same sentences.

pub mod answer;
pub mod chart;
pub mod html;
pub mod info;
pub mod model;
pub mod table;

use crate::caveat::Caveat;
use crate::machine::Machine;
use crate::plan::Summary;
use crate::preload::serving::LIBC;
use crate::real::RealRuns;
use crate::replay::foretell::Foretold;
use crate::replay::measure::{Figure, Measured, Measurement, TCMALLOC};
use answer::Answer;
use serde::Serialize;
use slabyard_certainty::{self as certainty, Interval};

/// This number of operations is enough for a judgement: they take about 20 ms, while the start of
/// an allocator and the first use of its memory take up to 1 ms.
pub const ENOUGH_OPERATIONS: u64 = 1_000_000;

/// A replay that has this many times the program's memory does not represent the program.
const FAR_OFF: f64 = 1.25;

/// The data of a report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub file: String,
    pub file_bytes: u64,
    pub command: String,
    /// The program's name without its folder and arguments.
    pub program: String,
    /// Whether the program is Python, which has its own allocator for small objects.
    pub python: bool,
    pub damage: Option<String>,
    pub summary: Summary,
    pub measurement: Measurement,
    /// What the replay answers; `None` if Slabyard or glibc was not measured.
    pub answer: Option<Answer>,
    /// The runs of the program itself on each allocator, if there were any.
    pub runs: Option<RealRuns>,
    /// Why there were none, although they were wanted.
    pub no_runs: Option<String>,
}

/// A report as it is written to a file.
#[derive(Serialize)]
struct Figures<'a> {
    /// The sentences that come first.
    sentences: Vec<String>,
    /// Why they are doubtful.
    doubts: Vec<String>,
    #[serde(flatten)]
    report: &'a Report,
    /// The reasons why the figures of the replay may mislead.
    caveats: Vec<Caveat>,
}

impl Report {
    /// The data for JSON.
    pub fn figures(&self) -> impl Serialize + '_ {
        Figures {
            sentences: self.answers(),
            doubts: self.doubts(),
            report: self,
            caveats: self.caveats(),
        }
    }

    /// The program's peak foretold on each allocator: its name, the peak, and how far that is from
    /// the peak on glibc. Empty if the program itself was run, or if it is not foretold.
    pub fn foretold(&self) -> Vec<[String; 3]> {
        let Some(glibc) = self.measurement.program.filter(|_| self.runs.is_none()) else {
            return Vec::new();
        };
        let ranked = self.ranked().into_iter();
        let mut rows: Vec<_> = ranked
            .filter_map(|one| Some((one, one.program_peak?)))
            .collect();
        rows.sort_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes));
        let cells = |(one, peak): (&Measured, Foretold)| {
            let difference = match one.name == LIBC {
                true => "-".to_string(),
                false => answer::percents(peak.low, peak.high, glibc.bytes),
            };
            let bytes = crate::ui::bytes(peak.bytes.max(0.0) as u64);
            [named(one), bytes, difference]
        };
        rows.into_iter().map(cells).collect()
    }

    /// The runs of the program, if they have an answer.
    fn run(&self) -> Option<&RealRuns> {
        self.runs.as_ref().filter(|runs| runs.answer.is_some())
    }

    /// The sentences that come first: on the program itself, if it was run, else on the replay of
    /// its allocations.
    pub fn answers(&self) -> Vec<String> {
        match (self.run(), &self.answer) {
            (Some(runs), _) => crate::real::text::first(runs),
            (None, Some(answer)) => answer.of_replay(),
            (None, None) => vec![self.without_answer()],
        }
    }

    /// Why these sentences are doubtful, in a few words for each reason.
    pub fn doubts(&self) -> Vec<String> {
        match self.run() {
            Some(runs) => runs.doubts.clone(),
            None => Caveat::doubts(&self.caveats()),
        }
    }

    /// The title of what the replay shows.
    pub fn title_of_replay(&self) -> &'static str {
        match self.run() {
            Some(_) => "Where it comes from: the replay",
            None => "The replay",
        }
    }

    /// The sentences that explain the first ones by the replay.
    pub fn explanation(&self) -> Vec<String> {
        let of_replay = match (self.run(), &self.answer) {
            (Some(_), Some(answer)) => answer.sentence.clone(),
            (Some(_), None) => self.without_answer(),
            (None, _) => String::new(),
        };
        let origin = self.answer.as_ref().map(|answer| answer.origin.clone());
        let mut all = vec![of_replay, origin.unwrap_or_default()];
        all.retain(|words| !words.is_empty());
        all
    }

    /// What the replay shows if it cannot compare Slabyard with glibc.
    fn without_answer(&self) -> String {
        for (name, called) in [("slabyard", "Slabyard"), (LIBC, LIBC)] {
            if let Some(one) = self.failed().find(|one| one.name == name) {
                let why = one.failure.as_deref().unwrap_or_default();
                return format!("The replay fails with {called}: {why}.");
            }
        }
        let ranked = self.ranked();
        let Some(fastest) = ranked.first() else {
            return "No allocator replays the recording.".to_string();
        };
        let as_fast = |one: &&&Measured| one.rank.is_some() && one.rank == fastest.rank;
        let mut names: Vec<_> = ranked
            .iter()
            .filter(as_fast)
            .map(|one| one.name.clone())
            .collect();
        if names.is_empty() {
            names.push(fastest.name.clone());
        }
        let sure = match fastest.rank {
            Some(_) => "",
            None => ", in one run, which does not show how certain this is",
        };
        format!(
            "Replayed alone, the allocations take least CPU time with {}{sure}. There is no \
             comparison of Slabyard with {LIBC}, because not both were replayed.",
            listed(&names)
        )
    }

    /// All reasons why figures may mislead: first those for the runs, then those for the replay.
    pub fn all_caveats(&self) -> Vec<Caveat> {
        let runs = self.runs.as_ref();
        let mut all = runs.map_or(Vec::new(), |runs| runs.caveats.clone());
        all.extend(self.caveats());
        all
    }

    /// What the replay does not contain, or did not do.
    pub fn left_out(&self) -> Vec<String> {
        use crate::ui::grouped;
        let refusing = self.ranked().into_iter().filter(|one| one.refused > 0);
        let mut all: Vec<_> = refusing
            .map(|one| {
                format!(
                    "{} refused {} allocations, mostly alignments that it does not offer.",
                    one.name,
                    grouped(one.refused)
                )
            })
            .collect();
        let (unknown, unseen) = (self.summary.unknown_frees, self.summary.unseen_frees);
        if unknown + unseen > 0 {
            all.push(format!(
                "Left out: {} frees of objects whose allocation was not seen; {} objects were never \
                 seen freed.",
                grouped(unknown),
                grouped(unseen)
            ));
        }
        all
    }

    /// The allocators with figures, the fastest first.
    pub fn ranked(&self) -> Vec<&Measured> {
        let all = self.measurement.allocators.iter();
        let mut good: Vec<_> = all.filter(|one| one.failure.is_none()).collect();
        good.sort_by(|a, b| a.ns_per_op.mean.total_cmp(&b.ns_per_op.mean));
        good
    }

    pub fn failed(&self) -> impl Iterator<Item = &Measured> {
        let all = self.measurement.allocators.iter();
        all.filter(|one| one.failure.is_some())
    }

    pub fn best_ns(&self) -> f64 {
        self.ranked()
            .first()
            .map_or(0.0, |best| best.ns_per_op.mean)
    }

    /// The rank of an allocator, with = if it shares the rank.
    pub fn rank(&self, one: &Measured) -> String {
        let Some(rank) = one.rank else {
            return "-".to_string();
        };
        let ranked = self.ranked();
        let sharing = ranked.iter().filter(|other| other.rank == Some(rank));
        format!("{rank}{}", if sharing.count() > 1 { "=" } else { "" })
    }

    /// The ratio of its time to the fastest; - if it is unknown.
    pub fn time_ratio(&self, one: &Measured) -> String {
        let best = self.best_ns();
        let told = one.ratio.is_some() || one.rank.is_none() && best > 0.0;
        if told {
            format!("{:.2}", one.ns_per_op.mean / best)
        } else {
            "-".to_string()
        }
    }

    /// The interval of that ratio; - for the fastest itself, and if it is unknown.
    pub fn time_interval(&self, one: &Measured) -> String {
        let ratio = one.ratio.filter(|ratio| ratio.low < ratio.high);
        ratio.map_or("-".to_string(), |Interval { low, high }| {
            format!("{low:.2} to {high:.2}")
        })
    }

    /// The allocators whose time cannot be distinguished from 0.
    pub fn within_noise(&self) -> Vec<String> {
        let near_zero = |one: &&Measured| {
            let interval = one.ns_per_op.interval;
            interval.is_some_and(|interval| interval.low <= 0.0)
        };
        let ranked = self.ranked().into_iter().filter(near_zero);
        ranked.map(|one| one.name.clone()).collect()
    }

    /// Explains equal ranks and intervals, and names the ratios that are unknown.
    pub fn certainty(&self) -> String {
        let repeats = self.measurement.repeats;
        if repeats < 2 {
            return "One replay does not show how certain a time is: use --repeats 5.".to_string();
        }
        let mut text = format!(
            "The time is the mean of {repeats} replays in turn. The ratio to the fastest lies between the two \
             figures of its 95 % column. Allocators of the same rank (=) cannot be distinguished."
        );
        let near = self.within_noise();
        if !near.is_empty() {
            text += &format!(
                " The time of {} is within the noise of the replay itself, so no ratio to it is \
                 shown.",
                listed(&near)
            );
        }
        text
    }

    /// The largest clock step of all runs.
    pub fn clock_step(&self) -> f64 {
        let ranked = self.ranked().into_iter();
        ranked.map(|one| one.clock_step_ns).fold(0.0, f64::max)
    }

    /// A percentile of single calls. If it is below the clock's step, the step is shown with <=.
    pub fn percentile(&self, ns: f64) -> String {
        let step = self.clock_step();
        let below = ns <= step && step > 0.0;
        let sign = if below { "<=" } else { "" };
        format!("{sign}{}", crate::ui::nanoseconds(ns.max(step)))
    }

    pub fn about_clock(&self) -> String {
        format!(
            "p50 to p99.99: single calls in ns, measured by a clock with steps of {:.2} ns.",
            self.clock_step()
        )
    }

    /// Whether an allocator's figure is the least of all, or cannot be told apart from it.
    pub fn is_least(&self, one: &Measured, figure: fn(&Measured) -> &Figure) -> bool {
        let ranked = self.ranked().into_iter();
        let least = ranked.map(figure).min_by(|a, b| a.mean.total_cmp(&b.mean));
        least.is_some_and(|least| {
            let (ours, least) = (figure(one), least);
            let apart = certainty::of_difference(&ours.runs, &least.runs);
            ours.mean <= least.mean || apart.is_some_and(|apart| apart.holds(0.0))
        })
    }

    pub fn best_peak(&self) -> f64 {
        let peaks = self
            .ranked()
            .into_iter()
            .map(|one| one.peak_resident.median);
        peaks.fold(f64::INFINITY, f64::min)
    }

    /// The reasons why the figures of the replay may mislead.
    pub fn caveats(&self) -> Vec<Caveat> {
        use crate::ui::grouped;
        let mut caveats = Vec::new();
        if let Some(why) = &self.no_runs {
            caveats.push(Caveat::doubtful(
                "the program itself was not run",
                format!("The program itself was not run on each allocator: {why}."),
            ));
        }
        if let Some(busy) = &self.measurement.busy {
            caveats.push(Caveat::doubtful(
                "the machine was busy",
                format!(
                    "The machine was busy with other programs: {busy}. The times of the replay are \
                     less certain and may be wrong: measure again on a quiet machine."
                ),
            ));
        }
        if let Some(damage) = &self.damage {
            caveats.push(Caveat::doubtful(
                "a part of the recording is missing",
                format!("The recording is {damage}; the part before the damage was used."),
            ));
        }
        caveats.extend(self.measurement.left_out.iter().map(Caveat::from));
        if let Some(wanted) = self.measurement.wanted_precision {
            caveats.extend(self.missed(wanted).map(Caveat::from));
        }
        let operations = self.summary.operations;
        if operations < ENOUGH_OPERATIONS {
            caveats.push(Caveat::doubtful(
                "the recording is small",
                format!(
                    "This recording is small: {} operations are too few to judge an allocator, \
                     because its start takes a large part of their time. {} or more are enough: let \
                     the program do more work, or run longer.",
                    grouped(operations),
                    grouped(ENOUGH_OPERATIONS)
                ),
            ));
        }
        caveats.extend(self.untouched());
        caveats.extend(self.not_replayed());
        if self.python {
            caveats.push(
                "Python has an allocator of its own for objects of up to 512 bytes, which does \
                 not call malloc for each of them. With PYTHONMALLOC=malloc in the environment \
                 they are recorded too."
                    .into(),
            );
        }
        caveats
    }

    /// Warns if the program's work between its calls may matter more than the calls. `make bench
    /// ARGS=truth` has shown for which programs it does.
    fn not_replayed(&self) -> Vec<Caveat> {
        let summary = &self.summary;
        let mut found = Vec::new();
        if model::has_threads(summary) {
            found.push(Caveat::doubtful(
                "the program has several threads",
                "This program has several threads. A replay leaves out their work between the \
                 calls, so their calls coincide at other moments.",
            ));
        }
        if summary.replay_threads < summary.threads {
            let text = format!(
                "Its {} threads were replayed as {}, because the machine has few processors: threads \
                 that lived at the same time were merged. So allocators with caches for each thread \
                 need less memory here than in the program.",
                crate::ui::grouped(summary.threads),
                crate::ui::grouped(summary.replay_threads)
            );
            found.push(Caveat::doubtful("its threads were merged into a few", text));
        }
        if model::has_small_objects(summary) {
            found.push(Caveat::doubtful(
                "the program holds many small objects",
                "This program holds many small objects. If it reads them often, its own time \
                 depends on how closely the allocator places them, which a replay does not measure.",
            ));
        }
        found
    }

    /// Warns if replays touch much more memory than the program did.
    fn untouched(&self) -> Option<Caveat> {
        use crate::ui::bytes;
        let real = self.summary.peak_resident as f64;
        let told = real > 0.0 && self.summary.processes == 1 && self.best_peak().is_finite();
        if !told || self.best_peak() <= real * FAR_OFF {
            return None;
        }
        let text = format!(
            "The program itself had at most {} in RAM, with its code and libraries. Replays had {} \
             and more: they write on every page that it asked for, and it did not. Memory, and the \
             time of page faults, are far too high here.",
            bytes(real as u64),
            bytes(self.best_peak() as u64)
        );
        Some(Caveat::doubtful(
            "the replay uses more memory than the program",
            text,
        ))
    }

    /// Warns if the requested precision was not reached.
    fn missed(&self, wanted: f64) -> Option<String> {
        let reached = self.measurement.precision;
        if reached.is_some_and(|reached| reached <= wanted) {
            return None;
        }
        let reached = reached.map_or("unknown".to_string(), |reached| {
            format!("known to {:.1} %", reached * 100.0)
        });
        Some(format!(
            "After {} rounds of the replay the least certain ratio is {reached}, where {:.1} % was \
             requested. A larger --within gives it more time.",
            self.measurement.repeats,
            wanted * 100.0
        ))
    }

    /// Explains the rows called slabyard.
    pub fn about_slabyard(&self) -> String {
        let heap = "slabyard is sy_malloc, the general heap, in place of malloc.";
        let hot = &self.summary.hot;
        if hot.is_empty() {
            return heap.to_string();
        }
        let allocations = self.summary.mallocs + self.summary.callocs;
        let served: u64 = hot.iter().map(|hot| hot.count).sum();
        let sizes: Vec<String> = hot.iter().map(|hot| hot.size.to_string()).collect();
        format!(
            "{heap} slabyard-caches is the same with object caches (sy_cache_alloc) for the sizes \
             that were asked for most: {} bytes. They serve {:.0} % of all allocations; objects \
             that are resized later stay with sy_malloc.",
            listed(&sizes),
            100.0 * served as f64 / allocations.max(1) as f64
        )
    }

    /// The versions of the allocators, and the reason why one of them is measured below its best.
    pub fn versions(&self) -> String {
        let all = &self.measurement.allocators;
        let versions: Vec<_> = all
            .iter()
            .map(|one| format!("{} {}", one.name, one.version))
            .collect();
        let mut text = format!("Versions: {}.", versions.join(", "));
        if all.iter().any(|one| one.name == TCMALLOC) {
            text +=
                " tcmalloc runs without its per-CPU caches here, because it is linked statically; \
                 with them it is faster.";
        }
        text
    }

    /// A sentence that describes the replayed recording.
    pub fn what(&self) -> String {
        use crate::ui::{bytes, grouped};
        let summary = &self.summary;
        let plural = |n: u64, one: &str, many: &str| {
            format!("{} {}", grouped(n), if n == 1 { one } else { many })
        };
        format!(
            "{} operations ({} malloc, {} calloc, {} aligned, {} realloc, {} free) by {} in {}, \
             {} asked for, {} at most at a time",
            grouped(summary.operations),
            grouped(summary.mallocs),
            grouped(summary.callocs),
            grouped(summary.aligned),
            grouped(summary.reallocs),
            grouped(summary.frees),
            plural(summary.threads, "thread", "threads"),
            plural(summary.processes, "process", "processes"),
            bytes(summary.bytes),
            bytes(summary.peak_payload),
        )
    }
}

/// An allocator's name, with its note.
pub fn named(one: &Measured) -> String {
    let note = one.note.map_or(String::new(), |note| format!(" ({note})"));
    format!("{}{note}", one.name)
}

/// The words of a sentence. A number and its unit are one word, between which no line ends.
pub fn words(sentence: &str) -> Vec<String> {
    const UNITS: [&str; 9] = ["%", "s", "ms", "ns", "B", "KiB", "MiB", "GiB", "TiB"];
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([')', ',', '.', ';', ':']));
    let mut words: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        match words.last_mut() {
            Some(last) if is_unit(word) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_string()),
        }
    }
    words
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// The ratio of `value` to the best; 1.00 for the best itself; - if either is within the noise.
pub fn ratio(value: f64, best: f64) -> String {
    if value >= 0.0 && best > 0.0 {
        format!("{:.2}", value / best)
    } else {
        "-".to_string()
    }
}

/// Bytes beyond the memory of the replay without the allocator. A negative value is noise of a few
/// pages.
pub fn memory(bytes: f64) -> String {
    if bytes < 0.0 {
        "within the noise".to_string()
    } else {
        crate::ui::bytes(bytes as u64)
    }
}

#[cfg(test)]
mod tests;
