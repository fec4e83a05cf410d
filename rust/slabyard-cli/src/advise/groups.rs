//! The objects of a place that a program could allocate in one epoch: those of a phase, or those that
//! are freed together.
//!
//! A recording does not say which objects belong to one request or frame. But it says when the number
//! of objects rose and fell again (phases, of one thread each), and which objects were freed without
//! another allocation between. [`super::trial`] finds out by execution whether epochs for these save
//! memory.

use super::lives::{Change, Life};
use std::collections::HashMap;

/// The group of objects that are in no group.
pub const NONE: u32 = u32::MAX;

/// Smaller phases and groups fill no slab.
const OBJECTS_LEAST: usize = 64;

/// A phase ends when so many parts of its objects are freed, and begins when as many have come again.
const PART: i64 = 4;

/// How a program would choose an object's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All objects of a phase.
    Phase,
    /// Those that do not outlive their phase.
    PhaseAlone,
    /// Those that are freed one after the other.
    Together,
}

/// A way to group the objects of a place.
#[derive(Clone, Debug)]
pub struct Groups {
    pub way: Way,
    /// The group of each object, in the order of their beginnings.
    pub of: Vec<u32>,
    pub count: usize,
    /// The share of the objects that outlive their phase, or that are freed with few others.
    pub apart: f64,
}

/// All ways that the life of a place's objects allows.
pub fn of(life: &Life) -> Vec<Groups> {
    let ends = ends(&life.changes);
    let mut ways = phases(&life.changes, &ends);
    ways.extend(together(&life.changes, &ends));
    ways
}

/// The number of an object, in the order of the beginnings, and the change that ends it.
struct Ends {
    /// For each change, the number of the object.
    object: Vec<u32>,
    /// For each object, the index of the change; `usize::MAX`: it is not freed.
    at: Vec<usize>,
}

fn ends(changes: &[Change]) -> Ends {
    let slots = changes.iter().map(|one| one.slot as usize + 1).max();
    let mut in_slot = vec![0; slots.unwrap_or(0)];
    let (mut object, mut at) = (Vec::with_capacity(changes.len()), Vec::new());
    for (index, change) in changes.iter().enumerate() {
        let number = &mut in_slot[change.slot as usize];
        if change.begins {
            *number = at.len() as u32;
            at.push(usize::MAX);
        } else {
            at[*number as usize] = index;
        }
        object.push(*number);
    }
    Ends { object, at }
}

/// The objects that one thread has allocated: how their number rises and falls.
#[derive(Default)]
struct Tide {
    live: i64,
    /// When the number last began to rise, and the most since.
    base: i64,
    high: i64,
    /// While it falls: the least, and the change that led to it.
    low: Option<(i64, usize)>,
    /// The changes with which phases end.
    cuts: Vec<usize>,
}

impl Tide {
    fn step(&mut self, index: usize, begins: bool) {
        self.live += if begins { 1 } else { -1 };
        let height = self.high - self.base;
        match self.low {
            None if begins => self.high = self.high.max(self.live),
            None => {
                let fell = self.live - self.base <= height / PART;
                if fell && height >= OBJECTS_LEAST as i64 {
                    self.low = Some((self.live, index));
                }
            }
            Some((least, _)) if self.live <= least => self.low = Some((self.live, index)),
            Some((least, at)) => {
                let enough = (height / PART).max(OBJECTS_LEAST as i64);
                if self.live - least >= enough {
                    self.cuts.push(at);
                    (self.base, self.high, self.low) = (least, self.live, None);
                }
            }
        }
    }
}

/// For each thread, its phases. An object belongs to the thread that allocated it, whichever frees it.
fn tides(changes: &[Change], ends: &Ends) -> Vec<Tide> {
    let lanes = changes.iter().map(|one| one.lane as usize + 1).max();
    let mut tides: Vec<Tide> = Vec::new();
    tides.resize_with(lanes.unwrap_or(0), Tide::default);
    let mut lane_of = vec![0; ends.at.len()];
    for (index, change) in changes.iter().enumerate() {
        let lane = &mut lane_of[ends.object[index] as usize];
        if change.begins {
            *lane = change.lane as usize;
        }
        tides[*lane].step(index, change.begins);
    }
    tides
}

/// Fewer than three phases are no pattern.
fn phases(changes: &[Change], ends: &Ends) -> Vec<Groups> {
    let tides = tides(changes, ends);
    let cuts: usize = tides.iter().map(|tide| tide.cuts.len()).sum();
    if cuts < 2 {
        return Vec::new();
    }
    let mut firsts = Vec::new();
    let mut count = 0;
    for tide in &tides {
        firsts.push(count);
        count += tide.cuts.len() + 1;
    }
    let mut passed = vec![0; tides.len()];
    let (mut all, mut alone) = (Vec::new(), Vec::new());
    for (index, change) in changes.iter().enumerate().filter(|(_, one)| one.begins) {
        let lane = change.lane as usize;
        let cuts = &tides[lane].cuts;
        while cuts.get(passed[lane]).is_some_and(|&cut| cut < index) {
            passed[lane] += 1;
        }
        let group = (firsts[lane] + passed[lane]) as u32;
        // What the last phase leaves may be freed in it: the recording has ended.
        let end = cuts.get(passed[lane]).copied().unwrap_or(usize::MAX);
        let outlives = ends.at[all.len()] > end;
        all.push(group);
        alone.push(if outlives { NONE } else { group });
    }
    let apart = share_of_none(&alone);
    let groups = |way, of| Groups {
        way,
        of,
        count,
        apart,
    };
    let mut ways = vec![groups(Way::Phase, all)];
    if apart > 0.0 {
        ways.push(groups(Way::PhaseAlone, alone));
    }
    ways
}

