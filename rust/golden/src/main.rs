//! Runs one hot path of the crate: `slabyard-golden PATH COUNT` repeats the path COUNT times;
//! without arguments the program lists the paths of the table at the end. `tests/golden.rs` counts
//! the instructions, and compares them with the golden file beside it.
//!
//! To add a path, write a function that does one turn and nothing else, add a line to the table,
//! and run `UPDATE_GOLDEN=1 cargo test --release -p slabyard-golden`.

use bumpalo::Bump;
use core::arch::asm;
use slabyard::{Arena, Cache, HandleMap, LocalHandleMap, Pool};
use slotmap::{DefaultKey, SlotMap};

/// One word, so that the path is counted and not the writing of the object.
#[derive(Default)]
pub struct Object([u64; 1]);

mod bounded {
    slabyard::bounded_allocator!(super::Object);
}
mod unbounded {
    slabyard::unbounded_allocator!(super::Object);
}
slabyard::static_cache! {
    struct Fixed: Object;
}

/// Makes the compiler assume that the object is used and that memory changes.
#[inline(always)]
fn touch(object: &Object) {
    // SAFETY: an empty statement; the compiler assumes that it uses the register and memory.
    unsafe { asm!("/* {0} */", in(reg) &object.0, options(nostack, preserves_flags)) }
}

/// Makes the compiler assume that other code knows the object's address, so that its fields are not
/// kept in registers from turn to turn.
#[inline(always)]
fn known<T>(object: &mut T) -> &mut T {
    let mut place: *mut T = object;
    // SAFETY: an empty statement; the compiler assumes that it changes the register.
    unsafe {
        asm!("/* {0} */", inout(reg) place, options(nostack, preserves_flags));
        &mut *place
    }
}

/// Repeats the expression `$turn` for each `$i`, and drops its value.
macro_rules! turns {
    ($count:expr, |$i:ident| $turn:expr) => {
        for $i in 0..$count {
            $turn;
        }
    };
}

#[inline(never)]
fn box_slot_bounded(count: u64) {
    bounded::Allocator::builder()
        .capacity(8)
        .build()
        .expect("a pool");
    turns!(count, |i| touch(
        &bounded::BoxSlot::try_new(Object([i])).expect("room")
    ));
}

#[inline(never)]
fn box_slot_unbounded(count: u64) {
    unbounded::Allocator::builder().build().expect("a pool");
    turns!(count, |i| touch(&unbounded::BoxSlot::new(Object([i]))));
}

#[inline(never)]
fn slot(count: u64) {
    let mut pool = Pool::bounded(8);
    let pool = known(&mut pool);
    turns!(count, |i| touch(&pool.insert(Object([i]))));
}

#[inline(never)]
fn nexus_bounded(count: u64) {
    // SAFETY: each slot is given back to this slab.
    let mut slab = unsafe { nexus_slab::bounded::Slab::with_capacity(8) };
    let slab = known(&mut slab);
    turns!(count, |i| {
        let held = slab.alloc(Object([i]));
        touch(&held);
        slab.free(held);
    });
}

/// Room for all turns that are counted, in one chunk.
const ROOM: usize = 1 << 20;

#[inline(never)]
fn arena(count: u64) {
    let mut arena = Arena::new();
    arena.alloc_slice(&[0u8; ROOM]);
    arena.reset();
    let arena = known(&mut arena);
    turns!(count, |i| touch(arena.alloc(Object([i]))));
}

#[inline(never)]
fn bumpalo(count: u64) {
    let mut bump = Bump::with_capacity(ROOM);
    let bump = known(&mut bump);
    turns!(count, |i| touch(bump.alloc(Object([i]))));
}

#[inline(never)]
fn cache_box(count: u64) {
    let mut cache = Cache::new("golden");
    let cache = known(&mut cache);
    drop([0; 8].map(|i| cache.insert(Object([i]))));
    turns!(count, |i| touch(&cache.insert(Object([i]))));
}

#[inline(never)]
fn static_box(count: u64) {
    drop([0; 8].map(|i| Fixed::insert(Object([i]))));
    turns!(count, |i| touch(&Fixed::insert(Object([i]))));
}

#[inline(never)]
fn handle_get(count: u64) {
    let mut map = HandleMap::new();
    let map = known(&mut map);
    let key = map.insert(Object([1]));
    turns!(count, |_i| touch(&map.get(key).expect("it is there")));
}

