//! Tests of the allocators that the macros define, and of slots that free themselves.

use nexus_slab::alloc::{RcSlot, WeakSlot};
use nexus_slab::{
    Alloc, BoundedAlloc, BoxSlot, Full, LocalStatic, PinnedSlot, RcInner, Slot, UnboundedAlloc,
};
use std::borrow::{Borrow, BorrowMut};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::Future;
use std::marker::PhantomPinned;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    id: u64,
    text: String,
}

fn order(id: u64) -> Order {
    Order {
        id,
        text: id.to_string(),
    }
}

mod bounded {
    nexus_slab::bounded_allocator!(super::Order);
}
mod unbounded {
    nexus_slab::unbounded_allocator!(super::Order);
}
mod counted {
    nexus_slab::bounded_rc_allocator!(super::Order);
}
mod growing {
    nexus_slab::unbounded_rc_allocator!(super::Order);
}

fn panics<R>(function: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(function)).is_err()
}

#[test]
fn a_bounded_allocator() {
    use bounded::{Allocator, Builder};
    assert!(!Allocator::is_initialized());
    assert_eq!(Allocator::capacity(), 0);
    assert!(panics(|| Allocator::builder().build()));
    assert!(panics(|| Allocator::builder().capacity(0).build()));
    assert!(panics(|| Allocator::builder().capacity(usize::MAX).build()));
    assert!(!Allocator::is_initialized());
    let builder: Builder = Allocator::builder();
    builder.capacity(2).build().unwrap();
    assert!(Allocator::is_initialized());
    assert_eq!(Allocator::capacity(), 2);
    let again = Allocator::builder().capacity(9).build().unwrap_err();
    assert_eq!(again, nexus_slab::macros::AlreadyInitialized);
    assert_eq!(again.to_string(), "allocator already initialized");

    let one = bounded::BoxSlot::try_new(order(1)).unwrap();
    let two: Slot<Order> = Allocator::try_alloc(order(2)).unwrap();
    let Err(Full(refused)) = bounded::BoxSlot::try_new(order(3)) else {
        panic!("it is full");
    };
    assert_eq!((refused, one.id, two.id), (order(3), 1, 2));
    // SAFETY: the slots are of this allocator.
    unsafe {
        assert_eq!(Allocator::take(one.into_slot()), order(1));
        Allocator::free(two);
    }
    let all = [1, 2].map(|id| bounded::BoxSlot::try_new(order(id)).unwrap());
    assert!(bounded::BoxSlot::try_new(order(3)).is_err());
    drop(all);
}

#[test]
fn an_unbounded_allocator() {
    use unbounded::Allocator;
    assert!(panics(|| unbounded::BoxSlot::new(order(1))));
    assert!(panics(|| Allocator::builder().chunk_size(0).build()));
    Allocator::builder()
        .chunk_size(4)
        .initial_chunks(2)
        .build()
        .unwrap();
    assert!(Allocator::builder().build().is_err());
    assert_eq!((Allocator::chunk_count(), Allocator::capacity()), (2, 8));
    let slots: Vec<_> = (0..9)
        .map(|id| unbounded::BoxSlot::new(order(id)))
        .collect();
    assert_eq!(Allocator::chunk_count(), 3);
    Allocator::reserve_chunks(5);
    assert_eq!(Allocator::capacity(), 20);
    assert!(slots.iter().zip(0..).all(|(slot, id)| **slot == order(id)));
    let raw = Allocator::alloc(order(9));
    // SAFETY: the slot is of this allocator.
    assert_eq!(unsafe { Allocator::take(raw) }.id, 9);
}

#[test]
fn a_chunk_has_4096_slots_unless_said() {
    unbounded::Allocator::builder()
        .initial_chunks(1)
        .build()
        .unwrap();
    assert_eq!(unbounded::Allocator::capacity(), 4096);
}

#[test]
fn an_allocator_that_was_not_built() {
    let made = catch_unwind(|| bounded::BoxSlot::try_new(order(1)).is_err());
    assert_eq!(
        made.ok(),
        if cfg!(debug_assertions) {
            None
        } else {
            Some(true)
        }
    );
}

