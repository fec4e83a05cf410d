//! A value that is not Send would move to another thread in a box.
use slabyard::Cache;
use std::rc::Rc;

fn main() {
    let cache = Cache::new("rc");
    let object = cache.insert(Rc::new(1));
    std::thread::scope(|scope| {
        scope.spawn(move || drop(object));
    });
}
