//! Writes the report as an HTML page: one file without references to others. It has the same order
//! as the text: the answer, the runs of the program, the replay, the caveats, and how all this was
//! measured.
//!
//! The page is XML too, so empty elements, which `html!` leaves open, are written as they are.

use super::chart::{self, curves, escape, rows, Frame, COLOURED, NARROW, WIDE};
use super::{listed, memory, named, ratio, Report};
use crate::preload::serving::LIBC;
use crate::real::text as runs;
use crate::replay::measure::{Figure, Latency, Measured};
use crate::ui::{bytes, capital, grouped, nanoseconds};
use maud::{html, Markup, PreEscaped};

pub const STYLE: &str = include_str!("page.css");

pub const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
";

pub fn render(report: &Report) -> String {
    let program = plain(&report.program);
    let machine = &report.machine;
    let page = html! {
        (PreEscaped(HEAD))
        title { (program) ": allocators compared" }
        style { (PreEscaped(STYLE)) (PreEscaped(colour_rules())) }
        (PreEscaped("</head>\n<body>\n"))
        main {
            (header(report))
            (runs_section(report))
            (replay_section(report))
            (caveats_section(report))
            (method_section(report))
            footer { "slabyard " (machine.tool) ", " (machine.date) }
        }
        (PreEscaped("\n</body>\n</html>\n"))
    };
    page.into_string()
}

/// A text from outside: without control characters, which no page may have.
pub fn plain(text: &str) -> PreEscaped<String> {
    PreEscaped(escape(text))
}

fn colour_rules() -> String {
    let rule = |name: &&str| {
        format!(
            "svg .c-{name} {{ stroke: var(--{name}); }} svg .f-{name} {{ fill: var(--{name}); }} \
             .b-{name} {{ fill: var(--{name}); background: var(--{name}); }}\n"
        )
    };
    COLOURED.iter().map(rule).collect()
}

/// The answer: the first sentence, the others, and a line that says why they are doubtful.
fn header(report: &Report) -> Markup {
    html! {
        header {
            h1 { "What " (plain(&report.program)) " costs on each allocator" }
            @for (index, words) in report.answers().iter().enumerate() {
                p class=(if index == 0 { "answer" } else { "more" }) { (sentence(words)) }
            }
            (doubts(report))
            p { code { (plain(&shortened(&report.command))) } }
        }
    }
}

/// A sentence in which no line ends between a number and its unit.
pub fn sentence(words: &str) -> PreEscaped<String> {
    let words = super::words(words).into_iter();
    let words: Vec<_> = words.map(|word| word.replace(' ', "\u{a0}")).collect();
    plain(&words.join(" "))
}

/// The caveats that make the answer doubtful, each with a link to its text.
fn doubts(report: &Report) -> Markup {
    let (all, doubts) = (report.all_caveats(), report.doubts());
    let links = all.iter().enumerate().filter_map(|(index, caveat)| {
        let doubt = caveat.doubt.as_ref()?;
        doubts.contains(doubt).then_some((index + 1, doubt))
    });
    let links: Vec<_> = links.collect();
    html! {
        @if !links.is_empty() {
            p class="caveat" {
                "This is doubtful: "
                @for (index, (number, doubt)) in links.iter().enumerate() {
                    @if index > 0 { "; " }
                    a href={ "#caveat-" (number) } { (plain(doubt)) }
                }
                "."
            }
        }
    }
}

/// All caveats in full.
fn caveats_section(report: &Report) -> Markup {
    let all = report.all_caveats();
    html! {
        @if !all.is_empty() {
            section {
                h2 { "Caveats" }
                ul {
                    @for (index, caveat) in all.iter().enumerate() {
                        li id={ "caveat-" (index + 1) } { (plain(&caveat.text)) }
                    }
                }
            }
        }
    }
}

fn shortened(command: &str) -> String {
    if command.chars().count() <= 240 {
        return command.to_string();
    }
    command.chars().take(237).chain("...".chars()).collect()
}

