//! Draws the overview as an SVG picture, for documents: a cell for each unit, in frames of 8 rows.
//!
//! The colour of a cell covers the part of the unit that is in memory, in quarters. Cells of one
//! colour are one path. In large heaps, equal neighbours in a row are one part of it. So 8 GiB take
//! some 3 MiB at most.

use super::collect::{Bytes, Page, Picture, UNIT, UNIT_PAGES};
use super::words;
use crate::report::chart::escape;
use crate::ui::{bytes, round_bytes};
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = include_str!("svg.css");

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 16.0;
/// The room for frames is about as high as this.
const HEIGHT: f64 = 560.0;
/// Pixels of a unit: the most, and below how many the cells of a frame are drawn without gaps.
const LARGEST: f64 = 28.0;
const SMALL: f64 = 5.0;
/// From one frame to the next, in units: a frame and a gap.
const STEP: f64 = 8.7;
const LINE: f64 = 18.0;
const ROW: f64 = 22.0;
/// So many caches are named below.
const NAMED: usize = 12;
const COLUMNS: usize = 2;

/// How a unit is drawn: its colour, and quarters of its height. Both are rounded up: a unit with one
/// live object is not free.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    class: &'static str,
    quarters: u64,
}

fn cell(unit: &[Page]) -> Cell {
    let mut sum = Bytes::<u64>::default();
    unit.iter().for_each(|page| sum.add(page));
    let resident = sum.resident();
    let waits = sum.waiting > 0 && sum.waiting >= sum.live.max(sum.free);
    let class = match (sum.live * 8).div_ceil(resident.max(1)) {
        _ if waits => "waiting",
        0 => "free",
        1 => "use-0",
        2 | 3 => "use-1",
        4 | 5 => "use-2",
        6 | 7 => "use-3",
        _ => "use-4",
    };
    Cell {
        class,
        quarters: (resident * 4).div_ceil(UNIT),
    }
}

/// How the frames are laid out.
struct Grid {
    columns: usize,
    /// Pixels of a unit.
    unit: f64,
}

impl Grid {
    fn of(frames: usize) -> Grid {
        let mut best = Grid {
            columns: 1,
            unit: 0.0,
        };
        for columns in 1..=frames.max(1) {
            let rows = frames.div_ceil(columns).max(1) as f64;
            let room = WIDTH - 2.0 * MARGIN;
            let unit = (room / (columns as f64 * STEP))
                .min(HEIGHT / (rows * STEP))
                .min(LARGEST);
            if unit >= best.unit {
                best = Grid { columns, unit };
            }
        }
        best
    }

    fn rows(&self, frames: usize) -> usize {
        frames.div_ceil(self.columns)
    }
}

/// The path of each class, in tenths of a unit. That of `absent` lies below the others.
fn paths(picture: &Picture, grid: &Grid) -> BTreeMap<&'static str, String> {
    let mut paths: BTreeMap<&'static str, String> = BTreeMap::new();
    // Where cells are small, lines between them would only make the picture pale.
    let gap = usize::from(grid.unit >= SMALL);
    let mut add = |class, x: usize, y: usize, across: usize, quarters: u64| {
        let path = paths.entry(class).or_default();
        let (across, down) = (across - gap, (10 - gap as u64) * quarters / 4);
        let _ = write!(path, "M{x} {y}h{across}v{down}h-{across}");
    };
    let tenths = (STEP * 10.0) as usize;
    for (number, frame) in picture.frames.iter().enumerate() {
        let left = number % grid.columns * tenths;
        let top = number / grid.columns * tenths;
        let cells: Vec<_> = frame.pages.chunks(UNIT_PAGES).map(cell).collect();
        for (line, cells) in cells.chunks(8).enumerate() {
            let y = top + line * 10;
            let mut x = left;
            for same in cells.chunk_by(|a, b| gap == 0 && a == b) {
                let (Cell { class, quarters }, across) = (same[0], same.len() * 10);
                if quarters < 4 {
                    add("absent", x, y, across, 4);
                }
                if quarters > 0 {
                    add(class, x, y, across, quarters);
                }
                x += across;
            }
        }
    }
    paths
}

/// The lines of a text that is as wide as the picture.
fn lines(words: &str) -> Vec<String> {
    const LETTERS: usize = 132;
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let line = lines.last_mut().expect("a line");
        let letters = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if letters <= LETTERS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.0}\" y=\"{y:.0}\" class=\"{class}\">{words}</text>"
    );
}

