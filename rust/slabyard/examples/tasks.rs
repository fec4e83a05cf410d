//! The tasks of an async runtime: futures that are pinned in the slots of a pool, and wakers that
//! know their task by key.
//!
//! A waker may live longer than its task, on any thread. It holds a key, not a pointer. If the task
//! is done, the key is stale, and the wake is ignored, even when another task lies in the same
//! place. The pool is bounded: a session that finds no room is returned, and waits.

use slabyard::{new_key_type, Full, LocalHandleMap, PinnedSlot, Pool};
use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

new_key_type! {
    /// Names a task.
    pub struct TaskKey;
}

/// Keys of tasks that were woken.
#[derive(Default)]
struct Ready {
    keys: Mutex<VecDeque<TaskKey>>,
    more: Condvar,
}

impl Ready {
    fn push(&self, key: TaskKey) {
        self.keys.lock().unwrap().push_back(key);
        self.more.notify_one();
    }

    fn pop(&self) -> TaskKey {
        let mut keys = self.keys.lock().unwrap();
        loop {
            match keys.pop_front() {
                Some(key) => return key,
                None => keys = self.more.wait(keys).unwrap(),
            }
        }
    }
}

struct TaskWaker {
    key: TaskKey,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.key);
    }
}

struct Task<'p, F> {
    future: PinnedSlot<'p, F>,
    waker: Waker,
}

struct Executor<'p, F> {
    pool: &'p Pool<F>,
    tasks: LocalHandleMap<Task<'p, F>, TaskKey>,
    ready: Arc<Ready>,
    late: usize,
}

impl<'p, F: Future> Executor<'p, F> {
    fn new(pool: &'p Pool<F>) -> Self {
        Executor {
            pool,
            tasks: LocalHandleMap::with_key(),
            ready: Arc::default(),
            late: 0,
        }
    }

    /// Starts a task. If there is no room, the future is returned.
    fn spawn(&mut self, future: F) -> Result<TaskKey, Full<F>> {
        let future = self.pool.try_insert(future)?.into_pin();
        let ready = self.ready.clone();
        let key = self.tasks.insert_with_key(|key| Task {
            future,
            waker: Arc::new(TaskWaker { key, ready }).into(),
        });
        self.ready.push(key);
        Ok(key)
    }

    /// Waits for a wake and polls its task. The result is the task's result, if it is done.
    fn turn(&mut self) -> Option<F::Output> {
        let key = self.ready.pop();
        let Some(Task { future, waker }) = self.tasks.get_mut(key) else {
            self.late += 1;
            return None;
        };
        let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) else {
            return None;
        };
        self.tasks.remove(key); // the future is dropped where it lies, then its slot goes back
        Some(output)
    }
}

/// A question to the server, with its answer once the server has given it.
#[derive(Default)]
struct Question {
    number: u64,
    answer: Mutex<(Option<u64>, Option<Waker>)>,
}

/// Waits for the answer.
struct Answer(Arc<Question>);

impl Future for Answer {
    type Output = u64;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let mut state = self.0.answer.lock().unwrap();
        match state.0 {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn ask(server: &Sender<Arc<Question>>, number: u64) -> Answer {
    let question = Arc::new(Question {
        number,
        ..Question::default()
    });
    server.send(question.clone()).unwrap();
    Answer(question)
}

/// A session. While the loop waits, it keeps a reference into the future itself, so the future must
/// not move.
async fn session(id: u64, server: Sender<Arc<Question>>) -> (u64, u64) {
    let numbers = [id, id + 1, id + 2];
    let mut sum = 0;
    for number in &numbers {
        sum += ask(&server, *number).await;
    }
    (id, sum)
}

pub fn main() {
    let (sessions, room) = if cfg!(miri) { (12, 4) } else { (20_000, 64) };

    let (server, questions) = channel::<Arc<Question>>();
    let serving = thread::spawn(move || {
        for question in questions {
            let mut state = question.answer.lock().unwrap();
            state.0 = Some(question.number * question.number);
            let waker = state.1.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake_by_ref();
                waker.wake(); // once too often
            }
        }
    });

    let pool = Pool::bounded(room);
    let mut executor = Executor::new(&pool);
    let mut waiting = (0..sessions).map(|id| session(id, server.clone()));
    let (mut keys, mut done, mut put_off) = (HashSet::new(), HashSet::new(), None);
    while done.len() < sessions as usize {
        while let Some(next) = put_off.take().or_else(|| waiting.next()) {
            match executor.spawn(next) {
                Ok(key) => assert!(keys.insert(key), "a key comes once"),
                Err(Full(next)) => {
                    assert_eq!(pool.in_use(), room);
                    put_off = Some(next);
                    break;
                }
            }
        }
        if let Some((id, sum)) = executor.turn() {
            assert_eq!(sum, id * id + (id + 1) * (id + 1) + (id + 2) * (id + 2));
            assert!(done.insert(id));
        }
    }
    assert!(waiting.next().is_none() && put_off.is_none());
    drop(waiting);
    drop(server);
    serving.join().unwrap();

    // All tasks are done, so each remaining wake is for a finished task.
    while !executor.ready.keys.lock().unwrap().is_empty() {
        assert!(executor.turn().is_none());
    }
    assert_eq!((executor.tasks.len(), pool.in_use()), (0, 0));
    assert_eq!(keys.len(), sessions as usize);
    let late = executor.late;
    println!("{sessions} sessions in {room} slots; {late} wakes came too late, and were refused");
}
