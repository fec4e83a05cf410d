//! Short runs of the part `server`: every request gets the right answer, the counts add up, and the
//! command writes what it prints to files.

mod common;

use common::{has, kept_run, refuses};
use slabyard_bench::server::contender;
use slabyard_bench::server::load::{Asks, Load};
use slabyard_bench::server::process::Server;

const KEYS: usize = 3001; // some connections have one key more than others

#[test]
fn a_server_answers_every_stage() {
    for one in &contender::all()[..2] {
        let server = Server::start(one, None).unwrap();
        let mut load = Load::open(server.port, KEYS, 1).unwrap();
        let filled = load.run(Asks::Fill, 0, 16).unwrap();
        assert_eq!(filled.requests, KEYS as u64);
        assert!(filled.latencies.value_at_quantile(1.0) <= filled.ns * 65 / 64);
        let full = load.live_bytes();
        assert!(server.resident() > full && full > KEYS as u64 * 500);
        for (sets, depth) in [(100, 1), (0, 16), (50, 5)] {
            let stage = load.run(Asks::Random { sets }, 2000, depth).unwrap();
            assert_eq!(stage.requests, 2000);
        }
        load.run(Asks::Overwrite, 0, 16).unwrap();
        load.run(Asks::Random { sets: 0 }, 2000, 16).unwrap();
        let thinned = load.run(Asks::Thin, 0, 16).unwrap();
        assert!(thinned.requests > KEYS as u64 * 8 / 10);
        assert!(load.live_bytes() < full / 5);
        let left = format!(":{}\r\n", KEYS as u64 - thinned.requests);
        load.tell(&[b"DBSIZE"], left.as_bytes()).unwrap();
        load.flush_all().unwrap();
        load.tell(&[b"DBSIZE"], b":0\r\n").unwrap();
        assert_eq!(load.live_bytes(), 0);
        assert!(server.cpu_ns() > 0);
        drop(load);
        server.end().unwrap();
    }
}

#[test]
fn a_run_prints_tables_and_keeps_the_raw_data() {
    let arguments = [
        "--only=slabyard,glibc,absent",
        "--preload=absent=libslabyard-no-such.so",
        "--keys=2000",
        "--requests=500",
        "--repeats=2",
        "--later-ms=5",
    ];
    let (shown, raw) = kept_run("server", &arguments);
    let expected = [
        "page size",
        "left out       absent:",
        "set/16:",
        "memory:",
        "| figure | slabyard | glibc |",
        "| resident MiB, later |",
    ];
    has(&shown, &expected);
    assert!(!shown.contains("| - |"), "{shown}");
    // The heading; for two contenders, twice: seven stages with five figures, two figures of memory
    // at five moments, and one of the flush.
    assert_eq!(raw.lines().count(), 1 + 2 * 2 * (7 * 5 + 2 * 5 + 1));
}

#[test]
fn what_is_not_known_is_refused() {
    refuses("server", &[&["--only=nonsense"], &["--preload=nonsense"]]);
}
