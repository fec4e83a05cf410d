//! The format of pprof: a message of protocol buffers, compressed by gzip.
//!
//! The structs are the messages that pprof's documentation describes, with the numbers of their
//! fields. Texts are indices of a table whose first entry is empty.

use super::super::data::Profile;
use anyhow::{Context, Result};
use flate2::{write::GzEncoder, Compression};
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct File {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// A note for the reader.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The measure that is shown if none is asked for.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack, its innermost location first.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}

/// Texts, functions and mappings, each once.
#[derive(Default)]
struct Tables {
    texts: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    mappings: HashMap<i64, u64>,
    file: File,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        let next = self.file.string_table.len() as i64;
        let number = *self.texts.entry(text.to_string()).or_insert(next);
        if number == next {
            self.file.string_table.push(text.to_string());
        }
        number
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.text(name), self.text(file));
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.file.function.push(Function {
                id,
                name,
                system_name: name,
                filename,
            });
        }
        id
    }

    /// pprof must not look for names itself: the addresses are not in the file.
    fn mapping(&mut self, path: &str) -> u64 {
        let filename = self.text(path);
        let next = self.mappings.len() as u64 + 1;
        let id = *self.mappings.entry(filename).or_insert(next);
        if id == next {
            self.file.mapping.push(Mapping {
                id,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        id
    }
}

/// The message, before it is compressed. A location is a frame, as inlined functions are frames too.
fn message(profile: &Profile, measure: usize) -> File {
    let mut tables = Tables::default();
    tables.text("");
    for one in &profile.measures {
        let kind = ValueType {
            kind: tables.text(one.name),
            unit: tables.text(one.unit),
        };
        tables.file.sample_type.push(kind);
    }
    for (index, frame) in profile.frames.iter().enumerate() {
        let line = Line {
            function_id: tables.function(&frame.function, &frame.file),
            line: i64::from(frame.line),
        };
        let location = Location {
            id: index as u64 + 1,
            mapping_id: tables.mapping(&frame.module),
            line: vec![line],
        };
        tables.file.location.push(location);
    }
    let stacks = profile.stacks.iter();
    tables.file.sample = stacks
        .map(|stack| Sample {
            location_id: stack
                .frames
                .iter()
                .rev()
                .map(|&at| u64::from(at) + 1)
                .collect(),
            value: stack.values.clone(),
        })
        .collect();
    tables.file.period_type = tables.file.sample_type.first().cloned();
    tables.file.period = 1;
    tables.file.default_sample_type = tables.text(profile.measures[measure].name);
    tables.file.comment = vec![tables.text(&profile.title)];
    tables.file
}

pub fn render(profile: &Profile, measure: usize) -> Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&message(profile, measure).encode_to_vec())?;
    out.finish().context("cannot compress")
}
