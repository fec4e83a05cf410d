//! A reference to a value would outlive its removal from the box.
use slabyard::{Cache, CacheBox};

fn main() {
    let cache = Cache::new("taken");
    let object = cache.insert(String::from("text"));
    let text: &str = &object;
    drop(CacheBox::into_inner(object));
    assert_eq!(text, "text");
}
