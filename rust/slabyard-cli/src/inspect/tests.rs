//! The account of a process against what the library in it says of itself, and against the system.

use super::account::{Account, CacheRow, ThreadRow, What};
use super::heap::{drop_shared, Area, Cache, Content, Heap, Kind, Run, Slab, Thread};
use super::image::{Image, Mapping, Resident, Source, Weight};
use super::{metrics, snapshot::Snapshot, Depth, Look};
use slabyard_sys::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void, CStr, CString};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};

// ---- the process that is looked at ----

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

fn cache(name: &str, size: usize, flags: u32) -> *mut sy_cache {
    let name = CString::new(name).unwrap();
    let config = sy_cache_config {
        name: name.as_ptr(),
        size,
        flags,
        ..sy_cache_config::default()
    };
    // SAFETY: the name outlives the call.
    let cache = unsafe { sy_cache_create(&config) };
    assert!(!cache.is_null());
    cache
}

/// Allocates `count` objects, writes them, and frees all but one in `kept`.
unsafe fn churn(cache: *mut sy_cache, size: usize, count: usize, kept: usize) -> Vec<*mut c_void> {
    let mut random = Random(size as u64);
    let objects: Vec<_> = (0..count).map(|_| sy_cache_alloc(cache)).collect();
    for &object in &objects {
        object.cast::<u8>().write_bytes(1, size);
    }
    let (stay, go): (Vec<_>, Vec<_>) = objects.into_iter().partition(|_| random.below(kept) == 0);
    go.into_iter()
        .for_each(|object| sy_cache_free(cache, object));
    stay
}

/// Sizes that change, so that slabs become mixed units.
unsafe fn churn_sizes() {
    let mut random = Random(7);
    for size in [48, 112, 352, 64, 900, 16, 208] {
        let objects: Vec<_> = (0..(6 << 20) / size).map(|_| sy_malloc(size)).collect();
        for object in objects {
            object.cast::<u8>().write_bytes(2, size);
            if random.below(12) != 0 {
                sy_free(object);
            }
        }
    }
}

/// Objects in a scope, which the thread does not leave. Some are ready for its next allocations.
unsafe fn churn_in_scope() {
    let mut random = Random(9);
    assert_eq!(sy_scope_enter(sy_scope_create(null())), 0);
    for size in [16, 48, 200, 3000] {
        let objects: Vec<_> = (0..300).map(|_| sy_malloc(size)).collect();
        for object in objects {
            object.cast::<u8>().write_bytes(5, size);
            if random.below(3) != 0 {
                sy_free(object);
            }
        }
    }
    sy_thread_flush();
}

unsafe extern "C" fn tell(_: *mut c_void, account: *const sy_cache_account) -> c_int {
    let (kind, stats) = ((*account).kind, (*account).stats);
    println!(
        "cache {} {kind} {} {} {} {}",
        CStr::from_ptr(stats.name.as_ptr()).to_str().unwrap(),
        stats.object_size,
        stats.in_use,
        stats.in_loaded + stats.in_depot + stats.in_quarantine,
        stats.mapped,
    );
    0
}

