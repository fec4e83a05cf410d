//! Tests of the counts of shared objects: the value is dropped once, after all accesses to it, and
//! the place is freed once, after the drop.

use loom::model::Builder;
use loom::thread;
use slabyard_models::counts::Shared;

fn explore(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn the_last_of_three_owners_drops_the_value() {
    explore(|| {
        let (shared, owner) = Shared::with_owner(1);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let other = owner.clone();
                thread::spawn(move || assert_eq!(other.clone().read(), 1))
            })
            .collect();
        drop(owner);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(shared.is_gone());
    });
}

#[test]
fn a_watcher_becomes_an_owner_or_finds_it_gone() {
    explore(|| {
        let (shared, owner) = Shared::with_owner(1);
        let watcher = owner.watcher();
        let other = thread::spawn(move || {
            if let Some(owner) = watcher.clone().upgrade() {
                assert_eq!(owner.read(), 1);
            }
        });
        drop(owner);
        other.join().unwrap();
        assert!(shared.is_gone());
    });
}

#[test]
fn whoever_is_alone_writes_and_others_read_it() {
    explore(|| {
        let (shared, mut owner) = Shared::with_owner(1);
        let other = owner.clone();
        let watcher = owner.watcher();
        let first = thread::spawn(move || {
            other.read();
            drop(other.watcher());
        });
        let second = thread::spawn(move || {
            watcher.upgrade().map(|owner| owner.read());
        });
        if owner.write_if_alone(2) {
            assert_eq!(owner.read(), 2);
        }
        drop(owner);
        first.join().unwrap();
        second.join().unwrap();
        assert!(shared.is_gone());
    });
}

#[test]
fn what_owners_did_that_left_is_before_what_one_alone_does() {
    explore(|| {
        let (shared, mut owner) = Shared::with_owner(1);
        let other = owner.clone();
        let thread = thread::spawn(move || other.read());
        owner.write_if_alone(2);
        thread.join().unwrap();
        drop(owner);
        assert!(shared.is_gone());
    });
    explore(|| {
        let (shared, owner) = Shared::with_owner(1);
        let other = owner.clone();
        let thread = thread::spawn(move || other.read());
        owner.take_if_last();
        thread.join().unwrap();
        assert!(shared.is_gone());
    });
}

#[test]
fn a_watcher_that_is_made_by_another_owner_waits_for_the_writer() {
    explore(|| {
        let (shared, mut owner) = Shared::with_owner(1);
        let other = owner.clone();
        let thread = thread::spawn(move || {
            let watcher = other.watcher();
            drop(other);
            watcher.upgrade().map_or(0, |owner| owner.read())
        });
        let wrote = owner.write_if_alone(2);
        let read = thread.join().unwrap();
        assert!(read == 1 || (wrote && read == 2));
        drop(owner);
        assert!(shared.is_gone());
    });
}

#[test]
fn of_two_that_take_the_value_if_last_at_most_one_gets_it() {
    explore(|| {
        let (shared, owner) = Shared::with_owner(7);
        let other = owner.clone();
        let thread = thread::spawn(move || other.take_if_last());
        let taken = [owner.take_if_last(), thread.join().unwrap()];
        assert!(taken.iter().flatten().count() <= 1);
        assert!(taken.iter().flatten().all(|value| *value == 7));
        assert!(shared.is_gone());
    });
}

#[test]
fn nobody_owns_what_is_not_born() {
    explore(|| {
        let (shared, watcher) = Shared::unborn();
        let other = watcher.clone();
        let thread = thread::spawn(move || {
            if let Some(owner) = other.upgrade() {
                assert_eq!(owner.read(), 3);
            }
        });
        let owner = watcher.be_born(3);
        assert_eq!(owner.read(), 3);
        drop(owner);
        thread.join().unwrap();
        assert!(shared.is_gone());
    });
}
