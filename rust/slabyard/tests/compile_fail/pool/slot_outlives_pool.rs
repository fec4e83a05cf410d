//! Neither a slot nor a leaked value can be used after its pool is dropped.
use slabyard::{Pool, RcPool};

fn main() {
    let pool = Pool::unbounded();
    let slot = pool.insert(1);
    let leaked = pool.insert(2).leak();
    let vacant = pool.claim();
    let shared_pool = RcPool::unbounded();
    let weak = shared_pool.insert(3).downgrade();
    drop(pool);
    drop(shared_pool);
    println!("{slot} {leaked}");
    drop(vacant);
    drop(weak);
}
