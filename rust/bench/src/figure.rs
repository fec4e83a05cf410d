//! Figures: a measuring process prints each one as a line. The parent reads the lines, takes
//! medians, and keeps them as CSV.

use crate::part;
use crate::stats::{summarise, Summary};
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
}
