//! Tables whose rows can be sorted and filtered, and that fit into any width.

use crate::ui::{bytes, grouped};
use std::cmp::Ordering;

/// A cell: what it is sorted by, and how it is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words in an order of their own.
    Place(usize, String),
    Words(String),
    /// A number that names something.
    Number(u64),
    Count(u64),
    Bytes(u64),
    /// Bytes more or less.
    Change(i64),
    /// Objects a second more or less; `None`: not known yet.
    Rate(Option<f64>),
    /// A part of the whole.
    Share(f64),
    /// The same, drawn.
    Bar(f64),
    /// Figures over time, the newest last.
    Trend(Vec<u64>),
    /// A figure that could not be had.
    Missing,
}

impl Value {
    /// What sorts rows; larger ones come first, but words from A to Z.
    fn compare(&self, other: &Value) -> Ordering {
        use Value::*;
        match (self, other) {
            (Place(a, _), Place(b, _)) => a.cmp(b),
            (Words(a), Words(b)) => a.to_lowercase().cmp(&b.to_lowercase()),
            (Number(a), Number(b)) => a.cmp(b),
            (Count(a), Count(b)) | (Bytes(a), Bytes(b)) => b.cmp(a),
            (Change(a), Change(b)) => b.cmp(a),
            (Rate(a), Rate(b)) => b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0)),
            (Share(a), Share(b)) | (Bar(a), Bar(b)) => b.total_cmp(a),
            (Missing, Missing) => Ordering::Equal,
            (Missing, _) => Ordering::Greater,
            (_, Missing) => Ordering::Less,
            _ => Ordering::Equal,
        }
    }

    /// Bars and trends are drawn as wide as the column.
    pub fn text(&self, width: usize) -> String {
        match self {
            Value::Place(_, words) | Value::Words(words) => words.clone(),
            Value::Number(number) => number.to_string(),
            Value::Count(count) => grouped(*count),
            Value::Bytes(count) => bytes(*count),
            Value::Change(change) => signed(*change as f64, |count| bytes(count as u64)),
            Value::Rate(None) | Value::Missing => "-".to_string(),
            Value::Rate(Some(rate)) => signed(rate.round(), |count| grouped(count as u64)),
            Value::Share(share) => format!("{:.1} %", share * 100.0),
            Value::Bar(share) => bar(*share, width),
            Value::Trend(figures) => trend(figures, width),
        }
    }
}

/// A number with its sign; nothing changes without a sign.
fn signed(number: f64, words: impl Fn(f64) -> String) -> String {
    let sign = match number {
        more if more > 0.0 => "+",
        fewer if fewer < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", words(number.abs()))
}

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let rest = (eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]);
    let whole = std::iter::repeat_n(EIGHTHS[7], eighths / 8);
    whole.chain(rest).collect()
}

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last figures as columns between the least and the most of them.
fn trend(figures: &[u64], width: usize) -> String {
    /// Changes below this part of the figures are drawn smaller: they do not matter.
    const LEAST: f64 = 0.05;
    let shown = &figures[figures.len().saturating_sub(width)..];
    let least = shown.iter().min().copied().unwrap_or(0) as f64;
    let most = shown.iter().max().copied().unwrap_or(0) as f64;
    let span = (most - least).max(most * LEAST).max(1.0);
    let height = |figure: &u64| HEIGHTS[((*figure as f64 - least) / span * 7.0).round() as usize];
    let columns: String = shown.iter().map(height).collect();
    format!("{columns:>width$}")
}

pub struct Column {
    pub head: &'static str,
    /// Columns with a rank are left out where they do not fit, those with the highest first.
    pub rank: u8,
    pub shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Words,
    /// To the right.
    Figure,
    Bar,
    Trend,
    /// Words that are cut to the room that is left.
    Rest,
}

pub const fn column(head: &'static str, rank: u8, shape: Shape) -> Column {
    Column { head, rank, shape }
}

impl Column {
    pub fn is_sortable(&self) -> bool {
        self.shape == Shape::Words || self.shape == Shape::Figure
    }
}

/// What a row is about, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// The sum of the rows of its group.
    Sum,
    Live,
    Free,
    Own,
    Other,
}

#[derive(Debug, Clone, Default)]
pub struct Row {
    /// One value for each column. The first one names the row.
    pub values: Vec<Value>,
    pub tone: Tone,
    /// Rows are sorted within their group, where the sum comes first.
    pub group: usize,
}

