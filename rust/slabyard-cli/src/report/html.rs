//! Writes the report as an HTML page: one file without references to others.

use super::chart::{self, escape};
use super::{listed, memory, named, ratio, Report};
use crate::real::text;
use crate::replay::measure::{Figure, Latency, Measured};
use crate::ui::{bytes, grouped, nanoseconds};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// The names that have a colour in the style sheet; `program` is the recorded program.
const COLOURED: [&str; 9] = [
    "program",
    "slabyard",
    "slabyard-caches",
    "glibc",
    "mimalloc",
    "snmalloc",
    "jemalloc",
    "tcmalloc",
    "rpmalloc",
];

pub fn render(report: &Report) -> String {
    let program = escape(&report.program);
    let mut page = String::new();
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{program}: allocators compared</title>\n<style>\n{STYLE}{}</style>\n</head>\n\
         <body>\n<main>\n",
        colour_rules()
    );
    header(&mut page, report, &program);
    runs_section(&mut page, report);
    tiles(&mut page, report);
    speed_section(&mut page, report);
    table_section(&mut page, report);
    memory_section(&mut page, report);
    latency_section(&mut page, report);
    sizes_section(&mut page, report);
    facts_section(&mut page, report);
    reading_section(&mut page, report);
    let _ = write!(
        page,
        "<footer>slabyard {}, {}</footer>\n</main>\n</body>\n</html>\n",
        report.machine.tool, report.machine.date
    );
    page
}

fn colour_rules() -> String {
    let mut rules = String::new();
    for name in COLOURED {
        let _ = writeln!(
            rules,
            "svg .c-{name} {{ stroke: var(--{name}); }} svg .f-{name} {{ fill: var(--{name}); }} \
             .b-{name} {{ fill: var(--{name}); background: var(--{name}); }}"
        );
    }
    rules
}

/// The first sentence is the answer, the others are notes.
fn answers(report: &Report) -> String {
    let mut text = String::new();
    for (index, words) in report.answers().iter().enumerate() {
        let class = if index == 0 { "answer" } else { "note" };
        let _ = writeln!(text, "<p class=\"{class}\">{}</p>", escape(words));
    }
    text
}

