//! Vectors that grow by `realloc` and are written whole: the cost of a copy, or of a move of pages.

use super::memory::mebibytes;
use super::Bench;
use crate::machine::{self, cpu_ns};
use crate::rows::Growth;
use core::ptr::null_mut;
use slabyard_peers::{MallocFn, ReallocFn};

/// The number of vectors. They grow in turn, so that none can grow in place for long.
const VECTORS: usize = 4;
const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 64 << 20;
/// The number of times that they grow from the smallest to the largest.
const PASSES: usize = 3;

/// One vector of 64-bit words; word `i` is `i` times its salt.
struct Vector {
    words: *mut u64,
    length: usize,
    salt: u64,
}

impl Vector {
    /// Allocated, and written whole.
    fn new(malloc: MallocFn, bytes: usize, salt: u64) -> Vector {
        // SAFETY: any size may be asked for.
        let words = unsafe { malloc(bytes) }.cast();
        let mut vector = Vector {
            words,
            length: 0,
            salt,
        };
        vector.write_to(bytes / size_of::<u64>());
        vector
    }

    fn bytes(&self) -> usize {
        self.length * size_of::<u64>()
    }

    fn word(&self, index: usize) -> u64 {
        (index as u64).wrapping_mul(self.salt)
    }

    /// Writes the new words of a vector that has grown to `length` words.
    fn write_to(&mut self, length: usize) {
        assert!(!self.words.is_null(), "there is memory");
        for index in self.length..length {
            // SAFETY: there is room for `length` words.
            unsafe { self.words.add(index).write(self.word(index)) };
        }
        self.length = length;
    }

    fn grow(&mut self, realloc: ReallocFn, bytes: usize) {
        // SAFETY: the memory is live, and its old address is not used again.
        self.words = unsafe { realloc(self.words.cast(), bytes) }.cast();
        self.write_to(bytes / size_of::<u64>());
    }

    /// Whether each word has the value that was written, however often the vector was moved.
    fn is_whole(&self) -> bool {
        // SAFETY: `length` words were written.
        let words = unsafe { core::slice::from_raw_parts(self.words, self.length) };
        let mut words = words.iter().enumerate();
        words.all(|(index, &word)| word == self.word(index))
    }
}

fn next_size(growth: Growth, bytes: usize, largest: usize) -> usize {
    let more = match growth {
        Growth::Double => bytes,
        Growth::Half => bytes / 2,
    };
    (bytes + more)
        .next_multiple_of(size_of::<u64>())
        .min(largest)
}

impl Bench<'_> {
    pub(super) fn vectors(&mut self, growth: Growth) {
        let (malloc, free) = self.allocator.any_size().expect("a suitable allocator");
        let realloc = self.allocator.realloc().expect("a suitable allocator");
        let largest = LARGEST / self.effort.fewer_objects / size_of::<u64>() * size_of::<u64>();
        let (mut took, mut growths) = (0, 0);
        let before = machine::reset_peak();
        for _ in 0..(PASSES / self.effort.fewer_rounds).max(1) {
            let mut vectors: [Vector; VECTORS] =
                core::array::from_fn(|i| Vector::new(malloc, SMALLEST, 2 * i as u64 + 3));
            while vectors[VECTORS - 1].bytes() < largest {
                for vector in &mut vectors {
                    let bytes = next_size(growth, vector.bytes(), largest);
                    let start = cpu_ns();
                    vector.grow(realloc, bytes);
                    took += cpu_ns() - start;
                    growths += 1;
                }
            }
            for vector in &mut vectors {
                assert!(vector.is_whole(), "realloc keeps what was written");
                // SAFETY: it is live and freed once.
                unsafe { free(core::mem::replace(&mut vector.words, null_mut()).cast()) };
            }
        }
        let peak = machine::peak().saturating_sub(before);
        let layout = self.layouts[0].0;
        self.sample(
            "per growth",
            layout,
            took as f64 / f64::from(growths) / 1000.0,
        );
        self.sample("resident peak", layout, mebibytes(peak));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(growth: Growth) -> Vec<usize> {
        let grown = |bytes: &usize| (*bytes < LARGEST).then(|| next_size(growth, *bytes, LARGEST));
        std::iter::successors(Some(SMALLEST), grown).collect()
    }

    #[test]
    fn growth_ends_at_the_largest() {
        let doubled = sizes(Growth::Double);
        assert_eq!(doubled.len(), 15);
        assert_eq!(doubled[..3], [4096, 8192, 16384]);
        let half = sizes(Growth::Half);
        assert_eq!(half[..3], [4096, 6144, 9216]);
        assert_eq!(half.last(), Some(&LARGEST));
        assert!(half.iter().all(|bytes| bytes % size_of::<u64>() == 0));
    }

    #[test]
    fn a_damaged_vector_is_seen() {
        let glibc = slabyard_peers::find("glibc").unwrap();
        let mut vector = Vector::new(glibc.malloc, SMALLEST, 5);
        vector.grow(glibc.realloc, 3 * SMALLEST);
        assert!(vector.is_whole() && vector.bytes() == 3 * SMALLEST);
        // SAFETY: the memory is live and has at least `length` words.
        unsafe { *vector.words.add(vector.length / 2) ^= 1 };
        assert!(!vector.is_whole());
        // SAFETY: freed once.
        unsafe { (glibc.free)(vector.words.cast()) };
    }
}
