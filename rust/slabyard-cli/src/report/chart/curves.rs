//! Charts with a curve for each allocator: memory over the run, and slow calls.

use super::{
    colour, each, escape, labels_below, line, open, steps, text, trimmed, width_of, Axis, Frame,
    BOTTOM, TOP,
};
use crate::replay::measure::Measured;
use crate::report::{memory as memory_of, Report};
use crate::ui::{grouped, nanoseconds, round_bytes};
use std::fmt::Write;

pub(super) fn vertical_axis(
    svg: &mut String,
    x: &Axis,
    y: &Axis,
    ticks: &[f64],
    label: impl Fn(f64) -> String,
) {
    for &tick in ticks {
        let at = y.at(tick);
        line(svg, "grid", (x.start, at), (x.end, at));
        text(svg, x.start - 10.0, at + 4.0, "tick end", &label(tick));
    }
}

fn title_of_axis(svg: &mut String, x: &Axis, frame: &Frame, y: f64, words: &str) {
    let half = width_of(words) / 2.0;
    let centre = (x.start + x.end) / 2.0;
    let centre = centre.clamp(half, frame.width - half);
    text(svg, centre, y, "axis middle", words);
}

/// Pushes overlapping labels apart; they stay between `top` and `bottom`.
fn spread_labels(wanted: &mut [(f64, usize)], gap: f64, top: f64, bottom: f64) {
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut least = top;
    for label in wanted.iter_mut() {
        label.0 = label.0.max(least);
        least = label.0 + gap;
    }
    let mut most = bottom;
    for label in wanted.iter_mut().rev() {
        label.0 = label.0.min(most);
        most = label.0 - gap;
    }
}

/// Writes names at the right end of lines, each at about the height where its line ends.
fn end_labels(svg: &mut String, ends: &[(f64, &str)], x: f64, y: &Axis) {
    let mut wanted: Vec<_> = ends.iter().enumerate().map(|(n, end)| (end.0, n)).collect();
    spread_labels(&mut wanted, 18.0, y.end + 6.0, y.start);
    for (at, index) in wanted {
        let (end, name) = ends[index];
        let (lead, letters) = (colour('c', name), colour('f', name));
        let _ = writeln!(
            svg,
            "<path class=\"lead {lead}\" d=\"M{:.1} {end:.1} L{:.1} {at:.1}\"/>",
            x + 2.0,
            x + 14.0
        );
        text(svg, x + 18.0, at + 4.0, &format!("name {letters}"), name);
    }
}

const SAMPLE: f64 = 18.0;
const LEGEND_ROW: f64 = 21.0;

/// The places of a legend's names below a picture, in rows.
fn places(names: &[&str], frame: &Frame) -> Vec<(f64, f64)> {
    let (mut x, mut row) = (0.0, 0.0);
    let place = |name: &&str| {
        let width = SAMPLE + 7.0 + width_of(name);
        if x > 0.0 && x + width > frame.width {
            (x, row) = (0.0, row + 1.0);
        }
        let at = (x, row * LEGEND_ROW);
        x += width + 12.0;
        at
    };
    names.iter().map(place).collect()
}

/// The height of a legend below a narrow picture; wide ones have it beside the curves.
fn legend_height(names: &[&str], frame: &Frame) -> f64 {
    let last = places(names, frame).last().map(|place| place.1);
    last.filter(|_| frame.is_narrow())
        .map_or(0.0, |y| y + LEGEND_ROW + 4.0)
}

fn legend(svg: &mut String, names: &[&str], places: &[(f64, f64)], from: (f64, f64)) {
    for (name, place) in names.iter().zip(places) {
        let (x, y) = (from.0 + place.0, from.1 + place.1);
        let (sample, letters) = (colour('c', name), colour('f', name));
        let _ = writeln!(
            svg,
            "<path class=\"curve {sample}\" d=\"M{x:.1} {y:.1}h{SAMPLE}\"/>"
        );
        text(
            svg,
            x + SAMPLE + 7.0,
            y + 4.0,
            &format!("name {letters}"),
            name,
        );
    }
}

/// The path of a line through points. With `as_steps`, each value holds until the next.
pub(super) fn path(points: &[(f64, f64)], as_steps: bool) -> String {
    let mut path = String::new();
    let mut before = None;
    for &(x, y) in points {
        let _ = match before {
            None => write!(path, "M{x:.1} {y:.1}"),
            Some(_) if as_steps => write!(path, "H{x:.1}V{y:.1}"),
            Some(_) => write!(path, "L{x:.1} {y:.1}"),
        };
        before = Some(y);
    }
    path
}

