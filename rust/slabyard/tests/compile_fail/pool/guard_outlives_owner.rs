//! A look at a value keeps its owner.
use slabyard::RcPool;

fn main() {
    let pool = RcPool::unbounded();
    let owner = pool.insert(1);
    let look = owner.borrow();
    drop(owner);
    println!("{}", *look);
}