#[test]
fn a_box_slot_is_read_and_changed_as_the_value() {
    bounded::Allocator::builder().capacity(1).build().unwrap();
    let mut slot = bounded::BoxSlot::try_new(order(1)).unwrap();
    slot.id = 2;
    AsMut::<Order>::as_mut(&mut slot).id += 1;
    BorrowMut::<Order>::borrow_mut(&mut slot).id += 1;
    let (one, other): (&Order, &Order) = (slot.as_ref(), slot.borrow());
    assert_eq!((one.id, other.id), (4, 4));
    assert!(format!("{slot:?}").starts_with("BoxSlot { value: Order { id: 4"));
    assert_eq!(slot.replace(order(5)).id, 4);
    assert_eq!((slot.pin().id, slot.pin_mut().id), (5, 5));
    assert_eq!(slot.into_inner(), order(5));
    assert!(bounded::BoxSlot::try_new(order(1)).is_ok());
}

#[test]
fn a_box_slot_becomes_raw_and_back() {
    bounded::Allocator::builder().capacity(1).build().unwrap();
    let slot = bounded::BoxSlot::try_new(order(1)).unwrap();
    let at = slot.as_ptr();
    let raw = slot.into_slot();
    assert_eq!((raw.as_ptr(), raw.id), (at, 1));
    // SAFETY: each is the only handle of a slot of this allocator.
    let slot = unsafe {
        let cell = bounded::BoxSlot::from_slot(raw).into_raw();
        bounded::BoxSlot::from_raw(cell)
    };
    assert_eq!((slot.as_ptr(), slot.id), (at, 1));
    assert_eq!(size_of::<Option<bounded::BoxSlot>>(), 8);
}

/// Counts its drops.
struct Dropped<'a>(&'a Cell<u32>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

thread_local! {
    static DROPS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug)]
pub struct Counts(bool);

impl Drop for Counts {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + 1);
        if self.0 {
            panic!("dropped");
        }
    }
}

mod counts {
    nexus_slab::bounded_allocator!(super::Counts);
}
mod counts_rc {
    nexus_slab::bounded_rc_allocator!(super::Counts);
}

#[test]
fn a_slot_goes_back_when_a_drop_panics() {
    counts::Allocator::builder().capacity(1).build().unwrap();
    counts_rc::Allocator::builder().capacity(1).build().unwrap();
    for _ in 0..3 {
        assert!(panics(|| drop(
            counts::BoxSlot::try_new(Counts(true)).unwrap()
        )));
        assert!(panics(|| drop(
            counts_rc::RcSlot::try_new(Counts(true)).unwrap()
        )));
    }
    assert_eq!(DROPS.get(), 6);
}

#[test]
fn a_leaked_value_stays() {
    counts::Allocator::builder().capacity(2).build().unwrap();
    let leaked: LocalStatic<Counts> = counts::BoxSlot::try_new(Counts(false)).unwrap().leak();
    let copy = leaked;
    assert!(!copy.0 && !leaked.as_ref().0 && !leaked.pin().0);
    assert!(counts::BoxSlot::try_new(Counts(false)).is_ok());
    let one = counts::BoxSlot::try_new(Counts(false)).unwrap();
    assert!(counts::BoxSlot::try_new(Counts(false)).is_err());
    assert_eq!(DROPS.get(), 2);
    drop(one);
    bounded::Allocator::builder().capacity(1).build().unwrap();
    let leaked = bounded::BoxSlot::try_new(order(3)).unwrap().leak();
    assert!(format!("{leaked:?}").starts_with("LocalStatic(Order { id: 3"));
}

/// A value that must not move once it was polled.
#[derive(Debug)]
pub struct Fixed(PhantomPinned);

impl Future for Fixed {
    type Output = usize;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        Poll::Ready(std::ptr::from_ref(&*self) as usize)
    }
}

mod fixed {
    nexus_slab::bounded_allocator!(super::Fixed);
}
mod fixed_rc {
    nexus_slab::bounded_rc_allocator!(super::Fixed);
}

