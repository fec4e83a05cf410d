//! A box would be left without its cache.
use slabyard::Cache;

fn main() {
    let object = {
        let cache = Cache::new("short");
        cache.insert(1)
    };
    drop(object);
}
