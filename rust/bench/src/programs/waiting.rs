//! Processes that do their work, and then wait until their memory is read again.
//!
//! They wait at the same time: the next one is started when the one before has done its work. So no
//! process works while another one does, and an hour of waiting takes minutes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A process that has done its work, and the lines that it has printed.
pub struct Waiting {
    what: String,
    child: Child,
    output: BufReader<ChildStdout>,
    lines: Vec<String>,
}

impl Waiting {
    /// Starts a process, and returns when it has printed its last line about the work.
    pub fn start(
        mut command: Command,
        what: String,
        is_last: impl Fn(&[String]) -> bool,
    ) -> Result<Waiting, String> {
        let command = command.stdin(Stdio::null());
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().map_err(|error| format!("{what}: {error}"))?;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| format!("{what}: no output"))?;
        let mut waiting = Waiting {
            what,
            child,
            output: BufReader::new(output),
            lines: Vec::new(),
        };
        while !is_last(&waiting.lines) {
            let mut line = String::new();
            match waiting.output.read_line(&mut line) {
                Ok(length) if length > 0 => waiting.lines.push(line.trim_end().to_owned()),
                _ => {
                    let what = format!("{}: too few lines", waiting.what);
                    return waiting.finish().and(Err(what));
                }
            }
        }
        Ok(waiting)
    }

    /// Waits for the end of the process. Returns all its lines, or what it said of its error.
    pub fn finish(mut self) -> Result<Vec<String>, String> {
        let name = self.what;
        let failed = |what: String| format!("{name}: {what}");
        let plainly = |error: std::io::Error| failed(error.to_string());
        let (mut output, mut complaint) = (String::new(), String::new());
        self.output.read_to_string(&mut output).map_err(plainly)?;
        if let Some(mut stream) = self.child.stderr.take() {
            stream.read_to_string(&mut complaint).map_err(plainly)?;
        }
        let status = self.child.wait().map_err(plainly)?;
        if !status.success() {
            let said: Vec<&str> = complaint.lines().filter(|line| !line.is_empty()).collect();
            return Err(failed(format!("{status} {}", said.join("; "))));
        }
        self.lines.extend(output.lines().map(str::to_owned));
        Ok(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<Waiting, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Waiting::start(command, "it".to_owned(), |lines| lines.len() == 2)
    }

    #[test]
    fn the_lines_of_the_work_and_of_the_wait_are_read() {
        let waiting = start("echo 1; echo 2; echo 3").unwrap();
        assert_eq!(waiting.lines, ["1", "2"]);
        assert_eq!(waiting.finish().unwrap(), ["1", "2", "3"]);
    }

    #[test]
    fn an_early_end_and_a_complaint_are_errors() {
        assert_eq!(start("echo 1").err().unwrap(), "it: too few lines");
        let error = start("echo 1; echo no memory >&2; exit 3").err().unwrap();
        assert_eq!(error, "it: exit status: 3 no memory");
        let waiting = start("echo 1; echo 2; exit 4").unwrap();
        assert_eq!(waiting.finish().unwrap_err(), "it: exit status: 4 ");
    }
}
