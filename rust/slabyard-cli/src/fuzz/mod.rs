//! The targets of the fuzzers. Each target takes any bytes, and panics if a parser of the tool
//! crashes or contradicts itself.
//!
//! * [`recording`]: a recording, byte for byte, and the buffers of processes that were killed;
//! * [`blocks`]: a recording with right checksums and any bytes in its blocks: it is read, planned
//!   and shown;
//! * [`texts`]: command lines, files of the system, and output of programs under `faults`.
//!
//! `scripts/fuzz` runs the targets with libFuzzer, for which the feature `fuzz` defines functions.
//! The inputs that it found are the lines of `fuzz/*.hex`; the tests below run them.

mod blocks;
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

    #[test]
    fn the_empty_input_is_survived() {
        for (_, run) in TARGETS {
            run(&[]);
        }
    }
}
