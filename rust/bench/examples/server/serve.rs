//! A server in Rust after a spike of requests: one of the programs of the part `threads`, as
//! `kernels/threads/readings.h` describes them. `server QUICK WAIT...`.
//!
//! After <https://github.com/MystenLabs/sui/pull/27585>, where a server of queries grows to 18 GiB
//! during a test of its load and stays there when the test is over, until it is ended; and
//! <https://github.com/api7/aisix/issues/968>, a gateway whose memory follows its busiest moment
//! and never falls, since each request is parsed and made anew several times. The numbers here are
//! our own: eight connections ask for fifty tables of 1,000 rows each, 400 MB, which the server
//! holds until all of them are made. Between two tables each of them sends twenty small requests,
//! whose values stay. Then four connections a second send 400 small requests each.
//!
//! Eight threads serve the connections. The clients are threads of the same process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WORKERS: usize = 8;
const SHARDS: usize = 16;
/// Keys of one client.
const KEYS: u64 = 2_500;
/// Small requests that a client sends at a time.
const TOGETHER: u64 = 20;
/// Rows of a table.
const ROWS: u64 = 1_000;

/// A table of rows: the answer to one large request.
type Table = Vec<Vec<u8>>;

#[derive(Default)]
struct Shared {
    values: [Mutex<HashMap<String, Arc<Vec<u8>>>>; SHARDS],
    /// The tables that are made, while the spike lasts.
    tables: Mutex<Vec<Table>>,
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

// ---- the server ----

impl Shared {
    fn shard(&self, key: &str) -> &Mutex<HashMap<String, Arc<Vec<u8>>>> {
        &self.values[key.bytes().map(usize::from).sum::<usize>() % SHARDS]
    }

    /// Rows of 200 to 1,799 bytes. Returns their bytes.
    fn make_table(&self, rows: u64) -> usize {
        let row = |number: u64| vec![number as u8; 200 + (number * 7919 % 1600) as usize];
        let table: Table = (0..rows).map(row).collect();
        let bytes = table.iter().map(Vec::len).sum();
        self.tables.lock().unwrap().push(table);
        bytes
    }

    /// Answers `set KEY BYTES`, `get KEY`, `del KEY` and `table ROWS` with a number.
    fn answer(&self, line: &str) -> usize {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = || words[words.len() - 1].parse().unwrap();
        match words[0] {
            "set" => {
                let bytes = number();
                let value = Arc::new(vec![7; bytes as usize]);
                let mut shard = self.shard(words[1]).lock().unwrap();
                shard.insert(words[1].to_owned(), value);
                bytes as usize
            }
            "get" => {
                let found = self.shard(words[1]).lock().unwrap().get(words[1]).cloned();
                found.map_or(0, |value| value.len())
            }
            "del" => {
                let removed = self.shard(words[1]).lock().unwrap().remove(words[1]);
                removed.map_or(0, |value| value.len())
            }
            _ => self.make_table(number()),
        }
    }

    fn serve(&self, connection: &TcpStream) {
        let mut lines = BufReader::new(connection);
        let (mut line, mut answers) = (String::new(), String::new());
        while lines.read_line(&mut line).unwrap_or(0) > 0 {
            answers += &format!("{}\n", self.answer(&line));
            line.clear();
            if lines.buffer().is_empty() {
                (&*connection).write_all(answers.as_bytes()).unwrap();
                answers = String::new();
            }
        }
    }
}

/// Starts the threads of the server. Returns its address.
fn start_server(shared: &Arc<Shared>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel::<TcpStream>();
    let receiver: Arc<Mutex<Receiver<TcpStream>>> = Arc::new(Mutex::new(receiver));
    for _ in 0..WORKERS {
        let (shared, receiver) = (Arc::clone(shared), Arc::clone(&receiver));
        std::thread::spawn(move || loop {
            let connection = receiver.lock().unwrap().recv();
            let Ok(connection) = connection else { return };
            shared.serve(&connection);
        });
    }
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            sender.send(connection.unwrap()).unwrap();
        }
    });
    address
}

// ---- the clients ----

/// A client with a connection and keys of its own.
struct Client {
    connection: TcpStream,
    answers: BufReader<TcpStream>,
    number: usize,
    state: u64,
}

