//! Tests of reports: the page is well-formed whatever the program is called, and shows the right
//! figures.

use super::*;
use crate::plan::{HotSize, SizeClass};
use crate::real::{self, Kind, Ratio};
use crate::replay::foretell::OnGlibc;
use crate::replay::measure::{rank, Figure, Latency};

fn measured(name: &str, ns: f64) -> Measured {
    let all = Latency {
        calls: 1111,
        p50: ns,
        p99: ns * 2.0,
        p999: ns * 3.0,
        p9999: ns * 40.0,
        histogram: vec![(ns, 1000), (ns * 2.0, 100), (ns * 9.0, 10), (ns * 90.0, 1)],
        ..Latency::default()
    };
    Measured {
        name: name.to_string(),
        version: "1 <beta>".to_string(),
        ns_per_op: Figure::of(vec![ns, ns + 1.0, ns - 1.0]),
        allocate: all.clone(),
        all,
        peak_resident: Figure::of(vec![ns * 1e6]),
        final_resident: Figure::of(vec![ns * 1e5]),
        resident: vec![(0, 0), (500, 1_000_000), (999, 5)],
        ..Measured::default()
    }
}

fn report() -> Report {
    let mut report = Report {
        command: "/opt/a<b>/prog\u{1} --title \"x & y\" 'z'".to_string(),
        program: "<script>prog</script>".to_string(),
        ..Report::default()
    };
    report.summary.operations = 1000;
    report.summary.payload = vec![(0, 0), (400, 900_000), (1000, 3)];
    report.summary.resident = vec![(100, 200_000), (600, 1_200_000)];
    report.summary.size_classes = vec![
        SizeClass {
            up_to: 8,
            count: 0,
            bytes: 0,
        },
        SizeClass {
            up_to: 16,
            count: 10,
            bytes: 100,
        },
    ];
    report.measurement.repeats = 3;
    report.summary.mallocs = 400;
    report.summary.hot = [(48, 200), (16, 60), (100, 40)]
        .map(|(size, count)| HotSize { size, count })
        .to_vec();
    report.measurement.allocators = vec![measured("slow", 30.0), measured("quick", 10.0)];
    rank(&mut report.measurement.allocators);
    report
}

/// Compares a text with a snapshot file; with SNAPSHOTS=write, writes the file instead.
fn same_as(file: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/report")
        .join(file);
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{file}: SNAPSHOTS=write takes the new one");
}

/// Parses the page, which must be well-formed.
fn parsed(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(page, options);
    document.unwrap_or_else(|error| panic!("{error}\n{page}"))
}

/// The text on the page, with a line for each piece.
fn words_of(page: &str) -> String {
    let document = parsed(page);
    let texts = document.descendants().filter(|node| {
        node.is_text()
            && !node
                .parent()
                .is_some_and(|parent| parent.has_tag_name("style"))
    });
    let lines = texts.filter_map(|node| {
        let words: Vec<&str> = node.text()?.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" ") + "\n")
    });
    lines.collect()
}

/// The text in one line, without line breaks.
fn unbroken(text: &str) -> String {
    text.replace('\n', " ")
}

#[track_caller]
fn says(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in:\n{text}");
}

#[track_caller]
fn says_not(text: &str, words: &str) {
    assert!(!text.contains(words), "{words:?} is in:\n{text}");
}

/// The row of the table that begins with `name`.
fn row<'a>(table: &'a str, name: &str) -> &'a str {
    let found = table.lines().find(|line| line.starts_with(name));
    found.unwrap_or_else(|| panic!("no row of {name}:\n{table}"))
}

/// The cells of that row, separated by blanks.
fn cells<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    row(table, name).split_whitespace().collect()
}

