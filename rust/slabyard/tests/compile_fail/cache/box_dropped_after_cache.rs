//! A box would be dropped after its cache.
use slabyard::Cache;

fn main() {
    let _object;
    let cache = Cache::new("short");
    _object = cache.insert(1);
}