/// Runs in a process of its own, until its input ends.
#[test]
#[ignore = "a part of other tests, which start it"]
fn stage() {
    let plain = cache("plain", 200, 0);
    let named = cache("named", 72, SY_HANDLES);
    let moves = cache("moves", 80, SY_HANDLES | SY_MOVABLE);
    let dense = cache("dense", 8, 0);
    let odd = cache("odd", 33, SY_ZERO);
    let epochs = cache("epochs", 96, SY_EPOCHS);
    let checked = cache("checked", 48, SY_CHECKED | SY_POISON);
    let waits = cache("waits", 80, SY_CHECKED | SY_QUARANTINE);
    let named_waits = cache("named-waits", 40, SY_CHECKED | SY_QUARANTINE | SY_HANDLES);
    let zones = cache("zones", 56, SY_CHECKED | SY_REDZONE);
    // A file that is mapped as data has a note, too, as those that symbolizers read.
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    // SAFETY: the file does not change.
    let data = unsafe { memmap2::Mmap::map(&file).unwrap() };
    assert_eq!(data[..4], *b"\x7fELF");
    // SAFETY: each cache is used as its flags demand, and stays.
    unsafe {
        let stay = churn(plain, 200, 40_000, 10);
        churn(named, 72, 10_000, 3);
        let guard = sy_read_enter();
        churn(moves, 80, 10_000, 3);
        sy_read_leave(guard);
        churn(dense, 8, 100_000, 40);
        churn(odd, 33, 5_000, 2);
        churn(epochs, 96, 3_000, 2);
        churn(checked, 48, 2_000, 2);
        churn(zones, 56, 2_000, 2);
        churn(waits, 80, 2_000, 2);
        churn(named_waits, 40, 2_000, 2);
        churn_sizes();
        churn_in_scope();
        let large = sy_malloc(9 << 20);
        large.cast::<u8>().write_bytes(3, 5 << 20);
        let free = sy_cache_alloc(plain);
        sy_cache_free(plain, free);
        let place = plain as usize;
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (ready, told) = std::sync::mpsc::channel();
                let work = move || {
                    churn(place as *mut sy_cache, 200, 2_000, 2);
                    churn_in_scope();
                    ready.send(()).unwrap();
                    // It keeps its magazines until the process ends.
                    std::thread::sleep(std::time::Duration::from_secs(600));
                };
                std::thread::spawn(work);
                told
            })
            .collect();
        threads.iter().for_each(|told| told.recv().unwrap());
        let ended = std::thread::spawn(move || churn(place as *mut sy_cache, 200, 2_000, 2).len());
        ended.join().unwrap();
        let kept = sy_malloc(20 << 20);
        kept.cast::<u8>().write_bytes(4, 1 << 20);
        sy_free(kept);
        // What was freed before has left the magazines by now.
        for cache in [named, dense, odd, epochs, checked, zones] {
            let objects: Vec<_> = (0..20).map(|_| sy_cache_alloc(cache)).collect();
            objects
                .into_iter()
                .for_each(|object| sy_cache_free(cache, object));
        }
        sy_cache_each(tell, null_mut());
        let mut own = sy_account::default();
        sy_get_account(&mut own);
        for (name, bytes) in [
            ("live", own.live_bytes),
            ("large", own.large_bytes),
            ("rounding", own.rounding_bytes),
            ("thread_magazines", own.thread_magazines_bytes),
            ("depot_magazines", own.depot_magazines_bytes),
            ("free_in_slabs", own.free_in_slabs_bytes),
            ("holes", own.holes_bytes),
            ("free_units", own.free_units_bytes),
            ("kept_spans", own.kept_spans_bytes),
            ("headers", own.headers_bytes),
            ("quarantine", own.quarantine_bytes),
            ("rss", own.resident_bytes),
        ] {
            println!("own {name} {bytes}");
        }
        println!("live {:#x} plain", stay[0] as usize);
        println!("inside {:#x} plain", stay[0] as usize + 5);
        println!("free {:#x} plain", free as usize);
        println!("large {:#x} large", large as usize);
    }
    // The pages of the data that were read make no difference any more.
    assert!(data.iter().step_by(4096).any(|&byte| byte != 0));
    tell_ready();
}

