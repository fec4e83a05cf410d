//! A report names the function of the program that made the mistake, and memory that the Rust
//! runtime keeps is not reported as leaked. This program needs its own `main`: it runs itself once
//! for each mistake. Not on Windows, where the names of functions have no paths.

#[cfg(not(any(miri, windows)))]
#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

#[cfg(not(any(miri, windows)))]
mod mistakes {
    use std::collections::HashMap;
    use std::hint::black_box;

    #[inline(never)]
    pub fn drop_twice() {
        let number = Box::into_raw(black_box(Box::new(5u64)));
        // SAFETY: none: this is the misuse.
        unsafe {
            drop(Box::from_raw(number));
            drop(Box::from_raw(black_box(number)));
        }
        black_box(());
    }

    #[inline(never)]
    pub fn drop_twice_from_cache() {
        let cache = slabyard::Cache::new("order");
        let order = cache.insert(5u64);
        // SAFETY: none: this is the misuse.
        let again = unsafe { std::ptr::read(&order) };
        drop(order);
        drop(black_box(again));
        black_box(());
    }

    #[inline(never)]
    pub fn read_after_drop() {
        let numbers = Box::into_raw(black_box(Box::new([5u64; 6])));
        // SAFETY: none: this is the misuse.
        unsafe {
            drop(Box::from_raw(numbers));
            println!("{}", (*black_box(numbers))[2]);
        }
    }

    #[inline(never)]
    pub fn follow_after_drop() {
        let outer = Box::into_raw(black_box(Box::new(Box::new(5u8))));
        // SAFETY: none: this is the misuse.
        unsafe {
            let inner: *mut *const u8 = outer.cast();
            drop(Box::from_raw(outer));
            println!("{}", black_box(inner).read().read_volatile());
        }
    }

    #[inline(never)]
    pub fn forget_map() {
        std::mem::forget(black_box(HashMap::from([(1, 2)])));
        black_box(());
    }

    /// Sets a limit whose callback owns memory, and which stays until the process ends.
    pub fn set_limit() {
        let token = [1u8; 40];
        let limit = slabyard::Limit::new().soft(1 << 40, move |_| println!("{token:?}"));
        limit.set().unwrap();
    }

    /// Makes the runtime allocate the memory that it keeps from now on.
    pub fn nothing() {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        println!("line of {} bytes", line.len());
        let caught =
            std::panic::catch_unwind(|| panic!("{}", std::backtrace::Backtrace::force_capture()));
        drop(caught);
        std::thread::spawn(|| println!("in a thread"))
            .join()
            .unwrap();
    }
}

/// The report of this program with these options when it makes the mistake.
#[cfg(not(any(miri, windows)))]
fn report_of(mistake: &str, options: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .arg(mistake)
        .env("SLABYARD", options)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// The function in the first line of each stack of a report.
#[cfg(not(any(miri, windows)))]
fn culprits(report: &str) -> Vec<&str> {
    let first = report
        .lines()
        .filter_map(|line| line.strip_prefix("    #0 "));
    first.collect()
}

#[cfg(not(any(miri, windows)))]
fn is_told_of(report: &str, function: &str, stacks: usize) {
    let culprits = culprits(report);
    assert_eq!(culprits.len(), stacks, "{report}");
    for culprit in culprits {
        let place = culprit.strip_prefix(function).expect(report);
        // Without libdw.so.1 a line has the function's name only.
        assert!(
            place.starts_with(" at ") && place.contains("culprit.rs:") || place.starts_with("+0x"),
            "{report}"
        );
    }
    assert!(
        !report.contains("_ZN") && !report.contains("_R"),
        "{report}"
    );
}

#[cfg(not(any(miri, windows)))]
fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("drop_twice") => return mistakes::drop_twice(),
        Some("drop_twice_from_cache") => return mistakes::drop_twice_from_cache(),
        Some("read_after_drop") => return mistakes::read_after_drop(),
        Some("follow_after_drop") => return mistakes::follow_after_drop(),
        Some("forget_map") => return mistakes::forget_map(),
        Some("set_limit") => return mistakes::set_limit(),
        Some("nothing") => return mistakes::nothing(),
        _ => {}
    }
    for mistake in ["drop_twice", "drop_twice_from_cache"] {
        let report = report_of(mistake, "audit,tools=off");
        is_told_of(&report, &format!("culprit::mistakes::{mistake}"), 3);
    }
    // The runtime's own handler of SIGSEGV does not replace the one that writes these reports.
    for options in ["guard=all,tools=off", "guard=1/1,explain,tools=off"] {
        let report = report_of("read_after_drop", options);
        assert!(report.contains("read after free (guard page)"), "{report}");
        is_told_of(&report, "culprit::mistakes::read_after_drop", 3);
    }
    let report = report_of("follow_after_drop", "poison,explain,tools=off");
    assert!(report.contains("0xdeadbeefdeadbeef"), "{report}");
    is_told_of(&report, "culprit::mistakes::follow_after_drop", 1);
    let report = report_of("forget_map", "leaks,tools=off");
    is_told_of(&report, "culprit::mistakes::forget_map", 1);
    assert!(
        report.contains("1 object leaked") && report.contains("  total: 1 object, "),
        "{report}"
    );
    for mistake in ["nothing", "set_limit"] {
        let report = report_of(mistake, "leaks,leak-status=23,tools=off");
        assert!(!report.contains("leaked"), "{report}");
    }
    println!("reports name the culprit");
}

#[cfg(any(miri, windows))]
fn main() {}
