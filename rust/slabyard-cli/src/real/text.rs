//! The tables of the program's runs, for the terminal and the page.

use super::{Kind, Measured, RealRuns};
use crate::report::table::{lay_out, list, paragraph, shortened};
use crate::run;
use crate::service::readings::Better;
use crate::ui;
use std::fmt::Write;
use std::time::Duration;

const MEANING: [&str; 4] = [
    "The figures of a run are those of all processes that the program starts. The tables show \
     means of all runs. CPU time is user and system time.",
    "Peak memory is the largest resident memory, of several processes together as far as samples \
     show it. It includes code and libraries.",
    "Mean memory is the mean of the resident memory over a run, sampled every 10 ms. It is not \
     shown if a run was too short.",
    "A ratio compares a mean with that of the first row. The true ratio lies between the two \
     figures of the 95 % column; it is unknown if there are none. If 1.00 is between them, there \
     may be no difference.",
];

/// A table: its title, the heads of its columns, and a row for each allocator.
pub struct Table {
    pub title: String,
    pub rows: Vec<Vec<String>>,
}

/// The report on runs without a replay.
pub fn render(all: &RealRuns) -> String {
    let mut text = String::from("\n");
    paragraph(&mut text, &first(all).join(" "));
    paragraph_of_doubts(&mut text, &all.doubts);
    let _ = writeln!(text, "{}\n\n{}", shortened(&all.command), in_words(all));
    let caveats: Vec<_> = all.caveats.iter().map(|one| one.text.clone()).collect();
    list(&mut text, "Caveats", &caveats);
    list(&mut text, "Notes", &notes(all));
    text
}

/// The sentences that come first.
pub fn first(all: &RealRuns) -> Vec<String> {
    let sentences = [&all.answer, &all.others];
    sentences.into_iter().flatten().cloned().collect()
}

/// Says why the first sentences are doubtful.
pub fn paragraph_of_doubts(text: &mut String, doubts: &[String]) {
    if !doubts.is_empty() {
        let doubts = doubts.join("; ");
        paragraph(
            text,
            &format!("This is doubtful: {doubts} (see the caveats below)."),
        );
    }
}

/// How many runs there were.
pub fn rounds(all: &RealRuns) -> String {
    let rounds = if all.rounds == 1 { "round" } else { "rounds" };
    format!(
        "{} {rounds}, in which each allocator has one run",
        all.rounds
    )
}

/// The tables, and the allocators that the program fails with.
pub fn in_words(all: &RealRuns) -> String {
    let mut text = format!("The program on each allocator: {}\n\n", rounds(all));
    for table in tables(all) {
        lay_out(&mut text, &table.rows);
        text.push('\n');
    }
    for why in failures(all) {
        paragraph(&mut text, &why);
    }
    text
}

pub fn failures(all: &RealRuns) -> Vec<String> {
    let why = |one: &Measured| {
        let why = one.failure.as_deref()?;
        Some(format!("{} FAILED: the program {why}", one.name))
    };
    all.allocators.iter().filter_map(why).collect()
}

/// What the figures are, and which libraries were used.
pub fn notes(all: &RealRuns) -> Vec<String> {
    let library = |one: &Measured| Some(format!("{}: {}", one.name, one.library.as_ref()?));
    let libraries = all.allocators.iter().filter_map(library);
    let of_server = all.load.as_ref().map(|load| {
        format!("Idle memory is the resident memory when the server has rested after the load. The load: {load}")
    });
    let meaning = MEANING.map(String::from).into_iter();
    meaning.chain(of_server).chain(libraries).collect()
}

fn good(all: &RealRuns) -> impl Iterator<Item = &Measured> {
    all.allocators.iter().filter(|one| one.failure.is_none())
}

/// Where a figure is among the results of an allocator.
type Place = dyn Fn(&Measured) -> Option<&Kind>;

/// A figure of the program: its name, where it is among the results, and its unit in words.
pub struct Shown {
    pub name: String,
    of: Box<Place>,
    pub unit: fn(f64) -> String,
    /// Whether the page shows it as a chart, in which further to the left is better.
    pub less_is_better: bool,
}

