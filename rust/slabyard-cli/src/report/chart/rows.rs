//! Charts with a row for each allocator, size or kind of call: dots with intervals, and bars.

use super::{
    bar, colour, each, escape, fitted, labels_below, line, open, round_step, sure_range, text,
    trimmed, width_of, Axis, Frame, TOP,
};
use crate::plan::SizeClass;
use crate::preload::serving::LIBC;
use crate::real::answer::{bounds, more_or_less};
use crate::real::text::Shown;
use crate::real::{self, RealRuns};
use crate::replay::measure::Measured;
use crate::report::answer::{self, Answer};
use crate::report::Report;
use crate::ui::{bytes, grouped, nanoseconds, round_bytes};
use std::fmt::Write;

/// The width of a chart of runs, which is small enough for a phone. Wide windows have several side
/// by side.
const PANEL: f64 = 320.0;

/// The first letter of a name may begin before its place, as a j does.
const SIDE: f64 = 2.0;

/// The chart of one figure of the program: for each allocator a dot and an interval, in per cent of
/// the first allocator's figure. `None` if no run has the figure.
pub fn runs(all: &RealRuns, shown: &Shown) -> Option<String> {
    const ROW: f64 = 44.0;
    let good = all.allocators.iter().filter(|one| one.failure.is_none());
    let rows: Vec<_> = good
        .filter_map(|one| Some((one, shown.kind(one)?)))
        .collect();
    let base = &all.allocators.first()?.name;
    if rows.is_empty() {
        return None;
    }
    let axis = axis_of_runs(&rows.iter().map(|row| row.1).collect::<Vec<_>>());
    let words = |one: &real::Measured, kind: &real::Kind| {
        let value = (shown.unit)(kind.figure.mean);
        let told = kind.to_first.map(|ratio| signed(ratio.ratio));
        match told {
            Some(told) => format!("{value}  {told}"),
            None if one.name == *base => value,
            None => format!("{value}  -"),
        }
    };
    let says: Vec<_> = rows
        .iter()
        .map(|(one, kind)| format!("{}: {}", one.name, in_words(kind, shown)))
        .collect();
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = open(
        (PANEL, bottom + 22.0),
        &format!("runs-{}", shown.name.replace(' ', "-")),
        &format!("The {} of the program on each allocator", shown.name),
        &says.join("; "),
    );
    for (index, (one, kind)) in rows.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let value = words(one, kind);
        let name = fitted(&one.name, PANEL - SIDE - width_of(&value) - 12.0);
        let class = format!("name {}", colour('f', &one.name));
        text(&mut svg, SIDE, y + 8.0, &class, &name);
        text(&mut svg, PANEL, y + 8.0, "value end", &value);
        for tick in ticks_of_runs(&axis) {
            let class = if tick == 0.0 { "base" } else { "grid" };
            let at = axis.at(tick);
            line(&mut svg, class, (at, y + 14.0), (at, y + 30.0));
        }
        let hint = format!("{}: {}", one.name, in_words(kind, shown));
        let is_base = one.name == *base;
        dot(&mut svg, &one.name, kind, is_base, &axis, y + 22.0, &hint);
    }
    let labels: Vec<_> = ticks_of_runs(&axis)
        .map(|tick| {
            let words = match tick {
                0.0 => base.clone(),
                tick => signed(1.0 + tick / 100.0),
            };
            (axis.at(tick), fitted(&words, PANEL / 3.0))
        })
        .collect();
    labels_below(&mut svg, PANEL, bottom + 16.0, &labels);
    Some(svg + "</svg>\n")
}

/// The dot of an allocator with its interval; nothing if its ratio is unknown.
fn dot(
    svg: &mut String,
    name: &str,
    kind: &real::Kind,
    is_base: bool,
    axis: &Axis,
    y: f64,
    hint: &str,
) {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let ratio = match kind.to_first {
        Some(ratio) => ratio.ratio,
        None if is_base => 1.0,
        None => return,
    };
    let sure = kind.to_first.and_then(|ratio| ratio.interval);
    if let Some(sure) = sure {
        let (low, high) = (axis.at(percent(sure.low)), axis.at(percent(sure.high)));
        line(svg, "range", (low, y), (high, y));
    }
    // A narrow line is hidden by its dot, so a missing one must differ from it.
    let unsure = if sure.is_none() && !is_base {
        " unsure"
    } else {
        ""
    };
    let class = format!("{}{unsure}", colour('b', name));
    let hint = escape(hint);
    let _ = writeln!(
        svg,
        "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5.5\"><title>{hint}</title>\
         </circle>",
        axis.at(percent(ratio))
    );
}

