//! Tests of a thread's pools at the end of the thread.

use std::cell::{Cell, RefCell};
#[cfg(all(target_os = "linux", not(miri)))]
use std::process::Command;
use std::sync::mpsc;
use std::thread;

pub struct Item(u64);

thread_local! {
    static DROPS: Cell<usize> = const { Cell::new(0) };
}

impl Drop for Item {
    fn drop(&mut self) {
        assert_eq!(self.0 % 1000, 7);
        let _ = DROPS.try_with(|drops| drops.set(drops.get() + 1));
    }
}

mod items {
    slabyard::unbounded_rc_allocator!(super::Item);
}
mod lines {
    slabyard::bounded_allocator!(pub [u64; 512]);
}

/// The number of mappings of this process.
#[cfg(target_os = "linux")]
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().count()
}

/// The size of this process's address space in bytes.
#[cfg(target_os = "linux")]
fn address_space() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<usize>().unwrap() * 4096
}

fn build() {
    items::Allocator::builder().build().unwrap();
    lines::Allocator::builder().capacity(100).build().unwrap();
}

thread_local! {
    static EARLY: RefCell<Vec<items::BoxSlot>> = const { RefCell::new(Vec::new()) };
    static LATE: RefCell<Vec<items::RcSlot>> = const { RefCell::new(Vec::new()) };
}

/// Takes slots from a destructor of a thread-local variable.
struct AtTheEnd(mpsc::Sender<u64>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let slot = items::BoxSlot::new(Item(1007));
        self.0.send(slot.0).unwrap();
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// A thread with slots in thread-local variables, created before and after its pools.
fn thread_with_variables() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        EARLY.with_borrow_mut(|early| early.reserve(1));
        if cfg!(windows) {
            sender.send(1007).unwrap(); // a destructor may find no pool there
        } else {
            AT_THE_END.with_borrow_mut(|end| *end = Some(AtTheEnd(sender)));
        }
        build();
        EARLY.with_borrow_mut(|early| early.push(items::BoxSlot::new(Item(7))));
        let late = items::RcSlot::new(Item(2007));
        LATE.with_borrow_mut(|all| all.extend([late.clone(), late]));
        for i in 0..10 {
            drop(lines::BoxSlot::try_new([i; 512]).unwrap());
        }
    })
    .join()
    .unwrap();
    assert_eq!(receiver.recv(), Ok(1007));
}

#[test]
fn variables_of_the_thread_may_own_slots() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        thread_with_variables();
    }
}

/// Pools that stayed would all have their own addresses.
#[test]
#[cfg(windows)]
fn the_pools_of_a_thread_end_with_it() {
    let addresses: std::collections::HashSet<usize> = (0..100)
        .map(|_| {
            let thread = thread::spawn(|| {
                build();
                let line = lines::BoxSlot::try_new([1; 512]).unwrap();
                line.as_ptr().as_ptr().addr()
            });
            thread.join().unwrap()
        })
        .collect();
    assert!(addresses.len() < 50, "{}", addresses.len());
}

#[test]
#[ignore = "counts what the whole process has"]
#[cfg(all(target_os = "linux", not(miri)))]
fn threads_come_and_go_without_growth() {
    for _ in 0..50 {
        thread_with_variables();
    }
    let (maps, bytes) = (mappings(), address_space());
    for _ in 0..3000 {
        thread_with_variables();
    }
    // If pools stayed, 3000 threads would leave 6000 mappings.
    assert!(mappings() < maps + 200, "{maps} -> {}", mappings());
    if std::env::var_os("SLABYARD").is_some() {
        return; // pools with checks have 64 GiB of address space each: 3000 of them do not fit
    }
    let grown = address_space().saturating_sub(bytes);
    assert!(grown < 3000 * (64 << 10), "{grown}");
}

