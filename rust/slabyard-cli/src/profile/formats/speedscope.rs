//! The file format of speedscope: a list of frames, and for each stack its frames and its weight.

use super::super::data::{Frame, Profile};
use anyhow::{bail, Result};
use serde::Serialize;

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    shared: Shared<'a>,
    profiles: [Sampled<'a>; 1],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<&'a [u32]>,
    weights: Vec<i64>,
}

fn named(frame: &Frame) -> Named<'_> {
    Named {
        name: &frame.function,
        file: (!frame.file.is_empty()).then_some(&frame.file),
        line: (frame.line != 0).then_some(frame.line),
    }
}

pub fn render(profile: &Profile, measure: usize) -> Result<Vec<u8>> {
    let stacks = profile.sorted(measure);
    if profile.is_difference {
        bail!(
            "the format of speedscope has no weights below 0; the other formats show a difference"
        );
    }
    let what = profile.measures[measure];
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("slabyard ", env!("CARGO_PKG_VERSION")),
        name: &profile.title,
        shared: Shared {
            frames: profile.frames.iter().map(named).collect(),
        },
        profiles: [Sampled {
            r#type: "sampled",
            name: what.title,
            unit: if what.unit == "bytes" {
                "bytes"
            } else {
                "none"
            },
            start_value: 0,
            end_value: profile.total(measure),
            samples: stacks.iter().map(|stack| stack.frames.as_slice()).collect(),
            weights: stacks.iter().map(|stack| stack.values[measure]).collect(),
        }],
    };
    Ok(serde_json::to_vec(&file)?)
}
