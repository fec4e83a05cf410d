//! The machine: clocks, processors, resident memory, and what the header of a report says.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for a write.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread, in nanoseconds.
pub fn cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Page faults of this thread for which nothing was read from a disk.
pub fn faults() -> u64 {
    // SAFETY: all-zero is a value, and the call fills it.
    let used = unsafe {
        let mut used: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut used);
        used
    };
    used.ru_minflt as u64
}

/// Nanoseconds of the monotonic clock.
pub fn wall_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Ticks of the time-stamp counter in a nanosecond.
pub fn ticks_per_ns() -> f64 {
    // SAFETY: reads the counter.
    let ticks = || unsafe { core::arch::x86_64::_rdtsc() };
    let (start, before) = (wall_ns(), ticks());
    std::thread::sleep(Duration::from_millis(20));
    (ticks() - before) as f64 / (wall_ns() - start) as f64
}

/// The processors that this process may use.
pub fn processors() -> Vec<usize> {
    // SAFETY: an all-zero set is empty, and the call fills it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: the index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Binds this thread to one processor.
pub fn pin(cpu: usize) {
    // SAFETY: a set with one member, for the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Resident anonymous and shared memory of this process, in bytes. The kernel walks the page tables
/// for it. File pages (the program itself) are left out. Allocates nothing.
pub fn resident() -> u64 {
    let mut text = [0u8; 4096];
    // SAFETY: the path is a C string and the buffer has room for its length.
    let length = unsafe {
        let file = libc::open(c"/proc/self/smaps_rollup".as_ptr(), libc::O_RDONLY);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    let text = core::str::from_utf8(&text[..length]).unwrap_or("");
    let field = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
        number
            .and_then(|digits| digits.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    };
    field("Anonymous:") + field("Pss_Shmem:")
}

fn resident_ever() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("");
    let kib = line.split_ascii_whitespace().next();
    kib.and_then(|digits| digits.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// Resets the peak of resident memory. Returns the bytes that are resident now, with file pages.
pub fn reset_peak() -> u64 {
    let forget = "5"; // proc(5), /proc/pid/clear_refs
    if let Err(error) = fs::write("/proc/self/clear_refs", forget) {
        eprintln!("bench: the peak is the whole process's: {error}");
    }
    resident_ever()
}

/// The peak of resident memory since `reset_peak`, in bytes, also within a call.
pub fn peak() -> u64 {
    resident_ever()
}

/// Bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: asks for a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// One mapping of this process.
pub struct Mapping {
    pub range: std::ops::Range<u64>,
    /// Bytes of anonymous memory.
    pub resident: u64,
}

/// All mappings but the heap segment, which `malloc` shares with this program's own data.
pub fn mappings() -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in fs::read_to_string("/proc/self/smaps")
        .unwrap_or_default()
        .lines()
    {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or("");
        let bounds = first
            .split_once('-')
            .map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)));
        if let Some((Ok(start), Ok(end))) = bounds {
            let end = if line.ends_with("[heap]") { start } else { end };
            found.push(Mapping {
                range: start..end,
                resident: 0,
            });
        } else if let ("Anonymous:", Some(mapping)) = (first, found.last_mut()) {
            let kib: u64 = words
                .next()
                .and_then(|digits| digits.parse().ok())
                .unwrap_or(0);
            mapping.resident = kib * 1024;
        }
    }
    found
}

/// Threads started together, each on its own processor where there are enough.
///
/// Each thread holds the value of `enter` while it runs. It runs `warm`, waits for the others, and
/// runs `timed`. The times are those of `timed`. Threads that have a processor of their own spin
/// while they wait, so that all begin at once. Others sleep: threads that spin would take the
/// processors from those that are still starting.
pub fn team<Held>(
    size: usize,
    enter: impl Fn() -> Held + Sync,
    warm: impl Fn(usize) + Sync,
    timed: impl Fn(usize) + Sync,
) -> Vec<Times> {
    let cpus = processors();
    let own_processors = size <= cpus.len();
    let (waiting, sleeping) = (AtomicU32::new(size as u32), Barrier::new(size));
    let member = |index: usize| {
        if own_processors {
            pin(cpus[index]);
        }
        let _held = enter();
        warm(index);
        if own_processors {
            waiting.fetch_sub(1, Ordering::AcqRel);
            while waiting.load(Ordering::Acquire) != 0 {
                std::thread::yield_now();
            }
        } else {
            sleeping.wait();
        }
        let (start, cpu) = (wall_ns(), cpu_ns());
        timed(index);
        Times {
            start,
            end: wall_ns(),
            cpu: cpu_ns() - cpu,
        }
    };
    let member = &member;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|index| scope.spawn(move || member(index)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a kernel does not panic"))
            .collect()
    })
}