/// An axis in per cent of the first allocator's figure, which holds all intervals.
fn axis_of_runs(kinds: &[&real::Kind]) -> Axis {
    let ratios = kinds.iter().filter_map(|kind| kind.to_first);
    let all = ratios.flat_map(|ratio| match ratio.interval {
        Some(sure) => [sure.low.max(0.0), ratio.ratio, sure.high],
        None => [ratio.ratio; 3],
    });
    let (least, most) = all.fold((1.0f64, 1.0f64), |(least, most), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let (least, most) = ((least - 1.0) * 100.0, (most - 1.0) * 100.0);
    let more = (most - least).max(2.0) * 0.06;
    Axis {
        from: least - more,
        to: most + more,
        start: 6.0,
        end: PANEL - 6.0,
        logarithmic: false,
    }
}

fn ticks_of_runs(axis: &Axis) -> impl Iterator<Item = f64> {
    let step = round_step((axis.to - axis.from) / 4.0, false);
    let (first, last) = ((axis.from / step).ceil(), (axis.to / step).floor());
    (first as i64..=last as i64).map(move |n| n as f64 * step)
}

/// A ratio as a difference in per cent, such as `+3.0 %`.
fn signed(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
    let number = match percent.abs() {
        percent if percent >= 100.0 => grouped(percent.round() as u64),
        percent => format!("{percent:.1}"),
    };
    format!("{sign}{} %", number.trim_end_matches(".0"))
}

/// A figure with its ratio to the first allocator's, in words.
fn in_words(kind: &real::Kind, shown: &Shown) -> String {
    let value = (shown.unit)(kind.figure.mean);
    let Some(ratio) = kind.to_first else {
        return value;
    };
    let sure = ratio.interval.map_or(String::new(), bounds);
    format!("{value}, {}{sure}", more_or_less(ratio.ratio))
}

/// The chart of time per operation: a bar for each allocator, with the interval of the mean.
pub fn speed(report: &Report, frame: &Frame) -> String {
    let ranked = report.ranked();
    let row = if frame.is_narrow() { 44.0 } else { 34.0 };
    let height = TOP + row * ranked.len() as f64 + 4.0;
    let most = ranked
        .iter()
        .map(|one| sure_range(&one.ns_per_op).1.max(one.ns_per_op.mean))
        .fold(1e-9, f64::max);
    let (start, end) = match frame.is_narrow() {
        true => (0.0, frame.width - 2.0),
        false => (frame.left + 6.0, frame.width - 220.0),
    };
    let axis = Axis {
        from: 0.0,
        to: most,
        start,
        end,
        logarithmic: false,
    };
    let mut svg = open(
        (frame.width, height),
        &format!("speed-{}", frame.name),
        "Nanoseconds per operation of each allocator",
        &each(&ranked, |one| {
            format!("{} ns", nanoseconds(one.ns_per_op.mean))
        }),
    );
    for (index, one) in ranked.iter().enumerate() {
        let y = TOP + row * index as f64;
        speed_row(&mut svg, report, one, &axis, frame, y);
    }
    svg + "</svg>\n"
}

fn speed_row(
    svg: &mut String,
    report: &Report,
    one: &Measured,
    axis: &Axis,
    frame: &Frame,
    y: f64,
) {
    let mean = one.ns_per_op.mean;
    let (low, high) = sure_range(&one.ns_per_op);
    let hint = format!(
        "{}: {} ns, {} to {}",
        one.name,
        nanoseconds(mean),
        nanoseconds(low),
        nanoseconds(high)
    );
    let times = match report.time_ratio(one).as_str() {
        "-" => String::new(),
        told => format!("   {told}\u{d7}"),
    };
    let words = format!("{} ns{times}", nanoseconds(mean));
    let name = colour('f', &one.name);
    let (top, thick) = match frame.is_narrow() {
        true => (y + 14.0, 14.0),
        false => (y, 22.0),
    };
    let middle = top + thick / 2.0;
    let length = axis.at(mean) - axis.start;
    bar(
        svg,
        &colour('b', &one.name),
        (axis.start, top),
        (length, thick),
        &hint,
    );
    line(
        svg,
        "range",
        (axis.at(low), middle),
        (axis.at(high), middle),
    );
    if frame.is_narrow() {
        text(svg, SIDE, y + 8.0, &format!("name {name}"), &one.name);
        text(svg, frame.width, y + 8.0, "value end", &words);
    } else {
        let before = axis.start - 12.0;
        text(
            svg,
            before,
            middle + 5.0,
            &format!("name end {name}"),
            &one.name,
        );
        text(svg, axis.at(high) + 12.0, middle + 5.0, "value", &words);
    }
}

/// A row of a block: its label, its value with its words, and the class of its bar.
struct Row {
    label: String,
    value: f64,
    words: String,
    class: &'static str,
}

const BLOCK_ROW: f64 = 24.0;

fn block_height(rows: &[Row]) -> f64 {
    26.0 + BLOCK_ROW * rows.len() as f64
}

/// Draws a title, and rows of a label, a bar from 0 to the value, and words at the right end.
fn block(svg: &mut String, from: (f64, f64), width: f64, title: &str, rows: &[Row]) {
    let (x, y) = from;
    text(svg, x, y + 8.0, "axis", title);
    let widest = |words: fn(&Row) -> &String| {
        let all = rows.iter().map(|row| width_of(words(row)));
        all.fold(0.0, f64::max)
    };
    let (labels, words) = (widest(|row| &row.label), widest(|row| &row.words));
    let values = rows.iter().map(|row| row.value);
    let (least, most) = values.fold((0.0f64, 0.0f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let axis = Axis {
        from: least,
        to: most,
        start: x + labels + 10.0,
        end: (x + width - words - 12.0).max(x + labels + 12.0),
        logarithmic: false,
    };
    for (index, row) in rows.iter().enumerate() {
        let top = y + 20.0 + BLOCK_ROW * index as f64;
        text(svg, x + labels, top + 12.5, "tick end", &row.label);
        text(svg, x + width, top + 12.5, "small end", &row.words);
        let (zero, end) = (axis.at(0.0), axis.at(row.value));
        let length = (end - zero).abs();
        let left = zero.min(end).min(axis.end - 1.5);
        bar(svg, row.class, (left, top), (length, 16.0), &row.words);
    }
    if least < 0.0 {
        let zero = axis.at(0.0);
        let bottom = y + block_height(rows) - 6.0;
        line(svg, "base", (zero, y + 16.0), (zero, bottom));
    }
}

/// Draws two blocks, side by side or, in a narrow frame, one below the other.
fn blocks(frame: &Frame, id: &str, title: &str, says: &str, pair: [(&str, Vec<Row>); 2]) -> String {
    let heights = [0, 1].map(|index: usize| block_height(&pair[index].1));
    let [first, second] = &pair;
    let gap = 30.0;
    let (width, second_at, height) = match frame.is_narrow() {
        true => (
            frame.width,
            (0.0, TOP + heights[0] + 10.0),
            heights[0] + heights[1] + 10.0,
        ),
        false => {
            let width = (frame.width - gap) / 2.0;
            (width, (width + gap, TOP), heights[0].max(heights[1]))
        }
    };
    let id = format!("{id}-{}", frame.name);
    let mut svg = open((frame.width, TOP + height), &id, title, says);
    block(&mut svg, (0.0, TOP), width, first.0, &first.1);
    block(&mut svg, second_at, width, second.0, &second.1);
    svg + "</svg>\n"
}

/// The chart of the differences between Slabyard and glibc by kind of call and by size.
pub fn origin(answer: &Answer, frame: &Frame) -> String {
    /// The differences of further sizes are too small to see.
    const SIZES: usize = 8;
    let row = |(label, ms): &(String, f64)| Row {
        label: label.clone(),
        value: *ms,
        words: answer::milliseconds_more(*ms),
        class: if *ms < 0.0 { "less" } else { "more" },
    };
    let kinds: Vec<_> = answer.by_kind.iter().map(row).collect();
    let sizes: Vec<_> = answer.by_size.iter().take(SIZES).map(row).collect();
    let says: Vec<_> = kinds
        .iter()
        .chain(&sizes)
        .map(|row| format!("{}: {}", row.label, row.words))
        .collect();
    blocks(
        frame,
        "origin",
        &format!("Time of calls with Slabyard compared with {LIBC}"),
        &says.join("; "),
        [("by kind of call", kinds), ("by size", sizes)],
    )
}

/// The chart of sizes: the number of requests for each class, and the bytes of them.
pub fn sizes(report: &Report, frame: &Frame) -> String {
    let classes: Vec<&SizeClass> = shown_classes(&report.summary.size_classes);
    let rows = |value: fn(&SizeClass) -> u64, unit: fn(u64) -> String, class| {
        let all: u64 = classes.iter().map(|class| value(class)).sum();
        let row = |of: &&SizeClass| {
            let share = 100.0 * value(of) as f64 / all.max(1) as f64;
            Row {
                label: round_bytes(of.up_to),
                value: value(of) as f64,
                words: format!("{}  ({} %)", unit(value(of)), trimmed_share(share)),
                class,
            }
        };
        classes.iter().map(row).collect::<Vec<_>>()
    };
    blocks(
        frame,
        "sizes",
        "Allocations and bytes by size",
        &sizes_in_words(&classes),
        [
            (
                "allocations of up to",
                rows(|class| class.count, grouped, "count"),
            ),
            (
                "bytes, in objects of up to",
                rows(|class| class.bytes, bytes, "volume"),
            ),
        ],
    )
}

fn trimmed_share(percent: f64) -> String {
    match percent {
        percent if percent >= 99.95 => "100".to_string(),
        percent if percent == 0.0 => trimmed(percent),
        percent => format!("{percent:.1}"),
    }
}

fn sizes_in_words(classes: &[&SizeClass]) -> String {
    let words = |class: &&SizeClass| {
        let (up_to, count) = (round_bytes(class.up_to), grouped(class.count));
        format!("up to {up_to}: {count} allocations, {}", bytes(class.bytes))
    };
    let all: Vec<_> = classes.iter().map(words).collect();
    all.join("; ")
}

/// The classes without the empty ones at both ends.
fn shown_classes(classes: &[SizeClass]) -> Vec<&SizeClass> {
    let used = |class: &SizeClass| class.count > 0;
    let first = classes.iter().position(used).unwrap_or(0);
    let last = classes.iter().rposition(used).map_or(0, |last| last + 1);
    classes.get(first..last).unwrap_or(&[]).iter().collect()
}
