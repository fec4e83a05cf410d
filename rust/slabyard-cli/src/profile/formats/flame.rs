//! A flame graph as SVG, by the crate `inferno`. Of a difference, the width is the change, red where
//! there is more, blue where there is less.

use super::super::data::Profile;
use super::{folded, text};
use anyhow::{bail, Context, Result};
use inferno::flamegraph::{self, Options};

/// Functions with a smaller share, in percent, are left out: without this, one deep recursion makes
/// the picture ten times as high.
const WIDTH_LEAST: f64 = 0.2;

pub fn render(profile: &Profile, measure: usize) -> Result<Vec<u8>> {
    let lines = folded::lines(profile, measure);
    if lines.is_empty() {
        bail!(
            "there is nothing to draw: no {}",
            profile.measures[measure].title
        );
    }
    let is_difference = profile.is_difference;
    // Two weights, before and after. The second one is the width, and their difference the colour.
    let line = |(line, value): (String, i64)| match (is_difference, value < 0) {
        (false, _) => format!("{line} {value}"),
        (true, false) => format!("{line} 0 {value}"),
        (true, true) => format!("{line} {} {}", -2 * value, -value),
    };
    let lines: Vec<String> = lines.into_iter().map(line).collect();
    let total = profile.total(measure);
    let measure = profile.measures[measure];
    let amount = text::amount(total, measure.unit, is_difference);
    let mut options = Options::default();
    options.title = format!("{}: {amount} {}", profile.title, measure.title);
    options.min_width = WIDTH_LEAST;
    options.count_name = if measure.unit == "bytes" {
        "bytes"
    } else {
        "objects"
    }
    .to_string();
    options.deterministic = true;
    options.colors = flamegraph::color::Palette::Basic(flamegraph::color::BasicPalette::Mem);
    let mut svg = Vec::new();
    let lines = lines.iter().map(String::as_str);
    flamegraph::from_lines(&mut options, lines, &mut svg).context("cannot draw a flame graph")?;
    Ok(svg)
}
