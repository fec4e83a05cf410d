//! Lays the overview out: a cell for each unit, in frames of 8 rows, with its key and the largest
//! caches. [`svg`](super::svg) and [`png`](super::png) draw it.
//!
//! The colour of a cell covers the part of the unit that is in memory, in quarters. In large heaps,
//! equal neighbours in a row are one cell.

use super::collect::{Bytes, Group, Page, Picture, UNIT, UNIT_PAGES};
use super::words;
use crate::ui::{bytes, round_bytes};

pub const WIDTH: f64 = 960.0;
pub const MARGIN: f64 = 16.0;
/// The room for frames is about as high as this.
const HEIGHT: f64 = 560.0;
/// Pixels of a unit: the most, and below how many the cells of a frame are drawn without gaps.
const LARGEST: f64 = 28.0;
const SMALL: f64 = 5.0;
/// From one frame to the next, in units: a frame and a gap.
const STEP: f64 = 8.7;
const LINE: f64 = 18.0;
const ROW: f64 = 22.0;
/// So many caches are named below, with so many letters of their names.
const NAMED: usize = 12;
const LETTERS: usize = 26;
const COLUMNS: usize = 2;

/// How a text looks, and where its position is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The largest, and bold.
    Answer,
    Small,
    Name,
    /// It ends at its position.
    End,
}

impl Style {
    /// The name of its rule in svg.css.
    pub fn class(self) -> &'static str {
        match self {
            Style::Answer => "answer",
            Style::Small => "small",
            Style::Name => "name",
            Style::End => "end",
        }
    }
}

/// A line of text; its position is the left end of the line that its letters stand on.
pub struct Text {
    pub x: f64,
    pub y: f64,
    pub style: Style,
    pub words: String,
}

