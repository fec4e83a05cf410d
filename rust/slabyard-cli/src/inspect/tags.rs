//! Live memory by tag (slabyard/audit.h): by the part of the program that allocated it. A profile's
//! samples have the tag of their allocation, so figures for the whole process can be estimated.
//! Without a profile there are the counts of objects with audit, which are exact.

use super::image::{text_of, Image};
use super::samples;
use super::shape::{Names, Record};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the figures come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// There are tags, but neither a profile nor audit.
    #[default]
    Nothing,
    /// Counts of objects with audit.
    Audit,
    /// Estimates for all objects.
    Samples,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TagRow {
    /// Empty: what was allocated without a tag.
    pub name: String,
    pub live_bytes: u64,
    pub live_objects: u64,
    /// How many samples the figures are estimated from.
    pub samples: u64,
}

impl TagRow {
    pub fn words(&self) -> &str {
        match self.name.as_str() {
            "" => "(no tag)",
            name => name,
        }
    }

    /// The standard error of an estimate, as a part of it; `None`: the figures are exact.
    pub fn error(&self) -> Option<f64> {
        (self.samples > 0).then(|| 1.0 / (self.samples as f64).sqrt())
    }

    fn is_used(&self) -> bool {
        !self.name.is_empty() || self.live_bytes > 0
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tags {
    pub source: Source,
    pub samples: u64,
    /// Those with the most memory first.
    pub rows: Vec<TagRow>,
}

impl Tags {
    fn of(source: Source, mut rows: Vec<TagRow>) -> Tags {
        rows.retain(|row| source != Source::Nothing && row.is_used());
        rows.sort_by(|a, b| (b.live_bytes, &a.name).cmp(&(a.live_bytes, &b.name)));
        let samples = rows.iter().map(|row| row.samples);
        let samples = samples.fold(0, u64::saturating_add);
        Tags {
            source,
            samples,
            rows,
        }
    }

    /// The tags of several copies of the library. A copy without figures adds none.
    pub fn merged<'a>(all: impl Iterator<Item = &'a Tags>) -> Option<Tags> {
        let mut sums: BTreeMap<&str, TagRow> = BTreeMap::new();
        let mut source = None;
        for tags in all {
            source = source.max(Some(tags.source));
            for row in &tags.rows {
                let sum = sums.entry(&row.name).or_default();
                sum.name.clone_from(&row.name);
                sum.live_bytes = sum.live_bytes.saturating_add(row.live_bytes);
                sum.live_objects = sum.live_objects.saturating_add(row.live_objects);
                sum.samples = sum.samples.saturating_add(row.samples);
            }
        }
        Some(Tags::of(source?, sums.into_values().collect()))
    }
}

/// The tags of a copy of the library. `None`: the program has made none.
pub fn read(image: &Image, names: &Names) -> Result<Option<Tags>> {
    const TAGS_MAX: u64 = 1 << 10;
    let Ok(table) = names.variable("sy_tags") else {
        return Ok(None); // an older version, whose samples have no tags
    };
    let at = |name| names.place(table, name);
    let last = image.number(at("sy_tags.last")?, 4)?;
    if last == 0 {
        return Ok(None);
    }
    let bytes = names.size("sy_tag_name")?.max(1);
    let count = last.saturating_add(1).min(TAGS_MAX);
    let texts = image.bytes(at("sy_tags.names")?, count * bytes)?;
    let mut rows: Vec<TagRow> = texts
        .chunks_exact(bytes as usize)
        .map(|name| TagRow {
            name: text_of(name),
            ..TagRow::default()
        })
        .collect();
    let table = image.word(names.variable("sy_profile_place")?)?;
    let source = match table {
        0 => counted(image, names, at("sy_tags.counts")?, &mut rows)?,
        table => estimated(image, names, table, &mut rows)?,
    };
    Ok(Some(Tags::of(source, rows)))
}

/// Fills the rows with the counts of objects with audit.
fn counted(image: &Image, names: &Names, counts: u64, rows: &mut [TagRow]) -> Result<Source> {
    let bytes = names.size("sy_tag_counts")?.max(1);
    let [allocations, frees, live] = ["allocations", "frees", "live_bytes"]
        .map(|field| names.field(&format!("sy_tag_counts.{field}")));
    let (allocations, frees, live) = (allocations?, frees?, live?);
    let counts = image.bytes(counts, rows.len() as u64 * bytes)?;
    let mut source = Source::Nothing;
    for (row, counts) in rows.iter_mut().zip(counts.chunks_exact(bytes as usize)) {
        let counts = Record(counts);
        if counts.get(allocations) > 0 {
            source = Source::Audit;
        }
        row.live_bytes = counts.get(live);
        row.live_objects = counts.get(allocations).saturating_sub(counts.get(frees));
    }
    Ok(source)
}

/// Fills the rows with estimates from the samples in a profile's table.
fn estimated(image: &Image, names: &Names, table: u64, rows: &mut [TagRow]) -> Result<Source> {
    let tag = names.field("sy_profile_record.tag")?;
    let mut sums = vec![(0.0, 0.0); rows.len()];
    samples::each_live(image, names, table, &mut |live, record| {
        let at = record.get(tag) as usize;
        if let Some((row, (bytes, objects))) = rows.get_mut(at).zip(sums.get_mut(at)) {
            row.samples += 1;
            *bytes += live.objects * live.size as f64;
            *objects += live.objects;
        }
    })?;
    for (row, (bytes, objects)) in rows.iter_mut().zip(sums) {
        row.live_bytes = bytes.round() as u64;
        row.live_objects = objects.round() as u64;
    }
    Ok(Source::Samples)
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::changes;
    use super::super::tests::{tell_ready, Stage};
    use super::super::{live, metrics, shape, text, Depth, Look, Snapshot};
    use super::*;
    use slabyard_sys::*;
    use std::io::Read;
    use std::os::unix::fs::FileExt;

    const BYTES: usize = 1000;
    const PARSER: usize = 40_000;
    const INDEX: usize = 10_000;
    /// Bytes that are allocated for one sample.
    const MEAN: usize = 16 << 10;

    /// Allocates objects with a tag.
    unsafe fn grow(tag: &std::ffi::CStr, count: usize) {
        let before = sy_tag_set(sy_tag_open(tag.as_ptr()));
        for _ in 0..count {
            sy_malloc(BYTES).cast::<u8>().write_bytes(1, BYTES);
        }
        sy_tag_set(before);
    }

    /// Runs in a process of its own: two tags, and memory without one. Then, if a byte comes, one of
    /// the tags grows.
    #[test]
    #[ignore = "a part of other tests, which start it"]
    fn stage() {
        // SAFETY: the objects are written within their size.
        unsafe {
            if std::env::var_os("WITH_PROFILE").is_some() {
                assert_eq!(sy_profile_start(MEAN), 0);
            }
            grow(c"parser", PARSER);
            grow(c"in\x1bdex", INDEX);
            grow(c"", INDEX);
            println!("ready");
            let mut byte = [0];
            if std::io::stdin().read(&mut byte).unwrap_or(0) == 1 {
                grow(c"parser", PARSER);
                println!("grown");
            }
            tell_ready();
        }
    }

    fn account_of(stage: &Stage) -> super::super::account::Account {
        Look::at(stage.pid(), Depth::Quick).unwrap().account()
    }

    /// Chance exceeds six standard errors in one of 500 million runs.
    fn is_near(row: &TagRow, name: &str, objects: usize) {
        assert_eq!(row.name, name);
        let error = row.error().unwrap();
        assert!((0.002..0.1).contains(&error), "{row:?}");
        let part = row.live_bytes as f64 / (objects * BYTES) as f64;
        assert!((part - 1.0).abs() < 6.0 * error, "{row:?} {part}");
        let objects = row.live_objects as f64 / objects as f64;
        assert!((objects - 1.0).abs() < 6.0 * error, "{row:?} {objects}");
    }

    #[test]
    fn samples_estimate_what_is_live_by_tag() {
        let mut stage = Stage::with("inspect::tags::tests::stage", &[("WITH_PROFILE", "1")]);
        let before = account_of(&stage);
        let tags = before.tags.clone().unwrap();
        assert_eq!(tags.source, Source::Samples);
        let sum = tags.rows.iter().map(|row| row.samples).sum::<u64>();
        assert_eq!(tags.samples, sum);
        is_near(&tags.rows[0], "parser", PARSER);
        let row = |name: &str| tags.rows.iter().find(|row| row.name == name).unwrap();
        is_near(row("in?dex"), "in?dex", INDEX);
        is_near(row(""), "", INDEX);

        let said = text::account(&before);
        assert!(
            said.contains("Live memory by tag, estimated from "),
            "{said}"
        );
        assert!(said.contains("(no tag)") && said.contains('±'), "{said}");
        let metrics = metrics::open_metrics(std::slice::from_ref(&before));
        let line = format!(
            "tag=\"parser\",from=\"samples\"}} {}\n",
            tags.rows[0].live_bytes
        );
        assert!(metrics.contains(&line), "{metrics}");
        assert!(metrics.contains("# TYPE slabyard_tag_samples gauge"));

        stage.go_on("grown");
        let (before, after) = (Snapshot::of(before), Snapshot::of(account_of(&stage)));
        let before = Snapshot::parse(&before.to_json().unwrap()).unwrap();
        assert_eq!(before.account.tags, Some(tags));
        let changes = changes(&before, &after);
        assert_eq!(changes.tags[0].name, "parser");
        let more = changes.tags[0].after - changes.tags[0].before;
        let part = more as f64 / (PARSER * BYTES) as f64;
        assert!((0.7..1.3).contains(&part), "{part}");
        assert_eq!(changes.tags.len(), 1, "{:?}", changes.tags);
        let said = text::changes(&changes);
        assert!(said.contains("tag: live (estimated from "), "{said}");
    }

    #[test]
    fn audit_counts_what_is_live_by_tag() {
        let stage = Stage::with("inspect::tags::tests::stage", &[("SLABYARD", "audit")]);
        let account = account_of(&stage);
        let tags = account.tags.clone().unwrap();
        assert_eq!((tags.source, tags.samples), (Source::Audit, 0));
        assert_eq!(tags.rows[0].name, "parser");
        // The library has a few objects of its own for each hundred.
        let (bytes, objects) = ((PARSER * BYTES) as u64, PARSER as u64);
        assert!((bytes..bytes + bytes / 100).contains(&tags.rows[0].live_bytes));
        assert!((objects..objects + objects / 100).contains(&tags.rows[0].live_objects));
        let said = text::account(&account);
        assert!(said.contains("Live memory by tag, counted for objects with audit"));
        let metrics = metrics::open_metrics(&[account]);
        assert!(metrics.contains("tag=\"parser\",from=\"audit\"} 400"));
        assert!(!metrics.contains("slabyard_tag_samples"));
    }

    #[test]
    fn a_program_with_tags_and_neither_is_told_what_to_do() {
        let stage = Stage::of("inspect::tags::tests::stage");
        let account = account_of(&stage);
        let tags = account.tags.as_ref().unwrap();
        assert_eq!(tags.source, Source::Nothing);
        let said = text::account(&account);
        assert!(said.contains("Start it with SLABYARD=profile"), "{said}");
        assert!(!said.contains("Live memory by tag"), "{said}");
        assert!(!metrics::open_metrics(&[account]).contains("_tag_"));
    }

    /// The process's pointer to the table is overwritten, as by a program with a fault.
    #[test]
    fn samples_that_cannot_be_read_are_told() {
        let stage = Stage::with("inspect::tags::tests::stage", &[("WITH_PROFILE", "1")]);
        let image = live::open(stage.pid(), false).unwrap();
        let found = &shape::find(&image)[0];
        let names = Names::read(&image, found.shapes).unwrap();
        let place = names.variable("sy_profile_place").unwrap();
        let memory = format!("/proc/{}/mem", stage.pid());
        let memory = std::fs::OpenOptions::new().write(true).open(memory);
        let nowhere = 0x10_u64.to_le_bytes();
        memory.unwrap().write_all_at(&nowhere, place).unwrap();
        let account = account_of(&stage);
        assert_eq!(account.tags, None);
        let said = text::account(&account);
        let words = "Not everything could be read: live memory by tag (the address 0x";
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn a_table_at_the_end_of_all_addresses_is_damaged() {
        let image = live::open(std::process::id(), false).unwrap();
        let names = Names::made_up(&["sy_tags.last"], &[("sy_tags", u64::MAX - 2)]);
        let said = read(&image, &names).unwrap_err().to_string();
        assert!(said.contains("damaged"), "{said}");
    }

    #[test]
    fn figures_that_have_no_sum_are_the_largest_number() {
        let row = TagRow {
            samples: u64::MAX,
            live_bytes: u64::MAX,
            live_objects: u64::MAX,
            ..TagRow::default()
        };
        let one = Tags::of(Source::Samples, vec![row.clone(), row]);
        let all = Tags::merged([&one, &one].into_iter()).unwrap();
        assert_eq!((all.samples, all.rows[0].live_bytes), (u64::MAX, u64::MAX));
    }

    #[test]
    fn copies_of_the_library_are_added_up() {
        let row = |name: &str, live_bytes, samples| TagRow {
            name: name.into(),
            live_bytes,
            live_objects: 1,
            samples,
        };
        let one = Tags::of(Source::Samples, vec![row("a", 10, 2), row("b", 30, 3)]);
        let two = Tags::of(Source::Nothing, vec![row("a", 0, 0), row("", 0, 0)]);
        let three = Tags::of(Source::Samples, vec![row("a", 25, 4)]);
        let all = Tags::merged([&one, &two, &three].into_iter()).unwrap();
        assert_eq!((all.source, all.samples), (Source::Samples, 9));
        assert_eq!(
            (all.rows[0].name.as_str(), all.rows[0].live_bytes),
            ("a", 35)
        );
        assert_eq!((all.rows[0].live_objects, all.rows.len()), (2, 2));
        assert_eq!(Tags::merged([].into_iter()), None);
    }
}
