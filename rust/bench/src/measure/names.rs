//! Objects by their names: handles, keys, and, in the same loops, pointers.

use super::{pointers, Bench, Random};
use crate::rows::Named;

/// Live objects that are pinned in turn.
const PINNED: usize = 1_000;

impl Bench<'_> {
    pub(super) fn named(&mut self, named: Named) {
        match named {
            Named::Pair => self.pair(),
            Named::Get { live } => self.visit(live, false),
            Named::Pin => self.visit(PINNED, true),
            Named::Steady => self.steady(),
            Named::Churn { threads } => self.churn(threads),
        }
    }

    /// Looks up each of `live` objects in random order, again and again.
    fn visit(&mut self, live: usize, pinned: bool) {
        let live = (live / self.effort.fewer_objects).max(2);
        let state = self.open(live);
        let mut names = pointers(live);
        self.settled(&state, &mut names);
        Random(self.seed).shuffle(&mut names);
        let places = names.as_mut_ptr();
        let least = (20_000 / live as u64).max(1);
        self.sample_loops(least, live as f64, |kernels, rounds| {
            let visit = if pinned {
                kernels.pin.expect("a suitable allocator")
            } else {
                kernels.get
            };
            // SAFETY: the state is of this table, and all `live` objects are live.
            unsafe { visit(state.pointer(), places, live, rounds) };
        });
        self.drain(&state, &mut names);
    }
}
