//! A day of a session store, in one process: requests, expiry, and readings of the memory.
//!
//! The model is that of `examples/session_store.c`. Each minute a number of users send a request. A
//! user without a session logs in, which creates one. A request makes the session live longer. A
//! timer wheel has a list of sessions for each minute; a session whose time is over when the wheel
//! comes to it is removed, any other is linked again for later. An index has the name of each
//! user's session, so a store need not know names that are stale.

use super::store::{Session, Store, DATA_WORDS, NONE};
use crate::loops::Random;
use crate::machine::{cpu_ns, resident};
use std::time::{Duration, Instant};

/// Minutes.
pub const DAY: u32 = 24 * 60;
/// The first minute of the run.
pub const BEGIN: u32 = 6 * 60;
/// Minutes between two readings.
pub const BETWEEN: u32 = 15;
const FEWEST_REQUESTS: u32 = 5 * 60;
const MOST_REQUESTS: u32 = 20 * 60;

const IDLE_MINUTES: u32 = 2 * 60;
/// One user in so many stays signed in: the session expires after `SIGNED_IN_MINUTES` without a
/// request.
const SIGNED_IN_ONE_IN: u32 = 25;
const SIGNED_IN_MINUTES: u32 = 12 * 60;
/// Slots of the timer wheel, a minute each.
const WHEEL: usize = 1024;
const _: () = assert!(WHEEL > SIGNED_IN_MINUTES as usize);

/// Requests in a minute at the peak for 1,000 users, and the share of them at the trough.
const REQUESTS_PER_MILLE: usize = 15;
const NIGHT_SHARE: f64 = 0.02;
/// Requests that are timed together.
const BATCH: usize = 1024;

/// The extent of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub users: u32,
    /// A minute of the day takes at least this time.
    pub minute: Duration,
    pub seed: u64,
}

/// What is read every quarter of an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub sessions: usize,
    /// Bytes beyond those that were resident before the first session.
    pub resident: u64,
}

/// The number of operations of a kind, and their CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub count: u64,
    pub ns: u64,
}

impl Spent {
    fn add(&mut self, count: usize, since: u64) {
        self.count += count as u64;
        self.ns += cpu_ns() - since;
    }

    pub fn each(&self) -> f64 {
        self.ns as f64 / self.count.max(1) as f64
    }
}

/// The share of the peak's requests at a minute of the day.
pub fn load_at(minute: u32) -> f64 {
    let since = (minute + DAY - FEWEST_REQUESTS) % DAY;
    let rise = MOST_REQUESTS - FEWEST_REQUESTS;
    let height = if since < rise {
        f64::from(since) / f64::from(rise)
    } else {
        f64::from(DAY - since) / f64::from(DAY - rise)
    };
    let smooth = height * height * (3.0 - 2.0 * height);
    smooth + (1.0 - smooth) * NIGHT_SHARE
}

/// A store in use.
pub struct Day<S> {
    store: S,
    /// The name of each user's session, or `NONE`.
    index: Vec<u64>,
    wheel: Vec<u64>,
    now: u32,
    live: usize,
    random: Random,
    /// Of what the sessions were and did, in order: the same with each store.
    pub sum: u64,
    pub created: Spent,
    pub looked_up: Spent,
    /// Sessions that the wheel came to, removed or not.
    pub visited: Spent,
    pub readings: Vec<Reading>,
    before: u64,
}

fn data_of(secret: u64) -> [u64; DATA_WORDS] {
    core::array::from_fn(|word| secret.wrapping_add(word as u64))
}

impl<S: Store> Day<S> {
    pub fn new(make: impl FnOnce() -> S, extent: Extent) -> Day<S> {
        let index = vec![NONE; extent.users as usize];
        let before = resident();
        Day {
            store: make(),
            index,
            wheel: vec![NONE; WHEEL],
            now: BEGIN,
            live: 0,
            random: Random(extent.seed),
            sum: 0,
            created: Spent::default(),
            looked_up: Spent::default(),
            visited: Spent::default(),
            readings: Vec::with_capacity((DAY / BETWEEN) as usize + 1),
            before,
        }
    }

