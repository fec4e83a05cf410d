//! Shows accounts as text for the terminal.

use super::account::{Account, CacheRow, What};
use super::heap::{Heap, Holder};
use super::pins::{Kept, Page, Pin, Pins};
use super::snapshot::{Change, Changes};
use super::tags::{Source, TagRow, Tags};
use super::verify::Report;
use crate::report::table::{lay_out, paragraph};
use crate::ui::{bytes, grouped};
use std::fmt::Write;

/// Rows of a list that has no end given.
const ROWS: usize = 20;

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// Bytes with a sign.
pub fn change(bytes: i64) -> String {
    let sign = match bytes {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", crate::ui::bytes(bytes.unsigned_abs()))
}

/// The whole account: sums, then what it says in words.
pub fn account(account: &Account) -> String {
    let mut text = format!("{}\n\n", heading(account));
    let shared = account.pss_bytes.is_some();
    let mut rows = vec![head(&["", "RSS", "", "PSS"][..3 + usize::from(shared)])];
    let total = account.rss_bytes;
    let mut row = |name: &str, resident: u64, own: f64| {
        let mut cells = vec![name.to_string(), bytes(resident), percent(resident, total)];
        if shared {
            cells.push(bytes(own.round() as u64));
        }
        rows.push(cells);
    };
    for ours in [true, false] {
        let of = account.resident.iter();
        let of: Vec<_> = of.filter(|(what, _)| what.is_slabyard() == ours).collect();
        let resident = of.iter().map(|(_, weight)| weight.bytes).sum();
        let own = of.iter().map(|(_, weight)| weight.shares).sum();
        row(if ours { "Slabyard" } else { "the rest" }, resident, own);
        for (what, weight) in of {
            row(&format!("  {}", what.words()), weight.bytes, weight.shares);
        }
    }
    row("all", total, account.pss_bytes.unwrap_or(0) as f64);
    lay_out(&mut text, &rows);
    text.push('\n');
    tags(&mut text, account);
    for words in sentences(account) {
        paragraph(&mut text, &words);
    }
    text
}

/// Live memory by tag, if the program has tags and their memory is known.
fn tags(text: &mut String, account: &Account) {
    let Some(tags) = account.tags.as_ref().filter(|tags| !tags.rows.is_empty()) else {
        return;
    };
    let _ = writeln!(text, "Live memory by tag, {}:\n", source_of(tags));
    let mut rows = vec![head(&["tag", "live", "", "objects", "error"])];
    let sizes = tags.rows.iter().map(|row| row.live_bytes);
    let total = sizes.fold(0, u64::saturating_add);
    for row in &tags.rows {
        rows.push(vec![
            row.words().to_string(),
            bytes(row.live_bytes),
            percent(row.live_bytes, total),
            grouped(row.live_objects),
            error_of(row),
        ]);
    }
    lay_out(text, &rows);
    text.push('\n');
}

/// A sentence about figures by tag.
pub fn about_tags(tags: &Tags) -> String {
    let known = || format!("Live memory by tag is {}.", source_of(tags));
    without_figures(tags).unwrap_or_else(known)
}

/// Where figures by tag come from.
fn source_of(tags: &Tags) -> String {
    match (tags.source, tags.samples) {
        (Source::Nothing, _) => "unknown".into(),
        (Source::Audit, _) => "counted for objects with audit".into(),
        (Source::Samples, 1) => "estimated from 1 sample".into(),
        (Source::Samples, samples) => format!("estimated from {} samples", grouped(samples)),
    }
}

/// How far an estimate may be off; a third of all estimates are further off.
pub fn error_of(row: &TagRow) -> String {
    match row.error() {
        Some(part) => format!("± {:.0} %", part * 100.0),
        None => "-".into(),
    }
}

pub fn heading(account: &Account) -> String {
    let library = |path: &String| match path.rsplit('/').next() {
        Some("") | None => "an unnamed file".to_string(),
        Some(name) => name.to_string(),
    };
    let libraries: Vec<_> = account.libraries.iter().map(library).collect();
    format!(
        "Memory of {} (process {}), with Slabyard in {}",
        account.program,
        account.pid,
        libraries.join(" and ")
    )
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

/// What the figures mean, most important first.
fn sentences(account: &Account) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(residual) = account.residual() {
        all.push(match residual {
            0 => "The rows add up to the resident memory that the system counts.".to_string(),
            _ => format!(
                "The system counts {} directly afterwards: {}. The process ran meanwhile.",
                bytes(account.system_rss_bytes.unwrap_or(0)),
                change(residual)
            ),
        });
    }
    all.extend(account.remarks.iter().cloned());
    all.extend(account.tags.as_ref().and_then(without_figures));
    all.push(format!(
        "{} of address space for objects hold no memory.",
        bytes(account.address_space_bytes)
    ));
    all.extend(warnings(account));
    let problems = account.problems.iter();
    all.extend(problems.map(|problem| format!("Not everything could be read: {problem}.")));
    all
}

/// Why a program with tags has no figures for them.
fn without_figures(tags: &Tags) -> Option<String> {
    (tags.source == Source::Nothing).then(|| {
        "The program has tags. Start it with SLABYARD=profile to see how much of its memory is live \
         by tag."
            .into()
    })
}

/// What an operator should look at.
pub fn warnings(account: &Account) -> Vec<String> {
    /// Smaller amounts are no reason to look.
    const LEAST: u64 = 4 << 20;
    /// Parts of the memory for objects that are.
    const PART: u64 = 10;
    let mut all = Vec::new();
    let objects: u64 = account.of(What::Live) + account.of(What::Large) + account.free();
    let much = |bytes: u64| bytes >= LEAST && bytes >= objects / PART;
    let sleepers = account
        .threads
        .iter()
        .filter(|thread| thread.state == 'S' && thread.waiting_bytes > 0);
    let waits: u64 = sleepers.clone().map(|thread| thread.waiting_bytes).sum();
    if much(waits) {
        all.push(format!(
            "{} of free objects wait in magazines of {} threads that sleep. `slabyard pins` says which \
             pages they keep.",
            bytes(waits),
            sleepers.count()
        ));
    }
    if much(account.of(What::FreeUnits)) {
        all.push(format!(
            "{} are free units. They go back to the system by age, if the program allocates from time \
             to time or has the maintenance thread; else sy_trim returns them.",
            bytes(account.of(What::FreeUnits))
        ));
    }
    if much(account.of(What::Holes)) {
        all.push(format!(
            "{} are holes between live objects of several sizes. They serve objects of up to 8 KiB; a \
             page of them goes back once no object lies on it.",
            bytes(account.of(What::Holes))
        ));
    }
    let unknown = account.of(What::Anonymous);
    if unknown >= LEAST && unknown > account.rss_bytes / 2 {
        all.push(format!(
            "{} are not Slabyard's: the program or one of its libraries takes this memory from the \
             system itself.",
            bytes(unknown)
        ));
    }
    if let Some(cache) = account.caches.iter().max_by_key(|cache| cache.free_bytes) {
        if much(cache.free_bytes) {
            all.push(format!(
                "{} in slabs of {} are free, beside {} live objects. `slabyard pins` says which objects \
                 keep this memory.",
                bytes(cache.free_bytes),
                cache.name,
                grouped(cache.live_objects)
            ));
        }
    }
    let refused: u64 = account.caches.iter().map(|cache| cache.limits_hit).sum();
    if refused > 0 {
        all.push(format!(
            "{} allocations were refused because of a limit.",
            grouped(refused)
        ));
    }
    all
}

/// The caches with the most resident memory.
pub fn caches(account: &Account, all: bool) -> String {
    let mut text = format!("{}\n\n", heading(account));
    let mut caches: Vec<&CacheRow> = account.caches.iter().collect();
    caches.retain(|cache| cache.held_bytes > 0);
    caches.sort_by_key(|cache| (u64::MAX - cache.resident_bytes, cache.name.clone()));
    let shown = if all { caches.len() } else { ROWS };
    let mut rows = vec![head(&[
        "cache", "kind", "object", "objects", "resident", "live", "waiting", "free", "used",
    ])];
    for cache in caches.iter().take(shown) {
        rows.push(vec![
            cache.name.clone(),
            cache.kind.to_string(),
            bytes(cache.object_bytes),
            grouped(cache.live_objects),
            bytes(cache.resident_bytes),
            bytes(cache.live_bytes),
            bytes(cache.waiting_bytes),
            bytes(cache.free_bytes),
            percent(cache.live_bytes, cache.resident_bytes),
        ]);
    }
    lay_out(&mut text, &rows);
    if caches.len() > shown {
        let _ = writeln!(text, "and {} more: --all", caches.len() - shown);
    }
    text + "\nobjects: live ones. resident: memory of the slabs; live objects, free ones that wait in\n\
            magazines, and free slots are parts of it. used: the part that is live. Large objects\n\
            belong to no cache.\n"
}

/// The threads with the most memory in their magazines.
pub fn threads(account: &Account, all: bool) -> String {
    let mut text = format!("{}\n\n", heading(account));
    let mut threads: Vec<_> = account.threads.iter().collect();
    threads.sort_by_key(|thread| (u64::MAX - thread.waiting_bytes, thread.number));
    let shown = if all { threads.len() } else { ROWS };
    let mut rows = vec![head(&[
        "thread",
        "name",
        "state",
        "free objects",
        "resident",
    ])];
    for thread in threads.iter().take(shown) {
        rows.push(vec![
            thread.number.to_string(),
            thread.name.clone(),
            state(thread.state).to_string(),
            grouped(thread.waiting_objects),
            bytes(thread.waiting_bytes),
        ]);
    }
    lay_out(&mut text, &rows);
    if threads.len() > shown {
        let _ = writeln!(text, "and {} more: --all", threads.len() - shown);
    }
    text + "\nfree objects: in the magazines of the thread, ready for its next allocations.\n"
}

/// The state of a thread in words.
pub fn state(letter: char) -> &'static str {
    match letter {
        'R' => "runs",
        'S' => "sleeps",
        'D' => "waits for a device",
        'T' | 't' => "stopped",
        'Z' | 'X' => "ended",
        _ => "?",
    }
}

