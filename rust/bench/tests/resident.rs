//! The only test of its process: allocations of other tests would be counted too.

use slabyard_bench::machine::{peak, reset_peak, resident};

#[test]
fn resident_memory_follows_what_is_touched() {
    let bytes = 32 << 20;
    let (before, peak_before) = (resident(), reset_peak());
    let block = std::hint::black_box(vec![1u8; bytes]);
    let during = resident();
    drop(block);
    let after = resident();
    let most = bytes as u64 * 9 / 10;
    assert!(during >= before + most, "{before} {during}");
    assert!(after + most <= during, "{during} {after}");
    assert!(peak() >= peak_before + most, "{peak_before} {}", peak());
    let forgotten = reset_peak();
    assert!(forgotten < peak_before + most / 2, "{forgotten}");
}
