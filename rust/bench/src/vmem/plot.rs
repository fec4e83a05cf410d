//! The curves of the fits as one picture: an SVG without references to other files.

use super::fragmentation::{Curves, Point, HELD};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
/// The measures of a panel: its height, with the title and the words below it, and the margins of
/// its curves.
const PANEL: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 52.0;
/// The least distance between the names at the ends of curves.
const NAME_GAP: f64 = 17.0;

const STYLE: &str = "<style>\
    text { font: 13px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1d2129 }\
    .title { font-size: 16px; font-weight: 600 }\
    .soft { fill: #5f6773 }\
    .end { text-anchor: end }\
    .middle { text-anchor: middle }\
    .grid { stroke: #e6e4de }\
    .curve { fill: none; stroke-width: 2.4; stroke-linejoin: round }\
    </style>\n";

/// The content of one set of axes: a curve for each fit, or for each contender.
pub(crate) struct Picture<'a> {
    pub(crate) title: &'a str,
    pub(crate) below: &'a str,
    /// The unit behind the values.
    pub(crate) unit: &'a str,
    pub(crate) colour: fn(&str) -> &'static str,
    pub(crate) curves: Vec<(&'static str, Line)>,
}

/// The points of a curve, from left to right.
pub(crate) type Line = Vec<(f64, f64)>;

/// A panel's place in the picture, and the ends of its axes.
struct Panel<'a> {
    picture: &'a Picture<'a>,
    from: f64,
    to: f64,
    most: f64,
    top: f64,
}

fn colour(fit: &str) -> &'static str {
    match fit {
        "instant" => "#d1471f",
        "best" => "#1f6fd0",
        "next" => "#178a5e",
        _ => "#6e7681",
    }
}

/// At most six round steps that reach `most`.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 6.0).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let enough = factors.map(|factor| factor * power).into_iter();
    let mut enough = enough.filter(|step| step * 6.0 >= most);
    enough.next().unwrap_or(most)
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>"
    );
}

impl Panel<'_> {
    fn x(&self, at: f64) -> f64 {
        LEFT + (at - self.from) / (self.to - self.from) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = self.top + PANEL - BOTTOM;
        bottom - value / self.most * (PANEL - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) {
        text(svg, LEFT, self.top + 34.0, "title", self.picture.title);
        let by = step(self.most);
        for tick in (0..)
            .map(|n| f64::from(n) * by)
            .take_while(|tick| *tick <= self.most)
        {
            let y = self.y(tick);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - RIGHT
            );
            let words = format!("{tick} {}", self.picture.unit);
            text(svg, LEFT - 8.0, y + 4.0, "soft end", &words);
        }
        let by = step(self.to - self.from);
        let ticks = (0..).map(|n| self.from + f64::from(n) * by);
        let below = self.y(0.0);
        for tick in ticks.take_while(|tick| *tick <= self.to) {
            let words = format!("{tick}");
            text(svg, self.x(tick), below + 19.0, "soft middle", &words);
        }
        let centre = (LEFT + WIDTH - RIGHT) / 2.0;
        text(svg, centre, below + 40.0, "soft middle", self.picture.below);
    }

    fn curve(&self, svg: &mut String, fit: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (index, &(at, value)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (self.x(at), self.y(value));
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        let colour = (self.picture.colour)(fit);
        let _ = writeln!(
            svg,
            "<path class=\"curve\" stroke=\"{colour}\" d=\"{path}\"><title>{fit}</title></path>"
        );
    }

    /// Names where curves end, apart from one another.
    fn names(&self, svg: &mut String) {
        let end = |(fit, points): &(&'static str, Line)| {
            points.last().map(|point| (self.y(point.1), *fit))
        };
        let curves = self.picture.curves.iter();
        let mut ends: Vec<(f64, &str)> = curves.filter_map(end).collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let room = NAME_GAP * ends.len().saturating_sub(1) as f64;
        let mut least = (self.y(0.0) - room).min(ends.first().map_or(0.0, |end| end.0));
        for (y, fit) in ends {
            let y = y.max(least);
            least = y + NAME_GAP;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill: {}; font-weight: 600\">{fit}</text>",
                WIDTH - RIGHT + 8.0,
                y + 4.0,
                (self.picture.colour)(fit)
            );
        }
    }

    fn draw(&self, svg: &mut String) {
        self.axes(svg);
        for (fit, points) in &self.picture.curves {
            self.curve(svg, fit, points);
        }
        self.names(svg);
    }
}

fn panel<'a>(picture: &'a Picture<'a>, top: f64) -> Panel<'a> {
    let points = || picture.curves.iter().flat_map(|(_, points)| points.iter());
    let most = points().map(|point| point.1).fold(1.0, f64::max);
    Panel {
        picture,
        from: points().map(|point| point.0).fold(f64::INFINITY, f64::min),
        to: points().map(|point| point.0).fold(0.0, f64::max),
        most: (most / step(most)).ceil() * step(most),
        top,
    }
}

/// The panels one above the other. `label` describes them for screen readers.
pub(crate) fn document(label: &str, pictures: &[Picture]) -> String {
    let height = pictures.len() as f64 * PANEL;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{label}\">\n{STYLE}\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (index, picture) in pictures.iter().enumerate() {
        panel(picture, index as f64 * PANEL).draw(&mut svg);
    }
    svg + "</svg>\n"
}

/// Both experiments.
pub fn svg(curves: &[Curves]) -> String {
    let of = |which: fn(&Curves) -> &[Point]| {
        let line = move |one| which(one).iter().map(|point| (point.at, point.value));
        let lines = curves.iter().map(|one| (one.fit, line(one).collect()));
        lines.collect::<Vec<(&'static str, Line)>>()
    };
    let held = format!(
        "The largest free segment, of all that is free, with {:.0} % asked for",
        100.0 * HELD
    );
    let filling = Picture {
        title: "Allocations refused for want of a segment that is large enough",
        below: "percent of the range asked for at a time",
        unit: "%",
        colour,
        curves: of(|one| &one.filling),
    };
    let wear = Picture {
        title: &held,
        below: "turnovers: times that the live volume was replaced",
        unit: "%",
        colour,
        curves: of(|one| &one.wear),
    };
    document("Fragmentation of an arena by fit", &[filling, wear])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!(step(100.0), 20.0);
        assert_eq!(step(28.0), 5.0);
        assert_eq!(step(0.6), 0.1);
    }

    #[test]
    fn every_fit_has_a_curve_and_a_name_within_the_picture() {
        let points = |high| {
            let point = |n: u32| Point {
                at: 70.0 + f64::from(n),
                value: high / f64::from(n + 1),
                free: 1.0,
            };
            (0..4).map(point).collect::<Vec<_>>()
        };
        let one = |fit, high| Curves {
            fit,
            wear: points(high),
            filling: points(high),
        };
        let svg = svg(&[one("best", 40.0), one("next", 40.0), one("instant", 1.0)]);
        for fit in ["best", "next", "instant"] {
            assert_eq!(svg.matches(&format!("<title>{fit}</title>")).count(), 2);
            assert_eq!(svg.matches(&format!(">{fit}</text>")).count(), 2);
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
