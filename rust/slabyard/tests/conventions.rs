//! What users of `std`'s and slotmap's collections expect: traits of collections, entries, parts of
//! guards, boxes of trait objects, functions without an import.

use slabyard::handle::{Entry, NoKey};
use slabyard::{
    BytePool, Cache, CacheBox, Counted, DefaultKey, DynBox, Full, HandleMap, Limit, LocalHandleMap,
    Pool, RawKey, RcPool, RecycleCache, Ref, RefMut, Refusal, SecondaryMap, SparseSecondaryMap,
    StaticBox, StaticCache,
};
use std::borrow::Borrow;
use std::error::Error;
use std::future::Future;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

#[test]
fn a_local_map_is_made_of_values_and_ends_in_them() {
    let mut map: LocalHandleMap<String> = ["a", "b"].map(String::from).into_iter().collect();
    map.extend([String::from("c")]);
    let keys: Vec<_> = map.keys().collect();
    let b = map.remove(keys[1]).unwrap();
    let left = map.into_iter();
    assert_eq!((b.as_str(), left.len()), ("b", 2));
    let left: Vec<_> = left.collect();
    assert_eq!(left, [(keys[0], "a".into()), (keys[2], "c".into())]);

    let token = Rc::new(());
    let map: LocalHandleMap<_> = (0..10).map(|_| token.clone()).collect();
    let mut all = map.into_iter();
    assert!(all.next().is_some());
    drop(all);
    assert_eq!(Rc::strong_count(&token), 1);
    assert!(LocalHandleMap::<u8>::default().is_empty() && HandleMap::<u8>::default().is_empty());
}

macro_rules! secondary {
    ($test:ident, $map:ident) => {
        #[test]
        fn $test() {
            let mut keys = LocalHandleMap::new();
            let (a, b) = (keys.insert(()), keys.insert(()));
            let mut map: $map<DefaultKey, u32> = [(a, 1)].into_iter().collect();
            *map.entry(a).unwrap().or_insert(5) += 1;
            *map.entry(b).unwrap().or_default() += 7;
            map.entry(b).unwrap().and_modify(|it| *it += 1);
            let same: $map<_, _> = map.clone().into_iter().collect();
            assert!(same == map && map != $map::new());
            for (_, value) in &mut map {
                *value *= 2;
            }
            let mut all: Vec<_> = (&map).into_iter().map(|(key, it)| (key, *it)).collect();
            all.sort();
            assert_eq!(all, [(a, 4), (b, 16)]);
            assert!(same != map);

            keys.remove(a);
            let newer = keys.insert(());
            match map.entry(newer).unwrap() {
                Entry::Vacant(entry) => assert_eq!((entry.key(), *entry.insert(9)), (newer, 9)),
                Entry::Occupied(_) => unreachable!(),
            }
            assert!(map.entry(a).is_none(), "a value for a newer key is there");
            match map.entry(newer).unwrap() {
                Entry::Occupied(mut entry) => {
                    assert_eq!((entry.insert(10), *entry.get_mut()), (9, 10));
                    assert_eq!(entry.remove(), 10);
                }
                Entry::Vacant(_) => unreachable!(),
            }
            assert_eq!((map.len(), map.get(newer)), (1, None));
        }
    };
}

secondary!(a_secondary_map_has_entries, SecondaryMap);
secondary!(a_sparse_secondary_map_has_entries, SparseSecondaryMap);

#[test]
fn borrows_of_parts_count_as_borrows() {
    let pool = RcPool::unbounded();
    let pair = pool.insert((vec![1, 2], 3));
    let list = Ref::map(pair.borrow(), |it| it.0.as_slice());
    let other = Ref::clone(&list);
    drop(list);
    assert!(other.len() == 2 && pair.try_borrow_mut().is_err());
    drop(other);
    let mut number = RefMut::map(pair.borrow_mut(), |it| &mut it.1);
    *number += 1;
    assert!(pair.try_borrow().is_err());
    drop(number);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        Ref::map(pair.borrow(), |it| it.0.get(7).unwrap())
    }));
    assert!(panicked.is_err() && pair.try_borrow_mut().unwrap().1 == 4);
}

trait Shape: Send {
    fn area(&self) -> u32;
}

struct Square(u32, #[allow(dead_code)] std::sync::Arc<()>);

impl Shape for Square {
    fn area(&self) -> u32 {
        self.0 * self.0
    }
}

struct Unit;

impl Shape for Unit {
    fn area(&self) -> u32 {
        1
    }
}

slabyard::static_cache! {
    struct Units: Unit;
    pub struct Numbers: u64 => limit(1).exact();
    struct Owners: Counted<u64> => limit(1).exact();
    struct Defaults: Vec<u8>;
    struct Drawn: Square;
}

#[test]
fn boxes_of_trait_objects_drop_and_free_the_whole() {
    let token = std::sync::Arc::new(());
    let squares = Cache::new("square");
    let mut shapes: Vec<DynBox<dyn Shape>> = (1..=3)
        .map(|it| CacheBox::into_dyn(squares.insert(Square(it, token.clone())), |it| it as _))
        .collect();
    shapes.push(slabyard::StaticBox::<Units>::into_dyn(
        Units::insert(Unit),
        |it| it as _,
    ));
    assert_eq!(
        shapes.iter().map(|it| it.area()).sum::<u32>(),
        1 + 4 + 9 + 1
    );
    assert_eq!((squares.in_use(), Units::in_use()), (3, 1));
    std::thread::scope(|scope| {
        scope.spawn(move || drop(shapes));
    });
    assert_eq!((squares.in_use(), Units::in_use()), (0, 0));
    assert_eq!(std::sync::Arc::strong_count(&token), 1);

    let list = Cache::new("list");
    let mut slice: DynBox<[u8]> = CacheBox::into_dyn(list.insert([1, 2, 3]), |it| &mut it[..]);
    slice[1] = 7;
    assert_eq!(
        (&*slice, format!("{slice:?}").as_str()),
        (&[1, 7, 3][..], "[1, 7, 3]")
    );
}

#[test]
fn a_box_of_a_part_is_refused() {
    let token = std::sync::Arc::new(());
    let squares = Cache::new("square");
    let square = squares.insert(Square(1, token.clone()));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        CacheBox::into_dyn(square, |it| &mut it.0 as &mut dyn std::fmt::Debug);
    }));
    assert!(panicked.is_err());
    assert_eq!(
        (squares.in_use(), std::sync::Arc::strong_count(&token)),
        (0, 1)
    );
}