fn curve(svg: &mut String, name: &str, points: &[(f64, f64)], as_steps: bool) {
    let (class, name) = (colour('c', name), escape(name));
    let _ = writeln!(
        svg,
        "<path class=\"curve {class}\" d=\"{}\"><title>{name}</title></path>",
        path(points, as_steps)
    );
}

/// The chart of resident memory over the run, with the memory that the program had allocated.
pub fn memory(report: &Report, frame: &Frame) -> String {
    let ranked = report.ranked();
    let mut names: Vec<&str> = ranked.iter().map(|one| one.name.as_str()).collect();
    if !report.summary.resident.is_empty() {
        names.insert(0, "program");
    }
    let plot = if frame.is_narrow() { 290.0 } else { 400.0 };
    let resident = ranked.iter().flat_map(|one| &one.resident);
    let held = report.summary.payload.iter().map(|point| point.1 as f64);
    let seen = report.summary.resident.iter().map(|point| point.1 as f64);
    let most = resident
        .map(|point| point.1 as f64)
        .chain(held)
        .chain(seen)
        .fold(1.0, f64::max);
    let ticks = steps(most, 5.0, true);
    let to = ticks.last().copied().unwrap_or(most);
    let operations = report.summary.operations.max(1) as f64;
    let x = Axis {
        from: 0.0,
        to: operations,
        start: frame.left,
        end: frame.width - frame.right,
        logarithmic: false,
    };
    let y = Axis {
        from: 0.0,
        to,
        start: plot - BOTTOM,
        end: TOP,
        logarithmic: false,
    };
    let place = |at: u64, bytes: f64| (x.at(at as f64), y.at(bytes));
    let mut svg = open(
        (frame.width, plot + legend_height(&names, frame)),
        &format!("memory-{}", frame.name),
        "Resident memory over the run of each allocator",
        &each(&ranked, |one| {
            let (peak, end) = (one.peak_resident.median, one.final_resident.median);
            format!(
                "{} at its peak, {} at the end",
                memory_of(peak),
                memory_of(end)
            )
        }),
    );
    vertical_axis(&mut svg, &x, &y, &ticks, |tick| round_bytes(tick as u64));
    operations_axis(&mut svg, &x, frame, plot);
    let payload = thin(&report.summary.payload).into_iter();
    let payload: Vec<_> = payload.map(|(at, bytes)| place(at, bytes as f64)).collect();
    payload_area(&mut svg, &payload, y.start);
    let mut ends = Vec::new();
    let seen = thin(&report.summary.resident).into_iter();
    let seen: Vec<_> = seen.map(|(at, bytes)| place(at, bytes as f64)).collect();
    if let Some(end) = seen.last() {
        ends.push((end.1, "program"));
        curve(&mut svg, "program", &seen, true);
    }
    for one in &ranked {
        let points = one.resident.iter();
        let points: Vec<_> = points.map(|&(at, bytes)| place(at, bytes as f64)).collect();
        ends.extend(points.last().map(|end| (end.1, one.name.as_str())));
        curve(&mut svg, &one.name, &points, true);
    }
    if frame.is_narrow() {
        let from = (0.0, plot + LEGEND_ROW / 2.0);
        legend(&mut svg, &names, &places(&names, frame), from);
    } else {
        end_labels(&mut svg, &ends, x.end, &y);
    }
    svg + "</svg>\n"
}

fn thin(curve: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let length = curve.last().map_or(0, |last| last.0);
    crate::replay::measure::thin_out(curve, length)
}

fn operations_axis(svg: &mut String, x: &Axis, frame: &Frame, height: f64) {
    let words = |tick: f64| match tick {
        0.0 => "0".to_string(),
        tick if tick >= 1e9 => format!("{} G", trimmed(tick / 1e9)),
        tick if tick >= 1e6 => format!("{} M", trimmed(tick / 1e6)),
        tick if tick >= 1e3 => format!("{} k", trimmed(tick / 1e3)),
        tick => trimmed(tick),
    };
    let ticks = steps(x.to, 6.0, false).into_iter();
    let labels: Vec<_> = ticks
        .filter(|&tick| tick <= x.to)
        .map(|tick| (x.at(tick), words(tick)))
        .collect();
    labels_below(svg, frame.width, height - BOTTOM + 19.0, &labels);
    title_of_axis(svg, x, frame, height - 6.0, "operations of the program");
}

fn payload_area(svg: &mut String, points: &[(f64, f64)], floor: f64) {
    let Some(first) = points.first() else {
        return;
    };
    let _ = writeln!(
        svg,
        "<path class=\"payload\" d=\"{}V{floor:.1}H{:.1}Z\"><title>what the program had asked \
         for</title></path>",
        path(points, true),
        first.0
    );
}

