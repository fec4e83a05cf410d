//! Clocks: the processor's cycle counter for single calls, and thread time for whole passes.

/// Reads the finest clock that the machine has.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both instructions exist on every x86-64.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(not(target_arch = "x86_64"))]
    nanoseconds(libc::CLOCK_MONOTONIC)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the timespec is a local value.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time that this thread has been running, in user and kernel mode.
pub fn thread_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The same for all threads of this process, including those that have ended.
pub fn process_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Wall-clock time.
pub fn wall_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// The length of a tick, measured over some milliseconds.
pub fn ns_per_tick() -> f64 {
    let (wall, start) = (wall_ns(), ticks());
    while wall_ns() - wall < 5_000_000 {
        core::hint::spin_loop();
    }
    let elapsed = ticks() - start;
    (wall_ns() - wall) as f64 / elapsed as f64
}

/// The differences of many pairs of successive readings, ascending.
fn differences() -> [u64; 1001] {
    let mut readings = [0; 1001];
    for reading in &mut readings {
        let start = ticks();
        *reading = ticks() - start;
    }
    readings.sort_unstable();
    readings
}

/// The cost of two successive readings: the median of many.
pub fn overhead_ticks() -> u64 {
    let readings = differences();
    readings[readings.len() / 2]
}

/// The clock's step: the least amount by which its readings advance.
pub fn step_ticks() -> u64 {
    step_of(&differences())
}

/// If the step is longer than a reading takes, some readings do not advance the clock. Otherwise
/// the clock advances by multiples of its step.
fn step_of(ascending: &[u64]) -> u64 {
    let mut moved = ascending.iter().copied().filter(|&reading| reading > 0);
    let least = moved.next().unwrap_or(1);
    match ascending.first() {
        Some(0) => least,
        _ => moved.fold(least, common_divisor),
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_s_step_is_found() {
        assert_eq!(step_of(&[0, 0, 10, 10, 20]), 10);
        assert_eq!(step_of(&[0, 41, 42, 83]), 41);
        assert_eq!(step_of(&[26, 26, 28, 40, 104]), 2);
        assert_eq!(step_of(&[25, 26, 30]), 1);
        assert!(step_ticks() >= 1);
    }
}
