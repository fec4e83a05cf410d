//! Reads the samples that a process has taken of its allocations (src/debug/profile.c): the stacks of
//! a profile, and what was allocated and freed there. The figures are estimates for all objects.

use super::image::Image;
use super::shape::{self, Found, Names, Record};
use crate::recording::{Made, Module};
use anyhow::{bail, Result};

/// What was sampled at a stack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// Return addresses, the innermost first; empty: the stack is not known.
    pub stack: Vec<u64>,
    pub live_objects: f64,
    pub live_bytes: u64,
    pub allocated_objects: f64,
    pub allocated_bytes: u64,
}

/// A sample that is live.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// The index of its stack in [`Samples::sites`].
    pub site: usize,
    /// Bytes that the program asked for.
    pub size: u64,
    /// The objects that it stands for.
    pub objects: f64,
    /// When it was allocated: nanoseconds of the system's monotonic clock.
    pub time: u64,
}

/// The samples of a process, and the files that the addresses lie in.
#[derive(Debug, Default)]
pub struct Samples {
    pub sites: Vec<Site>,
    pub live: Vec<Live>,
    pub modules: Vec<Module>,
    /// The names of functions that the process made at run time.
    pub made: Made,
    /// The files that the library is in.
    pub libraries: Vec<String>,
}

/// Reads the samples of all copies of the library.
pub fn read(image: &Image) -> Result<Samples> {
    let mut samples = Samples::default();
    let found = shape::find(image);
    if found.is_empty() {
        bail!("there is no Slabyard in it that this tool knows");
    }
    let mut begun = false;
    for one in &found {
        begun |= read_copy(image, one, &mut samples)?;
        samples.libraries.push(one.file.clone());
    }
    if !begun {
        bail!(
            "it has taken no samples: start it with SLABYARD=profile, or let it call sy_profile_start"
        );
    }
    samples.modules = shape::modules(image);
    Ok(samples)
}

/// The fields of the tables.
struct Fields {
    stacks: u64,
    stacks_used: u64,
    unit: u64,
    depth_max: u64,
    parts: f64,
}

/// False: no profile was begun.
fn read_copy(image: &Image, found: &Found, samples: &mut Samples) -> Result<bool> {
    const SITES_MAX: u64 = 1 << 20;
    let names = Names::read(image, found.shapes)?;
    let table = image.word(names.variable("sy_profile_place")?)?;
    if table == 0 {
        return Ok(false);
    }
    let stacks = image.word(names.variable("sy_stack_table")?)?;
    let used_at = names.field("sy_stack_table.used")?.offset;
    let fields = Fields {
        stacks,
        stacks_used: match stacks {
            0 => 0,
            table => image.word(table.wrapping_add(used_at.into()))?,
        },
        unit: names.constant("sy_stack_unit")?.max(1),
        depth_max: names.constant("SY_STACK_DEPTH_MAX")?.min(1 << 10),
        parts: names.constant("sy_profile_parts")?.max(1) as f64,
    };
    let count = image
        .number(names.variable("sy_profile_sites")?, 4)?
        .min(SITES_MAX);
    let bytes = names.size("sy_profile_site")?;
    let sites = table.wrapping_add(names.field("sy_profile_table.sites")?.offset.into());
    let first_site = samples.sites.len();
    for number in 0..count {
        let record = image.bytes(sites.wrapping_add(number * bytes), bytes)?;
        let of = |name: &str| Ok::<_, anyhow::Error>(Record(&record).get(names.field(name)?));
        let (allocated, freed) = (
            of("sy_profile_site.allocated")?,
            of("sy_profile_site.freed")?,
        );
        let (bytes, freed_bytes) = (
            of("sy_profile_site.allocated_bytes")?,
            of("sy_profile_site.freed_bytes")?,
        );
        samples.sites.push(Site {
            stack: stack(image, &names, &fields, of("sy_profile_site.stack")?)?,
            live_objects: allocated.saturating_sub(freed) as f64 / fields.parts,
            live_bytes: bytes.saturating_sub(freed_bytes),
            allocated_objects: allocated as f64 / fields.parts,
            allocated_bytes: bytes,
        });
    }
    let Samples { sites, live, .. } = samples;
    each_live(image, &names, table, &mut |mut one, _| {
        one.site += first_site;
        if one.site < sites.len() {
            live.push(one);
        }
    })?;
    Ok(true)
}

/// Calls `visit` for the live samples in a table, with their records; their sites are numbered in the
/// table. The process runs on: what makes no sense is left out.
pub(super) fn each_live(
    image: &Image,
    names: &Names,
    table: u64,
    visit: &mut dyn FnMut(Live, Record),
) -> Result<()> {
    const RECORDS_AT_ONCE: u64 = 1 << 14;
    const RECORDS_MAX: u64 = 1 << 21;
    let parts = names.constant("sy_profile_parts")?.max(1) as f64;
    let used = image
        .number(names.variable("sy_profile_used")?, 4)?
        .min(RECORDS_MAX);
    let bytes = names.size("sy_profile_record")?.max(1);
    let records = table.wrapping_add(names.field("sy_profile_table.records")?.offset.into());
    let [object, size, weight, time, site] = ["object", "size", "weight", "time", "site"]
        .map(|field| names.field(&format!("sy_profile_record.{field}")));
    let (object, size, weight, time, site) = (object?, size?, weight?, time?, site?);
    for first in (0..used).step_by(RECORDS_AT_ONCE as usize) {
        let count = RECORDS_AT_ONCE.min(used - first);
        let block = image.bytes(records.wrapping_add(first * bytes), count * bytes)?;
        for record in block.chunks_exact(bytes as usize).map(Record) {
            if record.get(object) != 0 && record.get(weight) != 0 {
                let live = Live {
                    site: record.get(site) as usize,
                    size: record.get(size),
                    objects: record.get(weight) as f64 / parts,
                    time: record.get(time),
                };
                visit(live, record);
            }
        }
    }
    Ok(())
}

/// The frames of a stack by its number; none for what is no number of a stack.
fn stack(image: &Image, names: &Names, fields: &Fields, number: u64) -> Result<Vec<u64>> {
    let at = number * fields.unit;
    if number == 0 || at >= fields.stacks_used {
        return Ok(Vec::new());
    }
    let entry = fields.stacks.wrapping_add(at);
    let of = |name: &str| {
        let field = names.field(name)?;
        Ok::<_, anyhow::Error>(image.number(entry.wrapping_add(field.offset.into()), field.bytes)?)
    };
    let depth = of("sy_stack_entry.depth")?;
    if of("sy_stack_entry.number")? != number || depth > fields.depth_max {
        return Ok(Vec::new());
    }
    let frames = names.field("sy_stack_entry.frames")?.offset;
    Ok(image.words(entry.wrapping_add(frames.into()), depth)?)
}
