//! The slots of an allocator without counts have no room for counts.
mod orders {
    slabyard::bounded_allocator!(u64);
}

fn main() {
    let slot = orders::BoxSlot::try_new(1).unwrap();
    let _ = slot.into_rc();
}
