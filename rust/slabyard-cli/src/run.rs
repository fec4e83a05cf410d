//! `slabyard run`: runs a program with Slabyard as its malloc, and exits with the program's status.

use crate::preload::{options, serving, Library};
use crate::program::{self, Ended, Reach, Signals};
use crate::signals;
use crate::ui;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The pause may be long: SIGCHLD wakes the tool when the program ends, because the tool has no
/// other thread that could take the signal.
const PAUSE: Duration = Duration::from_secs(10);

/// Ten ticks of usual systems: what a shorter CPU time is divided into is chance.
const DIVIDED_FROM: Duration = Duration::from_millis(40);

/// The program to run, and the settings.
pub struct Plan {
    pub command: Vec<OsString>,
    /// Options to add to SLABYARD.
    pub options: String,
    /// The library to preload, instead of the one inside the tool.
    pub library: Option<PathBuf>,
}

pub fn run(plan: &Plan) -> Result<Ended> {
    let program = plan.command.first().context("there is no program to run")?;
    let settings = options::joined(std::env::var_os("SLABYARD"), &plan.options);
    std::env::remove_var("SLABYARD");
    options::check(&plan.options).context("--options")?;
    // From here on, a signal does not end the tool before it has removed the library's file.
    let signals = Signals::hold();
    let library = match &plan.library {
        Some(path) => Library::at(path)?,
        None => Library::carried()?,
    };
    library.must_serve(program)?;
    let own = serving::of(program)?;
    if let Some(caveat) = own.and_then(|own| own.caveat(&program.to_string_lossy())) {
        ui::warn(&caveat);
    }
    let mut command = Command::new(program);
    command.args(&plan.command[1..]);
    library.preload_into(&mut command);
    if let Some(settings) = settings {
        command.env("SLABYARD", settings);
    }
    program::run(command, &signals, PAUSE, Reach::First, &mut |_| ())
}

/// The options of the library, as it lists them itself: in a process that does nothing else.
pub fn options_of_library() -> Result<String> {
    let library = Library::carried()?;
    let this = std::env::current_exe().context("the tool does not find its own file")?;
    let mut command = Command::new(this);
    command.arg("--version").env("SLABYARD", "help");
    library.preload_into(&mut command);
    let output = command.output().context("cannot start a process")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.is_empty() {
        anyhow::bail!("the library does not list its options");
    }
    Ok(text)
}

/// The line of `--summary`: how the program ended, its time and its memory.
pub fn summary(ended: &Ended) -> String {
    let how = match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, signal) => format!("was ended by {}", signals::described(signal.unwrap_or(0))),
    };
    let usage = &ended.usage;
    let mut text = format!("the program {how} after {}\n", seconds(usage.wall));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    line("CPU time", &cpu_time(usage.user, usage.system));
    line(
        "peak memory",
        &format!(
            "{} in its largest process, with code and libraries",
            ui::bytes(usage.peak_bytes)
        ),
    );
    let faults = format!(
        "{}, of which {} read from a disk",
        ui::grouped(usage.faults),
        ui::grouped(usage.disk_faults)
    );
    line("page faults", &faults);
    text.trim_end().to_string()
}

/// The sum is exact, but the system divides it by what it sees at ticks of the clock, of which a
/// short program has none.
fn cpu_time(user: Duration, system: Duration) -> String {
    let both = user + system;
    if both < DIVIDED_FROM {
        return format!(
            "{}, too short to tell program and kernel apart",
            seconds(both)
        );
    }
    format!(
        "{} in the program, {} in the kernel",
        seconds(user),
        seconds(system)
    )
}

/// A time with at least three digits.
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.01 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.2} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Usage;
    use std::process::ExitStatus;

    #[test]
    fn times_have_three_digits() {
        let times = [0.0, 0.001234, 0.01234, 0.1234, 1.234, 12.34, 123.4, 1234.0];
        let said = times.map(|s| seconds(Duration::from_secs_f64(s)));
        let wanted = "0.00 ms,1.23 ms,12.3 ms,123 ms,1.23 s,12.3 s,123 s,1234 s";
        assert_eq!(said.join(","), wanted);
    }

    #[test]
    fn a_short_cpu_time_is_one_figure() {
        let short = cpu_time(Duration::ZERO, Duration::from_micros(1230));
        assert_eq!(short, "1.23 ms, too short to tell program and kernel apart");
        let long = cpu_time(Duration::from_secs(1), Duration::ZERO);
        assert_eq!(long, "1.00 s in the program, 0.00 ms in the kernel");
    }

    #[test]
    fn the_summary_says_what_the_program_took() {
        let ended = Ended {
            pid: 7,
            status: ExitStatus::from_raw(libc::SIGSEGV),
            passed_on: None,
            signalled: None,
            leaves_others: false,
            usage: Usage {
                wall: Duration::from_millis(1500),
                user: Duration::from_millis(1100),
                system: Duration::from_millis(20),
                peak_bytes: 3 << 20,
                faults: 1234,
                disk_faults: 5,
            },
        };
        assert_eq!(
            summary(&ended),
            "the program was ended by signal 11 (SIGSEGV) after 1.50 s\n  \
             CPU time     1.10 s in the program, 20.0 ms in the kernel\n  \
             peak memory  3.0 MiB in its largest process, with code and libraries\n  \
             page faults  1,234, of which 5 read from a disk"
        );
    }
}