// ---- pins ----

fn who(pin: Pin, heap: &Heap) -> String {
    match pin {
        Pin::Objects(Some(cache)) => format!("live objects of {}", heap.caches[cache].name),
        Pin::Objects(None) => "live large objects, and others".into(),
        Pin::Magazine(Holder::Thread(thread)) => {
            format!("magazines of thread {}", heap.number_of(thread))
        }
        Pin::Magazine(Holder::Depot) => "magazines in the depot".into(),
        Pin::Magazine(Holder::Quarantine) => "the quarantine".into(),
        Pin::Nothing => "nothing: it goes back by age or with sy_trim".into(),
    }
}

pub fn pins(account: &Account, heaps: &[Heap], all: &[Pins]) -> String {
    let mut text = format!("{}\n", heading(account));
    for (heap, pins) in heaps.iter().zip(all) {
        let mut by: Vec<(&Pin, &Kept)> = pins.by.iter().collect();
        by.sort_by_key(|(pin, kept)| (u64::MAX - kept.free_bytes, who(**pin, heap)));
        let free: u64 = by.iter().map(|(_, kept)| kept.free_bytes).sum();
        let _ = writeln!(
            text,
            "\n{} of resident memory are free. They are kept by\n",
            bytes(free)
        );
        let mut rows = vec![head(&[
            "",
            "free",
            "",
            "pages",
            "objects",
            "free per object",
        ])];
        let mut row = |who: String, kept: &Kept| {
            rows.push(vec![
                who,
                bytes(kept.free_bytes),
                percent(kept.free_bytes, free),
                grouped(kept.pages),
                grouped(kept.objects),
                kept.free_bytes
                    .checked_div(kept.objects)
                    .map_or("-".into(), bytes),
            ]);
        };
        for (pin, kept) in by.iter().take(ROWS) {
            row(who(**pin, heap), kept);
        }
        if by.len() > ROWS {
            let mut rest = Kept::default();
            for (_, kept) in &by[ROWS..] {
                rest.pages += kept.pages;
                rest.free_bytes += kept.free_bytes;
                rest.objects += kept.objects;
            }
            row(format!("{} others", by.len() - ROWS), &rest);
        }
        lay_out(&mut text, &rows);
        pages(&mut text, heap, &pins.pages);
    }
    text
}

