//! Facts about the machine that a reader needs to judge the figures.

use crate::preload::serving::LIBC;
use serde::Serialize;
use std::fs;
use std::path::Path;

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
    /// In UTC.
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

/// The chosen word of a text such as "always [madvise] never": the one in brackets.
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or("unknown", |(word, _)| word).to_string()
}

/// Parses a text as each of the system's files and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_texts(text: &str) {
    let value = value_of(text, "MemAvailable", ':');
    assert!(value.is_none_or(|value| text.contains(&value)));
    assert!(chosen(text) == "unknown" || text.contains('['));
    assert_eq!(room_in_groups(Path::new("/nowhere"), text), None);
}

fn date() -> String {
    let mut parts: libc::tm = unsafe { core::mem::zeroed() };
    // SAFETY: the first pointer is null, the other two are to local values.
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

/// The number of bytes that a program can get now without swapping, if the system reports it: the
/// least of the machine's available memory and the room in this process's control groups.
pub fn available_bytes() -> Option<u64> {
    let available = value_of(&file("/proc/meminfo"), "MemAvailable", ':')?;
    let kib: u64 = available.split(' ').next()?.parse().ok()?;
    let groups = room_in_groups(Path::new("/sys/fs/cgroup"), &file("/proc/self/cgroup"));
    Some(groups.unwrap_or(u64::MAX).min(kib * 1024))
}

/// The files of a control group: its limit, its usage, and the part that it can give back at once.
struct GroupFiles {
    limit: &'static str,
    used: &'static str,
    file_cache: &'static str,
}

const VERSION_1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    file_cache: "total_inactive_file",
};
const VERSION_2: GroupFiles = GroupFiles {
    limit: "memory.max",
    used: "memory.current",
    file_cache: "inactive_file",
};

/// The least room in any memory group of this process. `groups`: the text of /proc/self/cgroup.
fn room_in_groups(root: &Path, groups: &str) -> Option<u64> {
    let folders = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let path = Path::new(path.trim_start_matches('/'));
        if controllers.split(',').any(|name| name == "memory") {
            Some((root.join("memory"), path, &VERSION_1))
        } else {
            controllers
                .is_empty()
                .then(|| (root.to_path_buf(), path, &VERSION_2))
        }
    });
    // The limit of a group applies to the groups inside it too.
    let rooms = folders.flat_map(|(root, path, files)| {
        path.ancestors()
            .filter_map(move |path| files.room(&root.join(path)))
    });
    rooms.min()
}

impl GroupFiles {
    fn room(&self, folder: &Path) -> Option<u64> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let cache = value_of(
            &text("memory.stat").unwrap_or_default(),
            self.file_cache,
            ' ',
        );
        let cache = cache
            .and_then(|bytes| bytes.parse::<u64>().ok())
            .unwrap_or(0);
        let used = number(self.used)?.saturating_sub(cache);
        Some(number(self.limit)?.saturating_sub(used))
    }
}

impl Machine {
    pub fn look() -> Self {
        let unknown = || "unknown".to_string();
        let cpuinfo = file("/proc/cpuinfo");
        let memory = value_of(&file("/proc/meminfo"), "MemTotal", ':');
        let kib = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let libc = slabyard_peers::find(LIBC).map_or_else(unknown, |libc| (libc.version)());
        Machine {
            cpu: value_of(&cpuinfo, "model name", ':').unwrap_or_else(unknown),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib.unwrap_or(0) * 1024,
            kernel: file("/proc/sys/kernel/osrelease").trim().to_string(),
            system: value_of(&file("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_else(unknown),
            // SAFETY: sysconf has no preconditions.
            page_size: unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64,
            huge_pages: chosen(&file("/sys/kernel/mm/transparent_hugepage/enabled")),
            libc: format!("{LIBC} {libc}"),
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

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(root.join(path)).unwrap();
        for (name, text) in files {
            fs::write(root.join(path).join(name), text).unwrap();
        }
    }

    #[test]
    fn the_least_room_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let stat = ("memory.stat", "anon 5\ninactive_file 300\n");
        let (max, current) = ("memory.max", "memory.current");
        group(root, "a", &[(max, "1000\n"), (current, "700\n"), stat]);
        group(root, "a/b", &[(max, "max\n"), (current, "600\n")]);
        assert_eq!(room_in_groups(root, "0::/a/b\n"), Some(600));
        assert_eq!(room_in_groups(root, "0::/elsewhere\n"), None);
        let (limit, usage) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
        group(root, "memory/c", &[(limit, "50\n"), (usage, "60\n")]);
        assert_eq!(room_in_groups(root, "4:cpu,memory:/c\n0::/a\n"), Some(0));
        assert_eq!(room_in_groups(root, "nonsense\n"), None);
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