#[test]
fn what_a_thread_leaked_stays() {
    let addresses: Vec<usize> = (0..3)
        .map(|way| {
            thread::spawn(move || {
                build();
                let slot = items::BoxSlot::new(Item(3007));
                let address = slot.as_ptr().as_ptr();
                match way {
                    0 => assert_eq!(slot.leak().as_ptr(), address.cast_const()),
                    1 => std::mem::forget(slot),
                    _ => std::mem::forget(slot.into_pin()),
                }
                address.expose_provenance()
            })
            .join()
            .unwrap()
        })
        .collect();
    thread_with_variables();
    for address in addresses {
        let value = std::ptr::with_exposed_provenance::<Item>(address);
        // SAFETY: the value was leaked, and its thread has ended.
        assert_eq!(unsafe { (*value).0 }, 3007);
    }
}

/// Pools of 16 MiB of address space. While the thread ends, each destructor of a key builds one
/// more.
#[cfg(all(target_os = "linux", not(miri)))]
mod while_ending {
    use std::ffi::c_void;

    macro_rules! wide {
        ($($name:ident)*) => {
            $(mod $name {
                slabyard::bounded_allocator!(pub [u64; 512]);
            })*
            pub const BUILD: [fn(); 4] = [$(|| {
                $name::Allocator::builder().capacity(4096).build().unwrap();
                drop($name::BoxSlot::try_new([1; 512]).unwrap());
            }),*];
        };
    }
    wide!(first second third fourth);

    pub static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();

    /// The key's value is the number of pools that were built.
    pub unsafe extern "C" fn build_another(built: *mut c_void) {
        let built = built.addr();
        BUILD[built]();
        if built + 1 < BUILD.len() {
            set(built + 1);
        }
    }

    pub fn set(built: usize) {
        let value = std::ptr::without_provenance(built);
        // SAFETY: the key exists, and its destructor expects a number.
        assert_eq!(
            unsafe { libc::pthread_setspecific(KEY.get().copied().unwrap(), value) },
            0
        );
    }
}

#[test]
#[ignore = "counts what the whole process has"]
#[cfg(all(target_os = "linux", not(miri)))]
fn pools_that_are_built_while_the_thread_ends_go_too() {
    use while_ending::{build_another, set, BUILD, KEY};
    if std::env::var_os("SLABYARD").is_some() || cfg!(slabyard_tsan) {
        return; // as above; ThreadSanitizer takes the last round
    }
    build(); // first, so that in each round the pools' key comes before the one made here
    KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor expects the number that `set` stores.
        let error = unsafe { libc::pthread_key_create(&mut key, Some(build_another)) };
        assert_eq!(error, 0);
        key
    });
    let bytes = address_space();
    for _ in 0..200 {
        thread::spawn(|| {
            BUILD[0]();
            set(1);
        })
        .join()
        .unwrap();
    }
    // 800 pools were built; hardly any may be left.
    let grown = address_space().saturating_sub(bytes);
    assert!(grown < 100 * (16 << 20), "{grown}");
}

/// Runs each of the counting tests above in a process of its own, because the C library keeps 64
/// MiB of address space for every thread that allocates at the same time as others.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn nothing_is_left_of_threads() {
    for test in [
        "threads_come_and_go_without_growth",
        "pools_that_are_built_while_the_thread_ends_go_too",
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "{said}");
    }
}

#[test]
fn each_thread_has_its_own() {
    build();
    let slot = items::BoxSlot::new(Item(4007));
    thread::spawn(|| {
        assert!(!items::Allocator::is_initialized());
        assert_eq!(items::Allocator::in_use(), 0);
        build();
        let slots: Vec<_> = (0..100)
            .map(|i| items::BoxSlot::new(Item(i * 1000 + 7)))
            .collect();
        assert_eq!(items::Allocator::in_use(), 100);
        drop(slots);
        assert_eq!(DROPS.get(), 100);
    })
    .join()
    .unwrap();
    assert_eq!(items::Allocator::in_use(), 1);
    drop(slot);
}