#[test]
fn a_value_that_must_not_move_is_pinned_for_good() {
    let cx = &mut Context::from_waker(Waker::noop());
    fixed::Allocator::builder().capacity(1).build().unwrap();
    let slot = fixed::BoxSlot::try_new(Fixed(PhantomPinned)).unwrap();
    let mut pinned: Pin<PinnedSlot<Fixed, fixed::Allocator>> = slot.into_pin();
    let at = pinned.as_mut().poll(cx);
    let mut moved = vec![pinned];
    assert_eq!(moved[0].as_mut().poll(cx), at);
    drop(moved);
    assert!(fixed::BoxSlot::try_new(Fixed(PhantomPinned)).is_ok());

    fixed_rc::Allocator::builder().capacity(1).build().unwrap();
    let owner = fixed_rc::RcSlot::try_new(Fixed(PhantomPinned))
        .ok()
        .unwrap();
    let weak = owner.downgrade();
    let owner = owner.into_pin().err().unwrap();
    drop(weak);
    let pinned = owner.into_pin().unwrap();
    let other: Pin<fixed_rc::RcSlot> = pinned.clone();
    drop(pinned);
    assert!(fixed_rc::RcSlot::try_new(Fixed(PhantomPinned)).is_err());
    drop(other);
    assert!(fixed_rc::RcSlot::try_new(Fixed(PhantomPinned)).is_ok());
}

/// Pinned in its slot from the start, as the document of nexus-slab shows it.
#[test]
fn a_value_that_must_not_move_is_pinned_where_it_is() {
    let cx = &mut Context::from_waker(Waker::noop());
    fixed::Allocator::builder().capacity(1).build().unwrap();
    let mut slot = fixed::BoxSlot::try_new(Fixed(PhantomPinned)).unwrap();
    let at = slot.pin_mut().poll(cx);
    assert_eq!(Poll::Ready(std::ptr::from_ref(&*slot.pin()) as usize), at);
    let mut moved = Box::new(slot);
    assert_eq!(moved.pin_mut().poll(cx), at);
    drop(moved);

    fixed_rc::Allocator::builder().capacity(1).build().unwrap();
    let mut owner = fixed_rc::RcSlot::try_new(Fixed(PhantomPinned))
        .ok()
        .unwrap();
    let at = owner.pin_get_mut().unwrap().poll(cx);
    assert_eq!(Poll::Ready(std::ptr::from_ref(&*owner.pin()) as usize), at);
    let other = owner.clone();
    assert!(owner.pin_get_mut().is_none());
    drop(other);
}

mod vast {
    nexus_slab::unbounded_allocator!([u64; 512]);
}

/// No chunk is taken for chunks that no address space has, and a build that panics leaves nothing.
#[test]
fn chunks_that_cannot_be_are_refused_at_once() {
    for chunks in [usize::MAX, usize::MAX / 4096, 1 << 40] {
        let build = || vast::Allocator::builder().initial_chunks(chunks).build();
        assert!(catch_unwind(build).is_err());
        assert!(!vast::Allocator::is_initialized());
        assert_eq!(vast::Allocator::chunk_count(), 0);
    }
    vast::Allocator::builder().chunk_size(4).build().unwrap();
    assert!(catch_unwind(|| vast::Allocator::reserve_chunks(usize::MAX)).is_err());
    assert_eq!(vast::Allocator::chunk_count(), 0);
    drop(vast::BoxSlot::new([7; 512]));
}

#[test]
fn a_counted_slot() {
    use counted::{Allocator, RcSlot, WeakSlot};
    Allocator::builder().capacity(2).build().unwrap();
    let mut owner: RcSlot = RcSlot::try_new(order(1)).unwrap();
    assert_eq!((owner.strong_count(), owner.weak_count()), (1, 0));
    owner.get_mut().unwrap().id = 2;
    owner.pin_get_mut().unwrap().id += 1;
    assert_eq!((owner.id, owner.pin().id, owner.as_ref().id), (3, 3, 3));
    let weak: WeakSlot = owner.downgrade();
    assert!(owner.get_mut().is_none() && owner.pin_get_mut().is_none());
    let other = weak.upgrade().unwrap();
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 1));
    assert_eq!(other.as_ptr(), owner.as_ptr());
    assert!(format!("{other:?}").starts_with("RcSlot { strong: 2, weak: 1, value: Order { id: 3"));
    assert_eq!(format!("{weak:?}"), "WeakSlot { strong: 2, weak: 1 }");
    drop((owner, other));
    assert_eq!((weak.strong_count(), weak.clone().weak_count()), (0, 2));
    assert!(weak.upgrade().is_none());
    let _second = RcSlot::try_new(order(2)).unwrap();
    let refused = RcSlot::try_new(order(3)).unwrap_err();
    assert_eq!(refused.into_inner(), order(3));
    drop(weak);
    assert!(RcSlot::try_new(order(3)).is_ok());
    assert_eq!(
        size_of::<Option<RcSlot>>() + size_of::<Option<WeakSlot>>(),
        16
    );
}

