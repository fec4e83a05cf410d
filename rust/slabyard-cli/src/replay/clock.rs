//! Clocks: the cycle counter for single calls, thread time for whole passes.

/// A reading of the finest clock there is.
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
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Time that this thread has spent running, in user and kernel.
pub fn thread_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The same of all threads of this process, those that have ended included.
pub fn process_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time on the wall.
pub fn wall_ns() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// How long a tick is, measured over some milliseconds.
pub fn ns_per_tick() -> f64 {
    let (wall, start) = (wall_ns(), ticks());
    while wall_ns() - wall < 5_000_000 {
        core::hint::spin_loop();
    }
    let elapsed = ticks() - start;
    (wall_ns() - wall) as f64 / elapsed as f64
}

/// What two readings in a row cost: the median of many.
pub fn overhead_ticks() -> u64 {
    let mut readings = [0; 1001];
    for reading in &mut readings {
        let start = ticks();
        *reading = ticks() - start;
    }
    readings.sort_unstable();
    readings[readings.len() / 2]
}
