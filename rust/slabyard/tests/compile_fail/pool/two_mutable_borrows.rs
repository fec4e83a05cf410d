//! A value cannot be borrowed mutably twice.
use slabyard::Pool;

fn main() {
    let pool = Pool::unbounded();
    let mut slot = pool.insert(1);
    let (first, second) = (&mut *slot, &mut *slot);
    std::mem::swap(first, second);
    let mut pinned = slot.into_pin();
    let (first, second) = (pinned.as_mut(), pinned.as_mut());
    drop((first, second));
}
