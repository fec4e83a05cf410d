//! The first part of a recording, for a replay that has no time for all of it.
//!
//! A part ends before some operation of the merged order, so everything that its operations need is
//! in it. Each thread's stream is cut there; the files of the plan stay as they are.

use super::{Extent, MappedPlan, Plan, ProcessPlan, ThreadPlan};

/// Each part is smaller than the next one by this factor, and there are so many that the smallest
/// one is a ten-thousandth of the recording.
const SMALLER: f64 = 0.75;
const PARTS: i32 = 32;

/// The ends of the parts of a recording of so many operations, ascending, without the end of all.
pub fn ends_of(operations: u64) -> Vec<u64> {
    let end = |part| (operations as f64 * SMALLER.powi(part)) as u64;
    let mut ends: Vec<u64> = (1..=PARTS).rev().map(end).filter(|&end| end > 0).collect();
    ends.dedup();
    ends
}

impl Plan {
    /// The largest part with at most so many operations; the smallest if all have more. `None`: all
    /// of the recording, or it has no parts.
    pub fn part_of(&self, operations: u64) -> Option<usize> {
        if operations >= self.replayed || self.parts.is_empty() {
            return None;
        }
        let fitting = self.parts.partition_point(|&end| end <= operations);
        Some(fitting.saturating_sub(1))
    }
}

impl MappedPlan {
    /// The plan of one of [`Plan::parts`].
    pub fn part(&self, part: usize) -> Plan {
        let mut plan = self.plan.clone();
        plan.replayed = plan.parts[part];
        plan.parts.truncate(part);
        for process in &mut plan.processes {
            self.cut(process, part, plan.replayed);
        }
        plan
    }

    fn cut(&self, process: &mut ProcessPlan, part: usize, end: u64) {
        let mark = process.marks[part];
        process.marks.truncate(part);
        process.operations = mark.operations;
        process.turns.count = mark.turns;
        process.last_x = process.last_x.min(end.saturating_sub(1));
        if mark.operations == 0 {
            process.threads.clear();
            process.inherited.clear();
            return;
        }
        let alone = process.threads.len() == 1;
        for thread in &mut process.threads {
            let (ops, checkpoints) = match alone {
                true => (mark.operations, 0),
                false => self.operations_before(thread, mark.operations),
            };
            thread.ops.count = ops;
            thread.checkpoints.count = checkpoints;
            thread.ends = thread.ends.min(mark.operations - 1);
            thread.samples.retain(|sample| sample.x < end);
        }
    }

    /// The thread's operations, and its checkpoints, before operation `order` of its process. A
    /// mark is there, so the thread's first operation behind it has a checkpoint.
    fn operations_before(&self, thread: &ThreadPlan, order: u64) -> (u64, u64) {
        let Extent { count: all, .. } = thread.ops;
        let checkpoints = self.checkpoints(thread);
        let before = checkpoints.partition_point(|checkpoint| checkpoint.order < order);
        let ops = checkpoints.get(before).map_or(all, |next| next.at);
        (ops, before as u64)
    }
}
