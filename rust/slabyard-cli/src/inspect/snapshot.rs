//! Accounts in files, and what has changed between two of them.

use super::account::{Account, CacheKey, What};
use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

/// The version of the file. Fields that are added do not change it; a new kind of memory does.
const VERSION: u32 = 1;

/// The largest snapshot that is read.
const BYTES_MAX: u64 = 256 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    slabyard_account: u32,
    /// Seconds since 1970.
    pub time: f64,
    #[serde(flatten)]
    pub account: Account,
}

impl Snapshot {
    pub fn of(account: Account) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Snapshot {
            slabyard_account: VERSION,
            time: now.map_or(0.0, |time| time.as_secs_f64()),
            account,
        }
    }

    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        write_whole(file, &self.to_json()?)
    }

    pub fn read(file: &Path) -> Result<Self> {
        let length = file
            .metadata()
            .with_context(|| format!("cannot read {}", file.display()))?
            .len();
        if length > BYTES_MAX {
            bail!("{} is too large for a snapshot", file.display());
        }
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(&text).with_context(|| {
            format!(
                "{} is no snapshot (slabyard snapshot PID -o FILE makes one)",
                file.display()
            )
        })
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut snapshot: Snapshot = serde_json::from_str(text)?;
        if snapshot.slabyard_account != VERSION {
            bail!(
                "it has version {}, and this tool knows {VERSION}",
                snapshot.slabyard_account
            );
        }
        // The names are shown on terminals.
        let account = &mut snapshot.account;
        let caches = account.caches.iter_mut().map(|one| &mut one.name);
        for name in caches.chain([&mut account.program]) {
            *name = name.replace(char::is_control, "?");
        }
        Ok(snapshot)
    }
}

/// Writes a file, which has all of the text then, or does not change.
pub fn write_whole(file: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    if file.exists() && !file.is_file() {
        return std::fs::write(file, text).with_context(cannot); // a device or a pipe
    }
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    // As of any new file; those for a short time are private by default.
    let usual = Permissions::from_mode(0o666);
    let new = tempfile::Builder::new()
        .permissions(usual)
        .tempfile_in(folder);
    let mut new = new.with_context(cannot)?;
    new.write_all(text.as_bytes()).with_context(cannot)?;
    new.persist(file).with_context(cannot)?;
    Ok(())
}

/// Bytes of one thing before and after.
#[derive(Debug)]
pub struct Change {
    pub name: String,
    pub before: u64,
    pub after: u64,
    /// Live objects that there are more.
    pub objects: i64,
}

#[derive(Debug)]
pub struct Changes {
    pub pid: u32,
    pub program: String,
    pub seconds: f64,
    /// The snapshots are of two processes.
    pub is_another: bool,
    /// The largest changes first.
    pub memory: Vec<Change>,
    pub caches: Vec<Change>,
}

fn sort(changes: &mut Vec<Change>) {
    changes.retain(|one| one.before != one.after || one.objects != 0);
    changes.sort_by_key(|one| (u64::MAX - one.after.abs_diff(one.before), one.name.clone()));
}

pub fn changes(before: &Snapshot, after: &Snapshot) -> Changes {
    let (old, new) = (&before.account, &after.account);
    let of = |account: &Account, what: &What| account.of(*what);
    let whats = old.resident.keys().chain(new.resident.keys());
    let whats: std::collections::BTreeSet<&What> = whats.collect();
    let mut memory: Vec<Change> = whats
        .into_iter()
        .map(|what| Change {
            name: what.words().to_string(),
            before: of(old, what),
            after: of(new, what),
            objects: 0,
        })
        .collect();
    sort(&mut memory);
    memory.push(Change {
        name: "all".into(),
        before: old.rss_bytes,
        after: new.rss_bytes,
        objects: 0,
    });
    Changes {
        pid: new.pid,
        program: new.program.clone(),
        seconds: after.time - before.time,
        is_another: (old.pid, &old.program) != (new.pid, &new.program),
        memory,
        caches: of_caches(old, new),
    }
}

/// Live objects of each cache, and their bytes.
fn live(account: &Account) -> HashMap<CacheKey, (u64, u64)> {
    let caches = account.caches.iter();
    caches
        .map(|cache| (cache.key(), (cache.live_objects, cache.live_bytes)))
        .collect()
}

fn of_caches(old: &Account, new: &Account) -> Vec<Change> {
    let (old, new) = (live(old), live(new));
    let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let mut changes: Vec<Change> = keys
        .into_iter()
        .map(|key| {
            let (before, after) = (
                old.get(key).copied().unwrap_or_default(),
                new.get(key).copied().unwrap_or_default(),
            );
            Change {
                name: key.1.clone(),
                before: before.1,
                after: after.1,
                objects: after.0 as i64 - before.0 as i64,
            }
        })
        .collect();
    sort(&mut changes);
    changes
}
