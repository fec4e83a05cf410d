//! Draws the overview as a PNG picture, for chats, tickets and documents without SVG.
//!
//! The letters are bitmaps that the tool brings along: on many servers there are no fonts. The
//! colours are the light ones of svg.css.

use std::collections::HashMap;

use super::collect::Picture;
use super::scene::{Bar, Scene, Style, Text, MARGIN, WIDTH};
use super::svg::STYLE;
use anyhow::{Context, Result};
use noto_sans_mono_bitmap::{get_raster, get_raster_width, FontWeight, RasterHeight};
use png::{BitDepth, ColorType, Encoder};

/// Pixels of this picture for one of the scene. The letters of 24 pixels are as large as those of the
/// SVG then.
const SCALE: f64 = 1.5;

type Colour = [u8; 3];

/// The colour of a rule in svg.css; `None`: the rule has none.
fn fill_of(rule: &str) -> Option<Colour> {
    let start = format!("{rule} {{");
    let line = STYLE.lines().find(|line| line.starts_with(&start))?;
    let digits = line.split("fill: #").nth(1)?.get(..6)?;
    let colour = u32::from_str_radix(digits, 16).ok()?;
    let [_, red, green, blue] = colour.to_be_bytes();
    Some([red, green, blue])
}

/// The colour of an element of this class.
fn colour(class: &str) -> Colour {
    let own = fill_of(&format!(".{class}"));
    own.or_else(|| fill_of("text")).unwrap_or_default()
}

fn pixels(length: f64) -> usize {
    (length * SCALE).round().max(0.0) as usize
}

struct Canvas {
    width: usize,
    height: usize,
    /// Red, green and blue of each pixel, row by row.
    bytes: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize, paper: Colour) -> Canvas {
        Canvas {
            width,
            height,
            bytes: paper.repeat(width * height),
        }
    }

    /// Mixes a colour into a pixel: `part` of 255. Outside of the picture nothing is drawn.
    fn mix(&mut self, x: usize, y: usize, colour: Colour, part: u8) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y * self.width + x) * 3;
        for (byte, new) in self.bytes[at..at + 3].iter_mut().zip(colour) {
            let sum = u32::from(*byte) * u32::from(255 - part) + u32::from(new) * u32::from(part);
            *byte = (sum / 255) as u8;
        }
    }

    fn fill(&mut self, (left, top): (usize, usize), (right, end): (usize, usize), colour: Colour) {
        let (left, right) = (left.min(self.width), right.min(self.width));
        for y in top..end.min(self.height) {
            let row = y * self.width;
            for pixel in (left..right).map(|x| (row + x) * 3) {
                self.bytes[pixel..pixel + 3].copy_from_slice(&colour);
            }
        }
    }

    /// A bar may be thinner than a pixel: then its colour is as pale.
    fn bar(&mut self, bar: &Bar) {
        let (top, end) = (pixels(bar.y), pixels(bar.y + bar.height));
        let (left, right) = (bar.x * SCALE, (bar.x + bar.width) * SCALE);
        let colour = colour(bar.class);
        for x in left.floor() as usize..right.ceil() as usize {
            let covered = right.min(x as f64 + 1.0) - left.max(x as f64);
            for y in top..end {
                self.mix(x, y, colour, (covered * 255.0) as u8);
            }
        }
    }

    fn text(&mut self, text: &Text) {
        let (weight, height) = match text.style {
            Style::Answer => (FontWeight::Bold, RasterHeight::Size32),
            Style::Name => (FontWeight::Bold, RasterHeight::Size24),
            Style::Small | Style::End => (FontWeight::Regular, RasterHeight::Size24),
        };
        let wide = get_raster_width(weight, height);
        let mut x = pixels(text.x);
        if text.style == Style::End {
            x = x.saturating_sub(text.words.chars().count() * wide);
        }
        // The letters stand on a line at 3/4 of the height of their bitmaps.
        let top = pixels(text.y).saturating_sub(height.val() * 3 / 4);
        let colour = colour(text.style.class());
        for letter in text.words.chars() {
            if !letter.is_whitespace() {
                let known = get_raster(letter, weight, height);
                let raster = known.or_else(|| get_raster('?', weight, height));
                let rows = raster.iter().flat_map(|raster| raster.rows());
                for (down, row) in rows.enumerate() {
                    for (across, &part) in row.iter().enumerate() {
                        self.mix(x + across, top + down, colour, part);
                    }
                }
            }
            x += wide;
        }
    }

    /// The edges of cells lie between pixels, so that no seams show.
    fn cells(&mut self, scene: &Scene) {
        let tenth = scene.unit * SCALE / 10.0;
        let (left, top) = (MARGIN * SCALE, scene.top * SCALE);
        let edge = |from: f64, tenths: usize| (from + tenths as f64 * tenth).round() as usize;
        let gap = match scene.has_gaps {
            true => (tenth.round() as usize).max(1),
            false => 0,
        };
        let absent = colour("absent");
        let mut colours = HashMap::new();
        for cell in &scene.cells {
            let start = (edge(left, cell.x), edge(top, cell.y));
            let right = edge(left, cell.x + cell.across).saturating_sub(gap);
            let end = edge(top, cell.y + 10).saturating_sub(gap);
            let down = (end.saturating_sub(start.1) * cell.quarters as usize).div_ceil(4);
            let filled = start.1 + down;
            self.fill((start.0, filled), (right, end), absent);
            let of_class = *colours
                .entry(cell.class)
                .or_insert_with(|| colour(cell.class));
            self.fill(start, (right, filled), of_class);
        }
    }
}

fn canvas(scene: &Scene) -> Canvas {
    let mut canvas = Canvas::new(pixels(WIDTH), pixels(scene.height), colour("card"));
    canvas.cells(scene);
    scene.bars.iter().for_each(|bar| canvas.bar(bar));
    scene.texts.iter().for_each(|text| canvas.text(text));
    canvas
}

pub fn render(picture: &Picture) -> Result<Vec<u8>> {
    let scene = Scene::of(picture);
    let canvas = canvas(&scene);
    encode(&scene, &canvas).context("cannot make the picture")
}

fn encode(scene: &Scene, canvas: &Canvas) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, canvas.width as u32, canvas.height as u32);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.add_itxt_chunk("Title".into(), scene.title.clone())?;
    encoder.add_itxt_chunk("Description".into(), scene.says.clone())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&canvas.bytes)?;
    writer.finish()?;
    Ok(file)
}