#[derive(Default)]
pub struct Table {
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub reversed: bool,
}

impl Order {
    pub const fn by(column: usize) -> Self {
        Order {
            column,
            reversed: false,
        }
    }

    /// Chooses the next column.
    pub fn advance(&mut self, columns: &[Column]) {
        let mut next = (1..=columns.len()).map(|step| (self.column + step) % columns.len().max(1));
        let sortable = |at: &usize| columns[*at].is_sortable();
        *self = Order::by(next.find(sortable).unwrap_or(0));
    }
}

impl Table {
    /// The rows whose name contains `filter`, in order. With a filter there are no sums.
    pub fn view(&self, order: Order, filter: &str) -> Vec<&Row> {
        let filter = filter.to_lowercase();
        let is_wanted = |row: &&Row| {
            let name = row.values.first().map(|value| value.text(0));
            let found = name.is_some_and(|name| name.to_lowercase().contains(&filter));
            found && (filter.is_empty() || row.tone != Tone::Sum)
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(is_wanted).collect();
        rows.sort_by(|a, b| {
            let by_group = (a.group, a.tone != Tone::Sum).cmp(&(b.group, b.tone != Tone::Sum));
            let of = |row: &'_ Row| row.values.get(order.column).cloned();
            let by_value = match (of(a), of(b)) {
                (Some(a), Some(b)) => a.compare(&b),
                _ => Ordering::Equal,
            };
            let by_value = match order.reversed {
                true => by_value.reverse(),
                false => by_value,
            };
            by_group.then(by_value)
        });
        rows
    }

    /// The columns that fit into a width, and their widths.
    pub fn fit(&self, width: usize) -> Vec<(usize, usize)> {
        const NAME: usize = 14;
        let mut shown: Vec<_> = (0..self.columns.len())
            .map(|at| (at, self.width_of(at)))
            .collect();
        let sum = |shown: &[(usize, usize)]| {
            let widths = shown.iter().map(|(_, width)| width + GAP);
            widths.sum::<usize>().saturating_sub(GAP)
        };
        let over = |shown: &[(usize, usize)]| {
            let name = shown.first().map_or(0, |one| one.1);
            sum(shown).saturating_sub(name.saturating_sub(NAME)) > width
        };
        while over(&shown) {
            let rank = |&&(at, _): &&(usize, usize)| self.columns[at].rank;
            let Some(&(last, _)) = shown.iter().max_by_key(rank) else {
                break;
            };
            if self.columns[last].rank == 0 {
                break;
            }
            shown.retain(|&(at, _)| at != last);
        }
        let missing = sum(&shown).saturating_sub(width);
        if let Some(name) = shown.first_mut() {
            name.1 = name.1.saturating_sub(missing).max(NAME.min(name.1));
        }
        let spare = width.saturating_sub(sum(&shown));
        widen(&mut shown, self.columns, spare);
        shown
    }

    fn width_of(&self, at: usize) -> usize {
        const BAR: usize = 8;
        const TREND: usize = 8;
        // The sign of the sorted column needs room.
        let head = self.columns[at].head.chars().count() + 1;
        let cells = || {
            let cell = |row: &Row| row.values[at].text(0).chars().count();
            self.rows.iter().map(cell).max().unwrap_or(0)
        };
        match self.columns[at].shape {
            Shape::Words | Shape::Figure => head.max(cells()),
            Shape::Bar => BAR,
            Shape::Trend | Shape::Rest => TREND,
        }
    }
}

impl Table {
    /// The cells of a row for these columns, each as wide as its column.
    pub fn cells(&self, row: &Row, shown: &[(usize, usize)]) -> Vec<String> {
        let cells = shown.iter().map(|&(at, width)| {
            let text = row.values[at].text(width);
            self.aligned(at, &text, width)
        });
        cells.collect()
    }

    /// The heads, the sorted one with a sign.
    pub fn heads(&self, order: Option<Order>, shown: &[(usize, usize)]) -> Vec<String> {
        let heads = shown.iter().map(|&(at, width)| {
            let head = self.columns[at].head;
            let sign = match order.filter(|order| order.column == at) {
                None => "",
                Some(order) if order.reversed != (self.columns[at].shape == Shape::Words) => "▲",
                Some(_) => "▼",
            };
            self.aligned(at, &format!("{head}{sign}"), width)
        });
        heads.collect()
    }