#[inline(never)]
fn handle_pair(count: u64) {
    let mut map = HandleMap::new();
    let map = known(&mut map);
    let keys = [0; 8].map(|i| map.insert(Object([i])));
    assert!(keys.into_iter().all(|key| map.remove(key)));
    turns!(count, |i| {
        let key = map.insert(Object([i]));
        assert!(map.remove(key))
    });
}

#[inline(never)]
fn local_get(count: u64) {
    let mut map = LocalHandleMap::new();
    let map = known(&mut map);
    let key = map.insert(Object([1]));
    turns!(count, |_i| touch(map.get(key).expect("it is there")));
}

#[inline(never)]
fn local_pair(count: u64) {
    let mut map = LocalHandleMap::new();
    let map = known(&mut map);
    turns!(count, |i| {
        let key = map.insert(Object([i]));
        touch(map.get(key).expect("it is there"));
        assert!(map.remove(key).is_some())
    });
}

#[inline(never)]
fn slotmap_get(count: u64) {
    let mut map = SlotMap::<DefaultKey, _>::new();
    let map = known(&mut map);
    let key = map.insert(Object([1]));
    turns!(count, |_i| touch(map.get(key).expect("it is there")));
}

#[inline(never)]
fn slotmap_pair(count: u64) {
    let mut map = SlotMap::<DefaultKey, _>::new();
    let map = known(&mut map);
    turns!(count, |i| {
        let key = map.insert(Object([i]));
        touch(map.get(key).expect("it is there"));
        assert!(map.remove(key).is_some())
    });
}

/// The number of values of a map, in which one of three slots is empty. A turn visits 64 values.
const VALUES: usize = 64;

/// Large, so that a slab of the map has 128 slots, and the values are counted rather than the slots
/// of a slab.
struct Large([Object; 64]);

impl Large {
    fn new(i: u64) -> Self {
        Self([0; 64].map(|_| Object([i])))
    }
}

/// Fills a map in this way, with its functions to insert and to remove.
fn fill<M, K>(map: &mut M, insert: fn(&mut M, Large) -> K, remove: fn(&mut M, K)) {
    let made = (0..VALUES + VALUES / 2).map(|i| insert(map, Large::new(i as u64)));
    let keys: Vec<K> = made.collect();
    let gone = keys.into_iter().skip(2).step_by(3);
    gone.for_each(|key| remove(map, key));
}

/// Defines a path that visits all values of such a map.
macro_rules! goes_through {
    ($name:ident, $new:expr, $iter:ident) => {
        #[inline(never)]
        fn $name(count: u64) {
            let mut map = $new;
            let map = known(&mut map);
            fill(
                map,
                |map, it| map.insert(it),
                |map, key| _ = map.remove(key),
            );
            turns!(count, |_i| map.$iter().for_each(|(_, it)| touch(&it.0[0])));
        }
    };
}

goes_through!(handle_iter, HandleMap::new(), iter);
goes_through!(handle_iter_mut, HandleMap::new(), iter_mut);
goes_through!(local_iter, LocalHandleMap::new(), iter);
goes_through!(slotmap_iter, SlotMap::<DefaultKey, _>::new(), iter);

/// The name of a path, and the function that repeats it.
type Path = (&'static str, fn(u64));

/// All paths; those of peers are beside the paths that they are compared with.
const PATHS: [Path; 18] = [
    ("box_slot_bounded", box_slot_bounded),
    ("box_slot_unbounded", box_slot_unbounded),
    ("slot", slot),
    ("nexus_bounded", nexus_bounded),
    ("arena", arena),
    ("bumpalo", bumpalo),
    ("cache_box", cache_box),
    ("static_box", static_box),
    ("handle_get", handle_get),
    ("handle_pair", handle_pair),
    ("local_get", local_get),
    ("slotmap_get", slotmap_get),
    ("local_pair", local_pair),
    ("slotmap_pair", slotmap_pair),
    ("handle_iter", handle_iter),
    ("handle_iter_mut", handle_iter_mut),
    ("local_iter", local_iter),
    ("slotmap_iter", slotmap_iter),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [] => PATHS.iter().for_each(|(name, _)| println!("{name}")),
        [wanted, count] => {
            let (_, path) = PATHS
                .iter()
                .find(|(name, _)| name == wanted)
                .expect("a path of that name");
            path(count.parse().expect("a number"));
        }
        _ => panic!("slabyard-golden [PATH COUNT]"),
    }
}
