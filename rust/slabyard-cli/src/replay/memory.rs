//! Memory of the replay's own, outside all allocators and not counted as theirs; and the reading
//! of what is counted.

use anyhow::{bail, Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Zeroed elements in a shared mapping: the kernel does not count them as anonymous memory, which
/// is what [`Resident`] reads. `T` is valid when all its bytes are zero.
pub struct Shared<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: it only owns memory; sharing what lies in it is up to T.
unsafe impl<T: Send> Send for Shared<T> {}
unsafe impl<T: Sync> Sync for Shared<T> {}

/// Types that are valid when zeroed.
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
        // SAFETY: a fresh mapping at an address of the kernel's choice.
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

    pub fn as_ptr(&self) -> *mut T {
        self.start
    }

    /// Has the first `bytes` in RAM, and mapped, if the kernel can do that (Linux 5.14).
    pub fn back(&self, bytes: usize) {
        let bytes = bytes.min(self.length * size_of::<T>());
        // SAFETY: inside our own mapping; contents stay as they are.
        unsafe { libc::madvise(self.start.cast(), bytes, libc::MADV_POPULATE_WRITE) };
    }

    pub fn as_slice(&self) -> &[T] {
        // SAFETY: mapped, zeroed, and T is valid so.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what new mapped.
        unsafe { libc::munmap(self.start.cast(), self.length.max(1) * size_of::<T>()) };
    }
}

/// Reads how much anonymous memory this process has in RAM.
pub struct Resident {
    file: File,
}

impl Resident {
    pub fn open() -> Result<Self> {
        let file = File::open("/proc/self/smaps_rollup")
            .context("cannot read /proc/self/smaps_rollup, which Linux has from 4.14 on")?;
        Ok(Resident { file })
    }

    /// Bytes; exact, for the kernel walks the page tables.
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
        // So much that what other tests do meanwhile does not matter.
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

    #[test]
    fn the_line_is_found() {
        let text = b"Rss: 5 kB\nAnonymous:            1234 kB\nLazyFree: 0 kB\n";
        assert_eq!(anonymous_kib(text), Some(1234));
        assert_eq!(anonymous_kib(b"nothing"), None);
    }
}
