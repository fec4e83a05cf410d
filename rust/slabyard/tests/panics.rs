//! A panic names the line of the program that made the call, and the reason.
#![cfg(all(feature = "std", not(miri)))]

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::{Arc, Once};

use slabyard::{
    Arena, BytePool, Cache, CacheArc, CacheBox, CacheBuilder, Counted, DefaultKey, HandleMap,
    LocalHandleMap, Pool, RawKey, RcPool, Recycle, RecycleCache, SecondaryMap, SparseSecondaryMap,
    StaticBox, StaticCache,
};

std::thread_local!(
    /// The message and place of this thread's last expected panic.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) }
);

/// Runs `work`, which must panic, and returns the message. The panic must name a place in this
/// file.
fn panic_of(work: impl FnOnce()) -> String {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        set_hook(Box::new(|panic| {
            LAST.with_borrow_mut(|last| match last {
                Some(text) => *text = panic.to_string(),
                None => eprintln!("{panic}"),
            })
        }))
    });
    LAST.set(Some(String::new()));
    let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
    let text = LAST.take().unwrap();
    assert!(panicked && text.contains(file!()), "{text}");
    text
}

fn ignore<T>(_: T) {}

/// Checks that each of these calls panics, and names its place.
macro_rules! panics_here {
    ($($call:expr;)+) => { $(panic_of(|| ignore($call));)+ };
}

#[repr(align(4194304))]
struct TooMuch;

impl Recycle for TooMuch {
    fn create() -> Self {
        TooMuch
    }
    fn recycle(&mut self) {}
}

/// A cache with room for one value.
fn of_one<T>() -> Cache<T> {
    CacheBuilder::new().limit(1).exact().build().unwrap()
}

#[test]
fn caches() {
    let (words, counted) = (of_one::<u64>(), of_one::<Counted<u64>>());
    let word = words.insert(1);
    let mut shared = counted.insert_arc(1);
    let _other = shared.clone();
    panics_here! {
        Cache::<TooMuch>::new("too much");
        words.insert(2);
        words.insert_with(|| 2);
        CacheBox::new_in(2, &words);
        word.clone();
        counted.insert_arc(2);
        CacheArc::new_in(2, &counted);
        CacheArc::pin_in(2, &counted);
        CacheArc::new_cyclic_in(&counted, |_| 2);
        *CacheArc::make_mut(&mut shared);
        RecycleCache::<TooMuch>::new("too much");
    }
    let recycled = RecycleCache::<String>::build(CacheBuilder::new().limit(1).exact()).unwrap();
    let _one = recycled.get();
    panics_here! { recycled.get(); }
    let text = panic_of(|| _ = words.insert(2));
    assert!(
        text.contains("cache of u64: the limit of the cache"),
        "{text}"
    );
}

slabyard::static_cache! {
    struct Words: u64 => limit(1).exact();
    struct Shared: Counted<u64> => limit(1).exact();
}

#[test]
fn static_caches() {
    let _one: (StaticBox<Words>, _) = (Words::insert(1), Shared::insert_arc(1));
    panics_here! {
        Words::insert(2);
        Shared::insert_arc(2);
    }
}

#[test]
fn shared_maps() {
    let mut map: HandleMap<String> = HandleMap::builder().limit(1).exact().build().unwrap();
    let key: DefaultKey = map.insert("one".into());
    panics_here! {
        HandleMap::<TooMuch>::new();
        HandleMap::<TooMuch>::with_key();
        map.insert("two".into());
        map.insert_with_key(|_| "two".into());
        map.vacant_entry();
    }
    let text = panic_of(|| _ = map.insert("two".into()));
    assert!(text.contains("map of alloc::string::String"), "{text}");
    let held = Arc::new(map);
    let guard = held.get(key).unwrap();
    (1..64_512).for_each(|_| std::mem::forget(held.get(key)));
    panics_here! {
        held.get(key);
        HandleMap::get_owned(&held, key);
        slabyard::handle::Ref::clone(&guard);
    }
    drop(guard);
    map = Arc::into_inner(held).unwrap();
    assert_eq!(map.drain().count(), 1);
}

#[test]
fn maps_of_one_owner() {
    let mut map = LocalHandleMap::<u64>::new();
    let stale = map.insert(1);
    map.remove(stale);
    panics_here! {
        map[stale];
        map[stale] = 2;
        map.reserve(usize::MAX);
        LocalHandleMap::<u64>::with_capacity(usize::MAX);
        LocalHandleMap::<u64>::with_capacity_and_key(usize::MAX);
    }
    let key = DefaultKey::from(RawKey::new(1, 1).unwrap());
    let mut kept = SecondaryMap::<DefaultKey, u64>::new();
    let mut sparse = SparseSecondaryMap::<DefaultKey, u64>::new();
    panics_here! {
        kept[key];
        kept[key] = 1;
        kept.reserve(usize::MAX);
        SecondaryMap::<DefaultKey, u64>::with_capacity(usize::MAX);
        sparse[key];
        sparse[key] = 1;
        sparse.reserve(usize::MAX);
        SparseSecondaryMap::<DefaultKey, u64>::with_capacity(usize::MAX);
    }
    let text = panic_of(|| _ = kept[key]);
    assert!(text.contains("DefaultKey(1v1)"), "{text}");
}

#[test]
fn pools() {
    let (pool, bytes) = (Pool::bounded(1), BytePool::<8>::bounded(1));
    let shared = RcPool::bounded(1);
    let _taken = (pool.insert(1), bytes.insert(1));
    let owner = shared.insert(1);
    let borrowed = owner.borrow_mut();
    panics_here! {
        Pool::<u64>::bounded(0);
        RcPool::<u64>::bounded(0);
        BytePool::<8>::bounded(0);
        pool.insert(2);
        bytes.insert(2);
        shared.insert(2);
        owner.borrow();
        owner.borrow_mut();
    }
    drop(borrowed);
}

mod here {
    slabyard::bounded_allocator!(u64);
}

mod grows {
    slabyard::unbounded_allocator!(u64);
}

mod counted {
    slabyard::unbounded_rc_allocator!(u64);
}

#[test]
fn pools_of_a_thread() {
    panics_here! {
        here::BoxSlot::try_new(1);
        here::BoxSlot::claim();
        grows::BoxSlot::new(1);
        counted::RcSlot::try_new(1);
        counted::RcSlot::new(1);
    }
    let text = panic_of(|| drop(here::BoxSlot::try_new(1)));
    assert!(text.contains("the one for u64"), "{text}");
}

#[test]
fn arenas() {
    let arena = Arena::new();
    panics_here! {
        arena.alloc_slice_with(usize::MAX, |_| 1u64).len();
        arena.alloc_slice_with(1 << 46, |_| 1u64).len();
    }
}
