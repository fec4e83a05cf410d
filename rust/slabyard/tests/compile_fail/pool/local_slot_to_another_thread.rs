//! Slots of a thread's pool stay on the thread.
mod orders {
    slabyard::unbounded_rc_allocator!(u64);
}
use std::thread;

fn main() {
    orders::Allocator::builder().build().unwrap();
    let slot = orders::BoxSlot::new(1);
    let shared = orders::RcSlot::new(2);
    let weak = shared.downgrade();
    thread::spawn(move || drop(slot));
    thread::spawn(move || drop(shared));
    thread::spawn(move || drop(weak));
}
