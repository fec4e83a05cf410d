//! The objects of chosen places: when each began and ended, in which order.

use crate::plan::merge::AddressMap;
use crate::plan::order::{each_step, Action, Step};
use crate::recording::{Process, Recording};
use std::collections::HashMap;

/// The most events of a place that are kept for its trial; their beginning stands for the rest.
const EVENTS_MOST: usize = 2_000_000;

/// Objects count as freed together if so many, on average, are freed between two times at which
/// none is live. Resets of smaller pools save less.
const TOGETHER_LEAST: u64 = 64;

/// The run is divided into so many equal times, at whose ends the memory of a trial is counted.
const MOMENTS: u64 = 100;

/// An object begins or ends; objects that live at the same time have different slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub slot: u32,
    /// The index of the thread that does it.
    pub lane: u32,
    /// The number of objects of all places that this thread has allocated.
    pub allocated: u64,
    pub begins: bool,
}

/// The objects of one place.
#[derive(Default)]
pub struct Life {
    pub changes: Vec<Change>,
    /// The number of changes at each of the moments that divide the run; fewer if not all changes
    /// were kept.
    pub moments: Vec<usize>,
    /// The number of objects that were freed, also after the changes that were kept.
    pub freed: u64,
    pub most_live: u64,
    /// Whether one thread allocated and freed all of them.
    pub in_one_thread: bool,
    /// How often the last live object was freed.
    pub phases: u64,
    lane: Option<usize>,
    live: u64,
    free_slots: Vec<u32>,
    slots: u32,
}

impl Life {
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Whether its objects go in large groups, the last of which may be left at exit.
    pub fn ends_together(&self) -> bool {
        self.phases >= 2 && self.freed / self.phases >= TOGETHER_LEAST
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= EVENTS_MOST
    }

    fn note_lane(&mut self, lane: usize) {
        self.in_one_thread &= *self.lane.get_or_insert(lane) == lane;
    }

    /// `None`: the object is not kept.
    fn begin(&mut self, lane: usize, allocated: u64) -> Option<u32> {
        self.note_lane(lane);
        self.live += 1;
        self.most_live = self.most_live.max(self.live);
        if self.is_full() {
            return None;
        }
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.changes.push(Change {
            slot,
            lane: lane as u32,
            allocated,
            begins: true,
        });
        Some(slot)
    }

    fn end(&mut self, slot: Option<u32>, lane: usize, allocated: u64) {
        self.note_lane(lane);
        self.live -= 1;
        self.freed += 1;
        if let Some(slot) = slot.filter(|_| !self.is_full()) {
            self.changes.push(Change {
                slot,
                lane: lane as u32,
                allocated,
                begins: false,
            });
            self.free_slots.push(slot);
        }
        self.phases += u64::from(self.live == 0);
    }

    fn pass_moment(&mut self) {
        if !self.is_full() {
            self.moments.push(self.changes.len());
        }
    }
}

/// The stamps of the moments of a run that ends with the stamp `last`.
fn moments(process: &Process, last: u64) -> impl Iterator<Item = u64> {
    let begin = process.birth_ticks;
    let length = u128::from(last.saturating_sub(begin));
    (1..=MOMENTS)
        .map(move |number| begin + (length * u128::from(number) / u128::from(MOMENTS)) as u64)
}

struct Object {
    place: usize,
    slot: Option<u32>,
}

/// Collects the lives of the objects of all places, whose stacks and sizes `of_stack` has. `last`: the
/// stamp of the last event.
pub fn collect(
    recording: &Recording,
    process: &Process,
    of_stack: &HashMap<(u32, u64), usize>,
    places: usize,
    last: u64,
) -> Vec<Life> {
    let life = || Life {
        in_one_thread: true,
        ..Life::default()
    };
    let mut lives: Vec<Life> = (0..places).map(|_| life()).collect();
    let mut live = AddressMap::<Object>::default();
    let mut allocated = vec![0; process.threads.len()];
    let mut moments = moments(process, last).peekable();
    each_step(recording, process, |step: Step| {
        while moments.next_if(|&at| at < step.event.stamp).is_some() {
            lives.iter_mut().for_each(Life::pass_moment);
        }
        let lane = step.lane;
        let given_up = step.event.action.gives_up();
        if let Some(object) = given_up.and_then(|address| live.remove(&address)) {
            lives[object.place].end(object.slot, lane, allocated[lane]);
        }
        let (address, size) = match step.event.action {
            Action::Allocate { object, size, .. } => (object, size),
            Action::Receive { new, size } => (new, size),
            _ => return,
        };
        allocated[lane] += 1;
        let Some(&place) = of_stack.get(&(step.stack, size)) else {
            return;
        };
        if let Some(lost) = live.remove(&address) {
            lives[lost.place].end(lost.slot, lane, allocated[lane]);
        }
        let slot = lives[place].begin(lane, allocated[lane]);
        live.insert(address, Object { place, slot });
    });
    for _ in moments {
        lives.iter_mut().for_each(Life::pass_moment);
    }
    lives
}