fn pages(text: &mut String, heap: &Heap, pages: &[Page]) {
    if pages.is_empty() {
        return;
    }
    *text += "\nThe pages with the most free memory that live objects keep:\n\n";
    let mut rows = vec![head(&["page", "free", "of", "objects"])];
    for page in pages {
        let mut objects: Vec<_> = page.objects.iter().map(|at| format!("{at:#x}")).collect();
        let more = page.object_count as usize - objects.len().min(page.object_count as usize);
        if more > 0 {
            objects.push(format!("and {more} more"));
        }
        let cache = page
            .cache
            .map_or("-", |cache| heap.caches[cache].name.as_str());
        rows.push(vec![
            format!("{:#x}", page.address),
            bytes(page.free_bytes),
            cache.to_string(),
            objects.join(" "),
        ]);
    }
    lay_out(text, &rows);
}

// ---- differences ----

/// What has changed between two snapshots.
pub fn changes(changes: &Changes) -> String {
    let mut text = format!(
        "{} (process {}), {:.0} seconds later\n\n",
        changes.program, changes.pid, changes.seconds
    );
    table(&mut text, "memory", &changes.memory);
    table(&mut text, "cache: live objects", &changes.caches);
    if !changes.tags.is_empty() {
        table(&mut text, &changes.tags_title, &changes.tags);
    }
    stacks(&mut text, &changes.stacks);
    if changes.is_another {
        paragraph(&mut text, "The snapshots are of different processes.");
    }
    text
}

