//! The page of a time line: one HTML file without references to others, in the style of the reports'
//! pages.

use super::super::snapshot::{self, Change, Changes};
use super::super::text::change;
use super::timeline::{Timeline, LAYERS};
use crate::report::chart::timeline::{Chart, Series};
use crate::report::chart::{Frame, NARROW, WIDE};
use crate::report::html::{plain, sentence, table, HEAD, STYLE};
use crate::ui::{bytes, grouped, span};
use maud::{html, Markup, PreEscaped};

const OWN_STYLE: &str = include_str!("page.css");

/// Colours of the page's style: those of the layers, then those of the caches.
const COLOURS: usize = LAYERS.len() + CACHES;

/// The most lines in the chart of caches.
const CACHES: usize = 6;

/// The most rows of a table.
const ROWS: usize = 30;

pub fn render(timeline: &Timeline) -> String {
    let changes = snapshot::changes(&timeline.first, &timeline.last);
    let page = html! {
        (PreEscaped(HEAD))
        title { (plain(&timeline.last.account.program)) ": memory over time" }
        style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) (PreEscaped(colour_rules())) }
        (PreEscaped("</head>\n<body>\n"))
        main {
            (header(timeline, &changes))
            (memory(timeline))
            (caches(timeline))
            (differences(&changes))
            (about(timeline))
        }
        (PreEscaped("\n</body>\n</html>\n"))
    };
    page.into_string()
}

fn colour_rules() -> String {
    let rule = |number| {
        format!(
            "svg .area.m{number} {{ fill: var(--m{number}); }} svg .curve.m{number} {{ stroke: \
             var(--m{number}); }} .dot.m{number} {{ background: var(--m{number}); }}\n"
        )
    };
    (0..COLOURS).map(rule).collect()
}

// ---- the answer ----

fn header(timeline: &Timeline, changes: &Changes) -> Markup {
    let account = &timeline.last.account;
    let restarts = timeline.restarts().len();
    html! {
        header {
            h1 { "Memory of " (plain(&account.program)) " (process " (account.pid) ")" }
            p class="answer" { (sentence(&answer(timeline))) }
            @if let Some(words) = most_changed(changes) {
                p class="more" { (sentence(&words)) }
            }
            @if restarts > 0 {
                p class="caveat" {
                    "The program was started again " (times(restarts)) "; a dashed line shows \
                     where. The differences are between two processes."
                }
            }
        }
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        more => format!("{more} times"),
    }
}

/// How the resident memory has changed.
fn answer(timeline: &Timeline) -> String {
    let (first, last) = (
        timeline.first.account.rss_bytes,
        timeline.last.account.rss_bytes,
    );
    let time = span(timeline.seconds());
    let difference = first.abs_diff(last);
    let part = difference as f64 * 100.0 / first.max(1) as f64;
    let verb = match () {
        // A change below this is no news.
        () if part < 1.0 => {
            return format!(
                "Resident memory is about the same after {time}: {}.",
                bytes(last)
            );
        }
        () if last > first => "grew",
        () => "shrank",
    };
    format!(
        "Resident memory {verb} by {} in {time}, from {} to {}.",
        bytes(difference),
        bytes(first),
        bytes(last)
    )
}

/// The largest changes by kind of memory and by cache.
fn most_changed(changes: &Changes) -> Option<String> {
    // The last row is the sum.
    let kinds = changes.memory.len().saturating_sub(1);
    let kind = changes.memory[..kinds].first()?;
    let words = format!("The largest change: {} ({})", kind.name, signed(kind));
    Some(match changes.caches.first() {
        Some(cache) => format!(
            "{words}. Of the caches: live objects of {} ({}).",
            cache.name,
            signed(cache)
        ),
        None => words + ".",
    })
}

fn signed(one: &Change) -> String {
    change(one.after as i64 - one.before as i64)
}

// ---- charts ----

fn both(draw: impl Fn(&Frame) -> String) -> Markup {
    html! {
        @for frame in [&WIDE, &NARROW] {
            div class={ "picture " (frame.name) } { (PreEscaped(draw(frame))) }
        }
    }
}

