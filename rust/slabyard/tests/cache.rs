//! Tests of caches, of their boxes, and of the drops of their values.

#[cfg(not(miri))]
use slabyard::Checks;
use slabyard::{Cache, CacheBox, CreateError, Full};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts its drops, and panics in a drop if asked to.
struct Dropped<'a> {
    count: &'a AtomicUsize,
    panics: bool,
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.count.fetch_add(1, Relaxed);
        assert!(!self.panics, "asked to");
    }
}

#[test]
fn a_value_is_dropped_once_and_its_place_is_used_again() {
    let count = AtomicUsize::new(0);
    let cache = Cache::new("dropped");
    let first = cache.insert(Dropped {
        count: &count,
        panics: false,
    });
    let place = CacheBox::as_ptr(&first);
    drop(first);
    assert_eq!(count.load(Relaxed), 1);
    let second = cache.insert(Dropped {
        count: &count,
        panics: false,
    });
    // Miri does not reuse the place, and options may prevent it.
    if !cfg!(miri) && std::env::var_os("SLABYARD").is_none() {
        assert_eq!(CacheBox::as_ptr(&second), place);
    }
    let value = CacheBox::into_inner(second);
    assert_eq!((count.load(Relaxed), cache.in_use()), (1, 0));
    drop(value);
    assert_eq!(count.load(Relaxed), 2);
}

#[test]
fn a_drop_that_panics_gives_the_place_back() {
    let count = AtomicUsize::new(0);
    let cache = Cache::new("panics");
    let kept = cache.insert(Dropped {
        count: &count,
        panics: false,
    });
    let object = cache.insert(Dropped {
        count: &count,
        panics: true,
    });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    assert_eq!((count.load(Relaxed), cache.in_use()), (1, 1));
    drop(kept);
    assert_eq!((count.load(Relaxed), cache.in_use()), (2, 0));
}

#[test]
fn a_constructor_that_panics_gives_the_place_back() {
    let cache = Cache::<u64>::new("panics");
    let failed = catch_unwind(AssertUnwindSafe(|| {
        cache.insert_with(|| panic!("asked to"));
    }));
    assert!(failed.is_err());
    assert_eq!(cache.in_use(), 0);
}

#[test]
fn a_full_cache_gives_the_value_back() {
    let cache = Cache::builder().limit(3).exact().build().unwrap();
    let mut kept: Vec<_> = (0..3).map(|n| cache.insert(n.to_string())).collect();
    let Err(Full(value)) = cache.try_insert("fourth".to_string()) else {
        panic!("there was room");
    };
    assert_eq!(value, "fourth");
    assert!(cache.claim().is_none());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(cache.insert(String::new())))).is_err());
    kept.pop();
    assert_eq!(*cache.try_insert(value).unwrap(), "fourth");
    assert_eq!(*kept[1], "1");
}

#[test]
fn claimed_room_is_written_or_goes_back() {
    let cache = Cache::<[u64; 8]>::new("claimed");
    let mut vacant = cache.claim().unwrap();
    let uninit = vacant.as_uninit();
    uninit.write([5; 8]);
    // SAFETY: the object was written.
    let object = unsafe { vacant.assume_init() };
    assert_eq!(*object, [5; 8]);
    drop(cache.claim());
    assert_eq!(cache.in_use(), 1);
    let mut other = cache.claim().unwrap().write([6; 8]);
    assert_eq!(CacheBox::replace(&mut other, [7; 8]), [6; 8]);
    assert!(object < other);
}

#[test]
#[cfg_attr(miri, ignore = "for -Zmiri-ignore-leaks")]
fn what_is_forgotten_stays_when_the_cache_ends() {
    let count = AtomicUsize::new(0);
    let cache = Cache::new("leaked");
    let value = |panics| Dropped {
        count: &count,
        panics,
    };
    let leaked: &mut Dropped = CacheBox::leak(cache.insert(value(false)));
    let pinned: Pin<CacheBox<Dropped>> = CacheBox::into_pin(cache.insert(value(false)));
    let place: *const Dropped = &raw const *pinned;
    std::mem::forget(pinned);
    drop(cache);
    assert!(!leaked.panics);
    // SAFETY: a pinned value that was not dropped stays in its place.
    assert!(!unsafe { &*place }.panics);
    assert_eq!(count.load(Relaxed), 0);
}

