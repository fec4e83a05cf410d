//! Tests of the formats: each is read back by another reader than the code that wrote it, where there
//! is one.

use super::super::data::{Frame, Measure, Profile, Stack};
use super::*;
use flate2::read::GzDecoder;
use prost::Message;
use std::io::Read;

fn example() -> Profile {
    let measure = |name, unit| Measure {
        name,
        unit,
        title: "in use",
    };
    let line = |function: &str, line| Frame {
        function: function.into(),
        file: "/src/main.c".into(),
        line,
        module: "/bin/program".into(),
    };
    Profile {
        title: "program".into(),
        measures: vec![measure("bytes", "bytes"), measure("objects", "count")],
        frames: vec![line("main", 3), line("fill", 7), Frame::named("a;b<int>")],
        stacks: vec![
            Stack {
                frames: vec![0, 1],
                values: vec![4096, 2],
            },
            Stack {
                frames: vec![0, 2],
                values: vec![100, 1],
            },
        ],
        is_difference: false,
    }
}

#[test]
fn folded_stacks_have_a_line_each() {
    assert_eq!(
        folded::render(&example(), 0),
        "main;a:b<int> 100\nmain;fill 4096\n"
    );
}

#[test]
fn pprof_has_all_measures_and_stacks_from_the_inside() {
    let bytes = pprof::render(&example(), 1).unwrap();
    let mut message = Vec::new();
    GzDecoder::new(&bytes[..])
        .read_to_end(&mut message)
        .unwrap();
    let file = pprof::File::decode(&message[..]).unwrap();
    let text = |at: i64| file.string_table[at as usize].as_str();
    let kinds: Vec<_> = file.sample_type.iter().map(|one| text(one.kind)).collect();
    assert_eq!(kinds, ["bytes", "objects"]);
    assert_eq!(text(file.default_sample_type), "objects");
    assert_eq!(file.sample[0].value, [4096, 2]);
    let names = file.sample[0].location_id.iter().map(|&id| {
        let location = file.location.iter().find(|one| one.id == id).unwrap();
        let line = &location.line[0];
        let function = file.function.iter().find(|one| one.id == line.function_id);
        (text(function.unwrap().name), line.line)
    });
    assert_eq!(names.collect::<Vec<_>>(), [("fill", 7), ("main", 3)]);
    assert_eq!(file.string_table[0], "");
}

#[test]
fn speedscope_has_the_fields_of_its_format() {
    let bytes = speedscope::render(&example(), 0).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        file["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert_eq!(
        frames[1],
        serde_json::json!({"name": "fill", "file": "/src/main.c", "line": 7})
    );
    assert_eq!(frames[2], serde_json::json!({"name": "a;b<int>"}));
    let one = &file["profiles"][0];
    assert_eq!(
        (one["type"].as_str(), one["unit"].as_str()),
        (Some("sampled"), Some("bytes"))
    );
    let samples = one["samples"].as_array().unwrap();
    let weights = one["weights"].as_array().unwrap();
    assert_eq!((samples.len(), weights.len()), (2, 2));
    for index in samples.iter().flat_map(|sample| sample.as_array().unwrap()) {
        assert!(index.as_u64().unwrap() < frames.len() as u64);
    }
    let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
    assert_eq!(
        (one["startValue"].as_i64(), one["endValue"].as_i64()),
        (Some(0), Some(sum))
    );
}

#[test]
fn flame_graphs_have_each_function() {
    let svg = String::from_utf8(flame::render(&example(), 0).unwrap()).unwrap();
    let tree = roxmltree::Document::parse_with_options(
        &svg,
        roxmltree::ParsingOptions {
            allow_dtd: true,
            ..Default::default()
        },
    );
    let tree = tree.unwrap();
    let titles: Vec<_> = tree
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")))
        .filter_map(|node| node.text())
        .collect();
    for name in [
        "main (4,196 bytes, 100.00%)",
        "fill (4,096 bytes",
        "a:b<int> (100 bytes",
    ] {
        assert!(
            titles.iter().any(|title| title.contains(name)),
            "{titles:?}"
        );
    }
}

#[test]
fn what_a_format_cannot_show_is_said() {
    let mut profile = example();
    profile.stacks[1].values[0] = -100;
    profile.is_difference = true;
    let said = speedscope::render(&profile, 0).unwrap_err().to_string();
    assert!(said.contains("below 0"), "{said}");
    let svg = String::from_utf8(flame::render(&profile, 0).unwrap()).unwrap();
    assert!(svg.contains("program: +3.9 KiB in use"), "{svg}");
    assert!(
        svg.contains("a:b&lt;int&gt; (100 bytes"),
        "what shrank is drawn too: {svg}"
    );
    profile.stacks.clear();
    assert!(flame::render(&profile, 0).is_err());
}

#[test]
fn the_table_names_the_function_that_called_operator_new() {
    let mut profile = example();
    profile
        .frames
        .push(Frame::named("operator new(unsigned long)"));
    profile.frames.push(Frame {
        file: "/rustc/0123/library/alloc/src/vec/mod.rs".into(),
        ..Frame::named("grow_one<u64>")
    });
    profile.stacks[0].frames.extend([4, 3]);
    let text = text::render(&profile, 0, 1);
    assert!(
        text.contains("4.0 KiB (97.6%)\n    fill at main.c:7\n    main at main.c:3\n"),
        "{text}"
    );
    assert!(text.ends_with("100 B in 1 other place\n"), "{text}");
}

