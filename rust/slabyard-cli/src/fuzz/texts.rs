//! Fuzzes texts from a user, from the system, or from a program whose allocations fail. The first
//! byte of an input chooses the parser.

use crate::{cli, faults, machine, perf_map, preload, replay, service};
use std::ffi::OsStr;

pub fn run(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(input);
    match kind % 4 {
        _ if *kind == 0xff => perf_map::try_text(input),
        0 => cli::try_command_line(&mut text.split('\0')),
        1 => {
            machine::try_texts(&text);
            service::listening::try_text(&text);
        }
        2 => {
            replay::memory::try_text(input);
            preload::try_bytes(input);
        }
        _ => try_faults(&text),
    }
}

/// Checks that each line is sorted into failures or the rest, and that a quoted word is one word
/// for a shell.
fn try_faults(text: &str) {
    let (made, rest) = faults::sort_out(text);
    let lines = |text: &str| text.lines().count();
    let blank = usize::from(rest.is_empty());
    assert!(made.len() + lines(&rest) <= lines(text) + blank);
    let quoted = faults::text::quoted(OsStr::new(text));
    assert_eq!(unquoted(&quoted), text);
}

/// Reads a word as a shell does, if only ' and \ have a meaning in it.
fn unquoted(word: &str) -> String {
    let (mut text, mut inside, mut letters) = (String::new(), false, word.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => inside = !inside,
            '\\' if !inside => text.extend(letters.next()),
            letter => {
                let plain = letter.is_ascii_alphanumeric() || "_-./=:,@%+".contains(letter);
                assert!(inside || plain, "{letter:?} has a meaning for a shell");
                text.push(letter);
            }
        }
    }
    assert!(!inside, "a quote is open");
    text
}