/// Checks that no name occurs twice.
#[track_caller]
fn all_differ(mut names: Vec<&str>) {
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// A report on two allocators whose times cannot be told apart.
fn with_a_tie() -> Report {
    let mut report = report();
    report.measurement.allocators[0] = Measured {
        ns_per_op: Figure::of(vec![11.2, 9.1, 10.2]),
        ..measured("like", 10.2)
    };
    report
}

#[test]
fn the_table_and_the_page_say_the_same_as_before() {
    let mut report = report();
    report.python = true;
    same_as("table.snapshot", &table::render(&report));
    same_as("page.snapshot", &words_of(&html::render(&report)));
}

#[test]
fn columns_have_names_of_their_own() {
    let text = table::render(&report());
    let heads: Vec<&str> = row(&text, "allocator").split("  ").map(str::trim).collect();
    let page = html::render(&report());
    let table = page.split("<table>").nth(1).unwrap();
    let row = table.split("</tr>").next().unwrap().replace("<br/>", " ");
    let of_page = row
        .split("<th scope=\"col\">")
        .skip(1)
        .map(|head| head.trim_end_matches("</th>"));
    for mut names in [heads, of_page.collect()] {
        names.retain(|name| !name.is_empty());
        assert!(names.len() >= 11, "{names:?}");
        all_differ(names);
    }
}

/// Whether the report contains a text in the table, on the page and in JSON.
fn told_everywhere(report: &Report, what: &str) -> bool {
    let json = serde_json::to_value(report.figures()).unwrap();
    let caveats = json["caveats"].as_array().unwrap();
    let told = [
        table::render(report).replace('\n', " ").contains(what),
        html::render(report).contains(what),
        caveats
            .iter()
            .any(|one| one.as_str().unwrap().contains(what)),
    ];
    assert!(told.iter().all(|&one| one == told[0]), "{told:?}");
    told[0]
}

#[test]
fn programs_whose_own_work_decides_are_called_so() {
    let mut report = report();
    report.summary.operations = ENOUGH_OPERATIONS;
    let (threads, objects) = ("several threads", "many small objects");
    report.summary.replay_threads = 3;
    (report.summary.threads, report.summary.processes) = (2, 2);
    assert!(!told_everywhere(&report, threads) && !told_everywhere(&report, objects));
    report.summary.threads = 3;
    assert!(told_everywhere(&report, threads));
    (report.summary.peak_payload, report.summary.peak_objects) = (4 << 20, 40_000);
    assert!(told_everywhere(&report, objects));
    report.summary.peak_objects = 4_000;
    assert!(!told_everywhere(&report, objects), "they are large");
    (report.summary.peak_payload, report.summary.peak_objects) = (1 << 20, 40_000);
    assert!(!told_everywhere(&report, objects), "the caches hold them");
}

#[test]
fn small_recordings_are_called_so_and_large_ones_not() {
    let mut report = report();
    let small = report.caveats().join(" ");
    says(&small, "1,000 operations are too few");
    says(&small, "1,000,000 or more are enough");
    says(&table::render(&report), "This recording is small");
    says(&html::render(&report), "This recording is small");
    report.summary.operations = ENOUGH_OPERATIONS;
    assert_eq!(report.caveats(), [""; 0]);
    report.python = true;
    says(&report.caveats()[0], "PYTHONMALLOC=malloc");
}

#[test]
fn programs_names_are_text_on_the_page() {
    let page = html::render(&report());
    says_not(&page, "<script");
    says_not(&page, "a<b>");
    says(&page, "What &lt;script&gt;prog&lt;/script&gt; costs");
    let mut report = report();
    report.command = "prog \u{1b}[2J\r\n".to_string();
    says(&table::render(&report), "prog ?[2J??");
}

/// The numbers in the style sheet that follow `what`.
fn pixels(style: &str, what: &str) -> Vec<f64> {
    let found = style.match_indices(what).map(|(at, _)| {
        let number = style[at + what.len()..].trim_start();
        let end = number.find("px").unwrap();
        number[..end].parse().unwrap()
    });
    found.collect()
}

/// On a phone of 360 px, a picture has the width `min-width` and scrolls. Its letters shrink with
/// it.
#[test]
fn the_page_is_readable_on_a_phone() {
    const LEAST: f64 = 11.0;
    let page = html::render(&report());
    says(
        &page,
        "<meta name=\"viewport\" content=\"width=device-width",
    );
    let style = include_str!("page.css");
    let pictures = style.lines().filter(|line| line.starts_with("svg "));
    let pictures: String = pictures.collect::<Vec<_>>().join("\n");
    let (wide, letters) = (
        pixels(&pictures, "min-width:")[0],
        pixels(&pictures, "font-size:"),
    );
    assert!(letters.len() >= 4);
    let document_width = page
        .split("viewBox=\"0 0 ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    for size in letters {
        let shown = size * wide / document_width.unwrap();
        assert!(
            shown >= LEAST,
            "{size} px in a picture are {shown:.1} on a phone"
        );
    }
    let others: String = style.replace(&pictures, "");
    assert!(pixels(&others, "font-size:")
        .into_iter()
        .all(|size| size >= LEAST));
    assert_eq!(
        page.matches("<div class=\"scroll\">\n<svg").count(),
        page.matches("<svg").count()
    );
}

/// The colours of a scheme in the style sheet: scheme 0 is for a light background, 1 for a dark
/// one.
fn palette(scheme: usize) -> std::collections::BTreeMap<String, [f64; 3]> {
    let style = include_str!("page.css");
    let block = style.split(":root {").nth(1 + scheme).unwrap();
    let block = block.split('}').next().unwrap();
    let colours = block.split(';').filter_map(|one| {
        let (name, colour) = one.trim().strip_prefix("--")?.split_once(": #")?;
        let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
        let parts = [0, 2, 4].map(|at| f64::from(part(at)) / 255.0);
        Some((name.to_string(), parts))
    });
    colours.collect()
}

/// The contrast of two colours by the Web Content Accessibility Guidelines: 1 for equal ones, 21
/// for black and white.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let light = |colour: [f64; 3]| {
        let [red, green, blue] = colour.map(|part| match part {
            dark if dark <= 0.04045 => dark / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
    };
    (light(a) / light(b)).max(light(b) / light(a))
}

#[test]
fn every_label_can_be_read_on_what_it_stands_on() {
    const LEAST: f64 = 4.5;
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    let mut unreadable = Vec::new();
    for scheme in [0, 1] {
        let palette = palette(scheme);
        let not_text = [
            "paper", "card", "faint", "rule", "payload", "count", "volume",
        ];
        let texts = palette
            .iter()
            .filter(|(name, _)| !not_text.contains(&name.as_str()));
        let mut pairs: Vec<_> = texts
            .flat_map(|(text, _)| [(text.as_str(), "card"), (text.as_str(), "paper")])
            .collect();
        assert!(pairs.len() >= 2 * 11, "{pairs:?}");
        pairs.push(("ink", "faint"));
        for (text, paper) in pairs {
            let seen = contrast(palette[text], palette[paper]);
            if seen < LEAST {
                unreadable.push(format!("{text} on {paper}, scheme {scheme}: {seen:.2}"));
            }
        }
    }
    assert!(unreadable.is_empty(), "{unreadable:#?}");
}

#[test]
fn tables_and_pictures_can_be_read_aloud() {
    let page = html::render(&report());
    let document = parsed(&page);
    let all = |name: &'static str| {
        let nodes = document.descendants();
        nodes.filter(move |node| node.tag_name().name() == name)
    };
    for table in all("table") {
        let first = table.first_element_child().unwrap();
        assert!(first.has_tag_name("caption") && first.text().is_some());
    }
    assert!(all("th").all(|head| matches!(head.attribute("scope"), Some("col" | "row"))));
    for row in all("tr") {
        assert!(row.first_element_child().unwrap().has_tag_name("th"));
    }
    assert_eq!((all("table").count(), all("svg").count()), (2, 4));
    let mut ids = Vec::new();
    for svg in all("svg") {
        let parts: Vec<_> = svg
            .children()
            .filter(|node| node.is_element())
            .take(2)
            .collect();
        for (part, name, by) in [
            (parts[0], "title", "aria-labelledby"),
            (parts[1], "desc", "aria-describedby"),
        ] {
            assert_eq!(part.tag_name().name(), name);
            assert!(part.text().is_some_and(|text| text.len() > 10));
            assert_eq!(part.attribute("id"), svg.attribute(by));
            ids.extend(part.attribute("id"));
        }
    }
    assert_eq!(ids.len(), 8);
    all_differ(ids);
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let page = html::render(&report());
    parsed(&page);
    for another in ["<script", "src=", "@import"] {
        says_not(&page, another);
    }
    let links: Vec<_> = page
        .match_indices("http")
        .map(|(at, _)| &page[at..at + 26])
        .collect();
    assert!(
        links
            .iter()
            .all(|link| link.starts_with("http://www.w3.org/2000/svg")),
        "{links:?}"
    );
    says(&page, "quick, the fastest");
    says(&page, "slabyard is sy_malloc, the general heap");
    says(
        &page,
        "48, 16 and 100 bytes. They serve 75 % of all allocations",
    );
}

