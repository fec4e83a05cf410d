//! What mixed lifetimes cost: `slabyard info --lifetimes`.
//!
//! Objects of one size share pages. If a few of them live much longer than the others, each of them
//! keeps a page in RAM after its neighbours were freed. This module tells how much memory that is:
//! [`Lives`] reads the objects of a recording's largest process, and [`slabs`] places them in a model
//! of an allocator's slabs: once all together, and then with the long-lived objects in slabs of
//! their own. The model knows in advance how long each object will live. So its gain is about the
//! most that a program can gain by keeping lifetimes apart.
//!
//! Above: `cli`. Below: `recording`, and `plan::order`, which merges the records of all threads.

mod slabs;

use crate::plan::merge::AddressMap;
use crate::plan::order::{each_step, Action};
use crate::recording::{Process, Recording};
use crate::run::seconds;
use crate::ui::{bytes, grouped};
use slabs::{place, Placed};
use std::fmt::Write;
use std::time::Duration;

/// Larger objects fill pages of their own, so nothing on these pages can live longer.
const SIZE_MOST: u64 = slabs::PAGE as u64;

/// Objects count as long-lived from this share of the run on. The best of these is shown.
const SHARES: [f64; 3] = [0.01, 0.05, 0.25];

/// A gain of a smaller share of the pages is not worth a change of the program.
const WORTH: f64 = 0.05;

/// The table has the sizes that gain at least this share of all pages, and at most so many.
const SHOWN: f64 = 0.01;
const SIZES_SHOWN: usize = 8;

/// The beginning or the end of an object's life.
struct Change {
    stamp: u64,
    object: usize,
    begins: bool,
}

struct Object {
    slot: usize,
    /// In ticks; `u64::MAX` if it was never freed.
    lifetime: u64,
}

/// The lives of all objects of up to [`SIZE_MOST`] bytes of one process.
struct Lives {
    objects: Vec<Object>,
    changes: Vec<Change>,
    /// The objects that are live at this point: the object's number and the stamp of its birth.
    live: AddressMap<(usize, u64)>,
    /// The latest stamp so far. In a damaged recording, stamps may go back.
    now: u64,
}

impl Lives {
    /// Records that are impossible, because two processors' clocks differ, are left out.
    fn of(recording: &Recording, process: &Process) -> Self {
        let mut lives = Lives {
            objects: Vec::new(),
            changes: Vec::new(),
            live: AddressMap::default(),
            now: 0,
        };
        each_step(recording, process, |step| {
            lives.now = lives.now.max(step.event.stamp);
            lives.apply(step.event.action);
        });
        lives
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Allocate { object, size, .. } => self.begin(object, size),
            Action::Receive { new, size } => self.begin(new, size),
            Action::Free { object, .. } => self.end(object),
            Action::GiveUp { old, .. } => self.end(old),
            Action::Failed => {}
        }
    }

    fn begin(&mut self, address: u64, size: u64) {
        self.end(address);
        if size > SIZE_MOST {
            return;
        }
        let object = self.objects.len();
        self.live.insert(address, (object, self.now));
        self.objects.push(Object {
            slot: slabs::slot_size(size),
            lifetime: u64::MAX,
        });
        self.change(object, true);
    }

    fn end(&mut self, address: u64) {
        if let Some((object, birth)) = self.live.remove(&address) {
            self.objects[object].lifetime = self.now - birth;
            self.change(object, false);
        }
    }

    fn change(&mut self, object: usize, begins: bool) {
        self.changes.push(Change {
            stamp: self.now,
            object,
            begins,
        });
    }

    /// The ticks from the first change to the last.
    fn span(&self) -> u64 {
        let stamp = |change: Option<&Change>| change.map_or(0, |change| change.stamp);
        stamp(self.changes.last()) - stamp(self.changes.first())
    }
}

/// The pages of one size, with all objects together and with the long-lived ones apart.
struct Size {
    slot: usize,
    objects: u64,
    long: u64,
    together: f64,
    apart: f64,
}

/// The figures of one process. The bytes of a size are means over the run.
struct Answer {
    process: String,
    objects: u64,
    /// Seconds from which on an object counts as long-lived, and the number of these objects.
    long_from: f64,
    long: u64,
    together: Placed,
    apart: Placed,
    /// The sizes that gain most, at most [`SIZES_SHOWN`].
    sizes: Vec<Size>,
}

