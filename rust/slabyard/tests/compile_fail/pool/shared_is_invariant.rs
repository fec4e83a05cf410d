//! A value that may be changed by other owners keeps its exact type.
use slabyard::{RcPool, RcSlot};

fn put<'p, 's>(slot: RcSlot<'p, &'s str>, text: &'s str) {
    *slot.borrow_mut() = text;
}

fn main() {
    let pool: RcPool<&'static str> = RcPool::unbounded();
    let slot: RcSlot<'_, &'static str> = pool.insert("static");
    {
        let text = String::from("gone");
        put(slot.clone(), &text);
    }
    println!("{}", slot.borrow());
}
