//! A reference would be left to a value that was taken out.
use slabyard::{Cache, CacheBox};

fn main() {
    let cache = Cache::new("taken");
    let object = cache.insert(String::from("text"));
    let text: &str = &object;
    drop(CacheBox::into_inner(object));
    assert_eq!(text, "text");
}
