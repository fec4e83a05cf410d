//! Facts about the machine that figures are worth nothing without.

use serde::Serialize;
use std::fs;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cpus: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub system: String,
    pub page_size: u64,
    /// The kernel's setting of transparent huge pages.
    pub huge_pages: String,
    pub libc: String,
    /// UTC.
    pub date: String,
    pub tool: String,
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `key<separator>value`.
fn value_of(text: &str, key: &str, separator: char) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(separator));
    let found = lines.into_iter().find(|(name, _)| name.trim() == key);
    found.map(|(_, value)| value.trim().trim_matches('"').to_string())
}

/// The chosen word of "always [madvise] never".
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or("unknown", |(word, _)| word).to_string()
}

fn date() -> String {
    let mut parts: libc::tm = unsafe { core::mem::zeroed() };
    // SAFETY: both pointers are to values of our own.
    unsafe {
        let now = libc::time(core::ptr::null_mut());
        libc::gmtime_r(&now, &mut parts);
    }
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02} UTC",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min
    )
}

/// Memory that a program can have now without anything being swapped out, if the system says.
pub fn available_bytes() -> Option<u64> {
    let available = value_of(&file("/proc/meminfo"), "MemAvailable", ':')?;
    let kib: u64 = available.split(' ').next()?.parse().ok()?;
    Some(kib * 1024)
}

impl Machine {
    pub fn look() -> Self {
        let unknown = || "unknown".to_string();
        let cpuinfo = file("/proc/cpuinfo");
        let memory = value_of(&file("/proc/meminfo"), "MemTotal", ':');
        let kib = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let libc = slabyard_peers::find("glibc").map_or_else(unknown, |libc| (libc.version)());
        Machine {
            cpu: value_of(&cpuinfo, "model name", ':').unwrap_or_else(unknown),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib.unwrap_or(0) * 1024,
            kernel: file("/proc/sys/kernel/osrelease").trim().to_string(),
            system: value_of(&file("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_else(unknown),
            // SAFETY: sysconf has no preconditions.
            page_size: unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64,
            huge_pages: chosen(&file("/sys/kernel/mm/transparent_hugepage/enabled")),
            libc: format!("glibc {libc}"),
            date: date(),
            tool: env!("CARGO_PKG_VERSION").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_known_here() {
        let machine = Machine::look();
        assert!(machine.page_size.is_power_of_two());
        assert!(machine.cpus > 0 && machine.memory_bytes > 0);
        assert!(machine.kernel.starts_with(|c: char| c.is_ascii_digit()));
        assert!(machine.date.ends_with("UTC"));
    }

    #[test]
    fn values_are_found() {
        assert_eq!(
            value_of("A=1\nNAME=\"x y\"\n", "NAME", '='),
            Some("x y".into())
        );
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "unknown");
    }
}
