//! Another owner could move the value out of its pinned place.
use slabyard::{Cache, CacheArc, Counted};
use std::marker::PhantomPinned;
use std::pin::Pin;

fn main() {
    let cache = Cache::<Counted<PhantomPinned>>::new("pinned");
    let owner = cache.insert_arc(PhantomPinned);
    let _pinned: Pin<CacheArc<_>> = Pin::new(owner.clone());
    let _too: Pin<CacheArc<_>> = CacheArc::into_pin(owner.clone());
    let _moved = CacheArc::try_unwrap(owner);
}
