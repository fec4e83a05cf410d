//! Tests of a thread's pools.
#![forbid(unsafe_code)]
#![deny(warnings)]

use slabyard::local::LocalStatic;
use slabyard::BuildError;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;

struct Order {
    id: u64,
    price: f64,
}

mod order_alloc {
    slabyard::bounded_allocator!(super::Order);
}

mod quote_alloc {
    slabyard::unbounded_allocator!(pub String);
}

mod shared_alloc {
    slabyard::bounded_rc_allocator!(pub(crate) super::Order);
}

struct Node(Vec<graph_alloc::WeakSlot>);

mod graph_alloc {
    slabyard::unbounded_rc_allocator!(super::Node);
}

type Job = Pin<Box<dyn Future<Output = ()>>>;
mod job_alloc {
    slabyard::unbounded_allocator!(super::Job);
}

fn order(id: u64) -> Order {
    Order { id, price: 100.0 }
}

#[test]
fn a_bounded_allocator_as_its_users_write_it() {
    use order_alloc::{Allocator, BoxSlot};
    assert!(!Allocator::is_initialized());
    let none = Allocator::builder().build();
    assert_eq!(none, Err(BuildError::NoCapacity));
    Allocator::builder().capacity(2).build().unwrap();
    assert!(Allocator::is_initialized());
    let again = Allocator::builder().capacity(2).build();
    assert_eq!(again, Err(BuildError::AlreadyBuilt));

    let mut slot = BoxSlot::try_new(order(1)).unwrap();
    assert_eq!((slot.id, slot.price), (1, 100.0));
    slot.id = 7;
    assert_eq!(slot.replace(order(2)).id, 7);
    let other = BoxSlot::try_new(order(3)).unwrap();
    assert_eq!(BoxSlot::try_new(order(4)).err().unwrap().into_inner().id, 4);
    assert_eq!((Allocator::in_use(), Allocator::capacity()), (2, 2));
    assert_eq!(BoxSlot::into_inner(slot).id, 2);
    let claimed = BoxSlot::claim().unwrap();
    assert!(BoxSlot::claim().is_none());
    assert_eq!(claimed.write(order(5)).id, 5);
    assert_eq!(other.pin().id, 3);
    drop(other);
    assert_eq!(Allocator::in_use(), 0);
    assert_eq!(size_of::<BoxSlot>(), 8);
    assert_eq!(size_of::<Option<BoxSlot>>(), 8);
}

#[test]
fn an_unbounded_allocator_grows() {
    use quote_alloc::{Allocator, BoxSlot};
    Allocator::builder()
        .chunk_size(16)
        .initial_chunks(2)
        .prefault(true)
        .build()
        .unwrap();
    assert!(Allocator::capacity() >= 32);
    let slots: Vec<BoxSlot> = (0..100).map(|i| BoxSlot::new(i.to_string())).collect();
    assert!((0..100).all(|i| *slots[i] == i.to_string()));
    let leaked: LocalStatic<String> = BoxSlot::new("forever".into()).leak();
    let copy = leaked;
    assert_eq!((leaked.as_str(), copy.pin().len()), ("forever", 7));
    drop(slots);
    assert_eq!(Allocator::in_use(), 1);
    drop(BoxSlot::new(String::new()).into_pin());
}

#[test]
fn an_allocator_with_counts() {
    use shared_alloc::{Allocator, BoxSlot, RcSlot, WeakSlot};
    Allocator::builder().capacity(2).build().unwrap();
    let slot = BoxSlot::try_new(order(1)).unwrap();
    let shared: RcSlot = slot.into_rc();
    let weak: WeakSlot = shared.downgrade();
    weak.upgrade().unwrap().borrow_mut().id += 1;
    assert_eq!(shared.borrow().id, 2);
    let second = RcSlot::try_new(order(3)).unwrap();
    assert!(RcSlot::try_new(order(4)).is_err());
    assert_eq!(size_of::<RcSlot>() + size_of::<Option<WeakSlot>>(), 16);
    drop((second, weak));
    let slot: BoxSlot = shared.try_into_slot().ok().unwrap();
    assert_eq!(slot.id, 2);
}

#[test]
fn an_unbounded_allocator_with_counts() {
    use graph_alloc::{Allocator, RcSlot};
    Allocator::builder().build().unwrap();
    let node = RcSlot::new(Node(vec![]));
    node.borrow_mut().0.push(node.downgrade());
    assert!(node.borrow().0[0].upgrade().unwrap().ptr_eq(&node));
    drop(node);
    assert_eq!(Allocator::in_use(), 0);
}

