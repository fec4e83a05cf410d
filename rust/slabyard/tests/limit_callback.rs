//! The callback of the process's limit is dropped when another one is set. This is a file of its
//! own, because the limit is the process's.
#![cfg(not(miri))] // which has no limit of the process

use slabyard::{Cache, Limit};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// A cache that has reached a soft limit of 1 byte: its next allocations call the callback.
fn reach() {
    let cache = Cache::new("page");
    drop(
        (0..1000)
            .map(|_| cache.insert([0u8; 4096]))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn a_callback_is_dropped_once_no_thread_runs_it() {
    let token = Arc::new(());
    for _ in 0..1000 {
        let kept = token.clone();
        let limit = Limit::new().soft(1 << 40, move |_| _ = &kept);
        limit.set().unwrap();
        assert_eq!(Arc::strong_count(&token), 2);
    }
    Limit::new().set().unwrap();
    assert_eq!(Arc::strong_count(&token), 1);

    // A limit that is refused replaces nothing.
    let (kept, refused) = (token.clone(), token.clone());
    Limit::new()
        .soft(1 << 40, move |_| _ = &kept)
        .set()
        .unwrap();
    let limit = Limit::new().hard(1).soft(2, move |_| _ = &refused);
    assert!(limit.set().is_err());
    assert_eq!(Arc::strong_count(&token), 2);
    Limit::new().set().unwrap();

    // A callback that runs stays until the next call that finds none running.
    let (runs, may_end) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (kept, tells, waits) = (token.clone(), runs.clone(), may_end.clone());
    let limit = Limit::new().soft(1, move |_| {
        tells.store(true, SeqCst);
        while !waits.load(SeqCst) {
            std::thread::yield_now();
        }
        assert!(Arc::strong_count(&kept) >= 2);
    });
    limit.set().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(reach);
        while !runs.load(SeqCst) {
            std::thread::yield_now();
        }
        Limit::new().set().unwrap();
        assert_eq!(Arc::strong_count(&token), 2);
        may_end.store(true, SeqCst);
    });
    Limit::new().set().unwrap();
    assert_eq!(Arc::strong_count(&token), 1);
}

/// A callback may set another limit.
#[test]
fn a_callback_may_replace_itself() {
    // The other test sets limits meanwhile; so this one is run in a process of its own.
    if std::env::var_os("ALONE").is_none() {
        let test = ["--exact", "a_callback_may_replace_itself"];
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(command
            .args(test)
            .env("ALONE", "1")
            .status()
            .unwrap()
            .success());
        return;
    }
    static CALLED: AtomicBool = AtomicBool::new(false);
    let limit = Limit::new().soft(1, |_| {
        CALLED.store(true, SeqCst);
        Limit::new().set().unwrap();
    });
    limit.set().unwrap();
    reach();
    assert!(CALLED.load(SeqCst));
}
