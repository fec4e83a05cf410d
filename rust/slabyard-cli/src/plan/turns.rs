//! The turns of a process's threads in a pass that keeps the recorded order.
//!
//! In the pass for memory, threads run one at a time, in turns, so that at each moment as many
//! objects are live as in the program. A change of threads takes some microseconds. So the order is
//! not exact to the operation: the merged operations are cut into *rounds*, in which each thread
//! has one turn.
//!
//! ```text
//! merged operations   a1 b1 a2 a3 b2 | b3 a4 b4 b5 |
//! turns               a: 3, b: 2     | b: 3, a: 1  |
//! ```
//!
//! A round has at most [`ROUND_OPS`] operations, which allocate and free [`ROUND_BYTES`] together
//! unless it is a single one. An operation that needs an object that another thread allocated in
//! the same round begins a new round; so no turn has to wait for a later one.

use super::stream::PlanFile;

pub const ROUND_OPS: u64 = 64;
pub const ROUND_BYTES: u64 = 64 << 10;

/// A thread executes its next `count` operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Turn {
    pub thread: u32,
    pub count: u32,
}

const TURN_BYTES: usize = size_of::<Turn>();
/// The number of turns that are written together: 32 KiB.
const STRETCH: usize = 4096;

/// The turns of a process, as they become known.
pub struct Turns {
    /// The place of the first turn in the file, and the number of turns written.
    first: u64,
    written: u64,
    waiting: Vec<Turn>,
    /// The turns of the current round, in the order of the threads' first operations.
    round: Vec<Turn>,
    /// The round's first operation in the order of all, and its operations and bytes.
    begins: u64,
    ops: u64,
    bytes: u64,
    /// Whether the newest turn may still grow.
    grows: bool,
}

impl Turns {
    /// Makes the turns whose first one is number `first` of the file.
    pub fn at(first: u64) -> Self {
        Turns {
            first,
            written: 0,
            waiting: Vec::new(),
            round: Vec::new(),
            begins: 0,
            ops: 0,
            bytes: 0,
            grows: false,
        }
    }

    /// Adds operation `x`, which allocates or frees `bytes`. `needs`: the operation of another
    /// thread that made the object that it takes.
    pub fn add(
        &mut self,
        x: u64,
        thread: u32,
        bytes: u64,
        needs: Option<u64>,
        file: &mut PlanFile,
    ) {
        let full = self.ops == ROUND_OPS || self.bytes + bytes > ROUND_BYTES;
        if self.ops > 0 && (full || needs.is_some_and(|made| made >= self.begins)) {
            self.end_round(file);
        }
        if self.ops == 0 {
            self.begins = x;
        }
        self.ops += 1;
        self.bytes += bytes;
        match self.round.iter_mut().find(|turn| turn.thread == thread) {
            Some(turn) => turn.count += 1,
            None => self.round.push(Turn { thread, count: 1 }),
        }
    }

    /// Ends the round. The thread that had the last turn has the first one of the next round if it
    /// can, so that fewer changes are needed.
    fn end_round(&mut self, file: &mut PlanFile) {
        let mut round = std::mem::take(&mut self.round);
        let last = self.waiting.last().filter(|_| self.grows).copied();
        if let Some(last) = last {
            if let Some(place) = round.iter().position(|turn| turn.thread == last.thread) {
                let turn = round.remove(place);
                match last.count.checked_add(turn.count) {
                    Some(count) => self.waiting.last_mut().expect("the last").count = count,
                    None => round.insert(0, turn),
                }
            }
        }
        self.grows = true;
        for turn in round.drain(..) {
            if self.waiting.len() == STRETCH {
                self.flush(file);
            }
            self.waiting.push(turn);
        }
        self.round = round;
        (self.ops, self.bytes) = (0, 0);
    }

    /// Ends the round, and returns the number of turns so far, which do not change any more.
    pub fn seal(&mut self, file: &mut PlanFile) -> u64 {
        self.end_round(file);
        self.grows = false;
        self.written + self.waiting.len() as u64
    }

    fn flush(&mut self, file: &mut PlanFile) {
        let mut bytes = Vec::with_capacity(self.waiting.len() * TURN_BYTES);
        for turn in &self.waiting {
            bytes.extend(turn.thread.to_ne_bytes());
            bytes.extend(turn.count.to_ne_bytes());
        }
        let place = (self.first + self.written) * TURN_BYTES as u64;
        file.write(&bytes, place);
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// Writes the rest, and returns the number of turns.
    pub fn finish(&mut self, file: &mut PlanFile) -> u64 {
        let count = self.seal(file);
        self.flush(file);
        count
    }
}
