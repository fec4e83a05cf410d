//! Tests of scopes, with Slabyard as the allocator of the program.
#![cfg(not(miri))]

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use slabyard::{Live, Scope};

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

fn new_scope() -> Scope {
    Scope::new("test").expect("there is memory")
}

#[test]
fn values_lie_in_the_scope_until_they_are_dropped() {
    let scope = new_scope();
    let (text, number) = scope
        .run(|| (String::from("some text"), Box::new(7u64)))
        .expect("it runs");
    assert_eq!(scope.live().objects, 2);
    assert!(scope.live().bytes >= 9 + 8);
    assert_eq!((text.as_str(), *number), ("some text", 7));
    let _elsewhere = Box::new([1u8; 100]);
    assert_eq!(scope.live().objects, 2);
    drop((text, number));
    assert_eq!(
        scope.live(),
        Live {
            objects: 0,
            bytes: 0
        }
    );
    assert_eq!(scope.report(), 0);
}

#[test]
fn scopes_nest_and_let_out() {
    let (session, request) = (new_scope(), new_scope());
    let kept = session.run(|| {
        let first = vec![0u8; 50];
        let inner = request.run(|| {
            let kept = Scope::outside(|| vec![1u8; 60]).expect("it runs");
            (vec![2u8; 70], kept)
        });
        (first, inner.expect("it runs"), vec![3u8; 80])
    });
    assert_eq!((session.live().objects, request.live().objects), (2, 1));
    drop(kept);
    assert_eq!((session.live().objects, request.live().objects), (0, 0));
}

#[test]
fn a_panic_leaves_the_scope() {
    let scope = new_scope();
    let result = std::panic::catch_unwind(|| scope.run(|| panic!("within")));
    assert!(result.is_err());
    let before = scope.live(); // what the panic has left
    let _outside = Box::new([0u8; 1000]);
    assert_eq!(scope.live(), before);
}

#[test]
fn there_is_a_most_of_nested_scopes() {
    fn depth(scope: &Scope) -> u32 {
        scope.run(|| depth(scope)).map_or(0, |depth| depth + 1)
    }
    assert_eq!(depth(&new_scope()), 32);
}

struct Unwoken;

impl Wake for Unwoken {
    fn wake(self: Arc<Self>) {}
}

/// Allocates a value at each poll, and is ready at the third.
struct Steps(Vec<Vec<u8>>);

impl Future for Steps {
    type Output = usize;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        self.0.push(vec![7; 200]);
        match self.0.len() {
            3 => Poll::Ready(3),
            _ => Poll::Pending,
        }
    }
}

#[test]
fn a_future_is_in_its_scope_at_each_poll_on_any_thread() {
    let scope = Arc::new(new_scope());
    let waker = Waker::from(Arc::new(Unwoken));
    let mut future = Box::pin(Scope::around(scope.clone(), Steps(Vec::with_capacity(3))));
    let mut elsewhere = Vec::new();
    for polls in 1..=3 {
        let waker = waker.clone();
        let (result, back) = thread::spawn(move || {
            let result = future.as_mut().poll(&mut Context::from_waker(&waker));
            (result, future)
        })
        .join()
        .expect("it ends");
        future = back;
        elsewhere.push(vec![1u8; 200]);
        assert_eq!(scope.live().objects, polls);
        assert_eq!(result.is_ready(), polls == 3);
    }
    drop(future);
    assert_eq!(scope.live().objects, 0);
}

#[test]
fn tasks_of_several_scopes_take_turns() {
    let waker = Waker::from(Arc::new(Unwoken));
    let scopes = [new_scope(), new_scope()];
    let mut first = pin!(Scope::around(&scopes[0], Steps(Vec::with_capacity(3))));
    let mut second = pin!(Scope::around(&scopes[1], Steps(Vec::with_capacity(3))));
    for polls in 1..=3 {
        let mut context = Context::from_waker(&waker);
        let _ = (
            first.as_mut().poll(&mut context),
            second.as_mut().poll(&mut context),
        );
        assert_eq!(
            (scopes[0].live().objects, scopes[1].live().objects),
            (polls, polls)
        );
    }
}

#[test]
fn values_go_from_thread_to_thread() {
    let scope = new_scope();
    let values = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for number in 0..4u8 {
            let (scope, values) = (&scope, &values);
            threads.spawn(move || {
                for _ in 0..1000 {
                    let made = scope.run(|| vec![number; 300]).expect("it runs");
                    values.lock().expect("no panic").push(made);
                }
            });
        }
    });
    assert_eq!(scope.live().objects, 4000);
    let values = values.into_inner().expect("no panic");
    assert!(values
        .iter()
        .all(|value| value.iter().all(|byte| *byte == value[0])));
    drop(values);
    assert_eq!(scope.live().objects, 0);
}
