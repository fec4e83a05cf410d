//! A task scheduler: some threads submit tasks, others run them, each from a work queue of its own. A
//! task goes from worker to worker, stage by stage, so the thread that drops it is not the thread that
//! created it.
//!
//! The tasks are boxes of a `Cache`. A queue moves the box, not the task. Any thread allocates and any
//! thread drops, without a lock and without a call in the usual case. With the argument `malloc` the
//! tasks are boxes of the global allocator, for comparison.
//!
//! The program checks its results: each task is run once, and the sum of their results is compared
//! with that of a loop.

use slabyard::{Cache, CacheBox};
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

const STAGES: u32 = 3;
const UNFINISHED_MAX: usize = 20_000; // submitting threads wait beyond this

/// A task and its data: 208 bytes.
struct Task {
    id: u64,
    stage: u32,
    state: [u64; 24],
}

impl Task {
    fn new(id: u64) -> Self {
        let (stage, state) = (0, [id; 24]);
        Task { id, stage, state }
    }

    /// The work of one stage.
    fn step(&mut self) {
        for (i, word) in self.state.iter_mut().enumerate() {
            *word = word.rotate_left(self.stage + 7) ^ (self.id + i as u64);
        }
        self.stage += 1;
    }

    fn result(&self) -> u64 {
        self.state
            .iter()
            .fold(0, |sum, &word| sum.wrapping_add(word))
    }
}

/// Where tasks come from: a cache, or the global allocator.
trait Home: Sync {
    type Owned<'h>: DerefMut<Target = Task> + Send
    where
        Self: 'h;
    fn own(&self, task: Task) -> Self::Owned<'_>;
}

impl Home for Cache<Task> {
    type Owned<'h> = CacheBox<'h, Task>;
    fn own(&self, task: Task) -> CacheBox<'_, Task> {
        self.insert(task)
    }
}

struct Malloc;

impl Home for Malloc {
    type Owned<'h> = Box<Task>;
    fn own(&self, task: Task) -> Box<Task> {
        Box::new(task)
    }
}

struct Scheduler<'h, H: Home + 'h> {
    home: &'h H,
    queues: Vec<Mutex<Vec<H::Owned<'h>>>>, // one for each worker
    unfinished: AtomicUsize,
    closed: AtomicBool, // no task will be submitted any more
    finished: AtomicUsize,
    sum: AtomicU64,
}

impl<'h, H: Home> Scheduler<'h, H> {
    fn new(home: &'h H, workers: usize) -> Self {
        Scheduler {
            home,
            queues: (0..workers).map(|_| Mutex::default()).collect(),
            unfinished: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            finished: AtomicUsize::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Submits a task to a worker; waits while there are too many unfinished ones.
    fn submit(&self, worker: usize, task: Task) {
        while self.unfinished.load(Ordering::Relaxed) >= UNFINISHED_MAX {
            thread::yield_now();
        }
        self.unfinished.fetch_add(1, Ordering::Relaxed);
        self.push(worker, self.home.own(task));
    }

    fn push(&self, worker: usize, task: H::Owned<'h>) {
        let queue = &self.queues[worker % self.queues.len()];
        queue.lock().unwrap().push(task);
    }

    /// Moves all tasks of the worker's queue to `batch`, or else those of another queue.
    fn take(&self, worker: usize, batch: &mut Vec<H::Owned<'h>>) {
        for i in 0..self.queues.len() {
            let queue = &self.queues[(worker + i) % self.queues.len()];
            std::mem::swap(batch, &mut *queue.lock().unwrap());
            if !batch.is_empty() {
                return;
            }
        }
    }

    /// Runs tasks until all are finished and no more are submitted.
    fn work(&self, worker: usize) {
        let mut batch = Vec::new();
        loop {
            self.take(worker, &mut batch);
            if batch.is_empty() {
                if self.closed.load(Ordering::Acquire)
                    && self.unfinished.load(Ordering::Acquire) == 0
                {
                    return;
                }
                thread::yield_now();
            }
            for mut task in batch.drain(..) {
                task.step();
                if task.stage < STAGES {
                    self.push(worker + 1, task); // the box moves, not the task
                } else {
                    self.sum.fetch_add(task.result(), Ordering::Relaxed);
                    drop(task); // back to the cache, from another thread than it came from
                    self.finished.fetch_add(1, Ordering::Relaxed);
                    self.unfinished.fetch_sub(1, Ordering::Release);
                }
            }
        }
    }
}

fn run(home: &impl Home, submitters: u64, workers: usize, tasks: u64) {
    let scheduler = &Scheduler::new(home, workers);
    thread::scope(|scope| {
        let submitting = (0..submitters).map(|first| {
            scope.spawn(move || {
                for id in (first..tasks).step_by(submitters as usize) {
                    scheduler.submit(id as usize, Task::new(id));
                }
            })
        });
        let submitting: Vec<_> = submitting.collect();
        for worker in 0..workers {
            scope.spawn(move || scheduler.work(worker));
        }
        submitting
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        scheduler.closed.store(true, Ordering::Release);
    });

    let expected = (0..tasks).fold(0u64, |sum, id| {
        let mut task = Task::new(id);
        (0..STAGES).for_each(|_| task.step());
        sum.wrapping_add(task.result())
    });
    assert_eq!(scheduler.finished.load(Ordering::Relaxed) as u64, tasks);
    assert_eq!(scheduler.sum.load(Ordering::Relaxed), expected);
    println!("{tasks} tasks of {STAGES} stages, submitted by {submitters} threads, run by {workers} workers");
}

pub fn main() {
    let tasks = if cfg!(miri) { 20 } else { 1_000_000 };
    if std::env::args().nth(1).as_deref() == Some("malloc") {
        return run(&Malloc, 2, 2, tasks);
    }
    let cache = Cache::new("task");
    run(&cache, 2, 2, tasks);
    assert_eq!(cache.in_use(), 0);
}
