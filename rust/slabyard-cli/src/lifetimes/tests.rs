//! Tests of lifetimes: which objects keep a page, and what the command says about it.

use super::*;
use crate::recording::tests::{at, free, malloc, recording_of, Sketch};
use crate::recording::{Operation, Record};

fn process(pid: u32, records: Vec<Record>) -> Sketch {
    Sketch {
        pid,
        blocks: vec![(0, records)],
        ..Sketch::default()
    }
}

fn one(records: Vec<Record>) -> Recording {
    recording_of(&[process(100, records)])
}

fn answer_of(records: Vec<Record>) -> Answer {
    answer(&one(records)).expect("there are lifetimes")
}

const OBJECTS: u64 = 6400;
const ON_A_PAGE: u64 = 64;
const SESSIONS: u64 = OBJECTS / ON_A_PAGE;

fn address(object: u64) -> u64 {
    0x10_0000 + object * 64
}

/// 6,400 objects of 64 bytes, which fill 100 pages. At 10,000 all of them but one on each page are
/// freed; those end at 100,000.
fn sessions_among_requests() -> Vec<Record> {
    let is_session = |object: &u64| object % ON_A_PAGE == 7;
    let all = 0..OBJECTS;
    let mut records: Vec<_> = all.clone().map(|o| malloc(o, address(o), 64)).collect();
    let requests = all.clone().filter(|o| !is_session(o));
    records.extend(requests.map(|o| free(10_000, address(o))));
    records.extend(all.filter(is_session).map(|o| free(100_000, address(o))));
    records
}

#[test]
fn slots_are_those_of_the_heap() {
    let sizes = [0, 1, 16, 17, 128, 129, 256, 257, 1000, 4095, 4096];
    let slots = [16, 16, 16, 32, 128, 144, 256, 288, 1024, 4096, 4096];
    assert_eq!(sizes.map(slabs::slot_size), slots);
}

#[test]
fn a_long_lived_object_keeps_its_page() {
    let answer = answer_of(sessions_among_requests());
    let page = slabs::PAGE as f64;
    assert_eq!(answer.together.peak(), 100.0 * page);
    // 90,000 of 100,000 ticks with 100 sessions: on 100 pages, or on 2.
    assert!((answer.together.mean() / page - 97.0).abs() < 1.0);
    assert!((answer.apart.mean() / page - 8.5).abs() < 1.0);
    assert_eq!((answer.objects, answer.long), (OBJECTS, SESSIONS));
    let (most, when) = answer.together.most_more_than(&answer.apart);
    assert_eq!(most, 98.0 * page);
    assert!((0.1..0.12).contains(&when), "{when}");
    let size = &answer.sizes[0];
    assert_eq!(
        (size.slot, size.objects, size.long),
        (64, OBJECTS, SESSIONS)
    );
    assert_eq!(size.together, answer.together.mean());
}

#[test]
fn the_text_says_what_would_be_free() {
    let text = render(&one(sessions_among_requests()));
    let wanted =
        "Keeping long-lived objects apart would free about 91 % of these pages: 392 KiB at \
         one time\n(10 % of the run was over). 100 of 6,400 objects live for";
    assert!(text.contains(wanted), "{text}");
    let row = format!(
        "{:>12}{:>14}{:>13}{:>11}",
        "64 B", "6,400", "100", "387 KiB"
    );
    assert!(text.contains(&row), "{text}");
    assert!(text.contains("the process is program."), "{text}");
}

#[test]
fn objects_with_one_lifetime_cost_nothing() {
    let all = 0..OBJECTS;
    let mut records: Vec<_> = all.clone().map(|o| malloc(o, address(o), 64)).collect();
    records.extend(all.map(|o| free(100_000 + o, address(o))));
    let text = render(&one(records));
    let wanted = "keeping long-lived objects apart would free\nabout 0 % of these pages.";
    assert!(text.contains(wanted), "{text}");
    assert!(!text.contains("size up to"), "{text}");
}

#[test]
fn a_run_without_time_gains_nothing() {
    let records = vec![
        malloc(1, 0x1000, 16),
        free(1, 0x1000),
        malloc(9, 0x1000, 16),
    ];
    assert_eq!(answer_of(records).gain(), 0.0);
}