#[test]
fn a_shared_value_is_cloned_to_be_changed() {
    counted::Allocator::builder().capacity(2).build().unwrap();
    let mut owner = counted::RcSlot::try_new(order(1)).unwrap();
    let at = owner.as_ptr();
    owner.try_make_mut().unwrap().id = 2;
    assert_eq!(owner.as_ptr(), at);
    let mut other = owner.clone();
    other.try_make_mut().unwrap().id = 3;
    assert_eq!((owner.id, other.id, owner.as_ptr() == at), (2, 3, true));
    let weak = owner.downgrade();
    assert!(matches!(owner.try_make_mut(), Err(Full(()))));
    drop(other);
    owner.try_make_mut().unwrap().id = 4;
    assert!(weak.upgrade().is_none() && owner.as_ptr() != at);

    growing::Allocator::builder().chunk_size(1).build().unwrap();
    let mut owner = growing::RcSlot::new(order(1));
    let other = owner.clone();
    owner.make_mut().id = 2;
    owner.make_mut().id += 1;
    assert_eq!((owner.id, other.id), (3, 1));
}

#[test]
fn a_counted_slot_becomes_raw_and_back() {
    use counted::{Allocator, RcSlot};
    Allocator::builder().capacity(1).build().unwrap();
    let owner = RcSlot::try_new(order(1)).unwrap();
    let cell = owner.into_raw();
    // SAFETY: the slot holds a value, and each owner that it counts is dropped or made raw once.
    unsafe {
        RcSlot::increment_strong_count(cell);
        let owner = RcSlot::from_raw(cell);
        assert_eq!(owner.strong_count(), 2);
        RcSlot::decrement_strong_count(cell);
        assert_eq!(owner.strong_count(), 1);
        owner.get_mut_unchecked().id = 7;
        let raw: Slot<RcInner<Order>> = owner.into_slot().unwrap();
        assert_eq!((raw.strong(), raw.weak(), raw.value().id), (0, 0, 7));
        std::ptr::from_ref(raw.value()).cast_mut().drop_in_place();
        Allocator::free(raw);
        let raw = RcSlot::try_new(order(2)).unwrap().into_slot_unchecked();
        assert_eq!((raw.strong(), raw.weak(), raw.value().id), (1, 1, 2));
        drop(RcSlot::from_raw(raw.as_ptr()));
    }
    let owner = RcSlot::try_new(order(3)).unwrap();
    let weak = owner.downgrade();
    assert!(owner.into_slot().is_none()); // into_slot drops the owner
    assert!(weak.upgrade().is_none());
}

/// A node with a weak reference to itself, which owns the next node.
#[derive(Debug)]
pub struct Node {
    itself: RefCell<Option<node::WeakSlot>>,
    next: Option<node::RcSlot>,
}

impl Drop for Node {
    fn drop(&mut self) {
        let itself = self.itself.get_mut().take().unwrap();
        assert!(itself.upgrade().is_none());
    }
}

mod node {
    nexus_slab::bounded_rc_allocator!(super::Node);
}

#[test]
fn a_value_may_name_its_own_slot_when_it_is_dropped() {
    node::Allocator::builder().capacity(3).build().unwrap();
    for _ in 0..3 {
        let mut list = None;
        for _ in 0..3 {
            let itself = RefCell::new(None);
            let node = node::RcSlot::try_new(Node {
                itself,
                next: list.take(),
            })
            .ok()
            .unwrap();
            *node.itself.borrow_mut() = Some(node.downgrade());
            list = Some(node);
        }
        assert!(list.as_ref().is_some_and(|node| node.next.is_some()));
    }
}

/// An allocator that is not made by a macro.
struct Heap;

