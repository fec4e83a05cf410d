//! Tests of static caches, whose boxes have 8 bytes.

use slabyard::{Cache, CacheArc, Counted, ObjectArc, StaticArc, StaticBox, StaticCache};
use std::mem::size_of;

slabyard::static_cache! {
    struct Numbers: u64;
    struct Few: String => limit(2).exact();
    struct Shared: Counted<String>;
    struct Raced: [usize; 5];
    struct AtTheEnd: String;
}

#[test]
fn boxes_are_a_pointer() {
    assert_eq!(size_of::<StaticBox<Numbers>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<StaticBox<Numbers>>>(), size_of::<usize>());
    assert_eq!(
        size_of::<Option<StaticArc<String, Shared>>>(),
        size_of::<usize>()
    );
}

#[test]
fn a_static_cache_is_made_when_it_is_needed() {
    assert!(Numbers::stats().is_none());
    assert_eq!((Numbers::in_use(), Numbers::trim()), (0, 0));
    let number = Numbers::insert(42);
    assert_eq!((*number, Numbers::in_use()), (42, 1));
    assert!(Numbers::claim().unwrap().write(7).eq(&Numbers::insert(7)));
    assert!(Numbers::make() && Numbers::reserve(10));
    if !cfg!(miri) {
        assert_eq!(Numbers::stats().unwrap().name, "Numbers");
    }
}

#[test]
fn it_has_the_settings_that_were_said() {
    let kept = [Few::insert("a".into()), Few::insert("b".into())];
    assert_eq!(Few::try_insert("c".into()).unwrap_err().into_inner(), "c");
    drop(kept);
    assert_eq!(StaticBox::<Few>::into_inner(Few::insert("d".into())), "d");
}

#[test]
fn threads_that_make_it_at_once_make_one() {
    let barrier = std::sync::Barrier::new(4);
    let boxes: Vec<StaticBox<Raced>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    (0..50).map(|_| Raced::insert([n; 5])).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(boxes
        .iter()
        .enumerate()
        .all(|(n, object)| **object == [n / 50; 5]));
    assert_eq!(Raced::in_use(), 200);
    drop(boxes);
    assert_eq!(Raced::in_use(), 0);
}

/// Values are freed and allocated while a thread's variables are destroyed.
#[test]
fn it_serves_threads_that_end() {
    struct Last(Option<StaticBox<AtTheEnd>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let text = StaticBox::<AtTheEnd>::into_inner(self.0.take().unwrap());
            drop(AtTheEnd::insert(text + " last"));
        }
    }
    std::thread_local!(static LAST: Last = Last(Some(AtTheEnd::insert("the".into()))));
    for _ in 0..10 {
        std::thread::spawn(|| LAST.with(|last| assert!(last.0.is_some())))
            .join()
            .unwrap();
    }
    assert_eq!(AtTheEnd::in_use(), 0);
}

#[test]
fn shared_objects_are_counted() {
    let first = Shared::insert_arc("one".to_string());
    let mut second = first.clone();
    let watcher = ObjectArc::downgrade(&first);
    assert_eq!(
        (
            ObjectArc::strong_count(&first),
            ObjectArc::weak_count(&first)
        ),
        (2, 1)
    );
    assert!(ObjectArc::get_mut(&mut second).is_none());
    ObjectArc::make_mut(&mut second).push_str(" and two");
    assert_eq!((first.as_str(), second.as_str()), ("one", "one and two"));
    assert!(!ObjectArc::ptr_eq(&first, &second) && watcher.upgrade().unwrap().eq(&first));
    let first = ObjectArc::try_unwrap(first).unwrap();
    assert_eq!((first.as_str(), watcher.upgrade()), ("one", None));
    assert_eq!(Shared::in_use(), 2); // the second has a weak reference
    drop(watcher);
    assert_eq!(ObjectArc::get_mut(&mut second).unwrap(), "one and two");
    let third = second.clone();
    let second = ObjectArc::try_unwrap(second).unwrap_err();
    assert!(ObjectArc::into_inner(second).is_none());
    assert_eq!(ObjectArc::into_inner(third).unwrap(), "one and two");
    assert_eq!(Shared::in_use(), 0);
}

#[test]
fn a_value_can_have_a_way_to_itself() {
    type Home<'c> = &'c Cache<Counted<Node<'c>>>;
    struct Node<'c>(slabyard::ObjectWeak<Node<'c>, Home<'c>>);

    // The compiler does not let a cache end while it holds a value that borrows it.
    let owner = Box::into_raw(Box::new(Cache::new("cyclic")));
    // SAFETY: it lives until the end of the test.
    let cache: Home<'static> = unsafe { &*owner };
    let node = ObjectArc::new_cyclic_in(cache, |this| {
        assert!(this.upgrade().is_none());
        Node(this.clone())
    });
    assert!(CacheArc::ptr_eq(&node.0.upgrade().unwrap(), &node));
    drop(node);
    assert_eq!(cache.in_use(), 0);
    let failed = std::panic::catch_unwind(|| {
        ObjectArc::new_cyclic_in(cache, |_| panic!("asked to"));
    });
    assert!(failed.is_err());
    assert_eq!(cache.in_use(), 0);
    // SAFETY: the cache is not used any more.
    drop(unsafe { Box::from_raw(owner) });
}