#[test]
fn jobs_are_polled_where_they_lie() {
    use job_alloc::{Allocator, BoxSlot};
    Allocator::builder().build().unwrap();
    let mut job = BoxSlot::new(Box::pin(async {}) as Job).into_pin();
    assert!(job
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready());
}

#[test]
fn without_a_pool_there_is_a_panic() {
    let panic = thread::spawn(|| drop(order_alloc::BoxSlot::try_new(order(1))))
        .join()
        .unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("was not built on this thread"));
}

mod row_alloc {
    slabyard::unbounded_allocator!(pub [u64; 3]);
}

#[test]
fn slots_are_counted_and_memory_goes_back() {
    use row_alloc::{Allocator, BoxSlot};
    assert_eq!((Allocator::in_use(), Allocator::trim()), (0, 0));
    assert!(!Allocator::reserve(1));
    Allocator::builder().chunk_size(64).build().unwrap();
    assert!(Allocator::reserve(150));
    assert!(Allocator::capacity() >= 150 && Allocator::in_use() == 0);
    let count = if cfg!(miri) { 200 } else { 20_000 };
    for _ in 0..3 {
        let mut rows: Vec<BoxSlot> = Vec::new();
        for i in 0..count {
            rows.push(BoxSlot::new([i; 3]));
            if i % 97 == 0 {
                assert_eq!(Allocator::in_use(), rows.len());
            }
            if i % 1000 == 999 {
                assert_eq!(Allocator::trim(), 0);
            }
        }
        assert!(Allocator::capacity() >= rows.len());
        assert!((0..).zip(&rows).all(|(i, row)| **row == [i; 3]));
        drop(rows);
        assert_eq!(Allocator::in_use(), 0);
        // A pool with checks keeps its memory.
        let keeps = cfg!(miri) || std::env::var_os("SLABYARD").is_some();
        assert!(keeps || Allocator::trim() >= 4096);
    }
}

mod few_alloc {
    slabyard::bounded_allocator!(pub u64);
}

#[test]
fn slots_at_hand_are_room() {
    use few_alloc::{Allocator, BoxSlot};
    Allocator::builder().capacity(64).build().unwrap();
    let first = BoxSlot::try_new(1).unwrap();
    assert!(Allocator::reserve(63) && !Allocator::reserve(64));
    assert_eq!((Allocator::in_use(), *first), (1, 1));
    drop(first);
    assert!(Allocator::reserve(64) && !Allocator::reserve(65));
    let all: Vec<_> = (0..64).map(|i| BoxSlot::try_new(i).unwrap()).collect();
    assert!(BoxSlot::try_new(64).is_err() && !Allocator::reserve(1));
    assert!((0..).zip(&all).all(|(i, slot)| **slot == i));
}

mod word_alloc {
    slabyard::unbounded_allocator!(pub u64);
}

/// The pool's own struct lies in the first chunk, in addition to the slots.
#[test]
#[cfg(not(miri))] // the model has no shared chunks
fn the_first_chunk_has_room_for_as_many_as_said() {
    if std::env::var_os("SLABYARD").is_some() {
        return; // pools with checks have no chunks
    }
    for slots in [1, 496, 512, 4096] {
        let words = move || {
            let builder = word_alloc::Allocator::builder();
            builder.chunk_size(slots).build().unwrap();
            word_alloc::Allocator::capacity()
        };
        let rows = move || {
            let builder = row_alloc::Allocator::builder().chunk_size(slots);
            builder.initial_chunks(1).build().unwrap();
            row_alloc::Allocator::capacity()
        };
        let most = slots + (128 + 4096) / 24 + 1;
        let there = thread::spawn(words).join().unwrap();
        assert!(there >= slots, "{there} of {slots}");
        let there = thread::spawn(rows).join().unwrap();
        assert!(there >= slots, "{there} of {slots}");
        assert!(there <= most, "a second chunk: {there} for {slots}");
    }
}

struct Large([u8; 40_000]);

mod large_alloc {
    slabyard::bounded_allocator!(super::Large);
}

#[test]
fn a_full_allocator_gives_all_it_has() {
    use large_alloc::{Allocator, BoxSlot};
    Allocator::builder().capacity(5).build().unwrap();
    let full: Vec<BoxSlot> = (0..5)
        .map(|i| BoxSlot::try_new(Large([i; 40_000])).ok().unwrap())
        .collect();
    assert!(BoxSlot::try_new(Large([9; 40_000])).is_err());
    assert!((0..).zip(&full).all(|(i, slot)| slot.0 == [i; 40_000]));
}
