//! Runs the threads of one replayed process, and keeps them in step.
//!
//! Each thread publishes its position at its checkpoints, and passes no checkpoint that lies more
//! than the window beyond the slowest thread. The slowest thread never waits, because everything
//! that it needs was done by operations before its own; so the threads cannot deadlock. The time of
//! waiting is measured and subtracted.
//!
//! Thread 0 is the main thread of this process, which allocators treat specially. Another thread
//! begins when the others come near its first operation, and when the threads that ended before it
//! in the program have ended here. So there are never more threads at a time than in the program. A
//! thread ends with its last operation. The allocator's work at the beginning and end of a thread
//! is part of the measured time.
//!
//! A crew with a [`Baton`] runs its threads one at a time, in the recorded order: at each moment as
//! many objects are live as in the program. Then time says nothing, and memory everything.

use super::caches::Caches;
use super::clock;
use super::memory::{Resident, Shared};
use super::mode::Mode;
use super::thread::{Patience, Player};
use super::turns::Baton;
use crate::plan::{MappedPlan, Op, OpKind, ProcessPlan, Sample, ThreadPlan, WINDOW};
use anyhow::Result;
use slabyard_peers::{Allocator, ThreadGuard};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// The positions of all threads in their process's order. A thread that has ended is at u64::MAX.
pub struct Progress {
    places: Vec<Place>,
    /// The threads and their first operations, ascending.
    order: Vec<(usize, u64)>,
    /// The number of threads, from the first on, that have ended.
    ended: AtomicUsize,
    /// A lower bound of `places`.
    floor: AtomicU64,
}

/// The position of a thread, on a cache line of its own.
#[repr(align(128))]
struct Place(AtomicU64);

impl Progress {
    pub fn new(threads: &[ThreadPlan]) -> Self {
        let place = |thread: &ThreadPlan| {
            let never_runs = thread.ops.count == 0;
            Place(AtomicU64::new(if never_runs {
                u64::MAX
            } else {
                thread.begins
            }))
        };
        let begins = threads.iter().map(|thread| thread.begins);
        let mut order: Vec<_> = begins.enumerate().collect();
        order.sort_by_key(|&(_, begins)| begins);
        Progress {
            places: threads.iter().map(place).collect(),
            order,
            ended: AtomicUsize::new(0),
            floor: AtomicU64::new(0),
        }
    }

    /// Publishes a position. Release: a thread that reads it sees the effects of the operations
    /// before.
    fn say(&self, thread: usize, order: u64) {
        self.places[thread].0.store(order, Ordering::Release);
    }

    /// Notes that all operations before this one are done.
    fn all_before(&self, order: u64) {
        self.floor.fetch_max(order, Ordering::AcqRel);
    }

    fn is_near(&self, order: u64) -> bool {
        self.floor.load(Ordering::Acquire).saturating_add(WINDOW) >= order
    }

    /// Updates `floor`. It reads only threads that have begun and not ended, and the next one to
    /// begin, because no thread is before its first operation.
    fn look(&self) {
        let ended = self.ended.load(Ordering::Relaxed);
        let (mut least, mut gone) = (u64::MAX, ended);
        for (index, &(thread, begins)) in self.order.iter().enumerate().skip(ended) {
            if begins >= least {
                break;
            }
            let place = self.places[thread].0.load(Ordering::Acquire);
            least = least.min(place);
            if place == u64::MAX && gone == index {
                gone += 1;
            }
        }
        self.ended.fetch_max(gone, Ordering::Relaxed);
        self.floor.fetch_max(least, Ordering::AcqRel);
    }
}

/// Waits longer and longer, and measures the CPU time that the waiting took.
#[derive(Default)]
pub struct Waiting {
    tries: u32,
    since: u64,
    pub waited_ns: u64,
}

const SPINS: u32 = 64;
const YIELDS: u32 = 32;

impl Patience for Waiting {
    #[cold]
    fn wait(&mut self) {
        if self.tries == 0 {
            self.since = clock::thread_ns();
        }
        self.tries += 1;
        if self.tries < SPINS {
            std::hint::spin_loop();
        } else if self.tries < SPINS + YIELDS {
            std::thread::yield_now();
        } else {
            let doublings = ((self.tries - SPINS - YIELDS) / 16).min(5);
            std::thread::sleep(Duration::from_micros(50 << doublings));
        }
    }

