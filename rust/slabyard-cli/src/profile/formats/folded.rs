//! Folded stacks: a line for each stack, its functions from the outermost one on, and its weight.

use super::super::data::Profile;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of a function in a line: the separators of the format are replaced.
fn word(function: &str) -> String {
    function.replace(';', ":").replace('\n', " ")
}

/// The lines of all stacks, each once, with the weights above and below 0.
pub fn lines(profile: &Profile, measure: usize) -> BTreeMap<String, i64> {
    let names: Vec<String> = profile
        .frames
        .iter()
        .map(|one| word(&one.function))
        .collect();
    let mut lines = BTreeMap::new();
    for stack in &profile.stacks {
        let words = stack.frames.iter().map(|&at| names[at as usize].as_str());
        let line = words.collect::<Vec<_>>().join(";");
        *lines.entry(line).or_default() += stack.values[measure];
    }
    lines.retain(|_, value| *value != 0);
    lines
}

pub fn render(profile: &Profile, measure: usize) -> String {
    let mut text = String::new();
    for (line, value) in lines(profile, measure) {
        let _ = writeln!(text, "{line} {value}");
    }
    text
}