/// The chart of slow calls: the time that one call in ten, in a hundred, and so on exceeds.
pub fn latency(report: &Report, frame: &Frame) -> String {
    let plot = if frame.is_narrow() { 320.0 } else { 420.0 };
    let ranked = report.ranked();
    let names: Vec<&str> = ranked.iter().map(|one| one.name.as_str()).collect();
    let calls = ranked
        .iter()
        .map(|one| one.all.calls)
        .max()
        .unwrap_or(1)
        .max(10) as f64;
    let rarest = 10f64.powf(-(calls.log10().floor().min(6.0)));
    let slowest = ranked
        .iter()
        .filter_map(|one| slower_than(one, rarest))
        .fold(100.0, f64::max);
    let x = Axis {
        from: 4.0,
        to: slowest * 1.1,
        start: frame.left,
        end: frame.width - frame.right,
        logarithmic: true,
    };
    let y = Axis {
        from: 1.0,
        to: rarest,
        start: TOP,
        end: plot - BOTTOM,
        logarithmic: true,
    };
    let mut svg = open(
        (frame.width, plot + legend_height(&names, frame)),
        &format!("latency-{}", frame.name),
        "How many calls take longer than a given time",
        &each(&ranked, |one| {
            let (half, rare) = (nanoseconds(one.all.p50), nanoseconds(one.all.p9999));
            format!("half longer than {half} ns, 1 in 10,000 longer than {rare} ns")
        }),
    );
    let ticks: Vec<f64> = (0..=6)
        .map(|n| 10f64.powi(-n))
        .filter(|&t| t >= rarest * 0.99)
        .collect();
    vertical_axis(&mut svg, &x, &y, &ticks, |share| one_in(share, frame));
    nanosecond_axis(&mut svg, &x, &y, frame, plot);
    let mut ends = Vec::new();
    for one in &ranked {
        let points = tail_points(one, &x, &y, rarest);
        curve(&mut svg, &one.name, &points, false);
        ends.push((points.last().map_or(0.0, |end| end.0), one.name.as_str()));
    }
    // The legend has the order of the curves' ends.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let names: Vec<&str> = ends.iter().map(|end| end.1).collect();
    if frame.is_narrow() {
        let from = (0.0, plot + LEGEND_ROW / 2.0);
        legend(&mut svg, &names, &places(&names, frame), from);
    } else {
        let below = |index: usize| (0.0, LEGEND_ROW * index as f64);
        let places: Vec<_> = (0..names.len()).map(below).collect();
        legend(&mut svg, &names, &places, (x.end + 4.0, TOP + 12.0));
    }
    svg + "</svg>\n"
}

/// The time that a fraction `share` of calls exceeds.
fn slower_than(one: &Measured, share: f64) -> Option<f64> {
    let total = one.all.calls as f64;
    let mut slower = 0;
    for &(ns, count) in one.all.histogram.iter().rev() {
        slower += count;
        if slower as f64 >= total * share {
            return Some(ns);
        }
    }
    None
}

fn one_in(share: f64, frame: &Frame) -> String {
    match (1.0 / share).round() as u64 {
        1 => "all".to_string(),
        n if frame.is_narrow() && n >= 1_000_000 => format!("1 in {} M", n / 1_000_000),
        n if frame.is_narrow() && n >= 1000 => format!("1 in {} k", n / 1000),
        n => format!("1 in {}", grouped(n)),
    }
}

fn nanosecond_axis(svg: &mut String, x: &Axis, y: &Axis, frame: &Frame, height: f64) {
    let mut labels = Vec::new();
    for power in 0..9 {
        for factor in [1.0, 2.0, 5.0] {
            let ns = factor * 10f64.powi(power);
            if ns < x.from || ns > x.to {
                continue;
            }
            let at = x.at(ns);
            line(svg, "grid", (at, y.start), (at, y.end));
            if factor == 1.0 || x.to < 2000.0 {
                labels.push((at, short_time(ns)));
            }
        }
    }
    labels_below(svg, frame.width, height - BOTTOM + 19.0, &labels);
    title_of_axis(svg, x, frame, height - 6.0, "a call took longer than");
}

fn short_time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{} ms", trimmed(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} \u{b5}s", trimmed(ns / 1e3)),
        ns => format!("{} ns", trimmed(ns)),
    }
}

/// The share of calls that took longer, for each time.
fn tail_points(one: &Measured, x: &Axis, y: &Axis, rarest: f64) -> Vec<(f64, f64)> {
    let total = one.all.calls.max(1) as f64;
    let mut slower = one.all.calls;
    let mut points = vec![(x.start, y.start)];
    for &(ns, count) in &one.all.histogram {
        let share = slower as f64 / total;
        if share < rarest {
            break;
        }
        points.push((x.at(ns), y.at(share)));
        slower -= count;
    }
    points
}
