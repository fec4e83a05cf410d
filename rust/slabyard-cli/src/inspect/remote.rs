//! Reads many parts of the memory of a running process by one call.

use std::ops::Range;

/// The system takes as many parts in a call (IOV_MAX).
const PARTS_MAX: usize = 1024;

/// Reads parts, as many bytes as one call does: their number. `None`: the system refuses.
fn call(pid: u32, parts: &[Range<u64>], into: &mut [u8]) -> Option<usize> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = |part: &Range<u64>| libc::iovec {
        iov_base: part.start as *mut _,
        iov_len: (part.end - part.start) as usize,
    };
    let remote: Vec<_> = parts.iter().map(remote).collect();
    // SAFETY: the bytes are written into `into`; the other addresses are those of another process.
    let read = unsafe {
        libc::process_vm_readv(
            pid as i32,
            &local,
            1,
            remote.as_ptr(),
            remote.len() as u64,
            0,
        )
    };
    match usize::try_from(read) {
        Ok(read) => Some(read),
        Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => Some(0),
        Err(_) => None,
    }
}

/// Reads the parts, whose bytes are without gaps in `into`; zeros for what cannot be read. False: the
/// system refuses such calls, in some containers for example.
pub fn read_all(pid: u32, mut parts: &[Range<u64>], mut into: &mut [u8]) -> bool {
    while !parts.is_empty() {
        let some = &parts[..parts.len().min(PARTS_MAX)];
        let bytes = some.iter().map(length).sum();
        let Some(mut read) = call(pid, some, &mut into[..bytes]) else {
            return false;
        };
        // Where it stopped, a part was unmapped meanwhile. The call after this one begins behind it.
        let mut done = 0;
        while done < some.len() && read >= length(&some[done]) {
            read -= length(&some[done]);
            into = &mut into[length(&some[done])..];
            done += 1;
        }
        if let Some(torn) = some.get(done) {
            into[read..length(torn)].fill(0);
            into = &mut into[length(torn)..];
            done += 1;
        }
        parts = &parts[done..];
    }
    true
}

fn length(part: &Range<u64>) -> usize {
    (part.end - part.start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some memory of this process, of which one page cannot be read.
    struct Torn(*mut libc::c_void);

    const PAGE: usize = 64 << 10;
    const PAGES: usize = 3;

    impl Torn {
        fn new() -> Torn {
            let (all, usual) = (PAGES * PAGE, libc::PROT_READ | libc::PROT_WRITE);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: the memory is new; its second page is not used after it was protected.
            unsafe {
                let memory = libc::mmap(std::ptr::null_mut(), all, usual, flags, -1, 0);
                assert_ne!(memory, libc::MAP_FAILED);
                for page in 0..PAGES {
                    let bytes = memory.cast::<u8>().add(page * PAGE);
                    bytes.write_bytes(page as u8 + 1, PAGE);
                }
                let second = memory.cast::<u8>().add(PAGE).cast();
                assert_eq!(libc::mprotect(second, PAGE, libc::PROT_NONE), 0);
                Torn(memory)
            }
        }

        fn part(&self, from: usize, bytes: usize) -> Range<u64> {
            let start = self.0 as u64 + from as u64;
            start..start + bytes as u64
        }
    }

    impl Drop for Torn {
        fn drop(&mut self) {
            // SAFETY: no reference to it is left.
            unsafe { libc::munmap(self.0, PAGES * PAGE) };
        }
    }

    #[test]
    fn what_cannot_be_read_is_zero_and_the_rest_is_there() {
        let torn = Torn::new();
        let parts = [
            torn.part(8, 24),
            torn.part(PAGE - 16, 32), // half of it can be read
            torn.part(PAGE, PAGE),
            torn.part(2 * PAGE, PAGE),
        ];
        let mut bytes = vec![9; parts.iter().map(length).sum()];
        assert!(read_all(std::process::id(), &parts, &mut bytes));
        assert_eq!(bytes[..24], [1; 24]);
        assert!(bytes[40..56 + PAGE].iter().all(|&byte| byte == 0));
        assert!(bytes[56 + PAGE..].iter().all(|&byte| byte == 3));
        assert_eq!(bytes.len(), 56 + 2 * PAGE);
    }

    #[test]
    fn there_may_be_more_parts_than_a_call_takes() {
        let torn = Torn::new();
        let parts: Vec<_> = (0..3 * PARTS_MAX + 5)
            .map(|at| torn.part(at % 2 * 2 * PAGE + at, 3))
            .collect();
        let mut bytes = vec![0; parts.len() * 3];
        assert!(read_all(std::process::id(), &parts, &mut bytes));
        for (at, three) in bytes.chunks(3).enumerate() {
            assert_eq!(three, [at as u8 % 2 * 2 + 1; 3], "{at}");
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_refused() {
        let torn = Torn::new();
        assert!(!read_all(i32::MAX as u32, &[torn.part(0, 8)], &mut [0; 8]));
    }
}
