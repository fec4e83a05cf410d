//! The targets of the fuzzers. Each target takes any bytes, and panics if a parser of the tool
//! crashes or contradicts itself.
//!
//! * [`recording`]: a recording, byte for byte, and the buffers of processes that were killed;
//! * [`blocks`]: a recording with right checksums and any bytes in its blocks: it is read, planned
//!   and shown;
//! * [`texts`]: command lines, files of the system, and output of programs under `faults`;
//! * [`cores`]: a core with wrong words in any structure, which `account` and the like read.
//!
//! `scripts/fuzz` runs the targets with libFuzzer, for which the feature `fuzz` defines functions.
//! The inputs that it found are the lines of `fuzz/*.hex`; the tests below run them.

mod blocks;
mod cores;
mod recording;
mod texts;

/// Defines the functions for libFuzzer, and a list of the targets for the tests.
macro_rules! targets {
    ($($name:ident, $function:ident;)+) => {
        #[cfg(test)]
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),+];

        $(
            /// # Safety
            /// `size` bytes can be read at `data`, or `size` is 0.
            #[cfg(feature = "fuzz")]
            #[no_mangle]
            pub unsafe extern "C" fn $function(data: *const u8, size: usize) -> core::ffi::c_int {
                let input = if size == 0 {
                    &[]
                } else {
                    // SAFETY: as the caller says.
                    unsafe { core::slice::from_raw_parts(data, size) }
                };
                $name::run(input);
                0
            }
        )+
    };
}

targets! {
    recording, slabyard_fuzz_recording;
    blocks, slabyard_fuzz_blocks;
    texts, slabyard_fuzz_texts;
    cores, slabyard_fuzz_cores;
}

#[cfg(test)]
mod tests {
    use super::TARGETS;
    use std::path::Path;

    fn bytes_of(line: &str) -> Vec<u8> {
        let digit = |byte: u8| {
            (byte as char)
                .to_digit(16)
                .expect("a line of hexadecimal digits")
        };
        let pairs = line.as_bytes().chunks(2);
        pairs
            .map(|pair| (digit(pair[0]) << 4 | digit(pair[1])) as u8)
            .collect()
    }

    #[test]
    fn inputs_that_were_found_are_survived() {
        for (name, run) in TARGETS {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/{name}.hex"));
            let lines = std::fs::read_to_string(&file).unwrap();
            assert!(lines.lines().count() > 10, "{name}");
            for line in lines.lines() {
                run(&bytes_of(line));
            }
        }
    }

    /// Changes cores by chance. More: `SLABYARD_FUZZ_CASES=0..1000000 cargo test cores_with`.
    #[test]
    fn cores_with_wrong_words_are_survived() {
        use proptest::prelude::RngCore;
        use proptest::test_runner::{RngAlgorithm, TestRng};

        let cases = std::env::var("SLABYARD_FUZZ_CASES").unwrap_or("0..200".into());
        let (first, end) = cases.split_once("..").expect("FIRST..END");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        for case in number(first)..number(end) {
            let mut seed = [0; 32];
            seed[..8].copy_from_slice(&case.to_le_bytes());
            let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
            let changes = 1 + random.next_u32() as usize % 4;
            let mut input = vec![0; 6 * changes];
            random.fill_bytes(&mut input);
            let result = std::panic::catch_unwind(|| super::cores::run(&input));
            assert!(result.is_ok(), "case {case}: {input:02x?}");
        }
    }

    #[test]
    fn the_empty_input_is_survived() {
        for (_, run) in TARGETS {
            run(&[]);
        }
    }
}
