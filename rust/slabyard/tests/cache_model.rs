//! Compares a cache with a model during random operations: it holds the model's values, and drops
//! each of them once.

use proptest::prelude::*;
use slabyard::{Cache, CacheBox, Full};
use std::cell::RefCell;

struct Value<'a> {
    number: usize,
    dropped: &'a RefCell<Vec<u32>>,
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.dropped.borrow_mut()[self.number] += 1;
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert,
    InsertWith,
    Claim { writes: bool },
    Drop(usize),
    IntoInner(usize),
    Replace(usize),
    Leak(usize),
    ForgetPinned(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => Just(Operation::Insert),
        1 => Just(Operation::InsertWith),
        1 => any::<bool>().prop_map(|writes| Operation::Claim { writes }),
        6 => any::<usize>().prop_map(Operation::Drop),
        1 => any::<usize>().prop_map(Operation::IntoInner),
        1 => any::<usize>().prop_map(Operation::Replace),
        1 => any::<usize>().prop_map(Operation::Leak),
        1 => any::<usize>().prop_map(Operation::ForgetPinned),
    ]
}

/// Runs the operations, and checks after the end of the cache that each value was dropped as often
/// as in the model.
fn run(operations: &[Operation], limit: usize, leaks: bool) {
    let dropped = RefCell::new(Vec::new());
    let mut expected: Vec<u32> = Vec::new();
    let new = |expected: &mut Vec<u32>| {
        expected.push(0);
        dropped.borrow_mut().push(0);
        Value {
            number: expected.len() - 1,
            dropped: &dropped,
        }
    };
    {
        let builder = Cache::builder().name("model");
        let cache = if limit > 0 {
            builder.limit(limit).exact()
        } else {
            builder
        }
        .build()
        .unwrap();
        let mut boxes: Vec<(usize, CacheBox<Value>)> = Vec::new();
        let mut leaked = 0;
        for operation in operations {
            let room = limit == 0 || boxes.len() + leaked < limit;
            match operation {
                Operation::Insert => {
                    let value = new(&mut expected);
                    let number = value.number;
                    match cache.try_insert(value) {
                        Ok(object) => boxes.push((number, object)),
                        Err(Full(value)) => {
                            assert!(!room && value.number == number);
                            expected[number] = 1;
                        }
                    }
                }
                Operation::InsertWith if room => {
                    let object = cache.insert_with(|| new(&mut expected));
                    boxes.push((object.number, object));
                }
                Operation::InsertWith => assert!(cache.claim().is_none()),
                Operation::Claim { writes } => {
                    let vacant = cache.claim();
                    assert_eq!(vacant.is_some(), room);
                    if let Some(vacant) = vacant.filter(|_| *writes) {
                        let object = vacant.write(new(&mut expected));
                        boxes.push((object.number, object));
                    }
                }
                Operation::Drop(n) => {
                    if let Some((number, object)) = pick(*n, &mut boxes) {
                        assert_eq!(object.number, number);
                        drop(object);
                        expected[number] = 1;
                    }
                }
                Operation::IntoInner(n) => {
                    if let Some((number, object)) = pick(*n, &mut boxes) {
                        assert_eq!(CacheBox::into_inner(object).number, number);
                        expected[number] = 1;
                    }
                }
                Operation::Replace(n) => {
                    if let Some((number, mut object)) = pick(*n, &mut boxes) {
                        let value = new(&mut expected);
                        let new_number = value.number;
                        assert_eq!(CacheBox::replace(&mut object, value).number, number);
                        expected[number] = 1;
                        boxes.push((new_number, object));
                    }
                }
                Operation::Leak(n) if leaks => {
                    if let Some((number, object)) = pick(*n, &mut boxes) {
                        assert_eq!(CacheBox::leak(object).number, number);
                        leaked += 1;
                    }
                }
                Operation::ForgetPinned(n) if leaks => {
                    if let Some((_, object)) = pick(*n, &mut boxes) {
                        std::mem::forget(CacheBox::into_pin(object));
                        leaked += 1;
                    }
                }
                Operation::Leak(_) | Operation::ForgetPinned(_) => {}
            }
            assert_eq!(cache.in_use(), boxes.len() + leaked);
            assert_eq!(*dropped.borrow(), expected);
            for (number, object) in &boxes {
                assert_eq!(object.number, *number);
            }
        }
        for (number, _) in &boxes {
            expected[*number] = 1;
        }
    }
    assert_eq!(*dropped.borrow(), expected);
}

type Numbered<'c, 'd> = (usize, CacheBox<'c, Value<'d>>);

fn pick<'c, 'd>(n: usize, boxes: &mut Vec<Numbered<'c, 'd>>) -> Option<Numbered<'c, 'd>> {
    (!boxes.is_empty()).then(|| boxes.swap_remove(n % boxes.len()))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_cache_is_as_its_model(
        operations in prop::collection::vec(operation(), 0..if cfg!(miri) { 40 } else { 300 }),
        limit in prop_oneof![Just(0), 1usize..20],
        leaks in Just(!cfg!(miri)),
    ) {
        run(&operations, limit, leaks);
    }
}
