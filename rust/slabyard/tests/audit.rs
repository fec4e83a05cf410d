//! Tests of the audit. They are one test because options, tags and leaks belong to the process.
#![cfg(not(miri))]

use slabyard::audit::{self, Tag, Which};
use slabyard::{Cache, HandleMap};
use std::hint::black_box;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[inline(never)]
fn one_place(cache: &Cache<[u64; 4]>) {
    std::mem::forget(cache.insert([1; 4]));
}

#[inline(never)]
fn other_place(cache: &Cache<[u64; 4]>) {
    std::mem::forget(cache.insert([2; 4]));
    black_box(());
}

#[test]
fn who_has_what_is_told() {
    let unseen: Cache<[u64; 4]> = Cache::new("unseen");
    one_place(&unseen);
    slabyard::set_options("audit=16").unwrap();
    let held: Cache<[u64; 4]> = Cache::new("held");
    leaks_by_stack(&held);
    history(&held);
    maps();
    if cfg!(target_os = "linux") {
        unreachable(); // a copy of the process looks for them
    }
    tags();
    nothing_leaks_or_a_panic();
    #[cfg(feature = "log")]
    to_log();
    assert!(unseen.leaks(Which::Live).unwrap().is_empty());
}

fn leaks_by_stack(held: &Cache<[u64; 4]>) {
    for _ in 0..black_box(3) {
        one_place(held);
    }
    other_place(held);
    let leaks = held.leaks(Which::Live).unwrap();
    let found: Vec<_> = leaks.iter().map(|it| (it.objects, it.bytes)).collect();
    assert_eq!(found, [(3, 96), (1, 32)], "{leaks:?}");
    assert!(leaks.iter().all(|it| it.cache == "held" && it.example != 0));
    assert!(leaks[0].oldest_ns >= leaks[0].newest_ns);
    let text = leaks[0].to_string();
    let start = "3 objects of \"held\", 96 bytes, by thread ";
    let frames = leaks[0].allocated.unwrap().frames.iter();
    let frames: String = frames.map(|it| format!(" 0x{:x}", it.addr())).collect();
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with(&format!(":{frames}")), "{text}");
    assert!(audit::leaks(Which::Live)
        .unwrap()
        .iter()
        .any(|it| *it == leaks[0] || it.cache == "held" && it.objects == 3));
}

fn history(held: &Cache<[u64; 4]>) {
    let object = held.insert([3; 4]);
    let address = std::ptr::from_ref(&*object).addr();
    drop(object);
    let last = held.history().unwrap();
    assert_eq!(last.len(), 6);
    assert!(last[0].freed && !last[1].freed && last[0].by.is_some());
    assert!(last[..2]
        .iter()
        .all(|it| it.object == address && it.size == 32));
}

fn maps() {
    let map: HandleMap<_> = HandleMap::builder().name("sessions").build().unwrap();
    let key = map.insert([0u8; 100]);
    let leaks = map.leaks(Which::Live).unwrap();
    assert_eq!((leaks.len(), leaks[0].objects), (1, 1));
    assert!(map.remove(key));
    assert!(map.leaks(Which::Live).unwrap().is_empty());
}

/// Counts unreachable objects, except for a few to which old pointers on the stack point. Objects
/// in a list of pointers are reachable.
fn unreachable() {
    let cache: Cache<[u64; 4]> = Cache::new("hidden");
    (0..black_box(100)).for_each(|_| one_place(&cache));
    let kept: Vec<_> = (0..100).map(|i| cache.insert([i; 4])).collect();
    let count = |which| {
        let leaks = cache.leaks(which).unwrap();
        leaks.iter().map(|it| it.objects).sum::<usize>()
    };
    assert_eq!(count(Which::Live), 200);
    let unreachable = count(Which::Unreachable);
    assert!((90..=100).contains(&unreachable), "{unreachable}");
    drop(kept);
}

