//! Charts as inline SVG. Their colours and fonts come from the page's classes (see `page.css`): an
//! allocator's colour is the class `c-NAME`.

use super::{memory as memory_of, Report};
use crate::plan::SizeClass;
use crate::replay::measure::{Figure, Measured};
use crate::ui::{bytes, grouped, nanoseconds, round_bytes};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

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

/// About `count` equal steps from 0 to at least `most`. A step is a round number; for bytes, a
/// power of two.
fn steps(most: f64, count: f64, binary: bool) -> Vec<f64> {
    let rough = (most / count).max(1e-9);
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
    let step = step.unwrap_or(rough);
    (0..=(most / step).ceil() as u64)
        .map(|n| n as f64 * step)
        .collect()
}

/// Opens a picture. `id` is unique on the page; screen readers read `title` and `says`.
fn open(height: f64, id: &str, title: &str, says: &str) -> String {
    let (title, says) = (escape(title), escape(says));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title\" \
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

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// Draws a bar with round corners at its right end.
fn bar(svg: &mut String, class: &str, x: f64, y: f64, width: f64, height: f64, hint: &str) {
    let width = width.max(1.5);
    let hint = escape(hint);
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"2.5\"><title>{hint}</title></rect>"
    );
}

fn vertical_axis(svg: &mut String, axis: &Axis, ticks: &[f64], label: impl Fn(f64) -> String) {
    for &tick in ticks {
        let y = axis.at(tick);
        line(svg, "grid", (LEFT, y), (WIDTH - RIGHT, y));
        text(svg, LEFT - 10.0, y + 4.0, "tick end", &label(tick));
    }
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
fn end_labels(svg: &mut String, ends: &[(f64, &str)], height: f64) {
    let mut wanted: Vec<_> = ends.iter().enumerate().map(|(n, end)| (end.0, n)).collect();
    spread_labels(&mut wanted, 17.0, TOP + 6.0, height - BOTTOM);
    for (y, index) in wanted {
        let (end, name) = ends[index];
        let class = format!("name f-{name}");
        let x = WIDTH - RIGHT;
        let _ = writeln!(
            svg,
            "<path class=\"lead c-{name}\" d=\"M{:.1} {end:.1} L{:.1} {y:.1}\"/>",
            x + 2.0,
            x + 14.0
        );
        text(svg, x + 18.0, y + 4.0, &class, name);
    }
}

/// The path of a line through points. With `as_steps`, each value holds until the next.
fn path(points: &[(f64, f64)], as_steps: bool) -> String {
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
    let _ = writeln!(
        svg,
        "<path class=\"curve c-{name}\" d=\"{}\"><title>{name}</title></path>",
        path(points, as_steps)
    );
}

/// The confidence interval of the mean; for a single run, the value itself.
fn sure_range(figure: &Figure) -> (f64, f64) {
    let only = (figure.mean, figure.mean);
    figure.interval.map_or(only, |sure| (sure.low, sure.high))
}

/// The chart of time per operation: a bar for each allocator, with the interval of the mean.
pub fn speed(report: &Report) -> String {
    const ROW: f64 = 34.0;
    let ranked = report.ranked();
    let height = TOP + ROW * ranked.len() as f64 + 8.0;
    let most = ranked
        .iter()
        .map(|one| sure_range(&one.ns_per_op).1)
        .fold(1e-9, f64::max);
    let axis = Axis {
        from: 0.0,
        to: most,
        start: LEFT + 6.0,
        end: WIDTH - 190.0,
        logarithmic: false,
    };
    let mut svg = open(
        height,
        "speed",
        "Nanoseconds per operation of each allocator",
        &each(&ranked, |one| {
            format!("{} ns", nanoseconds(one.ns_per_op.mean))
        }),
    );
    for (index, one) in ranked.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        speed_row(&mut svg, report, one, &axis, y);
    }
    svg + "</svg>\n"
}

fn speed_row(svg: &mut String, report: &Report, one: &Measured, axis: &Axis, y: f64) {
    let mean = one.ns_per_op.mean;
    let (low, high) = sure_range(&one.ns_per_op);
    let middle = y + 11.0;
    text(
        svg,
        LEFT - 6.0,
        middle + 5.0,
        &format!("name end f-{}", one.name),
        &one.name,
    );
    let length = axis.at(mean) - axis.start;
    let hint = format!(
        "{}: {} ns, {} to {}",
        one.name,
        nanoseconds(mean),
        nanoseconds(low),
        nanoseconds(high)
    );
    bar(
        svg,
        &format!("b-{}", one.name),
        axis.start,
        y,
        length,
        22.0,
        &hint,
    );
    line(
        svg,
        "range",
        (axis.at(low), middle),
        (axis.at(high), middle),
    );
    let times = match report.time_ratio(one).as_str() {
        "-" => String::new(),
        told => format!("   {told}\u{d7}"),
    };
    let words = format!("{} ns{times}", nanoseconds(mean));
    text(svg, axis.at(high) + 12.0, middle + 5.0, "value", &words);
}

/// The chart of resident memory over the run, with the memory that the program had allocated.
pub fn memory(report: &Report) -> String {
    const HEIGHT: f64 = 400.0;
    let ranked = report.ranked();
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
        start: LEFT,
        end: WIDTH - RIGHT,
        logarithmic: false,
    };
    let y = Axis {
        from: 0.0,
        to,
        start: HEIGHT - BOTTOM,
        end: TOP,
        logarithmic: false,
    };
    let place = |at: u64, bytes: f64| (x.at(at as f64), y.at(bytes));
    let mut svg = open(
        HEIGHT,
        "memory",
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
    vertical_axis(&mut svg, &y, &ticks, |tick| round_bytes(tick as u64));
    operations_axis(&mut svg, &x, HEIGHT);
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
    end_labels(&mut svg, &ends, HEIGHT);
    svg + "</svg>\n"
}

