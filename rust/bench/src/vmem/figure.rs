//! What a measuring process answers: figures, a line each; and their medians.

use crate::stats::{summarise, Summary};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How much of everything; what the parent tells a measuring process.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Processor time of one sample.
    pub sample: Duration,
    /// How often this row was measured before.
    pub repeat: usize,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub row: String,
    pub metric: String,
    /// The allocator or fit.
    pub who: String,
    /// The copy of the loop; 0 where there is one.
    pub layout: usize,
    pub value: f64,
}

impl Figure {
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
        Some(Figure {
            row: row.to_owned(),
            metric: metric.to_owned(),
            who: who.to_owned(),
            layout: layout.parse().ok()?,
            value: value.parse().ok()?,
        })
    }
}

/// The raw data: a heading, and a line a figure.
pub fn csv(figures: &[Figure]) -> String {
    let lines = figures.iter().map(|figure| figure.encode() + "\n");
    format!("row,metric,who,layout,value\n{}", lines.collect::<String>())
}

/// Measures a row in a process of its own, which `vmem::run_child` serves.
pub fn in_child(row: &str, effort: &Effort) -> Result<Vec<Figure>, String> {
    let program = std::env::current_exe().map_err(|error| format!("{row}: {error}"))?;
    let mut command = Command::new(program);
    command
        .args(["vmem", "--child", row])
        .arg(effort.sample.as_micros().to_string())
        .arg(effort.repeat.to_string());
    ask(command, row)
}

/// The figures that a process prints, or what went wrong with `what`.
pub(crate) fn ask(mut command: Command, what: &str) -> Result<Vec<Figure>, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = complaint.lines().next().unwrap_or("");
        return Err(format!("{what}: {} {line}", output.status));
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    let figures = answer
        .lines()
        .map(|line| Figure::decode(line).ok_or_else(|| format!("{what}: unclear: {line}")));
    figures.collect()
}

/// The median and quartiles of what was found.
pub fn of(found: &[Figure], row: &str, metric: &str, who: &str) -> Option<Summary> {
    let here = found
        .iter()
        .filter(|one| one.row == row && one.metric == metric && one.who == who);
    let samples: Vec<(usize, f64)> = here.map(|one| (one.layout, one.value)).collect();
    summarise(&samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_the_pipe() {
        let figure = Figure {
            row: "segments/1000/32".to_owned(),
            metric: "alloc ns".to_owned(),
            who: "first-fit list".to_owned(),
            layout: 2,
            value: 0.125,
        };
        assert_eq!(Figure::decode(&figure.encode()), Some(figure));
        assert_eq!(Figure::decode("row,metric,who,0"), None);
        assert_eq!(Figure::decode("row,metric,who,0,fast"), None);
    }
}
