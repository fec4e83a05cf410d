//! Writes the report as an HTML page: one file without references to others. It has the same order
//! as the text: the answer, the runs of the program, the replay, the caveats, and how all this was
//! measured.

use super::chart::{self, curves, escape, rows, Frame, COLOURED, NARROW, WIDE};
use super::{listed, memory, named, ratio, Report};
use crate::real::text as runs;
use crate::replay::measure::{Figure, Latency, Measured};
use crate::ui::{bytes, capital, grouped, nanoseconds};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

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
    replay_section(&mut page, report);
    caveats_section(&mut page, report);
    method_section(&mut page, report);
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

/// The answer: the first sentence, the others, and a line that says why they are doubtful.
fn header(page: &mut String, report: &Report, program: &str) {
    let _ = writeln!(
        page,
        "<header>\n<h1>What {program} costs on each allocator</h1>"
    );
    for (index, words) in report.answers().iter().enumerate() {
        let class = if index == 0 { "answer" } else { "more" };
        let _ = writeln!(page, "<p class=\"{class}\">{}</p>", sentence(words));
    }
    doubts(page, report);
    let _ = writeln!(
        page,
        "<p><code>{}</code></p>\n</header>",
        escape(&shortened(&report.command))
    );
}

/// A sentence in which no line ends between a number and its unit.
fn sentence(words: &str) -> String {
    let words = super::words(words).into_iter();
    let words: Vec<_> = words.map(|word| word.replace(' ', "\u{a0}")).collect();
    escape(&words.join(" "))
}

/// The caveats that make the answer doubtful, each with a link to its text.
fn doubts(page: &mut String, report: &Report) {
    let all = report.all_caveats();
    let doubts = report.doubts();
    let links: Vec<_> = all
        .iter()
        .enumerate()
        .filter_map(|(index, caveat)| {
            let doubt = caveat
                .doubt
                .as_ref()
                .filter(|doubt| doubts.contains(doubt))?;
            let doubt = escape(doubt);
            Some(format!("<a href=\"#caveat-{}\">{doubt}</a>", index + 1))
        })
        .collect();
    if !links.is_empty() {
        let links = links.join("; ");
        let _ = writeln!(page, "<p class=\"caveat\">This is doubtful: {links}.</p>");
    }
}

