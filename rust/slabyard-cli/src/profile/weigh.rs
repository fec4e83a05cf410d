//! Weighs the objects of one process of a recording: how much each stack, each thread and each size
//! allocated, held at the peak, left at exit, and freed at once.
//!
//! It reads the records twice: first to find when the peak was, then to count.

use crate::plan::merge::AddressMap;
use crate::plan::order::{each_step, Action, Step};
use crate::recording::{Process, Recording};
use std::collections::HashMap;
use std::hash::Hash;

/// The figures of one stack, thread or size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub allocations: u64,
    pub bytes: u64,
    /// Of these, what was freed before its thread allocated anything else.
    pub temporary: u64,
    pub temporary_bytes: u64,
    pub live: u64,
    pub live_bytes: u64,
    /// What was live when the process had the most bytes.
    pub peak: u64,
    pub peak_bytes: u64,
    /// The objects that were freed, the sum of their lifetimes in ticks, and the longest one.
    pub freed: u64,
    pub lifetimes: u64,
    pub longest: u64,
}

impl Figures {
    fn add(&mut self, bytes: u64) {
        self.allocations += 1;
        self.bytes += bytes;
        self.live += 1;
        self.live_bytes += bytes;
    }

    fn remove(&mut self, object: &Object, now: u64, is_temporary: bool) {
        let lifetime = now - object.birth;
        self.live -= 1;
        self.live_bytes -= object.size;
        self.freed += 1;
        self.lifetimes = self.lifetimes.saturating_add(lifetime);
        self.longest = self.longest.max(lifetime);
        if is_temporary {
            self.temporary += 1;
            self.temporary_bytes += object.size;
        }
    }

    fn note_peak(&mut self) {
        (self.peak, self.peak_bytes) = (self.live, self.live_bytes);
    }
}

/// A live object.
#[derive(Clone, Copy)]
struct Object {
    size: u64,
    stack: u32,
    lane: usize,
    birth: u64,
    /// How many objects its thread had allocated, with this one.
    ordinal: u64,
}

/// The figures of a process.
#[derive(Default)]
pub struct Weights {
    pub all: Figures,
    pub stacks: HashMap<u32, Figures>,
    /// By the index of the thread.
    pub threads: HashMap<usize, Figures>,
    pub sizes: HashMap<u64, Figures>,
    /// By stack and size.
    pub sites: HashMap<(u32, u64), Figures>,
    /// The stamp of the last event.
    pub last: u64,
}

impl Weights {
    pub fn of(recording: &Recording, process: &Process) -> Self {
        let mut count = Count {
            peak_at: peak_of(recording, process),
            ordinals: vec![0; process.threads.len()],
            ..Count::default()
        };
        each_step(recording, process, |step| count.step(step));
        count.weights.last = count.now;
        count.weights
    }

    fn each(&mut self, object: &Object, mut change: impl FnMut(&mut Figures)) {
        change(&mut self.all);
        change(self.stacks.entry(object.stack).or_default());
        change(self.threads.entry(object.lane).or_default());
        change(self.sizes.entry(object.size).or_default());
        change(self.sites.entry((object.stack, object.size)).or_default());
    }

    fn note_peak(&mut self) {
        fn all<K: Eq + Hash>(figures: &mut HashMap<K, Figures>) {
            figures.values_mut().for_each(Figures::note_peak);
        }
        self.all.note_peak();
        all(&mut self.stacks);
        all(&mut self.threads);
        all(&mut self.sizes);
        all(&mut self.sites);
    }
}

/// The number of the event after which the process had the most bytes.
fn peak_of(recording: &Recording, process: &Process) -> u64 {
    let mut sizes = AddressMap::<u64>::default();
    let (mut event, mut now, mut most, mut at) = (0, 0, 0, 0);
    each_step(recording, process, |step| {
        event += 1;
        if let Some(object) = step.event.action.gives_up() {
            now -= sizes.remove(&object).unwrap_or(0);
        }
        if let Some((object, size)) = received(step.event.action) {
            now -= sizes.insert(object, size).unwrap_or(0);
            now = now.saturating_add(size);
        }
        if now > most {
            (most, at) = (now, event);
        }
    });
    at
}

/// The address and the size of what is allocated.
pub(super) fn received(action: Action) -> Option<(u64, u64)> {
    match action {
        Action::Allocate { object, size, .. } => Some((object, size)),
        Action::Receive { new, size } => Some((new, size)),
        _ => None,
    }
}

#[derive(Default)]
struct Count {
    weights: Weights,
    live: AddressMap<Object>,
    /// For each thread, the number of its allocations.
    ordinals: Vec<u64>,
    /// The latest stamp so far. In a damaged recording, stamps may go back.
    now: u64,
    event: u64,
    peak_at: u64,
}

impl Count {
    fn step(&mut self, step: Step) {
        self.event += 1;
        self.now = self.now.max(step.event.stamp);
        let is_free = matches!(step.event.action, Action::Free { .. });
        if let Some(address) = step.event.action.gives_up() {
            self.end(address, step.lane, is_free);
        }
        if let Some((address, size)) = received(step.event.action) {
            self.end(address, step.lane, false);
            self.begin(address, size, step);
        }
        if self.event == self.peak_at {
            self.weights.note_peak();
        }
    }

    fn begin(&mut self, address: u64, size: u64, step: Step) {
        self.ordinals[step.lane] += 1;
        let object = Object {
            size,
            stack: step.stack,
            lane: step.lane,
            birth: self.now,
            ordinal: self.ordinals[step.lane],
        };
        self.live.insert(address, object);
        self.weights.each(&object, |figures| figures.add(size));
    }

    fn end(&mut self, address: u64, lane: usize, is_free: bool) {
        let Some(object) = self.live.remove(&address) else {
            return;
        };
        let is_temporary = is_free && object.lane == lane && object.ordinal == self.ordinals[lane];
        let now = self.now;
        self.weights.each(&object, |figures| {
            figures.remove(&object, now, is_temporary)
        });
    }
}
