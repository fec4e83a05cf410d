//! Segments that are too large for the quantum caches, replaced at random. The rows show the time,
//! the number of segments that an operation looks at, and the cost of a dependent cache miss in as
//! much memory as the tags take.
//!
//! Up to a quarter of the live segments, chosen at random, are freed one after the other; then the
//! same number is allocated. All these operations share two readings of the clock, and choosing the
//! segments is not timed.

use super::kernels::{fits, Chase, Counts, Fit, Steady, Step, NODE};
use super::Effort;
use crate::figure::{self, Figure};
use crate::machine::cpu_ns;
use crate::stats::{median, Summary};
use crate::table::{or_dash, Table};
use std::time::{Duration, Instant};

/// Units of the range for each unit that is live on average.
const ROOM: f64 = 1.25;
/// The number of segments that are replaced at a time, or a quarter of all if that is less. With so
/// many, an allocation seldom finds the data of the last frees in the processor's caches.
const TOGETHER: usize = 16_384;
/// A fit that is not settled after this time is left out.
const PATIENCE: Duration = Duration::from_secs(4);
/// The target: an operation may take this many cache misses more than in the row `HOT`.
const MISSES: f64 = 5.0;
/// Live segments of the row in which all tags are in the nearest cache.
const HOT: usize = 400;
/// Samples of each fit in a process.
const SAMPLES: usize = 3;

/// A row: `live` segments of 1 to `most` units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub live: usize,
    pub most: usize,
}

impl Row {
    pub fn name(&self) -> String {
        format!("segments/{}/{}", self.most, self.live)
    }

    fn units(&self) -> usize {
        (self.live as f64 * (self.most + 1) as f64 / 2.0 * ROOM) as usize
    }

    /// Whether the row is measured with this fit: some fits look at too many segments.
    fn suits(&self, fit: &Fit) -> bool {
        match fit.name() {
            "instant" => true,
            "first-fit list" => self.live <= 10_000,
            _ => self.live <= 100_000,
        }
    }
}

pub fn rows(quick: bool) -> Vec<Row> {
    let live: &[usize] = if quick {
        &[HOT, 1_000, 100_000]
    } else {
        &[HOT, 1_000, 10_000, 100_000, 1_000_000]
    };
    let of = |most| live.iter().map(move |&live| Row { live, most });
    of(32).chain(of(1000)).collect()
}

/// Replaces as many segments as there are, twice: after that the segments lie at random. True if
/// this took less than `PATIENCE`.
fn settle(steady: &mut Steady) -> bool {
    let live = steady.segments().len();
    let start = Instant::now();
    let mut replaced = 0;
    while replaced < 2 * live {
        if start.elapsed() > PATIENCE {
            return false;
        }
        replaced += together(live);
        steady.replace(together(live), |_| ());
    }
    true
}

fn together(live: usize) -> usize {
    TOGETHER.min(live.div_ceil(4))
}

/// The cost of reading the clock.
fn clock_cost() -> f64 {
    let costs: Vec<f64> = (0..1001)
        .map(|_| {
            let before = cpu_ns();
            (cpu_ns() - before) as f64
        })
        .collect();
    median(&costs).unwrap_or(0.0)
}

/// Time for allocations and frees, and how many segments they took.
#[derive(Default)]
struct Spent {
    alloc: f64,
    free: f64,
    replaced: usize,
}

/// Replaces as many segments as there are, to fill the processor's caches.
fn warm(steady: &mut Steady) {
    let live = steady.segments().len();
    for _ in 0..live.div_ceil(together(live)) {
        steady.replace(together(live), |_| ());
    }
}

/// Replaces segments for about as long as a sample takes.
fn spend(steady: &mut Steady, sample: Duration, clock: f64) -> Spent {
    let count = together(steady.segments().len());
    let mut spent = Spent::default();
    while spent.alloc + spent.free < sample.as_nanos() as f64 {
        let mut before = 0;
        steady.replace(count, |step| {
            let now = cpu_ns();
            let took = (now - before) as f64 - clock;
            match step {
                Step::Freed => spent.free += took,
                Step::Allocated => spent.alloc += took,
                Step::Chosen | Step::Sized => (),
            }
            before = cpu_ns();
        });
        spent.replaced += count;
    }
    spent
}

