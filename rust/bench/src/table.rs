//! Tables: the one form in which all parts show their figures, and the cells of it.
//!
//! A table has a line for each contender or row. The first column has names, the others figures. It
//! is shown as text beside other text, or in Markdown for a document.

use crate::figure::{self, median, Figure};
use crate::stats::{over, Summary};

/// A table: the head, then the lines.
pub struct Table(Vec<Vec<String>>);

/// The least width of the first column and of the others, so that the columns of tables that follow
/// one another are below each other.
const NAME: usize = 24;
const FIGURE: usize = 7;

fn joined<S: Into<String>>(name: &str, cells: impl IntoIterator<Item = S>) -> Vec<String> {
    let cells = cells.into_iter().map(S::into);
    std::iter::once(name.to_owned()).chain(cells).collect()
}

impl Table {
    /// A table without lines: what the names are, and the heads of the other columns.
    pub fn new<S: Into<String>>(name: &str, heads: impl IntoIterator<Item = S>) -> Table {
        Table(vec![joined(name, heads)])
    }

    /// The same table with another name in the head.
    pub fn named(mut self, name: &str) -> Table {
        self.0[0][0] = name.to_owned();
        self
    }

    /// Adds a line.
    pub fn line<S: Into<String>>(&mut self, name: &str, cells: impl IntoIterator<Item = S>) {
        self.0.push(joined(name, cells));
    }

    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    /// As text. The lines are indented below the head.
    pub fn text(&self) -> String {
        let long = |cell: &String| cell.chars().count();
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column| {
            self.0
                .iter()
                .filter_map(|line| line.get(column))
                .map(long)
                .max()
        };
        let widths: Vec<usize> = (1..columns)
            .map(|column| widest(column).max(Some(FIGURE)).unwrap_or(FIGURE))
            .collect();
        let name = widest(0).unwrap_or(0).max(NAME);
        let mut text = String::new();
        for (index, line) in self.0.iter().enumerate() {
            let indent = if index == 0 { 2 } else { 4 };
            let mut shown = format!(
                "{:indent$}{:<width$}",
                "",
                line[0],
                width = name + 4 - indent
            );
            for (cell, width) in line[1..].iter().zip(&widths) {
                shown += &format!("  {cell:>width$}");
            }
            text += shown.trim_end();
            text.push('\n');
        }
        text
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let mut lines: Vec<String> = self
            .0
            .iter()
            .map(|line| format!("| {} |\n", line.join(" | ")))
            .collect();
        lines.insert(1, format!("|---|{}\n", "---:|".repeat(self.0[0].len() - 1)));
        lines.concat()
    }

    /// In Markdown, below a title.
    pub fn below(&self, title: &str) -> String {
        format!("\n{title}\n\n{}", self.markdown())
    }
}

/// A ratio of a block: its head, and whose figure is the whole for a contender.
pub type Whole<'a> = (&'a str, &'a dyn Fn(&str) -> Option<&'a str>);

/// One row of a part: a line for each contender that has figures. The first metric has quartiles and
/// the ratios.
pub fn block(
    found: &[Figure],
    row: &str,
    names: &[&str],
    metrics: &[&str],
    wholes: &[Whole],
) -> Table {
    let (first, others) = metrics.split_first().expect("a metric");
    let of = |metric: &str, who: &str| median(found, row, metric, who);
    let heads = [first, "quartiles"]
        .into_iter()
        .chain(others.iter().copied())
        .chain(wholes.iter().map(|whole| whole.0));
    let mut table = Table::new("", heads);
    for who in names {
        let Some(summary) = figure::of(found, row, first, who) else {
            continue;
        };
        let own = [figure(summary.median), spread(&summary)].into_iter();
        let others = others.iter().map(|metric| cell(of(metric, who)));
        let ratios = wholes.iter().map(|(_, whole)| {
            ratio(over(
                Some(summary.median),
                whole(who).and_then(|whole| of(first, whole)),
            ))
        });
        table.line(who, own.chain(others).chain(ratios));
    }
    table
}

/// Three figures or more, whatever the size.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Quartiles.
pub fn spread(summary: &Summary) -> String {
    format!("{} .. {}", figure(summary.low), figure(summary.high))
}

/// A value in words, or a dash where there is none.
pub fn or_dash<T>(value: Option<T>, words: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), words)
}

pub fn cell(value: Option<f64>) -> String {
    or_dash(value, figure)
}

pub fn ratio(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_text_and_markdown() {
        let mut table = Table::new("row", ["ns", "quartiles"]);
        assert!(table.is_empty());
        table.line("pair", ["1.5", "1.0 .. 2.0"]);
        table.line("empty", [""]);
        let text = "  row                              ns   quartiles\n    \
                    pair                          1.5  1.0 .. 2.0\n    \
                    empty\n";
        assert_eq!(table.text(), text);
        let markdown = "| row | ns | quartiles |\n|---|---:|---:|\n| pair | 1.5 | 1.0 .. 2.0 |\n\
                        | empty |  |\n";
        assert_eq!(table.markdown(), markdown);
    }

    #[test]
    fn a_block_has_those_who_have_figures_and_ratios_of_their_own() {
        let figure = |metric, who, value| Figure::new("pair", metric, who, 0, value);
        let found = [
            figure("ns", "ours", 10.0),
            figure("ns", "theirs", 40.0),
            figure("bytes", "ours", 1234.5),
        ];
        let names = ["ours", "theirs", "absent"];
        let to_theirs = |who: &str| (who == "ours").then_some("theirs");
        let block = block(
            &found,
            "pair",
            &names,
            &["ns", "bytes"],
            &[("/x", &to_theirs)],
        );
        let lines = [
            ["", "ns", "quartiles", "bytes", "/x"],
            ["ours", "10.00", "10.00 .. 10.00", "1234", "0.25"],
            ["theirs", "40.00", "40.00 .. 40.00", "-", "-"],
        ];
        assert_eq!(block.0, lines);
    }
}
