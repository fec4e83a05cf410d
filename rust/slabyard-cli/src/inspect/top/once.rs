//! One frame as text, for pipes.

use super::super::text;
use super::processes::{self, Found};
use super::session::{Session, CACHES_ORDER, MEMORY_ORDER, TAGS_ORDER, THREADS_ORDER};
use super::table::{Order, Shape, Table, GAP};
use crate::report::table::{paragraph, WIDTH};
use std::fmt::Write;

pub fn list(all: &[Found]) -> String {
    let mut text = String::new();
    if all.is_empty() {
        return "No process of yours uses Slabyard.\n".to_string();
    }
    add(&mut text, &processes::table(all), processes::ORDER);
    text
}

pub fn process(session: &Session) -> String {
    let Some(account) = &session.account else {
        return String::new();
    };
    let mut text = format!("{}\n\n", text::heading(account));
    add(&mut text, &session.memory(), MEMORY_ORDER);
    text.push('\n');
    add(&mut text, &session.caches(), CACHES_ORDER);
    text.push('\n');
    add(&mut text, &session.threads(), THREADS_ORDER);
    text.push('\n');
    if let Some(tags) = &account.tags {
        add(&mut text, &session.tags(), TAGS_ORDER);
        text.push('\n');
        paragraph(&mut text, &text::about_tags(tags));
    }
    for words in text::warnings(account) {
        paragraph(&mut text, &words);
    }
    for problem in &account.problems {
        let words = format!("Not everything could be read: {problem}.");
        paragraph(&mut text, &words);
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Adds a table without what is drawn.
fn add(text: &mut String, table: &Table, order: usize) {
    const WIDEST: usize = 3 * WIDTH;
    let mut shown = table.fit(WIDEST);
    shown.retain(|&(at, _)| !matches!(table.columns[at].shape, Shape::Bar | Shape::Trend));
    let mut line = |cells: Vec<String>| {
        let line = cells.join(&" ".repeat(GAP));
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(table.heads(None, &shown));
    for row in table.view(Order::by(order), "") {
        line(table.cells(row, &shown));
    }
}
