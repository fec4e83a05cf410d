//! Chooses the slot of each object, and the generation.
//!
//! A thread first reuses the slots that it freed itself, which is safe because its operations are
//! in order. If it has more than [`OWN_LIMIT`] of them, the others go to all threads after
//! [`REUSE_DISTANCE`] operations. By then the window guarantees that the replay has freed them.

use super::REUSE_DISTANCE;
use std::collections::VecDeque;

/// The number of freed slots that a thread keeps for itself.
const OWN_LIMIT: usize = 256;

#[derive(Default)]
pub struct Slots {
    generations: Vec<u16>,
    own: Vec<Vec<u32>>,
    shared: VecDeque<(u32, u64)>,
}

impl Slots {
    pub fn new(threads: usize) -> Self {
        Slots {
            own: vec![Vec::new(); threads],
            ..Slots::default()
        }
    }

    /// The number of slots.
    pub fn count(&self) -> u32 {
        self.generations.len() as u32
    }

    /// A free slot for `thread` at `order`, and the generation of the object that goes there.
    pub fn take(&mut self, thread: usize, order: u64) -> (u32, u16) {
        let slot = self.own[thread].pop().or_else(|| self.take_shared(order));
        let slot = slot.unwrap_or_else(|| {
            self.generations.push(0);
            self.generations.len() as u32 - 1
        });
        let generation = &mut self.generations[slot as usize];
        *generation = generation.wrapping_add(1);
        (slot, *generation)
    }

    fn take_shared(&mut self, order: u64) -> Option<u32> {
        let &(slot, freed) = self.shared.front()?;
        if freed + REUSE_DISTANCE > order {
            return None;
        }
        self.shared.pop_front();
        Some(slot)
    }

    /// Takes back `slot`, whose object `thread` frees at `order`.
    pub fn give(&mut self, slot: u32, thread: usize, order: u64) {
        if self.own[thread].len() < OWN_LIMIT {
            self.own[thread].push(slot);
        } else {
            self.shared.push_back((slot, order));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_back_what_it_freed_last() {
        let mut slots = Slots::new(1);
        let (first, generation) = slots.take(0, 0);
        slots.give(first, 0, 1);
        assert_eq!(slots.take(0, 2), (first, generation + 1));
        assert_eq!(slots.count(), 1);
    }

    #[test]
    fn others_get_it_only_at_a_distance() {
        let mut slots = Slots::new(2);
        let taken: Vec<_> = (0..=OWN_LIMIT).map(|n| slots.take(0, n as u64).0).collect();
        for &slot in &taken {
            slots.give(slot, 1, 1000);
        }
        let before = slots.count();
        assert_eq!(slots.take(0, 1000 + REUSE_DISTANCE - 1).0, before);
        assert_eq!(slots.take(0, 1000 + REUSE_DISTANCE).0, taken[OWN_LIMIT]);
    }
}