pub fn render(picture: &Picture) -> String {
    let grid = Grid::of(picture.frames.len());
    let down = grid.rows(picture.frames.len()) as f64 * STEP * grid.unit;
    let ranked = picture.ranked();
    let rows = ranked.len().min(NAMED).div_ceil(COLUMNS) as f64;
    let holes = lines(&words::holes(picture));
    let top = 92.0 + holes.len() as f64 * LINE;
    let below = top + down + 16.0;
    let height = below + (rows + 1.6) * ROW;
    let title = words::title(picture);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-labelledby=\"title says\">\n<title id=\"title\">{}</title>\n<desc id=\"says\">{} {}</desc>\n\
         <style>\n{STYLE}</style>\n<rect class=\"card\" width=\"{WIDTH}\" height=\"{height:.0}\"/>\n",
        escape(&title),
        words::answer(picture),
        words::holes(picture),
    );
    text(&mut svg, MARGIN, 26.0, "small", &title);
    text(&mut svg, MARGIN, 52.0, "answer", &words::answer(picture));
    for (number, line) in holes.iter().enumerate() {
        text(&mut svg, MARGIN, 74.0 + number as f64 * LINE, "small", line);
    }
    key(&mut svg, top - 22.0);
    let scale = grid.unit / 10.0;
    let _ = writeln!(
        svg,
        "<g transform=\"translate({MARGIN} {top}) scale({scale:.4})\">"
    );
    for (class, path) in paths(picture, &grid) {
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    svg += "</g>\n";
    caches(&mut svg, picture, &ranked, below);
    let note = format!(
        "{} in squares of 4 MiB, in order of address; a cell is a unit of {}.",
        words::extent(picture),
        round_bytes(UNIT)
    );
    text(&mut svg, MARGIN, below + (rows + 0.8) * ROW, "small", &note);
    svg + "</svg>\n"
}

fn key(svg: &mut String, y: f64) {
    let mut x = MARGIN;
    let mut swatch = |x: f64, class: &str| {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{y}\" width=\"14\" height=\"12\"/>"
        );
    };
    let mut words = Vec::new();
    words.push((x, "all live"));
    x += 58.0;
    for step in (0..5).rev() {
        swatch(x, &format!("use-{step}"));
        x += 14.0;
    }
    words.push((x + 6.0, "few live objects"));
    x += 132.0;
    for (class, what, room) in [
        ("waiting", "in magazines", 118.0),
        ("free", "free", 60.0),
        ("absent", "not in memory", 120.0),
    ] {
        swatch(x, class);
        words.push((x + 20.0, what));
        x += room;
    }
    for (x, what) in words {
        text(svg, x, y + 10.5, "small", what);
    }
}

/// The largest caches, with the parts of their memory as bars.
fn caches(svg: &mut String, picture: &Picture, ranked: &[usize], top: f64) {
    let shown = &ranked[..ranked.len().min(NAMED)];
    let across = (WIDTH - 2.0 * MARGIN) / COLUMNS as f64;
    for (place, &at) in shown.iter().enumerate() {
        let group = &picture.groups[at];
        let rows = shown.len().div_ceil(COLUMNS);
        let x = MARGIN + (place / rows) as f64 * across;
        let y = top + (place % rows) as f64 * ROW + ROW / 2.0;
        let name: String = group.name.chars().take(26).collect();
        text(svg, x, y + 4.0, "name", &name);
        let size = bytes(group.bytes.resident());
        text(svg, x + 278.0, y + 4.0, "end", &size);
        let free = group.bytes.waiting + group.bytes.free;
        let pinned = group.pinned.min(free);
        let waiting = group.bytes.waiting.min(free - pinned);
        let parts = [
            ("use-4", group.bytes.live),
            ("use-0", pinned),
            ("waiting", waiting),
            ("free", free - pinned - waiting),
        ];
        let mut at = x + 288.0;
        for (class, part) in parts.iter().filter(|(_, part)| *part > 0) {
            let wide = 150.0 * *part as f64 / group.bytes.resident().max(1) as f64;
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{at:.1}\" y=\"{:.0}\" width=\"{wide:.1}\" height=\"9\"/>",
                y - 4.0
            );
            at += wide;
        }
    }
}
