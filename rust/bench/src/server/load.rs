//! The load of a server: requests on several connections, with several in flight on each. Every
//! answer is checked.
//!
//! A connection sends a batch of requests in one write, and waits for all answers before it sends
//! the next batch. Each key belongs to one connection, so the right answer is known when a request
//! is sent. Sizes of values are random, 64 B to 4 KiB; each doubling is equally likely.

use crate::loops::Random;
use crate::machine::wall_ns;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Connections of a load.
pub const CONNECTIONS: usize = 50;
/// Bytes of the smallest value, and how often it can double.
const SMALLEST: usize = 64;
const DOUBLINGS: usize = 6;
/// Bytes that values are cut from.
const CONTENT: usize = 1 << 20;
/// Bytes that are read at a time: the answers to a batch fit.
const READ: usize = 128 << 10;
/// Decimal digits of a latency that are kept.
const DIGITS: u8 = 2;
/// The step to the next key where all keys are visited: a prime larger than any number of keys.
const STRIDE: u64 = 2_654_435_761;
/// Bytes of a key, as they are written.
const KEY: usize = 16;

/// The requests of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// Each key is set, in order.
    Fill,
    /// Each key is set, in no order.
    Overwrite,
    /// Nine keys of ten are deleted, in no order.
    Thin,
    /// Random keys. Of 100 requests `sets` set a key, and the others get one.
    Random { sets: usize },
}

/// The right answer.
#[derive(Clone, Copy)]
enum Answer {
    Set,
    Deleted,
    Value { key: usize, size: usize },
}

/// The values that one connection has set.
struct Keys {
    content: Vec<u8>,
    /// The size of each key's value; 0 if there is no such key.
    sizes: Vec<u16>,
}

impl Keys {
    /// The bytes of a key's value. They differ from key to key.
    fn value(&self, key: usize, size: usize) -> &[u8] {
        let from = key * 61 % (CONTENT - (SMALLEST << DOUBLINGS));
        &self.content[from..from + size]
    }

    fn live_bytes(&self) -> u64 {
        let live = self.sizes.iter().filter(|&&size| size > 0);
        live.map(|&size| u64::from(size) + KEY as u64).sum()
    }
}

struct Connection {
    stream: TcpStream,
    random: Random,
    /// The connection has the keys `first`, `first + CONNECTIONS`, and so on.
    first: usize,
    keys: usize,
    /// Requests of the stage: those that are still to be sent, and those that were sent.
    left: u64,
    sent: u64,
    began: u64,
    waiting: VecDeque<Answer>,
    request: Vec<u8>,
    input: Vec<u8>,
    filled: usize,
}

fn random_size(random: &mut Random) -> usize {
    let from = SMALLEST << random.below(DOUBLINGS);
    from + random.below(from + 1)
}