/// A rectangle in the colour of a rule in svg.css.
pub struct Bar {
    pub class: &'static str,
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Some units beside each other that look the same.
pub struct Cell {
    /// The rule in svg.css for the part that is in memory.
    pub class: &'static str,
    /// Where the first is, from the first of the picture, and how many there are: tenths of a unit.
    pub x: usize,
    pub y: usize,
    pub across: usize,
    /// Quarters of the height that are in memory. Both this and the colour are rounded up: a unit
    /// with one live object is not free.
    pub quarters: u64,
}

/// The overview, in pixels of the SVG.
pub struct Scene {
    pub height: f64,
    pub title: String,
    pub says: String,
    pub texts: Vec<Text>,
    pub bars: Vec<Bar>,
    /// Where the cells begin, and the pixels of a unit.
    pub top: f64,
    pub unit: f64,
    /// There is a gap of a tenth of a unit between cells.
    pub has_gaps: bool,
    pub cells: Vec<Cell>,
}

/// The colour and the quarters of a unit.
fn look_of(unit: &[Page]) -> (&'static str, u64) {
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
    (class, (resident * 4).div_ceil(UNIT))
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

fn cells(picture: &Picture, grid: &Grid, merge: bool) -> Vec<Cell> {
    let tenths = (STEP * 10.0) as usize;
    let mut all = Vec::new();
    for (number, frame) in picture.frames.iter().enumerate() {
        let left = number % grid.columns * tenths;
        let top = number / grid.columns * tenths;
        let looks: Vec<_> = frame.pages.chunks(UNIT_PAGES).map(look_of).collect();
        for (line, looks) in looks.chunks(8).enumerate() {
            let mut x = left;
            for same in looks.chunk_by(|a, b| merge && a == b) {
                let ((class, quarters), across) = (same[0], same.len() * 10);
                all.push(Cell {
                    class,
                    x,
                    y: top + line * 10,
                    across,
                    quarters,
                });
                x += across;
            }
        }
    }
    all
}

/// The lines of a text that is as wide as the picture.
fn lines(words: &str) -> Vec<String> {
    const LETTERS: usize = 126;
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

impl Scene {
    pub fn of(picture: &Picture) -> Scene {
        let grid = Grid::of(picture.frames.len());
        let down = grid.rows(picture.frames.len()) as f64 * STEP * grid.unit;
        let ranked = picture.ranked();
        let rows = ranked.len().min(NAMED).div_ceil(COLUMNS) as f64;
        let holes = lines(&words::holes(picture));
        let top = 92.0 + holes.len() as f64 * LINE;
        let below = top + down + 16.0;
        let has_gaps = grid.unit >= SMALL;
        let mut scene = Scene {
            height: below + (rows + 1.6) * ROW,
            title: words::title(picture),
            says: format!("{} {}", words::answer(picture), words::holes(picture)),
            texts: Vec::new(),
            bars: Vec::new(),
            top,
            unit: grid.unit,
            has_gaps,
            // Where cells are small, lines between them would only make the picture pale.
            cells: cells(picture, &grid, !has_gaps),
        };
        scene.text(MARGIN, 26.0, Style::Small, &words::title(picture));
        scene.text(MARGIN, 52.0, Style::Answer, &words::answer(picture));
        for (number, line) in holes.iter().enumerate() {
            scene.text(MARGIN, 74.0 + number as f64 * LINE, Style::Small, line);
        }
        scene.key(top - 22.0);
        scene.caches(picture, &ranked, below);
        let note = format!(
            "{} in squares of 4 MiB, in order of address; a cell is a unit of {}.",
            words::extent(picture),
            round_bytes(UNIT)
        );
        scene.text(MARGIN, below + (rows + 0.8) * ROW, Style::Small, &note);
        scene
    }

    fn text(&mut self, x: f64, y: f64, style: Style, words: &str) {
        let words = words.to_string();
        self.texts.push(Text { x, y, style, words });
    }

    fn bar(&mut self, class: &'static str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.bars.push(Bar {
            class,
            x,
            y,
            width,
            height,
        });
    }

    fn key(&mut self, y: f64) {
        const SWATCH: (f64, f64) = (14.0, 12.0);
        let mut x = MARGIN;
        let named = |scene: &mut Scene, x: f64, words: &str| {
            scene.text(x, y + 10.5, Style::Small, words);
        };
        named(self, x, "all live");
        x += 64.0;
        for class in ["use-4", "use-3", "use-2", "use-1", "use-0"] {
            self.bar(class, (x, y), SWATCH);
            x += SWATCH.0;
        }
        named(self, x + 6.0, "few live objects");
        x += 140.0;
        for (class, what, room) in [
            ("waiting", "in magazines", 124.0),
            ("free", "free", 66.0),
            ("absent", "not in memory", 124.0),
        ] {
            self.bar(class, (x, y), SWATCH);
            named(self, x + 20.0, what);
            x += room;
        }
    }

    /// The largest caches, with the parts of their memory as bars.
    fn caches(&mut self, picture: &Picture, ranked: &[usize], top: f64) {
        let shown = &ranked[..ranked.len().min(NAMED)];
        let across = (WIDTH - 2.0 * MARGIN) / COLUMNS as f64;
        let rows = shown.len().div_ceil(COLUMNS);
        for (place, &at) in shown.iter().enumerate() {
            let group = &picture.groups[at];
            let x = MARGIN + (place / rows) as f64 * across;
            let y = top + (place % rows) as f64 * ROW + ROW / 2.0;
            let name: String = group.name.chars().take(LETTERS).collect();
            self.text(x, y + 4.0, Style::Name, &name);
            let size = bytes(group.bytes.resident());
            self.text(x + 278.0, y + 4.0, Style::End, &size);
            let mut at = x + 288.0;
            for (class, part) in parts(group).into_iter().filter(|(_, part)| *part > 0) {
                let wide = 150.0 * part as f64 / group.bytes.resident().max(1) as f64;
                self.bar(class, (at, y - 4.0), (wide, 9.0));
                at += wide;
            }
        }
    }
}

/// The parts of the memory of a cache, each with the rule for its colour.
fn parts(group: &Group) -> [(&'static str, u64); 4] {
    let free = group.bytes.waiting + group.bytes.free;
    let pinned = group.pinned.min(free);
    let waiting = group.bytes.waiting.min(free - pinned);
    [
        ("use-4", group.bytes.live),
        ("use-0", pinned),
        ("waiting", waiting),
        ("free", free - pinned - waiting),
    ]
}
