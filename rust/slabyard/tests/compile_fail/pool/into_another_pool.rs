//! There is no way to say into which pool a slot goes back: it has no door for that.
use slabyard::Pool;

fn main() {
    let (first, second) = (Pool::unbounded(), Pool::unbounded());
    let slot = first.insert(1);
    second.free(slot);
}