fn tile(value: &str, words: &str) -> Markup {
    html! {
        div class="tile" { b { (plain(value)) } span { (plain(words)) } }
    }
}

fn tiles(report: &Report) -> Markup {
    let ranked = report.ranked();
    let least = |value: fn(&Measured) -> f64| {
        let by_value = |a: &&&Measured, b: &&&Measured| value(a).total_cmp(&value(b));
        ranked.iter().min_by(by_value)
    };
    let smallest = least(|one| one.peak_resident.median);
    let calmest = least(|one| one.all.p9999);
    let (Some(fastest), Some(smallest), Some(calmest)) = (ranked.first(), smallest, calmest) else {
        return html! {};
    };
    let ties = ranked.iter().skip(1);
    let ties: Vec<_> = ties
        .take_while(|one| one.rank.is_some() && one.rank == fastest.rank)
        .map(|one| one.name.clone())
        .collect();
    let tied = match ties.is_empty() {
        true => String::new(),
        false => format!(", not distinguishable from {}", listed(&ties)),
    };
    let ns = |value| format!("{} ns", nanoseconds(value));
    html! {
        div class="tiles" {
            (tile(
                &ns(fastest.ns_per_op.mean),
                &format!("per operation on {}, the fastest{tied}", fastest.name),
            ))
            (tile(
                &memory(smallest.peak_resident.median),
                &format!("at most in memory with {}, the smallest", smallest.name),
            ))
            (tile(
                &ns(calmest.all.p9999),
                &format!(
                    "the time that 1 call in 10,000 exceeds on {}, the shortest",
                    calmest.name
                ),
            ))
        }
    }
}

fn section(title: &str, note: &str, content: Markup) -> Markup {
    html! {
        section { h2 { (title) } p class="note" { (plain(note)) } (content) }
    }
}

/// A section of a section.
fn part(title: &str, note: &str, content: Markup) -> Markup {
    html! {
        section { h3 { (title) } p class="note" { (plain(note)) } (content) }
    }
}

/// A picture for wide windows, and one for narrow ones; the style sheet shows one of them.
fn picture(draw: impl Fn(&Frame) -> String) -> Markup {
    html! {
        @for frame in [&WIDE, &NARROW] {
            div class={ "picture " (frame.name) } { (PreEscaped(draw(frame))) }
        }
    }
}

/// A table in a region that scrolls if the window is too narrow. The keyboard reaches the region,
/// and a shadow at an edge shows that there is more. A `|` in a head ends a line.
pub fn table(caption: &str, heads: &[&str], rows: Markup) -> Markup {
    let many = if heads.len() > 4 { " many" } else { "" };
    html! {
        div class={ "scroll" (many) } role="region" tabindex="0" aria-label=(caption) {
            table {
                caption { (caption) }
                tr {
                    @for head in heads {
                        th scope="col" { (PreEscaped(escape(head).replace('|', "<br/>"))) }
                    }
                }
                (rows)
            }
        }
    }
}

fn runs_table(shown: &runs::Table) -> Markup {
    let heads: Vec<_> = shown.rows[0].iter().map(String::as_str).collect();
    let rows = html! {
        @for row in &shown.rows[1..] {
            tr {
                th scope="row" { (colour_dot(&row[0])) (plain(&row[0])) }
                @for cell in &row[1..] { td { (plain(cell)) } }
            }
        }
    };
    table(&shown.title, &heads, rows)
}

/// The figures of the program itself.
fn runs_section(report: &Report) -> Markup {
    let Some(all) = &report.runs else {
        return html! {};
    };
    let note = format!(
        "{}. A dot is an allocator\u{2019}s figure compared with that of {} in per cent; further to \
         the left is better. The true difference lies within the line (95 %). A \
         hollow dot has none, because the runs do not show how certain it is.",
        runs::rounds(all),
        all.allocators.first().map_or("", |base| &base.name)
    );
    let shown = runs::shown(all);
    let shown = shown.iter().filter(|one| one.less_is_better);
    let panels = shown.filter_map(|shown| Some((&shown.name, rows::runs(all, shown)?)));
    let content = html! {
        div class="panels" {
            @for (name, svg) in panels {
                div { h3 { (capital(name)) } (PreEscaped(svg)) }
            }
        }
        @for why in runs::failures(all) { p class="caveat" { (plain(&why)) } }
        details {
            summary { "All figures of the runs" }
            @for shown in runs::tables(all) { (runs_table(&shown)) }
        }
    };
    section("The program on each allocator", &note, content)
}

