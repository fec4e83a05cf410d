//! Writes the map as an HTML page: one file that needs no network.

use super::collect::{Group, Picture, Use, UNIT};
use super::pack::{self, Packed};
use super::words;
use crate::report::chart::escape;
use crate::ui::{bytes, grouped};
use maud::{html, Markup, PreEscaped};
use serde_json::{json, Value};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be loaded from anywhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
";

/// A text from outside, without control characters.
fn plain(text: &str) -> PreEscaped<String> {
    PreEscaped(escape(text))
}

pub fn render(picture: &Picture) -> String {
    let packed = pack::pack(picture);
    let ranked = picture.ranked();
    let page = html! {
        (PreEscaped(HEAD))
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        title { (plain(&words::title(picture))) }
        style { (PreEscaped(STYLE)) }
        (PreEscaped("</head>\n<body>\n"))
        main {
            header {
                h1 { (plain(&words::title(picture))) }
                p class="answer" { (words::answer(picture)) }
                p { (words::holes(picture)) }
            }
            div class="columns" {
                (map(picture, &ranked))
                div class="side" {
                    (legend(picture, &ranked))
                    (pinned(picture))
                    (notes(picture, &packed))
                }
            }
        }
        script id="head" type="application/json" { (PreEscaped(data(picture))) }
        script id="packed" type="text/plain" { (PreEscaped(packed.text)) }
        script { (PreEscaped(SCRIPT)) }
        (PreEscaped("</body>\n</html>\n"))
    };
    page.into_string()
}

fn map(picture: &Picture, ranked: &[usize]) -> Markup {
    html! {
        section class="map" {
            div class="tools" {
                div class="group" role="group" aria-label="Colours" {
                    button id="by-use" aria-pressed="true" { "by use" }
                    button id="by-cache" aria-pressed="false" { "by cache" }
                }
                div class="group" role="group" aria-label="Zoom" {
                    button id="out" aria-label="Zoom out" { "\u{2212}" }
                    button id="in" aria-label="Zoom in" { "+" }
                    button id="all" { "all" }
                }
                form id="search" {
                    input id="what" list="names" aria-label="Search" autocomplete="off"
                        placeholder="address or cache";
                    button { "find" }
                    span id="answer" role="status" {}
                }
                datalist id="names" {
                    @for &at in ranked { option value=(plain(&picture.groups[at].name)) {} }
                }
            }
            (key())
            div class="frame" {
                canvas id="map" tabindex="0" role="img"
                    aria-label="Map of the heap; the table has the same figures" {}
                div id="tip" hidden {}
            }
            p class="note" id="scale" {
                "A square is a part of 4 MiB, in order of address, with 64 units of 64 KiB. Zoom in for \
                 pages of 4 KiB, then for objects."
            }
            noscript { "The map needs JavaScript. `slabyard map PROCESS -o map.svg` makes a picture without." }
        }
    }
}

/// What the colours mean.
fn key() -> Markup {
    html! {
        div class="key" {
            span class="ramp" { "all live" i {} "few live objects" }
            span class="of-use" { i class="swatch waiting" {} "in magazines" }
            span class="of-use" { i class="swatch free" {} "free" }
            span { i class="swatch absent" {} "not in memory" }
        }
    }
}

/// The parts of a group's memory, as a bar.
fn bar(group: &Group) -> Markup {
    let whole = group.bytes.resident().max(1) as f64;
    let width = |part: u64| format!("width:{:.1}%", 100.0 * part as f64 / whole);
    let free = group.bytes.waiting + group.bytes.free;
    let pinned = group.pinned.min(free);
    let waiting = group.bytes.waiting.min(free - pinned);
    html! {
        span class="bar" {
            i class="live" style=(width(group.bytes.live)) {}
            i class="pinned" style=(width(pinned)) {}
            i class="waiting" style=(width(waiting)) {}
            i class="free" style=(width(free - pinned - waiting)) {}
        }
    }
}

fn legend(picture: &Picture, ranked: &[usize]) -> Markup {
    html! {
        section {
            h2 { "Caches" }
            p class="note" {
                "Click on a row to see its slabs. Holes are free memory on pages that live objects keep. "
                "Objects in mixed units are not in the rows of their caches."
            }
            div class="rows" {
                @for &at in ranked { (legend_row(&picture.groups[at], at)) }
            }
        }
    }
}

fn legend_row(group: &Group, at: usize) -> Markup {
    let objects = group.objects;
    html! {
        button class="row" data-group=(at) aria-pressed="false" {
            span class="name" { i class="dot" {} bdi { (plain(&group.name)) } }
            span class="size" { (bytes(group.bytes.resident())) }
            (bar(group))
            span class="facts" {
                (words::kind(group))
                @if matches!(group.of, Use::Slab(_)) {
                    "; " (grouped(objects.live)) " live"
                    @if objects.waiting > 0 { ", " (grouped(objects.waiting)) " in magazines" }
                    ", " (grouped(objects.free)) " free"
                }
                @if group.pinned > 0 { "; holes: " (bytes(group.pinned)) }
            }
        }
    }
}

fn pinned(picture: &Picture) -> Markup {
    html! {
        @if !picture.pinned.is_empty() {
            section {
                h2 { "Pages with few live bytes" }
                p class="note" { "These few bytes keep the rest of the page in memory." }
                div class="rows" {
                    @for one in &picture.pinned {
                        button class="jump" data-address=(format!("{:#x}", one.address)) {
                            code { (format!("{:#x}", one.address)) }
                            " " (grouped(one.live)) " B live, " (grouped(one.free)) " B free, "
                            bdi { (plain(&picture.groups[one.group].name)) }
                        }
                    }
                }
            }
        }
    }
}

fn notes(picture: &Picture, packed: &Packed) -> Markup {
    html! {
        section class="notes" {
            h2 { "What is not shown" }
            @for words in words::left_out(picture, Some(packed)) { p class="note" { (words) } }
        }
    }
}

/// What the script needs beside the packed data. `<` ends no script here, because it is escaped.
fn data(picture: &Picture) -> String {
    let group = |at: usize| -> Value {
        let group = &picture.groups[at];
        json!({
            "name": group.name,
            "slab": matches!(group.of, Use::Slab(_)),
            "mixed": group.of == Use::Mixed,
            "large": group.of == Use::Large,
            "slot": group.slot,
        })
    };
    let groups: Vec<Value> = (0..picture.groups.len()).map(group).collect();
    let head = json!({ "unit": UNIT, "groups": groups, "ranked": picture.ranked() });
    head.to_string().replace('<', "\\u003c")
}