#[test]
fn pages_of_odd_reports_are_well_formed_too() {
    parsed(&html::render(&Report::default()));
    let mut failing = report();
    failing.measurement.allocators[0].failure = Some("killed by <signal> 11".to_string());
    failing.damage = Some("damaged at byte 5: \"x\"".to_string());
    let page = html::render(&failing);
    parsed(&page);
    says(&page, "failed: killed by &lt;signal&gt; 11");
    for one in &mut failing.measurement.allocators {
        *one = Measured {
            name: one.name.clone(),
            ..Measured::default()
        };
    }
    parsed(&html::render(&failing));
}

#[test]
fn the_table_ranks_and_compares() {
    let text = table::render(&report());
    assert!(text.find("\nquick").unwrap() < text.find("\nslow").unwrap());
    let slow = cells(&text, "slow");
    assert_eq!(slow[..4], ["slow", "2", "30.0", "3.00"]);
    assert_eq!(slow[5], "to");
}

#[test]
fn memory_that_the_program_never_touched_is_said() {
    let mut report = report();
    report.summary.operations = ENOUGH_OPERATIONS;
    report.summary.processes = 1;
    let peak = report.best_peak() as u64;
    for (real, said) in [(peak / 2, true), (peak, false), (0, false)] {
        report.summary.peak_resident = real;
        let caveats = report.caveats().join(" ");
        assert_eq!(
            caveats.contains("itself had at most 4.8 MiB in RAM"),
            said,
            "{caveats}"
        );
    }
    report.summary.peak_resident = peak;
    says(
        &table::render(&report),
        "had at its peak 9.5 MiB, with code",
    );
}

