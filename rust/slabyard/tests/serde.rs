//! Tests of writing and reading with serde, also from hostile texts.
#![cfg(feature = "serde")]
#![forbid(unsafe_code)]

use slabyard::handle::Restored;
use slabyard::{DefaultKey, HandleMap, LocalHandleMap, RawKey, SecondaryMap, SparseSecondaryMap};

fn error<T: serde::de::DeserializeOwned>(text: &str) -> String {
    match serde_json::from_str::<T>(text) {
        Ok(_) => panic!("{text} was read"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_shared_map_comes_back_with_new_keys() {
    let map = HandleMap::<String>::new();
    let keys: Vec<DefaultKey> = (0..50).map(|n| map.insert(n.to_string())).collect();
    for key in keys.iter().step_by(2) {
        map.remove(*key);
    }
    let text = serde_json::to_string(&map).unwrap();
    let Restored {
        map: restored,
        keys: became,
        ..
    } = serde_json::from_str::<Restored<String>>(&text).unwrap();
    assert_eq!((restored.len(), became.len()), (25, 25));
    for (n, key) in keys.iter().enumerate().skip(1).step_by(2) {
        let (_, now) = became.iter().find(|(before, _)| before == key).unwrap();
        assert_eq!(*restored.get(*now).unwrap(), n.to_string());
        assert!(map.contains(*key), "writing holds nothing back");
    }
    let alone: HandleMap<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(alone.len(), 25);
    assert!(map.remove(keys[1]) && map.len() == 24);
}

#[test]
fn a_text_of_a_shared_map_that_breaks_off_is_an_error() {
    assert!(error::<HandleMap<u8>>("[[4294967296,1],").contains("EOF"));
    assert!(error::<HandleMap<u8>>("7").contains("a list of keys with their values"));
}

#[test]
fn keys_without_a_generation_are_refused_by_name() {
    let text = error::<DefaultKey>("7");
    assert!(
        text.contains("integer `7`") && text.contains("generation from 1 up"),
        "{text}"
    );
    let text = error::<LocalHandleMap<u8>>(r#"{"start":0,"slots":[]}"#);
    assert!(text.contains("`start` is 0"), "{text}");
    let text = error::<LocalHandleMap<u8>>(r#"{"start":1,"slots":[[0,5]]}"#);
    assert!(text.contains("a value has generation 0"), "{text}");
}

/// The text of a map with one value, whose key has this ordinal.
fn of_place(ordinal: u32) -> String {
    let key = RawKey::new(ordinal, 1).unwrap();
    format!("[[{},1]]", key.to_bits())
}

#[test]
fn a_place_far_off_takes_no_memory() {
    let text = of_place(u32::MAX - 1);
    let refused = error::<SecondaryMap<DefaultKey, u8>>(&text);
    assert!(refused.contains("SparseSecondaryMap"), "{refused}");
    let read: SparseSecondaryMap<DefaultKey, u8> = serde_json::from_str(&text).unwrap();
    assert_eq!((read.len(), read.capacity() < 100), (1, true));
}

#[test]
fn memory_is_in_proportion_to_the_text() {
    let near: SecondaryMap<DefaultKey, u8> = serde_json::from_str(&of_place(10_000)).unwrap();
    assert_eq!((near.len(), near.capacity() > 10_000), (1, true));
    assert!(!error::<SecondaryMap<DefaultKey, [u64; 32]>>(&format!(
        "[[{},{}]]",
        RawKey::new(10_000, 1).unwrap().to_bits(),
        serde_json::to_string(&[0u64; 32]).unwrap()
    ))
    .is_empty());
    // As sparse as in a real application: every tenth ordinal is used.
    let mut map = SecondaryMap::<DefaultKey, u64>::new();
    for place in (0..if cfg!(miri) { 1000 } else { 1_000_000 }).step_by(10) {
        map.insert(RawKey::new(place, 3).unwrap().into(), u64::from(place));
    }
    let text = serde_json::to_string(&map).unwrap();
    let read: SecondaryMap<DefaultKey, u64> = serde_json::from_str(&text).unwrap();
    assert!(read.iter().eq(map.iter()));
}