fn header(page: &mut String, report: &Report, program: &str) {
    let _ = write!(
        page,
        "<h1>What {program} costs on each allocator</h1>\n{}<p><code>{}</code></p>\n\
         <p class=\"what\">{}.</p>\n",
        answers(report),
        escape(&shortened(&report.command)),
        escape(&report.what())
    );
    for caveat in report.caveats() {
        let _ = writeln!(page, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    if let Some(damage) = &report.damage {
        let damage = escape(damage);
        let _ = writeln!(
            page,
            "<p class=\"note\">The recording is {damage}; what came before was \
            used.</p>"
        );
    }
}

fn shortened(command: &str) -> String {
    if command.chars().count() <= 240 {
        return command.to_string();
    }
    command.chars().take(237).chain("...".chars()).collect()
}

fn tile(page: &mut String, value: &str, words: &str) {
    let (value, words) = (escape(value), escape(words));
    let _ = writeln!(
        page,
        "<div class=\"tile\"><b>{value}</b><span>{words}</span></div>"
    );
}

fn tiles(page: &mut String, report: &Report) {
    let ranked = report.ranked();
    let Some(fastest) = ranked.first() else {
        return;
    };
    page.push_str("<div class=\"tiles\">\n");
    let ns = nanoseconds(fastest.ns_per_op.mean);
    let ties = ranked.iter().skip(1);
    let ties: Vec<_> = ties
        .take_while(|one| one.rank.is_some() && one.rank == fastest.rank)
        .map(|one| one.name.clone())
        .collect();
    let tied = match ties.is_empty() {
        true => String::new(),
        false => format!(", not distinguishable from {}", listed(&ties)),
    };
    tile(
        page,
        &format!("{ns} ns"),
        &format!("per operation on {}, the fastest{tied}", fastest.name),
    );
    let by_peak =
        |a: &&&Measured, b: &&&Measured| a.peak_resident.median.total_cmp(&b.peak_resident.median);
    if let Some(smallest) = ranked.iter().min_by(by_peak) {
        let peak = memory(smallest.peak_resident.median);
        tile(
            page,
            &peak,
            &format!("at most in memory with {}, the smallest", smallest.name),
        );
    }
    let by_tail = |a: &&&Measured, b: &&&Measured| a.all.p9999.total_cmp(&b.all.p9999);
    if let Some(calmest) = ranked.iter().min_by(by_tail) {
        let tail = format!("{} ns", nanoseconds(calmest.all.p9999));
        tile(
            page,
            &tail,
            &format!(
                "the time that 1 call in 10,000 exceeds on {}, the shortest",
                calmest.name
            ),
        );
    }
    page.push_str("</div>\n");
}

fn section(page: &mut String, title: &str, note: &str) {
    let _ = writeln!(
        page,
        "<section>\n<h2>{title}</h2>\n<p class=\"note\">{note}</p>"
    );
}

/// Adds a picture that scrolls if the window is too narrow to read its text.
fn picture(page: &mut String, svg: &str) {
    let _ = write!(page, "<div class=\"scroll\">\n{svg}</div>\n");
}

fn runs_table<const N: usize>(page: &mut String, caption: &str, rows: &[[String; N]]) {
    let _ = writeln!(
        page,
        "<div class=\"scroll\"><table>\n<caption>{caption}</caption>"
    );
    heads(page, &rows[0].each_ref().map(String::as_str));
    for row in &rows[1..] {
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", escape(&row[0]));
        for cell in &row[1..] {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

/// The figures of the program itself.
fn runs_section(page: &mut String, report: &Report) {
    let Some(runs) = &report.runs else {
        return;
    };
    let note = format!("{}. {}", text::rounds(runs), text::MEANING);
    section(page, "The program itself", &escape(&note));
    for caveat in &runs.caveats {
        let _ = writeln!(page, "<p class=\"caveat\">{}</p>", escape(caveat));
    }
    runs_table(
        page,
        "Time of the program on each allocator",
        &text::time_rows(runs),
    );
    runs_table(
        page,
        "Memory of the program on each allocator",
        &text::memory_rows(runs),
    );
    for one in &runs.allocators {
        if let Some(why) = &one.failure {
            let why = format!("{} failed: the program {why}", one.name);
            let _ = writeln!(page, "<p class=\"caveat\">{}</p>", escape(&why));
        }
    }
    page.push_str("</section>\n");
}

fn speed_section(page: &mut String, report: &Report) {
    let measurement = &report.measurement;
    let note = format!(
        "Nanoseconds per operation; shorter is better. The mean of {} interleaved runs; the true \
         mean lies within the line (95 %). The {} ns that the replay itself takes are subtracted.",
        measurement.repeats,
        nanoseconds(measurement.replay_ns.mean)
    );
    section(page, "Time per operation", &note);
    picture(page, &chart::speed(report));
    page.push_str("</section>\n");
}

fn table_section(page: &mut String, report: &Report) {
    section(
        page,
        "All figures",
        &format!(
            "The best figure of each column, and those that cannot be distinguished from it, are \
             in colour. {} {} {}",
            report.about_clock(),
            escape(&report.certainty()),
            escape(&report.about_slabyard())
        ),
    );
    page.push_str(
        "<div class=\"scroll\"><table>\n<caption>All figures of each allocator, the fastest \
         first</caption>\n",
    );
    heads(
        page,
        &[
            "allocator",
            "rank",
            "ns per<br/>operation",
            "to the<br/>fastest",
            "95 %",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "peak<br/>memory",
            "to the<br/>smallest",
            "at the<br/>end",
            "after giving<br/>back",
        ],
    );
    for one in report.ranked() {
        table_row(page, report, one);
    }
    for one in report.failed() {
        let why = escape(one.failure.as_deref().unwrap_or(""));
        let name = escape(&one.name);
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{name}</th><td class=\"why\" colspan=\"12\">failed: {why}</td></tr>"
        );
    }
    page.push_str("</table></div>\n</section>\n");
}

/// Adds the first row of a table.
fn heads(page: &mut String, names: &[&str]) {
    page.push_str("<tr>");
    for name in names {
        let _ = write!(page, "<th scope=\"col\">{name}</th>");
    }
    page.push_str("</tr>\n");
}

/// The least value of all allocators.
fn least(report: &Report, value: impl Fn(&Measured) -> f64) -> f64 {
    report
        .ranked()
        .into_iter()
        .map(value)
        .fold(f64::INFINITY, f64::min)
}

fn table_row(page: &mut String, report: &Report, one: &Measured) {
    type Value = fn(&Measured) -> f64;
    let times: [Value; 4] = [
        |m| m.all.p50,
        |m| m.all.p99,
        |m| m.all.p999,
        |m| m.all.p9999,
    ];
    let name = escape(&one.name);
    let _ = write!(
        page,
        "<tr><th scope=\"row\"><span class=\"dot b-{name}\"></span>{}</th>",
        escape(&named(one))
    );
    let mut cell = |text: String, best: bool| {
        let class = if best { " class=\"best\"" } else { "" };
        let _ = write!(page, "<td{class}>{}</td>", escape(&text));
    };
    let figures: [fn(&Measured) -> &Figure; 3] = [
        |m| &m.peak_resident,
        |m| &m.final_resident,
        |m| &m.purged_resident,
    ];
    cell(report.rank(one), false);
    cell(
        nanoseconds(one.ns_per_op.mean),
        report.is_least(one, |m| &m.ns_per_op),
    );
    cell(report.time_ratio(one), false);
    cell(report.time_interval(one), false);
    for time in times {
        let text = report.percentile(time(one));
        let best = text == report.percentile(least(report, time));
        cell(text, best);
    }
    let peak = one.peak_resident.median;
    let to_smallest = with_times(&ratio(peak, report.best_peak()));
    for (figure, more) in figures.into_iter().zip([Some(to_smallest), None, None]) {
        let text = memory(figure(one).median);
        cell(text, report.is_least(one, figure));
        more.into_iter().for_each(|text| cell(text, false));
    }
    page.push_str("</tr>\n");
}

/// A ratio with a multiplication sign, unless it is unknown.
fn with_times(ratio: &str) -> String {
    let sign = if ratio == "-" { "" } else { "\u{d7}" };
    format!("{ratio}{sign}")
}

fn memory_section(page: &mut String, report: &Report) {
    section(
        page,
        "Resident memory over the run",
        "The memory that the operating system had to provide while the program ran, operation by \
         operation. The shaded area is the memory that the program had allocated at that moment; \
         the rest is the allocator's.",
    );
    if !report.summary.resident.is_empty() {
        page.push_str(
            "<p class=\"note\">The dashed line is the program's own memory when it was recorded: \
             all its anonymous memory in RAM, with stacks and data, sampled every 10 ms or less \
             often.</p>\n",
        );
    }
    picture(page, &chart::memory(report));
    let mut rows = vec![["allocator", "peak", "to glibc, 95 %"].map(str::to_string)];
    rows.extend(report.foretold());
    if rows.len() > 1 {
        page.push_str(
            "<p class=\"note\">The peak of the whole program on each allocator is foretold: the memory \
             that it has besides malloc\u{2019}s, from the samples of the recorded run, and the memory of \
             the replay at the same moment. The interval includes how far programs were from this.</p>\n",
        );
        runs_table(page, "The program\u{2019}s peak, foretold", &rows);
    }
    page.push_str("</section>\n");
}

fn latency_section(page: &mut String, report: &Report) {
    section(
        page,
        "How long single calls take",
        "For each time, how many calls took longer. A curve further to the left is better; its far \
         end is the tail that makes a program stutter.",
    );
    picture(page, &chart::latency(report));
    page.push_str(
        "<details><summary>By kind of call</summary>\n<div class=\"scroll\"><table>\n\
         <caption>Single calls of each allocator by kind, in ns</caption>\n",
    );
    heads(
        page,
        &[
            "kind of call, in ns",
            "calls",
            "mean",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
        ],
    );
    for one in report.ranked() {
        latency_row(page, report, one, "allocate", &one.allocate);
        latency_row(page, report, one, "free", &one.free);
        latency_row(page, report, one, "realloc", &one.reallocate);
    }
    page.push_str("</table></div>\n</details>\n</section>\n");
}

fn latency_row(page: &mut String, report: &Report, one: &Measured, kind: &str, latency: &Latency) {
    if latency.calls == 0 {
        return;
    }
    let name = escape(&one.name);
    let _ = write!(
        page,
        "<tr><th scope=\"row\"><span class=\"dot b-{name}\"></span>{name} <small>{kind}</small></th>\
         <td>{}</td>",
        grouped(latency.calls)
    );
    let Latency {
        mean,
        p50,
        p90,
        p99,
        p999,
        p9999,
        ..
    } = *latency;
    let _ = write!(page, "<td>{}</td>", nanoseconds(mean));
    for value in [p50, p90, p99, p999, p9999] {
        let _ = write!(page, "<td>{}</td>", escape(&report.percentile(value)));
    }
    page.push_str("</tr>\n");
}

fn sizes_section(page: &mut String, report: &Report) {
    section(
        page,
        "Which sizes dominate",
        "Allocations and reallocations by the requested size, and the sum of their bytes.",
    );
    picture(page, &chart::sizes(report));
    page.push_str("</section>\n");
}

fn fact(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escape(value));
}

fn facts_section(page: &mut String, report: &Report) {
    let (machine, summary) = (&report.machine, &report.summary);
    section(
        page,
        "Recording, machine and allocators",
        "Figures of another machine will differ.",
    );
    page.push_str("<dl>\n");
    let size = bytes(report.file_bytes);
    fact(page, "recording", &format!("{}, {size}", report.file));
    fact(page, "time when recorded", &summary.duration());
    let objects = format!(
        "{} live at most; {} of {} frees by another thread than the allocation",
        grouped(summary.peak_objects),
        grouped(summary.foreign_frees),
        grouped(summary.frees)
    );
    fact(page, "objects", &objects);
    fact(page, "in RAM when recorded", &summary.real_peak());
    let left_out = format!(
        "{} refused to the program, {} frees of unseen objects, {} objects whose free was not seen",
        grouped(summary.failed),
        grouped(summary.unknown_frees),
        grouped(summary.unseen_frees)
    );
    fact(page, "left out", &left_out);
    fact(
        page,
        "processor",
        &format!("{}, {} CPUs", machine.cpu, machine.cpus),
    );
    fact(page, "memory", &bytes(machine.memory_bytes));
    fact(
        page,
        "system",
        &format!("{}, Linux {}", machine.system, machine.kernel),
    );
    let pages = format!(
        "{}, transparent huge pages: {}",
        bytes(machine.page_size),
        machine.huge_pages
    );
    fact(page, "pages", &pages);
    fact(page, "allocators", &report.versions());
    fact(page, "date", &machine.date);
    page.push_str("</dl>\n</section>\n");
}

fn reading_section(page: &mut String, report: &Report) {
    section(
        page,
        "How to read this",
        "What was done, and what the figures leave out.",
    );
    let checked = report
        .measurement
        .allocators
        .iter()
        .map(|one| one.checked)
        .min()
        .unwrap_or(0);
    let verified = if checked > 0 {
        format!(
            "A separate pass wrote every byte of every object and checked it when the object was \
             freed: {} objects per allocator.",
            grouped(checked)
        )
    } else {
        "Contents of objects were not checked in this run.".to_string()
    };
    let refused = refusals(report);
    let _ = write!(
        page,
        "<ul>\n<li>The program ran once with its own allocator, while its calls were recorded. The \
         same calls were then made on each allocator, in a new process each time: recorded threads \
         as threads (merged, if there are far more than processors), recorded processes one after the \
         other.</li>\n\
         <li>Objects are touched as a program does: written after allocation (each cache line of \
         the first KiB, then each page), read before they are freed, read if they were requested \
         zeroed, the grown part written after a realloc. Of objects of 64 KiB or more, as many \
         pages are written as the program had touched. The cost of this in cache misses and page \
         faults is part of the time per operation, because it depends on where the allocator put \
         the object.</li>\n\
         <li>Time is CPU time in user and kernel mode. The time that one replay thread waits for \
         another is left out. The replay\u{2019}s own cost is measured with an allocator that does \
         nothing, and subtracted from all times, so differences mean more than the figures \
         themselves.</li>\n\
         <li>Single calls are timed in a separate pass: the call alone, without the \
         program\u{2019}s use of the object. The timer\u{2019}s cost is subtracted. The rarest \
         times include interrupts and other programs, for all allocators alike.</li>\n\
         <li>Memory is anonymous memory in RAM, less the memory of the replay without the \
         allocator. The memory that an allocator takes when it starts counts as its own, even if \
         it starts before the program. Threads run one at a time for it, in the recorded order. \u{201c}At the \
         end\u{201d} is the memory after the \
         program\u{2019}s last call; \u{201c}after giving back\u{201d} is the memory after the \
         allocator was asked to return what it can (if it has such a call).</li>\n\
         <li>{verified}</li>\n{refused}</ul>\n</section>\n"
    );
}

fn refusals(report: &Report) -> String {
    let mut items = String::new();
    for one in report.ranked().into_iter().filter(|one| one.refused > 0) {
        let _ = writeln!(
            items,
            "<li>{} refused {} allocations, mostly alignments that it does not offer.</li>",
            escape(&one.name),
            grouped(one.refused)
        );
    }
    items
}
