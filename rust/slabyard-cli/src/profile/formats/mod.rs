//! The formats in which data with a weight for each stack is written: for `go tool pprof` and the like
//! ([`pprof`]), for scripts ([`folded`]), for the pages of speedscope ([`speedscope`]) and of the Firefox profiler
//! ([`firefox`]), as a picture ([`flame`]), and as text ([`text`]). None knows where the data comes from.

pub mod firefox;
pub mod flame;
pub mod folded;
pub mod pprof;
pub mod speedscope;
pub mod text;

use super::data::Profile;
use anyhow::Result;
use clap::ValueEnum;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for the terminal
    Text,
    /// The format of `go tool pprof`, Grafana and Pyroscope, compressed by gzip
    Pprof,
    /// A line for each stack, as flamegraph.pl takes them
    Folded,
    /// JSON for https://www.speedscope.app
    Speedscope,
    /// JSON for https://profiler.firefox.com, compressed by gzip
    Firefox,
    /// A flame graph as SVG
    Flame,
}

impl Format {
    /// Whether a terminal cannot show it.
    pub fn is_compressed(self) -> bool {
        matches!(self, Format::Pprof | Format::Firefox)
    }

    /// The format that a file's name asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        match () {
            () if ends(&[".pb.gz", ".pprof"]) => Some(Format::Pprof),
            () if ends(&[".json.gz"]) => Some(Format::Firefox),
            () if ends(&[".svg"]) => Some(Format::Flame),
            () if ends(&[".json"]) => Some(Format::Speedscope),
            () if ends(&[".folded"]) => Some(Format::Folded),
            () if ends(&[".txt"]) => Some(Format::Text),
            () => None,
        }
    }
}

/// Writes the measure `measure` of a profile; pprof has all measures, this one being the usual one.
pub fn render(profile: &Profile, measure: usize, format: Format, rows: usize) -> Result<Vec<u8>> {
    match format {
        Format::Text => Ok(text::render(profile, measure, rows).into_bytes()),
        Format::Pprof => pprof::render(profile, measure),
        Format::Folded => Ok(folded::render(profile, measure).into_bytes()),
        Format::Firefox => firefox::render(profile, measure),
        Format::Speedscope => speedscope::render(profile, measure),
        Format::Flame => flame::render(profile, measure),
    }
}

#[cfg(test)]
mod tests;
