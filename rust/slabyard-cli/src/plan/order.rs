//! The records of all threads of all processes, merged by their stamps.

use super::OpKind;
use crate::recording::{Operation, Process, Record, Recording, Records, Thread};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A record, or the beginning or the end of a realloc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allocate {
        kind: OpKind,
        object: u64,
        size: u64,
        align_log2: u8,
    },
    /// `touched`: the number of its bytes in RAM, if known.
    Free {
        object: u64,
        touched: Option<u64>,
    },
    /// The beginning of a realloc: from now on the old address may be given to other objects.
    GiveUp {
        old: u64,
        touched: Option<u64>,
    },
    /// The end of a realloc: the new address is live.
    Receive {
        new: u64,
        size: u64,
    },
    Failed,
}

impl Action {
    /// The address that is freed.
    pub fn gives_up(self) -> Option<u64> {
        match self {
            Action::Free { object, .. } | Action::GiveUp { old: object, .. } => Some(object),
            _ => None,
        }
    }

    /// The address that is allocated.
    pub fn receives(self) -> Option<u64> {
        match self {
            Action::Allocate { object, .. } | Action::Receive { new: object, .. } => Some(object),
            _ => None,
        }
    }
}

/// An action and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub stamp: u64,
    pub action: Action,
}

/// The actions of a record; a realloc has two. `touched`: the content of the record before.
fn events(record: Record, touched: Option<(u64, u64)>) -> (Event, Option<Event>) {
    let stamp = record.stamp;
    let allocate = |kind, object, size, align_log2| Action::Allocate {
        kind,
        object,
        size,
        align_log2,
    };
    let touched_of = |object| touched.and_then(|(of, bytes)| (of == object).then_some(bytes));
    let mut second = None;
    let action = match record.operation {
        Operation::Malloc { object, size } => allocate(OpKind::Malloc, object, size, 0),
        Operation::Calloc { object, size } => allocate(OpKind::Calloc, object, size, 0),
        Operation::Aligned {
            object,
            size,
            align_log2,
        } => allocate(OpKind::Aligned, object, size, align_log2),
        Operation::Free { object } => Action::Free {
            object,
            touched: touched_of(object),
        },
        Operation::Realloc {
            old,
            new,
            took,
            size,
        } => {
            let stamp = stamp.saturating_add(took);
            second = Some(Event {
                stamp,
                action: Action::Receive { new, size },
            });
            Action::GiveUp {
                old,
                touched: touched_of(old),
            }
        }
        Operation::Failed { .. } => Action::Failed,
        Operation::Touched { .. } => unreachable!("a note, not an event"),
    };
    (Event { stamp, action }, second)
}

/// Reads one thread's records, block after block.
pub struct Cursor<'a> {
    recording: &'a Recording,
    thread: &'a Thread,
    block: usize,
    records: Option<Records<'a>>,
    /// The object, and its bytes in RAM, from the preceding record of touched bytes.
    touched: Option<(u64, u64)>,
    second: Option<Event>,
    pub next: Option<Event>,
    /// The stack of the record that `next` is of; 0: it has none.
    pub stack: u32,
}

impl<'a> Cursor<'a> {
    pub fn new(recording: &'a Recording, thread: &'a Thread) -> Self {
        let mut cursor = Cursor {
            recording,
            thread,
            block: 0,
            records: None,
            touched: None,
            second: None,
            next: None,
            stack: 0,
        };
        cursor.advance();
        cursor
    }

    /// Moves on to the next event.
    #[inline]
    pub fn advance(&mut self) {
        if let Some(second) = self.second.take() {
            self.next = Some(second);
            return;
        }
        loop {
            if let Some(records) = &mut self.records {
                // Opening the recording has checked every record.
                if let Ok(Some(record)) = records.next() {
                    if let Operation::Touched { object, bytes } = record.operation {
                        self.touched = Some((object, bytes));
                        continue;
                    }
                    self.stack = records.stack();
                    let (first, second) = events(record, self.touched.take());
                    self.next = Some(first);
                    self.second = second;
                    return;
                }
            }
            let Some(block) = self.thread.blocks.get(self.block) else {
                self.next = None;
                return;
            };
            self.block += 1;
            self.records = Some(self.recording.records(block));
        }
    }
}

/// A queue of lanes, ordered by the stamp of each lane's next record.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Queue {
    pub fn push(&mut self, stamp: u64, lane: usize) {
        self.heap.push(Reverse((stamp, lane)));
    }

    pub fn pop(&mut self) -> Option<(u64, usize)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// The stamp up to which the lane that was just popped may run before it must be queued again.
    pub fn horizon(&self) -> u64 {
        self.heap
            .peek()
            .map_or(u64::MAX, |Reverse((stamp, _))| *stamp)
    }
}

/// An event with the index of its thread, and its stack.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub event: Event,
    pub lane: usize,
    pub stack: u32,
}

/// Calls `each` for all events of a process, in their order.
pub fn each_step(recording: &Recording, process: &Process, mut each: impl FnMut(Step)) {
    let mut queue = Queue::default();
    let threads = process.threads.iter();
    let mut cursors: Vec<_> = threads.map(|t| Cursor::new(recording, t)).collect();
    for (lane, cursor) in cursors.iter().enumerate() {
        if let Some(event) = cursor.next {
            queue.push(event.stamp, lane);
        }
    }
    while let Some((_, lane)) = queue.pop() {
        let horizon = queue.horizon();
        while let Some(event) = cursors[lane].next {
            if event.stamp > horizon {
                queue.push(event.stamp, lane);
                break;
            }
            let stack = cursors[lane].stack;
            each(Step { event, lane, stack });
            cursors[lane].advance();
        }
    }
}
