//! A box of one static cache would be freed to another one.
use slabyard::StaticBox;

slabyard::static_cache! {
    struct Ours: u64;
    struct Theirs: u64;
}

fn main() {
    let _object: StaticBox<Theirs> = Ours::insert(1);
}
