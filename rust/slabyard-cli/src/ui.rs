//! The tool's output: warnings and progress on standard error, results on standard output.

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;

/// Writes a line to standard error. An error of the write is ignored.
pub fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "slabyard: {text}");
}

/// Writes to standard output. It may be a file on a full disk, or a pipe without a reader.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// The same for what is not text.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// A bar of known length; nothing is drawn where standard error is not a terminal.
pub fn bar(what: &'static str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:28} [{bar:32}] {percent:>3} %  {eta:>4} left")
        .expect("a template without mistakes")
        .progress_chars("=> ");
    ProgressBar::new(length)
        .with_style(style)
        .with_message(what)
}

/// A progress line for work whose length is unknown.
pub fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
    ProgressBar::new_spinner().with_style(style.expect("a template without mistakes"))
}

/// A number of bytes in a readable unit.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// The same, without a zero after the decimal point.
pub fn round_bytes(count: u64) -> String {
    bytes(count).replace(".0 ", " ")
}

/// Formats 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Nanoseconds with about three digits, as a number without unit.
pub fn nanoseconds(value: f64) -> String {
    if value.abs() >= 100.0 {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", grouped(value.abs().round() as u64))
    } else {
        format!("{value:.1}")
    }
}

/// A time that a person has chosen or waits for: `0.25 s`, `5 min`, `36 h`, `7 days`.
pub fn span(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    let text = match value {
        small if small < 1.0 => format!("{small:.2}"),
        small if small < 10.0 => format!("{small:.1}"),
        large => format!("{large:.0}.0"),
    };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

/// A text with a capital letter at its start.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(300 << 20), "300 MiB");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(nanoseconds(12.34), "12.3");
        assert_eq!(nanoseconds(12_345.6), "12,346");
        assert_eq!(nanoseconds(-12_345.6), "-12,346");
        assert_eq!(span(0.25), "0.25 s");
        assert_eq!(span(90.0), "90 s");
        assert_eq!(span(300.0), "5 min");
        assert_eq!(span(90_000.0), "25 h");
        assert_eq!(span(5400.0), "90 min");
        assert_eq!(span(7.0 * 86_400.0), "7 days");
    }
}
