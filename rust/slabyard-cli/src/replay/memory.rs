//! Memory for the replay itself, outside all allocators and not counted as theirs; and the reading
//! of the memory that is counted.

use anyhow::{bail, Context, Result};
use core::ffi::c_void;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd};

/// Zeroed elements in a shared mapping, which the kernel does not count as anonymous memory, as
/// read by [`Resident`]. `T` is valid if all its bytes are zero.
pub struct Shared<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: it only owns memory; whether the content can be shared depends on T.
unsafe impl<T: Send> Send for Shared<T> {}
unsafe impl<T: Sync> Sync for Shared<T> {}

/// Types that are valid if all their bytes are zero.
///
/// # Safety
/// All bytes zero are a value of the type.
pub unsafe trait Zeroable {}
// SAFETY: integers are.
unsafe impl Zeroable for u64 {}
unsafe impl Zeroable for u8 {}
unsafe impl Zeroable for std::sync::atomic::AtomicU64 {}

impl<T: Zeroable> Shared<T> {
    pub fn new(length: usize) -> Result<Self> {
        let bytes = (length.max(1))
            .checked_mul(size_of::<T>())
            .context("too large")?;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            bail!(
                "cannot map {bytes} bytes: {}",
                std::io::Error::last_os_error()
            );
        }
        Ok(Shared {
            start: start.cast(),
            length,
        })
    }

    /// Brings all of it into RAM and maps it, so that no later use is a page fault.
    pub fn populate(&self) -> Result<()> {
        // SAFETY: the mapping belongs to this object.
        unsafe { populate(self.start.cast(), self.length.max(1) * size_of::<T>()) }
    }

    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the memory is mapped and zeroed, and T is valid so.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

/// Brings memory into RAM and maps it. Linux from 5.14 on does that by one call.
///
/// # Safety
/// The memory is mapped, and no other thread uses it yet.
unsafe fn populate(start: *mut c_void, bytes: usize) -> Result<()> {
    // SAFETY: as the caller says; contents stay as they are.
    if unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EINVAL) {
        bail!("cannot have {bytes} bytes in RAM: {error}");
    }
    for at in (0..bytes).step_by(4096) {
        let byte = start.cast::<u8>().wrapping_add(at);
        // SAFETY: as above; the content does not change.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }
    Ok(())
}

/// A long range of addresses, mapped to the same little memory again and again. All of it is in RAM
/// and mapped, so no use of it is a page fault, however long it is.
pub struct Wheel {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it only owns memory, and the values that are read from it do not matter.
unsafe impl Send for Wheel {}
unsafe impl Sync for Wheel {}

/// The size of the memory that a longer range repeats.
const WHEEL_BYTES: usize = 64 << 20;

impl Wheel {
    pub fn new(bytes: usize) -> Result<Self> {
        let piece = bytes.clamp(1, WHEEL_BYTES).next_multiple_of(4096);
        let rounds = bytes.div_ceil(piece).max(1);
        let bytes = rounds * piece;
        // SAFETY: a name that ends in NUL.
        let fd = unsafe { libc::memfd_create(c"slabyard".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            bail!("cannot make memory: {}", std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(piece as u64)?;
        let start = map(std::ptr::null_mut(), bytes, None)?;
        let wheel = Wheel {
            start: start.cast(),
            bytes,
        };
        for round in 0..rounds {
            map(start.wrapping_byte_add(round * piece), piece, Some(&file))?;
        }
        wheel.populate()?;
        Ok(wheel)
    }

    /// Maps all of it in this process.
    pub fn populate(&self) -> Result<()> {
        // SAFETY: the range is mapped, and contents stay as they are.
        unsafe { populate(self.start.cast(), self.bytes) }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        // SAFETY: this is exactly the range that `new` mapped.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// Maps a file over addresses of this module, or reserves addresses without memory.
fn map(place: *mut c_void, bytes: usize, file: Option<&File>) -> Result<*mut c_void> {
    let shared = libc::MAP_SHARED | libc::MAP_FIXED;
    let none = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let (protection, flags, fd) = match file {
        Some(file) => (libc::PROT_READ | libc::PROT_WRITE, shared, file.as_raw_fd()),
        None => (libc::PROT_NONE, none, -1),
    };
    // SAFETY: MAP_FIXED is used only inside the range that `Wheel::new` has reserved.
    let start = unsafe { libc::mmap(place, bytes, protection, flags, fd, 0) };
    if start == libc::MAP_FAILED {
        bail!(
            "cannot map {bytes} bytes: {}",
            std::io::Error::last_os_error()
        );
    }
    Ok(start)
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: this is exactly the range that `new` mapped.
        unsafe { libc::munmap(self.start.cast(), self.length.max(1) * size_of::<T>()) };
    }
}

/// Reads the amount of this process's anonymous memory in RAM.
pub struct Resident {
    file: File,
}

impl Resident {
    pub fn open() -> Result<Self> {
        let file = File::open("/proc/self/smaps_rollup")
            .context("cannot read /proc/self/smaps_rollup, which Linux has from 4.14 on")?;
        Ok(Resident { file })
    }

    /// The number of bytes. It is exact, because the kernel walks the page tables.
    pub fn bytes(&mut self) -> u64 {
        let mut text = [0; 4096];
        let mut length = 0;
        if self.file.seek(SeekFrom::Start(0)).is_err() {
            return 0;
        }
        while let Ok(count @ 1..) = self.file.read(&mut text[length..]) {
            length += count;
        }
        anonymous_kib(&text[..length]).unwrap_or(0) * 1024
    }
}

/// Parses a text as that file and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_text(text: &[u8]) {
    let _ = anonymous_kib(text);
}

fn anonymous_kib(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_not_counted_and_private_memory_is() {
        let mut resident = Resident::open().unwrap();
        let before = resident.bytes();
        assert!(before > 0);
        // The sizes are large, so that the memory of other tests does not matter.
        let (bytes, half) = (256 << 20, 128 << 20);
        let mut shared = Shared::<u8>::new(bytes).unwrap();
        shared.as_mut_slice().fill(1);
        let with_shared = resident.bytes();
        assert!(with_shared < before + half, "{before} then {with_shared}");
        let private = std::hint::black_box(vec![1u8; bytes]);
        let with_private = resident.bytes();
        assert!(with_private > before + half, "{before} then {with_private}");
        drop(private);
    }

    fn page_faults() -> i64 {
        // SAFETY: an rusage may be all zero, and it is a local value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        usage.ru_minflt
    }

    #[test]
    fn no_use_of_the_replay_s_own_memory_is_a_page_fault() {
        let pages = |bytes: usize| (0..bytes).step_by(4096);
        let wheel = Wheel::new(1 << 30).unwrap();
        let mut shared = Shared::<u64>::new(1 << 20).unwrap();
        shared.populate().unwrap();
        let before = page_faults();
        for at in pages(1 << 30) {
            // SAFETY: the offset is inside the wheel.
            unsafe { wheel.as_ptr().add(at).write_volatile(1) };
        }
        shared.as_mut_slice().fill(1);
        let faults = page_faults() - before;
        assert!(faults < 100, "{faults} page faults");
    }

    #[test]
    fn the_line_is_found() {
        let text = b"Rss: 5 kB\nAnonymous:            1234 kB\nLazyFree: 0 kB\n";
        assert_eq!(anonymous_kib(text), Some(1234));
        assert_eq!(anonymous_kib(b"nothing"), None);
    }
}
