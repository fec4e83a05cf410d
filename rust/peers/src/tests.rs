//! Every allocator of the table does what `malloc` does, alone and from several threads.

use super::*;
use std::sync::mpsc;

const SIZES: [usize; 12] = [
    0, 1, 7, 8, 24, 64, 200, 1024, 4096, 33_000, 300_000, 5_000_000,
];

/// Writes a pattern that depends on the object's number.
unsafe fn fill(object: *mut c_void, size: usize, number: usize) {
    // SAFETY: the caller owns size bytes at object.
    unsafe { object.cast::<u8>().write_bytes(number as u8, size) };
}

unsafe fn check(object: *mut c_void, size: usize, number: usize) {
    // SAFETY: the caller owns size bytes at object, written by fill.
    let bytes = unsafe { core::slice::from_raw_parts(object.cast::<u8>(), size) };
    assert!(bytes.iter().all(|&byte| byte == number as u8));
}

#[test]
fn names_are_unique_and_versions_known() {
    for (index, peer) in PEERS.iter().enumerate() {
        assert!(std::ptr::eq(find(peer.name).unwrap(), &PEERS[index]));
        let version = (peer.version)();
        assert!(
            version.starts_with(|first: char| first.is_ascii_digit()),
            "{} has version {version:?}",
            peer.name
        );
    }
}

#[test]
fn allocates_every_size_and_keeps_contents() {
    for peer in PEERS {
        let _guard = ThreadGuard::new(peer);
        let objects: Vec<_> = SIZES
            .iter()
            .enumerate()
            .map(|(number, &size)| unsafe {
                let object = (peer.malloc)(size);
                assert!(!object.is_null(), "{} malloc({size})", peer.name);
                if let Some(usable) = peer.usable_size {
                    assert!(usable(object) >= size, "{} usable({size})", peer.name);
                }
                fill(object, size, number);
                object
            })
            .collect();
        for (number, (&object, &size)) in objects.iter().zip(&SIZES).enumerate() {
            unsafe {
                check(object, size, number);
                let grown = (peer.realloc)(object, size * 2 + 1);
                assert!(!grown.is_null());
                check(grown, size, number);
                (peer.free)(grown);
            }
        }
    }
}

#[test]
fn calloc_is_zero_after_reuse() {
    for peer in PEERS {
        let _guard = ThreadGuard::new(peer);
        for &size in &SIZES {
            unsafe {
                let dirty = (peer.malloc)(size);
                fill(dirty, size, 0xA5);
                (peer.free)(dirty);
                let clean = (peer.calloc)(size, 1);
                check(clean, size, 0);
                (peer.free)(clean);
                if peer.name == "rpmalloc" {
                    continue; // checks no product for overflow unless built with validation
                }
                // Hidden from the compiler, which would answer for the C library's calloc itself.
                let huge = std::hint::black_box((peer.calloc)(usize::MAX / 2, 4));
                assert!(huge.is_null(), "{}", peer.name);
            }
        }
    }
}

#[test]
fn alignment_is_honoured() {
    for peer in PEERS {
        let _guard = ThreadGuard::new(peer);
        for shift in 3..=21 {
            let align = 1usize << shift;
            if align > peer.max_align {
                continue;
            }
            unsafe {
                let object = (peer.aligned_alloc)(align, align * 3);
                assert!(!object.is_null(), "{} align {align}", peer.name);
                assert_eq!(object as usize % align, 0, "{} align {align}", peer.name);
                fill(object, align * 3, shift);
                (peer.free)(object);
            }
        }
    }
}

/// An object on its way to the thread that frees it.
struct Sent(*mut c_void, usize, usize);
// SAFETY: the receiver becomes the only owner.
unsafe impl Send for Sent {}

#[test]
fn threads_free_what_others_allocated() {
    for peer in PEERS {
        let (sender, receiver) = mpsc::sync_channel::<Sent>(64);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let sender = sender.clone();
                scope.spawn(move || {
                    let _guard = ThreadGuard::new(peer);
                    for number in 0..20_000 {
                        let size = SIZES[(number + thread) % 9];
                        let object = unsafe { (peer.malloc)(size) };
                        unsafe { fill(object, size, number) };
                        sender.send(Sent(object, size, number)).unwrap();
                    }
                });
            }
            drop(sender);
            scope.spawn(move || {
                let _guard = ThreadGuard::new(peer);
                let mut count = 0;
                while let Ok(Sent(object, size, number)) = receiver.recv() {
                    unsafe {
                        check(object, size, number);
                        (peer.free)(object);
                    }
                    count += 1;
                }
                assert_eq!(count, 60_000);
            });
        });
    }
}

/// The program's own malloc must still be glibc's, whatever else is linked.
#[test]
fn no_peer_overrides_malloc() {
    for symbol in [c"malloc", c"free", c"realloc", c"calloc"] {
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        let name = unsafe {
            let address = libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr());
            assert_ne!(libc::dladdr(address, &mut info), 0);
            CStr::from_ptr(info.dli_fname).to_string_lossy()
        };
        assert!(name.contains("libc.so"), "{symbol:?} is from {name}");
    }
}

#[test]
fn purge_leaves_live_objects_alone() {
    for peer in PEERS {
        let _guard = ThreadGuard::new(peer);
        unsafe {
            let keep = (peer.malloc)(1000);
            fill(keep, 1000, 3);
            let waste: Vec<_> = (0..1000).map(|_| (peer.malloc)(4000)).collect();
            waste.into_iter().for_each(|object| (peer.free)(object));
            if let Some(purge) = peer.purge {
                purge();
            }
            check(keep, 1000, 3);
            (peer.free)(keep);
        }
    }
}