/// All caveats in full.
fn caveats_section(page: &mut String, report: &Report) {
    let all = report.all_caveats();
    if all.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Caveats</h2>\n<ul>\n");
    for (index, caveat) in all.iter().enumerate() {
        let text = escape(&caveat.text);
        let _ = writeln!(page, "<li id=\"caveat-{}\">{text}</li>", index + 1);
    }
    page.push_str("</ul>\n</section>\n");
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

/// A section of a section.
fn part(page: &mut String, title: &str, note: &str) {
    let _ = writeln!(
        page,
        "<section>\n<h3>{title}</h3>\n<p class=\"note\">{note}</p>"
    );
}

/// Adds a picture for wide windows, and one for narrow ones; the style sheet shows one of them.
fn picture(page: &mut String, draw: impl Fn(&Frame) -> String) {
    for frame in [&WIDE, &NARROW] {
        let _ = write!(
            page,
            "<div class=\"picture {}\">\n{}</div>\n",
            frame.name,
            draw(frame)
        );
    }
}

/// Opens a table in a region that scrolls if the window is too narrow, and adds its first row. The
/// keyboard reaches the region, and a shadow at an edge shows that there is more.
fn open_table(page: &mut String, caption: &str, heads: &[&str]) {
    let many = if heads.len() > 4 { " many" } else { "" };
    let _ = write!(
        page,
        "<div class=\"scroll{many}\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>\n\
         <caption>{caption}</caption>\n<tr>"
    );
    for name in heads {
        let _ = write!(page, "<th scope=\"col\">{name}</th>");
    }
    page.push_str("</tr>\n");
}

fn runs_table(page: &mut String, table: &runs::Table) {
    let heads: Vec<_> = table.rows[0].iter().map(String::as_str).collect();
    open_table(page, &table.title, &heads);
    for row in &table.rows[1..] {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{}{}</th>",
            colour_dot(&row[0]),
            escape(&row[0])
        );
        for cell in &row[1..] {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

/// The figures of the program itself.
fn runs_section(page: &mut String, report: &Report) {
    let Some(all) = &report.runs else {
        return;
    };
    let note = format!(
        "{}. A dot is an allocator\u{2019}s figure compared with that of {} in per cent; further to \
         the left is better. The true difference lies within the line (95 %). A \
         hollow dot has none, because the runs do not show how certain it is.",
        runs::rounds(all),
        escape(all.allocators.first().map_or("", |base| &base.name))
    );
    section(page, "The program on each allocator", &note);
    page.push_str("<div class=\"panels\">\n");
    for shown in runs::shown(all).iter().filter(|one| one.less_is_better) {
        if let Some(svg) = rows::runs(all, shown) {
            let _ = write!(
                page,
                "<div>\n<h3>{}</h3>\n{svg}</div>\n",
                capital(&shown.name)
            );
        }
    }
    page.push_str("</div>\n");
    for why in runs::failures(all) {
        let _ = writeln!(page, "<p class=\"caveat\">{}</p>", escape(&why));
    }
    page.push_str("<details><summary>All figures of the runs</summary>\n");
    for table in runs::tables(all) {
        runs_table(page, &table);
    }
    page.push_str("</details>\n</section>\n");
}

/// All that the replay shows.
fn replay_section(page: &mut String, report: &Report) {
    let title = report.title_of_replay();
    let _ = writeln!(page, "<h2 class=\"chapter\">{title}</h2>");
    for words in report.explanation() {
        let _ = writeln!(page, "<p>{}</p>", sentence(&words));
    }
    let _ = writeln!(page, "<p class=\"note\">{}.</p>", escape(&report.what()));
    tiles(page, report);
    origin_section(page, report);
    sizes_section(page, report);
    memory_section(page, report);
    speed_section(page, report);
    latency_section(page, report);
    table_section(page, report);
}

/// Where the difference between Slabyard and glibc comes from.
fn origin_section(page: &mut String, report: &Report) {
    let Some(answer) = &report.answer else {
        return;
    };
    if answer.by_kind.is_empty() {
        return;
    }
    part(
        page,
        "Kinds of call and sizes",
        "What all calls of a kind, or of a size, take with Slabyard compared with glibc. Calls are \
         timed alone here, without the waits for memory that the program\u{2019}s use of objects \
         has, so the sum differs from that of the replay.",
    );
    picture(page, |frame| rows::origin(answer, frame));
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
    part(page, "Time per operation", &note);
    picture(page, |frame| rows::speed(report, frame));
    page.push_str("</section>\n");
}

fn table_section(page: &mut String, report: &Report) {
    part(
        page,
        "All figures of the replay",
        &format!(
            "The best figure of each column, and those that cannot be distinguished from it, are \
             in colour. {} {} {}",
            report.about_clock(),
            escape(&report.certainty()),
            escape(&report.about_slabyard())
        ),
    );
    open_table(
        page,
        "All figures of the replay on each allocator, the fastest first",
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
    let _ = write!(
        page,
        "<tr><th scope=\"row\">{}{}</th>",
        colour_dot(&one.name),
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

/// A dot in an allocator's colour.
fn colour_dot(name: &str) -> String {
    format!("<span class=\"dot {}\"></span>", chart::colour('b', name))
}

fn memory_section(page: &mut String, report: &Report) {
    part(
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
    picture(page, |frame| curves::memory(report, frame));
    let mut rows = vec![["allocator", "peak", "to glibc, 95 %"]
        .map(str::to_string)
        .to_vec()];
    rows.extend(report.foretold().into_iter().map(|row| row.to_vec()));
    if rows.len() > 1 {
        page.push_str(
            "<p class=\"note\">The peak of the whole program on each allocator is foretold: the memory \
             that it has besides malloc\u{2019}s, from the samples of the recorded run, and the memory of \
             the replay at the same moment. The interval includes how far programs were from this.</p>\n",
        );
        let title = "The program\u{2019}s peak, foretold".to_string();
        runs_table(page, &runs::Table { title, rows });
    }
    page.push_str("</section>\n");
}

fn latency_section(page: &mut String, report: &Report) {
    part(
        page,
        "How long single calls take",
        "For each time, how many calls took longer. A curve further to the left is better; its far \
         end is the tail that makes a program stutter.",
    );
    picture(page, |frame| curves::latency(report, frame));
    page.push_str("<details><summary>By kind of call</summary>\n");
    open_table(
        page,
        "Single calls of each allocator by kind, in ns",
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
        "<tr><th scope=\"row\">{}{name} <small>{kind}</small></th><td>{}</td>",
        colour_dot(&one.name),
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
    part(
        page,
        "Which sizes dominate",
        "Allocations and reallocations by the requested size, and the sum of their bytes.",
    );
    picture(page, |frame| rows::sizes(report, frame));
    page.push_str("</section>\n");
}

fn fact(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escape(value));
}

/// How the figures were measured: of the runs, on which machine, and of the replay.
fn method_section(page: &mut String, report: &Report) {
    section(
        page,
        "How it was measured",
        "What was done, and what the figures leave out.",
    );
    if let Some(all) = &report.runs {
        page.push_str("<h3>The runs of the program</h3>\n<ul>\n");
        for note in runs::notes(all) {
            let _ = writeln!(page, "<li>{}</li>", escape(&note));
        }
        page.push_str("</ul>\n");
    }
    replay_method(page, report);
    facts(page, report);
    page.push_str("</section>\n");
}

fn facts(page: &mut String, report: &Report) {
    let (machine, summary) = (&report.machine, &report.summary);
    page.push_str(
        "<h3>Recording, machine and allocators</h3>\n<p class=\"note\">Figures of another machine \
         will differ.</p>\n",
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
    page.push_str("</dl>\n");
}

fn replay_method(page: &mut String, report: &Report) {
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
    let left_out = report.left_out().into_iter();
    let left_out: String = left_out
        .map(|words| format!("<li>{}</li>\n", escape(&words)))
        .collect();
    let _ = write!(
        page,
        "<h3>The replay</h3>\n<ul>\n<li>The program ran once with its own allocator, while its calls were recorded. The \
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
         <li>{verified}</li>\n{left_out}</ul>\n"
    );
}