#[test]
fn a_static_cache_needs_no_import() {
    assert!(Numbers::make() && Numbers::reserve(1));
    let number = Numbers::insert(7);
    assert!(Numbers::try_insert(8).is_err() && Numbers::claim().is_none());
    assert_eq!(
        (*number, Numbers::in_use(), Numbers::stats().unwrap().in_use),
        (7, 1, 1)
    );
    drop(number);
    Numbers::trim();
}

#[test]
fn the_type_of_a_static_box_need_not_be_named() {
    let shape: DynBox<dyn Shape> =
        StaticBox::into_dyn(Drawn::insert(Square(3, Default::default())), |it| it as _);
    assert_eq!((shape.area(), Drawn::in_use()), (9, 1));
    drop(shape);
    assert_eq!(Drawn::in_use(), 0);
}

#[test]
fn a_static_cache_has_the_insertions_of_a_cache() {
    assert_eq!(*Defaults::insert_with(|| vec![1]), [1]);
    let first = Owners::try_insert_arc(1).unwrap();
    assert_eq!(
        (*first, Owners::try_insert_arc(2).err()),
        (1, Some(Full(2)))
    );
    let mut made: StaticBox<Defaults> = Default::default();
    made.write_all(b"ab").unwrap();
    assert_eq!(*made, b"ab");
}

fn poll<F: Future + Unpin>(mut future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(&mut future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("not ready"),
    }
}

#[test]
fn boxes_are_what_their_objects_are() {
    let (counts, lines, refusals) = (Cache::new("count"), Cache::new("line"), Cache::new("error"));
    let mut count = counts.insert(1..4);
    assert_eq!((count.next(), count.size_hint()), (Some(1), (2, Some(2))));
    let mut count: DynBox<dyn Iterator<Item = i32>> = CacheBox::into_dyn(count, |it| it as _);
    assert_eq!((count.nth(1), count.next()), (Some(3), None));

    let mut line = lines.insert(Vec::new());
    line.write_all(b"a").unwrap();
    let mut line: DynBox<dyn Write> = CacheBox::into_dyn(line, |it| it as _);
    assert!(line.write_all(b"b").is_ok() && line.flush().is_ok());

    let refusal = refusals.insert(Refusal::System);
    let told: &dyn Error = &refusal;
    assert!(told.source().is_none() && told.to_string() == "the system gave no memory");
    let refusal: DynBox<dyn Error> = CacheBox::into_dyn(refusal, |it| it as _);
    let told: &dyn Error = &refusal;
    assert_eq!(told.to_string(), "the system gave no memory");

    let futures = Cache::new("future");
    let ready = futures.insert(std::future::ready(5));
    let ready: DynBox<dyn Future<Output = i32> + Unpin> = CacheBox::into_dyn(ready, |it| it as _);
    assert_eq!(poll(ready), 5);

    let lists = Cache::new("list");
    let mut list: DynBox<[u8]> = CacheBox::into_dyn(lists.insert([1, 2]), |it| &mut it[..]);
    list.as_mut()[0] = 3;
    assert_eq!(list.as_ref(), [3, 2]);

    let buffers = RecycleCache::<String>::new("buffer");
    let mut buffer = buffers.get();
    buffer.as_mut().push('x');
    let (one, other): (&String, &String) = (buffer.as_ref(), buffer.borrow());
    assert_eq!((one.as_str(), other.as_str()), ("x", "x"));
}

#[test]
fn raw_keys_are_numbers() {
    let key = RawKey::new(7, 3).unwrap();
    assert_eq!(
        (key.to_string(), format!("{key:#x}")),
        ("7v3".into(), "0x300000007".into())
    );
    assert_eq!(RawKey::try_from(u64::from(key)), Ok(key));
    let refused: NoKey = RawKey::try_from(7).unwrap_err();
    assert_eq!(refused.to_string(), "no key has these bits");
}

#[test]
fn equal_maps_have_equal_values_for_equal_keys() {
    let map: LocalHandleMap<u8> = (0..3).collect();
    let mut other = map.clone();
    assert!(map == other);
    let first = other.keys().next().unwrap();
    other[first] = 9;
    assert!(map != other);
    other.remove(first);
    assert!(map != other);
}

#[test]
fn pools_have_a_default_without_a_bound() {
    let (pool, bytes, shared) = (
        Pool::<u8>::default(),
        BytePool::<8>::default(),
        RcPool::<u8>::default(),
    );
    assert_eq!(
        (
            *pool.insert(1),
            *bytes.insert(2u8),
            *shared.insert(3).borrow()
        ),
        (1, 2, 3)
    );
}

const _: Limit = Limit::new();
const _: LocalHandleMap<u8> = LocalHandleMap::new();
const _: SecondaryMap = SecondaryMap::new();
const _: slabyard::HandleMapBuilder<u8> = HandleMap::builder();
