//! Common code of the parts of this program: options, the choice of rows, measuring processes, and
//! the report with its files.
//!
//! A part flattens `Common` into its options, and `Sampling` if its processes take timed samples.
//! It adds each block of its text to a `Report`; `Report::finish` writes the files.

use crate::figure::{self, Found};
use crate::machine;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Options of every part. Everything is measured `FULL` times, `QUICK` times in a quick run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Common<const FULL: usize, const QUICK: usize> {
    /// A short run: fewer repeats, and less work or shorter samples
    #[arg(long)]
    pub quick: bool,
    #[arg(
        long,
        help = format!("How often everything is measured [default: {FULL}, quick: {QUICK}]")
    )]
    pub repeats: Option<usize>,
    /// Path of the files without their endings [default: a new name in out/bench]
    #[arg(long)]
    pub out: Option<PathBuf>,
}

impl<const FULL: usize, const QUICK: usize> Common<FULL, QUICK> {
    pub fn repeats(&self) -> usize {
        self.or_default(self.repeats, FULL, QUICK).max(1)
    }

    /// The value of an option: as given, or the default of this kind of run.
    pub fn or_default<T>(&self, given: Option<T>, full: T, quick: T) -> T {
        given.unwrap_or(if self.quick { quick } else { full })
    }

    fn base(&self, part: &str) -> PathBuf {
        let new = || new_path(&format!("-{part}"));
        self.out.clone().unwrap_or_else(new)
    }
}

/// Options of the parts whose processes take timed samples.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sampling {
    /// Milliseconds of one sample [default: 20, quick: 4]
    #[arg(long)]
    pub sample_ms: Option<u64>,
    /// What the parent passes to a measuring process
    #[arg(long, hide = true, num_args = 1..)]
    pub child: Option<Vec<String>>,
}

impl Sampling {
    pub fn time(&self, quick: bool) -> Duration {
        let default = if quick { 4 } else { 20 };
        Duration::from_millis(self.sample_ms.unwrap_or(default).max(1))
    }
}

/// Whether a row's name begins with one of `only`. An empty `only` means all rows.
pub fn begins_with(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|part| name.starts_with(part.as_str()))
}

/// Whether a name is one of `only`. An empty `only` means all names.
pub fn is_among(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|one| one == name)
}

/// An error if one of `only` is not in `names`, which name `what`.
pub fn check_names(what: &str, only: &[String], names: &[&str]) -> Result<(), String> {
    match only.iter().find(|one| !names.contains(&one.as_str())) {
        Some(unknown) => Err(format!(
            "there is no {what} {unknown}; there are {}",
            names.join(", ")
        )),
        None => Ok(()),
    }
}

/// This program as a measuring process of a part.
pub fn child(part: &str, arguments: &[String]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args([part, "--child"])
        .args(arguments)
        .env_remove("SLABYARD");
    Ok(command)
}

/// The folder where cargo puts this program, the tool, and the libraries in a folder beside them.
/// The executable of a test is one folder deeper.
pub fn output_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let above = folder.parent().filter(|_| folder.ends_with("deps"));
    Ok(above.unwrap_or(folder).to_owned())
}

/// The tool `slabyard`: at the path that an option gives, or in the folder of this program.
pub fn tool(given: Option<&Path>, folder: &Path) -> Result<PathBuf, String> {
    let tool = given.map_or_else(|| folder.join("slabyard"), Path::to_owned);
    if !tool.exists() {
        return Err(format!(
            "there is no {}: cargo build --release -p slabyard-cli --features peers makes it",
            tool.display()
        ));
    }
    Ok(tool)
}

/// Runs a process and returns its output. If it fails, the error contains `what` and the first line
/// of the process's message.
pub fn output(mut command: Command, what: &str) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let line = complaint.lines().next().unwrap_or("");
        return Err(format!("{what}: {} {line}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line for each failure.
pub fn failures(indent: &str, failures: &[String]) -> String {
    let line = |failure| format!("{indent}FAILED: {failure}\n");
    failures.iter().map(line).collect()
}

/// Text that is printed as it is written, and kept at the end.
pub struct Report(String);

impl Report {
    /// Begins a report with the conditions of the machine and these lines.
    pub fn new(lines: &[String]) -> Report {
        let mut report = Report(String::new());
        let head = [machine::conditions().as_slice(), lines].concat();
        report.add(&(head.join("\n") + "\n"));
        report
    }

    pub fn add(&mut self, block: &str) {
        print!("{block}");
        self.0 += block;
    }

    pub fn add_failures(&mut self, found: &Found) {
        self.add(&failures("", &found.failures));
    }

    /// Writes the text to `path` with the ending txt.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        write(&path.with_extension("txt"), &self.0)
    }

    /// Writes the text, the figures as CSV, and the other files of a part, each an ending and its
    /// content. An error if measurements failed.
    pub fn finish<const FULL: usize, const QUICK: usize>(
        &self,
        (part, options): (&str, &Common<FULL, QUICK>),
        found: &Found,
        files: &[(&str, String)],
    ) -> Result<(), String> {
        let base = options.base(part);
        let raw = Some(("csv", figure::csv(&found.figures)));
        let raw = raw.filter(|_| !found.figures.is_empty());
        println!("\nkept:");
        self.write(&base)?;
        println!("{}", base.with_extension("txt").display());
        for (ending, content) in raw.iter().chain(files) {
            let path = base.with_extension(ending);
            write(&path, content)?;
            println!("{}", path.display());
        }
        match found.failures.len() {
            0 => Ok(()),
            failed => Err(format!("{failed} measurements failed")),
        }
    }
}

/// A new path in out/bench at the root of the repository, wherever the command was given.
pub fn new_path(ending: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    root.canonicalize()
        .unwrap_or(root)
        .join(format!("out/bench/{seconds}{ending}"))
}

/// Writes a file. Its folder is made if it is missing.
pub fn write(path: &Path, content: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, content))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_for_full_and_quick_runs() {
        let full = Common::<7, 2>::default();
        let quick = Common::<7, 2> {
            quick: true,
            ..Common::default()
        };
        assert_eq!((full.repeats(), quick.repeats()), (7, 2));
        let never = Common::<7, 2> {
            repeats: Some(0),
            ..Common::default()
        };
        assert_eq!(never.repeats(), 1);
        let sampling = Sampling::default();
        assert_eq!(sampling.time(false), Duration::from_millis(20));
        assert_eq!(sampling.time(true), Duration::from_millis(4));
    }

    #[test]
    fn rows_are_chosen_by_the_beginning_and_contenders_by_the_whole_name() {
        let only = ["pair".to_owned()];
        assert!(begins_with("pair/64", &only) && begins_with("steady", &[]));
        assert!(!begins_with("steady", &only));
        assert!(is_among("pair", &only) && !is_among("pair/64", &only) && is_among("x", &[]));
        assert!(check_names("row", &only, &["steady", "pair"]).is_ok());
        let unknown = check_names("row", &only, &["steady"]);
        assert_eq!(
            unknown.unwrap_err(),
            "there is no row pair; there are steady"
        );
    }

    #[test]
    fn the_complaint_of_a_process_is_in_the_error() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no memory >&2; exit 3"]);
        let error = output(command, "pair/64").unwrap_err();
        assert!(
            error.starts_with("pair/64: ") && error.ends_with("no memory"),
            "{error}"
        );
    }
}