impl Client {
    fn connect(address: SocketAddr, number: usize) -> Client {
        let connection = TcpStream::connect(address).unwrap();
        Client {
            answers: BufReader::new(connection.try_clone().unwrap()),
            connection,
            number,
            state: 88_172_645_463_325_252 ^ ((number as u64) << 33),
        }
    }

    /// Sends lines, as many as the server may answer at once. Returns the sum of the answers.
    fn ask(&mut self, lines: &[String]) -> usize {
        self.connection
            .write_all(lines.concat().as_bytes())
            .unwrap();
        let mut line = String::new();
        let mut sum = 0;
        for _ in lines {
            line.clear();
            self.answers.read_line(&mut line).unwrap();
            sum += line.trim().parse::<usize>().unwrap();
        }
        sum
    }

    fn draw_request(&mut self) -> String {
        let bits = random(&mut self.state);
        let key = format!("key{}-{}", self.number, (bits >> 11) % KEYS);
        match bits % 10 {
            0..3 => format!("set {key} {}\n", 16 + (bits >> 40) % 2000),
            3 => format!("del {key}\n"),
            _ => format!("get {key}\n"),
        }
    }

    /// Sends small requests, twenty at a time.
    fn small_requests(&mut self, count: u64) -> usize {
        let mut sum = 0;
        for _ in 0..count / TOGETHER {
            let lines: Vec<String> = (0..TOGETHER).map(|_| self.draw_request()).collect();
            sum += self.ask(&lines);
        }
        sum
    }

    /// Asks for tables, with small requests in between.
    fn large_requests(&mut self, count: u64) -> usize {
        let mut sum = 0;
        for _ in 0..count {
            sum += self.ask(&[format!("table {ROWS}\n")]);
            sum += self.small_requests(TOGETHER);
        }
        sum
    }
}

/// Runs clients in threads of their own. Returns the sum of all answers.
fn clients(count: usize, client: impl Fn(usize) -> usize + Sync) -> usize {
    let client = &client;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|index| scope.spawn(move || client(index)))
            .collect();
        let sums = threads.into_iter().map(|thread| thread.join().unwrap());
        sums.sum()
    })
}

// ---- the report ----

/// The anonymous memory of this process that is in RAM, in KiB. Allocates nothing.
fn resident_kib() -> u64 {
    let mut text = [0; 4096];
    let file = std::fs::File::open("/proc/self/smaps_rollup");
    let length = file.and_then(|mut file| file.read(&mut text)).unwrap_or(0);
    let text = core::str::from_utf8(&text[..length]).unwrap_or("");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
    number.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn cpu_ms() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for a write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Some requests each second until this time after the spike. Returns the sum of the answers.
fn light_load(
    address: SocketAddr,
    spike_over: Instant,
    until: Duration,
    second: &mut u64,
) -> usize {
    let mut sum = 0;
    while Duration::from_secs(*second) < until {
        sum += clients(4, |number| {
            Client::connect(address, number).small_requests(400)
        });
        *second += 1;
        let due = spike_over + Duration::from_secs(*second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    sum
}

pub fn main() {
    let mut arguments = std::env::args().skip(1);
    let quick = arguments.next().is_some_and(|text| text == "1");
    let waits: Vec<u64> = arguments.map(|text| text.parse().unwrap()).collect();
    let (requests, tables) = if quick { (2000, 5) } else { (20_000, 50) };
    let shared = Arc::new(Shared::default());
    let address = start_server(&shared);
    let connect = |number| Client::connect(address, number);
    let mut sum = clients(WORKERS, |number| connect(number).small_requests(requests));
    println!("before\t{}", resident_kib());
    sum += clients(WORKERS, |number| connect(number).large_requests(tables));
    println!("peak\t{}", resident_kib());
    drop(core::mem::take(&mut *shared.tables.lock().unwrap()));
    let (worked, spike_over, mut second) = (cpu_ms(), Instant::now(), 0);
    println!("cpu\t{worked}\nfreed\t{}", resident_kib());
    for wait in waits {
        sum += light_load(address, spike_over, Duration::from_secs(wait), &mut second);
        println!("after {wait}\t{}", resident_kib());
    }
    println!("cpu of the wait\t{}", cpu_ms() - worked);
    println!("sum\t{sum}");
    std::process::exit(0);
}
