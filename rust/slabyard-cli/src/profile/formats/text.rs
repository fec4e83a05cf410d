//! A table for the terminal: the places that allocate most, each with the stack of most of it.

use super::super::data::{Frame, Profile, Stack};
use super::super::names::is_interpreted;
use crate::ui;
use std::collections::HashMap;
use std::fmt::Write;

/// The most frames of a stack that are shown.
const FRAMES: usize = 12;

/// `4.2 MiB`, `1,234 objects`; with a sign for a difference.
pub fn amount(value: i64, unit: &str, is_difference: bool) -> String {
    let sign = match value {
        0.. if !is_difference => "",
        0.. => "+",
        _ => "-",
    };
    let size = value.unsigned_abs();
    match unit {
        "bytes" => format!("{sign}{}", ui::bytes(size)),
        _ => format!("{sign}{}", ui::grouped(size)),
    }
}

/// Names of functions that only hand memory on: the site is the function that called them.
pub fn is_plumbing(frame: &Frame) -> bool {
    const BEGINNINGS: [&str; 13] = [
        "operator new",
        "std::",
        "__gnu_cxx::",
        "void* std::",
        "alloc::",
        "<alloc::",
        "core::",
        "<core::",
        "__rust_",
        "__rustc",
        "hashbrown::",
        "void std::",
        "__rdl_",
    ];
    const NAMES: [&str; 12] = [
        "malloc",
        "calloc",
        "realloc",
        "strdup",
        "strndup",
        "__strdup",
        "__GI___strdup",
        "reallocarray",
        "xmalloc",
        "xcalloc",
        "xrealloc",
        "__vasprintf_internal",
    ];
    // Debug information names inlined functions of Rust without their modules.
    const SOURCES: [&str; 6] = [
        "/rustc/",
        "/library/alloc/src/",
        "/library/core/src/",
        "/library/std/src/",
        "/hashbrown-",
        "/include/c++/",
    ];
    let name = frame.function.as_str();
    NAMES.contains(&name)
        || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || SOURCES.iter().any(|source| frame.file.contains(source))
}

/// The frames of a stack, the innermost one first, from the site on.
pub fn from_site<'a>(profile: &'a Profile, stack: &'a Stack) -> Vec<&'a Frame> {
    let frames = stack.frames.iter().rev();
    let frames: Vec<_> = frames.map(|&at| &profile.frames[at as usize]).collect();
    let plumbing = frames.iter().take_while(|frame| is_plumbing(frame)).count();
    let skipped = if plumbing < frames.len() { plumbing } else { 0 };
    frames[skipped..].to_vec()
}

/// The frames that a table shows: from the site on. Of a program in Python or JavaScript, they are its
/// functions alone, which call each other through many of the interpreter's.
fn shown<'a>(profile: &'a Profile, stack: &'a Stack) -> Vec<&'a Frame> {
    let frames = stack.frames.iter().rev();
    let frames = frames.map(|&at| &profile.frames[at as usize]);
    let interpreted: Vec<_> = frames.filter(|frame| is_interpreted(frame)).collect();
    match interpreted.is_empty() {
        true => from_site(profile, stack),
        false => interpreted,
    }
}

/// Stacks whose site is the same line of the same function.
struct Site<'a> {
    value: i64,
    stacks: usize,
    /// The stack with the most.
    most: &'a Stack,
}

/// The sites by the size of a measure.
fn sites(profile: &Profile, measure: usize) -> Vec<Site<'_>> {
    let mut places: HashMap<&Frame, usize> = HashMap::new();
    let mut sites: Vec<Site> = Vec::new();
    for stack in profile.sorted(measure) {
        let Some(&frame) = shown(profile, stack).first() else {
            continue;
        };
        let place = *places.entry(frame).or_insert(sites.len());
        if place == sites.len() {
            sites.push(Site {
                value: 0,
                stacks: 0,
                most: stack,
            });
        }
        sites[place].value += stack.values[measure];
        sites[place].stacks += 1;
    }
    sites.retain(|site| site.value != 0);
    sites.sort_by_key(|site| std::cmp::Reverse(site.value.unsigned_abs()));
    sites
}

pub fn render(profile: &Profile, measure: usize, rows: usize) -> String {
    let what = profile.measures[measure];
    let sites = sites(profile, measure);
    let is_difference = profile.is_difference;
    let of = |value| amount(value, what.unit, is_difference);
    let total = profile.total(measure);
    let mut text = format!("{}: {} {}\n", profile.title, of(total), what.title);
    for site in sites.iter().take(rows) {
        let share = 100.0 * site.value as f64 / total.max(1) as f64;
        let share = if is_difference {
            String::new()
        } else {
            format!(" ({share:.1}%)")
        };
        let from = if site.stacks == 1 {
            String::new()
        } else {
            format!(
                " from {} stacks, most from this one",
                ui::grouped(site.stacks as u64)
            )
        };
        let _ = writeln!(text, "\n{}{share}{from}", of(site.value));
        write_frames(&mut text, &shown(profile, site.most));
    }
    if sites.len() > rows {
        let rest: i64 = sites[rows..].iter().map(|site| site.value).sum();
        let others = match sites.len() - rows {
            1 => "1 other place".to_string(),
            count => format!("{} other places", ui::grouped(count as u64)),
        };
        let _ = writeln!(text, "\n{} in {others}", of(rest));
    }
    text
}

fn write_frames(text: &mut String, frames: &[&Frame]) {
    for frame in frames.iter().take(FRAMES) {
        let _ = writeln!(text, "    {}", frame.with_line());
    }
    if frames.len() > FRAMES {
        let _ = writeln!(text, "    ... {} more", frames.len() - FRAMES);
    }
}
