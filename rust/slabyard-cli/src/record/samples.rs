//! Samples the memory of the recorded processes in RAM at intervals, from outside.

use crate::recording::Process;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of samples kept of a process. When there are twice as many, every second one is
/// dropped, and from then on half as many are kept.
const SAMPLES_MAX: usize = 512;
/// The interval at which new processes are looked for.
const LOOK_FOR_NEW: Duration = Duration::from_millis(50);

/// The time in nanoseconds of the monotonic clock, and the bytes of anonymous memory in RAM.
pub type Sample = (u64, u64);

#[derive(Default)]
struct Series {
    kept: Vec<Sample>,
    /// Every `of`-th sample is kept; `seen` counts all.
    of: u64,
    seen: u64,
}

impl Series {
    fn add(&mut self, sample: Sample) {
        self.of = self.of.max(1);
        if self.seen.is_multiple_of(self.of) {
            self.kept.push(sample);
        }
        self.seen += 1;
        if self.kept.len() == 2 * SAMPLES_MAX {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.of *= 2;
        }
    }
}

/// Samples all processes that have a file in the recording's folder.
pub struct Sampler {
    folder: PathBuf,
    page: u64,
    series: HashMap<u32, Series>,
    living: Vec<u32>,
    looked: Option<Instant>,
}

impl Sampler {
    pub fn new(folder: &Path) -> Self {
        Sampler {
            folder: folder.to_path_buf(),
            // SAFETY: sysconf has no preconditions.
            page: unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64,
            series: HashMap::new(),
            living: Vec::new(),
            looked: None,
        }
    }

    /// Samples each process that is alive.
    pub fn take(&mut self) {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_FOR_NEW) {
            self.looked = Some(Instant::now());
            self.living = processes_in(&self.folder);
        }
        let (page, series) = (self.page, &mut self.series);
        self.living.retain(|&pid| {
            let Some(pages) = anonymous_pages(pid) else {
                return false;
            };
            let sample = (monotonic_ns(), pages * page);
            series.entry(pid).or_default().add(sample);
            true
        });
    }

    /// The samples of a process, in the order of time.
    pub fn of(&self, process: &Process) -> Vec<Sample> {
        let end = process.end.map_or(u64::MAX, |(_, ns)| ns);
        let lived = process.birth_ns..=end;
        let all = self
            .series
            .get(&process.pid)
            .map_or(&[][..], |series| &series.kept);
        all.iter()
            .filter(|(ns, _)| lived.contains(ns))
            .copied()
            .collect()
    }
}

/// The process ids in the names of the files, such as `123.0.part`.
fn processes_in(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.split('.').next()?.parse().ok();
    let mut all: Vec<u32> = entries.filter_map(number).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The pages in RAM that are neither of files nor shared.
fn anonymous_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut numbers = text.split(' ').skip(1).map(|word| word.parse::<u64>().ok());
    let (resident, shared) = (numbers.next()??, numbers.next()??);
    // A process that has ended and is not waited for has no pages.
    (resident > 0).then(|| resident.saturating_sub(shared))
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the timespec is a local value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_as_many_samples_as_a_short_one_and_evenly() {
        let mut series = Series::default();
        for n in 0..100_000u64 {
            series.add((n, 2 * n));
        }
        assert!((SAMPLES_MAX..2 * SAMPLES_MAX).contains(&series.kept.len()));
        assert_eq!(series.kept[0], (0, 0));
        let step = series.kept[1].0;
        assert!(series
            .kept
            .windows(2)
            .all(|two| two[1].0 - two[0].0 == step));
    }

    #[test]
    fn this_process_is_sampled_while_it_lives_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for name in [format!("{own}.0.part"), format!("{own}.1.part")] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::write(folder.path().join("0.0.part"), "").unwrap();
        fs::create_dir(folder.path().join("live")).unwrap();
        let mut sampler = Sampler::new(folder.path());
        let before = monotonic_ns();
        sampler.take();
        let held = std::hint::black_box(vec![1u8; 256 << 20]);
        sampler.take();
        drop(held);
        let process = |pid, birth_ns| Process {
            pid,
            birth_ns,
            ..Process::default()
        };
        let samples = sampler.of(&process(own, before));
        assert_eq!(samples.len(), 2);
        assert!(samples[1].1 > samples[0].1 + (128 << 20), "{samples:?}");
        assert_eq!(sampler.of(&process(own, monotonic_ns())), []);
        assert_eq!(sampler.of(&process(0, before)), []);
    }
}