/// Objects that a thread frees without allocating anything between.
fn together(changes: &[Change], ends: &Ends) -> Option<Groups> {
    let mut runs: HashMap<u32, (u64, Vec<u32>)> = HashMap::new();
    let mut of = vec![NONE; ends.at.len()];
    let mut count = 0;
    let mut close = |run: &mut Vec<u32>| {
        if run.len() >= OBJECTS_LEAST {
            run.iter().for_each(|&object| of[object as usize] = count);
            count += 1;
        }
        run.clear();
    };
    let frees = changes.iter().zip(&ends.object);
    for (change, &object) in frees.filter(|(change, _)| !change.begins) {
        let (allocated, run) = runs.entry(change.lane).or_default();
        if *allocated != change.allocated {
            close(run);
            *allocated = change.allocated;
        }
        run.push(object);
    }
    runs.values_mut().for_each(|(_, run)| close(run));
    let apart = share_of_none(&of);
    (count >= 3).then_some(Groups {
        way: Way::Together,
        of,
        count: count as usize,
        apart,
    })
}

fn share_of_none(of: &[u32]) -> f64 {
    let none = of.iter().filter(|&&group| group == NONE).count();
    none as f64 / of.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects by their numbers: a positive one begins, a negative one ends.
    fn decoded(changes: &[(u32, i32)]) -> Vec<Change> {
        let mut allocated = [0; 2];
        let change = |&(lane, object): &(u32, i32)| {
            let allocated = &mut allocated[lane as usize];
            *allocated += u64::from(object > 0);
            Change {
                slot: object.unsigned_abs(),
                lane,
                allocated: *allocated,
                begins: object > 0,
            }
        };
        changes.iter().map(change).collect()
    }

    fn begin(lane: u32, objects: std::ops::Range<i32>) -> Vec<(u32, i32)> {
        objects.map(|object| (lane, object)).collect()
    }

    fn end(lane: u32, objects: std::ops::Range<i32>) -> Vec<(u32, i32)> {
        objects.map(|object| (lane, -object)).collect()
    }

    fn of_changes(changes: &[(u32, i32)]) -> Vec<Groups> {
        let mut life = Life::default();
        life.changes = decoded(changes);
        of(&life)
    }

    #[test]
    fn phases_end_where_most_objects_are_freed_and_the_rest_is_told_apart() {
        let mut changes = Vec::new();
        for phase in 0..4 {
            let first = 1 + 1000 * phase;
            changes.extend(begin(0, first..first + 1000));
            changes.extend(end(0, first + 10..first + 1000));
        }
        let ways = of_changes(&changes);
        let kinds: Vec<_> = ways.iter().map(|one| (one.way, one.count)).collect();
        let wanted = [(Way::Phase, 4), (Way::PhaseAlone, 4), (Way::Together, 4)];
        assert_eq!(kinds, wanted);
        let of = |way: usize, object: usize| ways[way].of[object];
        assert_eq!((of(0, 0), of(0, 999), of(0, 1000)), (0, 0, 1));
        // The last phase has no end, so nothing outlives it.
        assert_eq!((of(1, 0), of(1, 10), of(1, 3000)), (NONE, 0, 3));
        assert!((ways[1].apart - 0.0075).abs() < 1e-9, "{}", ways[1].apart);
        assert_eq!((of(2, 3000), of(2, 3010)), (NONE, 3));
    }

    #[test]
    fn each_thread_has_its_phases_though_another_one_frees() {
        let mut changes = Vec::new();
        for phase in 0..3 {
            let first = 1 + 1000 * phase;
            changes.extend(begin(0, first..first + 500));
            changes.extend(begin(1, first + 500..first + 1000));
            changes.extend(end(1, first..first + 500));
            // Thread 0 is in its next phase by then.
            changes.extend(begin(0, 5000 + first..5000 + first + 300));
            changes.extend(end(1, first + 500..first + 1000));
            changes.extend(end(1, 5000 + first..5000 + first + 300));
        }
        let ways = of_changes(&changes);
        assert_eq!((ways[0].way, ways[0].count), (Way::Phase, 9));
        assert_eq!(ways[0].apart, 0.0);
    }

    #[test]
    fn objects_of_interleaved_connections_are_freed_together() {
        let mut changes = Vec::new();
        for round in 0..100 {
            for connection in 0..5 {
                changes.push((0, 1 + connection * 100 + round));
            }
        }
        for connection in 0..5 {
            changes.extend(end(0, 1 + connection * 100..1 + connection * 100 + 100));
            changes.push((0, 1000 + connection));
        }
        let ways = of_changes(&changes);
        assert_eq!(ways.len(), 1);
        assert_eq!((ways[0].way, ways[0].count), (Way::Together, 5));
        assert_eq!(ways[0].of[..6], [0, 1, 2, 3, 4, 0]);
    }

    #[test]
    fn a_steady_number_of_objects_and_few_objects_have_no_groups() {
        let mut steady = begin(0, 1..1001);
        for object in 1..1001 {
            steady.extend([(0, -object), (0, 1000 + object)]);
        }
        assert!(of_changes(&steady).is_empty());
        let few = (0..50).flat_map(|_| [begin(0, 1..20), end(0, 1..20)].concat());
        assert!(of_changes(&few.collect::<Vec<_>>()).is_empty());
        assert!(of_changes(&[]).is_empty());
    }
}
