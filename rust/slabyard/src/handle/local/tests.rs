//! Tests of slots whose generations are nearly used up, which the public functions cannot reach.

use super::*;

/// A map whose only slot is at its last generation.
fn at_last_generation() -> (LocalHandleMap<u8>, DefaultKey) {
    let mut map = LocalHandleMap::new();
    map.start = u32::MAX;
    let key = map.insert(1);
    map.start = 1;
    (map, key)
}

#[test]
fn a_slot_without_generations_is_retired() {
    let (mut map, last) = at_last_generation();
    assert_eq!(RawKey::from(last).generation(), u32::MAX);
    assert_eq!(map.remove(last), Some(1));
    let next = map.insert(2);
    assert_ne!(RawKey::from(next).ordinal(), RawKey::from(last).ordinal());
    assert_eq!((map.get(last), map[next], map.len()), (None, 2, 1));
    map.remove(next);
    map.shrink_to_fit();
    assert_eq!(map.slots.len(), 1, "the retired slot stays");
    let next = map.insert(3);
    assert_eq!(RawKey::from(next).ordinal(), 1);
    assert_eq!(RawKey::from(next).generation(), 2, "higher than it had");
}

#[test]
fn an_abandoned_entry_uses_its_generation_up() {
    let (mut map, last) = at_last_generation();
    map.remove(last);
    let first = map.vacant_entry().key();
    let second = map.insert(1);
    assert_eq!(
        RawKey::from(first).ordinal(),
        RawKey::from(second).ordinal()
    );
    assert!(map.get(first).is_none() && map.contains(second));
    map.start = u32::MAX;
    let spent = map.vacant_entry().key();
    assert_eq!(RawKey::from(spent).generation(), u32::MAX);
    map.start = 1;
    assert_ne!(
        RawKey::from(map.insert(2)).ordinal(),
        RawKey::from(spent).ordinal()
    );
}

#[test]
fn a_slot_is_as_small_as_can_be() {
    assert_eq!(size_of::<Slot<u64>>(), 16);
    assert_eq!(size_of::<Slot<[u32; 3]>>(), 16);
    assert_eq!(size_of::<Slot<u32>>(), 12);
}