/// All that the replay shows.
fn replay_section(report: &Report) -> Markup {
    html! {
        h2 class="chapter" { (report.title_of_replay()) }
        @for words in report.explanation() { p { (sentence(&words)) } }
        p class="note" { (plain(&report.what())) "." }
        (tiles(report))
        (origin_section(report))
        (sizes_section(report))
        (memory_section(report))
        (speed_section(report))
        (latency_section(report))
        (table_section(report))
    }
}

/// Where the difference between Slabyard and glibc comes from.
fn origin_section(report: &Report) -> Markup {
    let answer = report.answer.as_ref();
    let Some(answer) = answer.filter(|answer| !answer.by_kind.is_empty()) else {
        return html! {};
    };
    part(
        "Kinds of call and sizes",
        &format!(
            "What all calls of a kind, or of a size, take with Slabyard compared with {LIBC}. Calls \
             are timed alone here, without the waits for memory that the program\u{2019}s use of \
             objects has, so the sum differs from that of the replay."
        ),
        picture(|frame| rows::origin(answer, frame)),
    )
}

fn speed_section(report: &Report) -> Markup {
    let measurement = &report.measurement;
    let note = format!(
        "Nanoseconds per operation; shorter is better. The mean of {} interleaved runs; the true \
         mean lies within the line (95 %). The {} ns that the replay itself takes are subtracted.",
        measurement.repeats,
        nanoseconds(measurement.replay_ns.mean)
    );
    let content = picture(|frame| rows::speed(report, frame));
    part("Time per operation", &note, content)
}

const REPLAY: [&str; 13] = [
    "allocator",
    "rank",
    "ns per|operation",
    "to the|fastest",
    "95 %",
    "p50",
    "p99",
    "p99.9",
    "p99.99",
    "peak|memory",
    "to the|smallest",
    "at the|end",
    "after giving|back",
];

fn table_section(report: &Report) -> Markup {
    let note = format!(
        "The best figure of each column, and those that cannot be distinguished from it, are in \
         colour. {} {} {}",
        report.about_clock(),
        report.certainty(),
        report.about_slabyard()
    );
    let rows = html! {
        @for one in report.ranked() { (table_row(report, one)) }
        @for one in report.failed() {
            tr {
                th scope="row" { (plain(&one.name)) }
                td class="why" colspan="12" {
                    "failed: " (plain(one.failure.as_deref().unwrap_or("")))
                }
            }
        }
    };
    let caption = "All figures of the replay on each allocator, the fastest first";
    let content = table(caption, &REPLAY, rows);
    part("All figures of the replay", &note, content)
}

/// The least value of all allocators.
fn least(report: &Report, value: impl Fn(&Measured) -> f64) -> f64 {
    let values = report.ranked().into_iter().map(value);
    values.fold(f64::INFINITY, f64::min)
}

fn table_row(report: &Report, one: &Measured) -> Markup {
    type Value = fn(&Measured) -> f64;
    let times: [Value; 4] = [
        |m| m.all.p50,
        |m| m.all.p99,
        |m| m.all.p999,
        |m| m.all.p9999,
    ];
    let time = |value: Value| {
        let text = report.percentile(value(one));
        let is_best = text == report.percentile(least(report, value));
        (text, is_best)
    };
    let resident = |figure: fn(&Measured) -> &Figure| {
        let is_best = report.is_least(one, figure);
        (memory(figure(one).median), is_best)
    };
    let peak = one.peak_resident.median;
    let mut cells = vec![
        (report.rank(one), false),
        (
            nanoseconds(one.ns_per_op.mean),
            report.is_least(one, |m| &m.ns_per_op),
        ),
        (report.time_ratio(one), false),
        (report.time_interval(one), false),
    ];
    cells.extend(times.map(time));
    cells.extend([
        resident(|m| &m.peak_resident),
        (with_times(&ratio(peak, report.best_peak())), false),
        resident(|m| &m.final_resident),
        resident(|m| &m.purged_resident),
    ]);
    html! {
        tr {
            th scope="row" { (colour_dot(&one.name)) (plain(&named(one))) }
            @for (text, is_best) in &cells { td class=[is_best.then_some("best")] { (text) } }
        }
    }
}

