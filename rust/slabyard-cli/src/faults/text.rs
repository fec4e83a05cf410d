//! The text of the report of `slabyard faults`.

use super::{Faults, Finding, Stopped};
use crate::ui::grouped;
use std::ffi::OsStr;
use std::fmt::Write;

/// Quotes a word for a shell.
pub fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

pub fn render(faults: &Faults) -> String {
    let mut text = String::new();
    for finding in &faults.findings {
        add_finding(&mut text, finding);
    }
    let (tried, found) = (grouped(faults.tried), faults.findings.len());
    let failed = if faults.tried == 1 {
        "failure"
    } else {
        "failures"
    };
    let _ = match found {
        0 => writeln!(text, "{tried} {failed}, all survived"),
        _ => writeln!(text, "{tried} {failed}, {found} not survived"),
    };
    let why = match faults.stopped {
        Stopped::AllTried => return text,
        Stopped::AtFirst => "stopped at the first (--all continues)",
        Stopped::AtMost => "stopped at --max",
        Stopped::Interrupted => "interrupted",
    };
    let _ = writeln!(text, "{why}; --from {} continues", faults.next);
    text
}

fn add_finding(text: &mut String, finding: &Finding) {
    let _ = writeln!(text, "{}: {}", finding.run.made.join(", "), finding.what);
    add_block(text, "report", &finding.run.report);
    add_block(text, "end of its output", &finding.run.output);
    let _ = writeln!(text, "  again: {}\n", finding.again);
}

fn add_block(text: &mut String, name: &str, block: &str) {
    if block.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {name}:");
    for line in block.lines() {
        let _ = writeln!(text, "    {line}");
    }
}
