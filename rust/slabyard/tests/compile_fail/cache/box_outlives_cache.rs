//! A box would outlive its cache.
use slabyard::Cache;

fn main() {
    let object = {
        let cache = Cache::new("short");
        cache.insert(1)
    };
    drop(object);
}