/// A ratio with a multiplication sign, unless it is unknown.
fn with_times(ratio: &str) -> String {
    let sign = if ratio == "-" { "" } else { "\u{d7}" };
    format!("{ratio}{sign}")
}

/// A dot in an allocator's colour.
fn colour_dot(name: &str) -> Markup {
    html! {
        span class={ "dot " (chart::colour('b', name)) } {}
    }
}

fn memory_section(report: &Report) -> Markup {
    let heads = [
        "allocator".into(),
        "peak".into(),
        format!("to {LIBC}, 95 %"),
    ];
    let mut rows = vec![heads.to_vec()];
    rows.extend(report.foretold().into_iter().map(|row| row.to_vec()));
    let title = "The program\u{2019}s peak, foretold".to_string();
    let content = html! {
        @if !report.summary.resident.is_empty() {
            p class="note" {
                "The dashed line is the program's own memory when it was recorded: all its \
                 anonymous memory in RAM, with stacks and data, sampled every 10 ms or less often."
            }
        }
        (picture(|frame| curves::memory(report, frame)))
        @if rows.len() > 1 {
            p class="note" {
                "The peak of the whole program on each allocator is foretold: the memory that it \
                 has besides malloc\u{2019}s, from the samples of the recorded run, and the memory \
                 of the replay at the same moment. The interval includes how far programs were \
                 from this."
            }
            (runs_table(&runs::Table { title, rows }))
        }
    };
    part(
        "Resident memory over the run",
        "The memory that the operating system had to provide while the program ran, operation by \
         operation. The shaded area is the memory that the program had allocated at that moment; \
         the rest is the allocator's.",
        content,
    )
}

const LATENCIES: [&str; 8] = [
    "kind of call, in ns",
    "calls",
    "mean",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "p99.99",
];

fn latency_section(report: &Report) -> Markup {
    let rows = html! {
        @for one in report.ranked() {
            (latency_row(report, one, "allocate", &one.allocate))
            (latency_row(report, one, "free", &one.free))
            (latency_row(report, one, "realloc", &one.reallocate))
        }
    };
    let caption = "Single calls of each allocator by kind, in ns";
    let content = html! {
        (picture(|frame| curves::latency(report, frame)))
        details { summary { "By kind of call" } (table(caption, &LATENCIES, rows)) }
    };
    part(
        "How long single calls take",
        "For each time, how many calls took longer. A curve further to the left is better; its far \
         end is the tail that makes a program stutter.",
        content,
    )
}

fn latency_row(report: &Report, one: &Measured, kind: &str, latency: &Latency) -> Markup {
    let Latency {
        mean,
        p50,
        p90,
        p99,
        p999,
        p9999,
        ..
    } = *latency;
    html! {
        @if latency.calls > 0 {
            tr {
                th scope="row" {
                    (colour_dot(&one.name)) (plain(&one.name)) " " small { (kind) }
                }
                td { (grouped(latency.calls)) }
                td { (nanoseconds(mean)) }
                @for value in [p50, p90, p99, p999, p9999] { td { (report.percentile(value)) } }
            }
        }
    }
}

fn sizes_section(report: &Report) -> Markup {
    part(
        "Which sizes dominate",
        "Allocations and reallocations by the requested size, and the sum of their bytes.",
        picture(|frame| rows::sizes(report, frame)),
    )
}

