//! Figures: a measuring process prints each one as a line. The parent reads the lines, takes
//! medians, compares contenders, and keeps them as CSV.

use crate::part;
use crate::stats::{self, over, summarise, Summary};
use std::process::Command;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub row: String,
    pub metric: String,
    /// The allocator or fit.
    pub who: String,
    /// The copy of the loop, 0 if there is only one; in lists of rounds the round.
    pub layout: usize,
    pub value: f64,
}

impl Figure {
    pub fn new(row: &str, metric: &str, who: &str, layout: usize, value: f64) -> Figure {
        Figure {
            row: row.to_owned(),
            metric: metric.to_owned(),
            who: who.to_owned(),
            layout,
            value,
        }
    }

    /// One list of values, a value a round.
    pub fn rounds<'a>(
        row: &'a str,
        metric: &'a str,
        who: &'a str,
        values: &'a [f64],
    ) -> impl Iterator<Item = Figure> + 'a {
        let rounds = values.iter().enumerate();
        rounds.map(move |(round, &value)| Figure::new(row, metric, who, round, value))
    }

    pub fn encode(&self) -> String {
        let Figure {
            row,
            metric,
            who,
            layout,
            value,
        } = self;
        format!("{row},{metric},{who},{layout},{value}")
    }

    fn decode(line: &str) -> Option<Figure> {
        let fields: Vec<&str> = line.split(',').collect();
        let [row, metric, who, layout, value] = fields[..] else {
            return None;
        };
        let (layout, value) = (layout.parse().ok()?, value.parse().ok()?);
        Some(Figure::new(row, metric, who, layout, value))
    }
}

/// What the processes of a run found: their figures, and the errors of those that have none.
#[derive(Default)]
pub struct Found {
    pub figures: Vec<Figure>,
    pub failures: Vec<String>,
}

impl Found {
    /// Adds the answer of a process. False if it is an error.
    pub fn add(&mut self, answer: Result<Vec<Figure>, String>) -> bool {
        let is_good = answer.is_ok();
        match answer {
            Ok(figures) => self.figures.extend(figures),
            Err(what) => self.failures.push(what),
        }
        is_good
    }

    pub fn extend(&mut self, other: Found) {
        self.figures.extend(other.figures);
        self.failures.extend(other.failures);
    }
}

/// Asks all contenders in each repeat. Each repeat begins with another contender. A contender that
/// fails is left out from then on.
pub fn in_turn<T>(
    repeats: usize,
    mut who: Vec<T>,
    mut ask: impl FnMut(&T, usize) -> Result<Vec<Figure>, String>,
) -> Found {
    let mut found = Found::default();
    for repeat in 0..repeats {
        who.retain(|one| found.add(ask(one, repeat)));
        let turn = 1.min(who.len());
        who.rotate_left(turn);
    }
    found
}

/// A result that all contenders share.
pub struct Same<T>(Option<T>);

impl<T> Default for Same<T> {
    fn default() -> Self {
        Same(None)
    }
}

impl<T: PartialEq> Same<T> {
    /// An error if the result differs from the first one.
    pub fn check(&mut self, result: T, what: &str) -> Result<(), String> {
        match &self.0 {
            Some(first) if *first != result => {
                Err(format!("{what}: another result than the others"))
            }
            _ => {
                self.0.get_or_insert(result);
                Ok(())
            }
        }
    }
}

/// The raw data as CSV: a heading, and a line for each figure.
pub fn csv(figures: &[Figure]) -> String {
    let lines = figures.iter().map(|figure| figure.encode() + "\n");
    format!("row,metric,who,layout,value\n{}", lines.collect::<String>())
}

/// Prints the figures of a measuring process.
pub fn print(figures: &[Figure]) {
    for figure in figures {
        println!("{}", figure.encode());
    }
}

/// Runs a measuring process and returns the figures that it prints.
pub fn ask(command: Command, what: &str) -> Result<Vec<Figure>, String> {
    let answer = part::output(command, what)?;
    let figures = answer
        .lines()
        .map(|line| Figure::decode(line).ok_or_else(|| format!("{what}: unclear: {line}")));
    figures.collect()
}

