//! What the depot's stack promises: no magazine is popped twice, none is lost, whoever pops one sees
//! what was put in it, and a count of items is one that was true.

use loom::sync::atomic::Ordering;
use loom::thread;
use slabyard_models::depot::{Depot, Popped, Rules, RULES};
use std::sync::Arc;

const fn items_of(number: u32) -> u64 {
    number as u64 * 1000
}

fn count_of(number: u32) -> u32 {
    1 << number
}

fn filled<const MAGAZINES: usize>(rules: Rules, pushed: &[u32]) -> Arc<Depot<MAGAZINES>> {
    let depot = Arc::new(Depot::new(rules));
    for &number in pushed {
        depot.fill(number, count_of(number), items_of(number));
        depot.push(0, number);
    }
    depot
}

/// After all: whatever is left in the stack and what was popped are all magazines, each once.
fn expect_all_once<const MAGAZINES: usize>(depot: &Depot<MAGAZINES>, popped: Vec<Popped>) {
    let mut seen = popped;
    while let Some(magazine) = depot.pop(0) {
        assert!(seen.len() < MAGAZINES, "a magazine is in two places");
        seen.push(magazine);
    }
    seen.sort_by_key(|it| it.number);
    let all = (1..=MAGAZINES as u32).map(|number| Popped {
        number,
        items: items_of(number),
    });
    assert_eq!(seen, all.collect::<Vec<_>>());
}

/// Two threads push one each, two pop one each.
fn pushers_and_poppers(rules: Rules) {
    loom::model(move || {
        let depot = filled::<2>(rules, &[]);
        let pushers = [1, 2].map(|number| {
            let depot = depot.clone();
            thread::spawn(move || {
                depot.fill(number, count_of(number), items_of(number));
                depot.push(0, number);
            })
        });
        let popper = {
            let depot = depot.clone();
            thread::spawn(move || depot.pop(0))
        };
        let mut popped: Vec<Popped> = depot.pop(0).into_iter().collect();
        popped.extend(popper.join().unwrap());
        for pusher in pushers {
            pusher.join().unwrap();
        }
        expect_all_once(&depot, popped);
    });
}

/// One thread pops while another pops `taken` magazines and pushes back what it took first.
fn pops_beside_reuse<const MAGAZINES: usize>(rules: Rules, taken: usize, extra: Option<u32>) {
    loom::model(move || {
        let pushed: Vec<u32> = (1..=MAGAZINES as u32)
            .filter(|&it| Some(it) != extra)
            .collect();
        let depot = filled::<MAGAZINES>(rules, &pushed);
        if let Some(number) = extra {
            depot.fill(number, count_of(number), items_of(number));
        }
        let other = {
            let depot = depot.clone();
            thread::spawn(move || {
                let mut popped: Vec<Popped> = (0..taken).filter_map(|_| depot.pop(0)).collect();
                extra.into_iter().for_each(|number| depot.push(0, number));
                if !popped.is_empty() {
                    depot.push(0, popped.remove(0).number);
                }
                popped
            })
        };
        let mut popped: Vec<Popped> = depot.pop(0).into_iter().collect();
        popped.extend(other.join().unwrap());
        expect_all_once(&depot, popped);
    });
}

#[test]
fn each_magazine_is_popped_once_with_its_items() {
    pushers_and_poppers(RULES);
}

#[test]
fn a_stalled_pop_is_not_fooled_by_reuse() {
    pops_beside_reuse::<2>(RULES, 2, None);
    pops_beside_reuse::<3>(RULES, 2, None);
    pops_beside_reuse::<3>(RULES, 2, Some(3));
}

#[test]
#[should_panic(expected = "in two places")]
fn without_a_tag_it_is_fooled() {
    pops_beside_reuse::<2>(
        Rules {
            tag_bits: 0,
            ..RULES
        },
        2,
        None,
    );
}

/// One bit tells three exchanges from none, and not four.
#[test]
fn a_tag_of_one_bit_tells_three_exchanges() {
    pops_beside_reuse::<2>(
        Rules {
            tag_bits: 1,
            ..RULES
        },
        2,
        None,
    );
}

#[test]
#[should_panic(expected = "left == right")]
fn a_tag_that_wraps_is_fooled() {
    pops_beside_reuse::<3>(
        Rules {
            tag_bits: 1,
            ..RULES
        },
        2,
        Some(3),
    );
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_items_are_not_seen() {
    pushers_and_poppers(Rules {
        push: Ordering::Acquire,
        ..RULES
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_acquire_items_are_not_seen() {
    pushers_and_poppers(Rules {
        pop_load: Ordering::Relaxed,
        pop: Ordering::Relaxed,
        ..RULES
    });
}

/// A magazine below the one that another thread pushed last: its pusher's stores are seen by way of
/// the exchanges in between, which continue its release sequence.
#[test]
fn what_lies_below_is_seen_too() {
    loom::model(|| {
        let depot = filled::<2>(RULES, &[]);
        let pushers = [1, 2].map(|number| {
            let depot = depot.clone();
            thread::spawn(move || {
                depot.fill(number, count_of(number), items_of(number));
                depot.push(0, number);
            })
        });
        let mut popped: Vec<Popped> = depot.pop(0).into_iter().collect();
        popped.extend(depot.pop(0));
        for pusher in pushers {
            pusher.join().unwrap();
        }
        expect_all_once(&depot, popped);
    });
}

/// 1 lies below 2; another thread takes 2, takes 1, and puts 2 back: 6 items, 2, none, 4.
fn count_beside_exchanges(rules: Rules) {
    loom::model(move || {
        let depot = filled::<2>(rules, &[1, 2]);
        let other = {
            let depot = depot.clone();
            thread::spawn(move || {
                let top = depot.pop(0).unwrap();
                let below = depot.pop(0).unwrap();
                depot.push(0, top.number);
                below
            })
        };
        let items = depot.items(0);
        assert!(
            [6, 2, 0, 4].contains(&items),
            "{items} items were never there"
        );
        let below = other.join().unwrap();
        assert_eq!(depot.items(0), 4);
        expect_all_once(&depot, vec![below]);
    });
}

#[test]
fn a_count_is_one_that_was_true() {
    count_beside_exchanges(RULES);
}

/// The only magazine of one stack goes to another one, where it has more below it.
fn count_beside_a_move(rules: Rules) {
    loom::model(move || {
        let depot = filled::<2>(rules, &[1]);
        depot.fill(2, count_of(2), items_of(2));
        depot.push(1, 2);
        let other = {
            let depot = depot.clone();
            thread::spawn(move || {
                let moved = depot.pop(0).unwrap();
                depot.push(1, moved.number);
            })
        };
        let items = depot.items(0);
        assert!([2, 0].contains(&items), "{items} items were never there");
        other.join().unwrap();
        assert_eq!((depot.items(0), depot.items(1)), (0, 6));
    });
}

#[test]
fn a_count_is_of_its_own_stack() {
    count_beside_a_move(RULES);
}

#[test]
#[should_panic(expected = "6 items were never there")]
fn without_a_second_look_it_is_not() {
    count_beside_a_move(Rules {
        recheck: false,
        ..RULES
    });
}

/// The second look may see the word as it was before the magazine left.
#[test]
#[should_panic(expected = "6 items were never there")]
fn without_release_a_second_look_sees_nothing() {
    count_beside_a_move(Rules {
        items_down: Ordering::Relaxed,
        ..RULES
    });
}
