//! A server of requests: the number of its slabs that become empty, and its memory after each
//! burst.
//!
//! * `trace`: the requests, the same for all contenders; `servers`: the contenders;
//! * here: a process for each contender, the table, and the picture.
//!
//! Each contender is measured twice: without any request to give memory back, and with such a
//! request at the end of each burst.

pub mod servers;
pub mod trace;

use crate::figure::Found;
use crate::machine;
use crate::part::{self, Common, Report};
use crate::stats::median;
use crate::table::Table;
use crate::vmem::plot::{document, Line, Picture};
use servers::{Caches, Contender, Malloc, Scopes, Slabs};
use std::fmt::Write;
use trace::{Load, Nobody, Server, Trace};

/// A server of requests only: slabs that become empty, and resident memory after each burst.
///
/// Caches with epochs, caches without, scopes, and the malloc of each allocator serve the same
/// requests, each in a process of its own. Figures are medians; every burst is kept as CSV, and as a picture
/// as SVG.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    common: Common<3, 1>,
    /// Number of objects in 10,000 that unexpectedly end some bursts later than their request
    #[arg(long, default_value_t = 2)]
    late: usize,
    /// What the parent passes to a measuring process
    #[arg(long, hide = true, num_args = 4)]
    child: Option<Vec<String>>,
}

/// The contenders in the picture.
const SHOWN: [&str; 6] = ["grouped", "split", "mixed", "mimalloc", "jemalloc", "glibc"];

fn load(requests: usize, late: usize) -> Load {
    Load {
        bursts: 160,
        requests,
        late,
        seed: 4711,
    }
}

/// Bytes after one burst.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment {
    live: u64,
    resident: u64,
}

/// The result of one process.
#[derive(Clone, Debug)]
struct Answer {
    who: Contender,
    told: bool,
    slabs: Slabs,
    /// CPU time for the allocation, the first write and the free of one object.
    ns: f64,
    moments: Vec<Moment>,
}

/// Runs the trace, and reads resident memory after each burst. This reading is not timed.
fn serve(trace: &mut Trace, server: &mut dyn Server) -> (f64, Vec<Moment>) {
    trace.run(&mut Nobody, |_, _| ());
    let mut moments = Vec::with_capacity(1000);
    let before = machine::resident();
    let (began, mut looking) = (machine::cpu_ns(), 0);
    trace.run(server, |live, _| {
        let from = machine::cpu_ns();
        let resident = machine::resident().saturating_sub(before);
        moments.push(Moment {
            live: live as u64,
            resident,
        });
        looking += machine::cpu_ns() - from;
    });
    let ns = machine::cpu_ns() - began - looking;
    (ns as f64 / trace.taken() as f64, moments)
}

fn measure(who: Contender, told: bool, load: Load) -> Option<Answer> {
    let mut trace = Trace::new(load);
    let (slabs, (ns, moments)) = match who.allocator() {
        Some(allocator) => {
            let _held = allocator.enter_thread();
            let mut server = Malloc::open(&allocator, told)?;
            (Slabs::default(), serve(&mut trace, &mut server))
        }
        None if who == Contender::Scoped => {
            let mut server = Scopes::open(told);
            (Slabs::default(), serve(&mut trace, &mut server))
        }
        None => {
            let mut server = Caches::open(who, told);
            let served = serve(&mut trace, &mut server);
            (server.slabs(), served)
        }
    };
    Some(Answer {
        who,
        told,
        slabs,
        ns,
        moments,
    })
}

/// The answer as text: a line for the whole, and one for each burst.
fn encode(answer: &Answer) -> String {
    let Slabs {
        made,
        again,
        released,
    } = answer.slabs;
    let mut text = format!("{} {made} {again} {released}\n", answer.ns);
    for moment in &answer.moments {
        let _ = writeln!(text, "{} {}", moment.live, moment.resident);
    }
    text
}

fn decode(who: Contender, told: bool, text: &str) -> Option<Answer> {
    let mut lines = text.lines();
    let mut whole = lines.next()?.split(' ');
    let ns = whole.next()?.parse().ok()?;
    let mut count = || whole.next()?.parse().ok();
    let slabs = Slabs {
        made: count()?,
        again: count()?,
        released: count()?,
    };
    let moment = |line: &str| {
        let (live, resident) = line.split_once(' ')?;
        Some(Moment {
            live: live.parse().ok()?,
            resident: resident.parse().ok()?,
        })
    };
    Some(Answer {
        who,
        told,
        slabs,
        ns,
        moments: lines.map(moment).collect::<Option<_>>()?,
    })
}