/// The median and quartiles of one contender in one row.
pub fn of(found: &[Figure], row: &str, metric: &str, who: &str) -> Option<Summary> {
    let here = found
        .iter()
        .filter(|one| one.row == row && one.metric == metric && one.who == who);
    let samples: Vec<(usize, f64)> = here.map(|one| (one.layout, one.value)).collect();
    summarise(&samples)
}

pub fn median(found: &[Figure], row: &str, metric: &str, who: &str) -> Option<f64> {
    of(found, row, metric, who).map(|summary| summary.median)
}

/// The median of the ratios of two figures, repeat by repeat: each is a metric of a contender. The
/// runs of a repeat follow each other closely, so a machine that is slow for some repeats slows down
/// both.
pub fn paired(found: &[Figure], row: &str, own: (&str, &str), whole: (&str, &str)) -> Option<f64> {
    let of = |(metric, who): (&str, &str)| -> Vec<(usize, f64)> {
        let is_it = |one: &&Figure| one.row == row && one.metric == metric && one.who == who;
        let here = found.iter().filter(is_it);
        here.map(|one| (one.layout, one.value)).collect()
    };
    let wholes = of(whole);
    let in_repeat = |repeat| wholes.iter().find(|one| one.0 == repeat).map(|one| one.1);
    let ratios: Vec<f64> = of(own)
        .into_iter()
        .filter_map(|(repeat, value)| over(Some(value), in_repeat(repeat)))
        .collect();
    stats::median(&ratios)
}

/// The contender with the least value, and this value.
pub fn least<'a>(
    names: impl IntoIterator<Item = &'a str>,
    value: impl Fn(&str) -> Option<f64>,
) -> Option<(&'a str, f64)> {
    let values = names.into_iter().filter_map(|who| Some((who, value(who)?)));
    values.min_by(|one, other| one.1.total_cmp(&other.1))
}

/// The geometric mean of all rows; none if a row has no value, which would hide in the mean.
pub fn mean_of(rows: &[&str], value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = rows.iter().map(|row| value(row)).collect();
    all.and_then(|all| stats::geometric_mean(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_the_pipe() {
        let figure = Figure::new("segments/1000/32", "alloc ns", "first-fit list", 2, 0.125);
        assert_eq!(Figure::decode(&figure.encode()), Some(figure));
        assert_eq!(Figure::decode("row,metric,who,0"), None);
        assert_eq!(Figure::decode("row,metric,who,0,fast"), None);
    }

    #[test]
    fn who_fails_is_left_out_and_turns_rotate() {
        let (mut asked, mut same) = (Vec::new(), Same::default());
        let found = in_turn(3, vec!["ours", "theirs", "wrong"], |who, repeat| {
            asked.push((repeat, *who));
            same.check(*who == "wrong", who)?;
            Ok(vec![Figure::new("pair", "ns", who, repeat, 1.0)])
        });
        let turns = [
            (0, "ours"),
            (0, "theirs"),
            (0, "wrong"),
            (1, "theirs"),
            (1, "ours"),
        ];
        assert_eq!(asked[..5], turns);
        assert_eq!(found.failures, ["wrong: another result than the others"]);
        assert_eq!(found.figures.len(), 6);
    }

    #[test]
    fn ratios_are_those_of_the_runs_of_one_repeat() {
        let rounds = |who, values: &[f64]| Figure::rounds("row", "ms", who, values).collect();
        let all: [Vec<Figure>; 2] = [
            rounds("glibc", &[100.0, 200.0, 300.0]),
            rounds("slabyard", &[120.0, 150.0, 330.0]),
        ];
        let to_base = |who| paired(&all.concat(), "row", ("ms", who), ("ms", "glibc"));
        assert_eq!((to_base("slabyard"), to_base("absent")), (Some(1.1), None));
    }
}
