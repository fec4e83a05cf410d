//! Tests of pools as values.

use slabyard::{BuildError, BytePool, Pool, RcPool};
use std::cell::Cell;
use std::marker::PhantomPinned;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;

/// Counts its drops.
struct Counted<'c>(&'c Cell<u32>, u64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

const MANY: usize = if cfg!(miri) { 50 } else { 100_000 };

#[test]
fn what_was_freed_last_is_given_next() {
    let pool = Pool::unbounded();
    let slots: Vec<_> = (0..MANY).map(|i| pool.insert(i)).collect();
    assert!(slots.iter().enumerate().all(|(i, slot)| **slot == i));
    let last = slots[MANY - 1].as_ptr();
    drop(slots);
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.insert(1).as_ptr(), last);
    assert!(pool.capacity() >= MANY);
}

#[test]
fn a_bounded_pool_gives_the_value_back() {
    let pool = Pool::bounded(2);
    let a = pool.try_insert(String::from("a")).unwrap();
    let b = pool.claim().unwrap();
    assert_eq!(
        pool.try_insert("c".into()).unwrap_err().into_inner(),
        "c".to_string()
    );
    assert!(pool.claim().is_none());
    assert!(catch_unwind(AssertUnwindSafe(|| pool.insert(String::new()))).is_err());
    drop(b);
    let c = pool.insert("c".into());
    assert_eq!((a.as_str(), c.as_str()), ("a", "c"));
    assert_eq!((pool.in_use(), pool.capacity()), (2, 2));
}

#[test]
fn pools_that_make_no_sense() {
    type P = Pool<u64>;
    let built = |pool: Result<P, BuildError>| pool.map(|_| ());
    let none = P::builder().bounded(0).build();
    assert_eq!(built(none), Err(BuildError::NoCapacity));
    let most = P::builder().bounded(usize::MAX / 4).build();
    assert_eq!(built(most), Err(BuildError::NoMemory));
    assert!(catch_unwind(|| P::bounded(0)).is_err());
}

#[test]
fn values_come_out_once() {
    let drops = Cell::new(0);
    let pool = Pool::bounded(1);
    let mut slot = pool.insert(Counted(&drops, 1));
    drop(slot.replace(Counted(&drops, 2)));
    assert_eq!((drops.get(), slot.1), (1, 2));
    let value = slot.into_inner();
    assert_eq!((drops.get(), pool.in_use()), (1, 0));
    drop(value);
    assert_eq!(drops.get(), 2);
    let leaked = pool.insert(Counted(&drops, 3)).leak();
    leaked.1 += 1;
    assert_eq!((leaked.1, drops.get(), pool.in_use()), (4, 2, 1));
}

#[test]
fn sizes_and_alignments() {
    fn check<T: Default>() {
        let pool = Pool::<T>::unbounded();
        let slots: Vec<_> = (0..100).map(|_| pool.insert(T::default())).collect();
        for (i, slot) in slots.iter().enumerate() {
            let address = slot.as_ptr().as_ptr() as usize;
            assert_eq!(address % align_of::<T>(), 0);
            for other in &slots[..i] {
                let other = other.as_ptr().as_ptr() as usize;
                assert!(address.abs_diff(other) >= size_of::<T>().max(8));
            }
        }
    }
    #[derive(Default)]
    #[repr(align(4096))]
    struct Page(u8);
    #[derive(Default)]
    #[repr(align(64))]
    struct NoneOfALine;
    check::<()>();
    check::<u8>();
    check::<[u8; 9]>();
    check::<[u128; 3]>();
    check::<Page>();
    check::<NoneOfALine>();
    let _ = Page(0).0;
}

#[test]
fn a_pool_goes_to_another_thread() {
    let pool = Pool::unbounded();
    drop(pool.insert(1));
    let pool = std::thread::spawn(move || {
        drop(pool.insert(2));
        pool
    })
    .join()
    .unwrap();
    assert_eq!(*pool.insert(3), 3);
}

