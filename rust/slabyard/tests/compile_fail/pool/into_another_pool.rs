//! A slot cannot be given to another pool: there is no function for it.
use slabyard::Pool;

fn main() {
    let (first, second) = (Pool::unbounded(), Pool::unbounded());
    let slot = first.insert(1);
    second.free(slot);
}
