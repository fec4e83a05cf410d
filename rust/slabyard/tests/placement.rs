//! Large values are built in their slots: this test reads the compiled code. A value that is copied
//! lies on the stack first, so a function whose stack frame has no room for it copies nothing. The
//! test needs a release build and `objdump`.
#![cfg(all(
    not(debug_assertions),
    not(miri),
    target_arch = "x86_64",
    target_os = "linux"
))]

use slabyard::{Pool, Slot};
use std::hint::black_box;
use std::process::Command;

pub struct Large {
    id: u64,
    price: f64,
    body: [u8; 4080],
}

#[no_mangle]
#[inline(never)]
pub fn placed_literal(pool: &Pool<Large>, id: u64) -> Option<Slot<'_, Large>> {
    Some(pool.claim()?.write(Large {
        id,
        price: 1.0,
        body: [0; 4080],
    }))
}

#[no_mangle]
#[inline(never)]
pub fn placed_array(pool: &Pool<[u64; 512]>, first: u64) -> Option<Slot<'_, [u64; 512]>> {
    Some(pool.claim()?.fill_with(|i| first + i as u64))
}

/// The opposite, which the test must recognise: an array that a loop makes is copied.
#[no_mangle]
#[inline(never)]
pub fn copied_array(pool: &Pool<[u64; 512]>, value: u64) -> Option<Slot<'_, [u64; 512]>> {
    let mut array = [value; 512];
    for (i, word) in black_box(&mut array).iter_mut().enumerate() {
        *word += i as u64;
    }
    Some(pool.claim()?.write(array))
}

/// The instructions of a function of this program.
fn instructions(function: &str) -> Option<String> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(format!("--disassemble={function}"))
        .arg(std::env::current_exe().ok()?)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("<{function}>:")), "{text}");
    Some(text)
}

/// The bytes of stack that a function takes at once.
fn frame(text: &str) -> u64 {
    let frames = text
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("sub ") && line.ends_with(",%rsp"));
    let bytes = frames.filter_map(|line| line.rsplit_once("$0x")?.1.strip_suffix(",%rsp"));
    bytes.map(|hex| u64::from_str_radix(hex, 16).unwrap()).sum()
}

#[test]
fn four_kibibytes_are_built_in_their_place() {
    let (pool, arrays) = (Pool::unbounded(), Pool::unbounded());
    let large = black_box(placed_literal)(&pool, 7).unwrap();
    assert_eq!((large.id, large.price, large.body[4079]), (7, 1.0, 0));
    assert_eq!(black_box(placed_array)(&arrays, 7).unwrap()[511], 518);
    assert_eq!(black_box(copied_array)(&arrays, 7).unwrap()[511], 518);

    let Some(copied) = instructions("copied_array") else {
        eprintln!("there is no objdump: not looked at");
        return;
    };
    assert!(frame(&copied) >= 4096, "{copied}");
    for function in ["placed_literal", "placed_array"] {
        let text = instructions(function).unwrap();
        assert!(frame(&text) < 128, "{text}");
    }
}
