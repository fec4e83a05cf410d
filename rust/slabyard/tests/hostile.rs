//! Keys and values whose own code, which is safe, misbehaves. Nothing worse than a wrong answer may
//! result.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

use slabyard::{HandleMap, Key, LocalHandleMap, RawKey, SecondaryMap, TakeError};

std::thread_local!(
    /// The number of conversions of keys since this was reset.
    static CONVERSIONS: Cell<u32> = const { Cell::new(0) };
    /// The result of every conversion but the first, if set.
    static LATER: Cell<Option<RawKey>> = const { Cell::new(None) };
    static PANICS: Cell<bool> = const { Cell::new(false) }
);

/// A key whose conversions can differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Fickle(RawKey);

impl From<RawKey> for Fickle {
    fn from(raw: RawKey) -> Self {
        assert!(!PANICS.get(), "asked to");
        Fickle(raw)
    }
}

impl From<Fickle> for RawKey {
    fn from(key: Fickle) -> RawKey {
        CONVERSIONS.set(CONVERSIONS.get() + 1);
        match LATER.get() {
            Some(other) if CONVERSIONS.get() > 1 => other,
            _ => key.0,
        }
    }
}

impl Key for Fickle {}

/// The result of `work` if every conversion but the first gave `other`. Checks that there is only
/// one.
fn asked_once<R>(other: Fickle, work: impl FnOnce() -> R) -> R {
    CONVERSIONS.set(0);
    LATER.set(Some(other.0));
    let answer = work();
    LATER.set(None);
    assert_eq!(CONVERSIONS.get(), 1, "one question, one conversion");
    answer
}

fn two_values() -> (HandleMap<String, Fickle>, [Fickle; 2]) {
    let map = HandleMap::with_key();
    let keys = ["first", "second"].map(|text| map.insert(text.to_string()));
    (map, keys)
}

#[test]
fn a_key_of_two_minds_leads_to_its_first() {
    let (mut map, [first, second]) = two_values();
    let wild = Fickle(RawKey::new(0x00ff_fff0, 1).unwrap());
    for other in [second, wild] {
        assert_eq!(*asked_once(other, || map.get(first)).unwrap(), "first");
        assert_eq!(asked_once(other, || map.get_mut(first)).unwrap(), "first");
        assert!(asked_once(other, || map.contains(first)));
        let guard = map.get(first).unwrap();
        let held = asked_once(other, || map.take(first));
        assert_eq!(held, Err(TakeError::Held));
        drop(guard);
    }
    assert_eq!(
        asked_once(second, || map.take(first)),
        Ok("first".to_string())
    );
    assert_eq!(*map.get(second).unwrap(), "second");
    assert_eq!(map.len(), 1);
}

#[test]
fn a_key_of_two_minds_removes_one_value() {
    for held in [false, true] {
        let (map, [first, second]) = two_values();
        let guard = held.then(|| map.get(first).unwrap());
        assert!(asked_once(second, || map.remove(first)));
        assert!(!map.contains(first) && map.contains(second));
        assert_eq!(guard.map(|it| it.clone()), held.then(|| "first".into()));
        assert_eq!(map.len(), 1);
        assert!(!asked_once(second, || map.remove(first)), "it is stale");
        assert_eq!(*map.get(second).unwrap(), "second");
    }
}

#[test]
fn an_owned_guard_holds_what_was_asked_for() {
    let (map, [first, second]) = two_values();
    let map = std::sync::Arc::new(map);
    let guard = asked_once(second, || HandleMap::get_owned(&map, first)).unwrap();
    map.remove(second);
    map.insert("intruder".into());
    assert_eq!(*guard, "first");
}

#[test]
fn walks_convert_no_key_back() {
    let (map, [first, second]) = two_values();
    LATER.set(Some(first.0));
    CONVERSIONS.set(1);
    map.retain(|_, text| text == "first");
    LATER.set(None);
    assert!(map.contains(first) && !map.contains(second));
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn a_conversion_that_panics_holds_nothing() {
    let (mut map, [first, second]) = two_values();
    let panics = |work: &mut dyn FnMut()| {
        PANICS.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
        PANICS.set(false);
        assert!(panicked);
    };
    panics(&mut || drop(map.iter().next()));
    assert_eq!(map.take(first), Ok("first".into()), "no guard was left");
    panics(&mut || _ = map.iter_mut().next());
    panics(&mut || _ = map.insert("third".into()));
    assert_eq!((map.len(), map.contains(second)), (2, true));
    panics(&mut || drop(map.drain().next()));
}

#[test]
fn local_maps_convert_once_too() {
    let mut map = LocalHandleMap::<String, Fickle>::with_key();
    let keys = ["first", "second", "third"].map(|text| map.insert(text.to_string()));
    let [first, second, third] = keys;
    assert_eq!(asked_once(second, || map.get(first)).unwrap(), "first");
    assert_eq!(asked_once(second, || map.get_mut(first)).unwrap(), "first");
    assert_eq!(asked_once(second, || map.remove(first)).unwrap(), "first");
    LATER.set(Some(second.0));
    CONVERSIONS.set(1);
    map.retain(|_, text| text == "second");
    assert!(map.get_disjoint_mut([third, third]).is_none());
    let drained: Vec<_> = map.drain().collect();
    LATER.set(None);
    assert_eq!(drained, [(second, "second".to_string())]);
    assert!(map.is_empty());

    let mut kept = SecondaryMap::<Fickle, u8>::new();
    assert_eq!(asked_once(second, || kept.insert(first, 1)), None);
    assert_eq!(asked_once(second, || kept.get(first).copied()), Some(1));
    assert_eq!(asked_once(second, || kept.remove(first)), Some(1));
}