/// Runs a measuring process: measures, and prints the answer.
fn run_child(arguments: &[String]) -> Option<()> {
    let [name, told, requests, late] = arguments else {
        return None;
    };
    let load = load(requests.parse().ok()?, late.parse().ok()?);
    let answer = measure(Contender::find(name)?, told == "told", load)?;
    print!("{}", encode(&answer));
    Some(())
}

fn in_child(who: Contender, told: bool, load: Load) -> Result<Answer, String> {
    let name = who.name();
    let told_or_alone = if told { "told" } else { "alone" };
    let (requests, late) = (load.requests.to_string(), load.late.to_string());
    let arguments = [name, told_or_alone, &requests, &late].map(str::to_owned);
    let mut command = part::child("requests", &arguments)?;
    let allocator = who.allocator();
    command.envs(allocator.and_then(|allocator| allocator.environment()));
    let text = part::output(command, name)?;
    decode(who, told, &text).ok_or_else(|| format!("{name}: unclear: {text}"))
}

/// The medians of several answers, burst by burst.
fn middle(answers: &[&Answer]) -> Answer {
    let of = |value: &dyn Fn(&Answer) -> f64| {
        let values: Vec<f64> = answers.iter().map(|answer| value(answer)).collect();
        median(&values).unwrap_or(0.0)
    };
    let moments = (0..answers[0].moments.len()).map(|burst| Moment {
        live: of(&|answer| answer.moments[burst].live as f64) as u64,
        resident: of(&|answer| answer.moments[burst].resident as f64) as u64,
    });
    Answer {
        ns: of(&|answer| answer.ns),
        slabs: Slabs {
            made: of(&|answer| answer.slabs.made as f64) as u64,
            again: of(&|answer| answer.slabs.again as f64) as u64,
            released: of(&|answer| answer.slabs.released as f64) as u64,
        },
        moments: moments.collect(),
        ..answers[0].clone()
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The mean and the maximum in MiB over all bursts but the first quarter.
fn mean_and_most(answer: &Answer, of: fn(&Moment) -> u64) -> (f64, f64) {
    let settled = &answer.moments[answer.moments.len() / 4..];
    let values = settled.iter().map(|moment| mib(of(moment)));
    let most = values.clone().fold(0.0, f64::max);
    (values.sum::<f64>() / settled.len().max(1) as f64, most)
}

fn table(answers: &[Answer], told: bool) -> String {
    let title = if told {
        "Told after each burst to give memory back"
    } else {
        "Left alone"
    };
    let mut table = Table::new("", HEADS);
    let here: Vec<&Answer> = answers.iter().filter(|one| one.told == told).collect();
    let memory = |answer, of| {
        let (mean, most) = mean_and_most(answer, of);
        [mean, most].map(|mib| format!("{mib:.1}"))
    };
    if let Some(answer) = here.first() {
        table.line("live", memory(answer, |moment| moment.live));
    }
    for answer in here {
        let slabs = &answer.slabs;
        let slabs = [
            slabs.made.to_string(),
            format!("{:.2} %", 100.0 * slabs.recycled()),
            slabs.again.to_string(),
            slabs.released.to_string(),
        ];
        let slabs = slabs.map(|cell| {
            if answer.slabs.made > 0 {
                cell
            } else {
                String::new()
            }
        });
        let cells = memory(answer, |moment| moment.resident)
            .into_iter()
            .chain(slabs);
        table.line(
            answer.who.name(),
            cells.chain([format!("{:.1}", answer.ns)]),
        );
    }
    format!("\n{title}\n{}", table.text())
}

const HEADS: [&str; 7] = [
    "MiB, mean",
    "MiB, most",
    "made",
    "recycled",
    "again",
    "released",
    "ns",
];

fn csv(answers: &[Answer]) -> String {
    let mut text = String::from("who,told,burst,live,resident\n");
    for answer in answers {
        for (burst, moment) in answer.moments.iter().enumerate() {
            let (who, told) = (answer.who.name(), u8::from(answer.told));
            let Moment { live, resident } = moment;
            let _ = writeln!(text, "{who},{told},{burst},{live},{resident}");
        }
    }
    text
}

fn colour(who: &str) -> &'static str {
    match who {
        "grouped" => "#178a5e",
        "split" => "#1f6fd0",
        "mixed" => "#d1471f",
        "mimalloc" => "#8250df",
        "jemalloc" => "#b08800",
        "glibc" => "#bf5f9a",
        _ => "#6e7681",
    }
}

fn line(answer: &Answer, of: fn(&Moment) -> u64) -> Line {
    let points = answer.moments.iter().enumerate();
    points
        .map(|(burst, moment)| (burst as f64, mib(of(moment))))
        .collect()
}

fn picture(answers: &[Answer], told: bool) -> Picture<'static> {
    let here = || answers.iter().filter(move |answer| answer.told == told);
    let shown = here().filter(|answer| SHOWN.contains(&answer.who.name()));
    let mut curves: Vec<(&'static str, Line)> = shown
        .map(|answer| (answer.who.name(), line(answer, |moment| moment.resident)))
        .collect();
    let live = here().next();
    curves.extend(live.map(|answer| ("live", line(answer, |moment| moment.live))));
    Picture {
        title: if told {
            "Resident after each burst, told to give memory back"
        } else {
            "Resident after each burst, left alone"
        },
        below: "bursts of requests",
        unit: "MiB",
        colour,
        curves,
    }
}

fn svg(answers: &[Answer]) -> String {
    let pictures = [picture(answers, false), picture(answers, true)];
    document("Resident memory of a server of requests", &pictures)
}

fn measure_all(load: Load, repeats: usize) -> Result<Vec<Answer>, String> {
    let mut all = Vec::new();
    for _ in 0..repeats {
        for who in servers::ALL {
            for told in [false, true] {
                all.push(in_child(who, told, load)?);
            }
        }
    }
    let same = |who, told| {
        let found = all
            .iter()
            .filter(move |one| one.who == who && one.told == told);
        middle(&found.collect::<Vec<_>>())
    };
    let pairs = [false, true].map(|told| servers::ALL.map(|who| same(who, told)));
    Ok(pairs.concat())
}

/// Measures all contenders, or serves as a measuring process.
pub fn bench(options: &Options) -> Result<(), String> {
    if let Some(arguments) = &options.child {
        return run_child(arguments).ok_or_else(|| "no such contender".to_owned());
    }
    let common = &options.common;
    let requests = if common.quick { 2000 } else { 8000 };
    let mut report = Report::new(&[]);
    let answers = measure_all(load(requests, options.late), common.repeats())?;
    for told in [false, true] {
        report.add(&table(&answers, told));
    }
    let files = [("csv", csv(&answers)), ("svg", svg(&answers))];
    report.finish(("requests", common), &Found::default(), &files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(who: Contender, told: bool, resident: u64) -> Answer {
        let moments = (0..8).map(|burst| Moment {
            live: 1 << 20,
            resident: resident + burst,
        });
        Answer {
            who,
            told,
            slabs: Slabs {
                made: 10,
                again: 2,
                released: 7,
            },
            ns: 12.5,
            moments: moments.collect(),
        }
    }

    #[test]
    fn answers_survive_the_pipe() {
        let one = answer(Contender::Grouped, true, 77);
        let other = decode(Contender::Grouped, true, &encode(&one)).unwrap();
        assert_eq!((other.slabs, other.ns), (one.slabs, one.ns));
        assert_eq!(other.moments, one.moments);
        assert!(decode(Contender::Mixed, false, "1 2 3").is_none());
    }

    #[test]
    fn slabs_that_came_back_are_of_those_taken_into_use() {
        let slabs = answer(Contender::Mixed, false, 0).slabs;
        assert!((slabs.recycled() - 0.75).abs() < 1e-9);
        assert_eq!(Slabs::default().recycled(), 0.0);
    }

    #[test]
    fn the_middle_is_of_each_burst() {
        let answers = [1, 5, 900].map(|at| answer(Contender::Split, false, at));
        let middle = middle(&answers.iter().collect::<Vec<_>>());
        assert_eq!(middle.moments[3].resident, 8);
    }

    #[test]
    fn the_table_and_the_picture_have_everybody() {
        let both = [false, true].map(|told| servers::ALL.map(|who| answer(who, told, 9 << 20)));
        let answers = both.concat();
        let (text, svg) = (table(&answers, true), svg(&answers));
        for who in servers::ALL {
            assert!(text.contains(who.name()), "{text}");
        }
        for name in SHOWN.iter().chain(&["live"]) {
            assert_eq!(svg.matches(&format!("<title>{name}</title>")).count(), 2);
        }
        assert_eq!(csv(&answers).lines().count(), 1 + answers.len() * 8);
    }

    #[test]
    fn a_small_load_is_served_by_all() {
        let load = Load {
            bursts: 20,
            requests: 100,
            late: 20,
            seed: 1,
        };
        for who in servers::ALL {
            let answer = measure(who, true, load).expect("it can be asked");
            assert_eq!(answer.moments.len(), 20);
            let counts_slabs = who.allocator().is_none() && who != Contender::Scoped;
            assert_eq!(answer.slabs.made > 0, counts_slabs);
        }
    }
}
