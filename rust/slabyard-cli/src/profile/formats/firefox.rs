//! The format of the Firefox profiler, by the crate `fxprof-processed-profile`, compressed by gzip.
//!
//! A stack is a sample whose weight is what it has. The samples lie one millisecond apart, in the order
//! of their functions: the profiler's stack chart, which is over time, shows the same as a flame graph.

use super::super::data::Profile;
use anyhow::{bail, Context, Result};
use flate2::{write::GzEncoder, Compression};
use fxprof::{CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ThreadHandle, Timestamp};
use fxprof_processed_profile as fxprof;
use std::time::{SystemTime, UNIX_EPOCH};

/// The weight of a sample has 32 bits, so a larger one becomes several samples; so many more than there
/// are stacks, at most.
const MORE_SAMPLES_MOST: u64 = 1 << 16;
const WEIGHT_MOST: i64 = i32::MAX as i64;

/// The parts of a weight.
fn parts(weight: i64) -> impl Iterator<Item = i32> {
    let whole = weight / WEIGHT_MOST;
    let parts = std::iter::repeat_n(WEIGHT_MOST * whole.signum(), whole.unsigned_abs() as usize);
    let rest = Some(weight % WEIGHT_MOST).filter(|&rest| rest != 0);
    parts.chain(rest).map(|part| part as i32)
}

fn check_room(profile: &Profile, measure: usize) -> Result<()> {
    let weights = profile.stacks.iter().map(|stack| stack.values[measure]);
    let more = weights.map(|weight| (weight / WEIGHT_MOST).unsigned_abs());
    if more.fold(0, u64::saturating_add) > MORE_SAMPLES_MOST {
        let unit = profile.measures[measure].unit;
        let sum = profile.total(measure);
        bail!("the format of the Firefox profiler has no room for {sum} {unit}");
    }
    Ok(())
}

fn add_samples(out: &mut fxprof::Profile, thread: ThreadHandle, profile: &Profile, measure: usize) {
    let frames = profile.frames.iter();
    let labels: Vec<_> = frames
        .map(|one| out.intern_string(&one.with_line()))
        .collect();
    let mut time = 0.0;
    for stack in &profile.stacks {
        let frames = stack.frames.iter().map(|&at| FrameInfo {
            frame: Frame::Label(labels[at as usize]),
            category_pair: CategoryHandle::OTHER.into(),
            flags: FrameFlags::empty(),
        });
        let handle = out.intern_stack_frames(thread, frames);
        for weight in parts(stack.values[measure]) {
            let at = Timestamp::from_millis_since_reference(time);
            // Without CPU time, the profiler's time line would be blank.
            out.add_sample(thread, at, handle, CpuDelta::from_millis(1.0), weight);
            time += 1.0;
        }
    }
    out.set_thread_end_time(thread, Timestamp::from_millis_since_reference(time));
}

pub fn render(profile: &Profile, measure: usize) -> Result<Vec<u8>> {
    check_room(profile, measure)?;
    let what = profile.measures[measure];
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = fxprof::ReferenceTimestamp::from_duration_since_unix_epoch(now.unwrap_or_default());
    let interval = fxprof::SamplingInterval::from_millis(1);
    let name = format!("{}: {}", profile.title, what.title);
    let mut out = fxprof::Profile::new(&name, now, interval);
    let begin = Timestamp::from_millis_since_reference(0.0);
    let process = out.add_process(&name, 1, begin);
    let thread = out.add_thread(process, 1, begin, true);
    out.set_thread_samples_weight_type(
        thread,
        match what.unit {
            "bytes" => fxprof::WeightType::Bytes,
            _ => fxprof::WeightType::Samples,
        },
    );
    out.set_symbolicated(true);
    add_samples(&mut out, thread, profile, measure);
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut file, &out)?;
    file.finish().context("cannot compress")
}