/// Start, end and CPU time of one thread of a team.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub start: u64,
    pub end: u64,
    pub cpu: u64,
}

/// From the first start to the last end.
pub fn wall_of(team: &[Times]) -> u64 {
    let start = team.iter().map(|times| times.start).min().unwrap_or(0);
    team.iter().map(|times| times.end).max().unwrap_or(0) - start
}

/// CPU time of all threads together.
pub fn cpu_of(team: &[Times]) -> u64 {
    team.iter().map(|times| times.cpu).sum()
}

/// CPU time of each processor that the threads had.
pub fn cpu_each_of(team: &[Times]) -> u64 {
    cpu_of(team) / team.len().clamp(1, processors().len().max(1)) as u64
}

/// Nanoseconds for a cache line to go from one thread to another and back. None if there is one
/// processor.
pub fn round_trip() -> Option<f64> {
    const TRIPS: u32 = 2000;
    if processors().len() < 2 {
        return None;
    }
    let ball = AtomicU32::new(0);
    let play = |from: u32, trips: u32, offset: u32| {
        for trip in 0..trips {
            while ball.load(Ordering::Acquire) != from + 2 * trip + offset {
                core::hint::spin_loop();
            }
            ball.store(from + 2 * trip + offset + 1, Ordering::Release);
        }
    };
    let warm = TRIPS / 4;
    let times = team(
        2,
        || (),
        |index| play(0, warm, index as u32),
        |index| play(2 * warm, TRIPS, index as u32),
    );
    Some(wall_of(&times) as f64 / f64::from(TRIPS))
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(|line| line.trim().to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(": ").nth(1))
        .unwrap_or("unknown")
        .to_owned()
}

/// The conditions of a run, as lines of a report's head.
pub fn conditions() -> Vec<String> {
    let memory = first_line("/proc/meminfo");
    let page = page_size();
    let huge = "/sys/kernel/mm/transparent_hugepage";
    vec![
        format!(
            "processor      {} ({} usable)",
            cpu_model(),
            processors().len()
        ),
        format!(
            "memory         {}",
            memory.trim_start_matches("MemTotal:").trim()
        ),
        format!(
            "kernel         Linux {}",
            first_line("/proc/sys/kernel/osrelease")
        ),
        format!("page size      {page} B"),
        format!(
            "huge pages     enabled {}, defrag {}",
            first_line(&format!("{huge}/enabled")),
            first_line(&format!("{huge}/defrag"))
        ),
        format!("load           {}", first_line("/proc/loadavg")),
        format!(
            "compilers      {}; {}",
            env!("BENCH_CXX"),
            env!("BENCH_RUSTC")
        ),
    ]
}

/// The time since `start` as text, for progress on the terminal.
pub fn elapsed(since: Instant) -> String {
    let seconds = since.elapsed().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_knows_what_is_touched_of_it() {
        let block = vec![1u8; 8 << 20];
        let address = block.as_ptr() as u64 + (4 << 20);
        let found = mappings();
        let own = found
            .iter()
            .find(|mapping| mapping.range.contains(&address))
            .unwrap();
        assert!(own.resident >= 8 << 20, "{}", own.resident);
    }

    #[test]
    fn the_page_size_is_a_power_of_two() {
        assert!(page_size().is_power_of_two());
    }

    #[test]
    fn a_team_runs_every_member_once() {
        let warmed = AtomicU32::new(0);
        let ran = AtomicU32::new(0);
        let times = team(
            3,
            || (),
            |index| {
                warmed.fetch_add(1 << (8 * index), Ordering::Relaxed);
            },
            |index| {
                assert_eq!(
                    warmed.load(Ordering::Relaxed),
                    0x010101,
                    "all are warm first"
                );
                ran.fetch_add(1 << (8 * index), Ordering::Relaxed);
            },
        );
        assert_eq!(times.len(), 3);
        assert_eq!(ran.load(Ordering::Relaxed), 0x010101);
        assert!(wall_of(&times) > 0);
    }

    #[test]
    fn a_team_that_shares_processors_is_warm_before_it_begins() {
        let size = 3 * processors().len();
        let warmed = AtomicU32::new(0);
        let times = team(
            size,
            || (),
            |_| {
                warmed.fetch_add(1, Ordering::Relaxed);
            },
            |_| assert_eq!(warmed.load(Ordering::Relaxed), size as u32),
        );
        assert_eq!(times.len(), size);
        let each = cpu_of(&times) / processors().len() as u64;
        assert_eq!(cpu_each_of(&times), each);
        assert_eq!(cpu_each_of(&times[..1]), times[0].cpu);
    }

    #[test]
    fn a_line_goes_around() {
        if let Some(ns) = round_trip() {
            assert!(ns > 0.0 && ns.is_finite());
        }
    }
}
