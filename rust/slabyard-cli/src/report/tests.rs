//! Tests of reports: the page is well-formed whatever the program is called, and shows the right
//! figures.

mod replays;

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

/// The text in one line, with single blanks between its words.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in:\n{text}");
}

#[track_caller]
fn says_not(text: &str, words: &str) {
    assert!(!text.contains(words), "{words:?} is in:\n{text}");
}

fn texts(caveats: &[Caveat]) -> String {
    let texts: Vec<_> = caveats.iter().map(|one| one.text.as_str()).collect();
    texts.join(" ")
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
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.runs = Some(runs());
    report.python = true;
    rank(&mut report.measurement.allocators);
    same_as("table.snapshot", &table::render(&report));
    same_as("page.snapshot", &words_of(&html::render(&report)));
}

#[test]
fn columns_have_names_of_their_own() {
    let text = table::render(&report());
    let rows = text.lines().filter(|line| line.starts_with("allocator"));
    let heads = rows.flat_map(|row| row.split("  ").map(str::trim).skip(1));
    let page = html::render(&report());
    let table = page
        .split("<caption>All figures of the replay")
        .nth(1)
        .unwrap();
    let row = table.split("</tr>").next().unwrap().replace("<br/>", " ");
    let of_page = row
        .split("<th scope=\"col\">")
        .skip(1)
        .map(|head| head.trim_end_matches("</th>"));
    for mut names in [heads.collect::<Vec<_>>(), of_page.collect()] {
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
    let small = texts(&report.caveats());
    says(&small, "1,000 operations are too few");
    says(&small, "1,000,000 or more are enough");
    says(&table::render(&report), "This recording is small");
    says(&html::render(&report), "This recording is small");
    report.summary.operations = ENOUGH_OPERATIONS;
    assert_eq!(report.caveats(), []);
    report.python = true;
    says(&report.caveats()[0].text, "PYTHONMALLOC=malloc");
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
    let found = style.match_indices(what).filter_map(|(at, _)| {
        let number = style[at + what.len()..].trim_start();
        number[..number.find("px")?].parse().ok()
    });
    found.collect()
}

/// A report with all that a page can have, with as many allocators and as wide figures as there may
/// be.
fn full_report() -> Report {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.summary.operations = 98_765_432_109;
    report.summary.size_classes = (0..24)
        .map(|power| SizeClass {
            up_to: 8 << power,
            count: 98_765_432_109 >> power,
            bytes: (98_765_432_109 >> power) * (7 << power),
        })
        .collect();
    report.measurement.allocators.clear();
    for (index, name) in chart::COLOURED.iter().skip(1).enumerate() {
        let mut one = measured(name, 1234.5 * (index + 1) as f64);
        one.all.histogram = (0..40).map(|n| (1.6f64.powi(n), 1 << (40 - n))).collect();
        one.all.calls = one.all.histogram.iter().map(|point| point.1).sum();
        one.ns_per_op.interval = Some(Interval {
            low: 0.1,
            high: 2e6,
        });
        one.calls_ns = vec![vec![9e12 / (index + 1) as f64, 5e9, 1e3, 2e9]; 3];
        one.resident = vec![
            (0, 0),
            (50_000_000_000, 987 << 30),
            (98_765_432_109, 1023 << 20),
        ];
        report.measurement.allocators.push(one);
    }
    rank(&mut report.measurement.allocators);
    report.answer = answer::of(&report.summary, &report.measurement, None);
    let mut runs = runs();
    for one in &mut runs.allocators {
        one.mean_resident_bytes = Some(one.peak_bytes.clone());
    }
    let mut long = runs.allocators[1].clone();
    long.name = "a-library-with-a-very-long-name-of-the-user".to_string();
    long.cpu_s.to_first = Some(Ratio {
        ratio: 1234.0,
        interval: Some(Interval {
            low: -5.0,
            high: 123_456.0,
        }),
    });
    runs.allocators.push(long);
    report.runs = Some(runs);
    report
}

/// The part of a picture that an element takes: left, top, right and bottom. The width of a text is
/// that in the widest of the usual fonts.
fn extent(node: roxmltree::Node<'_, '_>) -> Option<[f64; 4]> {
    let number = |name: &str| node.attribute(name)?.parse::<f64>().ok();
    match node.tag_name().name() {
        "text" => {
            let (x, y) = (number("x")?, number("y")?);
            let width = chart::width_of(node.text()?);
            let class = node.attribute("class").unwrap();
            let left = match class {
                class if class.split(' ').any(|one| one == "end") => x - width,
                class if class.split(' ').any(|one| one == "middle") => x - width / 2.0,
                _ => x,
            };
            Some([
                left,
                y - 0.76 * chart::LETTERS,
                left + width,
                y + 0.24 * chart::LETTERS,
            ])
        }
        "rect" => {
            let (x, y) = (number("x")?, number("y")?);
            Some([x, y, x + number("width")?, y + number("height")?])
        }
        "line" => {
            let (a, b) = (number("x1")?, number("x2")?);
            let (c, d) = (number("y1")?, number("y2")?);
            Some([a.min(b), c.min(d), a.max(b), c.max(d)])
        }
        "circle" => {
            let (x, y, r) = (number("cx")?, number("cy")?, number("r")?);
            Some([x - r, y - r, x + r, y + r])
        }
        "path" => Some(extent_of_path(node.attribute("d").unwrap())),
        _ => None,
    }
}

fn extent_of_path(path: &str) -> [f64; 4] {
    let mut words = String::new();
    for letter in path.chars() {
        match letter.is_ascii_alphabetic() {
            true => words += &format!(" {letter} "),
            false => words.push(letter),
        }
    }
    let mut words = words.split_whitespace();
    let (mut x, mut y) = (0.0, 0.0);
    let mut all = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    while let Some(command) = words.next() {
        let mut number = || words.next().unwrap().parse::<f64>().unwrap();
        match command {
            "M" | "L" => (x, y) = (number(), number()),
            "H" => x = number(),
            "h" => x += number(),
            "V" => y = number(),
            "Z" => (),
            other => panic!("{other} in {path}"),
        }
        all = [all[0].min(x), all[1].min(y), all[2].max(x), all[3].max(y)];
    }
    all
}

/// No window cuts a picture: it is as wide as its place, and all of it lies within its frame. No
/// two words lie on each other.
#[test]
fn pictures_are_whole_and_their_words_apart() {
    for report in [full_report(), report(), with_a_tie(), Report::default()] {
        let page = html::render(&report);
        let document = parsed(&page);
        for svg in document
            .descendants()
            .filter(|node| node.has_tag_name("svg"))
        {
            let id = svg.attribute("aria-labelledby").unwrap();
            let frame: Vec<f64> = svg
                .attribute("viewBox")
                .unwrap()
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect();
            assert!(svg.attribute("width").is_none() && svg.attribute("height").is_none());
            let mut words: Vec<(&str, [f64; 4])> = Vec::new();
            for node in svg.descendants() {
                let Some(part) = extent(node) else { continue };
                let [left, top, right, bottom] = part;
                let within = left >= -0.1
                    && top >= -0.1
                    && right <= frame[2] + 0.1
                    && bottom <= frame[3] + 0.1;
                assert!(
                    within,
                    "{id} {frame:?}: {part:?} of {node:?} {:?}",
                    node.text()
                );
                if let Some(text) = node.text().filter(|_| node.has_tag_name("text")) {
                    words.push((text, part));
                }
            }
            for (index, (word, a)) in words.iter().enumerate() {
                for (other, b) in &words[index + 1..] {
                    let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                    assert!(apart, "{id}: {word} {a:?} lies on {other} {b:?}");
                }
            }
        }
    }
}

/// On a phone of 360 px, pictures are those for narrow windows, with letters of a readable size, and
/// nothing but tables, which scroll by themselves, is wider than the window.
#[test]
fn the_page_is_readable_on_a_phone() {
    const LEAST: f64 = 11.0;
    /// The rest of 360 px beside the margins of page and section (see `page.css`).
    const ROOM: f64 = 360.0 - 2.0 * (10.0 + 12.0 + 1.0);
    /// What a wide picture has at least, in a window of 901 px.
    const WIDE_ROOM: f64 = 901.0 - 2.0 * (24.0 + 24.0 + 1.0);
    let page = html::render(&full_report());
    says(
        &page,
        "<meta name=\"viewport\" content=\"width=device-width",
    );
    let style = include_str!("page.css");
    says(style, "svg { display: block; width: 100%; height: auto; }");
    says(
        style,
        "@media (max-width: 900px) {\n  .wide { display: none; }\n  .narrow { display: block; }\n}",
    );
    says(
        style,
        "main { padding: 20px 10px 48px; }\n  section { padding: 16px 12px; }",
    );
    let letters = pixels(style, "svg text { fill: var(--ink); font-size:");
    assert_eq!(letters, [chart::LETTERS]);
    let document = parsed(&page);
    for svg in document
        .descendants()
        .filter(|node| node.has_tag_name("svg"))
    {
        let frame = svg.attribute("viewBox").unwrap().split(' ').nth(2).unwrap();
        let frame: f64 = frame.parse().unwrap();
        let place = svg.parent().unwrap().attribute("class");
        let room = match place {
            Some("picture wide") => WIDE_ROOM,
            _ => ROOM,
        };
        let shown = chart::LETTERS * room / frame;
        assert!(shown >= LEAST, "letters of {shown:.1} px in {place:?}");
    }
    assert!(pixels(style, "font-size:")
        .into_iter()
        .all(|size| size >= LEAST));
    // Nothing has a width that a phone does not have.
    let widths = ["min-width:", " width:", "minmax("]
        .map(|what| pixels(style, what))
        .concat();
    assert!(
        !widths.is_empty() && widths.iter().all(|&width| width <= ROOM),
        "{widths:?}"
    );
    for table in document
        .descendants()
        .filter(|node| node.has_tag_name("table"))
    {
        let class = table.parent().unwrap().attribute("class");
        assert!(matches!(class, Some("scroll" | "scroll many")), "{class:?}");
    }
}

/// The text is as wide as a terminal of 80 columns, except for words that are wider by themselves.
#[test]
fn the_text_fits_into_a_terminal() {
    let mut report = full_report();
    if let Some(runs) = &mut report.runs {
        runs.allocators.pop();
        runs.allocators[1].name = "slabyard-caches".to_string();
    }
    for one in &mut report.measurement.allocators {
        (one.ns_per_op.mean, one.peak_resident.median) = (12_345.6, 1e12);
        one.ratio = Some(Interval {
            low: 10.25,
            high: 123.45,
        });
    }
    for report in [report, self::report(), with_a_tie()] {
        let text = table::render(&report);
        let wide: Vec<_> = text
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
    let text = table::wrapped("It takes 12 ms more (1 to 20 %) and then 3.5 MiB.", 13);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        ["It takes", "12 ms more (1", "to 20 %) and", "then 3.5 MiB."]
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
    let page = html::render(&full_report());
    let document = parsed(&page);
    let all = |name: &'static str| {
        let nodes = document.descendants();
        nodes.filter(move |node| node.tag_name().name() == name)
    };
    for table in all("table") {
        let first = table.first_element_child().unwrap();
        assert!(first.has_tag_name("caption") && first.text().is_some());
        // The keyboard scrolls the region that a table is in.
        let region = table.parent().unwrap();
        assert_eq!(region.attribute("tabindex"), Some("0"));
        assert_eq!(region.attribute("role"), Some("region"));
        assert_eq!(region.attribute("aria-label"), first.text());
    }
    assert!(all("th").all(|head| matches!(head.attribute("scope"), Some("col" | "row"))));
    for row in all("tr") {
        assert!(row.first_element_child().unwrap().has_tag_name("th"));
    }
    // Five pictures of runs, and five of the replay for wide and narrow windows.
    assert_eq!((all("table").count(), all("svg").count()), (5, 15));
    let mut ids: Vec<_> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    for svg in all("svg") {
        let parts: Vec<_> = svg
            .children()
            .filter(|node| node.is_element())
            .take(2)
            .collect();
        assert_eq!(svg.attribute("role"), Some("img"));
        for (part, name, by) in [
            (parts[0], "title", "aria-labelledby"),
            (parts[1], "desc", "aria-describedby"),
        ] {
            assert_eq!(part.tag_name().name(), name);
            assert!(part.text().is_some_and(|text| text.len() > 10));
            assert_eq!(part.attribute("id"), svg.attribute(by));
        }
    }
    // Links lead to an element of the page.
    let links: Vec<_> = all("a").filter_map(|link| link.attribute("href")).collect();
    assert!(!links.is_empty());
    for link in links {
        assert!(ids.contains(&link.trim_start_matches('#')), "{link}");
    }
    all_differ(std::mem::take(&mut ids));
    // Headings have no gap between their levels.
    let levels = document.descendants().filter_map(|node| {
        let level = node.tag_name().name().strip_prefix('h')?;
        level.parse::<u8>().ok()
    });
    let levels: Vec<_> = levels.collect();
    assert_eq!(levels.iter().filter(|&&level| level == 1).count(), 1);
    assert!(
        levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "{levels:?}"
    );
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
        let caveats = texts(&report.caveats());
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
    says(&unbroken(&text), "rank (=) cannot be distinguished");
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
    says(&text, "One replay does not show how certain a time is");

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
    let rows: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("quick "))
        .collect();
    let within = |row: &&&str| row.contains("within the noise");
    assert_eq!(rows.iter().filter(within).count(), 2, "{text}");
    assert!(
        row(&text, "slow").ends_with("28.6 MiB           -"),
        "{text}"
    );
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
    let said = texts(&report.caveats());
    says(&said, "busy with other programs: the replay took 2.0");
    says(&said, "known to 12.3 %, where 5.0 %");
    report.measurement.busy = None;
    report.measurement.precision = Some(0.04);
    assert_eq!(report.caveats(), []);
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
    let after = words.find("\nThe replay\n").unwrap();
    assert!(words[after..].contains(origin), "{words}");
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

/// A replay that does not compare Slabyard with glibc has a first sentence too.
#[test]
fn a_replay_without_slabyard_or_glibc_has_a_sentence() {
    let first = |report: &Report| {
        let sentence = report.answers()[0].clone();
        let words = words_of(&html::render(report));
        assert_eq!(words.lines().nth(2), Some(sentence.as_str()));
        let json = serde_json::to_value(report.figures()).unwrap();
        assert_eq!(json["sentences"][0], sentence);
        assert!(unbroken(&table::render(report)).starts_with(&sentence));
        sentence
    };
    let none = "There is no comparison of Slabyard with glibc, because not both were replayed.";
    let start = "Replayed alone, the allocations take least CPU time with";
    assert_eq!(first(&report()), format!("{start} quick. {none}"));
    let mut tie = with_a_tie();
    rank(&mut tie.measurement.allocators);
    assert_eq!(first(&tie), format!("{start} quick and like. {none}"));
    for one in &mut tie.measurement.allocators {
        one.rank = None;
    }
    let once =
        format!("{start} quick, in one run, which does not show how certain this is. {none}");
    assert_eq!(first(&tie), once);
    let nothing = "No allocator replays the recording.";
    assert_eq!(first(&Report::default()), nothing);
    let mut failing = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    failing.measurement.allocators[0].failure = Some("killed by signal 6".to_string());
    failing.answer = answer::of(&failing.summary, &failing.measurement, None);
    let said = "The replay fails with Slabyard: killed by signal 6.";
    assert_eq!(first(&failing), said);
}

/// Runs of a program on glibc and Slabyard, for a report.
fn runs() -> RealRuns {
    let kind = |values: [f64; 3], glibc: Option<[f64; 3]>| Kind {
        to_first: glibc.map(|glibc| Ratio {
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
        caveats: vec![Caveat::doubtful("it was <busy>", "It was <busy> then.")],
        ..RealRuns::default()
    };
    runs.answer = real::answer::sentence(&runs);
    runs.better = real::answer::better(&runs);
    runs.others = real::answer::others(&runs.better);
    runs.doubts = Caveat::doubts(&runs.caveats);
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
        "The program on each allocator: 3 rounds, in which each allocator has one run",
    );
    says(&text, "torn FAILED: the program ends with status 1");
    let page = html::render(&report);
    let words = words_of(&page);
    assert!(words.lines().nth(2).unwrap().starts_with(first), "{words}");
    says(&page, "<h2>The program on each allocator</h2>");
    says(&page, "<li id=\"caveat-1\">It was &lt;busy&gt; then.</li>");
    says(
        &page,
        "This is doubtful: <a href=\"#caveat-1\">it was &lt;busy&gt;</a>.",
    );
    says(&page, "torn FAILED: the program ends with status 1");
    says(&page, "<td>500 ms</td><td>0.71</td>");
    let json = serde_json::to_value(report.figures()).unwrap();
    assert_eq!(json["runs"]["rounds"], 3);
    assert!(json["runs"]["answer"].as_str().unwrap().starts_with(first));
    assert!(json["sentences"][0].as_str().unwrap().starts_with(first));
    assert_eq!(json["doubts"], serde_json::json!(["it was <busy>"]));
}

/// The order is: the answer, why it is doubtful, the runs, the replay, the caveats, and then what the
/// figures mean.
#[test]
fn the_answer_is_first_and_the_caveats_and_notes_are_last() {
    let mut report = with_answer([17.0, 17.5, 16.8, 17.2, 17.0], THEIRS);
    report.runs = Some(runs());
    report.python = true;
    let order = |text: &str, all: &[&str]| {
        let place = |words: &&str| {
            text.find(*words)
                .unwrap_or_else(|| panic!("{words}:\n{text}"))
        };
        let places: Vec<_> = all.iter().map(place).collect();
        assert!(places.is_sorted(), "{places:?}\n{text}");
    };
    let first = [
        "With Slabyard, the program's CPU time",
        "This is doubtful:",
        "The program on each allocator",
    ];
    let replay = ["Where it comes from", "Replayed alone,", "By kind of call"];
    let text = unbroken(&table::render(&report));
    order(&text, &first);
    order(
        &text,
        &[
            "The program on each allocator",
            "CPU time ratio",
            "Where it comes from",
        ],
    );
    order(&text, &replay);
    order(
        &text,
        &[
            "By kind of call",
            "ns/op",
            "Caveats",
            "Python has",
            "Notes",
            "Versions",
        ],
    );
    let words = words_of(&html::render(&report));
    order(&words, &first);
    order(
        &words,
        &[
            "The program on each allocator",
            "Wall time",
            "Where it comes from",
        ],
    );
    order(&words, &replay);
    order(
        &words,
        &[
            "By kind of call",
            "Which sizes",
            "\nCaveats",
            "Python has",
            "How it was",
        ],
    );
}

#[test]
fn a_dot_whose_certainty_is_unknown_is_hollow() {
    let hollow = |page: &str| {
        let document = parsed(page);
        let dots = document
            .descendants()
            .filter(|node| node.has_tag_name("circle"));
        let is_hollow =
            |dot: roxmltree::Node<'_, '_>| dot.attribute("class").unwrap().ends_with(" unsure");
        dots.map(is_hollow).collect::<Vec<_>>()
    };
    let mut report = report();
    let mut all = runs();
    // CPU time and peak of glibc and slabyard; the times and faults of 0 have no dot but glibc's.
    let known = [false, false, false, false, false, false];
    report.runs = Some(all.clone());
    assert_eq!(hollow(&html::render(&report)), known);
    let cpu = &mut all.allocators[1].cpu_s;
    cpu.to_first = cpu.to_first.map(|ratio| Ratio {
        interval: None,
        ..ratio
    });
    report.runs = Some(all);
    let one = [false, true, false, false, false, false];
    assert_eq!(hollow(&html::render(&report)), one);
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
        "This is doubtful: the program itself was not run (see",
    );
    assert!(text.trim_start().starts_with("Replayed alone, "), "{text}");
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
    let calls = text
        .lines()
        .filter(|line| line.starts_with("quick "))
        .nth(1);
    let calls: Vec<_> = calls.unwrap().split_whitespace().collect();
    assert_eq!(calls[1..4], ["<=20.0", "<=20.0", "30.0"], "{text}");
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
    let table = table::render(&report);
    assert_eq!(cells(&table, "slow")[..2], ["slow*", "2"]);
    says(&table, "- * slow: no per-CPU caches.");
    says(
        &words_of(&html::render(&report)),
        "slow (no per-CPU caches)",
    );
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