#[test]
fn a_panic_in_a_destructor_loses_nothing_else() {
    struct Bomb<'c>(Option<Counted<'c>>);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            if self.0.is_none() {
                panic!("as it should")
            }
        }
    }
    let drops = Cell::new(0);
    let pool = Pool::bounded(3);
    let others = [1, 2].map(|i| pool.insert(Bomb(Some(Counted(&drops, i)))));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool.insert(Bomb(None))))).is_err());
    assert_eq!(pool.in_use(), 2);
    let pinned = pool.insert(Bomb(None)).into_pin();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pinned))).is_err());
    assert_eq!(pool.in_use(), 2);
    drop(others);
    assert_eq!((pool.in_use(), drops.get()), (0, 2));
    let shared = RcPool::bounded(1);
    let first = shared.insert(Bomb(None));
    let weak = first.downgrade();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(first))).is_err());
    assert!(weak.upgrade().is_none());
    drop(weak);
    assert_eq!(shared.in_use(), 0);
}

#[test]
fn a_panic_while_a_value_is_made_frees_the_slot() {
    let pool = Pool::<u64>::bounded(1);
    let made = catch_unwind(AssertUnwindSafe(|| {
        let vacant = pool.claim().unwrap();
        let value: Result<u64, ()> = std::hint::black_box(Err(()));
        drop(vacant.write(value.expect("a number")));
    }));
    assert!(made.is_err());
    assert_eq!(pool.in_use(), 0);
}

/// Knows its own address.
struct Itself {
    address: *const Itself,
    _pin: PhantomPinned,
}

impl Drop for Itself {
    fn drop(&mut self) {
        assert!(self.address.is_null() || std::ptr::eq(self.address, self));
    }
}

fn pinned_itself() -> Itself {
    Itself {
        address: std::ptr::null(),
        _pin: PhantomPinned,
    }
}

#[test]
fn what_is_pinned_stays_in_its_place() {
    let pool = Pool::bounded(2);
    let mut slot = pool.insert(pinned_itself()).into_pin();
    let address: *const Itself = &*slot;
    // SAFETY: the value is not moved.
    unsafe { slot.as_mut().get_unchecked_mut().address = address };
    let moved = Box::new(slot);
    assert_eq!(moved.as_ref().as_ref().address, address);
    drop(moved);
    assert_eq!(pool.in_use(), 0);
    let numbers = Pool::bounded(1);
    let mut number = numbers.insert(1).into_pin().into_slot();
    *number.pin_mut() = 2;
    assert_eq!(*number.pin(), 2);
}

#[test]
fn memory_of_what_is_pinned_and_forgotten_stays() {
    let pool = Pool::bounded(4);
    let mut slot = pool.insert(pinned_itself()).into_pin();
    // SAFETY: the value is not moved.
    let address: *mut Itself = unsafe { slot.as_mut().get_unchecked_mut() };
    // SAFETY: the value is live.
    unsafe { (*address).address = address };
    std::mem::forget(slot);
    drop(pool);
    // SAFETY: the value was pinned and not dropped, so it is still there.
    assert!(std::ptr::eq(unsafe { (*address).address }, address));
}

#[test]
fn what_is_forgotten_is_just_not_dropped() {
    let drops = Cell::new(0);
    let pool = Pool::unbounded();
    std::mem::forget(pool.insert(Counted(&drops, 1)));
    std::mem::forget(pool.claim());
    assert_eq!((pool.in_use(), pool.trim()), (2, 0));
    drop(pool);
    assert_eq!(drops.get(), 0);
}

#[test]
#[cfg(not(miri))] // Miri has no system to give memory to
fn an_empty_pool_gives_memory_back() {
    let pool = Pool::unbounded();
    for _ in 0..3 {
        let slots: Vec<_> = (0..10_000).map(|i| pool.insert([i; 64])).collect();
        assert!(slots.iter().enumerate().all(|(i, slot)| slot[63] == i));
        assert_eq!(pool.trim(), 0);
        drop(slots);
        let left = if std::env::var_os("SLABYARD").is_some() {
            0
        } else {
            10_000 * 512
        };
        assert!(pool.trim() >= left);
    }
}