#[test]
fn versions_are_told_and_that_tcmalloc_lacks_its_caches() {
    let mut report = report();
    let said = |report: &Report| {
        let (table, page) = (table::render(report), words_of(&html::render(report)));
        [unbroken(&table), unbroken(&page)]
    };
    for text in said(&report) {
        says(&text, "Versions: slow 1 <beta>, quick 1 <beta>.");
        says_not(&text, "per-CPU");
    }
    report.measurement.allocators[0].name = "tcmalloc".to_string();
    for text in said(&report) {
        says(&text, "tcmalloc runs without its per-CPU caches");
    }
}

#[test]
fn ties_are_shown_as_ties() {
    let mut report = with_a_tie();
    rank(&mut report.measurement.allocators);
    let (text, page) = (table::render(&report), html::render(&report));
    for name in ["quick", "like"] {
        assert_eq!(cells(&text, name)[1], "1=", "{name}");
    }
    says(&page, "quick, the fastest, not distinguishable from like");
    says(&text, "(=) cannot be told apart");
}

#[test]
fn one_run_has_no_interval_and_what_is_within_the_noise_is_called_so() {
    let mut once = report();
    once.measurement.repeats = 1;
    for one in &mut once.measurement.allocators {
        one.ns_per_op = Figure::of(vec![one.ns_per_op.mean]);
    }
    rank(&mut once.measurement.allocators);
    let text = table::render(&once);
    assert_eq!(
        cells(&text, "slow")[..5],
        ["slow", "-", "30.0", "3.00", "-"]
    );
    says(&text, "One run does not show how certain a time is");

    let mut none = report();
    none.measurement.allocators[1].ns_per_op = Figure::of(vec![-0.3, 0.2, -0.2]);
    rank(&mut none.measurement.allocators);
    let text = table::render(&none);
    says(&unbroken(&text), "The time of quick is within the noise");
    assert_eq!(cells(&text, "slow")[..5], ["slow", "2", "30.0", "-", "-"]);
    assert_eq!(cells(&text, "quick")[..3], ["quick", "1", "-0.1"]);
    parsed(&html::render(&none));
}

#[test]
fn memory_below_that_without_the_allocator_is_within_the_noise() {
    let mut report = report();
    let quick = &mut report.measurement.allocators[1];
    quick.peak_resident = Figure::of(vec![-8192.0]);
    quick.final_resident = Figure::of(vec![-4096.0]);
    quick.resident = vec![(0, 0), (500, -8192), (999, -4096)];
    let (text, page) = (table::render(&report), html::render(&report));
    let quick = row(&text, "quick");
    assert_eq!(quick.matches("within the noise").count(), 2, "{text}");
    says(row(&text, "slow"), "28.6 MiB           -");
    says_not(&page, "<td class=\"best\">0 B</td><td>1.00");
    says(&page, "within the noise");
    parsed(&page);
}