/// The figures of one sample of one fit.
fn sample(steady: &mut Steady, effort: &Effort, clock: f64) -> [(&'static str, f64); 5] {
    warm(steady);
    let before = steady.counts();
    let spent = spend(steady, effort.sample, clock);
    let after = steady.counts();
    let per = |of: fn(&Counts) -> u64, one: fn(&Counts) -> u64| {
        (of(&after) - of(&before)) as f64 / (one(&after) - one(&before)).max(1) as f64
    };
    let asked = spent.replaced as f64;
    let refused = asked - (after.allocs - before.allocs) as f64;
    [
        ("alloc ns", spent.alloc / asked),
        ("free ns", spent.free / asked),
        (
            "probes",
            per(|counts| counts.probes, |counts| counts.allocs),
        ),
        ("steps", per(|counts| counts.steps, |counts| counts.frees)),
        ("refused", refused / asked),
    ]
}

/// A walk through as much memory as the tags and the table take.
fn chase_beside(steady: &Steady, seed: u64) -> Chase {
    let counts = steady.counts();
    let bytes = counts.segments * NODE + counts.buckets * size_of::<usize>();
    Chase::open(bytes, seed)
}

/// Nanoseconds of a step of the walk.
fn miss(chase: &mut Chase, sample: Duration) -> f64 {
    chase.walk(chase.nodes() as u64);
    let (mut steps, mut took) = (0, 0);
    while took < sample.as_nanos() as u64 {
        let start = cpu_ns();
        std::hint::black_box(chase.walk(100_000));
        took += cpu_ns() - start;
        steps += 100_000;
    }
    took as f64 / steps as f64
}

/// Measures a row: the fits and the walk in turn, several times.
pub fn measure(row: &Row, effort: &Effort) -> Vec<Figure> {
    let clock = clock_cost();
    let seed = effort.repeat as u64 * 0x9e37_79b9 + 12345;
    let open = |fit| Steady::open(fit, row.units(), row.live, row.most, seed);
    let suited = fits().iter().filter(|fit| row.suits(fit));
    let mut ready: Vec<Steady> = suited
        .map(open)
        .filter_map(|mut steady| settle(&mut steady).then_some(steady))
        .collect();
    let mut chase = ready.first().map(|steady| chase_beside(steady, seed));
    let mut figures = Vec::new();
    let mut found = |who: &str, metric: &str, value| {
        figures.push(Figure::new(&row.name(), metric, who, 0, value));
    };
    for _ in 0..SAMPLES {
        for steady in &mut ready {
            let name = steady.name();
            for (metric, value) in sample(steady, effort, clock) {
                found(name, metric, value);
            }
        }
        if let Some(chase) = &mut chase {
            found("", "miss ns", miss(chase, effort.sample));
            found("", "bytes", (chase.nodes() * NODE) as f64);
        }
        let turn = 1.min(ready.len());
        ready.rotate_left(turn);
    }
    figures
}

/// A time with its quartiles, its target, and the number of misses by which it is above the row
/// `HOT`.
fn against(time: Option<Summary>, hot: Option<Summary>, miss: f64) -> [String; 4] {
    let hot = hot.map_or(f64::NAN, |hot| hot.median);
    let of = |words: &dyn Fn(Summary) -> String| or_dash(time, words);
    [
        of(&|time| format!("{:.1}", time.median)),
        of(&|time| format!("{:.1} .. {:.1}", time.low, time.high)),
        of(&|_| format!("{:.0}", hot + MISSES * miss)),
        of(&|time| format!("{:.1}", (time.median - hot) / miss)),
    ]
}

/// The cells of a row with a fit; none if there are no figures.
fn cells(row: &Row, fit: &Fit, found: &[Figure]) -> Option<Vec<String>> {
    let hot = Row {
        live: HOT,
        most: row.most,
    };
    let of = |row: &Row, metric| figure::of(found, &row.name(), metric, fit.name());
    let looked_at = |metric| of(row, metric).map(|summary| format!("{:.2}", summary.median));
    let miss = figure::of(found, &row.name(), "miss ns", "")?.median;
    let mut cells = vec![row.live.to_string(), format!("{miss:.1}")];
    for (time, looks) in [("alloc ns", "probes"), ("free ns", "steps")] {
        cells.extend(against(of(row, time), of(&hot, time), miss));
        cells.push(looked_at(looks)?);
    }
    let refused = of(row, "refused")?.median;
    cells.extend((refused > 0.0).then(|| format!("{:.2} % refused", 100.0 * refused)));
    Some(cells)
}

/// All rows as text, a table for each range of sizes.
pub fn block(rows: &[Row], found: &[Figure]) -> String {
    let of_range = |rows: &[Row]| {
        let mut table = Table::new("fit", HEADS);
        for fit in fits() {
            for cells in rows.iter().filter_map(|row| cells(row, fit, found)) {
                table.line(fit.name(), cells);
            }
        }
        format!(
            "\nsegments of 1..{} units, no quantum cache, replaced at random, {:.0} % of the range \
             live; CPU ns\n  miss: a dependent one in as much memory as the tags take; target: the \
             time at {HOT} live and {MISSES} misses;\n  misses: how many the time is above that; \
             looked at: segments an operation\n{}",
            rows[0].most,
            100.0 / ROOM,
            table.text()
        )
    };
    let ranges = rows.chunk_by(|one, other| one.most == other.most);
    ranges.map(of_range).collect()
}

const HEADS: [&str; 12] = [
    "live",
    "miss",
    "alloc",
    "quartiles",
    "target",
    "misses",
    "looked at",
    "free",
    "quartiles",
    "target",
    "misses",
    "looked at",
];
