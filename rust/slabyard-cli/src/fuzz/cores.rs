//! Fuzzes cores with wrong words in any structure: in the head of the file, in its notes, and in what
//! the library has in memory.
//!
//! An input is a list of changes to a core of this process: which word (three bytes), how, and with
//! what (two bytes).

use crate::inspect::core::{self, sample};
use crate::inspect::{metrics, text, Look, Snapshot};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// No core of this size takes longer.
const LONGEST: Duration = Duration::from_secs(20);

struct Bench {
    sample: &'static sample::Sample,
    file: File,
}

impl Bench {
    fn new() -> Self {
        let sample = sample::the();
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&sample.core).expect("it takes a core");
        Bench { sample, file }
    }

    fn word(&self, at: usize) -> u64 {
        let word = self.sample.core[at..][..8].try_into();
        u64::from_le_bytes(word.expect("eight bytes"))
    }

    /// The offset of a word, and its new value.
    fn change(&self, change: &[u8]) -> (usize, u64) {
        let words = &self.sample.words;
        let pick = |number: usize| words[number % words.len()];
        let at = pick(
            usize::from(change[0]) | usize::from(change[1]) << 8 | usize::from(change[2]) << 16,
        );
        let (low, high) = (u64::from(change[4]), u64::from(change[5]));
        let (old, number) = (self.word(at), low | high << 8);
        let new = match change[3] % 8 {
            0 => old & !(0xff << (high % 8 * 8)) | low << (high % 8 * 8),
            1 => old ^ 1 << (low % 64),
            2 | 3 => self.word(pick(number as usize * 977)),
            4 => number,
            5 => u64::MAX - number,
            6 => old.wrapping_add_signed(i64::from(number as i16) * 8),
            _ => old << (low % 64) | number,
        };
        (at, new)
    }
}

pub fn run(input: &[u8]) {
    static BENCH: OnceLock<Mutex<Bench>> = OnceLock::new();
    let bench = BENCH.get_or_init(|| Mutex::new(Bench::new()));
    let bench = bench.lock().expect("the first failure ends the run");
    let changes: Vec<_> = input.chunks_exact(6).map(|one| bench.change(one)).collect();
    let write = |at: usize, word: u64| {
        let written = bench.file.write_all_at(&word.to_le_bytes(), at as u64);
        written.expect("it is open for writing");
    };
    for &(at, word) in &changes {
        write(at, word);
    }
    let begin = Instant::now();
    walk(&bench.file);
    assert!(begin.elapsed() < LONGEST, "it took {:?}", begin.elapsed());
    for &(at, _) in &changes {
        write(at, bench.word(at));
    }
}

/// Does with a core what the commands do.
fn walk(file: &File) {
    let core = core::read(file, Path::new("/nowhere/core"), false);
    let Ok(look) = core.and_then(Look::of) else {
        return;
    };
    let account = look.account();
    assert!(text::account(&account).ends_with('\n'));
    text::caches(&account, true);
    text::threads(&account, true);
    text::pins(&account, &look.heaps, &look.pins(10));
    for address in [0, account.rss_bytes, u64::MAX] {
        look.what_is(address);
    }
    for cache in account.caches.iter().take(3) {
        let _ = look.walk(&cache.name, true, 100);
    }
    metrics::open_metrics(std::slice::from_ref(&account));
    let json = Snapshot::of(account)
        .to_json()
        .expect("an account is plain data");
    Snapshot::parse(&json).expect("it was just written");
}