/// Ends the lines of a stage, and waits to be looked at.
pub(super) fn tell_ready() {
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// A process that a test looks at: it runs another, ignored test.
pub(super) struct Stage {
    child: Child,
    lines: Vec<Vec<String>>,
}

impl Stage {
    fn start() -> Self {
        Self::of("inspect::tests::stage")
    }

    pub(super) fn of(test: &str) -> Self {
        Self::with(test, &[])
    }

    /// `variables`: more of the environment.
    pub(super) fn with(test: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env("SLABYARD", "decay=off")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let lines: Vec<_> = lines
            .map_while(Result::ok)
            .take_while(|line| line != "ready")
            .map(|line| line.split(' ').map(str::to_string).collect())
            .collect();
        Stage { child, lines }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives it a byte, and waits until it prints a line with this word.
    pub(super) fn go_on(&mut self, word: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"x").unwrap();
        let lines = BufReader::new(self.child.stdout.as_mut().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line == word), "no {word}");
    }

    pub(super) fn lines<'a>(&'a self, first: &'a str) -> impl Iterator<Item = &'a [String]> {
        let lines = self.lines.iter().filter(move |line| line[0] == *first);
        lines.map(|line| &line[1..])
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_process_is_accounted_for_to_the_page() {
    let stage = Stage::start();
    // The system may take pages of files away between the account and its own sums.
    let take = || {
        let look = Look::at(stage.pid(), Depth::Whole).unwrap();
        let account = look.account();
        (look, account)
    };
    let mut looks = (0..5).map(|_| take());
    let exact = looks.find(|(_, account)| account.residual() == Some(0));
    let (look, account) = exact.unwrap_or_else(take);
    assert_eq!(account.problems, Vec::<String>::new());
    assert_eq!(account.residual(), Some(0));
    // The system rounds each mapping's share to KiB.
    let pss = account.system_pss_bytes.unwrap();
    assert!(
        account.pss_bytes.unwrap().abs_diff(pss) <= 1024 * 1024,
        "{pss}"
    );
    for what in [
        What::Live,
        What::Large,
        What::KeptSpans,
        What::FreeInSlabs,
        What::NeverUsed,
        What::Holes,
        What::DepotMagazines,
        What::Stacks,
    ] {
        assert!(account.of(what) > 0, "{what:?}");
    }
    assert_eq!(account.of(What::Changing), 0);
    // The stacks of its threads, beside that of the first one.
    let mappings = look.image.mappings.iter();
    let first = mappings.filter(|one| one.name == "[stack]");
    let first = first.map(|one| look.image.resident.between(one.range.clone()).bytes);
    assert!(account.of(What::Stacks) > first.sum());
    assert!(account.of(What::Large) >= 5 << 20 && account.of(What::Large) < 6 << 20);
    let mut numbers: Vec<_> = account.threads.iter().map(|row| row.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers.len(), 4);
    numbers.dedup();
    assert_eq!(numbers.len(), 4);
    agrees_with_the_library(&stage, &account);
    agrees_with_the_struct(&stage, &account);
    words_for_addresses(&stage, &look);
    every_free_byte_has_a_keeper(&look, &account);
    assert_eq!(look.verify().faults, BTreeMap::new());
    let again = Snapshot::parse(&Snapshot::of(account).to_json().unwrap()).unwrap();
    assert_eq!(again.account.rss_bytes, look.account().rss_bytes);
}

/// Objects of each cache, as `sy_cache_each` counts them.
fn agrees_with_the_library(stage: &Stage, account: &Account) {
    let mut told = 0;
    let (mut live, mut waiting) = (0, 0);
    for line in stage.lines("cache") {
        let numbers: Vec<u64> = line[1..].iter().map(|word| word.parse().unwrap()).collect();
        let [kind, size, in_use, in_magazines, mapped] = numbers[..] else {
            panic!("{line:?}");
        };
        let mut rows = account.caches.iter();
        let row = rows.find(|row| row.name == line[0] && row.object_bytes == size);
        let row = row.unwrap_or_else(|| panic!("{line:?}"));
        told += 1;
        if kind == u64::from(SY_CACHE_OF_PROGRAM) {
            assert_eq!(row.live_objects, in_use, "{line:?}");
            assert_eq!(row.waiting_objects, in_magazines, "{line:?}");
            assert_eq!(row.held_bytes, mapped, "{line:?}");
        } else {
            // The library counts objects of mixed units that wait to be put back as in use.
            let waits = in_use - row.live_objects.min(in_use);
            assert!(
                row.live_objects <= in_use && waits <= 127,
                "{line:?} {row:?}"
            );
            live += in_use;
            waiting += in_magazines;
        }
    }
    assert_eq!(account.caches.len(), told);
    assert!(told > 10);
    let sizes = account.caches.iter().filter(|row| row.kind == "malloc");
    let (ours, ours_wait) = sizes.fold((0, 0), |(live, waiting), row| {
        (live + row.live_objects, waiting + row.waiting_objects)
    });
    assert_eq!(ours + ours_wait, live + waiting);
    assert!(ours <= live && live - ours <= 127, "{ours} {live}");
}

/// The rows of `sy_get_account`, which counts what was allocated, written or not.
fn agrees_with_the_struct(stage: &Stage, account: &Account) {
    let lines = stage.lines("own");
    let own: BTreeMap<&str, u64> = lines
        .map(|line| (line[0].as_str(), line[1].parse().unwrap()))
        .collect();
    assert_eq!(own["rounding"], account.of(What::Rounding));
    assert_eq!(own["depot_magazines"], account.of(What::DepotMagazines));
    // Pages of scopes that were never written.
    assert!(
        own["holes"] - account.of(What::Holes) < 256 << 10,
        "{own:?}"
    );
    assert_eq!(own["quarantine"], account.of(What::Quarantine));
    assert!(own["quarantine"] >= 2 * 200 * 40, "{own:?}");
    assert_eq!(own["free_units"], account.of(What::FreeUnits));
    // The descriptors of units that were never used have no pages.
    let headers = own["headers"] - account.of(What::Headers);
    assert!(headers < 16 << 10, "{own:?}");
    // The library counts objects of mixed units that wait to be put back as live.
    let at_hand = account.of(What::Live) + account.of(What::ThreadMagazines);
    // What is ready for threads in scopes may lie in pages that were never written.
    let unwritten = own["live"] + own["thread_magazines"] - at_hand;
    assert!(unwritten < 64 << 10, "{own:?}");
    assert!(
        own["live"] - account.of(What::Live) - unwritten < 64 << 10,
        "{own:?}"
    );
    // Pages of free slots that were never written.
    let free = account.of(What::FreeInSlabs);
    assert!(
        own["free_in_slabs"].abs_diff(free) <= free / 50,
        "{own:?} {free}"
    );
    assert_eq!(own["large"], 9 << 20);
    assert_eq!(own["kept_spans"], 20 << 20);
    // Without the pages of files.
    assert!(own["rss"] < account.rss_bytes && own["rss"] > account.rss_bytes / 2);
}

fn words_for_addresses(stage: &Stage, look: &Look) {
    let is = |line: &str, words: &str| {
        let line = stage.lines(line).next().unwrap();
        let address = u64::from_str_radix(&line[0][2..], 16).unwrap();
        let what = look.what_is(address);
        assert!(what.starts_with(words), "{what:?}, not {words:?}");
    };
    is("live", "a live object of plain, 200 bytes");
    is("inside", "a live object of plain, 200 bytes, at ");
    is(
        "free",
        "a free object of plain, 200 bytes, in a magazine of thread ",
    );
    is("large", "a live large object, ");
    assert_eq!(look.what_is(0), "nothing is mapped there");
    assert_eq!(look.what_is(u64::MAX), "nothing is mapped there");
}

fn every_free_byte_has_a_keeper(look: &Look, account: &Account) {
    let pins = look.pins(5);
    let kept: u64 = pins
        .iter()
        .flat_map(|one| one.by.values())
        .map(|one| one.free_bytes)
        .sum();
    assert_eq!(kept, account.free() + account.of(What::Tails));
    assert_eq!(pins[0].pages.len(), 5);
    assert!(pins[0]
        .pages
        .iter()
        .all(|page| page.object_count > 0 && page.free_bytes > 0));
}

/// Two copies of the library in a process, each with a heap of the same name, used by one thread.
#[test]
fn caches_and_threads_have_one_row_each() {
    let image = Image::new(Box::new(Nothing), vec![mapping(0x1000, 0x4000, 1.0)], &[]);
    let copy = || Heap {
        caches: vec![Cache {
            refills: 5,
            ..Cache::of("tenant-16", Kind::Heap, 16)
        }],
        threads: vec![Thread { number: 9 }],
        ..Heap::default()
    };
    let account = Account::take(7, &image, &[copy(), copy()], None);
    let refills: Vec<_> = account.caches.iter().map(|one| one.refills).collect();
    assert_eq!(refills, [10]);
    let numbers: Vec<_> = account.threads.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [9]);
}

/// Slots whose handles are used up are in no slab and in no magazine, and yet no objects.
#[test]
fn retired_slots_are_no_objects() {
    let image = Image::new(Box::new(Nothing), vec![mapping(0x1000, 0x4000, 1.0)], &[]);
    let slab = Slab {
        cache: 0,
        first: 0x1000,
        slots: 4,
        watermark: 4,
        free_count: 0,
        free: Box::default(),
    };
    let run = Run {
        range: 0x1000..0x2000,
        content: Content::Slab(slab),
    };
    let heap = Heap {
        caches: vec![Cache {
            retired: 1,
            ..Cache::of("names", Kind::Program, 16)
        }],
        areas: vec![Area {
            range: 0x1000..0x2000,
            runs: vec![run],
            kept: false,
        }],
        ..Heap::default()
    };
    let account = Account::take(7, &image, &[heap], None);
    assert_eq!(account.caches[0].live_objects, 3);
}

#[test]
fn an_area_of_two_libraries_counts_once() {
    let area = |range: Range<u64>| Area {
        range,
        runs: Vec::new(),
        kept: false,
    };
    let heap = |areas: &[Range<u64>]| Heap {
        areas: areas.iter().cloned().map(area).collect(),
        ..Heap::default()
    };
    let mut heaps = [
        heap(&[0x1000..0x3000, 0x5000..0x6000]),
        heap(&[0x2000..0x4000, 0x4000..0x5000, 0x5800..0x5900]),
    ];
    drop_shared(&mut heaps);
    assert_eq!(heaps[0].areas.len(), 2);
    assert_eq!(heaps[1].areas[0].range, 0x4000..0x5000);
    assert_eq!(heaps[1].areas.len(), 1);
    assert_eq!(heaps[1].problems.len(), 1);
    let maps = vec![mapping(0x1000, 0x8000, 1.0)];
    let image = Image::new(Box::new(Nothing), maps, &[0x1000..0x2000, 0x2000..0x6000]);
    let account = Account::take(7, &image, &heaps, None);
    assert_eq!(account.of(What::FreeUnits), 0x4000);
    assert_eq!(account.rss_bytes, 0x5000);
}

#[test]
fn metrics_have_a_type_a_unit_and_an_end() {
    let mut account: Account = serde_json::from_str(EMPTY).unwrap();
    account.program = "a \"b\"\\".into();
    let weight = Weight {
        bytes: 4096,
        shares: 2048.0,
    };
    account.resident.insert(What::Live, weight);
    account.resident.insert(What::FreeUnits, weight);
    let cache = |kind: &str, live_objects, held_bytes| CacheRow {
        name: "c".into(),
        kind: kind.into(),
        object_bytes: 16,
        live_objects,
        waiting_objects: 2,
        live_bytes: 160,
        held_bytes,
        refills: 3,
        ..CacheRow::default()
    };
    account.caches = vec![cache("malloc", 10, 65536), cache("heap", 20, 65536)];
    account.caches.push(CacheRow {
        refills: 0,
        ..cache("cache", 0, 0) // it was never used
    });
    account.threads = vec![ThreadRow {
        number: 9,
        name: "t".into(),
        state: 'S',
        waiting_objects: 2,
        waiting_bytes: 32,
    }];
    assert_eq!(metrics::open_metrics(&[account]), METRICS);
    // Each metric stands once with its labels.
    let mut names: Vec<_> = METRICS
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .collect();
    names.retain(|(name, _)| !name.starts_with('#'));
    let all = names.len();
    names.sort_unstable();
    names.dedup_by_key(|(name, _)| *name);
    assert_eq!(names.len(), all);
}

const EMPTY: &str = r#"{"pid": 7, "program": "", "libraries": [], "resident": {}, "rss_bytes": 0,
    "pss_bytes": 0, "system_rss_bytes": 4096, "system_pss_bytes": 0, "address_space_bytes": 9,
    "caches": [], "threads": [], "files": [], "problems": []}"#;

