//! Programs that do not end by themselves. [`Window`] ends one after a time. [`Service`] waits until a
//! server is ready, runs a command that loads it, lets it rest, and ends it.
//!
//! [`crate::program`] runs the program and waits for its processes; these watch it meanwhile.
//! [`listening`] finds out whether it is ready, and [`readings`] reads figures from what the load
//! prints.

pub mod listening;
pub mod readings;

use crate::program::{children, descendants, Signals, Watch};
use crate::run;
use anyhow::{bail, Context, Result};
use readings::Reader;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server that has not ended by itself after this time is killed.
const END_WITHIN: Duration = Duration::from_secs(10);

/// One attempt to connect.
const CONNECT_WITHIN: Duration = Duration::from_millis(100);

/// How a server shows that it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A process of it waits for connections.
    Listens,
    /// A connection to this address succeeds.
    At(String),
    /// This file exists.
    Has(PathBuf),
}

/// The load, and what is read of it.
#[derive(Clone, Debug)]
pub struct Load {
    /// For the shell.
    pub command: OsString,
    pub ready: Ready,
    /// A server that is not ready after this time is not waited for.
    pub ready_within: Duration,
    /// The time between the end of the load and that of the server.
    pub rest: Duration,
    pub readers: Vec<Reader>,
}

/// What a run under load showed.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// How long the load took.
    pub load: Duration,
    /// Resident memory of all processes when the server had rested.
    pub idle_bytes: u64,
    /// What each reader read.
    pub readings: Vec<Option<f64>>,
}

/// `8080`, `HOST:8080`, or a path with a slash.
pub fn ready_when(text: &str) -> Result<Ready> {
    if text.contains('/') {
        return Ok(Ready::Has(PathBuf::from(text)));
    }
    let address = match text.contains(':') {
        true => text.to_string(),
        false => format!("127.0.0.1:{text}"),
    };
    let port = address.rsplit(':').next().unwrap_or_default();
    if !port.parse::<u16>().is_ok_and(|port| port != 0) {
        bail!("a port, HOST:PORT, or the path of a file with a slash");
    }
    Ok(Ready::At(address))
}

impl Ready {
    fn is_now(&self, processes: &[u32]) -> bool {
        match self {
            Ready::Listens => processes.iter().any(|&pid| listening::listens(pid)),
            Ready::Has(file) => file.exists(),
            Ready::At(address) => {
                let found = address.to_socket_addrs().into_iter().flatten();
                let connects =
                    |address| TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_ok();
                found.into_iter().any(connects)
            }
        }
    }

    fn said(&self) -> String {
        match self {
            Ready::Listens => "waits for no connection (--ready names another sign)".to_string(),
            Ready::At(address) => format!("accepts no connection at {address}"),
            Ready::Has(file) => format!("has not made {}", file.display()),
        }
    }
}

enum Stage {
    /// The server starts, since then.
    Starts(Instant),
    /// The load runs, with this process id.
    Loaded(u32, Instant),
    /// The server rests until then.
    Rests(Instant),
    /// It was asked to end at this time.
    Ends(Instant),
    Killed,
}

/// Samples the memory of the server with this process id, and of all processes that descend from it or
/// that it left behind. The load, whose id comes second, is not a part of it. Returns the bytes, of
/// this moment or of one before; the last argument asks for this moment.
pub type Sample<'a> = dyn FnMut(u32, Option<u32>, bool) -> u64 + 'a;

/// Watches one run of a server.
pub struct Service<'a> {
    load: &'a Load,
    signals: &'a Signals,
    sample: &'a mut Sample<'a>,
    stage: Stage,
    /// What the load printed.
    output: File,
    status: Option<ExitStatus>,
    served: Served,
}

impl<'a> Service<'a> {
    pub fn new(load: &'a Load, signals: &'a Signals, sample: &'a mut Sample<'a>) -> Result<Self> {
        Ok(Service {
            load,
            signals,
            sample,
            stage: Stage::Starts(Instant::now()),
            output: tempfile::tempfile().context("cannot make a file for the load's output")?,
            status: None,
            served: Served::default(),
        })
    }

