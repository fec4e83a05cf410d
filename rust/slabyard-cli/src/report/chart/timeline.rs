//! Charts of the memory of a process over hours: stacked areas, and lines. Their legend is part of the
//! page, so that it needs no room in the picture.

use super::curves::{path, vertical_axis};
use super::{escape, labels_below, line, open, steps, Axis, Frame, TOP};
use crate::ui::{bytes, round_bytes};
use std::fmt::Write;

/// One kind of memory, with its bytes at each time.
pub struct Series {
    pub name: String,
    /// The class of its colour.
    pub class: String,
    pub bytes: Vec<u64>,
}

pub struct Chart<'a> {
    /// Its name on the page.
    pub id: &'a str,
    pub title: &'a str,
    /// Seconds since 1970, in order; at least two.
    pub times: &'a [f64],
    pub series: &'a [Series],
    /// Times at which the program was started again.
    pub restarts: &'a [f64],
}

/// No picture shows more points.
const POINTS: usize = 600;

const WIDE_HEIGHT: f64 = 384.0;
const NARROW_HEIGHT: f64 = 274.0;

/// The room for the times below.
const BOTTOM: f64 = 28.0;

impl Chart<'_> {
    /// The series as areas on top of each other.
    pub fn stacked(&self, frame: &Frame) -> String {
        let sums = (0..self.times.len()).map(|at| {
            let bytes = self.series.iter().map(|one| one.bytes[at]);
            bytes.sum::<u64>()
        });
        let (mut svg, x, y) = self.begin(frame, sums.max().unwrap_or(0));
        let mut below = vec![0; self.times.len()];
        for one in self.series {
            let above: Vec<u64> = below.iter().zip(&one.bytes).map(|(a, b)| a + b).collect();
            let tops = self.points(&x, &y, &above).into_iter();
            let parts = tops.zip(self.points(&x, &y, &below));
            let parts = parts.map(|(top, mut bottom)| {
                bottom.reverse();
                let edge = path(&bottom, false).replacen('M', "L", 1);
                format!("{}{edge}Z", path(&top, false))
            });
            one.draw(&mut svg, "area", &parts.collect::<String>());
            below = above;
        }
        self.end(svg, &x, &y)
    }

    /// Each series as a line.
    pub fn lines(&self, frame: &Frame) -> String {
        let all = self.series.iter().flat_map(|one| &one.bytes);
        let (mut svg, x, y) = self.begin(frame, all.max().copied().unwrap_or(0));
        for one in self.series {
            let parts = self.points(&x, &y, &one.bytes).into_iter();
            let parts = parts.map(|part| path(&part, false));
            one.draw(&mut svg, "curve", &parts.collect::<String>());
        }
        self.end(svg, &x, &y)
    }

    fn begin(&self, frame: &Frame, most: u64) -> (String, Axis, Axis) {
        let height = match frame.is_narrow() {
            true => NARROW_HEIGHT,
            false => WIDE_HEIGHT,
        };
        let ticks = steps(most.max(1) as f64, 5.0, true);
        let x = Axis {
            from: self.times[0],
            to: self.times[self.times.len() - 1],
            start: 84.0,
            end: frame.width - 10.0,
            logarithmic: false,
        };
        let y = Axis {
            from: 0.0,
            to: ticks.last().copied().unwrap_or(1.0),
            start: height - BOTTOM,
            end: TOP,
            logarithmic: false,
        };
        let says: Vec<_> = self.series.iter().map(Series::hint).collect();
        let mut svg = open(
            (frame.width, height),
            &format!("{}-{}", self.id, frame.name),
            self.title,
            &says.join("; "),
        );
        vertical_axis(&mut svg, &x, &y, &ticks, |tick| round_bytes(tick as u64));
        let labels = time_labels(&x, if frame.is_narrow() { 5.0 } else { 9.0 });
        for (at, _) in &labels {
            line(&mut svg, "grid", (*at, y.start), (*at, y.start + 5.0));
        }
        labels_below(&mut svg, frame.width, y.start + 20.0, &labels);
        (svg, x, y)
    }

    fn end(&self, mut svg: String, x: &Axis, y: &Axis) -> String {
        for &time in self.restarts {
            let at = x.at(time);
            line(&mut svg, "restart", (at, y.start), (at, y.end));
        }
        svg + "</svg>\n"
    }

    /// The points in the picture, in parts: no line leads from one process to the next.
    fn points(&self, x: &Axis, y: &Axis, bytes: &[u64]) -> Vec<Vec<(f64, f64)>> {
        let every = self.times.len().div_ceil(POINTS);
        let count = self.times.len();
        let begins = |at: usize| self.restarts.contains(&self.times[at]);
        let mut parts = vec![Vec::new()];
        for (at, (&time, &bytes)) in self.times.iter().zip(bytes).enumerate() {
            if begins(at) {
                parts.push(Vec::new());
            }
            let is_end = at + 1 == count || begins(at + 1);
            if at % every == 0 || begins(at) || is_end {
                let point = (x.at(time), y.at(bytes as f64));
                parts.last_mut().expect("never empty").push(point);
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }
}

impl Series {
    fn draw(&self, svg: &mut String, shape: &str, path: &str) {
        let _ = writeln!(
            svg,
            "<path class=\"{shape} {}\" d=\"{path}\"><title>{}</title></path>",
            self.class,
            escape(&self.hint())
        );
    }

    fn hint(&self) -> String {
        let end = |bytes_at: Option<&u64>| bytes(bytes_at.copied().unwrap_or(0));
        let (first, last) = (end(self.bytes.first()), end(self.bytes.last()));
        format!("{}: {first} at first, {last} at last", self.name)
    }
}

/// The steps between labels of a time axis, in seconds.
const STEPS: [f64; 21] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1800.0,
    3600.0,
    7200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
];