fn legend(series: &[Series]) -> Markup {
    html! {
        ul class="legend" {
            @for one in series {
                li {
                    i class={ "dot " (one.class) } {}
                    (plain(&one.name)) " "
                    span { (bytes(one.bytes.last().copied().unwrap_or(0))) }
                }
            }
        }
    }
}

fn memory(timeline: &Timeline) -> Markup {
    let layers = LAYERS.iter().enumerate().map(|(index, layer)| Series {
        name: layer.words().to_string(),
        class: format!("m{index}"),
        bytes: timeline
            .points
            .iter()
            .map(|one| one.layers[index])
            .collect(),
    });
    let series: Vec<_> = layers.collect();
    let times: Vec<_> = timeline.points.iter().map(|one| one.time).collect();
    let chart = Chart {
        id: "memory",
        title: "Resident memory by what it is for, over time",
        times: &times,
        series: &series,
        restarts: &timeline.restarts(),
    };
    html! {
        section {
            h2 { "Resident memory by what it is for" }
            p class="note" { "All areas together are the RSS. Times are UTC. The sizes below are the last ones." }
            (both(|frame| chart.stacked(frame)))
            (legend(&series))
        }
    }
}

fn caches(timeline: &Timeline) -> Markup {
    let changed = timeline.changed_caches(CACHES).into_iter().enumerate();
    let series = changed.map(|(index, (name, bytes))| Series {
        name,
        class: format!("m{}", LAYERS.len() + index),
        bytes,
    });
    let series: Vec<_> = series.collect();
    let times: Vec<_> = timeline.points.iter().map(|one| one.time).collect();
    let chart = Chart {
        id: "caches",
        title: "Live memory of the caches that changed most, over time",
        times: &times,
        series: &series,
        restarts: &timeline.restarts(),
    };
    html! {
        section {
            h2 { "Caches and size classes that changed most" }
            @if series.is_empty() {
                p class="note" { "No cache has changed." }
            } @else {
                p class="note" { "Resident memory of live objects." }
                (both(|frame| chart.lines(frame)))
                (legend(&series))
            }
        }
    }
}

// ---- tables ----

fn differences(changes: &Changes) -> Markup {
    html! {
        section {
            h2 { "First and last snapshot" }
            (table("Resident memory", &["for", "first", "last", "change"], html! {
                @for one in &changes.memory { (row(one, false)) }
            }))
            @if !changes.caches.is_empty() {
                (table(
                    "Live objects of caches and size classes",
                    &["cache", "first", "last", "change", "objects"],
                    html! { @for one in changes.caches.iter().take(ROWS) { (row(one, true)) } },
                ))
                @if changes.caches.len() > ROWS {
                    p class="note" { "and " (changes.caches.len() - ROWS) " more" }
                }
            }
        }
    }
}

fn row(one: &Change, has_objects: bool) -> Markup {
    let objects = match one.objects {
        0 => "0".to_string(),
        more @ 1.. => format!("+{}", grouped(more.unsigned_abs())),
        fewer => format!("-{}", grouped(fewer.unsigned_abs())),
    };
    html! {
        tr {
            th scope="row" { (plain(&one.name)) }
            td { (bytes(one.before)) }
            td { (bytes(one.after)) }
            td { (signed(one)) }
            @if has_objects { td { (objects) } }
        }
    }
}

fn about(timeline: &Timeline) -> Markup {
    let [first, last] = &timeline.files;
    let command = format!("slabyard diff {} {}", first.display(), last.display());
    html! {
        section {
            h2 { "About this page" }
            p {
                (grouped(timeline.points.len() as u64)) " snapshots in "
                (span(timeline.seconds())) ". The differences between any two of them:"
            }
            p { code { (plain(&command)) } }
            @if !timeline.left_out.is_empty() {
                ul { @for words in &timeline.left_out { li { (plain(words)) } } }
            }
        }
    }
}