#[test]
fn a_busy_machine_and_a_missed_precision_are_said() {
    let mut report = report();
    report.summary.operations = ENOUGH_OPERATIONS;
    report.measurement.busy = Some("the replay took 2.0 times its CPU time".to_string());
    report.measurement.wanted_precision = Some(0.05);
    report.measurement.precision = Some(0.123);
    let said = report.caveats().join(" ");
    says(&said, "busy with other programs: the replay took 2.0");
    says(&said, "known to 12.3 %, where 5.0 %");
    report.measurement.busy = None;
    report.measurement.precision = Some(0.04);
    assert_eq!(report.caveats(), [""; 0]);
}

#[test]
fn failures_are_named_and_not_ranked() {
    let mut report = report();
    report.measurement.allocators[1].failure = Some("killed by signal 6".to_string());
    assert_eq!(report.best_ns(), 30.0);
    says(&table::render(&report), "quick FAILED: killed by signal 6");
}

/// A report on Slabyard and glibc in five rounds, for a program of one second and ten million
/// operations.
fn with_answer(ours: [f64; 5], theirs: [f64; 5]) -> Report {
    let mut report = report();
    report.summary.operations = 10_000_000;
    report.summary.seconds = 1.0;
    report.summary.processes = 1;
    (report.summary.threads, report.summary.replay_threads) = (1, 1);
    report.measurement.operations = 10_000_000;
    let one = |name: &str, times: [f64; 5], peak: f64, calls: [f64; 2]| Measured {
        ns_per_op: Figure::of(times.to_vec()),
        peak_resident: Figure::of(vec![peak, peak * 1.01, peak * 0.99]),
        calls_ns: vec![calls.to_vec(), vec![0.0, calls[1] / 2.0], vec![0.0; 2]],
        ..measured(name, 10.0)
    };
    report.measurement.allocators = vec![
        one("slabyard", ours, 12.1e6, [10e6, 40e6]),
        one("glibc", theirs, 10.0e6, [12e6, 80e6]),
    ];
    report.answer = answer::of(&report.summary, &report.measurement, None);
    report
}

const THEIRS: [f64; 5] = [20.1, 20.4, 19.8, 20.2, 20.0];

#[test]
fn the_answer_comes_first_and_says_how_sure_it_is() {
    let report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let sentence = "Replayed alone, the allocations take 30 ms less CPU time with Slabyard than \
                    with glibc (29 to 31 ms; the recorded run took 1,000 ms), and 2.0 MiB more \
                    memory at their peak (2.0 to 2.1 MiB).";
    let origin = "By kind of call, each timed alone, so without the waits for memory: allocations \
                  42 ms less and frees 20 ms less. By size, the largest differences: up to 16 B 60 \
                  ms less.";
    let answer = report.answer.as_ref().unwrap();
    assert_eq!(
        (answer.sentence.as_str(), answer.origin.as_str()),
        (sentence, origin)
    );
    let first = unbroken(&table::render(&report));
    assert!(first.trim_start().starts_with(sentence), "{first}");
    let words = words_of(&html::render(&report));
    assert_eq!(words.lines().nth(2), Some(sentence));
    assert_eq!(words.lines().nth(4), Some(origin));
    let error = "A replay sees the calls alone, not what the places of objects cost the program \
                 between its calls. The program itself may gain 0.4 to 1.7 times as much, or take 3 % \
                 of its time less to 3 % more besides, as programs with one thread and few small \
                 objects did that were measured both ways: 61 ms less to 0.9 ms more. `slabyard \
                 compare -- PROGRAM` also runs the program on each allocator.";
    assert_eq!(words.lines().nth(3), Some(error));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["answer"]["sentence"], sentence);
    assert!(json["answer"]["time_interval_ms"]["high"].as_f64().unwrap() < 0.0);
    assert_eq!(json["answer"]["by_size"][0][0], "up to 16 B");
}

