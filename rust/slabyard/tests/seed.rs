//! Programs of users of nexus-slab, as they write them. If this crate differs, so that safe code
//! stays safe, a comment says so; the guide lists all differences.
#![forbid(unsafe_code)]
#![cfg(feature = "std")]

use std::error::Error;
use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};

#[derive(Debug, PartialEq)]
pub struct Order {
    id: u64,
    price: f64,
}

#[derive(Debug, PartialEq)]
pub struct Quote(u64);

/// Ready at the second poll.
pub struct MyFuture(bool);

impl MyFuture {
    fn new() -> Self {
        MyFuture(false)
    }
}

impl Future for MyFuture {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(42)
        } else {
            Poll::Pending
        }
    }
}

mod order_alloc {
    slabyard::bounded_allocator!(super::Order);
}

mod quote_alloc {
    slabyard::unbounded_allocator!(super::Quote);
}

mod rc_alloc {
    slabyard::bounded_rc_allocator!(super::Order);
}

mod unbounded_rc_alloc {
    slabyard::unbounded_rc_allocator!(super::Order);
}

mod future_alloc {
    slabyard::bounded_allocator!(super::MyFuture);
}

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn quick_start() -> Outcome {
    order_alloc::Allocator::builder().capacity(10_000).build()?;

    let slot = order_alloc::BoxSlot::try_new(Order {
        id: 1,
        price: 100.0,
    })?;
    assert_eq!(slot.id, 1);
    assert_eq!(size_of_val(&slot), 8);
    Ok(())
}

#[test]
fn pinned_access_to_what_may_move() -> Outcome {
    future_alloc::Allocator::builder().capacity(1).build()?;
    let cx = &mut Context::from_waker(Waker::noop());

    let mut slot = future_alloc::BoxSlot::try_new(MyFuture::new())?;
    let pinned: Pin<&mut MyFuture> = slot.pin_mut();
    assert!(pinned.poll(cx).is_pending());
    let pinned: Pin<&MyFuture> = slot.pin();
    assert!(pinned.0);
    assert_eq!(slot.pin_mut().poll(cx), Poll::Ready(42));
    Ok(())
}

/// Must not move once it was polled, for example because it refers to itself.
pub struct Fixed(u32, PhantomPinned);

mod fixed_alloc {
    slabyard::bounded_allocator!(super::Fixed);
}

impl Future for Fixed {
    type Output = usize;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Ready(&raw const self.0 as usize)
    }
}

/// Different: if a value that must not move had `pin_mut`, `into_inner` could still move it. Such a
/// value is pinned permanently by `into_pin`.
#[test]
fn pinned_access_to_what_must_not_move() -> Outcome {
    fixed_alloc::Allocator::builder().capacity(2).build()?;
    let cx = &mut Context::from_waker(Waker::noop());

    let slot = fixed_alloc::BoxSlot::try_new(Fixed(7, PhantomPinned))?;
    let mut slot: fixed_alloc::PinnedSlot = slot.into_pin();
    let at = slot.as_mut().poll(cx);
    let mut moved = vec![slot];
    assert_eq!(moved[0].as_mut().poll(cx), at);
    assert_eq!(pin!(moved.remove(0)).poll(cx), at);
    assert_eq!(fixed_alloc::Allocator::in_use(), 0);
    Ok(())
}

#[test]
fn the_slot_freed_last_is_the_next_one() -> Outcome {
    order_alloc::Allocator::builder().capacity(2).build()?;
    let slot = order_alloc::BoxSlot::try_new(Order { id: 1, price: 1.0 })?;
    let at = slot.as_ptr();
    drop(slot);
    let slot = order_alloc::BoxSlot::try_new(Order { id: 2, price: 2.0 })?;
    assert_eq!(slot.as_ptr(), at);
    Ok(())
}

#[test]
fn box_slots_of_a_bounded_allocator() -> Outcome {
    use order_alloc::{Allocator, BoxSlot};
    assert!(!Allocator::is_initialized());
    Allocator::builder().capacity(1).build()?;
    assert!(Allocator::is_initialized());

    let mut slot = BoxSlot::try_new(Order {
        id: 1,
        price: 100.0,
    })?;
    let full = BoxSlot::try_new(Order { id: 2, price: 99.0 }).unwrap_err();
    assert_eq!(full.into_inner(), Order { id: 2, price: 99.0 });

    let x = slot.price;
    slot.price = x + 1.0;
    let value = BoxSlot::into_inner(slot);
    assert_eq!(value.price, 101.0);
    assert_eq!(Allocator::in_use(), 0);
    Ok(())
}

