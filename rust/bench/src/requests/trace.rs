//! The allocations and frees of a server, the same for all contenders: bursts of requests. Each
//! request allocates objects of several kinds and frees nearly all of them when it ends.
//!
//! The number of requests in a burst goes up and down. About two of a hundred objects are *kept*:
//! the program knows when it allocates them that they will outlive the burst (a session, an entry
//! of a cache). A few of ten thousand are *late*: they should end with their request but do not (an
//! answer to a slow client). The seed alone decides which objects are kept or late, and how long
//! they live.

/// Bytes of each kind of object: a node of a parsed request, a header, a connection, a buffer.
pub const SIZES: [usize; 4] = [48, 96, 512, 2048];
/// The kinds of objects that one request allocates.
const REQUEST: [usize; 14] = [2, 3, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
/// Objects of 10,000 that are kept.
const KEPT: usize = 200;
/// Bursts from one peak of the load to the next.
const DAY: usize = 40;

/// When an object ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// With its request.
    Short,
    /// Some bursts after its own, against expectation.
    Late,
    /// Many bursts after its own, as planned.
    Kept,
}

/// One object while it lives.
#[derive(Clone, Copy)]
pub struct Object {
    pub address: *mut u8,
    pub kind: usize,
    pub life: Life,
}

/// An allocator that serves requests.
pub trait Server {
    fn begin_burst(&mut self);
    /// An object of `SIZES[kind]` bytes.
    fn take(&mut self, kind: usize, life: Life) -> *mut u8;
    fn give(&mut self, object: Object);
    fn end_burst(&mut self);
}

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub bursts: usize,
    /// Requests of the largest burst. The smallest burst has an eighth.
    pub requests: usize,
    /// Objects of 10,000 that are late.
    pub late: usize,
    pub seed: u64,
}

impl Load {
    /// Requests of a burst.
    fn of_burst(&self, burst: usize) -> usize {
        let turn = (burst % DAY) as f64 / DAY as f64 * core::f64::consts::TAU;
        let share = 0.5625 + 0.4375 * turn.sin();
        (self.requests as f64 * share) as usize
    }
}

/// The finaliser of splitmix64 over a counter.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A run of the load. A first run, the rehearsal, makes its own memory resident.
pub struct Trace {
    load: Load,
    random: Random,
    open: Vec<[Object; REQUEST.len()]>,
    /// For each burst, the objects that end after it.
    due: Vec<Vec<Object>>,
    live_bytes: usize,
    taken: usize,
}

impl Trace {
    pub fn new(load: Load) -> Trace {
        Trace {
            load,
            random: Random(load.seed),
            open: Vec::new(),
            due: (0..load.bursts).map(|_| Vec::new()).collect(),
            live_bytes: 0,
            taken: 0,
        }
    }

    /// Objects taken so far.
    pub fn taken(&self) -> usize {
        self.taken
    }

    fn choose(&mut self, burst: usize) -> (Life, usize) {
        let number = self.random.below(10_000);
        if number < KEPT {
            (Life::Kept, burst + 10 + self.random.below(50))
        } else if number < KEPT + self.load.late {
            (Life::Late, burst + 1 + self.random.below(4))
        } else {
            (Life::Short, burst)
        }
    }

    fn give(&mut self, server: &mut dyn Server, object: Object) {
        self.live_bytes -= SIZES[object.kind];
        server.give(object);
    }

    fn begin_request(&mut self, server: &mut dyn Server, burst: usize) {
        let objects = REQUEST.map(|kind| {
            let (life, end) = self.choose(burst);
            let address = server.take(kind, life);
            let object = Object {
                address,
                kind,
                life,
            };
            if let (true, Some(due)) = (life != Life::Short, self.due.get_mut(end)) {
                due.push(object);
            }
            self.live_bytes += SIZES[kind];
            object
        });
        self.taken += objects.len();
        self.open.push(objects);
    }

    /// A random open request.
    fn end_request(&mut self, server: &mut dyn Server) {
        let which = self.random.below(self.open.len());
        for object in self.open.swap_remove(which) {
            if object.life == Life::Short {
                self.give(server, object);
            }
        }
    }

    /// Half of a burst's requests are open at a time.
    fn burst(&mut self, server: &mut dyn Server, burst: usize) {
        let requests = self.load.of_burst(burst);
        server.begin_burst();
        for _ in 0..requests {
            if self.open.len() >= requests / 2 {
                self.end_request(server);
            }
            self.begin_request(server, burst);
        }
        while !self.open.is_empty() {
            self.end_request(server);
        }
        let mut due = core::mem::take(&mut self.due[burst]);
        for object in due.drain(..) {
            self.give(server, object);
        }
        self.due[burst] = due;
        server.end_burst();
    }

    /// Runs all bursts. After each burst `look` gets the live bytes.
    pub fn run(&mut self, server: &mut dyn Server, mut look: impl FnMut(usize, &mut dyn Server)) {
        self.random = Random(self.load.seed);
        (self.live_bytes, self.taken) = (0, 0);
        for due in &mut self.due {
            due.clear();
        }
        for burst in 0..self.load.bursts {
            self.burst(server, burst);
            look(self.live_bytes, server);
        }
    }
}

/// A server for the rehearsal, which allocates nothing.
pub struct Nobody;

impl Server for Nobody {
    fn begin_burst(&mut self) {}

    fn take(&mut self, _kind: usize, _life: Life) -> *mut u8 {
        core::ptr::null_mut()
    }

    fn give(&mut self, _object: Object) {}

    fn end_burst(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Gives numbers as addresses, each to one live object.
    #[derive(Default)]
    struct Ledger {
        next: usize,
        out: HashSet<usize>,
        lives: [usize; 3],
        asked: Vec<(usize, Life)>,
    }

    impl Server for Ledger {
        fn begin_burst(&mut self) {}

        fn take(&mut self, kind: usize, life: Life) -> *mut u8 {
            self.next += 1;
            self.out.insert(self.next);
            self.lives[life as usize] += 1;
            self.asked.push((kind, life));
            self.next as *mut u8
        }

        fn give(&mut self, object: Object) {
            assert!(self.out.remove(&(object.address as usize)));
        }

        fn end_burst(&mut self) {}
    }

    const SMALL: Load = Load {
        bursts: 50,
        requests: 200,
        late: 20,
        seed: 1,
    };

    #[test]
    fn what_is_taken_is_given_back_once_and_counted() {
        let mut ledger = Ledger::default();
        let mut trace = Trace::new(SMALL);
        let mut last = 0;
        trace.run(&mut ledger, |live, _| last = live);
        assert_eq!(trace.taken(), ledger.next);
        assert!(last > 0 && ledger.out.len() * SIZES[0] <= last);
        let share = |life: Life| ledger.lives[life as usize] as f64 / ledger.next as f64;
        assert!((0.015..0.025).contains(&share(Life::Kept)));
        assert!((0.001..0.004).contains(&share(Life::Late)));
    }

    #[test]
    fn everybody_is_asked_the_same() {
        let mut trace = Trace::new(SMALL);
        trace.run(&mut Nobody, |_, _| ());
        let (mut first, mut second) = (Ledger::default(), Ledger::default());
        trace.run(&mut first, |_, _| ());
        Trace::new(SMALL).run(&mut second, |_, _| ());
        assert_eq!(first.asked, second.asked);
    }

    #[test]
    fn the_load_goes_up_and_down() {
        let requests: Vec<usize> = (0..DAY).map(|burst| SMALL.of_burst(burst)).collect();
        assert_eq!(requests.iter().max(), Some(&200));
        assert_eq!(requests.iter().min(), Some(&25));
    }
}
