//! Compares the number of instructions of the crate's hot paths with the golden file.
//!
//! Callgrind counts them: each path is run with two numbers of turns, and the difference belongs to
//! the turns alone. The golden file names its version of rustc; with another version, fewer
//! instructions are accepted too. `UPDATE_GOLDEN=1` writes the file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

const FEW: u64 = 5_000;
const MANY: u64 = 25_000;

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    assert!(output.status.success(), "{command:?}: {output:?}");
    let both = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&both).into_owned())
}

/// The number of instructions of a whole process.
fn instructions(path: &str, turns: u64) -> u64 {
    let text = output(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(env!("CARGO_BIN_EXE_slabyard-golden"))
            .args([path, &turns.to_string()]),
    );
    let text = text.expect("valgrind runs");
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = line.unwrap_or_else(|| panic!("no figure in {text}"));
    number.trim().parse().expect("a number")
}

/// The number of instructions of one turn. The rest of a process differs by a few from run to run.
fn of_one_turn(path: &str) -> u64 {
    let more = instructions(path, MANY) - instructions(path, FEW);
    let each = more as f64 / (MANY - FEW) as f64;
    assert!(
        (each - each.round()).abs() < 0.2,
        "{path}: {each} instructions a turn: not always the same path"
    );
    each.round() as u64
}

fn golden_file() -> PathBuf {
    let name = format!("tests/{}.txt", std::env::consts::ARCH);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The version of the compiler, such as "rustc 1.95", without the parts that do not affect code.
fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = output(Command::new(rustc).arg("--version")).expect("rustc runs");
    let version = text.split_whitespace().nth(1).unwrap_or("");
    let minor: Vec<&str> = version.split('.').take(2).collect();
    format!("rustc {}", minor.join("."))
}

/// The figures in the text of a golden file.
fn figures(text: &str) -> BTreeMap<&str, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line| -> (&str, &str) { str::split_once(line, ' ').expect("a name and a number") };
    lines
        .map(split)
        .map(|(name, number)| (name, number.parse().expect("a number")))
        .collect()
}

/// A line for each path with a wrong number of instructions.
fn difference(golden: &BTreeMap<&str, u64>, found: &BTreeMap<&str, u64>, exact: bool) -> String {
    let mut text = String::new();
    for (name, count) in found {
        match golden.get(name) {
            None => writeln!(text, "{name}: {count}, not in the golden file"),
            Some(was) if count > was || (exact && count < was) => {
                writeln!(text, "{name}: {count} instructions, golden is {was}")
            }
            _ => Ok(()),
        }
        .expect("a string");
    }
    for name in golden.keys().filter(|name| !found.contains_key(*name)) {
        writeln!(text, "{name}: no such path").expect("a string");
    }
    text
}

#[test]
fn the_hot_paths_are_as_short_as_ever() {
    if cfg!(debug_assertions) {
        println!("skipped: the figures are of a build with optimisation (--release)");
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: there is no valgrind");
        return;
    }
    let list = output(&mut Command::new(env!("CARGO_BIN_EXE_slabyard-golden"))).expect("it runs");
    let compiler = compiler();
    let mut text = format!("# {compiler}: instructions of one turn, the loop's own included\n");
    for path in list.lines() {
        writeln!(text, "{path} {}", of_one_turn(path)).expect("a string");
    }
    let file = golden_file();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, text).expect("the golden file is written");
        return;
    }
    let Ok(golden) = std::fs::read_to_string(&file) else {
        println!("skipped: nothing to compare with on this processor");
        return;
    };
    let exact = golden.starts_with(&format!("# {compiler}:"));
    let difference = difference(&figures(&golden), &figures(&text), exact);
    assert!(
        difference.is_empty(),
        "{}, with {compiler}:\n{difference}if that is meant: UPDATE_GOLDEN=1",
        file.display()
    );
}

#[test]
fn what_differs_is_told() {
    let golden = figures("# rustc 1.0: instructions\nless 10\nmore 10\nsame 10\ngone 10\n");
    let found = figures("less 9\nmore 11\nsame 10\nnew 1\n");
    let exact = difference(&golden, &found, true);
    assert_eq!(
        exact,
        "less: 9 instructions, golden is 10\nmore: 11 instructions, golden is 10\n\
         new: 1, not in the golden file\ngone: no such path\n"
    );
    let other = difference(&golden, &found, false);
    assert!(!other.contains("less") && other.contains("more"));
}