#[test]
fn nodes_hold_nodes_of_their_own_cache() {
    struct Node<'c> {
        value: u32,
        children: Vec<CacheBox<'c, Node<'c>>>,
    }

    fn tree<'c>(cache: &'c Cache<Node<'c>>, depth: u32) -> CacheBox<'c, Node<'c>> {
        let children = (0..if depth == 0 { 0 } else { 3 }).map(|_| tree(cache, depth - 1));
        let children = children.collect();
        cache.insert(Node {
            value: depth,
            children,
        })
    }

    fn sum(node: &Node) -> u32 {
        node.value + node.children.iter().map(|child| sum(child)).sum::<u32>()
    }

    let cache = Cache::new("tree");
    let mut root = tree(&cache, 4);
    assert_eq!((sum(&root), cache.in_use()), (4 + 3 * 3 + 9 * 2 + 27, 121));
    root.children.pop();
    assert_eq!(cache.in_use(), 81);
}

#[test]
fn nothing_and_the_over_aligned_have_places_too() {
    #[repr(align(4096))]
    #[derive(Debug, PartialEq, Clone)]
    struct Page(u8);
    #[repr(align(4194304))]
    struct TooMuch;

    let (nothing, pages) = (Cache::new("nothing"), Cache::new("pages"));
    let (first, second) = (nothing.insert(()), nothing.insert(()));
    assert_eq!((*first, nothing.in_use()), (*second, 2));
    let page = pages.insert(Page(3));
    assert_eq!(CacheBox::as_ptr(&page).addr() % 4096, 0);
    assert_eq!(page.clone(), page);
    let refused = Cache::<TooMuch>::builder().build();
    assert_eq!(refused.err(), Some(CreateError::Unsupported));
}

#[test]
fn values_that_stay_on_their_thread_can_be_in_a_shared_cache() {
    let cache = Cache::new("rc");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let value = std::rc::Rc::new(Cell::new(1));
                let object = cache.insert(value.clone());
                object.set(2);
                assert_eq!(value.get(), 2);
            });
        }
    });
    assert_eq!(cache.in_use(), 0);
}

#[test]
#[cfg(not(miri))]
fn reserved_memory_and_checks_and_statistics() {
    let cache = Cache::builder()
        .name("reserved, by a name that is longer than what is kept of it")
        .reserve(1000)
        .coloured()
        .build()
        .unwrap();
    let stats = cache.stats();
    assert_eq!(stats.name, "reserved, by a name that is lon");
    assert!(stats.slots >= 1000 && stats.object_size == 100);
    assert!(cache.thread_reserve(2 * stats.magazine_items as usize));
    assert!(!cache.thread_reserve(1 << 20));
    drop(cache.insert([0u8; 100]));
    let checked = Cache::builder()
        .checks(Checks::POISON | Checks::REDZONE)
        .build()
        .unwrap();
    let objects: Vec<_> = (0..1000u64).map(|n| checked.insert(n)).collect();
    assert!(objects
        .iter()
        .enumerate()
        .all(|(n, object)| **object == n as u64));
    assert_eq!((checked.in_use(), slabyard::verify()), (1000, 0));
}

#[test]
#[cfg(not(miri))]
fn the_account_has_what_is_live() {
    let cache = Cache::<[u8; 1000]>::new("accounted");
    let before = slabyard::account();
    let live: Vec<_> = (0..50_000).map(|_| cache.insert([1; 1000])).collect();
    let with = slabyard::account();
    // Other tests run beside this one.
    assert!(with.live_bytes >= before.live_bytes + 40_000_000);
    assert!(with.resident_bytes == 0 || with.resident_bytes >= with.live_bytes / 2);
    drop(live);
    assert!(slabyard::account().live_bytes + 40_000_000 <= with.live_bytes);
}

#[test]
#[cfg(all(feature = "serde", not(miri)))]
fn statistics_are_written_and_read() {
    let stats = Cache::<u64>::new("text").stats();
    let text = serde_json::to_string(&stats).unwrap();
    assert!(text.contains("\"name\":\"text\""));
    assert_eq!(
        serde_json::from_str::<slabyard::CacheStats>(&text).unwrap(),
        stats
    );
    assert!(serde_json::to_string(&slabyard::stats())
        .unwrap()
        .contains("\"chunks\":"));
    let account = slabyard::account();
    let text = serde_json::to_string(&account).unwrap();
    assert_eq!(
        serde_json::from_str::<slabyard::Account>(&text).unwrap(),
        account
    );
}
