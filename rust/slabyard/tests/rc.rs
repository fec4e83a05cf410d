//! Tests of values with several owners.

use slabyard::{RcPool, RcSlot, WeakSlot};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn the_last_owner_drops_the_value_and_the_last_name_the_slot() {
    let drops = Cell::new(0);
    struct Counted<'c>(&'c Cell<u32>);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let pool = RcPool::unbounded();
    let a = pool.insert(Counted(&drops));
    let (b, w) = (a.clone(), a.downgrade());
    assert!(a.ptr_eq(&b) && w.ptr_eq(&b.downgrade()));
    assert_eq!(
        (a.strong_count(), a.weak_count(), w.strong_count()),
        (2, 1, 2)
    );
    drop(a);
    assert_eq!(drops.get(), 0);
    let c = w.upgrade().unwrap();
    drop((b, c));
    assert_eq!((drops.get(), pool.in_use()), (1, 1));
    let v = w.clone();
    assert!(v.upgrade().is_none() && v.strong_count() == 0);
    drop((v, w));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn one_writes_or_many_read() {
    let pool = RcPool::unbounded();
    let (a, b) = {
        let a = pool.insert(1);
        (a.clone(), a)
    };
    {
        let (first, second) = (a.borrow(), b.borrow());
        assert_eq!(*first + *second, 2);
        assert!(a.try_borrow_mut().is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| *b.borrow_mut() = 2)).is_err());
    }
    {
        let mut writes = a.borrow_mut();
        *writes = 3;
        assert!(b.try_borrow().is_err() && b.try_borrow_mut().is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| *b.borrow())).is_err());
    }
    assert_eq!(*b.borrow(), 3);
    std::mem::forget(a.borrow());
    assert!(b.try_borrow_mut().is_err());
}

#[test]
fn only_the_only_one_gets_it() {
    let pool = RcPool::bounded(1);
    let mut a = pool.insert(String::from("a"));
    a.get_mut().unwrap().push('b');
    let weak = a.downgrade();
    assert!(a.get_mut().is_none());
    let mut a = a.try_into_slot().unwrap_err();
    drop(weak);
    let b = a.clone();
    assert!(a.get_mut().is_none());
    let a = a.try_into_inner().unwrap_err();
    drop(b);
    let mut slot = a.try_into_slot().unwrap();
    slot.push('c');
    assert_eq!(slot.into_inner(), "abc");
    let a = pool.insert(String::from("x"));
    let weak = a.downgrade();
    assert_eq!(a.try_into_inner().unwrap(), "x");
    assert!(weak.upgrade().is_none());
    assert_eq!(pool.in_use(), 1);
    drop(weak);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_tree_knows_its_parents() {
    struct Node<'p> {
        parent: Option<WeakSlot<'p, Node<'p>>>,
        children: Vec<RcSlot<'p, Node<'p>>>,
    }
    let pool = RcPool::unbounded();
    let root = pool.insert(Node {
        parent: None,
        children: vec![],
    });
    for _ in 0..10 {
        let parent = Some(root.downgrade());
        let child = pool.insert(Node {
            parent,
            children: vec![],
        });
        root.borrow_mut().children.push(child);
    }
    let child = root.borrow().children[5].clone();
    assert!(child
        .borrow()
        .parent
        .as_ref()
        .unwrap()
        .upgrade()
        .unwrap()
        .ptr_eq(&root));
    drop(root);
    assert!(child.borrow().parent.as_ref().unwrap().upgrade().is_none());
    assert_eq!(pool.in_use(), 2);
    drop(child);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_destructor_cannot_have_the_value_back() {
    thread_local! {
        static SEEN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    struct Looks<'p>(Cell<Option<WeakSlot<'p, Looks<'p>>>>);
    impl Drop for Looks<'_> {
        fn drop(&mut self) {
            let weak = self.0.take().unwrap();
            SEEN.set(Some(weak.upgrade().is_none()));
        }
    }
    let pool = RcPool::unbounded();
    let a = pool.insert(Looks(Cell::new(None)));
    a.borrow().0.set(Some(a.downgrade()));
    drop(a);
    assert_eq!(SEEN.get(), Some(true));
    assert_eq!(pool.in_use(), 0);
}
