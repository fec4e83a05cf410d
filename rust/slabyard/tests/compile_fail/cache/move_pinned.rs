//! A pinned value would be moved out.
use slabyard::{Cache, CacheBox};
use std::marker::PhantomPinned;

fn main() {
    let cache = Cache::new("pinned");
    let mut pinned = CacheBox::into_pin(cache.insert(PhantomPinned));
    let _moved = std::mem::replace(&mut *pinned, PhantomPinned);
}
