//! Tests of objects that stay constructed while they are free.
#![cfg(feature = "std")]

#[cfg(not(miri))]
use slabyard::{CacheBuilder, Checks};
use slabyard::{Recycle, RecycleBox, RecycleCache};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
#[cfg(not(miri))]
use std::sync::{Arc, Weak};

/// Tests that count constructions run one at a time.
static ONE: Mutex<()> = Mutex::new(());
static CREATED: AtomicUsize = AtomicUsize::new(0);
static DROPPED: AtomicUsize = AtomicUsize::new(0);

std::thread_local!(static PANICS: Cell<&'static str> = const { Cell::new("") });

fn panics_in(place: &'static str) {
    assert!(PANICS.get() != place, "asked to");
}

struct Connection {
    uses: usize,
    name: String,
}

impl Recycle for Connection {
    fn create() -> Self {
        panics_in("create");
        CREATED.fetch_add(1, Relaxed);
        Connection {
            uses: 0,
            name: "connection".into(),
        }
    }

    fn recycle(&mut self) {
        panics_in("recycle");
        self.uses += 1;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
        assert_eq!(self.name, "connection");
        panics_in("drop");
    }
}

fn counts() -> (usize, usize) {
    (CREATED.swap(0, Relaxed), DROPPED.swap(0, Relaxed))
}

/// Whether an option overwrites free objects, so that they are constructed again.
fn overwritten() -> bool {
    std::env::var_os("SLABYARD").is_some()
}

#[test]
fn an_object_is_created_once() {
    if overwritten() {
        return;
    }
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    counts();
    let cache = RecycleCache::<Connection>::new("connection");
    for uses in 0..100 {
        let object = cache.get();
        assert_eq!(object.uses, uses);
    }
    assert_eq!((counts(), cache.in_use()), ((1, 0), 0));
    let many: Vec<_> = (0..100).map(|_| cache.get()).collect();
    assert_eq!(cache.in_use(), 100);
    drop(many);
    drop(cache);
    assert_eq!(counts(), (99, 100));
}

#[test]
fn panics_lose_nothing_else() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    counts();
    let cache = RecycleCache::<Connection>::new("panics");
    PANICS.set("create");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(cache.get()))).is_err());
    assert_eq!((cache.in_use(), counts()), (0, (0, 0)));
    PANICS.set("");
    let object = cache.get();
    PANICS.set("recycle");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    assert_eq!((cache.in_use(), counts()), (0, (1, 1)));
    PANICS.set("");
    drop([cache.get(), cache.get()]);
    PANICS.set("drop");
    drop(cache); // whose panics are caught
    PANICS.set("");
    assert_eq!(counts(), (2, 2));
}

#[test]
fn what_is_taken_out_is_the_owners() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    counts();
    let cache = RecycleCache::<Connection>::new("taken");
    let mut object = cache.get();
    object.uses = 17;
    let connection = RecycleBox::into_inner(object);
    assert_eq!(cache.get().uses, 0);
    assert_eq!((connection.uses, cache.in_use()), (17, 0));
    drop((connection, cache));
    assert_eq!(counts(), (2, 2));
}

#[test]
#[cfg(not(miri))]
fn where_free_objects_are_overwritten_they_are_dropped() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    counts();
    for checks in [
        Checks::POISON,
        Checks::ZERO,
        Checks::QUARANTINE,
        Checks::GUARD,
    ] {
        let builder = CacheBuilder::new().name("overwritten").checks(checks);
        let cache = RecycleCache::<Connection>::build(builder).unwrap();
        for _ in 0..300 {
            let (first, second) = (cache.get(), cache.get());
            assert_eq!(
                (first.name.as_str(), second.name.as_str()),
                ("connection", "connection")
            );
        }
        drop(cache);
        let (created, dropped) = counts();
        assert!(
            created == dropped && created >= 2,
            "{checks:?}: {created} {dropped}"
        );
    }
}

