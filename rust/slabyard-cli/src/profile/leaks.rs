//! `slabyard leaks`: how old the live objects of a process are, by size class and by stack. The ages
//! tell a leak from a cache: in a leak, what is old stays, and in a cache it is replaced.

use super::data::Frame;
use super::formats::text::is_plumbing;
use super::live::{names_of, tree};
use crate::inspect::samples::{Live, Samples};
use crate::inspect::Look;
use crate::report::table::lay_out;
use crate::ui::{bytes, grouped, span};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// The most frames of a stack that are shown.
const FRAMES: usize = 8;

/// With fewer samples, ages say nothing.
const SAMPLES_LEAST: usize = 8;

/// Ages of the live samples of one class or stack.
#[derive(Debug, Default)]
struct Ages {
    objects: f64,
    bytes: f64,
    /// Age in nanoseconds, and the bytes that the sample stands for.
    samples: Vec<(u64, f64)>,
}

impl Ages {
    fn add(&mut self, one: &Live, now: u64) {
        let bytes = one.objects * one.size as f64;
        self.objects += one.objects;
        self.bytes += bytes;
        self.samples.push((now.saturating_sub(one.time), bytes));
    }

    fn sort(&mut self) {
        self.samples.sort_by_key(|&(age, _)| age);
    }

    fn youngest(&self) -> u64 {
        self.samples.first().map_or(0, |&(age, _)| age)
    }

    fn oldest(&self) -> u64 {
        self.samples.last().map_or(0, |&(age, _)| age)
    }

    /// Half of the bytes are older.
    fn median(&self) -> u64 {
        let mut sum = 0.0;
        let reaches = |&&(_, bytes): &&(u64, f64)| {
            sum += bytes;
            sum >= self.bytes / 2.0
        };
        self.samples.iter().find(reaches).map_or(0, |&(age, _)| age)
    }

    /// The bytes that are older than so many nanoseconds.
    fn older(&self, than: u64) -> f64 {
        let old = self.samples.iter().filter(|&&(age, _)| age > than);
        old.map(|&(_, bytes)| bytes).sum()
    }
}

/// What the ages mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    TooFew,
    /// Nothing was allocated lately.
    Kept,
    /// All that was allocated long ago is gone.
    Replaced,
    /// As much is left of the older half of the time as of the newer one.
    Grows,
    /// Less is left of the older half.
    Mixed,
}

impl Verdict {
    /// `all`: the ages of the newest and the oldest sample of the process. A process that has paused
    /// since is judged as it was then.
    fn of(ages: &Ages, all: &Range<u64>) -> Verdict {
        let half = all.start + (all.end - all.start) / 2;
        let older = ages.older(half);
        match () {
            _ if ages.samples.len() < SAMPLES_LEAST => Verdict::TooFew,
            _ if ages.youngest() > half => Verdict::Kept,
            _ if ages.oldest() < half => Verdict::Replaced,
            _ if older >= 0.6 * (ages.bytes - older) => Verdict::Grows,
            _ => Verdict::Mixed,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verdict::TooFew => "too few samples to say",
            Verdict::Kept => "kept: nothing is new",
            Verdict::Replaced => "a cache: what is old was freed",
            Verdict::Grows => "grows: what is old stays. A leak?",
            Verdict::Mixed => "a cache that grew, or whose objects live long",
        }
    }
}

/// The text for a process or core.
pub fn of(look: &Look, shown: usize) -> Result<String> {
    let (samples, program) = look.samples().with_context(|| {
        format!(
            "nothing is known of the ages of objects of process {}",
            look.pid
        )
    })?;
    // A core ends with its last sample.
    let last = samples.live.iter().map(|one| one.time).max().unwrap_or(0);
    let now = look.now().unwrap_or(last).max(last);
    Ok(text(&samples, &program, now, shown, |size| {
        look.class_of(size).unwrap_or("large objects").to_string()
    }))
}

fn text(
    samples: &Samples,
    program: &str,
    now: u64,
    shown: usize,
    class: impl Fn(u64) -> String,
) -> String {
    let mut by_class: BTreeMap<String, Ages> = BTreeMap::new();
    let mut by_site: BTreeMap<usize, Ages> = BTreeMap::new();
    for one in &samples.live {
        by_class.entry(class(one.size)).or_default().add(one, now);
        by_site.entry(one.site).or_default().add(one, now);
    }
    let ages = by_class.values_mut().chain(by_site.values_mut());
    ages.for_each(Ages::sort);
    let newest = by_site.values().map(Ages::youngest).min();
    let oldest = by_site.values().map(Ages::oldest).max();
    let all = newest.unwrap_or(0)..oldest.unwrap_or(0);
    let mut text = format!(
        "{program}: {} live objects were sampled in {}\n\n",
        grouped(samples.live.len() as u64),
        time(all.end)
    );
    let mut rows: Vec<_> = by_class.into_iter().collect();
    rows.sort_by(|a, b| b.1.bytes.total_cmp(&a.1.bytes));
    add_classes(&mut text, &rows, &all);
    add_stacks(&mut text, samples, by_site, &all, shown);
    text
}

