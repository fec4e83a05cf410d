//! The profile of a running process: from the samples that its malloc takes.

use super::data::{Measure, Profile, Stack};
use super::names::Names;
use super::{measure, say_what_is_missing};
use crate::inspect::samples::{Samples, Site};
use crate::inspect::{self, Depth, Look};
use crate::recording::Node;
use anyhow::{Context, Result};
use std::collections::HashMap;

/// The measures of a running process.
pub const MEASURES: [Measure; 4] = [
    measure("inuse_bytes", "bytes", "in use, estimated from samples"),
    measure(
        "inuse_objects",
        "count",
        "objects in use, estimated from samples",
    ),
    measure("alloc_bytes", "bytes", "allocated, estimated from samples"),
    measure(
        "alloc_objects",
        "count",
        "allocations, estimated from samples",
    ),
];

/// The profile of the process with this number, or the only one with this name.
pub fn of_process(name: &str) -> Result<Profile> {
    let pid = inspect::process(name)?;
    of_look(&Look::at(pid, Depth::Quick)?)
}

/// The same of a process or core that is read already.
pub fn of_look(look: &Look) -> Result<Profile> {
    let (samples, program) = look
        .samples()
        .with_context(|| format!("process {} has no profile", look.pid))?;
    Ok(profile_of(&samples, program))
}

fn profile_of(samples: &Samples, title: String) -> Profile {
    let (nodes, numbers) = tree(&samples.sites);
    let mut names = names_of(samples, &nodes);
    let mut stacks: HashMap<Vec<u32>, Vec<i64>> = HashMap::new();
    for (site, number) in samples.sites.iter().zip(numbers) {
        let sums = stacks.entry(names.of(number)).or_insert_with(|| vec![0; 4]);
        for (sum, value) in sums.iter_mut().zip(values(site)) {
            *sum += value;
        }
    }
    say_what_is_missing(&names, 0, 0);
    let mut stacks: Vec<Stack> = stacks
        .into_iter()
        .map(|(frames, values)| Stack { frames, values })
        .collect();
    stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
    Profile {
        title,
        measures: MEASURES.to_vec(),
        frames: names.frames,
        stacks,
        is_difference: false,
    }
}

/// The values of [`MEASURES`].
fn values(site: &Site) -> [i64; 4] {
    let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    [
        whole(site.live_bytes),
        site.live_objects.round() as i64,
        whole(site.allocated_bytes),
        site.allocated_objects.round() as i64,
    ]
}

/// The names of the functions in samples, whose stacks are these nodes.
pub(super) fn names_of<'a>(samples: &'a Samples, nodes: &'a [Node]) -> Names<'a> {
    let own = samples.libraries.iter().filter(|path| is_library(path));
    Names::new(
        nodes,
        &samples.modules,
        &samples.made,
        own.cloned().collect(),
    )
}

/// Whether a file is the library alone, and no program that is linked with it.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libslabyard")
}

/// The stacks as a tree, and the number of each site's innermost node; 0: the stack is not known.
pub(super) fn tree(sites: &[Site]) -> (Vec<Node>, Vec<u32>) {
    let mut nodes: Vec<Node> = Vec::new();
    let mut known: HashMap<(u32, u64), u32> = HashMap::new();
    let numbers = sites.iter().map(|site| {
        site.stack.iter().rev().fold(0, |caller, &address| {
            *known.entry((caller, address)).or_insert_with(|| {
                nodes.push(Node { caller, address });
                nodes.len() as u32
            })
        })
    });
    let numbers = numbers.collect();
    (nodes, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(stack: &[u64], live_bytes: u64) -> Site {
        Site {
            stack: stack.to_vec(),
            live_objects: 1.6,
            live_bytes,
            allocated_objects: 4.0,
            allocated_bytes: 100,
        }
    }

    #[test]
    fn stacks_with_the_same_callers_share_nodes() {
        let sites = [site(&[3, 2, 1], 10), site(&[4, 2, 1], 20), site(&[], 30)];
        let (nodes, numbers) = tree(&sites);
        let pairs: Vec<_> = nodes.iter().map(|one| (one.caller, one.address)).collect();
        assert_eq!(pairs, [(0, 1), (1, 2), (2, 3), (2, 4)]);
        assert_eq!(numbers, [3, 4, 0]);
    }

    #[test]
    fn a_profile_has_the_sums_of_its_sites() {
        let samples = Samples {
            sites: vec![site(&[3, 1], 10), site(&[3, 1], 20), site(&[], 30)],
            ..Samples::default()
        };
        let profile = profile_of(&samples, "x".into());
        assert_eq!(profile.stacks.len(), 2);
        assert_eq!(profile.total(0), 60);
        assert_eq!(profile.total(1), 6);
        assert_eq!(profile.total(3), 12);
    }
}
