//! A map of streets as a graph: crossings are named by keys, and streets are lists of keys.
//!
//! To close a crossing, the program removes it and does nothing else. The streets that lead there
//! then hold a stale key, which is refused, even when another crossing was opened in the same
//! place. A search keeps its notes about crossings in a secondary map, so it only reads the graph.
//!
//! The distances are compared with those on a plain grid.

use slabyard::{new_key_type, LocalHandleMap, SecondaryMap};
use std::collections::VecDeque;

new_key_type! {
    /// Names a crossing.
    pub struct Crossing;
}

struct Place {
    at: usize,
    streets: Vec<Crossing>,
}

type Streets = LocalHandleMap<Place, Crossing>;

/// How many streets each crossing is away from the first.
fn distances(streets: &Streets, from: Crossing) -> SecondaryMap<Crossing, u32> {
    let mut far = SecondaryMap::new();
    let mut next = VecDeque::from([(from, 0)]);
    while let Some((crossing, distance)) = next.pop_front() {
        let Some(place) = streets.get(crossing) else {
            continue; // it is closed
        };
        if !far.contains(crossing) {
            far.insert(crossing, distance);
            next.extend(place.streets.iter().map(|it| (*it, distance + 1)));
        }
    }
    far
}

/// The crossings next to a crossing of a square grid.
fn beside(at: usize, side: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (at % side, at / side);
    let all = [
        (x > 0).then(|| at - 1),
        (x + 1 < side).then(|| at + 1),
        (y > 0).then(|| at - side),
        (y + 1 < side).then(|| at + side),
    ];
    all.into_iter().flatten()
}

/// The same distances, without keys.
fn grid_distances(open: &[bool], side: usize, from: usize) -> Vec<Option<u32>> {
    let mut far = vec![None; open.len()];
    let mut next = VecDeque::from([(from, 0)]);
    while let Some((at, distance)) = next.pop_front() {
        if open[at] && far[at].is_none() {
            far[at] = Some(distance);
            next.extend(beside(at, side).map(|it| (it, distance + 1)));
        }
    }
    far
}

fn check(streets: &Streets, crossings: &[Crossing], open: &[bool], side: usize) -> usize {
    let far = distances(streets, crossings[0]);
    let expected = grid_distances(open, side, 0);
    for (at, crossing) in crossings.iter().enumerate() {
        assert_eq!(far.get(*crossing).copied(), expected[at]);
    }
    far.len()
}

pub fn main() {
    let side = if cfg!(miri) { 6 } else { 200 };
    let size = side * side;

    let mut streets = Streets::with_capacity_and_key(size);
    let new = |at| Place {
        at,
        streets: Vec::new(),
    };
    let mut crossings: Vec<Crossing> = (0..size).map(|at| streets.insert(new(at))).collect();
    for at in 0..size {
        let to = beside(at, side).map(|it| crossings[it]).collect();
        streets[crossings[at]].streets = to;
    }
    let mut open = vec![true; size];
    assert_eq!(check(&streets, &crossings, &open, side), size);

    // A third of the crossings is closed. Their keys stay in the lists of neighbours.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut closed = Vec::new();
    for at in 1..size {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        if (state >> 33) % 3 == 0 {
            let place = streets.remove(crossings[at]).expect("it was open");
            assert_eq!(place.at, at);
            open[at] = false;
            closed.push((at, crossings[at]));
        }
    }
    let reached = check(&streets, &crossings, &open, side);

    // Other crossings are opened in their memory; no old street leads there.
    let islands: Vec<Crossing> = closed
        .iter()
        .map(|(at, _)| streets.insert(new(*at)))
        .collect();
    assert_eq!(streets.len(), size);
    assert_eq!(check(&streets, &crossings, &open, side), reached);
    assert!(closed.iter().all(|(_, it)| streets.get(*it).is_none()));
    assert!(closed.iter().all(|(_, it)| streets.remove(*it).is_none()));

    // Now streets are built to them: the closed crossings come back with new keys.
    for ((at, _), new) in closed.iter().zip(islands) {
        crossings[*at] = new;
        open[*at] = true;
    }
    for at in 0..size {
        let to = beside(at, side).map(|it| crossings[it]).collect();
        streets[crossings[at]].streets = to;
    }
    assert_eq!(check(&streets, &crossings, &open, side), size);
    println!(
        "{size} crossings: {} were closed, {reached} could be reached then, and all again later",
        closed.len()
    );
}