    fn aligned(&self, at: usize, text: &str, width: usize) -> String {
        let text = match text.chars().count() > width {
            true => {
                let start = text.chars().take(width.saturating_sub(1));
                start.chain(['…']).take(width).collect()
            }
            false => text.to_string(),
        };
        match self.columns[at].shape {
            Shape::Figure | Shape::Trend => format!("{text:>width$}"),
            _ => format!("{text:<width$}"),
        }
    }
}

/// Characters between two columns.
pub const GAP: usize = 2;

/// Gives room that is left to bars and trends, as much as helps.
fn widen(shown: &mut [(usize, usize)], columns: &[Column], mut spare: usize) {
    let room = [
        (Shape::Trend, 40),
        (Shape::Bar, 30),
        (Shape::Trend, 60),
        (Shape::Rest, 200),
    ];
    for (shape, most) in room {
        for (at, width) in shown.iter_mut() {
            if columns[*at].shape == shape {
                let more = spare.min(most.max(*width) - *width);
                *width += more;
                spare -= more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        column("name", 0, Shape::Words),
        column("size", 0, Shape::Figure),
        column("kind", 1, Shape::Words),
        column("trend", 2, Shape::Trend),
    ];

    fn table() -> Table {
        let row = |name: &str, size: u64, group: usize, tone: Tone| Row {
            values: vec![
                Value::Words(name.into()),
                Value::Bytes(size),
                Value::Words("thing".into()),
                Value::Trend(vec![size]),
            ],
            tone,
            group,
        };
        Table {
            columns: COLUMNS,
            rows: vec![
                row("beta", 5, 0, Tone::Plain),
                row("Alpha", 7, 0, Tone::Plain),
                row("sum", 12, 0, Tone::Sum),
                row("alphabet", 9, 1, Tone::Plain),
            ],
        }
    }

    fn names(rows: &[&Row]) -> Vec<String> {
        rows.iter().map(|row| row.values[0].text(0)).collect()
    }

    #[test]
    fn rows_are_sorted_within_their_groups() {
        let table = table();
        let by = |column, reversed| names(&table.view(Order { column, reversed }, ""));
        assert_eq!(by(1, false), ["sum", "Alpha", "beta", "alphabet"]);
        assert_eq!(by(1, true), ["sum", "beta", "Alpha", "alphabet"]);
        assert_eq!(by(0, false), ["sum", "Alpha", "beta", "alphabet"]);
        // A trend has no order, so the rows stay as they are.
        assert_eq!(by(3, false), ["sum", "beta", "Alpha", "alphabet"]);
    }

    #[test]
    fn a_filter_ignores_case_and_leaves_sums_out() {
        let table = table();
        let found = |filter| names(&table.view(Order::by(1), filter));
        assert_eq!(found("ALPHA"), ["Alpha", "alphabet"]);
        assert_eq!(found("sum"), [""; 0]);
    }

    #[test]
    fn the_order_goes_round_all_columns_but_drawn_ones() {
        let mut order = Order {
            column: 1,
            reversed: true,
        };
        order.advance(COLUMNS);
        assert_eq!(order, Order::by(2));
        order.advance(COLUMNS);
        assert_eq!(order, Order::by(0));
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out() {
        let table = table();
        assert_eq!(table.fit(40), [(0, 8), (1, 5), (2, 5), (3, 16)]);
        assert_eq!(table.fit(24), [(0, 8), (1, 5), (2, 5)]);
        assert_eq!(table.fit(15), [(0, 8), (1, 5)]);
        assert_eq!(table.fit(1), [(0, 8), (1, 5)]);
    }

    #[test]
    fn bars_and_trends_are_drawn() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53, 4), "██▏");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(trend(&[], 3), "   ");
        assert_eq!(trend(&[100, 100], 3), " ▁▁");
        assert_eq!(trend(&[0, 50, 100], 3), "▁▅█");
        assert_eq!(trend(&[7, 0, 50, 100], 3), "▁▅█");
        // One per cent more is no cliff.
        assert_eq!(trend(&[100, 101], 2), "▁▂");
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(Value::Change(-2048).text(0), "-2.0 KiB");
        assert_eq!(Value::Change(0).text(0), "0 B");
        assert_eq!(Value::Rate(Some(1234.4)).text(0), "+1,234");
        assert_eq!(Value::Rate(Some(-0.2)).text(0), "0");
        assert_eq!(Value::Rate(None).text(0), "-");
    }
}
