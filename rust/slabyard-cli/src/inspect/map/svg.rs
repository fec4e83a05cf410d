//! Draws the overview as an SVG picture, for documents.
//!
//! Cells of one colour are one path. So 8 GiB take some 3 MiB at most.

use super::collect::Picture;
use super::scene::{Scene, MARGIN, WIDTH};
use crate::report::chart::escape;
use std::collections::BTreeMap;
use std::fmt::Write;

pub const STYLE: &str = include_str!("svg.css");

/// The path of each class, in tenths of a unit. That of `absent` lies below the others.
fn paths(scene: &Scene) -> BTreeMap<&'static str, String> {
    let mut paths: BTreeMap<&'static str, String> = BTreeMap::new();
    let gap = usize::from(scene.has_gaps);
    for cell in &scene.cells {
        let mut add = |class, quarters: u64| {
            let path = paths.entry(class).or_default();
            let (x, y) = (cell.x, cell.y);
            let (across, down) = (cell.across - gap, (10 - gap as u64) * quarters / 4);
            let _ = write!(path, "M{x} {y}h{across}v{down}h-{across}");
        };
        if cell.quarters < 4 {
            add("absent", 4);
        }
        if cell.quarters > 0 {
            add(cell.class, cell.quarters);
        }
    }
    paths
}

pub fn render(picture: &Picture) -> String {
    let scene = Scene::of(picture);
    let height = scene.height;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-labelledby=\"title says\">\n<title id=\"title\">{}</title>\n<desc id=\"says\">{}</desc>\n\
         <style>\n{STYLE}</style>\n<rect class=\"card\" width=\"{WIDTH}\" height=\"{height:.0}\"/>\n",
        escape(&scene.title),
        escape(&scene.says),
    );
    for text in &scene.texts {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" class=\"{}\">{}</text>",
            text.x,
            text.y,
            text.style.class(),
            escape(&text.words)
        );
    }
    for bar in &scene.bars {
        let _ = writeln!(
            svg,
            "<rect class=\"{}\" x=\"{:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{}\"/>",
            bar.class, bar.x, bar.y, bar.width, bar.height
        );
    }
    let _ = writeln!(
        svg,
        "<g transform=\"translate({MARGIN} {}) scale({:.4})\">",
        scene.top,
        scene.unit / 10.0
    );
    for (class, path) in paths(&scene) {
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    svg + "</g>\n</svg>\n"
}
