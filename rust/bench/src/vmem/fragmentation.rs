//! How the fits fragment a range of fixed size. Segments have exponential lifetimes, and sizes of
//! which each octave is equally frequent. Nothing is timed; every figure is a count. With the same
//! seed every fit gets the same requests at the same time, whatever it refuses.
//!
//! There are two experiments. *Wear*: a constant volume is kept live for long; the figure is the
//! share of the largest free segment in all free units. *Filling*: the volume is raised step by
//! step; the figure is the share of allocations that are refused although far more units are free.

use super::kernels::{fits, Fit, Population};
use crate::stats::median;
use crate::table::{or_dash, Table};
use std::fmt::Write;

/// Units of the range: 1,024 times the largest segment, which is 1,023.
const UNITS: usize = 1 << 20;
/// The most live segments: the mean size is 147.
const ROOM: usize = UNITS / 16;
/// Share of the range that is live in the first experiment.
pub const HELD: f64 = 0.7;
/// Shares of the range that are live in the steps of the second experiment, in percent.
const LEVELS: [u32; 20] = [
    60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98,
];
/// The levels in the table: at least as many percent.
const SHOWN: f64 = 84.0;

/// The extent of a run. In a turnover as many units are allocated as are live.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub seeds: u64,
    /// Turnovers of the first experiment, and how many there are between two points of the curve.
    pub turnovers: u32,
    pub between: u32,
    /// Turnovers in each step before allocations are counted, and while they are counted.
    pub settling: u32,
    pub counting: u32,
}

pub fn effort(quick: bool) -> Effort {
    if quick {
        return Effort {
            seeds: 1,
            turnovers: 20,
            between: 1,
            settling: 2,
            counting: 2,
        };
    }
    Effort {
        seeds: 3,
        turnovers: 100,
        between: 2,
        settling: 6,
        counting: 4,
    }
}

/// One point of one curve: the medians over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub at: f64,
    pub value: f64,
    /// Free segments at that moment.
    pub free: f64,
}

/// The curves of one fit.
#[derive(Clone, Debug)]
pub struct Curves {
    pub fit: &'static str,
    /// The largest free segment in percent of all free units, over turnovers.
    pub wear: Vec<Point>,
    /// Refused allocations in percent, over the live share of the range in percent.
    pub filling: Vec<Point>,
}

fn turnovers(count: u32, volume: usize) -> u64 {
    u64::from(count) * volume as u64
}

fn wear(fit: &'static Fit, effort: &Effort, seed: u64) -> Vec<Point> {
    let volume = (UNITS as f64 * HELD) as usize;
    let mut population = Population::open(fit, UNITS, ROOM, seed);
    let looks = effort.turnovers / effort.between;
    let look = |look| {
        if look > 0 {
            population.age(volume, turnovers(effort.between, volume));
        } else {
            population.age(volume, 1);
        }
        let gaps = population.gaps();
        Point {
            at: f64::from(look * effort.between),
            value: 100.0 * gaps.largest as f64 / gaps.units.max(1) as f64,
            free: gaps.segments as f64,
        }
    };
    (0..=looks).map(look).collect()
}

fn filling(fit: &'static Fit, effort: &Effort, seed: u64) -> Vec<Point> {
    let mut population = Population::open(fit, UNITS, ROOM, seed);
    let level = |&percent: &u32| {
        let volume = UNITS / 100 * percent as usize;
        population.age(volume, turnovers(effort.settling, volume));
        let (asked, refused) = population.age(volume, turnovers(effort.counting, volume));
        Point {
            at: f64::from(percent),
            value: 100.0 * refused as f64 / asked as f64,
            free: population.gaps().segments as f64,
        }
    };
    LEVELS.iter().map(level).collect()
}

