//! Accounts in files, and what has changed between two of them.

use super::account::{Account, CacheKey, What};
use super::tags::{Source, TagRow, Tags};
use crate::ui::grouped;
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

/// What is live of the allocations with a stack, estimated from samples.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StackRow {
    /// The functions, the innermost first.
    pub functions: Vec<String>,
    pub live_bytes: u64,
    pub live_objects: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    slabyard_account: u32,
    /// Seconds since 1970.
    pub time: f64,
    #[serde(flatten)]
    pub account: Account,
    /// Those with the most memory; `None`: the process has no samples, or was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Vec<StackRow>>,
}

impl Snapshot {
    pub fn of(account: Account) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Snapshot {
            slabyard_account: VERSION,
            time: now.map_or(0.0, |time| time.as_secs_f64()),
            account,
            stacks: None,
        }
    }

    /// The same with the stacks of a process that has samples.
    pub fn with_stacks(self, stacks: Option<Vec<StackRow>>) -> Self {
        Snapshot { stacks, ..self }
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
        let stacks = snapshot.stacks.iter_mut().flatten();
        let functions = stacks.flat_map(|one| &mut one.functions);
        let tags = account.tags.iter_mut().flat_map(|tags| &mut tags.rows);
        let tags = tags.map(|one| &mut one.name);
        let names = caches.chain([&mut account.program]).chain(tags);
        for name in names.chain(functions) {
            *name = name.replace(char::is_control, "?");
        }
        Ok(snapshot)
    }
}

/// Writes a file, which has all of the bytes then, or does not change.
pub fn write_whole(file: &Path, text: impl AsRef<[u8]>) -> Result<()> {
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
    new.write_all(text.as_ref()).with_context(cannot)?;
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
    /// By tag, and a title that says where the figures come from. Empty if the program has no tags.
    pub tags: Vec<Change>,
    pub tags_title: String,
    /// By stack: the names have a function in each line. Empty if a snapshot has no samples.
    pub stacks: Vec<Change>,
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
        tags: of_tags(old, new),
        tags_title: tags_title(old, new),
        stacks: match (&before.stacks, &after.stacks) {
            (Some(old), Some(new)) => of_stacks(old, new),
            _ => Vec::new(),
        },
    }
}

/// Live memory of each tag. Figures of different sources are not compared.
fn of_tags(old: &Account, new: &Account) -> Vec<Change> {
    let (Some(old), Some(new)) = (&old.tags, &new.tags) else {
        return Vec::new();
    };
    if old.source != new.source {
        return Vec::new();
    }
    let of = |tags: &Tags, name: &str| {
        let row = tags.rows.iter().find(|row| row.name == name);
        row.cloned().unwrap_or_default()
    };
    let rows = old.rows.iter().chain(&new.rows);
    let names: std::collections::BTreeSet<(&str, &str)> =
        rows.map(|row| (row.name.as_str(), row.words())).collect();
    let mut changes: Vec<Change> = names
        .into_iter()
        .map(|(name, words)| {
            let (before, after) = (of(old, name), of(new, name));
            let objects = |row: &TagRow| i64::try_from(row.live_objects).unwrap_or(i64::MAX);
            Change {
                name: words.to_string(),
                before: before.live_bytes,
                after: after.live_bytes,
                objects: objects(&after).saturating_sub(objects(&before)),
            }
        })
        .collect();
    sort(&mut changes);
    changes
}

/// For example: `tag: live (estimated from 800 and 900 samples)`.
fn tags_title(old: &Account, new: &Account) -> String {
    match (&old.tags, &new.tags) {
        (Some(old), Some(new)) if new.source == Source::Samples => format!(
            "tag: live (estimated from {} and {} samples)",
            grouped(old.samples),
            grouped(new.samples)
        ),
        _ => "tag: live (objects with audit)".to_string(),
    }
}

fn of_stacks(old: &[StackRow], new: &[StackRow]) -> Vec<Change> {
    let mut all: HashMap<String, Change> = HashMap::new();
    let rows = old.iter().map(|row| (row, false));
    for (row, is_new) in rows.chain(new.iter().map(|row| (row, true))) {
        let name = row.functions.join("\n");
        let change = all.entry(name.clone()).or_insert_with(|| Change {
            name,
            before: 0,
            after: 0,
            objects: 0,
        });
        match is_new {
            false => change.before = change.before.saturating_add(row.live_bytes),
            true => change.after = change.after.saturating_add(row.live_bytes),
        }
        let objects = i64::try_from(row.live_objects).unwrap_or(i64::MAX);
        let signed = if is_new { objects } else { -objects };
        change.objects = change.objects.saturating_add(signed);
    }
    let mut changes: Vec<Change> = all.into_values().collect();
    sort(&mut changes);
    changes
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
