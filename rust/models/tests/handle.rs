//! What handles promise: an object is freed once, nobody else has it while it is pinned, and a stale
//! handle is good for nothing, though its ordinal has another slab by now.

use loom::sync::atomic::Ordering;
use loom::thread;
use slabyard_models::handle::{Handle, Rules, Slot, RULES};
use std::sync::Arc;

fn one_live(rules: Rules) -> (Arc<Slot>, Handle) {
    let slot = Arc::new(Slot::new(rules));
    let handle = slot.alloc(1).expect("it is free");
    (slot, handle)
}

/// Two threads free the same object, and the next owner comes beside them.
fn two_frees(rules: Rules) {
    loom::model(move || {
        let (slot, handle) = one_live(rules);
        let other = {
            let slot = slot.clone();
            thread::spawn(move || slot.free(handle))
        };
        let here = slot.free(handle);
        let next = slot.alloc(2);
        let there = other.join().unwrap();
        assert!(here != there, "freed once");
        assert_ne!(next, Some(handle));
    });
}

/// `pinners` read the object while another thread frees it and the slot has its next owner. With two
/// of them, all orders in which threads are interrupted three times.
fn pins_beside_free(rules: Rules, pinners: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (pinners > 1).then_some(3);
    model.check(move || {
        let (slot, handle) = one_live(rules);
        let readers: Vec<_> = (0..pinners)
            .map(|_| {
                let slot = slot.clone();
                thread::spawn(move || {
                    if slot.pin(handle) {
                        assert_eq!(slot.read(), 1);
                        slot.unpin(handle);
                    }
                })
            })
            .collect();
        assert!(slot.free(handle));
        let next = slot.alloc(2);
        readers.into_iter().for_each(|it| it.join().unwrap());
        match next {
            Some(next) => assert!(next != handle && slot.free(next)),
            None => assert!(slot.alloc(3).is_some(), "the last pin gave it back"),
        }
    });
}

/// The owner writes until it frees, while another thread has the object pinned and does not look.
fn writes_until_free(rules: Rules) {
    loom::model(move || {
        let (slot, handle) = one_live(rules);
        let pinner = {
            let slot = slot.clone();
            thread::spawn(move || {
                if slot.pin(handle) {
                    slot.unpin(handle);
                }
                slot.alloc(2)
            })
        };
        slot.write(5);
        assert!(slot.free(handle));
        let here = slot.alloc(3);
        let there = pinner.join().unwrap();
        assert!(here.is_none() || there.is_none(), "one next owner");
    });
}

/// A stale handle is tried while the slab goes and comes again and an object comes to life in it.
fn stale_beside_recycling(rules: Rules) {
    loom::model(move || {
        let (slot, handle) = one_live(rules);
        assert!(slot.free(handle));
        let stale = {
            let slot = slot.clone();
            thread::spawn(move || {
                assert!(!slot.pin(handle), "a stale handle is not pinned");
                assert!(!slot.free(handle), "a stale handle frees nothing");
            })
        };
        assert!(slot.recycle());
        let next = slot.alloc(2).expect("it is free");
        stale.join().unwrap();
        assert_ne!(next, handle);
        assert!(slot.free(next));
    });
}

#[test]
fn an_object_is_freed_once() {
    two_frees(RULES);
}

#[test]
fn a_pinned_object_stays() {
    pins_beside_free(RULES, 1);
}

#[test]
fn what_was_written_before_a_free_is_done() {
    writes_until_free(RULES);
}

#[test]
#[should_panic]
fn a_free_has_to_release() {
    writes_until_free(Rules {
        free: Ordering::Acquire,
        ..RULES
    });
}

#[test]
fn the_last_of_two_pins_gives_it_back() {
    pins_beside_free(RULES, 2);
}

#[test]
fn a_stale_handle_stays_so_in_the_next_slab() {
    stale_beside_recycling(RULES);
}

#[test]
#[should_panic]
fn free_has_to_be_one_exchange() {
    two_frees(Rules {
        free_exchanges: false,
        ..RULES
    });
}

#[test]
#[should_panic]
fn free_has_to_wait_for_pins() {
    pins_beside_free(
        Rules {
            pins_delay: false,
            ..RULES
        },
        1,
    );
}

#[test]
#[should_panic]
fn an_unpin_has_to_release() {
    pins_beside_free(
        Rules {
            unpin: Ordering::Acquire,
            ..RULES
        },
        1,
    );
}

#[test]
#[should_panic]
fn generations_have_to_go_on() {
    stale_beside_recycling(Rules {
        above_highest: false,
        ..RULES
    });
}
