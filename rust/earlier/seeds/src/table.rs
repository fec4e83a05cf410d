//! The figures as tables: first those at which Slabyard loses, then all others by system.

use crate::documents::{Document, Figure, Row};
use slabyard_bench::table::{cell, figure as shown, or_dash, Table};
use slabyard_certainty::{self as certainty, Interval};
use std::fmt::Write;

/// A claimed figure and its measured values, one for each round. Lists of contenders that were not
/// measured are empty.
pub struct Line {
    pub document: &'static Document,
    pub row: &'static Row,
    pub figure: &'static Figure,
    pub original: Vec<f64>,
    pub slabyard: Vec<f64>,
    pub peer: Vec<f64>,
}

/// Slabyard's figure over another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    value: f64,
    /// `None` if the rounds differ too much for an interval.
    interval: Option<Interval>,
}

impl Ratio {
    /// The ratio of two lists from the same rounds.
    fn of(own: &[f64], other: &[f64]) -> Option<Ratio> {
        let are_there = !own.is_empty() && !other.is_empty();
        are_there.then(|| Ratio {
            value: certainty::mean(own) / certainty::mean(other),
            interval: certainty::of_ratio(own, other),
        })
    }

    /// The ratio to a claimed figure, which has no interval.
    fn to_claim(own: &[f64], claim: f64) -> Option<Ratio> {
        (!own.is_empty()).then(|| Ratio {
            value: certainty::mean(own) / claim,
            interval: certainty::of_mean(own).map(|interval| Interval {
                low: interval.low / claim,
                high: interval.high / claim,
            }),
        })
    }

    /// Whether Slabyard's figure is larger: the whole interval is above 1. Smaller figures are
    /// better.
    fn is_loss(self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 1.0)
    }

    fn text(self) -> String {
        let Ratio { value, interval } = self;
        let digits = if (value - 1.0).abs() < 0.1 { 3 } else { 2 };
        let Some(Interval { low, high }) = interval else {
            return format!("{value:.digits$} (unsure)");
        };
        let text = format!("{value:.digits$} ({low:.digits$} to {high:.digits$})");
        if self.is_loss() {
            format!("**{text}**")
        } else {
            text
        }
    }
}

impl Line {
    fn to_original(&self) -> Option<Ratio> {
        Ratio::of(&self.slabyard, &self.original)
    }

    fn to_peer(&self) -> Option<Ratio> {
        Ratio::of(&self.slabyard, &self.peer)
    }

    fn to_claim(&self) -> Option<Ratio> {
        Ratio::to_claim(&self.slabyard, self.figure.system?)
    }

    /// The largest ratio that is a loss: to the original, or if that was not measured, to the claim
    /// or to the C library.
    fn loss(&self) -> Option<f64> {
        let judged = match self.original.is_empty() {
            false => [self.to_original(), None],
            true => [self.to_claim(), self.to_peer()],
        };
        let losses = judged.into_iter().flatten().filter(|ratio| ratio.is_loss());
        losses.map(|ratio| ratio.value).max_by(f64::total_cmp)
    }

    /// The row and its figure. If the row has more threads than processors, the number of processors.
    fn label(&self, processors: usize) -> String {
        let mut text = format!("`{}`", self.document.full_name(self.row));
        if self.row.figures.len() > 1 || self.figure.metric != self.row.unit {
            let _ = write!(text, " {}", self.figure.metric);
        }
        if self.figure.metric != self.row.unit && !self.figure.metric.contains('/') {
            let _ = write!(text, ", {}", self.row.unit);
        }
        if self.row.threads > processors {
            let _ = write!(text, " ({processors} processors)");
        }
        text
    }

    fn cells(&self) -> [String; 7] {
        let measured = |values: &[f64]| match values {
            [] => "-".to_owned(),
            _ => shown(certainty::mean(values)),
        };
        [
            cell(self.figure.system),
            cell(self.figure.peer),
            measured(&self.original),
            measured(&self.slabyard),
            measured(&self.peer),
            match self.original.is_empty() {
                false => or_dash(self.to_original(), Ratio::text),
                true => or_dash(self.to_claim(), |ratio| {
                    format!("to the claim {}", ratio.text())
                }),
            },
            or_dash(self.to_peer(), Ratio::text),
        ]
    }
}

const HEADS: [&str; 7] = [
    "claimed",
    "malloc there",
    "original",
    "Slabyard",
    "malloc",
    "Slabyard / original",
    "Slabyard / malloc",
];

fn table<'a>(lines: impl Iterator<Item = &'a Line>, processors: usize) -> String {
    let mut table = Table::new("figure", HEADS);
    for line in lines {
        table.line(&line.label(processors), line.cells());
    }
    match table.is_empty() {
        true => "none\n".to_owned(),
        false => table.markdown(),
    }
}

/// All tables, of a run on this number of processors.
pub fn tables(lines: &[Line], processors: usize) -> String {
    let mut losses: Vec<(f64, &Line)> = lines
        .iter()
        .filter_map(|line| Some((line.loss()?, line)))
        .collect();
    losses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut text = String::from(
        "\nWhere Slabyard loses to the original, or without one to the claim or to malloc:\n\n",
    );
    text += &table(losses.iter().map(|(_, line)| *line), processors);
    let others: Vec<&Line> = lines.iter().filter(|line| line.loss().is_none()).collect();
    for of_one in others.chunk_by(|one, other| one.document.name == other.document.name) {
        let document = of_one[0].document;
        let _ = write!(
            text,
            "\n{} {}; claimed figures: {}\n\n{}",
            document.name,
            document.version,
            document.machine,
            table(of_one.iter().copied(), processors)
        );
    }
    text
}

