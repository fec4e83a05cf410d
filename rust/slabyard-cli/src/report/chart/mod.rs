//! Charts as inline SVG. Their colours and fonts come from the page's classes (see `page.css`): an
//! allocator's colour is the class `c-NAME`.
//!
//! Most charts exist twice on the page, for wide and for narrow windows ([`Frame`]): a picture that
//! is only shrunk to a phone's width has letters that are too small to read. [`rows`] draws bars and dots,
//! [`curves`] draws lines, [`timeline`] draws figures of a process over hours. Nothing of a picture lies outside of its frame, so a window cuts none:
//! where words need room, it is computed by [`width_of`].

pub mod curves;
pub mod rows;
pub mod timeline;

use crate::replay::measure::{Figure, Measured};
use std::fmt::Write;

/// The room for a picture in its own units, and the margins of its curves.
pub struct Frame {
    pub name: &'static str,
    pub width: f64,
    pub left: f64,
    pub right: f64,
}

pub const WIDE: Frame = Frame {
    name: "wide",
    width: 960.0,
    left: 150.0,
    right: 176.0,
};

/// A unit is about a pixel of a phone.
pub const NARROW: Frame = Frame {
    name: "narrow",
    width: 350.0,
    left: 92.0,
    right: 10.0,
};

impl Frame {
    pub fn is_narrow(&self) -> bool {
        self.name == NARROW.name
    }
}

const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// The size of all letters in pictures, as in `page.css`.
pub const LETTERS: f64 = 13.5;

/// The names that have a colour in the style sheet; `program` is the recorded program.
pub const COLOURED: [&str; 9] = [
    "program",
    "slabyard",
    "slabyard-caches",
    "glibc",
    "mimalloc",
    "snmalloc",
    "jemalloc",
    "tcmalloc",
    "rpmalloc",
];

/// The class of an allocator's colour: `f` for letters, `c` for lines, `b` for areas. A library
/// that the user added has none.
pub fn colour(kind: char, name: &str) -> String {
    match COLOURED.contains(&name) {
        true => format!("{kind}-{name}"),
        false => String::new(),
    }
}

/// The width of a text in a picture with the widest of the usual fonts (DejaVu Sans Bold), so that
/// it fits with any other.
pub fn width_of(words: &str) -> f64 {
    let ems = words.chars().map(|letter| match letter {
        ' ' | 'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | 'I' => 0.38,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 0.5,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.05,
        letter if letter.is_ascii_uppercase() => 0.85,
        letter if letter.is_ascii() => 0.72,
        _ => 1.05,
    });
    LETTERS * ems.sum::<f64>()
}

/// Shortens a name that is wider than `room`.
fn fitted(name: &str, room: f64) -> String {
    if width_of(name) <= room {
        return name.to_string();
    }
    let mut short: String = name.to_string();
    while short.pop().is_some() && width_of(&short) + width_of("\u{2026}") > room {}
    short + "\u{2026}"
}

/// Escapes a text for HTML and its attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' => safe.push(' '),
            control if control.is_control() => safe.push('\u{FFFD}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Maps the values of an axis to positions in the picture.
struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| {
            if self.logarithmic {
                value.max(1e-12).log10()
            } else {
                value
            }
        };
        let (from, to) = (scale(self.from), scale(self.to));
        let share = if from == to {
            0.0
        } else {
            (scale(value) - from) / (to - from)
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }
}

/// The smallest round step of at least `rough`: 1, 2 or 5 times a power of ten; for bytes, a power
/// of two.
fn round_step(rough: f64, binary: bool) -> f64 {
    let rough = rough.max(1e-9);
    let base: f64 = if binary { 2.0 } else { 10.0 };
    let power = base.powf(rough.log(base).floor());
    let factors: &[f64] = if binary {
        &[1.0, 2.0]
    } else {
        &[1.0, 2.0, 5.0, 10.0]
    };
    let step = factors
        .iter()
        .map(|factor| factor * power)
        .find(|&step| step >= rough);
    step.unwrap_or(rough)
}

/// About `count` equal steps from 0 to at least `most`.
fn steps(most: f64, count: f64, binary: bool) -> Vec<f64> {
    let step = round_step(most / count, binary);
    (0..=(most / step).ceil() as u64)
        .map(|n| n as f64 * step)
        .collect()
}

/// Opens a picture. `id` is unique on the page; screen readers read `title` and `says`.
fn open(size: (f64, f64), id: &str, title: &str, says: &str) -> String {
    let ((width, height), title, says) = (size, escape(title), escape(says));
    format!(
        "<svg viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-title\" \
         aria-describedby=\"{id}-says\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-says\">{says}</desc>\n"
    )
}

/// A text with the figure of each allocator in a picture.
fn each(ranked: &[&Measured], figure: impl Fn(&Measured) -> String) -> String {
    let all: Vec<_> = ranked
        .iter()
        .map(|one| format!("{}: {}", one.name, figure(one)))
        .collect();
    all.join("; ")
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>"
    );
}

/// Writes labels below an axis, each at the middle of its place, or beside it at the edge of the
/// picture. Labels that have no room are left out.
fn labels_below(svg: &mut String, width: f64, y: f64, labels: &[(f64, String)]) {
    let mut free = 0.0;
    for (x, words) in labels {
        let half = width_of(words) / 2.0;
        let x = x.clamp(half, width - half);
        if x - half >= free {
            text(svg, x, y, "tick middle", words);
            free = x + half + 6.0;
        }
    }
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// Draws a bar with round corners.
fn bar(svg: &mut String, class: &str, from: (f64, f64), size: (f64, f64), hint: &str) {
    let ((x, y), (width, height)) = (from, size);
    let width = width.max(1.5);
    let hint = escape(hint);
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"2.5\"><title>{hint}</title></rect>"
    );
}

/// The confidence interval of the mean; for a single run, the value itself.
fn sure_range(figure: &Figure) -> (f64, f64) {
    let only = (figure.mean, figure.mean);
    figure.interval.map_or(only, |sure| (sure.low, sure.high))
}

/// A number with at most two decimals, without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