fn time(nanoseconds: u64) -> String {
    span(nanoseconds as f64 / 1e9)
}

fn add_classes(text: &mut String, rows: &[(String, Ages)], all: &Range<u64>) {
    let head = [
        "size",
        "live",
        "objects",
        "youngest",
        "half older than",
        "oldest",
        "",
    ];
    let mut cells = vec![head.map(str::to_string).to_vec()];
    for (name, ages) in rows {
        cells.push(vec![
            name.clone(),
            bytes(ages.bytes as u64),
            grouped(ages.objects.round() as u64),
            time(ages.youngest()),
            time(ages.median()),
            time(ages.oldest()),
            Verdict::of(ages, all).words().to_string(),
        ]);
    }
    lay_out(text, &cells);
}

fn add_stacks(
    text: &mut String,
    samples: &Samples,
    by_site: BTreeMap<usize, Ages>,
    all: &Range<u64>,
    shown: usize,
) {
    let (nodes, numbers) = tree(&samples.sites);
    let mut names = names_of(samples, &nodes);
    let mut sites: Vec<_> = by_site.into_iter().collect();
    sites.sort_by(|a, b| b.1.bytes.total_cmp(&a.1.bytes));
    for (site, ages) in sites.iter().take(shown) {
        let of = &samples.sites[*site];
        let left = of.live_bytes as f64 / (of.allocated_bytes.max(1)) as f64;
        let _ = write!(
            text,
            "\n{} in {} objects, {} to {} old; {:.0} % of what this place allocated is live: {}\n",
            bytes(ages.bytes as u64),
            grouped(ages.objects.round() as u64),
            time(ages.youngest()),
            time(ages.oldest()),
            left.min(1.0) * 100.0,
            Verdict::of(ages, all).words()
        );
        let frames = names.of(numbers[*site]);
        let frames = frames.iter().rev().map(|&at| &names.frames[at as usize]);
        add_frames(text, frames.skip_while(|frame| is_plumbing(frame)));
    }
    let left = sites.len().saturating_sub(shown);
    if left > 0 {
        let _ = writeln!(text, "\n{} more: -n", grouped(left as u64));
    }
}

fn add_frames<'a>(text: &mut String, frames: impl Iterator<Item = &'a Frame>) {
    for frame in frames.take(FRAMES) {
        let _ = writeln!(text, "    {}", frame.with_line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::samples::Site;

    const SECOND: u64 = 1_000_000_000;

    /// Samples of 1 KiB that were allocated so many seconds after the start.
    fn ages(times: impl Iterator<Item = u64>, now: u64) -> Ages {
        let mut ages = Ages::default();
        for time in times {
            let live = Live {
                site: 0,
                size: 1024,
                objects: 2.0,
                time: time * SECOND,
            };
            ages.add(&live, now * SECOND);
        }
        ages.sort();
        ages
    }

    #[test]
    fn ages_tell_leaks_from_caches() {
        let verdict = |ages: Ages| Verdict::of(&ages, &(0..100 * SECOND));
        assert_eq!(verdict(ages(0..100, 100)), Verdict::Grows);
        assert_eq!(verdict(ages(0..20, 100)), Verdict::Kept);
        assert_eq!(verdict(ages(70..100, 100)), Verdict::Replaced);
        assert_eq!(verdict(ages((0..1).chain(60..100), 100)), Verdict::Mixed);
        assert_eq!(verdict(ages(0..3, 100)), Verdict::TooFew);
        assert_eq!(verdict(Ages::default()), Verdict::TooFew);
        // It has paused for as long.
        let paused = ages(0..100, 200);
        let all = 100 * SECOND..200 * SECOND;
        assert_eq!(Verdict::of(&paused, &all), Verdict::Grows);
    }

    #[test]
    fn the_median_divides_the_bytes() {
        let of = ages(0..100, 100);
        assert_eq!(of.youngest(), SECOND);
        assert_eq!(of.oldest(), 100 * SECOND);
        assert_eq!(of.median(), 50 * SECOND);
        assert_eq!(of.objects, 200.0);
        assert_eq!(of.bytes, 204_800.0);
        // A sample from the future: the process ran on.
        assert_eq!(ages(200..201, 100).oldest(), 0);
    }

    #[test]
    fn sums_are_shown_by_class_and_place() {
        let live = |site, size, time: u64| Live {
            site,
            size,
            objects: 10.0,
            time: time * SECOND,
        };
        let samples = Samples {
            live: (0..50)
                .map(|at| live(0, 1000, at * 2))
                .chain((90..100).map(|at| live(1, 200_000, at)))
                .collect(),
            sites: vec![Site::default(), Site::default()],
            ..Samples::default()
        };
        let class = |size: u64| if size > 1000 { "large" } else { "small" }.to_string();
        let text = text(&samples, "program", 100 * SECOND, 1, class);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "program: 60 live objects were sampled in 100 s");
        assert!(lines[4].starts_with("large") && lines[4].ends_with(Verdict::Replaced.words()));
        assert!(lines[5].starts_with("small") && lines[5].ends_with(Verdict::Grows.words()));
        assert!(text.ends_with("\n\n1 more: -n\n"), "{text}");
    }
}