/// The median and the widest interval of the ratios, as shares of the ratios.
pub fn noise(lines: &[Line]) -> String {
    let ratios = lines
        .iter()
        .flat_map(|line| [line.to_original(), line.to_peer()]);
    let precisions: Vec<f64> = ratios
        .flatten()
        .filter_map(|ratio| Some(ratio.interval?.precision()))
        .collect();
    let at =
        |share| slabyard_bench::stats::quantile(&precisions, share).unwrap_or(f64::NAN) * 100.0;
    format!(
        "\nnoise: half of the intervals reach less than {:.1} % to each side, nine in ten less than \
         {:.1} %\n",
        at(0.5),
        at(0.9)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::ALL;

    fn line(name: &str, metric: &str) -> Line {
        let named = ALL.iter().flat_map(|document| {
            let rows = document.rows.iter();
            rows.flat_map(move |row| {
                row.figures
                    .iter()
                    .map(move |figure| (document, row, figure))
            })
        });
        let wanted = |(document, row, figure): &(&Document, &Row, &Figure)| {
            document.full_name(row) == name && figure.metric == metric
        };
        let (document, row, figure) = named.into_iter().find(wanted).unwrap();
        Line {
            document: ALL
                .iter()
                .find(|one| one.name == document.name)
                .map(leak)
                .unwrap(),
            row: leak(row),
            figure: leak(figure),
            original: Vec::new(),
            slabyard: Vec::new(),
            peer: Vec::new(),
        }
    }

    fn leak<T: Copy>(value: &T) -> &'static T {
        Box::leak(Box::new(*value))
    }

    #[test]
    fn losses_come_first_and_the_largest_before_all() {
        let lines = [
            Line {
                original: vec![10.0; 3],
                slabyard: vec![5.0; 3],
                peer: vec![4.0; 3],
                ..line("xslab/pair", "ns")
            },
            Line {
                original: vec![10.0; 3],
                slabyard: vec![12.0; 3],
                peer: vec![20.0; 3],
                ..line("xslab/batch-16", "ns")
            },
            Line {
                original: vec![10.0; 3],
                slabyard: vec![30.0; 3],
                peer: vec![20.0; 3],
                ..line("magazine-slab/steady", "ns")
            },
        ];
        let text = tables(&lines, 2);
        let place = |name: &str| text.find(name).unwrap();
        let rest = place("claimed figures: Apple");
        assert!(
            place("magazine-slab/steady") < place("xslab/batch-16"),
            "{text}"
        );
        assert!(
            place("xslab/batch-16") < rest && rest < place("xslab/pair"),
            "{text}"
        );
        let row = "| `xslab/pair` | 2.580 | 18.90 | 10.00 | 5.000 | 4.000 | \
                   0.50 (0.50 to 0.50) | **1.25 (1.25 to 1.25)** |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn a_difference_that_chance_explains_is_no_loss() {
        let unsure = Line {
            original: vec![10.0, 12.0, 9.0],
            slabyard: vec![12.0, 9.5, 10.5],
            ..line("xslab/pair", "ns")
        };
        assert!(unsure.to_original().unwrap().value > 1.0);
        assert_eq!(unsure.loss(), None);
        assert!(tables(&[unsure], 2).contains("none\n"));
    }

    #[test]
    fn a_ratio_of_which_nothing_is_known_has_no_interval() {
        let wild = Line {
            original: vec![0.1, 90.0, 0.2],
            slabyard: vec![1.0, 2.0, 1.0],
            ..line("xslab/pair", "ns")
        };
        assert_eq!(wild.cells()[5], "0.04 (unsure)");
        assert_eq!(wild.loss(), None);
    }

    #[test]
    fn without_an_original_the_claim_and_malloc_judge() {
        let beside = |slabyard: f64, peer: f64| Line {
            slabyard: vec![slabyard; 2],
            peer: vec![peer; 2],
            ..line("userland-slab/memory-8", "MiB")
        };
        assert_eq!(beside(15.0, 38.0).loss(), None);
        assert_eq!(beside(15.0, 12.0).loss(), Some(1.25));
        let worse = beside(30.6, 38.0);
        assert_eq!(worse.loss(), Some(2.0));
        assert_eq!(worse.cells()[5], "to the claim **2.00 (2.00 to 2.00)**");
        let unclaimed = Line {
            slabyard: vec![9.0; 2],
            ..line("zns-slab/latency", "alloc p99")
        };
        assert_eq!(unclaimed.loss(), None);
    }

    #[test]
    fn labels_name_the_figure_its_unit_and_too_few_processors() {
        let label = |name, metric, processors| line(name, metric).label(processors);
        assert_eq!(label("xslab/pair", "ns", 1), "`xslab/pair`");
        assert_eq!(
            label("xslab/threads-4", "ns", 2),
            "`xslab/threads-4` (2 processors)"
        );
        assert_eq!(
            label("nexus-slab/churn/32", "p99.9", 2),
            "`nexus-slab/churn/32` p99.9, cycles"
        );
        assert_eq!(
            label("zns-slab/churn", "after / before", 2),
            "`zns-slab/churn` after / before"
        );
    }
}