#[test]
fn an_object_across_two_pages_keeps_both() {
    let across = slabs::PAGE as u64 / 48;
    let mut records: Vec<_> = (0..=across).map(|o| malloc(0, address(o), 48)).collect();
    records.extend((0..across).map(|o| free(1, address(o))));
    records.push(free(1001, address(across)));
    let answer = answer_of(records);
    assert_eq!(answer.together.mean(), 2.0 * slabs::PAGE as f64);
}

/// Of two slabs, one has 24 objects on its second page, the other lacks its last object. The next
/// object goes to the second one, where it needs no other page.
#[test]
fn the_fullest_slab_is_taken_first() {
    let in_slab = 1024;
    let stays = |o: &u64| (64..88).contains(o) || (in_slab..2 * in_slab - 1).contains(o);
    let all = 0..2 * in_slab;
    let mut records: Vec<_> = all.clone().map(|o| malloc(0, address(o), 64)).collect();
    let freed = all.clone().filter(|o| !stays(o));
    records.extend(freed.map(|o| free(1, address(o))));
    records.push(malloc(1, address(0), 64));
    records.extend(all.filter(stays).map(|o| free(1_000_001, address(o))));
    let pages = answer_of(records).together.mean() / slabs::PAGE as f64;
    assert!((pages - 17.0).abs() < 0.01, "{pages}");
}

#[test]
fn without_lifetimes_there_is_no_answer() {
    let large = vec![malloc(5, 0x1000, SIZE_MOST + 1), free(9, 0x1000)];
    for recording in [
        recording_of(&[]),
        one(vec![]),
        one(vec![malloc(5, 0x1000, 16)]),
        one(large),
    ] {
        assert!(render(&recording).starts_with("No process has objects"));
    }
}

#[test]
fn a_realloc_ends_a_life_and_begins_one() {
    let realloc = Operation::Realloc {
        old: 0x1000,
        new: 0x2000,
        took: 10,
        size: 100,
    };
    let lives = {
        let recording = one(vec![
            malloc(0, 0x1000, 16),
            at(100, realloc),
            free(400, 0x2000),
        ]);
        Lives::of(&recording, &recording.processes[0])
    };
    let seen: Vec<_> = lives.objects.iter().map(|o| (o.slot, o.lifetime)).collect();
    assert_eq!(seen, [(16, 100), (112, 290)]);
}

#[test]
fn impossible_records_are_left_out() {
    let records = vec![
        free(1, 0x5000),
        malloc(2, 0x1000, 16),
        malloc(12, 0x1000, 32),
        free(30, 0x1000),
        free(40, 0x1000),
    ];
    let recording = one(records);
    let lives = Lives::of(&recording, &recording.processes[0]);
    let seen: Vec<_> = lives.objects.iter().map(|o| (o.slot, o.lifetime)).collect();
    assert_eq!(seen, [(16, 10), (32, 18)]);
}

#[test]
fn stamps_that_go_back_count_as_the_latest() {
    let back = Sketch {
        blocks: vec![
            (0, vec![malloc(50, 0x1000, 16)]),
            (0, vec![free(20, 0x1000), malloc(70, 0x2000, 16)]),
        ],
        ..Sketch::default()
    };
    let recording = recording_of(&[back]);
    let lives = Lives::of(&recording, &recording.processes[0]);
    assert_eq!(lives.objects[0].lifetime, 0);
    assert_eq!(lives.span(), 20);
}

#[test]
fn threads_are_merged_and_the_largest_process_is_taken() {
    let threads = Sketch {
        blocks: vec![
            (0, vec![malloc(10, 0x1000, 16), malloc(30, 0x2000, 16)]),
            (1, vec![free(20, 0x1000), free(90, 0x2000)]),
        ],
        ..Sketch::default()
    };
    let small = process(7, vec![malloc(0, 0x1000, 16), free(9, 0x1000)]);
    let answer = answer(&recording_of(&[small, threads])).unwrap();
    assert_eq!(answer.objects, 2);
    assert_eq!(answer.together.live_peak(), 16.0);
    assert_eq!(answer.together.live_mean(), 16.0 * 70.0 / 80.0);
}
