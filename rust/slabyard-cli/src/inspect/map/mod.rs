//! `slabyard map`: draws the heap of a running process, as an HTML page or as an SVG picture.
//!
//! [`collect`] sums what was read by pages, units and runs; [`pack`] makes it small; [`page`] writes
//! the page, whose script (page.js) draws and zooms; [`svg`] draws the overview without a script;
//! [`words`] has the sentences of both.
//!
//! The names of caches come from the process. They are escaped, or are data that the script only
//! shows as text.

mod collect;
mod pack;
mod page;
mod svg;
#[cfg(test)]
mod tests;
mod words;

use super::Look;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Svg,
}

impl Format {
    /// By the ending of a file's name.
    pub fn of(file: &Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "html" | "htm" => Some(Format::Html),
            "svg" => Some(Format::Svg),
            _ => None,
        }
    }
}

pub fn draw(look: &Look, format: Format) -> String {
    let mut picture = collect::collect(&look.image, &look.heaps, super::page_bytes());
    picture.pid = look.pid;
    picture.program = look.program();
    match format {
        Format::Html => page::render(&picture),
        Format::Svg => svg::render(&picture),
    }
}