fn tags() {
    let tag = Tag::open("parser").unwrap();
    assert_eq!(Tag::open("parser"), Some(tag));
    assert_eq!(
        (Tag::open(""), Tag::open("\0x")),
        (Some(Tag::NONE), Some(Tag::NONE))
    );
    let cache: Cache<[u64; 4]> = Cache::new("nodes");
    let node = tag.scope(|| {
        Tag::NONE.scope(|| one_place(&cache));
        cache.insert([6; 4])
    });
    let panicked = catch_unwind(|| tag.scope(|| panic!("in a scope")));
    assert!(panicked.is_err());
    assert_eq!(tag.set(), Tag::NONE, "the scope ended");
    assert_eq!(Tag::NONE.set(), tag);
    let told = |tag| {
        let tags = audit::tags().unwrap();
        assert_eq!(tags[0].tag, Tag::NONE);
        tags.into_iter().find(|it| it.tag == tag).unwrap()
    };
    let stats = told(tag);
    assert_eq!((stats.name.as_str(), stats.live_bytes), ("parser", 32));
    assert_eq!((stats.allocations, stats.frees, stats.live), (1, 0, 1));
    drop(node);
    let stats = told(tag);
    assert_eq!((stats.frees, stats.live, stats.peak_bytes), (1, 0, 32));
}

fn nothing_leaks_or_a_panic() {
    let cache: Cache<[u64; 4]> = Cache::new("tested");
    one_place(&cache); // allocated before the call, so it does not count
    let kept = audit::assert_no_leaks(|| {
        drop(cache.insert([7; 4]));
        7
    });
    assert_eq!(kept, 7);
    let run = AssertUnwindSafe(|| audit::assert_no_leaks(|| one_place(&cache)));
    let panic = catch_unwind(run).expect_err("one is leaked");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.starts_with("leaked:\n  1 more: "), "{text}");
    assert!(text.contains(" of \"tested\", "), "{text}");
    one_more_where_there_are_others();
    another_in_the_place_of_one();
}

/// The messages of `assert_no_leaks` in some rounds of work, with the same stack in each round.
fn told(rounds: usize, mut work: impl FnMut(usize)) -> Vec<String> {
    let mut texts = Vec::new();
    for round in 0..black_box(rounds) {
        let run = AssertUnwindSafe(|| audit::assert_no_leaks(|| work(round)));
        let panic = catch_unwind(run).expect_err("something is live");
        texts.push(panic.downcast_ref::<String>().expect("a text").clone());
    }
    texts
}

/// If two caches have the same name, the live objects of both with the same stack are counted
/// together.
fn one_more_where_there_are_others() {
    let twins: [Cache<[u64; 4]>; 2] = [Cache::new("twin"), Cache::new("twin")];
    let mut held = Vec::new();
    let texts = told(3, |round| held.push(twins[round % 2].insert([8; 4])));
    let last = "leaked:\n  1 more: 3 objects of \"twin\", 96 bytes";
    assert!(texts[2].starts_with(last), "{texts:?}");
    let kept = audit::assert_no_leaks(|| held.len());
    assert_eq!(kept, 3);
}

fn another_in_the_place_of_one() {
    let cache: Cache<[u64; 4]> = Cache::new("replaced");
    let mut held = None;
    let texts = told(2, |_| {
        drop(held.take());
        held = Some(cache.insert([9; 4]));
    });
    let last = "leaked:\n  as many, but not the same: 1 object of \"replaced\", 32 bytes";
    assert!(texts[1].starts_with(last), "{texts:?}");
}

#[cfg(feature = "log")]
fn to_log() {
    use std::sync::Mutex;
    struct Lines(Mutex<Vec<String>>);
    static LINES: Lines = Lines(Mutex::new(Vec::new()));
    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }
        fn log(&self, record: &log::Record) {
            let line = format!("{} {}", record.level(), record.args());
            self.0.lock().unwrap().push(line);
        }
        fn flush(&self) {}
    }
    log::set_logger(&LINES).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let objects = audit::log_leaks(Which::Live).unwrap();
    let lines = LINES.0.lock().unwrap();
    assert!(objects >= 4 && !lines.is_empty());
    let held = |line: &&String| line.starts_with("WARN live: 3 objects of \"held\", 96 bytes");
    assert!(lines.iter().any(|line| held(&line)), "{lines:?}");
}