#[test]
fn the_table_shows_the_functions_of_interpreted_languages_alone() {
    let mut profile = example();
    let python = Frame {
        file: "/src/run.py".into(),
        ..Frame::named("py::load")
    };
    let cpp = Frame {
        module: "/bin/browser".into(),
        ..Frame::named("JS::Compile")
    };
    profile
        .frames
        .extend([python, Frame::named("PyEval_EvalFrame"), cpp]);
    profile.stacks[0].frames = vec![0, 4, 3, 4, 5, 1];
    let text = text::render(&profile, 0, 1);
    assert!(
        text.contains("(97.6%)\n    py::load at run.py\n\n"),
        "{text}"
    );
    assert!(folded::render(&profile, 0).contains("main;PyEval_EvalFrame;py::load;PyEval"));
}

#[test]
fn a_name_asks_for_its_format() {
    let of = |name: &str| Format::of(Path::new(name));
    assert_eq!(of("peak.pb.gz"), Some(Format::Pprof));
    assert_eq!(of("peak.SVG"), Some(Format::Flame));
    assert_eq!(of("peak.json"), Some(Format::Speedscope));
    assert_eq!(of("peak.json.gz"), Some(Format::Firefox));
    assert_eq!(of("peak"), None);
}

/// A file of the Firefox profiler.
fn of_firefox(profile: &Profile, measure: usize) -> serde_json::Value {
    let bytes = firefox::render(profile, measure).unwrap();
    serde_json::from_reader(GzDecoder::new(&bytes[..])).unwrap()
}

/// A column of a table, which has as many entries as the table says.
fn column(table: &serde_json::Value, name: &str) -> Vec<Option<i64>> {
    let column = table[name].as_array().unwrap().iter();
    let column: Vec<_> = column.map(serde_json::Value::as_i64).collect();
    assert_eq!(
        Some(column.len() as u64),
        table["length"].as_u64(),
        "{name}"
    );
    column
}

/// The stacks of a thread as folded lines, with their weights. Indices lie in their tables, and the
/// caller of a stack before it, as the format demands.
fn folded_of_firefox(thread: &serde_json::Value) -> Vec<(String, i64)> {
    let texts = thread["stringArray"].as_array().unwrap();
    let names = column(&thread["funcTable"], "name");
    let functions = column(&thread["frameTable"], "func");
    let frames = column(&thread["stackTable"], "frame");
    let callers = column(&thread["stackTable"], "prefix");
    let mut lines: Vec<String> = Vec::new();
    for (frame, caller) in frames.into_iter().zip(callers) {
        let function = functions[frame.unwrap() as usize].unwrap();
        let name = texts[names[function as usize].unwrap() as usize]
            .as_str()
            .unwrap();
        lines.push(match caller {
            Some(caller) => format!("{};{name}", lines[caller as usize]),
            None => name.to_string(),
        });
    }
    let samples = &thread["samples"];
    let stacks = column(samples, "stack").into_iter();
    let weights = column(samples, "weight").into_iter();
    let both = stacks.zip(weights);
    both.map(|(stack, weight)| (lines[stack.unwrap() as usize].clone(), weight.unwrap()))
        .collect()
}

#[test]
fn the_firefox_profiler_gets_each_stack_with_its_weight() {
    let file = of_firefox(&example(), 0);
    // What the profiler does not know it takes for another format.
    assert_eq!(
        file["meta"]["preprocessedProfileVersion"].as_u64(),
        Some(55)
    );
    assert_eq!(file["meta"]["product"], "program: in use");
    assert_eq!(file["threads"].as_array().unwrap().len(), 1);
    let thread = &file["threads"][0];
    assert_eq!(thread["samples"]["weightType"], "bytes");
    let wanted = [
        ("main at main.c:3;fill at main.c:7".to_string(), 4096),
        ("main at main.c:3;a;b<int>".to_string(), 100),
    ];
    assert_eq!(folded_of_firefox(thread), wanted);
    let objects = of_firefox(&example(), 1);
    assert_eq!(objects["threads"][0]["samples"]["weightType"], "samples");
}

#[test]
fn the_firefox_profiler_gets_large_weights_and_differences() {
    let mut profile = example();
    let large = 5_000_000_000_000;
    profile.stacks[0].values[0] = large;
    profile.stacks[1].values[0] = -100 - i64::from(i32::MAX);
    profile.is_difference = true;
    let stacks = folded_of_firefox(&of_firefox(&profile, 0)["threads"][0]);
    let sum_of = |end: &str| {
        let of = stacks.iter().filter(|(stack, _)| stack.ends_with(end));
        of.map(|(_, weight)| weight).sum::<i64>()
    };
    assert_eq!(sum_of("fill at main.c:7"), large);
    assert_eq!(sum_of("a;b<int>"), -100 - i64::from(i32::MAX));
    let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
    assert!(stacks.iter().all(|(_, weight)| range.contains(weight)));
}

/// Each stack alone would have room.
#[test]
fn the_firefox_profiler_has_room_for_some_terabytes_in_all() {
    let mut profile = example();
    for weight in [40_000 * i64::from(i32::MAX), i64::MAX, i64::MIN] {
        profile.stacks[0].values[0] = weight;
        profile.stacks[1].values[0] = weight;
        let said = firefox::render(&profile, 0).unwrap_err().to_string();
        assert!(
            said.contains("no room for ") && said.ends_with(" bytes"),
            "{said}"
        );
    }
}