#[test]
fn an_answer_claims_no_more_than_is_known() {
    let said = |report: &Report| report.answer.as_ref().unwrap().sentence.clone();
    let tie = said(&with_answer([20.0, 20.6, 19.9, 20.1, 19.9], THEIRS));
    says(
        &tie,
        "take as much CPU time with Slabyard as with glibc, as far as can be measured (",
    );
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    (report.summary.threads, report.summary.replay_threads) = (3, 3);
    let answer = |report: &Report| answer::of(&report.summary, &report.measurement, None);
    let several = answer(&report).unwrap().sentence;
    says(
        &several,
        "take 30 ms less CPU time with Slabyard than with glibc (29 to 31 ms), and",
    );
    for one in &mut report.measurement.allocators {
        one.ns_per_op = Figure::of(vec![one.ns_per_op.mean]);
        one.peak_resident = Figure::of(vec![1e6]);
    }
    let once = answer(&report).unwrap().sentence;
    says(&once, "(one run does not show how certain this is)");
    report.measurement.allocators[1].failure = Some("killed".to_string());
    assert!(answer(&report).is_none());
}

#[test]
fn single_calls_that_add_up_to_something_else_are_no_explanation_in_time() {
    let report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    // For a difference of 30 ms less: the calls of allocations and frees, in milliseconds less.
    let origin = |allocations: f64, frees: f64, threads: u64| {
        let mut report = report.clone();
        (report.summary.threads, report.summary.replay_threads) = (threads, threads);
        let all = &mut report.measurement.allocators;
        all[1].calls_ns = vec![vec![allocations * 1e6], vec![frees * 1e6], vec![0.0]];
        all[0].calls_ns = vec![vec![0.0]; 3];
        let answer = answer::of(&report.summary, &report.measurement, None);
        answer.unwrap().origin
    };
    says(
        &origin(50.0, 10.0, 1),
        "allocations 50 ms less and frees 10 ms less. By size",
    );
    let much = "Single calls, each timed alone, add up to 400 ms less, which is far more. So only \
                their shares are shown. By kind of call: allocations 75 % and frees 25 %. By size, the \
                largest differences: up to 8 B 100 %.";
    assert_eq!(origin(300.0, 100.0, 1), much);
    says(
        &origin(300.0, 100.0, 4),
        "which is far more: waits for other threads and for the processor are in them. So only",
    );
    let none = "Single calls, each timed alone, do not explain this: they add up to";
    // In the other direction; of both directions and far more; nearly nothing.
    for (allocations, frees) in [(-50.0, 10.0), (500.0, -200.0), (2.0, 1.0)] {
        says(&origin(allocations, frees, 1), none);
    }
}

/// A report on a program with 100 MiB of which most is not malloc's.
fn with_own_memory(more: f64, low: f64, high: f64) -> Report {
    const MIB: f64 = 1048576.0;
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.measurement.program = Some(OnGlibc {
        bytes: 100.0 * MIB,
        with_code: true,
        own: 80.0 * MIB,
    });
    for (one, more) in report.measurement.allocators.iter_mut().zip([more, 0.0]) {
        one.program_peak = Some(Foretold {
            bytes: (100.0 + more) * MIB,
            more: more * MIB,
            low: low * MIB,
            high: high * MIB,
        });
    }
    report.answer = answer::of(&report.summary, &report.measurement, None);
    report
}

#[test]
fn memory_is_foretold_for_the_program_and_not_for_its_malloc() {
    let report = with_own_memory(12.0, 9.0, 15.5);
    let sentence =
        "The program's peak memory is foretold to be 112.0 MiB with Slabyard and 100.0 MiB \
                    with glibc, of which 80.0 MiB are not malloc's: 9.0 to 15.5 % more.";
    let answer = report.answer.as_ref().unwrap();
    assert_eq!(answer.memory_sentence, sentence);
    says_not(&answer.sentence, "memory");
    let (table, page) = (unbroken(&table::render(&report)), html::render(&report));
    says(&table, sentence);
    says(
        &table,
        "The program's own peak, foretold: glibc 100 MiB, slabyard 112 MiB (9.0 to 15.5 % more).",
    );
    says(&words_of(&page), sentence);
    says(&page, "<td>112 MiB</td><td>9.0 to 15.5 % more</td>");
    let json = serde_json::to_value(report.figures()).unwrap();
    let peak = &json["measurement"]["allocators"][0]["program_peak"];
    assert_eq!(peak["more"].as_f64(), Some(12.0 * 1048576.0));
    assert_eq!(json["answer"]["foretold"]["bytes"], peak["bytes"]);
    let said = |report: &Report| report.answer.as_ref().unwrap().memory_sentence.clone();
    let tie = said(&with_own_memory(1.0, -2.0, 4.0));
    assert!(tie.ends_with(": 2.0 % less to 4.0 % more."), "{tie}");
    let less = said(&with_own_memory(-10.0, -12.0, -8.0));
    assert!(less.ends_with(": 8.0 to 12.0 % less."), "{less}");
}

