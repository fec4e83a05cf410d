//! A server process: starts it, reads its memory and CPU time from /proc, ends it.

use super::contender::Contender;
use crate::machine;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The example, built beside this program with the library in it.
const PROGRAM: &str = env!("BENCH_KV_SERVER");

pub struct Server {
    child: Child,
    pub port: u16,
}

/// A field of a file of /proc that has "name: value kB" lines, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

impl Server {
    /// Bound to a processor, if one is named.
    pub fn start(who: &Contender, processor: Option<usize>) -> Result<Server, String> {
        let mut command = Command::new(PROGRAM);
        command
            .args(["0", who.memory])
            .env_remove("LD_PRELOAD")
            .env_remove("SLABYARD")
            .envs(who.library.iter().map(|library| ("LD_PRELOAD", library)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: between fork and exec the child only makes two system calls. The first one kills
        // the server when the thread that started it ends, even by a crash.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                processor.into_iter().for_each(machine::pin);
                Ok(())
            });
        }
        let child = command.spawn();
        let mut server = Server {
            child: child.map_err(|error| format!("{PROGRAM}: {error}"))?,
            port: 0,
        };
        server.port = server.told_port().ok_or_else(|| server.complaint())?;
        Ok(server)
    }

    fn told_port(&mut self) -> Option<u16> {
        let mut line = String::new();
        let output = self.child.stdout.as_mut()?;
        BufReader::new(output).read_line(&mut line).ok()?;
        line.trim().rsplit(' ').next()?.parse().ok()
    }

    /// Kills the server. Its exit status and the first line that it wrote to stderr.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        let status = self.child.wait();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_string(&mut text);
        }
        let line = text.lines().next().unwrap_or("");
        match status {
            Ok(status) => format!("{status} {line}"),
            Err(error) => error.to_string(),
        }
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    /// The path of the library of this name, if the server has mapped it.
    pub fn mapped(&self, library: &Path) -> Option<PathBuf> {
        let name = library.file_name()?.to_str()?;
        let maps = self.proc("maps");
        let files = maps
            .lines()
            .filter_map(|line| line.find('/').map(|at| &line[at..]));
        files.map(PathBuf::from).find(|file| {
            let found = file.file_name().unwrap_or_default();
            found.to_string_lossy().starts_with(name)
        })
    }

    /// Anonymous and shared memory that is resident, in bytes.
    pub fn resident(&self) -> u64 {
        let text = self.proc("smaps_rollup");
        let of = |name| field(&text, name).unwrap_or(0);
        of("Anonymous:") + of("Pss_Shmem:")
    }

    /// CPU time of the server's first thread, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        let text = self.proc("schedstat");
        let first = text.split_whitespace().next();
        first.and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }

    /// Asks the server to end. An error if it does not end cleanly: it complains about leaks.
    pub fn end(mut self) -> Result<(), String> {
        use std::io::Write;
        let asked = std::net::TcpStream::connect(("127.0.0.1", self.port))
            .and_then(|mut to| to.write_all(b"*1\r\n$8\r\nSHUTDOWN\r\n").map(|()| to));
        // The server ends after its last connection is closed.
        drop(asked.map_err(|error| error.to_string())?);
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(self.complaint()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
