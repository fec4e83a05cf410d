//! A pinned value cannot be swapped with another.
use slabyard::Pool;
use std::marker::PhantomPinned;

fn main() {
    let pool = Pool::unbounded();
    let mut pinned = pool.insert(PhantomPinned).into_pin();
    std::mem::swap(&mut *pinned, &mut PhantomPinned);
}
