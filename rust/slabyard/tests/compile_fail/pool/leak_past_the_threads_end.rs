//! A leaked value does not leave its thread.
mod orders {
    slabyard::unbounded_allocator!(u64);
}
use std::thread;

fn main() {
    orders::Allocator::builder().build().unwrap();
    let leaked = orders::BoxSlot::new(3).leak();
    thread::spawn(move || println!("{}", *leaked));
}
