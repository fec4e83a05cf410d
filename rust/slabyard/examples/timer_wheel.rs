//! A timer wheel: several threads set timers, and one thread drives the wheel.
//!
//! Timers are nodes of lists, in boxes of a cache. The thread that sets a timer allocates it; the
//! thread that drives the wheel drops it: boxes may be dropped on any thread. Lists do not
//! allocate, and no lock is held while a timer goes off.

use slabyard::{Cache, CacheBox};
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::Mutex;
use std::thread;

/// Ticks of one turn of the wheel.
const SLOTS: usize = 64;

struct Timer<'c> {
    /// When it goes off.
    tick: u64,
    id: usize,
    next: List<'c>,
}

type List<'c> = Option<CacheBox<'c, Timer<'c>>>;

/// Takes the first timer of a list.
fn pop<'c>(list: &mut List<'c>) -> List<'c> {
    let mut first = list.take()?;
    *list = first.next.take();
    Some(first)
}

fn push<'c>(list: &mut List<'c>, mut timer: CacheBox<'c, Timer<'c>>) {
    timer.next = list.take();
    *list = Some(timer);
}

/// The timers of the ticks that are equal modulo `SLOTS`.
#[derive(Default)]
struct Slot<'c> {
    /// The last of these ticks that is over.
    over: u64,
    timers: List<'c>,
}

struct Wheel<'c> {
    slots: [Mutex<Slot<'c>>; SLOTS],
    now: AtomicU64,
}

impl<'c> Wheel<'c> {
    fn new() -> Self {
        Wheel {
            slots: std::array::from_fn(|_| Mutex::default()),
            now: AtomicU64::new(0),
        }
    }

    fn slot(&self, tick: u64) -> &Mutex<Slot<'c>> {
        &self.slots[tick as usize % SLOTS]
    }

    /// Sets a timer. If its tick is over, the timer is returned.
    fn set(&self, timer: CacheBox<'c, Timer<'c>>) -> Result<(), CacheBox<'c, Timer<'c>>> {
        let mut slot = self.slot(timer.tick).lock().unwrap();
        if timer.tick <= slot.over {
            return Err(timer);
        }
        push(&mut slot.timers, timer);
        Ok(())
    }

    /// The next tick, and the timers that go off with it.
    fn advance(&self) -> (u64, List<'c>) {
        let tick = self.now.load(Ordering::Relaxed) + 1;
        let (mut due, mut later) = (None, None);
        let mut slot = self.slot(tick).lock().unwrap();
        while let Some(timer) = pop(&mut slot.timers) {
            let list = if timer.tick == tick {
                &mut due
            } else {
                &mut later
            };
            push(list, timer);
        }
        slot.timers = later;
        slot.over = tick;
        self.now.store(tick, Ordering::Relaxed);
        (tick, due)
    }
}

pub fn main() {
    const SETTERS: usize = 3;
    let each = if cfg!(miri) { 20 } else { 50_000 };
    let all = SETTERS * each;

    let timers = Cache::new("timer");
    let wheel = Wheel::new();
    let fired: Vec<AtomicU8> = (0..all).map(|_| AtomicU8::new(0)).collect();
    let (mut ticks, mut together) = (0, 0);
    let late: usize = thread::scope(|scope| {
        let setters: Vec<_> = (0..SETTERS)
            .map(|setter| {
                let (timers, wheel) = (&timers, &wheel);
                scope.spawn(move || {
                    let mut late = 0;
                    for id in setter * each..(setter + 1) * each {
                        // Some go off in a later turn of the wheel.
                        let wait = 1 + (id * 7919 % (3 * SLOTS)) as u64;
                        let mut timer = timers.insert(Timer {
                            tick: wheel.now.load(Ordering::Relaxed) + wait,
                            id,
                            next: None,
                        });
                        while let Err(mut refused) = wheel.set(timer) {
                            late += 1;
                            refused.tick = wheel.now.load(Ordering::Relaxed) + wait;
                            timer = refused;
                        }
                    }
                    late
                })
            })
            .collect();

        let mut left = all;
        while left > 0 {
            let (tick, mut due) = wheel.advance();
            let before = left;
            while let Some(timer) = pop(&mut due) {
                assert_eq!(timer.tick, tick);
                fired[timer.id].fetch_add(1, Ordering::Relaxed);
                left -= 1;
            } // freed here, by a thread that did not allocate it
            together = together.max(before - left);
            ticks = tick;
            if before == left {
                thread::yield_now();
            }
        }
        setters.into_iter().map(|it| it.join().unwrap()).sum()
    });

    assert!(fired.iter().all(|it| it.load(Ordering::Relaxed) == 1));
    assert_eq!(timers.in_use(), 0);
    println!(
        "{all} timers went off in {ticks} ticks, up to {together} at once; {late} were set anew"
    );
}