    #[inline(always)]
    fn done(&mut self) {
        if self.tries > 0 {
            self.tries = 0;
            self.waited_ns += clock::thread_ns() - self.since;
        }
    }
}

/// The results of a thread.
pub struct Done<M> {
    pub mode: M,
    /// The CPU time that it spent waiting for other threads.
    pub waited_ns: u64,
    pub refused: u64,
    pub samples: Vec<(u64, u64)>,
}

/// Makes the mode of a thread from the thread's number.
pub trait Modes<M>: Sync {
    fn of(&self, thread: usize) -> Result<M>;
}

impl<M, F: Fn(usize) -> Result<M> + Sync> Modes<M> for F {
    fn of(&self, thread: usize) -> Result<M> {
        self(thread)
    }
}

/// The data that the threads of one process share.
pub struct Crew<'a> {
    pub plan: &'a MappedPlan,
    pub process: &'a ProcessPlan,
    pub allocator: &'a Allocator,
    /// The caches of the allocator that has them.
    pub caches: Option<Caches>,
    pub slots: &'a Shared<AtomicU64>,
    pub progress: Progress,
    /// If threads run one at a time.
    pub baton: Option<Baton<'a>>,
    /// Whether samples of memory are taken.
    pub sampling: bool,
}

impl Crew<'_> {
    /// Runs the whole process. Returns the results of all threads, and their CPU time without
    /// waiting.
    pub fn run<M: Mode + Send>(&self, modes: &impl Modes<M>) -> Result<(Vec<Done<M>>, i64)> {
        let start = clock::process_ns();
        let (results, waited_ns) = std::thread::scope(|scope| {
            let others =
                (self.process.threads.len() > 1).then(|| scope.spawn(|| self.run_others(modes)));
            let mut results = vec![self.run_thread(0, modes)];
            let mut waited_ns = 0;
            if let Some(others) = others {
                let (more, waited) = others.join().expect("replay threads do not panic");
                results.extend(more);
                waited_ns = waited;
            }
            (results, waited_ns)
        });
        let cpu_ns = clock::process_ns() - start;
        let done: Vec<Done<M>> = results.into_iter().collect::<Result<_>>()?;
        let waited_ns = waited_ns + done.iter().map(|done| done.waited_ns).sum::<u64>();
        Ok((done, cpu_ns as i64 - waited_ns as i64))
    }

    /// Allocates the objects that the process got from its parent when it was forked.
    pub fn inherit<M: Mode>(&self, mode: impl FnOnce(usize) -> Result<M>) -> Result<()> {
        if self.process.inherited.is_empty() {
            return Ok(());
        }
        let mut player = self.player::<M, false>(mode(0)?);
        let _guard = ThreadGuard::new(self.allocator);
        for object in &self.process.inherited {
            let op = Op::new(OpKind::Malloc, object.size, 0, 0, object.slot, 0);
            // SAFETY: the slots are the plan's; each is filled once before its first use.
            unsafe { player.play(&[op]) };
        }
        Ok(())
    }

    /// Lets the allocator give its free memory back.
    pub fn purge(&self) {
        let _guard = ThreadGuard::new(self.allocator);
        if let Some(purge) = self.allocator.purge {
            // SAFETY: any thread may call it at any time.
            unsafe { purge() };
        }
    }

    fn player<M: Mode, const CACHED: bool>(&self, mode: M) -> Player<'_, M, Waiting, CACHED> {
        Player {
            caches: self.caches.as_ref(),
            allocator: std::hint::black_box(*self.allocator),
            slots: self.slots.as_slice(),
            mode,
            patience: Waiting::default(),
            refused: 0,
        }
    }

    /// Starts each thread when its time comes, and waits for all. Returns their results, and the
    /// CPU time that this waiting took.
    fn run_others<M: Mode + Send>(&self, modes: &impl Modes<M>) -> (Vec<Result<Done<M>>>, u64) {
        let threads = &self.process.threads;
        let mut by_begin: Vec<usize> = (1..threads.len())
            .filter(|&thread| threads[thread].ops.count > 0)
            .collect();
        let mut by_end = by_begin.clone();
        by_begin.sort_by_key(|&thread| threads[thread].begins);
        by_end.sort_by_key(|&thread| threads[thread].ends);
        let mut patience = Waiting::default();
        let done = std::thread::scope(|scope| {
            let mut running: Vec<Option<ScopedJoinHandle<'_, _>>> =
                threads.iter().map(|_| None).collect();
            let mut results = Vec::new();
            let mut join = |handle: &mut Option<ScopedJoinHandle<'_, _>>| {
                let handle = handle.take().expect("it begins before it ends");
                results.push(handle.join().expect("replay threads do not panic"));
            };
            let mut next_end = by_end.iter().peekable();
            for thread in by_begin {
                let begins = threads[thread].begins;
                while let Some(&gone) = next_end.next_if(|&&other| threads[other].ends < begins) {
                    join(&mut running[gone]);
                }
                self.come_near(begins, &mut patience);
                running[thread] = Some(scope.spawn(move || self.run_thread(thread, modes)));
            }
            next_end.for_each(|&thread| join(&mut running[thread]));
            results
        });
        (done, patience.waited_ns)
    }

    fn run_thread<M: Mode>(&self, number: usize, modes: &impl Modes<M>) -> Result<Done<M>> {
        if self.caches.is_some() {
            self.run_player::<M, true>(number, modes)
        } else {
            self.run_player::<M, false>(number, modes)
        }
    }

    fn run_player<M: Mode, const CACHED: bool>(
        &self,
        number: usize,
        modes: &impl Modes<M>,
    ) -> Result<Done<M>> {
        let thread = &self.process.threads[number];
        let mut sampler = self.sampling.then(Resident::open).transpose()?;
        let mut player = self.player::<M, CACHED>(modes.of(number)?);
        let mut samples = Vec::new();
        let guard = ThreadGuard::new(self.allocator);
        self.run_stretches(number, thread, &mut player, |sample| {
            if let Some(resident) = &mut sampler {
                samples.push((sample.x, resident.bytes()));
            }
        });
        drop(guard);
        self.progress.say(number, u64::MAX);
        Ok(Done {
            mode: player.mode,
            waited_ns: player.patience.waited_ns,
            refused: player.refused,
            samples,
        })
    }

    /// Executes the operations from one checkpoint or sample to the next.
    fn run_stretches<M: Mode, const CACHED: bool>(
        &self,
        number: usize,
        thread: &ThreadPlan,
        player: &mut Player<M, Waiting, CACHED>,
        mut sample: impl FnMut(&Sample),
    ) {
        let ops = self.plan.ops(thread);
        let mut turn_ends = 0;
        // In turns, no thread can be ahead of another.
        let checkpoints = match self.baton {
            Some(_) => &[],
            None => self.plan.checkpoints(thread),
        };
        let mut checkpoints = checkpoints.iter().peekable();
        let wanted = if self.sampling {
            &thread.samples[..]
        } else {
            &[]
        };
        let mut samples = wanted.iter().peekable();
        let mut at = 0;
        while at < ops.len() {
            if let Some(baton) = self.baton.as_ref().filter(|_| turn_ends == at) {
                turn_ends += baton
                    .wait(number)
                    .map_or(ops.len() - at, |count| count as usize);
            }
            if let Some(checkpoint) = checkpoints.next_if(|next| next.at == at as u64) {
                self.pass(number, checkpoint.order, &mut player.patience);
            }
            while let Some(next) = samples.next_if(|next| next.at <= at as u64) {
                sample(next);
            }
            let next_checkpoint = checkpoints.peek().map_or(u64::MAX, |next| next.at);
            let next_sample = samples.peek().map_or(u64::MAX, |next| next.at);
            let mut until = (next_checkpoint.min(next_sample) as usize).min(ops.len());
            if self.baton.is_some() {
                until = until.min(turn_ends);
            }
            // SAFETY: the operations are the plan's, in its order, and the crew made enough slots.
            unsafe { player.play(&ops[at..until]) };
            at = until;
            if let Some(baton) = self.baton.as_ref().filter(|_| turn_ends == at) {
                self.progress.all_before(baton.pass());
            }
        }
        samples.for_each(sample);
    }

    /// Publishes the position of this thread, and waits until the other threads are near.
    fn pass(&self, thread: usize, order: u64, patience: &mut Waiting) {
        self.progress.say(thread, order);
        self.come_near(order, patience);
    }

    fn come_near(&self, order: u64, patience: &mut Waiting) {
        if self.progress.is_near(order) {
            return;
        }
        loop {
            self.progress.look();
            if self.progress.is_near(order) {
                break;
            }
            patience.wait();
        }
        patience.done();
    }
}