#[test]
fn bytes_hold_what_fits() {
    let pool: BytePool<64, 64> = BytePool::bounded(3);
    let name = pool.insert(String::from("name"));
    let mut line = pool.insert([7u8; 64]);
    let pinned = pool.insert(pinned_itself()).into_pin();
    assert!(pool.try_insert(1).is_err());
    line[0] = 8;
    assert_eq!((name.as_str(), line[0], line[63]), ("name", 8, 7));
    assert_eq!(line.as_ptr().as_ptr() as usize % 64, 0);
    drop((name, line, pinned));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_list_in_its_own_pool() {
    struct Node<'p> {
        next: Option<slabyard::Slot<'p, Node<'p>>>,
        value: usize,
    }
    let pool = Pool::unbounded();
    let mut list = None;
    for value in 0..40 {
        list = Some(pool.insert(Node { next: list, value }));
    }
    let mut sum = 0;
    let mut at = &list;
    while let Some(node) = at {
        sum += node.value;
        at = &node.next;
    }
    assert_eq!(sum, 780);
    drop(list);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_future_in_a_slot_is_awaited_in_its_place() {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    let pool = Pool::unbounded();
    let mut slot = pool
        .insert(async { std::future::ready(41).await + 1 })
        .into_pin();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut slot).poll(&mut context), Poll::Ready(42));
}

#[test]
fn an_array_is_filled_or_what_there_is_of_it_dropped() {
    let drops = Cell::new(0);
    let pool = Pool::<[Counted<'_>; 10]>::bounded(1);
    let array = pool
        .claim()
        .unwrap()
        .fill_with(|i| Counted(&drops, i as u64));
    assert!(array
        .iter()
        .enumerate()
        .all(|(i, counted)| counted.1 == i as u64));
    drop(array);
    assert_eq!(drops.replace(0), 10);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.claim().unwrap().fill_with(|i| {
            assert!(i < 7, "as it should");
            Counted(&drops, 0)
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((drops.get(), pool.in_use()), (7, 0));
}

/// The number of minor page faults of this thread.
#[cfg(all(target_os = "linux", not(any(miri, slabyard_tsan))))]
fn page_faults() -> usize {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_name) = text.rsplit_once(')').unwrap();
    after_name.split(' ').nth(8).unwrap().parse().unwrap()
}

#[test]
#[cfg(all(target_os = "linux", not(any(miri, slabyard_tsan))))] // TSan adds pages of its own
fn each_page_of_what_is_reserved_is_touched() {
    const PAGES: usize = 11;
    type Object = [u8; PAGES * 4096 + 100];
    let pool = Pool::<Object>::bounded(20); // less than a huge page in total
    assert!(pool.reserve(20));
    let mut slots: Vec<_> = (0..20).map(|_| pool.claim().unwrap()).collect();
    let before = page_faults();
    for slot in &mut slots {
        let bytes = slot.as_uninit().as_mut_ptr().cast::<u8>();
        // SAFETY: the slot has this number of bytes.
        unsafe { bytes.write_bytes(1, size_of::<Object>()) }
    }
    let waits = page_faults() - before;
    assert!(waits < 20, "{waits} of {}", 20 * PAGES);
}

#[test]
fn what_is_reserved_is_there() {
    let pool = Pool::unbounded();
    let kept = pool.insert([0u64; 3]);
    let before = pool.capacity();
    let more = before * 2;
    assert!(pool.reserve(more));
    let capacity = pool.capacity();
    assert!(pool.in_use() == 1 && capacity > more);
    let slots: Vec<_> = (0..more).map(|_| pool.insert([1; 3])).collect();
    assert_eq!(pool.capacity(), capacity, "it did not grow");
    let first = slots[0].as_ptr();
    assert!(first < slots[1].as_ptr(), "in order");
    drop((slots, kept));
    assert!(pool.reserve(0) && !pool.reserve(usize::MAX));

    let pool = BytePool::<32>::bounded(3);
    let kept = pool.insert(1);
    assert!(pool.reserve(2) && !pool.reserve(3));
    assert_eq!((pool.in_use(), *kept), (1, 1));
    let pool = RcPool::<u8>::bounded(1);
    assert!(pool.reserve(1));
    let _kept = pool.insert(1);
    assert!(!pool.reserve(1));
}
