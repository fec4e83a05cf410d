//! Tests of weights and names: on recordings made by hand, whose figures are known.

use super::weigh::{Figures, Weights};
use super::*;
use crate::recording::tests::{free, malloc, recording_of, Sketch};

fn weights_of(blocks: Vec<(u32, Vec<crate::recording::Record>)>) -> Weights {
    let sketch = Sketch {
        blocks,
        ..Sketch::default()
    };
    let recording = recording_of(&[sketch]);
    Weights::of(&recording, &recording.processes[0])
}

#[test]
fn objects_are_counted_where_they_were_at_the_peak_and_at_exit() {
    let weights = weights_of(vec![(
        0,
        vec![
            malloc(1, 0x1000, 100),
            malloc(2, 0x2000, 50),
            free(3, 0x2000),
            malloc(4, 0x3000, 30),
            free(9, 0x1000),
        ],
    )]);
    let wanted = Figures {
        allocations: 3,
        bytes: 180,
        temporary: 1,
        temporary_bytes: 50,
        live: 1,
        live_bytes: 30,
        peak: 2,
        peak_bytes: 150,
        freed: 2,
        lifetimes: 9,
        longest: 8,
    };
    assert_eq!(weights.all, wanted);
    let at_peak = |size| {
        (
            weights.sizes[&size].peak_bytes,
            weights.sizes[&size].live_bytes,
        )
    };
    assert_eq!(
        (at_peak(100), at_peak(50), at_peak(30)),
        ((100, 0), (50, 0), (0, 30))
    );
}

#[test]
fn an_object_that_another_thread_frees_is_not_temporary() {
    let weights = weights_of(vec![
        (0, vec![malloc(1, 0x1000, 10), malloc(5, 0x4000, 20)]),
        (1, vec![free(3, 0x1000)]),
    ]);
    assert_eq!((weights.all.temporary, weights.all.freed), (0, 1));
    assert_eq!(weights.threads[&0].allocations, 2);
}

#[test]
fn a_difference_has_the_stacks_of_both() {
    let profile = |stacks: &[(&[u32], i64)], names: &[&str]| Profile {
        title: "program".into(),
        measures: vec![MEASURES[0]],
        frames: names.iter().map(|name| data::Frame::named(name)).collect(),
        stacks: stacks
            .iter()
            .map(|&(frames, value)| Stack {
                frames: frames.to_vec(),
                values: vec![value],
            })
            .collect(),
        is_difference: false,
    };
    let before = profile(&[(&[0, 1], 100), (&[0, 2], 5)], &["main", "fill", "gone"]);
    let after = profile(&[(&[1, 0], 130), (&[1, 2], 7)], &["fill", "main", "new"]);
    let changed = after.minus(&before);
    assert_eq!(changed.total(0), 32);
    let lines = formats::folded::render(&changed, 0);
    assert_eq!(lines, "main;fill 30\nmain;gone -5\nmain;new 7\n");
}

#[test]
fn growth_is_told_in_parts_of_the_run() {
    let records = vec![
        malloc(10, 0x1000, 100),
        malloc(20, 0x2000, 50),
        free(30, 0x2000),
        malloc(60, 0x3000, 30),
        free(99, 0x1000),
    ];
    let sketch = Sketch {
        birth: 0,
        blocks: vec![(0, records)],
        ..Sketch::default()
    };
    let recording = recording_of(&[sketch]);
    let parts = growth::parts(&recording, &recording.processes[0], 4, 100);
    let figures: Vec<_> = parts
        .iter()
        .map(|one| (one.end, one.allocations, one.live, one.live_bytes, one.most))
        .collect();
    let wanted = [
        (25, 2, 2, 150, 150),
        (50, 0, 1, 100, 150),
        (75, 1, 2, 130, 130),
        (100, 0, 1, 30, 130),
    ];
    assert_eq!(figures, wanted);
}

#[test]
fn recordings_without_stacks_are_refused_with_the_command_that_records_them() {
    let sketch = Sketch {
        blocks: vec![(0, vec![malloc(1, 0x1000, 8)])],
        ..Sketch::default()
    };
    let recording = recording_of(&[sketch]);
    let said = of_recording(&recording, None).unwrap_err().to_string();
    assert!(said.contains("slabyard record --stacks"), "{said}");
    let said = of_recording(&recording, Some(7)).unwrap_err().to_string();
    assert!(said.contains("no process 7; there are 100"), "{said}");
}

#[test]
fn code_made_at_run_time_has_the_names_of_the_map_and_files_have_theirs() {
    let module = |start: u64, path: &str| crate::recording::Module {
        start,
        end: start + 0x1000,
        path: path.into(),
        ..Default::default()
    };
    let node = |caller, address| crate::recording::Node { caller, address };
    let mut process = Process {
        modules: vec![module(0x1000, "/no/such/file"), module(0x3000, "")],
        stacks: vec![
            node(0, 0x1011),
            node(1, 0x3011),
            node(2, 0x3021),
            node(3, 0x3031),
        ],
        ..Process::default()
    };
    process.made.add("py::run:/src/a:b.py".into(), [0x3010]);
    process.made.add("LazyCompile:~sum x.js:1".into(), [0x3020]);
    process.made.add("of a file".into(), [0x1010]);
    let mut names = Names::of_recording(&process);
    let frames = names.of(4);
    let of = |at: usize| &names.frames[frames[at] as usize];
    assert_eq!(of(0).function, "file+0x1010");
    assert_eq!(
        (of(1).function.as_str(), of(1).file.as_str()),
        ("py::run", "/src/a:b.py")
    );
    assert_eq!(of(2).function, "LazyCompile:~sum x.js:1");
    assert_eq!(of(3).function, "[code made at run time]+0x3030");
}
