//! Values for stress tests. They own memory, carry a pattern and count their drops, so every torn copy,
//! double drop, use after a drop and lost value is found.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of drops of each value, by the value's number.
pub struct Ledger(Vec<AtomicU32>);

impl Ledger {
    pub fn new(values: u64) -> Self {
        Ledger((0..values).map(|_| AtomicU32::new(0)).collect())
    }

    pub fn drops(&self) -> u64 {
        let drops = self.0.iter();
        drops.map(|it| u64::from(it.load(Ordering::Relaxed))).sum()
    }

    pub fn each_was_dropped_once(&self) -> bool {
        self.0.iter().all(|it| it.load(Ordering::Relaxed) == 1)
    }
}

const WORDS: usize = 8;

pub struct Value<'a> {
    pub number: u64,
    text: String,
    pattern: [u64; WORDS],
    ledger: &'a Ledger,
}

fn pattern(number: u64) -> [u64; WORDS] {
    std::array::from_fn(|i| {
        (number + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(i as u32)
    })
}

impl<'a> Value<'a> {
    pub fn new(number: u64, ledger: &'a Ledger) -> Self {
        Self {
            number,
            text: number.to_string(),
            pattern: pattern(number),
            ledger,
        }
    }

    pub fn verify(&self) {
        assert_eq!(
            self.pattern,
            pattern(self.number),
            "the value was torn, overwritten or dropped"
        );
        assert_eq!(self.text, self.number.to_string());
        let dropped = self.ledger.0[self.number as usize].load(Ordering::Relaxed);
        assert_eq!(dropped, 0, "the value was dropped while it is held");
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.verify();
        self.ledger.0[self.number as usize].fetch_add(1, Ordering::Relaxed);
        self.pattern = [0xDEAD; WORDS];
    }
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
