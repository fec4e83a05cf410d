//! Slots stay on their thread, and a pool cannot be shared.
use slabyard::{Pool, RcPool};
use std::thread;

fn main() {
    let pool: Pool<u64> = Pool::unbounded();
    let shared_pool: RcPool<u64> = RcPool::unbounded();
    thread::scope(|scope| {
        let slot = pool.insert(1);
        let shared = shared_pool.insert(1);
        scope.spawn(move || drop(slot));
        scope.spawn(move || drop(shared));
        scope.spawn(|| drop(pool.claim()));
    });
}