const METRICS: &str = r#"# TYPE slabyard_resident_bytes gauge
# UNIT slabyard_resident_bytes bytes
# HELP slabyard_resident_bytes Resident memory by what it is for; the sum is the RSS.
slabyard_resident_bytes{pid="7",program="a \"b\"\\",for="live"} 4096
slabyard_resident_bytes{pid="7",program="a \"b\"\\",for="free_units"} 4096
# TYPE slabyard_proportional_bytes gauge
# UNIT slabyard_proportional_bytes bytes
# HELP slabyard_proportional_bytes The same, where a page that n processes share counts as an n-th; the sum is the PSS.
slabyard_proportional_bytes{pid="7",program="a \"b\"\\",for="live"} 2048
slabyard_proportional_bytes{pid="7",program="a \"b\"\\",for="free_units"} 2048
# TYPE slabyard_residual_bytes gauge
# UNIT slabyard_residual_bytes bytes
# HELP slabyard_residual_bytes What the system counts directly after the account, less the account's sum.
slabyard_residual_bytes{pid="7",program="a \"b\"\\"} 4096
# TYPE slabyard_address_space_bytes gauge
# UNIT slabyard_address_space_bytes bytes
# HELP slabyard_address_space_bytes Address space for objects that holds no memory.
slabyard_address_space_bytes{pid="7",program="a \"b\"\\"} 9
# TYPE slabyard_cache_objects gauge
# HELP slabyard_cache_objects Objects of a cache or size class.
slabyard_cache_objects{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16",state="live"} 10
slabyard_cache_objects{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16",state="waiting"} 2
slabyard_cache_objects{pid="7",program="a \"b\"\\",cache="c",kind="heap",object_bytes="16",state="live"} 20
slabyard_cache_objects{pid="7",program="a \"b\"\\",cache="c",kind="heap",object_bytes="16",state="waiting"} 2
# TYPE slabyard_cache_resident_bytes gauge
# UNIT slabyard_cache_resident_bytes bytes
# HELP slabyard_cache_resident_bytes Resident memory of the slabs of a cache or size class.
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16",state="live"} 160
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16",state="waiting"} 0
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16",state="free"} 0
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="heap",object_bytes="16",state="live"} 160
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="heap",object_bytes="16",state="waiting"} 0
slabyard_cache_resident_bytes{pid="7",program="a \"b\"\\",cache="c",kind="heap",object_bytes="16",state="free"} 0
# TYPE slabyard_cache_refills counter
# HELP slabyard_cache_refills Magazines that were filled from slabs.
slabyard_cache_refills_total{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16"} 3
# TYPE slabyard_cache_flushes counter
# HELP slabyard_cache_flushes Magazines that were emptied into slabs.
slabyard_cache_flushes_total{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16"} 0
# TYPE slabyard_cache_limits_hit counter
# HELP slabyard_cache_limits_hit Allocations that were refused because of a limit.
slabyard_cache_limits_hit_total{pid="7",program="a \"b\"\\",cache="c",kind="malloc",object_bytes="16"} 0
# TYPE slabyard_thread_waiting_bytes gauge
# UNIT slabyard_thread_waiting_bytes bytes
# HELP slabyard_thread_waiting_bytes Resident memory of free objects in the magazines of a thread.
slabyard_thread_waiting_bytes{pid="7",program="a \"b\"\\",thread="9",name="t"} 32
# EOF
"#;

struct Nothing;

impl Source for Nothing {
    fn read(&self, _: u64, into: &mut [u8]) -> bool {
        into.fill(7);
        true
    }
}

fn mapping(start: u64, end: u64, share: f64) -> Mapping {
    Mapping {
        range: start..end,
        name: String::new(),
        offset: 0,
        writable: true,
        share,
    }
}

#[test]
fn resident_bytes_add_up_in_any_division() {
    let mappings = [mapping(0x1000, 0x4000, 0.5), mapping(0x4000, 0x8000, 1.0)];
    let image = Image::new(
        Box::new(Nothing),
        mappings.to_vec(),
        &[0x2000..0x5000, 0x7000..0x9000],
    );
    let resident: &Resident = &image.resident;
    let all = Weight {
        bytes: 0x5000,
        shares: 0x4000 as f64,
    };
    assert_eq!(resident.all(), all);
    for cut in [0, 0x1000, 0x2345, 0x4000, 0x5001, 0x7fff, 0x9000, u64::MAX] {
        let mut sum = resident.between(0..cut);
        sum += resident.between(cut..u64::MAX);
        assert_eq!(sum, all, "{cut:#x}");
    }
    assert_eq!(resident.within(0x3000..0x8000).count(), 3);
    // Pages that are not resident are not read, and those outside of mappings cannot be.
    assert_eq!(image.word(0x2000), Ok(0x0707_0707_0707_0707));
    assert_eq!(image.word(0x1000), Ok(0));
    assert!(image.word(0x20_0000).is_err());
    assert!(image.word(u64::MAX - 3).is_err());
    assert!(image.bytes(0x2000, u64::MAX).is_err());
}