    /// Runs the whole day. Minutes begin when the one before is over, at the earliest on time.
    pub fn run(&mut self, minute: Duration) {
        let mut due = Instant::now();
        for _ in 0..DAY {
            self.read_at_quarters();
            let begin = due.max(Instant::now());
            std::thread::sleep(begin.saturating_duration_since(Instant::now()));
            due = begin + minute;
            self.expire();
            self.serve_minute();
            self.now += 1;
        }
        self.read_at_quarters();
    }

    fn read_at_quarters(&mut self) {
        if self.now.is_multiple_of(BETWEEN) {
            self.readings.push(Reading {
                sessions: self.live,
                resident: resident().saturating_sub(self.before),
            });
        }
    }

    fn note(&mut self, what: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(what);
    }

    fn serve_minute(&mut self) {
        let peak = self.index.len() * REQUESTS_PER_MILLE / 1000;
        let mut left = (peak as f64 * load_at(self.now % DAY)) as usize;
        while left > 0 {
            let count = left.min(BATCH);
            self.serve_batch(count);
            left -= count;
        }
    }

    /// Serves those who have a session first, so that each kind of operation is timed alone.
    fn serve_batch(&mut self, count: usize) {
        let (mut known, mut new) = ([(0, NONE); BATCH], [0; BATCH]);
        let (mut known_count, mut new_count) = (0, 0);
        for _ in 0..count {
            let user = self.random.below(self.index.len()) as u32;
            match self.index[user as usize] {
                NONE => {
                    new[new_count] = user;
                    new_count += 1;
                }
                name => {
                    known[known_count] = (user, name);
                    known_count += 1;
                }
            }
        }
        let began = cpu_ns();
        for &(user, name) in &known[..known_count] {
            self.look_up(user, name);
        }
        self.looked_up.add(known_count, began);
        let began = cpu_ns();
        for &user in &new[..new_count] {
            self.log_in(user);
        }
        self.created.add(new_count, began);
    }

    fn look_up(&mut self, user: u32, name: u64) {
        let now = self.now;
        let seen = self.store.with(name, |session| {
            assert_eq!(session.user, user, "a name leads to its session");
            session.last_used.set(now);
            session.requests.set(session.requests.get() + 1);
            session.data[user as usize % DATA_WORDS]
        });
        self.note(seen);
    }

    fn log_in(&mut self, user: u32) {
        // A user may be twice in one batch.
        if self.index[user as usize] != NONE {
            return self.look_up(user, self.index[user as usize]);
        }
        let is_signed_in = user.is_multiple_of(SIGNED_IN_ONE_IN);
        let idle = if is_signed_in {
            SIGNED_IN_MINUTES
        } else {
            IDLE_MINUTES
        };
        let (slot, secret) = (self.slot(self.now + idle), self.random.0);
        let name = self.store.insert(Session {
            secret,
            next_due: self.wheel[slot].into(),
            user,
            requests: 1.into(),
            created: self.now,
            last_used: self.now.into(),
            idle,
            data: data_of(secret),
        });
        self.wheel[slot] = name;
        self.index[user as usize] = name;
        self.live += 1;
    }

    fn slot(&self, minute: u32) -> usize {
        minute as usize % WHEEL
    }

    fn expire(&mut self) {
        let slot = self.slot(self.now);
        let (mut name, mut count) = (core::mem::replace(&mut self.wheel[slot], NONE), 0);
        let began = cpu_ns();
        while name != NONE {
            name = self.expire_or_keep(name);
            count += 1;
        }
        self.visited.add(count, began);
    }

    /// Removes a session whose time is over. Any other is linked for later. Returns the next one of
    /// the list.
    fn expire_or_keep(&mut self, name: u64) -> u64 {
        let (now, wheel) = (self.now, &mut self.wheel);
        let (next, over) = self.store.with(name, |session| {
            let next = session.next_due.get();
            let due = session.last_used.get() + session.idle;
            if due > now {
                let slot = &mut wheel[due as usize % WHEEL];
                session.next_due.set(core::mem::replace(slot, name));
                return (next, None);
            }
            assert_eq!(session.data, data_of(session.secret), "its data is whole");
            let age = now - session.created;
            (next, Some((session.user, age, session.requests.get())))
        });
        if let Some((user, age, requests)) = over {
            self.store.remove(name);
            self.index[user as usize] = NONE;
            self.live -= 1;
            self.note(u64::from(age) << 32 | u64::from(requests));
        }
        next
    }
}
