//! A folder with the last snapshots of a program. Its files are named after the time, so they sort by
//! it: `2026-01-31T09-05-00.250Z.json`. Other files in the folder are left alone.

use super::super::snapshot::Snapshot;
use anyhow::{bail, Context, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

pub struct Ring {
    folder: PathBuf,
    keep: usize,
    /// The folder, locked: two watches would remove each other's files.
    _lock: File,
}

/// Digits stand for any digit.
const PATTERN: &str = "0000-00-00T00-00-00.000Z.json";

fn is_name(name: &str) -> bool {
    let fits = |(letter, pattern): (u8, u8)| match pattern {
        b'0' => letter.is_ascii_digit(),
        other => letter == other,
    };
    name.len() == PATTERN.len() && name.bytes().zip(PATTERN.bytes()).all(fits)
}

/// The name for a time in milliseconds since 1970.
fn name_at(milliseconds: u64) -> String {
    let seconds = (milliseconds / 1000) as _;
    // SAFETY: both pointers are to local values, for which all zero is valid.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut parts);
        parts
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}Z.json",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        milliseconds % 1000
    )
}

/// The time that a name stands for.
fn time_of(name: &str) -> Option<u64> {
    let number = |from: usize, to: usize| name.get(from..to)?.parse::<i32>().ok();
    // SAFETY: the structure is a local value, for which all zero is valid.
    let seconds = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        parts.tm_year = number(0, 4)? - 1900;
        parts.tm_mon = number(5, 7)? - 1;
        parts.tm_mday = number(8, 10)?;
        parts.tm_hour = number(11, 13)?;
        parts.tm_min = number(14, 16)?;
        parts.tm_sec = number(17, 19)?;
        libc::timegm(&mut parts)
    };
    Some(u64::try_from(seconds).ok()? * 1000 + number(20, 23)? as u64)
}

/// The snapshots in a folder, the oldest first.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        if entry.file_name().to_str().is_some_and(is_name) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

impl Ring {
    pub fn open(folder: &Path, keep: usize) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let cannot = || format!("cannot open {}", folder.display());
        let lock = File::open(folder).with_context(cannot)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                bail!("another watch writes to {}", folder.display())
            }
            // Not all file systems have locks.
            Err(TryLockError::Error(_)) | Ok(()) => (),
        }
        Ok(Ring {
            folder: folder.to_path_buf(),
            keep,
            _lock: lock,
        })
    }

    /// Fails if the folder has snapshots of another program. Those of an earlier process of the same
    /// program stay, so that a restart does not end the history.
    pub fn must_be_of(&self, program: &str) -> Result<()> {
        let files = files(&self.folder)?;
        let newest = files.last().and_then(|file| Snapshot::read(file).ok());
        match newest.map(|one| one.account.program) {
            Some(other) if other != program => bail!(
                "{} has snapshots of {other}, not of {program}; use another folder",
                self.folder.display()
            ),
            _ => Ok(()),
        }
    }

    /// Adds a snapshot, and removes the oldest ones that are too many.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<()> {
        let mut files = files(&self.folder)?;
        let newest = files.last().and_then(|file| file.file_name()?.to_str());
        // A clock that was set back does not change the order.
        let least = newest.and_then(time_of).map_or(0, |time| time + 1);
        let now = (snapshot.time * 1000.0) as u64;
        let file = self.folder.join(name_at(now.max(least)));
        snapshot.write(&file)?;
        files.push(file);
        for old in &files[..files.len().saturating_sub(self.keep)] {
            fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::account::Account;
    use super::*;

    /// A snapshot at a time in seconds.
    fn snapshot(program: &str, time: f64) -> Snapshot {
        let mut snapshot = Snapshot::of(Account {
            program: program.to_string(),
            ..Account::default()
        });
        snapshot.time = time;
        snapshot
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = files(folder).unwrap().into_iter();
        files
            .map(|file| file.file_name().unwrap().to_str().unwrap().to_string())
            .collect()
    }

    #[test]
    fn names_are_times() {
        assert_eq!(name_at(0), "1970-01-01T00-00-00.000Z.json");
        let name = name_at(1_785_575_100_250);
        assert_eq!(name, "2026-08-01T09-05-00.250Z.json");
        assert!(is_name(&name));
        assert_eq!(time_of(&name), Some(1_785_575_100_250));
        for other in [
            "x.json",
            "2026-08-01T09-05-00.250Z.jsonx",
            "2026-08-01Tx9-05-00.250Z.json",
        ] {
            assert!(!is_name(other), "{other}");
        }
    }

    #[test]
    fn the_oldest_files_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.json"), "mine").unwrap();
        let mut ring = Ring::open(folder.path(), 3).unwrap();
        for second in 1..=5 {
            ring.add(&snapshot("a", second as f64)).unwrap();
        }
        // The clock is set back.
        ring.add(&snapshot("a", 2.0)).unwrap();
        assert_eq!(
            names(folder.path()),
            [
                "1970-01-01T00-00-04.000Z.json",
                "1970-01-01T00-00-05.000Z.json",
                "1970-01-01T00-00-05.001Z.json"
            ]
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_folder_belongs_to_one_watch_and_one_program() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        let mut ring = Ring::open(&folder, 3).unwrap();
        let error = Ring::open(&folder, 3).err().unwrap().to_string();
        assert!(error.starts_with("another watch writes to"), "{error}");
        ring.must_be_of("a").unwrap();
        ring.add(&snapshot("a", 1.0)).unwrap();
        ring.must_be_of("a").unwrap();
        let error = ring.must_be_of("b").unwrap_err().to_string();
        assert!(error.contains("has snapshots of a, not of b"), "{error}");
    }
}