// SAFETY: each slot is a box, which exists until it is freed.
unsafe impl Alloc for Heap {
    type Item = u64;
    fn is_initialized() -> bool {
        true
    }
    fn capacity() -> usize {
        usize::MAX
    }
    unsafe fn free(slot: Slot<u64>) {
        // SAFETY: as the caller says.
        unsafe { Self::take(slot) };
    }
    unsafe fn take(slot: Slot<u64>) -> u64 {
        // SAFETY: `alloc` made the box.
        unsafe { *Box::from_raw(slot.as_ptr().cast()) }
    }
}

// SAFETY: each slot is a box of its own.
unsafe impl UnboundedAlloc for Heap {
    fn alloc(value: u64) -> Slot<u64> {
        // SAFETY: the box holds a value, and its address is used by the slot only.
        unsafe { Slot::from_ptr(Box::into_raw(Box::new(value)).cast()) }
    }
    fn reserve_chunks(_: usize) {}
    fn chunk_count() -> usize {
        0
    }
}

#[test]
fn an_allocator_of_ones_own() {
    fn sum<A: UnboundedAlloc<Item = u64>>() -> u64 {
        let slots: Vec<BoxSlot<u64, A>> = (0..10).map(BoxSlot::new).collect();
        slots.into_iter().map(BoxSlot::into_inner).sum()
    }
    assert_eq!(sum::<Heap>(), 45);
}

#[test]
fn generic_code_over_allocators() {
    fn owners<T, A: BoundedAlloc<Item = RcInner<T>>>(value: T) -> (RcSlot<T, A>, WeakSlot<T, A>) {
        let owner = RcSlot::try_new(value).unwrap();
        let weak = owner.downgrade();
        (owner, weak)
    }
    counted::Allocator::builder().capacity(1).build().unwrap();
    let (owner, weak) = owners::<_, counted::Allocator>(order(1));
    assert_eq!((owner.id, weak.upgrade().is_some()), (1, true));
}

#[test]
fn each_thread_has_its_own() {
    bounded::Allocator::builder().capacity(1).build().unwrap();
    let slot = bounded::BoxSlot::try_new(order(1)).unwrap();
    let at = slot.as_ptr() as usize;
    let elsewhere = move || {
        assert!(!bounded::Allocator::is_initialized());
        bounded::Allocator::builder().capacity(3).build().unwrap();
        let slots = [(); 3].map(|()| bounded::BoxSlot::try_new(order(2)).unwrap());
        let places: HashSet<usize> = slots.iter().map(|slot| slot.as_ptr() as usize).collect();
        places.len() == 3 && !places.contains(&at)
    };
    assert!((0..4)
        .map(|_| thread::spawn(elsewhere))
        .all(|it| it.join().unwrap()));
    assert_eq!(bounded::Allocator::capacity(), 1);
}

/// What the destructor of a thread-local variable does with slots. The variable is created before
/// or after the slab.
struct AtEnd {
    held: Option<bounded::BoxSlot>,
    leaked: Option<LocalStatic<Order>>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        assert_eq!(self.held.as_ref().unwrap().id, 1);
        self.held = None;
        assert_eq!(self.leaked.unwrap().id, 2);
        let slot = bounded::BoxSlot::try_new(order(3)).unwrap();
        assert_eq!(slot.into_inner(), order(3));
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd { held: None, leaked: None }) };
}

#[test]
fn destructors_of_thread_local_variables_may_use_slots() {
    let run = |variable_first: bool| {
        if variable_first {
            AT_END.with_borrow_mut(|it| it.held = None);
        }
        bounded::Allocator::builder().capacity(2).build().unwrap();
        AT_END.with_borrow_mut(|it| {
            it.held = bounded::BoxSlot::try_new(order(1)).ok();
            it.leaked = bounded::BoxSlot::try_new(order(2)).ok().map(BoxSlot::leak);
        });
    };
    for variable_first in [false, true] {
        // A panic in a destructor at the end of a thread would end the process.
        thread::spawn(move || run(variable_first)).join().unwrap();
    }
}

#[test]
fn values_that_borrow_go_into_slabs() {
    let drops = Cell::new(0);
    let slab = nexus_slab::bounded::Slab::with_capacity(1);
    let slot = slab.alloc(Dropped(&drops));
    // SAFETY: the slot belongs to this slab.
    unsafe { slab.free(slot) };
    assert_eq!(drops.get(), 1);
}