fn figure(
    name: &str,
    unit: fn(f64) -> String,
    of: impl Fn(&Measured) -> Option<&Kind> + 'static,
) -> Shown {
    Shown {
        name: name.to_string(),
        of: Box::new(of),
        unit,
        less_is_better: true,
    }
}

/// All figures that are known of an allocator, the most important first.
pub fn shown(all: &RealRuns) -> Vec<Shown> {
    let count = |count| ui::grouped(count as u64);
    let mut shown = vec![
        figure("CPU time", seconds, |one| Some(&one.cpu_s)),
        figure("peak memory", bytes, |one| Some(&one.peak_bytes)),
    ];
    match all.load {
        Some(_) => shown.extend(of_server(all)),
        None => shown.push(figure("wall time", seconds, |one| Some(&one.wall_s))),
    }
    shown.push(figure("page faults", count, |one| Some(&one.page_faults)));
    shown.push(figure("mean memory", bytes, |one| {
        one.mean_resident_bytes.as_ref()
    }));
    shown.retain(|figure| good(all).any(|one| figure.kind(one).is_some()));
    shown
}

/// The figures that only a server under load has.
fn of_server(all: &RealRuns) -> Vec<Shown> {
    let mut shown = vec![
        figure("load time", seconds, |one| {
            Some(&one.served.as_ref()?.load_s)
        }),
        figure("idle memory", bytes, |one| {
            Some(&one.served.as_ref()?.idle_bytes)
        }),
    ];
    let first = good(all).find_map(|one| one.served.as_ref());
    for reading in first.map_or(&[][..], |served| &served.readings) {
        let name = reading.name.clone();
        let mut figure = figure(&reading.name, plain, move |one| {
            let mut readings = one.served.as_ref()?.readings.iter();
            Some(&readings.find(|one| one.name == name)?.kind)
        });
        figure.less_is_better = reading.better == Better::Less;
        shown.push(figure);
    }
    shown
}

/// A figure without a unit, with at least three digits.
fn plain(value: f64) -> String {
    match value {
        value if value >= 1000.0 => ui::grouped(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

impl Shown {
    pub fn kind<'a>(&self, one: &'a Measured) -> Option<&'a Kind> {
        (self.of)(one)
    }

    /// The cells of an allocator: the figure, its ratio to that of the first row, and the ratio's
    /// interval.
    fn cells(&self, one: &Measured) -> [String; 3] {
        let kind = self.kind(one);
        let ratio = kind.and_then(|kind| kind.to_first);
        let interval = ratio.and_then(|ratio| ratio.interval);
        let cells = [
            kind.map(|kind| (self.unit)(kind.figure.mean)),
            ratio.map(|ratio| format!("{:.2}", ratio.ratio)),
            interval.map(|interval| format!("{:.2} to {:.2}", interval.low, interval.high)),
        ];
        cells.map(|cell| cell.unwrap_or("-".to_string()))
    }
}

/// Two figures in a table are as much as fits into a terminal of 80 columns.
pub fn tables(all: &RealRuns) -> Vec<Table> {
    let table = |pair: &[Shown]| Table {
        title: title(pair),
        rows: rows(all, pair),
    };
    shown(all).chunks(2).map(table).collect()
}

/// A title such as `Wall time and page faults of the program on each allocator`.
fn title(figures: &[Shown]) -> String {
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    let names = ui::capital(&names.join(" and "));
    format!("{names} of the program on each allocator")
}

fn rows(all: &RealRuns, figures: &[Shown]) -> Vec<Vec<String>> {
    let mut heads = vec!["allocator".to_string()];
    heads.extend(
        figures
            .iter()
            .flat_map(|figure| [&figure.name, "ratio", "95 %"].map(String::from)),
    );
    let row = |one: &Measured| {
        let cells = figures.iter().flat_map(|figure| figure.cells(one));
        std::iter::once(one.name.clone()).chain(cells).collect()
    };
    std::iter::once(heads).chain(good(all).map(row)).collect()
}

fn bytes(bytes: f64) -> String {
    ui::bytes(bytes as u64)
}

pub fn seconds(seconds: f64) -> String {
    run::seconds(Duration::from_secs_f64(seconds.max(0.0)))
}
