//! The snapshots of a ring as figures over time.

use super::super::account::{Account, What};
use super::super::snapshot::Snapshot;
use super::ring;
use anyhow::{bail, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Kinds of memory that a chart shows as one, from the bottom up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Live,
    Lost,
    Magazines,
    FreeInSlabs,
    FreeUnits,
    Own,
    Files,
    Other,
}

pub const LAYERS: [Layer; 8] = [
    Layer::Live,
    Layer::Lost,
    Layer::Magazines,
    Layer::FreeInSlabs,
    Layer::FreeUnits,
    Layer::Own,
    Layer::Files,
    Layer::Other,
];

impl Layer {
    pub fn words(self) -> &'static str {
        match self {
            Layer::Live => "live objects",
            Layer::Lost => "rounding, ends of slabs",
            Layer::Magazines => "free, in magazines",
            Layer::FreeInSlabs => "free, in slabs",
            Layer::FreeUnits => "free units and spans",
            Layer::Own => "Slabyard's own",
            Layer::Files => "files: code, data",
            Layer::Other => "other memory",
        }
    }

    fn of(what: What) -> Self {
        match what {
            What::Live | What::Large | What::Guarded => Layer::Live,
            What::Rounding | What::Tails => Layer::Lost,
            What::ThreadMagazines | What::DepotMagazines | What::Quarantine => Layer::Magazines,
            What::FreeInSlabs | What::Holes | What::NeverUsed => Layer::FreeInSlabs,
            What::FreeUnits | What::KeptSpans => Layer::FreeUnits,
            What::Files => Layer::Files,
            own if own.is_slabyard() => Layer::Own,
            _ => Layer::Other,
        }
    }
}

/// A cache by its name and the bytes of an object.
type Cache = (String, u64);

/// What the charts need of one snapshot.
#[derive(Debug)]
pub struct Point {
    /// Seconds since 1970.
    pub time: f64,
    pub pid: u32,
    pub layers: [u64; LAYERS.len()],
    /// Resident bytes of live objects.
    caches: BTreeMap<Cache, u64>,
}

#[derive(Debug)]
pub struct Timeline {
    /// At least two, in order of time.
    pub points: Vec<Point>,
    pub first: Snapshot,
    pub last: Snapshot,
    /// The files of the first and the last snapshot.
    pub files: [PathBuf; 2],
    /// Files that are not shown, and why.
    pub left_out: Vec<String>,
}

fn point_of(time: f64, account: &Account) -> Point {
    let mut point = Point {
        time,
        pid: account.pid,
        layers: [0; LAYERS.len()],
        caches: BTreeMap::new(),
    };
    for (what, weight) in &account.resident {
        point.layers[Layer::of(*what) as usize] += weight.bytes;
    }
    for cache in account.caches.iter().filter(|one| one.live_bytes > 0) {
        let key = (cache.name.clone(), cache.object_bytes);
        *point.caches.entry(key).or_default() += cache.live_bytes;
    }
    point
}

impl Timeline {
    pub fn read(folder: &Path) -> Result<Self> {
        let mut points: Vec<Point> = Vec::new();
        let mut ends: [Option<(PathBuf, Snapshot)>; 2] = [None, None];
        let mut left_out = Vec::new();
        for file in ring::files(folder)? {
            let snapshot = match Snapshot::read(&file) {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    left_out.push(format!("left out: {error:#}"));
                    continue;
                }
            };
            if points.last().is_some_and(|last| last.time >= snapshot.time) {
                left_out.push(format!(
                    "left out: {} is not later than the file before; the clock was set back",
                    file.display()
                ));
                continue;
            }
            points.push(point_of(snapshot.time, &snapshot.account));
            let end = usize::from(ends[0].is_some());
            ends[end] = Some((file, snapshot));
        }
        let [Some((first_file, first)), Some((last_file, last))] = ends else {
            bail!(
                "{} has {} snapshots of slabyard watch, and a time line needs two",
                folder.display(),
                points.len()
            );
        };
        Ok(Timeline {
            points,
            first,
            last,
            files: [first_file, last_file],
            left_out,
        })
    }

    /// Seconds from the first snapshot to the last.
    pub fn seconds(&self) -> f64 {
        self.last.time - self.first.time
    }

    /// The times at which the program was started again.
    pub fn restarts(&self) -> Vec<f64> {
        let pairs = self.points.windows(2);
        let restarts = pairs.filter(|pair| pair[0].pid != pair[1].pid);
        restarts.map(|pair| pair[1].time).collect()
    }

    /// The caches whose live bytes have changed most, with their bytes at each point.
    pub fn changed_caches(&self, most: usize) -> Vec<(String, Vec<u64>)> {
        let mut ranges: BTreeMap<&Cache, (u64, u64)> = BTreeMap::new();
        for point in &self.points {
            for (cache, &bytes) in &point.caches {
                let range = ranges.entry(cache).or_insert((bytes, bytes));
                *range = (range.0.min(bytes), range.1.max(bytes));
            }
        }
        for point in &self.points {
            for (cache, range) in &mut ranges {
                if !point.caches.contains_key(*cache) {
                    range.0 = 0;
                }
            }
        }
        let mut all: Vec<_> = ranges.into_iter().collect();
        all.retain(|(_, (least, most))| least < most);
        all.sort_by_key(|&(cache, (least, most))| (u64::MAX - (most - least), cache));
        let of = |cache: &Cache| {
            let bytes = self.points.iter().map(|point| point.caches.get(cache));
            bytes.map(|bytes| bytes.copied().unwrap_or(0)).collect()
        };
        let chosen = all.into_iter().take(most);
        chosen
            .map(|(cache, _)| (cache.0.clone(), of(cache)))
            .collect()
    }
}