fn thin(curve: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let length = curve.last().map_or(0, |last| last.0);
    crate::replay::measure::thin_out(curve, length)
}

fn operations_axis(svg: &mut String, x: &Axis, height: f64) {
    for tick in steps(x.to, 6.0, false)
        .into_iter()
        .filter(|&tick| tick <= x.to)
    {
        let words = match tick {
            0.0 => "0".to_string(),
            tick if tick >= 1e6 => format!("{} M", trimmed(tick / 1e6)),
            tick if tick >= 1e3 => format!("{} k", trimmed(tick / 1e3)),
            tick => trimmed(tick),
        };
        text(
            svg,
            x.at(tick),
            height - BOTTOM + 19.0,
            "tick middle",
            &words,
        );
    }
    let centre = (x.start + x.end) / 2.0;
    text(
        svg,
        centre,
        height - 6.0,
        "axis middle",
        "operations of the program",
    );
}

/// A number with at most two decimals, without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
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
pub fn latency(report: &Report) -> String {
    const HEIGHT: f64 = 420.0;
    let ranked = report.ranked();
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
        start: LEFT,
        end: WIDTH - RIGHT,
        logarithmic: true,
    };
    let y = Axis {
        from: 1.0,
        to: rarest,
        start: TOP,
        end: HEIGHT - BOTTOM,
        logarithmic: true,
    };
    let mut svg = open(
        HEIGHT,
        "latency",
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
    vertical_axis(&mut svg, &y, &ticks, one_in);
    nanosecond_axis(&mut svg, &x, HEIGHT);
    let mut ends = Vec::new();
    for one in &ranked {
        let points = tail_points(one, &x, &y, rarest);
        curve(&mut svg, &one.name, &points, false);
        ends.push((points.last().map_or(0.0, |end| end.0), one.name.as_str()));
    }
    latency_labels(&mut svg, &ends);
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

fn one_in(share: f64) -> String {
    match (1.0 / share).round() as u64 {
        1 => "all".to_string(),
        n => format!("1 in {}", grouped(n)),
    }
}

fn nanosecond_axis(svg: &mut String, x: &Axis, height: f64) {
    for power in 0..9 {
        for factor in [1.0, 2.0, 5.0] {
            let ns = factor * 10f64.powi(power);
            if ns < x.from || ns > x.to {
                continue;
            }
            let at = x.at(ns);
            line(svg, "grid", (at, TOP), (at, height - BOTTOM));
            if factor == 1.0 || x.to < 2000.0 {
                text(
                    svg,
                    at,
                    height - BOTTOM + 19.0,
                    "tick middle",
                    &short_time(ns),
                );
            }
        }
    }
    let centre = (x.start + x.end) / 2.0;
    text(
        svg,
        centre,
        height - 6.0,
        "axis middle",
        "a call took longer than",
    );
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

/// Writes the legend in the free corner above the curves, in the order of the curves' ends.
fn latency_labels(svg: &mut String, ends: &[(f64, &str)]) {
    let mut sorted = ends.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (index, (_, name)) in sorted.iter().enumerate() {
        let y = TOP + 12.0 + 19.0 * index as f64;
        let x = WIDTH - RIGHT + 14.0;
        let _ = writeln!(
            svg,
            "<path class=\"curve c-{name}\" d=\"M{x:.1} {y:.1}h18\"/>"
        );
        text(svg, x + 25.0, y + 4.0, &format!("name f-{name}"), name);
    }
}

/// The chart of sizes: the number of requests for each class, and the bytes of them.
pub fn sizes(report: &Report) -> String {
    const ROW: f64 = 23.0;
    let classes: Vec<&SizeClass> = shown_classes(&report.summary.size_classes);
    let height = TOP + 26.0 + ROW * classes.len() as f64;
    let middle = (WIDTH - LEFT) / 2.0;
    let counts: u64 = classes.iter().map(|class| class.count).sum();
    let total: u64 = classes.iter().map(|class| class.bytes).sum();
    let most_count = classes
        .iter()
        .map(|class| class.count)
        .max()
        .unwrap_or(1)
        .max(1);
    let most_bytes = classes
        .iter()
        .map(|class| class.bytes)
        .max()
        .unwrap_or(1)
        .max(1);
    let mut svg = open(
        height,
        "sizes",
        "Allocations and bytes by size",
        &sizes_in_words(&classes),
    );
    text(&mut svg, LEFT - 10.0, TOP + 6.0, "axis end", "up to");
    text(&mut svg, LEFT, TOP + 6.0, "axis", "allocations");
    text(
        &mut svg,
        LEFT + middle,
        TOP + 6.0,
        "axis",
        "bytes asked for",
    );
    let room = middle - 150.0;
    for (index, class) in classes.iter().enumerate() {
        let y = TOP + 20.0 + ROW * index as f64;
        text(
            &mut svg,
            LEFT - 10.0,
            y + 12.5,
            "tick end",
            &round_bytes(class.up_to),
        );
        let columns = [
            (
                LEFT,
                class.count,
                most_count,
                counts,
                grouped(class.count),
                "count",
            ),
            (
                LEFT + middle,
                class.bytes,
                most_bytes,
                total,
                bytes(class.bytes),
                "volume",
            ),
        ];
        for (x, value, most, all, words, kind) in columns {
            let length = room * value as f64 / most as f64;
            let share = 100.0 * value as f64 / all.max(1) as f64;
            let words = format!("{words}  ({share:.1} %)");
            bar(&mut svg, kind, x, y, length, 16.0, &words);
            text(&mut svg, x + length + 8.0, y + 12.5, "small", &words);
        }
    }
    svg + "</svg>\n"
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