/// `None`: no process has small objects that live for some time.
fn answer(recording: &Recording) -> Option<Answer> {
    let process = recording.processes.iter().max_by_key(|p| p.records())?;
    let lives = Lives::of(recording, process);
    let span = lives.span();
    if span == 0 {
        return None;
    }
    let together = place(&lives, u64::MAX);
    let tries = SHARES.map(|share| {
        let from = (share * span as f64) as u64;
        (from, place(&lives, from))
    });
    let better = |a: &(u64, Placed), b: &(u64, Placed)| a.1.mean().total_cmp(&b.1.mean());
    let (from, apart) = tries.into_iter().min_by(better)?;
    let long = |object: &&Object| object.lifetime >= from;
    Some(Answer {
        process: process.name().to_string(),
        objects: lives.objects.len() as u64,
        long_from: from as f64 * recording.ns_per_tick() / 1e9,
        long: lives.objects.iter().filter(long).count() as u64,
        sizes: sizes(&lives, from, &together, &apart),
        together,
        apart,
    })
}

fn sizes(lives: &Lives, from: u64, together: &Placed, apart: &Placed) -> Vec<Size> {
    let mut sizes: Vec<Size> = together
        .by_slot()
        .map(|(slot, bytes)| Size {
            slot,
            objects: 0,
            long: 0,
            together: bytes,
            apart: apart.of_slot(slot),
        })
        .collect();
    let least = SHOWN * together.mean();
    sizes.retain(|size| size.together - size.apart >= least);
    sizes.sort_by(|a, b| (b.together - b.apart).total_cmp(&(a.together - a.apart)));
    sizes.truncate(SIZES_SHOWN);
    for size in &mut sizes {
        let all = || lives.objects.iter().filter(|o| o.slot == size.slot);
        size.objects = all().count() as u64;
        size.long = all().filter(|o| o.lifetime >= from).count() as u64;
    }
    sizes
}

/// The output of `slabyard info --lifetimes`.
pub fn render(recording: &Recording) -> String {
    match answer(recording) {
        Some(answer) => answer.text(),
        None => "No process has objects whose lifetimes could be compared.\n".to_string(),
    }
}

impl Answer {
    /// The share of the pages that keeping lifetimes apart would free, of the mean.
    fn gain(&self) -> f64 {
        (self.together.mean() - self.apart.mean()) / self.together.mean().max(1.0)
    }

    fn text(&self) -> String {
        let mut text = format!(
            "Pages of 4 KiB with objects of up to 4 KiB, in a model of slabs; the process is {}.\n\n\
             {:<34}{:>11}{:>11}\n",
            self.process, "", "mean", "peak"
        );
        let (together, apart) = (&self.together, &self.apart);
        for (name, mean, peak) in [
            ("live objects", together.live_mean(), together.live_peak()),
            (
                "pages, all objects together",
                together.mean(),
                together.peak(),
            ),
            (
                "pages, long-lived objects apart",
                apart.mean(),
                apart.peak(),
            ),
        ] {
            let (mean, peak) = (bytes(mean as u64), bytes(peak as u64));
            let _ = writeln!(text, "{name:<34}{mean:>11}{peak:>11}");
        }
        self.verdict(&mut text);
        text
    }

    fn verdict(&self, text: &mut String) {
        let percent = (self.gain().max(0.0) * 100.0).round();
        if self.gain() < WORTH {
            let _ = writeln!(
                text,
                "\nLifetimes are not what costs memory here: keeping long-lived objects apart would \
                 free\nabout {percent:.0} % of these pages."
            );
            return;
        }
        let (most, at) = self.together.most_more_than(&self.apart);
        let _ = writeln!(
            text,
            "\nKeeping long-lived objects apart would free about {percent:.0} % of these pages: \
             {} at one time\n({:.0} % of the run was over). {} of {} objects live for {} or longer.",
            bytes(most as u64),
            at * 100.0,
            grouped(self.long),
            grouped(self.objects),
            seconds(Duration::try_from_secs_f64(self.long_from).unwrap_or(Duration::MAX)),
        );
        let _ = writeln!(
            text,
            "\n{:>12}{:>14}{:>13}{:>11}{:>11}",
            "size up to", "objects", "long-lived", "together", "apart"
        );
        for size in &self.sizes {
            let _ = writeln!(
                text,
                "{:>12}{:>14}{:>13}{:>11}{:>11}",
                bytes(size.slot as u64),
                grouped(size.objects),
                grouped(size.long),
                bytes(size.together as u64),
                bytes(size.apart as u64)
            );
        }
        text.push_str(
            "\nTo keep objects apart, give those that live long a cache, an epoch or a heap of \
             their own.\n",
        );
    }
}

#[cfg(test)]
mod tests;
