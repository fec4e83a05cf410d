//! Values that are larger than the stack are made where they stay, in builds with and without
//! optimization.

use slabyard::{BytePool, Cache, CacheVacant, Counted, HandleMap, Pool, RcPool, Zeroable};

const STACK: usize = 256 << 10;
const LARGE: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

type Large = [u64; LARGE];

mod bounded {
    slabyard::bounded_allocator!(super::Large);
}
mod counted {
    slabyard::unbounded_rc_allocator!(super::Large);
}
slabyard::static_cache! {
    struct Tables: Large;
    struct SharedTables: Counted<Large>;
}

struct Frame {
    length: usize,
    rest: Large,
}

// SAFETY: zeros are a value of each field.
unsafe impl Zeroable for Frame {}

/// Runs the function on a small stack.
fn on_a_small_stack(work: fn()) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(work).unwrap().join().unwrap();
}

fn is_filled(table: &Large) {
    assert!(table.iter().enumerate().all(|(at, it)| *it == at as u64));
}

fn is_zero(table: &Large) {
    assert!(table.iter().all(|it| *it == 0));
}

fn number(at: usize) -> u64 {
    at as u64
}

#[test]
fn in_caches() {
    on_a_small_stack(|| {
        let cache = Cache::<Large>::new("table");
        is_filled(&cache.claim().unwrap().fill_with(number));
        is_zero(&cache.claim().unwrap().zeroed());
        let frames = Cache::<Frame>::new("frame");
        let frame = frames.claim().unwrap().zeroed();
        assert_eq!((frame.length, frame.rest[LARGE - 1]), (0, 0));
        let shared = Cache::<Counted<Large>>::new("shared");
        is_filled(&shared.claim().unwrap().fill_arc_with(number).clone());
        is_zero(&shared.claim().unwrap().zeroed_arc());
    });
}

#[test]
fn in_static_caches() {
    on_a_small_stack(|| {
        is_filled(&Tables::claim().unwrap().fill_with(number));
        is_zero(&Tables::claim().unwrap().zeroed());
        is_filled(&SharedTables::claim().unwrap().fill_arc_with(number));
        is_zero(&SharedTables::claim().unwrap().zeroed_arc());
    });
}

#[test]
fn in_maps() {
    on_a_small_stack(|| {
        let map = HandleMap::<Large>::new();
        let filled = map.vacant_entry().fill_with(number);
        let zeroed = map.vacant_entry().zeroed();
        is_filled(&map.get(filled).unwrap());
        is_zero(&map.get(zeroed).unwrap());
    });
}

#[test]
fn in_pools() {
    on_a_small_stack(|| {
        let pool = Pool::<Large>::bounded(2);
        is_filled(&pool.claim().unwrap().fill_with(number));
        is_zero(&pool.claim().unwrap().zeroed());
        let bytes = BytePool::<{ size_of::<Large>() }>::bounded(1);
        is_filled(&bytes.claim::<Large>().unwrap().fill_with(number));
        is_zero(&bytes.claim::<Large>().unwrap().zeroed());
        let counted = RcPool::<Large>::bounded(1);
        is_filled(&counted.claim().unwrap().fill_with(number).borrow());
        is_zero(&counted.claim().unwrap().zeroed().clone().borrow());
    });
}

#[test]
fn in_the_pools_of_a_thread() {
    on_a_small_stack(|| {
        bounded::Allocator::builder().capacity(1).build().unwrap();
        is_filled(&bounded::BoxSlot::claim().unwrap().fill_with(number));
        is_zero(&bounded::BoxSlot::claim().unwrap().zeroed());
        let builder = counted::Allocator::builder().chunk_size(1);
        builder.build().unwrap();
        let table = counted::BoxSlot::claim().unwrap().fill_with(number);
        is_filled(&table.into_rc().borrow());
    });
}

/// A function that panics leaves nothing behind.
#[test]
fn a_panic_drops_what_was_made() {
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::rc::Rc;

    let token = Rc::new(());
    let three = |at| {
        assert!(at < 3, "as the test wants");
        token.clone()
    };
    let cache = Cache::<[Rc<()>; 5]>::new("five");
    let shared = Cache::<Counted<[Rc<()>; 5]>>::new("shared five");
    let counted = RcPool::<[Rc<()>; 5]>::bounded(1);
    let made = catch_unwind(AssertUnwindSafe(|| {
        cache.claim().map(|it| it.fill_with(three))
    }));
    assert!(made.is_err());
    let made = catch_unwind(AssertUnwindSafe(|| {
        shared.claim().map(|it| it.fill_arc_with(three))
    }));
    assert!(made.is_err());
    let made = catch_unwind(AssertUnwindSafe(|| {
        counted.claim().map(|it| it.fill_with(three))
    }));
    assert!(made.is_err());
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(
        (cache.in_use(), shared.in_use(), counted.in_use()),
        (0, 0, 0)
    );

    let map = HandleMap::<[std::sync::Arc<()>; 5]>::new();
    let token = std::sync::Arc::new(());
    let made = catch_unwind(AssertUnwindSafe(|| {
        map.vacant_entry().fill_with(|at| {
            assert!(at < 3, "as the test wants");
            token.clone()
        })
    }));
    assert!(made.is_err() && map.is_empty());
    assert_eq!(std::sync::Arc::strong_count(&token), 1);
}

#[test]
fn piece_by_piece() {
    let map = HandleMap::<[u32; 4]>::new();
    let mut entry = map.vacant_entry();
    let key = entry.key();
    entry.as_uninit().write([1, 2, 3, 4]);
    assert!(!map.contains(key));
    // SAFETY: the value was written.
    assert_eq!(unsafe { entry.assume_init() }, key);
    assert_eq!(*map.get(key).unwrap(), [1, 2, 3, 4]);

    let pool = RcPool::<u32>::bounded(1);
    let mut vacant = pool.claim().unwrap();
    vacant.as_uninit().write(7);
    // SAFETY: the value was written.
    assert_eq!(*unsafe { vacant.assume_init() }.borrow(), 7);

    let cache = Cache::<u32>::new("number");
    let vacant: CacheVacant<u32, _> = cache.claim().unwrap();
    assert_eq!((*vacant.write(8), cache.in_use()), (8, 1));
}