/// Places and words at round times (UTC), at most about `most`.
fn time_labels(x: &Axis, most: f64) -> Vec<(f64, String)> {
    let rough = (x.to - x.from) / most;
    let step = STEPS.into_iter().find(|&step| step >= rough);
    let step = step.unwrap_or(STEPS[STEPS.len() - 1].max(rough));
    let first = (x.from / step).ceil() as u64;
    let last = (x.to / step).floor() as u64;
    let label = |number: u64| {
        let time = number as f64 * step;
        (x.at(time), clock(time, step))
    };
    (first..=last).map(label).collect()
}

/// `09:05`, with seconds where they matter; the day where a day begins.
fn clock(time: f64, step: f64) -> String {
    let seconds = time as _;
    // SAFETY: both pointers are to local values, for which all zero is valid.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut parts);
        parts
    };
    let (hour, minute, second) = (parts.tm_hour, parts.tm_min, parts.tm_sec);
    match (hour, minute, second) {
        (0, 0, 0) => {
            const MONTHS: [&str; 12] = [
                "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
            ];
            let month = MONTHS[parts.tm_mon.rem_euclid(12) as usize];
            format!("{} {month}", parts.tm_mday)
        }
        _ if step < 60.0 => format!("{hour:02}:{minute:02}:{second:02}"),
        _ => format!("{hour:02}:{minute:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(from: f64, to: f64) -> Vec<String> {
        let x = Axis {
            from,
            to,
            start: 0.0,
            end: 100.0,
            logarithmic: false,
        };
        let labels = time_labels(&x, 4.0).into_iter();
        labels.map(|(_, words)| words).collect()
    }

    #[test]
    fn no_line_leads_from_one_process_to_the_next() {
        let series = [Series {
            name: "a".into(),
            class: "m0".into(),
            bytes: vec![1, 2, 3, 4],
        }];
        let chart = Chart {
            id: "x",
            title: "x",
            times: &[0.0, 1.0, 2.0, 3.0],
            series: &series,
            restarts: &[2.0],
        };
        let path = |svg: &str| {
            let after = svg.split("class=\"curve m0\" d=\"").nth(1).unwrap();
            after.split('"').next().unwrap().to_string()
        };
        let path = path(&chart.lines(&crate::report::chart::WIDE));
        assert_eq!(path.matches('M').count(), 2, "{path}");
    }

    #[test]
    fn times_are_round() {
        assert_eq!(words(3.0, 24.0), ["00:00:10", "00:00:20"]);
        assert_eq!(
            words(82_000.0, 95_000.0),
            ["23:00", "2 Jan", "01:00", "02:00"]
        );
        assert_eq!(
            words(0.0, 86_400.0 * 3.0),
            ["1 Jan", "2 Jan", "3 Jan", "4 Jan"]
        );
    }
}