/// How the figures were measured: of the runs, on which machine, and of the replay.
fn method_section(report: &Report) -> Markup {
    let content = html! {
        @if let Some(all) = &report.runs {
            h3 { "The runs of the program" }
            ul {
                @for note in runs::notes(all) { li { (plain(&note)) } }
            }
        }
        (replay_method(report))
        (facts(report))
    };
    let note = "What was done, and what the figures leave out.";
    section("How it was measured", note, content)
}

fn facts(report: &Report) -> Markup {
    let (machine, summary) = (&report.machine, &report.summary);
    let facts = [
        (
            "recording",
            format!("{}, {}", report.file, bytes(report.file_bytes)),
        ),
        ("time when recorded", summary.duration()),
        (
            "objects",
            format!(
                "{} live at most; {} of {} frees by another thread than the allocation",
                grouped(summary.peak_objects),
                grouped(summary.foreign_frees),
                grouped(summary.frees)
            ),
        ),
        ("in RAM when recorded", summary.real_peak()),
        (
            "left out",
            format!(
                "{} refused to the program, {} frees of unseen objects, {} objects whose free was \
                 not seen",
                grouped(summary.failed),
                grouped(summary.unknown_frees),
                grouped(summary.unseen_frees)
            ),
        ),
        (
            "processor",
            format!("{}, {} CPUs", machine.cpu, machine.cpus),
        ),
        ("memory", bytes(machine.memory_bytes)),
        (
            "system",
            format!("{}, Linux {}", machine.system, machine.kernel),
        ),
        (
            "pages",
            format!(
                "{}, transparent huge pages: {}",
                bytes(machine.page_size),
                machine.huge_pages
            ),
        ),
        ("allocators", report.versions()),
        ("date", machine.date.clone()),
    ];
    html! {
        h3 { "Recording, machine and allocators" }
        p class="note" { "Figures of another machine will differ." }
        dl {
            @for (name, value) in &facts { dt { (name) } dd { (plain(value)) } }
        }
    }
}

const REPLAYED: [&str; 5] = [
    "The program ran once with its own allocator, while its calls were recorded. The same \
     calls were then made on each allocator, in a new process each time: recorded threads \
     as threads (merged, if there are far more than processors), recorded processes one \
     after the other.",
    "Objects are touched as a program does: written after allocation (each cache line of \
     the first KiB, then each page), read before they are freed, read if they were \
     requested zeroed, the grown part written after a realloc. Of objects of 64 KiB or \
     more, as many pages are written as the program had touched. The cost of this in cache \
     misses and page faults is part of the time per operation, because it depends on where \
     the allocator put the object.",
    "Time is CPU time in user and kernel mode. The time that one replay thread waits for \
     another is left out. The replay\u{2019}s own cost is measured with an allocator that \
     does nothing, and subtracted from all times, so differences mean more than the \
     figures themselves.",
    "Single calls are timed in a separate pass: the call alone, without the \
     program\u{2019}s use of the object. The timer\u{2019}s cost is subtracted. The rarest \
     times include interrupts and other programs, for all allocators alike.",
    "Memory is anonymous memory in RAM, less the memory of the replay without the \
     allocator. The memory that an allocator takes when it starts counts as its own, even \
     if it starts before the program. Threads run one at a time for it, in the recorded \
     order. \u{201c}At the end\u{201d} is the memory after the program\u{2019}s last call; \
     \u{201c}after giving back\u{201d} is the memory after the allocator was asked to \
     return what it can (if it has such a call).",
];

fn replay_method(report: &Report) -> Markup {
    let allocators = report.measurement.allocators.iter();
    let checked = allocators.map(|one| one.checked).min().unwrap_or(0);
    let verified = if checked > 0 {
        format!(
            "A separate pass wrote every byte of every object and checked it when the object was \
             freed: {} objects per allocator.",
            grouped(checked)
        )
    } else {
        "Contents of objects were not checked in this run.".to_string()
    };
    let notes = REPLAYED.map(str::to_string).into_iter().chain([verified]);
    html! {
        h3 { "The replay" }
        ul {
            @for note in notes.chain(report.left_out()) { li { (plain(&note)) } }
        }
    }
}
