//! Tests of `{:?}` for caches and pools: it shows their type or name, and their content.
#![cfg(all(feature = "std", not(miri)))]

use slabyard::{BytePool, Cache, HandleMap, Pool, RcPool, RecycleCache};

#[derive(Debug)]
#[allow(dead_code)]
struct Order(u64);

#[test]
fn caches_say_type_and_name() {
    let cache = Cache::new("order");
    let _order = cache.insert(Order(1));
    let text = format!("{cache:?}");
    assert!(
        text.starts_with("Cache<texts::Order> { name: \"order\", in_use: 1"),
        "{text}"
    );
    let text = format!("{:?}", RecycleCache::<String>::new("text"));
    assert!(
        text.starts_with("RecycleCache<alloc::string::String> { name: \"text\", in_use: 0"),
        "{text}"
    );
}

#[test]
fn maps_say_type_and_name_and_values() {
    let map: HandleMap<Order> = HandleMap::builder().name("book").build().unwrap();
    let key = map.insert(Order(7));
    assert_eq!(
        format!("{map:?}"),
        format!("HandleMap<texts::Order> {{ name: \"book\", values: {{{key:?}: Order(7)}} }}")
    );
}

#[test]
fn pools_say_their_type() {
    let text = format!("{:?}", Pool::<Order>::bounded(2));
    assert!(
        text.starts_with("Pool<texts::Order> { capacity: 2"),
        "{text}"
    );
    let text = format!("{:?}", RcPool::<Order>::bounded(2));
    assert!(text.contains("Pool<texts::Order> { capacity: 2"), "{text}");
    let text = format!("{:?}", BytePool::<24>::bounded(2));
    assert!(
        text.starts_with("BytePool<24, 16> { capacity: 2")
            || text.starts_with("BytePool<24> { capacity: 2"),
        "{text}"
    );
}