    /// What was seen, when the server has ended. The error says why the run does not count.
    pub fn result(mut self) -> Result<Served, String> {
        match self.stage {
            Stage::Starts(_) => return Err("ends before it is ready".to_string()),
            Stage::Loaded(..) | Stage::Rests(_) => {
                return Err("ends by itself under the load, or soon after".to_string())
            }
            Stage::Killed => {
                let patience = END_WITHIN.as_secs();
                return Err(format!("does not end within {patience} s after SIGTERM"));
            }
            Stage::Ends(_) => (),
        }
        let mut text = Vec::new();
        let read = self.output.seek(SeekFrom::Start(0));
        let read = read.and_then(|_| self.output.read_to_end(&mut text));
        if let Err(error) = read {
            return Err(format!(
                "is loaded, but the load's output cannot be read: {error}"
            ));
        }
        let text = String::from_utf8_lossy(&text);
        if let Some(status) = self.status.filter(|status| !status.success()) {
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            return Err(format!(
                "was loaded by a command that failed ({status}): {}",
                last.unwrap_or("it said nothing").trim()
            ));
        }
        let readers = self.load.readers.iter();
        self.served.readings = readers.map(|reader| reader.read(&text)).collect();
        Ok(self.served)
    }

    fn start_load(&mut self) -> Result<()> {
        let mut command = Command::new("sh");
        let cannot = "cannot make a file for the load's output";
        let [out, errors] = [self.output.try_clone(), self.output.try_clone()];
        command
            .arg("-c")
            .arg(&self.load.command)
            .stdin(Stdio::null())
            .stdout(out.context(cannot)?)
            .stderr(errors.context(cannot)?);
        self.signals.prepare(&mut command);
        let child = command.spawn().context("cannot run the load")?;
        self.stage = Stage::Loaded(child.id(), Instant::now());
        Ok(())
    }
}

/// Sends a signal to the program: to all children of the tool, since a program may run on in a process
/// that its first one has left behind.
fn send(signal: i32) {
    for pid in children(std::process::id()) {
        // SAFETY: kill touches no memory; a child's id is its own until it is waited for.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
    }
}

/// Ends a program when its time is over.
pub struct Window<'a> {
    until: Instant,
    sample: &'a mut dyn FnMut(u32),
    is_over: bool,
}

impl<'a> Window<'a> {
    pub fn new(time: Duration, sample: &'a mut dyn FnMut(u32)) -> Self {
        Window {
            until: Instant::now() + time,
            sample,
            is_over: false,
        }
    }

    /// Whether the program was ended, and did not end by itself before.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Watch for Window<'_> {
    fn look(&mut self, pid: u32) -> Result<()> {
        (self.sample)(pid);
        let now = Instant::now();
        if now > self.until + END_WITHIN {
            send(libc::SIGKILL);
        } else if now > self.until && !self.is_over {
            send(libc::SIGTERM);
            self.is_over = true;
        }
        Ok(())
    }
}

impl Watch for Service<'_> {
    fn look(&mut self, pid: u32) -> Result<()> {
        let load = match self.stage {
            Stage::Loaded(load, _) => Some(load),
            _ => None,
        };
        let now = Instant::now();
        let is_rested = matches!(self.stage, Stage::Rests(until) if now >= until);
        let resident = (self.sample)(pid, load, is_rested);
        match self.stage {
            Stage::Starts(since) => {
                if self.load.ready.is_now(&descendants(pid, None)) {
                    self.start_load()?;
                } else if now > since + self.load.ready_within {
                    let patience = run::seconds(self.load.ready_within);
                    bail!("after {patience} the server {}", self.load.ready.said());
                }
            }
            Stage::Rests(_) if is_rested => {
                self.served.idle_bytes = resident;
                send(libc::SIGTERM);
                self.stage = Stage::Ends(now);
            }
            Stage::Ends(since) if now > since + END_WITHIN => {
                send(libc::SIGKILL);
                self.stage = Stage::Killed;
            }
            _ => (),
        }
        Ok(())
    }

    fn takes(&mut self, pid: u32, status: ExitStatus) -> bool {
        let Stage::Loaded(load, since) = self.stage else {
            return false;
        };
        if load != pid {
            return false;
        }
        self.served.load = since.elapsed();
        self.status = Some(status);
        self.stage = Stage::Rests(Instant::now() + self.load.rest);
        true
    }

    fn expects_others(&self) -> bool {
        true
    }
}