impl Connection {
    fn open(port: u16, first: usize, keys: usize, seed: u64) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            random: Random(seed.wrapping_mul(STRIDE) + first as u64),
            first,
            keys: (keys + CONNECTIONS - 1 - first) / CONNECTIONS,
            left: 0,
            sent: 0,
            began: 0,
            waiting: VecDeque::new(),
            request: Vec::new(),
            input: vec![0; READ],
            filled: 0,
        })
    }

    /// The key of the next request.
    fn next_key(&mut self, asks: Asks) -> usize {
        let own = match asks {
            Asks::Fill => self.sent as usize,
            Asks::Overwrite | Asks::Thin => (self.sent * STRIDE % self.keys as u64) as usize,
            Asks::Random { .. } => self.random.below(self.keys),
        };
        self.first + own * CONNECTIONS
    }

    fn add_words(&mut self, words: &[&[u8]]) {
        let _ = write!(self.request, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.request, "${}\r\n", word.len());
            self.request.extend_from_slice(word);
            self.request.extend_from_slice(b"\r\n");
        }
    }

    fn add_request(&mut self, asks: Asks, keys: &mut Keys) {
        let key = self.next_key(asks);
        let name = format!("key:{key:012}");
        self.sent += 1;
        let sets = match asks {
            Asks::Fill | Asks::Overwrite => true,
            Asks::Thin => false,
            Asks::Random { sets } => self.random.below(100) < sets,
        };
        if sets {
            let size = random_size(&mut self.random);
            keys.sizes[key] = size as u16;
            self.add_words(&[b"SET", name.as_bytes(), keys.value(key, size)]);
            self.waiting.push_back(Answer::Set);
        } else if asks == Asks::Thin {
            keys.sizes[key] = 0;
            self.add_words(&[b"DEL", name.as_bytes()]);
            self.waiting.push_back(Answer::Deleted);
        } else {
            let size = usize::from(keys.sizes[key]);
            self.add_words(&[b"GET", name.as_bytes()]);
            self.waiting.push_back(Answer::Value { key, size });
        }
    }

    /// Sends up to `depth` requests. A server reads while a client writes, so it may block.
    fn ask(&mut self, asks: Asks, depth: u64, keys: &mut Keys) -> std::io::Result<()> {
        self.request.clear();
        let count = self.left.min(depth);
        for _ in 0..count {
            self.add_request(asks, keys);
        }
        self.left -= count;
        self.began = wall_ns();
        self.stream.write_all(&self.request)
    }

    /// The length of an answer if it is right; 0 if it is incomplete.
    fn matches(&self, answer: Answer, from: &[u8], keys: &Keys) -> Option<usize> {
        let mut heading = [0u8; 16];
        let (heading, value) = match answer {
            Answer::Set => (&b"+OK\r\n"[..], &[][..]),
            Answer::Deleted => (&b":1\r\n"[..], &[][..]),
            Answer::Value { key, size } => {
                let mut rest = &mut heading[..];
                write!(rest, "${size}\r\n").ok()?;
                let used = 16 - rest.len();
                (&heading[..used], keys.value(key, size))
            }
        };
        let end = if value.is_empty() { &[][..] } else { b"\r\n" };
        let count = heading.len() + value.len() + end.len();
        if from.len() < count {
            return Some(0);
        }
        let (one, rest) = from.split_at(heading.len());
        let (two, rest) = rest.split_at(value.len());
        (one == heading && two == value && rest.starts_with(end)).then_some(count)
    }

    /// Reads the bytes that have arrived. True: all answers have arrived.
    fn hear(&mut self, keys: &Keys, latencies: &mut Histogram<u64>) -> Result<bool, String> {
        let got = self.stream.read(&mut self.input[self.filled..]);
        match got {
            Ok(got) if got > 0 => self.filled += got,
            Ok(_) => return Err("the server has hung up".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let (now, mut at) = (wall_ns(), 0);
        while let Some(&answer) = self.waiting.front() {
            let from = &self.input[at..self.filled];
            let count = self.matches(answer, from, keys);
            match count.ok_or_else(|| format!("a wrong answer: {}", from.escape_ascii()))? {
                0 => break,
                count => at += count,
            }
            self.waiting.pop_front();
            latencies.saturating_record(now - self.began);
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(self.waiting.is_empty())
    }
}

/// The result of a stage.
pub struct Stage {
    pub requests: u64,
    pub ns: u64,
    /// In nanoseconds.
    pub latencies: Histogram<u64>,
}

pub struct Load {
    poll: OwnedFd,
    connections: Vec<Connection>,
    keys: Keys,
}

fn say(error: std::io::Error) -> String {
    error.to_string()
}

impl Load {
    /// Connects. The same seed gives the same requests.
    pub fn open(port: u16, keys: usize, seed: u64) -> Result<Load, String> {
        // SAFETY: makes a descriptor, which is checked before it is used.
        let poll = unsafe {
            let poll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if poll < 0 {
                return Err(say(std::io::Error::last_os_error()));
            }
            OwnedFd::from_raw_fd(poll)
        };
        let mut random = Random(7);
        let load = Load {
            poll,
            connections: (0..CONNECTIONS)
                .map(|first| Connection::open(port, first, keys, seed).map_err(say))
                .collect::<Result<_, _>>()?,
            keys: Keys {
                content: (0..CONTENT).map(|_| random.below(256) as u8).collect(),
                sizes: vec![0; keys],
            },
        };
        load.listen()?;
        Ok(load)
    }

    fn listen(&self) -> Result<(), String> {
        for (index, connection) in self.connections.iter().enumerate() {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: index as u64,
            };
            let (poll, socket) = (self.poll.as_raw_fd(), connection.stream.as_raw_fd());
            // SAFETY: both descriptors are open, and the event is only read.
            if unsafe { libc::epoll_ctl(poll, libc::EPOLL_CTL_ADD, socket, &mut event) } != 0 {
                return Err(say(std::io::Error::last_os_error()));
            }
        }
        Ok(())
    }

    /// The connections with something to read.
    fn wait(&self, events: &mut [libc::epoll_event; CONNECTIONS]) -> usize {
        let poll = self.poll.as_raw_fd();
        // SAFETY: as many events as there is room for.
        let count =
            unsafe { libc::epoll_wait(poll, events.as_mut_ptr(), CONNECTIONS as i32, 10_000) };
        usize::try_from(count).unwrap_or(0)
    }

    /// The number of requests of a connection in a stage. Random requests are `count` for all
    /// connections together.
    fn share(&self, asks: Asks, count: u64, of: usize) -> u64 {
        let keys = self.connections[of].keys as u64;
        match asks {
            Asks::Fill | Asks::Overwrite => keys,
            Asks::Thin => keys * 9 / 10,
            Asks::Random { .. } => count / CONNECTIONS as u64,
        }
    }

    /// Sends requests, `depth` at a time on each connection, and waits for all answers. `count` is
    /// the number of random requests; other stages have one for each of their keys.
    pub fn run(&mut self, asks: Asks, count: u64, depth: u64) -> Result<Stage, String> {
        let mut stage = Stage {
            requests: 0,
            ns: wall_ns(),
            latencies: Histogram::new(DIGITS).expect("fewer than six"),
        };
        let mut open = 0;
        for index in 0..CONNECTIONS {
            let share = self.share(asks, count, index);
            let connection = &mut self.connections[index];
            (connection.left, connection.sent) = (share, 0);
            stage.requests += share;
            open += usize::from(share > 0);
            connection.ask(asks, depth, &mut self.keys).map_err(say)?;
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; CONNECTIONS];
        while open > 0 {
            let ready = self.wait(&mut events);
            if ready == 0 {
                return Err("no answer for ten seconds".to_owned());
            }
            for event in &events[..ready] {
                let connection = &mut self.connections[event.u64 as usize];
                if !connection.hear(&self.keys, &mut stage.latencies)? {
                    continue;
                }
                if connection.left > 0 {
                    connection.ask(asks, depth, &mut self.keys).map_err(say)?;
                } else {
                    open -= 1;
                }
            }
        }
        stage.ns = wall_ns() - stage.ns;
        Ok(stage)
    }

    /// The bytes of keys and values in the server.
    pub fn live_bytes(&self) -> u64 {
        self.keys.live_bytes()
    }

    /// Sends one request and returns the nanoseconds until its answer.
    pub fn tell(&mut self, words: &[&[u8]], answer: &[u8]) -> Result<u64, String> {
        let connection = &mut self.connections[0];
        connection.request.clear();
        connection.add_words(words);
        let (began, mut got) = (wall_ns(), vec![0; answer.len()]);
        connection
            .stream
            .write_all(&connection.request)
            .map_err(say)?;
        connection.stream.read_exact(&mut got).map_err(say)?;
        let ns = wall_ns() - began;
        match got == answer {
            true => Ok(ns),
            false => Err(format!("a wrong answer: {}", got.escape_ascii())),
        }
    }

    /// Deletes all keys by FLUSHALL. Returns the nanoseconds that it took.
    pub fn flush_all(&mut self) -> Result<u64, String> {
        self.keys.sizes.fill(0);
        self.tell(&[b"FLUSHALL"], b"+OK\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that sends the same answer to each connection, and nothing more. It goes on
    /// reading: a connection that is closed with unread data is reset.
    fn liar(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let all: Vec<_> = listener.incoming().take(CONNECTIONS).flatten().collect();
            for mut one in &all {
                let _ = one.write_all(answer);
                let _ = one.shutdown(std::net::Shutdown::Write);
            }
            for mut one in &all {
                let _ = std::io::copy(&mut one, &mut std::io::sink());
            }
        });
        port
    }

    fn complaint(answer: &'static [u8]) -> String {
        let mut load = Load::open(liar(answer), 100, 1).unwrap();
        load.run(Asks::Fill, 0, 1).err().unwrap()
    }

    #[test]
    fn wrong_answers_are_noticed() {
        assert!(complaint(b"-ERR\r\n").contains("a wrong answer: -ERR"));
        assert!(complaint(b":1\r\n ").contains("a wrong answer"));
        // The first half of an answer, and the end of the connection.
        assert!(complaint(b"+O").contains("hung up"));
    }

    fn answer_of(connection: &Connection, keys: &Keys, from: &[u8]) -> Option<usize> {
        connection.matches(Answer::Value { key: 3, size: 64 }, from, keys)
    }

    #[test]
    fn a_value_is_compared_to_its_last_byte() {
        let load = Load::open(liar(b""), 100, 1).unwrap();
        let mut right = b"$64\r\n".to_vec();
        right.extend_from_slice(load.keys.value(3, 64));
        right.extend_from_slice(b"\r\n");
        let one = &load.connections[0];
        assert_eq!(answer_of(one, &load.keys, &right), Some(right.len()));
        let end = right.len() - 1;
        assert_eq!(answer_of(one, &load.keys, &right[..end]), Some(0));
        for at in [1, 5, 68, end] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert_eq!(answer_of(one, &load.keys, &wrong), None, "{at}");
        }
        assert_ne!(load.keys.value(3, 64), load.keys.value(4, 64));
    }

    #[test]
    fn sizes_are_in_their_range_and_each_doubling_is_there() {
        let mut random = Random(3);
        let sizes: Vec<usize> = (0..60_000).map(|_| random_size(&mut random)).collect();
        assert!(sizes.iter().all(|size| (64..=4096).contains(size)));
        for doubling in 0..DOUBLINGS {
            let here = (SMALLEST << doubling)..(SMALLEST << (doubling + 1));
            let count = sizes.iter().filter(|size| here.contains(size)).count();
            assert!((9_000..11_000).contains(&count), "{here:?}: {count}");
        }
    }
}
