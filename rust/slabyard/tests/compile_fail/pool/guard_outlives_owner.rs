//! A guard of a value would outlive the owner that it borrows.
use slabyard::RcPool;

fn main() {
    let pool = RcPool::unbounded();
    let owner = pool.insert(1);
    let look = owner.borrow();
    drop(owner);
    println!("{}", *look);
}