/// The stacks that changed most.
fn stacks(text: &mut String, changes: &[Change]) {
    const SHOWN: usize = 5;
    const FUNCTIONS: usize = 8;
    for one in changes.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "{}, {} objects ({} before, {} after), estimated from samples:",
            change(one.after as i64 - one.before as i64),
            more(one.objects),
            bytes(one.before),
            bytes(one.after)
        );
        for function in one.name.lines().take(FUNCTIONS) {
            let _ = writeln!(text, "    {function}");
        }
        text.push('\n');
    }
}

/// A number of objects with its sign.
fn more(objects: i64) -> String {
    let sign = if objects < 0 { '-' } else { '+' };
    format!("{sign}{}", grouped(objects.unsigned_abs()))
}

fn table(text: &mut String, title: &str, changes: &[Change]) {
    let mut rows = vec![head(&[title, "before", "after", "change", "objects"])];
    for one in changes.iter().take(ROWS) {
        rows.push(vec![
            one.name.clone(),
            bytes(one.before),
            bytes(one.after),
            change(one.after as i64 - one.before as i64),
            match one.objects {
                0 => String::new(),
                objects => more(objects),
            },
        ]);
    }
    lay_out(text, &rows);
    text.push('\n');
}

/// What is wrong in a heap.
pub fn faults(report: &Report) -> String {
    const SHOWN: usize = 100;
    let mut text = format!("Looked at {}.\n", report.extent());
    for (address, what) in report.faults.iter().take(SHOWN) {
        text += &format!("{address:#x}: {what}\n");
    }
    text += &match report.faults.len() {
        0 => "Nothing is wrong.\n".to_string(),
        1 => "1 fault.\n".to_string(),
        count => format!("{count} faults.\n"),
    };
    text
}
