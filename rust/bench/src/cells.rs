//! Figures as the text of a table's cells.

use crate::stats::Summary;

/// Three figures or more, whatever the size.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Quartiles.
pub(crate) fn spread(summary: &Summary) -> String {
    format!("{} .. {}", figure(summary.low), figure(summary.high))
}

/// A figure, or a dash where there is none.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

/// A ratio, or a dash where there is none.
pub(crate) fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

pub(crate) fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other)
        .and_then(|(one, other)| (other > 0.0).then_some(one / other))
}
