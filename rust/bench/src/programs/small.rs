//! The memory of a program that has just started: `programs/small.c`, over each malloc.
//!
//! Linux maps 64 KiB of a file at once, and loads libraries at random places. So how much of a library
//! is in RAM differs from run to run, and each figure is the median of many runs.

use super::{over, workloads};
use crate::figure::Figure;
use crate::preloaded::Contender;
use std::path::Path;

/// Its name among the programs.
pub const NAME: &str = "small";

pub const RESIDENT: &str = "resident KiB";
pub const ANONYMOUS: &str = "anonymous KiB";

const ROUNDS: usize = 20;

/// The two numbers that the program prints.
fn numbers(text: &str) -> Option<[f64; 2]> {
    let mut words = text.split_whitespace().map(str::parse);
    match (words.next(), words.next(), words.next()) {
        (Some(Ok(resident)), Some(Ok(anonymous)), None) => Some([resident, anonymous]),
        _ => None,
    }
}

/// The figures of all allocators, one after the other in each round.
pub fn measure(who: &[Contender], tool: &Path, folder: &Path) -> Result<Vec<Figure>, String> {
    let program = [workloads::small().into_os_string()];
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        for one in who {
            let failed = |what: &str| format!("{NAME} on {}: {what}", one.name);
            let output = over(one, tool, &program, folder)
                .output()
                .map_err(|error| failed(&error.to_string()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let found = numbers(&text).ok_or_else(|| failed(&text))?;
            for (metric, value) in [RESIDENT, ANONYMOUS].into_iter().zip(found) {
                figures.push(Figure::new(NAME, metric, one.name, round, value));
            }
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_are_needed() {
        assert_eq!(numbers("1200 96\n"), Some([1200.0, 96.0]));
        for wrong in ["", "1200", "1200 x", "1 2 3"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }
}