#[test]
fn box_slots_of_an_unbounded_allocator() -> Outcome {
    quote_alloc::Allocator::builder()
        .chunk_size(4096) // slots per chunk (default: 4096)
        .build()?;
    let many = if cfg!(miri) { 100 } else { 10_000 };
    let slots: Vec<_> = (0..many)
        .map(|n| quote_alloc::BoxSlot::new(Quote(n)))
        .collect();
    assert!((0..many).all(|n| slots[n as usize].0 == n));
    drop(slots);
    assert_eq!(quote_alloc::Allocator::in_use(), 0);
    Ok(())
}

/// All chunks share one list of free slots: slots that were freed in any order come back in the
/// reverse order, as from a single chunk. So a free does not look for the chunk, however many slots
/// are taken.
#[test]
fn slots_of_many_chunks_are_in_one_list() -> Outcome {
    use quote_alloc::{Allocator, BoxSlot};
    Allocator::builder().chunk_size(16).build()?;
    let many: usize = if cfg!(miri) { 100 } else { 300_000 };
    let mut slots: Vec<_> = (0..many).map(|_| Some(BoxSlot::new(Quote(0)))).collect();
    let freed: Vec<_> = (0..many)
        .map(|i| slots[i * 7919 % many].take().unwrap())
        .map(|slot| slot.as_ptr()) // which drops the slot
        .collect();
    assert_eq!(Allocator::in_use(), 0);
    let again: Vec<_> = (0..many).map(|_| BoxSlot::new(Quote(1))).collect();
    assert!(again
        .iter()
        .zip(freed.iter().rev())
        .all(|(slot, at)| slot.as_ptr() == *at));
    Ok(())
}

/// As in nexus-slab, a leaked value can be read and copied, and stays on its thread. Its memory
/// stays after the thread's end.
#[test]
fn leaked_slots() -> Outcome {
    quote_alloc::Allocator::builder().build()?;
    let slot = quote_alloc::BoxSlot::new(Quote(7));
    let leaked: slabyard::LocalStatic<Quote> = slot.leak();
    assert_eq!(leaked.0, 7);
    assert_eq!(leaked.pin().get_ref(), &Quote(7));
    assert_eq!(quote_alloc::Allocator::in_use(), 1);
    Ok(())
}

/// Different: an `RcSlot` is read and changed by `borrow` and `borrow_mut`, which count references.
/// There is no `Deref`, because its references would not be counted.
#[test]
fn slots_with_several_owners() -> Outcome {
    rc_alloc::Allocator::builder().capacity(10).build()?;
    let order = rc_alloc::RcSlot::try_new(Order {
        id: 1,
        price: 100.0,
    })?;
    let other = order.clone();
    let weak: rc_alloc::WeakSlot = order.downgrade();
    other.borrow_mut().price = 99.0;
    assert_eq!(order.borrow().price, 99.0);
    assert_eq!((order.strong_count(), order.weak_count()), (2, 1));
    assert_eq!(weak.upgrade().map(|it| it.borrow().id), Some(1));
    drop((order, other));
    assert!(weak.upgrade().is_none());

    unbounded_rc_alloc::Allocator::builder().build()?;
    let order = unbounded_rc_alloc::RcSlot::new(Order { id: 2, price: 1.0 });
    // Replaces into_slot_unchecked(), which was unsafe: takes the slot of a sole owner.
    let slot: unbounded_rc_alloc::BoxSlot = order.try_into_slot().unwrap();
    assert_eq!(unbounded_rc_alloc::BoxSlot::into_inner(slot).id, 2);
    Ok(())
}

/// Different: an allocator that was not built panics with a message.
#[test]
#[should_panic = "the allocator was not built on this thread"]
fn an_allocator_that_was_not_built() {
    let _ = order_alloc::BoxSlot::try_new(Order { id: 1, price: 1.0 });
}