#[test]
fn why_memory_is_not_foretold_is_said() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.measurement.not_foretold = Some("only a part was replayed");
    report.answer = answer::of(&report.summary, &report.measurement, None);
    let text = unbroken(&table::render(&report));
    says(
        &text,
        "The program's own peak memory is not foretold, because only a part was replayed.",
    );
    says(&text, "and 2.0 MiB more memory at their peak");
}

#[test]
fn what_was_left_out_and_merged_is_told_everywhere() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let sentence = "There was time for 3 rounds of 5";
    assert!(!told_everywhere(&report, sentence));
    report.measurement.left_out = vec![format!("{sentence} (--within 9).")];
    assert!(told_everywhere(&report, sentence));
    let merged = "Its 501 threads were replayed as 33, because the machine has few processors";
    assert!(!told_everywhere(&report, merged));
    (report.summary.threads, report.summary.replay_threads) = (501, 33);
    assert!(told_everywhere(&report, merged));
    report.measurement.operations = 2_500_000;
    let answer = answer::of(&report.summary, &report.measurement, None).unwrap();
    says(
        &answer.sentence,
        "Replayed alone, the first 2,500,000 of 10,000,000 operations take 7.5 ms less CPU time",
    );
}

#[test]
fn how_far_the_program_may_be_depends_on_its_kind() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let of = |report: &Report| answer::of(&report.summary, &report.measurement, None).unwrap();
    (report.summary.peak_payload, report.summary.peak_objects) = (4 << 20, 40_000);
    let small = of(&report);
    says(
        &small.model_error,
        "gain 0.6 to 1.5 times as much, or take 25 % of its time less",
    );
    // A quarter of the recorded second, besides the 31 ms of the replay.
    says(&small.model_error, ": 281 ms less to 0.9 ms more.");
    let json = serde_json::to_value(&small).unwrap();
    assert_eq!(json["model"]["high_factor"], 1.5);
    assert_eq!(json["model"]["kinds"][0], "small objects");
    assert!(json["program_interval_ms"]["low"].as_f64().unwrap() < -280.0);
    (report.summary.threads, report.summary.replay_threads) = (4, 4);
    says(&of(&report).model_error, "gain 0.4 to 5.5 times as much");
    let tie = of(&with_answer([20.0, 20.6, 19.9, 20.1, 19.9], THEIRS));
    says(&tie.model_error, " ms less to ");
}

/// Runs of a program on glibc and Slabyard, for a report.
fn runs() -> RealRuns {
    let kind = |values: [f64; 3], glibc: Option<[f64; 3]>| Kind {
        to_glibc: glibc.map(|glibc| Ratio {
            ratio: certainty::mean(&values) / certainty::mean(&glibc),
            interval: certainty::of_ratio(&values, &glibc),
        }),
        figure: Figure::of(values.to_vec()),
    };
    let theirs = [0.70, 0.71, 0.69];
    let one = |name: &str, cpu, glibc| real::Measured {
        name: name.to_string(),
        cpu_s: kind(cpu, glibc),
        peak_bytes: kind(
            glibc.map_or([2e7; 3], |_| [3e7; 3]),
            glibc.map(|_| [2e7; 3]),
        ),
        ..real::Measured::default()
    };
    let mut runs = RealRuns {
        rounds: 3,
        allocators: vec![
            one("glibc", theirs, None),
            one("slabyard", [0.50, 0.51, 0.49], Some(theirs)),
            real::Measured {
                name: "torn".to_string(),
                failure: Some("ends with status 1".to_string()),
                ..real::Measured::default()
            },
        ],
        caveats: vec!["It was <busy>.".to_string()],
        ..RealRuns::default()
    };
    runs.answer = real::text::answer(&runs);
    runs
}

