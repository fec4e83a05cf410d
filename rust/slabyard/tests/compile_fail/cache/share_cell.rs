//! A value that is not Sync would be shared by two owners.
use slabyard::{Cache, Counted};
use std::cell::Cell;

fn main() {
    let cache = Cache::<Counted<Cell<u32>>>::new("cell");
    let object = cache.insert_arc(Cell::new(1));
    std::thread::scope(|scope| {
        scope.spawn(move || object.set(2));
    });
}
