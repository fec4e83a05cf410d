//! Lists the objects of a cache.

use super::heap::Heap;
use super::image::Image;
use super::segments::{self, State};

/// An object, or a free slot, of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub address: u64,
    /// Bytes of an object of its cache.
    pub bytes: u64,
    pub state: State,
}

/// The objects of a cache, at most as many as wanted, and how many there are.
#[derive(Debug, Default)]
pub struct Objects {
    pub shown: Vec<Object>,
    pub count: u64,
}

/// The indexes of the caches with a name, or of the one at an address.
pub fn caches(heap: &Heap, name: &str) -> Vec<usize> {
    let digits = name.strip_prefix("0x");
    let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let caches = heap.caches.iter().enumerate();
    caches
        .filter(|(_, cache)| cache.name == name || Some(cache.address) == address)
        .map(|(index, _)| index)
        .collect()
}

/// Finds the live objects of caches, or their free slots that have memory.
pub fn objects(image: &Image, heap: &Heap, caches: &[usize], free: bool, most: usize) -> Objects {
    let mut all = Objects::default();
    segments::each(heap, &mut |segment| {
        let is_wanted = match segment.state {
            State::Live => !free,
            State::Waiting(_) | State::Free => free,
            _ => false,
        };
        if !is_wanted || !segment.cache.is_some_and(|cache| caches.contains(&cache)) {
            return;
        }
        let (size, zone) = segment.cache.map_or((0, 0), |cache| {
            (heap.caches[cache].size, heap.caches[cache].zone)
        });
        for number in 0..segment.count {
            let address = segment.range.start + number * segment.slot + zone;
            if free && image.resident.between(address..address + 1).bytes == 0 {
                continue;
            }
            all.count += 1;
            if all.shown.len() < most {
                all.shown.push(Object {
                    address,
                    bytes: size,
                    state: segment.state,
                });
            }
        }
    });
    all
}

impl Object {
    /// A line about it.
    pub fn line(self, heap: &Heap) -> String {
        let place = match self.state {
            State::Waiting(holder) => format!(" {}", heap.place_of(holder)),
            State::Free => " in its slab".to_string(),
            _ => String::new(),
        };
        format!("{:#x} {}{place}\n", self.address, self.bytes)
    }
}