/// The medians of several curves, point by point.
fn middle(curves: &[Vec<Point>]) -> Vec<Point> {
    let of = |index: usize, part: fn(&Point) -> f64| {
        let values: Vec<f64> = curves.iter().map(|curve| part(&curve[index])).collect();
        median(&values).unwrap_or(f64::NAN)
    };
    let length = curves.first().map_or(0, Vec::len);
    let point = |index: usize| Point {
        at: curves[0][index].at,
        value: of(index, |point| point.value),
        free: of(index, |point| point.free),
    };
    (0..length).map(point).collect()
}

/// Both experiments with every fit.
pub fn run(effort: &Effort) -> Vec<Curves> {
    let over_seeds = |one: &dyn Fn(u64) -> Vec<Point>| {
        let curves: Vec<Vec<Point>> = (1..=effort.seeds).map(one).collect();
        middle(&curves)
    };
    let curves = fits().iter().map(|fit| Curves {
        fit: fit.name(),
        wear: over_seeds(&|seed| wear(fit, effort, seed)),
        filling: over_seeds(&|seed| filling(fit, effort, seed)),
    });
    curves.collect()
}

/// The value at the last point, and the highest share up to which nothing was refused.
fn summary(one: &Curves) -> (Option<&Point>, Option<f64>) {
    let whole = one.filling.iter().take_while(|point| point.value == 0.0);
    (one.wear.last(), whole.last().map(|point| point.at))
}

pub fn block(curves: &[Curves], effort: &Effort) -> String {
    let is_shown = |level: &f64| *level >= SHOWN;
    let levels = LEVELS.map(f64::from).into_iter().filter(is_shown);
    let heads = ["largest/free %", "free segments", "none refused to"].map(str::to_owned);
    let heads = heads
        .into_iter()
        .chain(levels.map(|level| format!("{level} %")));
    let mut table = Table::new("fit", heads);
    for one in curves {
        let (worn, whole) = summary(one);
        let cells = [
            or_dash(worn, |point| format!("{:.2}", point.value)),
            or_dash(worn, |point| format!("{:.0}", point.free)),
            or_dash(whole, |level| format!("{level:.0} %")),
        ];
        let refused = one.filling.iter().filter(|point| is_shown(&point.at));
        let refused = refused.map(|point| format!("{:.2}", point.value));
        table.line(one.fit, cells.into_iter().chain(refused));
    }
    format!(
        "\nfragmentation: a range of {UNITS} units, sizes 1..1023 with every octave as frequent, \
         exponential lifetimes\n  after {} turnovers with {:.0} % of the range asked for at a time; \
         refused allocations in percent by that share\n{}",
        effort.turnovers,
        100.0 * HELD,
        table.text()
    )
}

/// Every point, one a line.
pub fn csv(curves: &[Curves]) -> String {
    let mut text = String::from("curve,fit,at,value,free_segments\n");
    for one in curves {
        for (name, points) in [("wear", &one.wear), ("filling", &one.filling)] {
            for Point { at, value, free } in points {
                let _ = writeln!(text, "{name},{},{at},{value},{free}", one.fit);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_curves_is_taken_point_for_point() {
        let curve = |values: [f64; 2]| {
            let point = |(at, value): (usize, f64)| Point {
                at: at as f64,
                value,
                free: 2.0 * value,
            };
            values.into_iter().enumerate().map(point).collect()
        };
        let middle = middle(&[curve([1.0, 9.0]), curve([2.0, 8.0]), curve([7.0, 1.0])]);
        assert_eq!(middle, curve([2.0, 8.0]));
    }

    #[test]
    fn the_level_before_the_first_refusal_counts() {
        let point = |at, value| Point {
            at,
            value,
            free: 1.0,
        };
        let one = Curves {
            fit: "best",
            wear: vec![point(0.0, 100.0), point(2.0, 7.5)],
            filling: vec![point(70.0, 0.0), point(72.0, 0.5), point(74.0, 0.0)],
        };
        let (worn, whole) = summary(&one);
        assert_eq!(worn.map(|point| point.value), Some(7.5));
        assert_eq!(whole, Some(70.0));
        let lines = csv(&[one]);
        assert_eq!(lines.lines().nth(2), Some("wear,best,2,7.5,1"));
    }
}