#[test]
fn what_the_program_itself_took_comes_first() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    let runs = runs();
    let program = answer::Program::of(&runs);
    report.answer = answer::of(&report.summary, &report.measurement, program);
    report.runs = Some(runs);
    let first = "With Slabyard, the program's CPU time is 28.6 % less than with glibc (";
    let peak = "and its peak memory is 50.0 % more (50.0 to 50.0 %).";
    let text = unbroken(&table::render(&report));
    assert!(text.trim_start().starts_with(first), "{text}");
    says(&text, peak);
    says(
        &text,
        "Replayed alone, the allocations take 30 ms less CPU time with Slabyard than with glibc (29 \
         to 31 ms; the program takes 700 ms), and 2.0 MiB more memory at their peak (2.0 to 2.1 \
         MiB; the program has 19.1 MiB).",
    );
    says_not(&text, "The program itself may gain");
    says_not(&text, "is foretold");
    says(
        &text,
        "The program itself: 3 rounds, in which each allocator has one run",
    );
    says(&text, "torn FAILED: the program ends with status 1");
    let page = html::render(&report);
    let words = words_of(&page);
    assert!(words.lines().nth(2).unwrap().starts_with(first), "{words}");
    says(&page, "<h2>The program itself</h2>");
    says(&page, "It was &lt;busy&gt;.");
    says(&page, "torn failed: the program ends with status 1");
    says(&page, "<td>500 ms</td><td>0.71</td>");
    let json = serde_json::to_value(report.figures()).unwrap();
    assert_eq!(json["runs"]["rounds"], 3);
    assert!(json["runs"]["answer"].as_str().unwrap().starts_with(first));
}

#[test]
fn a_program_that_was_not_run_has_a_reason() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.no_runs = Some("it does not end".to_string());
    let text = unbroken(&table::render(&report));
    says(
        &text,
        "The program itself was not run on each allocator: it does not end.",
    );
    says(
        &text,
        "The program itself may gain 0.4 to 1.7 times as much",
    );
}

#[test]
fn no_percentile_is_below_the_clock_s_step_which_is_told() {
    let mut report = report();
    for one in &mut report.measurement.allocators {
        one.clock_step_ns = 20.0;
    }
    let (text, page) = (table::render(&report), html::render(&report));
    says(&text, "a clock with steps of 20.00 ns");
    says(&page, "a clock with steps of 20.00 ns");
    let quick = cells(&text, "quick");
    assert_eq!(quick[5..8], ["<=20.0", "<=20.0", "30.0"], "{text}");
}

/// For each cell of a row of the first table, whether it is coloured.
fn best_cells(page: &str, name: &str) -> Vec<bool> {
    let dot = format!("</span>{name}</");
    let row = page
        .split(&dot)
        .nth(1)
        .unwrap()
        .split("</tr>")
        .next()
        .unwrap();
    let cells = row.split("<td").skip(1);
    cells
        .map(|cell| cell.starts_with(" class=\"best\""))
        .collect()
}

#[test]
fn what_cannot_be_told_from_the_best_has_its_colour() {
    let mut report = with_a_tie();
    let like = &mut report.measurement.allocators[0];
    like.peak_resident = Figure::of(vec![1.01e7, 0.98e7, 1.02e7]);
    report.measurement.allocators[1].peak_resident = Figure::of(vec![1e7, 0.97e7, 1.03e7]);
    rank(&mut report.measurement.allocators);
    let page = html::render(&report);
    for name in ["quick", "like"] {
        let cells = best_cells(&page, name);
        assert!(cells[1] && cells[8], "{name}: {cells:?}");
    }
}

#[test]
fn tcmalloc_is_told_beside_its_name_and_in_the_json() {
    let mut report = report();
    report.measurement.allocators[0].note = Some("no per-CPU caches");
    let beside = "slow (no per-CPU caches)";
    says(&table::render(&report), beside);
    says(&words_of(&html::render(&report)), beside);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        json["measurement"]["allocators"][0]["note"],
        "no per-CPU caches"
    );
}

#[test]
fn figures_are_in_the_json() {
    let json = serde_json::to_value(report()).unwrap();
    let one = &json["measurement"]["allocators"][1];
    assert_eq!(one["name"], "quick");
    assert_eq!(one["ns_per_op"]["mean"], 10.0);
    assert!(one["ratio"]["low"].as_f64().unwrap() <= 1.0);
    assert_eq!(one["rank"], 1);
    assert_eq!(one["ns_per_op"]["runs"].as_array().unwrap().len(), 3);
}
