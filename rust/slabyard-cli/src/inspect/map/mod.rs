//! `slabyard map`: draws the heap of a running process, as an HTML page or as a picture.
//!
//! [`collect`] sums what was read by pages, units and runs; [`pack`] makes it small; [`page`] writes
//! the page, whose script (page.js) draws and zooms; [`scene`] lays out the overview, which [`svg`] and
//! [`png`] draw without a script; [`words`] has the sentences of all.
//!
//! The names of caches come from the process. They are escaped, or are data that the script only
//! shows as text.

mod collect;
mod pack;
mod page;
mod png;
mod scene;
mod svg;
#[cfg(test)]
mod tests;
mod words;

use super::Look;
use anyhow::Result;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Svg,
    Png,
}

impl Format {
    /// By the ending of a file's name.
    pub fn of(file: &Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "html" | "htm" => Some(Format::Html),
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            _ => None,
        }
    }
}

pub fn draw(look: &Look, format: Format) -> Result<Vec<u8>> {
    let mut picture = collect::collect(&look.image, &look.heaps, super::page_bytes());
    picture.pid = look.pid;
    picture.program = look.program();
    Ok(match format {
        Format::Html => page::render(&picture).into_bytes(),
        Format::Svg => svg::render(&picture).into_bytes(),
        Format::Png => png::render(&picture)?,
    })
}