/// Destructors free to and take from their own cache, and do other things that the library forbids
/// in a destructor; constructors take from their own cache.
#[test]
#[cfg(not(miri))]
fn destructors_and_constructors_may_do_what_they_like() {
    static NESTED: std::sync::LazyLock<RecycleCache<Nested>> =
        std::sync::LazyLock::new(|| RecycleCache::new("nested"));
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    static CREATIONS: AtomicUsize = AtomicUsize::new(0);
    std::thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });

    fn another() -> Option<RecycleBox<'static, Nested>> {
        if DEPTH.get() == 2 {
            return None;
        }
        DEPTH.set(DEPTH.get() + 1);
        let another = NESTED.get();
        DEPTH.set(DEPTH.get() - 1);
        Some(another)
    }

    /// Keeps another object of the same cache while it is free.
    struct Nested([Option<RecycleBox<'static, Nested>>; 2], [u64; 500]);

    impl Nested {
        fn check(&self) {
            assert!(self.1.iter().all(|word| *word == 9));
        }
    }

    impl Recycle for Nested {
        fn create() -> Self {
            CREATIONS.fetch_add(1, Relaxed);
            Nested([another(), None], [9; 500])
        }
        fn recycle(&mut self) {
            self.check();
            self.0[1] = None;
        }
    }
    impl Drop for Nested {
        fn drop(&mut self) {
            self.check();
            self.1.fill(0);
            DROPS.fetch_add(1, Relaxed);
            slabyard::thread_flush();
            slabyard::thread_idle();
            slabyard::trim();
            NESTED.trim();
            let epoch = slabyard::Epoch::new("nested").unwrap();
            let _ = epoch.scope(|| ());
            if DROPS.load(Relaxed) % 4 == 0 && DROPS.load(Relaxed) < 100_000 {
                drop([another(), another()]);
            }
        }
    }

    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..60 {
                    let mut chain = NESTED.get();
                    for _ in 0..100 {
                        let mut next = NESTED.get();
                        next.0[1] = Some(chain);
                        chain = next;
                    }
                    drop(chain);
                    let kept: Vec<_> = (0..200).map(|_| NESTED.get()).collect();
                    kept.iter().for_each(|object| object.check());
                    drop(kept);
                    if round % 4 == 0 {
                        NESTED.trim();
                        slabyard::thread_flush();
                    }
                }
            });
        }
    });
    for _ in 0..1000 {
        NESTED.trim();
        slabyard::thread_flush();
    }
    assert!(DROPS.load(Relaxed) > 1000);
    assert!(CREATIONS.load(Relaxed) >= DROPS.load(Relaxed));
    assert_eq!(slabyard::verify(), 0);
}

/// A value that owns its own cache, or has a weak reference to it.
#[cfg(not(miri))]
#[derive(Default)]
struct Owner {
    owned: Mutex<Option<Arc<RecycleCache<Owner>>>>,
    watched: Mutex<Weak<RecycleCache<Owner>>>,
}

#[cfg(not(miri))]
static OWNERS: AtomicUsize = AtomicUsize::new(0);

#[cfg(not(miri))]
impl Recycle for Owner {
    fn create() -> Self {
        OWNERS.fetch_add(1, Relaxed);
        Self::default()
    }

    fn recycle(&mut self) {}
}

#[cfg(not(miri))]
impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(cache) = self.watched.get_mut().unwrap().upgrade() {
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(cache.in_use() <= 100_000);
        }
        OWNERS.fetch_sub(1, Relaxed);
    }
}

/// Waits until all values are dropped. Work that a destructor postponed is done by the thread that
/// runs the destructors.
#[cfg(not(miri))]
fn until_all_are_gone() {
    while OWNERS.load(Relaxed) > 0 {
        slabyard::thread_flush();
        slabyard::trim();
    }
}

/// The last owner of a cache is dropped by a destructor that a trim of the same cache runs.
#[test]
#[cfg(not(miri))]
fn a_value_may_be_the_last_owner_of_its_cache() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let ends: [fn(Arc<RecycleCache<Owner>>); 4] = [
        |cache| {
            slabyard::thread_flush();
            drop(cache);
        },
        |cache| {
            drop(cache);
            slabyard::thread_flush();
        },
        |cache| {
            slabyard::thread_flush();
            cache.trim();
        },
        |cache| drop(std::thread::spawn(move || drop(cache)).join()),
    ];
    for end in ends {
        for count in [1, 2, 100, 3000] {
            let cache = Arc::new(RecycleCache::<Owner>::new("self"));
            let objects: Vec<_> = (0..count).map(|_| cache.get()).collect();
            for object in &objects {
                *object.owned.lock().unwrap() = Some(cache.clone());
            }
            drop(objects);
            end(cache);
            until_all_are_gone();
        }
    }
    assert_eq!(slabyard::verify(), 0);
}

/// A value that is being dropped in one thread holds the cache until another thread drops its
/// owner.
#[test]
#[cfg(not(miri))]
fn a_value_may_become_the_last_owner_in_its_drop() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for _ in 0..5 {
        let cache = Arc::new(RecycleCache::<Owner>::new("weak"));
        let objects: Vec<_> = (0..10).map(|_| cache.get()).collect();
        for object in &objects {
            *object.watched.lock().unwrap() = Arc::downgrade(&cache);
        }
        drop(objects);
        slabyard::thread_flush();
        std::thread::scope(|scope| {
            scope.spawn(slabyard::trim);
            std::thread::sleep(std::time::Duration::from_millis(1));
            drop(cache);
        });
        until_all_are_gone();
    }
    assert_eq!(slabyard::verify(), 0);
}

#[test]
fn buffers_go_through_threads_and_keep_their_capacity() {
    const ROUNDS: usize = if cfg!(miri) { 10 } else { 2000 };
    let cache = RecycleCache::<Vec<usize>>::new("buffer");
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::sync_channel::<RecycleBox<Vec<usize>>>(8);
        scope.spawn(move || {
            for (n, buffer) in receive.into_iter().enumerate() {
                assert!(buffer.iter().all(|item| *item == n));
                assert_eq!(buffer.len(), 64);
            }
        });
        for n in 0..ROUNDS {
            let mut buffer = cache.get();
            assert!(buffer.is_empty());
            buffer.extend([n; 64]);
            send.send(buffer).unwrap();
        }
    });
    assert_eq!(cache.in_use(), 0);
    assert!(overwritten() || cache.get().capacity() >= 64);
}
