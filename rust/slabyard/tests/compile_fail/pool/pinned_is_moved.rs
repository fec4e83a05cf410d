//! A pinned value cannot be moved out; a slot that may move gives no pin of a !Unpin value.
use slabyard::Pool;
use std::marker::PhantomPinned;

fn main() {
    let pool = Pool::unbounded();
    let pinned = pool.insert(PhantomPinned).into_pin();
    let _ = pinned.into_slot();
    let mut slot = pool.insert(PhantomPinned);
    let _ = slot.pin_mut();
}
