//! Alone in its process: what other tests allocate and free meanwhile would be counted too.

use slabyard_bench::machine::resident;

#[test]
fn resident_memory_follows_what_is_touched() {
    let bytes = 32 << 20;
    let before = resident();
    let block = std::hint::black_box(vec![1u8; bytes]);
    let during = resident();
    drop(block);
    let after = resident();
    let most = bytes as u64 * 9 / 10;
    assert!(during >= before + most, "{before} {during}");
    assert!(after + most <= during, "{during} {after}");
}
